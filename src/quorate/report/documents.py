"""The documents of a report: the least certain first, each with everybody's version and why it came out so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.corpus.records import Document, Tag, hard_tags
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme
from quorate.report.influence import Influence, influences
from quorate.result.consensus import Consensus
from quorate.result.result import Result

if TYPE_CHECKING:
    from quorate.estimators.capabilities import Explains

__all__ = ["Codes", "chosen_documents", "document_records"]

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


def document_records(
    result: Result,
    positions: Sequence[int],
    names: Sequence[str],
    codes: Codes,
    *,
    model: Explains | None = None,
    votes: Result | None = None,
    known: Collection[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """The documents at these positions as plain records.

    ``names`` gives annotators their numbers, ``codes`` tags theirs. With a ``model`` each record says why; with
    ``votes`` it has the majority's version.
    """
    number = {name: k for k, name in enumerate(names)}
    chosen = [result[position] for position in positions]
    asked = [_asked(result, one) for one in chosen]
    explained = [one.document.id not in known and bool(one.document.tokens) for one in chosen]
    reasons: Iterator[Influence] = iter(())
    if model is not None:
        wanted = [(one.document, spans) for one, spans, why in zip(chosen, asked, explained, strict=True) if why]
        reasons = influences(model, [document for document, _ in wanted], [spans for _, spans in wanted])
    records = []
    for done, (position, one, spans, why) in enumerate(zip(positions, chosen, asked, explained, strict=True), 1):
        document = one.document
        record: dict[str, Any] = {
            "id": document.id,
            "confidence": _rounded(one.confidence),
            "tokens": list(document.tokens),
            "tags": codes.of(one.tags),
            "sure": [_rounded(value) for value in one.token_confidence.tolist()],
            "spans": [[span.start, span.end, span.label, _rounded(span.sure)] for span in one.spans],
            "said": [[number[name], codes.of(hard_tags(tags))] for name, tags in sorted(document.annotations.items())],
        }
        record |= _optional(document, codes)
        if document.id in known:
            record["known"] = True
        if votes is not None:
            record["vote"] = codes.of(votes[position].tags)
        reason = next(reasons, None) if why else None
        if reason is not None and _agrees(one, reason, spans):
            record["why"] = _why(reason, spans, number)
        records.append(record)
        if progress is not None:
            progress(done, len(positions))
    return records


def _rounded(value: float) -> float:
    return round(value, 4)


def _optional(document: Document, codes: Codes) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if document.gold is not None:
        out["gold"] = codes.of(document.gold)
    if document.split is not None:
        out["split"] = document.split
    if document.text is not None and document.offsets is not None and document.offsets:
        edges = [0, *(edge for offset in document.offsets for edge in offset), len(document.text)]
        out["gaps"] = [document.text[edges[2 * n] : edges[2 * n + 1]] for n in range(len(document.tokens) + 1)]
    return out


def _asked(result: Result, one: Consensus) -> list[Span]:
    """What is worth explaining: the spans of the consensus, then those that somebody marked and it does not have."""
    document = one.document
    said = [hard_tags(tags) for tags in document.annotations.values()]
    if result.tagset.scheme is Scheme.PLAIN:
        least = np.argsort(one.token_confidence, kind="stable")[:_MOST_TOKENS_EXPLAINED]
        return [Span(int(t), int(t) + 1, one.tags[int(t)]) for t in np.sort(least)]
    own = [span.bare for span in one.spans]
    others = {span for tags in said for span in result.tagset.spans(tags)} - set(own)
    return own + sorted(others)


def _agrees(one: Consensus, reason: Influence, spans: Sequence[Span]) -> bool:
    """Whether the explanation starts from the probabilities given out: not so if something else had a say."""
    given = {span.bare: span.sure for span in one.spans}
    pairs = [(given[span], p) for span, p in zip(spans, reason.with_all.tolist(), strict=True) if span in given]
    return all(abs(stated - found) <= _SAME for stated, found in pairs)


def _why(reason: Influence, spans: Sequence[Span], number: dict[str, int]) -> dict[str, Any]:
    """Of every span: with all, with nobody, and without each annotator; and what would change without each."""
    now = set(reason.spans_with_all)
    return {
        "who": [number[name] for name in reason.annotators],
        "spans": [[*_listed(span), _rounded(p)] for span, p in zip(spans, reason.with_all.tolist(), strict=True)],
        "none": [_rounded(p) for p in reason.with_none.tolist()],
        "without": [[_rounded(p) for p in row] for row in reason.without.T.tolist()],
        "changes": [
            [sorted(map(_listed, now - set(then))), sorted(map(_listed, set(then) - now))]
            for then in reason.spans_without
        ],
    }


def _listed(span: Span) -> list[Any]:
    return [span.start, span.end, span.label]
