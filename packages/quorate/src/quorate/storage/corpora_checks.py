"""What must hold of an encoded corpus before anything is looked up by its numbers.

A digest finds damage; a file that was made up has the right digests. Compiled code does not look whether a number is in
range, so every number that something is found by is looked at here first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import Invalid, Scheme
from quorate.storage.arrays import MappedArrays, damaged

RAW_KINDS: dict[str, Any] = {
    "length": np.int64,
    "word": np.int32,
    "id_bytes": np.uint8,
    "id_end": np.int64,
    "sequences": np.int32,
    "annotator": np.int32,
    "codes": np.int16,
    "gold": np.int16,
    "has_gold": np.uint8,
    "split": np.int16,
    "text_bytes": np.uint8,
    "text_end": np.int64,
    "has_text": np.uint8,
    "offsets": np.int32,
    "source": np.int64,
    "soft_place": np.int64,
    "soft_tag": np.int16,
    "soft_probability": np.float64,
}
"""Arrays that grow with the documents."""

LAYOUT_KINDS: dict[str, Any] = {
    "token_word": np.int32,
    "token_set": np.int32,
    "set_start": np.int64,
    "set_cell": np.int32,
    "set_weight": np.float64,
    "slice_words": np.int32,
    "slice_cells": np.int32,
}
"""Arrays of the slices, in the order in which a slice has them."""

_OTHER_KINDS: dict[str, Any] = {
    "doc_start": np.int64,
    "event_start": np.int64,
    "event_cell": np.int32,
    "event_weight": np.float64,
    "cell_annotator": np.int64,
    "cell_previous": np.int64,
    "cell_label": np.int64,
    "slice_docs": np.int64,
    "slice_starts": np.int64,
}
_KINDS = {name: kind for name, kind in (RAW_KINDS | LAYOUT_KINDS | _OTHER_KINDS).items() if name != "length"}

Rule = Callable[[NDArray[Any]], str | None]


class Text(TypedDict):
    """The names, and what else is no array."""

    kind: str
    version: int
    words: list[str]
    annotators: list[str]
    tags: list[str]
    used: list[str]
    labels: list[str]
    splits: list[str]
    sources: list[str]
    scheme: Scheme
    invalid: Invalid
    repaired: int
    notes: list[str]
    digests: dict[str, str]
    profiles: dict[str, dict[str, Any]]


def checked_text(given: Any, path: str) -> Text:
    """The text, if it has all that it must have."""
    try:
        text: Text = msgspec.convert(given, Text)
    except msgspec.ValidationError as error:
        raise damaged(path, str(error)) from None
    for name in ("words", "annotators", "tags"):
        if len(set(text[name])) < len(text[name]):
            raise damaged(path, f"the {name} are not all different")
    return text


def rules(arrays: MappedArrays, text: Text) -> Callable[[str, NDArray[Any]], str | None]:
    """What to check of each array when it is first asked for; raises now if one is missing, or has another shape."""
    missing = sorted(set(_KINDS) - arrays.names)
    if missing:
        raise damaged(arrays.path, f"without array {missing[0]!r}")
    size = {name: arrays.shape(name)[0] if arrays.shape(name) else -1 for name in _KINDS}
    D, N, S = size["sequences"], size["word"], size["slice_docs"]
    wanted: dict[str, tuple[int, ...]] = {
        **document_shapes(D, N, size["soft_place"]),
        "event_start": (N + 1,),
        **dict.fromkeys(("cell_annotator", "cell_previous"), (size["cell_label"],)),
        "slice_starts": (S, len(LAYOUT_KINDS)),
        "event_weight": (size["event_cell"] if size["event_weight"] else 0,),
        "set_weight": (size["set_cell"] if size["event_weight"] else 0,),
    }
    for name, size_of_it in size.items():
        if arrays.shape(name) != wanted.get(name, (size_of_it,)):
            raise damaged(arrays.path, f"array {name!r} has another shape than it must have")
    K, J, E, G = len(text["annotators"]), len(text["labels"]), size["event_cell"], size["cell_label"]
    found: dict[str, Rule] = {
        **document_rules(arrays, size, text),
        "event_start": partial(_rises, 0, E),
        "slice_docs": partial(_rises, 0, D),
        "slice_starts": partial(_starts_of_slices, [size[name] for name in LAYOUT_KINDS]),
        "event_cell": partial(within, 0, G),
        "event_weight": _weights,
        "set_weight": _weights,
        "cell_annotator": partial(within, 0, K),
        "cell_previous": partial(within, 0, J + (text["scheme"] is Scheme.PLAIN)),
        "cell_label": lambda array: within(0, J, array) or _cells_ascend(arrays, array, J),
    }  # the arrays of slices are looked at slice by slice

    def check(name: str, array: NDArray[Any]) -> str | None:
        if array.dtype != np.dtype(_KINDS.get(name, array.dtype)):
            return "numbers of another kind than they must be"
        return found[name](array) if name in found else None

    return check


def document_shapes(n_documents: int, n_tokens: int, n_soft: int) -> dict[str, tuple[int, ...]]:
    """The shapes of arrays of documents that follow from those of others."""
    D, N = n_documents, n_tokens
    return {
        "doc_start": (D + 1,), "gold": (N,), "offsets": (2 * N,), "source": (3 * D,),
        **dict.fromkeys(("id_end", "text_end", "has_gold", "has_text", "split"), (D,)),
        **dict.fromkeys(("soft_tag", "soft_probability"), (n_soft,)),
    }  # fmt: skip


def document_rules(arrays: Mapping[str, NDArray[Any]], size: Mapping[str, int], text: Any) -> dict[str, Rule]:
    """What must hold of the arrays of documents; ``text`` has the names that numbers stand for."""
    V, K, T = len(text["words"]), len(text["annotators"]), len(text["tags"])
    return {
        "doc_start": partial(_rises, 0, size["word"]),
        "id_end": partial(_rises, None, size["id_bytes"]),
        "text_end": partial(_rises, None, size["text_bytes"]),
        "soft_place": lambda array: within(0, size["codes"], array) or _rises(None, None, array),
        "sequences": partial(within, 0, K + 1),
        "annotator": lambda array: within(0, K, array) or _counts_to(arrays["sequences"].sum(dtype=np.int64), array),
        "codes": lambda array: within(-2, T, array) or _counts_to(_n_codes(arrays), array),
        "word": partial(within, 0, V),
        "gold": partial(within, -1, T),
        "has_gold": partial(within, 0, 2),
        "has_text": partial(within, 0, 2),
        "split": partial(within, -1, len(text["splits"])),
        "offsets": partial(within, 0, 1 << 31),
        "source": lambda array: within(-1, len(text["sources"]), array.reshape(-1, 3)[:, 0]),
        "soft_tag": partial(within, 0, T),
        "soft_probability": _weights,
    }


def check_slice(path: str, laid_out: Sequence[NDArray[Any]], n_tokens: int, n_words: int, n_cells: int) -> None:
    """Raise unless the short numbers of a slice are numbers of what it has."""
    token_word, token_set, set_start, set_cell, set_weight, words, cells = laid_out
    wrong = (
        _counts_to(n_tokens, token_word)
        or _counts_to(n_tokens, token_set)
        or (None if len(set_start) else "no set")
        or _rises(0, len(set_cell), set_start)
        or (None if len(set_weight) in (0, len(set_cell)) else "weights that are not one an event")
        or within(0, len(words), token_word)
        or within(0, len(set_start) - 1, token_set)
        or within(0, len(cells), set_cell)
        or within(0, n_words, words)
        or within(0, n_cells, cells)
    )
    if wrong is not None:
        raise damaged(path, f"the arrays of a slice: {wrong}")


def within(low: int, high: int, array: NDArray[Any]) -> str | None:
    """``low`` to ``high``, the latter excluded."""
    if array.size and not (low <= int(array.min()) and int(array.max()) < high):
        return f"a number that is not from {low} to {high - 1}"
    return None


def _rises(first: int | None, last: int | None, array: NDArray[Any]) -> str | None:
    """From one number to another, and never down; where the first is not given, from 0 or above."""
    if not array.size:
        return None if not last else "numbers are missing"
    ends = (first is None or int(array[0]) == first) and int(array[0]) >= 0 and (last is None or int(array[-1]) == last)
    return None if ends and bool((array[1:] >= array[:-1]).all()) else "numbers that do not rise as they must"


def _starts_of_slices(sizes: Sequence[int], array: NDArray[Any]) -> str | None:
    for column, size in zip(array.T, sizes, strict=True):
        wrong = _rises(0, size, column)
        if wrong is not None:
            return wrong
    return None


def _counts_to(size: Any, array: NDArray[Any]) -> str | None:
    return None if len(array) == int(size) else f"{len(array):,} numbers, where others say {int(size):,}"


def _n_codes(arrays: Mapping[str, NDArray[Any]]) -> int:
    return int((arrays["sequences"].astype(np.int64) * np.diff(arrays["doc_start"])).sum())


def _weights(array: NDArray[Any]) -> str | None:
    sound = bool(np.isfinite(array).all()) and (not array.size or float(array.min()) >= 0)
    return None if sound else "a weight that is negative, or no number"


def _cells_ascend(arrays: MappedArrays, label: NDArray[Any], n_labels: int) -> str | None:
    key = (arrays["cell_annotator"] * (n_labels + 1) + arrays["cell_previous"]) * n_labels + label
    return None if bool((key[1:] > key[:-1]).all()) else "cells that are not in order, each once"
