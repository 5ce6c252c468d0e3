"""What benchmarks share: the crowds beside the checkout, which documents are scored, and the model of the paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import quorate
from quorate import BSC, Corpus
from quorate.estimators.methods import estimator

__all__ = ["DATA", "bsc_seq", "real", "scored"]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def real(name: str) -> Corpus:
    """A crowd from ../shared/data."""
    path = DATA / f"{name}.jsonl.gz"
    if not path.exists():
        sys.exit(f"{path}: not found")
    return quorate.read(path)


def scored(corpus: Corpus, test: bool) -> list[int]:
    """The documents with gold to score: of the test split or of all others; all of them where there are no splits."""
    no_splits = all(document.split is None for document in corpus)
    return [
        place
        for place, document in enumerate(corpus)
        if document.gold is not None and (no_splits or (document.split == "test") is test)
    ]


def bsc_seq(**settings: Any) -> BSC:
    """The method of the paper, with some settings changed."""
    model = estimator("bsc-seq", **settings)
    assert isinstance(model, BSC)
    return model
