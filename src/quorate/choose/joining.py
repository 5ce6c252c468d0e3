"""What a tagger changes that joins the crowd: whether it helps, and how confidence is to be read then.

A tagger reads what the crowd overlooked. It joins unless a consensus with it agrees less, span by span, with annotators
who were hidden: they make the mistakes that it mends, so that where it gains they are at best indifferent. Among rules
that tells nothing, as a hidden rule knows little: on four sets of rules, hidden ones prefer the tagger by two to three
standard errors, where it gains half a point or costs four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.choose.choice import Choice
from quorate.choose.evidence import SpanBench, agreement_on, calibrated_spans
from quorate.choose.hidden import TO_CALIBRATE, Agreement, HiddenLabels
from quorate.choose.trials import (
    Run,
    benches_over,
    calibrated_tokens,
    checked_on,
    hidden_in,
    sharpness_on,
    span_benches_of,
)
from quorate.corpus.profiles import trust_of
from quorate.encode.algebra import only_documents, with_annotator
from quorate.infer.engines.factory import Engines
from quorate.models.prepared import Prepared
from quorate.models.settings import Evidence
from quorate.result.calibration import Calibration
from quorate.result.certificate import Check

__all__ = ["Verdict", "calibrated_with", "judged"]

_DRAWS = 2  # of hidden annotators; more tell little more
# Standard errors by which a consensus with the tagger may agree less with hidden annotators. On 20 crowds of people,
# parts of two real ones and simulated ones, a tagger gains 0.1 to 26 points on all where it is above this, but for two
# (−0.2 and −0.9), among them 2.2 on a crowd where hidden annotators are indifferent (0.1 ± 0.4). Below, it gains 0 to
# 1.5, and costs 7 where it was learned from 600 documents with two annotators.
_MOST_AGAINST = 0.5


class Verdict(NamedTuple):
    """How much better a consensus with a tagger agrees with hidden annotators, and the standard error of that.

    >>> Verdict(0.02, 0.005).joins, Verdict(0.0, 0.0).joins, Verdict(-0.02, 0.005).joins
    (True, False, False)
    """

    gain: float
    error: float

    @property
    def joins(self) -> bool:
        """Whether it makes a difference, and hidden annotators do not speak against it."""
        return self.gain > -_MOST_AGAINST * self.error

    def __str__(self) -> str:
        """In plain words, with the gain in points and its standard error.

        >>> str(Verdict(-0.01, 0.004))
        'a tagger was tried and left out (agreement with hidden annotators: -1.0 ± 0.4 points)'
        """
        what = "has joined" if self.joins else "was tried and left out"
        by = f"{100 * self.gain:+.1f} ± {100 * self.error:.1f} points"
        return f"a tagger {what} (agreement with hidden annotators: {by})"


def judged(prepared: Prepared, choice: Choice, name: str, path: NDArray[np.int32], *, engines: Engines) -> Verdict:
    """Whether a tagger helps that gave every token the label in ``path``, and never one that it was trained on."""
    hidden = hidden_in(prepared, choice.sharing, choice.settings)[:_DRAWS]
    names = prepared.encoded.annotators
    without = _agreement(prepared, choice, names, hidden, hidden, engines)
    joined = _agreement(prepared, choice, (*names, name), hidden, _joined(hidden, name, path), engines)
    return Verdict(*joined.strict_gain_over(without))


def calibrated_with(
    prepared: Prepared, choice: Choice, name: str, path: NDArray[np.int32], *, engines: Engines
) -> tuple[Calibration, Check]:
    """How confidence is to be read, and an estimate checked, with one more annotator, who gave the labels in ``path``.

    For a tagger that never tags what it was trained on: of a document's hidden annotators it knows nothing.
    """
    if choice.vote is None:
        return choice.calibration, choice.check
    hidden = hidden_in(prepared, choice.sharing, choice.settings, enough=TO_CALIBRATE)
    with_tagger = _joined(hidden, name, path)
    names = (*prepared.encoded.annotators, name)
    with benches_over(with_tagger, prepared, choice.settings, engines, choice.sharing) as benches:
        run = Run(choice.settings, benches, trust_of(names, prepared.corpus.profiles), choice.of_silence)
        run.go_on(choice.settings.max_iter)
        sharpness, spans = sharpness_on(benches, run.models, engines.threads), list[SpanBench]()
        calibration, evidence = Calibration(sharpness), choice.settings.evidence
        if evidence is Evidence.TOKENS:
            calibration = calibrated_tokens(benches, run.models, sharpness)
        else:
            spans = span_benches_of(benches, run.models, sharpness, engines, choice.sharing, said=hidden)
            if evidence is Evidence.SPANS:
                calibration = calibrated_spans(spans, choice.settings, sharpness)
        check = choice.check
        if not check.reason:
            check = checked_on(benches, run.models, spans, choice.settings, calibration)
    return calibration, check


def _joined(hidden: Sequence[HiddenLabels], name: str, path: NDArray[np.int32]) -> list[HiddenLabels]:
    """The same draws, with one more annotator."""
    found = []
    for one in hidden:
        rest = with_annotator(one.rest, name, path)
        found.append(one._replace(rest=rest, sample=only_documents(rest, one.documents)))
    return found


def _agreement(
    prepared: Prepared,
    choice: Choice,
    names: Sequence[str],
    said: Sequence[HiddenLabels],
    heard: Sequence[HiddenLabels],
    engines: Engines,
) -> Agreement:
    """How a fit with the chosen settings agrees with those who were hidden."""
    settings = replace(choice.settings, precision=None, recall=None)
    with benches_over(heard, prepared, settings, engines, choice.sharing) as benches:
        run = Run(settings, benches, trust_of(names, prepared.corpus.profiles), choice.of_silence)
        run.go_on(settings.max_iter)
        if settings.evidence is Evidence.TOKENS:
            return run.agreement
        sharpness = choice.calibration.sharpness
        return agreement_on(
            span_benches_of(benches, run.models, sharpness, engines, choice.sharing, said=said), settings
        )
