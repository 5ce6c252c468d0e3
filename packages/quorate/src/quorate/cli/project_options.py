"""The options of a project's file, as the command line takes them: every command has them as defaults."""

from __future__ import annotations

import difflib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from quorate.cli.elsewhere import is_missing
from quorate.errors import SettingsError
from quorate.model.settings import GONE
from quorate.project.settings_file import SettingsFile, find
from quorate.project.store import Store

Command = Any  # of the parser that typer brings: it has no name of its own
Option = Any
_AGGREGATE = "aggregate"
# What is written belongs to the command in whose table it stands; everything else of [aggregate] says what is read and
# how it is combined, and means the same wherever a command has an option of that name.
_OWN = {"output", "to", "probabilities", "shares", "save", "meta", "report", "review", "accept", "checked"}
_OWN |= {"quiet", "verbose", "as_json"}
# What some commands would take for a wish of the user's, or mean otherwise.
_OTHERWISE = {
    "tune": {"method", "layers"},
    "encode": {"layers"},
    "simulate-active": {"layers"},
    "convert": {"map_labels", "map_annotators", "annotators"},
}
_SYNC = "label-studio sync"
_SERVE, _SERVICE = "serve", "service"
_OF_FILES = ("FILE", "MODEL")
_OF_A_PROJECT = ("inputs", "gold", "consensus", "project", "database")  # what only commands about a project take


def take_project_defaults(context: typer.Context) -> None:
    """Give the command that is about to run the options of the project that it stands in, as defaults."""
    name, commands = str(context.invoked_subcommand), getattr(context.command, "commands", {})
    if name not in commands or _asks_for_help():
        return
    command, path = commands[name], find(Path.cwd())
    if path is None or not _takes(command):
        return
    file = SettingsFile.read(path)
    check_tables(file, context.command)
    given = _defaults_of(file, name, command, commands[_AGGREGATE])
    for inner, each in getattr(command, "commands", {}).items():
        given[inner] = _defaults_of(file, f"{name} {inner}", each, commands[_AGGREGATE])
        if name == _SERVICE:  # what looks after a service is told of it what it is told itself
            own = {parameter.name for parameter in each.params}
            shared = _values(file, _SERVE, commands[_SERVE])
            given[inner] = {key: value for key, value in shared.items() if key in own} | given[inner]
    context.default_map = {**(context.default_map or {}), name: given}


def _takes(command: Command) -> bool:
    """Whether a command, or one in a group, is about annotations, and so about the project."""
    inner = getattr(command, "commands", {}).values()
    return any(parameter.name in _OF_A_PROJECT for each in (command, *inner) for parameter in each.params)


def check_tables(file: SettingsFile, group: Command) -> None:
    """:class:`SettingsError` if a table is not named after a command."""
    if any(name.partition(" ")[0] not in group.commands for name in file.options):
        group.add_others()
    commands = group.commands
    inner = [f"{name} {each}" for name, group in commands.items() for each in getattr(group, "commands", {})]
    for name in file.options:
        if name not in (*commands, *inner) and not is_missing(commands.get(name.partition(" ")[0])):
            near = difflib.get_close_matches(name, [*commands, *inner], 1)
            hint = f"did you mean [{near[0]}]?" if near else "quorate --help lists them"
            raise SettingsError(f"{file.at('', name)}: [{name}] is not a command ({hint})")


def _asks_for_help() -> bool:
    return not {"-h", "--help"}.isdisjoint(sys.argv)


def _defaults_of(file: SettingsFile, name: str, command: Command, aggregate: Command) -> dict[str, Any]:
    """What the file says for a command, by the names of its parameters."""
    own = {parameter.name: parameter for parameter in command.params}
    shared, other = _values(file, _AGGREGATE, aggregate), _OWN | _OTHERWISE.get(name, set())
    found = {key: value for key, value in shared.items() if key in own and key not in other}
    if name != _AGGREGATE:  # whose outputs are those of a run
        found |= _values(file, name, command)
    for key in {"inputs", "gold"} & own.keys() - found.keys():
        found[key] = [_from_here(path) for path in file.input_files(Store(file.root).pulled)]
    if name == _SYNC and len(file.servers()) == 1:
        found = {"url": file.servers()[0].url, "project": file.servers()[0].number} | found
    if "known" in own and file.known:
        found["known"] = [_from_here(path) for path in file.known_files()]
    return found


