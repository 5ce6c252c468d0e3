"""What is reported beside a consensus: agreement, who can be trusted with what, and spans that must not overlap."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from quorate.corpus.spans import CharSpan
from quorate.evaluate.describe import agreement_of
from quorate.result.annotators import AnnotatorSummary
from quorate.result.habits import SpanHabits
from quorate.result.layers import LayeredResult
from quorate_serve.live.collected import Collected, Overlap
from quorate_serve.live.fitting import Fitted, Row

_MOST_NAMED = 20  # overlaps, and documents
_SHARES = {
    **{name: name for name in ("found", "exact", "invented", "coverage")},
    "confirmed": "precision",  # by the consensus: it is no measurement
}


def counts_of(rows: Mapping[int, Row]) -> dict[str, int]:
    """How much there is: documents with a consensus, labels (documents by annotators), spans, and what is decided.

    >>> counts_of({1: Row([], 0.9, 3, True), 2: Row([{"start": 0, "end": 3, "label": "PER"}], 0.8, 2, False)})
    {'documents': 2, 'labels': 5, 'spans': 1, 'known': 1}
    """
    every = rows.values()
    return {
        "documents": len(rows),
        "labels": sum(row.labels for row in every),
        "spans": sum(len(row.spans) for row in every),
        "known": sum(row.known for row in every),
    }


def overlaps_of(collected: Collected) -> dict[str, Any]:
    """Spans that overlap although they must not, and documents in which they overlap as hardly anywhere else."""
    every = [(number, one) for number, own in sorted(collected.overlaps.items()) for one in own]
    rare = collected.rare
    return {
        "overlaps": {
            "documents": len(collected.overlaps),
            "some": [_overlap(number, one) for number, one in every[:_MOST_NAMED]],
        },
        "rare": {"documents": len(rare), "some": rare[:_MOST_NAMED]},
    }


def _overlap(number: int, one: Overlap) -> dict[str, Any]:
    values = {"document": number, "person": one.person.rpartition(" ")[2], "span": _span(one.span)}
    return values | {"other": None if one.other is None else _span(one.other)}


def _span(span: CharSpan) -> dict[str, Any]:
    return {"start": span.start, "end": span.end, "label": span.label}


def summary_of(fitted: Fitted, result: LayeredResult) -> dict[str, Any]:
    """What is told of a fit."""
    return {
        "agreement": _number(agreement_of(result)),
        "annotators": [
            {"layer": layer, **_annotator(one)}
            for layer, own in result.annotators.items()
            for one in own
            if one.n_labels
        ],
        "sources": [_sources(layer, one.sources) for layer, one in result.layers.items()],
        "seconds": round(fitted.seconds, 3),
    }


def _annotator(one: AnnotatorSummary) -> dict[str, Any]:
    return {
        "person": one.name,
        "tags": one.n_labels,
        "accuracy": _number(one.accuracy),
        "informativeness": _number(one.informativeness),
        **_habits(one.habits),
        "types": {kind: _habits(habits) for kind, habits in one.by_type.items()},
    }


def _habits(habits: SpanHabits) -> dict[str, Any]:
    """How many spans are behind them, and each share with its 95 % interval; ``None`` where there is none."""
    values: dict[str, Any] = {"spans": round(habits.spans, 1), "marks": round(habits.marks, 1)}
    for name, what in _SHARES.items():
        share = _number(habits.share(what))
        values[name] = None if share is None else [share, *map(_number, habits.interval(what))]
    return values


def _sources(layer: str, sources: Any) -> dict[str, Any]:
    together = [{"people": list(group.names), "votes": round(group.votes, 2)} for group in sources.together]
    return {"layer": layer, "together": together, "abstaining": list(sources.abstaining)}


def _number(value: float | None) -> float | None:
    """A number that JSON holds."""
    return None if value is None or not math.isfinite(value) else round(float(value), 4)
