"""A consensus without its doubtful spans: what is left out, and what is told of the rest."""

from __future__ import annotations

import numpy as np
import pytest

import quorate
from quorate import Corpus, Document
from quorate.errors import SettingsError


def test_spans_below_the_threshold_are_left_out_and_others_stay(sample: Corpus) -> None:
    whole = quorate.aggregate(sample, "bsc-cm", max_iter=3)
    least = float(np.median([span.sure for spans in whole.spans for span in spans]))
    part = whole.surest(least)
    assert 0 < part.n_spans < whole.n_spans
    for before, after in zip(whole, part, strict=True):
        assert after.spans == [span for span in before.spans if span.sure >= least]
        left_out = {token for span in before.spans if span.sure < least for token in span.tokens}
        outside = whole.labels.index("O")
        for token, (old, new) in enumerate(zip(before.tags, after.tags, strict=True)):
            assert new == ("O" if token in left_out else old)
            if token in left_out:
                assert after.token_confidence[token] == pytest.approx(before.probabilities[token, outside])
        sure = [*after.token_confidence, *(span.sure for span in after.spans)]
        assert after.confidence <= min(sure) + 1e-12
        if left_out:
            assert after.confidence <= 1 - before.confidence + 1e-12
        else:
            assert after.confidence == before.confidence


def test_all_pieces_of_a_span_are_left_out_together() -> None:
    mine, others = ("B-X", "O", "B-X…", "O", "B-Y"), ("O", "O", "O", "O", "B-Y")
    said = {f"p{k}": mine if k < 4 else others for k in range(5)}
    result = quorate.aggregate(Corpus(Document(str(d), tuple("abcde"), said) for d in range(10)), "mv")
    part = result.surest(0.9)
    assert part.tags[0] == ["O", "O", "O", "O", "B-Y"]
    assert (part.n_spans, result.n_spans) == (10, 20)


def test_nothing_is_left_out_where_every_token_has_a_label() -> None:
    corpus = Corpus([Document("1", ("a", "b"), {"ann": ("noun", "verb"), "bob": ("noun", "noun")})])
    with pytest.raises(SettingsError, match="no span can be left out"):
        quorate.aggregate(corpus, "mv").surest(0.9)


def test_layers_leave_out_spans_of_each() -> None:
    sure, torn = ("B-X", "O"), ("O", "B-Y")
    inner = Corpus([Document(str(d), ("a", "b"), dict.fromkeys("klm", sure)) for d in range(5)])
    outer = Corpus([Document(str(d), ("a", "b"), {"k": torn, "l": torn, "m": ("O", "O")}) for d in range(5)])
    result = quorate.aggregate_layers({"X": inner, "Y": outer}, "mv")
    part = result.surest(0.9)
    assert [[span.label for span in spans] for spans in part.spans] == [["X"]] * 5