def options_of(file: SettingsFile, aggregate: Command, names: Iterable[str]) -> dict[str, Any]:
    """What the file says of these parameters of 'aggregate'."""
    values = _values(file, _AGGREGATE, aggregate)
    return {name: values[name] for name in names if name in values}


def arguments_of(file: SettingsFile, aggregate: Command) -> list[str]:
    """What 'aggregate' would be given to do the project's job."""
    values = _values(file, _AGGREGATE, aggregate)
    values.pop("output", None)
    arguments = [_from_here(path) for path in file.input_files(Store(file.root).pulled)]
    for path in file.known_files():
        arguments += ["--known", _from_here(path)]
    for parameter in aggregate.params:
        if parameter.name not in values:
            continue
        value = values[parameter.name]
        if parameter.is_flag:
            flags = parameter.opts if value else parameter.secondary_opts
            arguments += flags[:1]
            continue
        for each in value if isinstance(value, list) else [value]:
            arguments += [parameter.opts[0], str(each)]
    return arguments


def outputs_of(file: SettingsFile) -> list[str]:
    """Where the consensus goes, one or more places, by their names in the project."""
    given = file.options.get(_AGGREGATE, {}).get("output", "consensus.jsonl")
    outputs = given if isinstance(given, list) else [given]
    for name in outputs:
        if not isinstance(name, str) or name == "-" or not outputs:
            raise SettingsError(f"{file.at(_AGGREGATE, 'output')}: output is the name of a file, or a list of names")
    return outputs


def places_of_a_run(file: SettingsFile) -> list[Path]:
    """What 'quorate run' writes, told by the file alone: inputs need not be there."""
    own = file.options.get(_AGGREGATE, {})
    beside = [own[name] for name in ("review", "save", "meta", "report") if isinstance(own.get(name), str)]
    return [file.root / name for name in (*outputs_of(file), *beside)]


def _values(file: SettingsFile, name: str, command: Command) -> dict[str, Any]:
    """The table of a command, by the names of its parameters."""
    taken = [each for each in command.params if each.param_type_name == "option"]
    options = {
        option.lstrip("-"): each
        for each in taken
        for option in (*each.opts, *each.secondary_opts)
        if option.startswith("--")
    }
    found: dict[str, Any] = {}
    for key, value in file.options.get(name, {}).items():
        parameter = options.get(key)
        if parameter is None:
            if key in GONE:
                raise SettingsError(f"{file.at(name, key)}: there is no option {key!r} any more ({GONE[key]})")
            near = difflib.get_close_matches(key, options, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"quorate {name} --help lists them"
            raise SettingsError(f"{file.at(name, key)}: 'quorate {name}' has no option {key!r} ({hint})")
        found[str(parameter.name)] = _value(file, name, key, value, parameter)
    return found


def _value(file: SettingsFile, name: str, key: str, value: Any, parameter: Option) -> Any:
    """A value as the command takes it; what names a file is found from where the command stands."""
    where = file.at(name, key)
    if parameter.is_flag:
        if not isinstance(value, bool):
            raise SettingsError(f"{where}: {key} is true or false, not {value!r}")
        return value is not (f"--{key}" in parameter.secondary_opts)  # as --no-text, which says the contrary
    if isinstance(value, Mapping):  # of a map, in which "" drops a name, or of profiles
        return json.dumps({name: each or None for name, each in value.items()})
    if isinstance(value, bool):
        raise SettingsError(f"{where}: {key} takes a value, not {value!r}")
    if isinstance(value, list):
        if not parameter.multiple and key != "output":
            raise SettingsError(f"{where}: {key} takes one value, not a list")
        return [_path(file.root, each, parameter) for each in value]
    one = _path(file.root, value, parameter)
    return [one] if parameter.multiple else one


def _path(root: Path, value: Any, parameter: Option) -> Any:
    if isinstance(value, str) and value != "-" and any(word in (parameter.metavar or "") for word in _OF_FILES):
        path = root / value
        if (parameter.metavar or "") in _OF_FILES or path.exists():
            return _from_here(str(path))
    return value


def _from_here(path: str) -> str:
    """A path as it is best told where the command stands."""
    if path == "inline":
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
