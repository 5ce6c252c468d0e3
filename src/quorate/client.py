"""A typed client of a service (:mod:`quorate.service`): ``Client("https://labels.example.org", "qt_…")``.

Every request that fails in a way that may pass is tried again; saves carry an id that is made here, so that one that
comes twice is one. Offsets are code points, ends excluded. ``pip install 'quorate[client]'`` brings what it needs.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import msgspec

from quorate.errors import ServerError, SettingsError

__all__ = [
    "Client",
    "Consensus",
    "ConsensusSpan",
    "DocumentSummary",
    "Event",
    "Imported",
    "NotAllowedError",
    "Person",
    "Saved",
    "Span",
    "Task",
    "WaitError",
]

T = TypeVar("T")
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_LONGEST_WAIT = 30.0
_CHUNK = 1 << 20


class NotAllowedError(ServerError):
    """The token is not good, or its person may not do this."""


class WaitError(ServerError):
    """The service has not answered as often as it was asked; it may later."""


class Span(msgspec.Struct, frozen=True):
    """A span of a text: its first character, the one after its last, and its label.

    >>> Span(0, 3, "PER").label
    'PER'
    """

    start: int
    end: int
    label: str


class ConsensusSpan(msgspec.Struct, frozen=True):
    """A span of the consensus, and how sure it is."""

    start: int
    end: int
    label: str
    confidence: float


class Task(msgspec.Struct, frozen=True):
    """A document to label, yours until the time ``until`` (seconds since 1970)."""

    number: int
    id: str
    text: str
    tokens: list[tuple[int, int]]
    training: bool
    until: float
    spans: list[Span] | None = None
    suggestions: list[Span] | None = None


class Saved(msgspec.Struct, frozen=True):
    """It is on the service's disk; ``gold`` is what is right, of a document to learn from."""

    event: int
    document: int
    revision: int
    gold: list[Span] | None = None


class DocumentSummary(msgspec.Struct, frozen=True):
    """A document in a list, and how many annotators it has."""

    number: int
    id: str
    purpose: str
    labels: int


class Imported(msgspec.Struct, frozen=True):
    """What a file brought: documents and labels that are new, how many annotators it names, and what was changed."""

    documents: int
    labels: int
    annotators: int
    notes: list[str] = []


class Consensus(msgspec.Struct, frozen=True):
    """What the consensus says of a document; ``version`` grows whenever it changes."""

    document: int
    id: str
    version: int
    spans: list[ConsensusSpan]
    confidence: float
    labels: int
    known: bool


class Person(msgspec.Struct, frozen=True):
    """Somebody who labels, or whose labels were imported (``role`` is ``None`` then)."""

    id: str
    name: str
    kind: str
    role: str | None
    active: bool
    cost: float
    most: int | None


class Event(msgspec.Struct, frozen=True):
    """Something that happened while :meth:`Client.live` listened."""

    kind: str
    data: dict[str, Any]


