"""The documents of a model, in its file: what a fit needs of them to go on from there, and to write its consensus.

Words and annotators have the numbers that they have in the model. What only the tool needs that a document came from
(``origin``), and where it was read (``source``), is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from quorate.corpus.offsets import Unit
from quorate.corpus.records import Document
from quorate.corpus.tags import MISSING
from quorate.storage.arrays import Arrays
from quorate.storage.corpora_checks import RAW_KINDS, Rule, document_rules, document_shapes, within
from quorate.storage.documents import ArrayCorpus, DocumentArrays, piece_of

Codes = NDArray[np.int32]

_KINDS = RAW_KINDS | {"unit": np.uint8}


class KeptNames(TypedDict):
    """What numbers in the arrays stand for, beside words and annotators."""

    tags: list[str]
    splits: list[str]


class KeptDocuments(NamedTuple):
    """The documents, and the known label of every token (``None``: none is known)."""

    corpus: ArrayCorpus
    known: Codes | None


class _InMemory:
    """An array that grows in memory."""

    def __init__(self, name: str, kind: Any) -> None:
        self.kind, self.length, self._raw = np.dtype(kind), 0, bytearray()

    def add(self, values: Any) -> None:
        """Append."""
        array = np.ascontiguousarray(values, self.kind)
        self._raw += array.tobytes()
        self.length += array.size

    def array(self) -> NDArray[Any]:
        """All of it."""
        return np.frombuffer(self._raw, self.kind)


def packed_documents(
    documents: Iterable[Document], known: Mapping[str, Codes], words: Sequence[str], annotators: Sequence[str]
) -> tuple[KeptNames, Arrays]:
    """Documents for a file, with the known labels of some, by id.

    >>> names, arrays = packed_documents([Document("1", ("Ada",), {"ann": ("B-PER",)})], {}, ["Ada"], ["ann"])
    >>> kept_documents(names, arrays, ["Ada"], ["ann"], 3).corpus["1"].annotations
    {'ann': ('B-PER',)}
    """
    packed = DocumentArrays(_InMemory, kinds=_KINDS, numbered=(words, annotators))
    labels: list[NDArray[Any]] = []
    for document in documents:
        packed.add(replace(document, source=None))
        labels.append(known.get(document.id, np.full(len(document.tokens), MISSING)))
    arrays, names = packed.finished()
    del arrays["source"]
    # From one place to the next it is a small number, and small numbers pack well.
    arrays["offsets"] = np.diff(arrays["offsets"], prepend=np.int32(0))
    arrays["known"] = np.concatenate(labels).astype(np.int16)
    return {"tags": names["tags"], "splits": names["splits"]}, {
        name: array for name, array in arrays.items() if array.size
    }


def kept_documents(
    names: Any, given: Arrays, words: Sequence[str], annotators: Sequence[str], n_labels: int
) -> KeptDocuments:
    """The documents in a file; ``ValueError`` if its arrays do not fit together."""
    kept_names_of = msgspec.convert(names, KeptNames)
    text: dict[str, Any] = {**kept_names_of, "words": words, "annotators": annotators, "sources": []}
    arrays = _checked(given, text, n_labels)
    corpus = ArrayCorpus(arrays, words, annotators, text)
    known = arrays["known"].astype(np.int32)
    return KeptDocuments(corpus, known if (known >= 0).any() else None)


def _checked(given: Arrays, text: dict[str, Any], n_labels: int) -> Arrays:
    kinds = {name: np.dtype(kind) for name, kind in _KINDS.items() if name not in ("length", "source")}
    kinds |= {"doc_start": np.dtype(np.int64), "known": np.dtype(np.int16)}
    given = {name: given.get(name, np.zeros(0, kind)) for name, kind in kinds.items()}  # the empty ones are left out
    for name, kind in kinds.items():
        if given[name].ndim != 1 or given[name].dtype != kind:
            raise ValueError(f"array {name!r} of its documents is of another kind")
    size = {name: len(given[name]) for name in kinds}
    D, N = size["sequences"], size["word"]
    wanted = document_shapes(D, N, size["soft_place"]) | {"known": (N,), "unit": (D,)}
    places = np.cumsum(given["offsets"], dtype=np.int64)
    arrays: Arrays = {**given, "offsets": places, "source": np.tile(np.array([-1, 0, 0]), D)}
    rules: dict[str, Rule] = document_rules(arrays, size, text) | {
        "known": lambda array: within(-1, n_labels, array),
        "unit": lambda array: within(0, len(Unit), array),
    }
    for name in kinds:
        if name in wanted and (size[name],) != wanted[name]:
            raise ValueError(f"array {name!r} of its documents is damaged: numbers that are not one each")
    for name, rule in rules.items():
        wrong = rule(arrays[name])
        if wrong is not None:
            raise ValueError(f"array {name!r} of its documents is damaged: {wrong}")
    for name in ("id", "text"):
        bytes(arrays[f"{name}_bytes"]).decode(errors="surrogatepass")
        ends = arrays[f"{name}_end"]
        inner = arrays[f"{name}_bytes"][ends[ends < size[f"{name}_bytes"]]]
        if ((inner >= 0x80) & (inner < 0xC0)).any():  # in the middle of a character
            raise ValueError(f"array '{name}_end' of its documents is damaged: a text ends within a character")
    if len({piece_of(arrays, "id", d) for d in range(D)}) < D:
        raise ValueError("two of its documents have the same id")
    return arrays
