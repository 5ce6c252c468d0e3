"""What is known about each annotator after a fit: how much they gave, how right they are, how much they tell."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.crowd import Cells, Crowd
from quorate.memory import check_room
from quorate.model.engines.protocol import Decoded
from quorate.model.parts.annotators import Annotators
from quorate.model.parts.arrays import check_arrays
from quorate.model.parts.confusions import blocks
from quorate.result.habits import KINDS, SpanHabits, count_habits
from quorate.wording import counted

Floats = NDArray[np.float64]

_FIGURES = 3  # of an annotator besides their habits
_HABITS = len(SpanHabits._fields)
_TIMES = 3  # copies of a matrix in memory while it is made
_LEAST = np.finfo(np.float64).tiny  # the least divisor, where an annotator's labels have no weight


@dataclass(frozen=True)
class AnnotatorSummary:
    """One annotator; ``of`` is whose matrix is theirs: the model, and their number in it.

    ``accuracy`` is the expected share of their labels that are the true ones, nan for someone without a label.
    ``informativeness`` is the mutual information, in bits per token, of their label and the truth given their previous
    label: a spammer has 0, however often they happen to be right. ``matrix[ι, j, i]`` is the posterior mean of
    p(label i | previous label ι, truth j), with a single ι for models that do not look at it.

    The other fields are shares of spans, nan where there are none. Of the consensus's spans that they were shown:
    ``found`` (marked in some way), ``exact``, ``shifted`` (another bound), ``split`` (in pieces), ``wrong_type`` and
    ``missed``; of their own: ``invented`` (touches no span of the consensus) and ``precision`` (just so in the
    consensus); of all there are in their documents: ``coverage`` (marked with that type, in whatever bounds).
    ``habits`` has the numbers and intervals, and ``by_type`` the same for each type.
    """

    name: str
    n_labels: float
    accuracy: float
    informativeness: float
    found: float
    exact: float
    shifted: float
    split: float
    wrong_type: float
    missed: float
    invented: float
    precision: float
    coverage: float
    counted: InitVar[tuple[SpanHabits, Mapping[str, SpanHabits]]]
    of: InitVar[tuple[Annotators, int]]

    def __post_init__(self, counted: tuple[SpanHabits, Mapping[str, SpanHabits]], of: tuple[Annotators, int]) -> None:
        # Not fields: whoever makes a table of these (pandas, say) gets a column for each field.
        object.__setattr__(self, "_of", of)
        object.__setattr__(self, "_habits", counted)

    @property
    def habits(self) -> SpanHabits:
        """How many spans are behind the shares, which bounds are off, and intervals."""
        habits: SpanHabits = self.__dict__["_habits"][0]
        return habits

    @property
    def by_type(self) -> Mapping[str, SpanHabits]:
        """The same for each type: that of the consensus's span or, of what is counted of their own, of theirs."""
        habits: Mapping[str, SpanHabits] = self.__dict__["_habits"][1]
        return habits

    @property
    def matrix(self) -> Floats:
        """``[P, J, J]`` or ``[1, J, J]`` Posterior mean of p(label i | previous label ι, truth j)."""
        model, number = self.__dict__["_of"]
        check_matrix(model.matrix_shape)
        return np.asarray(model.matrix(number))

    @property
    def matrix_shape(self) -> tuple[int, int, int]:
        """That of ``matrix``, which is large where there are many labels."""
        shape: tuple[int, int, int] = self.__dict__["_of"][0].matrix_shape
        return shape

    @property
    def collapsed_matrix(self) -> Floats:
        """``[1, J, J]`` Posterior mean of p(label i | truth j), whatever the previous label."""
        model, number = self.__dict__["_of"]
        return np.asarray(model.collapsed().matrix(number))


