"""Expectations and divergences against samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.special
from numba import njit
from scipy.stats import dirichlet as dirichlet_density

from quorate.infer import dirichlet, gamma_kernels, simd, special

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


@pytest.fixture(params=[False, True], ids=["numpy", "compiled"])
def fast(request: pytest.FixtureRequest) -> Iterator[bool]:
    special.use(gamma_kernels.fill_psi, gamma_kernels.fill_gammaln) if request.param else special.use(None, None)
    yield request.param
    special.use(gamma_kernels.fill_psi, gamma_kernels.fill_gammaln)


@pytest.mark.parametrize("size", [8, 9, 15, 1000])
def test_vectors_of_any_length(size: int) -> None:
    x = 10.0 ** np.random.default_rng(size).uniform(-6, 9, size)
    for fill, theirs in (
        (gamma_kernels.fill_psi, scipy.special.psi),
        (gamma_kernels.fill_gammaln, scipy.special.gammaln),
    ):
        out = np.empty_like(x)
        fill(x, out)
        np.testing.assert_allclose(out, theirs(x), rtol=2e-14, atol=1e-14)


@pytest.mark.parametrize("size", [5, 3_000, 100_001])
def test_psi_and_gammaln_equal_scipys_from_tiny_to_huge(size: int, fast: bool) -> None:
    x = np.append(10.0 ** np.random.default_rng(0).uniform(-6, 9, size), [0.0, 1.4616321449683623, 2.0])
    for ours, theirs in ((special.psi, scipy.special.psi), (special.gammaln, scipy.special.gammaln)):
        np.testing.assert_allclose(ours(x), theirs(x), rtol=2e-14, atol=1e-14)


def test_exponentials_and_logarithms_of_vectors_equal_numpys() -> None:
    @njit
    def computed(x, exponentials, logarithms):  # type: ignore[no-untyped-def]
        for place in range(0, len(x), simd.LANES):
            simd.store(exponentials, place, simd.exp(simd.load_lanes(x, place)))
            simd.store(logarithms, place, simd.log(simd.exp(simd.load_lanes(x, place))))

    x = np.append(np.random.default_rng(0).uniform(-700.0, 700.0, 7_998), [0.0, 1e-9])
    exponentials, logarithms = np.empty_like(x), np.empty_like(x)
    computed(x, exponentials, logarithms)
    np.testing.assert_allclose(exponentials, np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(logarithms, np.log(exponentials), rtol=1e-15, atol=1e-16)
    gone = np.array([-np.inf, -1e6, -709.0, 0.0] * 2)
    computed(gone, exponentials[:8], logarithms[:8])
    assert exponentials[:4].tolist() == [0.0, 0.0, 0.0, 1.0]
