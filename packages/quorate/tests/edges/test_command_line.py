"""The command line as people use it, and misuse it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import quorate
import simulated_crowds as crowds
from processes import Start
from quorate import Corpus, Document, score
from quorate.formats.jsonl import write_corpus
from quorate.model.settings import Settings
from quorate.storage.files.atomic import written_whole
from running import Run


@pytest.fixture
def crowd(tmp_path: Path, sample: Corpus) -> Path:
    path = tmp_path / "crowd.jsonl"
    with written_whole(path) as stream:
        write_corpus(Corpus(sample.documents[:60]), stream)
    return path


SETTING_OF = {"max_passes": "max_iter", "tolerance": "tol", "seed": "random_state", "restarts": "n_init"}


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_aggregate_to_a_file(run: Run, crowd: Path, tmp_path: Path) -> None:
    code, out, err = run("aggregate", crowd, "-o", "out.jsonl", "--save", "m.quorate", "--meta", "meta.json")
    assert (code, out) == (0, "")
    lines = records((tmp_path / "out.jsonl").read_text())
    corpus = quorate.read(crowd)
    assert [line["id"] for line in lines] == [d.id for d in corpus]
    assert all(len(line["tags"]) == len(line["tokens"]) == len(line["token_confidence"]) for line in lines)
    alpha = f"agreement {score.token_alpha(corpus):.2f} (Krippendorff's alpha)"
    gold = r"F1 [\d.]+ \([\d.]+ to [\d.]+, with 95 % confidence\) by the gold of 60 documents"
    assert re.match(rf"quorate: 60 documents combined\nquorate: {re.escape(alpha)}; {gold}\n", err)
    assert "written to out.jsonl (model: m.quorate, settings: meta.json)" in err
    assert "gold in the input was not used" in err
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert meta["method"] == "auto"
    assert meta["inputs"] == corpus.digests
    assert meta["settings"] == Settings().plain()
    assert not re.search(r" passes in |bound|held-out|exponent|epsilon0|temper", err)
    verbose = run("aggregate", crowd, "-o", "out.jsonl", "--verbose")[2]
    assert "\nquorate: 5 passes in " in verbose
    exponents = [f"{exponent:.2f}" for exponent in meta["calibration"].values()]
    told = "\nquorate: confidence calibrated on held-out annotators (exponents: tokens {}, spans {})\n"
    assert told.format(*exponents) in verbose
    stated = run("aggregate", crowd, "-o", "out.jsonl", "--verbose", "--no-calibrate")[2]
    assert "\nquorate: confidence as the model states it\n" in stated
    assert meta["version"] == quorate.__version__
    assert quorate.load(tmp_path / "m.quorate").meta_["inputs"] == corpus.digests
    assert sorted(p.name for p in tmp_path.iterdir()) == ["crowd.jsonl", "m.quorate", "meta.json", "out.jsonl"]


def test_every_option_reaches_the_model(run: Run, crowd: Path, tmp_path: Path) -> None:
    options = {
        "scheme": "bio", "invalid": "keep", "max_passes": 3, "tolerance": 0.5, "seed": 4, "restarts": 2,
        "start": "prior", "truth": "independent", "alpha0": 2.0, "epsilon0": 3.0, "gamma0": 4.0, "kappa0": 5.0,
        "temper": 0.9, "decode": "f1", "inference": "vb", "guess_prior": 0.5, "annotator": "seq", "recall": 0.9,
    }  # fmt: skip
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    switches = ("text", "shapes", "spans", "adapt", "calibrate")
    off = [f"--no-{name}" for name in switches]
    code, _, err = run("aggregate", crowd, *flags, *off, "--threads", 1, "--meta", "meta.json", "-q")
    assert code == 0, err
    settings = json.loads((tmp_path / "meta.json").read_text())["settings"]
    named = {SETTING_OF.get(name, name): value for name, value in options.items()}
    assert settings == {**named, **dict.fromkeys(switches, False), "precision": None}


def test_standard_input_and_output(run: Run, crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with crowd.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        code, out, err = run("aggregate", "-", "--method", "mv", "--probabilities", "-q")
    assert (code, err) == (0, "")
    assert len(records(out)) == 60
    assert sum(records(out)[0]["probabilities"][0]) == pytest.approx(1.0)


def test_known_labels_from_a_file_and_inline(run: Run, crowd: Path, sample: Corpus) -> None:
    code, out, _ = run("aggregate", crowd, "--known", "inline", "-q")
    assert code == 0
    assert all(tuple(line["tags"]) == sample[line["id"]].gold for line in records(out))
    known = {"id": "s002", "tokens": sample["s002"].tokens, "gold": sample["s002"].gold}
    crowd.with_name("known.jsonl").write_text(json.dumps(known))
    code, out, _ = run("aggregate", crowd, "--known", "known.jsonl", "-q")
    assert code == 0
    assert tuple(records(out)[1]["tags"]) == sample["s002"].gold
    code, _, err = run("aggregate", crowd, "--known", "nothing.jsonl")
    assert (code, err) == (2, "quorate: nothing.jsonl: no such file\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": "zz", "gold": ["O"]}, "document 'zz': this document is not in the input"),
        ({"id": "s002", "gold": ["O"]}, "document 's002': 1 known tag for "),
        ({"id": "s002", "tokens": ["x"], "gold": ["O"]}, "document 's002': other tokens than in the input"),
        ({"id": "s002", "gold": [["O"]]}, "['O'] is not a tag"),
    ],
)
def test_known_labels_that_do_not_fit(run: Run, crowd: Path, line: dict[str, object], message: str) -> None:
    crowd.with_name("known.jsonl").write_text(json.dumps(line))
    code, _, err = run("aggregate", crowd, "--known", "known.jsonl")
    assert code == 2
    assert err.startswith(f"quorate: known.jsonl:1: {message}")


def test_a_corrected_consensus_is_taken_as_known(run: Run, crowd: Path) -> None:
    run("aggregate", crowd, "-o", "out.jsonl", "-q")
    lines = records(crowd.with_name("out.jsonl").read_text())
    corrected = {"id": lines[1]["id"], "tags": ["B-NEW", *lines[1]["tags"][1:]]}
    crowd.with_name("checked.jsonl").write_text(json.dumps(corrected))
    code, out, err = run("aggregate", crowd, "--known", "checked.jsonl")
    assert code == 0
    assert records(out)[1]["tags"][0] == "B-NEW"
    assert f"{len(corrected['tags'])} tokens have known labels" in err
    assert "note: no annotator used B-NEW, I-NEW, only the known labels do\n" in err


def test_a_known_label_that_no_annotator_used_may_be_misspelt(run: Run, crowd: Path) -> None:
    document = quorate.read(crowd)[0]
    known = {"id": document.id, "tags": ["B-OGR", *["O"] * (len(document.tokens) - 1)]}
    crowd.with_name("checked.jsonl").write_text(json.dumps(known))
    code, _, err = run("aggregate", crowd, "--known", "checked.jsonl", "--method", "mv")
    assert code == 0
    assert "only the known labels do (did you mean ORG?)" in err


def test_gzipped_output_reads_back(run: Run, crowd: Path) -> None:
    assert run("demo", "--write", "sample.jsonl.gz")[0] == 0
    assert crowd.with_name("sample.jsonl.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert len(quorate.read(crowd.with_name("sample.jsonl.gz"))) == 320


def _help_of(option: Any) -> str:
    return (getattr(option, "help", None) or "").replace("(default: auto", "(default auto")


def _in_words(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else value


def test_defaults_in_the_help_are_the_defaults(run: Run) -> None:
    import re

    import typer.main

    from quorate.cli import app

    options = typer.main.get_command(app).commands["aggregate"].params  # type: ignore[attr-defined]
    checked = 0
    for option in options:
        told = re.search(r"\(default:? ([^)]*)\)|(\w+)(?:, three at once)? \(default\)", _help_of(option))
        if told and hasattr(Settings(), option.name):
            assert (told[1] or told[2]) == _in_words(Settings().plain()[option.name])
            checked += 1
    assert checked >= 16


def test_predict_and_annotators_from_a_saved_model(run: Run, crowd: Path) -> None:
    assert run("aggregate", crowd, "--save", "m.quorate", "-o", "out.jsonl", "-q")[0] == 0
    new = {"id": "new", "tokens": ["Ada", "Lind", "sang"], "annotations": {"ana": ["B-PER", "I-PER", "O"]}}
    crowd.with_name("new.jsonl").write_text(json.dumps(new))
    code, out, _ = run("predict", "m.quorate", "new.jsonl")
    assert code == 0
    assert records(out)[0]["tags"] == ["B-PER", "I-PER", "O"]
    code, out, _ = run("annotators", "m.quorate", "--sort", "name")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:4]] == ["ana", "ben", "cho"]
    assert all(len(line) <= 80 for line in out.splitlines())
    code, out, _ = run("annotators", "m.quorate", "--json")
    assert len(records(out)) == 12
    assert run("annotators", "m.quorate", "--sort", "age")[0] == 2


def test_nothing_is_told_of_how_good_one_annotator_alone_is(run: Run, sample: Corpus) -> None:
    alone = [
        quorate.Document(one.id, one.tokens, {"zoe": next(iter(one.annotations.values()))})
        for one in sample.documents[:10]
    ]
    with written_whole("some.jsonl") as stream:
        write_corpus(Corpus([*alone, *sample.documents[10:60]]), stream)
    sentence = "zoe shares no document with anybody and cannot be judged"
    told = run("aggregate", "some.jsonl", "-o", "out.jsonl", "--save", "m.quorate", "--method", "bsc-cm")[2]
    assert f"note: {sentence}" in told
    tags = {one["id"]: tuple(one["tags"]) for one in map(json.loads, Path("out.jsonl").read_text().splitlines())}
    changed = sum(tags[one.id] != one.annotations["zoe"] for one in alone)
    assert changed == 2
    assert "note: 2 documents differ from what their only annotator marked (--method mv keeps that)" in told
    assert "only annotator" not in run("aggregate", "some.jsonl", "-o", "out.jsonl", "--method", "mv")[2]
    lines = run("annotators", "m.quorate")[1].splitlines()
    last, _, below = lines[-3:]
    assert last.startswith("zoe ")
    assert set(last.split()[2:]) == {"–"}
    assert below.startswith(sentence)
    compared = {row["name"]: row["compared"] for row in records(run("annotators", "m.quorate", "--json")[1])}
    assert [name for name, is_compared in compared.items() if not is_compared] == ["zoe"]


def test_predict_with_a_tag_the_model_does_not_know(run: Run, crowd: Path) -> None:
    run("aggregate", crowd, "--save", "m.quorate", "-o", "out.jsonl", "-q")
    new = {"id": "new", "tokens": ["Ada"], "annotations": {"ana": ["B-DRUG"]}}
    crowd.with_name("new.jsonl").write_text(json.dumps(new))
    code, _, err = run("predict", "m.quorate", "new.jsonl")
    assert code == 2
    assert err.startswith(
        "quorate: new.jsonl:1: document 'new', token 1: tag 'B-DRUG' is not among the model's labels, O,"
    )


def test_methods_version_and_demo(run: Run) -> None:
    rivals = "auto mv mv-abstain span-vote best-worker worst-worker ds ibcc mace hmm-crowd crf-ma"
    own = "bsc-acc bsc-spam bsc-cv bsc-cm bsc-seq bsc-cm-notext bsc-seq-notext bsc-cm-notrans bsc-seq-notrans"
    assert [line.split()[0] for line in run("methods")[1].splitlines()] == [*rivals.split(), *own.split()]
    assert run("--version")[1] == f"quorate {quorate.__version__}\n"
    code, out, _ = run("demo", "--write", "crowd.jsonl")
    assert code == 0
    assert "simulated" in out
    assert "spammer" in out
    assert len(quorate.read("crowd.jsonl")) == 320
    assert all(len(line) <= 80 for line in out.splitlines())


def test_the_sample_does_not_replace_another_file(run: Run) -> None:
    assert run("demo", "--write", "crowd.jsonl")[0] == 0
    assert run("demo", "--write", "crowd.jsonl")[0] == 0
    Path("crowd.jsonl").write_text("mine")
    code, out, err = run("demo", "--write", "crowd.jsonl")
    assert (code, out) == (2, "")
    assert err == "quorate: crowd.jsonl: another file is there, which would be lost (give another name)\n"
    assert Path("crowd.jsonl").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["aggregate", "nothing.jsonl"], "nothing.jsonl: no such file"),
        (["aggregate", "crowd.jsonl", "--method", "best"], "unknown method 'best' (one of: auto, mv, "),
        (
            ["aggregate", "crowd.jsonl", "--invalid", "mend"],
            "invalid 'mend' is not known (one of: repair, keep, error)",
        ),
        (["aggregate", "crowd.jsonl", "--method", "mv", "--save", "m"], "method 'mv' has nothing to save"),
        (["aggregate", "crowd.jsonl", "--from", "xml"], "unknown format 'xml'"),
        (["aggregate", "crowd.jsonl", "-o", "no/such/folder/out.jsonl"], "no/such/folder/out.jsonl: cannot be written"),
        (["aggregate", "crowd.jsonl", "-o", "crowd.jsonl"], "crowd.jsonl: this is an input, which would be lost"),
        (["aggregate", "crowd.jsonl", "-o", "a", "--save", "./a"], "./a: this is another output, which would be lost"),
        (
            ["aggregate", "crowd.jsonl", "--scheme", "plain", "--alpha0", "0"],
            "alpha0 must be a positive number, at most 1e+06, not 0",
        ),
        (["annotators", "crowd.jsonl"], "crowd.jsonl: not a model file"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_two(
    run: Run, crowd: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith(f"quorate: {message}")
    assert [p.name for p in tmp_path.iterdir()] == ["crowd.jsonl"]


@pytest.mark.parametrize("bad", ['{"id": ', '{"id": "z", "tokens": ["a"], "annotations": {"x": ["O", "O"]}}'])
def test_a_bad_line_leaves_the_old_output_alone(run: Run, crowd: Path, tmp_path: Path, bad: str) -> None:
    with crowd.open("a") as stream:
        stream.write(bad + "\n")
    (tmp_path / "out.jsonl").write_text("yesterday's")
    code, _, err = run("aggregate", crowd, "-o", "out.jsonl")
    assert code == 2
    assert err.startswith(f"quorate: {crowd}:61: ")
    assert (tmp_path / "out.jsonl").read_text() == "yesterday's"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["crowd.jsonl", "out.jsonl"]


def test_an_unknown_tag_is_found_by_line(run: Run, crowd: Path) -> None:
    with crowd.open("a") as stream:
        stream.write('{"id": "z", "tokens": ["a", "b"], "annotations": {"x": ["O", "PERS"]}}\n')
    code, _, err = run("aggregate", crowd)
    assert code == 2
    assert err.startswith(f"quorate: {crowd}:61: document 'z', token 2: tag 'PERS' is not of the scheme BIO")


def test_annotators_are_told_apart_by_what_they_do_with_spans(
    run: Run, crowd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("aggregate", crowd, "-o", "c.jsonl", "--save", "m.quorate", "-q")[0] == 0
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("annotators", "m.quorate", "--sort", "exact")[1].splitlines()
    assert lines[0].split() == ["annotator", "labels", "bits", "found", "exact", "bounds", "off", "type", "invented"]
    rows = {line.split()[0]: line for line in lines[1:]}
    assert len(rows) == 12
    assert max(map(len, lines)) <= 80
    assert all("starts late" in rows[name] for name in ("hal", "ida"))
    assert "in pieces" in rows["jun"]
    assert "starts" not in rows["ana"]
    monkeypatch.setenv("COLUMNS", "130")
    wide = run("annotators", "m.quorate")[1].splitlines()
    assert "missed" in wide[0]
    assert all(line.count("–") == 7 for line in wide[1:])  # an interval in each
    told = {
        row["name"]: row["spans"] for row in map(json.loads, run("annotators", "m.quorate", "--json")[1].splitlines())
    }
    assert told["hal"]["late_start"]["low"] > told["ana"]["late_start"]["high"]
    assert told["fay"]["invented"]["share"] > 0.5
    for spans in told.values():
        kinds = ("exact", "shifted", "split", "wrong_type", "missed")
        assert sum(spans[kind]["share"] for kind in kinds) == pytest.approx(1.0)
        assert all(spans[kind]["low"] <= spans[kind]["share"] <= spans[kind]["high"] for kind in kinds)


def test_annotators_are_shown_by_kind(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = quorate.BSC().fit(crowds.every_kind(200))
    model.save(tmp_path / "m.quorate")
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("annotators", tmp_path / "m.quorate")[1].splitlines()
    assert max(map(len, lines)) <= 80
    parts = [part.splitlines() for part in "\n".join(lines).split("\n\n")]
    assert [part[0] for part in parts[:3]] == ["people", "models", "rules"]
    heads = [part[1].split() for part in parts[:3]]
    assert heads[0] == ["annotator", "labels", "bits", "found", "exact", "bounds", "off", "type", "invented"]
    assert heads[1] == ["annotator", "bits", "found", "exact", "bounds", "off", "invented", "group", "votes"]
    assert heads[2] == ["annotator", "spans", "confirmed", "coverage", "best", "at"]
    names = [[line.split()[0] for line in part[2:]] for part in parts[:3]]
    assert [sorted(some) for some in names] == [
        ["ann", "bob", "cem", "dee"],
        ["llm-0", "llm-1", "llm-2", "parser"],
        ["gazetteer", "regex", "titles"],
    ]
    assert names[2][-1] == "titles"  # often wrong
    (together,) = model.sources_.together
    rows = {line.split()[0]: line for part in parts[:3] for line in part[2:]}
    assert rows["llm-0"].endswith(f"llm-c  {together.votes:.1f}/3")
    regex = model.annotators_["regex"]
    low, high = (f"{100 * bound:.0f}" for bound in regex.habits.interval("precision"))
    assert f"{regex.habits.marks:.0f} {100 * regex.precision:.0f} ({low}–{high})" in " ".join(rows["regex"].split())
    assert f"ORG {100 * regex.by_type['ORG'].share('precision'):.0f}" in rows["regex"]
    assert parts[3] == [str(together)]
    by_coverage = run("annotators", tmp_path / "m.quorate", "--sort", "coverage")[1]
    shown = [model.annotators_[name].coverage for name in re.findall(r"^(gazetteer|regex|titles)", by_coverage, re.M)]
    assert shown == sorted(shown, reverse=True)
    told = {
        row["name"]: row for row in map(json.loads, run("annotators", tmp_path / "m.quorate", "--json")[1].splitlines())
    }
    assert (told["regex"]["source"], told["ann"]["source"], told["llm-0"]["source"]) == ("rules", "people", "models")
    assert told["llm-0"]["errs_with"] == {"names": list(together.names), "votes": pytest.approx(together.votes)}
    assert told["regex"]["spans"]["confirmed"]["share"] == pytest.approx(regex.precision)
    assert told["regex"]["by_type"]["ORG"]["coverage"]["share"] == pytest.approx(regex.by_type["ORG"].share("coverage"))


def test_annotators_of_plain_tags_have_an_accuracy_and_no_spans(run: Run, crowd: Path) -> None:
    assert run("aggregate", crowd, "-o", "c.jsonl", "--save", "m.quorate", "-q", "--scheme", "plain")[0] == 0
    assert run("annotators", "m.quorate")[1].splitlines()[0].split() == ["annotator", "labels", "accuracy", "bits"]
    rows = [json.loads(line) for line in run("annotators", "m.quorate", "--json")[1].splitlines()]
    assert [row["spans"] for row in rows] == [None] * 12


def test_warnings_for_idle_annotators_and_bare_documents(run: Run, crowd: Path) -> None:
    with crowd.open("a") as stream:
        stream.write(
            '{"id": "y", "tokens": ["a"], "annotations": {"idle": [null]}}\n{"id": "z", "tokens": ["Ferry"]}\n'
        )
    code, out, err = run("aggregate", crowd)
    assert code == 0
    assert len(records(out)) == 62
    assert "warning: no label by idle" in err
    assert "warning: no annotator for z: tagged from the text alone" in err


def test_where_f1_is_not_known_the_command_that_tells_it_is_named(run: Run, crowd: Path, tmp_path: Path) -> None:
    bare = Corpus([replace(one, gold=None) for one in quorate.read(crowd)])
    with written_whole("bare.jsonl") as stream:
        write_corpus(bare, stream)
    alpha = f"agreement {score.token_alpha(bare):.2f} (Krippendorff's alpha)"
    named = run("aggregate", "bare.jsonl", "-o", "a name.jsonl", "--method", "mv")[2]
    assert f"quorate: {alpha}; F1 unknown: quorate audit plan 'a name.jsonl' -n 30 -o audit.jsonl\n" in named
    assert run("audit", "plan", "a name.jsonl", "-n", 30, "-o", "audit.jsonl")[0] == 0
    elsewhere = run("aggregate", "bare.jsonl", "-o", "out.conll", "--method", "mv")[2]
    assert f"quorate: {alpha}; F1 unknown: quorate audit plan draws documents to check from a consensus" in elsewhere


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk(run: Run, crowd: Path) -> None:
    code, _, err = run("aggregate", crowd, "-o", "/dev/full", "-q")
    assert (code, err) == (
        2,
        "quorate: /dev/full: cannot be written: No space left on device (check the folder and the disk)\n",
    )


def in_a_process(start: Start, crowd: Path, *arguments: str, limit: int | None = None) -> subprocess.Popen[bytes]:
    # Set by the process itself: to run something between fork and exec does not go with the threads of other tests.
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n" if limit else ""
    command = [sys.executable, "-c", f"{limited}from quorate.cli import main; main()", *arguments]
    return start(command, cwd=crowd.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.skipif(os.name != "posix", reason="limits and signals of POSIX")
def test_a_disk_that_fills_up_leaves_nothing_behind(start: Start, crowd: Path) -> None:
    command = ("aggregate", "crowd.jsonl", "-o", "out.jsonl", "-q", "--probabilities")
    process = in_a_process(start, crowd, *command, limit=20_000)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err.decode().startswith("quorate: out.jsonl: cannot be written: File too large")
    assert [p.name for p in crowd.parent.iterdir()] == ["crowd.jsonl"]


@pytest.mark.skipif(os.name != "posix", reason="limits and signals of POSIX")
def test_interrupt_leaves_nothing_behind(start: Start, crowd: Path) -> None:
    process = in_a_process(start, crowd, "aggregate", "crowd.jsonl", "-o", "out.jsonl", "--restarts", "1000000")
    time.sleep(8)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.decode() == "quorate: stopped\n"
    assert [p.name for p in crowd.parent.iterdir()] == ["crowd.jsonl"]


@pytest.mark.skipif(os.name != "posix", reason="limits and signals of POSIX")
@pytest.mark.parametrize(
    "command", [("aggregate", "-"), ("check", "-"), ("convert", "-", "out.jsonl"), ("report", "-", "-o", "r.html")]
)
def test_every_command_says_that_it_was_stopped(start: Start, tmp_path: Path, command: tuple[str, ...]) -> None:
    """While it waits for its input, which never ends."""
    in_a_process = "from quorate.cli import main; main()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start([sys.executable, "-c", in_a_process, *command], cwd=tmp_path, **pipes)
    assert process.stdin is not None
    process.stdin.write(b"{" * 100_000)  # more than a pipe holds: when it is taken, the command reads
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err.decode()) == (130, "quorate: stopped\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="terminals and signals of POSIX")
def test_on_a_terminal_no_output_can_be_half_written(start: Start, crowd: Path) -> None:
    """In a file or a pipe behind standard output a part may be, so that nothing is promised there."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", "from quorate.cli import main; main()", "check", "-"]
    process = start(command, cwd=crowd.parent, stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"{" * 100_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, err.decode()) == (130, "quorate: stopped; no file is left half-written\n")


