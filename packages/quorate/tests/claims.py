"""Claims of how good a consensus is: what a text or a record says of F1, precision or recall as if it were known.

Without gold and without an audit none of them is known. What may be said all the same is written down here: that F1 is
unknown and what measures it, what an audit of so many documents would tell, and a dial that somebody set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any

__all__ = ["claims_of_html", "claims_of_record", "claims_of_text"]

_SCORE = re.compile(r"\b(F1|precisions?|recall)\b", re.I)
_ALLOWED = (
    r"F1 unknown: quorate audit plan \S+ -n \d+ -o audit\.jsonl",
    r"F1 unknown: quorate audit plan draws documents to check from a consensus in JSONL",
    r"F1 unknown: an audit measures it",
    r"--(precision|recall)( \d[\d.]*)?",
    r"(an )?expected (precision|recall)( of)?( \d[\d.]*)?",  # of a dial, as the model has it
    r"the result should give F1 to about ± \d+ points, if confidence is right",
    r"if no mistake is found, F1 will be from [\d.]+ to [\d.]+",
)
_KEYS = re.compile(r"(^|_)(f1|precision|recall)($|_)")
_OF_A_PLAN = ("f1_without_mistakes",)  # what an audit would find, if it found no mistake
_INPUT = ("settings", "decided", "options", "expected")  # what somebody asked for, and what the model expects of that


def claims_of_text(text: str) -> list[str]:
    """Sentences that name a score, but for those that may.

    >>> claims_of_text("agreement 0.74; F1 unknown: quorate audit plan c.jsonl -n 30 -o audit.jsonl")
    []
    >>> claims_of_text("320 documents combined\\nagreement 0.74; F1 about 93 (91 to 95)")
    ['agreement 0.74; F1 about 93 (91 to 95)']
    >>> claims_of_text("method  Precision  Recall\\nauto  90  91")
    ['method  Precision  Recall']
    """
    for allowed in _ALLOWED:
        text = re.sub(allowed, "", text)
    return [part for line in text.splitlines() for part in re.split(r"(?<=[.!?]) ", line) if _SCORE.search(part)]


def claims_of_record(record: Any, path: tuple[str, ...] = ()) -> list[str]:
    """Paths to values under a key that is named for a score, at any depth, and texts in it with a claim.

    >>> claims_of_record({"agreement": 0.7, "f1": None, "settings": {"precision": 0.9}})
    []
    >>> claims_of_record({"estimate": [{"f1": {"low": 0.9}}]}), claims_of_record({"note": "F1 is 90"})
    (['estimate.f1'], ['F1 is 90'])
    """
    if isinstance(record, Mapping):
        found = []
        for key, value in record.items():
            if _KEYS.search(key) and value is not None and key not in _OF_A_PLAN and not set(path) & set(_INPUT):
                found.append(".".join([*path, key]))
            else:
                found += claims_of_record(value, (*path, key))
        return found
    if isinstance(record, list | tuple):
        return [claim for one in record for claim in claims_of_record(one, path)]
    return claims_of_text(record) if isinstance(record, str) and not set(path) & set(_INPUT) else []


def claims_of_html(page: str) -> list[str]:
    """Sentences of a page, names of its columns and its tooltips that name a score with a number or as a column.

    >>> claims_of_html("<p>An audit measures F1.</p><p>F1 unknown: an audit measures it.</p>")
    []
    >>> claims_of_html('<p title="recall 0.9">F1 is <b>93</b></p><table><tr><th>Precision</th></tr></table>')
    ['F1 is 93', 'recall 0.9', 'Precision']
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    sentences = [claim for text in reader.texts() for claim in claims_of_text(text) if _has_number(claim)]
    told = [claim for text in reader.told for claim in claims_of_text(text) if _has_number(claim)]
    return [*sentences, *told, *(claim for head in reader.heads for claim in claims_of_text(head))]


def _has_number(claim: str) -> bool:
    return re.search(r"\d", _SCORE.sub("", claim)) is not None


class _Reader(HTMLParser):
    """The text of a page, block by block; what attributes tell; and the heads of tables."""

    _INLINE = frozenset(("a", "abbr", "b", "code", "em", "i", "mark", "small", "span", "strong", "sub", "sup"))

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[list[str]] = [[]]
        self.told: list[str] = []
        self.heads: list[str] = []
        self._hidden, self._is_head, self._is_code = "", False, False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.told += [value for name, value in attrs if name in ("title", "aria-label", "alt", "placeholder") and value]
        self._is_code = tag == "code"
        if tag in ("script", "style"):
            self._hidden = tag
        if tag not in self._INLINE:
            self.blocks.append([])
        if tag in ("th", "dt"):
            self._is_head = True
            self.heads.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_code = False
        if tag == self._hidden:
            self._hidden = ""
        if tag not in self._INLINE:
            self.blocks.append([])
        if tag in ("th", "dt"):
            self._is_head = False

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        self.blocks[-1].append(data)
        if self._is_head and not self._is_code:  # the name of a setting is code
            self.heads[-1] += data

    def texts(self) -> Iterator[str]:
        yield from (" ".join("".join(block).split()) for block in self.blocks)
