"""The line of a consensus that someone has corrected: its tags and its spans must still say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quorate.corpus.offsets import Unit
from quorate.corpus.records import Tag, hard_tags
from quorate.corpus.spans import CharSpan, Span
from quorate.corpus.tags import OUTSIDE, find_spans, marks_span
from quorate.errors import InputError
from quorate.formats.marked import (
    PIECES_DROPPED,
    SPANS_DROPPED,
    SPANS_OTHER_WORDS,
    SPANS_OVERLAPPING,
    Marked,
    Words,
    placed,
    tagged,
)
from quorate.formats.notes import Notes, some

_DOUBTFUL = {  # what would do for one voice among many, and is refused where it would be certain
    SPANS_OVERLAPPING: ("overlap", "keep one of them"),
    SPANS_DROPPED: ("hold no token", "correct their offsets, or leave them out"),
    PIECES_DROPPED: ("have pieces that hold no token", "correct their offsets, or leave them out"),
    SPANS_OTHER_WORDS: ("do not hold the words given with them", "correct their offsets, or their text"),
}


def tags_of_spans(marked: Marked, words: Words) -> tuple[tuple[str, ...], tuple[Tag, ...]]:
    """Tokens and tags of a document whose spans are its gold; those that cannot all be right are refused."""
    certain = replace(marked, annotations={}, gold=[mark._replace(confidence=None) for mark in marked.gold or ()])
    notes = Notes()
    laid = placed(certain, marked.unit or Unit.CODE_POINTS, words, notes)
    tags = hard_tags(tagged(laid.gold or (), len(laid.document.tokens), notes))
    for sentence, (what, remedy) in _DOUBTFUL.items():
        if sentence in notes:
            raise InputError(f"spans that {what} cannot be known labels ({remedy})", where=marked.where())
    tokens = laid.document.tokens
    if marked.text is None and any(_other_words(mark, tokens) for mark in marked.gold or ()):
        what, remedy = _DOUBTFUL[SPANS_OTHER_WORDS]
        raise InputError(f"spans that {what} cannot be known labels ({remedy})", where=marked.where())
    return tokens, tags


def _other_words(mark: CharSpan, tokens: Sequence[str]) -> bool:
    """Whether a span of tokens came with words that are not its own; blanks do not count, as tools differ in them."""
    own = "".join(token for start, end in mark.parts for token in tokens[start:end])
    return mark.text is not None and "".join(mark.text.split()) != "".join(own.split())


def refuse_contradiction(
    tags: Sequence[Tag], marked: Marked, words: Words, own: Sequence[Span | None], field: str = "tags"
) -> None:
    """Raise :class:`InputError` if a document's spans, its gold, are not those of its tags, which stand in ``field``.

    ``own`` are the places in tokens that the spans give themselves, where they do. Where a tag is ``None``, spans
    may say anything; plain labels mark no spans.

    >>> from quorate.corpus.records import Source
    >>> from quorate.corpus.spans import CharSpan
    >>> marked = Marked("1", None, {}, Source("a.jsonl", 3), [CharSpan(0, 1, "PER")], tokens=["Ada", "sang"])
    >>> refuse_contradiction(["B-PER", "O"], marked, Words(), [None])
    >>> refuse_contradiction(["O", "O"], marked, Words(), [None])
    Traceback (most recent call last):
    quorate.errors.InputError: a.jsonl:3: document '1': 'tags' and 'spans' contradict each other: ...
    """
    if any(tag is not None and tag != OUTSIDE and not marks_span(tag) for tag in tags):
        return
    laid = placed(marked, marked.unit or Unit.CODE_POINTS, words, Notes())
    by_tags = {span for span in find_spans(tags) if not _beside_unknown(span, tags)}
    by_spans = {span.bare for span in laid.gold or ()} | {span for span in own if span is not None}
    by_spans = {span for span in by_spans if not _beside_unknown(span, tags)}
    told = [
        f"{span.label}, token {span.start + 1} to {span.end}, in '{field if span in by_tags else 'spans'}' alone"
        for span in sorted(by_tags ^ by_spans)
    ]
    if told:
        raise InputError(
            f"'{field}' and 'spans' contradict each other: {some(told)} "
            "(correct both, or leave out the one that does not hold)",
            where=marked.where(),
        )


def _beside_unknown(span: Span, tags: Sequence[Tag]) -> bool:
    """Whether a span holds, or touches, a tag that is not known."""
    return None in tags[max(span.start - 1, 0) : span.end + 1]
