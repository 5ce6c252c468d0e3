"""Where the service keeps things: SQLite beside a project, or PostgreSQL."""
