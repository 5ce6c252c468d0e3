"""Passes on an accelerator, or on this machine's cores, through JAX: 32-bit, with all data resident on the device.

Documents of like length lie side by side in batches, tokens one below the other, and one scan over the positions does
all documents of a batch. What annotators said is gathered from the cells' rows; counts are sums over the tokens of each
cell and word, which are sorted by cell and word once, and added up as trees, so that single precision suffices.
Documents in which evidence conflicts by more than single precision can hold are done again in log space, in float64.

Letters: A labels given to a token, L positions, B documents of a batch, J labels; arrays are ``[L, J, B]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.encode.algebra import events_of_document, token_of_events
from quorate.encode.encoded import Encoded
from quorate.errors import FitError, SettingsError
from quorate.infer.engines import plain
from quorate.infer.engines.protocol import Counts, Decoded, Likely, Tables
from quorate.infer.engines.threads import ThreadsEngine
from quorate.infer.parts.truth import Chain, LabelCounts, log_mask

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:  # pragma: no cover
    raise SettingsError("the engine 'jax' needs JAX (install it with: pip install 'quorate[jax]')") from None

__all__ = ["JaxEngine"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BATCH_LENGTHS = 2, 8  # each is compiled for once: few where there is little to do
_TOKENS_A_LENGTH = 1 << 18
_BATCH_TOKENS = 1 << 22
_FALL_BACK = -40.0  # nats by which evidence may conflict before single precision is not enough
_NOTHING_LEFT = -1e4
_USUAL = 3.0  # nats a token of disagreement that is usual, and counts as no conflict


class _Batch(NamedTuple):
    """Documents of like length on the device; what is beyond a document's end is nothing."""

    length: Any  # [B]
    word: Any  # [L, B]
    cell: Any  # [A, L, B]
    weight: Any | None  # [A, L, B]
    known: Any | None  # [L, B]


class _Tree(NamedTuple):
    """Sums over groups of rows: each level adds up some rows of the one before. The last row is 0."""

    levels: tuple[Any, ...]
    n_groups: int


