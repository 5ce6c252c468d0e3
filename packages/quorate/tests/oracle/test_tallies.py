"""Sums over what was said, against NumPy's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import quorate
from quorate.crowd.algebra import token_of_events
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.model.engines.threads import cell_counts_of
from quorate.model.kernels.tallies import votes


@pytest.fixture(params=["each once", "weighed"])
def encoded(request: pytest.FixtureRequest) -> Crowd:
    corpus = quorate.Corpus(quorate.sample().documents[:40])
    found = encode(corpus, corpus.tagset())
    if request.param == "each once":
        return found
    weight = np.random.default_rng(1).uniform(0.1, 1.0, len(found.event_cell))
    return replace(found, event_weight=weight)


def test_counts_of_cells(encoded: Crowd) -> None:
    posterior = np.random.default_rng(2).dirichlet(np.ones(len(encoded.tagset.labels)), encoded.n_tokens)
    weight = np.ones(len(encoded.event_cell)) if encoded.event_weight is None else encoded.event_weight
    expected = np.zeros((len(encoded.cells.label), posterior.shape[1]))
    np.add.at(expected, encoded.event_cell, weight[:, None] * posterior[token_of_events(encoded)])
    np.testing.assert_allclose(cell_counts_of(encoded, posterior), expected, rtol=1e-12)


def test_votes(encoded: Crowd) -> None:
    tagset, label = encoded.tagset, encoded.cells.label
    weight = np.ones(len(encoded.event_cell)) if encoded.event_weight is None else encoded.event_weight
    kind, begins = tagset.type_of[label], tagset.opens[label]
    given = np.zeros(0) if encoded.event_weight is None else weight
    found = votes(encoded.event_start, encoded.event_cell, given, kind, begins, len(tagset.types))
    token, N = token_of_events(encoded), encoded.n_tokens

    def summed(which: np.ndarray) -> np.ndarray:
        return np.bincount(token[which], weight[which], minlength=N)

    np.testing.assert_allclose(found[0], np.bincount(token, weight, minlength=N), rtol=1e-12)
    np.testing.assert_allclose(found[1], summed(begins[encoded.event_cell]), rtol=1e-12)
    for number in range(len(tagset.types)):
        np.testing.assert_allclose(found[2][number], summed(kind[encoded.event_cell] == number), rtol=1e-12)
