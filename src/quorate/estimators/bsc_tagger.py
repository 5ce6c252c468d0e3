"""A fit of :class:`quorate.BSC` with a tagger that joins the crowd (see :mod:`quorate.taggers.loop`)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quorate.choose.joining import calibrated_with, judged
from quorate.encode.algebra import with_annotator
from quorate.encode.encoded import Encoded
from quorate.estimators.base import ProgressCallback
from quorate.models.history import Past
from quorate.models.prepared import Prepared
from quorate.models.settings import Evidence, Settings
from quorate.taggers import TaggerName, make_tagger, tagger_name
from quorate.taggers.auto import worth_trying
from quorate.taggers.loop import TAGGER, in_rounds, teach

if TYPE_CHECKING:
    from quorate.estimators.bsc import BSC

__all__ = ["fit_with_tagger", "is_wanted"]


def is_wanted(model: BSC, prepared: Prepared, settings: Settings, past: Past | None) -> bool:
    """Whether a tagger is asked for or, with ``"auto"``, to be tried; a note says why it is not."""
    if model.tagger != TaggerName.AUTO:
        return model.tagger not in (None, TaggerName.NONE)
    if model.choice_ is None or past is not None:
        return False
    if settings.evidence is Evidence.PLACES:
        return False  # it may join where it is found where spans are
    if model._chose_before:
        return model.choice_.with_tagger is not None
    if not model.engines().here:
        model.tagger_note_ = "a tagger was not tried: it runs on this machine's cores alone"
        return False
    is_tried, model.tagger_note_ = worth_trying(prepared.encoded, model.choice_, settings)
    return is_tried


def fit_with_tagger(
    model: BSC,
    prepared: Prepared,
    encoded: Encoded,
    settings: Settings,
    progress: ProgressCallback | None,
    past: Past | None,
) -> None:
    """Fits with a tagger that joins the crowd; in the end confidence is calibrated with it."""
    tagger, shown = make_tagger(model.tagger, prepared.tagset), in_rounds(progress)
    by_itself, said, weighed = model.tagger == TaggerName.AUTO, prepared.encoded, encoded
    latest: NDArray[np.int32] | None = None

    def consensus(path: NDArray[np.int32] | None) -> NDArray[np.float64]:
        nonlocal latest, said, weighed
        latest = path
        if path is not None:
            if by_itself and not model._without_tagger:
                parameters = model.get_params()
                model._without_tagger = {name: value for name, value in vars(model).items() if name not in parameters}
            model._heard_tagger = True
            said = weighed = with_annotator(prepared.encoded, TAGGER, path)
            if encoded is not prepared.encoded:
                weighed = with_annotator(encoded, TAGGER, path)
        after_pass = shown.fit if shown else None
        fitted = model._fit_once(prepared._replace(encoded=said), weighed, settings, after_pass, past)
        return fitted.result_.posterior

    def accepts(path: NDArray[np.int32]) -> bool:
        assert model.choice_ is not None
        verdict = judged(prepared, model.choice_, TAGGER, path, engines=model.engines())
        model.tagger_note_ = str(verdict)
        return verdict.joins

    model.tagger_rounds_ = teach(
        prepared.corpus,
        encoded,
        tagger,
        consensus,
        accepts=accepts if by_itself and not model._chose_before else None,
        seed=model.random_state or 0,
        progress=shown.teach if shown else None,
    )
    if not model.tagger_rounds_:
        return
    if model.choice_ is not None and latest is not None:
        if not model._chose_before or model.choice_.with_tagger is None:
            found = calibrated_with(prepared, model.choice_, TAGGER, latest, engines=model.engines())
            model.choice_ = model.choice_._replace(with_tagger=found)
        model.calibration_ = model.choice_.with_tagger or model.calibration_
        model.meta_["calibration"] = model.calibration_._asdict()
        with closing(model._engine(prepared.corpus, weighed, prepared.known)) as engine:
            model._conclude(prepared.corpus, said, weighed, engine, prepared.known)
    model.meta_ |= {"tagger": tagger_name(model.tagger), "rounds": len(model.tagger_rounds_)}
