"""All that a service keeps about somebody, for that person: what the law calls access and portability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from quorate_serve.database import tables
from quorate_serve.people import find_person, read_personal


def data_of(connection: Connection, person: str) -> dict[str, Any]:
    """Who they are, what they can log in with (no secrets), what they say now, and all that they ever did."""
    who = find_person(connection, person)
    tokens, sessions, links = tables.tokens.c, tables.sessions.c, tables.invitations.c
    annotations, reviewed = tables.current_annotations.c, tables.reviews.c
    events = tables.events.c
    return {
        "person": who._asdict(),
        "tokens": _rows(connection, tokens.person, person, tokens.name, tokens.created, tokens.until, tokens.used),
        "sessions": _rows(connection, sessions.person, person, sessions.created, sessions.until),
        "invitations": _rows(connection, links.by, person, links.created, links.role, links.until, links.used),
        "annotations": _rows(
            connection,
            annotations.person,
            person,
            annotations.document,
            annotations.revision,
            annotations.at,
            annotations.spans,
        ),
        "reviews": _rows(connection, reviewed.person, person, reviewed.document, reviewed.at, reviewed.spans),
        "events": [
            {**row, "body": _body(row["body"]), "personal": read_personal(connection, person, row["personal"])}
            for row in _rows(
                connection,
                events.person,
                person,
                events.seq,
                events.kind,
                events.at,
                events.document,
                events.seconds,
                events.client,
                events.body,
                events.personal,
            )
        ],
    }


def _rows(connection: Connection, owner: Any, person: str, *columns: Any) -> list[dict[str, Any]]:
    query = select(*columns).where(owner == person).order_by(columns[0])
    return [dict(row) for row in connection.execute(query).mappings()]


def _body(body: Mapping[str, Any]) -> dict[str, Any]:
    """What happened, without what would tell a check from other documents."""
    return {name: value for name, value in body.items() if name != "purpose"}
