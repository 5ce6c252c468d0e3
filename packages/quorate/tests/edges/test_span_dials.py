"""Decoding, and the dials for precision and recall, as people use and misuse them on the command line."""

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


@pytest.mark.parametrize("spans", ["--spans", "--no-spans"])
@pytest.mark.parametrize("decode", ["best", "f1", "sequence", "token"])
def test_everything_is_decoded_in_every_way(run: Run, crowd: Path, spans: str, decode: str) -> None:
    code, out, err = run("aggregate", crowd, *FIXED, spans, "--decode", decode)
    assert code == 0, err
    assert len(spans_in(out)) > 30


@pytest.mark.parametrize("spans", ["--spans", "--no-spans"])
def test_a_dial_is_kept_to_and_told_in_one_line(run: Run, crowd: Path, spans: str) -> None:
    given = {}
    for dial, share in (("precision", 0.95), ("recall", 0.7)):
        code, out, err = run("aggregate", crowd, spans, f"--{dial}", share)
        assert code == 0, err
        told = re.search(
            rf" spans as keep an expected {dial} of {share}: (\d+) spans, expected precision (\S+), expected rec", err
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
    _, _, err = run("aggregate", crowd, *FIXED, "--spans", "--recall", "1")
    assert re.search(r"an expected recall of 1 cannot be reached, .* the most is \d+ spans, expected precision", err), (
        err
    )
    code, out, err = run("aggregate", crowd, "--precision", "0.9999")
    assert (code, spans_in(out)) == (0, []), err
    assert "no span is sure enough for an expected precision of 0.9999" in err


def test_a_saved_model_takes_a_dial(run: Run, crowd: Path) -> None:
    saved = ("-o", "o.jsonl", "--save", "m", "--recall", "0.5")
    assert run("aggregate", crowd, *FIXED, "--spans", *saved)[0] == 0
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
        (("--evidence", "spans"), "there is no option --evidence any more (--spans is the default, --no-spans looks"),
        (("--evidence=tokens",), "there is no option --evidence any more (--spans is the default, --no-spans looks"),
        (("--zeros", "dropped"), "there is no option --zeros any more (the prior mass"),
        (("--checkpoint", "here"), "there is no option --checkpoint any more (a fit takes seconds)"),
        (("--tagger", "auto"), "tagger 'auto' is not known (one of: none, crf, context)"),
        (("--annotator", "auto"), "annotator 'auto' is not known (one of: acc, spam, cv, cm, seq, pool)"),
        (("--start", "coverage"), "start 'coverage' is not known (one of: prior, votes)"),
        (("--decode", "token-f1"), "decode 'token-f1' is not known"),
        (("--method", "bsc-span"), "there is no method 'bsc-span' any more"),
        (("--method", "silent-vote"), "there is no method 'silent-vote' any more (it is called 'mv-abstain')"),
        (("--decode", "beam"), "decode 'beam' is not known (one of: best, f1, sequence, token)"),
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


@pytest.mark.parametrize("asked", [{"precision": 0.9}, {"recall": 0.9}, {"decode": "f1"}])
def test_labels_without_spans_refuse_what_is_for_spans(asked: dict[str, Any]) -> None:
    corpus = Corpus([Document("1", ("good", "bad"), {"ann": ("pos", "neg"), "bob": ("pos", "pos")})])
    with pytest.raises(quorate.SettingsError, match="is for spans, and labels of the plain scheme have none"):
        quorate.aggregate(corpus, scheme="plain", **asked)
    assert quorate.aggregate(corpus, scheme="plain").tags


def test_a_choice_that_is_nearly_one_is_named_and_one_of_another_kind_refused(run: Run, crowd: Path) -> None:
    assert "decode 'tokens' is not known (did you mean 'token'?)" in run("aggregate", crowd, "--decode", "tokens")[2]
    with pytest.raises(SettingsError, match=r"decode 3 is not known \(one of: best"):
        BSC().set_params(decode=3).fit(quorate.read(crowd))


@pytest.mark.parametrize(("line", "instead"), [('evidence = "spans"', "spans=True"), ('checkpoint = "c"', "seconds")])
def test_an_option_that_is_gone_is_named_where_it_stands(run: Run, crowd: Path, line: str, instead: str) -> None:
    Path("quorate.toml").write_text(f'inputs = ["crowd.jsonl"]\n[aggregate]\n{line}\n')
    key = line.split()[0]
    for command in ("run", "status", "aggregate"):
        code, out, err = run(command)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert f"quorate.toml:3: there is no option '{key}' any more (" in err
        assert instead in err


def test_a_file_of_settings_with_one_that_is_gone_says_what_to_use(run: Run, crowd: Path) -> None:
    Path("best.json").write_text(json.dumps({"method": "auto", "settings": {"zeros": "dropped"}}))
    code, out, err = run("aggregate", crowd, "--settings", "best.json")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert "best.json: there is no setting 'zeros' any more (the prior mass" in err
