"""What people mark and how is kept with what happened, and an invitation may be for somebody by name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table of the campaign, and room for the name of somebody who is invited."""
    op.create_table(
        "campaign",
        sa.Column("event", NUMBER, autoincrement=False, nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["event"], ["events.seq"], name=op.f("fk_campaign_event")),
        sa.PrimaryKeyConstraint("event", name=op.f("pk_campaign")),
    )
    with op.batch_alter_table("invitations") as table:
        table.add_column(sa.Column("sealed", sa.LargeBinary(), nullable=True))
