"""The tables as they were first released."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_REFUSED = "events are only ever added"


def upgrade() -> None:
    """Make the tables, and have the database itself refuse to change an event."""
    op.create_table(
        "documents",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=512), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("tokens", sa.JSON(), nullable=False),
        sa.Column("split", sa.String(length=64), nullable=True),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("gold", sa.JSON(), nullable=True),
        sa.Column("origin", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_documents")),
        sa.UniqueConstraint("id", name=op.f("uq_documents_id")),
    )
    op.create_index("ix_documents_purpose", "documents", ["purpose"], unique=False)
    op.create_table(
        "login_attempts",
        sa.Column("login", sa.String(length=64), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("login", name=op.f("pk_login_attempts")),
    )
    op.create_index("ix_login_attempts_at", "login_attempts", ["at"], unique=False)
    op.create_table(
        "people",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("profile", sa.JSON(), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("login", sa.String(length=64), nullable=True),
        sa.Column("subject", sa.String(length=64), nullable=True),
        sa.Column("password", sa.String(length=256), nullable=True),
        sa.Column("cost", sa.Float(), nullable=False),
        sa.Column("most", sa.Integer(), nullable=True),
        sa.Column("personal", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("login", name=op.f("uq_people_login")),
        sa.UniqueConstraint("subject", name=op.f("uq_people_subject")),
    )
    op.create_table(
        "snapshots",
        sa.Column("version", NUMBER, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("event", NUMBER, nullable=False),
        sa.Column("changed", sa.JSON(), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("choice", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_snapshots")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("url", sa.String(length=2048), nullable=False),
        sa.Column("secrets", sa.LargeBinary(), nullable=False),
        sa.Column("types", sa.JSON(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("rotated", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "assignments",
        sa.Column("document", NUMBER, nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["document"], ["documents.number"], name=op.f("fk_assignments_document")),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_assignments_person")),
        sa.PrimaryKeyConstraint("document", "person", name=op.f("pk_assignments")),
    )
    op.create_index("ix_assignments_person", "assignments", ["person"], unique=False)
    op.create_index("ix_assignments_state", "assignments", ["state", "until"], unique=False)
    op.create_table(
        "audits",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("claims", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("sequential", sa.Boolean(), nullable=False),
        sa.Column("proposes", sa.Boolean(), nullable=False),
        sa.Column("ended", sa.Float(), nullable=True),
        sa.Column("checked", sa.Integer(), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_audits_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audits")),
        sa.UniqueConstraint("version", name=op.f("uq_audits_version")),
    )
    op.create_table(
        "consensus",
        sa.Column("document", NUMBER, nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("spans", sa.JSON(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("labels", sa.Integer(), nullable=False),
        sa.Column("known", sa.Boolean(), nullable=False),
        sa.Column("layers", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["document"], ["documents.number"], name=op.f("fk_consensus_document")),
        sa.PrimaryKeyConstraint("document", name=op.f("pk_consensus")),
    )
    op.create_index("ix_consensus_confidence", "consensus", ["confidence"], unique=False)
    op.create_index("ix_consensus_version", "consensus", ["version"], unique=False)
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("webhook", sa.String(length=32), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("about", sa.String(length=64), nullable=True),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due", sa.Float(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("answer", sa.String(length=256), nullable=True),
        sa.ForeignKeyConstraint(["webhook"], ["webhooks.id"], name=op.f("fk_deliveries_webhook")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("webhook", "about", name=op.f("uq_deliveries_webhook")),
    )
    op.create_index("ix_deliveries_state", "deliveries", ["state", "due"], unique=False)
    op.create_table(
        "events",
        sa.Column("seq", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=True),
        sa.Column("document", NUMBER, nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("client", sa.String(length=64), nullable=True),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("personal", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["document"], ["documents.number"], name=op.f("fk_events_document")),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_events_person")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
        sa.UniqueConstraint("id", name=op.f("uq_events_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_document", "events", ["document"], unique=False)
    op.create_index("ix_events_person", "events", ["person"], unique=False)
    op.create_table(
        "invitations",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=True),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("used", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_invitations_person")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_invitations")),
    )
    op.create_table(
        "personal_keys",
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_personal_keys_person")),
        sa.PrimaryKeyConstraint("person", name=op.f("pk_personal_keys")),
    )
    op.create_table(
        "queues",
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("documents", sa.JSON(), nullable=False),
        sa.Column("waits", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_queues_person")),
        sa.PrimaryKeyConstraint("person", name=op.f("pk_queues")),
    )
    op.create_table(
        "review_leases",
        sa.Column("document", NUMBER, nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("revealed", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["document"], ["documents.number"], name=op.f("fk_review_leases_document")),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_review_leases_person")),
        sa.PrimaryKeyConstraint("document", "person", name=op.f("pk_review_leases")),
    )
    op.create_index("ix_review_leases_person", "review_leases", ["person"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("csrf", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("idle_until", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_sessions_person")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sessions")),
    )
    op.create_index("ix_sessions_person", "sessions", ["person"], unique=False)
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=True),
        sa.Column("used", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_tokens_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
    )
    op.create_index("ix_tokens_person", "tokens", ["person"], unique=False)
    op.create_table(
        "annotations",
        sa.Column("document", NUMBER, nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("event", NUMBER, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("spans", sa.JSON(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["document"], ["documents.number"], name=op.f("fk_annotations_document")),
        sa.ForeignKeyConstraint(["event"], ["events.seq"], name=op.f("fk_annotations_event")),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_annotations_person")),
        sa.PrimaryKeyConstraint("document", "person", name=op.f("pk_annotations")),
    )
    op.create_index("ix_annotations_person", "annotations", ["person"], unique=False)
    op.create_table(
        "reviews",
        sa.Column("document", NUMBER, nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("event", NUMBER, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("spans", sa.JSON(), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=False),
        sa.Column("adjudicates", sa.Boolean(), nullable=False),
        sa.Column("version", NUMBER, nullable=True),
        sa.ForeignKeyConstraint(["document"], ["documents.number"], name=op.f("fk_reviews_document")),
        sa.ForeignKeyConstraint(["event"], ["events.seq"], name=op.f("fk_reviews_event")),
        sa.ForeignKeyConstraint(["person"], ["people.id"], name=op.f("fk_reviews_person")),
        sa.PrimaryKeyConstraint("document", "person", name=op.f("pk_reviews")),
    )
    op.create_index("ix_reviews_person", "reviews", ["person"], unique=False)
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


def downgrade() -> None:
    """Drop everything."""
    op.drop_table("reviews")
    op.drop_table("annotations")
    op.drop_table("tokens")
    op.drop_table("sessions")
    op.drop_table("review_leases")
    op.drop_table("queues")
    op.drop_table("personal_keys")
    op.drop_table("invitations")
    op.drop_table("events")
    op.drop_table("deliveries")
    op.drop_table("consensus")
    op.drop_table("audits")
    op.drop_table("assignments")
    op.drop_table("webhooks")
    op.drop_table("snapshots")
    op.drop_table("people")
    op.drop_table("login_attempts")
    op.drop_table("documents")
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION events_stay()")