class AnnotatorSummaries(Sequence[AnnotatorSummary]):
    """Everyone, in the order of their names; by position or by name."""

    def __init__(
        self,
        names: Sequence[str],
        table: Floats,
        model: Annotators,
        types: Sequence[str] = (),
        numbers: Sequence[int] | None = None,
    ) -> None:
        """``table`` is ``[3 + 12·(1 + T), K]``: labels given, accuracy, informativeness, the :class:`SpanHabits`, and
        those of each of the ``types``, habit by habit. ``numbers`` are theirs in the model, if not their places here.
        """
        self.names, self.types = tuple(names), tuple(types)
        self.table = np.zeros((_FIGURES + _HABITS * (1 + len(self.types)), len(self.names)))
        self.table[: len(table)] = table
        # Rounding can make the bits of an annotator who tells nothing slightly negative, or −0.
        self.table[2] = np.where(table[2] <= 0, 0.0, table[2])
        self.n_labels, self.accuracy, self.informativeness = self.table[:_FIGURES]
        self._model, self._of_model = model, list(range(len(self.names))) if numbers is None else list(numbers)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def restored(
        cls,
        names: Sequence[str],
        arrays: Mapping[str, Floats],
        model: Annotators,
        types: Sequence[str] = (),
        numbers: Sequence[int] | None = None,
    ) -> Self:
        """From a file; ``ValueError`` unless all are numbers, but for the accuracy of someone without a label."""
        rows = _FIGURES + _HABITS * (1 + len(types))
        check_arrays(arrays, {"summary": (rows, len(names))})
        table = arrays["summary"]
        others = np.delete(table, 1, axis=0)
        if not np.isfinite(others).all() or np.isinf(table[1]).any() or (table[_FIGURES:] < 0).any():
            raise ValueError("array 'summary' holds what is no number")
        return cls(names, table, model, types, numbers)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[AnnotatorSummary]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, key: int | str) -> AnnotatorSummary:  # type: ignore[override]
        number = self._numbers[key] if isinstance(key, str) else range(len(self))[key]
        column = self.table[_FIGURES:, number]
        habits = SpanHabits(*column[:_HABITS].tolist())
        by_type = column[_HABITS:].reshape(_HABITS, len(self.types)).T.tolist()
        return AnnotatorSummary(
            self.names[number],
            float(self.n_labels[number]),
            float(self.accuracy[number]),
            float(self.informativeness[number]),
            **{name: habits.share(name) for name in ("found", *KINDS, "invented", "precision", "coverage")},
            counted=(habits, {kind: SpanHabits(*one) for kind, one in zip(self.types, by_type, strict=True)}),
            of=(self._model, self._of_model[number]),
        )

    @property
    def matrix_shape(self) -> tuple[int, int, int]:
        """That of everybody's ``matrix``."""
        return self._model.matrix_shape

    def with_earlier(self, table: Floats) -> AnnotatorSummaries:
        """Together with an earlier table of the first K' of them: means, weighed by labels, and sums."""
        before = np.zeros_like(self.table)
        before[: len(table), : table.shape[1]] = table
        labels = before[0] + self.n_labels
        means = [
            np.nan_to_num(old) * before[0] + np.nan_to_num(new) * self.n_labels
            for old, new in zip(before[1:_FIGURES], self.table[1:_FIGURES], strict=True)
        ]
        share = np.divide(means, labels, out=np.zeros((2, len(labels))), where=labels > 0)
        share[0, labels == 0] = np.nan
        spans = before[_FIGURES:] + self.table[_FIGURES:]
        table = np.vstack([labels, share, spans])
        return AnnotatorSummaries(self.names, table, self._model, self.types, self._of_model)

    def without(self, names: Collection[str]) -> AnnotatorSummaries:
        """The same without some of them."""
        kept = [number for number, name in enumerate(self.names) if name not in names]
        numbers = [self._of_model[number] for number in kept]
        left = [self.names[number] for number in kept]
        return AnnotatorSummaries(left, self.table[:, kept], self._model, self.types, numbers)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'annotator')}>"


def check_matrix(shape: tuple[int, int, int], n_annotators: int = 1) -> None:
    """:class:`SettingsError` if matrices of that shape, of so many annotators, need more memory than is free.

    >>> check_matrix((9, 9, 9), 100)
    """
    needed = _TIMES * np.dtype(np.float64).itemsize * n_annotators * math.prod(shape)
    check_room(
        needed,
        f"matrices of {counted(shape[1], 'label')}, for {counted(n_annotators, 'annotator')}",
        "use fewer labels",
    )


def summarise(
    encoded: Crowd,
    counts: Floats,
    model: Annotators,
    decoded: Decoded | None = None,
) -> AnnotatorSummaries:
    """Summaries from the counts of cells ``[G, J]`` under the final posterior, and the fitted annotator model.

    What they do with spans is told by the consensus, ``decoded``; without it nothing is known of that.
    """
    names, cells = encoded.annotators, encoded.cells
    K = len(names)
    labels = encoded.annotator_weights()
    right = np.bincount(cells.annotator, counts[np.arange(len(counts)), cells.label], minlength=K)
    accuracy = np.divide(right, labels, out=np.full(K, np.nan), where=labels > 0)
    table = [np.stack([labels, accuracy, _informativeness(cells, counts, labels)])]
    if decoded is not None:
        habits = count_habits(encoded, decoded, labels)
        table += [habits.sum(axis=1), habits.reshape(-1, K)]
    return AnnotatorSummaries(names, np.concatenate(table), model, encoded.tagset.span_types)


def _informativeness(cells: Cells, counts: Floats, labels: Floats) -> Floats:
    """``[K]`` Bits per token: mutual information of label and truth given the previous label ι, mean over the own ι.

    From the expected counts of (truth, label) after each ι, shrunk towards telling nothing as J more labels of each
    annotator would that had been drawn without looking: so a handful of labels does not seem to tell much by chance.
    """
    if not len(counts):
        return np.zeros(len(labels))
    row_of_cell = cells.annotator * cells.n_previous + cells.previous
    first = np.flatnonzero(np.r_[True, row_of_cell[1:] != row_of_cell[:-1]])
    row = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(counts)]))
    truths = np.add.reduceat(counts, first)
    totals = truths.sum(axis=1)
    share = 1.0 + cells.n_labels / np.maximum(labels[cells.annotator[first]], 1.0)  # [rows] as with J more labels
    bits = np.zeros(len(counts))
    for block in blocks(*counts.shape):
        here, n = row[block], np.maximum(totals[row[block]][:, None], _LEAST)
        alone = truths[here] / n * counts[block].sum(axis=1, keepdims=True) / n
        more = n * (share[here][:, None] - 1.0)
        joint = (counts[block] + more * alone) / (n + more)
        ratio = np.divide(joint, alone, out=np.ones_like(joint), where=alone > 0)
        bits[block] = (joint * np.log2(ratio, out=np.zeros_like(ratio), where=joint > 0)).sum(axis=1)
    weighted = np.bincount(cells.annotator, bits * totals[row], minlength=len(labels))
    return np.divide(weighted, labels, out=np.zeros(len(labels)), where=labels > 0)
