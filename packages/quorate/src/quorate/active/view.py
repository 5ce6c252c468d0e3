"""Documents as a fitted model sees them: the uncertainty of each, and the expected information of anybody's labels.

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
    merged_numbers,
    share_with_one_reading,
    token_entropy,
    unlabelled,
)
from quorate.corpus.profiles import Kind, Profile
from quorate.corpus.records import Corpus, Tag
from quorate.corpus.tags import TagSet
from quorate.crowd.crowd import Crowd
from quorate.errors import InputError, SettingsError
from quorate.estimators.capabilities import Advises
from quorate.estimators.layered import KnownInLayers, LayeredModel, known_in
from quorate.estimators.methods import DEFAULT_METHOD, estimator
from quorate.formats.layers import Layers
from quorate.model.engines.factory import Engines
from quorate.model.fit import Fitted
from quorate.model.kernels.cores import available_threads
from quorate.model.prepared import Known, known_tags
from quorate.model.settings import check_number
from quorate.result.result import Result
from quorate.taggers.loop import TAGGER

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

BITS = 1 / np.log(2)
"""How many bits a nat is."""


class View:
    """A layer of the documents as its model sees it; ``known`` are its known labels.

    ``crowd`` has the changes of the fit, so that duplicates are one annotator. ``reducible [D]`` is the share of the
    uncertainty that labels can reduce.
    """

    def __init__(self, corpus: Corpus, model: Advises, known: Mapping[str, Sequence[Tag]], layer: str = "") -> None:
        self.layer, self.model, fitted = layer, model, model.fitted_
        certain = model.decided_documents() | whole(known)
        self.decided = settled(corpus, {**fitted.profiles, **corpus.profiles}, certain)
        legible = _legible(known, fitted.tagset)
        self.crowd = fitted.crowd(corpus, legible)
        self.result = model.combine(corpus, known=legible)
        self.unsure = uncertainty_of(self.result, fitted, self.crowd, model.engines())
        ambiguous = self.result.ambiguity.tokens
        self.reducible = share_with_one_reading(self.result.posterior, ambiguous, self.crowd.doc_start)

    @property
    def names(self) -> list[str]:
        """The annotators who can be asked: all but those that a change of the crowd, or a tagger, has added."""
        added = {*self.model.fitted_.helpers, TAGGER}
        return [name for name in self.crowd.annotators if name not in added]

    def numbers(self, names: Sequence[str]) -> Integers:
        """The numbers of annotators in the crowd; a new one has the next number, which is the average annotator's."""
        merged = merged_numbers(self.crowd.notes, len(self.crowd.annotators))
        number = dict(zip(self.crowd.annotators, merged.tolist(), strict=True))
        return np.array([number.get(name, len(merged)) for name in names], np.int64)

    def gains(self, doc: Integers, who: Integers, pool: Sequence[str]) -> Floats:
        """``[U]`` The expected information, in nats, of labels of documents by annotators, counted along ``pool``."""
        matrices = matrices_of(self.model.fitted_.model.annotators, self.numbers(pool).tolist())
        decoded, doc_start, tagset = self.result._decoded, self.crowd.doc_start, self.result.tagset
        threads = self.model.engines().threads or available_threads()
        gains = expected_information(decoded, doc_start, self.unsure, matrices, tagset, doc, who, threads=threads)
        return gains * self.reducible[doc]

    def unlabelled(self, doc: Integers, who: Integers, pool: Sequence[str]) -> Flags:
        """``[U]`` Which of such pairs have no labels: neither by this annotator nor by a duplicate."""
        return unlabelled(self.crowd, doc, self.numbers(pool)[who])

    def drawn(self, asked: Sequence[tuple[int, int]], names: Sequence[str], seed: int) -> Draws:
        """The tallies of this layer with labels of some (document, annotator) pairs, drawn many times."""
        own = self.numbers(names)
        pairs = [(d, int(own[k])) for d, k in asked]
        return draw(self.result, self.model.fitted_, self.crowd, pairs, self.model.engines(), seed=seed)


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
    """The layers to look at: those of the model, or those in which somebody marks something."""
    layers = Layers.alone(corpus) if isinstance(corpus, Corpus) else Layers.of(corpus)
    return Layers(dict(model.own(layers)), layers.held) if isinstance(model, LayeredModel) else layers.marked


def together(views: Sequence[Uncertainty]) -> Uncertainty:
    """The uncertainty of all layers: they are independent, so that everything adds up but the length."""
    log_probability, _, token, sequence = (np.sum(column, axis=0) for column in zip(*views, strict=True))
    return Uncertainty(log_probability, views[0].length, token, sequence)


def _fitted(corpus: Corpus, known: Mapping[str, Sequence[Tag]], cluster: Any) -> object:
    if not corpus.annotators:
        raise InputError("no document has a label yet (have some labelled, or give a --model)")
    return estimator(DEFAULT_METHOD, cluster=cluster).fit(corpus, known=known)


def whole(known: Mapping[str, Sequence[Tag]]) -> set[str]:
    """The documents of which every label is known."""
    return {name for name, tags in known.items() if None not in tags}


def settled(corpus: Corpus, profiles: Mapping[str, Profile], certain: set[str]) -> Flags:
    """``[D]`` Which documents need no label: they are ``certain``, or an expert has labelled them."""
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
    """:class:`SettingsError` unless what a document costs with an annotator is a number above 0."""
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
    """The known labels that a model has met."""
    return {name: tuple(tag if tag in tagset.reads else None for tag in tags) for name, tags in known.items()}


def uncertainty_of(result: Result, fitted: Fitted, crowd: Crowd, engines: Engines) -> Uncertainty:
    """The uncertainty of a consensus on a crowd of :meth:`Fitted.crowd`."""
    with closing(engines.over(crowd, text=fitted.settings.text)) as engine:
        evidence = fitted.consensus(engine, crowd, None, engines, posteriors=False).evidence
        sequence = document_entropy(engine, fitted, crowd, evidence)
    tokens = token_entropy(result._kept_posterior(), crowd.doc_start)
    return Uncertainty(result._decoded.log_probability, np.diff(crowd.doc_start), tokens, sequence)
