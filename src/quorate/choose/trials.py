"""Where settings are tried without gold: fits on what was not hidden, judged by those who were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.choose.calibrate import fit_sharpness, fit_span_map, span_sharpness_noise
from quorate.choose.evidence import SpanBench, span_benches
from quorate.choose.hidden import Agreement, HiddenLabels, agreement_over, draws
from quorate.choose.silence import first_votes
from quorate.choose.witness import confirmation_noise, explained
from quorate.corpus.profiles import Trust
from quorate.encode.encoded import Encoded
from quorate.encode.sharing import Sharing
from quorate.infer import loop
from quorate.infer.engines.factory import Engines
from quorate.infer.engines.protocol import Decoded, Engine
from quorate.models.build import model_of
from quorate.models.prepared import Prepared
from quorate.models.settings import Evidence, Settings
from quorate.result.calibration import Calibration
from quorate.result.certificate import Check

__all__ = [
    "Bench",
    "Run",
    "Trial",
    "benches_over",
    "calibrated_on",
    "checked_on",
    "decoded_on",
    "hidden_in",
    "span_benches_of",
]


class Trial(NamedTuple):
    """A candidate after some passes, and its score against hidden annotators."""

    settings: Settings
    passes: int
    f1: float


class Bench(NamedTuple):
    """Where candidates are judged by one draw of hidden annotators.

    ``fits`` is for fits on what was not hidden, ``judges`` for the consensus where someone was.
    """

    hidden: HiddenLabels
    fits: Engine
    judges: Engine


@contextmanager
def benches_over(
    hidden: Sequence[HiddenLabels], prepared: Prepared, settings: Settings, engines: Engines, sharing: Sharing
) -> Iterator[list[Bench]]:
    """One for each draw, whose engines are closed in the end."""
    with ExitStack() as opened:

        def engine(encoded: Encoded, known: NDArray[np.int32] | None) -> Engine:
            weighed = sharing.weighed(encoded)
            return opened.enter_context(closing(engines.over(weighed, known=known, text=settings.text)))

        yield [Bench(one, engine(one.rest, prepared.known), engine(one.sample, None)) for one in hidden]


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
    was judged, draw by draw.
    """

    agreement: Agreement
    best_passes: int
    best_models: list[loop.Model]

    def __init__(
        self, settings: Settings, benches: Sequence[Bench], trust: Trust, of_silence: NDArray[np.float64]
    ) -> None:
        self.settings, self._benches = settings, benches
        self.models = []
        for hidden, engine, _ in benches:
            blank = model_of(settings, hidden.rest.tagset, hidden.rest, trust)
            votes = first_votes(hidden.rest, {}, settings.start, of_silence=of_silence)
            cells = hidden.rest.cells
            self.models.append(loop.initial_model(engine, blank, cells, settings.start, first_votes=votes))
        self.passes = 0
        self.trials: list[Trial] = []

    def go_on(self, until: int) -> None:
        """Run until so many passes, and be judged; fewer passes win a tie."""
        more = until - self.passes
        self.models = [
            loop.more_passes(bench.fits, model, bench.hidden.rest.cells, more)
            for bench, model in zip(self._benches, self.models, strict=True)
        ]
        self.passes = until
        decoded = decoded_on(self._benches, self.models, posteriors=False)
        agreement = agreement_over([bench.hidden for bench in self._benches], decoded)
        if not self.trials or agreement.f1 > self.agreement.f1:
            self.agreement, self.best_passes, self.best_models = agreement, until, self.models
        self.trials.append(Trial(self.settings, until, agreement.f1))

    def forget_models(self) -> None:
        """Keep only how it was judged: models are large."""
        self.models = self.best_models = []


def hidden_in(prepared: Prepared, sharing: Sharing, settings: Settings, *, least: int = 1) -> list[HiddenLabels]:
    """The corpus with some annotators hidden, draw by draw, together with those who err as they do."""
    seed = settings.random_state or 0
    return draws(prepared.encoded, known=prepared.known, seed=seed, sharing=sharing, least=least)


def span_benches_of(
    benches: Sequence[Bench],
    models: Sequence[loop.Model],
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
        [(bench.fits, bench.judges) for bench in benches],
        models,
        decoded_on(benches, models, sharpness, posteriors=False),
        sharpness,
        engines.threads,
        sharing,
        hidden,
    )


def calibrated_on(benches: Sequence[Bench], models: Sequence[loop.Model]) -> Calibration:
    """What hidden annotators say of the confidence of these models, one for each draw."""
    hidden = [bench.hidden for bench in benches]
    sharpness = fit_sharpness(hidden, lambda power: decoded_on(benches, models, power))
    if hidden[0].rest.tagset.outside is None:
        return Calibration(sharpness)
    decoded = decoded_on(benches, models, sharpness)
    each = [one.agreement(path) for one, path in zip(hidden, decoded, strict=True)]
    stated = [path.span_probability[one.found.start] for one, path in zip(each, decoded, strict=True)]
    others = float(np.mean([one.others for one in hidden]))
    return Calibration(sharpness, *fit_span_map(agreement_over(hidden, decoded), np.concatenate(stated), others))


def checked_on(
    benches: Sequence[Bench],
    models: Sequence[loop.Model],
    spans: Sequence[SpanBench],
    settings: Settings,
    calibration: Calibration,
) -> Check:
    """What hidden annotators say of an estimate by a consensus with these settings; ``spans`` as the evidence needs."""
    hidden, settings = [bench.hidden for bench in benches], replace(settings, precision=None, recall=None)
    tokens = decoded_on(benches, models, calibration.sharpness)

    def decode(power: float) -> list[Decoded]:
        return [one.decoded(settings, power) for one in spans]

    if settings.evidence is Evidence.SPANS:
        noise = span_sharpness_noise([one.hidden for one in spans], decode, calibration.span_sharpness)
    else:
        noise = confirmation_noise(hidden, decode(1.0) or tokens, calibration)
    return Check(noise, explained(hidden, [one.posterior for one in tokens]))
