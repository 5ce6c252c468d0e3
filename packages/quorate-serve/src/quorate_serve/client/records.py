"""What a service answers with, as values. Times are seconds since 1970; offsets are code points, ends excluded."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "Annotation",
    "Candidate",
    "Consensus",
    "ConsensusSpan",
    "Dispute",
    "Document",
    "DocumentSummary",
    "Event",
    "HistoryEntry",
    "Imported",
    "Invitation",
    "Opinion",
    "Person",
    "Place",
    "Progress",
    "Review",
    "ReviewTask",
    "Reviewed",
    "Revision",
    "Saved",
    "Span",
    "Task",
    "Token",
    "TokenMade",
    "Version",
]


class Span(msgspec.Struct, frozen=True):
    """A span of a text: its first character, the one after its last, and its label.

    >>> Span(0, 3, "PER").label
    'PER'
    """

    start: int
    end: int
    label: str


class ConsensusSpan(msgspec.Struct, frozen=True):
    """A span of the consensus, and how sure it is; as an opinion of one's own it is ``.span``.

    >>> ConsensusSpan(0, 3, "PER", 0.9).span
    Span(start=0, end=3, label='PER')
    """

    start: int
    end: int
    label: str
    confidence: float

    @property
    def span(self) -> Span:
        """The span alone."""
        return Span(self.start, self.end, self.label)


class Place(msgspec.Struct, frozen=True):
    """A part of a text."""

    start: int
    end: int


# labelling


class Task(msgspec.Struct, frozen=True):
    """A document to label, yours until ``until``.

    ``spans`` are those that you have saved, if any; ``suggestions`` is ``None`` unless the service shows any. Of a
    document for ``training``, the save tells what is right.
    """

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


class Annotation(msgspec.Struct, frozen=True):
    """What you say of a document now; the document itself (``id``, ``text``) only where one was asked for."""

    document: int
    revision: int
    at: float
    seconds: float | None
    spans: list[Span]
    id: str | None = None
    text: str | None = None
    tokens: list[tuple[int, int]] | None = None


class Revision(msgspec.Struct, frozen=True):
    """Something that you once said of a document; ``spans`` is ``None`` where you took it back."""

    event: int
    revision: int
    at: float
    seconds: float | None
    spans: list[Span] | None
    restores: int | None


# reviewing


class Version(msgspec.Struct, frozen=True):
    """What somebody says, under a letter that tells nothing of who it is."""

    name: str
    spans: list[Span]


class Candidate(msgspec.Struct, frozen=True):
    """A span that somebody marked: under which letters, and how sure the consensus is (``None``: it is not in it)."""

    start: int
    end: int
    label: str
    votes: list[str]
    confidence: float | None


class ReviewTask(msgspec.Struct, frozen=True):
    """A document to review, yours until ``until``.

    ``consensus``, its ``version``, ``confidence`` and ``candidates`` are ``None`` until :meth:`Client.reveal`, where
    reviewers are blind. ``decided`` is what you decided before.
    """

    number: int
    id: str
    text: str
    tokens: list[tuple[int, int]]
    until: float | None
    versions: list[Version]
    decided: list[Span] | None
    version: int | None
    consensus: list[ConsensusSpan] | None
    confidence: float | None
    candidates: list[Candidate] | None


class Reviewed(msgspec.Struct, frozen=True):
    """A decision is on the service's disk; ``disputed``: reviewers differ on the document since."""

    event: int
    document: int
    disputed: bool


class Review(msgspec.Struct, frozen=True):
    """What you decided on a document."""

    document: int
    at: float
    spans: list[Span]
    accepted: bool
    adjudicates: bool
    version: int | None


class Opinion(msgspec.Struct, frozen=True):
    """What a reviewer says of a document in dispute, under a letter, and what they noted."""

    name: str
    spans: list[Span]
    adjudicates: bool
    note: str


class Dispute(msgspec.Struct, frozen=True):
    """A document on which reviewers differ: what each says, in which places; ``mine``: you are one of them."""

    number: int
    id: str
    text: str
    tokens: list[tuple[int, int]]
    opinions: list[Opinion]
    places: list[Place]
    mine: bool


# documents and the consensus


class DocumentSummary(msgspec.Struct, frozen=True):
    """A document in a list, and how many annotators it has."""

    number: int
    id: str
    purpose: str
    labels: int


class Document(msgspec.Struct, frozen=True):
    """A document: its text, and where its tokens are."""

    number: int
    id: str
    purpose: str
    text: str
    tokens: list[tuple[int, int]]


class HistoryEntry(msgspec.Struct, frozen=True):
    """One thing that happened to a document; ``name`` and ``note`` are empty once their person is erased."""

    event: int
    kind: str
    at: float
    person: str | None
    name: str
    seconds: float | None
    note: str
    body: dict[str, Any]


class Imported(msgspec.Struct, frozen=True):
    """What a file brought: documents and labels that are new, how many annotators it names, and what was changed."""

    documents: int
    labels: int
    annotators: int
    notes: list[str] = []


class Consensus(msgspec.Struct, frozen=True):
    """What the consensus says of a document; ``version`` grows whenever it changes.

    ``confidence`` is the probability that all of it is right; ``labels`` says how many annotators have labelled it,
    ``known`` whether reviewers have decided it.
    """

    document: int
    id: str
    version: int
    spans: list[ConsensusSpan]
    confidence: float
    labels: int
    known: bool


class Progress(msgspec.Struct, frozen=True):
    """How far it is: what there is now, and in ``fit`` what the last fit told (``None`` before the first).

    ``version`` is the last that was given out, ``event`` the last event that it knows of. ``overlaps`` are spans that
    overlap although they must not: in how many ``documents``, and ``some`` of them.
    """

    version: int
    event: int
    at: float | None
    documents: int
    labels: int
    spans: int
    known: int
    fit: dict[str, Any] | None
    overlaps: dict[str, Any] = {}


class Event(msgspec.Struct, frozen=True):
    """Something that happened while :meth:`Client.live` listened: ``consensus``, ``progress`` or ``queue``."""

    kind: str
    data: dict[str, Any]
    id: int | None = None


# people


class Person(msgspec.Struct, frozen=True):
    """Somebody who labels, or whose labels were imported (``role`` is ``None`` then)."""

    id: str
    name: str
    email: str
    kind: str
    role: str | None
    active: bool
    cost: float
    most: int | None


class Invitation(msgspec.Struct, frozen=True):
    """A link that nobody has used yet: for somebody new with a role, or for a new password of a ``person``.

    ``by`` is who made it; nobody, if it was made on the command line.
    """

    id: str
    role: str
    person: str | None
    created: float
    until: float
    by: str | None = None


class Token(msgspec.Struct, frozen=True):
    """A token of yours, without its secret."""

    id: str
    name: str
    created: float
    until: float | None  # none: of a service that lets tokens be good for ever
    used: float | None


class TokenMade(msgspec.Struct, frozen=True):
    """A token with its secret, which is shown once."""

    id: str
    token: str
