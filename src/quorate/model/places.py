"""Where spans are, whatever their type, and then which type each has: for crowds that dispute types.

Annotators who mark the same passage under different types agree that there is something, and a model of spans with
their types takes that for disagreement. So where types are disputed, *places* are combined first, by a model to which
all types are one; then every span has the type to which the token model, which knows types, gives most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.discontinuous import CONTINUED, is_continued
from quorate.corpus.records import Corpus, SoftTag, Tag
from quorate.corpus.tags import Invalid, TagSet, opening, split_tag
from quorate.crowd.algebra import laid_end_to_end
from quorate.crowd.encode import encode
from quorate.model.engines.protocol import Decoded
from quorate.model.prepared import Prepared

__all__ = ["known_places", "places_of", "typed_spans", "with_types", "without_types"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_PLACE = "span"  # the one type that places have
_LEAST = 1e-300  # of a share whose logarithm is taken


def without_types(corpus: Corpus) -> Corpus:
    """The same documents, in which all types of spans are one.

    >>> from quorate.corpus.records import Document
    >>> corpus = Corpus([Document("1", ("Ada", "Ng", "sang"), {"ann": ("B-PER", "I-ORG", "O")})])
    >>> without_types(corpus)["1"].annotations["ann"]
    ('B-span', 'B-span', 'O')
    """
    return Corpus(
        (
            replace(
                document,
                annotations={name: _tags(tags) for name, tags in document.annotations.items()},
                gold=None if document.gold is None else _hard(document.gold),
            )
            for document in corpus
        ),
        profiles=corpus.profiles,
    )


def _tags(tags: Sequence[Tag | SoftTag]) -> tuple[Tag | SoftTag, ...]:
    """Tags of one type in place of all; a span of another type than the one before it begins anew."""
    hard = [tag for tag in tags if tag is None or isinstance(tag, str)]
    if len(hard) == len(tags):
        return _hard(hard)
    return tuple(tag if tag is None else _place_tag(tag) if isinstance(tag, str) else _soft(tag) for tag in tags)


def known_places(known: Mapping[str, Sequence[Tag]]) -> dict[str, tuple[Tag, ...]]:
    """Known labels by document, in which all types are one."""
    return {name: _hard(tags) for name, tags in known.items()}


def _hard(tags: Sequence[Tag]) -> tuple[Tag, ...]:
    return tuple(_opened(tags))


def _opened(tags: Sequence[Tag]) -> Iterator[Tag]:
    before = ""
    for tag in tags:
        prefix, kind = split_tag(tag or "")
        if tag is None or not prefix:
            yield tag
        else:
            yield _place_tag(tag if before in ("", kind) else opening(tag))
        before = kind if prefix else ""


def _soft(tag: SoftTag) -> SoftTag:
    """Probabilities of what tags have in common."""
    sums: dict[str, float] = {}
    for name, probability in tag.items():
        sums[_place_tag(name)] = sums.get(_place_tag(name), 0.0) + probability
    return sums


def _place_tag(tag: str) -> str:
    prefix, kind = split_tag(tag)
    return f"{prefix}-{_place(kind)}" if prefix else tag


def _place(kind: str) -> str:
    """The type of a place: later pieces of an entity are told from others."""
    return _PLACE + CONTINUED if is_continued(kind) else _PLACE


def places_of(prepared: Prepared, invalid: Invalid) -> Prepared:
    """The places of a corpus that is ready for fits, ready for fits."""
    corpus, tagset, _, known = prepared
    places = TagSet.of_types(tagset.scheme, map(_place, tagset.types))
    corpus = without_types(corpus)
    if known is not None:
        known = np.where(known >= 0, _labels_of_places(tagset, places)[known], -1).astype(np.int32)
    return Prepared(corpus, places, encode(corpus, places, invalid=invalid), known)


def _labels_of_places(tagset: TagSet, places: TagSet) -> Integers:
    """``[J]`` The label of a place that each label stands for."""
    return np.array([places.index[_place_tag(label)] for label in tagset.labels], np.int64)


def with_types(where: Decoded, tokens: Decoded, tagset: TagSet, places: TagSet, doc_start: Integers) -> Decoded:
    """The consensus on places, with types as the token model has them; ``cells`` are still to be counted.

    A place has the type to which the token model gives most, as a mean over its tokens: of what it gives to all types
    there, the *share* of each. A span is as likely as its place, times that share; so are its tokens.
    """
    share, kinds = _shares(tokens.posterior, tagset, places), np.zeros(len(where.path), np.int64)
    start = np.flatnonzero(where.span_end)
    end = where.span_end[start].astype(np.int64)
    kind, of_span, means = _typed(share, places.type_of[where.path[start]], start, end, tagset, places)
    _, token = laid_end_to_end(start, end - start)
    inside = np.repeat(np.arange(len(start)), end - start)
    share[token], kinds[token] = means[inside], kind[inside]
    place = _labels_of_places(tagset, places)
    marks = tagset.type_of >= 0
    posterior = np.ascontiguousarray(where.posterior[:, place])
    posterior[:, marks] *= share[:, tagset.type_of[marks]]
    probability, document = where.span_probability.copy(), np.searchsorted(doc_start, start, side="right") - 1
    probability[start] *= of_span
    right = np.bincount(document, probability[start], len(doc_start) - 1)
    there = np.bincount(document, where.span_probability[start], len(doc_start) - 1)
    doubt = np.bincount(document, np.log(np.maximum(of_span, _LEAST)), len(doc_start) - 1)
    stated = where.stated_spans
    return tokens._replace(
        posterior=posterior,
        path=_labels(tagset, places)[kinds, where.path].astype(np.int32),
        log_probability=where.log_probability + doubt,
        span_end=where.span_end,
        span_probability=probability,
        expected_spans=where.expected_spans,
        stated_spans=stated * right / np.maximum(there, _LEAST) if len(stated) else stated,
    )


def typed_spans(
    start: Integers, end: Integers, place: Integers, posterior: Floats, tagset: TagSet, places: TagSet
) -> tuple[Integers, Floats]:
    """The type of every span (``place`` is that of its place), and its share, by the token model's ``posterior``."""
    kind, share, _ = _typed(_shares(posterior, tagset, places), place, start, end, tagset, places)
    return kind, share


