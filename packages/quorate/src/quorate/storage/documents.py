"""Documents as arrays, and back: what encoded corpora and model files keep of them.

Words, annotators and tags are numbers, and texts lie end to end; ``docs/formats.md`` describes the arrays. Whether they
grow in memory or on disk is for those to say who keep them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.offsets import Unit
from quorate.corpus.records import Corpus, Document, SoftTag, Source, Tag
from quorate.corpus.tags import MISSING
from quorate.errors import InputError
from quorate.model.kernels.lines import quoted
from quorate.storage.arrays import Arrays
from quorate.storage.corpora_checks import RAW_KINDS

SOFT = -2
"""In ``codes``: probabilities, which stand elsewhere."""

_AT_ONCE = 1 << 20
_UNITS = tuple(Unit)


class Grows(Protocol):
    """An array that grows; :class:`quorate.storage.arrays.ArrayFile` does on disk."""

    length: int

    def add(self, values: Any) -> None:
        """Append."""

    def array(self) -> NDArray[Any]:
        """All of it."""


class _Numbers(dict[Any, int]):
    """A number for each name, in the order of the first time."""

    def __missing__(self, name: Any) -> int:
        self[name] = len(self)
        return len(self) - 1


class DocumentArrays:
    """Arrays to which documents are added one by one; ``grown`` makes each, from its name and kind.

    ``numbered`` are the words and the annotators, where they have their numbers already; else they are numbered in the
    order of their names.
    """

    def __init__(
        self,
        grown: Callable[[str, Any], Grows],
        *,
        kinds: Mapping[str, Any] = RAW_KINDS,
        numbered: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> None:
        self._files = {name: grown(name, kind) for name, kind in kinds.items()}
        self._is_numbered, (words, names) = numbered is not None, numbered or ((), ())
        self._words = _Numbers({word: number for number, word in enumerate(words)})
        self._names = _Numbers({name: number for number, name in enumerate(names)})
        self._tags, self._splits, self._sources = _Numbers(), _Numbers(), _Numbers()
        self._tags_or_missing: dict[Any, int] = {None: MISSING}
        self._used: set[str] = set()
        self._ids: set[str] = set()
        self._bytes = {"id": 0, "text": 0}

    def add(self, document: Document) -> None:
        """Append one document."""
        document.check()
        if document.id in self._ids:
            raise InputError(
                "this id was given to an earlier document too (ids must be unique)", where=document.where()
            )
        self._ids.add(document.id)
        put = {name: file.add for name, file in self._files.items()}
        put["length"](len(document.tokens))
        put["word"](array("i", [self._words[token] for token in document.tokens]))
        self._blob("id", document.id)
        put["sequences"](len(document.annotations))
        for name in sorted(document.annotations):
            put["annotator"](self._names[name])
            self._sequence(document.annotations[name])
        gold = document.gold
        put["has_gold"](gold is not None)
        put["gold"](self._codes(gold) if gold is not None else np.full(len(document.tokens), MISSING))
        put["split"](-1 if document.split is None else self._splits[document.split])
        put["has_text"](document.text is not None)
        self._blob("text", document.text or "")
        put["offsets"](np.array(document.offsets or np.zeros((len(document.tokens), 2))).reshape(-1))
        source = document.source
        put["source"]((-1, 0, 0) if source is None else (self._sources[source[0]], source[1], source[2]))
        if "unit" in put:
            put["unit"](_UNITS.index(document.unit))

    def _sequence(self, tags: tuple[Tag | SoftTag, ...]) -> None:
        codes = self._files["codes"]
        try:
            given = set(tags)
        except TypeError:  # probabilities are not hashable
            for tag in tags:
                if isinstance(tag, Mapping):
                    for name, probability in tag.items():
                        self._used.add(name)
                        self._files["soft_place"].add(codes.length)
                        self._files["soft_tag"].add(self._tags[name])
                        self._files["soft_probability"].add(probability)
                    codes.add(SOFT)
                else:
                    self._used.update(() if tag is None else (tag,))
                    codes.add(MISSING if tag is None else self._tags[tag])
            return
        self._used.update(tag for tag in given if isinstance(tag, str))
        codes.add(self._codes(tags))

    def _codes(self, tags: tuple[Any, ...]) -> Any:
        known = self._tags_or_missing
        try:
            return array("h", [known[tag] for tag in tags])
        except KeyError:
            # In the order of the document, not that of a set, which another process would have otherwise.
            known.update({tag: self._tags[tag] for tag in dict.fromkeys(tags) if tag is not None})
            return array("h", [known[tag] for tag in tags])

    def _blob(self, name: str, text: str) -> None:
        content = text.encode(errors="surrogatepass")
        self._bytes[name] += len(content)
        self._files[f"{name}_bytes"].add(np.frombuffer(content, np.uint8))
        self._files[f"{name}_end"].add(self._bytes[name])

    def finished(self) -> tuple[Arrays, dict[str, Any]]:
        """The arrays, and the names that their numbers stand for."""
        if not self._ids:
            raise InputError("no document in the input")
        arrays = {name: file.array() for name, file in self._files.items()}
        arrays["doc_start"] = np.concatenate([[0], np.cumsum(arrays.pop("length"))])
        names = {"words": list(self._words), "annotators": list(self._names)}
        if not self._is_numbered:
            names = {"words": sorted(self._words), "annotators": sorted(self._names)}
            for name, numbers, order in (
                ("word", self._words, names["words"]),
                ("annotator", self._names, names["annotators"]),
            ):
                rank = np.empty(len(order), np.int32)
                rank[[numbers[each] for each in order]] = np.arange(len(order), dtype=np.int32)
                for first in range(0, len(arrays[name]), _AT_ONCE):
                    piece = arrays[name][first : first + _AT_ONCE]
                    piece[:] = rank[piece]
        others = {"tags": list(self._tags), "used": sorted(self._used)}
        return arrays, {**names, **others, "splits": list(self._splits), "sources": list(self._sources)}


def piece_of(arrays: Arrays, name: str, d: int) -> str:
    """The d-th text of those that lie end to end."""
    ends = arrays[f"{name}_end"]
    content = bytes(arrays[f"{name}_bytes"][int(ends[d - 1]) if d else 0 : int(ends[d])])
    try:
        return content.decode(errors="surrogatepass")
    except UnicodeDecodeError:
        raise InputError(f"document {d + 1}: its {name} is not UTF-8 text (encode the corpus again)") from None


class _Starts(NamedTuple):
    """Where each document's sequences, and codes, begin."""

    sequence: NDArray[np.int64]
    code: NDArray[np.int64]


