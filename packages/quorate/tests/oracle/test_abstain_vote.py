"""The vote of those who speak against one that is written out: shares by hand, and every valid sequence looked at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import log

import numpy as np
import pytest

import quorate
from quorate import AbstainVote, Corpus, Document
from quorate.corpus.records import SoftTag, Tag
from quorate.corpus.tags import Invalid, Scheme, TagSet
from quorate.crowd.correlated import Correlated
from quorate.crowd.encode import encode
from quorate.estimators.options import TokenDecodeName
from quorate.model.votes import silent_majority

TYPES = ("LOC", "PER")
NO_VOTE, TIE = 1e-100, 1e-9  # of a label that nobody gave; from one rank to the next


def shares(said: Sequence[Tag | SoftTag], tagset: TagSet) -> dict[str, float]:
    """Of every label the share among those who spoke of one token."""
    votes: dict[str, float] = defaultdict(float)
    seen = [{tag: 1.0} if isinstance(tag, str) else tag for tag in said if tag is not None]
    for mine in seen:
        marked = {tag: p for tag, p in mine.items() if tag != "O" and p > 0}
        if marked and max(marked.values()) >= mine.get("O", 0.0):
            for tag, p in marked.items():
                votes[tag] += p
    if not votes:
        votes = dict.fromkeys(["O"] if seen else tagset.labels, 1.0)
    total = sum(votes.values())
    return {label: votes.get(label, 0.0) / total for label in tagset.labels}


def best_and_given(
    rows: Sequence[dict[str, float]], seen: Sequence[bool], tagset: TagSet, given: Sequence[str]
) -> tuple[float, float]:
    """The greatest product of shares of a valid sequence, and that of the one given, as logarithms.

    Of labels with equal shares, openings come first, and ``O`` last; where nobody looked, ``O`` first.
    """

    def place(label: str, *, seen: bool) -> tuple[bool, int, str]:
        return (label == "O") is seen, "BSIE".find(label[0]), label[2:]

    ranks = [
        {label: rank for rank, label in enumerate(sorted(tagset.labels, key=lambda one: place(one, seen=here)))}
        for here in seen
    ]

    def merit(tags: Sequence[str]) -> float:
        return sum(
            log(max(row[tag], NO_VOTE)) - TIE * rank[tag] for tag, row, rank in zip(tags, rows, ranks, strict=True)
        )

    return max(merit(tags) for tags in product(tagset.labels, repeat=len(rows)) if tagset.is_valid(tags)), merit(given)


def small_crowd(scheme: Scheme, seed: int, *, soft: bool, how_many: int = 60) -> Corpus:
    """Short documents of rules that are mostly silent; of some tokens nobody saw, and some labels are probabilities."""
    rng = np.random.default_rng(seed)
    labels = TagSet.of_types(scheme, TYPES).labels
    chances = np.array([0.6, *[0.4 / (len(labels) - 1)] * (len(labels) - 1)])
    documents = []
    for number in range(how_many):
        length = int(rng.integers(1, 5 if scheme is not Scheme.BIOES else 4))
        annotations = {}
        for name in "abcd"[: int(rng.integers(1, 5))]:
            tags: list[Tag | SoftTag] = [str(tag) for tag in rng.choice(labels, length, p=chances)]
            for place in range(length):
                if soft and rng.random() < 0.5:
                    drawn = rng.multinomial(4, chances) / 4  # quarters: ties within one annotator too
                    tags[place] = {label: float(p) for label, p in zip(labels, drawn, strict=True) if p > 0}
                if rng.random() < 0.2:
                    tags[place] = None
            annotations[name] = tuple(tags)
        documents.append(Document(str(number), ("w",) * length, annotations))
    return Corpus(documents)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.IO, Scheme.BIOES])
def test_silent_vote_is_the_best_of_all_valid_sequences(scheme: Scheme, soft: bool, seed: int) -> None:
    corpus = small_crowd(scheme, seed, soft=soft)
    result = AbstainVote(scheme=scheme.value, invalid="keep").fit(corpus).result_
    overruled = 0
    for consensus in result:
        columns = list(zip(*consensus.document.annotations.values(), strict=True))
        rows = [shares(said, result.tagset) for said in columns]
        seen = [any(tag is not None for tag in said) for said in columns]
        expected = [[row[label] for label in result.labels] for row in rows]
        np.testing.assert_allclose(consensus.probabilities, expected, rtol=1e-9, atol=1e-12)
        best, given = best_and_given(rows, seen, result.tagset, consensus.tags)
        assert result.tagset.is_valid(consensus.tags)
        assert given == pytest.approx(best, rel=0, abs=TIE / 100)
        overruled += any(row[tag] == 0 for row, tag in zip(rows, consensus.tags, strict=True))
    assert scheme is Scheme.IO or overruled > 5  # what is not valid is put to the test


def test_those_who_say_o_have_no_say_where_somebody_speaks() -> None:
    said = {"a": ("B-PER", "O", "O"), "b": ("O", "O", "B-LOC"), "c": ("O", "O", "B-PER"), "d": ("O", None, "B-LOC")}
    consensus = quorate.aggregate(Corpus([Document("1", ("x", "y", "z"), said)]), "mv-abstain")[0]
    assert consensus.tags == ["B-PER", "O", "B-LOC"]
    assert consensus.token_confidence == pytest.approx([1.0, 1.0, 2 / 3], rel=1e-12)


def test_a_lone_annotator_is_given_as_mv_gives_them() -> None:
    corpus = Corpus(
        [
            Document("hard", ("x", "y"), {"a": ("B-PER", "O")}),
            Document("soft", ("x", "y"), {"a": ({"B-PER": 0.3, "O": 0.7}, {"B-PER": 0.5, "O": 0.5})}),
            Document("split", ("x",), {"a": ({"B-PER": 0.3, "B-LOC": 0.3, "O": 0.4},)}),
        ]
    )
    silent, vote = (quorate.aggregate(corpus, method).tags for method in ("mv-abstain", "mv"))
    assert silent == vote == [["B-PER", "O"], ["O", "B-PER"], ["O"]]


def test_what_nobody_saw_is_outside_and_sure_of_nothing() -> None:
    seen = Document("seen", ("a", "b"), {"x": ("B-P", None)})
    result = quorate.aggregate(Corpus([seen, Document("not seen", ("a", "b"))]), "mv-abstain")
    assert result.tags == [["B-P", "O"], ["O", "O"]]
    assert result[0].token_confidence == pytest.approx([1.0, 1 / 3], rel=1e-9)
    assert result[1].token_confidence == pytest.approx([1 / 3, 1 / 3], rel=1e-9)


@pytest.mark.parametrize("soft", [False, True])
def test_weights_of_annotators_weigh_their_votes(soft: bool) -> None:
    """Three of the same source, each at a third, are one vote; halving everybody changes nothing."""
    lone: SoftTag | str = {"B-PER": 0.9, "O": 0.1} if soft else "B-PER"
    said: dict[str, tuple[Tag | SoftTag, ...]] = {"a": (lone,), **{f"b{n}": ("B-LOC",) for n in range(3)}}
    corpus = Corpus([Document("1", ("x",), said), Document("2", ("x",), {"c": ("O",)})])
    encoded = encode(corpus, corpus.tagset(), invalid=Invalid.KEEP)
    weighed = Correlated.of([(1, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)]).applied(encoded)
    labels = encoded.tagset.labels
    row = dict(zip(labels, silent_majority(weighed).decoded.posterior[0], strict=True))
    assert row["B-PER"] / row["B-LOC"] == pytest.approx(0.9 if soft else 1.0, rel=1e-9)
    weight = np.ones(len(encoded.event_cell)) if encoded.event_weight is None else encoded.event_weight
    half = silent_majority(replace(encoded, event_weight=weight / 2)).decoded
    np.testing.assert_allclose(half.posterior, silent_majority(encoded).decoded.posterior, rtol=1e-12)


def test_annotators_are_measured_by_all_that_they_said() -> None:
    """Whoever is silent where others speak has labels, and is mostly wrong there."""
    said = {"rule": ("O", "O"), "ann": ("B-PER", "O"), "bob": ("B-PER", "O")}
    result = quorate.aggregate(Corpus([Document(str(n), ("x", "y"), said) for n in range(30)]), "mv-abstain")
    assert {one.name: one.n_labels for one in result.annotators} == {"rule": 60, "ann": 60, "bob": 60}
    assert result.annotators["rule"].accuracy < 0.6 < 0.9 < result.annotators["ann"].accuracy


@pytest.mark.parametrize("decode", ["sequence", "token"])
def test_it_gives_tags_probabilities_and_annotators(sample: Corpus, decode: TokenDecodeName) -> None:
    result = quorate.aggregate(sample, "mv-abstain", decode=decode)
    assert result.settings_ == {"method": "mv-abstain", "decode": decode, "invalid": "repair", "scheme": None}
    assert len(result.annotators) == len(sample.annotators)
    assert decode == "token" or all(result.tagset.is_valid(tags) for tags in result.tags)
    for consensus in result:
        np.testing.assert_allclose(np.sum(consensus.probabilities, axis=1), 1.0, rtol=1e-9)
