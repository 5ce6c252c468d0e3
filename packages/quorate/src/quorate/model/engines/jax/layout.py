"""A corpus on the device: its documents in lanes, and what was said about every token, made there from flat arrays."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from quorate.crowd.crowd import Crowd
from quorate.model.engines.jax.device import filled_up, roomy
from quorate.model.engines.jax.lanes import Share


class Batch(NamedTuple):
    """The documents of a share; what lies beyond them is nothing, and has the number after the last of its kind."""

    doc: Any  # [L, B]
    first: Any  # [D] the place of a document's first token
    last: Any  # [D]
    real: Any  # [D] whether there is such a document
    word: Any  # [L, B]
    cell: Any  # [A, L, B]
    weight: Any | None  # [A, L, B]
    known: Any | None  # [L, B]


class Layout(NamedTuple):
    """All batches; where tokens lie, all places end to end; and sizes with the room that code is compiled for."""

    batches: list[Batch]
    place: Any  # [tokens]
    n_places: int
    n_cells: int
    n_words: int


class _Tokens(NamedTuple):
    """Flat arrays of a corpus."""

    doc: Any  # [N] its number in its share
    word: Any
    event_start: Any  # [N + 1]
    event_cell: Any
    event_weight: Any | None
    known: Any | None


def lay_out(encoded: Crowd, known: NDArray[np.int32] | None, shares: list[Share]) -> Layout:
    """Bring a corpus to the device, and lay it out there."""
    G, V, N, D = roomy(len(encoded.cells.label)), roomy(len(encoded.words)), encoded.n_tokens, encoded.n_docs
    E, lengths = len(encoded.event_cell), np.diff(encoded.doc_start)
    n_tokens, n_docs, n_events = roomy(N), roomy(D), roomy(E)
    first, stride, number = (np.zeros(D, np.int64) for _ in range(3))
    n_places = 0
    for share in shares:
        first[share.documents], stride[share.documents] = n_places + share.first, share.lanes
        number[share.documents] = np.arange(len(share.documents))
        n_places += share.places
    weight = encoded.event_weight
    columns = [filled_up(values, n_docs, nothing) for values, nothing in ((encoded.doc_start[:-1], N), (first, 0))]
    columns += [filled_up(values, n_docs, 0) for values in (stride, number)]
    place, token_at, doc = _placed(*columns, N, n_tokens=n_tokens, n_places=n_places)
    tokens = _Tokens(
        doc,
        filled_up(np.where(encoded.word < len(encoded.words), encoded.word, V), n_tokens, V),
        filled_up(encoded.event_start, n_tokens + 1, E),
        filled_up(encoded.event_cell, n_events, G),
        None if weight is None else filled_up(weight, n_events, 0.0, np.float32),
        None if known is None else filled_up(known, n_tokens, -1),
    )
    given, n_places, batches = np.diff(encoded.event_start), 0, []
    most = _most_of(given, encoded.doc_start)
    for share in shares:
        ends = share.first + (lengths[share.documents] - 1) * share.lanes
        A = int(most[share.documents].max(initial=1))
        batches.append(
            Batch(
                **_taken(
                    tokens,
                    jax.lax.dynamic_slice_in_dim(token_at, n_places, share.places).reshape(share.length, share.lanes),
                    G,
                    V,
                    room=share.room,
                    most=A if A <= 8 else roomy(A),
                ),
                first=filled_up(share.first, share.room, 0),
                last=filled_up(ends, share.room, 0),
                real=filled_up(np.ones(len(ends)), share.room, False, np.bool_),
            )
        )
        n_places += share.places
    return Layout(batches, place, n_places, G, V)


def _most_of(given: NDArray[np.int64], doc_start: NDArray[np.int64]) -> NDArray[np.int64]:
    """``[D]`` The most labels that a token of each document has."""
    most = np.maximum.reduceat(np.append(given, 0), doc_start[:-1]) if len(doc_start) > 1 else np.zeros(0, np.int64)
    return np.asarray(np.where(np.diff(doc_start) > 0, most, 0))


@partial(jax.jit, static_argnames=("n_tokens", "n_places"))
def _placed(
    doc_start: Any, first: Any, stride: Any, number: Any, n: Any, *, n_tokens: int, n_places: int
) -> tuple[Any, Any, Any]:
    """The place of every token, the token at every place, and the number of every token's document in its share."""
    begun = jnp.zeros(n_tokens + 1, jnp.int32).at[doc_start].add(1)
    document = jnp.cumsum(begun[:-1], dtype=jnp.int32) - 1
    token = jnp.arange(n_tokens, dtype=jnp.int32)
    place = first[document] + (token - doc_start[document]) * stride[document]
    place = jnp.where(token < n, place, n_places)
    token_at = jnp.full(n_places, n_tokens, jnp.int32).at[place].set(token, mode="drop", unique_indices=True)
    return place, token_at, number[document]


@partial(jax.jit, static_argnames=("room", "most"))
def _taken(tokens: _Tokens, token_at: Any, no_cell: Any, no_word: Any, *, room: int, most: int) -> dict[str, Any]:
    """What is known of the token at each place ``[L, B]``."""
    there = token_at < len(tokens.doc)
    token = jnp.minimum(token_at, len(tokens.doc) - 1)
    begin = tokens.event_start[token]
    number = jnp.arange(most, dtype=jnp.int32)[:, None, None]
    said = there & (begin + number < tokens.event_start[token + 1])
    event = jnp.where(said, begin + number, 0)
    weight, known = tokens.event_weight, tokens.known
    return {
        "doc": jnp.where(there, tokens.doc[token], room),
        "word": jnp.where(there, tokens.word[token], no_word).astype(jnp.int32),
        "cell": jnp.where(said, tokens.event_cell[event], no_cell).astype(jnp.int32),
        "weight": None if weight is None else jnp.where(said, weight[event], 0.0),
        "known": None if known is None else jnp.where(there, known[token], -1),
    }
