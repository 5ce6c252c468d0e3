"""Fixtures that several families of tests share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import quorate
from needs import missing
from processes import Start, started_here
from quorate import Corpus

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TESTS = sorted(Path(__file__).resolve().parent.glob("*/tests"))
SLOW = {
    "property/test_names_and_order.py",
    "unit/test_active.py",
    "unit/test_benchmarks.py",
    "unit/test_cluster.py",
    "unit/test_memory.py",
    "unit/test_report.py",
    "unit/test_report_sources.py",
    "unit/test_sources.py",
    "unit/test_tagger_loop.py",
}
"""Files of unit/ and property/ that take more than five seconds: ``make check`` leaves them out."""

LARGE = {
    "golden/test_crowd_shapes.py",
    "golden/test_datasets_real.py",
    "golden/test_real_crowds.py",
    "service/test_service_page.py",
    "service/test_span_component.py",
    "service/test_killed_service.py",
    "service/test_live_consensus.py",
    "service/test_managing_in_browser.py",
    "service/test_scripts_in_text.py",
    "service/test_serve_command.py",
    "golden/test_report_real.py",
    "oracle/test_rivals.py",
    "property/test_names_and_order.py",
}
"""Files that run much Python on much data, which others run too: counting lines would take longer than the tests."""

LONG = (
    "edges/test_active_commands.py",
    "edges/test_docs_site.py",
    "edges/test_label_studio.py",
    "edges/test_pages.py",
    "edges/test_report_in_browser.py",
    "edges/test_same_bytes.py",
    "golden/",
    "oracle/test_jax_engine.py",
    "oracle/test_rivals.py",
    "service/",
    "unit/test_cluster.py",
    "unit/test_memory.py",
    "unit/test_tagger_loop.py",
)
"""Files and folders that fit whole crowds, run whole pages of the docs, or drive browsers and servers.

They are for ``make test-long``, which CI runs too.
"""

collect_ignore_glob = ["*/tests/typing/*"]  # for the type checker alone
LONGEST = (
    "service/test_overlaps.py",
    "edges/test_pages.py",
    "golden/test_crowd_shapes.py",
    "edges/test_command_line.py",
    "golden/test_real_crowds.py",
    "unit/test_tagger_loop.py",
    "edges/test_active_commands.py",
    "oracle/test_jax_engine.py",
    "edges/test_report_in_browser.py",
    "unit/test_cluster.py",
    "unit/test_memory.py",
    "edges/test_label_studio.py",
    "oracle/test_stopping.py",
    "golden/test_report_real.py",
    "unit/test_benchmarks.py",
    "edges/test_damaged_stores.py",
    "property/test_names_and_order.py",
    "oracle/test_rivals.py",
    "oracle/test_crf_ma.py",
    "edges/test_testing.py",
    "edges/test_same_bytes.py",
)
"""Files that take twenty seconds and more: they are begun first, so that nobody waits for one of them at the end."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, what takes long, and what is left out of coverage; put first what takes longest."""
    for item in items:
        file = file_of(item)
        marks = {"slow": file in SLOW, "long": file.startswith(LONG), "no_cover": file in LARGE}
        for mark, applies in marks.items():
            if applies:
                item.add_marker(mark)
    place = {file: number for number, file in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(file_of(item), len(LONGEST)))


def file_of(item: pytest.Item) -> str:
    """Its path in the folder of a package's tests, if it is in one."""
    return next((item.path.relative_to(tests).as_posix() for tests in TESTS if item.path.is_relative_to(tests)), "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """What is left out of coverage is left out while its fixtures are made, too; pytest-cov sees to the test alone."""
    plugin: Any = item.config.pluginmanager.get_plugin("_cov")
    if plugin is None or plugin.cov_controller is None or item.get_closest_marker("no_cover") is None:
        return (yield)
    plugin.cov_controller.pause()
    try:
        return (yield)
    finally:
        plugin.cov_controller.resume()


def real_corpus(name: str) -> Corpus:
    path = REAL_DATA / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"the real crowd '{name}' is not beside this checkout ({path})")
    return quorate.read(path)


@pytest.fixture(scope="session")
def ner() -> Corpus:
    return real_corpus("ner")


@pytest.fixture(scope="session")
def pico() -> Corpus:
    return real_corpus("pico")


@pytest.fixture(scope="session")
def wikigold_rules() -> Corpus:
    return real_corpus("wikigold-rules")


@pytest.fixture(scope="session")
def laptop_rules() -> Corpus:
    return real_corpus("laptop-rules")


@pytest.fixture(scope="session")
def sample() -> Corpus:
    return quorate.sample()


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process that ends with the test, whatever becomes of it."""
    with started_here() as start:
        yield start


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for the tests of one file: while it runs, nothing else may use asyncio."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        missing("no Chromium on this machine; Debian: apt-get install chromium")
    try:
        from playwright import sync_api as playwright
    except ImportError:
        missing("playwright is not installed")
    with playwright.sync_playwright() as driver:
        as_root = hasattr(os, "geteuid") and os.geteuid() == 0
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"] if as_root else [])
        yield browser
        browser.close()
