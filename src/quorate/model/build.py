"""From settings to a model's parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.profiles import Believed
from quorate.corpus.tags import Invalid, TagSet
from quorate.crowd.crowd import Cells, Crowd
from quorate.crowd.shapes import Shape, shapes_of
from quorate.limits import size_in_words
from quorate.memory import check_room, free_memory, too_large
from quorate.model import loop
from quorate.model.condense import condense
from quorate.model.engines.factory import Engines
from quorate.model.engines.protocol import Engine
from quorate.model.parts.annotators import Accuracy, AnnotatorPrior, Annotators, ClassVector, Spammer
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.confusions import ConfusionMatrix, Sequential
from quorate.model.parts.text import Shapes, Words
from quorate.model.parts.truth import Independent, Markov, Truth, Uniform
from quorate.model.settings import AnnotatorModel, Inference, Settings, TruthModel, Zeros

__all__ = [
    "Parts",
    "arrays_of",
    "bytes_needed",
    "check_fits",
    "condensed_engine",
    "model_of",
    "parts_of",
    "restored",
    "those_that_fit",
    "why_no_spans",
    "with_arrays",
    "with_more_words",
]

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


# How often numbers of a kind are in memory at once, at the height of a fit: as counts, as logarithms, on the way.
_TIMES_CELLS, _TIMES_PART, _TIMES_WORDS, _TIMES_STEPS = 4, 2, 4, 20
_SMALLER = "fit fewer documents at once, or fewer labels: see docs/speed.md"


class Parts(NamedTuple):
    """Truth, annotators and text."""

    truth: Truth
    annotators: Annotators
    text: Words | None


def parts_of(settings: Settings, tagset: TagSet, n_annotators: int, words: Sequence[str], believed: Believed) -> Parts:
    """The model's parts before any data."""
    prior = AnnotatorPrior(
        tagset,
        settings.alpha0,
        settings.epsilon0,
        moved=settings.zeros is Zeros.MOVED,
        forbid=settings.invalid is not Invalid.KEEP,
        guess_prior=settings.guess_prior,
        point=settings.inference is not Inference.VB,
        believed=believed,
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


def model_of(settings: Settings, tagset: TagSet, encoded: Crowd, believed: Believed) -> loop.Model:
    """The model before any data, for a corpus."""
    return loop.Model(*parts_of(settings, tagset, len(encoded.annotators), encoded.words, believed), settings.temper)


def restored(
    settings: Settings, tagset: TagSet, names: tuple[str, ...], words: Sequence[str], believed: Believed, arrays: Arrays
) -> loop.Model:
    """The model in a file; ``ValueError`` if an array is not of the size that names, labels and words call for."""
    return with_arrays(loop.Model(*parts_of(settings, tagset, len(names), words, believed), settings.temper), arrays)


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


def bytes_needed(settings: Settings, encoded: Crowd, *, posteriors: bool = False) -> int:
    """About how much memory a fit to a corpus takes at its height, beside the corpus; ``posteriors``: they are kept.

    >>> import quorate
    >>> corpus = quorate.sample()
    >>> from quorate.crowd.encode import encode
    >>> bytes_needed(Settings(), encode(corpus, corpus.tagset())) < 10_000_000
    True
    """
    J, cells = len(encoded.tagset.labels), encoded.cells
    numbers = (
        _TIMES_CELLS * len(cells.label) * J
        + _TIMES_PART * _ANNOTATORS[settings.annotator].size(cells)
        + _TIMES_WORDS * (len(encoded.words) if settings.text else 0) * J
        + (encoded.n_tokens if posteriors else 0) * J
        + _TIMES_STEPS * J * J
    )
    return numbers * np.dtype(np.float64).itemsize


def check_fits(settings: Settings, encoded: Crowd, *, posteriors: bool = False) -> None:
    """:class:`SettingsError` if a fit to a corpus needs more memory than is free."""
    check_room(bytes_needed(settings, encoded, posteriors=posteriors), _name_of(settings.annotator, encoded), _SMALLER)


def _name_of(model: AnnotatorModel, encoded: Crowd) -> str:
    n_labels, n_annotators = len(encoded.tagset.labels), len(encoded.annotators)
    return f"the annotator model {model.value!r} with {n_labels:,} labels and {n_annotators:,} annotators"


def those_that_fit(
    models: Sequence[AnnotatorModel], settings: Settings, encoded: Crowd, *, at_once: int = 1
) -> tuple[tuple[AnnotatorModel, ...], tuple[str, ...]]:
    """The annotator models for which there is enough memory, ``at_once`` times, and what to say of the others.

    :class:`SettingsError` if there is not enough for any.
    """
    free = free_memory()
    needed = {
        model: at_once * bytes_needed(replace(settings, annotator=model, inference=Inference.VB), encoded)
        for model in models
    }
    fit = tuple(model for model in models if free is None or needed[model] <= free)
    if free is None or len(fit) == len(models):
        return fit, ()
    if not fit:
        least = min(models, key=lambda model: needed[model])
        raise too_large(needed[least], free, _name_of(least, encoded), _SMALLER)
    room = f"and {size_in_words(free)} are free"
    return fit, tuple(
        f"{model.value} was left out: it would need {size_in_words(needed[model])} of memory, {room}"
        for model in models
        if model not in fit
    )


def why_no_spans(encoded: Crowd) -> str | None:
    """Why there is no room for evidence of spans, which takes the probabilities of all labels; ``None``: there is."""
    needed = 3 * 8 * encoded.n_tokens * len(encoded.tagset.labels)  # of tokens, of spans, of both
    free = free_memory()
    if free is None or needed <= free:
        return None
    return (
        f"spans as evidence were left out: they would need {size_in_words(needed)} of memory, and "
        f"{size_in_words(free)} are free"
    )


def with_more_words(model: loop.Model, words: Sequence[str], settings: Settings) -> loop.Model:
    """The same model with these ``words``, of which those that it has not met come after those that it has."""
    if model.text is None:
        return model
    return replace(model, text=model.text.grown(_shapes(settings.shapes, words)))


def condensed_engine(
    engines: Engines, settings: Settings, annotators: Annotators, encoded: Crowd, known: NDArray[np.int32] | None
) -> tuple[Engine, Cells] | None:
    """An engine over distinct tokens, and its cells, where neither neighbours nor words count."""
    if settings.text or settings.truth is TruthModel.MARKOV or not engines.here:
        return None
    condensed = condense(encoded, known, by_previous=annotators.matrix_shape[0] > 1)
    if condensed is None:
        return None
    engine = engines.over(condensed.encoded, known=condensed.known, text=False, times=condensed.times)
    return engine, condensed.encoded.cells
