"""The tables as they were first released."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_REFUSED = "events are only ever added"


def upgrade() -> None:
    """Make the tables, and have the database itself refuse to change an event."""
    op.create_table(
        "documents",
        sa.Column("number", NUMBER, autoincrement=True, primary_key=True),
        sa.Column("id", sa.String(length=512), unique=True, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("tokens", sa.JSON(), nullable=False),
        sa.Column("split", sa.String(length=64)),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("gold", sa.JSON()),
        sa.Column("origin", sa.JSON()),
    )
    op.create_index("ix_documents_purpose", "documents", ["purpose"])
    op.create_table(
        "login_attempts",
        sa.Column("login", sa.String(length=64), primary_key=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
    )
    op.create_index("ix_login_attempts_at", "login_attempts", ["at"])
    op.create_table(
        "people",
        sa.Column("id", sa.String(length=32), primary_key=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("profile", sa.JSON()),
        sa.Column("role", sa.String(length=16)),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("login", sa.String(length=64), unique=True),
        sa.Column("subject", sa.String(length=64), unique=True),
        sa.Column("password", sa.String(length=256)),
        sa.Column("cost", sa.Float(), nullable=False),
        sa.Column("most", sa.Integer()),
        sa.Column("personal", sa.LargeBinary()),
    )
    op.create_table(
        "snapshots",
        sa.Column("version", NUMBER, autoincrement=True, primary_key=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("event", NUMBER, nullable=False),
        sa.Column("changed", sa.JSON(), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("choice", sa.JSON(none_as_null=True)),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(length=32), primary_key=True),
        sa.Column("url", sa.String(length=2048), nullable=False),
        sa.Column("secrets", sa.LargeBinary(), nullable=False),
        sa.Column("types", sa.JSON(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("rotated", sa.Float()),
    )
    op.create_table(
        "assignments",
        sa.Column("document", NUMBER, sa.ForeignKey("documents.number"), primary_key=True),
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id"), primary_key=True),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
    )
    op.create_index("ix_assignments_person", "assignments", ["person"])
    op.create_index("ix_assignments_state", "assignments", ["state", "until"])
    op.create_table(
        "audits",
        sa.Column("id", sa.String(length=32), primary_key=True),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id")),
        sa.Column("version", NUMBER, unique=True, nullable=False),
        sa.Column("claims", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("sequential", sa.Boolean(), nullable=False),
        sa.Column("proposes", sa.Boolean(), nullable=False),
        sa.Column("ended", sa.Float()),
        sa.Column("checked", sa.Integer(), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True)),
    )
    op.create_table(
        "consensus",
        sa.Column("document", NUMBER, sa.ForeignKey("documents.number"), primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("spans", sa.JSON(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("labels", sa.Integer(), nullable=False),
        sa.Column("known", sa.Boolean(), nullable=False),
        sa.Column("layers", sa.JSON(), nullable=False),
    )
    op.create_index("ix_consensus_confidence", "consensus", ["confidence"])
    op.create_index("ix_consensus_version", "consensus", ["version"])
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(length=64), primary_key=True),
        sa.Column("webhook", sa.String(length=32), sa.ForeignKey("webhooks.id"), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("about", sa.String(length=64)),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due", sa.Float(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("answer", sa.String(length=256)),
        sa.UniqueConstraint("webhook", "about"),
    )
    op.create_index("ix_deliveries_state", "deliveries", ["state", "due"])
    op.create_table(
        "events",
        sa.Column("seq", NUMBER, autoincrement=True, primary_key=True),
        sa.Column("id", sa.String(length=64), unique=True, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id")),
        sa.Column("document", NUMBER, sa.ForeignKey("documents.number")),
        sa.Column("seconds", sa.Float()),
        sa.Column("client", sa.String(length=64)),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("personal", sa.LargeBinary()),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_document", "events", ["document"])
    op.create_index("ix_events_person", "events", ["person"])
    op.create_table(
        "invitations",
        sa.Column("digest", sa.String(length=64), primary_key=True),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id")),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("used", sa.Float()),
    )
    op.create_table(
        "personal_keys",
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id"), primary_key=True),
        sa.Column("key", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "queues",
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id"), primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("documents", sa.JSON(), nullable=False),
        sa.Column("waits", sa.Boolean(), nullable=False),
    )
    op.create_table(
        "review_leases",
        sa.Column("document", NUMBER, sa.ForeignKey("documents.number"), primary_key=True),
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id"), primary_key=True),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("revealed", sa.Float()),
    )
    op.create_index("ix_review_leases_person", "review_leases", ["person"])
    op.create_table(
        "sessions",
        sa.Column("digest", sa.String(length=64), primary_key=True),
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id"), nullable=False),
        sa.Column("csrf", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("idle_until", sa.Float(), nullable=False),
    )
    op.create_index("ix_sessions_person", "sessions", ["person"])
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=32), primary_key=True),
        sa.Column("digest", sa.String(length=64), unique=True, nullable=False),
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id"), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("until", sa.Float()),
        sa.Column("used", sa.Float()),
    )
    op.create_index("ix_tokens_person", "tokens", ["person"])
    op.create_table(
        "annotations",
        sa.Column("document", NUMBER, sa.ForeignKey("documents.number"), primary_key=True),
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id"), primary_key=True),
        sa.Column("event", NUMBER, sa.ForeignKey("events.seq"), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("seconds", sa.Float()),
        sa.Column("spans", sa.JSON(), nullable=False),
        sa.Column("tags", sa.JSON()),
    )
    op.create_index("ix_annotations_person", "annotations", ["person"])
    op.create_table(
        "reviews",
        sa.Column("document", NUMBER, sa.ForeignKey("documents.number"), primary_key=True),
        sa.Column("person", sa.String(length=32), sa.ForeignKey("people.id"), primary_key=True),
        sa.Column("event", NUMBER, sa.ForeignKey("events.seq"), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("spans", sa.JSON(), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=False),
        sa.Column("adjudicates", sa.Boolean(), nullable=False),
        sa.Column("version", NUMBER),
    )
    op.create_index("ix_reviews_person", "reviews", ["person"])
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER events_no_{change.lower()} BEFORE {change} ON events "
                f"BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END"
            )
    else:
        op.execute(
            "CREATE FUNCTION events_stay() RETURNS trigger AS "
            f"$$ BEGIN RAISE EXCEPTION '{_REFUSED}'; END $$ LANGUAGE plpgsql"
        )
        op.execute(
            "CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
            "FOR EACH STATEMENT EXECUTE FUNCTION events_stay()"
        )
