"""Discontinuous spans in tags: a later piece of an entity is a span of a type of its own, the label with a ``…``.

``B-ADR O O B-ADR…`` is one entity of two pieces. So a sequence of tags holds discontinuous spans, and so does every
model of sequences and every format of tags. A piece goes on with the last entity of its label that began before it; one
that has none before it is an entity by itself. What this cannot hold are two entities of one label that are woven into
each other: :func:`clash` says of which two spans that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from quorate.corpus.spans import Span

CONTINUED = "…"
"""What follows the label of an entity's later pieces."""


def is_continued(label: str) -> bool:
    """Whether a label is that of an entity's later pieces.

    >>> is_continued("ADR…"), is_continued("ADR"), is_continued("…")
    (True, False, False)
    """
    return label.endswith(CONTINUED) and label != CONTINUED


def whole_label(label: str) -> str:
    """The label of the entity that a piece is of.

    >>> whole_label("ADR…"), whole_label("ADR")
    ('ADR', 'ADR')
    """
    return label.removesuffix(CONTINUED) if is_continued(label) else label


def in_pieces(spans: Iterable[Span]) -> list[Span]:
    """Every piece as a span by itself, from left to right; each is as sure as its entity.

    >>> in_pieces([Span(0, 5, "ADR", pieces=((0, 1), (4, 5))), Span(2, 3, "DRUG")])
    [Span(start=0, end=1, label='ADR'), Span(start=2, end=3, label='DRUG'), Span(start=4, end=5, label='ADR…')]
    """
    given = list(spans)
    if not any(span.pieces for span in given):
        return given
    pieces = [
        Span(start, end, span.label + CONTINUED if number else span.label, span.confidence, span.layer)
        for span in given
        for number, (start, end) in enumerate(span.parts)
    ]
    return sorted(pieces, key=lambda piece: (piece.start, piece.end))


def joined(spans: Sequence[Span], confidence: Callable[[list[float]], float] = min) -> list[Span]:
    """The entities whose pieces these are: what :func:`in_pieces` took apart, and all others as they are.

    ``confidence`` is that of an entity, from those of its pieces, where they have any: where it was stated of the
    entity, each piece has it.

    >>> joined([Span(0, 1, "ADR"), Span(2, 3, "DRUG"), Span(4, 5, "ADR…")])
    [Span(start=0, end=5, label='ADR', pieces=((0, 1), (4, 5))), Span(start=2, end=3, label='DRUG')]
    >>> joined([Span(4, 5, "ADR…")])
    [Span(start=4, end=5, label='ADR')]
    """
    if not any(map(is_continued, {span.label for span in spans})):
        return list(spans)
    entities: list[list[Span]] = []
    last: dict[tuple[str, str], list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        key = (span.layer, whole_label(span.label))
        if is_continued(span.label) and key in last:
            last[key].append(span)
        else:
            last[key] = [span]
            entities.append(last[key])
    return [_entity(pieces, confidence) for pieces in entities]


def _entity(pieces: list[Span], confidence: Callable[[list[float]], float]) -> Span:
    first = pieces[0]
    if len(pieces) == 1:
        return first._replace(label=whole_label(first.label))
    stated = [piece.confidence for piece in pieces if piece.confidence is not None]
    parts = [part for piece in pieces for part in piece.parts]
    return Span.of_pieces(parts, whole_label(first.label), confidence(stated) if stated else None, first.layer)


def clash(one: Span, other: Span) -> bool:
    """Whether one sequence of tags cannot hold both: they share a token, or are of one label and woven into each other.

    >>> apart = Span(0, 5, "ADR", pieces=((0, 1), (4, 5)))
    >>> clash(apart, Span(2, 3, "ADR")), clash(apart, Span(2, 3, "DRUG"))
    (True, False)
    """
    if one.label == other.label:
        return one.start < other.end and other.start < one.end
    return one.overlaps(other)
