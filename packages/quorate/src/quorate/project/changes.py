"""What is other than it was in a version, in the words of ``quorate.toml``: files, options, outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any

from quorate.model.settings import Settings
from quorate.project.store import Version

_GROUPS = ("settings", "reading")  # what is in them are options like all others
_OPTIONS = {"format": "from", "predictions": "with-predictions"}  # where the name is not that of the option
_OPTIONS |= {one.name: one.metadata["option"].removeprefix("--") for one in fields(Settings) if one.metadata["option"]}
_MAPS = ("map-labels", "map-annotators", "annotators")


def what_changed(
    before: Version, inputs: Mapping[str, str], known: Mapping[str, str], decided: Mapping[str, Any]
) -> Iterator[str]:
    """What of all that decides a consensus is other than it was in a version."""
    yield from _files("input", before.inputs, inputs)
    yield from _files("review", before.known, known)
    then, now = _by_option(before.decided), _by_option(decided)
    for name in sorted({*then, *now}):
        if then.get(name) != now.get(name):
            yield from _option(name, then.get(name), now.get(name))


def outputs_changed(before: Version, outputs: Collection[str]) -> Iterator[str]:
    """Which outputs are asked for that a version did not write, and which no longer are."""
    found = [f"{name} new" for name in outputs if name not in before.outputs]
    found += [f"{name} gone" for name in before.outputs if name not in outputs]
    if found:
        yield f"outputs: {', '.join(found)}"


def _files(what: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Files, by their digests."""
    yield from (f"new {what} {name}" for name in new if name not in old)
    yield from (f"changed {what} {name}" for name in new if name in old and new[name] != old[name])
    yield from (f"removed {what} {name}" for name in old if name not in new)
    if [name for name in new if name in old] != [name for name in old if name in new]:
        yield f"{what} files: in another order"  # where two contradict, the last counts


def _by_option(decided: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, by the names of options."""
    given = {name: value for name, value in decided.items() if name not in _GROUPS}
    for group in _GROUPS:
        given |= decided.get(group, {})
    named = ((_OPTIONS.get(name, name.replace("_", "-")), value) for name, value in given.items())
    return {name: value for name, value in named if value not in (None, [], ())}


def _option(name: str, old: Any, new: Any) -> Iterator[str]:
    if name == "inline":
        yield f"gold in the inputs: {'known now' if new else 'no longer known'}"
    elif name == "checked":
        yield from _files("checked file", old or {}, new or {})
    elif name == "history" or (name in _MAPS and (isinstance(old, str) or isinstance(new, str))):
        yield f"{name}: {_came_or_went(old, new)}"  # digests, of maps where names are hidden
    elif name in _MAPS:
        yield from _entries(name, old or {}, new or {})
    else:
        yield f"{name}: {_shown(old)} → {_shown(new)}"


def _entries(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """What differs of a map of names, or of profiles."""
    for name in sorted({*old, *new}):
        one, other = old.get(name), new.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _entries(f"{where} {name}", one, other)
        elif isinstance(one, Mapping) or isinstance(other, Mapping):
            yield f"{where} {name}: {_came_or_went(one, other)}"
        elif one != other or (name in old) != (name in new):
            yield f"{where} {name}: {_entry(old, name)} → {_entry(new, name)}"


def _entry(entries: Mapping[str, Any], name: str) -> str:
    return "dropped" if name in entries and entries[name] is None else _shown(entries.get(name))


def _came_or_went(old: object, new: object) -> str:
    return "new" if old is None else "gone" if new is None else "changed"


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
