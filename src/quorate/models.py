"""From settings to a model's parts."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.encode import Encoded, n_previous
from quorate.infer import vb
from quorate.infer.annotators import (
    Accuracy,
    AnnotatorPrior,
    Annotators,
    ClassVector,
    ConfusionMatrix,
    Sequential,
    Spammer,
)
from quorate.infer.text import Words
from quorate.infer.truth import Independent, Markov, Truth, Uniform
from quorate.modelfile import check_arrays
from quorate.people import Trust
from quorate.settings import AnnotatorModel, Inference, Settings, TruthModel, Zeros
from quorate.tags import Invalid, TagSet

__all__ = ["Parts", "model_of", "parts_of", "restored", "with_more_words"]

_TRUTHS: dict[TruthModel, type[Truth]] = {
    TruthModel.MARKOV: Markov,
    TruthModel.INDEPENDENT: Independent,
    TruthModel.UNIFORM: Uniform,
}
_ANNOTATORS: dict[AnnotatorModel, type[Annotators]] = {
    AnnotatorModel.ACC: Accuracy,
    AnnotatorModel.SPAM: Spammer,
    AnnotatorModel.CV: ClassVector,
    AnnotatorModel.CM: ConfusionMatrix,
    AnnotatorModel.SEQ: Sequential,
}

Arrays = dict[str, NDArray[np.float64]]
_CELLS = "annotator_cells"


class Parts(NamedTuple):
    """Truth, annotators and text."""

    truth: Truth
    annotators: Annotators
    text: Words | None


def parts_of(settings: Settings, tagset: TagSet, n_annotators: int, n_words: int, trust: Trust) -> Parts:
    """The model's parts before any data."""
    prior = AnnotatorPrior(
        tagset,
        settings.alpha0,
        settings.epsilon0,
        moved=settings.zeros is Zeros.MOVED,
        forbid=settings.invalid is not Invalid.KEEP,
        habit0=settings.habit0,
        point=settings.inference is not Inference.VB,
        trust=trust,
    )
    point = settings.inference is Inference.EM
    return Parts(
        _TRUTHS[settings.truth].of(tagset, settings.gamma0, point=point),
        _ANNOTATORS[settings.annotator].of(prior, n_annotators),
        Words.of(n_words, len(tagset.labels), settings.kappa0, point=point) if settings.text else None,
    )


def model_of(settings: Settings, tagset: TagSet, encoded: Encoded, trust: Trust) -> vb.Model:
    """The model before any data, for a corpus."""
    return vb.Model(*parts_of(settings, tagset, len(encoded.annotators), len(encoded.words), trust), settings.temper)


def restored(
    settings: Settings, tagset: TagSet, names: tuple[str, ...], n_words: int, trust: Trust, arrays: Arrays
) -> vb.Model:
    """The model in a file; ``ValueError`` if an array is not of the size that names, labels and words call for."""
    J, blank = len(tagset.labels), parts_of(settings, tagset, len(names), n_words, trust)
    wanted = blank.truth.arrays() | blank.annotators.arrays() | ({} if blank.text is None else blank.text.arrays())
    shapes = {name: array.shape for name, array in wanted.items()}
    if _CELLS in shapes:  # only cells that occur have a row
        cells = arrays.get(_CELLS, np.zeros(0))
        shapes |= {_CELLS: (cells.size,), "annotators": (cells.size, J)}
        most = len(names) * n_previous(tagset) * J
        if cells.size and not (cells[0] >= 0 and cells[-1] < most and (np.diff(cells) >= 1).all()):
            raise ValueError(f"array {_CELLS!r} holds what is no cell of these annotators and labels")
    check_arrays(arrays, shapes, counts=True)
    check_arrays(arrays, {"summary": (3, len(names))})
    text = None if blank.text is None else blank.text.restored(arrays)
    return vb.Model(blank.truth.restored(arrays), blank.annotators.restored(arrays), text, settings.temper)


def with_more_words(model: vb.Model, n_words: int) -> vb.Model:
    """The same model, in which words that it has not met come after those that it has."""
    if model.text is None:
        return model
    more = np.zeros((n_words - len(model.text.counts), model.text.counts.shape[1]))
    return replace(model, text=model.text.updated(np.concatenate([model.text.counts, more])))
