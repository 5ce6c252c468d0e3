"""Where settings are tried without gold: fits on what was not hidden, judged by those who were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.choose.calibrate import fit_sharpness, fit_span_map
from quorate.choose.evidence import SpanBench, span_benches
from quorate.choose.hidden import TO_CHOOSE, Agreement, Enough, HiddenLabels, agreement_over, draws
from quorate.choose.silence import Silence, first_votes
from quorate.corpus.profiles import Believed
from quorate.encode.algebra import only_documents
from quorate.encode.encoded import Encoded
from quorate.encode.sharing import Sharing
from quorate.infer import loop
from quorate.infer.engines.factory import Engines
from quorate.infer.engines.protocol import Counts, Decoded, Engine
from quorate.infer.start import Start
from quorate.models.build import model_of
from quorate.models.prepared import Prepared
from quorate.models.settings import Evidence, Settings
from quorate.result.calibration import Calibration

__all__ = [
    "Bench",
    "Run",
    "Trial",
    "benches_over",
    "calibrated_tokens",
    "decoded_on",
    "hidden_in",
    "sharpness_on",
    "span_benches_of",
]


class Trial(NamedTuple):
    """A candidate after some passes, and its score against hidden annotators."""

    settings: Settings
    passes: int
    f1: float


class Bench(NamedTuple):
    """Where candidates are judged by one draw of hidden annotators.

    ``fits`` is for fits on what was not hidden, ``judges`` for the consensus where someone was. ``begun`` are the
    counts that fits begin with, by their temper: candidates have them in common. ``believed`` is what is believed of
    annotators before that, and ``of_silence [K]`` how much an ``O`` of theirs counts.
    """

    hidden: HiddenLabels
    fits: Engine
    judges: Engine
    begun: dict[float, Counts]
    of_silence: NDArray[np.float64]
    believed: Believed

    def initial_model(self, blank: loop.Model, start: Start) -> loop.Model:
        """The model that a candidate's first pass begins with."""
        if start is Start.PRIOR:
            return blank
        rest = self.hidden.rest
        if blank.temper not in self.begun:
            votes = first_votes(rest, {}, start, of_silence=self.of_silence)
            found = loop.first_counts(self.fits, rest.cells, start, blank.temper, first_votes=votes)
            self.begun[blank.temper] = found
        return blank.updated(rest.cells, self.begun[blank.temper])


@contextmanager
def benches_over(
    hidden: Sequence[HiddenLabels],
    prepared: Prepared,
    settings: Settings,
    engines: Engines,
    sharing: Sharing,
    of_silence: NDArray[np.float64],
) -> Iterator[list[Bench]]:
    """One for each draw, whose engines are closed in the end."""
    with ExitStack() as opened:

        def engine(encoded: Encoded, known: NDArray[np.int32] | None) -> Engine:
            return opened.enter_context(closing(engines.over(encoded, known=known, text=settings.text)))

        def bench(one: HiddenLabels) -> Bench:
            rest = sharing.weighed(one.rest)
            sample = only_documents(rest, one.documents) if sharing else one.sample
            silence = Silence.of(rest, of_silence)
            fits = engine(rest, silence.closed(rest, prepared.known))
            believed = silence.believed(rest.annotators, prepared.corpus.profiles)
            return Bench(one, fits, engine(sample, silence.closed(sample, None)), {}, of_silence, believed)

        yield [bench(one) for one in hidden]


def decoded_on(
    benches: Sequence[Bench], models: Sequence[loop.Model], sharpness: float = 1.0, *, posteriors: bool = True
) -> list[Decoded]:
    """The consensus of each draw's model where someone was hidden."""
    return [
        loop.decode(bench.judges, model, bench.hidden.sample.cells, sharpness=sharpness, posteriors=posteriors)
        for bench, model in zip(benches, models, strict=True)
    ]


