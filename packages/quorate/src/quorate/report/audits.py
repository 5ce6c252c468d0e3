"""The audit in a report: what a person found in the documents checked, or which documents are to be checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import audit as audits
from quorate.audit.audited import Scores
from quorate.audit.checked import read_checked, read_plan
from quorate.audit.claims import Claims, spans_of
from quorate.audit.estimate import Estimate
from quorate.audit.plan import TELLS_LITTLE, Plan
from quorate.audit.recalibration import recalibrated
from quorate.audit.sentences import Outcome, enough_seen, headline, notes
from quorate.corpus.tags import Scheme
from quorate.errors import InputError
from quorate.report.content import Audit, AuditScores, Bins, Recalibrated, ToCheck
from quorate.result.result import Result

Floats = NDArray[np.float64]

_BINS, _BINS_OF_DOCUMENTS = 10, 5  # documents are far fewer than spans and tokens


def read_audit(
    result: Result, paths: Sequence[str | Path], *, max_size: int | str | None = None
) -> audits.Audit | Plan:
    """The audit in files: its plan if nothing is checked, else what was found.

    A plan that was drawn from another consensus is refused.
    """
    claims = Claims.of(result)
    plan = read_plan(paths, claims, max_size=max_size)
    checked = read_checked(paths, claims, max_size=max_size).tags
    if not any(name in checked for name in plan.ids):
        return plan
    return audits.result(claims, paths, plan=plan, max_size=max_size)


def check_drawn_from(result: Result, audit: audits.Audit | Plan) -> None:
    """Refuse an audit whose documents were drawn from another result."""
    plan = audit if isinstance(audit, Plan) else audit.plan
    if plan.claims.digest != Claims.of(result).digest:
        raise InputError(
            "this audit is of another consensus: its documents or tags differ (report on the consensus that it was "
            "drawn from, without known labels, or draw a new plan)"
        )


def to_check(audit: audits.Audit | Plan) -> ToCheck | None:
    """What is left to check; ``None`` if that is nothing."""
    plan, done = (audit, 0) if isinstance(audit, Plan) else (audit.plan, audit.n)
    if done == len(plan):
        return None
    key = f"{plan.claims.digest}-{plan.seed}-{'any' if plan.sequential else len(plan)}"
    if done or len(plan) == len(plan.claims):
        return ToCheck(plan.ids[done:], key, plan.sequential)
    width, ends = plan.expected_f1.width, plan.f1_without_mistakes[1:]
    return ToCheck(plan.ids, key, plan.sequential, width / 2, ends, tells_little=width > TELLS_LITTLE)


def audited(audit: audits.Audit) -> Audit:
    """What an audit found."""
    plan, outcome = audit.plan, Outcome.of(audit)
    rows = [_scores("", audit.scores)]
    if len(audit.by_type) > 1:
        rows += [_scores(kind, scores) for kind, scores in enough_seen(audit).items()]
    return Audit(
        checked=audit.n,
        documents=len(plan.claims),
        planned=len(plan),
        seed=plan.seed,
        scores=rows,
        headline=headline(outcome),
        notes=notes(outcome),
        reliability=list(_reliability(audit)),
    )


def _scores(name: str, scores: Scores) -> AuditScores:
    def known(estimate: Estimate) -> Sequence[float] | None:
        return None if math.isnan(estimate.value) else tuple(estimate)

    return AuditScores(name, known(scores.precision), known(scores.recall), known(scores.f1), scores.seen)


def _reliability(audit: audits.Audit) -> Iterator[Recalibrated]:
    """Of documents, spans and tokens checked: confidence before and after, against what was right."""
    claims, lines = audit.plan.claims, audit.recalibration
    kinds: dict[str, list[tuple[float, float, bool, float]]] = {"Whole documents": [], "Spans": [], "Tokens": []}
    sample, probability = audit.plan.documents[: audit.n].tolist(), audit.plan.probability(audit.n).tolist()
    for d, drawn in zip(sample, probability, strict=True):
        weight, tags, truth = 1 / drawn, claims.tags[d], audit.truth[claims.corpus[d].id]
        whole, tokens, spans = recalibrated(
            lines, float(claims.confidence[d]), claims.token_confidence[d], claims.spans[d]
        )
        gold = {span.bare for span in spans_of(truth, claims.scheme)}
        same = [tag == right for tag, right in zip(tags, truth, strict=True)]
        kinds["Whole documents"].append((float(claims.confidence[d]), whole, all(same), weight))
        kinds["Spans"] += [
            (span.sure, after.sure, span.bare in gold, weight)
            for span, after in zip(claims.spans[d], spans, strict=True)
        ]
        kinds["Tokens"] += [
            (float(before), float(after), right, weight)
            for before, after, right in zip(claims.token_confidence[d], tokens, same, strict=True)
        ]
    if claims.scheme is Scheme.PLAIN:
        kinds.pop("Spans")  # they are the tokens
    for name, rows in kinds.items():
        if rows:
            before, after, right, weight = np.array(rows, np.float64).T
            bins = _BINS_OF_DOCUMENTS if name == "Whole documents" else _BINS
            yield Recalibrated(
                name, *(weighted_bins(np.minimum(sure, 1.0), right, weight, bins=bins) for sure in (before, after))
            )


def weighted_bins(confidence: ArrayLike, right: ArrayLike, weight: ArrayLike, *, bins: int = 10) -> Bins:
    """Confidence against what was right, in bins of equal width; an answer stands for ``weight`` of its like.

    The numbers of a bin are of answers as they were seen; means and the error are weighted.

    >>> weighted_bins([0.75, 0.75], [True, False], [3.0, 1.0], bins=2)
    Bins(error=0.0, count=2, bins=[(0.5, 1.0, 2, 0.75, 0.75)], mean=(0.75, 0.75))
    """
    sure, hit, each = (np.asarray(values, np.float64) for values in (confidence, right, weight))
    edges = [b / bins for b in range(bins + 1)]
    place = np.searchsorted(edges[1:-1], sure)
    count = np.bincount(place, minlength=bins).tolist()
    total, sures, hits = (np.bincount(place, values, minlength=bins) for values in (each, each * sure, each * hit))
    whole = max(float(total.sum()), 1e-300)
    error = float(np.abs(sures - hits).sum()) / whole
    rows = [
        (edges[b], edges[b + 1], count[b], float(sures[b] / total[b]), float(hits[b] / total[b]))
        for b in range(bins)
        if count[b]
    ]
    return Bins(error, len(sure), rows, (float(sures.sum()) / whole, float(hits.sum()) / whole))
