"""Where a pass runs. The loop knows only the protocol :class:`Engine`; here is the one that uses this machine's cores.

Documents are cut into slices by their number of tokens alone, and partial sums are added in the order of the slices:
the result is the same, bit for bit, with one thread or many.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.encode import Encoded
from quorate.errors import FitError
from quorate.infer.truth import Chain, LabelCounts, log_mask
from quorate.tags import TagSet

__all__ = ["Counts", "Decoded", "Engine", "Tables", "ThreadsEngine", "available_threads", "span_shape"]

Floats = NDArray[np.float64]
Result = TypeVar("Result")

_SLICES = 8
_SLICE_TOKENS = 20_000
_LEAST_STEP = 1e-150  # a step less likely than this sends nearly every document to log space anyway


class Tables(NamedTuple):
    """Log-likelihood rows of the cells ``[G, J]`` and of the words ``[V, J]`` (no rows: without text).

    ``temper`` weighs what annotators said: in the likelihood, and in the counts that come back.
    """

    cells: Floats
    words: Floats
    temper: float = 1.0


class Counts(NamedTuple):
    """What a pass brings back: Σ ln Z, and expected counts of cells ``[G, J]``, words ``[V, J]`` and labels."""

    log_z: float
    cells: Floats
    words: Floats
    labels: LabelCounts


class Decoded(NamedTuple):
    """What is given out, for all tokens and documents end to end.

    ``posterior [N, J]``, decoded label ``path [N]``, ``log_probability [D]`` of that path, ``log_z [D]``; a span that
    begins at token t ends before token ``span_end[t]`` (0: none begins) and has ``span_probability[t]``;
    ``cells [G, J]`` are the counts of cells under this posterior.
    """

    posterior: Floats
    path: NDArray[np.int32]
    log_probability: Floats
    log_z: Floats
    span_end: NDArray[np.int32]
    span_probability: Floats
    cells: Floats


class Engine(Protocol):
    """One corpus, ready for passes over it."""

    def run(self, tables: Tables, chain: Chain) -> Counts:
        """Likelihood, forward–backward and counts."""

    def vote(self, table: Floats, smoothing: float, temper: float = 1.0) -> Counts:
        """Counts of a posterior made of votes: each event votes with its cell's row of ``table`` ``[G, J]``."""

    def decode(self, tables: Tables, chain: Chain, *, by_token: bool) -> Decoded:
        """Posteriors, sequences and spans with their probabilities."""


def available_threads() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _helpers(threads: int) -> ThreadPoolExecutor:
    """Threads that stand ready from one fit to the next."""
    return ThreadPoolExecutor(threads)


class _Groups(NamedTuple):
    """Tokens by group (cell or word): group g has ``token[start[g]:start[g + 1]]``."""

    start: NDArray[np.int64]
    token: NDArray[np.int32]
    weight: Floats
    bounds: NDArray[np.int64]


