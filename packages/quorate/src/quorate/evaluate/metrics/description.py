"""How far annotators agree on tokens, in one number and one pass over the documents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Tag, hard_tags
from quorate.corpus.tags import MISSING
from quorate.evaluate.metrics.kappa import Pairable, alpha_of, pairable

Ints = NDArray[np.int64]

_BLOCK = 1 << 18  # labels counted at once, which bounds memory


def token_alpha(*corpora: Corpus) -> float | None:
    """Krippendorff's alpha for the labels of tokens, as :func:`measure_agreement` has it; gold is not looked at.

    Of several corpora, such as layers of spans that overlap, it is 1 − Σ T·D_o / Σ T·D_e over them. ``None`` if no
    token has two labels, or if all labels are the same.

    >>> import quorate
    >>> round(token_alpha(quorate.sample()), 2)
    0.36
    """
    return alpha_of(_pairable(corpus) for corpus in corpora)


class _Numbers(dict[Tag, int]):
    """Labels by their number, each new one after those before."""

    def __missing__(self, label: Tag) -> int:
        self[label] = number = len(self) - 1  # the missing label is no label
        return number


def _pairable(corpus: Corpus) -> Pairable:
    agreeing, per_label, numbers = 0.0, np.zeros(0), _Numbers({None: MISSING})
    for codes, token in _blocks(corpus, numbers):
        J = len(numbers) - 1
        seen = codes != MISSING
        counts = np.bincount(token[seen] * J + codes[seen], minlength=(int(token[-1]) + 1) * J)
        here = pairable(counts.reshape(-1, J) if J else np.zeros((0, 0)))
        agreeing += here.agreeing
        per_label = np.pad(per_label, (0, J - len(per_label))) + here.per_label
    return Pairable(agreeing, per_label)


def _blocks(corpus: Corpus, numbers: _Numbers) -> Iterator[tuple[Ints, Ints]]:
    """Labels of the documents that have two annotators or more, and the token of each."""
    codes: list[int] = []
    lengths: list[int] = []
    repeats: list[int] = []
    for document in corpus:
        if len(document.annotations) < 2:
            continue
        for tags in document.annotations.values():
            codes.extend(map(numbers.__getitem__, hard_tags(tags)))
        lengths.append(len(document.tokens))
        repeats.append(len(document.annotations))
        if len(codes) >= _BLOCK:
            yield np.array(codes), _tokens(lengths, repeats)
            codes, lengths, repeats = [], [], []
    if codes:
        yield np.array(codes), _tokens(lengths, repeats)


def _tokens(lengths: list[int], repeats: list[int]) -> Ints:
    """The tokens of documents end to end, those of each document once for every annotator."""
    first = np.repeat(np.cumsum(lengths) - lengths, repeats)
    sizes = np.repeat(lengths, repeats)
    return np.asarray(np.arange(sizes.sum()) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes))
