"""What a tagger changes that joins the crowd: whether it helps, and how confidence is to be read then.

A tagger reads what the crowd overlooked. It joins unless a consensus with it clearly agrees less, span by span, with
annotators who were hidden. They are asked only about spans of which somebody who is left marked a token. Of the others
they tell nothing: what all overlook they overlook too, where there are many; and where there are two, most of what
nobody who is left marked is what the hidden one did, which the whole crowd has without a tagger. Among rules they tell
nothing at all, as a hidden rule knows little: on four sets of rules, hidden ones prefer the tagger by two to three
standard errors, where it gains half a point or costs four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.choose.choice import Choice
from quorate.choose.evidence import agreement_on, calibrated_spans
from quorate.choose.hidden import TO_CALIBRATE, Agreement, HiddenLabels, agreement_over
from quorate.choose.trials import (
    Run,
    benches_over,
    calibrated_tokens,
    hidden_in,
    sharpness_on,
    span_benches_of,
)
from quorate.encode.algebra import marked_spans, only_documents, with_annotator
from quorate.encode.encoded import Encoded
from quorate.infer.engines.factory import Engines
from quorate.infer.engines.protocol import Paths
from quorate.models.prepared import Prepared
from quorate.result.calibration import Calibration

__all__ = ["Verdict", "calibrated_with", "judged"]

_DRAWS = 2  # of hidden annotators; more tell little more
# Standard errors by which a consensus with the tagger may agree less with hidden annotators: the chance of that is one
# in twenty where it changes nothing. On 46 crowds of people (parts of two real ones with two to five annotators, scored
# by dev gold, and simulated ones) a tagger costs 2.8 to 3.4 points on the three that are below; on the others it gains
# 1.4 in the median, and costs something on four (0.2 to 2.2).
_MOST_AGAINST = 1.645
# Of the agreement of the consensus without it. On those crowds it is 0.76 and more where a tagger gains more than 0.2.
_LEAST_ALONE = 0.5


class Verdict(NamedTuple):
    """How much better a consensus with a tagger agrees with hidden annotators, and the standard error of that.

    ``alone`` is how well the tagger by itself agrees with them, as a share of how well the consensus without it does.

    >>> Verdict(0.02, 0.005, 0.9).joins, Verdict(-0.02, 0.005, 0.9).joins, Verdict(0.02, 0.005, 0.1).joins
    (True, False, False)
    """

    gain: float
    error: float
    alone: float

    @property
    def joins(self) -> bool:
        """Whether it has learned something, and hidden annotators do not speak against it."""
        return self.alone >= _LEAST_ALONE and self.gain > -_MOST_AGAINST * self.error

    def __str__(self) -> str:
        """In plain words, with the gain in points and its standard error.

        >>> str(Verdict(-0.01, 0.004, 0.9))
        'a tagger was tried and left out (agreement with hidden annotators: -1.0 ± 0.4 points)'
        >>> print(str(Verdict(0.01, 0.004, 0.1)).partition("(")[2])
        it learned too little: by itself it agrees with hidden annotators only 10 % as well as the consensus)
        """
        what = "has joined" if self.joins else "was tried and left out"
        if self.alone < _LEAST_ALONE:
            share = f"only {100 * self.alone:.0f} % as well as the consensus"
            why = f"it learned too little: by itself it agrees with hidden annotators {share}"
        else:
            by = f"{100 * self.gain:+.1f} ± {100 * self.error:.1f} points"
            why = f"agreement with hidden annotators: {by}"
        return f"a tagger {what} ({why})"


def judged(prepared: Prepared, choice: Choice, name: str, path: NDArray[np.int32], *, engines: Engines) -> Verdict:
    """Whether a tagger helps that gave every token the label in ``path``, and never one that it was trained on."""
    drawn = hidden_in(prepared, choice.sharing, choice.settings)[:_DRAWS]
    hidden = [one.where_somebody_marked() for one in drawn]
    heard = _joined(hidden, name, path)
    without = _agreement(prepared, choice, hidden, hidden, engines)
    joined = _agreement(prepared, choice, hidden, heard, engines)
    alone = agreement_over(heard, [_said_by_last(one.sample) for one in heard]).strict
    return Verdict(*joined.strict_gain_over(without), alone / without.strict if without.strict else 1.0)


def calibrated_with(
    prepared: Prepared, choice: Choice, name: str, path: NDArray[np.int32], *, engines: Engines
) -> Calibration:
    """How confidence is to be read with one more annotator, who gave the labels in ``path``.

    For a tagger that never tags what it was trained on: of a document's hidden annotators it knows nothing.
    """
    if choice.vote is None:
        return choice.calibration
    hidden = hidden_in(prepared, choice.sharing, choice.settings, enough=TO_CALIBRATE)
    with_tagger = _joined(hidden, name, path)
    with benches_over(with_tagger, prepared, choice.settings, engines, choice.sharing, choice.of_silence) as benches:
        run = Run(choice.settings, benches)
        run.go_on(choice.settings.max_iter)
        sharpness = sharpness_on(benches, run.models, engines.threads)
        calibration, evidence = Calibration(sharpness), choice.settings.evidence
        if choice.settings.by_tokens:
            calibration = calibrated_tokens(benches, run.models, sharpness)
        elif choice.settings.by_spans:
            spans = span_benches_of(benches, run.models, evidence, sharpness, engines, choice.sharing, said=hidden)
            calibration = calibrated_spans(spans, choice.settings, sharpness)
    return calibration


def _said_by_last(encoded: Encoded) -> Paths:
    """The labels and spans of the last annotator, who labelled everything."""
    last = len(encoded.annotators) - 1
    label = encoded.cells.label[encoded.event_cell[encoded.cells.annotator[encoded.event_cell] == last]]
    spans = marked_spans(encoded)
    own, span_end = spans.where(spans.who == last), np.zeros(encoded.n_tokens, np.int32)
    span_end[own.start] = own.end
    return Paths(label.astype(np.int32), span_end)


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
    said: Sequence[HiddenLabels],
    heard: Sequence[HiddenLabels],
    engines: Engines,
) -> Agreement:
    """How a fit with the chosen settings agrees with those who were hidden."""
    settings = replace(choice.settings, precision=None, recall=None)
    with benches_over(heard, prepared, settings, engines, choice.sharing, choice.of_silence) as benches:
        run = Run(settings, benches)
        run.go_on(settings.max_iter)
        if settings.by_tokens:
            return run.agreement
        sharpness = choice.calibration.sharpness
        return agreement_on(
            span_benches_of(benches, run.models, settings.evidence, sharpness, engines, choice.sharing, said=said),
            settings,
        )
