"""Where a text holds the words that somebody says of it: mentions without offsets, and the text written once more.

Words are looked for as they stand, then without regard to case, blanks and kinds of quotes and dashes, then without the
punctuation around them; they begin and end where words do. A text that was written once more is aligned with the true
one word by word.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from typing import NamedTuple

from quorate.corpus.spans import CharSpan
from quorate.corpus.tokens import Places, tokenize

_ALIKE = str.maketrans(dict.fromkeys('‘’‚‛′`´"“”„‟″«»', "'") | dict.fromkeys("‐‑‒–—―−", "-"))
# Scripts that put no blanks between words, or write particles on to them: names begin and end inside a run of letters.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


class Mention(NamedTuple):
    """Words that are said to be a span, and where, if that was said: characters of the text, end excluded."""

    words: str
    label: str
    confidence: float | None = None
    place: tuple[int, int] | None = None


class Found(NamedTuple):
    """The spans of one answer, and what went otherwise than it says.

    ``lost`` are words that the text does not hold, ``surplus`` those that were listed more often than they occur;
    ``spread`` were listed once and occur several times, ``moved`` were not where they were said to be.
    """

    spans: list[CharSpan]
    lost: list[str]
    surplus: list[str]
    spread: list[str]
    moved: list[str]


class Rewriting(NamedTuple):
    """A text that was written once more, aligned with the true one.

    ``starts`` and ``ends`` give the true place of characters that begin and end something; ``missing`` is how many
    words of the true text have no counterpart, of ``length``, and ``tail`` how many after the last that has one;
    ``matched`` are the written words that have one.
    """

    starts: dict[int, int]
    ends: dict[int, int]
    missing: int
    tail: int
    length: int
    matched: list[tuple[int, int]]


class _Folded(NamedTuple):
    """A text without blanks and without regard to case; ``at[n]`` is the character of the text that n is of."""

    text: str
    at: list[int]


@lru_cache(maxsize=4096)
def _fold(character: str) -> str:
    """What a character is compared as; nothing for blanks and what cannot be seen."""
    plain = unicodedata.normalize("NFKD", character.translate(_ALIKE).casefold())
    return "".join(one for one in plain if not one.isspace() and unicodedata.category(one) not in ("Cf", "Cc"))


def _folded(text: str) -> _Folded:
    pieces = [_fold(character) for character in text]
    return _Folded("".join(pieces), [place for place, piece in enumerate(pieces) for _ in piece])


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")


def _cuts_word(text: str, place: int) -> bool:
    """Whether a place in a text is inside of a word.

    >>> _cuts_word("Ada sang", 2), _cuts_word("Ada sang", 3), _cuts_word("東京タワー", 2)
    (True, False, False)
    """
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if not (_is_of_word(before) and _is_of_word(after)):
        return False
    return unicodedata.category(after).startswith("M") or not (_UNSPACED.match(before) or _UNSPACED.match(after))


class Page:
    """A text in which words are looked for.

    >>> Page("Ada Ng met ADA.").places("ada")
    [(0, 3), (11, 14)]
    >>> Page("The “Blue  Note”, Adams").places('"blue note"'), Page("Adams").places("Ada")
    ([(4, 16)], [])
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[str, list[tuple[int, int]]] = {}

    @cached_property
    def _folded(self) -> _Folded:
        return _folded(self.text)

    @cached_property
    def tokens(self) -> Places:
        """The words of the text, by the fixed rule."""
        return tokenize(self.text)

    def places(self, words: str) -> list[tuple[int, int]]:
        """Where the text holds these words, in order, none over another."""
        if words not in self._found:
            self._found[words] = (
                list(self._exact(words.strip())) or list(self._alike(words)) or list(self._alike(_unpunctuated(words)))
            )
        return self._found[words]

    def _exact(self, words: str) -> Iterator[tuple[int, int]]:
        start = self.text.find(words) if words else -1
        while start >= 0:
            end = start + len(words)
            whole = not _cuts_word(self.text, start) and not _cuts_word(self.text, end)
            if whole:
                yield start, end
            start = self.text.find(words, end if whole else start + 1)

    def _alike(self, words: str) -> Iterator[tuple[int, int]]:
        folded, wanted = self._folded, _folded(words).text
        first = folded.text.find(wanted) if wanted else -1
        while first >= 0:
            last = first + len(wanted)
            place = self._whole(first, last)
            if place is not None:
                yield place
            first = folded.text.find(wanted, first + 1 if place is None else last)

    def _whole(self, first: int, last: int) -> tuple[int, int] | None:
        """The place of folded characters, unless they cut a word, or what was one character."""
        at = self._folded.at
        start, end = at[first], at[last - 1] + 1
        cuts = (first > 0 and at[first - 1] == start) or (last < len(at) and at[last] == end - 1)
        return None if cuts or _cuts_word(self.text, start) or _cuts_word(self.text, end) else (start, end)

    def holds(self, mention: Mention) -> bool:
        """Whether a mention is where it says that it is.

        >>> page = Page("Ada sang")
        >>> page.holds(Mention("ada", "PER", None, (0, 3))), page.holds(Mention("", "PER", None, (2, 9)))
        (True, False)
        """
        if mention.place is None:
            return False
        start, end = mention.place
        if not 0 <= start < end <= len(self.text):
            return False
        return not mention.words or _folded(self.text[start:end]).text == _folded(mention.words).text

    def located(self, mentions: Sequence[Mention], every: bool) -> Found:
        """The spans of mentions. ``every``: one that is listed once is meant wherever its words occur.

        Otherwise, and where words are listed several times, each is the first place that is left. A place inside of
        longer words that were mentioned too is taken only where there is no other.

        >>> page = Page("York beat New York. York won.")
        >>> [span[:3] for span in page.located([Mention("York", "TEAM"), Mention("New York", "CITY")], True).spans]
        [(10, 18, 'CITY'), (0, 4, 'TEAM'), (20, 24, 'TEAM')]
        """
        found = Found([], [], [], [], [])
        groups: dict[str, list[Mention]] = {}
        for mention in mentions:
            groups.setdefault(mention.words, []).append(mention)
        taken: dict[tuple[int, int], set[str]] = {}
        for words in sorted(groups, key=len, reverse=True):
            self._locate_group(groups[words], every, taken, found)
        return found

    def _locate_group(
        self, group: list[Mention], every: bool, taken: dict[tuple[int, int], set[str]], found: Found
    ) -> None:
        """Add the spans of mentions of the same words; ``taken`` are the labels of every place that has any."""
        longer = [(span.start, span.end) for span in found.spans]
        astray: list[Mention] = []
        for mention in group:
            if mention.place is not None and self.holds(mention):
                taken.setdefault(mention.place, set()).add(mention.label)
                found.spans.append(_span(mention, mention.place))
            elif mention.words:
                astray.append(mention)
            else:
                found.lost.append("" if mention.place is None else f"{mention.place[0]}–{mention.place[1]}")
        places = self.places(group[0].words)
        free = [place for place in places if not any(place[0] < end and start < place[1] for start, end in longer)]
        for mention in astray:
            left = [place for place in free or places if place not in taken]
            left = left or [place for place in places if mention.label not in taken.get(place, ())]
            if not left:
                (found.surplus if places else found.lost).append(mention.words)
                continue
            chosen = [left[0] if mention.place is None else _nearest(left, mention.place[0])]
            if mention.place is not None:
                found.moved.append(mention.words)
            elif every and len(group) == 1 and len(left) > 1:
                found.spread.append(mention.words)
                chosen = left
            for place in chosen:
                taken.setdefault(place, set()).add(mention.label)
                found.spans.append(_span(mention, place))

    def nearest(self, words: str, near: int) -> tuple[int, int] | None:
        """The place of words that is nearest to a character.

        >>> Page("Ada met Ada").nearest("Ada", 9)
        (8, 11)
        """
        places = self.places(words)
        return _nearest(places, near) if places else None

    def aligned(self, text: str) -> Rewriting:
        """Where the characters of a text that was written once more stand in this one.

        >>> written = Page("Ada Ng sang 'Roma'.").aligned("Sure: Ada  Ng sings “Roma”.")
        >>> written.starts[6], written.ends[13], written.starts[20], written.missing
        (0, 6, 12, 1)
        """
        other, own = _folded(text), self._folded
        if other.text == own.text:
            return Rewriting(
                dict(zip(other.at, own.at, strict=True)),
                {theirs + 1: place + 1 for theirs, place in zip(other.at, own.at, strict=True)},
                0,
                0,
                len(self.tokens),
                list(tokenize(text)),
            )
        return self._aligned_by_word(text)

    def _aligned_by_word(self, text: str) -> Rewriting:
        own, others = list(self.tokens), list(tokenize(text))
        mine = [_folded(self.text[start:end]) for start, end in own]
        theirs = [_folded(text[start:end]) for start, end in others]
        starts: dict[int, int] = {}
        ends: dict[int, int] = {}
        missing = tail = len(own)
        matched: list[tuple[int, int]] = []
        matcher = SequenceMatcher(None, [word.text for word in theirs], [word.text for word in mine], autojunk=False)
        for kind, first, last, here, there in matcher.get_opcodes():
            if last - first != there - here:
                continue  # nothing tells which word is which
            for a, b in zip(range(first, last), range(here, there), strict=True):
                starts[others[a][0]], ends[others[a][1]] = own[b][0], own[b][1]
                if kind == "equal":
                    missing, tail = missing - 1, len(own) - b - 1
                    matched.append(others[a])
                    for x, y in zip(theirs[a].at, mine[b].at, strict=True):
                        starts.setdefault(others[a][0] + x, own[b][0] + y)
                        ends.setdefault(others[a][0] + x + 1, own[b][0] + y + 1)
        return Rewriting(starts, ends, missing, tail, len(own), matched)

    def carried_over(self, text: str, marks: Sequence[CharSpan], rewriting: Rewriting) -> Found:
        """Spans of a text that was written once more, as spans of this one.

        One whose ends have no counterpart is looked for by its words, near where it should be.
        """
        found = Found([], [], [], [], [])
        known = sorted(rewriting.starts)
        for mark in marks:
            words = text[mark.start : mark.end]
            first, last = mark.start + len(words) - len(words.lstrip()), mark.end - len(words) + len(words.rstrip())
            start, end = rewriting.starts.get(first), rewriting.ends.get(last)
            if start is None or end is None or start >= end:
                before = bisect_right(known, first)
                near = rewriting.starts[known[before - 1]] if before else 0
                place = self.nearest(words, near)
                if place is None:
                    found.lost.append(words)
                    continue
                start, end = place
            found.spans.append(CharSpan(start, end, mark.label, None, mark.confidence))
        return found


def _unpunctuated(words: str) -> str:
    """Without what is no letter or digit at both ends."""
    inside = [place for place, character in enumerate(words) if _is_of_word(character)]
    return words[inside[0] : inside[-1] + 1] if inside else ""


def _nearest(places: Sequence[tuple[int, int]], near: int) -> tuple[int, int]:
    return min(places, key=lambda place: abs(place[0] - near))


def _span(mention: Mention, place: tuple[int, int]) -> CharSpan:
    return CharSpan(*place, mention.label, None, mention.confidence)
