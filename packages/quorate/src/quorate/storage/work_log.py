"""Results of long work in a file, a line each, under a head that says of what: so that interrupted work goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from quorate.errors import InputError
from quorate.storage.files.atomic import written_whole


class Store:
    """Records of one piece of work; without a path they are not kept. ``what`` names them in messages.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Store(f"{folder}/done.jsonl", {"of": "x"}, "trials").add({"n": 1})
    ...     Store(f"{folder}/done.jsonl", {"of": "x"}, "trials").records
    [{'n': 1}]
    """

    def __init__(self, path: str | Path | None, head: dict[str, Any], what: str) -> None:
        self.path, self.what = None if path is None else Path(path), what
        self.records: list[dict[str, Any]] = []
        if self.path is None:
            return
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True) if self.path.exists() else []
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
        except UnicodeDecodeError:
            raise self.damaged() from None
        if lines and not lines[-1].endswith("\n"):  # cut off in the middle of a line
            lines.pop()
        try:
            records = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            raise self.damaged() from None
        if not all(isinstance(record, dict) for record in records):
            raise self.damaged()
        if records and records[0] != json.loads(json.dumps(head)):
            raise InputError(f"holds {what} of other data or settings (give another file)", where=str(path))
        self.records = records[1:]
        with written_whole(self.path) as stream:
            stream.write("".join(lines or [json.dumps(head) + "\n"]).encode())

    def damaged(self) -> InputError:
        """The error for a file that holds something else."""
        return InputError(f"is not a file of {self.what}, or a damaged one (delete it)", where=str(self.path))

    def add(self, record: dict[str, Any]) -> None:
        """Keep one more."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(record) + "\n")
