"""What was read from files, kept as arrays: a file that has not changed need not be read again.

They are the arrays of documents that encoded corpora have too (:mod:`quorate.storage.documents`), without those that a
fit makes of them. Only what reading gave is kept, and only if arrays hold all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, Self, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from quorate.corpus.offsets import Unit
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document, SoftTag, Tag
from quorate.corpus.tags import MISSING, Invalid, TagSet
from quorate.crowd.crowd import Cells, Crowd
from quorate.crowd.encode import by_rule, label_before, n_previous
from quorate.crowd.kernels import Sequences, events_by_token, labels_of
from quorate.errors import QuorateError
from quorate.storage.arrays import Arrays, damaged, mapped, write
from quorate.storage.corpora_checks import RAW_KINDS, document_rules, document_shapes, within
from quorate.storage.documents import ArrayCorpus, annotations_of, document_of, starts_of

__all__ = ["KeptCorpus", "are_one_after_another"]

_KIND, _VERSION = "quorate read", 3
_MOST_TAGS = 250  # a byte each, with some to spare
_NOT_SEEN = 255
_MOST_NUMBERS = 32_767  # two bytes each
_UNITS = tuple(Unit)
_KINDS: dict[str, Any] = {**RAW_KINDS, "doc_start": np.int64, "unit": np.uint8}
_NOT_KEPT = ("length", "soft_place", "soft_tag", "soft_probability")
_NUMBERED = {"word": "words", "annotator": "annotators", "codes": "tags", "gold": "tags", "split": "splits"}
_OF_TEXT = ("offsets", "text_bytes", "text_end")


class _Text(TypedDict):
    """The names that numbers stand for, and what else is no array."""

    kind: str
    version: int
    words: list[str]
    annotators: list[str]
    tags: list[str]
    used: list[str | None]
    splits: list[str]
    sources: list[str]
    notes: list[str]
    digests: dict[str, str]
    profiles: dict[str, dict[str, Any]]
    stands_alone: bool


class KeptCorpus(ArrayCorpus):
    """A corpus as it was read, from one file or several; documents are made when they are looked at.

    >>> import quorate, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     KeptCorpus.of(quorate.sample()).keep(Path(folder, "sample"))
    ...     kept = KeptCorpus.opened(Path(folder, "sample"))
    >>> kept.documents == quorate.sample().documents
    True
    """

    def __init__(self, arrays: Arrays, text: _Text, documents: Sequence[Document] | None = None) -> None:
        super().__init__(arrays, text["words"], text["annotators"], text)
        self._given = documents
        self.notes, self.digests = tuple(text["notes"]), dict(text["digests"])
        self.profiles = {name: Profile.of(**fields) for name, fields in text["profiles"].items()}
        self.stands_alone = text["stands_alone"]

    @classmethod
    def of(cls, corpus: Corpus) -> Self | None:
        """A corpus that was read just now; ``None`` if it holds something that arrays do not."""
        if type(corpus) is not Corpus:  # from arrays already
            return None
        documents = corpus.documents
        if not all(map(_can_be_kept, documents)):
            return None
        codes_of = _TagCodes()
        number = {name: k for k, name in enumerate(corpus.annotators)}
        annotator: list[int] = []
        for document in documents:
            for name in sorted(document.annotations):
                annotator.append(number[name])
                if not codes_of.add(document.annotations[name]):
                    return None
        n_codes, used = len(codes_of), codes_of.used()
        for document in documents:
            if not codes_of.add(document.gold or (None,) * len(document.tokens)):
                return None
        tags, codes = codes_of.taken()
        words = sorted(set(_tokens(documents)))
        place = {word: n for n, word in enumerate(words)}
        splits, sources = map(_numbered, _named(documents))
        if len(splits) > _MOST_NUMBERS:
            return None
        doc_start = np.cumsum([0, *(len(document.tokens) for document in documents)], dtype=np.int64)
        arrays: Arrays = {
            "doc_start": doc_start,
            "word": np.fromiter(map(place.__getitem__, _tokens(documents)), np.int32, int(doc_start[-1])),
            **_end_to_end("id", (document.id for document in documents)),
            "sequences": np.array([len(document.annotations) for document in documents], np.int32),
            "annotator": np.array(annotator, np.int32),
            "codes": codes[:n_codes],
            "gold": codes[n_codes:],
            "has_gold": np.array([document.gold is not None for document in documents], np.uint8),
            "split": np.array(
                [-1 if document.split is None else splits[document.split] for document in documents], np.int16
            ),
            "has_text": np.array([document.text is not None for document in documents], np.uint8),
            "source": np.array([_place(sources, document) for document in documents], np.int64).reshape(-1),
            "unit": np.array([_UNITS.index(document.unit) for document in documents], np.uint8),
            **_texts(documents, int(doc_start[-1])),
        }
        text: _Text = {
            "kind": _KIND,
            "version": _VERSION,
            "words": words,
            "annotators": list(corpus.annotators),
            "tags": tags,
            "used": used,
            "splits": list(splits),
            "sources": list(sources),
            "notes": list(corpus.notes),
            "digests": dict(corpus.digests),
            "profiles": {name: profile.plain() for name, profile in corpus.profiles.items()},
            "stands_alone": corpus.stands_alone,
        }
        return cls(_without_soft(arrays), text, documents)

    def keep(self, path: Path) -> None:
        """Write it to a file, whole or not at all."""
        arrays = {name: array for name, array in self._arrays.items() if name in _KINDS and name not in _NOT_KEPT}
        if not arrays["has_text"].any():
            arrays = {name: array for name, array in arrays.items() if name not in _OF_TEXT}
        write(path, arrays, dict(self._text))

    @classmethod
    def opened(cls, path: Path) -> Self:
        """The corpus in a file; :class:`InputError` if it is damaged, or of another version."""
        found, given = mapped(path)
        try:
            text = msgspec.convert(given, _Text)
            if (text["kind"], text["version"]) != (_KIND, _VERSION):
                raise ValueError("of another version")
            arrays = _without_soft({name: found[name] for name in found.names})
            D, N = len(arrays["sequences"]), len(arrays["word"])
            if not arrays["has_text"].any():
                arrays |= {"offsets": np.zeros(2 * N, np.int32), **_end_to_end("text", [""] * D)}
            _check(arrays, text)
            return cls(arrays, text)
        except (ValueError, KeyError, TypeError, msgspec.MsgspecError, QuorateError) as error:
            raise damaged(str(path), str(error)) from None

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        """Several as one, as if their files had been read together; ``None`` where that is more than one after another.

        :func:`are_one_after_another` says when it is.
        """
        if len(parts) == 1:
            return parts[0]
        if not parts or not are_one_after_another(parts):
            return None
        names = {
            name: sorted({one for part in parts for one in part._text[name]})
            for name in ("words", "annotators", "tags", "splits", "sources")
        }
        if max(len(names["tags"]), len(names["splits"])) > _MOST_NUMBERS:
            return None
        columns: dict[str, list[NDArray[Any]]] = {}
        for part in parts:
            for name, array in part._renumbered(names).items():
                columns.setdefault(name, []).append(array)
        arrays = {name: np.concatenate(each) for name, each in columns.items()}
        for name in ("doc_start", "id_end", "text_end"):  # each part's count from its own beginning
            arrays[name] = _shifted(columns[name])
        arrays["doc_start"] = np.concatenate([[0], arrays["doc_start"]])
        used = set().union(*(part.used_tags() for part in parts))
        text = {**parts[0]._text, **names, "used": list(used), "notes": [note for part in parts for note in part.notes]}
        text |= {"digests": {name: digest for part in parts for name, digest in part.digests.items()}}
        profiles = {name: profile.plain() for part in parts for name, profile in part.profiles.items()}
        text |= {"profiles": profiles}
        given = [part._given for part in parts if part._given is not None]
        documents = list(chain.from_iterable(given)) if len(given) == len(parts) else None
        return cls(arrays, msgspec.convert(text, _Text), documents)

    def _renumbered(self, names: Mapping[str, Sequence[str]]) -> Arrays:
        """The arrays with numbers that several have in common."""
        number: dict[str, NDArray[np.int64]] = {}
        others = {name: common for name, common in names.items() if common != self._text[name]}
        for name, common in others.items():
            place = {one: n for n, one in enumerate(common)}
            own: list[str] = self._text[name]
            number[name] = np.array([*map(place.__getitem__, own), MISSING])
        arrays = {name: array for name, array in self._arrays.items() if name in _KINDS and name != "length"}
        arrays["doc_start"] = arrays["doc_start"][1:]
        for name, of in _NUMBERED.items():
            if of in others:
                arrays[name] = number[of].astype(arrays[name].dtype)[arrays[name]]  # −1, nothing, is the last
        source = arrays["source"].reshape(-1, 3).copy()
        if "sources" in others:
            source[:, 0] = number["sources"][source[:, 0]]
        return arrays | {"source": source.reshape(-1)}

    def used_tags(self) -> set[Tag]:
        """Every tag that an annotator gave, and ``None`` if one did not see a token."""
        used: list[Tag] = self._text["used"]
        return set(used)

    def encoded_as(self, tagset: TagSet, invalid: Invalid) -> Crowd | None:
        """The corpus as arrays for a fit.

        ``None`` if it has a tag that the labels do not have: then it has to be made of its documents.
        """
        arrays, K, J, before = self._arrays, len(self._names), len(tagset.labels), n_previous(tagset)
        if any(tag is not None and tag not in tagset.reads for tag in self.used_tags()):
            return None
        label_of = np.array([tagset.reads.get(tag, MISSING) for tag in self._text["tags"]], np.int16)
        document = np.repeat(np.arange(len(self)), arrays["sequences"])
        start = np.concatenate([[0], np.cumsum(np.diff(self._doc_start)[document])])
        labels, broken = labels_of(arrays["codes"], label_of, start, tagset)
        changed = 0
        if broken:
            labels, changed = by_rule(labels, start, tagset, invalid, lambda s: self[int(document[s])])
        sequences = Sequences(start, arrays["annotator"], starts_of(arrays).sequence)
        keys, event_start, event_cell = events_by_token(
            labels, sequences, self._doc_start, K, label_before(tagset), before, J
        )
        cells = Cells.of_keys(keys, K, J, before)
        word = arrays["word"]
        return Crowd(
            tagset, self._names, self._words, self._doc_start, word, event_start, event_cell, None, cells, changed
        )

    def _document(self, d: int) -> Document:
        if self._given is not None:
            return self._given[d]
        labels = _Annotations(int(self._arrays["sequences"][d]), partial(self._annotations, d))
        return document_of(self._arrays, d, self._words, self._names, self._tag_of, self._text, labels)

    def _annotations(self, d: int) -> dict[str, tuple[Tag | SoftTag, ...]]:
        return annotations_of(self._arrays, d, self._names, self._tag_of)


def are_one_after_another(parts: Sequence[Corpus]) -> bool:
    """Whether files, each read by itself, hold one after another what reading them together gives.

    They do not if a document is in two of them, if one of them does not stand alone, or if notes or profiles of two
    would have to be put together.
    """
    profiles: dict[str, Profile] = {}
    for part in parts:
        if any(profiles.setdefault(name, profile) != profile for name, profile in part.profiles.items()):
            return False
    ids = [name for part in parts for name in _ids(part)]
    told = [part for part in parts if part.notes]
    return all(part.stands_alone for part in parts) and len(set(ids)) == len(ids) and len(told) <= 1


def _ids(corpus: Corpus) -> Iterator[str]:
    if isinstance(corpus, ArrayCorpus):
        return map(corpus.id_of, range(len(corpus)))
    return (document.id for document in corpus)


class _Annotations(Mapping[str, tuple[Tag | SoftTag, ...]]):
    """The annotations of a document, made when it is looked at: to write a consensus it is not."""

    def __init__(self, length: int, make: Callable[[], dict[str, tuple[Tag | SoftTag, ...]]]) -> None:
        self._length, self._make = length, make

    @cached_property
    def _made(self) -> dict[str, tuple[Tag | SoftTag, ...]]:
        return self._make()

    def __getitem__(self, name: str) -> tuple[Tag | SoftTag, ...]:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return repr(self._made)

    def __reduce__(self) -> tuple[type[dict[Any, Any]], tuple[dict[str, Any]]]:
        """Elsewhere it is a plain dictionary."""
        return dict, (self._made,)


class _TagCodes:
    """Tags as numbers, end to end, a byte each."""

    def __init__(self) -> None:
        self._tags: list[str] = []
        self._code_of: dict[Any, int] = {None: _NOT_SEEN}
        self._raw = bytearray()

    def add(self, tags: Sequence[Any]) -> bool:
        """One more sequence; whether that is possible."""
        try:
            self._raw += bytes(map(self._code_of.__getitem__, tags))
        except KeyError:
            for tag in dict.fromkeys(tags):
                if tag not in self._code_of:
                    self._code_of[tag] = len(self._tags)
                    self._tags.append(tag)
            return len(self._tags) <= _MOST_TAGS and self.add(tags)
        except TypeError:  # probabilities
            return False
        return True

    def __len__(self) -> int:
        return len(self._raw)

    def used(self) -> list[Tag]:
        """Every tag so far, and ``None`` if a token was not seen."""
        return [*self._tags, *([None] if _NOT_SEEN in self._raw else [])]

    def taken(self) -> tuple[list[str], NDArray[np.int16]]:
        """The tags in order, and all that was added as their numbers; it is gone after that.

        In order, as then the numbers of several files mostly are the same.
        """
        tags = sorted(self._tags)
        place = {tag: n for n, tag in enumerate(tags)}
        numbers = bytes([*map(place.__getitem__, self._tags), *range(len(tags), _NOT_SEEN + 1)])
        codes = np.frombuffer(self._raw.translate(numbers), np.uint8).astype(np.int16)
        self._raw = bytearray()
        codes[codes == _NOT_SEEN] = MISSING
        return tags, codes


def _can_be_kept(document: Document) -> bool:
    """Whether arrays hold all of it."""
    placed = (document.text is None) == (document.offsets is None)
    return placed and document.origin is None and (document.source is None or not document.source.record)


def _tokens(documents: Sequence[Document]) -> Iterator[str]:
    return chain.from_iterable(document.tokens for document in documents)


def _named(documents: Sequence[Document]) -> tuple[list[str | None], list[str | None]]:
    """The split of every document, and the file it comes from."""
    return [one.split for one in documents], [None if one.source is None else one.source.path for one in documents]


def _numbered(names: Iterable[str | None]) -> dict[str, int]:
    """A number for each name, in the order in which they are met."""
    return {name: n for n, name in enumerate(dict.fromkeys(name for name in names if name is not None))}


def _place(sources: Mapping[str, int], document: Document) -> tuple[int, int, bool]:
    source = document.source
    return (-1, 0, False) if source is None else (sources[source.path], source.line, source.line_per_token)


def _end_to_end(name: str, texts: Iterable[str]) -> Arrays:
    pieces = [text.encode(errors="surrogatepass") for text in texts]
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    return {f"{name}_bytes": np.frombuffer(b"".join(pieces), np.uint8), f"{name}_end": ends}


def _texts(documents: Sequence[Document], n_tokens: int) -> Arrays:
    """Texts, and the places of tokens in them: zeros where there is none."""
    offsets = np.zeros(2 * n_tokens, np.int32)
    if any(document.text is not None for document in documents):
        each = (document.offsets or ((0, 0),) * len(document.tokens) for document in documents)
        offsets = np.array(list(chain.from_iterable(chain.from_iterable(each))), np.int32)
    return {"offsets": offsets, **_end_to_end("text", (document.text or "" for document in documents))}


def _without_soft(arrays: Arrays) -> Arrays:
    """There are no probabilities."""
    return arrays | {name: np.zeros(0, RAW_KINDS[name]) for name in _NOT_KEPT if name != "length"}


def _shifted(ends: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Where pieces end, if those of each part come after those of the parts before."""
    sizes = [int(each[-1]) if len(each) else 0 for each in ends]
    shifts = np.cumsum([0, *sizes[:-1]])
    return np.concatenate([each + shift for each, shift in zip(ends, shifts, strict=True)])


def _check(arrays: Arrays, text: _Text) -> None:
    """``ValueError`` unless the arrays fit together."""
    for name, kind in _KINDS.items():
        if name != "length" and (arrays[name].ndim != 1 or arrays[name].dtype != np.dtype(kind)):
            raise ValueError(f"array {name!r} is of another kind")
    size = {name: len(array) for name, array in arrays.items()}
    D = size["sequences"]
    for name, shape in (document_shapes(D, size["word"], 0) | {"unit": (D,)}).items():
        if (size[name],) != shape:
            raise ValueError(f"array {name!r} has another shape")
    rules = document_rules(arrays, size, text) | {"unit": lambda array: within(0, len(_UNITS), array)}
    for name, rule in rules.items():
        wrong = rule(arrays[name])
        if wrong is not None:
            raise ValueError(f"array {name!r}: {wrong}")
