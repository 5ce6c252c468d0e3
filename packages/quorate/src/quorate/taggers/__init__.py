"""Models that read the text: they learn from the consensus, and join it as one more annotator.

A tagger is anything with two methods, ``fit(documents, posteriors)`` and ``predict(documents)``. Posteriors have one
row for each token and one column for each label, in the order of the tag set's labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Document
from quorate.corpus.tags import TagSet
from quorate.errors import SettingsError

__all__ = ["Tagger", "TaggerChoice", "TaggerName", "make_tagger", "tagger_name"]

Floats = NDArray[np.float64]


@runtime_checkable
class Tagger(Protocol):
    """A model that learns to tag text from probabilities of labels, and gives such probabilities.

    Every ``fit`` forgets what was learned before.
    """

    def fit(self, documents: Sequence[Document], posteriors: Sequence[Floats]) -> object:
        """Learn from documents and, for each, ``[L, J]`` the probability of every label at every token."""

    def predict(self, documents: Sequence[Document]) -> Sequence[Floats]:
        """For every document, ``[L, J]`` the probability of every label at every token."""


class TaggerName(StrEnum):
    """The taggers that come with the package.

    >>> TaggerName("crf") is TaggerName.CRF
    True
    """

    NONE = "none"
    CRF = "crf"
    CONTEXT = "context"


TaggerChoice = str | Tagger | Callable[[TagSet], Tagger] | None
"""No tagger (``"none"`` is ``None``), one by its name, one that was made, or what makes one for a tag set."""


def make_tagger(choice: TaggerChoice, tagset: TagSet) -> Tagger:
    """The tagger that is meant, for the labels of a tag set.

    >>> tagset = TagSet.infer(["O", "B-PER"])
    >>> type(make_tagger("crf", tagset)).__name__
    'CrfTagger'
    >>> make_tagger("oracle", tagset)
    Traceback (most recent call last):
    quorate.errors.SettingsError: tagger 'oracle' is not known (one of: none, crf, context; or one of your own)
    """
    if isinstance(choice, str):
        if choice == "auto":
            raise SettingsError("there is no tagger 'auto' any more (crf or context joins when it is asked for)")
        if choice not in list(TaggerName):
            known = ", ".join(name.value for name in TaggerName)
            raise SettingsError(f"tagger {choice!r} is not known (one of: {known}; or one of your own)")
        if choice == TaggerName.CRF:
            from quorate.taggers.crf import CrfTagger

            return CrfTagger(tagset)
        if choice == TaggerName.NONE:
            raise SettingsError("tagger 'none' is no tagger")
        from quorate.taggers.context import ContextTagger

        return ContextTagger(tagset)
    made = (
        choice(tagset) if isinstance(choice, type) or (not isinstance(choice, Tagger) and callable(choice)) else choice
    )
    if not isinstance(made, Tagger):
        raise SettingsError(f"a tagger needs the methods fit and predict, which {type(made).__name__} has not")
    return made


def tagger_name(choice: TaggerChoice) -> str | None:
    """What to call it in a file.

    >>> tagger_name("crf"), tagger_name(None)
    ('crf', None)
    """
    if choice is None or isinstance(choice, str):
        return choice
    return choice.__name__ if isinstance(choice, type) else type(choice).__name__