class JaxEngine:
    """One corpus on a device, ready for passes: see :class:`quorate.infer.engines.protocol.Engine`."""

    rounding = 1e-5

    def __init__(
        self,
        encoded: Encoded,
        *,
        known: NDArray[np.int32] | None = None,
        text: bool = True,
        times: Floats | None = None,
        threads: int | None = None,
        names: Callable[[int], str] | None = None,
    ) -> None:
        if times is not None:
            raise SettingsError("the engine 'jax' takes every token by itself")
        self._encoded, self._known, self._text, self._threads = encoded, known, text, threads
        self._name = names or (lambda d: f"document {d}")
        self._documents = _batches_of(np.diff(encoded.doc_start))
        self._batches, place, n_places = [], np.empty(encoded.n_tokens, np.int64), 0
        for documents, width in self._documents:
            batch, tokens, places = _laid_out(encoded, known, documents, width)
            place[tokens] = n_places + places
            n_places += width * len(documents)
            self._batches.append(batch)
        self._place, self._n_places = place, n_places
        owner = place[token_of_events(encoded)]
        weight = encoded.event_weight
        self._by_cell = _tree(encoded.event_cell, owner, len(encoded.cells.label), n_places)
        self._cell_weight = None if weight is None else _leaf_weights(encoded.event_cell, weight, self._by_cell)
        self._by_word = _tree(encoded.word, place, len(encoded.words), n_places) if text else None

    def run(self, tables: Tables, chain: Chain) -> Counts:
        """One pass."""
        cells, words, steps = self._on_device(tables, chain)
        outs = [_pass(batch, cells, words, tables.temper, *steps) for batch in self._batches]
        redone = self._redone([out[3] for out in outs], tables, chain)
        counts = self._counted([out[1] for out in outs], tables.temper)
        log_z = sum(float(np.asarray(out[0], np.float64).sum()) for out in outs)
        trans = np.exp(chain.trans)
        pairs = np.sum([np.asarray(out[2], np.float64).sum(axis=0) for out in outs], axis=0) * trans
        first = np.sum([np.asarray(out[4], np.float64) for out in outs], axis=0)
        every = np.sum([np.asarray(out[5], np.float64).sum(axis=0) for out in outs], axis=0)
        for d, _, result in redone:
            log_z += result.log_z
            pairs += result.pairs
            first += result.posterior[0]
            every += result.posterior.sum(axis=0)
            self._add(counts, d, result.posterior, tables.temper)
        return Counts(log_z, *counts, LabelCounts(first, pairs, every))

    def vote(self, table: Floats, smoothing: float, temper: float = 1.0) -> Counts:
        """Shares of votes as posterior."""
        votes = jnp.asarray(_with_nothing(table), jnp.float32)
        outs = [_votes(batch, votes, smoothing) for batch in self._batches]
        first = np.sum([np.asarray(out[1], np.float64) for out in outs], axis=0)
        pairs, every = (np.sum([np.asarray(out[n], np.float64).sum(axis=0) for out in outs], axis=0) for n in (2, 3))
        counts = self._counted([out[0] for out in outs], temper)
        return Counts(0.0, *counts, LabelCounts(first, pairs, every))

    def likely_spans(self, tables: Tables, chain: Chain, least: float) -> Likely:
        """Every span with a probability of at least ``least``: found on this machine's cores, it is done once a fit."""
        here = ThreadsEngine(self._encoded, known=self._known, text=self._text, threads=self._threads)
        return here.likely_spans(tables, chain, least)

    def decode(self, tables: Tables, chain: Chain, *, by_token: bool, posteriors: bool = True) -> Decoded:
        """The output pass."""
        encoded, tagset = self._encoded, self._encoded.tagset
        D = encoded.n_docs
        cells, words, steps = self._on_device(tables, chain)
        allowed = [
            chain.start + log_mask(tagset.allowed_first),
            chain.trans + log_mask(tagset.allowed),
            log_mask(tagset.allowed_last),
        ]
        masks = [jnp.asarray(each, jnp.float32) for each in allowed]
        goes_on = jnp.asarray(tagset.continues)
        log_z = np.zeros(D)
        columns: list[list[NDArray[Any]]] = [[] for _ in range(5)]
        bad = []
        for (documents, _), batch in zip(self._documents, self._batches, strict=True):
            out = _decode(batch, cells, words, tables.temper, *steps, *masks, goes_on, by_token=by_token)
            log_z[documents] = np.asarray(out[0], np.float64)
            bad.append(out[6])
            for column, values in zip(columns, out[1:6], strict=True):
                values = np.asarray(values)
                column.append(
                    values.transpose(0, 2, 1).reshape(-1, values.shape[1]) if values.ndim == 3 else values.ravel()
                )
        posterior, path, inner, opening, closing = (np.concatenate(column)[self._place] for column in columns)
        posterior, path = posterior.astype(np.float64), path.astype(np.int32)
        inner = inner.astype(np.float64)
        log_probability = np.add.reduceat(np.append(inner, 0.0), encoded.doc_start[:-1]) * (
            np.diff(encoded.doc_start) > 0
        )
        span_end, span_probability = _spans_of(encoded, path, inner, opening, closing, tagset.continues)
        for d, document, result in self._redone(bad, tables, chain):
            tokens = slice(*document)
            evidence = plain.evidence_of(encoded, tables, chain, self._known, document)
            read = plain.read_off(evidence, chain, tagset, result, by_token=by_token)
            posterior[tokens], path[tokens] = result.posterior, read.path
            log_probability[d], log_z[d] = read.log_probability, result.log_z
            span_end[tokens], span_probability[tokens] = 0, 0.0
            for start, end, probability in read.spans:
                span_end[document.first + start] = document.first + end
                span_probability[document.first + start] = probability
        return Decoded(posterior, path, log_probability, log_z, span_end, span_probability, self.cell_counts(posterior))

    def cell_counts(self, posterior: Floats) -> Floats:
        """``[G, J]`` Counts of the cells under a posterior ``[N, J]`` that comes from elsewhere."""
        rows = np.zeros((self._n_places + 1, posterior.shape[1]), np.float32)
        rows[self._place] = posterior
        return np.asarray(_summed(jnp.asarray(rows), self._by_cell.levels, self._cell_weight), np.float64)

    def close(self) -> None:
        """Let go of the data on the device."""
        self._batches.clear()

    def _on_device(self, tables: Tables, chain: Chain) -> tuple[Any, Any, list[Any]]:
        rows = [jnp.asarray(_with_nothing(table), jnp.float32) for table in (tables.cells, tables.words)]
        steps = [np.exp(chain.start), np.exp(chain.trans), chain.end]
        return rows[0], rows[1], [jnp.asarray(each, jnp.float32) for each in steps]

    def _counted(self, posteriors: Sequence[Any], temper: float) -> tuple[Floats, Floats]:
        """Counts of cells and words from the batches' posteriors ``[L, J, B]``."""
        rows = _end_to_end(posteriors)
        cells = np.asarray(_summed(rows, self._by_cell.levels, self._cell_weight), np.float64)
        J = rows.shape[1]
        words = (
            np.zeros((0, J)) if self._by_word is None else np.array(_summed(rows, self._by_word.levels, None), float)
        )
        return temper * cells, words

    def _redone(
        self, bad: Sequence[Any], tables: Tables, chain: Chain
    ) -> list[tuple[int, plain.Document, plain.Passed]]:
        """The documents that single precision cannot hold, in log space."""
        out = []
        for (documents, _), flags in zip(self._documents, bad, strict=True):
            for d in documents[np.asarray(flags)].tolist():
                document = plain.Document(*map(int, self._encoded.doc_start[d : d + 2]))
                evidence = plain.evidence_of(self._encoded, tables, chain, self._known, document)
                result = plain.passed(evidence, chain)
                if result.log_z == -np.inf:
                    raise FitError(
                        f"{self._name(d)}: no tag sequence is possible (the known labels, or the evidence, rule out "
                        "every one)"
                    )
                out.append((d, document, result))
        return out

    def _add(self, counts: tuple[Floats, Floats], d: int, posterior: Floats, temper: float) -> None:
        """Add one document's posterior to the counts."""
        encoded, (cells, words) = self._encoded, counts
        first, last = encoded.doc_start[d : d + 2]
        events, token = events_of_document(encoded, d)
        weight = temper if encoded.event_weight is None else temper * encoded.event_weight[events, None]
        np.add.at(cells, encoded.event_cell[events], weight * posterior[token])
        seen = encoded.word[first:last] < len(words)
        np.add.at(words, encoded.word[first:last][seen], posterior[seen])


