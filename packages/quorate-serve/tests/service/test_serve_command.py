"""``quorate serve`` as people start it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, ClassVar

import pytest
from sqlalchemy import delete, func, select
from typer.testing import CliRunner

import quorate
from quorate.cli import app
from quorate.corpus.overlaps import OverlapRule, Overlaps
from quorate.corpus.profiles import Profile
from quorate.errors import InputError, SettingsError
from quorate.formats import write
from quorate.project.settings_file import SettingsFile
from quorate_serve import reach, supervisor
from quorate_serve.cli import _reading
from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.documents import profiles_of
from quorate_serve.people import people_of
from quorate_serve.settings import FitSettings, ServiceSettings
from quorate_serve.start import begin
from serving import free_port


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "quorate", "serve", "--port", str(free_port()), *options]
    return subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"}
    )


def link(serving: subprocess.Popen[str]) -> str:
    """The link that it prints."""
    assert serving.stderr is not None
    for line in serving.stderr:
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise AssertionError("no link was printed")


def get(url: str) -> str:
    for _ in range(100):
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return str(answer.read().decode())
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


@pytest.mark.parametrize("options", [("--demo",), ()])
def test_a_folder_is_served_until_it_is_stopped(tmp_path: Path, options: tuple[str, ...]) -> None:
    if not options:
        write(quorate.Corpus(quorate.sample().documents[:20]), tmp_path / "crowd.jsonl")
        (tmp_path / "quorate.toml").write_text('inputs = ["crowd.jsonl"]\n[serve]\nlabels = "PER,LOC"\n')
    serving = start(tmp_path, *options)
    try:
        assert "Join as admin" in get(link(serving))
    finally:
        serving.send_signal(signal.SIGINT)
        _, told = serving.communicate(timeout=30)
    assert serving.returncode == 0, told
    assert (tmp_path / ".quorate" / "serve" / "service.db").exists() is not bool(options)


def test_a_port_that_is_taken_is_told_in_a_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        serving = start(tmp_path, "--demo", "--port", str(taken.getsockname()[1]))
        _, told = serving.communicate(timeout=30)
    assert serving.returncode == 2
    assert "give another --port" in told


def test_settings_that_do_not_go_together(tmp_path: Path) -> None:
    serving = start(tmp_path, "--demo", "--per-document-max", "1")
    _, told = serving.communicate(timeout=30)
    assert serving.returncode == 2
    assert "per-document-min" in told


@pytest.mark.parametrize(
    ("toml", "options", "expected"),
    [
        ("", [], (OverlapRule(), FitSettings())),
        (
            '[serve]\noverlaps = "nested"\noverlap-limit = 3\nfit-seconds = 20\nfit-memory = "2G"\n',
            [],
            (OverlapRule(Overlaps.NESTED, 3), FitSettings(20.0, 2 << 30)),
        ),
        ('[aggregate]\nlayers = "auto"\n', [], (OverlapRule(Overlaps.ANY), FitSettings())),
        ('[aggregate]\nlayers = "auto"\n', ["--overlaps", "none"], (OverlapRule(), FitSettings())),
    ],
)
def test_overlaps_and_limits_of_a_fit_are_settings_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toml: str, options: list[str], expected: tuple[Any, Any]
) -> None:
    served: list[ServiceSettings] = []

    def supervise(settings: ServiceSettings, taken: socket.socket) -> None:
        served.append(settings)
        taken.close()

    monkeypatch.setattr(supervisor, "supervise", supervise)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quorate.toml").write_text('inputs = ["crowd.jsonl"]\n' + toml)
    nested = [{"start": 0, "end": 8, "label": "ORG"}, {"start": 0, "end": 4, "label": "LOC"}]
    line = {"id": "x", "text": "Bath Spa", "annotations": {"ann": nested}}
    (tmp_path / "crowd.jsonl").write_text(json.dumps(line))
    done = CliRunner().invoke(app, ["serve", "--port", str(free_port()), *options])
    assert done.exit_code == 0, done.output
    assert [(settings.overlaps, settings.fits) for settings in served] == [expected]
    assert ("spans overlap although they must not" in done.output) == (expected[0].allowed is Overlaps.NONE)


@pytest.mark.parametrize("option", [("--overlaps", "deep"), ("--fit-seconds", "0"), ("--fit-memory", "much")])
def test_settings_of_overlaps_and_fits_that_make_no_sense(tmp_path: Path, option: tuple[str, str]) -> None:
    serving = start(tmp_path, "--demo", *option)
    _, told = serving.communicate(timeout=30)
    assert serving.returncode == 2
    assert option[0].lstrip("-") in told


def test_commands_about_a_service_are_told_what_it_is_told_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quorate.toml").write_text(
        'inputs = ["crowd.jsonl"]\n[serve]\nport = 4711\ndatabase = "sqlite:///elsewhere.db"\nlabels = "PER"\n'
    )
    invited = CliRunner().invoke(app, ["service", "invite"])
    assert "http://127.0.0.1:4711/invite/" in invited.output
    assert (tmp_path / "elsewhere.db").exists()
    assert CliRunner().invoke(app, ["service", "backup", "all.zip"]).exit_code == 0
    assert not (tmp_path / ".quorate" / "serve" / "service.db").exists()


@pytest.mark.skipif(os.name != "posix", reason="whose a folder is is told otherwise there")
def test_the_folder_of_a_service_is_nobody_elses_and_not_for_git(tmp_path: Path) -> None:
    settings = ServiceSettings(tmp_path)
    settings.secret()
    assert settings.folder.stat().st_mode & 0o777 == 0o700
    assert (settings.folder / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("10.0.0.5", "10.0.0.5")])
def test_a_link_leads_to_where_it_listens(host: str, address: str) -> None:
    assert ServiceSettings(Path("."), host=host).address == f"http://{address}:8787"


@pytest.mark.parametrize(("host", "loopback"), [("0.0.0.0", "127.0.0.1"), ("::", "::1")])
def test_a_link_of_a_service_that_listens_everywhere_leads_to_the_machine(
    monkeypatch: pytest.MonkeyPatch, host: str, loopback: str
) -> None:
    class Socket(socket.socket):
        """Of a machine that has an address on a network, or none."""

        network: ClassVar[str | None] = "10.1.2.3"

        def connect(self, place: Any) -> None:
            if self.network is None:
                raise OSError("no route")

        def getsockname(self) -> Any:
            return (self.network, 1)

    monkeypatch.setattr(socket, "socket", Socket)
    reach.address_of_this_machine.cache_clear()
    assert ServiceSettings(Path("."), host=host).address == "http://10.1.2.3:8787"
    reach.address_of_this_machine.cache_clear()
    Socket.network = None
    shown = f"[{loopback}]" if ":" in loopback else loopback
    assert ServiceSettings(Path("."), host=host).address == f"http://{shown}:8787"
    reach.address_of_this_machine.cache_clear()


def test_a_file_that_is_for_the_service_alone(tmp_path: Path) -> None:
    (tmp_path / "quorate.toml").write_text('[serve]\nlabels = "PER,LOC"\n')
    command = [sys.executable, "-m", "quorate", "service", "invite"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    told = subprocess.run([*command[:3], "run"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "no inputs" in told.stderr


def test_an_origin_is_an_address(tmp_path: Path) -> None:
    serving = start(tmp_path, "--demo", "--origin", "labels.example.org")
    _, told = serving.communicate(timeout=30)
    assert serving.returncode == 2
    assert "is not an address" in told


def test_a_project_s_files_are_read_as_a_run_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = [{"start": 0, "end": 3, "label": "PERS"}]
    line = {"id": "x", "text": "Ada sang", "annotations": dict.fromkeys(("ann", "eva", "rex", "gpt"), marks)}
    (tmp_path / "crowd.jsonl").write_text(json.dumps(line))
    (tmp_path / "who.json").write_text(
        '{"eva": {"kind": "expert"}, "rex": {"kind": "rule"}, "gpt": {"kind": "model", "trust": 2, "group": "llm"}}'
    )
    path = tmp_path / "quorate.toml"
    path.write_text(
        'inputs = ["crowd.jsonl"]\n[aggregate]\nannotators = "who.json"\n'
        'map-labels = { PERS = "PER" }\nmap-annotators = "ann=Anna"\n'
    )
    monkeypatch.chdir(tmp_path)
    settings, _ = begin(ServiceSettings(tmp_path), SettingsFile.read(path), reading=_reading(SettingsFile.read(path)))
    database = Database.open(settings.database)
    with database.read() as connection:
        names = {person.id: person.name for person in people_of(connection)}
        told = {names[person]: profile for person, profile in profiles_of(connection).items()}
    database.close()
    assert set(names.values()) == {"Anna", "eva", "rex", "gpt"}
    assert told == {
        "eva": Profile.of(kind="expert"),
        "rex": Profile.of(kind="rule", abstains=True),
        "gpt": Profile.of(kind="model", trust=2, group="llm"),
    }


def test_a_secret_of_another_database_is_noticed_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ServiceSettings(tmp_path)
    begin(settings, None, demo=True)
    begin(settings, None)  # its own is right
    monkeypatch.setenv("QUORATE_SECRET", "x" * 40)
    with pytest.raises(SettingsError, match="not the secret that this database was made with"):
        begin(settings, None)


def test_what_stands_is_made_again_from_what_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ServiceSettings(tmp_path)
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["service", "rebuild"])
    assert isinstance(refused.exception, InputError)
    assert not settings.folder.exists()
    begin(settings, None, demo=True)
    assert "events gone through: all was as they say" in CliRunner().invoke(app, ["service", "rebuild"]).output
    database = Database.open(settings.database)
    kept = tables.current_annotations
    count = select(func.count()).select_from(kept)
    with database.read() as connection:
        before = connection.execute(count).scalar_one()
    database.change(lambda connection: connection.execute(delete(kept).where(kept.c.document == 1)))
    database.close()
    said = CliRunner().invoke(app, ["service", "rebuild"]).output
    assert "3 rows were not as they say, and are now" in said
    database = Database.open(settings.database)
    with database.read() as connection:
        assert connection.execute(count).scalar_one() == before
    database.close()
