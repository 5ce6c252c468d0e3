"""Short forms of spans: where a document says *atrial fibrillation (AF)*, every AF in it is what its long form is.

Rules and gazetteers know long forms, and people who overlook one AF have marked another. So a short form that no
candidate overlaps becomes one, with the type of its long form and the prior probability

    p_short = r · P(the long form is a span of that type),

of which the model of spans then says what it is worth that nobody marked it. r is how often short forms are what their
long forms are. It is learned in the fit, from those that are candidates already and those that everybody who was shown
them left out; but from the latter only where most annotators mark most of what is true: what a rule leaves out says
nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.discontinuous import is_continued
from quorate.crowd.algebra import Spans, document_of, laid_end_to_end
from quorate.crowd.short_forms import ShortForms, short_forms
from quorate.model import loop
from quorate.model.candidates import Candidates, looked_up
from quorate.model.engines.protocol import Engine, Likely
from quorate.model.span_model import USUAL_SHORT_FORMS, SpanModel
from quorate.model.spans import LIKELY, Heard, SpanEvidence, fit_spans, likely_spans, span_evidence, stated_spans

__all__ = ["evidence_with_short_forms", "followed_forms", "share_that_follow"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# How many short forms it is worth what is usual of them. Found is 0.9 among rules that mark diseases and chemicals in
# abstracts, 0.6 among people who mark names in news, 0.1 where long spans are marked that end before a bracket.
_WORTH = 10.0


def evidence_with_short_forms(
    engine: Engine,
    model: loop.Model,
    heard: Heard,
    sharpness: float = 1.0,
    *,
    spans: SpanModel | None = None,
    span_sharpness: float = 1.0,
) -> tuple[SpanEvidence, SpanModel]:
    """The evidence of spans, with short forms of likely ones among the candidates; and what annotators do with spans.

    That is learned from these documents without short forms, unless it is known: ``spans``.
    """
    likely = likely_spans(engine, model, heard, sharpness)
    evidence = span_evidence(model, heard, likely)
    known = spans or fit_spans(evidence, span_sharpness)
    if model.text is None:
        return evidence, known
    forms = short_forms(evidence.encoded, evidence.candidates.end)
    true = stated_spans(evidence, known, 1.0)
    if spans is None:
        left_out = not known.responses.mostly_missed
        share = share_that_follow(evidence, true, forms, heard.known, left_out=left_out)
        known = replace(known, short_forms=share)
    followed = followed_forms(evidence, true, forms, known.short_forms).at_least(LIKELY)
    return (span_evidence(model, heard, likely, followed) if len(followed.start) else evidence), known


def share_that_follow(
    evidence: SpanEvidence, true: Floats, forms: ShortForms, known: NDArray[np.int32] | None = None, *, left_out: bool
) -> float:
    """How often short forms are what their long forms are: r.

    ``true [C]`` is the probability of every candidate, ``known [N]`` labels that are known, −1 where none is. It is
    told by short forms that somebody was shown, and by those of known labels; of the former, those that no candidate
    overlaps tell something if it counts what was ``left_out``.
    """
    candidates, encoded = evidence.candidates, evidence.encoded
    kind, is_span = _long_forms(evidence, true, forms)
    same = Spans(forms.start, forms.end, kind, np.full(len(kind), -1))
    told = Likely(candidates.start, candidates.end, candidates.kind, true)
    tells = _all_of(forms, np.diff(encoded.event_start) > 0) & (left_out | _overlaps(candidates, forms))
    if known is not None:
        tells |= _all_of(forms, known >= 0)
    follows = looked_up(same, told, encoded)[tells] @ is_span[tells]
    return float((follows + _WORTH * USUAL_SHORT_FORMS) / (is_span[tells].sum() + _WORTH))


def followed_forms(evidence: SpanEvidence, true: Floats, forms: ShortForms, share: float) -> Likely:
    """The short forms that no candidate overlaps, each with the likeliest type of its long form.

    ``true [C]`` is the probability of every candidate, ``share`` how often a short form is what its long form is.
    Documents of which labels are known are left out, and long forms that are a later piece of something.
    """
    kind, is_span = _long_forms(evidence, true, forms)
    whole = np.array([not is_continued(each) for each in evidence.encoded.tagset.types])
    left_alone = evidence.clamped[document_of(evidence.encoded, forms.start)]
    kept = ~_overlaps(evidence.candidates, forms) & ~left_alone & whole[kind] & (is_span > 0)
    return Likely(forms.start[kept], forms.end[kept], kind[kept], share * is_span[kept])


def _long_forms(evidence: SpanEvidence, true: Floats, forms: ShortForms) -> tuple[Integers, Floats]:
    """``[S]`` The likeliest type of the long form of each short one, and how likely it is a span of that type."""
    of_long = _by_type(evidence.candidates, true, forms, len(evidence.encoded.tagset.types))
    kind = of_long.argmax(axis=1)
    return kind, of_long[np.arange(len(kind)), kind]


def _by_type(candidates: Candidates, true: Floats, forms: ShortForms, T: int) -> Floats:
    """``[S, T]`` How likely the long form of each short one is a span of each type."""
    low, high = (np.searchsorted(candidates.end, forms.long_end, side) for side in ("left", "right"))
    _, candidate = laid_end_to_end(low, high - low)
    row = np.repeat(np.arange(len(low)), high - low)
    start = candidates.start[candidate]
    fits = (start <= forms.long_start[row]) & (start >= forms.earliest[row])
    cell = row[fits] * T + candidates.kind[candidate[fits]]
    sums = np.bincount(cell, true[candidate[fits]], minlength=len(low) * T)
    return np.asarray(np.minimum(sums, 1.0).reshape(-1, T))


def _all_of(forms: ShortForms, holds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``[S]`` Whether it holds of all tokens of each."""
    before = np.concatenate([[0], np.cumsum(holds)])
    return np.asarray(before[forms.end] - before[forms.start] == forms.end - forms.start)


def _overlaps(candidates: Candidates, forms: ShortForms) -> NDArray[np.bool_]:
    """``[S]`` Whether a candidate overlaps each: begins before its end, and ends behind its start."""
    ends = np.searchsorted(candidates.end, forms.start, side="right")
    begins = np.searchsorted(np.sort(candidates.start), forms.end, side="left")
    return np.asarray(begins > ends)