STOPPED_WITH = """
import os, sys
import quorate.cli

def stopped():
    {how}
    sys.exit(130)

quorate.cli.answer = stopped
quorate.cli.main()
"""


@pytest.mark.skipif(os.name != "posix", reason="as a shell of POSIX closes streams")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("how", ["sys.{}.close()", "sys.{} = None", "os.close(sys.{}.fileno())"])
def test_a_closed_stream_does_not_change_how_a_stopped_command_ends(start: Start, how: str, stream: str) -> None:
    command = [sys.executable, "-c", STOPPED_WITH.format(how=how.format(stream))]
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    heard = b"" if stream == "stderr" else b"quorate: stopped\n"
    assert (process.returncode, out, err) == (130, b"", heard)


@pytest.mark.skipif(os.name != "posix", reason="limits and signals of POSIX")
def test_a_reader_that_goes_away_is_no_traceback(start: Start, crowd: Path) -> None:
    process = in_a_process(start, crowd, "aggregate", "crowd.jsonl", "--method", "mv", "-q", "--probabilities")
    with process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()
    assert process.returncode == 1
    assert err == b""


def test_check_agreement_and_evaluate(run: Run, crowd: Path) -> None:
    code, out, _ = run("check", crowd)
    assert code == 0
    assert out.startswith("nothing odd was found\n60 documents, ")
    code, out, _ = run("agreement", crowd, "--pairs", 2)
    assert code == 0
    assert "Krippendorff's alpha" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "alpha" in json.loads(run("agreement", crowd, "--json")[1])
    run("aggregate", crowd, "-o", "out.jsonl", "-q")
    code, out, _ = run("evaluate", "out.jsonl", "--gold", crowd, "--errors")
    assert code == 0
    assert "strict (same start, end, type)" in out
    assert "false positive" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    scores = json.loads(run("evaluate", "out.jsonl", "--gold", crowd, "--json")[1])
    assert scores["documents"] == 60
    assert scores["cross_entropy"] is None
    code, _, err = run("evaluate", "out.jsonl", "--gold", crowd, "--cee")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "--probabilities" in err
    code, _, err = run("evaluate", "out.jsonl", "--gold", crowd, "--split", "test")
    assert (code, err) == (2, "quorate: no document is of split 'test' (splits here: none)\n")


