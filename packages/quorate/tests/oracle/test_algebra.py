"""The algebra of an encoded corpus against loops over its arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from quorate.corpus.records import Corpus, Document, SoftTag, Tag
from quorate.crowd import algebra
from quorate.crowd.algebra import (
    count_pairs,
    document_of,
    document_of_events,
    events_of_document,
    marked_spans,
    number_pairs,
    only_documents,
    paired,
    seen_pairs,
    token_of,
    token_of_events,
    without,
    without_pairs,
)
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.crowd.kernels import sure_events


def corpus_with_gaps() -> Crowd:
    """Documents of which one has no token, one nobody labelled, and tokens that not everybody labelled."""
    documents = [
        Document("1", ("Ada", "sang"), {"a": ("B-PER", "O"), "b": (None, "O")}),
        Document("2", (), {}),
        Document("3", ("no", "word"), {}),
        Document("4", ("Ada", "Lovelace", "sang"), {"b": ("B-PER", "I-PER", None), "c": ("O", "O", "O")}),
    ]
    corpus = Corpus(documents)
    return encode(corpus, corpus.tagset())


def test_tokens_and_documents_of_events_are_those_of_a_loop() -> None:
    encoded = corpus_with_gaps()
    tokens, documents = [], []
    for d in range(encoded.n_docs):
        in_document = []
        for t in range(int(encoded.doc_start[d]), int(encoded.doc_start[d + 1])):
            for _ in range(int(encoded.event_start[t]), int(encoded.event_start[t + 1])):
                tokens.append(t)
                documents.append(d)
                in_document.append(t - int(encoded.doc_start[d]))
        events, token = events_of_document(encoded, d)
        assert token.tolist() == in_document
        assert events == slice(len(tokens) - len(in_document), len(tokens))
    assert token_of_events(encoded).tolist() == tokens
    assert document_of_events(encoded).tolist() == documents
    assert token_of(encoded, np.arange(len(tokens))).tolist() == tokens
    assert document_of(encoded, token_of_events(encoded)).tolist() == documents


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("at_once", [1, 4, 1000])
def test_pairs_are_everybody_who_said_something_in_a_document(
    at_once: int, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algebra, "_PIECE", at_once)
    monkeypatch.setattr(algebra, "_is_sparse", lambda numbers, end: sparse)
    encoded = corpus_with_gaps()
    who = encoded.cells.annotator[encoded.event_cell]
    said = list(zip(document_of_events(encoded).tolist(), who.tolist(), strict=True))
    doc, annotator, number = number_pairs(encoded)
    pairs = list(zip(doc.tolist(), annotator.tolist(), strict=True))
    assert pairs == sorted(set(said)) == list(zip(*(column.tolist() for column in seen_pairs(encoded)), strict=True))
    assert [pairs[n] for n in number.tolist()] == said
    assert count_pairs(encoded)[2].tolist() == [said.count(pair) for pair in pairs]
    every_other = np.arange(len(pairs)) % 2 == 0
    of_some = np.array([pair in pairs[::2] for pair in said])
    rest, expected = without_pairs(encoded, every_other), without(encoded, of_some)
    assert rest.event_start.tolist() == expected.event_start.tolist()
    assert rest.event_cell.tolist() == expected.event_cell.tolist()
    token, cell = sure_events(paired(encoded, doc, annotator), every_other)
    assert token.tolist() == token_of_events(encoded)[of_some].tolist()
    assert cell.tolist() == encoded.event_cell[of_some].tolist()


@pytest.mark.parametrize("documents", [[], [Document("1", (), {}), Document("2", ("no", "word"), {})]])
def test_where_nobody_said_anything_there_are_no_pairs(documents: list[Document]) -> None:
    encoded = encode(Corpus(documents), Corpus([Document("1", ("Ada",), {"a": ("B-PER",)})]).tagset())
    assert [len(column) for column in (*number_pairs(encoded), *count_pairs(encoded))] == [0] * 6


def test_what_is_worked_out_once_is_kept_read_only_and_left_behind_by_another_corpus() -> None:
    corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O"), "bob": ("O", "O")})])
    encoded = encode(corpus, corpus.tagset())
    spans = marked_spans(encoded)
    assert marked_spans(encoded) is spans
    with pytest.raises(ValueError, match="read-only"):
        spans.start[0] = 1
    without_ann = algebra.without(encoded, encoded.cells.annotator[encoded.event_cell] == 0)
    assert len(marked_spans(without_ann).start) == 0
    assert seen_pairs(without_ann)[1].tolist() == [1]


def test_what_is_worked_out_once_is_not_pickled() -> None:
    tags = {"ann": ("B-PER", "O"), "bob": ("O", "O")}
    corpus = Corpus([Document(str(n), ("Ada", "sang"), tags) for n in range(100)])
    encoded = encode(corpus, corpus.tagset())
    before = len(pickle.dumps(encoded))
    spans, pairs = marked_spans(encoded), seen_pairs(encoded)
    pickled = pickle.dumps(encoded)
    assert len(pickled) == pytest.approx(before, abs=sum(column.nbytes for column in spans) / 10)
    again = pickle.loads(pickled)
    for mine, theirs in ((spans, marked_spans(again)), (pairs, seen_pairs(again))):
        assert all((one == other).all() for one, other in zip(mine, theirs, strict=True))
    assert marked_spans(encoded) is spans


def test_what_is_large_is_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})])
    encoded = encode(corpus, corpus.tagset())
    monkeypatch.setattr(algebra, "_MOST_KEPT", 0)
    assert marked_spans(encoded) is not marked_spans(encoded)


@pytest.mark.parametrize("every", [1, 11])
def test_tokens_of_few_events_and_of_many_are_those_of_all(every: int) -> None:
    tags = {f"a{k}": ("B-PER", *"OOOO") for k in range(8)}
    corpus = Corpus([Document(str(n), tuple("abcde"), tags) for n in range(3)])
    encoded = encode(corpus, corpus.tagset())
    event = np.arange(0, len(encoded.event_cell), every)
    assert (len(event) > encoded.n_tokens) == (every == 1)
    np.testing.assert_array_equal(token_of(encoded, event), token_of_events(encoded)[event])


def test_marks_are_those_that_a_loop_over_everybodys_tags_finds() -> None:
    tags = ("O", "B-X", "I-X", "B-Y", "I-Y", None)
    draw = np.random.default_rng(3)
    documents = [
        Document(str(d), ("w",) * length, {f"a{k}": tuple(tags[t] for t in draw.integers(6, size=length)) for k in who})
        for d, (length, who) in enumerate([(9, range(4)), (0, ()), (1, (2, 3)), (7, (0, 3)), (5, ())] * 6)
    ]
    corpus = Corpus(documents)
    encoded = encode(corpus, corpus.tagset())
    found = []
    for d, document in enumerate(documents):
        for name, said in document.annotations.items():
            inside = ""
            for position, tag in enumerate(said):
                begins = tag not in (None, "O") and (str(tag)[0] == "B" or str(tag)[2:] != inside)
                inside = "" if tag in (None, "O") else str(tag)[2:]
                at = int(encoded.doc_start[d]) + position
                if begins:
                    found.append([encoded.annotators.index(name), at, at + 1, encoded.tagset.types.index(inside)])
                elif inside:
                    found[-1][2] = at + 1
    marks = marked_spans(encoded)
    assert np.stack([marks.who, marks.start, marks.end, marks.kind], axis=1).tolist() == sorted(found)


def test_a_mark_ends_with_its_document() -> None:
    documents = [Document(name, ("a", "b"), {"ann": ("O", "I-X")}) for name in "12"]
    documents.insert(1, Document("3", ("c",), {"ann": ("I-X",)}))
    corpus = Corpus(documents)
    marks = marked_spans(encode(corpus, corpus.tagset()))
    assert np.stack([marks.start, marks.end], axis=1).tolist() == [[1, 2], [2, 3], [4, 5]]


def test_some_documents_are_those_of_a_corpus_that_has_no_others() -> None:
    encoded = corpus_with_gaps()
    some = only_documents(encoded, np.array([3, 0]))
    assert some.doc_start.tolist() == [0, 3, 5]
    assert some.word.tolist() == [*encoded.word[4:7].tolist(), *encoded.word[:2].tolist()]
    first = int(encoded.event_start[4])
    assert some.event_cell.tolist() == [*encoded.event_cell[first:].tolist(), *encoded.event_cell[:3].tolist()]


def test_marks_of_someone_who_gives_probabilities_are_the_likeliest_labels() -> None:
    def soft(tag: str) -> dict[str, float]:
        return {tag: 0.7, "O": 0.3}

    said: dict[str, tuple[Tag | SoftTag, ...]] = {
        "ann": (soft("B-X"), soft("I-X"), soft("I-X"), "O"),
        "bob": ("O", "B-X", None, {"B-X": 0.4, "O": 0.6}),
    }
    corpus = Corpus([Document("1", tuple("abcd"), said)])
    marks = marked_spans(encode(corpus, corpus.tagset()))
    assert np.stack([marks.start, marks.end, marks.who], axis=1).tolist() == [[0, 3, 0], [1, 2, 1]]
