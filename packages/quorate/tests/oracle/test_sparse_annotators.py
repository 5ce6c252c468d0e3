"""Annotators of whom only the cells that occur are stored, against tables in which every cell is written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from problems import dense_sequential_prior, tagset
from quorate.corpus.tags import Scheme, TagSet
from quorate.crowd.crowd import AnnotatorPriors, Cells
from quorate.crowd.encode import n_previous
from quorate.model.parts.annotators import AnnotatorPrior
from quorate.model.parts.confusions import ConfusionMatrix, Sequential
from quorate.model.parts.dirichlet import View, divergence, expected_log, log_mean
from quorate.model.parts.text import Words

Floats = NDArray[np.float64]
Model = ConfusionMatrix | Sequential
ALPHA0, EPSILON0, K = 0.7, 2.5, 4
THE_SAME = AnnotatorPriors()
CASES = [(ConfusionMatrix, False), (ConfusionMatrix, True), (Sequential, False)]


def random_cells(tags: TagSet, n_annotators: int, rng: np.random.Generator, share: float = 0.4) -> Cells:
    """Some of the cells that the scheme allows; the last annotator says nothing."""
    J, P = len(tags.labels), n_previous(tags)
    allowed = np.ones((P, J), dtype=np.bool_)
    allowed[:J] = tags.allowed
    occurs = allowed & (rng.random((n_annotators, P, J)) < share)
    occurs[-1] = False
    annotator, previous, label = np.nonzero(occurs)
    return Cells(annotator, previous, label, n_annotators, J, P)


class Dense:
    """``[K, ι, j, i]`` Priors and counts; *cm* has one ι for all."""

    def __init__(self, kind: type[Model], tags: TagSet, believed: AnnotatorPriors = THE_SAME) -> None:
        def one(epsilon0: float) -> Floats:
            if kind is Sequential:
                return dense_sequential_prior(tags, ALPHA0, epsilon0)
            return (ALPHA0 + epsilon0 * np.eye(len(tags.labels)))[None]

        trust, coverage = (*(believed.trust or (1.0,) * K), 1.0), believed.coverage or (1.0,) * K
        coverage = (*coverage, float(np.median(coverage)))  # the last one is a stranger
        self.prior = np.stack([one(EPSILON0 * factor) for factor in trust])
        for k, share in enumerate(coverage if tags.outside is not None else ()):
            for before, rows in enumerate(self.prior[k]):
                for row in rows if one(0.0)[before, 0, tags.outside] > 0 and share < 1 else ():  # where O can be said
                    total = row.sum()
                    row *= max(share, 0.1)
                    row[tags.outside] = total - np.delete(row, tags.outside or 0).sum()
        self.counts = np.zeros_like(self.prior)

    def add(self, cells: Cells, counts: Floats) -> None:
        for k, before, i, row in zip(cells.annotator, cells.previous, cells.label, counts, strict=True):
            self.counts[k, before if self.prior.shape[1] > 1 else 0, :, i] += row
        gave = max(len(set(cells.annotator.tolist())), 1)  # whoever gave no label says nothing of the crowd
        self.counts[-1] = self.counts[:-1].sum(axis=0) / gave

    def log_lik(self, cells: Cells, view: View) -> Floats:
        logs = view(self.prior + self.counts)
        before = cells.previous if self.prior.shape[1] > 1 else 0
        return logs[np.minimum(cells.annotator, len(logs) - 1), before, :, cells.label]


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize(("kind", "point"), CASES)
@pytest.mark.parametrize("trust", [None, (0.0, 1.0, 7.5, 2.0)])
@pytest.mark.parametrize("coverage", [None, (1.0, 0.02, 0.4, 0.7)], ids=["nobody abstains", "some abstain"])
def test_cells_that_occur_tell_all_there_is(
    kind: type[Model],
    point: bool,
    scheme: Scheme,
    trust: tuple[float, ...] | None,
    coverage: tuple[float, ...] | None,
) -> None:
    tags, rng = tagset(scheme, 2), np.random.default_rng(5)
    if tags.outside is None:
        coverage = None  # plain labels have no O
    priors = AnnotatorPriors(trust, coverage)
    prior = AnnotatorPrior(tags, ALPHA0, EPSILON0, point=point, of_each=priors)
    cells = random_cells(tags, K, rng)
    counts = rng.gamma(1.0, 2.0, (len(cells.label), cells.n_labels))
    dense = Dense(kind, tags, priors)
    dense.add(cells, counts)
    model = kind.of(prior, K).updated(cells, counts)
    live = dense.prior[:-1]
    np.testing.assert_allclose(model.kl(), divergence(live + dense.counts[:-1], live, point=point), rtol=1e-12)
    others = random_cells(tags, K + 3, rng, 0.7)
    for view in (expected_log, log_mean):
        for asked in (cells, others):
            np.testing.assert_allclose(model.log_lik(asked, view), dense.log_lik(asked, view), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.log_lik(cells), dense.log_lik(cells, log_mean if point else expected_log))
    for k in range(K + 1):
        np.testing.assert_allclose(model.matrix(k), np.exp(log_mean(dense.prior + dense.counts))[k], rtol=1e-12)


@pytest.mark.parametrize("scheme", list(Scheme))
def test_a_collapsed_model_has_the_counts_of_all_previous_labels(scheme: Scheme) -> None:
    tags, rng = tagset(scheme, 2), np.random.default_rng(8)
    cells = random_cells(tags, K, rng)
    counts = rng.gamma(1.0, 2.0, (len(cells.label), cells.n_labels))
    dense = Dense(ConfusionMatrix, tags)
    dense.add(cells, counts)
    small = Sequential.of(AnnotatorPrior(tags, ALPHA0, EPSILON0), K).updated(cells, counts).collapsed()
    assert small.matrix_shape == (1, len(tags.labels), len(tags.labels))
    for k in range(K + 1):
        np.testing.assert_allclose(small.matrix(k), np.exp(log_mean(dense.prior + dense.counts))[k], rtol=1e-12)


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("kind", [ConfusionMatrix, Sequential])
def test_mixing_is_that_of_whole_tables(kind: type[Model], scheme: Scheme) -> None:
    tags, rng = tagset(scheme, 2), np.random.default_rng(6)
    blank = kind.of(AnnotatorPrior(tags, ALPHA0, EPSILON0), K)
    total, parts = Dense(kind, tags), list[Any]()
    for weight in (0.5, 3.0):
        cells = random_cells(tags, K, rng)
        counts = rng.gamma(1.0, 2.0, (len(cells.label), cells.n_labels))
        total.add(cells, weight * counts)
        parts.append(blank.updated(cells, counts))
    mixed = parts[0].mixed(parts[1], 0.5, 3.0)
    for k in range(K + 1):
        np.testing.assert_allclose(mixed.matrix(k), np.exp(log_mean(total.prior + total.counts))[k], rtol=1e-12)
    gone = mixed.mixed(mixed, 1.0, -1.0)
    np.testing.assert_array_equal(gone.counts, 0.0)
    assert gone.kl() == 0.0


def test_words_mix_as_whole_tables_do_and_are_never_below_nothing() -> None:
    rng = np.random.default_rng(4)
    table, some = rng.gamma(1.0, 2.0, (6, 3)), np.array([1, 4])
    counts = rng.gamma(1.0, 2.0, (2, 3))
    words = Words.of(6, 3, 0.1).updated(table)
    expected = 0.5 * table
    expected[some] += 3.0 * counts
    np.testing.assert_allclose(words.mixed(some, counts, 0.5, 3.0).counts, expected, rtol=1e-15)
    gone = words.mixed(some, table[some] + 1e-12, 1.0, -1.0)
    np.testing.assert_array_equal(gone.counts[some], 0.0)
    np.testing.assert_array_equal(np.delete(gone.counts, some, axis=0), np.delete(table, some, axis=0))


def test_confusion_matrices_of_older_files_are_read() -> None:
    tags, rng = tagset(Scheme.BIO, 2), np.random.default_rng(7)
    table = rng.gamma(1.0, 2.0, (K, len(tags.labels), len(tags.labels)))
    table[1], table[2, :, 3] = 0.0, 0.0
    prior = AnnotatorPrior(tags, ALPHA0, EPSILON0)
    model = ConfusionMatrix.of(prior, K).restored({"annotators": table})
    expected = ALPHA0 + EPSILON0 * np.eye(len(tags.labels)) + table
    for k in range(K):
        np.testing.assert_allclose(model.matrix(k)[0], np.exp(log_mean(expected[k])), rtol=1e-12)
    again = ConfusionMatrix.of(prior, K).restored(model.arrays())
    np.testing.assert_array_equal(again.matrix(3), model.matrix(3))


@pytest.mark.parametrize("kind", [ConfusionMatrix, Sequential])
@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda cells, counts: (cells[:-1], counts), "'annotators' is"),
        (lambda cells, counts: (cells[::-1].copy(), counts), "no cell of these annotators and labels"),
        (lambda cells, counts: (cells + 10_000, counts), "no cell of these annotators and labels"),
        (lambda cells, counts: (cells - cells[0] - 1, counts), "'annotator_cells' holds what is not a count"),
        (lambda cells, counts: (cells, counts - 1e6), "'annotators' holds what is not a count"),
        (lambda cells, counts: (cells[:, None], counts), "'annotator_cells' is"),
    ],
)
def test_cells_of_a_file_that_cannot_be_are_refused(
    kind: type[Model], broken: Callable[[Floats, Floats], tuple[Floats, Floats]], says: str
) -> None:
    tags, rng = tagset(Scheme.BIO, 2), np.random.default_rng(9)
    cells = random_cells(tags, K, rng)
    counts = rng.gamma(1.0, 2.0, (len(cells.label), cells.n_labels))
    blank = kind.of(AnnotatorPrior(tags, ALPHA0, EPSILON0), K)
    arrays = blank.updated(cells, counts).arrays()
    wrong = broken(arrays["annotator_cells"], arrays["annotators"])
    with pytest.raises(ValueError, match=says):
        blank.restored(dict(zip(("annotator_cells", "annotators"), wrong, strict=True)))
