"""A fit of :class:`quorate.BSC` in which places come first: where spans are, whatever their type.

The model of places is one of the same kind, for a corpus in which all types are one: whatever is chosen, learned,
updated or kept in a file of it is so as of any other. See :mod:`quorate.model.places`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Tag
from quorate.crowd.crowd import Crowd
from quorate.estimators.base import ProgressCallback
from quorate.model import loop
from quorate.model.consensus import SpanProbabilities
from quorate.model.engines.protocol import Decoded
from quorate.model.engines.threads import cell_counts_of
from quorate.model.places import known_places, places_of, typed_spans, with_types, without_types
from quorate.model.prepared import Prepared
from quorate.model.settings import AnnotatorModel, Evidence, Settings
from quorate.model.spans import clamped_documents, with_known
from quorate.result.result import Result
from quorate.taggers import Tagger

if TYPE_CHECKING:
    from quorate.estimators.bsc import BSC

__all__ = ["as_set", "candidates", "combined", "fitted", "typed", "updated"]

# What the model of places does otherwise than the one with types: its spans are passages, and a precision or a recall
# is that of spans with their types.
_OWN: dict[str, Any] = {
    "evidence": "passages",
    "probabilities": True,
    "checkpoint": None,
    "precision": None,
    "recall": None,
}
_SET_ANEW = ("decode", "n_jobs", "engine", "cluster")


def fitted(
    model: BSC, prepared: Prepared, settings: Settings, progress: ProgressCallback | None, history: BSC | None
) -> BSC | None:
    """The model of places, which chooses for itself what is left open; ``None`` where they do not come first."""
    if settings.evidence is not Evidence.PLACES:
        return None
    tagger = model.tagger
    if isinstance(tagger, Tagger) and not isinstance(tagger, type):
        tagger = None  # it was made for labels with types
    past = None if history is None else history.places_
    if past is not None and past.past.model is AnnotatorModel.SPAM:
        past = None  # of which no history can be made
    own = _OWN if past is None else {**_OWN, "annotator": past.past.model.value}
    places = type(model)(**{**model.get_params(), **own, "tagger": tagger})
    chosen = None if model.choice_ is None else model.choice_.places
    return places.fit_prepared(places_of(prepared, settings.invalid), progress, past, chosen)


def as_set(places: BSC, model: BSC) -> BSC:
    """The model of places, with what may have been set anew for its consensus, and for where it is made."""
    wanted = {name: getattr(model, name) for name in _SET_ANEW}
    if wanted == {name: getattr(places, name) for name in _SET_ANEW}:
        return places
    changed = copy(places).set_params(**wanted)
    if changed.decode != places.decode and changed.has_documents:
        vars(changed).pop("result_", None)
    return changed


def combined(places: BSC, corpus: Corpus, known: Mapping[str, Sequence[Tag]]) -> Result:
    """The places in a corpus, of which some labels may be ``known``."""
    return places.combine(without_types(corpus), known=known_places(known) or None)


def updated(places: BSC, corpus: Corpus, known: Mapping[str, Sequence[Tag]], passes: int) -> BSC:
    """The model of places, with what was said of those in a corpus; the one before stays as it is."""
    return copy(places).update(without_types(corpus), known=known_places(known) or None, passes=passes)


def typed(where: Result, tokens: Decoded, weighed: Crowd, known: NDArray[np.int32] | None) -> Decoded:
    """The consensus on places, with types as ``tokens``, that of the token model, has them.

    Documents of which labels are ``known`` stay as the token model, which is bound by them, has them.
    """
    found = with_types(where._decoded, tokens, weighed.tagset, where.tagset, weighed.doc_start)
    found = with_known(found, tokens, clamped_documents(weighed, known), weighed)
    return found._replace(cells=cell_counts_of(weighed, found.posterior))


def candidates(model: BSC, places: BSC, corpus: Corpus) -> SpanProbabilities | None:
    """The spans that may be true, each with its likeliest type, and the probability of each as it is given out."""
    told = places.span_probabilities(without_types(corpus))
    if told is None:
        return None
    found = told.candidates
    state = model.model_state()
    said = state.encoded(corpus)
    weighed = state.weighed(said)
    with closing(model._engine(corpus, weighed, None)) as engine:
        posterior = loop.posteriors(engine, model._model, weighed.cells, model.calibration_.sharpness)
    kind, share = typed_spans(found.start, found.end, found.kind, posterior, model.tagset_, places.tagset_)
    return told._replace(candidates=found._replace(kind=kind), probability=told.probability * share)
