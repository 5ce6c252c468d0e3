"""Scores that count tokens and know nothing of spans: for plain tags, and as a second opinion on spans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.corpus.records import Tag
from quorate.corpus.tags import OUTSIDE
from quorate.evaluate.metrics.reading import tag_pairs
from quorate.evaluate.metrics.spans import PRF


class TokenScores(NamedTuple):
    """Accuracy over all scored tokens; precision, recall and F1 of the labels other than ``O``; the number of tokens.

    >>> TokenScores(0.9, 0.5, 0.5, 0.5, tokens=10).accuracy
    0.9
    """

    accuracy: float
    precision: float
    recall: float
    f1: float
    tokens: int


def token_scores(predicted: Iterable[Sequence[Tag]], gold: Iterable[Sequence[Tag] | None]) -> TokenScores:
    """How many tokens have their gold tag, prefix included.

    Precision is over tokens predicted to be other than ``O``, recall over tokens whose gold is. A token without a
    prediction counts as wrong, and as predicted ``O``.

    >>> token_scores([["B-X", "O", "O"]], [["B-X", "I-X", "O"]])
    TokenScores(accuracy=0.6666666666666666, precision=1.0, recall=0.5, f1=0.6666666666666666, tokens=3)
    """
    tokens = right = right_marked = n_predicted = n_gold = 0
    for tags, truth in tag_pairs(predicted, gold):
        for tag, wish in zip(tags, truth, strict=True):
            if wish is None:
                continue
            tokens += 1
            marked = wish != OUTSIDE
            n_gold += marked
            n_predicted += tag is not None and tag != OUTSIDE
            if tag == wish:
                right += 1
                right_marked += marked
    score = PRF.of(right_marked / n_predicted if n_predicted else 0.0, right_marked / n_gold if n_gold else 0.0)
    return TokenScores(right / tokens, *score, tokens)
