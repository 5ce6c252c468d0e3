"""Span and token scores side by side with seqeval, nervaluate and scikit-learn on random tags, and their laws."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nervaluate import Evaluator
from seqeval.metrics.v1 import precision_recall_fscore_support  # seqeval's strict mode
from seqeval.scheme import IOB2
from sklearn.metrics import accuracy_score
from sklearn.metrics import precision_recall_fscore_support as by_token

from quorate import score
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet

TYPES = ["LOC", "PER"]
TAGS = TagSet.of_types(Scheme.BIO, TYPES).labels
RTOL = 1e-12
Drawn = tuple[list[list[Any]], list[list[Any]]]
EXAMPLES = settings(max_examples=150, deadline=None)


@st.composite
def documents(draw: st.DrawFn, tags: Sequence[str | None] = TAGS, min_documents: int = 1) -> Drawn:
    """Documents of random tags, valid or not: what was predicted, and gold."""
    lengths = draw(st.lists(st.integers(1, 9), min_size=min_documents, max_size=4))
    one, other = ([draw(st.lists(st.sampled_from(tags), min_size=n, max_size=n)) for n in lengths] for _ in range(2))
    return one, other


@EXAMPLES
@given(documents())
def test_strict_is_seqeval(drawn: Drawn) -> None:
    predicted, gold = drawn
    options = {"scheme": IOB2, "zero_division": 0}
    micro = precision_recall_fscore_support(gold, predicted, average="micro", **options)[:3]
    assert score.strict(predicted, gold, scheme=Scheme.BIO) == pytest.approx(micro, rel=RTOL)
    by_type = score.strict_by_type(predicted, gold, scheme=Scheme.BIO)
    if by_type:
        each = np.array(precision_recall_fscore_support(gold, predicted, average=None, **options)).T
        np.testing.assert_allclose(list(by_type.values()), each, rtol=RTOL)
        mean = precision_recall_fscore_support(gold, predicted, average="macro", **options)[:3]
        assert score.macro(by_type) == pytest.approx(mean, rel=RTOL)


@EXAMPLES
@given(documents())
def test_strict_partial_and_typed_are_nervaluate(drawn: Drawn) -> None:
    predicted, gold = drawn
    theirs = Evaluator(gold, predicted, tags=TYPES, loader="list").evaluate()["overall"]
    for ours, name in [(score.strict, "strict"), (score.partial, "partial"), (score.typed, "ent_type")]:
        expected = theirs[name]
        found = ours(predicted, gold, orphans=True)
        assert found == pytest.approx((expected.precision, expected.recall, expected.f1), rel=RTOL), name


@EXAMPLES
@given(documents())
def test_token_scores_are_scikit_learns(drawn: Drawn) -> None:
    predicted, gold = ([tag for tags in side for tag in tags] for side in drawn)
    found = score.token_scores(*drawn)
    labels = [tag for tag in TAGS if tag != "O"]
    expected = by_token(gold, predicted, labels=labels, average="micro", zero_division=0)[:3]
    assert found[1:4] == pytest.approx(expected, rel=RTOL)
    assert found.accuracy == pytest.approx(accuracy_score(gold, predicted), rel=RTOL)


def opened(tags: list[str]) -> list[tuple[int, int, str]]:
    """An independent reader of spans: whoever is not O and does not continue the tag before opens one."""
    starts = [p for p, tag in enumerate(tags) if tag != "O" and (tag[0] == "B" or p == 0 or tags[p - 1][2:] != tag[2:])]
    ends = [next((q for q in range(s + 1, len(tags)) if tags[q] == "O" or q in starts), len(tags)) for s in starts]
    return [(s, e, tags[s][2:]) for s, e in zip(starts, ends, strict=True)]


@EXAMPLES
@given(documents())
def test_relaxed_is_the_mean_share_of_tokens_of_the_same_type(drawn: Drawn) -> None:
    predicted, gold = drawn
    shares = []
    for one, other in [(predicted, gold), (gold, predicted)]:
        shares.append(
            [
                np.mean([tags_2[p][2:] == label for p in range(start, end)])
                for tags, tags_2 in zip(one, other, strict=True)
                for start, end, label in opened(tags)
            ]
        )
    expected = [np.mean(side) if side else 0.0 for side in shares]
    assert score.relaxed(predicted, gold)[:2] == pytest.approx(expected, rel=RTOL)


@EXAMPLES
@given(documents(tags=(*TAGS, None)), st.booleans())
def test_a_token_without_gold_cuts_the_document_in_two(drawn: Drawn, orphans: bool) -> None:
    predicted, gold = drawn
    if all(tag is None for truth in gold for tag in truth):
        return
    pieces: Drawn = [], []
    for tags, truth in zip(predicted, gold, strict=True):
        cuts = [-1, *(p for p, tag in enumerate(truth) if tag is None), len(truth)]
        for a, b in pairwise(cuts):
            pieces[0].append(tags[a + 1 : b])
            pieces[1].append(truth[a + 1 : b])
    for measure in (score.strict, score.relaxed):
        found, by_pieces = (measure(*tags, orphans=orphans, scheme=Scheme.BIO) for tags in (drawn, pieces))
        assert found == pytest.approx(by_pieces, rel=RTOL)


@EXAMPLES
@given(documents(min_documents=2))
def test_documents_add_up(drawn: Drawn) -> None:
    predicted, gold = drawn
    tallies = score.strict_tallies(predicted, gold, scheme=Scheme.BIO)
    for d, (tags, truth) in enumerate(zip(predicted, gold, strict=True)):
        alone = score.strict_tallies([tags], [truth], scheme=Scheme.BIO)
        assert [column[d] for column in tallies] == [column[0] for column in alone]
        if alone.predicted[0] or alone.gold[0]:
            assert tallies.f1()[d] == pytest.approx(alone.total().f1, rel=RTOL)
        else:
            assert tallies.f1()[d] == 1.0


@st.composite
def spans_of_two(draw: st.DrawFn) -> tuple[int, list[Span], list[Span]]:
    """A length, and two lists of spans none of which touch, so that every scheme can write them."""
    sides: list[list[Span]] = []
    length = draw(st.integers(1, 12))
    for _ in range(2):
        spans, at = list[Span](), 0
        while at < length:
            end = draw(st.integers(at, min(length, at + 3)))
            if end > at:
                spans.append(Span(at, end, draw(st.sampled_from(TYPES))))
            at = end + 1
        sides.append(spans)
    return length, sides[0], sides[1]


@EXAMPLES
@given(spans_of_two())
def test_the_scheme_does_not_matter(drawn: tuple[int, list[Span], list[Span]]) -> None:
    length, predicted, gold = drawn
    found = []
    for scheme in (Scheme.BIO, Scheme.BIOES, Scheme.IO):
        tagset = TagSet.of_types(scheme, TYPES)
        tags, truth = [tagset.tags(predicted, length)], [tagset.tags(gold, length)]
        found.append([m(tags, truth) for m in (score.strict, score.relaxed, score.partial, score.error_kinds)])
        assert score.strict(tags, truth).precision == (
            len(set(predicted) & set(gold)) / len(predicted) if predicted else 0.0
        )
    assert found[0] == found[1] == found[2]


@EXAMPLES
@given(documents(), st.booleans())
def test_error_kinds_leave_no_gold_span_out(drawn: Drawn, orphans: bool) -> None:
    predicted, gold = drawn
    kinds = score.error_kinds(predicted, gold, orphans=orphans, scheme=Scheme.BIO)
    assert kinds.gold_spans == sum(tag[0] == "B" for truth in gold for tag in truth)
    bounds = (kinds.late_start, kinds.early_start, kinds.late_finish, kinds.early_finish, kinds.split)
    assert max(bounds) <= kinds.partial <= sum(bounds)
    assert kinds.late_start + kinds.early_start <= kinds.partial
    if not orphans:
        assert kinds.exact == score.strict_tallies(predicted, gold, scheme=Scheme.BIO).right_gold.sum()


@EXAMPLES
@given(documents())
def test_error_kinds_of_a_mirror_image(drawn: Drawn) -> None:
    """Reading spans backwards turns late starts into early finishes; nothing else changes."""
    tagset = TagSet.of_types(Scheme.BIO, TYPES)

    def mirrored(tags: list[str]) -> list[str]:
        length = len(tags)
        return tagset.tags([Span(length - e, length - s, kind) for s, e, kind in opened(tags)], length)

    valid = [[tagset.tags([Span(*s) for s in opened(tags)], len(tags)) for tags in side] for side in drawn]
    kinds = score.error_kinds(*valid, scheme=Scheme.BIO)
    mirror = score.error_kinds(*[[mirrored(tags) for tags in side] for side in valid], scheme=Scheme.BIO)
    assert mirror == kinds._replace(
        late_start=kinds.early_finish,
        early_start=kinds.late_finish,
        late_finish=kinds.early_start,
        early_finish=kinds.late_start,
    )
