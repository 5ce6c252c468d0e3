"""Data sampled from each annotator model: its parameters come back, and a spammer is seen as one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from by_name import bsc
from quorate import Corpus
from quorate.corpus.simulate import KINDS, Behaviour, crowd, from_matrices
from quorate.corpus.tags import Scheme, TagSet
from quorate.model.parts.dirichlet import log_mean

Floats = NDArray[np.float64]
TAGS = TagSet.of_types(Scheme.BIO, ["X"])
J = len(TAGS.labels)
TRANSITIONS = np.array([[0.75, 0.25, 0.0], [0.4, 0.1, 0.5], [0.4, 0.1, 0.5]])
RNG = np.random.default_rng(0)
WORDS = RNG.dirichlet(np.full(30, 0.3), size=J)


def one_accuracy(p: float) -> Floats:
    return np.full((1, J, J), (1 - p) / (J - 1)) + (p - (1 - p) / (J - 1)) * np.eye(J)


def knows_or_guesses(p: float, habit: Floats) -> Floats:
    return (p * np.eye(J) + (1 - p) * habit)[None]


def class_accuracies(p: Floats) -> Floats:
    return np.where(np.eye(J, dtype=bool), p[:, None], ((1 - p) / (J - 1))[:, None])[None]


def by_previous(rng: np.random.Generator, right: float) -> Floats:
    """A valid matrix for each previous label: mostly right where the scheme lets the annotator be."""
    table = np.zeros((J, J, J))
    for before in range(J):
        for truth in range(J):
            row = rng.dirichlet(np.ones(J)) * (1 - right) + right * np.eye(J)[truth]
            row[~TAGS.allowed[before]] = 0.0
            table[before, truth] = row / row.sum()
    return table


MATRICES: dict[str, list[Floats]] = {
    "acc": [one_accuracy(p) for p in (0.9, 0.8, 0.7, 0.95, 0.6)],
    "spam": [knows_or_guesses(p, RNG.dirichlet(np.ones(J))) for p in (0.9, 0.8, 0.7, 0.95, 0.5)],
    "cv": [class_accuracies(RNG.uniform(0.6, 0.97, J)) for _ in range(5)],
    "cm": [(0.25 * RNG.dirichlet(np.ones(J), size=J) + 0.75 * np.eye(J))[None] for _ in range(5)],
    "seq": [by_previous(RNG, right) for right in (0.9, 0.8, 0.85, 0.75, 0.7)],
}


@pytest.mark.parametrize("annotator", list(MATRICES))
def test_parameters_are_recovered(annotator: str) -> None:
    matrices = {f"a{n}": matrix for n, matrix in enumerate(MATRICES[annotator])}
    corpus = from_matrices(TAGS, matrices, transitions=TRANSITIONS, words=WORDS, n_documents=1200, length=10, seed=1)
    # Labels that break the scheme are part of the models that do not look at the previous label: keep them.
    invalid = "repair" if annotator == "seq" else "keep"
    model = bsc(f"bsc-{annotator}", temper=1.0, epsilon0=1, max_iter=60, tol=1e-9, invalid=invalid).fit(corpus)
    for name, expected in matrices.items():
        learned = model.annotators_[name].matrix
        rows = np.ones(expected.shape[:2], dtype=bool)
        if annotator == "seq":  # a row that hardly occurs cannot be learned
            rows = occurrences(corpus, name) > 150
        np.testing.assert_allclose(learned[rows], expected[rows], rtol=0.0, atol=0.09)
        assert np.abs(learned[rows] - expected[rows]).mean() < 0.025


def occurrences(corpus: Corpus, name: str) -> Floats:
    """``[ι, j]`` How often the annotator's previous label was ι where the truth was j."""
    counts = np.zeros((J, J))
    for document in corpus:
        before = 0
        for tag, truth in zip(document.annotations[name], document.gold or (), strict=True):
            counts[before, TAGS.index[str(truth)]] += 1
            before = TAGS.index[str(tag)]
    return counts


def test_transitions_are_recovered() -> None:
    matrices = {f"a{n}": matrix for n, matrix in enumerate(MATRICES["cm"])}
    corpus = from_matrices(TAGS, matrices, transitions=TRANSITIONS, words=WORDS, n_documents=1200, length=10, seed=1)
    model = bsc("bsc-cm", temper=1.0, max_iter=60, invalid="keep").fit(corpus)
    learned = np.exp(model.fitted_.model.truth.chain(log_mean).trans)
    np.testing.assert_allclose(learned, TRANSITIONS, rtol=0.0, atol=0.04)


@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq"])
def test_a_spammer_is_seen_as_one(annotator: str, sample: Corpus) -> None:
    people = {f"careful{n}": KINDS["careful"] for n in range(3)} | {"spammer": KINDS["spammer"]}
    summaries = bsc(f"bsc-{annotator}").fit(crowd(sample, people, seed=5)).annotators_
    careful = [summaries[name] for name in people if name != "spammer"]
    assert summaries["spammer"].accuracy < min(row.accuracy for row in careful) - 0.1
    assert summaries["spammer"].informativeness < 0.35 * min(row.informativeness for row in careful)


def test_one_who_always_says_outside_tells_nothing(sample: Corpus) -> None:
    people = {f"careful{n}": KINDS["careful"] for n in range(3)} | {"silent": Behaviour(miss=1.0)}
    silent = bsc("bsc-seq").fit(crowd(sample, people, seed=5)).annotators_["silent"]
    assert silent.accuracy > 0.7
    assert silent.informativeness < 0.05


def test_informativeness_is_mutual_information() -> None:
    """Against the definition, summed over the table of previous label, truth and label, from many labels."""
    matrix = MATRICES["seq"][0]
    corpus = from_matrices(TAGS, {"a": matrix}, transitions=TRANSITIONS, n_documents=3000, length=10, seed=2)
    learned = bsc("bsc-seq", text=False, max_iter=1).fit(corpus, known="inline").annotators_["a"].informativeness
    joint = np.zeros((J, J, J))
    for document in corpus:
        before = 0
        for tag, truth in zip(document.annotations["a"], document.gold or (), strict=True):
            joint[before, TAGS.index[str(truth)], TAGS.index[str(tag)]] += 1
            before = TAGS.index[str(tag)]
    joint /= joint.sum()
    expected = 0.0
    for before, truth, label in np.argwhere(joint):
        table = joint[before] / joint[before].sum()
        p = table[truth, label]
        expected += joint[before].sum() * p * np.log2(p / (table[truth].sum() * table[:, label].sum()))
    np.testing.assert_allclose(learned, expected, rtol=0.02)
