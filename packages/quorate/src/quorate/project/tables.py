"""One table of ``quorate.toml`` with other values, and all else in the file as it was, with its comments."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from quorate.errors import SettingsError
from quorate.project.settings_file import NAME

_HEADER = re.compile(r"\s*\[\s*[\"']?([\w -]+?)[\"']?\s*\]\s*(#.*)?")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def with_values(text: str, table: str, values: Mapping[str, Any]) -> str:
    """The text of a file in which a table has these values; ``None`` takes one out.

    What is written is read again: where a file is put together in a way that is not understood here, nothing is changed
    and :class:`SettingsError` says so.

    >>> print(with_values('[serve]\\nport = 1  # ours\\nlabels = "A"\\n', "serve", {"labels": "A,B"}), end="")
    [serve]
    port = 1  # ours
    labels = "A,B"
    """
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if (found := _HEADER.fullmatch(line)) and found[1] == table), None)
    if start is None:
        lines += ["", f"[{table}]"] if lines else [f"[{table}]"]
        start = len(lines) - 1
    end = next((n for n in range(start + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    own, left = lines[start + 1 : end], {name: value for name, value in values.items() if value is not None}
    changed: list[str] = []
    for line in own:
        name = next((name for name in values if re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", line)), None)
        if name is None:
            changed.append(line)
        elif name in left:
            changed.append(f"{name} = {_literal(left.pop(name))}")
    said = [n for n, line in enumerate(changed, 1) if line.strip() and not line.lstrip().startswith("#")]
    at = said[-1] if said else 0
    changed[at:at] = [f"{name} = {_literal(value)}" for name, value in left.items()]
    new = "\n".join([*lines[: start + 1], *changed, *lines[end:]]).rstrip() + "\n"
    _check(text, new, table, values)
    return new


def _check(before: str, after: str, table: str, values: Mapping[str, Any]) -> None:
    """:class:`SettingsError` unless the file says what it should and nothing else changed."""
    expected = tomllib.loads(before)
    told = {**expected.get(table, {}), **values}
    expected[table] = {name: value for name, value in told.items() if value is not None}
    try:
        found = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        found = {}
    if found != expected:
        names = ", ".join(values)
        raise SettingsError(f"{NAME} cannot be changed as it is written (put {names} into [{table}], one on a line)")


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_literal(each)}" for name, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)
