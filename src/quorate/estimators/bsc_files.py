"""A fitted :class:`BSC` as a file keeps it, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.choose.kept import as_plain, from_plain
from quorate.corpus.profiles import Profile, trust_of
from quorate.corpus.tags import TagSet
from quorate.estimators.updating import FitState
from quorate.infer import loop
from quorate.infer.parts.responses import Responses
from quorate.infer.spans import SpanModel
from quorate.models.build import restored
from quorate.models.settings import Evidence, present_names
from quorate.result.annotators import AnnotatorSummaries
from quorate.result.calibration import Calibration
from quorate.storage.model_files import Stored, combination_head, sharing_of

if TYPE_CHECKING:
    from quorate.estimators.bsc import BSC

__all__ = ["loaded", "stored"]


def stored(model: BSC) -> Stored:
    """What a fitted model keeps in a file."""
    summary = model.annotators_.table  # after an update it is worked out here, and with it what spans tell
    arrays = model._model.truth.arrays() | model._model.annotators.arrays()
    if model._model.text is not None:
        arrays |= model._model.text.arrays()
    if model._spans is not None:
        arrays |= model._spans.grown(len(model._names)).arrays()
    arrays["summary"] = summary
    meta = {
        "estimator": "BSC",
        "fit": model.meta_,
        "bounds": model.trace_.bounds,
        "starts": model.trace_.starts,
        "seconds": model.trace_.seconds,
        "tags": {"scheme": model.tagset_.scheme.value, "labels": model.tagset_.labels},
        "annotators": model._names,
        "profiles": {name: profile.plain() for name, profile in model.profiles_.items()},
        "words": model._words,
        "calibration": model.calibration_._asdict(),
        "sharing": model._sharing.pairs(),
        "votes": model._votes,
        "silent": model._silent,
        "decided": sorted(model.decided_documents()),
        "choice": None if model.choice_ is None else as_plain(model.choice_),
    }
    return Stored(meta, arrays)


def loaded(kind: type[BSC], stored: Stored) -> BSC:
    """A model of this kind, as a file keeps it; ``ValueError`` and its like if it keeps none."""
    meta, arrays = combination_head(stored.meta), stored.arrays
    model = kind(**present_names(meta["fit"]["settings"]), method=meta["fit"].get("method"), tagger=None)
    model._settings = settings = model.checked_settings()
    model.settings_ = model._told(meta["fit"].get("why", []))
    model.calibration_, model.tagger_rounds_ = Calibration(**meta["calibration"]), ()
    model.choice_ = None if meta.get("choice") is None else from_plain(meta["choice"])
    model.tagger_note_, model._without_tagger, model._heard_tagger = "", {}, bool(meta["fit"].get("tagger"))
    model._keeps_posteriors = model.probabilities
    model._sharing, model._spans = sharing_of(meta), None
    model._votes, model._silent = meta.get("votes"), tuple(meta.get("silent", ()))
    model.meta_ = meta["fit"]
    reason = loop.StopReason(meta["fit"]["stopped"])
    model.trace_ = loop.Trace(tuple(meta["bounds"]), reason, tuple(meta["starts"]), meta["seconds"])
    model.tagset_ = TagSet(meta["tags"]["scheme"], tuple(meta["tags"]["labels"]))
    model._names, model._words = tuple(meta["annotators"]), tuple(meta["words"])
    model.profiles_ = {name: Profile.of(**fields) for name, fields in meta["profiles"].items()}
    trust = trust_of(model._names, model.profiles_)
    model._model = restored(settings, model.tagset_, model._names, len(model._words), trust, arrays)
    if settings.evidence is Evidence.SPANS:
        model._spans = SpanModel(Responses.of(len(model._names))).restored(arrays)
    model.annotators_ = AnnotatorSummaries.restored(
        model._names, arrays, model._model.annotators, model.tagset_.span_types
    )
    decided = frozenset(meta.get("decided", ()))
    model._fit_state = FitState(whole=False, earlier=model.annotators_.table, decided=decided)
    return model
