"""Hiding annotators and scoring against them: by loops over spans, written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import simulated_crowds as crowds
from problems import certain
from quorate.choose import hidden as heldout
from quorate.choose import joining
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import find_spans
from quorate.crowd.algebra import Spans, marked_spans, with_annotator
from quorate.crowd.encode import encode
from quorate.crowd.sharing import Sharing
from quorate.model.engines.protocol import Decoded
from quorate.model.votes import majority


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return crowds.sparse(60, 30)


def test_spans_of_every_annotator(corpus: Corpus) -> None:
    encoded = encode(corpus, corpus.tagset())
    spans = marked_spans(encoded)
    expected = {
        (int(encoded.doc_start[d]) + s.start, int(encoded.doc_start[d]) + s.end, s.label, name)
        for d, document in enumerate(corpus)
        for name, tags in document.annotations.items()
        for s in find_spans(certain(tags))
    }
    types = encoded.tagset.types
    found = [(int(s), int(e), types[k], encoded.annotators[w]) for s, e, k, w in zip(*spans, strict=True)]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_what_is_hidden_is_gone_and_nothing_else(corpus: Corpus) -> None:
    encoded = encode(corpus, corpus.tagset())
    hidden = heldout.hide(encoded)
    assert hidden is not None
    chosen = sorted(set(hidden.document.tolist()))
    assert chosen == list(range(len(corpus) // 2))  # every document of the sample has someone hidden
    gone = len(encoded.event_cell) - len(hidden.rest.event_cell)
    assert gone == len(hidden.token) == np.diff(hidden.sample.doc_start)[hidden.document].sum()
    rest = hidden.rest
    for k in range(len(encoded.annotators)):
        before = (encoded.cells.annotator[encoded.event_cell] == k).sum()
        after = (rest.cells.annotator[rest.event_cell] == k).sum()
        lost = np.diff(hidden.sample.doc_start)[hidden.document[hidden.who == k]].sum()
        assert before - after == lost


@pytest.mark.parametrize("of_what_somebody_marked", [False, True])
def test_agreement_by_loops(corpus: Corpus, of_what_somebody_marked: bool) -> None:
    """Of all spans, or of those alone of which somebody who is left marked a token."""
    encoded = encode(corpus, corpus.tagset())
    everything = heldout.hide(encoded)
    assert everything is not None
    hidden = everything.where_somebody_marked() if of_what_somebody_marked else everything
    sample, types = hidden.sample, encoded.tagset.types
    decoded = by_gold(hidden, corpus) if of_what_somebody_marked else majority(sample).decoded
    agreement = hidden.agreement(decoded)
    left = marked_spans(sample)
    touched = {token for a, b in zip(left.start.tolist(), left.end.tolist(), strict=True) for token in range(a, b)}
    unseen = 0
    table = np.zeros((6, len(hidden.who)))
    for u, (d, k) in enumerate(zip(hidden.document, hidden.who, strict=True)):
        first, last = int(sample.doc_start[d]), int(sample.doc_start[d + 1])
        consensus = find_spans([encoded.tagset.labels[j] for j in decoded.path[first:last]])
        theirs = [
            Span(int(s) - first, int(e) - first, types[kind])
            for s, e, kind, unit in zip(*everything.spans[:3], everything.unit, strict=True)
            if unit == u
        ]
        if of_what_somebody_marked:
            n_all = len(consensus) + len(theirs)
            consensus, theirs = (
                [span for span in spans if touched & set(range(first + span.start, first + span.end))]
                for spans in (consensus, theirs)
            )
            unseen += n_all - len(consensus) - len(theirs)
        table[0, u] = sum(span in theirs for span in consensus)
        table[1, u] = len(theirs)
        table[2, u] = sum(hidden.habits.spans[k, types.index(span.label)] for span in consensus)
        table[3, u] = sum(share(span, theirs) for span in consensus)
        table[4, u] = sum(share(span, consensus) for span in theirs)
        table[5, u] = sum(hidden.habits.tokens[k, types.index(span.label)] for span in consensus)
    np.testing.assert_allclose(agreement.table, table, atol=1e-9)
    assert bool(unseen) is of_what_somebody_marked
    matched, marked, expected, covering, covered, expected_share = table.sum(axis=1)
    assert agreement.strict == pytest.approx(2 * matched / (marked + expected))
    precision, recall = covering / expected_share, covered / marked
    relaxed = 2 * precision * recall / (precision + recall)
    assert agreement.f1 == pytest.approx((2 * matched / (marked + expected) + relaxed) / 2)


def share(span: Span, others: list[Span]) -> float:
    inside = {t for other in others if other.label == span.label for t in range(other.start, other.end)}
    return sum(t in inside for t in range(span.start, span.end)) / (span.end - span.start)


def test_what_a_tagger_said_by_loops(corpus: Corpus) -> None:
    """The labels and spans of an annotator who was added, as gold has them."""
    encoded = encode(corpus, corpus.tagset())
    index = encoded.tagset.index
    path = np.array([index[str(tag)] for document in corpus for tag in document.gold or ()], np.int32)
    said = joining._said_by_last(with_annotator(encoded, "(tagger)", path))
    np.testing.assert_array_equal(said.path, path)
    expected = {
        int(first) + span.start: int(first) + span.end
        for first, document in zip(encoded.doc_start, corpus, strict=False)
        for span in find_spans(document.gold or ())
    }
    assert {int(start): int(said.span_end[start]) for start in np.flatnonzero(said.span_end)} == expected


def test_habits_by_loops(corpus: Corpus) -> None:
    encoded = encode(corpus, corpus.tagset())
    hidden = heldout.hide(encoded)
    assert hidden is not None
    names, types = encoded.annotators, encoded.tagset.types
    counts = np.zeros((2, len(names), len(types), 2))
    for document in corpus:
        spans = {name: set(find_spans(certain(tags))) for name, tags in document.annotations.items()}
        said = {name: [str(tag) for tag in tags] for name, tags in document.annotations.items()}
        for name in spans:
            others = [s for other, marked in spans.items() if other != name for s in marked]
            for s in {s for s in others if others.count(s) >= 2}:
                counts[0, names.index(name), types.index(s.label)] += (1, s in spans[name])
            for place in range(len(document.tokens)):
                given = [tags[place][2:] for other, tags in said.items() if other != name]
                for kind in types:
                    if given.count(kind) >= 2:
                        mine = said[name][place][2:] == kind
                        counts[1, names.index(name), types.index(kind)] += (1, mine)
    for habit, (total, right) in zip(hidden.habits, (np.moveaxis(one, -1, 0) for one in counts), strict=True):
        everybody = (right.sum(axis=0) + 1) / (total.sum(axis=0) + 2)
        np.testing.assert_allclose(habit, (right + 3 * everybody) / (total + 3))


def test_a_perfect_consensus_scores_near_one_even_where_annotators_are_silent() -> None:
    corpus = crowds.rules(300)
    hidden = heldout.draws(encode(corpus, corpus.tagset()))
    gold = [by_gold(one, corpus) for one in hidden]
    right = heldout.agreement_over(hidden, gold)
    nothing = [one._replace(path=np.zeros_like(one.path), span_end=np.zeros_like(one.span_end)) for one in gold]
    assert right.f1 > 0.7  # 0.77 on average over draws, ± 0.03
    assert heldout.agreement_over(hidden, nothing).f1 == 0.0
    votes = heldout.agreement_over(hidden, [majority(one.sample).decoded for one in hidden])
    gain, error = right.gain_over(votes)
    assert gain > 5 * error > 0


def test_a_document_that_was_drawn_twice_is_one_document(corpus: Corpus) -> None:
    hidden = heldout.draws(encode(corpus, corpus.tagset()))
    decoded = [majority(one.sample).decoded for one in hidden]
    table = np.zeros((6, len(corpus)))
    for one, votes in zip(hidden, decoded, strict=True):
        for column, document in zip(one.agreement(votes).table.T, one.documents, strict=True):
            table[:, document] += column
    together = heldout.agreement_over(hidden, decoded)
    np.testing.assert_allclose(together.table, table)
    assert len(together.found.start) == len(together.matched) == len(together.expected)
    assert together.matched.sum() == pytest.approx(table[0].sum())


def test_draws_that_go_on_are_those_that_were_made_at_once(corpus: Corpus) -> None:
    encoded = encode(corpus, corpus.tagset())
    at_once = heldout.draws(encoded)
    resumed = heldout.draws(encoded, before=at_once[:1])
    assert len(at_once) == len(resumed) > 1
    assert resumed[0] is at_once[0]
    assert [one.draw for one in resumed] == list(range(len(resumed)))
    for one, other in zip(at_once, resumed, strict=True):
        np.testing.assert_array_equal(one.documents, other.documents)
        np.testing.assert_array_equal(one.who, other.who)
        np.testing.assert_array_equal(one.rest.event_cell, other.rest.event_cell)


def by_gold(hidden: heldout.HiddenLabels, corpus: Corpus) -> Decoded:
    """The gold of the documents in the sample, as a consensus: they are found by their words."""
    sample = hidden.sample
    words = np.array(sample.words)
    gold = {document.tokens: document.gold for document in corpus}
    tags: list[Tag] = []
    for first, last in zip(sample.doc_start[:-1], sample.doc_start[1:], strict=True):
        tags += gold[tuple(words[sample.word[first:last]].tolist())] or ()
    path = np.array([sample.tagset.index[str(tag)] for tag in tags], np.int32)
    span_end = np.zeros(len(path), np.int32)
    for span in find_spans(tags):
        span_end[span.start] = span.end
    empty = np.zeros(0)
    return Decoded(empty, path, empty, empty, span_end, np.ones(len(path)), empty)


def test_nobody_to_spare() -> None:
    alone = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})])
    assert heldout.hide(encode(alone, alone.tagset())) is None


def test_the_error_of_a_gain_is_that_of_documents_drawn_again() -> None:
    rng = np.random.default_rng(0)
    D, nothing = 1500, np.zeros(0, np.int64)

    def made(skill: float) -> heldout.Agreement:
        matched, found = rng.binomial(hidden, skill), rng.poisson(1.8, D)
        table = [matched, hidden, 0.9 * found, 1.05 * matched, 1.02 * matched, 0.95 * found]
        spans = Spans(*[nothing] * 4)
        return heldout.Agreement(np.stack(table).astype(float), spans, np.zeros(0, bool), np.zeros(0))

    hidden = rng.poisson(2.0, D)
    one, other = made(0.8), made(0.75)
    gain, error = one.gain_over(other)
    gains = []
    for _ in range(400):
        again = rng.integers(0, D, D)
        first, second = (each._replace(table=each.table[:, again]) for each in (one, other))
        gains.append(first.f1 - second.f1)
    assert gain == pytest.approx(np.mean(gains), abs=0.003)
    assert error == pytest.approx(np.std(gains), rel=0.12)


def test_what_is_hidden_is_counted_by_document_and_in_all() -> None:
    corpus = crowds.sparse(40, 12)
    everyone = Corpus(
        [
            replace(document, annotations={f"a{n}": tags for n in range(10) for tags in [document.gold or ()]})
            for document in corpus
        ]
    )
    hidden = heldout.hide(encode(everyone, everyone.tagset()))
    assert hidden is not None
    assert np.bincount(hidden.document).tolist() == [2] * 20
    agreement = hidden.agreement(majority(hidden.sample).decoded)
    assert agreement.table.shape == (6, 20)
    assert agreement.table[1].sum() == len(hidden.spans.start)
    assert hidden.share == pytest.approx(0.2)


def test_of_soft_labels_as_much_is_hidden_as_of_hard_ones() -> None:
    labels = ("O", "B-X", "I-X")
    rows = tuple(dict.fromkeys(labels, 1 / 3) for _ in range(4))
    corpus = Corpus([Document(str(n), ("a", "b", "c", "d"), {f"a{k}": rows for k in range(3)}) for n in range(10)])
    hidden = heldout.hide(encode(corpus, corpus.tagset()))
    assert hidden is not None
    assert hidden.share == pytest.approx(1 / 3)


def test_those_who_are_hidden_because_they_err_as_another_does_judge_nothing() -> None:
    tags = ("B-PER", "O")
    corpus = Corpus([Document(str(n), ("Ada", "sang"), {f"a{k}": tags for k in range(6)}) for n in range(20)])
    encoded = encode(corpus, corpus.tagset())
    together = Sharing.within([0, 0, 0, 0, 1, 2])
    alone, with_partners = heldout.hide(encoded), heldout.hide(encoded, sharing=together)
    assert alone is not None
    assert with_partners is not None
    assert len(with_partners.token) == 2 * len(with_partners.document)
    assert len(with_partners.rest.event_cell) < len(alone.rest.event_cell)
