"""From settings to a model's parts, and from a corpus to what a fit takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus import Corpus, Tag
from quorate.encode import Encoded, encode, encode_known
from quorate.errors import InputError, SettingsError
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
from quorate.settings import AnnotatorModel, Inference, Settings, TruthModel, Zeros
from quorate.tags import Invalid, Scheme, TagSet

__all__ = ["Known", "Parts", "Prepared", "model_of", "parts_of", "prepare"]

Known = Literal["inline"] | Mapping[str, Sequence[Tag]] | None
"""Known labels: none, the corpus's own gold, or tags by document id."""

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


class Prepared(NamedTuple):
    """A corpus ready for fits: its tags, its arrays, and its known labels as :func:`encode_known` gives them."""

    corpus: Corpus
    tagset: TagSet
    encoded: Encoded
    known: NDArray[np.int32] | None


def prepare(corpus: Corpus, scheme: Scheme | None, invalid: Invalid, known: Known = None) -> Prepared:
    """Lay out a corpus once, for one fit or many."""
    if not isinstance(corpus, Corpus):
        raise SettingsError(f"a Corpus is needed, not {type(corpus).__name__} (quorate.read gives one from files)")
    if not len(corpus):
        raise InputError("the corpus has no document")
    given = _known_tags(corpus, known)
    tagset = corpus.tagset(scheme, known=(tag for tags in given.values() for tag in tags))
    encoded = encode(corpus, tagset, invalid=invalid)
    clamped = encode_known(corpus, tagset, given, invalid) if given else None
    return Prepared(corpus, tagset, encoded, clamped)


def _known_tags(corpus: Corpus, known: Known) -> Mapping[str, Sequence[Tag]]:
    if known is None:
        return {}
    if isinstance(known, str):
        if known != "inline":
            raise SettingsError(f"known must be None, 'inline' or tags by document id, not {known!r}")
        return {document.id: document.gold for document in corpus if document.gold is not None}
    return known


class Parts(NamedTuple):
    """Truth, annotators and text."""

    truth: Truth
    annotators: Annotators
    text: Words | None


def parts_of(settings: Settings, tagset: TagSet, n_annotators: int, n_words: int) -> Parts:
    """The model's parts before any data."""
    prior = AnnotatorPrior(
        tagset,
        settings.alpha0,
        settings.epsilon0,
        moved=settings.zeros is Zeros.MOVED,
        forbid=settings.invalid is not Invalid.KEEP,
        habit0=settings.habit0,
        point=settings.inference is not Inference.VB,
    )
    point = settings.inference is Inference.EM
    return Parts(
        _TRUTHS[settings.truth].of(tagset, settings.gamma0, point=point),
        _ANNOTATORS[settings.annotator].of(prior, n_annotators),
        Words.of(n_words, len(tagset.labels), settings.kappa0, point=point) if settings.text else None,
    )


def model_of(settings: Settings, tagset: TagSet, encoded: Encoded) -> vb.Model:
    """The model before any data, for a corpus."""
    return vb.Model(*parts_of(settings, tagset, len(encoded.annotators), len(encoded.words)), settings.temper)
