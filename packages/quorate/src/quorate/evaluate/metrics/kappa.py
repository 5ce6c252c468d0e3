"""Agreement on labels, corrected for chance: Cohen's and Fleiss' kappa, Krippendorff's alpha for nominal labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.corpus.records import Tag
from quorate.errors import InputError
from quorate.wording import counted

Floats = NDArray[np.float64]


def cohen_kappa(first: Sequence[Tag], second: Sequence[Tag]) -> float | None:
    """Cohen's kappa (1960) of two annotators' labels of the same tokens; tokens that either left out do not count.

    (P − P_e) / (1 − P_e), where P is the share of equal labels and P_e what their label frequencies would give.
    ``None`` if they share no token, or if both gave all tokens one and the same label.

    >>> cohen_kappa(["O", "X", "X", "O"], ["O", "X", "O", "O"])
    0.5
    >>> cohen_kappa(["O", "O"], ["O", None]) is None
    True
    """
    if len(first) != len(second):
        raise InputError(
            f"{counted(len(first), 'label')} against {len(second)} (give two labels a token, None where not seen)"
        )
    both = [(one, other) for one, other in zip(first, second, strict=True) if one is not None and other is not None]
    code_of = {label: code for code, label in enumerate({label for pair in both for label in pair})}
    codes = np.array([(code_of[one], code_of[other]) for one, other in both], np.int64).reshape(-1, 2)
    marginals = (np.bincount(column, minlength=len(code_of)) for column in codes.T)
    return kappa_of(int((codes[:, 0] == codes[:, 1]).sum()), *marginals)


def kappa_of(equal: int, first: NDArray[np.int64], second: NDArray[np.int64]) -> float | None:
    """Cohen's kappa from the number of equal labels and from how often each annotator gave each label.

    >>> kappa_of(3, np.array([2, 2]), np.array([3, 1]))
    0.5
    """
    n = int(first.sum())
    chance = int(first @ second) / n**2 if n else 1.0
    return (equal / n - chance) / (1 - chance) if chance < 1 else None


def fleiss_kappa(counts: ArrayLike) -> float | None:
    """Fleiss' kappa (1971) from ``counts`` ``[N, J]``: how many annotators gave token n the label j.

    (P − P_e) / (1 − P_e): P is the mean over tokens of the share of agreeing pairs, P_e the sum of squared label
    shares. Tokens may have different numbers of annotators; those with fewer than two do not count. ``None`` if no
    token counts, or if all labels are the same.

    >>> round(fleiss_kappa([[2, 0], [1, 1], [0, 2]]), 3)
    0.333
    """
    observed = observed_agreement(counts)
    if observed is None:
        return None
    table = _with_pairs(counts)
    chance = float(((table.sum(axis=0) / table.sum()) ** 2).sum())
    return (observed - chance) / (1 - chance) if chance < 1 else None


def krippendorff_alpha(counts: ArrayLike) -> float | None:
    """Krippendorff's alpha for nominal labels, from ``counts`` ``[N, J]``: how many annotators gave token n label j.

    1 − D_o / D_e over the values that can be paired: with m_n labels on token n, T in all and t_j of label j,
    D_o = 1 − Σ_n Σ_j c_nj (c_nj − 1) / (m_n − 1) / T and D_e = 1 − Σ_j t_j (t_j − 1) / (T (T − 1)). Missing labels need
    no care: they are not in the counts. ``None`` if no token has two labels, or if all labels are the same.

    >>> round(krippendorff_alpha([[2, 0], [1, 1], [0, 2]]), 3)
    0.444
    """
    return alpha_of([pairable(counts)])


class Pairable(NamedTuple):
    """Labels that can be paired with another one of their token; those of several parts of a text add up.

    ``agreeing`` is Σ_n Σ_j c_nj (c_nj − 1) / (m_n − 1), ``per_label`` ``[J]`` the number of each label.

    >>> Pairable(2.0, np.array([2.0, 2.0])).observed
    0.5
    """

    agreeing: float
    per_label: Floats

    @property
    def total(self) -> float:
        """T."""
        return float(self.per_label.sum())

    @property
    def observed(self) -> float:
        """D_o."""
        return 1 - self.agreeing / self.total

    @property
    def expected(self) -> float:
        """D_e."""
        return float(1 - (self.per_label * (self.per_label - 1)).sum() / (self.total * (self.total - 1)))


def pairable(counts: ArrayLike) -> Pairable:
    """The labels in ``counts`` ``[N, J]`` that can be paired.

    >>> pairable([[2, 0], [1, 1], [1, 0]])
    Pairable(agreeing=2.0, per_label=array([3., 1.]))
    """
    table = _with_pairs(counts)
    agreeing = ((table * (table - 1)).sum(axis=1) / (table.sum(axis=1) - 1)).sum()
    return Pairable(float(agreeing), table.sum(axis=0))


def alpha_of(parts: Iterable[Pairable]) -> float | None:
    """Krippendorff's alpha of labels of several sorts: 1 − Σ T·D_o / Σ T·D_e; ``None`` if there is no such number.

    >>> alpha_of([pairable([[2, 0], [0, 2]]), pairable([[1, 0]])])
    1.0
    """
    labelled = [part for part in parts if part.total]
    expected = sum(part.total * part.expected for part in labelled)
    return 1 - sum(part.total * part.observed for part in labelled) / expected if expected > 0 else None


def observed_agreement(counts: ArrayLike) -> float | None:
    """The mean over tokens of the share of pairs of annotators who agree; ``None`` if no token has two labels.

    >>> observed_agreement([[3, 0], [2, 1], [0, 1]])
    0.6666666666666666
    """
    table = _with_pairs(counts)
    if not len(table):
        return None
    n = table.sum(axis=1)
    return float(((table * (table - 1)).sum(axis=1) / (n * (n - 1))).mean())


def _with_pairs(counts: ArrayLike) -> Floats:
    table = np.asarray(counts, np.float64)
    kept: Floats = table[table.sum(axis=1) >= 2]
    return kept
