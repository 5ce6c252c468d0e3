"""Holding annotators out: nothing of a held-out label is left in the rest; habits and confirmations by loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import simulated_crowds as crowds
from problems import certain
from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import with_copies
from quorate.corpus.spans import Span
from quorate.corpus.tags import find_spans
from quorate.crowd.algebra import Spans, marked_spans, seen_pairs, token_of_events
from quorate.crowd.changes import changed, with_notes
from quorate.crowd.correlated import Correlated
from quorate.crowd.crowd import Crowd
from quorate.crowd.duplicates import Duplicates
from quorate.crowd.encode import encode
from quorate.crowd.hold_out import HeldOut, folds, hold_out

Said = set[tuple[int, str, str]]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return crowds.sparse(60, 30)


def encoded(corpus: Corpus) -> Crowd:
    return encode(corpus, corpus.tagset())


def said_in(crowd: Crowd) -> Said:
    """Token, annotator and label of all that was said."""
    cells = crowd.event_cell
    who, label = crowd.cells.annotator[cells].tolist(), crowd.cells.label[cells].tolist()
    columns = zip(token_of_events(crowd).tolist(), who, label, strict=True)
    return {(t, crowd.annotators[k], crowd.tagset.labels[j]) for t, k, j in columns}


def pairs_of(crowd: Crowd, held: HeldOut) -> set[tuple[int, str]]:
    """Document, and who was held out there."""
    documents = held.documents[held.document].tolist()
    return {(d, crowd.annotators[k]) for d, k in zip(documents, held.who.tolist(), strict=True)}


def document_of(crowd: Crowd, token: int) -> int:
    return int(np.searchsorted(crowd.doc_start, token, side="right")) - 1


def test_spans_of_every_annotator(corpus: Corpus) -> None:
    crowd = encoded(corpus)
    expected = {
        (int(crowd.doc_start[d]) + s.start, int(crowd.doc_start[d]) + s.end, s.label, name)
        for d, document in enumerate(corpus)
        for name, tags in document.annotations.items()
        for s in find_spans(certain(tags))
    }
    types = crowd.tagset.types
    found = [(int(s), int(e), types[k], crowd.annotators[w]) for s, e, k, w in zip(*marked_spans(crowd), strict=True)]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_nothing_of_what_is_held_out_is_left_in_the_rest_and_all_else_is(corpus: Corpus) -> None:
    crowd = encoded(corpus)
    found = list(folds(crowd))
    assert len(found) > 1
    everything = said_in(crowd)
    for rest, held in found:
        pairs, left = pairs_of(crowd, held), said_in(rest)
        gone = {one for one in everything if (document_of(crowd, one[0]), one[1]) in pairs}
        assert left == everything - gone
        labels = {
            (int(t), int(held.documents[np.searchsorted(held.doc_start, t, side="right") - 1]), int(j))
            for t, j in zip(held.token, held.label, strict=True)
        }
        assert len(held.token) == len(gone) >= len(labels)
        moved = {
            (int(held.doc_start[u] + t - crowd.doc_start[d]), d, crowd.tagset.labels.index(label))
            for t, _, label in gone
            for d in [document_of(crowd, t)]
            for u in [held.documents.tolist().index(d)]
        }
        assert labels == moved
        assert np.isin(held.documents, np.unique(seen_pairs(rest)[0])).all()  # somebody is left


def test_every_fold_holds_out_others_and_documents_by_halves(corpus: Corpus) -> None:
    crowd = encoded(corpus)
    together: set[tuple[int, str]] = set()
    for _, held in folds(crowd):
        pairs = pairs_of(crowd, held)
        assert len({d for d, _ in pairs}) == len(corpus) // 2
        assert not pairs & together
        together |= pairs


def test_those_who_depend_on_a_held_out_annotator_are_left_out_and_judge_nothing() -> None:
    corpus = crowds.one_expert(40)
    crowd = encoded(corpus)
    notes = (Duplicates(((1, 2),)), Correlated.of([(0, 3, 0.9), (4, 5, 0.1)]))
    partner = {"a1": "a2", "a2": "a1", "a0": "a3", "a3": "a0"}
    alone, with_partners = hold_out(crowd), hold_out(crowd, notes=notes)
    assert alone is not None
    assert with_partners is not None
    rest, held = with_partners
    pairs = pairs_of(crowd, held)
    assert pairs == pairs_of(crowd, alone[1])
    dependent = {(d, partner[name]) for d, name in pairs if name in partner}
    assert dependent - pairs
    gone = {one for one in said_in(crowd) if (document_of(crowd, one[0]), one[1]) in pairs | dependent}
    assert said_in(rest) == said_in(crowd) - gone
    assert len(held.token) == sum(len(corpus[d].tokens) for d, _ in pairs)  # of the dependent ones nothing is asked


def test_a_document_of_which_nobody_would_be_left_is_not_chosen() -> None:
    corpus = with_copies(
        Corpus(replace(one, annotations={"a": one.gold or ()}) for one in crowds.sentences(30)), "a", 2
    )
    crowd = encoded(corpus)
    assert hold_out(crowd) is not None
    assert hold_out(crowd, notes=[Duplicates(((0, 1, 2),))]) is None
    assert list(folds(crowd, notes=[Duplicates(((0, 1, 2),))])) == []


def test_the_changes_of_a_crowd_are_made_of_the_rest_anew() -> None:
    """Ends of marks among rules are those of the marks that are left: none beside a held-out mark alone."""
    crowd = changed(encoded(crowds.rules(150)))
    assert crowd.notes
    for rest, held in folds(crowd.as_given, notes=crowd.notes):
        again = with_notes(rest, crowd.notes)
        assert again.annotators == crowd.annotators
        pairs = pairs_of(crowd, held)
        assert not {(document_of(crowd, t), who) for t, who, _ in said_in(again)} & pairs


def test_documents_with_known_labels_stay_whole(corpus: Corpus) -> None:
    crowd = encoded(corpus)
    known = np.full(crowd.n_tokens, -1, np.int32)
    for d in range(0, len(corpus), 2):
        known[crowd.doc_start[d]] = 0
    for _, held in folds(replace(crowd, known=known)):
        assert set((held.documents % 2).tolist()) == {1}


def test_nobody_to_spare() -> None:
    alone = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})])
    assert hold_out(encoded(alone)) is None
    assert list(folds(encoded(alone))) == []


def test_one_in_five_is_held_out_of_hard_and_of_soft_labels() -> None:
    corpus = crowds.sparse(40, 12)
    everyone = Corpus(
        replace(one, annotations={f"a{n}": tags for n in range(10) for tags in [one.gold or ()]}) for one in corpus
    )
    found = hold_out(encoded(everyone))
    assert found is not None
    assert np.bincount(found[1].document).tolist() == [2] * 20
    assert found[1].others == 8.0
    rows = tuple(dict.fromkeys(("O", "B-X", "I-X"), 1 / 3) for _ in range(4))
    soft = Corpus([Document(str(n), ("a", "b", "c", "d"), {f"a{k}": rows for k in range(3)}) for n in range(10)])
    rest, held = hold_out(encoded(soft)) or pytest.fail("nobody was held out")
    assert len(held.document) == 5
    assert np.isin(
        held.token, held.doc_start
    ).all()  # at the first token an I can only be a B: of others nobody was sure
    assert len(rest.event_cell) == len(encoded(soft).event_cell) * 25 // 30


def test_habits_by_loops(corpus: Corpus) -> None:
    crowd = encoded(corpus)
    found = hold_out(crowd)
    assert found is not None
    names, types = crowd.annotators, crowd.tagset.types
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
    for habit, (total, right) in zip(found[1].habits, (np.moveaxis(one, -1, 0) for one in counts), strict=True):
        everybody = (right.sum(axis=0) + 1) / (total.sum(axis=0) + 2)
        np.testing.assert_allclose(habit, (right + 3 * everybody) / (total + 3))


def gold_of(corpus: Corpus, held: HeldOut, types: tuple[str, ...]) -> Iterator[tuple[int, int, Span]]:
    """Gold spans of the held-out documents: the number of the document there, its first token, the span."""
    for number, d in enumerate(held.documents.tolist()):
        for span in find_spans(corpus[d].gold or ()):
            yield number, int(held.doc_start[number]), span


def test_what_held_out_annotators_confirm_by_loops(corpus: Corpus) -> None:
    crowd = encoded(corpus)
    types = crowd.tagset.types
    for _, held in folds(crowd):
        gold = list(gold_of(corpus, held, types))
        found = Spans(
            *(np.array(column) for column in zip(
                *((first + s.start, first + s.end, types.index(s.label), -1) for _, first, s in gold), strict=True
            ))
        )  # fmt: skip
        spans, unit, matched, expected = held.confirmed(found)
        rows = {
            (int(a), int(u)): (bool(m), float(e))
            for a, u, m, e in zip(spans.start, unit, matched, expected, strict=True)
        }
        by_loops = {}
        for number, first, span in gold:
            for u in np.flatnonzero(held.document == number).tolist():
                k = int(held.who[u])
                tags = certain(corpus[int(held.documents[number])].annotations[crowd.annotators[k]])
                confirmed = span in find_spans(tags)
                by_loops[first + span.start, u] = (confirmed, float(held.habits.spans[k, types.index(span.label)]))
        assert rows == by_loops
        assert any(m for m, _ in rows.values())
        assert not all(m for m, _ in rows.values())
