"""What reviewers decided on a document, put together: whose word counts, and what is in dispute.

A reviewer's later word takes the place of an earlier one; reviewers who agree are merged; an adjudication wins over
both. Where two disagree, nobody is right: the tokens in dispute, grown to whole spans on both sides, are not known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from quorate.corpus.records import Source, Tag
from quorate.corpus.tags import OUTSIDE, find_spans, goes_on, marks_span


class Review(NamedTuple):
    """Who decided (``""``: nobody says), when, what they noted, and on which version of the consensus.

    >>> Review("ann", note="a ship, not a person").adjudicated
    False
    """

    reviewer: str = ""
    time: datetime | None = None
    note: str = ""
    version: int | str | None = None
    adjudicated: bool = False


class Decision(NamedTuple):
    """What a line says of a document: one tag a token, ``None`` where it says nothing.

    >>> Decision(("B-PER", None), Source("ann.jsonl", 1), Review("ann")).review.reviewer
    'ann'
    """

    tags: tuple[Tag, ...]
    source: Source
    review: Review = Review()


class Outcome(NamedTuple):
    """What is known of a document, which of its tokens are in dispute, and whether somebody changed their mind.

    >>> Outcome(("O", None), (1,), False).disputed
    (1,)
    """

    tags: tuple[Tag, ...]
    disputed: tuple[int, ...]
    revised: bool


def by_reviewer(decisions: Iterable[Decision]) -> dict[str, list[Decision]]:
    """The decisions on a document, by who made them.

    Where no reviewer is named, a line speaks for itself: it goes by its file, the next one of that file by its place.

    >>> lines = [Decision(("O",), Source("old.jsonl", n)) for n in (1, 4)]
    >>> list(by_reviewer([*lines, Decision(("O",), Source("ann.jsonl", 1), Review("ann"))]))
    ['old.jsonl', 'old.jsonl:4', 'ann']
    """
    found: dict[str, list[Decision]] = {}
    for one in decisions:
        unnamed = one.source.path if one.source.path not in found else one.source.at()
        found.setdefault(one.review.reviewer or unnamed, []).append(one)
    return found


class LastWord(NamedTuple):
    """What a reviewer says of a document in the end, what they noted last, and whether they changed their mind.

    >>> LastWord(("O",), "", False).tags
    ('O',)
    """

    tags: tuple[Tag, ...]
    note: str
    revised: bool


def last_words(decisions: Iterable[Decision]) -> dict[str, LastWord]:
    """What each reviewer says in the end: by time or, where a decision of theirs has none, in the order given.

    >>> ann = Decision(("O", "O"), Source("a.jsonl", 1), Review("ann"))
    >>> later = Decision((None, "B-PER"), Source("a.jsonl", 2), Review("ann", note="a name"))
    >>> last_words([ann, later])
    {'ann': LastWord(tags=('O', 'B-PER'), note='a name', revised=True)}
    """
    return {name: _last_word(given) for name, given in by_reviewer(decisions).items()}


def settle(decisions: Sequence[Decision]) -> Outcome:
    """What is known of a document by all decisions on it, of which there must be one at least.

    >>> ann = Decision(("B-PER", "I-PER", "O"), Source("a.jsonl", 1), Review("ann"))
    >>> bob = Decision(("B-PER", "O", "O"), Source("b.jsonl", 1), Review("bob"))
    >>> settle([ann, bob])
    Outcome(tags=(None, None, 'O'), disputed=(0, 1), revised=False)
    >>> settle([ann, bob, Decision(("B-PER", "O", None), Source("c.jsonl", 1), Review("cat", adjudicated=True))])
    Outcome(tags=('B-PER', 'O', 'O'), disputed=(), revised=False)
    """
    blank: tuple[Tag, ...] = (None,) * len(decisions[0].tags)
    adjudications = [one for one in decisions if one.review.adjudicated]
    first = _together([one for one in decisions if not one.review.adjudicated], blank)
    last = _together(adjudications, blank)
    tags = _overruled(first.tags, last.tags)
    open_still = {position for position in first.disputed if last.tags[position] is None}
    grown = _grown(open_still.union(last.disputed), [tags])
    disputed = {position for position in grown if last.tags[position] is None}  # an adjudication wins
    known = tuple(None if position in disputed else tag for position, tag in enumerate(tags))
    return Outcome(known, tuple(sorted(disputed)), first.revised or last.revised)


def _together(decisions: Sequence[Decision], blank: tuple[Tag, ...]) -> Outcome:
    """What reviewers say who have the same rank; ``blank`` is what nobody says."""
    words = last_words(decisions).values()
    versions = [word.tags for word in words]
    given = [{tag for tag in column if tag is not None} for column in zip(blank, *versions, strict=True)]
    disputed = _grown({position for position, tags in enumerate(given) if len(tags) > 1}, versions)
    tags = tuple(None if position in disputed else next(iter(tags), None) for position, tags in enumerate(given))
    return Outcome(tags, tuple(sorted(disputed)), any(word.revised for word in words))


def _last_word(given: Sequence[Decision]) -> LastWord:
    times = [(one.review.time, number) for number, one in enumerate(given) if one.review.time is not None]
    ordered = [given[number] for _, number in sorted(times)] if len(times) == len(given) else given
    tags, note, revised = ordered[0].tags, ordered[0].review.note, False
    for later in ordered[1:]:
        revised = revised or bool(_changed(tags, later.tags))
        tags, note = _overruled(tags, later.tags), later.review.note or note
    return LastWord(tags, note, revised)


def _overruled(earlier: tuple[Tag, ...], later: tuple[Tag, ...]) -> tuple[Tag, ...]:
    """What holds when the later word counts where it says something; of an earlier span that it cuts, no rest does."""
    cut = _grown(_changed(earlier, later), [earlier])
    pairs = enumerate(zip(earlier, later, strict=True))
    return tuple(new if new is not None else None if position in cut else old for position, (old, new) in pairs)


def _changed(earlier: Sequence[Tag], later: Sequence[Tag]) -> set[int]:
    pairs = enumerate(zip(earlier, later, strict=True))
    return {position for position, (old, new) in pairs if old is not None and new is not None and old != new}


def _grown(positions: Collection[int], versions: Iterable[Sequence[Tag]]) -> set[int]:
    """The tokens, and those of every span, in any version, that holds one of them: half a span says nothing true."""
    found = set(positions)
    spans = [span for tags in versions for span in _spans(tags)] if found else []
    touched = [span for span in spans if not found.isdisjoint(span)]
    while any(not found.issuperset(span) for span in touched):
        found.update(*touched)
        touched = [span for span in spans if not found.isdisjoint(span)]
    return found


def _spans(tags: Sequence[Tag]) -> list[set[int]]:
    """The tokens of each span; a piece that began before a token of which nothing is said holds that token too."""
    if any(tag is not None and tag != OUTSIDE and not marks_span(tag) for tag in tags):
        return []  # plain labels mark no spans
    found = []
    for span in find_spans(tags):
        starts = [start for start, _ in span.parts if start > 0]
        before = {start - 1 for start in starts if tags[start - 1] is None and goes_on(str(tags[start]))}
        found.append(before.union(span.tokens))
    return found
