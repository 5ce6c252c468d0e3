"""Every token ends, and an invitation knows who made it."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_DAYS = 90


def upgrade() -> None:
    """Tokens that end later than in 90 days, or never, end then."""
    tokens = sa.table("tokens", sa.column("until", sa.Float()))
    latest = time.time() + 86_400 * _DAYS
    op.execute(tokens.update().where(sa.or_(tokens.c.until.is_(None), tokens.c.until > latest)).values(until=latest))
    with op.batch_alter_table("tokens") as table:
        table.alter_column("until", existing_type=sa.Float(), nullable=False)
    with op.batch_alter_table("invitations") as table:
        table.add_column(sa.Column("by", sa.String(length=32), nullable=True))
        table.create_foreign_key(op.f("fk_invitations_by"), "people", ["by"], ["id"])
