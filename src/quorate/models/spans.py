"""From a fitted token model to a consensus whose evidence is spans (see :mod:`quorate.infer.spans`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.encode.encoded import Encoded
from quorate.infer import loop
from quorate.infer.candidates import Candidates, find_candidates
from quorate.infer.engines.protocol import Engine
from quorate.infer.parts.dirichlet import log_mean
from quorate.infer.parts.responses import Responses
from quorate.infer.spans import SpanEngine, SpanModel, prior_log_odds

__all__ = ["SpanEvidence", "fit_spans", "span_evidence"]

Floats = NDArray[np.float64]
_NOTED = 0.01  # the least probability of a span that is looked up
_LIKELY = 0.1  # from which on a span that nobody marked is a candidate
_PASSES = 8
_TOLERANCE = 1e-6


class SpanEvidence(NamedTuple):
    """The candidates of a corpus with their prior, ready for passes."""

    encoded: Encoded
    candidates: Candidates
    engine: SpanEngine


def span_evidence(
    said: Encoded,
    weighed: Encoded,
    engine: Engine,
    model: loop.Model,
    *,
    sharpness: float = 1.0,
    group: list[int] | None = None,
    threads: int | None = None,
) -> SpanEvidence:
    """What there is to say about spans: the marks in ``said``, and what a fitted token ``model`` thinks of them.

    ``engine`` is over ``weighed``: the same corpus, with those who share a number in ``group`` counting as one.
    """
    from quorate.infer.kernels.spans import word_support

    likely = engine.likely_spans(*loop.output_tables(model, weighed.cells, sharpness), _NOTED)
    found = find_candidates(said, likely, _LIKELY, group)
    words = np.zeros(len(found.start))
    if model.text is not None:
        _, first, inside, _ = said.tagset.span_labels
        rows = model.text.log_lik(log_mean)
        words = word_support(found.start, found.end, found.kind, weighed.word, rows, first, inside, said.tagset.outside)
    return SpanEvidence(said, found, SpanEngine(found, prior_log_odds(found.likely, words), threads=threads))


def fit_spans(evidence: SpanEvidence) -> loop.Fit:
    """What every annotator does with spans, learned from all candidates."""
    model = SpanModel(Responses.of(len(evidence.encoded.annotators)))
    return loop.more_passes(evidence.engine, model, evidence.candidates, _PASSES, tolerance=_TOLERANCE)