class Client:
    """Requests to one service, as the person whose token it is.

    Tokens are made on the page *Account* of the service. What fails in a way that may pass (no connection, a service
    that is starting) is tried ``attempts`` times, with longer and longer pauses.

    >>> Client("ftp://example.com", "qt_x")
    Traceback (most recent call last):
    quorate.errors.SettingsError: 'ftp://example.com' is not the address of a service (http://… or https://…)
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        attempts: int = 8,
        timeout: float = 60.0,
        pause: Callable[[float], None] = time.sleep,
        transport: Any = None,
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError:
            raise SettingsError("the client needs httpx (pip install 'quorate[client]')") from None
        if not url.startswith(("http://", "https://")):
            raise SettingsError(f"{url!r} is not the address of a service (http://… or https://…)")
        self.url, self._attempts, self._pause = url.rstrip("/"), attempts, pause
        self._faults = (httpx.TransportError,)
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {token.strip()}"},
            timeout=timeout,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.url}>"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # labelling

    def next(self) -> Task | None:
        """The next document to label; the one that you have, if you have not saved it. ``None``: nothing for now."""
        found = self._asked("POST", "/queue/next")["document"]
        return None if found is None else self._get(Task, found)

    def save(
        self, document: int, spans: Sequence[Span], *, seconds: float | None = None, id: str | None = None
    ) -> Saved:
        """Save what you say of a document that you were given, in place of what you said before."""
        body = {
            "id": id or uuid.uuid4().hex,
            "document": document,
            "spans": msgspec.to_builtins(list(spans)),
            "seconds": seconds,
            "client": "quorate.client",
        }
        return self._get(Saved, self._asked("POST", "/annotations", json=body))

    def release(self, document: int) -> None:
        """Give a document back without labels."""
        self._asked("POST", "/queue/release", json={"document": document})

    def withdraw(self, document: int) -> Saved:
        """Take back what you said of a document."""
        path = f"/annotations/{document}/withdraw"
        return self._get(Saved, self._asked("POST", path, json={"id": uuid.uuid4().hex}))

    # documents and files

    def documents(self) -> Iterator[DocumentSummary]:
        """All documents, page after page."""
        return self._pages(DocumentSummary, "/documents")

    def add_texts(self, texts: Mapping[str, str]) -> Imported:
        """Add texts that nobody has labelled, by id."""
        body = [{"id": id, "text": text} for id, text in texts.items()]
        found = Imported(0, 0, 0)
        for first in range(0, len(body), 500):
            part = self._get(Imported, self._asked("POST", "/documents", json=body[first : first + 500]))
            found = Imported(found.documents + part.documents, 0, 0)
        return found

    def import_file(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        purpose: Literal["work", "check", "training"] = "work",
    ) -> Imported:
        """Send a file of annotations, in any format that is read."""
        data = {"purpose": purpose} | ({} if format is None else {"format": format})
        content = Path(path).read_bytes()
        answer = self._asked("POST", "/import", data=data, files={"file": (Path(path).name, content)})
        return self._get(Imported, answer)

    def export(
        self,
        path: str | Path,
        *,
        what: Literal["annotations", "consensus"] = "annotations",
        format: str = "jsonl",
        names: bool = True,
    ) -> None:
        """Write everybody's annotations, or the consensus, to a file."""
        query: dict[str, Any] = {"what": what, "format": format, "names": names}

        def once() -> None:
            with self._http.stream("GET", "/export", params=query) as answer, open(path, "wb") as stream:
                if answer.status_code >= 400:
                    answer.read()
                    self._check(answer)
                for chunk in answer.iter_bytes(_CHUNK):
                    stream.write(chunk)

        self._patiently(once)

    # the consensus

    def consensus(self, document: int) -> Consensus:
        """What the consensus says of a document."""
        return self._get(Consensus, self._asked("GET", f"/consensus/{document}"))

    def progress(self) -> dict[str, Any]:
        """How far it is: the F1 to expect, how many documents, labels and spans there are."""
        answer = self._asked("GET", "/progress")
        return self._get(dict[str, Any], answer)

    def live(self) -> Iterator[Event]:
        """What happens from now on, as it happens; it ends when the service does."""
        with self._http.stream("GET", "/live", timeout=None) as answer:
            if answer.status_code >= 400:
                answer.read()
                self._check(answer)
            kind = "message"
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield Event(kind, json.loads(value))

    # people

    def people(self) -> list[Person]:
        """Everybody; for managers."""
        return self._get(list[Person], self._asked("GET", "/people"))

    def me(self) -> Person:
        """Whose token this is."""
        return self._get(Person, self._asked("GET", "/people/me"))

    def invite(self, role: Literal["annotator", "reviewer", "manager", "admin"] = "annotator") -> str:
        """A link for somebody to join with, good once within a week."""
        return str(self._asked("POST", "/invitations", json={"role": role})["url"])

    def _pages(self, kind: type[T], path: str, **query: Any) -> Iterator[T]:
        after: int | None = 0
        while after is not None:
            page = self._asked("GET", path, params={**query, "after": after, "limit": 500})
            yield from (self._get(kind, item) for item in page["items"])
            after = page["next"]

    def _get(self, kind: type[T], answer: Any) -> T:
        try:
            return msgspec.convert(answer, kind)
        except msgspec.ValidationError as error:
            raise ServerError(f"{self.url}: an answer that is not understood: {error} (upgrade quorate)") from None

    def _asked(self, method: str, path: str, **content: Any) -> Any:
        def once() -> Any:
            answer = self._http.request(method, path, **content)
            self._check(answer)
            return answer.json() if answer.content else None

        return self._patiently(once)

    def _patiently(self, once: Callable[[], T]) -> T:
        for number in range(1, self._attempts + 1):
            try:
                return once()
            except (*self._faults, WaitError) as fault:
                if number == self._attempts:
                    told = str(fault) or type(fault).__name__
                    raise WaitError(f"{self.url}: no answer after {number} attempts: {told} (is it running?)") from None
                self._pause(min(2.0 ** (number - 2), _LONGEST_WAIT) * random.uniform(0.5, 1.0))
        raise AssertionError("unreachable")

    def _check(self, answer: Any) -> None:
        """Raise what the service says went wrong."""
        if answer.status_code < 400:
            return
        try:
            told = answer.json()["error"]["message"]
        except (ValueError, KeyError, TypeError):
            told = answer.reason_phrase
        if answer.status_code in _AGAIN:
            raise WaitError(f"{answer.status_code} {told}")
        kind = NotAllowedError if answer.status_code in (401, 403) else ServerError
        raise kind(f"{self.url}{answer.request.url.path}: {told}")
