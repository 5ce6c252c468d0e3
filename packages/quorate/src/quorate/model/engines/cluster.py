"""Passes on the workers of a Dask cluster: shards of the corpus stay there, only parameters and counts travel.

Where the corpus lies in files, the workers open these themselves; else each shard is sent, once. A shard has its own
short numbers of cells and words, so that a worker gets the rows it needs and no others. Shards are cut by the corpus
alone, and sums are added in the order of the shards: the result is the same, bit for bit, with one worker or many, and
if some are lost. A worker that is lost takes its shards with it: another one gets them, and the pass goes on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.crowd import Crowd, PartOnDisk, Shard, SlicesOnDisk
from quorate.errors import FitError, SettingsError
from quorate.model.engines.protocol import Counts, Decoded, Engine, Likely, Tables
from quorate.model.kernels.cores import balanced
from quorate.model.parts.truth import Chain, LabelCounts

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Known = NDArray[np.int32] | None

_SHARDS = 8  # in all but small and large corpora
_LEAST_TOKENS, _MOST_TOKENS = 20_000, 1_000_000  # of a shard: below, a message takes longer than a pass
_BYTES_A_TOKEN = 40
_TRIES = 10
_PATIENCE = 30  # seconds for a scheduler, or a worker, to answer


class _NoFileError(FitError):
    """A worker does not have the file that a shard is in."""


class _Sent(NamedTuple):
    """A shard as it travels, with the known labels of its tokens."""

    shard: Shard
    known: Known


class _OnDisk:
    """A shard as it travels where the worker opens the file itself; it may be opened again on another worker."""

    def __init__(self, part: PartOnDisk, known: Known) -> None:
        self._part, self.known = part, known

    def __reduce__(self) -> tuple[type[_OnDisk], tuple[PartOnDisk, Known]]:
        return _OnDisk, (self._part, self.known)

    def __sizeof__(self) -> int:
        """About what it is on the worker that has opened it: Dask moves what is small from one to another."""
        return _BYTES_A_TOKEN * self._part.n_tokens

    @cached_property
    def shard(self) -> Shard | None:
        """``None`` if that very file is not there."""
        return self._part.opened()


class _Cut(NamedTuple):
    """Where a corpus is cut: the documents at which shards begin, and the end; in files also the slices."""

    documents: list[int]
    slices: list[int] | None


def _cut(encoded: Crowd) -> _Cut:
    """By the number of tokens alone, and at the ends of files."""
    stored, size = _stored(encoded), min(max(encoded.n_tokens // _SHARDS, _LEAST_TOKENS), _MOST_TOKENS)
    if stored is None:
        return _Cut(np.unique(balanced(encoded.doc_start, max(1, encoded.n_tokens // size))).tolist(), None)
    starts = encoded.doc_start[stored.bounds]
    cuts = [0]
    for first, last in zip(stored.files[:-1], stored.files[1:], strict=True):
        own = starts[first : last + 1] - starts[first]
        cuts += (np.unique(balanced(own, max(1, int(own[-1]) // size)))[1:] + first).tolist()
    return _Cut([stored.bounds[s] for s in cuts], cuts)


def _stored(encoded: Crowd) -> SlicesOnDisk | None:
    """The files that a corpus lies in, if it is as they hold it."""
    return encoded.slices if encoded.slices is not None and encoded.slices.fits(encoded) else None


def shard_of(encoded: Crowd, first: int, last: int) -> Shard:
    """Documents ``first`` to ``last`` of a corpus."""
    tokens = slice(int(encoded.doc_start[first]), int(encoded.doc_start[last]))
    events = slice(int(encoded.event_start[tokens.start]), int(encoded.event_start[tokens.stop]))
    cells, event_cell = np.unique(encoded.event_cell[events], return_inverse=True)
    words, word = np.unique(encoded.word[tokens], return_inverse=True)
    words = words[words < len(encoded.words)]  # a word that is not in the vocabulary keeps a number beyond the end
    local = replace(
        encoded,
        words=("",) * len(words),
        doc_start=encoded.doc_start[first : last + 1] - tokens.start,
        word=word.astype(np.int32),
        event_start=encoded.event_start[tokens.start : tokens.stop + 1] - events.start,
        event_cell=event_cell.astype(np.int32),
        event_weight=None if encoded.event_weight is None else encoded.event_weight[events],
        cells=encoded.cells._replace(
            annotator=encoded.cells.annotator[cells],
            previous=encoded.cells.previous[cells],
            label=encoded.cells.label[cells],
        ),
        slices=None,
    )
    return Shard(local, cells.astype(np.int64), words.astype(np.int64))


class ClusterEngine:
    """One corpus on the workers of a cluster: see :class:`quorate.model.engines.protocol.Engine`.

    ``cluster`` is the address of a scheduler, or a ``distributed.Client``; ``kind`` makes the engine that each worker
    runs its shards with.
    """

    def __init__(
        self,
        encoded: Crowd,
        *,
        cluster: Any,
        kind: Callable[..., Engine],
        known: NDArray[np.int32] | None = None,
        text: bool = True,
        threads: int | None = None,
        names: Callable[[int], str] | None = None,
    ) -> None:
        self.rounding: float = getattr(kind, "rounding", 1e-9)
        self._client = _client_of(cluster)
        self._own_client = isinstance(cluster, str)
        self._encoded, self._known = encoded, known
        self._options = {"kind": kind, "text": text, "threads": threads}
        self._name = names or (lambda d: f"document {d}")
        self._fit = uuid.uuid4().hex
        self._bounds, self._slices = _cut(encoded)
        self._whole: set[int] = set()  # shards that are sent though there are files: a worker did not find them
        self._rows: list[tuple[Integers, Integers]] = []
        self._shards: list[Any] = []
        try:
            self._hand_out()
        except BaseException:
            self.close()
            raise

    def _hand_out(self) -> None:
        """Give every worker its shards."""
        workers = sorted(self._client.nthreads())
        if not workers:
            raise FitError("the cluster has no worker (start some with: dask worker ADDRESS)")
        for number in range(len(self._bounds) - 1):
            shard = self._travelling(number)
            if isinstance(shard, _Sent):
                self._rows.append((shard.shard.cells, shard.shard.words))
            self._shards.append(self._sent(shard, [workers[number % len(workers)]]))
        if self._slices is not None:
            self._rows = self._rows_of_files(self._slices)

    def run(self, tables: Tables, chain: Chain) -> Counts:
        """One pass."""
        return self._counted(self._each("run", lambda s: (self._local(tables, s), chain)), len(chain.start))

    def vote(self, table: Floats, smoothing: float, temper: float = 1.0) -> Counts:
        """Shares of votes as posterior."""
        return self._counted(self._each("vote", lambda s: (table[self._rows[s][0]], smoothing, temper)), table.shape[1])

    def likely_spans(self, tables: Tables, chain: Chain, least: float) -> Likely:
        """Every span with a probability of at least ``least``, by place."""
        parts: list[Likely] = self._each("likely_spans", lambda s: (self._local(tables, s), chain, least))
        moved = [
            part._replace(start=part.start + first, end=part.end + first)
            for part, first in zip(parts, self._encoded.doc_start[self._bounds[:-1]], strict=True)
        ]
        return Likely(*(np.concatenate(column) for column in zip(*moved, strict=True)))

    def decode(self, tables: Tables, chain: Chain, *, by_token: bool, posteriors: bool = True) -> Decoded:
        """The output pass."""
        options = {"by_token": by_token, "posteriors": posteriors}
        parts: list[Decoded] = self._each("decode", lambda s: (self._local(tables, s), chain), **options)
        cells = np.zeros((len(self._encoded.cells.label), len(chain.start)))
        for s, part in enumerate(parts):
            cells[self._rows[s][0]] += part.cells
        ends = [
            np.where(part.span_end > 0, part.span_end + self._encoded.doc_start[first], 0).astype(np.int32)
            for part, first in zip(parts, self._bounds[:-1], strict=True)
        ]
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("posterior", "path", "log_probability", "log_z", "span_probability", "token_probability")
        }
        return Decoded(**joined, span_end=np.concatenate(ends), cells=cells)

    def close(self) -> None:
        """Let the workers forget the corpus, and leave the cluster if it was joined here."""
        self._shards.clear()
        if self._client.status == "running":
            self._client.run(_forget, self._fit, on_error="ignore")
        if self._own_client:
            with suppress(TimeoutError):  # nobody answers where the scheduler is lost
                self._client.close(timeout=_PATIENCE if self._client.status == "running" else 1)

    def _travelling(self, number: int) -> _Sent | _OnDisk:
        """A shard, or where a worker finds it."""
        first, last = self._bounds[number], self._bounds[number + 1]
        known = None
        if self._known is not None:
            known = self._known[self._encoded.doc_start[first] : self._encoded.doc_start[last]]
        stored = self._encoded.slices
        if stored is not None and self._slices is not None and number not in self._whole:
            return _OnDisk(stored.part(self._slices[number], self._slices[number + 1]), known)
        return _Sent(shard_of(self._encoded, first, last), known)

    def _rows_of_files(self, slices: list[int]) -> list[tuple[Integers, Integers]]:
        """The cells and words of each shard, which the workers find in the files.

        Where one of them has no such file, everything is sent to them instead.
        """
        found = self._all(lambda s: self._client.submit(_rows_of, self._shards[s], pure=False))
        stored = self._encoded.slices
        if stored is not None and all(rows is not None for rows in found):
            return [stored.numbers_here(first, *rows) for first, rows in zip(slices[:-1], found, strict=True)]
        self._slices = None
        sent = [self._travelling(number) for number in range(len(found))]
        self._shards = [self._sent(shard) for shard in sent]
        return [(each.shard.cells, each.shard.words) for each in sent if isinstance(each, _Sent)]

    def _sent(self, shard: _Sent | _OnDisk, workers: list[str] | None = None) -> Any:
        """A shard on one of the workers."""
        try:
            return self._client.scatter(shard, workers=workers, hash=False, timeout=_PATIENCE)
        except (TimeoutError, OSError, KeyError, ValueError, CancelledError):
            self._check_scheduler()
            if workers is not None:  # that one is gone: any other will do
                return self._sent(shard)
            raise FitError("the cluster has no worker left (start some with: dask worker ADDRESS)") from None

    def _check_scheduler(self) -> None:
        """:class:`FitError` if there is none any more."""
        for _ in range(_PATIENCE):
            if self._client.status != "running":
                break
            with suppress(OSError, TimeoutError, CancelledError):
                self._client.sync(self._client.scheduler.identity, callback_timeout=1)
                return
        raise FitError("the scheduler of the cluster is lost (start another one, and fit again)")

    def _local(self, tables: Tables, s: int) -> Tables:
        cells, words = self._rows[s]
        return tables._replace(
            cells=tables.cells[cells], words=tables.words[words] if len(tables.words) else tables.words
        )

    def _each(self, method: str, arguments: Callable[[int], tuple[Any, ...]], **options: Any) -> list[Any]:
        """What a method of every shard's engine gives, in the order of the shards."""

        def submitted(s: int) -> Any:
            key = (
                f"{self._fit}-{s}{'-whole' if s in self._whole else ''}"  # its rows have other numbers than the file's
            )
            call = (self._shards[s], key, self._options, method, arguments(s), options)
            return self._client.submit(_work, *call, pure=False)

        return self._all(submitted)

    def _all(self, submitted: Callable[[int], Any]) -> list[Any]:
        """What all shards give, in their order."""
        waiting = [submitted(s) for s in range(len(self._shards))]
        return [self._result(s, waiting[s], submitted) for s in range(len(waiting))]

    def _result(self, s: int, future: Any, again: Callable[[int], Any]) -> Any:
        from distributed import KilledWorker

        for _ in range(_TRIES):
            try:
                return future.result()
            except _NoFileError:  # on a worker that took the place of another
                self._send_whole(s)
                future = again(s)
            except FitError as error:
                d = getattr(error, "document", None)
                if d is None:
                    raise
                message = str(error).replace(f"document {d}", self._name(self._bounds[s] + d), 1)
                raise FitError(message) from None
            except (CancelledError, KilledWorker, OSError):  # its shard went with a worker, or all with the scheduler
                self._check_scheduler()
                self._shards[s] = self._sent(self._travelling(s))
                future = again(s)
        raise FitError(f"workers of the cluster were lost {_TRIES} times in one pass (look at their logs)")

    def _send_whole(self, s: int) -> None:
        """Send a shard itself, as its file is not where it is needed."""
        self._whole.add(s)
        sent = self._travelling(s)
        assert isinstance(sent, _Sent)
        self._rows[s] = (sent.shard.cells, sent.shard.words)
        self._shards[s] = self._sent(sent)

    def _counted(self, parts: list[Counts], J: int) -> Counts:
        cells = np.zeros((len(self._encoded.cells.label), J))
        words = np.zeros((len(self._encoded.words) if self._options["text"] else 0, J))
        for (own_cells, own_words), part in zip(self._rows, parts, strict=True):
            cells[own_cells] += part.cells
            if len(words):
                words[own_words] += part.words
        labels = LabelCounts(*(np.sum(column, axis=0) for column in zip(*(p.labels for p in parts), strict=True)))
        return Counts(sum(part.log_z for part in parts), cells, words, labels)


