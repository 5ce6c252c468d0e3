"""Whether a consensus rests on spans, tokens, votes for spans or places: judged by hidden annotators, as all settings.

Spans are usual, as people mark spans. Another evidence must agree clearly better with those who were hidden, span by
span: overlaps would favour whoever splices a little of everybody's. Where types are disputed, hidden annotators cannot
tell, as hardly any span of theirs is confirmed: there, places come first, by the evidence of passages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from quorate.choose.calibrate import Confirmations, fit_span_sharpness
from quorate.choose.hidden import Agreement, HiddenLabels, agreement_over
from quorate.crowd.sharing import Sharing
from quorate.model import loop
from quorate.model.consensus import counted_again
from quorate.model.engines.protocol import Decoded, Engine
from quorate.model.settings import Evidence, Settings
from quorate.model.short_forms import evidence_with_short_forms
from quorate.model.span_model import SpanModel
from quorate.model.spans import Heard, SpanEvidence, given_spans, stated_spans, with_spans
from quorate.result.calibration import Calibration

__all__ = [
    "SpanBench",
    "agreement_on",
    "better_evidence",
    "calibrated_spans",
    "confirmed_on",
    "span_benches",
    "usual_evidence",
]

# The share of marks on a true span that have another type, from which on types are disputed. Of crowds of people and of
# rules it is 0 to 0.15; of a jury of language models 0.33, and of simulated juries 0.16 to 0.5. Against spans with
# their types, places gain 4 to 14 points of strict F1 on those juries and 6 to 15 on tokens (`benchmarks/sources.py
# juries`); on simulated crowds of people with 0.18 or more they cost half a point at most, and on the dev splits of NER
# and bc5cdr-rules, where it is less, 2 and 3.
_DISPUTED = 0.18
_CLEARLY = 3.0  # standard errors; at 2, one of 13 simulated crowds was led astray


class SpanBench(NamedTuple):
    """Where evidence of spans is judged by one draw of hidden annotators.

    ``evidence`` is of the documents where someone was hidden, ``tokens`` the token model's consensus on them, ``model``
    what annotators do with spans, learned from all that was not hidden.
    """

    hidden: HiddenLabels
    evidence: SpanEvidence
    tokens: Decoded
    model: SpanModel

    def decoded(self, settings: Settings, sharpness: float = 1.0) -> Decoded:
        """The consensus on some evidence."""
        if settings.by_tokens:
            return self.tokens
        model = self.model if settings.by_spans else None
        return with_spans(self.evidence, given_spans(self.evidence, model, settings, sharpness), self.tokens)


def span_benches(
    hidden: Sequence[HiddenLabels],
    engines: Sequence[Engine],
    models: Sequence[loop.Model],
    tokens: Sequence[Decoded],
    evidence: Evidence,
    sharpness: float,
    threads: int | None,
    sharing: Sharing,
    with_tagger: Sequence[HiddenLabels] = (),
) -> list[SpanBench]:
    """One for each draw; ``engines`` are over what was not hidden, ``evidence`` says whether spans are passages.

    ``with_tagger`` are the same draws as the token models know them, where a tagger has joined.
    """
    found = []
    for one, by_tokens, engine, model, consensus in zip(
        hidden, with_tagger or hidden, engines, models, tokens, strict=True
    ):
        both = Heard(one.rest, sharing.weighed(by_tokens.rest), sharing=sharing, threads=threads)
        both = both.for_evidence(evidence)
        again = counted_again(engine, model, both, sharpness)
        whole, learned = evidence_with_short_forms(engine, again, both, sharpness)
        here = whole.only(one.documents, one.sample, threads)
        found.append(SpanBench(one, here, consensus, learned))
    return found


def agreement_on(benches: Sequence[SpanBench], settings: Settings) -> Agreement:
    """How the consensus on some evidence agrees with hidden annotators."""
    return agreement_over([bench.hidden for bench in benches], [bench.decoded(settings) for bench in benches])


def usual_evidence(benches: Sequence[SpanBench]) -> Evidence:
    """Spans, or places where marks on a true span often have another type."""
    disputed = float(np.mean([bench.model.responses.other_type for bench in benches]))
    return Evidence.PLACES if disputed > _DISPUTED else Evidence.SPANS


def better_evidence(benches: Sequence[SpanBench], settings: Settings, *, most_speak: bool = True) -> Evidence:
    """What is usual, unless that is spans and another agrees clearly better with hidden annotators.

    Votes for spans are among those where ``most_speak``: of silent annotators hardly any span has half of the votes.
    """
    best = usual_evidence(benches)
    if best is Evidence.PLACES:
        return best
    score = agreement_on(benches, replace(settings, evidence=best))
    for other in (Evidence.TOKENS, Evidence.VOTES) if most_speak else (Evidence.TOKENS,):
        tried = agreement_on(benches, replace(settings, evidence=other))
        gain, error = tried.strict_gain_over(score)
        if gain > _CLEARLY * error:
            best, score = other, tried
    return best


def calibrated_spans(benches: Sequence[SpanBench], settings: Settings, sharpness: float) -> Calibration:
    """How confidence is to be read where the evidence is spans; ``sharpness`` is that of the token model."""
    hidden, confirmed = [one.hidden for one in benches], confirmed_on(benches, settings)
    return Calibration(sharpness, span_sharpness=fit_span_sharpness(hidden, confirmed))


def confirmed_on(benches: Sequence[SpanBench], settings: Settings) -> Callable[[float], Confirmations]:
    """What hidden annotators confirm of a consensus on spans, by the power at which its probabilities are stated.

    Which spans are given out does not hang on that power.
    """
    settings = replace(settings, precision=None, recall=None)
    given = [given_spans(one.evidence, one.model, settings) for one in benches]
    decoded = [with_spans(one.evidence, spans, one.tokens) for one, spans in zip(benches, given, strict=True)]
    found = Confirmations.of([one.hidden for one in benches], decoded)

    def at_power(power: float) -> Confirmations:
        stated = []
        for one, spans in zip(benches, given, strict=True):
            stated.append(np.zeros(one.evidence.encoded.n_tokens))
            start = one.evidence.candidates.start[spans.chosen]
            stated[-1][start] = stated_spans(one.evidence, one.model, power)[spans.chosen]
        return found._replace(stated=np.concatenate(stated)[found.token])

    return at_power
