"""The cuts between tokens that the PICO scores rest on: those of spaCy's English tokenizer, for this corpus.

Scores depend on where tokens end, so figures can be compared only with the same cuts. They are made here by a few rules
rather than by spaCy itself, whose exceptions change from version to version and which is a heavy dependency for one
conversion. Rules and lists are fitted to this archive: on each of its 4,740 annotated abstracts they cut as spaCy 3.8
does; on other texts they may not.
"""

from __future__ import annotations

import re
from string import ascii_lowercase

from quorate.corpus.tokens import Offsets

_QUOTES = "'\"”“`‘´’‚,„»«"
_MARKS = r"…,:;!?¿¡()\[\]{}<>_#*&·" + _QUOTES
_SIGNS = "¦©®°™"
_MONEY = r"(?:US\$|C\$|A\$|[$£€¥])"
_UNITS = (
    "[kdcm]?m[²³]?|ha|µm|nm|yd|in|ft|k?g|mg|µg|t|lb|oz|m/s|km/h|kmh|mph|hPa|Pa|mbar|mb|MB|kb|KB|gb|GB|tb|TB|T|G|M|K|%"
)
_UPPER = "A-ZÀ-ÖØ-ÞΑ-Ω"
_LOWER = "a-zß-öø-ÿα-ω"
_LETTER = "A-Za-zÀ-ÖØ-öø-ɏͰ-Ͽ"

_CUT_OFF_THE_FRONT = re.compile(rf"[§%=—–{_MARKS}{_SIGNS}]|\+(?![0-9])|\.\.+|{_MONEY}")
_CUT_OFF_THE_END = re.compile(
    rf"(?:[—–{_MARKS}{_SIGNS}]|\.\.+|['’][sS]"
    rf"|(?<=[0-9])(?:\+|{_MONEY}|{_UNITS})"
    rf"|(?<=[0-9{_LOWER}%²\-+{_MARKS}])\.|(?<=[A-Z][A-Z])\.|(?<=°[FfCcKk])\.)$"
)
_CUT_OUT_OF_THE_MIDDLE = re.compile(
    rf"\.\.+|[…{_SIGNS}]"
    r"|(?<=[0-9])[+\-*^](?=[0-9-])"
    rf"|(?<=[{_LOWER}{_QUOTES}])\.(?=[{_UPPER}{_QUOTES}])"
    rf"|(?<=[{_LETTER}]),(?=[{_LETTER}])"
    rf"|(?<=[{_LETTER}0-9])(?:---?|——|[-–—~:<>=/])(?=[{_LETTER}])"
)
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|(?:[A-Za-z0-9-]+\.)+(?:com|org|net|gov|edu|jp)(?:/\S*)?")
_NEGATION = re.compile(r"\w+(?=n't$)")
_CUT_AFTER = {"cannot": 3, "im": 1}

# What is one token although a rule cuts it: abbreviations, a letter with a full stop ("h."), and what the tokenizer
# takes for a smiley: "):" and "8)" stand in these texts, and the figures were made with them.
_ABBREVIATIONS = "vs. and/or i.e. e.g. St. Inc. Ltd. Co. Ga. Fla. Gov. Jan. Feb. Mar. Sep. Dec. a.m. p.m."
_SMILEYS = "): 8) (-8 (= =3 <3 <33 ’’"
_ONE_TOKEN = frozenset([*_ABBREVIATIONS.split(), *_SMILEYS.split(), *(f"{letter}." for letter in ascii_lowercase)])
_BETWEEN_BLANKS = re.compile(r"\S+")


class PicoTokenizer:
    """Cuts texts into tokens; remembers the words it has cut, most of which come back.

    >>> text = "Adults (18-65 yrs): 5mg/d vs. placebo."
    >>> [text[start:end] for start, end in PicoTokenizer().offsets(text)]
    ['Adults', '(', '18', '-', '65', 'yrs', '):', '5mg', '/', 'd', 'vs.', 'placebo', '.']
    """

    def __init__(self) -> None:
        self._lengths: dict[str, tuple[int, ...]] = {}

    def offsets(self, text: str) -> Offsets:
        """Where the tokens of a text are."""
        found: list[tuple[int, int]] = []
        for match in _BETWEEN_BLANKS.finditer(text):
            word, end = match[0], match.start()
            lengths = self._lengths.get(word)
            if lengths is None:
                lengths = self._lengths[word] = tuple([len(token) for token in _cut(word)])
            for length in lengths:
                start, end = end, end + length
                found.append((start, end))
        return tuple(found)


def _cut(word: str) -> list[str]:
    """The tokens of what stands between two blanks; together they spell it."""
    front: list[str] = []
    back: list[str] = []
    while word:
        first = _CUT_OFF_THE_FRONT.match(word)
        last = _CUT_OFF_THE_END.search(word, first.end() if first else 0)
        if first is None and last is None:
            break
        if first is not None:
            front.append(first[0])
        if last is not None:
            back.append(last[0])
        word = word[first.end() if first else 0 : last.start() if last else len(word)]
    return _rejoined([*front, *_cut_inside(word), *reversed(back)])


def _cut_inside(word: str) -> list[str]:
    if _ADDRESS.fullmatch(word):
        return [word]
    negated = _NEGATION.match(word)
    after = negated.end() if negated else _CUT_AFTER.get(word)
    if after is not None:
        return [word[:after], word[after:]]
    pieces: list[str] = []
    start = 0
    for match in _CUT_OUT_OF_THE_MIDDLE.finditer(word):
        if match.start() > 0:
            pieces += [word[start : match.start()], match[0]]
            start = match.end()
    return [piece for piece in [*pieces, word[start:]] if piece]


def _rejoined(pieces: list[str]) -> list[str]:
    tokens: list[str] = []
    position = 0
    while position < len(pieces):
        for count in (3, 2):
            token = "".join(pieces[position : position + count])
            if token in _ONE_TOKEN:
                break
        else:
            count, token = 1, pieces[position]
        tokens.append(token)
        position += count
    return tokens
