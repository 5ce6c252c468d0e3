"""One model for annotations in layers: an estimator for each layer, with the surface of an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus
from quorate.errors import InputError, NotFittedError, SettingsError, knows_its_options
from quorate.estimators.base import ProgressCallback
from quorate.estimators.bsc import BSC
from quorate.estimators.capabilities import Saves, Updates
from quorate.estimators.crf_ma import CRFMA
from quorate.estimators.voting import MajorityVote
from quorate.formats.layering import Layer
from quorate.formats.layers import Layers
from quorate.formats.notes import some
from quorate.model.prepared import Known
from quorate.result.annotators import AnnotatorSummaries
from quorate.result.layers import LayeredResult
from quorate.storage import model_files

KnownInLayers = Literal["inline"] | Mapping[str, Known] | None
"""Known labels: none, the documents' own gold, or by layer what a fit of it takes as known."""

_SHARED = ("version", "inputs", "documents", "tokens", "method")  # of what a fit tells: the same in all layers


class LayeredModel:
    """An estimator for each layer of annotations whose spans overlap (:func:`quorate.read_layers` gives them).

    ``estimator`` is what every layer gets one of, :class:`quorate.BSC` with its defaults unless given. A layer in which
    no annotator marks anything, and no known label does, is left out: there is nothing to combine.

    After ``fit``: ``result_`` (the consensus in all layers), ``models_`` (by layer), ``layers_`` (which labels each
    takes, so that ``quorate.read_layers(path, layers=model.layers_)`` deals new documents in the same way),
    ``annotators_`` (by layer) and ``meta_`` (what belongs to all, and ``layers`` with what belongs to each).

    >>> from quorate import Document
    >>> inner = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-LOC", "O")})])
    >>> outer = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-ORG", "I-ORG")})])
    >>> model = LayeredModel(BSC("cm", max_iter=5)).fit({"LOC": inner, "ORG": outer})
    >>> [span.label for span in model.result_["1"].spans]
    ['LOC', 'ORG']
    """

    models_: dict[str, BSC | CRFMA | MajorityVote]
    layers_: dict[str, Layer]

    def __init__(self, estimator: BSC | CRFMA | MajorityVote | None = None) -> None:
        self.estimator = BSC() if estimator is None else estimator

    @classmethod
    def of(cls, model: BSC | CRFMA | MajorityVote | LayeredModel) -> LayeredModel:
        """A fitted model with its layers; one that has none is the model of the only layer, which has no name."""
        if isinstance(model, LayeredModel):
            return model
        alone = cls(model)
        alone.models_, alone.layers_ = {"": model}, {"": Layer(frozenset(), 0)}
        return alone

    @knows_its_options
    def fit(
        self,
        layers: Mapping[str, Corpus],
        *,
        known: KnownInLayers = None,
        progress: ProgressCallback | None = None,
        history: LayeredModel | None = None,
    ) -> Self:
        """Learn from every layer by itself; returns self.

        ``known`` is ``"inline"`` for the documents' own gold, or by layer what a fit takes as known. ``history`` is a
        model of an earlier project: what it learned in a layer of the same name is the prior here (of one without
        layers, what it learned at all).
        """
        given = Layers.of(layers)
        if history is not None and not {"", *given} & set(history.models_):
            raise SettingsError(
                f"the history has layers {some(list(history.models_), 5)}, and the documents are in "
                f"{some(list(given), 5)}: none is in both (leave it out)"
            )
        fitted: dict[str, BSC | CRFMA | MajorityVote] = {}
        for name, corpus in given.items():
            certain = known_in(known, name)
            if name in given.marked or _marks(corpus, certain):
                model = type(self.estimator)(**self.estimator.get_params())
                fitted[name] = model.fit(corpus, known=certain, progress=progress, **_past(history, name, model))
        self.models_, self.layers_ = fitted, {name: given.held[name] for name in fitted}
        return self

    @knows_its_options
    def combine(self, layers: Mapping[str, Corpus]) -> LayeredResult:
        """The consensus on other documents, with what was learned in each layer."""
        return LayeredResult({name: self.models_[name].combine(corpus) for name, corpus in self.own(layers)})

    @knows_its_options
    def update(self, layers: Mapping[str, Corpus], *, known: KnownInLayers = None, passes: int = 0) -> Self:
        """Go on from the fit in every layer, as :meth:`quorate.BSC.update` does; returns self."""
        for name, corpus in self.own(layers):
            model = self.models_[name]
            if not isinstance(model, Updates):
                raise SettingsError(f"method {model.method!r} cannot go on from a fit (fit again with all documents)")
            model.update(corpus, known=known_in(known, name), passes=passes)
        return self

    @property
    def result_(self) -> LayeredResult:
        """The consensus."""
        self._check_fitted()
        return LayeredResult({name: model.result_ for name, model in self.models_.items()})

    @property
    def single(self) -> BSC | CRFMA | MajorityVote | None:
        """The model, where there is a single layer; ``None`` where there are several."""
        self._check_fitted()
        return next(iter(self.models_.values())) if len(self.models_) == 1 else None

    @property
    def settings_(self) -> dict[str, Any]:
        """The method, and the settings of every layer."""
        self._check_fitted()
        method = next(iter(self.models_.values())).settings_["method"]
        return {"method": method, "layers": {name: model.settings_ for name, model in self.models_.items()}}

    @property
    def annotators_(self) -> dict[str, AnnotatorSummaries]:
        """What is known about each annotator, by layer."""
        self._check_fitted()
        return {name: model.annotators_ for name, model in self.models_.items()}

    @property
    def meta_(self) -> dict[str, Any]:
        """What is worth keeping with the output: what belongs to all layers, and ``layers`` with what belongs to each.

        ``known`` counts tokens with known labels, in whichever layers.
        """
        self._check_fitted()
        metas = {name: model.meta_ for name, model in self.models_.items()}
        first = next(iter(metas.values()))
        shared = {name: first[name] for name in _SHARED if name in first}
        own = {name: {key: each[key] for key in each if key not in shared} for name, each in metas.items()}
        return {**shared, "known": max(each["known"] for each in metas.values()), "layers": own}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the estimator that every layer has one of."""
        return self.estimator.get_params(deep)

    def set_params(self, **values: Any) -> Self:
        """Change parameters in every layer; returns self."""
        for model in (self.estimator, *getattr(self, "models_", {}).values()):
            model.set_params(**values)
        return self

    @knows_its_options
    def save(self, path: str | Path, *, documents: bool = True) -> None:
        """Write what was learned to a file, for :func:`quorate.load`, with the ``documents`` or without."""
        model_files.save(self.stored(documents=documents), path)

    def stored(self, *, documents: bool = True) -> model_files.Stored:
        """What was learned, as a file holds it: the arrays of each layer under its number."""
        self._check_fitted()
        heads: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[np.float64]] = {}
        for number, (name, model) in enumerate(self.models_.items()):
            if not isinstance(model, Saves):
                raise SettingsError(f"method {model.method!r} has nothing to save")
            own = model.stored(documents=documents)
            layer = self.layers_[name]
            heads.append({"name": name, "labels": sorted(layer.labels), "depth": layer.depth, "model": own.meta})
            arrays |= {f"{number}/{key}": array for key, array in own.arrays.items()}
        return model_files.Stored({"estimator": "LayeredModel", "layers": heads}, arrays)

    @classmethod
    def loaded(cls, stored: model_files.Stored) -> Self:
        """From what :meth:`stored` gave."""
        models: dict[str, BSC | CRFMA | MajorityVote] = {}
        layers: dict[str, Layer] = {}
        for number, head in enumerate(model_files.layer_heads(stored.meta)):
            prefix = f"{number}/"
            own = {key.removeprefix(prefix): each for key, each in stored.arrays.items() if key.startswith(prefix)}
            models[head["name"]] = _single(model_files.Stored(head["model"], own))
            layers[head["name"]] = Layer(frozenset(head["labels"]), head["depth"])
        model = cls(next(iter(models.values())))
        model.models_, model.layers_ = models, layers
        return model

    def __repr__(self) -> str:
        return f"LayeredModel({self.estimator!r})"

    def own(self, layers: Mapping[str, Corpus]) -> list[tuple[str, Corpus]]:
        """The corpora of the model's layers; :class:`InputError` if these are others."""
        self._check_fitted()
        given = Layers.of(layers)
        if not set(self.models_) <= set(given):
            raise InputError(
                f"the documents are in layers {some(list(given), 5)}, and the model has {some(list(self.models_), 5)} "
                "(read them with quorate.read_layers(…, layers=model.layers_))"
            )
        return [(name, given[name]) for name in self.models_]

    def _check_fitted(self) -> None:
        if not hasattr(self, "models_"):
            raise NotFittedError("this model has not been fitted yet (call fit first)")


