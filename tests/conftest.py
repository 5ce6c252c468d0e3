"""Fixtures that several families of tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import quorate
from processes import Start, started_here
from quorate import Corpus

TESTS = Path(__file__).resolve().parent
SLOW = {
    "property/test_names_and_order.py",
    "unit/test_active.py",
    "unit/test_benchmarks.py",
    "unit/test_cluster.py",
    "unit/test_memory.py",
    "unit/test_report.py",
    "unit/test_report_sources.py",
    "unit/test_sources.py",
    "unit/test_tagger_auto.py",
    "unit/test_tagger_loop.py",
}
"""Files of tests/unit and tests/property that take more than five seconds: ``make check`` leaves them out."""

LARGE = {
    "golden/test_crowd_shapes.py",
    "golden/test_datasets_real.py",
    "golden/test_real_crowds.py",
    "golden/test_report_real.py",
    "oracle/test_rivals.py",
    "property/test_names_and_order.py",
}
"""Files that run much Python on much data, which others run too: counting lines would take longer than the tests."""

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and what is left out of coverage."""
    for item in items:
        file = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
        if file in SLOW:
            item.add_marker(pytest.mark.slow)
        if file in LARGE:
            item.add_marker(pytest.mark.no_cover)


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
