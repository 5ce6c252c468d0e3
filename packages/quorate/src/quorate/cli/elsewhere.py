"""Commands of other packages: the entry points ``quorate.commands``, each an app of Typer whose commands join ours.

They are looked for where a command is not one of ours, and where all are listed. The commands of quorate-serve are
listed without that package too, and say what to install.
"""

from __future__ import annotations

from typing import Any

import typer

import quorate
from quorate.errors import QuorateError

__all__ = ["commands_of_others", "is_missing"]

GROUP = "quorate.commands"
_OF_SERVE = {
    "serve": "Let a team annotate and review in the browser: needs the package quorate-serve.",
    "service": "Look after what 'quorate serve' keeps: needs the package quorate-serve.",
}
_ANYTHING = {"ignore_unknown_options": True, "allow_extra_args": True}


def commands_of_others() -> dict[str, Any]:
    """The commands of packages that are installed, by name, and in place of those of quorate-serve what to install."""
    from importlib.metadata import entry_points

    found = _of_app(_without_serve())
    for entry in entry_points(group=GROUP):
        try:
            found |= _of_app(entry.load())
        except ImportError:  # its description is still there, the package is not
            continue
    return found


def is_missing(command: Any) -> bool:
    """Whether a command only says what to install: what a project's file tells it cannot be checked."""
    return command is not None and command.context_settings.items() >= _ANYTHING.items()


def _of_app(app: typer.Typer) -> dict[str, Any]:
    return dict(typer.main.get_group(app).commands)


def _without_serve() -> typer.Typer:
    app = typer.Typer()
    for name, said in _OF_SERVE.items():
        app.command(name, help=said, context_settings=_ANYTHING, add_help_option=False)(_say_what_to_install)
    return app


def _say_what_to_install(context: typer.Context) -> None:
    raise QuorateError(
        f"'quorate {context.info_name}' needs quorate-serve {quorate.__version__}, which is not installed "
        "(in a clone of the repository: pip install ./packages/quorate ./packages/quorate-serve)"
    )