def restored_from(stored: model_files.Stored) -> BSC | CRFMA | LayeredModel:
    """The model that a file keeps; ``ValueError`` and its like if it keeps none."""
    return LayeredModel.loaded(stored) if stored.meta["estimator"] == "LayeredModel" else _single(stored)


def _single(stored: model_files.Stored) -> BSC | CRFMA:
    return (CRFMA.loaded if stored.meta["estimator"] == "CRFMA" else BSC.of_file)(stored)


def known_in(known: KnownInLayers, name: str) -> Known:
    """What is known in a layer.

    >>> known_in({"ORG": {"1": ("O",)}}, "LOC") is None
    True
    """
    if known is None or isinstance(known, str):
        return known
    return known.get(name)


def _marks(corpus: Corpus, known: Known) -> bool:
    """Whether a known label marks a span, where no annotator does."""
    if known is None:
        return False
    sequences = [document.gold or () for document in corpus] if isinstance(known, str) else known.values()
    return any(tag not in (None, "O") for tags in sequences for tag in tags)


def _past(history: LayeredModel | None, name: str, model: BSC | CRFMA | MajorityVote) -> dict[str, Any]:
    """The option of a layer's fit for its history: that of its name, or that of a model without layers."""
    past = None if history is None else history.models_.get(name, history.models_.get(""))
    if past is None:
        return {}
    if not isinstance(past, Updates) or not isinstance(model, Updates):
        raise SettingsError(f"layer {name!r} has no annotators that a history could be of (leave it out)")
    return {"history": past}
