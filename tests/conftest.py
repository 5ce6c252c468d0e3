"""Fixtures that several families of tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

import quorate
from quorate import Corpus

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


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
def sample() -> Corpus:
    return quorate.sample()