def test_check_exits_with_one_when_something_is_odd(run: Run, crowd: Path) -> None:
    with crowd.open("a") as stream:
        stream.write('{"id": "z", "tokens": ["Ferry"]}\n')
    code, out, _ = run("check", crowd)
    assert code == 1
    assert "warning: 1 document has no annotator: z" in out


def test_compare_in_three_shapes(run: Run, crowd: Path) -> None:
    code, out, _ = run("compare", crowd, "--methods", "mv,bsc-seq", "--errors")
    assert code == 0
    assert out.split()[:4] == ["method", "P", "R", "F1"]
    assert re.search(r"F1 − bsc-seq +p\b", out.splitlines()[0])  # the two are not parted at 80 columns
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("F1 −"))
    _, out, _ = run("compare", crowd, "--methods", "mv,bsc-seq", "--markdown")
    assert out.splitlines()[1].startswith("|---|---:|")
    found = json.loads(run("compare", crowd, "--methods", "mv,bsc-seq", "--json")[1])
    assert [row["method"] for row in found["rows"]] == ["mv", "bsc-seq"]
    assert run("compare", crowd, "--methods", "mv,nope")[0] == 2
    assert run("compare", crowd, "--methods", "")[0] == 2


def test_tune_writes_settings_that_aggregate_takes(run: Run, crowd: Path, tmp_path: Path) -> None:
    options = ("--split", "all", "--grid", "temper=0.5,1", "--grid", "epsilon0=10", "--results", "t.jsonl")
    code, out, _ = run("tune", crowd, *options, "-o", "best.json")
    assert code == 0
    assert "2 trials of bsc-seq on all gold, best first by f1" in out
    best = json.loads((tmp_path / "best.json").read_text())
    code, _, _ = run("aggregate", crowd, "--settings", "best.json", "-o", "out.jsonl", "--meta", "meta.json", "-q")
    assert code == 0
    settings = json.loads((tmp_path / "meta.json").read_text())["settings"]
    assert settings["temper"] == best["settings"]["temper"]
    assert settings["epsilon0"] == 10
    code, _, err = run("tune", crowd, "--grid", "temper=warm")
    assert (code, err) == (2, "quorate: --grid 'temper=warm' is not of the form NAME=NUMBER,NUMBER,…\n")
    assert run("aggregate", crowd, "--settings", "nothing.json")[0] == 2


