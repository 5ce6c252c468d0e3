"""The site that ``make docs`` builds: no warning, nothing from elsewhere, every command and public name on it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import quorate
from needs import missing
from quorate.cli import app

ROOT = Path(__file__).resolve().parents[4]
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["'](?P<src>[^"']+)|<link[^>]*\shref=["'](?P<href>[^"']+)"""
)
SHEET = re.compile(r"@import[^;]*|url\(\s*['\"]?(?!data:)([^)'\"]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        import furo  # noqa: F401
        import myst_parser  # noqa: F401
    except ImportError:
        missing("the site is built with the extra 'docs'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 30
    assert [page for page in pages if not (site / page).exists()] == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = [found["src"] or found["href"] for found in LOADED.finditer(page.read_text(encoding="utf-8"))]
        assert loaded
        assert [one for one in loaded if one.startswith(("http", "//"))] == [], page.name
    for sheet in site.rglob("*.css"):
        assert [one for one in SHEET.findall(sheet.read_text(encoding="utf-8")) if "//" in one] == [], sheet.name


def test_words_are_found_without_a_network(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    told = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    assert "active-learning" in told["docnames"]
    assert "annot" in " ".join(told["terms"])


def test_every_command_and_option_is_on_the_site(site: Path) -> None:
    page = (site / "options.html").read_text(encoding="utf-8")
    aggregate = getattr(typer.main.get_command(app), "commands", {})["aggregate"]
    names = [name for parameter in aggregate.params for name in parameter.opts if name.startswith("--")]
    assert len(names) > 20
    assert [name for name in names if name not in page] == []
    assert "quorate label-studio sync" in page
    assert "quorate service backup" in page


def test_every_public_name_is_on_the_site(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")
    modules = {"audit", "report", "reviews", "score", "simulate", "types"}
    named = [name for name in quorate.__all__ if name not in modules | {"METHODS"}]
    assert [name for name in named if not re.search(rf'id="quorate\.([\w.]+\.)?{name}"', page)] == []
