"""Calibration on held-out annotators: how sure to be, fitted without gold.

Two exponents are fitted. That of the token model is the one at which the consensus of the rest best predicts the labels
of held-out annotators, token by token, through one confusion matrix for everybody. That of spans rests on habits:
held-out annotators mark a true span as often as their habit says, so how often they confirm a consensus span of some
stated probability says how often such a span is right. Mistakes that everybody shares stay unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.crowd.algebra import Spans
from quorate.crowd.hold_out import HeldOut
from quorate.model.kernels.cores import available_threads, in_order
from quorate.model.kernels.readings import add_readings

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_LEAST, _MOST = 0.2, 1.0
_LEAST_OF_SPANS = 0.15
_EDGE = 1e-6  # probabilities are kept this far from 0 and 1
_EM_PASSES = 8
_AT_ONCE = 1 << 15  # tokens that one thread reads
_PARABOLAS = 2
_SAME = 1e-6  # of ln power
_FINE = 1001  # powers that a mean is taken over
_GOLDEN = (5**0.5 - 1) / 2
_GAIN_STEP = 2e-4  # within which the gain of habits is found, so that its loss is one smooth function of the power
# Habits are measured on spans that two other annotators marked. Some of those are mistakes that the two share, so that
# habits underrate how often an annotator marks a true span: by this much on a log scale (mean and spread) where four
# others or more look at a document, and the less the fewer they are. It cannot be learned together with the exponent.
_HABIT_GAIN, _HABIT_SPREAD = 0.21, 0.05
_MANY_OTHERS = 4.0
_SUREST_HABIT = 0.98  # nobody marks every true span: taken for certain, one that was missed would outweigh a hundred


def fit_exponent(said: Callable[[float], Sequence[Said]], *, threads: int | None = None) -> float:
    """The power at which a consensus on the rest predicts the held-out labels best; 1 where nobody was sure of any.

    ``said`` gives the labels of every fold beside the consensus's posterior, for a power.

    >>> token, label, p = np.arange(3), np.array([0, 0, 1]), np.array([[0.99, 0.01]] * 3)
    >>> 0.2 <= fit_exponent(lambda power: [Said(p**power / (p**power).sum(axis=1)[:, None], token, label)]) <= 1
    True
    """
    if not any(len(one.token) for one in said(1.0)):
        return 1.0

    def loss(log_power: float) -> float:
        return -log_likelihood(said(float(np.exp(log_power))), threads=threads)

    return _best_power(loss, _LEAST, tries=7)


def _best_power(loss: Callable[[float], float], least: float, tries: int) -> float:
    """The power, from the least on, with the least loss of its logarithm."""
    x, y = _tried_powers(loss, least, tries)
    return float(np.exp(x[y.argmin()]))


def _mean_power(loss: Callable[[float], float], least: float, tries: int) -> float:
    """The mean over powers from the least on, of their logarithm, each weighed by e^−loss.

    Where few can tell, the loss hardly differs from one half of the range to the other, and a few documents more or
    less would move the best power from end to end; the mean stays about where it is.
    """
    x, y = _tried_powers(loss, least, tries)
    fine = np.linspace(x[0], x[-1], _FINE)
    weight = np.exp(y.min() - np.interp(fine, x, y))
    return float(np.exp((weight * fine).sum() / weight.sum()))


def _tried_powers(loss: Callable[[float], float], least: float, tries: int) -> tuple[Floats, Floats]:
    """Logarithms of powers, ascending, and the loss of each.

    A few powers all over the range, as the loss need not fall evenly towards the best one; and then twice the lowest
    point of the parabola through the best of them and its neighbours.
    """
    x = np.linspace(np.log(least), np.log(_MOST), tries - _PARABOLAS)
    y = np.array([loss(float(one)) for one in x])
    for _ in range(_PARABOLAS):
        middle = int(np.clip(y.argmin(), 1, len(x) - 2))
        near = slice(middle - 1, middle + 2)
        bend, slope, _ = np.polyfit(x[near] - x[middle], y[near], 2)
        lowest = np.clip(x[middle] - slope / (2 * bend), x[middle - 1], x[middle + 1]) if bend > 0 else x[middle]
        if np.abs(x - lowest).min() < _SAME:
            break
        place = int(np.searchsorted(x, lowest))
        x, y = np.insert(x, place, lowest), np.insert(y, place, loss(float(lowest)))
    return x, y


class Said(NamedTuple):
    """Held-out labels: which ``label`` of which ``token``, and ``posterior [N, J]``, that of the truth."""

    posterior: Floats
    token: Integers
    label: NDArray[np.integer]


def log_likelihood(said: Sequence[Said], *, threads: int | None = None) -> float:
    """Mean of ln Σ_j p_j·M[j, label], with the confusion matrix M that makes it greatest (by EM).

    >>> token, label = np.array([0, 1]), np.array([0, 1])
    >>> right, wrong = np.array([[0.9, 0.1], [0.1, 0.9]]), np.full((2, 2), 0.5)
    >>> log_likelihood([Said(right, token, label)]) > log_likelihood([Said(wrong, token, label)])
    True
    """
    J = said[0].posterior.shape[1]
    columns = [
        (np.ascontiguousarray(one.posterior), one.token.astype(np.int64), one.label.astype(np.int32)) for one in said
    ]
    pieces = [
        (*one, low, min(low + _AT_ONCE, len(one[1]))) for one in columns for low in range(0, len(one[1]), _AT_ONCE)
    ]

    def read(matrix: Floats, *, logs: bool = False) -> tuple[Floats, float]:
        """``[J, J]`` How much each truth is expected to have been read as each label, and Σ ln p."""

        def of_piece(piece: tuple[Floats, Integers, NDArray[np.int32], int, int]) -> tuple[Floats, float]:
            right = np.zeros((J, J))
            return right, add_readings(*piece, matrix, logs, right)

        found = list(in_order(of_piece, pieces, threads or available_threads()))
        return sum((right for right, _ in found), np.zeros((J, J))), sum(each for _, each in found)

    share, total = read(np.zeros((0, J)))[0], 0.0
    for step in range(_EM_PASSES):
        matrix = share + 0.1
        matrix /= matrix.sum(axis=0)
        right, total = read(matrix, logs=step == _EM_PASSES - 1)
        share = matrix * right
    return total / sum(len(one.token) for one in said)


class Confirmations(NamedTuple):
    """Spans of a consensus, each beside the annotators who were held out there.

    ``who`` was held out, whether they ``matched`` a span, how often they would be ``expected`` to if it is true, and
    how likely that is ``stated`` to be.

    >>> one = Confirmations(np.zeros(1, np.int64), np.array([True]), np.array([0.8]), np.array([0.5]))
    >>> one.loss(0.0).round(3)  # -ln 0.4
    array([0.916])
    """

    who: Integers
    matched: NDArray[np.bool_]
    expected: Floats
    stated: Floats

    def loss(self, log_gain: float) -> Floats:
        """Of each, −ln p of what the held-out annotator did, if habits are so much higher."""
        habit = np.minimum(self.expected * np.exp(log_gain), _SUREST_HABIT)
        confirmed = np.clip(self.stated * habit, _EDGE, 1 - _EDGE)
        return np.asarray(-np.where(self.matched, np.log(confirmed), np.log1p(-confirmed)))

    @property
    def share(self) -> float | None:
        """How often held-out annotators matched a span; ``None`` where there is none."""
        return float(self.matched.mean()) if len(self.matched) else None

    @classmethod
    def of(cls, held_out: Sequence[HeldOut], found: Sequence[tuple[Spans, Floats]]) -> Confirmations:
        """Over all folds: the spans of each consensus, and how likely each is stated to be."""
        columns = []
        for one, (spans, stated) in zip(held_out, found, strict=True):
            order = np.argsort(spans.start, kind="stable")
            spans, stated = spans.where(order), stated[order]
            beside, _, matched, expected = one.confirmed(spans)
            which = np.searchsorted(spans.start, beside.start)
            columns.append((beside.who, matched, expected, stated[which]))
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def fit_span_exponent(held_out: Sequence[HeldOut], confirmed: Callable[[float], Confirmations]) -> float:
    """The power at which the spans of a consensus are right as often as held-out annotators confirm.

    ``confirmed`` are the spans of the consensus, as they are stated at a power. It is the mean of all powers, by how
    likely they make what was confirmed.
    """
    usual = _HABIT_GAIN * min(float(np.mean([one.others for one in held_out])) / _MANY_OTHERS, 1.0)
    return _mean_power(lambda x: _profile(confirmed(float(np.exp(x))), usual), _LEAST_OF_SPANS, tries=8)


def _profile(found: Confirmations, usual: float) -> float:
    """−ln p of what was confirmed, at the gain of habits at which it is likeliest."""

    def of_gain(log_gain: float) -> float:
        return float(((log_gain - usual) / _HABIT_SPREAD) ** 2 / 2 + found.loss(log_gain).sum())

    low, high = usual - 3 * _HABIT_SPREAD, usual + 3 * _HABIT_SPREAD
    inner = [(x, of_gain(x)) for x in (high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))]
    while high - low > _GAIN_STEP:  # golden section: of two points within, that with the higher loss becomes an end
        if inner[0][1] < inner[1][1]:
            high = inner[1][0]
            x = high - _GOLDEN * (high - low)
            inner = [(x, of_gain(x)), inner[0]]
        else:
            low = inner[0][0]
            x = low + _GOLDEN * (high - low)
            inner = [inner[1], (x, of_gain(x))]
    return min(loss for _, loss in inner)
