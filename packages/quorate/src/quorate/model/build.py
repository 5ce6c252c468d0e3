"""From settings to a model's parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import Invalid, TagSet
from quorate.crowd.crowd import AnnotatorPriors, Crowd
from quorate.crowd.shapes import Shape, shapes_of
from quorate.memory import check_room, free_memory
from quorate.model import loop
from quorate.model.condense import condense
from quorate.model.engines.factory import Engines
from quorate.model.engines.protocol import Engine
from quorate.model.parts.annotators import Accuracy, AnnotatorPrior, Annotators, ClassVector, Spammer
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.confusions import ConfusionMatrix, Sequential
from quorate.model.parts.pool import Pool
from quorate.model.parts.text import Shapes, Words
from quorate.model.parts.truth import Independent, Markov, Truth, Uniform
from quorate.model.settings import AnnotatorModel, Inference, Settings, TruthModel

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
    AnnotatorModel.POOL: Pool,
}

Arrays = dict[str, NDArray[np.float64]]


# How often numbers of a kind are in memory at once, at the height of a fit: as counts, as logarithms, on the way.
_TIMES_CELLS, _TIMES_PART, _TIMES_WORDS, _TIMES_STEPS = 4, 2, 4, 20
_SMALLER = "fit fewer documents at once, or fewer labels: see docs/speed.md"


class Parts(NamedTuple):
    """Truth, annotators and text."""

    truth: Truth
    annotators: Annotators
    text: Words | None


def parts_of(
    settings: Settings, tagset: TagSet, n_annotators: int, words: Sequence[str], priors: AnnotatorPriors
) -> Parts:
    """The model's parts before any data."""
    prior = AnnotatorPrior(
        tagset,
        settings.alpha0,
        settings.epsilon0,
        forbid=settings.invalid is not Invalid.KEEP,
        guess_prior=settings.guess_prior,
        point=settings.inference is not Inference.VB,
        of_each=priors,
    )
    point, J = settings.inference is Inference.EM, len(tagset.labels)
    shapes = _shapes(settings.shapes, words)
    return Parts(
        _TRUTHS[settings.truth].of(tagset, settings.gamma0, point=point),
        _ANNOTATORS[settings.annotator].of(prior, n_annotators),
        Words.of(len(words), J, settings.kappa0, shapes=shapes, point=point) if settings.text else None,
    )


def _shapes(are_told: bool, words: Sequence[str]) -> Shapes:
    """How words are written, where that counts and not all are written alike."""
    of_word = shapes_of(words) if are_told else np.zeros(0, np.int8)
    return Shapes(of_word, len(Shape)) if len(np.unique(of_word)) > 1 else Shapes.none(len(words))


def model_of(settings: Settings, crowd: Crowd) -> loop.Model:
    """The model of a crowd before any of its labels."""
    parts = parts_of(settings, crowd.tagset, len(crowd.annotators), crowd.words, crowd.priors)
    return loop.Model(*parts, settings.temper)


def restored(
    settings: Settings,
    tagset: TagSet,
    names: tuple[str, ...],
    words: Sequence[str],
    priors: AnnotatorPriors,
    arrays: Arrays,
) -> loop.Model:
    """The model in a file; ``ValueError`` if an array is not of the size that names, labels and words call for."""
    return with_arrays(loop.Model(*parts_of(settings, tagset, len(names), words, priors), settings.temper), arrays)


def arrays_of(model: loop.Model) -> Arrays:
    """What a model has learned, for a file."""
    arrays = model.truth.arrays() | model.annotators.arrays()
    return arrays if model.text is None else arrays | model.text.arrays()


def with_arrays(blank: loop.Model, arrays: Arrays) -> loop.Model:
    """The model from which :func:`arrays_of` took these; ``ValueError`` if they do not fit the one before any data."""
    wanted = blank.truth.arrays() | ({} if blank.text is None else blank.text.arrays())
    check_arrays(arrays, {name: array.shape for name, array in wanted.items()}, counts=True)
    text = None if blank.text is None else blank.text.restored(arrays)
    return replace(blank, truth=blank.truth.restored(arrays), annotators=blank.annotators.restored(arrays), text=text)


def bytes_needed(settings: Settings, crowd: Crowd, *, posteriors: bool = False) -> int:
    """About how much memory a fit to a corpus takes at its height, beside the corpus; ``posteriors``: they are kept.

    >>> import quorate
    >>> corpus = quorate.sample()
    >>> from quorate.crowd.encode import encode
    >>> bytes_needed(Settings(), encode(corpus, corpus.tagset())) < 10_000_000
    True
    """
    J, cells = len(crowd.tagset.labels), crowd.cells
    numbers = (
        _TIMES_CELLS * len(cells.label) * J
        + _TIMES_PART * _ANNOTATORS[settings.annotator].size(cells)
        + _TIMES_WORDS * (len(crowd.words) if settings.text else 0) * J
        + (crowd.n_tokens if posteriors else 0) * J
        + _TIMES_STEPS * J * J
    )
    return numbers * np.dtype(np.float64).itemsize


def check_fits(settings: Settings, crowd: Crowd, *, posteriors: bool = False) -> None:
    """:class:`SettingsError` if a fit to a corpus needs more memory than is free."""
    check_room(bytes_needed(settings, crowd, posteriors=posteriors), _name_of(settings.annotator, crowd), _SMALLER)


def _name_of(model: AnnotatorModel, crowd: Crowd) -> str:
    n_labels, n_annotators = len(crowd.tagset.labels), len(crowd.annotators)
    return f"the annotator model {model.value!r} with {n_labels:,} labels and {n_annotators:,} annotators"


def room_for_spans(crowd: Crowd) -> bool:
    """Whether there is memory for a span model, which takes the probabilities of all labels."""
    needed, free = 3 * 8 * crowd.n_tokens * len(crowd.tagset.labels), free_memory()  # of tokens, of spans, of both
    return free is None or needed <= free


def with_more_words(model: loop.Model, words: Sequence[str], settings: Settings) -> loop.Model:
    """The same model with these ``words``, of which those that it has not met come after those that it has."""
    if model.text is None:
        return model
    return replace(model, text=model.text.grown(_shapes(settings.shapes, words)))


def condensed_engine(
    engines: Engines, settings: Settings, annotators: Annotators, crowd: Crowd
) -> tuple[Engine, Crowd] | None:
    """An engine over distinct tokens, and these, where neither neighbours nor words count."""
    if settings.text or settings.truth is TruthModel.MARKOV or not engines.here:
        return None
    condensed = condense(crowd, by_previous=annotators.matrix_shape[0] > 1)
    if condensed is None:
        return None
    return engines.over(condensed.crowd, text=False, times=condensed.times), condensed.crowd
