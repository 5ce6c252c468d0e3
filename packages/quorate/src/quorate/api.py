"""What people call: :func:`aggregate`, :func:`aggregate_layers` and :func:`load`. The work is done elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from quorate.corpus.records import Corpus
from quorate.errors import InputError, ModelFileError, SettingsError, knows_its_options
from quorate.estimators.base import ProgressCallback
from quorate.estimators.bsc import BSC
from quorate.estimators.crf_ma import CRFMA
from quorate.estimators.layered import KnownInLayers, LayeredModel, restored_from
from quorate.estimators.methods import DEFAULT_METHOD, METHODS, Method, estimator
from quorate.estimators.options import MethodName, MethodSettings, names_settings
from quorate.estimators.progress import shown
from quorate.estimators.voting import AbstainVote, BestWorker, MajorityVote, SpanVote, WorstWorker
from quorate.model.prepared import Known
from quorate.result.layers import LayeredResult
from quorate.result.result import Result
from quorate.storage import model_files

__all__ = [
    "BSC",
    "CRFMA",
    "DEFAULT_METHOD",
    "METHODS",
    "AbstainVote",
    "BestWorker",
    "LayeredModel",
    "MajorityVote",
    "Method",
    "SpanVote",
    "WorstWorker",
    "aggregate",
    "aggregate_layers",
    "estimator",
    "load",
]


@names_settings
def aggregate(
    corpus: Corpus,
    method: MethodName | str = DEFAULT_METHOD,
    *,
    known: Known = None,
    progress: ProgressCallback | bool | None = None,
    **settings: Unpack[MethodSettings],
) -> Result:
    """The consensus on every document of a corpus.

    ``method`` is a name from :data:`METHODS`; ``settings`` change the method's own (see :class:`BSC`). ``known`` gives
    labels that are certain: ``"inline"`` for the corpus's own gold, or tags by document id. ``progress=True`` shows a
    bar; a function is called after every pass instead. ``result.model`` is the fitted estimator.

    >>> import quorate
    >>> result = aggregate(quorate.sample(), max_iter=5)
    >>> len(result.tags) == len(quorate.sample())
    True
    """
    model = estimator(method, **settings)
    with shown(progress) as report:
        return model.fit(corpus, known=known, progress=report).result_


@knows_its_options
def load(path: str | Path, *, max_size: int | str | None = None) -> BSC | CRFMA | LayeredModel:
    """A fitted model from a file that :meth:`BSC.save`, or that of another estimator, wrote.

    A small file that unpacks to more than ``max_size`` (``"1G"`` unless given) is refused.

    >>> import quorate, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     BSC(max_iter=2).fit(quorate.sample()).save(f"{folder}/model.quorate")
    ...     load(f"{folder}/model.quorate").trace_.passes
    2
    """
    stored = model_files.load(path, max_size=max_size)
    if model_files.is_former(stored.meta):
        raise ModelFileError(
            f"{path}: saved by quorate 0.11 or earlier, whose models this version cannot read (fit again)"
        )
    try:
        return restored_from(stored)
    except (KeyError, TypeError, ValueError, IndexError, SettingsError, InputError) as error:
        raise ModelFileError(f"{path}: a damaged model file: {error} (fit and save it again)") from None


@names_settings
def aggregate_layers(
    layers: Mapping[str, Corpus],
    method: MethodName | str = DEFAULT_METHOD,
    *,
    known: KnownInLayers = None,
    progress: ProgressCallback | bool | None = None,
    **settings: Unpack[MethodSettings],
) -> LayeredResult:
    """The consensus in each layer that :func:`quorate.read_layers` found; ``settings`` as in :func:`aggregate`.

    ``known`` is ``"inline"``, or by layer what :func:`aggregate` takes.

    >>> from quorate import Corpus, Document
    >>> corpus = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-LOC", "O")})])
    >>> aggregate_layers({"LOC": corpus}, "mv").layers["LOC"].tags
    [['B-LOC', 'O']]
    """
    model = LayeredModel(estimator(method, **settings))
    with shown(progress) as report:
        return model.fit(layers, known=known, progress=report).result_
