"""The algebra of an encoded corpus against loops over its arrays."""

from __future__ import annotations

import numpy as np

from quorate.corpus.records import Corpus, Document, SoftTag, Tag
from quorate.encode.algebra import (
    document_of,
    document_of_events,
    events_of_document,
    marked_spans,
    number_pairs,
    only_documents,
    pair_of_events,
    seen_pairs,
    token_of,
    token_of_events,
)
from quorate.encode.encoded import Encoded
from quorate.encode.from_corpus import encode


def corpus_with_gaps() -> Encoded:
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


def test_pairs_are_everybody_who_said_something_in_a_document() -> None:
    encoded = corpus_with_gaps()
    who = encoded.cells.annotator[encoded.event_cell]
    said = list(zip(document_of_events(encoded).tolist(), who.tolist(), strict=True))
    doc, annotator, number = number_pairs(encoded)
    pairs = list(zip(doc.tolist(), annotator.tolist(), strict=True))
    assert pairs == sorted(set(said)) == list(zip(*(column.tolist() for column in seen_pairs(encoded)), strict=True))
    assert [pairs[n] for n in number.tolist()] == said
    assert pair_of_events(encoded).tolist() == [d * len(encoded.annotators) + k for d, k in said]


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