def _shares(posterior: Floats, tagset: TagSet, places: TagSet) -> Floats:
    """``[N, T]`` Of what the token model gives to types of one kind of place, the share of each; all alike of none."""
    of_type = np.eye(len(tagset.types))[tagset.type_of] * (tagset.type_of >= 0)[:, None]
    mass = posterior @ of_type + _LEAST
    together = np.array([[one == other for one in _places(tagset, places)] for other in _places(tagset, places)])
    return np.asarray(mass / (mass @ together))


def _places(tagset: TagSet, places: TagSet) -> Integers:
    """``[T]`` The place of every type."""
    return np.array([places.types.index(_place(kind)) for kind in tagset.types], np.int64)


def _typed(
    share: Floats, place: Integers, start: Integers, end: Integers, tagset: TagSet, places: TagSet
) -> tuple[Integers, Floats, Floats]:
    """Of every span the type with the greatest share, that share, and those of all types ``[S, T]``."""
    first, token = laid_end_to_end(start, end - start)
    means = np.add.reduceat(share[token], first[:-1], axis=0) / (end - start)[:, None] if len(start) else share[:0]
    possible = _places(tagset, places) == place[:, None]
    kind = np.where(possible, means, -1.0).argmax(axis=1)
    return kind, np.clip(means[np.arange(len(kind)), kind], 0.0, 1.0), means


def _labels(tagset: TagSet, places: TagSet) -> Integers:
    """``[T, J']`` The label of a type that stands at a place; ``O`` stays what it is."""
    table = np.zeros((len(tagset.types), len(places.labels)), np.int64)
    index: Mapping[str, int] = tagset.index
    for row, kind in enumerate(tagset.types):
        for column, (prefix, where) in enumerate(places.parts):
            if prefix and where == _place(kind):
                table[row, column] = index[f"{prefix}-{kind}"]
    return table
