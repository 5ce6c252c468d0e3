"""The consensus of a fitted model: that of tokens and, where the settings ask for it, then that of spans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.crowd import Cells
from quorate.crowd.sharing import Sharing
from quorate.model import loop
from quorate.model.candidates import Candidates
from quorate.model.engines.protocol import Decoded, Engine
from quorate.model.engines.threads import cell_counts_of
from quorate.model.parts.annotators import Annotators
from quorate.model.settings import Decode, Settings
from quorate.model.short_forms import evidence_with_short_forms
from quorate.model.span_model import SpanModel
from quorate.model.spans import (
    Heard,
    SpanEvidence,
    by_label,
    decode_spans,
    fit_spans,
    given_spans,
    likely_spans,
    mixed,
    needs_spans,
    span_evidence,
)

if TYPE_CHECKING:
    from quorate.result.calibration import Calibration

__all__ = ["Concluded", "SpanProbabilities", "candidate_probabilities", "conclude", "counted_again", "with_copies"]


class Concluded(NamedTuple):
    """What is given out, and what it was read off: the token ``model`` and more.

    ``evidence`` is ``None`` where only tokens were looked at, ``spans`` where no model of spans was.
    """

    decoded: Decoded
    model: loop.Model
    evidence: SpanEvidence | None = None
    spans: SpanModel | None = None


class SpanProbabilities(NamedTuple):
    """The spans that may be true, and the probability of each as it is given out.

    ``places`` are the same spans as they are chosen, perhaps whatever their type, by the probabilities ``chosen_by``.
    """

    candidates: Candidates
    probability: NDArray[np.float64]
    places: Candidates
    chosen_by: NDArray[np.float64]


def conclude(
    engine: Engine,
    model: loop.Model,
    heard: Heard,
    settings: Settings,
    calibration: Calibration,
    *,
    spans: SpanModel | None = None,
    posteriors: bool = True,
) -> Concluded:
    """The consensus that the settings ask for; ``engine`` is over what the token model hears, with known labels.

    Without ``spans``, what annotators do with spans is learned from these documents first, and what the token model
    knows of them is counted again.
    """
    heard = heard.for_evidence(settings.evidence)
    said, weighed = heard.said, heard.weighed
    on_spans = needs_spans(settings, said.tagset)
    by_spans = on_spans and settings.by_spans
    if by_spans:
        model = counted_again(engine, model, heard, calibration.sharpness) if spans is None else spans.informs(model)
    tokens = loop.decode(
        engine,
        model,
        weighed.cells,
        by_token=settings.decode is Decode.TOKEN,
        sharpness=calibration.sharpness,
        posteriors=posteriors or on_spans,  # other labels than the token model's may be given out
    )
    if not on_spans:
        return Concluded(tokens, model)
    if by_spans:
        spans = None if spans is None else spans.grown(len(said.annotators))
        evidence, learned = evidence_with_short_forms(
            engine, model, heard, calibration.sharpness, spans=spans, span_sharpness=calibration.span_sharpness
        )
        spans = spans or replace(learned, annotators=model.annotators)
    else:
        evidence = span_evidence(model, heard, likely_spans(engine, model, heard, calibration.sharpness))
        spans = None
    decoded = decode_spans(evidence, spans, tokens, settings, calibration.span_sharpness, calibration.spans)
    if not settings.by_tokens:
        decoded = decoded._replace(cells=cell_counts_of(weighed, decoded.posterior))
    return Concluded(decoded if posteriors else decoded.of_path_alone(), model, evidence, spans)


def counted_again(engine: Engine, model: loop.Model, heard: Heard, sharpness: float = 1.0) -> loop.Model:
    """The token model with the mistakes of annotators as a consensus on spans has them; ``engine`` as above.

    Where bounds are vague, the token model's own consensus is much the worse one to learn from who errs how. Words stay
    as they are: what they say has a part in the consensus on spans, and would confirm itself. With a tagger all does:
    that consensus does not hear it, and would hold what it alone has found against it, and against who found it too.
    """
    if heard.has_tagger:
        return model
    evidence = span_evidence(model, heard, likely_spans(engine, model, heard, sharpness))
    encoded, candidates, sets, clamped = evidence
    tokens = loop.posteriors(engine, model, heard.weighed.cells, sharpness)
    of_labels = by_label(candidates, sets.posterior(fit_spans(evidence)).true, encoded.tagset, encoded.n_tokens)
    by_tokens_alone = np.repeat(clamped | (np.diff(candidates.pair_start) == 0), np.diff(encoded.doc_start))
    posterior = np.where(by_tokens_alone[:, None], tokens, mixed(of_labels, tokens))
    counts = model.temper * cell_counts_of(heard.weighed, posterior)
    return replace(model, annotators=model.annotators.updated(heard.weighed.cells, counts))


def candidate_probabilities(
    engine: Engine,
    model: loop.Model,
    heard: Heard,
    settings: Settings,
    calibration: Calibration,
    spans: SpanModel | None,
) -> SpanProbabilities:
    """The spans that may be true, and how likely each is; see :func:`conclude`."""
    heard = heard.for_evidence(settings.evidence)
    informed = model if spans is None else spans.informs(model)
    learned = None if spans is None else spans.grown(len(heard.said.annotators))
    if learned is None:
        evidence = span_evidence(informed, heard, likely_spans(engine, informed, heard, calibration.sharpness))
    else:
        evidence, _ = evidence_with_short_forms(engine, informed, heard, calibration.sharpness, spans=learned)
    given = given_spans(evidence, learned, settings, calibration.span_sharpness)
    chosen_by = given.true if settings.dialled else given.stated
    return SpanProbabilities(evidence.candidates, calibration.spans(given.true), evidence.candidates, chosen_by)


def with_copies(sharing: Sharing, cells: Cells, counts: NDArray[np.float64], annotators: Annotators) -> Annotators:
    """With what each copy said for itself (``counts [G, J]`` of all): the model heard the first of them alone, for all.

    In a consensus these rows have no part, as long as another one speaks for them.
    """
    mine = np.isin(cells.annotator, list(sharing.speaker))
    if not mine.any():
        return annotators
    own = cells._replace(annotator=cells.annotator[mine], previous=cells.previous[mine], label=cells.label[mine])
    return annotators.changed(own, counts[mine], 1.0)
