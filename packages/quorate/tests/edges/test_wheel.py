"""The wheel that people install: all that the code needs is in it, and it works without the checkout."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from wheels import PACKAGES, beside_the_code, built

SOURCES = PACKAGES / "quorate" / "src" / "quorate"

# What a command does, with nothing but what was unpacked.
START = """
import sys
from pathlib import Path
import quorate
from quorate.cli import main

assert Path(quorate.__file__).is_relative_to(sys.argv.pop(1)), quorate.__file__
main()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return built("quorate", tmp_path_factory.mktemp("wheel"))


def test_everything_beside_the_code_is_in_it(wheel: zipfile.ZipFile) -> None:
    there, wanted = set(wheel.namelist()), beside_the_code(SOURCES)
    assert any("report/assets/" in name for name in wanted)  # or nothing would be looked for
    assert wanted - there == set()
    assert any("quorate/model/kernels/kernels-base" in name for name in there)


def test_nothing_else_is(wheel: zipfile.ZipFile) -> None:
    parts = {name.split("/")[0] for name in wheel.namelist()}
    assert all(part == "quorate" or part.startswith("quorate-") for part in parts), parts
    assert not [name for name in wheel.namelist() if "__pycache__" in name or "/tests/" in name]


def test_its_description_is_the_readme(wheel: zipfile.ZipFile) -> None:
    described = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(wheel.read(described))
    assert metadata["Description-Content-Type"] == "text/markdown"
    readme = (PACKAGES.parent / "README.md").read_text(encoding="utf-8")
    assert metadata.get_payload(decode=True) == readme.encode()
    licence = described.replace("METADATA", "licenses/LICENSE")
    assert wheel.read(licence) == (PACKAGES.parent / "LICENSE").read_bytes()


def test_a_consensus_is_made_from_it_alone(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    unpacked = tmp_path / "installed"
    wheel.extractall(unpacked)
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "PYTHONSAFEPATH": "1"}
    for arguments in (["demo", "--write", "crowd.jsonl"], ["aggregate", "crowd.jsonl", "-o", "consensus.jsonl"]):
        command = [sys.executable, "-c", START, str(unpacked), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "consensus.jsonl").read_bytes().count(b"\n") == 320
