"""What a project has read before: an input that did not change is not read again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from quorate.corpus.records import Corpus
from quorate.errors import InputError, OutputError
from quorate.formats import format_of, named
from quorate.storage.kept_files import KeptCorpus

__all__ = ["KeptInputs"]

_OF_EACH_FILE = ("format", "max_size")  # options that change nothing in other files


class KeptInputs(NamedTuple):
    """The folder in which what was read is kept, a file for each input.

    ``digests`` are those of the inputs as they are now, by their paths, and ``version`` is that of the program: another
    one may read a file in another way.
    """

    folder: Path
    digests: Mapping[str, str]
    version: str

    def corpus(
        self, inputs: Sequence[str], options: Mapping[str, Any], read: Callable[[Sequence[str]], Corpus]
    ) -> Corpus:
        """What ``read`` gives for these inputs, of which it is asked only for those that have changed.

        All are read together where they cannot be put together afterwards: with options that look at all of them, where
        documents have no ids of their own, and where one is in several. What is kept of other inputs
        than these is deleted.
        """
        alone = not any(value for name, value in options.items() if name not in _OF_EACH_FILE)
        if not alone or not all(Path(path).is_file() for path in inputs):
            self._forget_all_but(())
            return read(inputs)
        self._forget_all_but([self._place(path, options) for path in inputs])
        whole = self._whole(inputs, options, read)
        return read(inputs) if whole is None else whole

    def _whole(
        self, inputs: Sequence[str], options: Mapping[str, Any], read: Callable[[Sequence[str]], Corpus]
    ) -> Corpus | None:
        """All inputs, each by itself; ``None`` from the first on that has to be read together with the others."""
        parts: list[KeptCorpus] = []
        for path in inputs:
            part = self._part(path, options, read)
            if len(inputs) == 1:
                return part
            if not isinstance(part, KeptCorpus) or not part.stands_alone:
                return None
            parts.append(part)
        return KeptCorpus.joined(parts)

    def _part(self, path: str, options: Mapping[str, Any], read: Callable[[Sequence[str]], Corpus]) -> Corpus | None:
        """One input, from what is kept of it or else from itself.

        ``None`` if its digest does not tell all that is read, or if it is nothing by itself: it may have no documents.
        """
        place = self._place(path, options)
        with suppress(InputError):
            return KeptCorpus.opened(place)
        try:
            if named(format_of(path, options.get("format"))).reads_beside:
                return None
            corpus = read([path])
        except InputError:  # which those that are read together will raise again, if it is one for them too
            return None
        kept = KeptCorpus.of(corpus)
        if kept is not None and corpus.digests.get(path) == self.digests[path]:
            # the next run will read it once more; a name may hold what no file can
            with suppress(OutputError, OSError, ValueError):
                self.folder.mkdir(parents=True, exist_ok=True)
                kept.keep(place)
        return corpus if kept is None else kept

    def _place(self, path: str, options: Mapping[str, Any]) -> Path:
        given = [path, self.digests[path], self.version, {name: options.get(name) for name in _OF_EACH_FILE}]
        return self.folder / hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()

    def _forget_all_but(self, kept: Sequence[Path]) -> None:
        there = set(self.folder.iterdir()) if self.folder.is_dir() else set()
        for path in there - set(kept):
            with suppress(OSError):
                path.unlink()
