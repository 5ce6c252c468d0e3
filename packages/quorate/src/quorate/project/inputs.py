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
from quorate.storage.kept_files import KeptCorpus, are_one_after_another

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
        kept = [self._opened(path, options) for path in inputs]
        # What is known not to stand alone is looked for first, so that less is read in vain. It is known of inputs that
        # are kept: one that is not, and shares a document with others or has no ids, is found out by reading it.
        several = len(inputs) > 1
        if several and any(part is not None and not part.stands_alone for part in kept):
            return None
        parts: list[Corpus] = []
        for path, opened in zip(inputs, kept, strict=True):
            part = self._read_alone(path, options, read) if opened is None else opened
            if part is None or (several and not part.stands_alone):
                return None
            parts.append(part)
        return _one_after_another(parts) if several else parts[0]

    def _opened(self, path: str, options: Mapping[str, Any]) -> KeptCorpus | None:
        """What is kept of an input, if anything is."""
        with suppress(InputError):
            return KeptCorpus.opened(self._place(path, options))
        return None

    def _read_alone(
        self, path: str, options: Mapping[str, Any], read: Callable[[Sequence[str]], Corpus]
    ) -> Corpus | None:
        """One input from itself, which is kept if it can be.

        ``None`` if its digest does not tell all that is read, or if it is nothing by itself: it may have no documents.
        """
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
                kept.keep(self._place(path, options))
        return corpus if kept is None else kept

    def _place(self, path: str, options: Mapping[str, Any]) -> Path:
        given = [path, self.digests[path], self.version, {name: options.get(name) for name in _OF_EACH_FILE}]
        return self.folder / hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()

    def _forget_all_but(self, kept: Sequence[Path]) -> None:
        there = set(self.folder.iterdir()) if self.folder.is_dir() else set()
        for path in there - set(kept):
            with suppress(OSError):
                path.unlink()


def _one_after_another(parts: Sequence[Corpus]) -> Corpus | None:
    """Inputs that were read each by itself as one corpus, if that is what reading them together gives."""
    arrays = [part for part in parts if isinstance(part, KeptCorpus)]
    if len(arrays) == len(parts):
        return KeptCorpus.joined(arrays)
    if not all(type(part) in (Corpus, KeptCorpus) for part in parts) or not are_one_after_another(parts):
        return None
    return Corpus(
        (document for part in parts for document in part),
        notes=[note for part in parts for note in part.notes],
        digests={name: digest for part in parts for name, digest in part.digests.items()},
        profiles={name: profile for part in parts for name, profile in part.profiles.items()},
    )
