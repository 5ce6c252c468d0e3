"""Calibration by hidden annotators: how sure to be, fitted without gold.

Two things are fitted. The *sharpness* of all probabilities: the power at which the consensus of the rest best predicts
what hidden annotators said, token by token, through one confusion matrix for everybody. And the *span map*: hidden
annotators mark a true span as often as their habit says, so how often they confirm a consensus span of some stated
probability says how often such a span is right. Mistakes that everybody shares stay unseen: what is usual of them on
crowds with gold is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.choose.hidden import Agreement, HiddenLabels
from quorate.choose.kernels import add_readings
from quorate.infer.engines.protocol import Decoded
from quorate.infer.kernels.cores import available_threads, in_order
from quorate.result.calibration import EDGE, log_odds, probability_of

__all__ = [
    "Confirmations",
    "Said",
    "fit_sharpness",
    "fit_span_map",
    "fit_span_sharpness",
    "log_likelihood",
]


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_LEAST_SHARP, _MOST_SHARP = 0.2, 1.0
_LEAST_SHARP_SPANS = 0.15
_EM_PASSES = 8
_AT_ONCE = 1 << 15  # tokens that one thread reads
_PARABOLAS = 2
_SAME = 1e-6  # of ln power
_FINE = 1001  # powers that a mean is taken over
_GOLDEN = (5**0.5 - 1) / 2
_GAIN_STEP = 2e-4  # within which the gain of habits is found, so that its loss is one smooth function of the power


# Habits are measured on spans that two other annotators marked. Some of those spans are mistakes that the two share, so
# the habits underrate how often an annotator marks a true span. By how much (mean and spread, on a log scale) cannot be
# learned together with the calibration; these values were measured on crowds with gold.
_HABIT_GAIN, _HABIT_SPREAD = 0.24, 0.05
# The same for a consensus on spans, which has no share of common mistakes apart: on the dev splits of NER and PICO the
# mean probability of its spans is then within a point of how many are right, above on one and below on the other.
_SPAN_HABIT_GAIN = 0.21
# That is where four others or more look at a document. The fewer they are, the rarer it is that two of them share a
# mistake: of two others, who are all there are, what both marked is hardly ever wrong. In proportion to their number
# the mean probability of spans is within four points of how many are right on simulated crowds of three and on NER and
# PICO with three annotators left (it was up to twelve too low).
_MANY_OTHERS = 4.0


# Nobody marks every true span: taken for certain, a single one that was missed would outweigh a hundred others.
_SUREST_HABIT = 0.98


# The share of spans that hidden annotators confirm and that are wrong: everybody makes the same mistake. It is between
# the values on the dev splits of two real crowds, 6 and -1 points.
_SHARED_MISTAKES = 0.03


def fit_sharpness(
    hidden: Sequence[HiddenLabels],
    posteriors: Callable[[float], Sequence[Floats]],
    *,
    threads: int | None = None,
) -> float:
    """The power at which a consensus on the rest predicts the hidden labels best; 1 where nobody was sure of any.

    ``posteriors`` gives ``[N, J]`` those of the consensus on each draw of hidden annotators, for a power.

    >>> import quorate
    >>> from quorate.choose.hidden import hide
    >>> from quorate.encode.from_corpus import encode
    >>> from quorate.models.votes import majority
    >>> corpus = quorate.sample()
    >>> hidden = hide(encode(corpus, corpus.tagset()))
    >>> voted = majority(hidden.sample).decoded
    >>> 0.2 <= fit_sharpness([hidden], lambda power: [voted.posterior**power]) <= 1
    True
    """
    if not any(len(one.token) for one in hidden):
        return 1.0

    def loss(log_power: float) -> float:
        found = posteriors(float(np.exp(log_power)))
        said = [Said(posterior, one.token, one.label) for posterior, one in zip(found, hidden, strict=True)]
        return -log_likelihood(said, threads=threads)

    return _best_power(loss, _LEAST_SHARP, tries=7)


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
    x = np.linspace(np.log(least), np.log(_MOST_SHARP), tries - _PARABOLAS)
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
    """What hidden annotators said: which ``label`` of which ``token``, and ``posterior [N, J]``, that of the truth."""

    posterior: Floats
    token: Integers
    label: NDArray[np.integer]


def log_likelihood(said: Sequence[Said], *, threads: int | None = None) -> float:
    """Mean of ln Σ_j p_j·M[j, label], with the confusion matrix M that makes it greatest (by EM).

    Something must have been said.

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


def _fewer(gain: float, others: float) -> float:
    """The gain of habits where so many others look at a document."""
    return gain * min(others / _MANY_OTHERS, 1.0)


