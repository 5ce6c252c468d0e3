"""What every vote does alike: what is known stays, and labels without spans are voted on token by token."""

from __future__ import annotations

import numpy as np
import pytest

import quorate
from quorate import Corpus, Document

VOTES = ("mv-abstain", "span-vote")


@pytest.mark.parametrize("method", VOTES)
def test_what_is_known_is_given_as_it_is(sample: Corpus, method: str) -> None:
    known = {document.id: document.gold for document in sample.documents[:20] if document.gold is not None}
    with_known, without = (quorate.aggregate(sample, method, known=given) for given in (known, None))
    for mine, other in zip(with_known, without, strict=True):
        if mine.document.id in known:
            assert tuple(mine.tags) == mine.document.gold
            assert mine.confidence == pytest.approx(1.0, abs=1e-12)
        else:
            assert (mine.tags, mine.confidence) == (other.tags, other.confidence)


@pytest.mark.parametrize("method", VOTES)
def test_in_the_plain_scheme_it_is_the_vote_on_tokens(method: str) -> None:
    rng = np.random.default_rng(3)
    corpus = Corpus(
        Document(str(n), ("w",) * 4, {name: tuple(map(str, rng.choice(["O", "b", "c"], 4))) for name in "xyz"})
        for n in range(40)
    )
    found, tokens = (quorate.aggregate(corpus, each) for each in (method, "mv"))
    assert found.tags == tokens.tags
    np.testing.assert_array_equal(found.confidence, tokens.confidence)
