"""Crowds simulated as arrays, of any size and at once; NumPy alone."""

from __future__ import annotations

import numpy as np

from quorate.corpus.tags import Scheme, TagSet
from quorate.crowd.crowd import Cells, Crowd
from quorate.model import loop
from quorate.model.parts.annotators import AnnotatorPrior
from quorate.model.parts.confusions import Sequential
from quorate.model.parts.text import Words
from quorate.model.parts.truth import Markov

TAGS = TagSet.of_types(Scheme.BIO, ["LOC", "MISC", "ORG", "PER"])
N_WORDS = 50_000


def simulated(
    n_tokens: int, per_document: int = 5, *, tags: TagSet = TAGS, n_annotators: int = 500, seed: int = 0
) -> Crowd:
    """Truth from a chain, words from a Zipf law shifted by the label, labels right in 60 to 95 of 100 cases."""
    rng = np.random.default_rng(seed)
    J = len(tags.labels)
    lengths = rng.integers(10, 41, n_tokens // 25 + 1)
    doc_start = np.concatenate([[0], np.cumsum(lengths)])
    N = int(doc_start[-1])
    trans = np.where(tags.allowed, 0.03, 0.0)
    for i, (prefix, kind) in enumerate(tags.parts):
        trans[i, 0] = 0.45 if prefix else 0.85
        if prefix:
            trans[i, tags.index[f"I-{kind}"]] = 0.45
    cumulated = np.cumsum(trans / trans.sum(axis=1, keepdims=True), axis=1)
    truth = np.zeros(N, np.int64)
    draws = rng.random(N, np.float32)
    for position in range(int(lengths.max())):
        tokens = doc_start[:-1][lengths > position] + position
        before = truth[tokens - 1] if position else np.zeros(len(tokens), np.int64)
        truth[tokens] = np.minimum((draws[tokens, None] > cumulated[before]).sum(axis=1), J - 1)
    word = ((rng.zipf(1.3, N) * 7 + truth * rng.integers(0, 40, N)) % N_WORDS).astype(np.int32)
    skill = rng.uniform(0.6, 0.95, n_annotators)
    first, apart = (
        rng.integers(0, n_annotators, len(lengths)),
        rng.integers(1, n_annotators // per_document + 1, len(lengths)),
    )
    who = (first[:, None] + apart[:, None] * np.arange(per_document)) % n_annotators  # nobody twice in a document
    keys = np.empty((N, per_document), np.int64)
    starts = np.zeros(N, np.bool_)
    starts[doc_start[:-1]] = True
    for slot in range(per_document):
        annotator = np.repeat(who[:, slot], lengths)
        label = np.where(rng.random(N, np.float32) < skill[annotator], truth, rng.integers(0, J, N))
        before = np.where(starts, 0, np.roll(label, 1))
        # An annotator's own sequence follows the scheme: what cannot follow opens a span, as repair would have it.
        label = np.where(tags.allowed[before, label], label, label - 1)
        before = np.where(starts, 0, np.roll(label, 1))
        label = np.where(tags.allowed[before, label], label, 0)
        before = np.where(starts, 0, np.roll(label, 1))
        label = np.where(tags.allowed[before, label], label, 0)
        keys[:, slot] = (annotator * J + np.where(starts, 0, np.roll(label, 1))) * J + label
    flat = keys.ravel()
    occurs = np.zeros(n_annotators * J * J, np.bool_)
    occurs[flat] = True
    rank = np.cumsum(occurs, dtype=np.int32) - 1
    row, label = np.divmod(np.flatnonzero(occurs), J)
    annotator, previous = np.divmod(row, J)
    return Crowd(
        tags,
        tuple(f"a{k}" for k in range(n_annotators)),
        tuple(f"w{v}" for v in range(N_WORDS)),
        doc_start,
        word,
        np.arange(N + 1) * per_document,
        rank[flat],
        None,
        Cells(annotator, previous, label, n_annotators, J, J),
        0,
    )


def stored(encoded: Crowd, path: str) -> None:
    """Write a simulated crowd as ``quorate encode`` writes one, but all at once."""
    from quorate.storage.arrays import Arrays, Workspace, write
    from quorate.storage.corpora import _KIND, VERSION, _add_layout

    D, N, lengths = encoded.n_docs, encoded.n_tokens, np.diff(encoded.doc_start)
    who, label = (column[encoded.event_cell].reshape(N, -1) for column in encoded.cells[::2][:2])
    S = who.shape[1]
    document = np.repeat(np.arange(D), lengths)
    begin = (S - 1) * encoded.doc_start[document] + np.arange(N)  # codes go by annotator, then by token
    codes = np.empty(N * S, np.int16)
    for slot in range(S):
        codes[begin + slot * lengths[document]] = label[:, slot]
    ids = [str(d).encode() for d in range(D)]
    short, long = np.int16, np.int64
    arrays: Arrays = {
        "doc_start": encoded.doc_start,
        "word": encoded.word,
        "id_bytes": np.frombuffer(b"".join(ids), np.uint8),
        "id_end": np.cumsum([len(each) for each in ids]),
        "sequences": np.full(D, S, np.int32),
        "annotator": who[encoded.doc_start[:-1]].astype(np.int32).reshape(-1),
        "codes": codes,
        "gold": np.full(N, -1, short),
        "split": np.full(D, -1, short),
        "offsets": np.zeros(2 * N, np.int32),
        "source": np.tile(np.array([-1, 0, 0], long), D),
        "text_bytes": np.zeros(0, np.uint8),
        "text_end": np.zeros(D, long),
        **{name: np.zeros(D, np.uint8) for name in ("has_gold", "has_text")},
        "soft_place": np.zeros(0, long),
        "soft_tag": np.zeros(0, short),
        "soft_probability": np.zeros(0),
        "event_start": encoded.event_start,
        "event_cell": encoded.event_cell,
        "event_weight": np.zeros(0),
        "cell_annotator": encoded.cells.annotator,
        "cell_previous": encoded.cells.previous,
        "cell_label": encoded.cells.label,
    }
    tags = list(encoded.tagset.labels)
    text = {
        "kind": _KIND,
        "version": VERSION,
        "words": encoded.words,
        "annotators": encoded.annotators,
        "tags": tags,
        "used": tags,
        "labels": tags,
        "scheme": encoded.tagset.scheme.value,
        "invalid": "repair",
        "splits": [],
        "sources": [],
        "repaired": 0,
        "notes": [],
        "digests": {},
        "profiles": {},
    }
    with Workspace(path) as space:
        _add_layout(arrays, text, space)
        write(path, arrays, text)


def model_of(encoded: Crowd) -> loop.Model:
    """bsc-seq with its default settings."""
    prior = AnnotatorPrior(encoded.tagset, 1.0, 30.0)
    words = Words.of(len(encoded.words), len(encoded.tagset.labels), 0.3)
    return loop.Model(Markov.of(encoded.tagset, 1.0), Sequential.of(prior, len(encoded.annotators)), words, 0.6)