class ThreadsEngine:
    """Runs passes on threads of this process; the compiled kernels let go of the interpreter lock.

    ``known`` is the known label of each token or −1 (see :func:`quorate.encode.encode_known`), ``text`` whether words
    count, ``times`` how often each token occurs (see :func:`quorate.infer.condense.condense`), ``names`` what to call a
    document in a message.
    """

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
        from quorate.infer import chain as kernels  # compiled code is loaded when a fit starts, not before
        from quorate.infer import output

        self._kernels, self._output = kernels, output
        self._tagset = encoded.tagset
        self._threads = threads or available_threads()
        self._name = names or (lambda d: f"document {d}")
        self._data = kernels.Data(
            encoded.doc_start,
            encoded.event_start,
            encoded.event_cell,
            np.zeros(0) if encoded.event_weight is None else encoded.event_weight,
            encoded.word,
            np.zeros(0, np.int32) if known is None else known,
            np.zeros(0) if times is None else times,
        )
        self.posterior = np.zeros((encoded.n_tokens, len(encoded.tagset.labels)))
        slices = max(_SLICES, encoded.n_tokens // _SLICE_TOKENS)
        self._bounds = _balanced(encoded.doc_start, slices)
        self._encoded, self._text, self._slices = encoded, text, slices

    @cached_property
    def _by_cell(self) -> _Groups:
        encoded, weight = self._encoded, self._data.event_weight
        if len(self._data.times):
            weight = np.repeat(self._data.times, np.diff(encoded.event_start))
        return self._grouped(encoded.event_cell, encoded.event_start, weight, len(encoded.cells.label))

    @cached_property
    def _by_word(self) -> _Groups | None:
        every = np.arange(self._encoded.n_tokens + 1)
        words = self._encoded.word, every, np.zeros(0), len(self._encoded.words)
        return self._grouped(*words) if self._text else None

    def _grouped(
        self, member_of: NDArray[np.int32], start: NDArray[np.int64], weight: Floats, n_groups: int
    ) -> _Groups:
        grouped = self._kernels.group_members(member_of, start, weight, n_groups)
        return _Groups(*grouped, _balanced(grouped[0], self._slices))

    def run(self, tables: Tables, chain: Chain) -> Counts:
        """One pass: see :class:`Engine`."""
        rows, steps = self._kernels.Rows(*tables, chain.end), self._steps(chain.start, chain.trans)
        J = len(chain.start)

        def alone(first: int, last: int) -> tuple[float, Floats]:
            labels = np.zeros(J)
            args = (self._data, rows, steps, first, last, self.posterior, labels)
            return self._kernels.independent_slice(*args), labels

        def coupled(first: int, last: int) -> tuple[tuple[float, int], Floats, Floats]:
            starts, pairs = np.zeros(J), np.zeros((J, J))
            args = (self._data, rows, steps, first, last, self.posterior, starts, pairs)
            return self._kernels.chain_slice(*args), starts, pairs

        if not chain.coupled:
            log_zs, labels = zip(*self._over(self._bounds, alone), strict=True)
            return self._counted(
                sum(log_zs), LabelCounts(np.zeros(J), np.zeros((J, J)), np.sum(labels, axis=0)), tables.temper
            )
        outcomes, starts, pairs = zip(*self._over(self._bounds, coupled), strict=True)
        self._raise_if_stuck(stuck for _, stuck in outcomes)
        return self._counted(sum(log_z for log_z, _ in outcomes), _label_counts(starts, pairs), tables.temper)

    def vote(self, table: Floats, smoothing: float, temper: float = 1.0) -> Counts:
        """Shares of votes as posterior: see :class:`Engine`."""
        J = table.shape[1]

        def count(first: int, last: int) -> tuple[Floats, Floats]:
            starts, pairs = np.zeros(J), np.zeros((J, J))
            self._kernels.vote_slice(self._data, table, smoothing, first, last, self.posterior, starts, pairs)
            return starts, pairs

        starts, pairs = zip(*self._over(self._bounds, count), strict=True)
        return self._counted(0.0, _label_counts(starts, pairs), temper)

    def cell_counts(self, posterior: Floats) -> Floats:
        """``[G, J]`` Counts of the cells under a posterior ``[N, J]`` that comes from elsewhere."""
        return self._sums(self._by_cell, posterior)

    def decode(self, tables: Tables, chain: Chain, *, by_token: bool) -> Decoded:
        """The output pass: see :class:`Engine`."""
        tagset, N, D = self._tagset, len(self.posterior), len(self._data.doc_start) - 1
        posterior = np.empty_like(self.posterior)
        out = (np.zeros(N, np.int32), np.zeros(D), np.zeros(D), np.zeros(N, np.int32), np.zeros(N))
        rows, steps = self._kernels.Rows(*tables, chain.end), self._steps(chain.start, chain.trans)
        allowed = self._steps(chain.start + log_mask(tagset.allowed_first), chain.trans + log_mask(tagset.allowed))
        shape = self._output.SpanShape(*span_shape(tagset))

        def decode(first: int, last: int) -> int:
            ends = log_mask(tagset.allowed_last)
            args = (self._data, rows, steps, chain.coupled, allowed, ends, shape, by_token, first, last, posterior)
            return self._output.decode_slice(*args, *out)  # type: ignore[no-any-return]

        self._raise_if_stuck(self._over(self._bounds, decode))
        return Decoded(posterior, *out, self._sums(self._by_cell, posterior))

    def decode_votes(self, rank: Floats, *, by_token: bool) -> Decoded:
        """The output for the shares of votes that the last :meth:`vote` made.

        Of labels with equal shares the one of lower rank wins; ``rank`` is ``[N, J]``, or ``[1, J]`` for all alike.
        """
        tagset, (N, J), D = self._tagset, self.posterior.shape, len(self._data.doc_start) - 1
        path, log_probability, log_z = np.zeros(N, np.int32), np.zeros(D), np.zeros(D)
        span_end, span_probability = np.zeros(N, np.int32), np.zeros(N)
        allowed = self._steps(log_mask(tagset.allowed_first), log_mask(tagset.allowed))
        shape = self._output.SpanShape(*span_shape(tagset))
        fixed = (self._data.doc_start, self.posterior, rank, allowed, log_mask(tagset.allowed_last), shape, by_token)
        out = (path, log_probability, span_end, span_probability)

        def decode(first: int, last: int) -> None:
            self._output.decode_votes_slice(*fixed, first, last, *out)

        self._over(self._bounds, decode)
        shares = self.posterior.copy()
        return Decoded(shares, path, log_probability, log_z, span_end, span_probability, np.zeros((0, J)))

    def _steps(self, log_start: Floats, log_trans: Floats) -> Any:
        log_start, log_trans = np.ascontiguousarray(log_start), np.ascontiguousarray(log_trans)
        trans = np.exp(log_trans)
        least = max(float(trans[trans > 0].min(initial=1.0)), _LEAST_STEP)
        return self._kernels.Steps(log_start, log_trans, np.exp(log_start), trans, np.ascontiguousarray(trans.T), least)

    def _counted(self, log_z: float, labels: LabelCounts, temper: float) -> Counts:
        words = self._sums(self._by_word, self.posterior) if self._by_word else np.zeros((0, self.posterior.shape[1]))
        return Counts(float(log_z), self._sums(self._by_cell, self.posterior, temper), words, labels)

    def _sums(self, groups: _Groups, posterior: Floats, temper: float = 1.0) -> Floats:
        counts = np.empty((len(groups.start) - 1, posterior.shape[1]))

        def count(first: int, last: int) -> None:
            args = (groups.start, groups.token, groups.weight, temper, first, last, posterior, counts)
            self._kernels.count_slice(*args)

        self._over(groups.bounds, count)
        return counts

    def _over(self, bounds: NDArray[np.int64], work: Callable[[int, int], Result]) -> list[Result]:
        """The work on every slice, in their order. This thread takes its share, and helpers that come too late none."""
        slices = list(pairwise(bounds.tolist()))
        done: list[Result | None] = [None] * len(slices)
        waiting = iter(range(len(slices)))

        def drain() -> None:
            for number in waiting:
                done[number] = work(*slices[number])

        helpers = [_helpers(self._threads - 1).submit(drain) for _ in range(self._threads - 1)]
        try:
            drain()
        finally:
            for helper in helpers:
                if not helper.cancel():
                    helper.result()
        return done  # type: ignore[return-value]

    def _raise_if_stuck(self, documents: Iterable[int]) -> None:
        for d in documents:
            if d >= 0:
                raise FitError(
                    f"{self._name(d)}: no tag sequence is possible (the known labels, or the evidence, rule out "
                    f"every one{self._where_stuck(d)})"
                )

    def _where_stuck(self, d: int) -> str:
        """The first token where known labels leave no path, for the message."""
        if not len(self._data.known):
            return ""
        tagset, first, last = self._tagset, int(self._data.doc_start[d]), int(self._data.doc_start[d + 1])
        reachable = tagset.allowed_first
        length = last - first
        for position in range(length):
            known = self._data.known[first + position]
            if position:
                reachable = np.any(tagset.allowed[reachable], axis=0)
            if known >= 0:
                reachable = np.logical_and(reachable, np.arange(len(reachable)) == known)
            if position == length - 1:
                reachable = np.logical_and(reachable, tagset.allowed_last)
            if not reachable.any():
                return f"; the first conflict is at token {position + 1}"
        return ""


def _label_counts(starts: Sequence[Floats], pairs: Sequence[Floats]) -> LabelCounts:
    first, between = np.sum(starts, axis=0), np.sum(pairs, axis=0)
    return LabelCounts(first, between, first + between.sum(axis=0))


def _balanced(start: NDArray[np.int64], slices: int) -> NDArray[np.int64]:
    """Cuts between groups so that every slice holds about as many members."""
    wanted = np.linspace(0, start[-1], slices + 1)[1:-1]
    return np.concatenate([[0], np.searchsorted(start, wanted), [len(start) - 1]])


def span_shape(tagset: TagSet) -> tuple[NDArray[np.int32], ...]:
    """For every label: does it always open a span, always close one, and of which type is it (−1: none)."""
    opens = [prefix in ("B", "S") for prefix, _ in tagset.parts]
    closes = [prefix in ("E", "S") for prefix, _ in tagset.parts]
    kinds = [tagset.types.index(kind) if prefix else -1 for prefix, kind in tagset.parts]
    return tuple(np.array(column, np.int32) for column in (opens, closes, kinds))
