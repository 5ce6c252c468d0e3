"""The documents of a report: the least certain first, each with everybody's version and why it came out so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from quorate.corpus.records import Document, Tag, hard_tags
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme
from quorate.report.content import DocumentRow, Explanation
from quorate.report.influence import Influence, influences
from quorate.result.consensus import Consensus
from quorate.result.result import Result

if TYPE_CHECKING:
    from quorate.estimators.capabilities import Explains

_MOST_TOKENS_EXPLAINED = 12  # plain tags: every token is a decision, only the least certain are explained
_SAME = 1e-6


class Codes:
    """Numbers for tags, so that a tag costs a digit or two in the page; tags that only gold has come last.

    >>> codes = Codes(("O", "B-X"))
    >>> codes.of(("B-X", None, "B-Y")), codes.tags
    ([1, -1, 2], ['O', 'B-X', 'B-Y'])
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self.tags = list(labels)
        self._code: dict[Tag, int] = {tag: code for code, tag in enumerate(labels)} | {None: -1}

    def of(self, tags: Sequence[Tag]) -> list[int]:
        """A number for every tag, −1 where it is missing."""
        for tag in tags:
            if tag not in self._code:
                self._code[tag] = len(self.tags)
                self.tags.append(str(tag))
        return [self._code[tag] for tag in tags]


def chosen_documents(result: Result, most: int | None, known: Collection[str] = ()) -> list[int]:
    """Positions of the ``most`` least certain documents (``None``: of all), the least certain first.

    Those whose labels are known come last: there is nothing to doubt.

    >>> import quorate
    >>> result = quorate.aggregate(quorate.sample(), "bsc-cm")
    >>> first, second = chosen_documents(result, 2)
    >>> bool(result.confidence[first] <= result.confidence[second])
    True
    """
    settled = np.array([document.id in known for document in result.corpus], np.bool_)
    order = np.lexsort((np.arange(len(result)), result.confidence, settled))
    return [int(position) for position in order[: len(result) if most is None else most]]


def positions_beyond(result: Result, ids: Sequence[str], chosen: Collection[int]) -> list[int]:
    """Positions of the documents with these ids that were not chosen, in their order.

    >>> import quorate
    >>> result = quorate.aggregate(quorate.sample(), "mv")
    >>> positions_beyond(result, [result.corpus[n].id for n in (3, 1)], [1])
    [3]
    """
    position, there = {document.id: n for n, document in enumerate(result.corpus)}, set(chosen)
    return [position[name] for name in ids if position[name] not in there]


def document_rows(
    result: Result,
    positions: Sequence[int],
    names: Sequence[str],
    codes: Codes,
    *,
    model: Explains | None = None,
    votes: Result | None = None,
    known: Collection[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> list[DocumentRow]:
    """The documents at these positions.

    ``names`` gives annotators their numbers, ``codes`` tags theirs. With a ``model`` each says why; with ``votes`` it
    has the majority's version.
    """
    number, is_plain = {name: k for k, name in enumerate(names)}, result.tagset.scheme is Scheme.PLAIN
    chosen, pieces = [result[position] for position in positions], [result.pieces(position) for position in positions]
    asked = [_asked(result, one, own) for one, own in zip(chosen, pieces, strict=True)]
    explained = [one.document.id not in known and bool(one.document.tokens) for one in chosen]
    reasons: Iterator[Influence] = iter(())
    if model is not None:
        wanted = [d for d, why in enumerate(explained) if why]
        reasons = influences(model, result, [positions[d] for d in wanted], [asked[d] for d in wanted])
    rows = []
    columns = zip(positions, chosen, pieces, asked, explained, strict=True)
    for done, (position, one, own, spans, why) in enumerate(columns, 1):
        document = one.document
        reason = next(reasons, None) if why else None
        rows.append(
            DocumentRow(
                document.id,
                _rounded(one.confidence),
                document.tokens,
                codes.of(one.tags),
                [_rounded(value) for value in one.token_confidence.tolist()],
                [(piece.start, piece.end, piece.label, _rounded(piece.sure)) for piece in own],
                [(number[name], codes.of(hard_tags(tags))) for name, tags in sorted(document.annotations.items())],
                None if document.gold is None else codes.of(document.gold),
                document.split,
                _gaps(document),
                document.id in known or None,
                None if votes is None else codes.of(votes[position].tags),
                _why(reason, spans, own, number, is_plain=is_plain)
                if reason is not None and _agrees(own, reason, spans)
                else None,
            )
        )
        if progress is not None:
            progress(done, len(positions))
    return rows


def _rounded(value: float) -> float:
    return round(value, 4)


def _gaps(document: Document) -> list[str] | None:
    """What stands in the text before, between and after the tokens; ``None`` where that is not known."""
    if document.text is None or not document.offsets:
        return None
    edges = [0, *(edge for offset in document.offsets for edge in offset), len(document.text)]
    return [document.text[edges[2 * n] : edges[2 * n + 1]] for n in range(len(document.tokens) + 1)]


def _asked(result: Result, one: Consensus, pieces: Sequence[Span]) -> list[Span]:
    """What is worth explaining: the spans of the consensus, then those that somebody marked and it does not have.

    Spans are explained as the model knows them: every piece of a discontinuous one by itself.
    """
    document = one.document
    given = [hard_tags(tags) for tags in document.annotations.values()]
    if result.tagset.scheme is Scheme.PLAIN:
        least = np.argsort(one.token_confidence, kind="stable")[:_MOST_TOKENS_EXPLAINED]
        return [Span(int(t), int(t) + 1, one.tags[int(t)]) for t in np.sort(least)]
    own = [piece.bare for piece in pieces]
    others = {piece for tags in given for piece in result.tagset.pieces(tags)} - set(own)
    return own + sorted(others)


def _agrees(own: Sequence[Span], reason: Influence, spans: Sequence[Span]) -> bool:
    """Whether the explanation starts from the probabilities given out: not so if something else had a say."""
    given = {piece.bare: piece.sure for piece in own}
    pairs = [(given[span], p) for span, p in zip(spans, reason.with_all.tolist(), strict=True) if span in given]
    return all(abs(stated - found) <= _SAME for stated, found in pairs)


def _why(
    reason: Influence, spans: Sequence[Span], own: Sequence[Span], number: dict[str, int], *, is_plain: bool
) -> Explanation:
    """Of every span: with all, with nobody, and without each annotator; and what would change without each."""
    now = set(reason.spans_with_all)
    # Which spans are given out may hang on other documents too: only changes to these are shown.
    given = now if is_plain else {piece.bare for piece in own}
    return Explanation(
        [number[name] for name in reason.annotators],
        [(*_listed(span), _rounded(p)) for span, p in zip(spans, reason.with_all.tolist(), strict=True)],
        [_rounded(p) for p in reason.with_none.tolist()],
        [[_rounded(p) for p in row] for row in reason.without.T.tolist()],
        [
            (sorted(map(_listed, (now - set(then)) & given)), sorted(map(_listed, set(then) - now - given)))
            for then in reason.spans_without
        ],
    )


def _listed(span: Span) -> tuple[int | str, ...]:
    return span.start, span.end, span.label
