"""What a word looks like, as numbers: hashed features of every token, found from the words alone.

Strings are looked at once for each distinct word; everything about tokens and their neighbours is then arithmetic on
whole arrays. A feature is a bucket out of ``BUCKETS``, 0 where there is none (a word too short for that suffix).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BUCKETS = 1 << 22

Hashes = NDArray[np.uint64]
Ints32 = NDArray[np.int32]

_ATTRIBUTES = 14
_WORD, _LOWER, _SHAPE, _OUTLINE, _PREFIX, _SUFFIX = 0, 1, 2, 3, 4, 8
_LAST_WORD_PART, _KINDS = 12, 13
_AFFIXES = 4
_LEAST_COUNT = 2  # a feature seen less often says nothing about other documents
_EDGE = 1  # stands for what is beyond the first or the last token


class TokenFeatures:
    """Features of documents, each distinct document worked out once.

    >>> features = TokenFeatures()
    >>> blocks = features([("Ada", "sang"), ("Bob",)])
    >>> [block.shape[0] for block in blocks], features([("Ada", "sang")])[0] is blocks[0]
    ([2, 1], True)
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], NDArray[np.int32]] = {}

    def __call__(self, documents: Sequence[tuple[str, ...]]) -> list[NDArray[np.int32]]:
        """For every document, ``[L, F]`` buckets."""
        new = list(dict.fromkeys(tokens for tokens in documents if tokens not in self._known))
        if new:
            lengths = np.array([len(tokens) for tokens in new])
            for tokens, block in zip(new, np.split(_buckets(new, lengths), np.cumsum(lengths)[:-1]), strict=True):
                self._known[tokens] = block
        return [self._known[tokens] for tokens in documents]

    def end_to_end(self, documents: Sequence[tuple[str, ...]]) -> tuple[Ints32, NDArray[np.int64]]:
        """``[N, F]`` buckets of all documents end to end, and where each document starts.

        >>> buckets, doc_start = TokenFeatures().end_to_end([("Ada", "sang"), ("Bob",)])
        >>> len(buckets), doc_start.tolist()
        (3, [0, 2, 3])
        """
        lengths = [len(tokens) for tokens in documents]
        buckets = np.concatenate(self(documents) or self([()]))
        return buckets, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def frequent(buckets: Ints32) -> Ints32:
    """The buckets that at least two tokens have, the most frequent first.

    >>> frequent(np.array([[5, 7], [5, 0], [7, 7]], np.int32)).tolist()
    [7, 5]
    """
    counts = np.bincount(buckets.ravel(), minlength=BUCKETS)
    counts[0] = 0
    kept = np.flatnonzero(counts >= _LEAST_COUNT)
    return kept[np.argsort(-counts[kept], kind="stable")].astype(np.int32)


def numbered(buckets: Ints32, kept: Ints32) -> Ints32:
    """For every bucket its place in ``kept``, counted from 1; 0 for those that are not there.

    >>> numbered(np.array([[5, 7], [5, 0]]), np.array([7, 5])).tolist()
    [[2, 1], [2, 0]]
    """
    number = np.zeros(BUCKETS, np.int32)
    number[kept] = np.arange(1, len(kept) + 1)
    return np.asarray(number[buckets])


def _buckets(documents: Sequence[tuple[str, ...]], lengths: NDArray[np.int64]) -> NDArray[np.int32]:
    """``[N, F]`` Buckets of the tokens of all documents, end to end."""
    number: dict[str, int] = {}
    types = np.array([number.setdefault(token, len(number)) for tokens in documents for token in tokens], np.int64)
    attributes = np.array([_attributes(word) for word in number] + [[_EDGE] * _ATTRIBUTES], np.uint64)
    edge = len(number)
    first = np.cumsum(lengths) - lengths
    position = np.arange(len(types)) - np.repeat(first, lengths)
    remaining = np.repeat(lengths, lengths) - 1 - position

    def neighbour(offset: int) -> NDArray[np.int64]:
        moved = np.full(len(types), edge)
        if offset < 0:
            moved[-offset:] = types[:offset]
            moved[position < -offset] = edge
        else:
            moved[:-offset] = types[offset:]
            moved[remaining < offset] = edge
        return moved

    at = {offset: attributes[types if offset == 0 else neighbour(offset)] for offset in (-2, -1, 0, 1, 2)}
    place = (np.minimum(position, 2) * 2 + (remaining == 0)).astype(np.uint64) + np.uint64(2)
    templates: list[tuple[Hashes, ...]] = [(np.ones(len(types), np.uint64),)]
    templates += [(at[0][:, column],) for column in range(_ATTRIBUTES)]
    for offset in (-1, 1):
        near = at[offset]
        templates += [(near[:, column],) for column in (_LOWER, _OUTLINE, _SUFFIX + 2)]
        templates += [(near[:, _LOWER], at[0][:, _LOWER]), (near[:, _OUTLINE], at[0][:, _OUTLINE])]
        templates += [(near[:, _LOWER], at[0][:, _OUTLINE])]
        far = at[2 * offset]
        templates += [(far[:, _LOWER],), (far[:, _OUTLINE],), (far[:, _LOWER], near[:, _LOWER])]
    templates += [
        (at[-1][:, _LOWER], at[1][:, _LOWER]),
        (at[-1][:, _OUTLINE], at[0][:, _OUTLINE], at[1][:, _OUTLINE]),
        (place,),
        (place, at[0][:, _OUTLINE]),
    ]
    buckets = np.empty((len(types), len(templates)), np.int32)
    for column, parts in enumerate(templates):
        buckets[:, column] = _bucket(column, parts)
    return buckets


def _bucket(template: int, parts: Sequence[Hashes]) -> NDArray[np.int64]:
    """One bucket for what a template sees, 0 where a part is absent."""
    key = np.full(len(parts[0]), template + 1, np.uint64)
    present = np.ones(len(key), np.bool_)
    for part in parts:
        present &= part != 0
        key = (key ^ part) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    bucket = (key >> np.uint64(20)) % np.uint64(BUCKETS - 1) + np.uint64(1)
    return np.where(present, bucket, 0).astype(np.int64)


_SHAPES = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "X" * 26 + "x" * 26 + "d" * 10
)
_RUNS = re.compile(r"(.)\1+")


def _attributes(word: str) -> list[int]:
    """Hashes of everything about a word that a feature may look at; 0 for what it does not have."""
    lower = word.lower()
    shape = word.translate(_SHAPES)
    if not shape.isascii():
        shape = "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word)
    outline = _RUNS.sub(r"\1", shape)
    folded = re.sub(r"\d", "0", lower)
    prefixes = [folded[:n] if len(word) >= n else "" for n in range(1, _AFFIXES + 1)]
    suffixes = [folded[-n:] if len(word) >= n else "" for n in range(1, _AFFIXES + 1)]
    last_part = re.split(r"[-/.]", folded)[-1] if re.search(r"[-/.].", folded) else ""
    kinds = "".join(
        str(int(has))
        for has in (
            word.istitle(),
            word.isupper(),
            word.isdigit(),
            "-" in word,
            "." in word,
            word.isalpha(),
            any(c.isupper() for c in word[1:]) and not word.isupper(),
            len(word) == 1,
        )
    )
    texts = [word, folded, shape, outline, *prefixes, *suffixes, last_part, kinds]
    return [_hash(text) if text else 0 for text in texts]


def _hash(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return (zlib.crc32(data) << 16 | zlib.adler32(data) & 0xFFFF) + 2
