"""The process that keeps the consensus alive: it follows what happens, updates its model, and fits it again when due.

Whatever people save is in the consensus a moment later, by an update that looks at the documents that changed alone.
Fits are made in a process of their own, which is stopped if one takes more than it may, and what everybody should label
next in a thread aside, so that updates go on meanwhile; what came while a fit was under way is updated into it when it
is there. Nothing of this is needed to save: the worker reads the table of events like anybody else. Killed at any
moment, it starts again from the database.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from copy import copy
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection

from quorate.corpus.tags import OUTSIDE
from quorate.errors import QuorateError
from quorate.estimators.layered import LayeredModel
from quorate.formats.layers import Layers
from quorate_serve.campaign import LiveSettings
from quorate_serve.database.engine import Database
from quorate_serve.delivering import Courier, outgoing_of
from quorate_serve.events import Event, Kind, events_after, last_event
from quorate_serve.live.collected import Collected, Entry
from quorate_serve.live.fitting import Fitted, KnownTags, Row, combine, fit, rows_of
from quorate_serve.live.limited import FitStoppedError, Limited
from quorate_serve.live.outlook import outlook_of
from quorate_serve.live.pace import Pace
from quorate_serve.live.publish import Publisher, Ranked, Rows
from quorate_serve.live.queueing import Desk, queues_of, staff_of
from quorate_serve.live.summary import counts_of, overlaps_of, summary_of
from quorate_serve.live.ticks import failure
from quorate_serve.problems import BusyError
from quorate_serve.settings import ServiceSettings

T = TypeVar("T")
Aside = Callable[[Callable[[], Any]], "Future[Any]"]

_LOOK = 0.1  # seconds between two looks at the events
_AT_ONCE = 1_000  # events
_NICE = 10
_RETRY = 60.0  # seconds until a fit that failed is tried again
_LOOK_SHARE = 20.0  # times as long as a look ahead took, until the next
_RANK_SHARE = 10.0  # times as long as queues took to work out, until they are worked out again

_NEVER = repeat(None)  # the tags of somebody who says nothing
_ABOUT_LABELS = (Kind.ANNOTATION_SAVED, Kind.ANNOTATION_REVISED, Kind.ANNOTATION_WITHDRAWN)
_ABOUT_DECISIONS = (Kind.REVIEW_DECIDED, Kind.REVIEW_WITHDRAWN)
_ABOUT_PEOPLE = (Kind.PERSON_ADDED, Kind.PERSON_CHANGED, Kind.PERSON_ERASED)

_EXPECTED = (QuorateError, ArithmeticError, MemoryError)  # of a fit: no fault of the program
_log = logging.getLogger("quorate_serve.live")


def follow(settings: ServiceSettings) -> None:
    """The process itself, until it is told to stop (SIGTERM)."""
    stopping = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal: one of them decides
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    if hasattr(os, "nice"):
        os.nice(_NICE)  # whoever saves comes first
    code = 0
    try:
        database = Database.at(settings.database, derived=True)
        Courier(database, settings.secret(), outgoing_of(settings)).start(stopping)
        follower = Follower(settings, database, aside=_in_thread, fits=Limited(settings.fits), looks_ahead=True)
        while not stopping.is_set():
            if not follower.step():
                stopping.wait(_LOOK)
        database.close()
    except BusyError as error:
        _log.warning("the consensus does not follow: %s", error)
        code = 1
    os._exit(code)  # a fit that is under way is not waited for


def _in_thread(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="quorate-fit", daemon=True).start()
    return future


def _at_once(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
    return future


class _Made(NamedTuple):
    """What a fit gave."""

    fitted: Fitted
    rows: dict[int, Row]
    summary: dict[str, Any]


def _made(entries: list[Entry], layers: Layers, known: KnownTags) -> _Made:
    """Fit, and say what is to be given out."""
    fitted = fit(layers, known)
    result = fitted.model.result_
    return _Made(fitted, rows_of(entries, result), summary_of(fitted, result))


def _here(compute: Callable[..., T], *given: Any) -> T:
    return compute(*given)


class _Refit(NamedTuple):
    """What a fit gave, and the last event that it knows of."""

    fitted: Fitted
    event: int
    labels: int
    rows: dict[int, Row]
    summary: dict[str, Any]


@dataclass
class _Outgoing:
    """What a fit gave and is not yet out."""

    refit: _Refit
    rows: dict[int, Row | None]

    def leave_out(self, numbers: Iterable[int]) -> None:
        """Of these documents there is something newer."""
        for number in numbers:
            self.rows.pop(number, None)


class Follower:
    """Follows the events of a service. ``step`` does what there is to do now; ``aside`` runs what takes longer.

    Unless ``aside`` is given, everything is done at once, and a step ends when it is done. ``fits`` computes a fit, in
    another process, say. With ``looks_ahead`` it also works out what more labels should add.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        database: Database,
        *,
        aside: Aside = _at_once,
        fits: Callable[..., _Made] = _here,
        clock: Callable[[], float] = time.monotonic,
        looks_ahead: bool = False,
    ) -> None:
        self._looks_ahead, self._look_due, self._look_next = looks_ahead, False, 0.0
        self._looking: Future[tuple[dict[str, Any] | None, float]] | None = None
        self._given, self._database, self._aside, self._clock = settings, database, aside, clock
        self._live = LiveSettings()
        self._fits = fits
        self._publisher = Publisher(database)
        with database.read() as connection:
            self._settings = self._live.look(connection, self._given)
            self._collected = Collected(self._settings.overlaps)
            self.event = last_event(connection)
            self._collected.read_all(connection)
        self._model: LayeredModel | None = None
        self._pace = Pace(must=True, ended=clock())
        self._changed: set[int] = set()  # documents that are not yet in the consensus as they are
        self._lost: set[int] = set()  # documents that have fewer labels than the model knows of
        self._since: set[int] = set()  # documents that changed while a fit was under way
        self._fit: Future[_Refit] | None = None
        self._outgoing: _Outgoing | None = None
        self._ranking: Future[tuple[Ranked, float]] | None = None
        self._rank_due, self._rank_next = True, 0.0

    @property
    def version(self) -> int:
        """The version of what was given out last."""
        return self._publisher.version

    def step(self) -> bool:
        """Take in what has happened, and give out what follows; whether there was anything to do."""
        listened = self._listen()
        ended = self._end_fit()
        began = self._pace.due(self._collected.labels, self._clock()) and self._begin_fit(self._aside)
        updated = self._update()
        return any((listened, ended, began, updated, self._give_out(), self._rank(), self._look_ahead()))

    def refit(self) -> None:
        """Fit to all that was said until now, and give it out."""
        self._listen()
        self._begin_fit(_at_once)
        self._end_fit()
        self._update()
        while self._give_out():
            pass

    def _listen(self) -> bool:
        """Read what has happened since, and the documents that it is about."""
        with self._database.read() as connection:
            events = events_after(connection, self.event, _AT_ONCE)
            if not events:
                return False
            self.event = events[-1].seq
            self._read(connection, events)
        return True

    def _read(self, connection: Connection, events: list[Event]) -> None:
        kinds = {event.kind for event in events}
        if Kind.CAMPAIGN_CHANGED in kinds:
            self._begin_campaign(connection)
        about = [event for event in events if event.kind in (*_ABOUT_LABELS, *_ABOUT_DECISIONS)]
        numbers = {event.document for event in about if event.document is not None}
        before = {number: self._collected.entries.get(number) for number in numbers}
        must = not self._collected.read(connection, numbers)
        if Kind.IMPORTED in kinds:
            must = not self._collected.read_new(connection) or must
            self._rank_due = True
        if kinds.intersection(_ABOUT_PEOPLE):
            must = self._collected.read_people(connection) or must
            self._rank_due = True
        lost = {number for number in numbers if _has_lost(before[number], self._collected.entries[number])}
        self._lost |= lost
        self._changed |= numbers
        self._since |= numbers
        # An update cannot take out of the model what it has learned.
        must = must or bool(lost) or any(_took_back(before[n], self._collected.entries[n]) for n in numbers)
        if about or must:
            self._pace.happened(len(about), must=must)

    def _begin_campaign(self, connection: Connection) -> None:
        """Go on by other settings; where other spans may overlap, everything is laid out anew."""
        before, self._settings = self._settings, self._live.look(connection, self._given)
        self._rank_due = True
        if before.overlaps != self._settings.overlaps:
            self._collected = Collected(self._settings.overlaps)
            self._collected.read_all(connection)
            self._pace.happened(0, must=True)

    def _begin_fit(self, aside: Aside) -> bool:
        if self._fit is not None or self._outgoing is not None:
            return False
        entries = self._collected.telling()
        if not any(entry.labels for entry in entries):
            return False
        layers, known, labels = (
            self._collected.laid_out(entries),
            self._collected.known(entries),
            self._collected.labels,
        )
        event = self.event

        def work() -> _Refit:
            made = self._fits(_made, entries, layers, known)
            return _Refit(made.fitted, event, labels, made.rows, made.summary)

        self._pace.begun()
        self._since = set()
        self._fit = aside(work)
        return True

    def _end_fit(self) -> bool:
        """Give out a fit that has ended."""
        if self._fit is None or not self._fit.done():
            return False
        ended, self._fit = self._fit, None
        try:
            done = ended.result()
        except Exception as error:  # whatever it was, updates go on, and those who look after it are told
            _log.warning("the consensus was not fitted again: %s", error, exc_info=not isinstance(error, _EXPECTED))
            is_stopped = isinstance(error, FitStoppedError)  # the next may take as long
            self._pace.failed(max(_RETRY, self._settings.fits.seconds) if is_stopped else _RETRY, self._clock())
            self._tell_failure(f"{error}" if isinstance(error, QuorateError) else f"{type(error).__name__}: {error}")
            return True
        self._model = done.fitted.model
        self._pace.fitted(done.labels, done.fitted.seconds, self._clock())
        self._outgoing = _Outgoing(done, {**dict.fromkeys(self._publisher.rows), **done.rows})
        self._outgoing.leave_out(self._since)  # what the fit does not know of yet comes with the next update
        self._changed, self._lost = set(self._since), self._lost & self._since
        return True

    def _tell_failure(self, why: str) -> None:
        with self._database.read() as connection:
            is_known = failure(connection) == why
        if not is_known:
            self._publisher.tell("failed", self.event, {"why": why})

    def _give_out(self) -> bool:
        """Write the next few rows of a fit; an update may come between them."""
        if self._outgoing is None:
            return False
        refit, waiting = self._outgoing.refit, self._outgoing.rows
        self._publisher.put(waiting)
        if waiting:
            return True
        summary = {**counts_of(self._publisher.rows), **overlaps_of(self._collected), **refit.summary}
        self._publisher.tell("refit", refit.event, summary)
        self._outgoing, self._rank_due, self._look_due = None, True, self._looks_ahead
        return True

    def _update(self) -> bool:
        """Take what has changed into the model, and give out the consensus on it."""
        if self._model is None or not self._changed:
            return False
        entries = [self._collected.entries[number] for number in sorted(self._changed)]
        self._changed = set()
        telling = [entry for entry in entries if entry.tells]
        rows: dict[int, Row | None] = {entry.number: None for entry in entries if entry.is_work and not entry.tells}
        try:
            grown = [entry for entry in telling if entry.number not in self._lost]
            if grown:
                self._model.update(self._collected.laid_out(grown), known=self._collected.known(grown))
            if telling:
                layers, known = self._collected.laid_out(telling), self._collected.known(telling)
                rows |= rows_of(telling, combine(self._model, layers, known))
        except QuorateError:  # a label that is new, say: a fit takes it in
            self._pace.happened(0, must=True)
        if self._outgoing is not None:
            self._outgoing.leave_out(rows)
        summary = {**counts_of(_after(self._publisher.rows, rows)), **overlaps_of(self._collected)}
        self._publisher.tell("update", self.event, summary, rows)
        return True

    def _rank(self) -> bool:
        """Work out what everybody should label next, if that is due, and give it out when it is there."""
        now = self._clock()
        if self._ranking is not None and self._ranking.done():
            ended, self._ranking = self._ranking, None
            try:
                ranked, seconds = ended.result()
            except QuorateError as error:  # without a list, the queue gives out what has the fewest labels
                _log.warning("what to label next was not worked out: %s", error)
                self._rank_next = now + _RETRY
                return True
            self._publisher.queues(self.event, ranked, {"seconds": round(seconds, 3)})
            self._rank_next = self._clock() + _RANK_SHARE * seconds
            return True
        is_busy = self._ranking is not None or self._fit is not None or self._outgoing is not None
        if is_busy or not self._rank_due or now < self._rank_next:
            return False
        self._rank_due = False
        entries, settings = self._collected.work(), self._settings.queue
        if not entries:
            return False
        layers, known = self._collected.laid_out(entries), self._collected.known(entries)
        desk = Desk(entries, layers, known, _still(self._model))

        def work() -> tuple[Ranked, float]:
            began = time.perf_counter()
            with self._database.read() as connection:
                staff = staff_of(connection)
            return queues_of(desk, staff, settings), time.perf_counter() - began

        self._ranking = self._aside(work)
        return True

    def _look_ahead(self) -> bool:
        """Work out what more labels should add after a fit, when there is nothing else to do, and give it out."""
        if self._looking is not None and self._looking.done():
            ended, self._looking = self._looking, None
            outlook, seconds = ended.result()
            self._look_next = self._clock() + _LOOK_SHARE * seconds
            if outlook is not None:
                self._publisher.tell("outlook", self.event, outlook)
            return True
        is_busy = any(one is not None for one in (self._looking, self._ranking, self._fit, self._outgoing))
        if is_busy or self._model is None or not self._look_due or self._clock() < self._look_next:
            return False
        self._look_due = False
        entries = self._collected.work()
        layers, known, model = self._collected.laid_out(entries), self._collected.known(entries), _still(self._model)
        assert model is not None  # there is one, as seen above

        def work() -> tuple[dict[str, Any] | None, float]:
            began = time.perf_counter()
            return outlook_of(model, layers, known), time.perf_counter() - began

        self._looking = self._aside(work)
        return True


