"""A compiled kernel that writes a consensus as lines of JSON, the same bytes as ``formats/json_lines.py`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from quorate.model.kernels.native import native

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
_A_TOKEN = 40  # bytes that a token takes in a line, about


class DocumentColumns(NamedTuple):
    """Some documents as columns. Texts lie end to end as UTF-8; piece i ends at ``end[i]``.

    Document d has the tokens ``doc_start[d]`` to ``doc_start[d + 1]``, from 0. ``word`` is the number of each one's
    word. ``words`` and ``splits`` are JSON strings already, in quotes. ``split`` is −1 where a document has none;
    ``offsets`` are two a token, where any document ``has_text``, and ``unit`` what they count, where that is not code
    points everywhere.
    """

    doc_start: Ints
    ids: Bytes
    id_end: Ints
    word: Ints32
    words: Bytes
    word_end: Ints
    has_text: Bytes
    texts: Bytes
    text_end: Ints
    offsets: Ints32
    unit: Bytes
    split: Ints32
    splits: Bytes
    split_end: Ints


class ConsensusColumns(NamedTuple):
    """The consensus on the same documents, token by token.

    ``sure`` are probabilities. A span that begins at a token ends before ``span_end − first_token``; 0: none does.
    ``known`` says which tags were given, if any was. ``document_numbers`` and ``span_numbers`` are the confidence of
    every document, and of every span, as JSON writes numbers, with something behind each. ``labels`` are the tags, and
    ``types`` the type of each, as JSON strings.
    """

    path: Ints32
    sure: NDArray[np.float64]
    span_end: Ints32
    first_token: int
    known: NDArray[np.bool_]
    document_numbers: Bytes
    span_numbers: Bytes
    labels: Bytes
    label_end: Ints
    types: Bytes
    type_end: Ints


def quoted(names: Sequence[str]) -> tuple[Bytes, Ints]:
    """Names as JSON strings end to end, and where each ends.

    ``ValueError`` if one is no string, or holds half a character, which cannot be written.

    >>> strings, end = quoted(["Ada", 'say "hi"'])
    >>> print(bytes(strings).decode(), end)
    "Ada""say \\"hi\\"" [ 5 17]
    """
    json = np.frombuffer(msgspec.json.encode(names), np.uint8)
    strings, end = np.empty(len(json), np.uint8), np.zeros(len(names), np.int64)
    if split_strings(json, strings, end) < len(names):
        raise ValueError("a name that is no string")
    return strings[: end.max(initial=0)], end


def lines_of(documents: DocumentColumns, consensus: ConsensusColumns) -> Bytes:
    """One line a document."""
    needed = len(documents.texts) + _A_TOKEN * (len(documents.word) + len(documents.doc_start))
    while True:
        out = np.empty(needed, np.uint8)
        needed = fill_lines(documents, consensus, out)
        if needed <= len(out):
            return out[:needed]


@native
def split_strings(json: Bytes, strings: Bytes, end: Ints) -> int:
    """The strings of an array in JSON, end to end, and where each ends; returns how many there are."""


@native
def fill_lines(columns: DocumentColumns, consensus: ConsensusColumns, out: Bytes) -> int:
    """Fills ``out``, and returns how many bytes all lines are: where those are more, not all of them are there."""
