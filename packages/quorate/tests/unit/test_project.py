"""Promises about the code itself: layers, public names, light import, docs that match."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from dataclasses import fields
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

import quorate

ROOT = Path(__file__).resolve().parents[4]
PACKAGES = ROOT / "packages"
SOURCE = PACKAGES / "quorate" / "src" / "quorate"
SERVICE = PACKAGES / "quorate-serve" / "src" / "quorate_serve"

# Data flows one way, read → encode → infer → result → score / report / write: a room imports only from rooms above its
# own. A module belongs to the longest name here that it begins with; ``docs/architecture.md`` says what a room holds.
# The service is a package of its own, so that the library cannot import it: its rooms come after all others.
ROOMS = [
    "errors",
    "limits",
    "memory",
    "storage.files",
    "wording",
    "corpus",
    "formats",
    "model.kernels.native",
    "model.kernels.cores",
    "crowd",
    "model.kernels",
    "model.parts",
    "model.engines",
    "model",
    "storage",
    "result",
    "taggers",
    "estimators",
    "api",
    "evaluate",
    "reviews",
    "audit",
    "active",
    "report",
    "label_studio",
    "datasets",
    "project",
    "types",
    "cli",
    "__main__",
    "quorate_serve.problems",
    "quorate_serve.reach",
    "quorate_serve.settings",
    "quorate_serve.database",
    "quorate_serve",
    "quorate_serve.client",
    "quorate_serve.cli",
]
LEVEL = {room: level for level, room in enumerate(ROOMS)}
MOST_AT_THE_ROOT = 6
MOST_PARAMETERS, MOST_STATEMENTS = 18, 35  # of a command


def modules() -> list[tuple[str, Path]]:
    """Every module but ``quorate`` itself: those of the library by their names in it, those of the service in full."""
    found = []
    for source, beside in ((SOURCE, SOURCE), (SERVICE, SERVICE.parent)):
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(beside).with_suffix("").parts
            name = ".".join(part for part in parts if part != "__init__")
            if name:
                found.append((name, path))
    return found


NAMES = {name for name, _ in modules()}


def room_of(name: str) -> str:
    """The room of a module; an empty string if it is in none."""
    parts = name.split(".")
    return next((room for n in range(len(parts), 0, -1) if (room := ".".join(parts[:n])) in LEVEL), "")


def imports(path: Path) -> set[str]:
    """Modules of ours that a file imports at run time (what only type checkers read does not count)."""
    found: set[str] = set()

    class Visitor(ast.NodeVisitor):
        def visit_If(self, node: ast.If) -> None:
            if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
                self.generic_visit(node)

        def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
            if node.module == "quorate":
                found.update(quorate._HOME_OF.get(alias.name, alias.name) for alias in node.names)
            elif node.module and node.module.split(".")[0] in ("quorate", "quorate_serve"):
                base = node.module.removeprefix("quorate.")
                found.update(sub if (sub := f"{base}.{alias.name}") in NAMES else base for alias in node.names)

        def visit_Attribute(self, node: ast.Attribute) -> None:
            self.generic_visit(node)
            if isinstance(node.value, ast.Name) and node.value.id == "quorate" and node.attr in quorate.__all__:
                found.add(quorate._HOME_OF.get(node.attr) or quorate._MODULES[node.attr])

    Visitor().visit(ast.parse(path.read_text(encoding="utf-8")))
    return {name.removeprefix("quorate.") for name in found}


@pytest.mark.parametrize(("name", "path"), modules())
def test_rooms_import_only_rooms_above_them(name: str, path: Path) -> None:
    own = room_of(name)
    assert own, f"{name} is in no room"
    later = {other for other in imports(path) if LEVEL[room_of(other)] > LEVEL[own]}
    assert not later, f"{name} ({own}) imports {sorted(later)}, which stand in rooms below its own"


def test_the_library_names_the_service_nowhere_in_its_code() -> None:
    """Not for type checkers either, and not by a string: commands of the service come by an entry point."""
    named = re.compile(r"\bquorate_serve\b")
    assert [path.name for path in SOURCE.rglob("*.py") if named.search(path.read_text(encoding="utf-8"))] == []


def test_modules_of_a_room_do_not_import_each_other_in_a_circle() -> None:
    graph = {name: imports(path) & NAMES for name, path in modules()}
    list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the modules


def test_few_modules_stand_outside_rooms() -> None:
    at_the_root = [path.name for path in SOURCE.glob("*.py") if not path.name.startswith("__")]
    assert len(at_the_root) <= MOST_AT_THE_ROOT, at_the_root


@pytest.mark.parametrize(("name", "path"), modules())
def test_modules_stay_short(name: str, path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


@pytest.mark.parametrize("name", [name for name, _ in modules() if ".migrations." not in name])  # run by Alembic alone
def test_all_names_exist(name: str) -> None:
    if name.startswith("quorate_serve"):
        pytest.importorskip("quorate_serve", reason="the service is not installed")
    module = importlib.import_module(name if name.startswith("quorate_serve") else f"quorate.{name}")
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public)


def test_every_public_name_has_a_docstring_with_an_example() -> None:
    assert set(quorate.__all__) <= set(dir(quorate))
    for name in quorate.__all__:
        value = getattr(quorate, name)
        if isinstance(value, type) or callable(value):
            assert ">>>" in (value.__doc__ or ""), f"{name} has no example"


@pytest.mark.parametrize(
    "name", ["BSC", "BestWorker", "CRFMA", "MajorityVote", "AbstainVote", "SpanVote", "WorstWorker"]
)
def test_every_estimator_says_its_formula_and_whom_to_cite(name: str) -> None:
    said = getattr(quorate, name).__doc__
    assert re.search(r"^ +\w[^\n]* = [^\n]*(Π|Σ|arg)", said, flags=re.M)
    assert re.search(r"\b(19|20)\d\d\b", said)


def test_import_is_light() -> None:
    heavy = ("numpy", "scipy", "jax", "distributed", "typer", "rich", "msgspec", "pandas")
    code = f"import sys, quorate; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_a_fit_imports_no_scipy() -> None:
    """To import it takes longer than a small fit."""
    code = "import sys, quorate; quorate.BSC().fit(quorate.sample()); print('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def _flags(parameter: Any) -> list[str]:
    return [*parameter.opts, *parameter.secondary_opts]


def test_docs_name_only_options_that_exist() -> None:
    import typer.main

    from quorate.cli import app

    pytest.importorskip("quorate_serve", reason="the service, whose options the pages have too, is not installed")
    command: Any = typer.main.get_command(app)
    command.add_others()
    known = {"--help", *(flag for parameter in command.params for flag in _flags(parameter))}
    groups = [command]
    while groups:
        for sub in groups.pop().commands.values():
            known |= {flag for parameter in sub.params for flag in _flags(parameter) if flag.startswith("--")}
            groups += [sub] if hasattr(sub, "commands") else []
    text = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", "\n".join(re.findall(r"quorate [^\n]*|`--[^`]*`", text))))
    assert used
    assert used <= known, sorted(used - known)


def test_the_table_of_settings_in_the_docs_is_the_declaration() -> None:
    from quorate.estimators.bsc import BSC
    from quorate.model.settings import Settings

    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    table = text.partition("\n|---")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table, re.MULTILINE))
    assert rows.keys() | {"method"} == BSC.parameters().keys()
    for field in fields(Settings):
        told, default = rows[field.name].strip("`"), field.default
        if isinstance(default, bool):
            assert told == ("on" if default else "off")
        elif isinstance(default, int | float):
            assert float(told) == default
        elif default is not None:
            assert told == default
        option = field.metadata["option"]
        assert option is None or re.search(rf"`{field.name}`,?( which)?\sis\s`{option}`", text), field.name


def test_only_the_module_of_schemes_knows_their_prefixes() -> None:
    listed = [
        r'"[BIES]{2,4}O?"',  # as in: prefix in "IE"
        r'\("[BIES]", "[BIES]"',
        r'"[BIES]-", "[BIES]-"',
        r'== "[BIES]"',
        r'f"[BIES]-\{',
        r'"[BIES]-?" \+',
        r'startswith\(\(?"[BIES]-',
        r"label\[2:\]|tag\[2:\]",
    ]
    by_hand = re.compile("|".join(listed))
    found = [(path.name, line) for _, path in modules() for line in path.read_text("utf-8").splitlines()]
    assert [(name, line) for name, line in found if name != "tags.py" and by_hand.search(line)] == []


def test_only_the_algebra_looks_up_the_token_of_an_event() -> None:
    spread = r"arange\(((self\._)?(encoded|crowd))\.n_tokens(, dtype=np\.int32)?\), np\.diff\(\1\.event_start\)\)$"
    by_hand = re.compile(rf"{spread}|searchsorted\((encoded|crowd)\.(event|doc)_start", re.MULTILINE)
    found = {path.name for _, path in modules() if by_hand.search(path.read_text(encoding="utf-8"))}
    assert found == {"algebra.py"}


def test_a_command_is_short_and_takes_what_belongs_together_as_one() -> None:
    """Options are declared in groups (``cli/options.py``), and the steps of a command have names."""
    for path in [*(SOURCE / "cli").glob("*.py"), SERVICE / "cli.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                assert len(node.args.args) + len(node.args.kwonlyargs) <= MOST_PARAMETERS, node.name
                assert sum(isinstance(part, ast.stmt) for part in ast.walk(node)) <= MOST_STATEMENTS, node.name


def test_an_estimator_is_asked_what_it_can_do_not_what_it_is() -> None:
    """Capabilities are protocols, so that another estimator may have them too."""
    kinds = {"BSC", "CRFMA", "MajorityVote", "WithHistory"}
    asked = [
        f"{name}:{node.lineno}"
        for name, path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
        if {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)} & kinds
    ]
    assert not asked


def test_a_span_is_one_record_in_tokens_and_one_in_the_offsets_of_files() -> None:
    """What msgspec or pydantic decodes has the shape of somebody's file, request or answer, and is left out."""
    found, tuples = set(), []
    for _, path in modules():
        if path.name == "answers.py":
            continue
        text = path.read_text(encoding="utf-8")
        tuples += [path.name for _ in re.finditer(r"tuple\[int, int, str", text)]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not re.search(
                "Struct|BaseModel", "".join(map(ast.unparse, node.bases))
            ):
                own = {
                    one.target.id
                    for one in node.body
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
                }
                if "label" in own and own & {"start", "first", "end", "last"}:
                    found.add(node.name)
    assert found == {"Span", "CharSpan"}
    assert set(tuples) == {"doccano.py"}
