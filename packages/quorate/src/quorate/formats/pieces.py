"""Pieces that a file gives as spans of their own, with something between them that says that they are one entity."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from quorate.corpus.spans import CharSpan

CONTINUES = "continues"
"""How people name what joins two pieces of one span: a relation, or a link."""

NOT_ALIKE = "{} {time|times} 'continues' joined what are not two spans of one label, and was skipped"


class Joining:
    """The spans of one reader, each with an id by which others can be joined to it.

    >>> joining = Joining()
    >>> joining.add("a", CharSpan(0, 6, "ADR", "muscle"))
    >>> joining.add("b", CharSpan(17, 21, "ADR", "pain"))
    >>> joining.join("a", "b"), joining.join("a", "c")
    (True, False)
    >>> [(span.text, span.pieces) for span in joining.spans()]
    [('muscle pain', ((0, 6), (17, 21)))]
    """

    def __init__(self) -> None:
        self._entities: list[list[CharSpan]] = []
        self._of: dict[Hashable, dict[tuple[str, str], list[CharSpan]]] = {}

    def add(self, id: Hashable, span: CharSpan) -> None:
        """Take in a span; a region of several labels has several of one id."""
        pieces = [span]
        self._entities.append(pieces)
        self._of.setdefault(id, {})[span.layer, span.label] = pieces

    def join(self, id: Hashable, other: Hashable) -> bool:
        """Make one of the spans with these ids, for every label that both have; whether there is any."""
        one, two = self._of.get(id, {}), self._of.get(other, {})
        shared = one.keys() & two.keys() if id is not None and id != other else set()
        for label in shared:
            kept, gone = one[label], two[label]
            if kept is not gone:
                kept += gone
                self._entities = [pieces for pieces in self._entities if pieces is not gone]
                for labels in self._of.values():
                    if labels.get(label) is gone:
                        labels[label] = kept
        return bool(shared)

    def spans(self) -> list[CharSpan]:
        """All spans, in the order in which their first pieces came."""
        return [_entity(pieces) for pieces in self._entities]


def _entity(pieces: Sequence[CharSpan]) -> CharSpan:
    """The span of these pieces: its words are theirs, and it is as sure as the least sure of them."""
    first, *others = sorted(pieces, key=lambda piece: (piece.start, piece.end))
    if not others:
        return first
    words = [piece.text for piece in (first, *others) if piece.text is not None]
    scores = [piece.confidence for piece in pieces if piece.confidence is not None]
    return first._replace(
        end=max(piece.end for piece in pieces),
        text=" ".join(words) if len(words) == len(pieces) else None,
        confidence=min(scores, default=None),
        pieces=tuple((piece.start, piece.end) for piece in (first, *others)),
    )
