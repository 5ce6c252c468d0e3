"""A consensus as lines of JSON, slice by slice on all cores: the bytes that ``formats/json_lines.py`` makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from quorate.corpus.discontinuous import is_continued
from quorate.corpus.records import Corpus
from quorate.corpus.tags import TagSet
from quorate.model.engines.protocol import Decoded
from quorate.model.engines.threads import slice_bounds
from quorate.model.kernels.cores import available_threads, in_order
from quorate.model.kernels.lines import ConsensusColumns, lines_of, quoted
from quorate.result.coherent import Probabilities
from quorate.storage.columns import columns_of


def can_be_compiled(tagset: TagSet) -> bool:
    """Whether compiled code can write these labels: not spans in pieces, which tags cannot tell from others.

    >>> can_be_compiled(TagSet.infer(["O", "B-PER"])), can_be_compiled(TagSet.infer(["O", "B-ADR", "B-ADR…"]))
    (True, False)
    """
    return not any(is_continued(kind) for kind in tagset.types)


def json_lines(
    corpus: Corpus,
    tagset: TagSet,
    doc_start: NDArray[np.int64],
    decoded: Decoded,
    stated: Probabilities,
    known: NDArray[np.bool_],
    otherwise: Callable[[int, int], bytes],
) -> Iterator[tuple[int, memoryview]]:
    """The lines of all documents, many at a time and with how many they are, in their order.

    ``otherwise`` writes documents, from one to before another, in which there is something that compiled code cannot
    write. Memory is that of a few slices a core.
    """
    labels, types = quoted(tagset.labels), quoted([kind for _, kind in tagset.parts])
    begin, some_known = np.flatnonzero(decoded.span_end), bool(known.any())

    def lines(documents_of: tuple[int, int]) -> tuple[int, memoryview]:
        first, last = documents_of
        tokens = slice(int(doc_start[first]), int(doc_start[last]))
        spans = slice(*np.searchsorted(begin, [tokens.start, tokens.stop]))
        sure = stated.tokens[tokens]
        documents = columns_of(corpus, first, last) if ((sure >= 0) & (sure <= 1)).all() else None
        if documents is None:
            return last - first, memoryview(otherwise(first, last))
        consensus = ConsensusColumns(
            decoded.path[tokens],
            sure,
            decoded.span_end[tokens],
            tokens.start,
            known[tokens] if some_known else known[:0],
            _numbers(stated.documents[first:last]),
            _numbers(stated.spans[spans]),
            *labels,
            *types,
        )
        return last - first, lines_of(documents, consensus).data

    slices = [(first, last) for first, last in pairwise(slice_bounds(doc_start)) if first < last]
    return in_order(lines, slices, available_threads())


def _numbers(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Numbers as JSON writes them, with a comma or bracket behind each."""
    return np.frombuffer(msgspec.json.encode(values.tolist()), np.uint8)[1:]
