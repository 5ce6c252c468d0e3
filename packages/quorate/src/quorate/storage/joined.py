"""Several encoded corpora as one: their documents one after the other, names and cells under common numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.tags import Invalid, Scheme, TagSet
from quorate.crowd.crowd import Cells, Crowd
from quorate.crowd.encode import n_previous
from quorate.errors import InputError, SettingsError
from quorate.storage.slices import Renumbered, renumbered

if TYPE_CHECKING:
    from quorate.storage.corpora import StoredCorpus


class JoinedCorpus(Corpus):
    """Files that :func:`quorate.storage.corpora.store` wrote, as one corpus. Documents are made when looked at.

    >>> import quorate, tempfile
    >>> from quorate.storage.corpora import store
    >>> documents = quorate.sample().documents
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store(documents[:100], f"{folder}/1.qr")
    ...     store(documents[100:], f"{folder}/2.qr")
    ...     quorate.read(f"{folder}/1.qr", f"{folder}/2.qr")
    <Corpus: 320 documents, 5,227 tokens, 12 annotators>
    """

    def __init__(self, parts: Iterable[StoredCorpus]) -> None:
        self._parts = tuple(parts)
        self._starts = [0, *accumulate(map(len, self._parts))]
        self.notes = tuple(dict.fromkeys(note for part in self._parts for note in part.notes))
        self.digests, self.profiles = {}, dict[str, Profile]()
        for part in self._parts:
            self.digests |= part.digests
            for name, profile in part.profiles.items():
                if self.profiles.setdefault(name, profile) != profile:
                    raise SettingsError(f"{name!r} is described in two ways in these files (encode them again alike)")
        self._positions  # noqa: B018 - an id that occurs twice is told now

    @cached_property
    def documents(self) -> tuple[Document, ...]:  # type: ignore[override]
        """All documents, in memory."""
        return tuple(self)

    @cached_property
    def _positions(self) -> dict[str, int]:  # type: ignore[override]
        positions: dict[str, int] = {}
        for part in self._parts:
            for d in range(len(part)):
                name = part.id_of(d)
                if name in positions:
                    raise InputError("this id occurs twice in these files (ids must be unique)", where=part[d].where())
                positions[name] = len(positions)
        return positions

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[Document]:
        return (document for part in self._parts for document in part)

    def __getitem__(self, key: int | str) -> Document:
        d = self.position(key) if isinstance(key, str) else range(len(self))[key]
        part, first = self.part_of(d)
        return part[d - first]

    def part_of(self, d: int) -> tuple[StoredCorpus, int]:
        """The file that document d is in, and the file's first document."""
        number = int(np.searchsorted(self._starts, d, side="right")) - 1
        return self._parts[number], self._starts[number]

    def __reduce__(self) -> tuple[type[JoinedCorpus], tuple[tuple[StoredCorpus, ...]]]:
        """Another process opens the files itself."""
        return JoinedCorpus, (self._parts,)

    @property
    def n_tokens(self) -> int:
        """How many tokens there are in all."""
        return sum(part.n_tokens for part in self._parts)

    @property
    def annotators(self) -> tuple[str, ...]:
        """Everyone who appears in a document, sorted."""
        return tuple(sorted({name for part in self._parts for name in part.annotators}))

    @property
    def has_gold(self) -> bool:
        """Whether any document has gold tags."""
        return any(part.has_gold for part in self._parts)

    def unannotated(self) -> list[str]:
        """The ids of documents that no annotator saw."""
        return [name for part in self._parts for name in part.unannotated()]

    def compared(self) -> set[str]:
        """Annotators who share a document with another."""
        return {name for part in self._parts for name in part.compared()}

    def used_tags(self) -> set[Tag]:
        """Every tag that an annotator gave."""
        return {tag for part in self._parts for tag in part.used_tags()}

    def tagset(self, scheme: Scheme | None = None, *, known: Iterable[Tag] = ()) -> TagSet:
        """The tags that annotators use, and the known ones, with their scheme (inferred unless given)."""
        return TagSet.infer([tag for tag in (*self.used_tags(), *known) if tag is not None], scheme)

    def encoded_as(self, tagset: TagSet, invalid: Invalid) -> Crowd | None:
        """The arrays in the files, if all are of this scheme and rule."""
        parts = [part.encoded_as(tagset, invalid) for part in self._parts]
        laid_out = [part for part in parts if part is not None]
        if len(laid_out) < len(parts):
            return None
        names = self.annotators
        words = tuple(sorted({word for part in laid_out for word in part.words}))
        who, word_number = _numbers(names), _numbers(words)
        J, P = len(tagset.labels), n_previous(tagset)
        keys = []
        for part in laid_out:
            number = np.array([who[name] for name in part.annotators], np.int64)
            keys.append(part.cells._replace(annotator=number[part.cells.annotator]).keys)
        every = np.unique(np.concatenate(keys))
        row, label = np.divmod(every, J)
        annotator, previous = np.divmod(row, P)
        pieces = [
            Renumbered(
                part,
                0,
                0 if part.slices is None else len(part.slices.bounds) - 1,
                np.searchsorted(every, key),
                np.array([word_number[word] for word in part.words], np.int64),
            )
            for part, key in zip(laid_out, keys, strict=True)
        ]
        return renumbered(
            pieces,
            tagset=tagset,
            annotators=names,
            words=words,
            cells=Cells(annotator, previous, label, len(names), J, P),
            repaired=sum(part.repaired for part in laid_out),
        )


def _numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}
