"""The tables. ``events`` is what happened, and is only ever added to; what stands now is in the tables after it.

Times are seconds since 1970 in UTC. Offsets are code points. People are known by ids that say nothing: who they are is
in ``people.personal``, under a key of their own in ``personal_keys``; without the key nobody can read it.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
_Number = BigInteger().with_variant(Integer, "sqlite")  # what SQLite counts up by itself is an INTEGER


def _person(*, primary_key: bool = False, nullable: bool = True) -> Column[str]:
    nullable = nullable and not primary_key
    return Column("person", String(32), ForeignKey("people.id"), primary_key=primary_key, nullable=nullable)


def _document(*, primary_key: bool = False) -> Column[int]:
    reference = ForeignKey("documents.number")
    return Column("document", _Number, reference, primary_key=primary_key, nullable=not primary_key)


people = Table(
    "people",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("kind", String(16), nullable=False),  # person, expert, model or rule
    Column("profile", JSON),  # what files told of them: kind, trust, abstains, group
    Column("role", String(16)),  # none: labels were imported under this name, nobody logs in with it
    Column("active", Boolean, nullable=False),
    Column("created", Float, nullable=False),
    Column("login", String(64), unique=True),  # a digest of the name, to find them by
    Column("subject", String(64), unique=True),  # a digest of who they are at the provider of logins
    Column("password", String(256)),
    Column("cost", Float, nullable=False),  # of a document
    Column("most", Integer),  # documents, if not as many as the queue has
    Column("personal", LargeBinary),
)

personal_keys = Table(
    "personal_keys",
    metadata,
    Column("person", String(32), ForeignKey("people.id"), primary_key=True),
    Column("key", LargeBinary, nullable=False),
)

documents = Table(
    "documents",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("id", String(512), nullable=False, unique=True),
    Column("text", Text, nullable=False),
    Column("tokens", JSON, nullable=False),  # [[start, end], ...]
    Column("split", String(64)),
    Column("purpose", String(16), nullable=False),  # work, check (labels are known) or training
    Column("gold", JSON),  # spans, of a check or of training
    Column("origin", JSON),  # what its tool needs to know it again
    Index("ix_documents_purpose", "purpose"),
)

events = Table(
    "events",
    metadata,
    Column("seq", _Number, primary_key=True, autoincrement=True),
    Column("id", String(64), nullable=False, unique=True),  # made by whoever saves, so that twice is once
    Column("kind", String(32), nullable=False),
    Column("at", Float, nullable=False),
    _person(),
    _document(),
    Column("seconds", Float),
    Column("client", String(64)),
    Column("body", JSON, nullable=False),
    Column("personal", LargeBinary),  # notes and the like, under the person's key
    Index("ix_events_document", "document"),
    Index("ix_events_person", "person"),
    sqlite_autoincrement=True,
)

current_annotations = Table(
    "annotations",
    metadata,
    _document(primary_key=True),
    _person(primary_key=True),
    Column("event", _Number, ForeignKey("events.seq"), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("at", Float, nullable=False),
    Column("seconds", Float),
    Column("spans", JSON, nullable=False),
    Column("tags", JSON),  # of an import whose tags spans cannot hold: tokens not seen, probabilities
    Index("ix_annotations_person", "person"),
)

assignments = Table(
    "assignments",
    metadata,
    _document(primary_key=True),
    _person(primary_key=True),
    Column("purpose", String(16), nullable=False),  # work, check, training
    Column("state", String(16), nullable=False),  # leased, done, released
    Column("at", Float, nullable=False),
    Column("until", Float, nullable=False),
    Index("ix_assignments_person", "person"),
    Index("ix_assignments_state", "state", "until"),
)

campaign = Table(
    "campaign",
    metadata,
    Column("event", _Number, ForeignKey("events.seq"), primary_key=True),  # the last change: there is one row, or none
    Column("body", JSON, nullable=False),
)

reviews = Table(
    "reviews",
    metadata,
    _document(primary_key=True),
    _person(primary_key=True),
    Column("event", _Number, ForeignKey("events.seq"), nullable=False),
    Column("at", Float, nullable=False),
    Column("spans", JSON, nullable=False),
    Column("accepted", Boolean, nullable=False),
    Column("adjudicates", Boolean, nullable=False),
    Column("version", _Number),  # of the consensus that was looked at
    Index("ix_reviews_person", "person"),
)

review_leases = Table(
    "review_leases",
    metadata,
    _document(primary_key=True),
    _person(primary_key=True),
    Column("at", Float, nullable=False),
    Column("until", Float, nullable=False),
    Column("revealed", Float),  # when they were shown the consensus
    Index("ix_review_leases_person", "person"),
)

consensus = Table(
    "consensus",
    metadata,
    Column("document", _Number, ForeignKey("documents.number"), primary_key=True),
    Column("version", _Number, nullable=False),
    Column("spans", JSON, nullable=False),  # with their confidence
    Column("confidence", Float, nullable=False),
    Column("labels", Integer, nullable=False),
    Column("known", Boolean, nullable=False),
    Column("layers", JSON, nullable=False),  # what a file has of each: types, tags, and how sure it is of every token
    Index("ix_consensus_confidence", "confidence"),
    Index("ix_consensus_version", "version"),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("version", _Number, primary_key=True, autoincrement=True),
    Column("kind", String(16), nullable=False),  # update, refit, queues, outlook, failed (a fit)
    Column("at", Float, nullable=False),
    Column("event", _Number, nullable=False),  # the last that it knows of
    Column("changed", JSON, nullable=False),  # numbers of documents; null where too many to name
    Column("summary", JSON, nullable=False),  # agreement, annotators, why
    sqlite_autoincrement=True,
)

queues = Table(
    "queues",
    metadata,
    Column("person", String(32), ForeignKey("people.id"), primary_key=True),
    Column("version", _Number, nullable=False),
    Column("documents", JSON, nullable=False),  # [[number, bits for its cost], ...], the best first
    Column("waits", Boolean, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", String(64), primary_key=True),
    _person(nullable=False),
    Column("csrf", String(64), nullable=False),
    Column("created", Float, nullable=False),
    Column("until", Float, nullable=False),
    Column("idle_until", Float, nullable=False),  # when it ends unless it is used before
    Index("ix_sessions_person", "person"),
)

login_attempts = Table(
    "login_attempts",
    metadata,
    Column("login", String(64), primary_key=True),  # a digest of the name that was typed, whether or not it is known
    Column("attempts", Integer, nullable=False),  # since the last login that was right
    Column("at", Float, nullable=False),
    Index("ix_login_attempts_at", "at"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    _person(nullable=False),
    Column("name", String(128), nullable=False),
    Column("created", Float, nullable=False),
    Column("until", Float, nullable=False),
    Column("used", Float),
    Index("ix_tokens_person", "person"),
)

invitations = Table(
    "invitations",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("person", String(32), ForeignKey("people.id")),  # who is to choose a new password, or nobody yet
    Column("by", String(32), ForeignKey("people.id")),  # who made it; nobody: it was made on the command line
    Column("created", Float, nullable=False),
    Column("until", Float, nullable=False),
    Column("used", Float),
    Column("sealed", LargeBinary),  # for whom it is, and what opens it where that may be shown; under the service's key
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("url", String(2048), nullable=False),
    Column("secrets", LargeBinary, nullable=False),  # the one that signs, and the one before; under the service's key
    Column("types", JSON, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("created", Float, nullable=False),
    Column("rotated", Float),  # when the secret was last replaced
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("webhook", String(32), ForeignKey("webhooks.id"), nullable=False),
    Column("type", String(32), nullable=False),
    Column("about", String(64)),  # what a webhook is told once, if it is of that kind
    Column("created", Float, nullable=False),
    Column("body", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due", Float, nullable=False),
    Column("state", String(16), nullable=False),  # waiting, delivered, given-up
    Column("answer", String(256)),
    Index("ix_deliveries_state", "state", "due"),
    UniqueConstraint("webhook", "about"),
)

audits = Table(
    "audits",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("at", Float, nullable=False),
    _person(),  # who planned it
    Column("version", _Number, nullable=False),
    Column("claims", Text, nullable=False),  # the consensus of that version, as a file has it
    Column("plan", Text, nullable=False),  # the file of the plan, as `quorate audit plan` writes it
    Column("sequential", Boolean, nullable=False),
    Column("proposes", Boolean, nullable=False),  # whether those who check are shown the consensus, to correct it
    Column("ended", Float),  # all is checked, or it was given up
    Column("checked", Integer, nullable=False),  # documents that the result rests on
    Column("result", JSON(none_as_null=True)),
    UniqueConstraint("version"),  # of two draws from one consensus, somebody would choose
)