def starts_of(arrays: Arrays) -> _Starts:
    """Where each document's sequences, and codes, begin; worked out once."""
    if "_sequence_start" not in arrays:
        counts = arrays["sequences"].astype(np.int64)
        arrays["_sequence_start"] = np.concatenate([[0], np.cumsum(counts)])
        arrays["_code_start"] = np.concatenate([[0], np.cumsum(counts * np.diff(arrays["doc_start"]))])
    return _Starts(arrays["_sequence_start"], arrays["_code_start"])


def document_of(
    arrays: Arrays,
    d: int,
    words: Sequence[str],
    names: Sequence[str],
    tag_of: Sequence[Tag],
    text: Mapping[str, Any],
) -> Document:
    """Document d, as it was given; the last of ``tag_of`` is ``None``, for what was not seen."""
    tokens = slice(int(arrays["doc_start"][d]), int(arrays["doc_start"][d + 1]))
    source, line, per_token = arrays["source"].reshape(-1, 3)[d].tolist()
    split = int(arrays["split"][d])
    has_text = bool(arrays["has_text"][d])
    places = arrays["offsets"].reshape(-1, 2)[tokens].tolist() if has_text else ()
    return Document(
        piece_of(arrays, "id", d),
        tuple([words[word] for word in arrays["word"][tokens].tolist()]),
        _annotations_of(arrays, d, names, tag_of),
        tuple([tag_of[code] for code in arrays["gold"][tokens].tolist()]) if arrays["has_gold"][d] else None,
        None if split < 0 else text["splits"][split],
        piece_of(arrays, "text", d) if has_text else None,
        tuple([(start, end) for start, end in places]) if has_text else None,
        None if source < 0 else Source(text["sources"][source], line, bool(per_token)),
        _UNITS[int(arrays["unit"][d])] if "unit" in arrays else Unit.CODE_POINTS,
    )


