"""How the commands of the service join the command line: by an entry point, loaded when somebody asks for them."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import quorate_serve.cli
from quorate.cli import app

HEAVY = ("alembic", "fastapi", "httpx", "jinja2", "numpy", "sqlalchemy", "uvicorn")
LOADED = """
import sys
from quorate.cli import answer
sys.argv = ["quorate", *sys.argv[1:]]
try:
    answer()
except SystemExit:
    pass
print("modules:", *(name for name in sys.modules if name.startswith("quorate_serve") or name in {heavy}))
"""


def loaded_by(folder: Path, *arguments: str) -> set[str]:
    """Which modules of the service, and of what it needs, a command loads."""
    command = [sys.executable, "-c", LOADED.format(heavy=HEAVY), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("modules:")[2].split())


def test_the_entry_point_is_the_app() -> None:
    (entry,) = (each for each in entry_points(group="quorate.commands") if each.name == "quorate-serve")
    assert entry.load() is quorate_serve.cli.app


def test_the_help_lists_the_commands_and_loads_nothing_of_the_service(tmp_path: Path) -> None:
    light = {"quorate_serve", "quorate_serve.cli", "quorate_serve.reach", "quorate_serve.settings"}
    assert loaded_by(tmp_path, "--help") == light
    assert loaded_by(tmp_path, "serve", "--help") == light


def test_a_command_of_the_library_does_not_look_for_others(tmp_path: Path) -> None:
    assert not [name for name in loaded_by(tmp_path, "formats") if name.startswith("quorate_serve")]


@pytest.mark.parametrize("words", [["serve"], ["service"], ["service", "backup"]])
def test_they_have_their_help(words: list[str]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"])
    assert shown.exit_code == 0
    assert f"Usage: quorate {' '.join(words)}" in shown.output


def test_they_stand_in_their_panel_and_keep_the_manners_of_the_others() -> None:
    group: Any = typer.main.get_command(app)
    group.add_others()
    assert [name for name, each in group.commands.items() if each.rich_help_panel == "A team"] == ["serve", "service"]
    commands = [group.commands["serve"], *group.commands["service"].commands.values()]
    flags = [each for command in commands for each in command.params if getattr(each, "is_flag", False)]
    assert flags
    assert all(each.metavar == "" and not each.opts[0].startswith("--no-") for each in flags)
