"""What annotators would say of a result's documents, and where these are ambiguous: learned when asked for, once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus
from quorate.corpus.schemes import Invalid
from quorate.corpus.tags import TagSet
from quorate.crowd.crowd import Crowd
from quorate.crowd.duplicates import Duplicates
from quorate.crowd.encode import encode
from quorate.result.ambiguity import Ambiguity, ambiguity_of
from quorate.result.shares import ShareModel, through_confusion

Floats = NDArray[np.float64]


class Expectations:
    """Shares of annotators and ambiguity, of all documents of a fit, end to end.

    ``posterior`` is that of the consensus, empty where it was not kept: it says what to expect where nobody can be
    held out, and of documents that nobody has labelled. Those who are ``duplicates``, by name, count as one.

    >>> import quorate
    >>> corpus = quorate.Corpus(quorate.sample().documents[:40])
    >>> expected = Expectations(corpus, corpus.tagset(), Invalid.REPAIR, np.zeros((0, 9)))
    >>> bool(np.allclose(expected.shares.sum(axis=1), 1))
    True
    """

    def __init__(
        self,
        corpus: Corpus,
        tagset: TagSet,
        invalid: Invalid,
        posterior: Floats,
        duplicates: Sequence[Sequence[str]] = (),
    ) -> None:
        self._corpus, self._tagset, self._invalid, self._posterior = corpus, tagset, invalid, posterior
        here = set(corpus.annotators) if duplicates else set()
        self._duplicates = [group for group in ([name for name in one if name in here] for one in duplicates) if group]

    @cached_property
    def _encoded(self) -> Crowd:
        encoded = encode(self._corpus, self._tagset, invalid=self._invalid)
        number = {name: k for k, name in enumerate(encoded.annotators)}
        if not self._duplicates:
            return encoded
        groups = tuple(tuple(sorted(number[name] for name in group)) for group in self._duplicates)
        return Duplicates(groups).applied(encoded)

    @cached_property
    def _model(self) -> ShareModel | None:
        return ShareModel.learned(self._encoded)

    @cached_property
    def shares(self) -> Floats:
        """``[N, J]`` The share of annotators that would give each label to each token."""
        return self._completed(None if self._model is None else self._model.shares())

    def of(self, name: str) -> Floats:
        """``[N, J]`` The probability that this annotator would give each label to each token."""
        first = {each: min(group) for group in self._duplicates for each in group}
        return self.shares if self._model is None else self._completed(self._model.of(first.get(name, name)))

    @cached_property
    def ambiguity(self) -> Ambiguity:
        """Where annotators differ because the text allows two readings."""
        return ambiguity_of(self._encoded)

    def _completed(self, shares: Floats | None) -> Floats:
        """With what the posterior says of documents that nobody labelled, or of all of them."""
        if len(self._posterior) != self._encoded.n_tokens:
            return self._frequencies if shares is None else shares
        by_posterior = through_confusion(self._encoded, self._posterior)
        if shares is None:
            return by_posterior
        return np.where((np.diff(self._encoded.event_start) > 0)[:, None], shares, by_posterior)

    @property
    def _frequencies(self) -> Floats:
        """How common each label is: all that is known where neither people nor probabilities say more."""
        counts = np.bincount(
            self._encoded.cells.label, self._encoded.cell_weights(), minlength=len(self._tagset.labels)
        )
        return np.broadcast_to((counts + 1) / (counts + 1).sum(), (self._encoded.n_tokens, len(counts)))