def _annotations_of(
    arrays: Arrays, d: int, names: Sequence[str], tag_of: Sequence[Tag]
) -> dict[str, tuple[Tag | SoftTag, ...]]:
    """What everybody said of document d."""
    length, starts = int(arrays["doc_start"][d + 1]) - int(arrays["doc_start"][d]), starts_of(arrays)
    annotations: dict[str, tuple[Tag | SoftTag, ...]] = {}
    place = int(starts.code[d])
    for k in arrays["annotator"][starts.sequence[d] : starts.sequence[d + 1]].tolist():
        codes = arrays["codes"][place : place + length].tolist()
        if SOFT in codes:
            annotations[names[k]] = tuple(
                _soft(arrays, place + n, tag_of) if code == SOFT else tag_of[code] for n, code in enumerate(codes)
            )
        else:
            annotations[names[k]] = tuple([tag_of[code] for code in codes])
        place += length
    return annotations


def _soft(arrays: Arrays, place: int, tag_of: Sequence[Tag]) -> SoftTag:
    found = slice(*np.searchsorted(arrays["soft_place"], [place, place + 1]))
    pairs = zip(arrays["soft_tag"][found].tolist(), arrays["soft_probability"][found].tolist(), strict=True)
    return {str(tag_of[tag]): probability for tag, probability in pairs}


class ArrayCorpus(Corpus):
    """A corpus in arrays. Documents are made when they are looked at."""

    def __init__(self, arrays: Arrays, words: Sequence[str], names: Sequence[str], text: Mapping[str, Any]) -> None:
        self._arrays, self._text = arrays, text
        self._words, self._names = tuple(words), tuple(names)
        self._tag_of: list[Tag] = [*text["tags"], None]  # MISSING is −1
        self._doc_start: NDArray[np.int64] = arrays["doc_start"]
        self.notes, self.digests, self.profiles = (), {}, {}

    @cached_property
    def documents(self) -> tuple[Document, ...]:  # type: ignore[override]
        """All documents, in memory."""
        return tuple(self)

    @cached_property
    def _positions(self) -> dict[str, int]:  # type: ignore[override]
        return {self.id_of(d): d for d in range(len(self))}

    def __len__(self) -> int:
        return len(self._doc_start) - 1

    def __iter__(self) -> Iterator[Document]:
        return (self._document(d) for d in range(len(self)))

    def __getitem__(self, key: int | str) -> Document:
        return self._document(self.position(key) if isinstance(key, str) else range(len(self))[key])

    @property
    def n_tokens(self) -> int:
        """How many tokens there are in all."""
        return int(self._doc_start[-1])

    @property
    def n_labels(self) -> int:
        """How many labels annotators gave in all."""
        return int(self._arrays["sequences"].astype(np.int64) @ np.diff(self._doc_start))

    @property
    def annotators(self) -> tuple[str, ...]:
        """Everyone who appears in a document, sorted."""
        return self._names

    @property
    def has_gold(self) -> bool:
        """Whether any document has gold tags."""
        return bool(self._arrays["has_gold"].any())

    def unannotated(self) -> list[str]:
        """The ids of documents that no annotator saw."""
        return [self.id_of(d) for d in np.flatnonzero(self._arrays["sequences"] == 0).tolist()]

    def compared(self) -> set[str]:
        """Annotators who share a document with another."""
        together = np.repeat(self._arrays["sequences"] > 1, self._arrays["sequences"])
        return {self._names[k] for k in np.unique(self._arrays["annotator"][together]).tolist()}

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each document's tokens begin, and the last one's end."""
        return self._doc_start

    @property
    def arrays(self) -> Arrays:
        """The documents as they lie there: see :class:`DocumentArrays`."""
        return self._arrays

    @cached_property
    def quoted_words(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The words as JSON strings, end to end, and where each ends."""
        return quoted(self._words)

    @property
    def splits(self) -> Sequence[str]:
        """The parts that the corpus was divided into, by their numbers."""
        splits: Sequence[str] = self._text["splits"]
        return splits

    def id_of(self, d: int) -> str:
        """The id of document d."""
        return piece_of(self._arrays, "id", d)

    def _document(self, d: int) -> Document:
        return document_of(self._arrays, d, self._words, self._names, self._tag_of, self._text)
