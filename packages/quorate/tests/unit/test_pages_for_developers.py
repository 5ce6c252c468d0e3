"""The pages for whoever carries on name only files, functions and classes that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
LIBRARY = ROOT / "packages" / "quorate"
SOURCE = LIBRARY / "src" / "quorate"
SERVICE = ROOT / "packages" / "quorate-serve" / "src" / "quorate_serve"
TESTS = sorted(ROOT.glob("packages/*/tests"))
PAGES = [ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md"]

FILE = re.compile(r"[\w./-]+\.(?:py|md|js|html|toml)|[\w./-]+/")
NAME = re.compile(r"\.?(?P<name>[A-Za-z_]\w*(?:\.\w+)*)(?:\(.*\))?")


def quoted(page: Path) -> list[str]:
    """What stands in backquotes, outside blocks of code and drawings."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S))


def file_named(name: str) -> Path | None:
    """The file or folder of a name: from the root, from a package, or anywhere in a package."""
    folders = [ROOT, LIBRARY, LIBRARY / "src", SOURCE, SERVICE.parent, SERVICE, SERVICE.parents[1]]
    places = [folder / name for folder in folders]
    for source in (SOURCE, SERVICE):
        places += [*source.glob(f"*/{name}"), *source.glob(f"*/*/{name}")]
    return next((place for place in places if place.exists()), None)


@cache
def defined_in(path: Path) -> frozenset[str]:
    """Classes, functions, fields and parameters of a module; members also as ``Class.member``."""
    found: set[str] = set()

    def visit(node: ast.AST, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = owner
            names: list[str] = []
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                names, inner = [child.name], child.name if isinstance(child, ast.ClassDef) else owner
            elif isinstance(child, ast.arg):
                names = [child.arg]
            elif isinstance(child, ast.Name | ast.Attribute) and isinstance(child.ctx, ast.Store):
                names = [child.id if isinstance(child, ast.Name) else child.attr]
            found.update(names, (f"{owner}.{name}" for name in names if owner))
            visit(child, inner)

    visit(ast.parse(path.read_text(encoding="utf-8")), "")
    return frozenset(found)


@cache
def defined_anywhere() -> frozenset[str]:
    modules = [*SOURCE.rglob("*.py"), *SERVICE.rglob("*.py")]
    in_modules = {f"{path.stem}.{name}" for path in modules for name in defined_in(path)}
    in_rooms = {f"{path.parent.name}.{name}" for path in modules for name in defined_in(path)}
    return frozenset().union(in_modules, in_rooms, *(defined_in(path) for path in modules))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_that_a_page_for_developers_names_is_there(page: Path) -> None:
    files = [one for one in quoted(page) if FILE.fullmatch(one) and "NAME" not in one]
    assert len(files) > 20
    assert [one for one in files if file_named(one) is None] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_beside_a_file_is_defined_in_it(page: Path) -> None:
    pairs = re.findall(r"`([\w/]+\.py)`:? `([^`\n]+)`((?:, `[^`\n]+`)*)", page.read_text(encoding="utf-8"))
    assert pairs
    wrong = []
    for file, first, others in pairs:
        if "NAME" in file:
            continue
        path = file_named(file)
        assert path is not None, file
        for name in [first, *re.findall(r"`([^`]+)`", others)]:
            matched = NAME.fullmatch(name)
            if matched and matched["name"] not in defined_in(path):
                wrong.append(f"{file} {name}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_class_and_function_that_a_page_for_developers_names_is_there(page: Path) -> None:
    """Words of one lower-case part may be a command or a value, and are left to the test of names beside a file."""
    names = [matched["name"] for one in quoted(page) if (matched := NAME.fullmatch(one)) and not FILE.fullmatch(one)]
    ours = [name for name in names if re.search(r"[A-Z_]", name) and not name.startswith("quorate.")]
    assert len(ours) > 10
    assert [name for name in ours if name not in defined_anywhere()] == []


@pytest.mark.parametrize("source", [SOURCE, SERVICE], ids=lambda source: source.name)
def test_the_drawing_shows_every_room_and_only_rooms_that_are_there(source: Path) -> None:
    page = PAGES[0].read_text(encoding="utf-8")
    drawing = re.search(rf"^{source.relative_to(ROOT).as_posix()}/\n(.*?)^```", page, flags=re.M | re.S)
    assert drawing
    drawn = {line.split()[0].rstrip(",") for line in drawing[1].splitlines()}
    assert [one for one in drawn if not any(source.glob(one))] == []
    rooms = {f"{path.parent.name}/" for path in source.glob("*/__init__.py")}
    modules = {path.name for path in source.glob("*.py") if not path.name.startswith("__")}
    assert rooms - drawn == set()
    assert "*.py" in drawn or modules - drawn == set()


def test_the_readme_links_the_pages_for_developers() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"({page.relative_to(ROOT)})" in readme for page in PAGES)


@pytest.mark.parametrize("name", ["SLOW", "LONG", "LARGE", "LONGEST"])
def test_every_file_of_tests_that_is_marked_by_name_is_there(name: str) -> None:
    text = (ROOT / "packages" / "conftest.py").read_text(encoding="utf-8")
    listed = re.search(rf"^{name} = [{{(](.*?)^[}})]", text, re.M | re.S)
    assert listed
    files = re.findall(r'"(.+?)"', listed[1])
    assert files
    assert [file for file in files if not any((tests / file).exists() for tests in TESTS)] == []