def _batches_of(lengths: Ints) -> list[tuple[Ints, int]]:
    """Documents of like length, and the longest of each batch: few lengths in all, and little room left empty."""
    kinds, how_many = np.unique(lengths[lengths > 0], return_counts=True)
    if not len(kinds):
        return []
    edges = _edges(kinds, how_many, int(np.clip(lengths.sum() // _TOKENS_A_LENGTH, *_BATCH_LENGTHS)))
    batches = []
    for low, high in zip([0, *edges[:-1]], edges, strict=True):
        documents = np.flatnonzero((lengths > low) & (lengths <= high))
        parts = -(-len(documents) * high // _BATCH_TOKENS)
        batches += [(part, high) for part in np.array_split(documents, parts)]
    return batches


def _edges(kinds: Ints, how_many: Ints, n: int) -> list[int]:
    """The n lengths to fill up to, of those that occur, that leave the least room empty."""
    if len(kinds) > 256:  # near enough, and quick
        kept = np.unique(
            np.r_[np.searchsorted(np.cumsum(how_many * kinds), np.linspace(0, 1, 256) * (how_many * kinds).sum())]
        )
        kept = np.unique(np.minimum(np.r_[kept, len(kinds) - 1], len(kinds) - 1))
        how_many = np.add.reduceat(how_many, np.r_[0, kept[:-1] + 1])
        kinds = kinds[kept]
    so_far = np.r_[0, np.cumsum(how_many)]
    size = len(kinds)
    cost = so_far[1:] * kinds  # one batch for everything up to here
    choices = []
    for _ in range(1, min(n, size)):
        table = np.full((size, size), np.iinfo(np.int64).max // 2)
        for last in range(1, size):
            table[last, :last] = cost[:last] + (so_far[last + 1] - so_far[1 : last + 1]) * kinds[last]
        choices.append(np.minimum(table.argmin(axis=1), size - 1))
        cost = np.minimum(table.min(axis=1), cost)
        choices[-1][cost < table.min(axis=1)] = -1
    edges, last = [int(kinds[-1])], size - 1
    for choice in reversed(choices):
        if choice[last] >= 0:
            last = int(choice[last])
            edges.append(int(kinds[last]))
    return edges[::-1]


def _laid_out(
    encoded: Encoded, known: NDArray[np.int32] | None, documents: Ints, width: int
) -> tuple[_Batch, Ints, Ints]:
    """A batch; its tokens, and the place of each in ``[L, B]``, end to end."""
    B = len(documents)
    length = np.diff(encoded.doc_start)[documents]
    column = np.repeat(np.arange(B), length)
    position = np.arange(len(column)) - np.repeat(np.cumsum(length) - length, length)
    token = encoded.doc_start[documents][column] + position
    place = position * B + column

    def spread(values: NDArray[Any], nothing: int) -> NDArray[np.int32]:
        out = np.full(width * B, nothing, np.int32)
        out[place] = values
        return out.reshape(width, B)

    given = encoded.event_start[token + 1] - encoded.event_start[token]
    A = int(given.max(initial=0))
    cell = np.full((A, width * B), len(encoded.cells.label), np.int32)
    weight = None if encoded.event_weight is None else np.zeros((A, width * B), np.float32)
    for a in range(A):
        has = given > a
        cell[a, place[has]] = encoded.event_cell[encoded.event_start[token[has]] + a]
        if weight is not None and encoded.event_weight is not None:
            weight[a, place[has]] = encoded.event_weight[encoded.event_start[token[has]] + a]
    batch = _Batch(
        jnp.asarray(length, jnp.int32),
        jnp.asarray(spread(encoded.word[token], np.iinfo(np.int32).max)),
        jnp.asarray(cell.reshape(A, width, B)),
        None if weight is None else jnp.asarray(weight.reshape(A, width, B)),
        None if known is None else jnp.asarray(spread(known[token], -1)),
    )
    return batch, token, place


def _tree(group: NDArray[np.int32], row: Ints, n_groups: int, n_rows: int) -> _Tree:
    """Which rows to add up for each group, level by level; groups from ``n_groups`` on are left out."""
    order = np.argsort(group, kind="stable")
    order = order[: np.searchsorted(group, n_groups, sorter=order)]
    members, sizes = row[order], np.bincount(group[order], minlength=n_groups)
    levels, nothing = [], n_rows
    while True:
        fan = int(np.clip(1 << int(np.log2(max(sizes.mean() if n_groups else 1, 1))), 8, 128))
        parents = np.maximum(-(-sizes // fan), 1)  # at least one, so that a group without members sums to 0
        first = np.cumsum(parents) - parents
        within = np.arange(len(members)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        table = np.full((int(parents.sum()), fan), nothing, np.int32)
        table[np.repeat(first, sizes) + within // fan, within % fan] = members
        levels.append(jnp.asarray(table))
        if len(table) == n_groups:
            return _Tree(tuple(levels), n_groups)
        members, sizes, nothing = np.arange(len(table)), parents, len(table)


def _leaf_weights(group: NDArray[np.int32], weight: Floats, tree: _Tree) -> Any:
    """The weights of the events, as the first level of their tree has them."""
    n_events = len(group)
    places = _tree(group, np.arange(n_events), tree.n_groups, n_events).levels[0]
    return jnp.asarray(np.append(weight, 0.0)[np.asarray(places)], jnp.float32)


def _with_nothing(table: Floats) -> Floats:
    """One more row, of zeros: for places where nothing was said, or no word stands."""
    return np.concatenate([table, np.zeros((1, table.shape[1]))])


@jax.jit
def _end_to_end(posteriors: Sequence[Any]) -> Any:
    """``[all places + 1, J]``; the last row is 0."""
    rows = [each.transpose(0, 2, 1).reshape(-1, each.shape[1]) for each in posteriors]
    return jnp.concatenate([*rows, jnp.zeros((1, rows[0].shape[1]), jnp.float32)])


@jax.jit
def _summed(rows: Any, levels: Sequence[Any], weight: Any | None) -> Any:
    """``[groups, J]`` Sums of rows, level by level."""
    for number, level in enumerate(levels):
        taken = rows[level]
        if number == 0 and weight is not None:
            taken = taken * weight[:, :, None]
        rows = taken.sum(axis=1)
        if number + 1 < len(levels):
            rows = jnp.concatenate([rows, jnp.zeros((1, rows.shape[1]), rows.dtype)])
    return rows


def _gathered(batch: _Batch, table: Any) -> Any:
    """``[L, J, B]`` Rows of all that was said about each token, added up."""
    J, (L, B) = table.shape[1], batch.word.shape
    total = jnp.zeros((L, J, B), table.dtype)
    for a in range(batch.cell.shape[0]):
        said = table[batch.cell[a]].transpose(0, 2, 1)
        total = total + (said if batch.weight is None else said * batch.weight[a][:, None, :])
    return total


def _evidence(batch: _Batch, cells: Any, words: Any, temper: Any, end: Any) -> tuple[Any, Any]:
    """``[L, J, B]`` exp(evidence − its maximum), and the maximum ``[L, B]``."""
    J, L = cells.shape[1], batch.word.shape[0]
    logs = temper * _gathered(batch, cells)
    logs = logs + words[jnp.minimum(batch.word, len(words) - 1)].transpose(0, 2, 1)
    if batch.known is not None:
        label = jnp.arange(J)[None, :, None]
        known = batch.known[:, None, :]
        logs = jnp.where((known >= 0) & (label != known), -jnp.inf, logs)
    last = jnp.arange(L)[:, None] == batch.length - 1
    logs = jnp.where(last[:, None, :], logs + end[None, :, None], logs)
    top = logs.max(axis=1)
    top = jnp.where(jnp.isfinite(top), top, 0.0)
    return jnp.exp(logs - top[:, None, :]), top


def _times(weights: Any, table: Any) -> Any:
    """``[J, B]`` Σ_i weights[i]·table[i], in single precision (a matrix unit would round its factors)."""
    if len(table) > 16:
        return jnp.matmul(table.T, weights, precision=lax.Precision.HIGHEST)
    total = weights[0][None, :] * table[0][:, None]
    for i in range(1, len(table)):
        total = total + weights[i][None, :] * table[i][:, None]
    return total


class _Recursion(NamedTuple):
    alpha: Any  # [L, J, B]
    beta: Any
    onward: Any  # [L, J, B] evidence·beta / total
    totals: Any  # [L, B]
    valid: Any  # [L, B]
    log_z: Any  # [B]
    bad: Any  # [B]


def _recursion(batch: _Batch, evidence: Any, top: Any, start: Any, trans: Any) -> _Recursion:
    L, _, B = evidence.shape
    valid = jnp.arange(L)[:, None] < batch.length

    def forward(before: Any, here: Any) -> tuple[Any, Any]:
        t, weight, is_here = here
        expected = jnp.where(t == 0, jnp.broadcast_to(start[:, None], before.shape), _times(before, trans))
        product = expected * weight
        total = product.sum(axis=0)
        after = jnp.where(is_here, product / total, before)
        return after, (after, total)

    nothing = jnp.zeros((len(start), B), jnp.float32)
    _, (alpha, totals) = lax.scan(forward, nothing, (jnp.arange(L), evidence, valid))
    totals = jnp.where(valid, totals, 1.0)
    log_totals = jnp.log(totals)

    def backward(beta: Any, here: Any) -> tuple[Any, Any]:
        weight, total, is_here = here
        onward = jnp.where(is_here, weight * beta / total, 0.0)
        return jnp.where(is_here, _times(onward, trans.T), beta), (beta, onward)

    ones = jnp.ones((len(start), B), jnp.float32)
    _, (beta, onward) = lax.scan(backward, ones, (evidence, totals, valid), reverse=True)
    conflict = jnp.minimum(log_totals + _USUAL, 0.0).sum(axis=0)
    bad = ~(conflict > _FALL_BACK) | ~jnp.isfinite(beta).all(axis=(0, 1))
    log_z = jnp.where(valid, log_totals + top, 0.0).sum(axis=0)
    return _Recursion(alpha, beta, onward, totals, valid, jnp.where(bad, 0.0, log_z), bad)


def _posterior(found: _Recursion) -> Any:
    usable = found.valid & ~found.bad
    return jnp.where(usable[:, None, :], found.alpha * found.beta, 0.0)


@jax.jit
def _pass(batch: _Batch, cells: Any, words: Any, temper: Any, start: Any, trans: Any, end: Any) -> tuple[Any, ...]:
    """ln Z ``[B]``, posterior, Σ s by position without the factor T, flags of what must be redone, counts of labels."""
    evidence, top = _evidence(batch, cells, words, temper, end)
    found = _recursion(batch, evidence, top, start, trans)
    posterior = _posterior(found)
    before = jnp.where(found.bad, 0.0, found.alpha[:-1])
    onward = jnp.where(found.bad, 0.0, found.onward[1:])
    pairs = jnp.einsum("lib,ljb->lij", before, onward, precision=lax.Precision.HIGHEST)
    return found.log_z, posterior, pairs, found.bad, posterior[0].sum(axis=1), posterior.sum(axis=2)


@jax.jit
def _votes(batch: _Batch, votes: Any, smoothing: Any) -> tuple[Any, ...]:
    """Shares of votes as posterior; counts of first labels, of neighbours as if tokens stood alone, of all labels."""
    rows = _gathered(batch, votes) + smoothing
    total = rows.sum(axis=1, keepdims=True)
    J, L = rows.shape[1], rows.shape[0]
    shares = jnp.where(total > 0, rows / total, 1.0 / J)
    if batch.known is not None:
        known = batch.known[:, None, :]
        shares = jnp.where(known >= 0, (jnp.arange(J)[None, :, None] == known).astype(shares.dtype), shares)
    valid = jnp.arange(L)[:, None] < batch.length
    shares = jnp.where(valid[:, None, :], shares, 0.0)
    pairs = jnp.einsum("lib,ljb->lij", shares[:-1], shares[1:], precision=lax.Precision.HIGHEST)
    return shares, shares[0].sum(axis=1), pairs, shares.sum(axis=2)


@partial(jax.jit, static_argnames="by_token")
def _decode(
    batch: _Batch,
    cells: Any,
    words: Any,
    temper: Any,
    start: Any,
    trans: Any,
    end: Any,
    allowed_start: Any,
    allowed_trans: Any,
    allowed_end: Any,
    goes_on: Any,
    *,
    by_token: bool,
) -> tuple[Any, ...]:
    """ln Z, posterior, path; ln of the step into each token on the path; of all that may open or close a span there."""
    evidence, top = _evidence(batch, cells, words, temper, end)
    found = _recursion(batch, evidence, top, start, trans)
    posterior = _posterior(found)
    L, J, B = evidence.shape
    if by_token:
        path = posterior.argmax(axis=1)
    else:
        path = _viterbi(jnp.log(evidence), found.valid, batch.length, allowed_start, allowed_trans, allowed_end)

    def at(rows: Any, label: Any) -> Any:
        return jnp.take_along_axis(rows, label[:, None, :], axis=1)[:, 0, :]

    before = jnp.concatenate([path[:1], path[:-1]])
    weight = at(evidence, path) / found.totals
    first = jnp.arange(L)[:, None] == 0
    step = jnp.where(first, start[path], trans[before, path])
    # A span is bounded by steps that begin a new span or leave one: steps inside a span count 0 at both of its ends.
    new = jnp.where(goes_on, 0.0, trans)
    came = jnp.concatenate([jnp.zeros((1, J, B)), found.alpha[:-1]])
    opening = jnp.where(first, start[path], (came * new[:, path].transpose(1, 0, 2)).sum(axis=1)) * weight
    closing = (found.onward * new[before].transpose(0, 2, 1)).sum(axis=1)
    inner = jnp.where(found.bad, 0.0, jnp.log(step * weight))
    return found.log_z, posterior, path.astype(jnp.int16), inner, opening, closing, found.bad


def _viterbi(evidence: Any, valid: Any, length: Any, start: Any, trans: Any, end: Any) -> Any:
    """``[L, B]`` The best path."""

    def forward(best: Any, here: Any) -> tuple[Any, Any]:
        t, weight, is_here = here
        scores = best[:, None, :] + trans[:, :, None]
        back = scores.argmax(axis=0)
        after = jnp.where(t == 0, start[:, None], scores.max(axis=0)) + weight
        return jnp.where(is_here, after, best), back.astype(jnp.int16)

    L, J, B = evidence.shape
    best, back = lax.scan(forward, jnp.zeros((J, B)), (jnp.arange(L), evidence, valid))
    last = (best + end[:, None]).argmax(axis=0).astype(jnp.int32)

    def backward(label: Any, here: Any) -> tuple[Any, Any]:
        pointers, is_here = here
        before = jnp.take_along_axis(pointers, label[None, :], axis=0)[0].astype(jnp.int32)
        return jnp.where(is_here, before, label), label

    _, path = lax.scan(backward, last, (back, valid), reverse=True)
    return path


def _spans_of(
    encoded: Encoded, path: NDArray[np.int32], inner: Floats, opening: Any, closing: Any, goes_on: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], Floats]:
    """Ends and probabilities of the path's spans, at their first tokens."""
    N = len(path)
    in_span = encoded.tagset.in_span
    starts_document = np.zeros(N + 1, np.bool_)
    starts_document[encoded.doc_start] = True
    cut = starts_document.copy()
    cut[1:N] |= ~goes_on[path[:-1], path[1:]]
    cut[0] = True
    cuts = np.flatnonzero(cut)
    begin, end = cuts[:-1], cuts[1:]
    kept = in_span[path[begin]] if N else np.zeros(0, np.bool_)
    begin, end = begin[kept], end[kept]
    # ln 0 is replaced by a large negative number, because a difference of two infinities would be nan.
    so_far = np.concatenate([[0.0], np.cumsum(np.maximum(inner, _NOTHING_LEFT))])
    with np.errstate(divide="ignore"):
        weight = np.log(opening[begin].astype(np.float64)) + so_far[end] - so_far[begin + 1]
        after = np.log(np.append(closing, 1.0)[end].astype(np.float64))
    weight += np.where(starts_document[end], 0.0, after)
    span_end, span_probability = np.zeros(N, np.int32), np.zeros(N)
    span_end[begin], span_probability[begin] = end, np.minimum(np.exp(weight), 1.0)
    return span_end, span_probability
