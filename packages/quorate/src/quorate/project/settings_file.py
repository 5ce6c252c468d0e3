"""``quorate.toml``: what a project reads, what its reviewers decided, and the options of its commands.

The file has two lists, ``inputs`` and ``known``, and a table for each command with options of that command, named as on
the command line, without the dashes. Here is its shape alone: which options a command has is the command line's to say.
"""

from __future__ import annotations

import glob
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from quorate.errors import InputError, SettingsError
from quorate.wording import in_words_and_numbers

NAME = "quorate.toml"
_SHAPE = 'inputs = ["exports/*.jsonl"], known = ["reviews/*.jsonl"], and tables like [aggregate]'


class LabelStudioProject(NamedTuple):
    """A project on a Label Studio server, which is pulled before every run.

    >>> LabelStudioProject("http://localhost:8080", 3).file_name
    'label-studio-localhost-8080-3.json'
    """

    url: str
    number: int

    @property
    def file_name(self) -> str:
        """What its export is kept as."""
        place = re.sub(r"\W+", "-", self.url.partition("://")[2].strip("/"))
        return f"label-studio-{place}-{self.number}.json"


@dataclass(frozen=True)
class SettingsFile:
    """A project's file, as it was read. Its paths are as written there: relative to the folder that it is in."""

    path: Path
    inputs: tuple[str | LabelStudioProject, ...]
    known: tuple[str, ...]
    options: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path) -> SettingsFile:
        """Read and check the shape; :class:`SettingsError` says where, what and what to do.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, NAME)
        ...     _ = path.write_text('inputs = ["crowd.jsonl"]\\n[aggregate]\\nmethod = "mv"\\n')
        ...     SettingsFile.read(path).options["aggregate"]
        {'method': 'mv'}
        """
        try:
            text = path.read_bytes().decode("utf-8-sig")
            content = tomllib.loads(text)
        except OSError as error:
            raise SettingsError(f"{path}: cannot be read: {error.strerror or error}") from None
        except (UnicodeDecodeError, RecursionError):
            raise SettingsError(f"{path}: not UTF-8 text in TOML (save it as UTF-8)") from None
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{path}: not TOML: {error} (see https://toml.io)") from None
        tables = {name: value for name, value in content.items() if isinstance(value, dict)}
        for name in content:
            if name not in ("inputs", "known") and name not in tables:
                raise SettingsError(f"{_at(path, text, name)}: {name!r} is not known here (the file has {_SHAPE})")
        inputs = content.get("inputs", [])
        if not isinstance(inputs, list):
            raise SettingsError(f'{_at(path, text, "inputs")}: inputs is a list (["exports/*.jsonl"])')
        if not inputs and "serve" not in tables:  # a service may begin empty
            raise SettingsError(f'{_at(path, text, "inputs")}: no inputs (add inputs = ["exports/*.jsonl"])')
        known = content.get("known", [])
        if isinstance(known, str) or not all(isinstance(name, str) for name in known):
            raise SettingsError(f'{_at(path, text, "known")}: known is a list of files (["reviews/*.jsonl"])')
        return cls(path, tuple(_input(each, _at(path, text, "inputs")) for each in inputs), tuple(known), tables)

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.path.parent

    def at(self, command: str, option: str) -> str:
        """Where an option of a command stands, for messages."""
        return _at(self.path, self.path.read_text(encoding="utf-8-sig"), option, command)

    def input_files(self, pulled: Path) -> list[str]:
        """The files and folders to read, by name; ``pulled`` is where exports of servers are kept."""
        if not self.inputs:
            raise SettingsError(f'{self.path}: no inputs (add inputs = ["exports/*.jsonl"])')
        named = [each for each in self.inputs if isinstance(each, str)]
        servers = [pulled / each.file_name for each in self.inputs if isinstance(each, LabelStudioProject)]
        found = [*self._files(named, "inputs"), *(str(path) for path in servers if path.exists())]
        if not found:
            raise InputError("nothing was pulled from the server yet (quorate run does it)", where=str(self.path))
        return found

    def unmatched_files(self) -> list[Path]:
        """Files beside those that patterns of inputs match, which neither inputs nor known labels name."""
        patterns = [each for each in self.inputs if isinstance(each, str) and glob.has_magic(each)]
        folders = {folder for name in patterns for folder in self._matching(str(Path(name).parent)) if folder.is_dir()}
        named = [each for each in (*self.inputs, *self.known) if isinstance(each, str)]
        taken = {path for name in named for path in self._matching(name)}
        beside = sorted({path for folder in folders for path in folder.iterdir() if path.is_file()})
        return [path for path in beside if taken.isdisjoint((path, *path.parents))]

    def known_files(self) -> list[str]:
        """The files with known labels; a pattern may match none yet."""
        return self._files(self.known, "known")

    def servers(self) -> list[LabelStudioProject]:
        """The projects to pull."""
        return [each for each in self.inputs if isinstance(each, LabelStudioProject)]

    def _files(self, named: Iterable[str], what: str) -> list[str]:
        found: dict[str, None] = {}
        where = str(self.path)
        for name in named:
            if glob.has_magic(name):
                matching = sorted(map(str, self._matching(name)), key=in_words_and_numbers)
                if not matching and what == "inputs":
                    raise InputError(f"no file matches {name!r} (put one there, or change inputs)", where=where)
                found |= dict.fromkeys(matching)
            elif name == "inline":
                found[name] = None
            else:
                path = self.root / name
                if not path.exists():
                    raise InputError(f"{name}: no such file (in {what}; put it there, or take it out)", where=where)
                found[str(path)] = None
        return list(found)

    def _matching(self, pattern: str) -> list[Path]:
        """What a pattern matches, whatever the project's own folder is called."""
        return [self.root / name for name in glob.glob(pattern, root_dir=self.root, recursive=True)]


def find(start: Path) -> Path | None:
    """The file of the project that a folder is in, looked for from there upwards.

    >>> find(Path("/")) is None
    True
    """
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder / NAME
    return None


def _input(given: Any, where: str) -> str | LabelStudioProject:
    if isinstance(given, str):
        return given
    if isinstance(given, dict) and set(given) == {"label-studio", "project"}:
        url, number = given["label-studio"], given["project"]
        if isinstance(url, str) and isinstance(number, int):
            return LabelStudioProject(url, number)
    raise SettingsError(
        f"{where}: {given!r} is not an input (a file, a folder, a pattern, or "
        '{ label-studio = "http://localhost:8080", project = 3 })'
    )


def _at(path: Path, text: str, key: str, table: str = "") -> str:
    """``file:line`` of a key, or of the file if it is not there."""
    inside = not table
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"\s*\[\s*[\"']?([\w -]+?)[\"']?\s*\]", line):
            inside = found[1] == table
            if not table and found[1] == key:
                return f"{path}:{number}"
        elif inside and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
            return f"{path}:{number}"
    return str(path)
