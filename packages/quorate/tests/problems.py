"""Small random problems, and their answers by enumerating every path."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Document, SoftTag, Tag
from quorate.corpus.tags import Scheme, TagSet

Floats = NDArray[np.float64]


def tagset(scheme: Scheme, n_types: int = 1) -> TagSet:
    return TagSet.of_types(scheme, [f"T{n}" for n in range(n_types + (scheme is Scheme.PLAIN))])


def certain(said: Sequence[Tag | SoftTag]) -> tuple[Tag, ...]:
    """What an annotator said, where nothing is a soft label."""
    tags = tuple(tag for tag in said if tag is None or isinstance(tag, str))
    assert len(tags) == len(said)
    return tags


def random_corpus(
    rng: np.random.Generator,
    tags: TagSet,
    *,
    n_documents: int = 4,
    longest: int = 5,
    n_annotators: int = 3,
    missing: float = 0.2,
    n_words: int = 3,
    shortest: int = 1,
) -> Corpus:
    """Valid sequences by annotators who may miss tokens or documents; gold is one more such sequence."""
    documents = []
    for number in range(n_documents):
        length = int(rng.integers(shortest, longest + 1))
        annotations = {
            f"a{k}": tuple(None if rng.random() < missing else tag for tag in random_tags(rng, tags, length))
            for k in range(n_annotators)
            if rng.random() > missing
        }
        tokens = tuple(f"w{rng.integers(n_words)}" for _ in range(length))
        documents.append(Document(f"d{number}", tokens, annotations, tuple(random_tags(rng, tags, length))))
    return Corpus(documents)


def random_tags(rng: np.random.Generator, tags: TagSet, length: int) -> list[str]:
    paths = list(valid_paths(tags, length))
    return [tags.labels[code] for code in paths[rng.integers(len(paths))]]


def valid_paths(tags: TagSet, length: int) -> Iterator[tuple[int, ...]]:
    """Every sequence of labels that the scheme allows."""
    for path in itertools.product(range(len(tags.labels)), repeat=length):
        first = bool(tags.allowed_first[path[0]])
        last = bool(tags.allowed_last[path[-1]])
        if first and last and all(tags.allowed[a, b] for a, b in itertools.pairwise(path)):
            yield path


def dense_sequential_prior(tags: TagSet, alpha0: float, epsilon0: float, *, forbid: bool = True) -> Floats:
    """``[ι, j, i]`` Every concentration of *seq*: the mass of what cannot follow is with what repair makes of it."""
    J = len(tags.labels)
    table = np.tile(alpha0 + epsilon0 * np.eye(J), (J + (tags.outside is None), 1, 1))
    if tags.outside is None or not forbid:
        return table
    for before, label in itertools.product(range(J), repeat=2):
        if not tags.allowed[before, label]:
            (prefix, kind), (inside, own) = tags.parts[label], tags.parts[before]
            if tags.scheme is Scheme.BIOES and inside in ("B", "I"):
                heir = f"I-{own}" if prefix in ("B", "I") else f"E-{own}"
            else:
                heir = f"B-{kind}" if prefix == "I" else f"S-{kind}"
            table[before, :, tags.index[heir]] += table[before, :, label]
            table[before, :, label] = 0.0
    return table


@dataclass
class Enumerated:
    """Answers for one document, from the weight of every path."""

    log_z: float
    posterior: Floats
    pairs: Floats
    best: tuple[int, ...]
    best_log_probability: float
    weights: dict[tuple[int, ...], float]


def enumerate_paths(evidence: Floats, log_start: Floats, log_trans: Floats) -> Enumerated:
    length, J = evidence.shape
    scores = {}
    for path in itertools.product(range(J), repeat=length):
        score = log_start[path[0]] + sum(evidence[t, label] for t, label in enumerate(path))
        score += sum(log_trans[a, b] for a, b in itertools.pairwise(path))
        scores[path] = score
    values = np.array(list(scores.values()))
    top = values.max()
    log_z = float(top + np.log(np.exp(values - top).sum()))
    posterior, pairs = np.zeros((length, J)), np.zeros((J, J))
    weights = {path: float(np.exp(score - log_z)) for path, score in scores.items()}
    for path, weight in weights.items():
        for t, label in enumerate(path):
            posterior[t, label] += weight
        for a, b in itertools.pairwise(path):
            pairs[a, b] += weight
    best = max(scores, key=lambda path: scores[path])
    return Enumerated(log_z, posterior, pairs, best, float(scores[best] - log_z), weights)
