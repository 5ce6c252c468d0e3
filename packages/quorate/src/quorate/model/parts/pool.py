"""*pool*: three models of an annotator that share one posterior of the truth, a logarithmic opinion pool.

No single model suits both an annotator who gave forty labels and one who gave forty thousand. So each annotator has
three, *spam*, *cm* and *seq*, from two numbers to a matrix for each previous label, all fitted to the same q(t). With
weights w_m that sum to 1, a pass raises

    Σ_m w_m · ELBO_m = E_q[ln p(t, x)] + H(q(t)) + Σ_m w_m (E_q E ln p_m(c | t) − KL(q_m ‖ p_m)),

the mean of three evidence bounds. So the truth sees Σ_m w_m E ln p_m(c | t), each model has the full expected counts,
and the bound never falls. Where there are few labels the large models are near their priors and say little; where there
are many they are sharp. Sources that abstain have *cm* alone: *spam* would take their ``O`` for a mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.crowd import AnnotatorPriors, Cells
from quorate.model.parts.annotators import AnnotatorPrior, Annotators, Spammer
from quorate.model.parts.confusions import ConfusionMatrix, Sequential
from quorate.model.parts.dirichlet import View

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_WEIGHT = 1 / 3  # of each of the three


@dataclass(frozen=True)
class Pool:
    """The three models of everybody who does not abstain, and the *cm* of those who do: ``alone``."""

    spam: Spammer
    cm: ConfusionMatrix
    seq: Sequential
    alone: ConfusionMatrix

    @classmethod
    def of(cls, prior: AnnotatorPrior, n_annotators: int) -> Self:
        """The model before any data."""
        matrix = ConfusionMatrix.of(prior, n_annotators)
        return cls(Spammer.of(prior, n_annotators), matrix, Sequential.of(prior, n_annotators), matrix)

    @property
    def prior(self) -> AnnotatorPrior:
        """What is assumed before any data."""
        return self.seq.prior

    @classmethod
    def size(cls, cells: Cells) -> int:
        """Of the three together."""
        return Spammer.size(cells) + ConfusionMatrix.size(cells) + Sequential.size(cells)

    def log_lik(self, cells: Cells, view: View | None = None) -> Floats:
        """Σ_m w_m ln p_m(label | truth); of those who abstain, that of *cm*."""
        pooled = self.spam.log_lik(cells, view) + self.cm.log_lik(cells, view) + self.seq.log_lik(cells, view)
        pooled *= _WEIGHT
        abstains = self._abstains(cells)
        if abstains.any():
            pooled[abstains] = self.alone.log_lik(_some(cells, abstains), view)
        return pooled

    def updated(self, cells: Cells, counts: Floats) -> Self:
        """Each with the full counts of those whom it describes."""
        abstains = self._abstains(cells)
        theirs, of_theirs = _some(cells, abstains), counts[abstains]
        if abstains.any():
            cells, counts = _some(cells, ~abstains), counts[~abstains]
        return replace(
            self,
            spam=self.spam.updated(cells, counts),
            cm=self.cm.updated(cells, counts),
            seq=self.seq.updated(cells, counts),
            alone=self.alone.updated(theirs, of_theirs),
        )

    def mixed(self, other: Self, own: float, others: float) -> Self:
        """With counts of both."""
        return replace(
            self,
            spam=self.spam.mixed(other.spam, own, others),
            cm=self.cm.mixed(other.cm, own, others),
            seq=self.seq.mixed(other.seq, own, others),
            alone=self.alone.mixed(other.alone, own, others),
        )

    def changed(self, cells: Cells, counts: Floats, sign: float, source: Self) -> Self:
        """With the counts of some documents added, or taken out."""
        return self.mixed(source.updated(cells, counts), 1.0, sign)

    def grown(self, n_annotators: int, priors: AnnotatorPriors) -> Self:
        """With room for annotators who come after those it has met."""
        return replace(
            self,
            spam=self.spam.grown(n_annotators, priors),
            cm=self.cm.grown(n_annotators, priors),
            seq=self.seq.grown(n_annotators, priors),
            alone=self.alone.grown(n_annotators, priors),
        )

    def kl(self) -> float:
        """Σ_m w_m KL_m."""
        return _WEIGHT * (self.spam.kl() + self.cm.kl() + self.seq.kl()) + self.alone.kl()

    @property
    def matrix_shape(self) -> tuple[int, int, int]:
        """One for each previous label."""
        return self.seq.matrix_shape

    def collapsed(self) -> Annotators:
        """The *cm* of everybody."""
        return self.cm.mixed(self.alone, 1.0, 1.0)

    def matrix(self, annotator: int) -> Floats:
        """The geometric mean of the three models' posterior means, normalised."""
        if self.prior.of_each.abstains(annotator + 1)[annotator]:
            return np.repeat(self.alone.matrix(annotator), self.matrix_shape[0], axis=0)
        with np.errstate(divide="ignore"):
            logs = [np.log(part.matrix(annotator)) for part in (self.spam, self.cm, self.seq)]
        pooled = np.exp(_WEIGHT * (logs[0] + logs[1] + logs[2]))
        return np.asarray(pooled / pooled.sum(axis=2, keepdims=True))

    def cells_and_counts(self, labels: Integers) -> tuple[Cells, Floats]:
        """Those of *seq*, from which all three learn, and those of whoever abstains, as if all stood after ``O``."""
        P, J, _ = self.seq.matrix_shape
        who, label = np.divmod(self.alone.keys, J)
        start = P - 1 if self.prior.tagset.outside is None else self.prior.tagset.outside
        alone = replace(self.seq, keys=(who * P + start) * J + label, counts=self.alone.counts)
        return self.seq.mixed(alone, 1.0, 1.0).cells_and_counts(labels)

    def arrays(self) -> dict[str, Floats]:
        """Those of each, under its own name."""
        return {
            **_named("spam", self.spam.arrays()),
            **_named("cm", self.cm.arrays()),
            **_named("seq", self.seq.arrays()),
            **_named("alone", self.alone.arrays()),
        }

    def restored(self, arrays: dict[str, Floats]) -> Self:
        """With counts from a file."""
        return replace(
            self,
            spam=self.spam.restored(_under("spam", arrays)),
            cm=self.cm.restored(_under("cm", arrays)),
            seq=self.seq.restored(_under("seq", arrays)),
            alone=self.alone.restored(_under("alone", arrays)),
        )

    def _abstains(self, cells: Cells) -> NDArray[np.bool_]:
        """``[G]`` Whose cells are of somebody who abstains."""
        coverage = self.prior.of_each.coverage
        if coverage is None or self.prior.tagset.outside is None:
            return np.zeros(len(cells.annotator), np.bool_)
        n = max(cells.n_annotators, int(cells.annotator.max(initial=0)) + 1)
        return np.asarray(self.prior.of_each.abstains(n)[cells.annotator])


def _some(cells: Cells, chosen: NDArray[np.bool_]) -> Cells:
    return cells._replace(annotator=cells.annotator[chosen], previous=cells.previous[chosen], label=cells.label[chosen])


def _named(part: str, arrays: dict[str, Floats]) -> dict[str, Floats]:
    return {f"{part}_{name}": array for name, array in arrays.items()}


def _under(part: str, arrays: dict[str, Floats]) -> dict[str, Floats]:
    start = f"{part}_"
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
