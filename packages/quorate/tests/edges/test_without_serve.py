"""The command line of the library alone: it lists the commands of the service, and says what to install for them."""

from __future__ import annotations

import importlib.metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import quorate
from running import Run

GONE = EntryPoint("quorate-serve", "there_is_no_such_module.cli:app", "quorate.commands")


@pytest.fixture(params=[(), (GONE,)], ids=["not installed", "half of it gone"], autouse=True)
def _alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: request.param)


@pytest.mark.parametrize(
    "arguments", ["serve", "serve --help", "serve --demo --port 80", "service", "service backup monday.zip --help"]
)
def test_a_command_of_the_service_says_what_to_install(run: Run, arguments: str) -> None:
    said = (
        f"quorate: 'quorate {arguments.split()[0]}' needs quorate-serve {quorate.__version__}, which is not installed "
        "(in a clone of the repository: pip install ./packages/quorate ./packages/quorate-serve)\n"
    )
    assert run(*arguments.split()) == (2, "", said)


def test_the_help_lists_them(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert out.count("quorate-serve") == 2


def test_a_command_that_nobody_has_is_an_error_as_before(run: Run) -> None:
    code, _, err = run("sevre")
    assert code == 2
    assert "No such command 'sevre'" in err


def test_a_project_that_is_served_elsewhere_runs(run: Run) -> None:
    assert run("demo", "--write", "crowd.jsonl")[0] == 0
    tables = '[aggregate]\nmethod = "mv"\n[serve]\nlabels = "PER"\n["service backup"]\ndatabase = "x"\n'
    Path("quorate.toml").write_text(f'inputs = ["crowd.jsonl"]\n{tables}')
    assert run("run", "-q")[0] == 0
    Path("quorate.toml").write_text(f'inputs = ["crowd.jsonl"]\n{tables}[serv]\n')
    code, _, err = run("run", "-q")
    assert code == 2
    assert err.endswith("quorate.toml:8: [serv] is not a command (did you mean [serve]?)\n")