def _client_of(cluster: Any) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise SettingsError("a cluster needs Dask (install it with: pip install 'quorate[cluster]')") from None
    if isinstance(cluster, Client):
        return cluster
    if not isinstance(cluster, str):
        raise SettingsError(f"cluster must be an address or a distributed.Client, not {type(cluster).__name__}")
    try:
        return Client(cluster, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise SettingsError(f"cluster {cluster!r}: no scheduler answers there: {error}") from None


_engines: dict[str, Engine] = {}  # on a worker: the engines of the shards it holds


def _rows_of(held: _OnDisk) -> tuple[Integers, Integers] | None:
    """On a worker: the cells and words of a shard, by the numbers of its file; ``None`` if it is not there."""
    return None if held.shard is None else (held.shard.cells, held.shard.words)


def _work(
    held: _Sent | _OnDisk,
    key: str,
    options: dict[str, Any],
    method: str,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    """On a worker: one method of a shard's engine, which is made when it is first asked for."""
    if key not in _engines:
        if held.shard is None:
            raise _NoFileError("a worker does not find the encoded corpus that others have")
        kind, rest = options["kind"], {name: value for name, value in options.items() if name != "kind"}
        _engines[key] = kind(held.shard.encoded, known=held.known, **rest)
    return getattr(_engines[key], method)(*arguments, **named)


def _forget(fit: str) -> None:
    """On a worker: drop the engines of a fit."""
    for key in [key for key in _engines if key.startswith(fit)]:
        del _engines[key]
