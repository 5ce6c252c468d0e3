"""A fit of :class:`quorate.BSC` in a model file: what was learned and, unless left out, the documents that it is of.

A document's counts come from the pass of some model (see :mod:`quorate.estimators.updating`). Of such a model, the
words' counts are kept where they differ from those of the model itself: an update touches few words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.profiles import Profile
from quorate.corpus.tags import TagSet
from quorate.crowd.changes import notes_from_plain, plain_notes
from quorate.crowd.crowd import AnnotatorPriors
from quorate.crowd.encode import n_previous
from quorate.estimators.updating import FitState
from quorate.model import loop
from quorate.model.build import arrays_of, parts_of, restored
from quorate.model.calibration import Calibration
from quorate.model.fit import Fitted
from quorate.model.history import restored_history
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.responses import Responses
from quorate.model.settings import Settings
from quorate.model.span_model import SpanModel
from quorate.result.annotators import AnnotatorSummaries
from quorate.storage import model_files
from quorate.storage.corpora import StoredCorpus
from quorate.storage.joined import JoinedCorpus
from quorate.storage.model_documents import kept_documents, packed_documents

if TYPE_CHECKING:
    from quorate.estimators.bsc import BSC

Arrays = dict[str, NDArray[Any]]

_WORDS, _ROWS, _GAVE = "words", "rows", "gave"


def stored(model: BSC, *, documents: bool) -> model_files.Stored:
    """All of a fit."""
    summary = model.annotators_.table  # after an update it is worked out here
    fitted = model.fitted_
    if documents and model.has_documents:  # those that nobody labelled may have words of their own
        fitted = fitted.with_names_of(model.kept_documents())
    made_of = _stored_fit_state(fitted, model._fit_state, documents=documents)
    meta = {
        "estimator": "BSC",
        "fit": model.meta_,
        "bounds": fitted.trace.bounds,
        "starts": fitted.trace.starts,
        "seconds": fitted.trace.seconds,
        "calibration": fitted.calibration.plain(),
        "tags": {"scheme": fitted.tagset.scheme.value, "labels": fitted.tagset.labels},
        "annotators": fitted.names,
        "profiles": {name: profile.plain() for name, profile in fitted.profiles.items()},
        "words": fitted.words,
        "notes": plain_notes(fitted.notes),
        "summarised": model.annotators_.names,
        **made_of.meta,
    }
    arrays: Arrays = dict(arrays_of(fitted.model))
    if fitted.spans is not None:
        arrays |= fitted.spans.grown(len(fitted.names)).arrays()
    arrays |= {"summary": summary, _GAVE: fitted.labels}
    return model_files.Stored(meta, {**arrays, **made_of.arrays})


def loaded(kind: type[BSC], file: model_files.Stored) -> BSC:
    """A model of this kind, as a file keeps it; ``ValueError`` and its like if it keeps none."""
    head, arrays = model_files.combination_head(file.meta), file.arrays
    fit = head["fit"]
    model = kind(**fit["settings"], method=fit.get("method"))
    fitted = _restored_fitted(head, arrays, model.checked_settings())
    names, annotators = head["summarised"], fitted.model.annotators
    numbers = [fitted.names.index(name) for name in names]
    summaries = AnnotatorSummaries.restored(names, arrays, annotators, fitted.tagset.span_types, numbers)
    model.go_on_from(fitted, _restored_fit_state(head, arrays, fitted, summaries.table), fit)
    model.annotators_ = summaries
    return model


def _restored_fitted(head: model_files.CombinationHead, arrays: Arrays, settings: Settings) -> Fitted:
    """What was learned; ``ValueError`` if it is not whole."""
    reason = loop.StopReason(head["fit"]["stopped"])
    tagset = TagSet(head["tags"]["scheme"], tuple(head["tags"]["labels"]))
    names, words = tuple(head["annotators"]), tuple(head["words"])
    spans = SpanModel(Responses.of(len(names))).restored(arrays) if "span_true" in arrays else None
    check_arrays(arrays, {_GAVE: (len(names),)}, counts=True)
    blank = Fitted(
        model=loop.Model(*parts_of(settings, tagset, len(names), words, AnnotatorPriors()), settings.temper),
        spans=spans,
        calibration=Calibration.of(head["calibration"]),
        settings=settings,
        tagset=tagset,
        names=names,
        words=words,
        profiles={name: Profile.of(**fields) for name, fields in head["profiles"].items()},
        notes=notes_from_plain(head["notes"]),
        labels=arrays[_GAVE],
        trace=loop.Trace(tuple(head["bounds"]), reason, tuple(head["starts"]), head["seconds"]),
    )
    return replace(blank, model=_restored(blank, arrays))


def _stored_fit_state(state: Fitted, fit_state: FitState, *, documents: bool) -> model_files.Stored:
    """What a model was made of: its documents, unless they are left out, or lie in an encoded corpus."""
    head: dict[str, Any] = {"decided": sorted(fit_state.decided_documents())}
    on_disk = fit_state.fitted_to is not None and isinstance(fit_state.fitted_to[0], StoredCorpus | JoinedCorpus)
    if not documents or not fit_state.whole or on_disk:
        return model_files.Stored(head, {})
    opened = fit_state.opened()
    names, packed = packed_documents(opened.documents.values(), opened.known, state.words, state.names)
    sources = {id(model): model for model in opened.source.values()}
    number = {key: n for n, key in enumerate(sources)}
    came_from = [number.get(id(opened.source.get(name)), -1) for name in opened.documents]
    packed["came_from"] = np.array(came_from, np.int16)
    arrays = model_files.prefixed("documents", packed)
    before = [] if opened.before is None else [opened.before]
    for n, model in enumerate([*sources.values(), *before]):
        arrays |= model_files.prefixed(f"source{n}", _as_difference(state.with_model(model).model, state.model))
    head["documents"] = {**names, "sources": len(sources), "before": bool(before)}
    return model_files.Stored(head, arrays)


def _restored_fit_state(
    head: model_files.CombinationHead, arrays: Arrays, state: Fitted, summary: NDArray[np.float64]
) -> FitState:
    """What :func:`_stored_fit_state` stored; where documents were left out, ``summary`` is what is known of each."""
    stored_documents = head.get("documents")
    if stored_documents is None:
        return FitState(whole=False, earlier=summary, decided=frozenset(head.get("decided", ())))
    packed = model_files.under("documents", arrays)
    names = {"tags": stored_documents["tags"], "splits": stored_documents["splits"]}
    corpus, known = kept_documents(names, packed, state.words, state.names, len(state.tagset.labels))
    came_from, n_sources = packed.get("came_from", np.zeros(0, np.int16)), stored_documents["sources"]
    if came_from.shape != (len(corpus),) or came_from.max(initial=-1) >= n_sources or came_from.min(initial=-1) < -1:
        raise ValueError("array 'came_from' of its documents is damaged: numbers that are not one each")
    models = []
    for n in range(n_sources + stored_documents["before"]):
        own = _whole(model_files.under(f"source{n}", arrays), state.model)
        models.append(_restored(state, own))
    return FitState(
        fitted_to=(corpus, corpus.starts, known),
        source={corpus.id_of(int(d)): models[came_from[d]] for d in np.flatnonzero(came_from >= 0)},
        before=models[-1] if stored_documents["before"] else None,
    )


def _restored(fitted: Fitted, arrays: Arrays) -> loop.Model:
    """The model that :func:`arrays_of` took apart."""
    settings, names, priors = fitted.settings, fitted.names, fitted.priors
    model = restored(settings, fitted.tagset, names, fitted.words, priors, arrays)
    blank = parts_of(settings, fitted.tagset, len(names), (), priors).annotators
    past = restored_history(model.annotators, blank, len(names), n_previous(fitted.tagset), arrays)
    return replace(model, annotators=past)


def _as_difference(model: loop.Model, other: loop.Model) -> Arrays:
    """A model's arrays, with those words alone that it counts otherwise than another."""
    arrays: Arrays = dict(arrays_of(model))
    if model.text is not None and other.text is not None:
        rows = np.flatnonzero((model.text.counts != other.text.counts).any(axis=1))
        arrays |= {_ROWS: rows, _WORDS: model.text.counts[rows]}
    return arrays


def _whole(arrays: Arrays, other: loop.Model) -> Arrays:
    """The arrays of a model that :func:`_as_difference` took from another."""
    if other.text is None:
        return arrays
    counts, rows = other.text.counts.copy(), arrays[_ROWS]
    if rows.ndim != 1 or rows.dtype.kind != "i" or (len(rows) and not (rows.min() >= 0 and rows.max() < len(counts))):
        raise ValueError("the words of a model that its documents came from are not among its words")
    counts[rows] = arrays[_WORDS]
    return {**arrays, _WORDS: counts}
