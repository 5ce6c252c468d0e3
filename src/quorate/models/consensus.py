"""The consensus of a fitted model: that of tokens and, where the settings ask for it, then that of spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.encode.encoded import Encoded
from quorate.encode.sharing import Sharing
from quorate.infer import loop
from quorate.infer.candidates import Candidates
from quorate.infer.engines.protocol import Decoded, Engine
from quorate.infer.engines.threads import cell_counts_of
from quorate.infer.spans import SpanModel
from quorate.models.settings import Decode, Evidence, Settings
from quorate.models.spans import SpanEvidence, decode_spans, fit_spans, given_spans, needs_spans, span_evidence

if TYPE_CHECKING:
    from quorate.result.calibration import Calibration

__all__ = ["Concluded", "candidate_probabilities", "conclude"]


class Concluded(NamedTuple):
    """What is given out, and what it was read off.

    ``evidence`` is ``None`` where only tokens were looked at, ``spans`` where no model of spans was.
    """

    decoded: Decoded
    evidence: SpanEvidence | None = None
    spans: SpanModel | None = None


def conclude(
    engine: Engine,
    model: loop.Model,
    said: Encoded,
    weighed: Encoded,
    settings: Settings,
    calibration: Calibration,
    *,
    spans: SpanModel | None = None,
    known: NDArray[np.int32] | None = None,
    sharing: Sharing | None = None,
    posteriors: bool = True,
    threads: int | None = None,
) -> Concluded:
    """The consensus that the settings ask for, of what was ``said``.

    ``engine`` is over ``weighed``: the same corpus, in which what annotators have in common (``sharing``) counts once,
    and with the ``known`` labels. Without ``spans``, what annotators do with spans is learned from these documents
    first.
    """
    on_spans = needs_spans(settings, said.tagset)
    tokens = loop.decode(
        engine,
        model,
        weighed.cells,
        by_token=settings.decode is Decode.TOKEN,
        sharpness=calibration.sharpness,
        posteriors=posteriors or on_spans,  # other labels than the token model's may be given out
    )
    if not on_spans:
        return Concluded(tokens)
    evidence = span_evidence(
        said,
        weighed,
        engine,
        model,
        sharpness=calibration.sharpness,
        known=known,
        sharing=sharing,
        threads=threads,
    )
    if settings.evidence is Evidence.SPANS:
        learned = spans or fit_spans(evidence, calibration.span_sharpness)
        spans = learned.grown(len(said.annotators))
    else:
        spans = None
    decoded = decode_spans(evidence, spans, tokens, settings, calibration.span_sharpness, calibration.spans)
    if settings.evidence is not Evidence.TOKENS:
        decoded = decoded._replace(cells=cell_counts_of(weighed, decoded.posterior))
    return Concluded(decoded if posteriors else decoded.of_path_alone(), evidence, spans)


def candidate_probabilities(
    engine: Engine,
    model: loop.Model,
    said: Encoded,
    weighed: Encoded,
    settings: Settings,
    calibration: Calibration,
    *,
    spans: SpanModel | None,
    sharing: Sharing | None = None,
    threads: int | None = None,
) -> tuple[Candidates, NDArray[np.float64]]:
    """The spans that may be true, and the probability of each as it is given out; see :func:`conclude`."""
    evidence = span_evidence(
        said, weighed, engine, model, sharpness=calibration.sharpness, sharing=sharing, threads=threads
    )
    learned = None if spans is None else spans.grown(len(said.annotators))
    given = given_spans(evidence, learned, settings, calibration.span_sharpness)
    return evidence.candidates, calibration.spans(given.true)