class Run:
    """A candidate being fitted on what was not hidden, once for each draw.

    ``agreement`` is the best judgement so far, ``best_passes`` after how many passes that was, and ``best_models`` what
    was judged, draw by draw; ``got_worse`` says whether the last judgement is below it by more than chance.
    """

    agreement: Agreement
    best_passes: int
    best_models: list[loop.Model]

    def __init__(self, settings: Settings, benches: Sequence[Bench]) -> None:
        self.settings, self._benches = settings, benches
        self.models = []
        for bench in benches:
            rest = bench.hidden.rest
            blank = model_of(settings, rest.tagset, rest, bench.believed)
            self.models.append(bench.initial_model(blank, settings.start))
        self.passes, self.got_worse = 0, False
        self.trials: list[Trial] = []

    def go_on(self, until: int) -> None:
        """Run until so many passes, and be judged; fewer passes win a tie."""
        more = until - self.passes
        self.models = [
            loop.more_passes(bench.fits, model, bench.hidden.rest.cells, more)
            for bench, model in zip(self._benches, self.models, strict=True)
        ]
        self.passes = until
        paths = [
            loop.best_paths(bench.judges, model, bench.hidden.sample.cells)
            for bench, model in zip(self._benches, self.models, strict=True)
        ]
        agreement = agreement_over([bench.hidden for bench in self._benches], paths)
        if self.trials:
            loss, error = self.agreement.gain_over(agreement)
            self.got_worse = loss > error
        if not self.trials or agreement.f1 > self.agreement.f1:
            self.agreement, self.best_passes, self.best_models = agreement, until, self.models
        self.trials.append(Trial(self.settings, until, agreement.f1))

    def forget_models(self) -> None:
        """Keep only how it was judged: models are large."""
        self.models = self.best_models = []


def hidden_in(
    prepared: Prepared,
    sharing: Sharing,
    settings: Settings,
    *,
    enough: Enough = TO_CHOOSE,
    before: Sequence[HiddenLabels] = (),
) -> list[HiddenLabels]:
    """The corpus with some annotators hidden, draw by draw, together with those who err as they do.

    Copies are one annotator in it. Draws end where there is ``enough``; some may have been made ``before``.
    """
    seed, heard = settings.random_state or 0, sharing.heard(prepared.encoded)
    return draws(heard, known=prepared.known, seed=seed, sharing=sharing, enough=enough, before=before)


def span_benches_of(
    benches: Sequence[Bench],
    models: Sequence[loop.Model],
    evidence: Evidence,
    sharpness: float,
    engines: Engines,
    sharing: Sharing,
    *,
    said: Sequence[HiddenLabels] = (),
) -> list[SpanBench]:
    """The same draws of hidden annotators, to judge evidence of spans by.

    Where a tagger is in the benches, ``said`` are the draws without it: it marks no spans.
    """
    hidden = [bench.hidden for bench in benches]
    return span_benches(
        said or hidden,
        [bench.fits for bench in benches],
        models,
        decoded_on(benches, models, sharpness, posteriors=False),
        evidence,
        sharpness,
        engines.threads,
        sharing,
        hidden,
    )


def sharpness_on(benches: Sequence[Bench], models: Sequence[loop.Model], threads: int | None) -> float:
    """What hidden annotators say of the confidence of these models, one for each draw, token by token."""
    hidden = [bench.hidden for bench in benches]
    return fit_sharpness(hidden, lambda power: _posteriors_on(benches, models, power), threads=threads)


def _posteriors_on(
    benches: Sequence[Bench], models: Sequence[loop.Model], sharpness: float
) -> list[NDArray[np.float64]]:
    return [
        loop.posteriors(bench.judges, model, bench.hidden.sample.cells, sharpness)
        for bench, model in zip(benches, models, strict=True)
    ]


def calibrated_tokens(benches: Sequence[Bench], models: Sequence[loop.Model], sharpness: float) -> Calibration:
    """How confidence is to be read where the evidence is tokens; ``sharpness`` is that of these models."""
    hidden = [bench.hidden for bench in benches]
    if hidden[0].rest.tagset.outside is None:
        return Calibration(sharpness)
    decoded = decoded_on(benches, models, sharpness)
    each = [one.agreement(path) for one, path in zip(hidden, decoded, strict=True)]
    stated = [path.span_probability[one.found.start] for one, path in zip(each, decoded, strict=True)]
    others = float(np.mean([one.others for one in hidden]))
    return Calibration(sharpness, *fit_span_map(agreement_over(hidden, decoded), np.concatenate(stated), others))
