"""Crowds with known truth: for tests, benchmarks, the demo, and for trying a design before paying for labels.

Two ways: :func:`crowd` lets annotators of known kinds loose on documents with gold (people miss spans, start them late,
split them); :func:`from_matrices` samples truth, words and labels from the model itself. :func:`with_copies` adds noisy
copies of somebody to any corpus, to see whether they are taken for several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Document, SoftTag, Tag, hard_tags
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, TagSet, find_pieces
from quorate.errors import InputError

__all__ = ["KINDS", "Behaviour", "crowd", "from_matrices", "with_copies"]

Floats = NDArray[np.float64]
_NEAR = 12  # tokens between two spans that someone may take for one


@dataclass(frozen=True)
class Behaviour:
    """How someone annotates; each number is a probability per gold span unless said.

    ``miss`` leaves a span out, ``confuse`` gives it another type, ``start_late``, ``start_early``, ``end_early`` and
    ``end_late`` move a boundary by one token, ``split`` cuts a span in two, ``blind_to`` are types never marked,
    ``invent`` marks a token that is in no span (per token), ``spam`` marks at random without reading (per document).
    ``vague`` moves a boundary either way (per boundary) by a geometric number of tokens with the mean ``reach``, 1 or
    more. ``join`` marks a span and the next one, if it is near and of the same type, as one.

    >>> Behaviour(miss=0.5).miss
    0.5
    """

    miss: float = 0.0
    confuse: float = 0.0
    start_late: float = 0.0
    start_early: float = 0.0
    end_early: float = 0.0
    end_late: float = 0.0
    split: float = 0.0
    invent: float = 0.0
    spam: float = 0.0
    vague: float = 0.0
    reach: float = 1.0
    join: float = 0.0
    blind_to: frozenset[str] = frozenset()


_SLIPS = Behaviour(miss=0.06, confuse=0.05, start_late=0.03, end_early=0.03, invent=0.004)

KINDS: dict[str, Behaviour] = {
    "careful": _SLIPS,
    "lazy": replace(_SLIPS, miss=0.55),
    "spammer": replace(_SLIPS, spam=1.0),
    "starts late": replace(_SLIPS, start_late=0.7),
    "splits spans": replace(_SLIPS, split=0.7),
    "misses a type": replace(_SLIPS, blind_to=frozenset({"ORG"})),
}
"""Behaviours that every crowd has, by name."""


def crowd(
    documents: Corpus, annotators: Mapping[str, Behaviour], *, per_document: int | None = None, seed: int = 0
) -> Corpus:
    """The same documents with what simulated annotators say about them; gold stays as it is.

    Each document is seen by ``per_document`` of the annotators, drawn anew for each, or by all of them.

    >>> gold = Corpus([Document("1", ("Ada", "Ng", "sang"), gold=("B-PER", "I-PER", "O"))])
    >>> crowd(gold, {"ann": Behaviour(start_late=1.0)})[0].annotations["ann"]
    ('O', 'B-PER', 'O')
    """
    tagset = TagSet.infer(tag for document in documents for tag in document.gold or () if tag is not None)
    names = sorted(annotators)
    annotated = []
    for document, rng in zip(documents, np.random.default_rng(seed).spawn(len(documents)), strict=True):
        if document.gold is None:
            raise InputError("a simulated crowd needs gold tags", where=document.where())
        seen_by = names if per_document is None else sorted(rng.choice(names, per_document, replace=False))
        gold = find_pieces(document.gold)
        length = len(document.tokens)
        annotations = {
            str(name): tuple(tagset.tags(_marked(gold, length, tagset.types, annotators[name], rng), length))
            for name in seen_by
        }
        annotated.append(replace(document, annotations=annotations))
    return Corpus(annotated)


def _marked(
    gold: Sequence[Span], length: int, types: Sequence[str], behaviour: Behaviour, rng: np.random.Generator
) -> list[Span]:
    """The spans that someone of this behaviour marks."""
    if rng.random() < behaviour.spam:
        return _random_spans(length, types, rng)
    spans: list[Span] = []
    for span in _joined(gold, behaviour, rng):
        start, end, label = span.start, span.end, span.label
        if label in behaviour.blind_to or rng.random() < behaviour.miss:
            continue
        if rng.random() < behaviour.confuse:
            label = str(rng.choice([kind for kind in types if kind != label] or [label]))
        if rng.random() < behaviour.start_late and end - start > 1:
            start += 1
        if rng.random() < behaviour.end_early and end - start > 1:
            end -= 1
        if rng.random() < behaviour.start_early:
            start = max(start - 1, 0)
        if rng.random() < behaviour.end_late:
            end = min(end + 1, length)
        if behaviour.vague > 0:
            start, end = _vague(start, end, length, behaviour, rng)
        if rng.random() < behaviour.split and end - start > 1:
            cut = int(rng.integers(start + 1, end))
            spans += [Span(start, cut, label), Span(cut, end, label)]
        else:
            spans.append(Span(start, end, label))
    invented = [
        Span(position, position + 1, str(rng.choice(types)))
        for position in np.flatnonzero(rng.random(length) < behaviour.invent).tolist()
    ]
    return _without_overlaps([*spans, *invented])


def _joined(gold: Sequence[Span], behaviour: Behaviour, rng: np.random.Generator) -> list[Span]:
    """The gold spans, of which some make one with the next; no number is drawn for those who never do that."""
    if not behaviour.join > 0:
        return list(gold)
    spans: list[Span] = []
    rest = list(gold)
    while rest:
        span = rest.pop(0)
        near = bool(rest) and rest[0].label == span.label and rest[0].start - span.end <= _NEAR
        if rng.random() < behaviour.join and near:
            span = Span(span.start, rest.pop(0).end, span.label)
        spans.append(span)
    return spans


def _vague(start: int, end: int, length: int, behaviour: Behaviour, rng: np.random.Generator) -> tuple[int, int]:
    """The boundaries of a span, each perhaps moved; at least one token is left."""
    bounds = [start, end]
    for side in (0, 1):
        if rng.random() < behaviour.vague:
            bounds[side] += int(rng.geometric(1 / behaviour.reach)) * (1 if rng.random() < 0.5 else -1)
    start = min(max(bounds[0], 0), length - 1)
    return start, max(min(bounds[1], length), start + 1)


def _random_spans(length: int, types: Sequence[str], rng: np.random.Generator) -> list[Span]:
    starts = np.flatnonzero(rng.random(length) < 0.15).tolist()
    return _without_overlaps(
        [Span(s, min(s + int(rng.integers(1, 4)), length), str(rng.choice(types))) for s in starts]
    )


def _without_overlaps(spans: Sequence[Span]) -> list[Span]:
    """The spans from left to right, without those that begin inside an earlier one."""
    kept: list[Span] = []
    for span in sorted(spans):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def with_copies(corpus: Corpus, annotator: str, times: int = 5, *, jitter: float = 0.1, seed: int = 0) -> Corpus:
    """The same corpus with noisy copies of an annotator, ``NAME+1``, ``NAME+2``, …, wherever they labelled something.

    Of the annotator's spans each copy spoils a share ``jitter``, and not the same as the other copies: it leaves them
    out, gives them another type, or moves a bound by one token. The rest is as it is. In the plain scheme labels are
    changed. A copy has the profile of the annotator.

    >>> corpus = Corpus([Document("1", ("Ada", "Ng", "sang"), {"ann": ("B-PER", "I-PER", "O")})])
    >>> sorted(with_copies(corpus, "ann", 2)[0].annotations)
    ['ann', 'ann+1', 'ann+2']
    >>> with_copies(corpus, "ann", 1, jitter=1.0)[0].annotations["ann+1"]
    ('B-PER', 'I-PER', 'I-PER')
    """
    if annotator not in corpus.annotators:
        raise InputError(f"annotator {annotator!r} labelled nothing, so there is nothing to copy")
    if not 0 <= jitter <= 1:
        raise InputError(f"jitter must be from 0 to 1, not {jitter:g}")
    names = [f"{annotator}+{number + 1}" for number in range(times)]
    taken = sorted(set(names) & set(corpus.annotators))
    if taken:
        raise InputError(f"there is an annotator {taken[0]!r} already (copy somebody else)")
    tagset = corpus.tagset()
    documents = []
    for document, rng in zip(corpus, np.random.default_rng(seed).spawn(len(corpus)), strict=True):
        sequence = document.annotations.get(annotator)
        jittered = {} if sequence is None else {name: _jittered(sequence, tagset, jitter, rng) for name in names}
        documents.append(replace(document, annotations={**document.annotations, **jittered}))
    profiles = corpus.profiles
    if annotator in profiles:
        profiles = profiles | dict.fromkeys(names, profiles[annotator])
    return Corpus(documents, notes=corpus.notes, profiles=profiles)


def _jittered(
    sequence: Sequence[Tag | SoftTag], tagset: TagSet, jitter: float, rng: np.random.Generator
) -> tuple[Tag | SoftTag, ...]:
    """What someone said, with a share of their spans spoiled (in the plain scheme, of their labels)."""
    tags, given = hard_tags(sequence), list(sequence)
    if tagset.outside is None:
        for place in np.flatnonzero(rng.random(len(tags)) < jitter).tolist():
            if tags[place] is not None:
                given[place] = str(rng.choice([label for label in tagset.labels if label != tags[place]]))
        return tuple(given)
    for span in find_pieces(tags):
        if rng.random() < jitter:
            new = _spoiled(span, hard_tags(given), tagset.types, rng)
            around = slice(max(span.start - 1, 0), span.end + 1)
            written = tagset.tags(new, len(tags))
            for place in range(len(tags))[around]:
                if written[place] != OUTSIDE or span.start <= place < span.end:
                    given[place] = written[place]
    return tuple(given)


def _spoiled(span: Span, tags: Sequence[Tag], types: Sequence[str], rng: np.random.Generator) -> list[Span]:
    """The span with one mistake, or nothing; a bound moves only to where nothing else is marked."""
    start, end, label = span.start, span.end, span.label
    moves = [
        Span(first, last, label)
        for first, last in ((start - 1, end), (start, end + 1), (start + 1, end), (start, end - 1))
        if first < last
        and first >= 0
        and last <= len(tags)
        and all(tags[place] == OUTSIDE for place in (first, last - 1) if not start <= place < end)
    ]
    others = [Span(start, end, kind) for kind in types if kind != label]
    mistakes = [those for those in (moves, others) if those]
    which = int(rng.integers(len(mistakes) + 1))
    return [] if which == len(mistakes) else [mistakes[which][rng.integers(len(mistakes[which]))]]


def from_matrices(
    tagset: TagSet,
    matrices: Mapping[str, Floats],
    *,
    transitions: Floats,
    n_documents: int,
    length: int,
    words: Floats | None = None,
    per_document: int | None = None,
    seed: int = 0,
) -> Corpus:
    """A corpus sampled from the model: a Markov chain of truths, words and labels given them; the truth is its gold.

    ``matrices[name][ι, j, i]`` is p(label i | previous label ι, truth j), with one ι for all, or one for each label (in
    the plain scheme one more, for the start). ``transitions`` is ``[J, J]``; the first label follows ``O`` (plain: the
    first). ``words`` is ``[J, V]``; without it every token has the same word.

    >>> tagset = TagSet.infer(["O", "B-X"])
    >>> corpus = from_matrices(tagset, {"ann": np.eye(3)[None]}, transitions=np.full((3, 3), 1 / 3),
    ...     n_documents=2, length=3)
    >>> corpus[0].gold == corpus[0].annotations["ann"]
    True
    """
    J = len(tagset.labels)
    start = J if tagset.outside is None else tagset.outside
    names = sorted(matrices)
    documents = []
    for number, rng in enumerate(np.random.default_rng(seed).spawn(n_documents)):
        truth = [_draw(rng, transitions[0 if tagset.outside is None else start])]
        while len(truth) < length:
            truth.append(_draw(rng, transitions[truth[-1]]))
        seen_by = names if per_document is None else sorted(rng.choice(names, per_document, replace=False))
        annotations = {}
        for name in seen_by:
            matrix, previous, labels = matrices[name], start, []
            for label in truth:
                previous = _draw(rng, matrix[previous if len(matrix) > 1 else 0, label])
                labels.append(tagset.labels[previous])
            annotations[str(name)] = tuple(labels)
        tokens = tuple("w" if words is None else f"w{_draw(rng, words[label])}" for label in truth)
        gold = tuple(tagset.labels[label] for label in truth)
        documents.append(Document(str(number + 1), tokens, annotations, gold))
    return Corpus(documents)


def _draw(rng: np.random.Generator, probabilities: Floats) -> int:
    cumulative = np.cumsum(probabilities)
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
