"""What compiled code makes of a corpus, beside loops over the tags that people gave."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import quorate.crowd.kernels
from quorate.corpus.records import Corpus, Document, SoftTag, Tag
from quorate.corpus.tags import Invalid
from quorate.crowd import hold_out
from quorate.crowd.algebra import token_of_events, without
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.crowd.lots import Lots, lots_of

_BITS = 1 << 64
_TAGS: tuple[Tag, ...] = (None, "O", "B-PER", "I-PER", "B-LOC")


def corpus_of(seed: int, *, soft: bool = False) -> Corpus:
    """Short documents, some empty, with missing tags, tags that break the scheme, and documents of nobody."""
    rng = np.random.default_rng(seed)
    documents = []
    for n in range(12):
        words = tuple(rng.choice(["Ada", "sang", "in", "Rome"], rng.integers(0, 5)).tolist())
        people = rng.permutation(5)[: rng.integers(0, 4)]
        said: dict[str, tuple[Tag | SoftTag, ...]] = {
            f"w{k}": tuple(_TAGS[tag] for tag in rng.integers(0, len(_TAGS), len(words))) for k in people
        }
        if soft and words:
            said["model"] = tuple({"O": 0.25, "B-PER": 0.75} for _ in words)
        documents.append(Document(str(n), words, said))
    return Corpus(documents)


def by_loops(corpus: Corpus, encoded: Crowd) -> list[list[tuple[str, str, str]]]:
    """Of every token, who said what after what."""
    found = []
    for document in corpus:
        for place in range(len(document.tokens)):
            here = []
            for name in sorted(document.annotations):
                tag = document.annotations[name][place]
                before = document.annotations[name][place - 1] if place else None
                if tag is not None:
                    here.append((name, str(before or "O"), str(tag)))
            found.append(here)
    return found


def as_told(encoded: Crowd) -> list[list[tuple[str, str, str]]]:
    cells, labels = encoded.cells, encoded.tagset.labels
    each = [
        (encoded.annotators[k], labels[before], labels[label])
        for k, before, label in zip(*(column.tolist() for column in cells[:3]), strict=True)
    ]
    start = encoded.event_start.tolist()
    return [[each[cell] for cell in encoded.event_cell[a:b].tolist()] for a, b in pairwise(start)]


@pytest.mark.parametrize("table", ["small", "too large"])
@pytest.mark.parametrize("seed", range(4))
def test_events_are_those_of_a_loop_over_tags(seed: int, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if table == "too large":
        monkeypatch.setattr(quorate.crowd.kernels, "_CELLS_PER_LABEL", 0)
        monkeypatch.setattr(quorate.crowd.kernels, "_FEW_CELLS", 0)
    corpus = corpus_of(seed)
    encoded = encode(corpus, corpus.tagset(), invalid=Invalid.KEEP)
    assert as_told(encoded) == by_loops(corpus, encoded)
    assert (np.diff(encoded.cells.keys) > 0).all()


def scattered(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) % _BITS
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % _BITS
    x = (x ^ x >> 27) * 0x94D049BB133111EB % _BITS
    return x ^ x >> 31


def lots_by_loops(encoded: Crowd, seed: int) -> Lots:
    """Labels count by how often they were given, so that their names do not matter."""
    times: dict[int, float] = {}
    for e, cell in enumerate(encoded.event_cell.tolist()):
        weight = 1.0 if encoded.event_weight is None else float(encoded.event_weight[e])
        times[int(encoded.cells.label[cell])] = times.get(int(encoded.cells.label[cell]), 0.0) + weight
    words: dict[int, int] = {}
    said: dict[tuple[int, int], int] = {}
    of_pair: dict[tuple[int, int], int] = {}
    for d in range(encoded.n_docs):
        words[d] = 0
        first = int(encoded.doc_start[d])
        for t in range(first, int(encoded.doc_start[d + 1])):
            token = scattered(scattered(int(encoded.word[t])) + t - first)
            words[d] += token
            for e in range(int(encoded.event_start[t]), int(encoded.event_start[t + 1])):
                cell = encoded.event_cell[e]
                here = token + scattered(round(times[int(encoded.cells.label[cell])]))
                if encoded.event_weight is not None:
                    here += scattered(round(1e6 * float(encoded.event_weight[e])))
                pair = (d, int(encoded.cells.annotator[cell]))
                said[pair] = said.get(pair, 0) + scattered(here % _BITS)
    pairs = sorted(said)
    of_annotator = dict.fromkeys(range(len(encoded.annotators)), 0)
    for d, k in pairs:
        of_pair[d, k] = scattered((words[d] + said[d, k]) % _BITS)
        of_annotator[k] += scattered(of_pair[d, k])
    of_annotator = {k: scattered(total % _BITS) for k, total in of_annotator.items()}
    of_document = dict(words)
    for d, k in pairs:
        of_pair[d, k] = scattered((of_pair[d, k] + of_annotator[k]) % _BITS)
        of_document[d] += of_pair[d, k]
    of_document = {d: scattered(total % _BITS) for d, total in of_document.items()}
    of_pair = {(d, k): scattered((lot + of_document[d]) % _BITS) for (d, k), lot in of_pair.items()}
    columns = (of_annotator.values(), of_document.values(), [of_pair[pair] for pair in pairs])
    start = scattered(seed)
    return Lots(*(np.array([scattered((lot + start) % _BITS) for lot in column], np.uint64) for column in columns))


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("seed", [0, 7])
def test_lots_are_those_of_loops_over_what_was_said(seed: int, *, soft: bool) -> None:
    corpus = corpus_of(seed, soft=soft)
    encoded = encode(corpus, corpus.tagset())
    for found, expected in zip(lots_of(encoded, seed), lots_by_loops(encoded, seed), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("soft", [False, True])
def test_events_that_stay_are_those_that_are_not_gone(*, soft: bool) -> None:
    corpus = corpus_of(3, soft=soft)
    encoded = encode(corpus, corpus.tagset())
    for share in (0.0, 0.5, 1.0):
        gone = np.random.default_rng(1).random(len(encoded.event_cell)) < share
        rest = without(encoded, gone)
        token = token_of_events(encoded)[~gone]
        np.testing.assert_array_equal(token_of_events(rest), token)
        np.testing.assert_array_equal(rest.event_cell, encoded.event_cell[~gone])
        assert (rest.event_weight is None) == (not soft)
        if rest.event_weight is not None and encoded.event_weight is not None:
            np.testing.assert_array_equal(rest.event_weight, encoded.event_weight[~gone])


def test_habits_of_tokens_are_those_of_loops_over_what_others_gave() -> None:
    rng = np.random.default_rng(2)
    tags = ("O", "B-PER", "I-PER", "B-LOC")
    documents = [
        Document(
            str(n),
            ("Ada", "Ng", "sang", "."),
            {f"w{k}": tuple(tags[i] for i in rng.integers(0, 4, 4)) for k in rng.permutation(7)[:5]}
            | ({"model": tuple({"O": 0.3, "B-PER": 0.7} for _ in range(4))} if n % 2 else {}),
        )
        for n in range(20)
    ]
    corpus = Corpus(documents)
    encoded = encode(corpus, corpus.tagset())
    K, T, type_of = len(encoded.annotators), len(encoded.tagset.types), encoded.tagset.type_of
    there, marked = np.zeros((2, K, T))
    for n in range(encoded.n_tokens):
        events = range(int(encoded.event_start[n]), int(encoded.event_start[n + 1]))
        assert encoded.event_weight is not None
        cells = [encoded.event_cell[e] for e in events if encoded.event_weight[e] > 0.5]
        said = [(int(encoded.cells.annotator[c]), int(type_of[encoded.cells.label[c]])) for c in cells]
        for who, own in said:
            for kind in range(T):
                if sum(one != who and other == kind for one, other in said) >= 2:
                    there[who, kind] += 1
                    marked[who, kind] += own == kind
    everybody = (marked.sum(axis=0) + 1) / (there.sum(axis=0) + 2)
    prior = hold_out._HABIT_PRIOR
    np.testing.assert_allclose(hold_out._token_habits(encoded), (marked + prior * everybody) / (there + prior))
    assert there.min() > 0
