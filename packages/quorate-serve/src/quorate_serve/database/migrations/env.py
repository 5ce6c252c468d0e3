"""Alembic's way in: the connection is given by whoever opens the database."""

from __future__ import annotations

from alembic import context

from quorate_serve.database.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
context.run_migrations()
