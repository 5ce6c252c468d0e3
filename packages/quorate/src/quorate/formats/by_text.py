"""Documents of one annotator's file found among those of others by their text, where ids or numbers do not fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quorate.corpus.records import Document

_HALF = 0.5  # of the documents of a file; if more fit by their ids, all ids are right


class Fitted(NamedTuple):
    """Ids for the documents of a file, in their order, and how many were found by their text."""

    ids: list[str]
    by_text: int


def fitted(given: Sequence[Document], met: Mapping[str, Document], *, numbered: bool, whose: str) -> Fitted:
    """The ids under which the documents of a file were met in others: their own, or those of the same texts.

    Of several documents with a text, that is taken which comes next. A document that is not met keeps its id, or gets
    another if a document of another text has it: a number, where all are ``numbered``, else with ``whose`` file it is.

    >>> ann = {str(n): Document(str(n), (word,)) for n, word in enumerate("abca", 1)}
    >>> bob = [Document(str(n), (word,)) for n, word in enumerate("bcax", 1)]
    >>> fitted(bob, ann, numbered=True, whose="bob")
    Fitted(ids=['2', '3', '4', '5'], by_text=3)
    """
    ids = [document.id for document in given]
    fits = [document.id in met and _same(document, met[document.id]) for document in given]
    if all(fits) or (not numbered and sum(fits) > _HALF * len(given)):
        return Fitted(ids, 0)
    free: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for known, document in met.items():
        free[document.tokens].append(known)
    places = {name: place for place, name in enumerate(met)}
    found: list[str | None] = []
    cursor = -1
    for document in given:
        candidates = [name for name in free[document.tokens] if _same(document, met[name])]
        name = next((one for one in candidates if places[one] > cursor), candidates[0] if candidates else None)
        if name is not None:
            free[document.tokens].remove(name)
            cursor = places[name]
        found.append(name)
    held = [name for name in found if name is not None]
    if not numbered and len(held) < _HALF * min(len(given), len(met)):
        return Fitted(ids, 0)
    used = {*met}
    new: list[str] = []
    for document, known_as in zip(given, found, strict=True):
        new.append(_free_id(document.id, used, numbered, whose) if known_as is None else known_as)
        used.add(new[-1])
    by_text = sum(name is not None and name != own for name, own in zip(found, ids, strict=True))
    return Fitted(new, by_text)


def _same(one: Document, other: Document) -> bool:
    return one.tokens == other.tokens and len({one.text, other.text} - {None}) < 2


def _free_id(name: str, used: set[str], numbered: bool, whose: str) -> str:
    """The id itself, or one that nobody has."""
    if name not in used:
        return name
    number = len(used) + 1
    while numbered and str(number) in used:
        number += 1
    return str(number) if numbered else f"{name} ({whose})"
