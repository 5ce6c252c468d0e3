"""Comparing methods, scoring files, tuning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate import Corpus, Document, InputError, SettingsError
from quorate.evaluate.compare import Answers, compare, read_answers, score_answers
from quorate.evaluate.tune import tune


def test_compare_scores_what_the_methods_give(sample: Corpus) -> None:
    found = compare(sample, ["mv", "bsc-seq"], reference="bsc-seq")
    votes, model = found.rows
    result = quorate.aggregate(sample, "mv")
    assert votes.scores.strict == quorate.score.strict(result.tags, [d.gold for d in sample])
    assert model.test is None
    assert votes.test is not None
    assert votes.test.p_value < 1e-6
    assert votes.difference is not None
    assert votes.difference.high < 0
    assert model.seconds > 0


def test_plain_tags_are_compared_by_token() -> None:
    votes = {"1": "yyn", "2": "nnn", "3": "yyy", "4": "nny"}
    corpus = Corpus(
        Document(key, (key,), {f"a{n}": (vote,) for n, vote in enumerate(v)}, (v[0],)) for key, v in votes.items()
    )
    found = compare(corpus, ["mv", "bsc-cm"])
    assert found.rows[0].scores.strict is None
    assert found.rows[0].scores.tokens.accuracy == 1.0


def test_split_and_gold_must_be_there(sample: Corpus) -> None:
    with pytest.raises(InputError, match="no document is of split 'test'"):
        compare(sample, ["mv"], split="test")
    with pytest.raises(InputError, match="no document to be scored has gold"):
        compare(Corpus([Document("1", ("a",), {"x": ("B-P",)})]), ["mv"])
    with pytest.raises(SettingsError, match="'ds' is not among the methods"):
        compare(sample, ["mv"], reference="ds")


def written(result: quorate.Result, path: Path, *, probabilities: bool) -> Path:
    result.write(path, probabilities=probabilities)
    return path


def test_scores_of_a_file_are_those_of_the_result(tmp_path: Path, sample: Corpus) -> None:
    result = quorate.aggregate(sample)
    direct = score_answers(Answers.of(result, range(len(result))))
    answers, missing = read_answers(written(result, tmp_path / "a.jsonl", probabilities=True), sample)
    assert missing == 0
    from_file = score_answers(answers)
    assert from_file.strict == direct.strict
    assert from_file.errors == direct.errors
    assert from_file.cross_entropy is not None
    assert direct.cross_entropy is not None
    assert from_file.cross_entropy.mean == pytest.approx(direct.cross_entropy.mean, rel=1e-12)
    assert from_file.span_calibration == direct.span_calibration
    assert direct.calibration is not None
    assert from_file.calibration is not None
    assert from_file.calibration.error == pytest.approx(direct.calibration.error, abs=1e-5)


def test_file_without_probabilities_and_with_other_documents(tmp_path: Path, sample: Corpus) -> None:
    some = Corpus(sample.documents[:100])
    path = written(quorate.aggregate(some, "mv"), tmp_path / "a.jsonl", probabilities=False)
    answers, missing = read_answers(path, sample)
    assert missing == 220
    assert score_answers(answers).cross_entropy is None
    with pytest.raises(InputError, match="no document of it has gold"):
        read_answers(path, Corpus([Document("z", ("a",), gold=("O",))]))
    other = Corpus([Document("s001", ("a",), gold=("B-P",))])
    with pytest.raises(InputError, match="18 tags for 1 gold token"):
        read_answers(path, other)


def test_empty_predictions_and_labels_nobody_used(tmp_path: Path) -> None:
    corpus = Corpus(
        [
            Document("1", ("a", "b"), {"x": ("O", "O"), "y": ("O", "B-P")}, ("B-Q", None)),
            Document("2", ("a",), {"x": ("O",), "y": ("O",)}, ("O",)),
        ]
    )
    scores = score_answers(Answers.of(quorate.aggregate(corpus, "mv", ties="outside-first"), [0, 1]))
    assert scores.strict == (0.0, 0.0, 0.0)
    assert scores.cross_entropy is not None
    assert scores.cross_entropy.unknown == 1
    assert scores.cross_entropy.tokens == 2


GRID = {"temper": [0.5, 1.0], "epsilon0": [1.0, 30.0]}


def test_tune_ranks_by_the_goal(sample: Corpus) -> None:
    found = tune(sample, "bsc-cm", split=None, grid=GRID, goal="cee", fixed={"max_iter": 3})
    values = [trial.cee for trial in found.trials]
    assert values == sorted(values)
    assert len(values) == 4
    settings: dict[str, Any] = {**found.best.settings}
    best = quorate.aggregate(sample, "bsc-cm", max_iter=3, **settings)
    entropy = quorate.score.cross_entropy(best.probabilities, [d.gold for d in sample], best.labels)
    assert entropy.mean == pytest.approx(found.best.cee, rel=1e-9)


def test_tune_goes_on_after_an_interrupt(tmp_path: Path, sample: Corpus) -> None:
    path = tmp_path / "trials.jsonl"
    whole = tune(sample, "bsc-cm", split=None, grid=GRID, fixed={"max_iter": 2}, results=path, jobs=1)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]) + lines[3][:10])  # two trials, and one cut off
    steps: list[int] = []
    again = tune(
        sample,
        "bsc-cm",
        split=None,
        grid=GRID,
        fixed={"max_iter": 2},
        results=path,
        progress=lambda done, total, note: steps.append(done),
    )
    assert steps == [3, 4]
    assert again.trials == whole.trials
    assert len(path.read_text().splitlines()) == 5


def test_tune_refuses_trials_of_something_else(tmp_path: Path, sample: Corpus) -> None:
    path = tmp_path / "trials.jsonl"
    tune(sample, "bsc-cm", split=None, grid={"temper": [1.0]}, fixed={"max_iter": 1}, results=path)
    with pytest.raises(InputError, match="holds trials of other data or settings"):
        tune(sample, "bsc-cm", split=None, grid={"temper": [1.0]}, fixed={"max_iter": 2}, results=path)
    path.write_text("{}x\n")
    with pytest.raises(InputError, match="not a file of trials"):
        tune(sample, "bsc-cm", split=None, grid={"temper": [1.0]}, results=path)


def test_tune_says_what_cannot_be_tuned(sample: Corpus) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"goal": "beauty"}, "goal 'beauty' is not known"),
        ({"method": "mv"}, "method 'mv' has no(thing to tune| setting)"),
        ({"grid": {"alpha": [1.0]}}, "has no setting 'alpha'"),
        ({"grid": {"temper": [2.0]}}, "temper must be above 0"),
        ({"jobs": -1}, "jobs must be 1 or more"),
    ]
    for options, message in wrong:
        with pytest.raises(SettingsError, match=message):
            tune(sample, **{"split": None, **options})


def test_settings_file_of_tune_is_taken_by_aggregate(tmp_path: Path, sample: Corpus) -> None:
    content = {"method": "bsc-cm", "settings": {"temper": 0.5}, "chosen_by": {}}
    (tmp_path / "best.json").write_text(json.dumps(content))
    from quorate.cli.settings import settings_from_file

    assert settings_from_file(str(tmp_path / "best.json"), None) == ("bsc-cm", {"temper": 0.5})
    with pytest.raises(SettingsError, match="these settings are for method 'bsc-cm', not 'bsc-seq'"):
        settings_from_file(str(tmp_path / "best.json"), "bsc-seq")
