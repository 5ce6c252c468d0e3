"""No settings are chosen any more, so that no snapshot has any."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Drop the column that had them."""
    op.drop_column("snapshots", "choice")
