"""The campaign as it stands: what people mark, by which guidelines, and how many annotators a document gets.

A service is told these when it starts, and managers may change them while it runs. Every change is an event with all of
them, so that each process of the service, and each start, knows how things stand and who changed what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from quorate.corpus.overlaps import Overlaps
from quorate.corpus.tags import OUTSIDE
from quorate.errors import SettingsError
from quorate_serve.database import tables
from quorate_serve.events import Event, Kind
from quorate_serve.settings import COLOURS, ServiceSettings
from quorate_serve.state import record

_LONGEST_NAME, _MOST_TYPES = 100, 100
_LONGEST_GUIDELINES = 200_000  # characters
_MOST_PER_DOCUMENT = 1_000
NOT_ONE_CAMPAIGN = "somebody else changed the campaign a moment ago (load the page again)"


class SpanType(NamedTuple):
    """A type of span, with the key that marks it and its colour; without them, the page chooses.

    >>> SpanType("PER", key="p", colour="blue").name
    'PER'
    """

    name: str
    key: str = ""
    colour: str = ""


class Campaign(NamedTuple):
    """What managers decide: types of spans, guidelines in Markdown, annotators of a document, which spans may overlap.

    >>> Campaign((SpanType("PER"), SpanType("PER"))).check()
    Traceback (most recent call last):
    ...
    quorate.errors.SettingsError: two types are called 'PER' (give each a name of its own)
    """

    types: tuple[SpanType, ...] = ()
    guidelines: str = ""
    per_document_min: int = 2
    per_document_max: int = 5
    overlaps: Overlaps = Overlaps.NONE

    def check(self) -> None:
        """:class:`SettingsError` says what cannot be."""
        if len(self.types) > _MOST_TYPES:
            raise SettingsError(f"{len(self.types)} types are too many (give {_MOST_TYPES} at most)")
        for number, one in enumerate(self.types):
            _check_type(one, self.types[:number])
        if len(self.guidelines) > _LONGEST_GUIDELINES:
            raise SettingsError(f"the guidelines are too long ({_LONGEST_GUIDELINES:,} characters at most)")
        if not 1 <= self.per_document_min <= self.per_document_max <= _MOST_PER_DOCUMENT:
            raise SettingsError(
                f"a document cannot get {self.per_document_min} to {self.per_document_max} annotators "
                "(give at least 1, and at most as many as that or more)"
            )

    def applied_to(self, settings: ServiceSettings) -> ServiceSettings:
        """The settings of a service whose campaign is this one."""
        return replace(
            settings,
            labels=tuple(one.name for one in self.types),
            keys={one.name: one.key for one in self.types if one.key},
            colours={one.name: one.colour for one in self.types if one.colour},
            guidelines=self.guidelines,
            queue=replace(
                settings.queue, per_document_min=self.per_document_min, per_document_max=self.per_document_max
            ),
            overlaps=settings.overlaps._replace(allowed=self.overlaps),
        )

    def completed(self, before: Campaign) -> Campaign:
        """This campaign, with what it leaves as usual from another.

        >>> Campaign(per_document_min=3).completed(Campaign((SpanType("PER"),))).types[0].name
        'PER'
        """
        usual = Campaign()._asdict()
        return self._replace(
            **{name: value for name, value in before._asdict().items() if getattr(self, name) == usual[name]}
        )

    def plain(self) -> dict[str, Any]:
        """What an event keeps of it."""
        return {
            **self._asdict(),
            "types": [one._asdict() for one in self.types],
            "overlaps": self.overlaps.value,
        }


class Change(NamedTuple):
    """That the campaign was changed: when, by whom (nobody: by the file or the command line, at a start), and what."""

    at: float
    person: str | None
    what: tuple[str, ...]


def _check_type(one: SpanType, before: Sequence[SpanType]) -> None:
    name, key = one.name, one.key
    if not name or name != name.strip() or len(name) > _LONGEST_NAME or "," in name or not name.isprintable():
        raise SettingsError(
            f"{name[:50]!r} is no name for a type (1 to {_LONGEST_NAME} characters on one line, without a comma)"
        )
    if name == OUTSIDE:
        raise SettingsError(f"a type cannot be called {OUTSIDE!r}, which stands for no span (give it another name)")
    if any(other.name == name for other in before):
        raise SettingsError(f"two types are called {name!r} (give each a name of its own)")
    if key and not (len(key) == 1 and key.isalnum() and key == key.lower()):
        raise SettingsError(f"{key[:20]!r} is no key for {name} (one small letter or digit)")
    if key and any(other.key == key for other in before):
        raise SettingsError(f"two types have the key {key!r} (give each a key of its own)")
    if one.colour and one.colour not in COLOURS:
        raise SettingsError(f"{one.colour[:20]!r} is no colour for {name} (one of: {', '.join(COLOURS)})")


def campaign_of(settings: ServiceSettings) -> Campaign:
    """The campaign that settings describe.

    >>> from pathlib import Path
    >>> campaign_of(ServiceSettings(Path("."), labels=("PER",), keys={"PER": "p"})).types
    (SpanType(name='PER', key='p', colour=''),)
    """
    return Campaign(
        tuple(SpanType(name, settings.keys.get(name, ""), settings.colours.get(name, "")) for name in settings.labels),
        settings.guidelines,
        settings.queue.per_document_min,
        settings.queue.per_document_max,
        settings.overlaps.allowed,
    )


def read_campaign(connection: Connection) -> Campaign | None:
    """The campaign as it was last changed; ``None`` if it is as the service was told when it started."""
    body = connection.execute(select(tables.campaign.c.body)).scalar()
    return None if body is None else _restored(body)


def _restored(body: Mapping[str, Any]) -> Campaign:
    given = {name: body[name] for name in Campaign._fields}
    types = tuple(SpanType(**one) for one in given["types"])
    return Campaign(**{**given, "types": types, "overlaps": Overlaps(given["overlaps"])})


def change_campaign(connection: Connection, before: Campaign, now: Campaign, *, by: str | None) -> Event | None:
    """Have another campaign stand; ``None`` if nothing is other than before."""
    now.check()
    changed = [name for name in Campaign._fields if getattr(before, name) != getattr(now, name)]
    if not changed:
        return None
    body = {**now.plain(), "changed": changed, "told": list(_told(before, now))}
    return record(connection, Kind.CAMPAIGN_CHANGED, person=by, body=body)


def _told(before: Campaign, now: Campaign) -> list[str]:
    """What is other, in words."""
    old, new = ({one.name: one for one in each.types} for each in (before, now))
    added, gone = [name for name in new if name not in old], [name for name in old if name not in new]
    looks = [name for name in new if name in old and new[name] != old[name]]
    told = [f"type {name} added" for name in added] + [f"type {name} taken out" for name in gone]
    told += [f"key or colour of {name}" for name in looks]
    if before.guidelines != now.guidelines:
        told.append("guidelines")
    if (before.per_document_min, before.per_document_max) != (now.per_document_min, now.per_document_max):
        least, most = now.per_document_min, now.per_document_max
        told.append(f"{most if least == most else f'{least} to {most}'} annotators of a document")
    if before.overlaps != now.overlaps:
        told.append(f"overlaps: {now.overlaps.value}")
    return told or ["order of the types"]


def changes_of(connection: Connection, most: int = 50) -> list[Change]:
    """How the campaign was changed, the last first."""
    events = tables.events.c
    query = select(events.at, events.person, events.body).where(events.kind == Kind.CAMPAIGN_CHANGED.value)
    rows = connection.execute(query.order_by(events.seq.desc()).limit(most))
    return [Change(row.at, row.person, tuple(row.body["told"])) for row in rows]


def last_change(connection: Connection) -> int:
    """The number of the event of the last change; 0 if the campaign is as the service was told when it started."""
    return int(connection.execute(_LAST_CHANGE).scalar() or 0)


class LiveSettings:
    """What a service was told, with the campaign as it stands: read again when it changed, and not before."""

    def __init__(self) -> None:
        self._seen: tuple[int | None, ServiceSettings, ServiceSettings] | None = None

    def look(self, connection: Connection, given: ServiceSettings) -> ServiceSettings:
        """The settings now."""
        event, seen = connection.execute(_LAST_CHANGE).scalar(), self._seen
        if seen is not None and seen[0] == event and seen[1] is given:
            return seen[2]
        campaign = read_campaign(connection)
        settings = given if campaign is None else campaign.applied_to(given)
        self._seen = (event, given, settings)
        return settings


_LAST_CHANGE = select(tables.campaign.c.event)
