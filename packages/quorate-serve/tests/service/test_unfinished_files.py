"""What a process that was killed had begun to write is gone at the next start; what is being written stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from quorate import formats
from quorate.storage.files.unfinished import beside
from quorate_serve import exporting
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings
from quorate_serve.start import begin
from serving import Team

KILLED = """
import os, sys
from pathlib import Path
from quorate.storage.files.unfinished import beside
open = []
def begin(path, folder):
    open.append(beside(path, folder=folder))
    return open[-1].__enter__()
for place in map(Path, sys.argv[1:]):
    place.parent.mkdir(parents=True, exist_ok=True)
    begin(place, False).write_text("Ada")
    begin(begin(place, True) / "names.jsonl", False).write_text("Ada")
os._exit(9)
"""


def unfinished(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.part"))


def killed_while_writing(*places: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, *map(str, places)], check=False)


def test_the_next_start_removes_what_killed_processes_left(tmp_path: Path) -> None:
    settings = ServiceSettings(tmp_path)
    other = [tmp_path / ".quorate" / "contents" / "ab" / "cd", settings.folder / "export"]
    killed_while_writing(tmp_path / "monday.zip", *other)
    assert len(unfinished(tmp_path)) == 9
    (tmp_path / "my.part").write_text("of somebody else")
    with beside(tmp_path / "tuesday.zip") as held:
        begin(settings, None)
        assert unfinished(tmp_path) == sorted([held.name, "my.part"])


def test_an_export_is_written_where_only_the_service_looks(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    def noted(content: object, path: Path, format: str) -> None:
        seen.append(path)
        formats.write(content, path, format)  # type: ignore[arg-type]

    monkeypatch.setattr(exporting, "write", noted)
    for format in ("jsonl", "brat"):
        assert team.client(Role.MANAGER).get("/api/v1/export", params={"format": format}).status_code == 200
    assert all(path.is_relative_to(team.settings.folder) for path in seen)
    assert len(seen) == 2
    assert unfinished(team.settings.root) == []
    killed_while_writing(team.settings.folder / "export")
    team.client(Role.MANAGER).get("/api/v1/export")
    assert unfinished(team.settings.root) == []
