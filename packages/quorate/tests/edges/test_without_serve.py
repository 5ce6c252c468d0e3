"""The command line of the library alone: it lists the commands of the service, and says what to install for them."""

from __future__ import annotations

import importlib.metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import quorate
from running import Run

NOT_INSTALLED = (
    f"quorate-serve {quorate.__version__}, which is not installed "
    "(in a clone of the repository: pip install ./packages/quorate ./packages/quorate-serve)"
)
BROKEN = (
    "quorate-serve, which is installed but does not load: "
    "ModuleNotFoundError: No module named 'there_is_no_such_module'"
)


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "quorate.commands")


@pytest.fixture(
    params=[((), NOT_INSTALLED), ((entry("quorate-serve", "there_is_no_such_module.cli:app"),), BROKEN)],
    ids=["not installed", "half of it gone"],
    autouse=True,
)
def reason(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why there is no service."""
    found, why = request.param
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found)
    return str(why)


@pytest.mark.parametrize(
    "arguments", ["serve", "serve --help", "serve --demo --port 80", "service", "service backup monday.zip --help"]
)
def test_a_command_of_the_service_says_why_it_is_not_there(run: Run, arguments: str, reason: str) -> None:
    assert run(*arguments.split()) == (2, "", f"quorate: 'quorate {arguments.split()[0]}' needs {reason}\n")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("there_is_no_such_module:app", "ModuleNotFoundError: No module named 'there_is_no_such_module'"),
        ("raises_when_loaded:app", "RuntimeError: of two lines"),
        ("json:nothing", "AttributeError: module 'json' has no attribute 'nothing'"),
        ("json:dumps", "TypeError: its entry point is no app of Typer, but of type function"),
    ],
)
def test_a_package_that_does_not_load_is_named_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, error: str
) -> None:
    (tmp_path / "raises_when_loaded.py").write_text('raise RuntimeError("of two\\nlines")\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: (entry("acme", value),))
    said = f"quorate: the commands of 'acme' are left out, as it does not load: {error}\n"
    code, out, err = run("--help")
    assert (code, err) == (0, said)
    assert "aggregate" in out
    code, _, err = run("acme")
    assert code == 2
    assert err.startswith(said)
    assert "No such command 'acme'" in err
    assert run("serve") == (2, "", said + f"quorate: 'quorate serve' needs {NOT_INSTALLED}\n")


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
