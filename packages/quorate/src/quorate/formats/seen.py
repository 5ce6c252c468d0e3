"""Who saw what, of tables of spans: an annotator without a row of a document marked nothing, or never saw it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from quorate.errors import InputError, SettingsError
from quorate.formats.json_records import decoded, records
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.opened import Input, opened
from quorate.formats.table import known_names, rows_in
from quorate.wording import counted

_SEEN = (
    "{} {document has|documents have} no row of some annotators, who count as having seen {it|them} and marked nothing"
)
_NOT_SEEN = "{} {document has|documents have} no row of some annotators, who count as not having seen {it|them}"
_DOCUMENTS = ("doc", "task", "id")


class Seen(NamedTuple):
    """``all``, ``marked`` (only what has a row), ``listed``, or nothing said; ``listed`` has annotators by document."""

    how: str = ""
    listed: Mapping[str, frozenset[str]] = {}


NOTHING_SAID = Seen()


def seen_named(given: str | Path | Mapping[str, Iterable[str]] | None) -> Seen:
    """What is said of who saw what: ``all``, ``marked``, a file that lists it, or annotators by document.

    >>> seen_named({"7": ["ann"]}).listed["7"], seen_named("marked").how
    (frozenset({'ann'}), 'marked')
    """
    if given is None:
        return NOTHING_SAID
    if isinstance(given, Mapping):
        return Seen("listed", {str(name): frozenset(map(str, whose)) for name, whose in given.items()})
    if str(given) in ("all", "marked"):
        return Seen(str(given))
    if not Path(given).is_file():
        raise SettingsError(f"seen {str(given)!r} is not known (one of: all, marked, or a file: document,annotator)")
    found: dict[str, set[str]] = {}
    for name, who in _listed(str(given)):
        found.setdefault(name, set()).add(who)
    return Seen("listed", {name: frozenset(whose) for name, whose in found.items()})


def _listed(path: str) -> Iterable[tuple[str, str]]:
    with opened(path) as (stream, _):
        if stream.peek(64)[:64].lstrip()[:1] in (b"{", b"["):
            return _listed_in_json(Input(stream, path))
        rows = rows_in(Input(stream, path))
        _, head = next(rows)
        names = known_names(head)
        document = next((names.index(name) for name in _DOCUMENTS if name in names), None)
        if document is None or "worker" not in names:
            raise InputError("who saw what needs the columns document and annotator", where=f"{path}:1")
        annotator = names.index("worker")
        return [(cells[document], cells[annotator]) for _, cells in rows if len(cells) > max(document, annotator)]


class _SeenLine(msgspec.Struct):
    id: str | int
    annotators: list[str | int]


def _listed_in_json(given: Input) -> list[tuple[str, str]]:
    decoder = msgspec.json.Decoder(_SeenLine)
    lines = (
        decoded(decoder, raw, source, "a line of who saw what ({id, annotators})")
        for source, raw in records(given.stream, given.name, "document")
    )
    return [(str(line.id), str(name)) for line in lines for name in line.annotators]


def complete(found: Mapping[str, Marked], seen: Seen, *, told: bool, notes: Notes, where: str) -> None:
    """Give an empty list of spans to whoever saw a document and has no row of it.

    ``told``: the table has rows without a span, which say that somebody saw a document.
    """
    everybody = dict.fromkeys(name for marked in found.values() for name in marked.annotations)
    everybody |= dict.fromkeys(sorted({name for whose in seen.listed.values() for name in whose}))
    missing: dict[str, list[str]] = {}
    for key, marked in found.items():
        if names := [name for name in everybody if name not in marked.annotations]:
            missing[key] = names
    if not missing:
        return
    if seen.how == "listed":
        if strange := next((name for name in seen.listed if name not in found), None):
            raise InputError(f"document {strange!r}, which somebody saw, is not among the documents", where=where)
        for key, names in missing.items():
            found[key].annotations.update({name: [] for name in names if name in seen.listed.get(key, ())})
    elif seen.how == "all":
        notes.count(_SEEN, len(missing))
        for key, names in missing.items():
            found[key].annotations.update({name: [] for name in names})
    elif seen.how == "marked" or told:
        notes.count(_NOT_SEEN, len(missing))
    else:
        raise InputError(
            f"{counted(len(missing), 'document has', 'documents have')} no row of some annotators, who marked nothing "
            "there or did not see it (say --seen all, --seen marked, or --seen FILE with document,annotator; in Python "
            "seen='all' and so on)",
            where=where,
        )


def has_no_span(row: Mapping[str, Any]) -> bool:
    """Whether a row says only that somebody saw a document."""
    return all(row.get(column) in (None, "") for column in ("start", "end", "label"))
