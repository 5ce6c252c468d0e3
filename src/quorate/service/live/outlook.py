"""What more labels should add, drawn from the model: worked out with a fit, where that takes little beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quorate.active.suggest import next_labels
from quorate.corpus.records import Tag
from quorate.errors import QuorateError
from quorate.estimators.layered import LayeredModel
from quorate.formats.layers import Layers

LABELS = 100
_MOST_DOCUMENTS = 2_000


def outlook_of(
    model: LayeredModel, layers: Layers, known: Mapping[str, Mapping[str, Sequence[Tag]]]
) -> dict[str, Any] | None:
    """How F1 should change by the best hundred labels, and whether to stop; ``None`` of too much to draw for."""
    if len(layers.corpus) > _MOST_DOCUMENTS:
        return None
    try:
        advice = next_labels(layers, model, n=LABELS, known=known)
    except QuorateError:  # nobody to ask, or a model that cannot tell
        return None
    change = advice.change
    figures = {name: round(float(getattr(change, name)), 5) for name in ("mean", "low", "high", "all_round")}
    verdict = {"stop": advice.stop, "nobody_left": advice.nobody_left, "reason": advice.reason}
    return {"labels": change.labels, **figures, **verdict}
