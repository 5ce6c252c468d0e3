"""Priors of the sequential annotator model: what the scheme forbids is left out, and its mass moved or dropped."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.infer.annotators import AnnotatorPrior, sequential_prior
from quorate.tags import Scheme, TagSet

SCHEMES = [Scheme.BIO, Scheme.BIOES]


@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_forbidden_labels_have_no_mass_at_all(scheme: Scheme, moved: bool) -> None:
    tags = TagSet.of_types(scheme, ["X", "Y"])
    table = sequential_prior(AnnotatorPrior(tags, 1.0, 10.0, moved=moved))
    for before in range(len(tags.labels)):
        np.testing.assert_array_equal(table[before][:, ~tags.allowed[before]], 0.0)
        assert np.all(table[before][:, tags.allowed[before]] > 0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_moved_mass_is_kept_and_dropped_mass_is_not(scheme: Scheme) -> None:
    tags = TagSet.of_types(scheme, ["X", "Y"])
    J = len(tags.labels)
    moved = sequential_prior(AnnotatorPrior(tags, 1.0, 10.0, moved=True))
    dropped = sequential_prior(AnnotatorPrior(tags, 1.0, 10.0, moved=False))
    np.testing.assert_allclose(moved.sum(axis=2), J + 10.0)
    allowed = tags.allowed.sum(axis=1)[:, None] + 10.0 * tags.allowed
    np.testing.assert_allclose(dropped.sum(axis=2), allowed)


def test_where_mass_goes_in_bio() -> None:
    tags = TagSet.of_types(Scheme.BIO, ["X", "Y"])
    table = sequential_prior(AnnotatorPrior(tags, 1.0, 10.0))
    O, BX, IX, BY, IY = (tags.index[name] for name in ("O", "B-X", "I-X", "B-Y", "I-Y"))  # noqa: E741
    assert table[O, IX, BX] == 1 + 11  # after O, who means I-X says B-X
    assert table[BY, IX, IY] == 1 + 11  # inside a Y, who should say I-X goes on with I-Y
    assert table[IY, IX, IY] == 1 + 11
    assert table[O, O, BX] == table[O, O, BY] == 2


def test_kept_invalid_labels_leave_nothing_out() -> None:
    tags = TagSet.of_types(Scheme.BIO, ["X"])
    table = sequential_prior(AnnotatorPrior(tags, 1.0, 10.0, forbid=False))
    np.testing.assert_array_equal(table, np.broadcast_to(1.0 + 10.0 * np.eye(3), (3, 3, 3)))
