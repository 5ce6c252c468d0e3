"""Documents as a fitted model sees them: what it does not know of each, and what anybody's labels should tell.

Both advice on what to have labelled next (:mod:`quorate.active.suggest`) and the queue of people who label
(:mod:`quorate.active.assignment`) are made of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from quorate.active.stopping import Draws, draw
from quorate.active.strategies import (
    Uncertainty,
    document_entropy,
    expected_information,
    matrices_of,
    share_with_one_reading,
    token_entropy,
)
from quorate.corpus.profiles import Kind, Profile
from quorate.corpus.records import Corpus, Tag
from quorate.corpus.tags import TagSet
from quorate.errors import InputError, SettingsError
from quorate.estimators.capabilities import Advises
from quorate.estimators.layered import KnownInLayers, LayeredModel, known_in
from quorate.estimators.methods import DEFAULT_METHOD, estimator
from quorate.estimators.updating import ModelState
from quorate.formats.layers import Layers
from quorate.model.consensus import conclude
from quorate.model.kernels.cores import available_threads
from quorate.model.prepared import Known, known_tags
from quorate.model.settings import check_number
from quorate.model.spans import Heard
from quorate.result.result import Result

__all__ = [
    "BITS",
    "View",
    "check_cost",
    "known_of",
    "layers_of",
    "left_out",
    "settled",
    "together",
    "uncertainty_of",
    "views_of",
    "whole",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

BITS = 1 / np.log(2)
"""How many bits a nat is."""


class View:
    """A layer of the documents as its model sees it; ``known`` are its known labels.

    ``encoded`` is what the model hears, in which copies are one annotator, and ``said`` what everybody said.
    """

    def __init__(self, corpus: Corpus, model: Advises, known: Mapping[str, Sequence[Tag]], layer: str = "") -> None:
        self.layer, self.model, self.encoded, self.state = layer, model, model.encoded(corpus), model.model_state()
        self.said = self.state.encoded(corpus)
        certain = model.decided_documents() | whole(known)
        self.decided = settled(corpus, {**self.state.profiles, **corpus.profiles}, certain)
        legible = _legible(known, self.state.tagset)
        self.result = model.combine(corpus, known=legible)
        self.unsure = uncertainty_of(self.state, corpus, self.result, legible)
        ambiguous = self.result.ambiguity.tokens
        self.told = share_with_one_reading(self.result.posterior, ambiguous, self.encoded.doc_start)

    def numbers(self, names: Sequence[str]) -> Integers:
        """The numbers of annotators here; whoever is new has the next one, which a model takes for the average.

        Copies have that of the one who speaks for them: where one of them was heard, another tells nothing.
        """
        number = {name: k for k, name in enumerate(self.encoded.annotators)}
        number |= {self.encoded.annotators[k]: first for k, first in self.state.sharing.speaker.items()}
        return np.array([number.get(name, len(self.encoded.annotators)) for name in names], np.int64)

    def gains(self, doc: Integers, who: Integers, pool: Sequence[str]) -> Floats:
        """``[U]`` The nats that labels of documents by annotators, counted along ``pool``, should tell."""
        matrices = matrices_of(self.state.output_model.annotators, self.numbers(pool).tolist())
        decoded, doc_start, tagset = self.result._decoded, self.encoded.doc_start, self.state.tagset
        threads = self.state.engines.threads or available_threads()
        gains = expected_information(decoded, doc_start, self.unsure, matrices, tagset, doc, who, threads=threads)
        return gains * self.told[doc]

    def drawn(self, asked: Sequence[tuple[int, int]], names: Sequence[str], seed: int) -> Draws:
        """What becomes of this layer with labels of some (document, annotator) pairs."""
        own = self.numbers(names)
        pairs = [(d, int(own[k])) for d, k in asked]
        return draw(self.result, self.state.output_model, self.encoded, pairs, self.model.combine, seed=seed)


def views_of(
    corpus: Corpus | Mapping[str, Corpus],
    model: Advises | LayeredModel | None,
    known: Known | KnownInLayers,
    cluster: Any = None,
) -> tuple[Corpus, list[View]]:
    """The documents, and the view of every layer by its model.

    Without a model, one is fitted by the default method, on a ``cluster`` if there is one.
    """
    layers = layers_of(corpus, model)
    views = []
    for name, layer in layers.items():
        certain = known_tags(layer, known_of(corpus, known, name))
        fitted = model.models_[name] if isinstance(model, LayeredModel) else model or _fitted(layer, certain, cluster)
        if not isinstance(fitted, Advises):
            raise SettingsError("a model of this kind cannot say what to ask for (fit one by another method)")
        views.append(View(layer, fitted, certain, name))
    return layers.corpus, views


def known_of(corpus: Corpus | Mapping[str, Corpus], known: Known | KnownInLayers, layer: str) -> Known:
    """What is known of a layer, or of a corpus without layers."""
    return known_in(cast(KnownInLayers, {"": known} if isinstance(corpus, Corpus) else known), layer)


def layers_of(corpus: Corpus | Mapping[str, Corpus], model: Advises | LayeredModel | None) -> Layers:
    """The layers that are looked at: those of the model, or those in which somebody marks something."""
    layers = Layers.alone(corpus) if isinstance(corpus, Corpus) else Layers.of(corpus)
    return Layers(dict(model.own(layers)), layers.held) if isinstance(model, LayeredModel) else layers.marked


def together(views: Sequence[Uncertainty]) -> Uncertainty:
    """What is not known of all layers: they are independent, so that everything adds up but the tokens."""
    log_probability, _, token, sequence = (np.sum(column, axis=0) for column in zip(*views, strict=True))
    return Uncertainty(log_probability, views[0].length, token, sequence)


def _fitted(corpus: Corpus, known: Mapping[str, Sequence[Tag]], cluster: Any) -> Advises:
    labelled = corpus.select(lambda document: bool(document.annotations) or document.id in known)
    if not any(document.annotations for document in labelled):
        raise InputError("no document has a label yet (have some labelled, or give a --model)")
    model = estimator(DEFAULT_METHOD, cluster=cluster)
    if not isinstance(model, Advises):
        raise SettingsError(f"method {DEFAULT_METHOD!r} cannot say what to ask for next")
    return model.fit(labelled, known=known)


def whole(known: Mapping[str, Sequence[Tag]]) -> set[str]:
    """The documents of which every label is known."""
    return {name for name, tags in known.items() if None not in tags}


def settled(corpus: Corpus, profiles: Mapping[str, Profile], certain: set[str]) -> Flags:
    """``[D]`` Which documents need nobody: they are ``certain``, or an expert has labelled them."""
    experts = {name: profile for name, profile in profiles.items() if profile.kind is Kind.EXPERT}
    return np.array(
        [
            document.id in certain
            or any(
                name in document.annotations and (expert.abstains or None not in document.annotations[name])
                for name, expert in experts.items()
            )
            for document in corpus
        ],
        np.bool_,
    )


def check_cost(name: str, price: float) -> None:
    """:class:`SettingsError` unless what a document costs with somebody can be divided by."""
    check_number(f"the cost of {name!r}", price)
    if not (np.isfinite(price) and price > 0):
        raise SettingsError(f"the cost of {name!r} must be a positive number, not {price:g}")


def left_out(corpus: Corpus, exclude: Iterable[str]) -> Flags:
    """``[D]`` Which documents are to be left out."""
    out = np.zeros(len(corpus), np.bool_)
    for name in exclude:
        try:
            out[corpus.position(name)] = True
        except KeyError:
            raise SettingsError(f"document {name!r}, which is to be left out, is not in the input") from None
    return out


def _legible(known: Mapping[str, Sequence[Tag]], tagset: TagSet) -> dict[str, tuple[Tag, ...]]:
    """The known labels that a model can read: of one that it has never met, it is not known what else may stand."""
    return {name: tuple(tag if tag in tagset.reads else None for tag in tags) for name, tags in known.items()}


def uncertainty_of(
    state: ModelState, corpus: Corpus, result: Result, known: Mapping[str, Sequence[Tag]]
) -> Uncertainty:
    """What is not known of the consensus that is given out."""
    said, certain = state.encoded(corpus), state.known_codes(corpus, known)
    weighed, settings, calibration = state.weighed(said), state.settings, result.calibration
    known_here = state.silence.closed(weighed, certain)
    with closing(state.engines.over(weighed, known=known_here, text=settings.text)) as engine:
        heard = Heard(state.sharing.heard(said), weighed, certain, state.sharing, state.engines.threads)
        found = conclude(engine, state.model, heard, settings, calibration, spans=state.spans)
        sequence = document_entropy(engine, weighed.cells, found, calibration)
    tokens = token_entropy(result._kept_posterior(), said.doc_start)
    return Uncertainty(result._decoded.log_probability, np.diff(said.doc_start), tokens, sequence)
