"""A team, a browser, a database: what ``quorate serve`` runs, and nothing else imports."""
