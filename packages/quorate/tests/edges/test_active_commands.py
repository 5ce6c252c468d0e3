"""`quorate next`, `simulate-active` and `aggregate --history` as people use them, and misuse them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from by_name import bsc
from processes import Start
from quorate import BSC, Corpus, Document, next_labels
from quorate.active.strategies import Strategy
from quorate.corpus.profiles import Profile
from quorate.formats.jsonl import write_corpus
from quorate.storage.files.atomic import written_whole
from running import Run


@pytest.fixture
def crowd(tmp_path: Path, sample: Corpus) -> str:
    """Sixty documents of the sample, and three that nobody has labelled."""
    bare = [Document(f"bare{n}", one.tokens) for n, one in enumerate(sample.documents[60:63])]
    with written_whole(tmp_path / "crowd.jsonl") as stream:
        write_corpus(Corpus([*sample.documents[:60], *bare]), stream)
    return "crowd.jsonl"


@pytest.fixture
def model(run: Run, crowd: str) -> str:
    assert run("aggregate", crowd, "-o", "out.jsonl", "--method", "bsc-cm", "--save", "m.quorate", "-q")[0] == 0
    return "m.quorate"


def test_the_table_is_sorted_by_its_score_and_says_why_it_is_short(run: Run, crowd: str, model: str) -> None:
    code, out, err = run("next", crowd, "--model", model, "-n", 100)
    assert code == 0, err
    score = [float(line.split()[4]) for line in out.splitlines()[1:]]
    assert score == sorted(score, reverse=True)
    assert f"note: {len(score)} documents are listed, not 100: the others are decided, left out, or labelled" in err
    assert "are listed" not in run("next", crowd, "--model", model, "-n", 5)[2]


def test_what_labels_should_add_is_an_estimate_without_an_interval(run: Run, crowd: str, model: str) -> None:
    told = json.loads(run("next", crowd, "--model", model, "--json")[1])
    assert set(told["change"]) == {"labels", "expected_gain", "share"}
    assert "(an estimate of the model, from 20 documents)" in told["reason"]


def test_next_as_a_table(run: Run, crowd: str) -> None:
    code, out, err = run("next", crowd, "-n", 4)
    assert code == 0
    assert len(out.splitlines()) == 5
    assert re.search(r"quorate: agreement [\d.]+ \(Krippendorff's alpha\)", err)
    assert "go on: " in err or "stop: " in err


def test_the_agreement_of_next_is_that_of_aggregate(run: Run, sample: Corpus) -> None:
    with written_whole("sample.jsonl") as stream:
        write_corpus(sample, stream)
    told = run("aggregate", "sample.jsonl", "-o", "out.jsonl", "--save", "m.quorate", "--tagger", "none")[2]
    (agreement,) = re.findall(r"agreement [\d.]+", told)
    assert agreement in run("next", "sample.jsonl", "--model", "m.quorate", "-n", 2)[2]


def test_one_annotator_alone_is_no_reason_to_stop(run: Run, sample: Corpus) -> None:
    """With nobody to compare with, the model takes whatever they said for right, and sees nothing to gain."""
    alone = [
        Document(one.id, one.tokens, {"ann": next(iter(one.annotations.values()))}) for one in sample.documents[:60]
    ]
    with written_whole("alone.jsonl") as stream:
        write_corpus(Corpus(alone), stream)
    code, out, err = run("next", "alone.jsonl", "-n", 4)
    assert code == 0
    assert "quorate: go on: ann shares no document with anybody and cannot be judged (have somebody else" in err
    assert "quorate: no agreement to measure" in err
    assert "points or less to the expected score" not in err
    asked = json.loads(run("next", "alone.jsonl", "-n", 4, "--json")[1])["suggestions"]
    assert len({one["document"] for one in asked}) == 4
    assert {(one["annotator"], one["labels"]) for one in asked} == {(None, 1)}
    assert out.count("somebody else") == 4
    assert run("next", "alone.jsonl", "-n", 1, "--as", "csv")[1].splitlines()[1].split(",")[1] == ""
    assert "somebody else " not in run("next", "alone.jsonl", "--annotators", "ann")[1]  # who alone may be asked
    named = [Document(one.id, one.tokens, {"somebody else": one.annotations["ann"]}) for one in alone]
    with written_whole("named.jsonl") as stream:  # the name by which tables call whoever is new
        write_corpus(Corpus(named), stream)
    asked = json.loads(run("next", "named.jsonl", "-n", 4, "--json")[1])["suggestions"]
    assert [one["annotator"] for one in asked] == [None] * 4
    assert run("next", "named.jsonl", "-n", 4)[1].count("somebody else (new)") == 4
    bare = [Document(f"bare{n}", ("Ada", "sang")) for n in range(3)]
    with written_whole("with-bare.jsonl") as stream:
        write_corpus(Corpus([*alone, *bare]), stream)
    assert "bare" not in run("next", "with-bare.jsonl", "-n", 40)[1]  # which nobody would share
    with written_whole("mostly.jsonl") as stream:
        write_corpus(Corpus([*alone[:10], *sample.documents[10:60]]), stream)
    err = run("next", "mostly.jsonl", "-n", 4)[2]
    assert "note: ann shares no document with anybody and cannot be judged" in err
    assert "points or less to the expected score" in err


def test_next_as_jsonl_and_csv(run: Run, crowd: str, model: str, sample: Corpus) -> None:
    code, out, _ = run("next", crowd, "--model", model, "-n", 6, "--as", "jsonl")
    assert code == 0
    records = [json.loads(line) for line in out.splitlines()]
    assert len({record["document"] for record in records}) == 6
    for record in records:
        if not record["document"].startswith("bare"):
            assert record["annotator"] not in sample[record["document"]].annotations
    assert run("next", crowd, "--model", model, "-n", 6, "--as", "csv", "-o", "list.csv")[0] == 0
    rows = list(csv.DictReader(Path("list.csv").read_text().splitlines()))
    assert [row["document"] for row in rows] == [record["document"] for record in records]


def offered(run: Run, *arguments: object) -> set[str]:
    code, out, err = run("next", *arguments, "-n", 100, "--as", "jsonl")
    assert code == 0, err
    return {json.loads(line)["document"] for line in out.splitlines()}


@pytest.mark.no_cover
def test_documents_whose_labels_are_known_are_not_offered(run: Run, crowd: str, model: str, sample: Corpus) -> None:
    """Neither here, nor with a model that was fitted with them as known; a label that is left open keeps one open."""
    before = offered(run, crowd, "--model", model)
    first, second, third = sorted(name for name in before if not name.startswith("bare"))[:3]
    lines: list[dict[str, object]] = [{"id": name, "tags": sample[name].gold} for name in (first, second)]
    lines.append({"id": third, "tags": [None, *(sample[third].gold or ())[1:]]})
    Path("review.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert offered(run, crowd, "--model", model, "--known", "review.jsonl") == before - {first, second}
    assert {first, second}.isdisjoint(offered(run, crowd, "--known", "review.jsonl"))
    saved = ("-o", "out.jsonl", "--method", "bsc-cm", "--save", "known.quorate", "-q")
    assert run("aggregate", crowd, "--known", "review.jsonl", *saved)[0] == 0
    found = offered(run, crowd, "--model", "known.quorate")
    assert third in found
    assert {first, second}.isdisjoint(found)
    assert offered(run, crowd, "--model", model, "--known", "inline") == {"bare0", "bare1", "bare2"}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("method", "strategy"),
    [*(("bsc-seq", one.value) for one in Strategy), ("auto", "information"), (None, "information")],
)
def test_what_is_known_is_never_asked_for_and_what_is_open_is_asked_by_the_rest(
    sample: Corpus, method: str | None, strategy: str
) -> None:
    corpus = Corpus(sample.documents[:40])
    model = None if method is None else bsc(method, max_iter=3).fit(corpus)
    gold = {one.id: one.gold or () for one in corpus}
    whole = {name: gold[name] for name in list(gold)[:10]}
    nearly = {name: (*gold[name][:-1], None) for name in list(gold)[10:20]}
    strange = {name: ("B-NEW", *(None,) * (len(gold[name]) - 1)) for name in list(gold)[20:21]}
    known = {**whole, **nearly, **(strange if model is not None else {})}
    advice = next_labels(corpus, model, n=40, strategy=strategy, known=known, diversity=0.0, per_document_max=12)
    asked = [one.document for one in advice.suggestions]
    assert set(asked) == set(gold) - set(whole)
    if strategy == "random":
        return
    before = next_labels(corpus, model, n=40, strategy=strategy, known=whole, diversity=0.0)
    score = {one.document: one.score for one in before.suggestions}
    assert all(one.score < score[one.document] for one in advice.suggestions if one.document in nearly)
    assert sum(asked.index(name) for name in nearly) > sum(map(list(score).index, nearly))
    few = next_labels(corpus, model, n=40, strategy=strategy, known=known, per_document_max=5)
    labels = {one.id: len(one.annotations) for one in corpus}
    assert {one.document for one in few.suggestions} == {name for name in asked if labels[name] < 5}


def test_nothing_that_next_reads_is_written_over(run: Run, crowd: str, model: str) -> None:
    Path("review.jsonl").write_text(json.dumps({"id": "s001", "tags": [None] * 3}) + "\n")
    Path("done.csv").write_text("s001\n")
    Path("prices.csv").write_text("annotator,cost\n")
    Path("who.json").write_text("{}")
    Path("link.csv").symlink_to(crowd)
    for name, *arguments in (
        ("review.jsonl", "--known", "review.jsonl"),
        (crowd,),
        ("link.csv",),
        (model, "--model", model, "--as", "csv"),
        ("done.csv", "--exclude", "done.csv"),
        ("prices.csv", "--cost", "prices.csv"),
        ("who.json", "--annotators", "who.json"),
    ):
        before = Path(name).read_bytes()
        message = f"quorate: {name}: this is an input, which would be lost (give another name)\n"
        assert run("next", crowd, *arguments, "-o", name) == (2, "", message)
        assert Path(name).read_bytes() == before


@pytest.mark.parametrize("option", ["--results", "--table", "--figure"])
def test_a_simulation_writes_over_nothing_that_it_reads(run: Run, crowd: str, option: str) -> None:
    Path("link.svg").symlink_to(crowd)
    message = "quorate: link.svg: this is an input, which would be lost (give another name)\n"
    assert run("simulate-active", crowd, option, "link.svg") == (2, "", message)


def test_documents_that_an_expert_has_labelled_are_not_offered(run: Run, crowd: str, sample: Corpus) -> None:
    Path("who.json").write_text(json.dumps({"ana": {"kind": "expert"}}))
    found = offered(run, crowd, "--annotators", "who.json")
    assert found
    assert {one.id for one in sample if "ana" in one.annotations}.isdisjoint(found)


@pytest.mark.no_cover
def test_what_is_decided_is_not_offered_in_python(sample: Corpus) -> None:
    people = {name: tags for name, tags in sample["s001"].annotations.items() if name != "ana"}
    tokens = sample["s001"].tokens
    whole, half = ("O",) * len(tokens), (None, *("O",) * (len(tokens) - 1))
    extra = [
        Document("whole", tokens, {**people, "xenia": whole}),
        Document("half", tokens, {**people, "xenia": half}),
        Document("sparse", tokens, {**people, "yuri": half}),
    ]
    profiles = {"xenia": Profile.of(kind="expert"), "yuri": Profile.of(kind="expert", abstains=True)}
    corpus = Corpus([*sample.documents[:60], *extra], profiles=profiles)
    known = {"s002": sample["s002"].gold or (), "s003": sample["s003"].gold or ()}
    model = bsc("bsc-cm", max_iter=3).fit(corpus, known={"s002": known["s002"]})

    def found(model: BSC | None, **options: Any) -> set[str]:
        return {one.document for one in next_labels(corpus, model, n=100, **options).suggestions}

    ids = {one.id for one in corpus}
    assert found(model) == ids - {"s002", "whole", "sparse"}
    assert found(model, known=known) == ids - {"s002", "s003", "whole", "sparse"}
    assert found(None, known=known) == ids - {"s002", "s003", "whole", "sparse"}
    model.update(Corpus([sample["s004"]]), known={"s004": sample["s004"].gold or ()})
    assert found(model) == ids - {"s002", "s004", "whole", "sparse"}
    nothing = next_labels(corpus.select(lambda one: one.id in ("s002", "whole")), model)
    assert (nothing.suggestions, nothing.stop, nothing.nobody_left) == ((), True, True)
    assert "is decided, or labelled by all annotators (somebody new could label more" in nothing.reason


@pytest.mark.parametrize(
    "strategy",
    ["random", "least-confidence", "least-confidence-per-token", "token-entropy", "sequence-entropy", "information"],
)
def test_every_strategy(run: Run, crowd: str, model: str, strategy: str) -> None:
    code, out, err = run("next", crowd, "--model", model, "-n", 5, "--strategy", strategy, "--as", "jsonl")
    assert code == 0, err
    scores = [json.loads(line)["score"] for line in out.splitlines()]
    assert len(scores) == 5


def test_only_those_who_may_be_asked(run: Run, crowd: str, model: str, sample: Corpus) -> None:
    Path("done.txt").write_text("\n".join(one.id for one in sample.documents[:50]) + "\n")
    arguments = ("--annotators", "ana,ben", "--exclude", "done.txt", "--per-document-max", 1, "--as", "jsonl")
    code, out, err = run("next", crowd, "--model", model, *arguments)
    assert code == 0, err
    records = [json.loads(line) for line in out.splitlines()]
    assert {record["document"] for record in records} == {"bare0", "bare1", "bare2"}
    assert {record["annotator"] for record in records} <= {"ana", "ben"}


def test_a_high_price_sends_the_work_elsewhere(run: Run, crowd: str, model: str) -> None:
    def asked(*more: object) -> list[str]:
        code, out, err = run("next", crowd, "--model", model, "-n", 10, "--as", "jsonl", *more)
        assert code == 0, err
        return [json.loads(line)["annotator"] for line in out.splitlines()]

    free = asked()
    dear = max(set(free), key=free.count)
    Path("cost.csv").write_text(f"annotator,cost\n{dear},100\n")
    assert dear not in asked("--cost", "cost.csv")


def test_nothing_left_is_a_stop(run: Run, tmp_path: Path) -> None:
    tags = ("B-PER", "O")
    corpus = Corpus([Document(str(n), ("Ada", "sang"), {"a": tags, "b": tags}) for n in range(5)])
    with written_whole(tmp_path / "all.jsonl") as stream:
        write_corpus(corpus, stream)
    code, out, err = run("next", "all.jsonl", "--as", "jsonl")
    assert (code, out) == (0, "")
    assert "quorate: nothing is left to ask for: every document" in err  # which does not say that it is good enough
    assert "stop" not in err
    assert run("next", "all.jsonl")[1] == ""
    told = json.loads(run("next", "all.jsonl", "--json")[1])
    assert (told["stop"], told["nobody_left"]) == (True, True)


def test_nobody_left_of_those_who_may_be_asked_is_not_nobody(run: Run, sample: Corpus) -> None:
    """Others could label more: that only those named were asked is what leaves nobody."""
    documents = [
        Document(one.id, one.tokens, {"ann": next(iter(one.annotations.values())), **one.annotations})
        for one in sample.documents[:30]
    ]
    with written_whole("ann.jsonl") as stream:
        write_corpus(Corpus(documents), stream)
    code, out, err = run("next", "ann.jsonl", "--annotators", "ann", "--as", "jsonl")
    assert (code, out) == (0, "")
    assert "or labelled by everybody who may be asked (allow others: --annotators; " in err
    assert "all annotators" not in err
    assert "stop" not in err
    told = json.loads(run("next", "ann.jsonl", "-n", 3, "--json")[1])
    assert len(told["suggestions"]) == 3
    assert told["nobody_left"] is False


def test_with_nobody_left_one_alone_is_not_told_to_go_on(run: Run, sample: Corpus) -> None:
    alone = [Document(one.id, one.tokens, {"ann": one.gold or ()}) for one in sample.documents[:30]]
    with written_whole("one.jsonl") as stream:
        write_corpus(Corpus(alone), stream)
    code, _, err = run("next", "one.jsonl", "--annotators", "ann")
    assert code == 0
    assert "quorate: ann shares no document with anybody and cannot be judged (have somebody else" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--annotators", "nobody"), "nobody is called nobody"),
        (("--exclude", "ids.txt"), "document 'nowhere', which is to be left out, is not in the input"),
        (("--exclude", "no.txt"), "no.txt: cannot be read"),
        (("--cost", "zero.csv"), "the cost of 'ana' must be a positive number, not 0"),
        (("--cost", "strange.csv"), "a cost is given for 'zoe'"),
        (("--cost", "words.csv"), "words.csv:2: the cost of 'ana' is not a number: 'much'"),
        (("--cost", "ids.txt"), "has no columns 'annotator' and 'cost'"),
        (("--strategy", "best"), "strategy 'best' is not known"),
        (("--as", "xml"), "--as 'xml' is not known"),
        (("-n", "0"), "n must be 1 or more"),
        (("--diversity", "2"), "diversity must be from 0 to 1"),
        (("--per-document-max", "0"), "per-document-max must be 1 or more"),
        (("-o", "no/such/folder.csv"), "no such folder"),
    ],
)
def test_mistakes_are_one_line(run: Run, crowd: str, model: str, arguments: tuple[str, ...], message: str) -> None:
    Path("ids.txt").write_text("nowhere\n")
    Path("zero.csv").write_text("annotator,cost\nana,0\n")
    Path("strange.csv").write_text("annotator,cost\nzoe,2\n")
    Path("words.csv").write_text("annotator,cost\nana,much\n")
    code, out, err = run("next", crowd, "--model", model, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_model_of_other_labels_is_refused(run: Run, model: str, tmp_path: Path) -> None:
    other = Corpus([Document("1", ("Ada", "sang"), {"a": ("B-ANIMAL", "O")})])
    with written_whole(tmp_path / "other.jsonl") as stream:
        write_corpus(other, stream)
    code, _, err = run("next", "other.jsonl", "--model", model)
    assert code == 2
    assert "tag 'B-ANIMAL' is not among the model's labels" in err
    code, _, err = run("aggregate", "other.jsonl", "--method", "bsc-cm", "--history", model)
    assert code == 2
    assert "the history is a model of other labels" in err
    assert err.count("\n") == 1


def test_history_on_the_command_line(run: Run, crowd: str, model: str) -> None:
    code, _, err = run("aggregate", crowd, "--method", "bsc-cm", "--history", model, "-o", "again.jsonl")
    assert code == 0, err
    assert run("aggregate", crowd, "--history", model, "-o", "auto.jsonl", "-q")[0] == 0
    code, _, err = run("aggregate", crowd, "--method", "mv", "--history", model, "-o", "mv.jsonl")
    assert code == 2
    assert "method 'mv' learns nothing about annotators, so it cannot use a history" in err


def test_simulation_on_the_command_line(run: Run, crowd: str) -> None:
    few = ("--repeats", 1, "--initial", 60, "--batch", 60, "--max-labels", 180, "--jobs", 1)
    files = ("--table", "points.csv", "--results", "runs.jsonl")
    code, out, err = run("simulate-active", crowd, "--methods", "mv,bsc-cm", "--strategies", "random", *few, *files)
    assert code == 0, err
    assert "bsc-cm" in out
    rows = list(csv.DictReader(io.StringIO(Path("points.csv").read_text())))
    assert [row["labels"] for row in rows if row["method"] == "mv"] == ["60", "120", "180"]
    code, _, err = run("simulate-active", crowd, "--figure", "curves.docx", *few)
    assert code == 2
    assert "not a figure's name" in err


# The command, which sends itself a signal soon after each of its two processes has ended a run and begun another. Who
# would watch the file from outside waits for long where the runs take all cores.
ENDED_EARLY = """
import os, threading
from quorate.cli import main
from quorate.storage.work_log import Store

def add_and_end(store, record):
    add(store, record)
    kept.append(record)
    if len(kept) == 2:
        threading.Timer(0.2, os.kill, (os.getpid(), int(os.environ["SIGNAL"]))).start()

kept, add, Store.add = [], Store.add, add_and_end
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_simulation_that_is_ended_leaves_no_process_behind(
    start: Start, run: Run, crowd: str, sign: signal.Signals
) -> None:
    # Runs of many batches, so that the processes are in the middle of one.
    many = ("--repeats", "100", "--initial", "20", "--batch", "2", "--methods", "bsc-cm", "--jobs", "2")
    command = [sys.executable, "-c", ENDED_EARLY, "simulate-active", crowd, *many, "--results", "runs.jsonl"]
    environment = os.environ | {"SIGNAL": str(int(sign))}
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    out, err = process.communicate(timeout=120)  # until all who hold its output are gone
    assert process.returncode == (130 if sign is signal.SIGINT else -sign)
    assert ("quorate: stopped\n" in err) == (sign is signal.SIGINT)
    assert "Traceback" not in out + err
    assert 2 < len(Path("runs.jsonl").read_text().splitlines()) < 100
