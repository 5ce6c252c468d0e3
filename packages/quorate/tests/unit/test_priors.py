"""Priors of the sequential annotator model: what the scheme forbids is left out, and its mass moved or dropped."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from problems import dense_sequential_prior
from quorate.corpus.tags import Scheme, TagSet
from quorate.crowd.crowd import Cells
from quorate.crowd.encode import n_previous
from quorate.model.parts.annotators import AnnotatorPrior
from quorate.model.parts.confusions import ConfusionMatrix, Sequential

SCHEMES = [Scheme.BIO, Scheme.BIOES]


def sequential_prior(prior: AnnotatorPrior) -> np.ndarray:
    """``[ι, j, i]`` What the model says of every cell; its rows must add up to what it says of every row."""
    J, P = len(prior.tagset.labels), n_previous(prior.tagset)
    model = Sequential.of(prior, 1)
    previous, label = np.divmod(np.arange(P * J), J)
    cells = Cells(np.zeros(P * J, np.int64), previous, label, 1, J, P)
    table = model._priors(cells).reshape(P, J, J).transpose(0, 2, 1)
    rows = model._row_priors(np.zeros(P, np.int64), np.arange(P))
    np.testing.assert_allclose(table.sum(axis=2), rows, rtol=1e-12)
    return table


@pytest.mark.parametrize("forbid", [True, False])
@pytest.mark.parametrize("scheme", list(Scheme))
def test_the_prior_of_cells_is_that_of_the_whole_table(scheme: Scheme, forbid: bool) -> None:
    tags = TagSet.of_types(scheme, ["X", "Y", "Z"])
    table = sequential_prior(AnnotatorPrior(tags, 0.7, 3.1, forbid=forbid))
    np.testing.assert_allclose(table, dense_sequential_prior(tags, 0.7, 3.1, forbid=forbid), rtol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_forbidden_labels_have_no_mass_and_none_is_lost(scheme: Scheme) -> None:
    tags = TagSet.of_types(scheme, ["X", "Y"])
    table = sequential_prior(AnnotatorPrior(tags, 1.0, 10.0))
    for before in range(len(tags.labels)):
        np.testing.assert_array_equal(table[before][:, ~tags.allowed[before]], 0.0)
        assert np.all(table[before][:, tags.allowed[before]] > 0)
    np.testing.assert_allclose(table.sum(axis=2), len(tags.labels) + 10.0)


def test_where_mass_goes_in_bio() -> None:
    tags = TagSet.of_types(Scheme.BIO, ["X", "Y"])
    table = sequential_prior(AnnotatorPrior(tags, 1.0, 10.0))
    O, BX, IX, BY, IY = (tags.index[name] for name in ("O", "B-X", "I-X", "B-Y", "I-Y"))  # noqa: E741
    assert table[O, IX, BX] == 1 + 11  # after O, who means I-X says B-X
    assert table[BY, IX, BX] == 1 + 11  # and so inside a Y, as an I-X there is repaired to B-X
    assert table[IY, IX, BX] == 1 + 11
    assert table[IY, IX, IY] == 1
    assert table[O, O, BX] == table[O, O, BY] == 2


def test_kept_invalid_labels_leave_nothing_out() -> None:
    tags = TagSet.of_types(Scheme.BIO, ["X"])
    table = sequential_prior(AnnotatorPrior(tags, 1.0, 10.0, forbid=False))
    np.testing.assert_array_equal(table, np.broadcast_to(1.0 + 10.0 * np.eye(3), (3, 3, 3)))


@pytest.mark.parametrize("kind", [Sequential, ConfusionMatrix])
def test_a_model_of_many_labels_and_annotators_starts_small(kind: type[Sequential] | type[ConfusionMatrix]) -> None:
    tags = TagSet.of_types(Scheme.PLAIN, [f"L{n}" for n in range(2_000)])
    tracemalloc.start()
    try:
        model = kind.of(AnnotatorPrior(tags, 1.0, 10.0), 1_000_000)
        cells = Cells(np.array([3, 4]), np.array([7, 2000]), np.array([5, 6]), 1_000_000, 2_000, 2_001)
        fitted = model.updated(cells, np.ones((2, 2_000)))
        stranger = cells._replace(annotator=np.array([1_000_000, 1_000_001]))
        assert np.isfinite(fitted.log_lik(cells)).all()
        assert np.isfinite(fitted.log_lik(stranger)).all()
        assert fitted.kl() > 0
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
