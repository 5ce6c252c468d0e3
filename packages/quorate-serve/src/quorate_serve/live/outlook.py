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
    """What the best hundred labels should add to the expected score, and whether to stop.

    ``None`` where there is too much to draw for.
    """
    if len(layers.corpus) > _MOST_DOCUMENTS:
        return None
    try:
        advice = next_labels(layers, model, n=LABELS, known=known)
    except QuorateError:  # nobody to ask, or a model that cannot tell
        return None
    change = advice.change
    verdict = {"stop": advice.stop, "nobody_left": advice.nobody_left, "reason": advice.reason}
    return {"labels": change.labels, "mean": round(float(change.mean), 5), **verdict}