def _has_lost(before: Entry | None, now: Entry) -> bool:
    """Whether somebody's labels of a document are gone, which an update cannot take out of the model."""
    return before is not None and not before.document.annotations.keys() <= now.document.annotations.keys()


def _took_back(before: Entry | None, now: Entry) -> bool:
    """Whether a mark or a decision does not stand any more, from which the model has learned."""
    if before is None:
        return False
    if before.documents.keys() != now.documents.keys():
        return True
    for layer, own in before.documents.items():
        known = before.known.get(layer, ())
        if any(tag not in (None, other) for tag, other in zip(known, now.known.get(layer, _NEVER), strict=False)):
            return True
        for name, tags in own.annotations.items():
            others = now.documents[layer].annotations.get(name, _NEVER)
            if any(tag not in (None, OUTSIDE, other) for tag, other in zip(tags, others, strict=False)):
                return True
    return False


def _still(model: LayeredModel | None) -> LayeredModel | None:
    """The model as it is now, whatever updates do to it meanwhile: these put new parts in the place of old ones."""
    if model is None:
        return None
    still = copy(model)
    still.models_ = {name: copy(one) for name, one in model.models_.items()}
    return still


def _after(rows: Mapping[int, Row], changes: Rows) -> dict[int, Row]:
    together = {**rows, **changes}
    return {number: row for number, row in together.items() if row is not None}
