"""Evidence, decoding, and the dials for precision and recall, as people use and misuse them on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate import BSC, Corpus, Document, SettingsError
from quorate.formats.jsonl import write_corpus
from quorate.storage.files.atomic import written_whole
from running import Run

FIXED = ("--method", "bsc-cm", "--epsilon0", "10", "--max-passes", "5")


@pytest.fixture
def crowd(tmp_path: Path, sample: Corpus) -> Path:
    path = tmp_path / "crowd.jsonl"
    with written_whole(path) as stream:
        write_corpus(Corpus(sample.documents[:60]), stream)
    return path


def spans_in(text: str) -> list[dict[str, Any]]:
    return [span for line in text.splitlines() for span in json.loads(line)["spans"]]


@pytest.mark.parametrize("evidence", ["tokens", "spans", "votes", "passages", "places"])
@pytest.mark.parametrize("decode", ["best", "f1", "token-f1", "sequence"])
def test_every_evidence_is_decoded_in_every_way(run: Run, crowd: Path, evidence: str, decode: str) -> None:
    code, out, err = run("aggregate", crowd, *FIXED, "--evidence", evidence, "--decode", decode)
    assert code == 0, err
    assert len(spans_in(out)) > 30


@pytest.mark.parametrize("evidence", ["tokens", "spans", "passages", "places"])
def test_a_dial_is_kept_to_and_told_in_one_line(run: Run, crowd: Path, evidence: str) -> None:
    given = {}
    for dial, share in (("precision", 0.95), ("recall", 0.7)):
        code, out, err = run("aggregate", crowd, "--evidence", evidence, f"--{dial}", share)
        assert code == 0, err
        told = re.search(
            rf" spans as keep an expected {dial} of {share}: (\d+) spans, expected precision (\S+), rec", err
        )
        assert told, err
        given[dial] = spans_in(out)
        assert int(told[1]) == len(given[dial])
        right = sum(span["confidence"] for span in given[dial])
        assert right / len(given[dial]) == pytest.approx(float(told[2]), abs=0.006)
        if dial == "precision":
            assert right / len(given[dial]) > share - 0.005
    assert len(given["precision"]) != len(given["recall"])


def test_a_dial_that_cannot_be_reached_says_so(run: Run, crowd: Path) -> None:
    _, _, err = run("aggregate", crowd, *FIXED, "--evidence", "spans", "--recall", "1")
    assert re.search(r"an expected recall of 1 cannot be reached, .* the most is \d+ spans, expected precision", err), (
        err
    )
    code, out, err = run("aggregate", crowd, "--evidence", "tokens", "--precision", "0.999")
    assert (code, spans_in(out)) == (0, []), err
    assert "no span is sure enough for an expected precision of 0.999" in err


def test_a_saved_model_takes_a_dial(run: Run, crowd: Path) -> None:
    assert (
        run("aggregate", crowd, *FIXED, "--evidence", "spans", "-o", "o.jsonl", "--save", "m", "--recall", "0.5")[0]
        == 0
    )
    _, few, err = run("predict", "m", crowd)
    assert "as few spans as keep an expected recall of 0.5: " in err
    code, sure, err = run("predict", "m", crowd, "--precision", "0.9")
    assert code == 0
    assert "as many spans as keep an expected precision of 0.9: " in err
    assert len(spans_in(few)) < len(spans_in(sure))
    assert sum(span["confidence"] for span in spans_in(sure)) >= 0.895 * len(spans_in(sure))
    code, _, err = run("predict", "m", crowd, "--decode", "token")
    assert (code, err.count("\n")) == (2, 1), err
    code, _, err = run("predict", "m", crowd, "--decode", "sequence")
    assert code == 0, err


def test_an_update_takes_the_other_dial_than_the_model_was_saved_with(run: Run, crowd: Path) -> None:
    run("aggregate", crowd, *FIXED, "-o", "o.jsonl", "--save", "sure", "--precision", "0.95")
    run("aggregate", crowd, *FIXED, "-o", "o.jsonl", "--save", "plain")
    code, out, err = run("update", "sure", crowd, "--recall", "0.5")
    assert (code, out) == (0, run("update", "plain", crowd, "--recall", "0.5")[1]), err
    assert spans_in(out)
    code, _, err = run("update", "sure", crowd, "--recall", "0.5", "--precision", "0.9")
    assert code == 2
    assert "not to both" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--precision", "0.9", "--recall", "0.9"), "a precision or to a recall, not to both"),
        (("--precision", "1.5"), "precision must be above 0 and at most 1, not 1.5"),
        (("--recall", "0"), "recall must be above 0 and at most 1, not 0"),
        (("--evidence", "words"), "evidence 'words' is not known (one of: tokens, spans, passages, votes, places)"),
        (("--decode", "beam"), "decode 'beam' is not known (one of: best, f1, token-f1, sequence, token)"),
        (("--decode", "token", "--evidence", "spans"), "with decode 'token' the evidence is 'tokens'"),
        (("--decode", "token", "--recall", "0.9"), "with decode 'token' no precision or recall"),
        (("--method", "mv", "--decode", "f1"), "decode 'f1' needs probabilities of spans"),
        (("--method", "crf-ma", "--decode", "f1"), "decode 'f1' needs probabilities of spans"),
        (("--method", "mv", "--precision", "0.9"), "method 'mv' has no setting 'precision'"),
    ],
)
def test_a_wrong_value_gets_one_clear_line(run: Run, crowd: Path, options: tuple[str, ...], said: str) -> None:
    code, out, err = run("aggregate", crowd, *options)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert said in err


@pytest.mark.parametrize(
    "asked", [{"precision": 0.9}, {"recall": 0.9}, {"decode": "f1"}, {"evidence": "spans"}, {"evidence": "places"}]
)
def test_labels_without_spans_refuse_what_is_for_spans(asked: dict[str, Any]) -> None:
    corpus = Corpus([Document("1", ("good", "bad"), {"ann": ("pos", "neg"), "bob": ("pos", "pos")})])
    with pytest.raises(quorate.SettingsError, match="is for spans, and labels of the plain scheme have none"):
        quorate.aggregate(corpus, scheme="plain", **asked)
    assert quorate.aggregate(corpus, scheme="plain").tags


def test_a_choice_that_is_nearly_one_is_named_and_one_of_another_kind_refused(run: Run, crowd: Path) -> None:
    assert (
        "evidence 'passage' is not known (did you mean 'passages'?)"
        in run("aggregate", crowd, "--evidence", "passage")[2]
    )
    with pytest.raises(SettingsError, match=r"decode 3 is not known \(one of: best"):
        BSC().set_params(decode=3).fit(quorate.read(crowd))
