"""Sources that are silent: of a rule that knows twenty names, an ``O`` says nothing.

Someone's *coverage* is the share of what others marked, in documents that both saw, that they marked too, in whatever
way. People mark most of it, rules little. Whoever marks less than half is taken to be silent: in the votes that a fit
starts from, their ``O`` counts c / (2 − c) for a coverage of c, at which a span wins as soon as half as many marked it
as could be expected to. From there on the fit learns what an ``O`` is worth; it is the start that decides whether it
ends where nothing is true. What nobody marks stays ``O``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from quorate.choose.lots import lots_of
from quorate.corpus.profiles import Profile
from quorate.encode.algebra import document_of, joined, marked_spans, only_documents, seen_pairs
from quorate.encode.encoded import Cells, Encoded
from quorate.infer.start import FirstVotes, Start

__all__ = ["clearly_silent", "coverage", "coverage_of", "first_votes", "mostly_silent", "silent_votes"]

Floats = NDArray[np.float64]
_SILENT = 0.5  # coverage below which an O is (partly) silence
_CLEARLY_SILENT = 0.25  # coverage of a rule: people with a weak recall have more
_PRIOR = 5.0  # spans of the average annotator in everybody's coverage
_SMOOTHING = 0.1  # votes that every label has beforehand
_SMOOTHING_AMONG_SILENT = 0.02  # a lone mark must not drown in more
_MOST_DOCUMENTS = 20_000  # beyond this, more documents say nothing new


def coverage(encoded: Encoded) -> Floats:
    """``[K]`` How much of what others marked each annotator marked too; 1 in the plain scheme.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.encode.from_corpus import encode
    >>> tags = {"ann": ("B-PER", "O", "B-LOC"), "rule": ("B-PER", "O", "O")}
    >>> corpus = Corpus([Document(str(n), ("Ada", "left", "Rome"), tags) for n in range(50)])
    >>> coverage(encode(corpus, corpus.tagset())).round(1).tolist()
    [1.0, 0.5]
    """
    K = len(encoded.annotators)
    if encoded.tagset.outside is None or not K:
        return np.ones(K)
    if encoded.n_docs > _MOST_DOCUMENTS:
        encoded = only_documents(encoded, np.sort(np.argsort(lots_of(encoded).document)[:_MOST_DOCUMENTS]))
    spans, N = marked_spans(encoded), encoded.n_tokens
    seen_doc, seen_by = seen_pairs(encoded)
    mark, pair = joined(document_of(encoded, spans.start), seen_doc, encoded.n_docs)
    who = seen_by[pair]
    others = spans.who[mark] != who
    mark, who = mark[others], who[others]
    ordered = np.sort(spans.who * (N + 1) + spans.end)  # someone's spans do not overlap: in order of end and start
    starts = np.sort(spans.who * (N + 1) + spans.start)
    # Those that end behind the mark's start, less those that begin at its end or behind it.
    touching = np.searchsorted(starts, who * (N + 1) + spans.end[mark]) - np.searchsorted(
        ordered, who * (N + 1) + spans.start[mark], side="right"
    )
    met = np.bincount(who, touching > 0, minlength=K)
    total = np.bincount(who, minlength=K)
    usual = met.sum() / max(total.sum(), 1)
    return np.asarray((met + _PRIOR * usual) / (total + _PRIOR))


def silent_votes(encoded: Encoded, profiles: Mapping[str, Profile]) -> Floats:
    """``[K]`` How much an ``O`` of each counts in the first votes: 1 of those who speak up."""
    c = coverage(encoded)
    told = [name in profiles and profiles[name].abstains for name in encoded.annotators]
    return np.where((c < _SILENT) | np.array(told, np.bool_), c / (2 - c), 1.0)


def coverage_of(of_silence: Floats) -> Floats:
    """``[K]`` The coverage that made an ``O`` count so much; 1 where it counts in full."""
    return np.asarray(2 * of_silence / (1 + of_silence))


def clearly_silent(covered: Floats) -> NDArray[np.bool_]:
    """``[K]`` Whose coverage is that of a rule: below a quarter or, where most of the crowd is so, below a half.

    >>> clearly_silent(np.array([0.9, 0.8, 0.45, 0.1])).tolist(), clearly_silent(np.array([0.45, 0.1, 0.1])).tolist()
    ([False, False, False, True], [True, True, True])
    """
    most = len(covered) > 0 and float(np.median(covered)) < _CLEARLY_SILENT
    return covered < (_SILENT if most else _CLEARLY_SILENT)


def first_votes(
    encoded: Encoded,
    profiles: Mapping[str, Profile],
    start: Start,
    *,
    cells: Cells | None = None,
    of_silence: Floats | None = None,
) -> FirstVotes | None:
    """How votes count in a start by coverage; ``None`` for another start.

    ``cells`` are the corpus's own unless given, ``of_silence`` is worked out from the corpus unless it is known.
    """
    if start is not Start.COVERAGE:
        return None
    cells = encoded.cells if cells is None else cells
    of_silence = silent_votes(encoded, profiles) if of_silence is None else of_silence
    strangers = np.ones(max(cells.n_annotators - len(of_silence), 0))  # a tagger, say, speaks up
    counts = np.concatenate([of_silence, strangers])[cells.annotator]
    weight = np.where(cells.label == encoded.tagset.outside, counts, 1.0)
    return FirstVotes(weight, _SMOOTHING_AMONG_SILENT if mostly_silent(of_silence) else _SMOOTHING)


def mostly_silent(of_silence: Floats) -> bool:
    """Whether most annotators are."""
    return bool(len(of_silence)) and float(np.median(of_silence)) < 1
