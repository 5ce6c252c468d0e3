"""Passes on the cores of this machine.

Documents are cut into slices by their number of tokens alone, and partial sums are added in the order of the slices:
the result is the same, bit for bit, with one thread or many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.crowd.crowd import Crowd
from quorate.errors import FitError
from quorate.model.engines.protocol import Counts, Decoded, Likely, Paths, Tables
from quorate.model.kernels import chain as kernels
from quorate.model.kernels import layout, likely, output, single
from quorate.model.kernels.cores import available_threads, balanced, in_order
from quorate.model.kernels.tallies import cell_counts
from quorate.model.parts.truth import Chain, LabelCounts, log_mask

Floats = NDArray[np.float64]
Result = TypeVar("Result")
_SLICES = 8
_SLICE_TOKENS = 20_000


class ThreadsEngine:
    """Runs passes on threads of this process; the compiled kernels let go of the interpreter lock.

    ``known`` is the known label of each token or −1 (see :func:`quorate.crowd.encode.encode_known`), ``text``
    whether words count, ``times`` how often each token occurs (see :func:`quorate.model.condense.condense`), ``names``
    what to call a document in a message.
    """

    rounding = 1e-9

    def __init__(
        self,
        encoded: Crowd,
        *,
        known: NDArray[np.int32] | None = None,
        text: bool = True,
        times: Floats | None = None,
        threads: int | None = None,
        names: Callable[[int], str] | None = None,
    ) -> None:
        self._encoded, self._known, self._times, self._text = encoded, known, times, text
        self._threads = threads or available_threads()
        self._name = names or (lambda d: f"document {d}")
        self._stored = encoded.slices if encoded.slices is not None and encoded.slices.fits(encoded) else None
        self._bounds = slice_bounds(encoded.doc_start) if self._stored is None else self._stored.bounds
        self._every = range(len(self._bounds) - 1)
        self._slices = [] if self._stored is not None else list(self._over(self._every, self._laid_out))
        self._last: Callable[[Any, Floats], Any] | None = None

    @property
    def posterior(self) -> Floats:
        """``[N, J]`` The posterior of the last pass, worked out again when it is asked for."""
        out = np.zeros((self._encoded.n_tokens, len(self._encoded.tagset.labels)))
        last = self._last
        if last is not None:
            for _ in self._over(self._every, lambda s: last(self._slice(s), out[self._tokens(s)])):
                pass
        return out

    def run(self, tables: Tables, chain: Chain) -> Counts:
        """One pass: see :class:`Engine`."""
        rows, steps = self._rows(tables, chain.end), self._steps(chain.start, chain.trans)
        kernel = kernels.chain_pass if chain.coupled else kernels.independent_pass
        return self._counted(lambda piece, out: kernel(piece, rows, steps, out), len(chain.start))

    def vote(self, table: Floats, smoothing: float, temper: float = 1.0) -> Counts:
        """Shares of votes as posterior: see :class:`Engine`."""
        kernel = kernels.vote_pass
        return self._counted(lambda piece, out: kernel(piece, table, smoothing, temper, out), table.shape[1])

    def cell_counts(self, posterior: Floats) -> Floats:
        """``[G, J]`` Counts of the cells under a posterior ``[N, J]`` that comes from elsewhere."""
        counts = np.zeros((len(self._encoded.cells.label), posterior.shape[1]))
        for s, sums in enumerate(self._over(self._every, lambda s: self._cell_sums(s, posterior))):
            kernels.merge(self._slice(s).cells, sums, counts)
        return counts

    def decode(self, tables: Tables, chain: Chain, *, by_token: bool, posteriors: bool = True) -> Decoded:
        """The output pass: see :class:`Engine`."""
        encoded, tagset, J = self._encoded, self._encoded.tagset, len(chain.start)
        N, D = encoded.n_tokens, encoded.n_docs
        kept = np.empty((N if posteriors else 0, J))
        of_path = np.empty(0 if posteriors else N)
        path, span_end, span_probability = np.zeros(N, np.int32), np.zeros(N, np.int32), np.zeros(N)
        log_probability, log_z = np.zeros(D), np.zeros(D)
        rows, steps = self._rows(tables, chain.end), self._steps(chain.start, chain.trans)
        allowed = self._steps(chain.start + log_mask(tagset.allowed_first), chain.trans + log_mask(tagset.allowed))
        ends, shape = log_mask(tagset.allowed_last), output.SpanShape(*span_shape(tagset))

        def decode(s: int) -> tuple[int, Floats]:
            piece, tokens, docs = self._slice(s), self._tokens(s), slice(self._bounds[s], self._bounds[s + 1])
            posterior = kept[tokens] if posteriors else np.empty((tokens.stop - tokens.start, J))
            of_tokens, of_docs = (span_end[tokens], span_probability[tokens]), (log_probability[docs], log_z[docs])
            args = (piece, rows, steps, chain.coupled, allowed, ends, shape, by_token, posterior, path[tokens])
            stuck = output.decode_slice(*args, *of_docs, *of_tokens)
            span_end[tokens][span_end[tokens] > 0] += tokens.start
            if not posteriors:
                of_path[tokens] = posterior[np.arange(len(posterior)), path[tokens]]
            return stuck, kernels.cell_sums(piece, posterior)

        cells = np.zeros((len(encoded.cells.label), J))
        for s, (stuck, sums) in enumerate(self._over(self._every, decode)):
            self._raise_if_stuck(s, stuck)
            kernels.merge(self._slice(s).cells, sums, cells)
        return Decoded(kept, path, log_probability, log_z, span_end, span_probability, cells, of_path)

    def best_paths(self, tables: Tables, chain: Chain) -> Paths:
        """The sequences of the output pass alone: see :class:`quorate.model.loop.DecodesInPart`."""
        tagset, N = self._encoded.tagset, self._encoded.n_tokens
        path, span_end = np.zeros(N, np.int32), np.zeros(N, np.int32)
        rows, ends = self._rows(tables, chain.end), log_mask(tagset.allowed_last)
        allowed = self._steps(chain.start + log_mask(tagset.allowed_first), chain.trans + log_mask(tagset.allowed))
        shape = output.SpanShape(*span_shape(tagset))

        def find(s: int) -> None:
            tokens = self._tokens(s)
            output.best_paths_slice(self._slice(s), rows, allowed, ends, shape, path[tokens], span_end[tokens])
            span_end[tokens][span_end[tokens] > 0] += tokens.start

        for _ in self._over(self._every, find):
            pass
        return Paths(path, span_end)

    def posteriors(self, tables: Tables, chain: Chain) -> Floats:
        """The posteriors of the output pass alone: see :class:`quorate.model.loop.DecodesInPart`."""
        posterior = np.empty((self._encoded.n_tokens, len(chain.start)))
        rows, steps = self._rows(tables, chain.end), self._steps(chain.start, chain.trans)
        kernel = kernels.chain_pass if chain.coupled else kernels.independent_pass

        def count(s: int) -> int:
            return kernel(self._slice(s), rows, steps, posterior[self._tokens(s)]).stuck

        for s, stuck in enumerate(self._over(self._every, count)):
            self._raise_if_stuck(s, stuck)
        return posterior

    def likely_spans(self, tables: Tables, chain: Chain, least: float) -> Likely:
        """Every span with a probability of at least ``least``, by place."""
        # Labels that stand alone are a chain in which every step is as the first.
        trans = chain.trans if chain.coupled else np.tile(chain.start, (len(chain.start), 1))
        rows, steps = self._rows(tables, chain.end), self._steps(chain.start, trans)
        shape = output.SpanShape(*span_shape(self._encoded.tagset))
        labels = likely.SpanLabels(*self._encoded.tagset.span_labels)

        def find(s: int) -> tuple[NDArray[Any], ...]:
            start, end, kind, probability = likely.likely_spans_slice(self._slice(s), rows, steps, shape, labels, least)
            first = self._tokens(s).start
            return start + first, end + first, kind, probability

        found = list(self._over(self._every, find))
        return Likely(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def decode_votes(self, rank: Floats, *, by_token: bool) -> Decoded:
        """The output for the shares of votes that the last :meth:`vote` made.

        Of labels with equal shares the one of lower rank wins; ``rank`` is ``[N, J]``, or ``[1, J]`` for all alike.
        """
        tagset, shares, doc_start = self._encoded.tagset, self.posterior, self._encoded.doc_start
        (N, J), D = shares.shape, self._encoded.n_docs
        path, log_probability, log_z = np.zeros(N, np.int32), np.zeros(D), np.zeros(D)
        span_end, span_probability = np.zeros(N, np.int32), np.zeros(N)
        allowed = self._steps(log_mask(tagset.allowed_first), log_mask(tagset.allowed))
        shape = output.SpanShape(*span_shape(tagset))
        fixed = (doc_start, shares, rank, allowed, log_mask(tagset.allowed_last), shape, by_token)
        out = (path, log_probability, span_end, span_probability)

        def decode(s: int) -> None:
            output.decode_votes_slice(*fixed, self._bounds[s], self._bounds[s + 1], *out)

        for _ in self._over(self._every, decode):
            pass
        return Decoded(shares, path, log_probability, log_z, span_end, span_probability, np.zeros((0, J)))

    def close(self) -> None:
        """The threads stand ready for the next one."""

    def _slice(self, s: int) -> Any:
        """A slice from memory, or from disk."""
        return self._slices[s] if self._stored is None else self._with_known(s, self._stored[s])

    def _laid_out(self, s: int) -> Any:
        """The documents of one slice, with its own short numbers."""
        encoded, tokens = self._encoded, self._tokens(s)
        events = slice(encoded.event_start[tokens.start], encoded.event_start[tokens.stop])
        return self._with_known(
            s,
            layout.lay_out(
                encoded.event_start[tokens.start : tokens.stop + 1] - events.start,
                encoded.event_cell[events],
                np.zeros(0) if encoded.event_weight is None else encoded.event_weight[events],
                encoded.word[tokens],
                len(encoded.cells.label),
                max(len(encoded.words), int(encoded.word[tokens].max(initial=0))) + 1,
            ),
        )

    def _with_known(self, s: int, laid_out: Any) -> Any:
        """The documents, what is laid out of them, what is known of them, and how often they occur."""
        tokens = self._tokens(s)
        doc_start = self._encoded.doc_start[self._bounds[s] : self._bounds[s + 1] + 1] - tokens.start
        return layout.Slice._make(
            [
                doc_start,
                *laid_out,
                np.zeros(0, np.int32) if self._known is None else self._known[tokens],
                np.zeros(0) if self._times is None else self._times[tokens],
                np.argsort(-np.diff(doc_start), kind="stable"),
            ]
        )

    def _tokens(self, s: int) -> slice:
        start = self._encoded.doc_start
        return slice(int(start[self._bounds[s]]), int(start[self._bounds[s + 1]]))

    def _cell_sums(self, s: int, posterior: Floats) -> Floats:
        return kernels.cell_sums(self._slice(s), posterior[self._tokens(s)])

    def _counted(self, kernel: Callable[[Any, Floats], Any], J: int) -> Counts:
        """Counts of the corpus, from one call a slice."""
        self._last = kernel
        log_z, first, pairs, every = 0.0, np.zeros(J), np.zeros((J, J)), np.zeros(J)
        cells = np.zeros((len(self._encoded.cells.label), J))
        words = np.zeros((len(self._encoded.words) if self._text else 0, J))
        none = np.zeros((0, J))

        def count(s: int) -> tuple[Any, Any]:
            piece = self._slice(s)
            return piece, kernel(piece, none)

        for s, (piece, sums) in enumerate(self._over(self._every, count)):
            self._raise_if_stuck(s, sums.stuck)
            log_z += sums.log_z
            first += sums.starts
            pairs += sums.pairs
            every += sums.labels
            kernels.merge(piece.cells, sums.cells, cells)
            if self._text:
                kernels.merge(piece.words, sums.words, words)
        return Counts(float(log_z), cells, words, LabelCounts(first, pairs, every))

    def _rows(self, tables: Tables, end: Floats) -> kernels.Rows:
        cells, words = np.ascontiguousarray(tables.cells), np.ascontiguousarray(tables.words)
        return kernels.Rows(cells, words, tables.temper, np.ascontiguousarray(end))

    def _steps(self, log_start: Floats, log_trans: Floats) -> single.Steps:
        return single.steps_of(log_start, log_trans)

    def _over(self, numbers: Sequence[int], work: Callable[[int], Result]) -> Iterator[Result]:
        """``work`` of each number on the threads; results in order, and never many that wait to be taken."""
        return in_order(work, numbers, self._threads)

    def _raise_if_stuck(self, s: int, stuck: int) -> None:
        """Name the document of a slice that has no path, if there is one."""
        if stuck >= 0:
            d = self._bounds[s] + stuck
            error = FitError(
                f"{self._name(d)}: no tag sequence is possible (the known labels, or the evidence, rule out "
                f"every one{self._where_stuck(d)})"
            )
            error.document = d
            raise error

    def _where_stuck(self, d: int) -> str:
        """The first token where known labels leave no path, for the message."""
        if self._known is None:
            return ""
        tagset, start = self._encoded.tagset, self._encoded.doc_start
        first, last = int(start[d]), int(start[d + 1])
        reachable = tagset.allowed_first
        length = last - first
        for position in range(length):
            known = self._known[first + position]
            if position:
                reachable = np.any(tagset.allowed[reachable], axis=0)
            if known >= 0:
                reachable = np.logical_and(reachable, np.arange(len(reachable)) == known)
            if position == length - 1:
                reachable = np.logical_and(reachable, tagset.allowed_last)
            if not reachable.any():
                return f"; the first conflict is at token {position + 1}"
        return ""


def cell_counts_of(encoded: Crowd, posterior: Floats) -> Floats:
    """``[G, J]`` Counts of the cells of a corpus under a posterior ``[N, J]``."""
    weight = np.zeros(0) if encoded.event_weight is None else encoded.event_weight
    G = len(encoded.cells.label)
    return cell_counts(encoded.event_start, encoded.event_cell, weight, np.ascontiguousarray(posterior), G)


def slice_bounds(doc_start: NDArray[np.int64]) -> list[int]:
    """The documents at which slices begin, and the end: by the number of tokens alone."""
    cuts: list[int] = balanced(doc_start, max(_SLICES, int(doc_start[-1]) // _SLICE_TOKENS)).tolist()
    return cuts


def span_shape(tagset: TagSet) -> tuple[NDArray[np.int32], ...]:
    """For every label: does it always open a span, always close one, and of which type is it (−1: none)."""
    kinds = np.where(tagset.in_span, tagset.type_of, -1)
    return tuple(column.astype(np.int32) for column in (tagset.opens, tagset.closes, kinds))
