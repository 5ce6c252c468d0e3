"""What the service answers with, for its routes and for its client (:mod:`quorate_serve.client`) alike.

Times are seconds since 1970; offsets are code points, ends excluded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "AnnotatedDocument",
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
    "Overlap",
    "Overlaps",
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


@dataclass(frozen=True)
class Span:
    """A span of a text: its first character, the one after its last, and its label.

    >>> Span(0, 3, "PER").label
    'PER'
    """

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class ConsensusSpan:
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


@dataclass(frozen=True, order=True)
class Place:
    """A part of a text."""

    start: int
    end: int


# labelling


@dataclass(frozen=True)
class Task:
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


@dataclass(frozen=True)
class Saved:
    """It is on the service's disk; ``gold`` is what is right, of a document to learn from."""

    event: int
    document: int
    revision: int
    gold: list[Span] | None = None


@dataclass(frozen=True)
class Annotation:
    """What you say of a document now."""

    document: int
    revision: int
    at: float
    seconds: float | None
    spans: list[Span]


@dataclass(frozen=True)
class AnnotatedDocument(Annotation):
    """The same, with the document."""

    id: str
    text: str
    tokens: list[tuple[int, int]]


@dataclass(frozen=True)
class Revision:
    """Something that you once said of a document; ``spans`` is ``None`` where you took it back."""

    event: int
    revision: int
    at: float
    seconds: float | None
    spans: list[Span] | None
    restores: int | None


# reviewing


@dataclass(frozen=True)
class Version:
    """What somebody says, under a letter that tells nothing of who it is."""

    name: str
    spans: list[Span]


@dataclass(frozen=True)
class Candidate(Span):
    """A span that somebody marked: under which letters, and how sure the consensus is (``None``: it is not in it)."""

    votes: list[str]
    confidence: float | None


@dataclass(frozen=True)
class ReviewTask:
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
    version: int | None = None
    consensus: list[ConsensusSpan] | None = None
    confidence: float | None = None
    candidates: list[Candidate] | None = None


@dataclass(frozen=True)
class Reviewed:
    """A decision is on the service's disk; ``disputed``: reviewers differ on the document since."""

    event: int
    document: int
    disputed: bool


@dataclass(frozen=True)
class Review:
    """What you decided on a document."""

    document: int
    at: float
    spans: list[Span]
    accepted: bool
    adjudicates: bool
    version: int | None


@dataclass(frozen=True)
class Opinion(Version):
    """What a reviewer says of a document in dispute, and what they noted."""

    adjudicates: bool
    note: str


@dataclass(frozen=True)
class Dispute:
    """A document on which reviewers differ: what each says, in which places; ``mine``: you are one of them."""

    number: int
    id: str
    text: str
    tokens: list[tuple[int, int]]
    opinions: list[Opinion]
    places: list[Place]
    mine: bool


# documents and the consensus


@dataclass(frozen=True)
class DocumentSummary:
    """A document in a list, and how many annotators it has."""

    number: int
    id: str
    purpose: str
    labels: int


@dataclass(frozen=True)
class Document:
    """A document: its text, and where its tokens are."""

    number: int
    id: str
    purpose: str
    text: str
    tokens: list[tuple[int, int]]


@dataclass(frozen=True)
class HistoryEntry:
    """One thing that happened to a document; ``name`` and ``note`` are empty once their person is erased."""

    event: int
    kind: str
    at: float
    person: str | None
    name: str
    seconds: float | None
    note: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Imported:
    """What a file brought: documents and labels that are new, how many annotators it names, and what was changed."""

    documents: int
    labels: int
    annotators: int
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Consensus:
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


@dataclass(frozen=True)
class Overlap:
    """A span that must not overlap the ``other``, which counts (``None``: too many share a word).

    ``person`` is for managers.
    """

    document: int
    person: str | None
    span: Span
    other: Span | None


@dataclass(frozen=True)
class Overlaps:
    """How many documents have spans of one annotator that overlap although they must not, and some of these."""

    documents: int = 0
    some: list[Overlap] = field(default_factory=list)


@dataclass(frozen=True)
class Progress:
    """How far it is: what there is now, and in ``fit`` what the last fit told (``None`` before the first).

    ``version`` is the last that was given out, ``event`` the last event that it knows of. ``fit`` has the annotators'
    ``agreement`` (Krippendorff's alpha, ``None`` where nothing can be compared) and, for managers, each annotator's
    habits with 95 % intervals.
    """

    version: int
    event: int
    at: float | None
    documents: int
    labels: int
    spans: int
    known: int
    fit: dict[str, Any] | None
    overlaps: Overlaps = Overlaps()


@dataclass(frozen=True)
class Event:
    """Something that happened while :meth:`Client.live` listened: ``consensus``, ``progress`` or ``queue``."""

    kind: str
    data: dict[str, Any]
    id: int | None = None


# people


@dataclass(frozen=True)
class Person:
    """Somebody who labels, or whose labels were imported (``role`` is ``None`` then)."""

    id: str
    name: str
    email: str
    kind: str
    role: str | None
    active: bool
    cost: float
    most: int | None


@dataclass(frozen=True)
class Invitation:
    """A link that nobody has used yet: for somebody new with a role, or for a new password of a ``person``.

    ``by`` is who made it; nobody, if it was made on the command line. ``name`` is whom it was made for, if it was made
    for anybody by name; ``url`` is ``None`` where it was shown once.
    """

    id: str
    role: str
    person: str | None
    created: float
    until: float
    by: str | None = None
    name: str = ""
    url: str | None = None


@dataclass(frozen=True)
class Token:
    """A token of yours, without its secret."""

    id: str
    name: str
    created: float
    until: float | None  # none: of a service that lets tokens be good for ever
    used: float | None


@dataclass(frozen=True)
class TokenMade:
    """A token with its secret, which is shown once."""

    id: str
    token: str
