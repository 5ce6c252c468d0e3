"""Documents as columns, as the compiled writer of lines takes them: from the arrays of a file, or made of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.offsets import Unit
from quorate.corpus.records import Corpus, Document
from quorate.model.kernels.lines import DocumentColumns, quoted
from quorate.storage.documents import ArrayCorpus
from quorate.storage.joined import JoinedCorpus

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
_UNITS = {unit: number for number, unit in enumerate(Unit)}
_CONTINUES, _OF_A_CHARACTER = 0x80, 0xC0  # bytes of UTF-8 that no character begins with


def columns_of(corpus: Corpus, first: int, last: int) -> DocumentColumns | None:
    """Documents ``first`` to ``last`` of a corpus; ``None`` if something in them cannot be written in this way.

    That is a text without offsets, or one that is not Unicode: whoever writes it by other means will say so.
    """
    if isinstance(corpus, JoinedCorpus):
        part, shift = corpus.part_of(first)
        if last - shift <= len(part):
            return columns_of(part, first - shift, last - shift)
    try:
        if isinstance(corpus, ArrayCorpus):
            return _of_arrays(corpus, first, last)
        return _of_documents([corpus[d] for d in range(first, last)])
    except ValueError:  # half a character, say
        return None


def _end_to_end(pieces: Iterable[bytes]) -> tuple[Bytes, Ints]:
    pieces = list(pieces)
    return np.frombuffer(b"".join(pieces), np.uint8), np.cumsum([len(piece) for piece in pieces], dtype=np.int64)


def _of_arrays(corpus: ArrayCorpus, first: int, last: int) -> DocumentColumns | None:
    arrays = corpus.arrays
    begin, end = arrays["doc_start"][[first, last]].tolist()
    ids, id_end = _cut(arrays["id_bytes"], arrays["id_end"], first, last)
    has_text = arrays["has_text"][first:last]
    texts, text_end, offsets = np.zeros(0, np.uint8), np.zeros(last - first, np.int64), np.zeros(0, np.int32)
    if has_text.any():
        texts, text_end = _cut(arrays["text_bytes"], arrays["text_end"], first, last)
        offsets = arrays["offsets"][2 * begin : 2 * end]
    if not (_is_unicode(ids, id_end) and _is_unicode(texts, text_end)):
        return None
    return DocumentColumns(
        arrays["doc_start"][first : last + 1] - begin,
        ids,
        id_end,
        arrays["word"][begin:end],
        *corpus.quoted_words,
        has_text,
        texts,
        text_end,
        offsets,
        arrays["unit"][first:last] if "unit" in arrays else np.zeros(0, np.uint8),
        arrays["split"][first:last].astype(np.int32),
        *quoted(corpus.splits),
    )


def _cut(texts: Bytes, end: Ints, first: int, last: int) -> tuple[Bytes, Ints]:
    """Some of the texts that lie end to end."""
    start = int(end[first - 1]) if first else 0
    stop = int(end[last - 1]) if last else 0
    return texts[start:stop], end[first:last] - start


def _is_unicode(texts: Bytes, end: Ints) -> bool:
    """Whether every text by itself is UTF-8."""
    try:
        str(texts.data, "utf-8")
    except UnicodeDecodeError:
        return False
    inner = end[end < len(texts)]
    return not bool(((texts[inner] & _OF_A_CHARACTER) == _CONTINUES).any())


def _of_documents(documents: Sequence[Document]) -> DocumentColumns | None:
    if any(document.text is not None and document.offsets is None for document in documents):
        return None
    tokens = list(chain.from_iterable(document.tokens for document in documents))
    splits = list(dict.fromkeys(document.split for document in documents if document.split is not None))
    has_text = np.array([document.text is not None for document in documents], np.uint8)
    offsets: Ints = np.zeros(0, np.int64)
    if has_text.any():
        offsets = np.array([place for document in documents for place in _offsets(document)], np.int64).reshape(-1)
        if offsets.min(initial=0) < 0 or offsets.max(initial=0) > np.iinfo(np.int32).max:
            return None
    return DocumentColumns(
        np.cumsum([0, *(len(document.tokens) for document in documents)], dtype=np.int64),
        *_end_to_end(document.id.encode() for document in documents),
        np.arange(len(tokens), dtype=np.int32),  # to look up which words are the same takes longer
        *quoted(tokens),
        has_text,
        *_end_to_end((document.text or "").encode() for document in documents),
        offsets.astype(np.int32),
        np.array([_UNITS[document.unit] for document in documents], np.uint8),
        np.array([-1 if document.split is None else splits.index(document.split) for document in documents], np.int32),
        *quoted(splits),
    )


def _offsets(document: Document) -> Iterable[tuple[int, int]]:
    """Two a token, whatever they are where there is no text."""
    if document.text is None or document.offsets is None:
        return ((0, 0) for _ in document.tokens)
    return document.offsets
