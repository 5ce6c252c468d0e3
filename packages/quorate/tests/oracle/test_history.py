"""An earlier project as prior: the KL against that of plain Dirichlets, and what it does to a small project."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from by_name import bsc
from quorate import Corpus, Document, score
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.tags import Scheme, TagSet
from quorate.crowd.crowd import AnnotatorPriors
from quorate.crowd.encode import encode
from quorate.errors import SettingsError
from quorate.model.build import parts_of
from quorate.model.history import WithHistory, past_cells
from quorate.model.parts.dirichlet import kl
from simulated_crowds import sentences

GOOD = Behaviour(miss=0.05, confuse=0.02)
POOR = Behaviour(miss=0.5, confuse=0.3, start_late=0.3, invent=0.03)
PEOPLE = {"good": GOOD, "poor": POOR, "bad": POOR}


def projects() -> tuple[Corpus, Corpus]:
    made = crowd(sentences(220, seed=11), PEOPLE, seed=2).documents
    return Corpus(made[:200]), Corpus(made[200:])


def test_kl_is_that_of_dirichlets_with_the_counts_in_their_prior() -> None:
    first, second = projects()
    past = bsc("bsc-cm").fit(first).past
    model = bsc("bsc-cm", temper=1.0).fit(second)
    tagset = model.tagset_
    encoded = encode(second, tagset)
    blank = parts_of(model.fitted_.settings, tagset, len(encoded.annotators), (), AnnotatorPriors()).annotators
    kind = model.fitted_.settings.annotator
    cells, counts = past_cells(past, kind, tagset, encoded.annotators, encoded.cells.n_previous)
    part = WithHistory.around(blank, cells, counts)
    assert part.kl() == pytest.approx(0.0, abs=1e-9)
    rng = np.random.default_rng(0)
    said = rng.gamma(1.0, 2.0, (len(encoded.cells.label), len(tagset.labels)))
    updated = part.updated(encoded.cells, said)
    everybody = (len(encoded.annotators), len(tagset.labels), len(tagset.labels))
    prior = np.tile(blank.prior.alpha0 + blank.prior.epsilon0 * np.eye(everybody[1]), (everybody[0], 1, 1))
    everywhere: Any = slice(None)
    np.add.at(prior, (cells.annotator, everywhere, cells.label), counts)
    posterior = prior.copy()
    np.add.at(posterior, (encoded.cells.annotator, everywhere, encoded.cells.label), said)
    assert updated.kl() == pytest.approx(kl(posterior, prior), rel=1e-9)


@pytest.mark.parametrize("annotator", ["acc", "cv", "cm", "seq"])
def test_what_is_added_and_taken_out_again_leaves_the_history_in_it(annotator: str) -> None:
    first, second = projects()
    model = bsc(f"bsc-{annotator}", max_iter=2).fit(second, history=bsc(f"bsc-{annotator}").fit(first))
    part, cells = model.fitted_.model.annotators, encode(second, model.tagset_).cells
    assert isinstance(part, WithHistory)
    counts = np.random.default_rng(0).gamma(1.0, 2.0, (len(cells.label), cells.n_labels))
    blank = WithHistory.around(
        parts_of(model.fitted_.settings, model.tagset_, 3, (), AnnotatorPriors()).annotators, part.cells, part.counts
    )
    twice = blank.changed(cells, counts, 1.0, blank).changed(cells, counts, 1.0, blank)
    for k in range(3):
        np.testing.assert_allclose(twice.matrix(k), blank.updated(cells, 2 * counts).matrix(k), rtol=1e-12)
        gone = part.changed(cells, counts, 1.0, part).changed(cells, counts, -1.0, part)
        np.testing.assert_allclose(gone.matrix(k), part.matrix(k), rtol=1e-12)


@pytest.mark.parametrize("annotator", ["cv", "cm", "seq"])
def test_history_helps_a_small_project(annotator: str) -> None:
    first, second = projects()
    past = bsc(f"bsc-{annotator}").fit(first)
    with_history = bsc(f"bsc-{annotator}").fit(second, history=past)  # a bound that fell would raise
    without = bsc(f"bsc-{annotator}").fit(second)
    gold = [one.gold for one in second]
    better, plain = (score.strict(one.result_.tags, gold).f1 for one in (with_history, without))
    assert better > plain
    good, poor = (with_history.fitted_.model.annotators.matrix(k).diagonal(axis1=1, axis2=2).mean() for k in (1, 2))
    assert good > poor


@pytest.mark.parametrize("annotator", ["acc", "cv", "cm", "seq"])
def test_counts_of_the_past_are_all_there(annotator: str) -> None:
    first, _ = projects()
    model = bsc(f"bsc-{annotator}").fit(first)
    encoded = encode(first, model.tagset_)
    seen = past_cells(
        model.past, model.fitted_.settings.annotator, model.tagset_, encoded.annotators, encoded.cells.n_previous
    )
    blank = parts_of(model.fitted_.settings, model.tagset_, len(encoded.annotators), (), AnnotatorPriors()).annotators
    for name, array in blank.updated(*seen).arrays().items():
        np.testing.assert_allclose(array, model.past.annotators.arrays()[name], rtol=0, atol=1e-12)


@pytest.mark.parametrize("annotator", ["acc", "cv", "cm", "seq"])
@pytest.mark.parametrize("left_out", ["a", "b", "d"])
def test_counts_of_the_labels_that_are_left_stay(annotator: str, left_out: str) -> None:
    """An input without one of the past's labels, whichever it is, still has all that was learned of the others."""
    rng = np.random.default_rng(3)
    tags, names = ["a", "b", "c", "d"], ("ana", "bob")
    documents = [
        Document(str(n), ("x",) * 8, {name: tuple(rng.choice(tags, 8).tolist()) for name in names}) for n in range(30)
    ]
    model = bsc(f"bsc-{annotator}", scheme="plain", max_iter=2).fit(Corpus(documents))
    old, new = model.tagset_, TagSet(Scheme.PLAIN, tuple(label for label in tags if label != left_out))
    kept = [old.index[label] for label in new.labels]
    P = len(new.labels) + 1
    seen, counts = past_cells(model.past, model.fitted_.settings.annotator, new, names, P)
    assert (np.diff(seen.keys) > 0).all()
    found = parts_of(model.fitted_.settings, new, len(names), (), AnnotatorPriors()).annotators.updated(seen, counts)
    learned = model.fitted_.model.annotators.arrays()
    if annotator in ("acc", "cv"):  # right and wrong, of all labels or of each
        expected = learned["annotators"] if annotator == "acc" else learned["annotators"][:, kept]
        np.testing.assert_allclose(found.arrays()["annotators"], expected, rtol=1e-12)
        return
    before = [*kept, len(old.labels)] if annotator == "seq" else [0]
    np.testing.assert_allclose(
        every_cell(found.arrays(), len(names), len(before), len(kept)),
        every_cell(learned, len(names), 5 if annotator == "seq" else 1, 4)[
            np.ix_(range(len(names)), before, kept, kept)
        ],
        rtol=1e-12,
    )


