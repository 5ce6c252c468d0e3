"""The settings of a fit: options from their declaration, and files that 'tune' wrote."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Annotated, Any

import typer

from quorate.cli.common import with_options
from quorate.errors import SettingsError
from quorate.model.settings import GONE, Settings

_OTHERS = {"n_jobs": "--threads", "accept": "--accept"}  # options that are no settings of a fit
_DIALS = ("precision", "recall")  # a consensus keeps to one of them
_OUTPUT = ("decode", *_DIALS)  # settings that a saved model can be given anew


class Given(dict[str, Any]):
    """The settings that were given as options, by name."""

    def anew(self) -> Given:
        """The same for a saved model: with one dial given, the other, which it may have been saved with, is reset.

        >>> Given({"recall": 0.9}).anew(), Given({"decode": "f1"}).anew()
        ({'precision': None, 'recall': 0.9}, {'decode': 'f1'})
        """
        return Given(dict.fromkeys(_DIALS) | self) if self.keys() & set(_DIALS) else self


def in_options(message: str) -> str:
    """What is wrong with a setting, by the name of its option where that is another.

    >>> in_options("max_iter must be 1 or more, not 0")
    '--max-passes must be 1 or more, not 0'
    """
    named = {field.name: field.metadata["option"] for field in fields(Settings) if field.metadata["option"]} | _OTHERS
    return re.sub(r"^\w+(?= must)|(?<=has no setting ')\w+(?=')", lambda found: named.get(found[0], found[0]), message)


def takes_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command an option for every setting of a fit; it takes them as one parameter, ``given``."""
    return _takes(command, fields(Settings))


def takes_output_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for settings of what is given out, which a fit does not depend on."""
    return _takes(command, tuple(field for field in fields(Settings) if field.name in _OUTPUT))


def _takes(command: Callable[..., Any], settings: tuple[Field[Any], ...]) -> Callable[..., Any]:
    own = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [each for each in own.parameters.values() if each.name != "given"]
    for field in settings:
        metadata = field.metadata
        flag = metadata["option"] or f"--{field.name.replace('_', '-')}"
        value: type[Any] = str if metadata["within"] is None else int if metadata["within"].whole else float
        if isinstance(field.default, bool):
            value, flag = bool, f"{flag}/--no-{flag.removeprefix('--')}"
        option = typer.Option(
            flag, metavar=metadata["metavar"], help=metadata["help"], rich_help_panel=metadata["panel"]
        )
        parameters.append(inspect.Parameter(field.name, kind, default=None, annotation=Annotated[value | None, option]))

    def run(**values: Any) -> Any:
        given = Given()
        for field in settings:
            value = values.pop(field.name)
            if value is not None:
                given[field.name] = value
        return command(given=given, **values)

    return with_options(run, command, parameters)


def settings_from_file(path: str | None, method: str | None) -> tuple[str | None, dict[str, Any]]:
    """Method and settings from a file of 'tune'; a method given on the command line must be the same."""
    if path is None:
        return method, {}
    try:
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
        tuned_method, settings = content["method"], dict(content["settings"])
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SettingsError(f"{path}: not a settings file (make one with: quorate tune … -o FILE)") from None
    if method is not None and method != tuned_method:
        raise SettingsError(f"{path}: these settings are for method {tuned_method!r}, not {method!r}")
    for name in settings:
        if name in GONE:
            raise SettingsError(f"{path}: there is no setting {name!r} any more ({GONE[name]})")
    return tuned_method, settings
