"""All that a service can be asked for."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from quorate.errors import InputError
from quorate_serve.answers import (
    AnnotatedDocument,
    Annotation,
    Consensus,
    Dispute,
    Document,
    DocumentSummary,
    Event,
    HistoryEntry,
    Imported,
    Invitation,
    Person,
    Progress,
    Review,
    Reviewed,
    ReviewTask,
    Revision,
    Saved,
    Span,
    Task,
    Token,
    TokenMade,
)
from quorate_serve.client.connection import Connection

_AT_ONCE = 500  # texts in one request
_ME = "quorate_serve.client"

RoleName = Literal["annotator", "reviewer", "manager", "admin"]


class Client(Connection):
    """Requests to one service, as the person whose token it is.

    Tokens are made on the page *Account* of the service. What fails in a way that may pass (no connection, a service
    that is starting) is tried ``attempts`` times, with longer and longer pauses; a ``timeout`` is in seconds. Whatever
    changes labels takes an ``id``, made here unless given: the same change with the same id is done once, so that a
    program that was interrupted may ask again. ``transport`` is one of httpx, for tests.

    >>> import httpx
    >>> answers = httpx.MockTransport(lambda _: httpx.Response(200, json={"event": 917, "document": 12, "revision": 1}))
    >>> with Client("http://localhost:8787", "qt_0123", transport=answers) as client:
    ...     client.save(12, [Span(0, 3, "PER")], seconds=4.2)
    Saved(event=917, document=12, revision=1, gold=None)
    >>> Client("ftp://example.com", "qt_0123")
    Traceback (most recent call last):
    quorate.errors.SettingsError: 'ftp://example.com' is not the address of a service (http://… or https://…)
    """

    # labelling

    def next(self) -> Task | None:
        """The next document to label; the one that you have, if you have not saved it. ``None``: nothing for now."""
        found = self._ask(dict[str, Any], "POST", "/queue/next")["document"]
        return None if found is None else self._converted(Task, found)

    def release(self, document: int) -> None:
        """Give a document back without labels."""
        self._ask(dict[str, Any], "POST", "/queue/release", json={"document": document})

    def save(
        self, document: int, spans: Iterable[Span], *, seconds: float | None = None, id: str | None = None
    ) -> Saved:
        """Save what you say of a document that you were given, in place of what you said before."""
        body = {**_change(id), "document": document, "spans": _plain(spans), "seconds": seconds, "client": _ME}
        return self._ask(Saved, "POST", "/annotations", json=body)

    def withdraw(self, document: int, *, id: str | None = None) -> Saved:
        """Take back what you said of a document; it is yours to do again."""
        return self._ask(Saved, "POST", f"/annotations/{document}/withdraw", json=_change(id))

    def undo(self, document: int, *, id: str | None = None) -> Saved:
        """Go back to what you said of a document before, as a new revision."""
        return self._ask(Saved, "POST", f"/annotations/{document}/undo", json=_change(id))

    def annotations(self) -> Iterator[Annotation]:
        """What you say of documents now, in the order of their numbers."""
        return self._pages(Annotation, "/annotations")

    def annotation(self, document: int) -> AnnotatedDocument:
        """What you say of a document now, with its text."""
        return self._ask(AnnotatedDocument, "GET", f"/annotations/{document}")

    def revisions(self, document: int) -> list[Revision]:
        """All that you have said of a document, the first first."""
        return self._ask(list[Revision], "GET", f"/annotations/{document}/history")

    # reviewing

    def next_review(self) -> ReviewTask | None:
        """The next document to review, the least certain first; the one that you have. ``None``: nothing for now."""
        found = self._ask(dict[str, Any], "GET", "/reviews/next")["document"]
        return None if found is None else self._converted(ReviewTask, found)

    def review(self, document: int) -> ReviewTask:
        """A document as a reviewer sees it, with everybody's version."""
        return self._ask(ReviewTask, "GET", f"/reviews/{document}")

    def reveal(self, document: int) -> ReviewTask:
        """The same with what the consensus says, of a document that you were given and have looked at."""
        return self._ask(ReviewTask, "POST", f"/reviews/{document}/reveal")

    def release_review(self, document: int) -> None:
        """Leave a document to other reviewers."""
        self._ask(type(None), "POST", f"/reviews/{document}/release")

    def decide(
        self,
        document: int,
        spans: Iterable[Span],
        *,
        accepted: bool = False,
        consensus: int | None = None,
        note: str = "",
        seconds: float | None = None,
        id: str | None = None,
    ) -> Reviewed:
        """Decide what is right in a document, in place of what you decided before.

        ``consensus`` is the version of the consensus that you saw; ``accepted``: these are its spans.
        """
        decision = {"accepted": accepted, "consensus": consensus, "note": note, "seconds": seconds}
        body = {**_change(id), "document": document, "spans": _plain(spans), **decision, "client": _ME}
        return self._ask(Reviewed, "POST", "/reviews", json=body)

    def adjudicate(
        self,
        document: int,
        spans: Iterable[Span],
        *,
        note: str = "",
        seconds: float | None = None,
        id: str | None = None,
    ) -> Reviewed:
        """Decide between reviewers who differ on a document."""
        decision = {"accepted": False, "adjudicates": True, "note": note, "seconds": seconds}
        body = {**_change(id), "document": document, "spans": _plain(spans), **decision, "client": _ME}
        return self._ask(Reviewed, "POST", "/reviews", json=body)

    def withdraw_review(self, document: int, *, id: str | None = None) -> Reviewed:
        """Take back what you decided on a document."""
        return self._ask(Reviewed, "POST", f"/reviews/{document}/withdraw", json=_change(id))

    def reviews(self) -> Iterator[Review]:
        """What you decided, in the order of the documents' numbers."""
        return self._pages(Review, "/reviews")

    def disputes(self) -> Iterator[Dispute]:
        """The documents on which reviewers differ."""
        return self._pages(Dispute, "/disputes")

    # documents and files

    def documents(self) -> Iterator[DocumentSummary]:
        """All documents in the order of their numbers."""
        return self._pages(DocumentSummary, "/documents")

    def document(self, number: int) -> Document:
        """A document with its text."""
        return self._ask(Document, "GET", f"/documents/{number}")

    def history(self, document: int) -> list[HistoryEntry]:
        """All that happened to a document: who, when, what."""
        return self._ask(list[HistoryEntry], "GET", f"/documents/{document}/history")

    def add_texts(self, texts: Mapping[str, str]) -> int:
        """Add texts that nobody has labelled, by id; how many of them are new."""
        body = [{"id": id, "text": text} for id, text in texts.items()]
        some = (body[first : first + _AT_ONCE] for first in range(0, len(body), _AT_ONCE))
        return sum(self._ask(Imported, "POST", "/documents", json=part).documents for part in some)

    def import_file(
        self, path: str | Path, *, format: str | None = None, purpose: Literal["work", "check", "training"] = "work"
    ) -> Imported:
        """Send a file of annotations, in any format that is read; sent again, it changes nothing.

        Documents to check or train people with have what is right as gold.
        """
        data = {"purpose": purpose} | ({} if format is None else {"format": format})
        try:
            return self._upload(Imported, "/import", Path(path), data)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None

    def export(
        self,
        path: str | Path,
        *,
        what: Literal["annotations", "consensus"] = "annotations",
        format: str = "jsonl",
        names: bool = True,
    ) -> None:
        """Write everybody's annotations, or the consensus, to a file, in any format that is written.

        Formats that are folders come as a zip file. Without ``names``, annotators go by ids that say nothing.
        """
        self._download("/export", Path(path), what=what, format=format, names=names)

    # the consensus

    def consensus(self, document: int) -> Consensus:
        """What the consensus says of a document."""
        return self._ask(Consensus, "GET", f"/consensus/{document}")

    def all_consensus(
        self, *, order: Literal["number", "least-certain"] = "number", changed_since: int | None = None
    ) -> Iterator[Consensus]:
        """What the consensus says of all documents that have labels, or of those that changed since a version."""
        return self._pages(Consensus, "/consensus", order=order, changed_since=changed_since)

    def progress(self) -> Progress:
        """How far it is: how much there is, and what F1 to expect of the consensus."""
        return self._ask(Progress, "GET", "/progress")

    def live(self, *, after: int | None = None) -> Iterator[Event]:
        """What happens from now on, as it happens; those after the event with the id ``after`` first.

        It ends when the service does, or is lost: ask again, with the last id.
        """
        return self._events("/live", after)

    def is_well(self) -> bool:
        """Whether the service and its database answer."""
        return self._ask(dict[str, str], "GET", "/health")["status"] == "ok"

    # people

    def people(self) -> list[Person]:
        """Everybody."""
        return self._ask(list[Person], "GET", "/people")

    def me(self) -> Person:
        """Whose token this is."""
        return self.person("me")

    def person(self, id: str) -> Person:
        """Somebody by id."""
        return self._ask(Person, "GET", _person(id))

    def change_person(
        self,
        id: str,
        *,
        role: RoleName | msgspec.UnsetType = msgspec.UNSET,
        active: bool | msgspec.UnsetType = msgspec.UNSET,
        cost: float | msgspec.UnsetType = msgspec.UNSET,
        most: int | msgspec.UnsetType | None = msgspec.UNSET,
        password: str = "",
    ) -> Person:
        """Change somebody's role, what a document costs with them, how many they do at most, or let them in no more.

        To make a manager or an admin of them takes your ``password``.
        """
        given = {"role": role, "active": active, "cost": cost, "most": most}
        body = {name: value for name, value in given.items() if value is not msgspec.UNSET}
        return self._ask_again(Person, "PATCH", _person(id), password, body)

    def erase_person(self, id: str) -> Person:
        """Make it impossible to tell who somebody was; their labels stay, under an id that says nothing."""
        return self._ask(Person, "POST", f"{_person(id)}/erase")

    def invite(self, role: RoleName = "annotator", *, name: str = "", password: str = "") -> str:
        """A link for somebody to join with, good once within a week; your ``password`` for managers and admins.

        With a ``name``, :meth:`invitations` tells whom it is for.
        """
        return self._ask_again(dict[str, str], "POST", "/invitations", password, {"role": role, "name": name})["url"]

    def invite_again(self, id: str, *, password: str = "") -> str:
        """A link for somebody who is here to choose a new password; your ``password`` for managers and admins."""
        return self._ask_again(dict[str, str], "POST", "/invitations", password, {"person": id})["url"]

    def invitations(self) -> list[Invitation]:
        """The links that you or others made and nobody has used yet, the newest first."""
        return self._ask(list[Invitation], "GET", "/invitations")

    def revoke_invitation(self, id: str) -> None:
        """Let a link be good no more."""
        self._ask(type(None), "DELETE", f"/invitations/{quote(id, safe='')}")

    def tokens(self) -> list[Token]:
        """Your own tokens."""
        return self._ask(list[Token], "GET", "/tokens")

    def make_token(self, name: str, *, password: str = "", days: float | None = None) -> TokenMade:
        """A token for a program that acts as you do; it is good for some days, or as many as the service allows.

        A token makes no tokens, so the service refuses without your ``password``: with it, this logs in by your name,
        and out again. Whoever logs in at a provider, and has no password here, makes tokens on the page *Account*.
        """
        given = {"name": name, "days": days}
        return self._ask_again(TokenMade, "POST", "/tokens", password, given)

    def remove_token(self, id: str) -> None:
        """End one of your tokens."""
        self._ask(type(None), "DELETE", f"/tokens/{quote(id, safe='')}")


def _change(id: str | None) -> dict[str, str]:
    return {"id": id or uuid.uuid4().hex}


def _plain(spans: Iterable[Span]) -> Sequence[Any]:
    return [{"start": span.start, "end": span.end, "label": span.label} for span in spans]


def _person(id: str) -> str:
    return f"/people/{quote(id, safe='')}"