class Confirmations(NamedTuple):
    """Spans of a consensus, each beside the annotators who were hidden there.

    Whether they ``matched`` a span, how often they would be ``expected`` to if it is true, and how likely that is
    ``stated`` to be. ``token`` is the first one of the span, in the samples of all draws end to end.

    >>> one = Confirmations(np.array([True]), np.array([0.8]), np.array([0.5]))
    >>> one.loss(0.0).round(3)  # -ln 0.4
    array([0.916])
    """

    matched: NDArray[np.bool_]
    expected: Floats
    stated: Floats
    token: Integers = np.zeros(0, np.int64)

    def loss(self, log_gain: float) -> Floats:
        """Of each, −ln p of what the hidden annotator did, if habits are so much higher."""
        habit = np.minimum(self.expected * np.exp(log_gain), _SUREST_HABIT)
        confirmed = np.clip(self.stated * habit, EDGE, 1 - EDGE)
        return np.asarray(-np.where(self.matched, np.log(confirmed), np.log1p(-confirmed)))

    @classmethod
    def of(cls, hidden: Sequence[HiddenLabels], decoded: Sequence[Decoded]) -> Confirmations:
        """Over all draws."""
        columns, before = [], 0
        for one, consensus in zip(hidden, decoded, strict=True):
            found = one.agreement(consensus)
            start = found.found.start
            columns.append((found.matched, found.expected, consensus.span_probability[start], before + start))
            before += one.sample.n_tokens
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def fit_span_sharpness(hidden: Sequence[HiddenLabels], confirmed: Callable[[float], Confirmations]) -> float:
    """The power at which the spans of a consensus are right as often as hidden annotators bear out.

    As :func:`fit_span_map`, for evidence of spans: the probability itself, at some power, is what a span is confirmed
    by; ``confirmed`` are the spans of the consensus, as they are stated at a power. It is the mean of all powers, by
    how likely they make what was confirmed.

    >>> import quorate
    >>> from quorate.choose.hidden import hide
    >>> from quorate.encode.from_corpus import encode
    >>> from quorate.models.votes import majority
    >>> corpus = quorate.sample()
    >>> hidden = hide(encode(corpus, corpus.tagset()))
    >>> voted = majority(hidden.sample).decoded
    >>> found = Confirmations.of([hidden], [voted])
    >>> 0.15 < fit_span_sharpness([hidden], lambda power: found._replace(stated=found.stated**power)) < 1
    True
    """
    usual = _usual_gain(hidden)

    def loss(log_power: float) -> float:
        return _profile(confirmed(float(np.exp(log_power))), usual)[1]

    return _mean_power(loss, _LEAST_SHARP_SPANS, tries=8)


def _usual_gain(hidden: Sequence[HiddenLabels]) -> float:
    return _fewer(_SPAN_HABIT_GAIN, float(np.mean([one.others for one in hidden])))


def _profile(found: Confirmations, usual: float) -> tuple[float, float]:
    """The gain of habits at which what was confirmed is likeliest, and −ln p of it."""

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
    return min(inner, key=lambda one: one[1])


def fit_span_map(agreement: Agreement, probability: Floats, others: float = _MANY_OTHERS) -> tuple[float, float, float]:
    """Shift, slope and ceiling of the span map: ``probability`` is what the model states of ``agreement.found``.

    A span is confirmed with probability q·habit·r: q of the map, one r for all. The likelihood has a weak prior for the
    map (do nothing) and a strong one for r, which only confident spans can tell from q.

    >>> import quorate
    >>> from quorate.choose.hidden import hide
    >>> from quorate.encode.from_corpus import encode
    >>> from quorate.models.votes import majority
    >>> corpus = quorate.sample()
    >>> hidden = hide(encode(corpus, corpus.tagset()))
    >>> voted = majority(hidden.sample).decoded
    >>> found = hidden.agreement(voted)
    >>> shift, slope, ceiling = fit_span_map(found, voted.span_probability[found.found.start])
    >>> slope > 0, ceiling
    (True, 0.97)
    """
    from scipy.optimize import minimize

    x = log_odds(probability)
    hit, usual = agreement.matched, _fewer(_HABIT_GAIN, others)

    def loss(parameters: Floats) -> float:
        shift, log_slope, log_gain = parameters
        right = probability_of(shift + np.exp(log_slope) * x) * agreement.expected * np.exp(log_gain)
        confirmed = np.clip(right, EDGE, 1 - EDGE)
        prior = (shift / 2) ** 2 + log_slope**2 + ((log_gain - usual) / _HABIT_SPREAD) ** 2
        return float(prior / 2 - np.where(hit, np.log(confirmed), np.log1p(-confirmed)).sum())

    begin = np.array([0.0, 0.0, usual])
    simplex = begin + np.vstack([np.zeros(3), np.diag([0.5, 0.5, _HABIT_SPREAD])])
    found = minimize(
        loss, begin, method="Nelder-Mead", options={"initial_simplex": simplex, "maxiter": 400, "fatol": 0.01}
    )
    return float(found.x[0]), float(np.exp(found.x[1])), 1 - _SHARED_MISTAKES
