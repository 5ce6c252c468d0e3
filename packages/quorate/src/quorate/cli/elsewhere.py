"""Commands of other packages: the entry points ``quorate.commands``, each an app of Typer whose commands join ours.

They are looked for where a command is not one of ours, and where all are listed. The commands of quorate-serve are
listed without that package too, and say what to install.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

import quorate
from quorate.errors import QuorateError

__all__ = ["commands_of_others", "is_missing"]

GROUP = "quorate.commands"
_SERVE = "quorate-serve"
_INSTALL = "(in a clone of the repository: pip install ./packages/quorate ./packages/quorate-serve)"
_OF_SERVE = {
    "serve": "Let a team annotate and review in the browser: needs the package quorate-serve.",
    "service": "Look after what 'quorate serve' keeps: needs the package quorate-serve.",
}
_ANYTHING = {"ignore_unknown_options": True, "allow_extra_args": True}


def commands_of_others(warn: Callable[[str], None]) -> dict[str, Any]:
    """The commands of packages that are installed, by name, and placeholders for those of quorate-serve if it is not.

    A package whose entry point does not load has no commands: ``warn`` is called with its name and its error. The
    placeholders of quorate-serve give that error themselves.
    """
    from importlib.metadata import entry_points

    found = _placeholders(f"needs {_SERVE} {quorate.__version__}, which is not installed {_INSTALL}")
    for entry in entry_points(group=GROUP):
        try:
            found |= _of_app(entry.load())
        except Exception as error:  # whatever another package does wrong, our commands work
            failed = f"{type(error).__name__}: {' '.join(str(error).split())}"
            if entry.name == _SERVE:
                found |= _placeholders(f"needs {_SERVE}, which is installed but does not load: {failed}")
            else:
                warn(f"the commands of {entry.name!r} are left out, as it does not load: {failed}")
    return found


def is_missing(command: Any) -> bool:
    """Whether a command is a placeholder, so that its options are unknown and cannot be checked."""
    return command is not None and command.context_settings.items() >= _ANYTHING.items()


def _of_app(app: object) -> dict[str, Any]:
    if not isinstance(app, typer.Typer):
        raise TypeError(f"its entry point is no app of Typer, but of type {type(app).__name__}")
    return dict(typer.main.get_group(app).commands)


def _placeholders(reason: str) -> dict[str, Any]:
    """The commands of quorate-serve, which all end with the reason why they are not there."""

    def fail(context: typer.Context) -> None:
        raise QuorateError(f"'quorate {context.info_name}' {reason}")

    app = typer.Typer()
    for name, description in _OF_SERVE.items():
        app.command(name, help=description, context_settings=_ANYTHING, add_help_option=False)(fail)
    return _of_app(app)
