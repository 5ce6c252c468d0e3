"""Crowds simulated as arrays, of any size and at once; NumPy alone."""

from __future__ import annotations

import numpy as np

from quorate.corpus.tags import Scheme, TagSet
from quorate.encode.encoded import Cells, Encoded
from quorate.infer import loop
from quorate.infer.parts.annotators import AnnotatorPrior
from quorate.infer.parts.confusions import Sequential
from quorate.infer.parts.text import Words
from quorate.infer.parts.truth import Markov

TAGS = TagSet.of_types(Scheme.BIO, ["LOC", "MISC", "ORG", "PER"])
N_WORDS = 50_000


def simulated(
    n_tokens: int, per_document: int = 5, *, tags: TagSet = TAGS, n_annotators: int = 500, seed: int = 0
) -> Encoded:
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
    who = rng.integers(0, n_annotators, (len(lengths), per_document))
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
    return Encoded(
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


def model_of(encoded: Encoded) -> loop.Model:
    """bsc-seq with its default settings."""
    prior = AnnotatorPrior(encoded.tagset, 1.0, 30.0)
    words = Words.of(len(encoded.words), len(encoded.tagset.labels), 0.3)
    return loop.Model(Markov.of(encoded.tagset, 1.0), Sequential.of(prior, len(encoded.annotators)), words, 0.6)