def test_datasets(run: Run, crowd: Path) -> None:
    assert [line.split()[0] for line in run("datasets", "list")[1].splitlines()] == ["ner", "pico"]
    code, _, err = run("datasets", "convert", "ner", crowd)
    assert code == 2
    assert "cannot be read as a zip archive" in err
    code, _, err = run("datasets", "convert", "arg", crowd)
    assert (code, err) == (2, "quorate: unknown dataset 'arg' (one of: ner, pico)\n")


def test_report_and_review(run: Run, crowd: Path) -> None:
    code, out, err = run("report", crowd, "-o", "report.html", "--documents", 5, "--title", "Round <2>")
    assert (code, out) == (0, "")
    assert "report.html" in err
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<title>Round &lt;2&gt;</title>" in page
    review = {"id": "s001", "tags": ["O"] * len(quorate.sample()["s001"].tokens)}
    Path("review.jsonl").write_text(json.dumps(review))
    code, _, _ = run("report", crowd, "-o", "again.html", "--known", "review.jsonl", "--documents", "all", "-q")
    assert code == 0
    assert '"id":"s001"' in (again := Path("again.html").read_text(encoding="utf-8"))
    assert again.count('"known":true') == 1


def test_report_beside_an_aggregate(run: Run, crowd: Path) -> None:
    arguments = ("-o", "consensus.jsonl", "--report", "report.html", "--save", "m.quorate", "--max-passes", 3)
    assert run("aggregate", crowd, *arguments)[0] == 0
    assert Path("report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(Path("consensus.jsonl").read_text(encoding="utf-8").splitlines()) == 60
    code, _, _ = run("report", crowd, "--model", "m.quorate", "-o", "applied.html", "-q")
    assert code == 0
    code, out, _ = run("report", crowd, "-o", "-", "-q", "--method", "mv")
    assert code == 0
    assert out.startswith("<!doctype html>")


def test_a_report_of_an_audit_before_and_after_it_is_checked(run: Run, crowd: Path) -> None:
    same = ("--method", "bsc-cm")
    assert run("aggregate", crowd, "-o", "consensus.jsonl", *same)[0] == 0
    assert run("audit", "plan", "consensus.jsonl", "-n", 15, "-o", "audit.jsonl")[0] == 0
    assert run("report", crowd, "-o", "to-check.html", "--audit", "audit.jsonl", "--documents", 3, *same)[0] == 0
    page = Path("to-check.html").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in Path("audit.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all(f'"id":"{line["id"]}"' in page for line in lines)
    assert '"audit":null' in page
    given_out = map(json.loads, Path("consensus.jsonl").read_text(encoding="utf-8").splitlines())
    tags = {line["id"]: line["tags"] for line in given_out}
    corrections = [{"id": line["id"], "tags": tags[line["id"]]} for line in lines]
    Path("corrections.jsonl").write_text("".join(json.dumps(line) + "\n" for line in corrections))
    given = ("--audit", "audit.jsonl", "--audit", "corrections.jsonl")
    assert run("report", crowd, "-o", "checked.html", *given, *same)[0] == 0
    assert '"to_check":null' in (checked := Path("checked.html").read_text(encoding="utf-8"))
    assert '"checked":15' in checked
    for options, said in (
        (("--method", "mv"), "audit.jsonl: this plan was drawn from another consensus"),
        ((*same, "-o", "audit.jsonl"), "this is an input, which would be lost"),
    ):
        code, out, err = run("report", crowd, "--audit", "audit.jsonl", *options)
        assert (code, out) == (2, "")
        assert said in err


def test_plots(run: Run, crowd: Path) -> None:
    assert run("aggregate", crowd, "-o", "c.jsonl", "--save", "m.quorate", "--max-passes", 2)[0] == 0
    assert run("plot", "annotators", "m.quorate", "-o", "figure.pdf", "--groups", 2, "--previous", "O")[0] == 0
    assert Path("figure.pdf").read_bytes().startswith(b"%PDF")
    assert (
        run("plot", "annotators", "m.quorate", "-o", "a.svg", "--annotator", "ana", "--bars", "--previous", "O")[0] == 0
    )
    assert b"<svg" in Path("a.svg").read_bytes()
    assert run("plot", "trace", "m.quorate", "-o", "trace.png")[0] == 0
    assert Path("trace.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("report", "CROWD", "--documents", "few"), "--documents 'few' is not a number, nor 'all'"),
        (("report", "CROWD", "--groups", 0), "--groups must be 1 or more, not 0"),
        (("report", "CROWD", "--groups", 13), "12 annotators cannot be put into 13 groups"),
        (("report", "CROWD", "--split", "dev"), "no document is of split 'dev'"),
        (("report", "CROWD", "--model", "m.quorate", "--method", "mv"), "--model brings its own method"),
        (("report", "CROWD", "--model", "none.quorate"), "none.quorate: no such file"),
        (("report", "CROWD", "-o", "no/such/folder.html"), "no such folder"),
        (("report", "CROWD", "-o", "CROWD"), "this is an input, which would be lost"),
        (("plot", "annotators", "m.quorate", "-o", "figure.gif"), "not a figure's name"),
        (("plot", "annotators", "none.quorate", "-o", "figure.pdf"), "none.quorate: no such file"),
        (("plot", "trace", "CROWD", "-o", "trace.pdf"), "not a model file"),
    ],
)
def test_reports_that_cannot_be(run: Run, crowd: Path, arguments: tuple[object, ...], said: str) -> None:
    given = [crowd if argument == "CROWD" else argument for argument in arguments]
    code, out, err = run(*given, *(["-q"] if arguments[0] == "report" else []))
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("quorate: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_help_needs_nothing_heavy() -> None:
    """What takes long to load is loaded when a command runs, so that help answers at once."""
    code = "import sys, quorate.cli; print(*{'numpy', 'scipy', 'jax', 'matplotlib'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


@pytest.fixture
def whole_crowd(tmp_path: Path, sample: Corpus) -> Path:
    path = tmp_path / "crowd.jsonl"
    with written_whole(path) as stream:
        write_corpus(sample, stream)
    return path


def test_where_no_document_is_accepted_it_says_what_to_ask_for(run: Run) -> None:
    with written_whole("doubtful.jsonl") as stream:
        write_corpus(Corpus([replace(one, gold=None) for one in crowds.careful_three(20)]), stream)
    code, _, err = run("aggregate", "doubtful.jsonl", "-o", "c.jsonl", "--accept", "0.95", "--review", "r.jsonl")
    assert code == 0, err
    assert "no document accepted, all 20 are in r.jsonl (ask for less, or keep single spans: --precision)" in err
    assert "F1 unknown: quorate audit plan r.jsonl -n 20 -o audit.jsonl" in err


def test_where_every_document_is_accepted_it_says_so(run: Run, whole_crowd: Path) -> None:
    code, _, err = run("aggregate", whole_crowd, "-o", "c.jsonl", "--accept", "0.5", "--review", "r.jsonl")
    assert code == 0, err
    assert re.search(
        r"all 320 documents accepted, r\.jsonl is empty: their spans are expected to be [\d.]+ % right", err
    )


def test_a_document_without_a_token_is_accepted_and_does_not_count(run: Run, sample: Corpus) -> None:
    some = [replace(one, gold=None) for one in sample.documents[:60]]
    empty = [Document(f"empty {n}", (), {"ana": ()}) for n in range(60)] + [Document("bare", ())]
    told = {}
    for name, corpus in {"without": Corpus(some), "with": Corpus([*some, *empty])}.items():
        with written_whole(f"{name}.jsonl") as stream:
            write_corpus(corpus, stream)
        given = ("aggregate", f"{name}.jsonl", "-o", f"{name}-sure.jsonl", "--accept", 0.95, "--review", "r.jsonl")
        told[name] = json.loads(run(*given, "--json")[1])
    assert told["with"]["accepted"]["cut"] == pytest.approx(told["without"]["accepted"]["cut"], abs=1e-6)
    assert told["with"]["accepted"]["documents"] == told["without"]["accepted"]["documents"] + 61
    assert told["with"]["warnings"] == []


def test_accepted_documents_and_those_to_review_are_all(run: Run, whole_crowd: Path, sample: Corpus) -> None:
    code, _, err = run("aggregate", whole_crowd, "-o", "sure.jsonl", "--accept", "0.99", "--review", "unsure.jsonl")
    assert code == 0, err
    sure, unsure = (records(Path(name).read_text()) for name in ("sure.jsonl", "unsure.jsonl"))
    assert f"{len(sure)} of {len(sample)} documents accepted, {len(unsure)} to review in unsure.jsonl" in err
    assert re.search(r"the cut is at a mean confidence of 0\.\d{3} in a document's spans: a ranking, not checked", err)
    assert "are right" not in err
    assert sure
    assert unsure
    assert sorted(r["id"] for r in sure + unsure) == sorted(d.id for d in sample)
    gold = {d.id: d.gold for d in sample}
    right = [quorate.score.strict([r["tags"] for r in part], [gold[r["id"]] for r in part]) for part in (sure, unsure)]
    assert right[0].precision > 0.85
    assert right[0].precision > right[1].precision


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--accept", "1.5", "--review", "r.jsonl"], "above 0 and below 1"),
        (["--accept", "0.9"], "go together"),
    ],
)
def test_what_cannot_be_accepted(run: Run, whole_crowd: Path, options: list[str], message: str) -> None:
    code, out, err = run("aggregate", whole_crowd, "-q", "-o", "sure.jsonl", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not Path("sure.jsonl").exists()
