"""Expectations and divergences against samples."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from scipy.stats import dirichlet as dirichlet_density

from quorate.model.kernels import gamma, special
from quorate.model.parts import dirichlet

A = np.array([0.7, 3.0, 12.0])
P = np.array([1.0, 1.0, 2.0])


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    return np.random.default_rng(0).dirichlet(A, size=400_000)


def test_expected_log_by_monte_carlo(samples: np.ndarray) -> None:
    np.testing.assert_allclose(dirichlet.expected_log(A), np.log(samples).mean(axis=0), rtol=0.0, atol=0.02)


def test_log_mean_by_monte_carlo(samples: np.ndarray) -> None:
    np.testing.assert_allclose(np.exp(dirichlet.log_mean(A)), samples.mean(axis=0), rtol=0.0, atol=0.002)


def test_kl_by_monte_carlo(samples: np.ndarray) -> None:
    ratio = dirichlet_density.logpdf(samples.T, A) - dirichlet_density.logpdf(samples.T, P)
    np.testing.assert_allclose(dirichlet.kl(A, P), ratio.mean(), rtol=0.0, atol=0.02)


def test_kl_adds_up_over_rows() -> None:
    rows = np.stack([A, P])
    np.testing.assert_allclose(dirichlet.kl(rows, P), dirichlet.kl(A, P) + 0.0, rtol=1e-12)


def test_structural_zeros_are_left_out() -> None:
    with_zero = dirichlet.kl(np.append(A, 0.0), np.append(P, 0.0))
    np.testing.assert_allclose(with_zero, dirichlet.kl(A, P), rtol=1e-12)
    assert dirichlet.expected_log(np.append(A, 0.0))[-1] == -np.inf
    np.testing.assert_allclose(dirichlet.expected_log(np.append(A, 0.0))[:-1], dirichlet.expected_log(A), rtol=1e-12)


@pytest.mark.parametrize("size", [4, 5, 7, 1000])
def test_vectors_of_any_length(size: int) -> None:
    x = 10.0 ** np.random.default_rng(size).uniform(-6, 9, size)
    for fill, theirs in (
        (gamma.fill_psi, scipy.special.psi),
        (gamma.fill_gammaln, scipy.special.gammaln),
    ):
        out = np.empty_like(x)
        fill(x, out)
        np.testing.assert_allclose(out, theirs(x), rtol=2e-14, atol=1e-14)


@pytest.mark.parametrize("size", [1, 3_000, 100_001])
def test_psi_and_gammaln_equal_scipys_from_tiny_to_huge(size: int) -> None:
    x = np.append(10.0 ** np.random.default_rng(0).uniform(-6, 9, size), [0.0, 1.4616321449683623, 2.0])
    for ours, theirs in ((special.psi, scipy.special.psi), (special.gammaln, scipy.special.gammaln)):
        np.testing.assert_allclose(ours(x), theirs(x), rtol=2e-14, atol=1e-14)


@pytest.mark.parametrize("size", [1, 3, 3_000, 20_001])
def test_bend_of_gammaln_is_right_to_the_size_of_the_step_however_large_the_number(size: int) -> None:
    """Against ∫ (t − x)·ψ′(t) dt from x to x + step, in which nothing cancels."""
    rng = np.random.default_rng(size)
    x, step = 10.0 ** rng.uniform(-3, 7, size), 10.0 ** rng.uniform(-6, 6, size)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    far = np.log1p(step / x)  # in ln t, as ψ′ is steep near 0
    t = x[:, None] * np.exp(far[:, None] * (nodes + 1) / 2)
    integral = ((t - x[:, None]) * scipy.special.polygamma(1, t) * t * weights).sum(axis=1) * far / 2
    error = np.abs(special.gammaln_bend(x, step) - integral)
    assert np.all(error <= 1e-15 * (step + 20) + 1e-12 * integral)


def test_bend_of_gammaln_is_that_of_scipys_where_numbers_are_small() -> None:
    x, step = np.meshgrid(np.geomspace(1e-6, 50.0, 150), np.geomspace(1e-3, 50.0, 150))
    far = x + step
    theirs = scipy.special.gammaln(x) - scipy.special.gammaln(far) + step * scipy.special.psi(far)
    np.testing.assert_allclose(special.gammaln_bend(x, step), theirs, rtol=1e-12, atol=2e-13)
    x = far - step  # a posterior below the prior, as in no fit, but in a comparison of two
    back = scipy.special.gammaln(far) - scipy.special.gammaln(x) - step * scipy.special.psi(x)
    np.testing.assert_allclose(special.gammaln_bend(far, -step), back, rtol=1e-12, atol=2e-13)


def test_nothing_bends_at_a_structural_zero() -> None:
    x, step = np.zeros(20_000), np.zeros(20_000)
    step[1] = 2.0
    bent = special.gammaln_bend(x, step)
    assert bent[1] == np.inf
    assert not bent[[0, *range(2, 20_000)]].any()


@pytest.mark.parametrize("point", [False, True])
def test_divergence_keeps_its_digits_under_a_prior_that_drowns_the_data(point: bool) -> None:
    """Twice the same counts, one a little further: the difference is known, and must not be lost in rounding."""
    prior = np.full((400, 50), 1e6)
    counts = np.random.default_rng(0).integers(0, 5, prior.shape).astype(float)
    more = counts.copy()
    more[0, 0] += 1e-4
    step = dirichlet.divergence(prior + more, prior, point=point) - dirichlet.divergence(
        prior + counts, prior, point=point
    )
    a, total = prior[0, 0] + counts[0, 0], (prior + counts)[0].sum()
    n, n_row = counts[0, 0], counts[0].sum()
    slope = (n / a - n_row / total) if not point else (-prior[0, 0] / a + prior[0].sum() / total)
    assert step == pytest.approx(slope * 1e-4, abs=1e-11)


def test_exponentials_and_logarithms_of_vectors_equal_numpys() -> None:
    x = np.append(np.random.default_rng(0).uniform(-700.0, 700.0, 7_998), [0.0, 1e-9])
    exponentials, logarithms = np.empty_like(x), np.empty_like(x)
    gamma.fill_exp(x, exponentials)
    gamma.fill_log(exponentials, logarithms)
    np.testing.assert_allclose(exponentials, np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(logarithms, np.log(exponentials), rtol=1e-15, atol=1e-16)
    gone = np.array([-np.inf, -1e6, -709.0, 0.0] * 2)
    gamma.fill_exp(gone, exponentials[:8])
    assert exponentials[:4].tolist() == [0.0, 0.0, 0.0, 1.0]
