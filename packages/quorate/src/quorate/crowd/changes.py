"""The changes of a crowd before a fit: one list, in their order. Without a line of it, that change is not made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from quorate.crowd.abstaining import Abstaining, account_for_abstaining
from quorate.crowd.correlated import Correlated, downweight_correlated
from quorate.crowd.crowd import Crowd, Note
from quorate.crowd.duplicates import Duplicates, merge_duplicates

CHANGES: tuple[Callable[[Crowd], Crowd], ...] = (
    merge_duplicates,
    account_for_abstaining,
    downweight_correlated,
)
_NOTES = {kind.__name__: kind for kind in (Abstaining, Correlated, Duplicates)}


def changed(crowd: Crowd) -> Crowd:
    """The crowd with every change that it calls for; what they found is in its ``notes``."""
    for change in CHANGES:
        crowd = change(crowd)
    return crowd


def with_notes(crowd: Crowd, notes: Iterable[Note]) -> Crowd:
    """The crowd with the changes that another one called for."""
    for note in notes:
        crowd = crowd.noting(note)
    return crowd


def plain_notes(notes: Iterable[Note]) -> list[dict[str, Any]]:
    """Notes as plain values, for a file."""
    return [{"note": type(note).__name__, **note.plain()} for note in notes]


def notes_from_plain(plain: Sequence[Mapping[str, Any]]) -> tuple[Note, ...]:
    """What :func:`plain_notes` gave; ``KeyError`` and its like if that is none."""
    return tuple(_NOTES[one["note"]].of_plain(one) for one in plain)
