"""The command that serves a team: ``quorate serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quorate.cli.common import app, say
from quorate.errors import SettingsError
from quorate.project.settings_file import SettingsFile, find

__all__ = ["serve"]


@app.command(
    epilog="Examples:\n\n"
    "quorate serve\n\n"
    "quorate serve --demo\n\n"
    "quorate serve --database postgresql://quorate@localhost/quorate --host 0.0.0.0 --origin https://labels.example.org"
)
def serve(
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="URL",
            help="postgresql://…, for teams; unless given, a file of SQLite in the project.",
            envvar="QUORATE_DATABASE",
            show_envvar=True,
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Where to listen; 0.0.0.0 is everywhere.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port to listen on.")] = 8787,
    origin: Annotated[
        str | None,
        typer.Option("--origin", metavar="URL", help="The address that browsers use, where a proxy stands before it."),
    ] = None,
) -> None:
    """Let a team annotate and review in the browser, with a consensus that follows."""
    try:
        from quorate.service.settings import ServiceSettings
        from quorate.service.start import begin
        from quorate.service.supervisor import listen, supervise
    except ModuleNotFoundError as error:
        raise SettingsError(f"{error.name} is not installed (pip install 'quorate[serve]')") from None

    path = find(Path.cwd())
    root = Path.cwd() if path is None else path.parent
    file = None if path is None else SettingsFile.read(path)
    settings = ServiceSettings(root, database, host, port, origin)
    taken = listen(settings)
    say(begin(settings, file))
    supervise(settings, taken)
