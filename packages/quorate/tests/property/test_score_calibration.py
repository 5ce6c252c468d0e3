"""Scores of probabilities side by side with scikit-learn on random probabilities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss

from quorate import score

LABELS = ["B-X", "I-X", "O"]  # in scikit-learn's order
EXAMPLES = settings(max_examples=60, deadline=None)


@EXAMPLES
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 4))
def test_cross_entropy_is_log_loss(seed: int, n_tokens: int, n_documents: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(3), n_tokens) * 0.99 + 0.01 / 3
    gold = rng.choice(LABELS, n_tokens)
    cuts = np.sort(rng.integers(0, n_tokens + 1, n_documents - 1))
    parts = np.split(rows, cuts), [list(part) for part in np.split(gold, cuts)]
    assert score.cross_entropy(*parts, LABELS).mean == pytest.approx(log_loss(gold, rows, labels=LABELS), rel=1e-10)
    truth = np.array([[label == wish for label in LABELS] for wish in gold], float)
    assert score.brier(*parts, LABELS).mean == pytest.approx(((rows - truth) ** 2).sum(axis=1).mean(), rel=1e-10)


@EXAMPLES
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 12))
def test_reliability_bins_are_scikit_learns(seed: int, n: int, bins: int) -> None:
    rng = np.random.default_rng(seed)
    confidence = rng.integers(0, 101, n) / 100  # many fall on the edge of a bin
    right = rng.random(n) < confidence
    found = score.reliability(confidence, right, bins=bins)
    shares, means = calibration_curve(right, confidence, n_bins=bins)
    np.testing.assert_allclose([part.right for part in found.bins], shares, rtol=1e-10)
    np.testing.assert_allclose([part.confidence for part in found.bins], means, rtol=1e-10, atol=1e-12)
    assert found.count == n
    assert 0 <= found.error <= 1


def test_probabilities_that_are_true_have_little_calibration_error() -> None:
    rng = np.random.default_rng(7)
    confidence = rng.random(200_000)
    right = rng.random(200_000) < confidence
    assert score.reliability(confidence, right).error < 0.01
    assert score.reliability(confidence**3, right).error > 0.1
