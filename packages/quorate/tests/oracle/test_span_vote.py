"""The vote on spans against one that is written out: every set of spans that do not overlap is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest

import quorate
from quorate import Corpus, Document, Span, SpanVote
from quorate.corpus.records import hard_tags
from quorate.corpus.tags import Scheme, TagSet, find_spans

TYPES = ("LOC", "PER")


def spans_of(tags: Sequence[str | None]) -> list[Span]:
    """What somebody marked; what they were not shown ends a span."""
    return find_spans(tuple("O" if tag is None else tag for tag in tags))


def votes_on(document: Document) -> dict[Span, tuple[int, int]]:
    """For every span that somebody marked, how many did, and how many saw all of it."""
    marked = Counter(span for tags in document.annotations.values() for span in spans_of(hard_tags(tags)))
    return {
        span: (votes, sum(None not in tags[span.start : span.end] for tags in document.annotations.values()))
        for span, votes in marked.items()
    }


def voted(document: Document, often: Mapping[str, float], *, apart: int = 0) -> list[Span]:
    """The set of spans with half of the votes that has most votes in all; then that with the earliest, longest one.

    Of two that differ in type alone, that of which annotators marked more.
    """
    votes = votes_on(document)
    can = sorted(span for span, (mine, seen) in votes.items() if 2 * mine >= seen)
    sets: list[Sequence[Span]] = [
        chosen for size in range(len(can) + 1) for chosen in combinations(can, size) if fits(chosen, apart)
    ]
    order = sorted(can, key=lambda span: (span.start, -span.end, -often[span.label], span.label))

    def merit(chosen: Iterable[Span]) -> tuple[int, list[bool]]:
        taken = list(chosen)
        return sum(votes[span][0] for span in taken), [span in taken for span in order]

    best: Sequence[Span] = max(sets, key=merit)
    return sorted(best)


def fits(spans: Sequence[Span], apart: int) -> bool:
    """Whether no two overlap; those of one type must lie ``apart``."""
    gaps = ((other.start - one.end, apart if one.label == other.label else 0) for one, other in pairwise(spans))
    return all(gap >= least for gap, least in gaps)


def shares_by_token(document: Document, tagset: TagSet) -> list[list[float]]:
    """Of every label at every token the share of the spans that give it, ``O`` having the rest."""
    rows = [dict.fromkeys(tagset.labels, 0.0) for _ in document.tokens]
    for span, (mine, seen) in votes_on(document).items():
        for place, tag in enumerate(tagset.tags([span], len(rows))):
            if tag != "O":
                rows[place][tag] += mine / seen
    for place, row in enumerate(rows):
        row["O"] = max(1.0 - sum(row.values()), 0.0)
        if all(tags[place] is None for tags in document.annotations.values()):
            row |= dict.fromkeys(row, 1.0)
    return [[row[label] / sum(row.values()) for label in tagset.labels] for row in rows]


def small_crowd(scheme: Scheme, seed: int, how_many: int = 150) -> Corpus:
    """Short documents of which annotators saw all, a part or nothing."""
    rng = np.random.default_rng(seed)
    tagset = TagSet.of_types(scheme, TYPES)
    documents = []
    for number in range(how_many):
        length = int(rng.integers(1, 7))
        annotations = {}
        for name in "abcd"[: int(rng.integers(1, 5))]:
            tags: list[str | None] = list(tagset.tags(random_spans(rng, length, scheme), length))
            if rng.random() < 0.3:
                hidden = int(rng.integers(length))
                tags[hidden] = None
            annotations[name] = tuple(tags)
        documents.append(Document(str(number), ("w",) * length, annotations))
    return Corpus(documents)


def random_spans(rng: np.random.Generator, length: int, scheme: Scheme) -> list[Span]:
    spans, at = [], int(rng.integers(2))
    while at < length:
        end = min(at + int(rng.integers(1, 4)), length)
        spans.append(Span(at, end, str(rng.choice(TYPES))))
        at = end + int(rng.integers(1 if scheme is Scheme.IO else 0, 3))
    return spans


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.IO])
def test_span_vote_is_the_best_of_all_sets_that_do_not_overlap(scheme: Scheme, seed: int) -> None:
    corpus = small_crowd(scheme, seed)
    result = SpanVote(scheme=scheme.value, invalid="keep").fit(corpus).result_
    several = 0
    often = Counter(span.label for one in corpus for span, (mine, _) in votes_on(one).items() for _ in range(mine))
    assert len(set(often.values())) == len(TYPES)
    for consensus in result:
        document = consensus.document
        expected = voted(document, often, apart=1 if scheme is Scheme.IO else 0)
        votes = votes_on(document)
        several += sum(2 * mine >= seen for mine, seen in votes.values()) > len(expected)
        assert [span.bare for span in consensus.spans] == expected
        for span in consensus.spans:
            mine, seen = votes[span.bare]
            of_tokens = float(consensus.token_confidence[span.start : span.end].min())  # no span is surer than those
            assert span.confidence == pytest.approx(min(mine / seen, of_tokens), rel=1e-12)
        shares = shares_by_token(document, result.tagset)
        np.testing.assert_allclose(consensus.probabilities, shares, rtol=1e-9, atol=1e-12)
    assert several > 10  # the choice among spans that overlap is put to the test


def test_of_spans_with_as_many_votes_the_earlier_then_the_longer_is_given() -> None:
    corpus = Corpus(
        [
            Document("earlier", ("a", "b", "c"), {"x": ("B-P", "I-P", "O"), "y": ("O", "B-P", "I-P")}),
            Document("longer", ("a", "b", "c"), {"x": ("B-P", "O", "O"), "y": ("B-P", "I-P", "I-P")}),
            Document("outvoted", ("a", "b"), {"x": ("B-P", "O"), "y": ("O", "B-P"), "z": ("O", "B-P")}),
            Document("too few", ("a", "b"), {"x": ("B-P", "O"), "y": ("O", "O"), "z": ("O", "O")}),
        ]
    )
    given = quorate.aggregate(corpus, "span-vote").tags
    assert given == [["B-P", "I-P", "O"], ["B-P", "I-P", "I-P"], ["O", "B-P"], ["O", "O"]]


def test_nothing_is_surer_than_what_it_contains(sample: Corpus) -> None:
    for consensus in quorate.aggregate(sample, "span-vote"):
        for span in consensus.spans:
            assert consensus.confidence <= span.sure + 1e-12
            assert span.sure <= min(consensus.token_confidence[span.start : span.end]) + 1e-12


def test_a_document_that_nobody_saw_is_not_sure_of_anything() -> None:
    seen = Document("seen", ("a", "b"), {"x": ("B-P", "O")})
    result = quorate.aggregate(Corpus([seen, Document("not seen", ("a", "b"))]), "span-vote")
    assert result[1].tags == ["O", "O"]
    assert result[1].token_confidence == pytest.approx([1 / 3, 1 / 3], rel=1e-9)


def test_where_nobody_marked_anything_nothing_is_given() -> None:
    nothing = Document("1", ("a", "b"), {"x": ("O", "O"), "y": ("O", "O")})
    corpus = Corpus([nothing, Document("2", ("a", "b"))])
    consensus = quorate.aggregate(corpus, "span-vote", known={"2": ("B-P", "O")})[0]
    assert consensus.tags == ["O", "O"]
    assert consensus.confidence == 1.0
