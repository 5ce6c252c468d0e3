"""A fit that was interrupted goes on from its last pass, and ends where it would have ended, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import quorate
from quorate import BSC, Corpus
from quorate.cli import app
from quorate.model.loop import Progress
from quorate.storage.corpora import store

FIXED: dict[str, Any] = {
    "epsilon0": 1.0,
    "temper": 1.0,
    "evidence": "tokens",
    "tagger": None,
    "max_iter": 5,
    "tol": 0.0,
}


class InterruptedFitError(Exception):
    pass


@pytest.fixture(scope="module")
def few() -> Corpus:
    return Corpus(quorate.sample().documents[:60])


def interrupted(model: BSC, corpus: Corpus, after: int, **options: Any) -> None:
    """A fit that ends in the middle of a pass, before anything is learned from it."""
    told: list[Progress] = []

    def stop(step: Progress) -> None:
        told.append(step)
        if len(told) == after:
            raise InterruptedFitError

    with pytest.raises(InterruptedFitError):
        model.fit(corpus, progress=stop, **options)


def passes_of(model: BSC, corpus: Corpus, **options: Any) -> list[tuple[int, int]]:
    """Start and number of each pass that a fit goes through."""
    told: list[tuple[int, int]] = []
    model.fit(corpus, progress=lambda step: told.append((step.start, step.passes)), **options)
    return told


def same(ours: BSC, theirs: BSC) -> None:
    assert ours.trace_[:3] == theirs.trace_[:3]
    np.testing.assert_array_equal(ours.result_.posterior, theirs.result_.posterior)
    assert ours.result_.tags == theirs.result_.tags


MODELS = [
    *((name, {}) for name in ("acc", "spam", "cv", "cm", "seq")),
    *((name, {"text": False, "truth": "independent"}) for name in ("acc", "spam", "cv", "cm", "seq")),
    *((name, {"inference": "em-annotators"}) for name in ("acc", "spam", "cv", "cm")),
]


@pytest.mark.parametrize(("annotator", "options"), MODELS, ids=str)
def test_every_model_goes_on_from_its_last_pass(
    few: Corpus, tmp_path: Path, annotator: Any, options: dict[str, Any]
) -> None:
    whole = BSC(annotator, **FIXED | options).fit(few)
    model = BSC(annotator, **FIXED | options, checkpoint=tmp_path / "kept")
    interrupted(model, few, 4)
    assert passes_of(model, few) == [(0, 4), (0, 5)]
    same(model, whole)
    assert passes_of(model, few) == []  # all is there
    same(model, whole)


def test_starts_that_were_done_are_not_done_again(few: Corpus, tmp_path: Path) -> None:
    options = {**FIXED, "n_init": 3, "random_state": 7}
    whole = BSC("seq", **options).fit(few)
    model = BSC("seq", **options, checkpoint=tmp_path)
    interrupted(model, few, 8)
    assert passes_of(model, few) == [*((1, n) for n in range(3, 6)), *((2, n) for n in range(1, 6))]
    same(model, whole)


def test_a_choice_is_kept_and_so_are_histories_and_known_labels(few: Corpus, tmp_path: Path) -> None:
    earlier = BSC("cm", **FIXED).fit(quorate.sample())
    given: dict[str, Any] = {"history": earlier, "known": {few[3].id: few[3].gold or ()}}
    whole = BSC("cm", **FIXED).fit(few, **given)
    model = BSC("cm", **FIXED, checkpoint=tmp_path / "history")
    interrupted(model, few, 3, **given)
    assert passes_of(model, few, **given) == [(0, 3), (0, 4), (0, 5)]
    same(model, whole)

    chosen = BSC(tagger=None, max_iter=4).fit(few)
    model = BSC(tagger=None, max_iter=4, checkpoint=tmp_path / "chosen").fit(few)
    again = BSC(tagger=None, max_iter=4, checkpoint=tmp_path / "chosen")
    assert passes_of(again, few) == []  # nothing is tried, nothing is fitted
    assert again.settings_ == model.settings_ == chosen.settings_
    assert again.calibration_ == chosen.calibration_
    same(again, chosen)


def test_a_tagger_in_the_crowd_goes_on_too(few: Corpus, tmp_path: Path) -> None:
    options = {**FIXED, "max_iter": 3, "tagger": "crf"}
    whole = BSC("cm", **options).fit(few)
    model = BSC("cm", **options, checkpoint=tmp_path)
    interrupted(model, few, 6)
    assert (tmp_path / "fit-1.checkpoint").exists()
    model.fit(few)
    same(model, whole)


def test_a_checkpoint_of_another_fit_is_refused_in_one_line(few: Corpus, tmp_path: Path) -> None:
    BSC("cm", **FIXED, checkpoint=tmp_path).fit(few)
    other = {**FIXED, "max_iter": 6, "checkpoint": tmp_path}
    with pytest.raises(quorate.SettingsError, match=r"another fit: max_iter was 5 and is 6 \(give another folder"):
        BSC("cm", **other).fit(few)
    fewer = Corpus(few.documents[:-1])
    with pytest.raises(quorate.SettingsError, match="another fit: the data are others"):
        BSC("cm", **FIXED, checkpoint=tmp_path).fit(fewer)
    known = {few[3].id: few[3].gold or ()}
    with pytest.raises(quorate.SettingsError, match="the data are others"):
        BSC("cm", **FIXED, checkpoint=tmp_path).fit(few, known=known)
    file = tmp_path / "fit-1.checkpoint"
    content = file.read_bytes()
    for damaged in (content[: len(content) // 2], content[:-9] + b"\x07" + content[-8:], b""):
        file.write_bytes(damaged)
        with pytest.raises(quorate.InputError, match=r"fit-1\.checkpoint: a damaged checkpoint"):
            BSC("cm", **FIXED, checkpoint=tmp_path).fit(few)
    with pytest.raises(quorate.OutputError, match="no checkpoint can be written"):
        BSC("cm", **FIXED, checkpoint=file).fit(few)


def test_an_encoded_corpus_is_known_by_its_digest(few: Corpus, tmp_path: Path) -> None:
    paths = [tmp_path / "one.qr", tmp_path / "two.qr"]
    store(few.documents[:30], paths[0])
    store(few.documents[30:], paths[1])
    model = BSC("cm", **FIXED, checkpoint=tmp_path / "kept").fit(quorate.read(*paths))
    assert passes_of(model, quorate.read(*paths)) == []
    with pytest.raises(quorate.SettingsError, match="the data are others"):
        model.fit(quorate.read(*reversed(paths)))


def test_the_command_line_and_layers_have_it(tmp_path: Path) -> None:
    def run(*arguments: str) -> None:
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == 0, done.output

    crowd = tmp_path / "crowd.qr"
    store(quorate.sample().documents[:60], crowd)
    outputs = []
    for name in ("first", "second"):
        out = tmp_path / f"{name}.jsonl"
        method = ("--method", "bsc-cm", "--max-passes", "3", "--checkpoint", str(tmp_path / "kept"))
        run("aggregate", str(crowd), "-o", str(out), *method, "-q")
        outputs.append(out.read_text())
    assert outputs[0] == outputs[1]
    assert [file.name for file in (tmp_path / "kept").iterdir()] == ["fit-1.checkpoint"]

    corpus = quorate.sample()
    result = quorate.aggregate_layers({"A": corpus, "B": corpus}, "bsc-cm", max_iter=2, checkpoint=tmp_path / "layers")
    assert len(result.layers) == 2
    assert sorted(each.name for each in (tmp_path / "layers").iterdir()) == ["layer-1", "layer-2"]


def test_what_an_accelerator_rounds_is_not_finished_elsewhere(tmp_path: Path) -> None:
    corpus = quorate.sample()
    BSC("cm", **FIXED, checkpoint=tmp_path).fit(corpus)
    with pytest.raises(quorate.QuorateError, match="engine was threads and is jax"):
        BSC("cm", **FIXED, checkpoint=tmp_path, engine="jax").fit(corpus)
