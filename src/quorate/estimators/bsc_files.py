"""A fit of :class:`quorate.BSC` in a model file: what was learned and, unless left out, the documents that it is of.

A document's counts come from the pass of some model (see :mod:`quorate.estimators.updating`). Of such a model, the
words' counts are kept where they differ from those of the model itself: an update touches few words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate.choose.kept import as_plain, from_plain
from quorate.choose.silence import Silence
from quorate.corpus.profiles import Believed, Profile
from quorate.corpus.tags import TagSet
from quorate.crowd.encode import n_previous
from quorate.estimators.updating import FitState, ModelState
from quorate.model import loop
from quorate.model.build import arrays_of, parts_of, restored
from quorate.model.engines.factory import Engines
from quorate.model.history import restored_history
from quorate.model.parts.responses import Responses
from quorate.model.settings import Evidence, Settings, present_names
from quorate.model.span_model import SpanModel
from quorate.result.annotators import AnnotatorSummaries
from quorate.result.calibration import Calibration
from quorate.storage import model_files
from quorate.storage.corpora import StoredCorpus
from quorate.storage.joined import JoinedCorpus
from quorate.storage.model_documents import kept_documents, packed_documents

if TYPE_CHECKING:
    from quorate.estimators.bsc import BSC

__all__ = ["loaded", "stored"]

Arrays = dict[str, NDArray[Any]]

_WORDS, _ROWS = "words", "rows"
_AGAIN = "again"  # the model whose annotators were counted under the consensus on spans
_FORMERLY = {"shapes": False}  # settings that files of before do not tell, as they were


def stored(model: BSC, *, documents: bool) -> model_files.Stored:
    """All of a fit; where a tagger joined on its own account also the fit before that, from which an update goes on."""
    found = _stored(model, documents=documents)
    if model._without_tagger:
        alone = type(model)(**model.get_params())
        vars(alone).update(model._without_tagger)
        inner = _stored(alone, documents=False)
        found.meta["without_tagger"] = {name: told for name, told in inner.meta.items() if name != "words"}
        found.arrays.update(model_files.prefixed("without_tagger", inner.arrays))
    if model.places_ is not None:
        inner = stored(model.places_, documents="documents" in found.meta)
        found.meta["places"] = inner.meta
        found.arrays.update(model_files.prefixed("places", inner.arrays))
    return found


def _stored(model: BSC, *, documents: bool) -> model_files.Stored:
    summary = model.annotators_.table  # after an update it is worked out here, and with it what spans tell
    state = model.model_state()
    learned, made_of = _stored_state(state), _stored_fit_state(state, model._fit_state, documents=documents)
    meta = {
        "estimator": "BSC",
        "fit": model.meta_,
        "bounds": model.trace_.bounds,
        "starts": model.trace_.starts,
        "seconds": model.trace_.seconds,
        "calibration": model.calibration_._asdict(),
        "votes": model._votes,
        "silent": model._silent,
        "choice": None if model.choice_ is None else as_plain(model.choice_),
        **learned.meta,
        **made_of.meta,
    }
    return model_files.Stored(meta, {**learned.arrays, **made_of.arrays, "summary": summary})


def loaded(kind: type[BSC], file: model_files.Stored) -> BSC:
    """A model of this kind, as a file keeps it; ``ValueError`` and its like if it keeps none."""
    head, arrays = model_files.combination_head(file.meta), file.arrays
    fit = head["fit"]
    model = kind(**{**_FORMERLY, **present_names(fit["settings"])}, method=fit.get("method"), tagger=None)
    model._settings = model.checked_settings()
    model.settings_ = model._told(fit.get("why", []))
    model.calibration_, model.tagger_rounds_ = Calibration(**head["calibration"]), ()
    choice = head.get("choice")
    model.choice_ = None if choice is None else from_plain(choice)
    model.tagger_note_, model._heard_tagger = "", bool(fit.get("tagger"))
    model._keeps_posteriors = model.probabilities
    model._votes, model._silent = head.get("votes"), tuple(head.get("silent", ()))
    reason = loop.StopReason(fit["stopped"])
    model.trace_ = loop.Trace(tuple(head["bounds"]), reason, tuple(head["starts"]), head["seconds"])
    state = _restored_state(head, arrays, model._settings, model.engines())
    model.tagset_, model._sharing, model._spans = state.tagset, state.sharing, state.spans
    model._silence = state.silence
    summaries = AnnotatorSummaries.restored(state.names, arrays, state.output_model.annotators, state.tagset.span_types)
    model.go_on_from(state, _restored_fit_state(head, arrays, state, summaries.table), fit)
    model.annotators_ = summaries
    if model._settings.evidence is Evidence.PLACES:
        model.places_ = loaded(kind, model_files.Stored(head["places"], model_files.under("places", arrays)))
    if "without_tagger" in head:
        inner = {**head["without_tagger"], "words": head["words"]}
        alone = loaded(kind, model_files.Stored(inner, model_files.under("without_tagger", arrays)))
        alone._fit_state = model._fit_state
        of_the_fit = vars(alone).keys() - model.get_params().keys()
        model._without_tagger = {name: vars(alone)[name] for name in of_the_fit}
    return model


def _stored_state(state: ModelState) -> model_files.Stored:
    """What was learned, and of whom and what."""
    arrays: Arrays = dict(arrays_of(state.model))
    if state.spans is not None:
        arrays |= state.spans.grown(len(state.names)).arrays()
        if state.spans.annotators is not None:
            arrays |= model_files.prefixed(_AGAIN, _as_difference(state.of(state.output_model).model, state.model))
    head = {
        "tags": {"scheme": state.tagset.scheme.value, "labels": state.tagset.labels},
        "annotators": state.names,
        "profiles": {name: profile.plain() for name, profile in state.profiles.items()},
        "words": state.words,
        "sharing": state.sharing.pairs(),
        "voices": [list(copies) for copies in state.sharing.voices],
        "silence": {
            "of_silence": state.silence.of_silence,
            "go_on": None if state.silence.go_on is None else sorted(state.silence.go_on),
        },
    }
    return model_files.Stored(head, arrays)


def _silence_of(head: model_files.CombinationHead) -> Silence:
    """What was found of silence; nothing in files of before 0.11."""
    if "silence" not in head:
        return Silence()
    counts, go_on = head["silence"]["of_silence"], head["silence"]["go_on"]
    return Silence(tuple(counts), None if go_on is None else frozenset(go_on))


def _restored_state(
    head: model_files.CombinationHead, arrays: Arrays, settings: Settings, engines: Engines
) -> ModelState:
    """What :func:`_stored_state` stored; ``ValueError`` if it is not whole."""
    tagset = TagSet(head["tags"]["scheme"], tuple(head["tags"]["labels"]))
    names, words = tuple(head["annotators"]), tuple(head["words"])
    profiles = {name: Profile.of(**fields) for name, fields in head["profiles"].items()}
    silence = _silence_of(head)
    believed = silence.believed(names, profiles)
    state = ModelState(
        model=_restored(settings, tagset, names, words, believed, arrays),
        names=names,
        words=words,
        settings=settings,
        tagset=tagset,
        profiles=profiles,
        engines=engines,
        sharing=model_files.sharing_of(head),
        silence=silence,
    )
    if settings.by_spans:
        spans, own = SpanModel(Responses.of(len(names))).restored(arrays), model_files.under(_AGAIN, arrays)
        if own:  # files of before 0.11 have none
            again = _restored(settings, tagset, names, words, believed, _whole(own, state.model))
            spans = replace(spans, annotators=again.annotators)
        state = state._replace(spans=spans)
    return state


def _stored_fit_state(state: ModelState, fit_state: FitState, *, documents: bool) -> model_files.Stored:
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
        arrays |= model_files.prefixed(f"source{n}", _as_difference(state.of(model).model, state.model))
    head["documents"] = {**names, "sources": len(sources), "before": bool(before)}
    return model_files.Stored(head, arrays)


def _restored_fit_state(
    head: model_files.CombinationHead, arrays: Arrays, state: ModelState, summary: NDArray[np.float64]
) -> FitState:
    """What :func:`_stored_fit_state` stored; where documents were left out, ``summary`` is what is known of each."""
    told = head.get("documents")
    if told is None:
        return FitState(whole=False, earlier=summary, decided=frozenset(head.get("decided", ())))
    packed = model_files.under("documents", arrays)
    names = {"tags": told["tags"], "splits": told["splits"]}
    corpus, known = kept_documents(names, packed, state.words, state.names, len(state.tagset.labels))
    came_from, n_sources = packed.get("came_from", np.zeros(0, np.int16)), told["sources"]
    if came_from.shape != (len(corpus),) or came_from.max(initial=-1) >= n_sources or came_from.min(initial=-1) < -1:
        raise ValueError("array 'came_from' of its documents is damaged: numbers that are not one each")
    models, believed = [], state.silence.believed(state.names, state.profiles)
    for n in range(n_sources + told["before"]):
        own = _whole(model_files.under(f"source{n}", arrays), state.model)
        models.append(_restored(state.settings, state.tagset, state.names, state.words, believed, own))
    return FitState(
        fitted_to=(corpus, corpus.starts, known),
        source={corpus.id_of(int(d)): models[came_from[d]] for d in np.flatnonzero(came_from >= 0)},
        before=models[-1] if told["before"] else None,
    )


def _restored(
    settings: Settings,
    tagset: TagSet,
    names: tuple[str, ...],
    words: Sequence[str],
    believed: Believed,
    arrays: Arrays,
) -> loop.Model:
    """The model that :func:`arrays_of` took apart."""
    model = restored(settings, tagset, names, words, believed, arrays)
    blank = parts_of(settings, tagset, len(names), (), believed).annotators
    past = restored_history(model.annotators, blank, len(names), n_previous(tagset), arrays)
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