def every_cell(arrays: dict[str, np.ndarray], n_annotators: int, n_previous: int, n_labels: int) -> np.ndarray:
    """``[K, ι, i, j]`` The counts of all cells, whether they occur or not."""
    table = np.zeros((n_annotators * n_previous * n_labels, n_labels))
    table[arrays["annotator_cells"].astype(int)] = arrays["annotators"]
    return table.reshape(n_annotators, n_previous, n_labels, n_labels)


def test_a_history_goes_on_in_updates() -> None:
    first, second = projects()
    past = bsc("bsc-cm").fit(first)
    model = (
        bsc("bsc-cm").fit(Corpus(second.documents[:10]), history=past).update(Corpus(second.documents[10:]), passes=3)
    )
    other = bsc("bsc-cm").fit(second, history=past)
    mine, theirs = (each.fitted_.model.annotators.matrix(1) for each in (model, other))
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=0.02)


def test_auto_takes_the_model_of_the_history() -> None:

    first, second = projects()
    past = bsc("bsc-cv").fit(first)
    assert bsc("auto").fit(second, history=past).settings_["annotator"] == "cv"


def test_histories_that_do_not_fit_say_why() -> None:
    first, second = projects()
    with pytest.raises(SettingsError, match="annotator model 'cv', not 'cm'"):
        bsc("bsc-cm").fit(second, history=bsc("bsc-cv").fit(first))
    strangers = Corpus(
        [replace(one, annotations={f"x{k}": tags for k, tags in one.annotations.items()}) for one in second]
    )
    with pytest.raises(SettingsError, match="nobody in the input is in the history"):
        bsc("bsc-cm").fit(strangers, history=bsc("bsc-cm").fit(first))
    other = Corpus(
        [
            replace(
                one, annotations={k: tuple(str(t).replace("PER", "NEW") for t in v) for k, v in one.annotations.items()}
            )
            for one in second
        ]
    )
    with pytest.raises(SettingsError, match="a model of other labels"):
        bsc("bsc-cm").fit(other, history=bsc("bsc-cm").fit(first))
    with pytest.raises(SettingsError, match="'spam' cannot be a history"):
        bsc("bsc-spam").fit(second, history=bsc("bsc-spam").fit(first))
