"""What commands share about layers: models that have some, documents for them, and lines told by layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import quorate
from quorate.errors import SettingsError

if TYPE_CHECKING:
    from quorate.cli.common import LayeredReading
    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.layered import LayeredModel
    from quorate.formats.layers import Layers


def loaded(path: str) -> LayeredModel:
    """The model in a file; one without layers is that of a single layer, which has no name."""
    from quorate.estimators.layered import LayeredModel

    return LayeredModel.of(quorate.load(path))


def documents_for(model: LayeredModel, reading: LayeredReading, inputs: list[str]) -> Layers:
    """New documents, in the layers that a model has."""
    from quorate.formats.layers import Layers

    if model.single is None:
        return reading.layers(inputs, into=model.layers_)
    found = reading.layers(inputs)
    if found.single is None:
        raise SettingsError(
            f"the model has no layers, and --layers auto finds {len(found)} (fit it with them, or leave that out)"
        )
    return Layers.alone(found.single)


def of_layer(model: LayeredModel, name: str | None) -> BSC | CRFMA:
    """The model of one layer; which one must be said where there are several."""
    names = list(model.models_)
    if name is None and len(names) == 1:
        name = names[0]
    if name not in names:
        raise SettingsError(f"a model in layers {', '.join(filter(None, names)) or 'of no name'} (say which: --layer)")
    return model.models_[name]  # type: ignore[return-value]  # from a file, which holds no votes


def by_layer(lines: Mapping[str, Iterable[str]]) -> list[str]:
    """Lines with the name of their layer before them, where there are several.

    >>> by_layer({"LOC": ["2 spans"], "ORG": ["1 span"]})
    ['layer LOC: 2 spans', 'layer ORG: 1 span']
    """
    several = len(lines) > 1
    return [f"layer {name}: {line}" if several else line for name, own in lines.items() for line in own]
