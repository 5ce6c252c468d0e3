"""Calibration by hidden annotators finds what was put in, and certificates are sums that can be done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from quorate.choose.calibrate import fit_span_map
from quorate.choose.hidden import Agreement
from quorate.encode.algebra import Spans
from quorate.result.calibration import AS_STATED, Calibration
from quorate.result.certificate import SpanTallies, certify


def test_the_span_map_is_found_from_confirmations() -> None:
    rng = np.random.default_rng(0)
    stated = rng.beta(4, 1, 30_000)
    truly = expit(-0.8 + 0.6 * logit(stated))
    habit = rng.uniform(0.3, 0.8, len(stated))
    confirmed = rng.random(len(stated)) < truly * habit * np.exp(0.24)
    nothing = np.zeros(0, np.int64)
    agreement = Agreement(np.zeros((6, 1)), Spans(nothing, nothing, nothing, nothing), confirmed, habit)
    shift, slope, ceiling = fit_span_map(agreement, stated)
    assert (shift, slope) == pytest.approx((-0.8, 0.6), abs=0.12)
    assert ceiling == 0.97
    found = Calibration(1.0, shift, slope, ceiling).spans(stated)
    assert np.abs(found - 0.97 * truly).mean() < 0.03


def test_as_stated_changes_nothing() -> None:
    values = np.array([0.0, 0.3, 1.0])
    assert AS_STATED.spans(values) is values


def test_a_certificate_by_hand() -> None:
    document = np.array([0, 0, 2])
    stated = np.array([0.9, 0.8, 0.7])
    calibration = Calibration(0.5, -1.0, 1.0)
    right = expit(logit(stated) - 1.0)
    sharp, blunt = np.array([2.0, 0.5, 0.6]), np.array([2.4, 0.7, 0.8])
    counts, likely, sure = (
        np.bincount(document, one, minlength=3).astype(np.float64)
        for one in (np.ones(3), calibration.spans(stated), stated)
    )
    found = certify(SpanTallies(counts, likely, sure, sharp, blunt), calibrated=True)
    true = (3.1 + 3.9) / 2
    assert found.precision == pytest.approx(right.sum() / 3)
    assert found.recall == pytest.approx(right.sum() / true)
    assert found.f1 == pytest.approx(2 * right.sum() / (3 + true))
    above = np.array([2 * right[:2].sum(), 0.0, 2 * right[2]])
    below = np.array([2.0, 0.0, 1.0]) + (sharp + blunt) / 2
    error = np.sqrt(((above - found.f1 * below) ** 2).sum()) / below.sum()
    assert found.low == pytest.approx(max(2 * right.sum() / (3 + 3.9) - 1.96 * error - 0.08, 0))
    assert found.high == pytest.approx(min(2 * 2.4 / (3 + 3.1) + 1.96 * error + 0.04, 1))
    assert found.calibrated
