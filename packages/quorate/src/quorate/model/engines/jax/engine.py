"""The engine: a corpus on a device, ready for passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import events_of_document
from quorate.crowd.crowd import Cells, Crowd
from quorate.errors import FitError, SettingsError
from quorate.model.engines import plain
from quorate.model.engines.jax import decode, passes
from quorate.model.engines.jax.device import filled_up, keep_compiled_code, with_doubles
from quorate.model.engines.jax.lanes import shares_of
from quorate.model.engines.jax.layout import lay_out
from quorate.model.engines.jax.sums import rows_of, summed, sums_by
from quorate.model.engines.jax.tables import ResidentModel, can_reside
from quorate.model.engines.protocol import Counts, Decoded, Likely, Tables
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.parts.truth import Chain, LabelCounts, log_mask

if TYPE_CHECKING:
    from quorate.model.loop import Model, Resident

Floats = NDArray[np.float64]
_MOST = 1 << 31  # numbers of events and tokens have 32 bits


class JaxEngine:
    """One corpus on a device, ready for passes: see :class:`quorate.model.engines.protocol.Engine`."""

    rounding = 1e-5

    @with_doubles
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
        if times is not None:
            raise SettingsError("the engine 'jax' takes every token by itself")
        if max(encoded.n_tokens, len(encoded.event_cell)) >= _MOST:
            raise SettingsError("the engine 'jax' takes up to two billion labels (use a cluster, or --engine threads)")
        keep_compiled_code()
        self._encoded, self._known, self._text, self._threads = encoded, known, text, threads
        self._name = names or (lambda d: f"document {d}")
        self._shares = shares_of(np.diff(encoded.doc_start), len(encoded.tagset.labels))
        self._layout = laid_out = lay_out(encoded, known, self._shares)
        batches = laid_out.batches
        weights = None if encoded.event_weight is None else [batch.weight for batch in batches]
        self._by_cell = sums_by([batch.cell for batch in batches], weights, laid_out.n_cells)
        self._by_word = sums_by([batch.word for batch in batches], None, laid_out.n_words) if text else None

    def resident(self, model: Model, cells: Cells) -> Resident | None:
        """The same model with its counts and tables on the device, if its parts are known there."""
        if not can_reside(model, cells) or (model.text is not None) != self._text:
            return None
        return ResidentModel.of(self, model, cells, self._layout.n_cells, self._layout.n_words)

    @with_doubles
    def run(self, tables: Tables, chain: Chain) -> Counts:
        """One pass."""
        counts = self.passed(*self._on_device(tables), tables.temper, chain)
        return counts._replace(cells=self._of_cells(counts.cells), words=self._of_words(counts.words))

    @with_doubles
    def passed(self, cells: Any, words: Any | None, temper: float, chain: Chain) -> Counts:
        """One pass with tables that are on the device; so are the counts of cells and words that come back."""
        steps = _steps(chain)
        outs = [passes.one_pass(batch, cells, words, temper, steps) for batch in self._layout.batches]
        of_cells, of_words = self._counted(outs, temper)
        log_z, labels, n_bad = _totals([out.summary for out in outs])
        labels = labels._replace(pairs=labels.pairs * np.exp(chain.trans))
        if n_bad:
            tables = Tables(
                self._of_cells(cells),
                np.zeros((0, len(chain.start))) if words is None else self._of_words(words),
                temper,
            )
            more_cells, more_words = (np.zeros(each.shape) for each in (of_cells, of_words))
            for d, _, result in self._redone([out.bad for out in outs], tables, chain):
                log_z += result.log_z
                labels = LabelCounts(
                    labels.first + result.posterior[0],
                    labels.pairs + result.pairs,
                    labels.all + result.posterior.sum(axis=0),
                )
                self._add(more_cells, more_words, d, result.posterior, temper)
            of_cells, of_words = of_cells + more_cells, of_words + more_words
        return Counts(log_z, of_cells, of_words, labels)

    @with_doubles
    def vote(self, table: Floats, smoothing: float, temper: float = 1.0) -> Counts:
        """Shares of votes as posterior."""
        rows = filled_up(table, self._layout.n_cells + 1, 0.0, np.float32)
        outs = [passes.votes(batch, rows, smoothing) for batch in self._layout.batches]
        cells, words = self._counted(outs, temper)
        _, labels, _ = _totals([out.summary for out in outs])
        return Counts(0.0, self._of_cells(cells), self._of_words(words), labels)

    def likely_spans(self, tables: Tables, chain: Chain, least: float) -> Likely:
        """Every span with a probability of at least ``least``: found on this machine's cores, it is done once a fit."""
        here = ThreadsEngine(self._encoded, known=self._known, text=self._text, threads=self._threads)
        return here.likely_spans(tables, chain, least)

    @with_doubles
    def decode(self, tables: Tables, chain: Chain, *, by_token: bool, posteriors: bool = True) -> Decoded:
        """The output pass; without ``posteriors`` only what is given out leaves the device."""
        encoded, layout = self._encoded, self._layout
        cells, words = self._on_device(tables)
        steps, rules = _steps(chain), _rules(encoded, chain)
        outs = [
            decode.decode_batch(batch, cells, words, tables.temper, steps, rules, by_token=by_token)
            for batch in layout.batches
        ]
        counts = summed(rows_of([out.posterior for out in outs]), self._by_cell)
        columns = [
            decode.in_order(tuple(out[n] for out in outs), layout.place)
            for n in ([0, 1, 2, 3, 7] if posteriors else [0, 1, 2, 3])
        ]
        for column in columns:
            column.copy_to_host_async()
        N, J = encoded.n_tokens, len(chain.start)
        path, probability, length, span_probability, *posterior = (np.asarray(column)[:N] for column in columns)
        span_end = np.where(length > 0, np.arange(N, dtype=np.int32) + length, 0).astype(np.int32)
        log_z, log_probability = np.zeros(encoded.n_docs), np.zeros(encoded.n_docs)
        for share, out in zip(self._shares, outs, strict=True):
            log_z[share.documents] = np.asarray(out.log_z)[: len(share.documents)]
            log_probability[share.documents] = np.asarray(out.log_probability)[: len(share.documents)]
        decoded = Decoded(
            posterior[0].astype(np.float64) if posteriors else np.empty((0, J)),
            path.astype(np.int32),
            log_probability,
            log_z,
            span_end,
            span_probability.astype(np.float64),
            self._of_cells(counts),
            np.zeros(0) if posteriors else probability.astype(np.float64),
        )
        for d, document, result in self._redone([out.bad for out in outs], tables, chain):
            self._put(decoded, d, document, result, tables, chain, by_token=by_token)
        return decoded

    def _put(
        self,
        decoded: Decoded,
        d: int,
        document: plain.Document,
        result: plain.Passed,
        tables: Tables,
        chain: Chain,
        *,
        by_token: bool,
    ) -> None:
        """One document's consensus that was found in log space."""
        tokens = slice(*document)
        evidence = plain.evidence_of(self._encoded, tables, chain, self._known, document)
        read = plain.read_off(evidence, chain, self._encoded.tagset, result, by_token=by_token)
        decoded.path[tokens], decoded.log_probability[d], decoded.log_z[d] = (
            read.path,
            read.log_probability,
            result.log_z,
        )
        if len(decoded.token_probability):
            decoded.token_probability[tokens] = result.posterior[np.arange(len(read.path)), read.path]
        else:
            decoded.posterior[tokens] = result.posterior
        decoded.span_end[tokens], decoded.span_probability[tokens] = 0, 0.0
        for start, end, probability in read.spans:
            decoded.span_end[document.first + start] = document.first + end
            decoded.span_probability[document.first + start] = probability
        self._add(decoded.cells, np.zeros((0, len(chain.start))), d, result.posterior, 1.0)

    def close(self) -> None:
        """Let go of the data on the device."""
        self._layout.batches.clear()

    def _on_device(self, tables: Tables) -> tuple[Any, Any | None]:
        layout = self._layout
        cells = filled_up(tables.cells, layout.n_cells + 1, 0.0, np.float32)
        if not len(tables.words):
            return cells, None
        return cells, filled_up(tables.words[: len(self._encoded.words)], layout.n_words + 1, 0.0, np.float32)

    def _of_cells(self, rows: Any) -> Floats:
        return np.array(rows[: len(self._encoded.cells.label)], np.float64)

    def _of_words(self, rows: Any) -> Floats:
        return np.array(rows[: len(self._encoded.words)], np.float64)

    def _counted(self, outs: Sequence[passes.Passed], temper: float) -> tuple[Any, Any]:
        """Counts of cells and words, on the device."""
        rows = rows_of([out.posterior for out in outs])
        cells = temper * summed(rows, self._by_cell)
        return cells, jnp.zeros((0, rows.shape[1])) if self._by_word is None else summed(rows, self._by_word)

    def _redone(
        self, bad: Sequence[Any], tables: Tables, chain: Chain
    ) -> list[tuple[int, plain.Document, plain.Passed]]:
        """The documents that single precision cannot hold, in log space."""
        out = []
        for share, flags in zip(self._shares, bad, strict=True):
            for d in share.documents[np.asarray(flags)[: len(share.documents)]].tolist():
                document = plain.Document(*map(int, self._encoded.doc_start[d : d + 2]))
                evidence = plain.evidence_of(self._encoded, tables, chain, self._known, document)
                result = plain.passed(evidence, chain)
                if result.log_z == -np.inf:
                    error = FitError(
                        f"{self._name(d)}: no tag sequence is possible (the known labels, or the evidence, rule out "
                        "every one)"
                    )
                    error.document = d  # which a cluster has under another number
                    raise error
                out.append((d, document, result))
        return out

    def _add(self, cells: Floats, words: Floats, d: int, posterior: Floats, temper: float) -> None:
        """Add one document's posterior to the counts."""
        encoded = self._encoded
        first, last = encoded.doc_start[d : d + 2]
        events, token = events_of_document(encoded, d)
        weight = temper if encoded.event_weight is None else temper * encoded.event_weight[events, None]
        np.add.at(cells, encoded.event_cell[events], weight * posterior[token])
        if len(words):
            seen = encoded.word[first:last] < len(encoded.words)
            np.add.at(words, encoded.word[first:last][seen], posterior[seen])


def _steps(chain: Chain) -> passes.Steps:
    each = np.exp(chain.start), np.exp(chain.trans), chain.end
    return passes.Steps(*(jnp.asarray(one, jnp.float32) for one in each))


def _rules(encoded: Crowd, chain: Chain) -> decode.Rules:
    tagset = encoded.tagset
    logs = [
        chain.start + log_mask(tagset.allowed_first),
        chain.trans + log_mask(tagset.allowed),
        log_mask(tagset.allowed_last),
    ]
    start, trans, end = (jnp.asarray(each, jnp.float32) for each in logs)
    return decode.Rules(start, trans, end, jnp.asarray(tagset.continues), jnp.asarray(tagset.in_span))


def _totals(summaries: Sequence[passes.Summary]) -> tuple[float, LabelCounts, int]:
    """Over all batches, here."""
    columns = zip(*jax.device_get(summaries), strict=True)
    log_z, first, pairs, every, n_bad = (np.sum(column, axis=0) for column in columns)
    return float(log_z), LabelCounts(first, pairs, every), int(n_bad)
