"""Audits as people use and misuse them on the command line: a plan, corrections from anywhere, scores that hold."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate import Corpus, Document, Scheme, read
from quorate.audit.claims import spans_of
from quorate.audit.sentences import Outcome, headline, notes
from quorate.corpus.records import hard_tags
from quorate.formats.jsonl import write_corpus
from quorate.storage.files.atomic import written_whole
from running import Run

FIXED = ("--method", "bsc-cm", "--epsilon0", "10", "--max-passes", "5")
TEXT = "Ada Lovelace met Charles Babbage in London last May ."


@pytest.fixture
def crowd(tmp_path: Path, sample: Corpus) -> Path:
    path = tmp_path / "crowd.jsonl"
    with written_whole(path) as stream:
        write_corpus(Corpus(sample.documents[:120]), stream)
    return path


@pytest.fixture
def consensus(run: Run, crowd: Path, tmp_path: Path) -> Path:
    path = tmp_path / "consensus.jsonl"
    code, _, err = run("aggregate", crowd, "-o", path, *FIXED, "-q")
    assert code == 0, err
    return path


@pytest.fixture
def plan(run: Run, consensus: Path, tmp_path: Path) -> Path:
    path = tmp_path / "audit.jsonl"
    code, _, err = run("audit", "plan", consensus, "-n", 30, "-o", path)
    assert code == 0, err
    assert "30 of 120 documents are in" in err
    assert "seed 0" in err
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def check(path: Path, sample: Corpus, how: Callable[[dict[str, Any], Document], None]) -> Path:
    """The plan as a person leaves it."""
    records = lines_of(path)
    for record in records:
        record["checked"] = True
        how(record, sample[record["id"]])
    return write_lines(path.with_name("checked.jsonl"), records)


def as_tags(record: dict[str, Any], document: Document) -> None:
    record["gold"] = list(document.gold or ())


def as_spans(record: dict[str, Any], document: Document) -> None:
    spans = spans_of(document.gold or (), Scheme.BIO)
    record["gold"] = [{"start": span.start, "end": span.end, "label": span.label} for span in spans]


def f1_of(run: Run, *arguments: object) -> dict[str, float]:
    code, out, err = run("audit", "result", *arguments, "--json")
    assert code == 0, err
    found: dict[str, float] = json.loads(out)["f1"]
    return found


@pytest.mark.parametrize("kind", [(), ("--sequential",)])
def test_a_plan_promises_what_the_result_gives_without_a_mistake(
    run: Run, consensus: Path, tmp_path: Path, kind: tuple[str, ...]
) -> None:
    plan = tmp_path / "plan.jsonl"
    told = json.loads(run("audit", "plan", consensus, "-n", 25, *kind, "-o", plan, "--json")[1])
    said = run("audit", "plan", consensus, "-n", 25, *kind, "-o", plan)[2]
    found = f1_of(run, consensus, "--checked", write_lines(plan, [one | {"checked": True} for one in lines_of(plan)]))
    assert told["f1_without_mistakes"] == found
    assert f"if no mistake is found, F1 will be from {100 * found['low']:.1f} to {100 * found['high']:.1f}" in said


def test_a_plan_says_how_each_document_was_drawn(plan: Path) -> None:
    records = lines_of(plan)
    assert [record["audit"]["draw"] for record in records] == list(range(1, 31))
    assert len({record["id"] for record in records}) == 30
    assert all(0 < record["audit"]["probability"] <= 1 and not record["checked"] for record in records)
    assert len({record["audit"]["probability"] for record in records}) > 5
    assert {record["audit"]["seed"] for record in records} == {0}


def test_gold_may_be_tags_or_spans(run: Run, consensus: Path, plan: Path, sample: Corpus) -> None:
    found = [f1_of(run, consensus, "--checked", check(plan, sample, how)) for how in (as_tags, as_spans)]
    assert found[0] == found[1]
    code, out, err = run("evaluate", consensus, "--gold", plan.with_name("crowd.jsonl"), "--json")
    assert code == 0, err
    assert found[0]["low"] <= found[0]["value"] <= found[0]["high"]
    assert found[0]["value"] == pytest.approx(json.loads(out)["strict"]["f1"], abs=0.05)


def test_a_table_fits_80_columns_and_says_what_is_guaranteed(
    run: Run, consensus: Path, plan: Path, sample: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run("audit", "result", consensus, "--checked", check(plan, sample, as_tags))
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"30 documents checked +precision +recall +F1", out)
    told = Outcome.of(quorate.audit.result(consensus, plan.with_name("checked.jsonl")))
    assert out.splitlines()[0] == headline(told)
    assert all(line in out.splitlines() for line in notes(told))
    assert "Guaranteed: each interval contains the score of all documents (90 % confidence)." in out
    assert re.search(r"About \d+ more documents would make", out)


def test_corrections_without_the_plan_need_it(run: Run, consensus: Path, plan: Path, sample: Corpus) -> None:
    corrections = [{"id": one["id"], "tags": list(sample[one["id"]].gold or ())} for one in lines_of(plan)]
    path = write_lines(plan.with_name("corrections.jsonl"), corrections)
    code, _, err = run("audit", "result", consensus, "--checked", path)
    assert code == 2
    assert "no line in it is of a plan" in err
    assert f1_of(run, consensus, "--known", path, "--plan", plan) == f1_of(
        run, consensus, "--checked", check(plan, sample, as_tags)
    )


def test_a_plan_is_checked_in_a_tool(run: Run, consensus: Path, plan: Path, sample: Corpus) -> None:
    ids = [one["id"] for one in lines_of(plan)]
    mine, export = plan.with_name("mine.jsonl"), plan.with_name("export.json")
    with written_whole(mine) as stream:
        write_corpus(
            Corpus(Document(name, sample[name].tokens, {"me": sample[name].gold or ()}) for name in ids), stream
        )
    code, _, err = run("convert", mine, export, "--to", "label-studio")
    assert code == 0, err
    assert f1_of(run, consensus, "--checked", export, "--plan", plan) == f1_of(
        run, consensus, "--checked", check(plan, sample, as_tags)
    )


def test_a_plan_that_nobody_checked_is_not_checked_by_a_tool(run: Run, consensus: Path, plan: Path) -> None:
    code, _, err = run("convert", plan, plan.with_name("tasks.jsonl"))
    assert code == 2
    assert "a plan is JSONL already" in err
    for name in ("tasks.json", "tasks.conll"):
        tasks = plan.with_name(name)
        assert run("convert", plan, tasks, *(("--to", "label-studio") if name == "tasks.json" else ()))[0] == 0
        code, _, err = run("audit", "result", consensus, "--checked", tasks, "--plan", plan)
        assert code == 2
        assert "0 of the 30 documents are checked" in err
    assert run("evaluate", consensus, "--gold", plan)[0] == 2  # what is proposed is not gold


@pytest.mark.parametrize(
    ("name", "format"), [("d.jsonl", "doccano"), ("p.jsonl", "prodigy"), ("b", "brat"), ("t.json", "label-studio")]
)
def test_a_tool_gets_the_documents_to_check_with_the_consensus_to_correct(
    run: Run, consensus: Path, plan: Path, tmp_path: Path, name: str, format: str
) -> None:
    code, _, err = run("convert", plan, tmp_path / name, "--to", format)
    assert code == 0, err
    assert "30 documents of a plan to check" in err
    back = {document.id: document for document in read(tmp_path / name, predictions=True)}
    assert set(back) == {one["id"] for one in lines_of(plan)}
    proposed = {one["id"]: one["spans"] for one in lines_of(consensus)}
    if format == "label-studio":  # its own predictions are nobody's: the file itself has them
        tasks = json.loads((tmp_path / name).read_text())
        found = {task["id"]: len(task["predictions"][0]["result"]) for task in tasks}
    else:
        said = {id: hard_tags(next(iter(one.annotations.values()))) for id, one in back.items()}
        found = {id: len(spans_of(tags, Scheme.BIO)) for id, tags in said.items()}
    assert found == {id: len(proposed[id]) for id in found}
    assert sum(found.values()) > 30


def test_what_was_proposed_and_came_back_as_it_was_is_not_checked(
    run: Run, consensus: Path, plan: Path, tmp_path: Path
) -> None:
    path = tmp_path / "p.jsonl"
    assert run("convert", plan, path, "--to", "prodigy")[0] == 0
    code, _, err = run("audit", "result", consensus, "--checked", path, "--plan", plan)
    assert code == 2
    assert "0 of the 30 documents are checked" in err
    path.write_text(path.read_text().replace('"_annotator_id":"quorate"', '"_annotator_id":"ann"'))
    code, out, err = run("audit", "result", consensus, "--checked", path, "--plan", plan)
    assert code == 0, err
    assert "warning: nothing was corrected in any of the 30 documents" in out


def test_a_tool_may_number_documents_anew(
    run: Run, consensus: Path, plan: Path, sample: Corpus, tmp_path: Path
) -> None:
    """By ids that others in the consensus have, even: texts tell them apart."""
    path, ids = tmp_path / "t.json", [one["id"] for one in lines_of(consensus)]
    mine = [
        {"id": one["id"], "tokens": one["tokens"], "annotations": {"me": list(sample[one["id"]].gold or ())}}
        for one in lines_of(plan)
    ]
    assert run("convert", write_lines(tmp_path / "mine.jsonl", mine), path, "--to", "label-studio")[0] == 0
    right = f1_of(run, consensus, "--checked", path, "--plan", plan)
    tasks = json.loads(path.read_text())
    for number, task in enumerate(tasks):
        task["id"] = ids[number]
    path.write_text(json.dumps(tasks))
    assert f1_of(run, consensus, "--checked", path, "--plan", plan) == right


def test_what_a_person_says_in_a_tool_beats_gold_that_came_with_it(
    run: Run, consensus: Path, plan: Path, tmp_path: Path
) -> None:
    lines = [
        {"id": one["id"], "tokens": one["tokens"], "gold": ["O"] * len(one["tokens"])}
        | {"annotations": {"me": ["B-LOC", *["O"] * (len(one["tokens"]) - 1)]}}
        for one in lines_of(plan)
    ]
    export = write_lines(tmp_path / "export.jsonl", lines)
    code, out, err = run("audit", "result", consensus, "--checked", export, "--plan", plan, "--json")
    assert code == 0, err
    assert json.loads(out)["by_type"]["LOC"]["true_spans_seen"] == 30


def test_two_plans_are_not_one(run: Run, consensus: Path, plan: Path, sample: Corpus, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    assert run("audit", "plan", consensus, "-n", 40, "-o", other)[0] == 0
    both = write_lines(tmp_path / "both.jsonl", lines_of(plan) + lines_of(other))
    code, _, err = run("audit", "result", consensus, "--checked", check(both, sample, as_tags))
    assert code == 2
    assert "its lines are of several plans" in err


def test_a_plan_that_was_checked_is_not_written_over(run: Run, consensus: Path, plan: Path, sample: Corpus) -> None:
    checked = check(plan, sample, as_tags)
    before = checked.read_bytes()
    code, _, err = run("audit", "plan", consensus, "-o", checked)
    assert code == 2
    assert "documents in it were checked, which would be lost" in err
    assert checked.read_bytes() == before
    assert run("audit", "plan", consensus, "-o", plan)[0] == 0  # nobody has worked on it


def test_a_type_that_the_consensus_never_gives_is_pointed_out(
    run: Run, consensus: Path, plan: Path, sample: Corpus
) -> None:
    def slip(record: dict[str, Any], document: Document) -> None:
        record["gold"] = [tag.replace("PER", "PERS") for tag in document.gold or () if tag]

    code, out, err = run("audit", "result", consensus, "--checked", check(plan, sample, slip))
    assert code == 0, err
    assert "warning: the consensus never gives PERS" in out


def test_words_that_are_not_in_their_span_are_a_slip(run: Run, consensus: Path, plan: Path) -> None:
    records = [one | {"checked": True} for one in lines_of(plan)]
    third = next(one for one in records if one["gold"])
    third["gold"][0]["text"] = "elsewhere"
    code, _, err = run("audit", "result", consensus, "--checked", write_lines(plan, records))
    assert code == 2
    assert f"audit.jsonl:{records.index(third) + 1}: " in err
    assert "do not hold the words given with them" in err


def test_ids_of_another_tool_are_named(run: Run, consensus: Path, plan: Path, tmp_path: Path) -> None:
    renumbered = [
        {"id": n, "tokens": one["tokens"], "gold": ["O"] * len(one["tokens"])} for n, one in enumerate(lines_of(plan))
    ]
    path = write_lines(tmp_path / "renumbered.jsonl", renumbered)
    code, _, err = run("audit", "result", consensus, "--checked", path, "--plan", plan)
    assert code == 2
    assert "none of the 30 documents that were checked is in the consensus (keep their ids)" in err


@pytest.mark.parametrize("value", ["false", None, 1])
def test_checked_is_true_or_false(run: Run, consensus: Path, plan: Path, value: object) -> None:
    lines = [one | {"checked": value} for one in lines_of(plan)]
    code, _, err = run("audit", "result", consensus, "--checked", write_lines(plan, lines))
    assert code == 2
    assert "audit.jsonl:1: " in err
    assert "checked" in err


def test_a_damaged_plan_is_one_line(run: Run, consensus: Path, plan: Path) -> None:
    plan.write_text(plan.read_text()[:300])
    code, _, err = run("audit", "result", consensus, "--checked", plan)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "audit.jsonl:1: not JSON" in err


def test_a_consensus_may_come_from_standard_input(
    run: Run, consensus: Path, plan: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with consensus.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        code, _, err = run("audit", "plan", "-", "-n", 30, "-o", tmp_path / "same.jsonl")
    assert code == 0, err
    assert (tmp_path / "same.jsonl").read_text() == plan.read_text()


def test_what_several_people_say_is_not_one_right_answer(run: Run, consensus: Path, plan: Path, tmp_path: Path) -> None:
    crowd = [
        {"id": one["id"], "tokens": one["tokens"], "annotations": dict.fromkeys("ab", ["O"] * len(one["tokens"]))}
        for one in lines_of(plan)
    ]
    both = write_lines(tmp_path / "both.jsonl", crowd)
    code, _, err = run("audit", "result", consensus, "--checked", both, "--plan", plan)
    assert code == 2
    assert "2 people labelled it (an audit needs one right answer" in err


def test_unchecked_documents_are_named(run: Run, consensus: Path, plan: Path, sample: Corpus) -> None:
    code, _, err = run("audit", "result", consensus, "--checked", plan)
    assert code == 2
    assert "0 of the 30 documents are checked" in err
    checked = lines_of(check(plan, sample, as_tags))
    checked[4]["checked"] = False
    code, _, err = run("audit", "result", consensus, "--checked", write_lines(plan, checked))
    assert code == 2
    assert f"29 of the 30 documents are checked, not {checked[4]['id']}" in err
    assert "a plan of 'audit plan --sequential' can be looked at before" in err


def test_a_plan_of_another_consensus_is_refused(
    run: Run, consensus: Path, plan: Path, crowd: Path, sample: Corpus
) -> None:
    checked = check(plan, sample, as_tags)
    other = consensus.with_name("other.jsonl")
    assert run("aggregate", crowd, "-o", other, "--method", "mv", "-q")[0] == 0
    code, _, err = run("audit", "result", other, "--checked", checked)
    assert code == 2
    assert "drawn from another consensus" in err


def test_a_changed_probability_is_found(run: Run, consensus: Path, plan: Path, sample: Corpus) -> None:
    records = lines_of(check(plan, sample, as_tags))
    records[3]["audit"]["probability"] /= 2
    code, _, err = run("audit", "result", consensus, "--checked", write_lines(plan, records))
    assert code == 2
    assert f"document '{records[3]['id']}' was not drawn so" in err


def test_corrections_go_into_gold_alone(run: Run, consensus: Path, plan: Path, sample: Corpus) -> None:
    def elsewhere(record: dict[str, Any], document: Document) -> None:
        record["tags"] = list(document.gold or ())

    code, _, err = run("audit", "result", consensus, "--checked", check(plan, sample, elsewhere))
    assert code == 2
    assert "checked.jsonl:1: a plan has what is right in 'gold'" in err


def test_a_checked_plan_is_known_labels_for_the_next_consensus(
    run: Run, crowd: Path, plan: Path, sample: Corpus, tmp_path: Path
) -> None:
    records = lines_of(check(plan, sample, as_spans))
    records[5]["checked"] = False
    code, _, err = run("aggregate", crowd, "-o", tmp_path / "next.jsonl", *FIXED, "--known", write_lines(plan, records))
    assert code == 0, err
    told = {one["id"]: one for one in lines_of(tmp_path / "next.jsonl")}
    assert all(told[one["id"]]["confidence"] == 1 for one in records if one["checked"])
    assert told[records[5]["id"]]["confidence"] < 1


def test_a_sequential_plan_is_looked_at_and_added_to(run: Run, consensus: Path, sample: Corpus, tmp_path: Path) -> None:
    first, more = tmp_path / "first.jsonl", tmp_path / "more.jsonl"
    assert run("audit", "plan", consensus, "-n", 20, "--sequential", "-o", first)[0] == 0
    checked = check(first, sample, as_tags)
    records = lines_of(checked)
    records[12]["checked"] = False
    code, out, err = run("audit", "result", consensus, "--checked", write_lines(first, records))
    assert code == 0, err
    assert "12 documents checked" in out
    assert "8 documents of the plan do not count yet, because the first of them is not checked." in out
    code, _, err = run("audit", "plan", consensus, "--extend", first, "-n", 15, "-o", more)
    assert code == 0, err
    assert [one["audit"]["draw"] for one in lines_of(more)] == list(range(21, 36))
    both = write_lines(tmp_path / "both.jsonl", lines_of(checked) + lines_of(check(more, sample, as_tags)))
    code, out, err = run("audit", "result", consensus, "--checked", both)
    assert code == 0, err
    assert "35 documents checked" in out


def test_a_plan_for_one_look_is_not_added_to(run: Run, consensus: Path, plan: Path, tmp_path: Path) -> None:
    code, _, err = run("audit", "plan", consensus, "--extend", plan, "-n", 10, "-o", tmp_path / "more.jsonl")
    assert code == 2
    assert "this plan is for one look" in err
    assert not (tmp_path / "more.jsonl").exists()


def test_documents_are_accepted_with_a_guarantee_or_not_at_all(
    run: Run, crowd: Path, plan: Path, sample: Corpus, tmp_path: Path
) -> None:
    checked = check(plan, sample, as_tags)
    outputs = ("-o", tmp_path / "sure.jsonl", "--review", tmp_path / "rest.jsonl")
    code, _, err = run("aggregate", crowd, *FIXED, *outputs, "--accept", 0.5, "--checked", checked)
    assert code == 0, err
    assert "guaranteed, with 90 % confidence, that 50 % of their spans are right" in err
    assert len(lines_of(tmp_path / "sure.jsonl")) > 20
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    asked = ("aggregate", crowd, *FIXED, *outputs, "--save", tmp_path / "m.quorate", "--checked", checked)
    code, _, err = run(*asked, "--accept", 0.99)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "99 % takes 230 or more checked documents, hardly one of them wrong" in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    shown = float(re.findall(r"\(ask for --accept ([\d.]+) or less", err)[0])
    assert f"the audit shows the surest half of the documents to be {100 * shown:g} % right" in err
    assert run(*asked, "--accept", shown)[0] == 0
    assert run(*asked, "--accept", shown + 0.01)[0] == 2  # what is told is the most that is shown
    code, _, err = run("aggregate", crowd, *FIXED, *outputs, "--accept", 0.5)
    assert code == 0
    assert "guarantee" not in err
    assert "promise" not in err


def test_spans_are_kept_with_a_guarantee_or_not_at_all(
    run: Run, crowd: Path, consensus: Path, plan: Path, sample: Corpus, tmp_path: Path
) -> None:
    checked, output = check(plan, sample, as_tags), tmp_path / "sure.jsonl"
    asked = ("aggregate", crowd, *FIXED, "-o", output, "--checked", checked)
    code, _, err = run(*asked, "--precision", 0.7)
    assert code == 0, err
    assert "guaranteed, with 90 % confidence, that 70 % of them are right" in err
    kept = int(re.findall(r"([\d,]+) of [\d,]+ spans kept", err)[0])
    before, after = lines_of(consensus), lines_of(output)
    assert kept == sum(len(one["spans"]) for one in after) > 50
    least = min(span["confidence"] for one in after for span in one["spans"])
    for whole, part in zip(before, after, strict=True):
        assert part["spans"] == [span for span in whole["spans"] if span["confidence"] >= least]
        assert part["confidence"] <= min(part["token_confidence"]) + 1e-6
    quiet = tmp_path / "quiet.jsonl"
    assert run("aggregate", crowd, *FIXED, "-o", quiet, "--checked", checked, "--precision", 0.7, "-q")[0] == 0
    assert quiet.read_bytes() == output.read_bytes()
    code, _, err = run(*asked, "--precision", 0.99)
    assert (code, len(err.splitlines())) == (2, 1)
    shown = float(re.findall(r"\(ask for --precision ([\d.]+) or less", err)[0])
    assert f"the audit shows the surest half of the spans to be {100 * shown:g} % right" in err
    assert output.read_bytes() == quiet.read_bytes()
    assert run(*asked, "--precision", shown + 0.01)[0] == 2
    assert run(*asked, "--precision", shown)[0] == 0
    code, out, _ = run(*asked, "--precision", 0.7, "--json")
    assert code == 0
    told = json.loads(out)
    assert told["accepted"]["spans"] == kept == told["spans"]
    assert (told["f1"]["by"], told["f1"]["level"]) == ("audit", 0.9)


@pytest.mark.parametrize(
    ("drawn", "asked", "message"),
    [
        (("--sequential",), ("--precision", 0.9), "a sequential audit gives no guarantee"),
        ((), (), "--checked goes with --accept or --precision"),
        (None, ("--precision", 0.9), "no line in it is of a plan"),
    ],
)
def test_an_audit_that_guarantees_nothing_is_refused_before_the_fit(
    run: Run,
    crowd: Path,
    consensus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    drawn: tuple[str, ...] | None,
    asked: tuple[object, ...],
    message: str,
) -> None:
    path = crowd if drawn is None else tmp_path / "drawn.jsonl"
    if drawn is not None:
        assert run("audit", "plan", consensus, "-n", 20, *drawn, "-o", path)[0] == 0
    monkeypatch.setattr("quorate.cli.job.Job.fit", lambda *_, **__: pytest.fail("a fit was begun"))
    code, _, err = run("aggregate", crowd, *FIXED, "-o", tmp_path / "a.jsonl", "--checked", path, *asked)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_an_audit_is_not_of_labels_that_were_known(run: Run, crowd: Path, plan: Path, tmp_path: Path) -> None:
    code, _, err = run(
        *("aggregate", crowd, "-o", tmp_path / "a.jsonl", "--accept", 0.9, "--review", tmp_path / "b.jsonl"),
        *("--checked", plan, "--known", plan),
    )
    assert code == 2
    assert "--checked is for a consensus without --known" in err


def test_recalibrated_probabilities_are_a_consensus_again(
    run: Run, consensus: Path, plan: Path, sample: Corpus, tmp_path: Path
) -> None:
    better = tmp_path / "better.jsonl"
    checked = check(plan, sample, as_tags)
    code, out, err = run("audit", "result", consensus, "--checked", checked, "--recalibrated", better)
    assert code == 0, err
    assert "What was off is within chance" in out or "Off by more than chance: " in out
    before, after = lines_of(consensus), lines_of(better)
    assert [one["tags"] for one in before] == [one["tags"] for one in after]
    assert [one["confidence"] for one in before] != [one["confidence"] for one in after]
    for one in after:
        assert (
            one["confidence"] <= min([*one["token_confidence"], *(span["confidence"] for span in one["spans"])]) + 1e-6
        )
    code, _, err = run("evaluate", better, "--gold", plan.with_name("crowd.jsonl"))
    assert code == 0, err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "{consensus}", "-n", "3"), "3 documents are too few"),
        (("plan", "{crowd}"), "a line of a consensus"),
        (("plan", "{conll}"), "an audit is of a consensus as JSONL"),
        (("result", "{consensus}"), "nothing was checked"),
        (("result", "{consensus}", "--checked", "{sequential}"), "and is one of the first 10 (check them in the order"),
        (("result", "{consensus}", "--checked", "{plan}", "--confidence", "2"), "confidence must be above 0"),
        (("plan", "{consensus}", "--extend", "{plan}", "--seed", "2"), "--extend goes on with the plan's own seed"),
        (("plan", "{consensus}", "-o", "{consensus}"), "this is an input"),
    ],
)
def test_misuse_is_one_clear_line(
    run: Run, consensus: Path, crowd: Path, plan: Path, arguments: tuple[str, ...], message: str
) -> None:
    files = {"consensus": consensus, "crowd": crowd, "plan": plan}
    files |= {"conll": plan.with_name("c.conll"), "sequential": plan.with_name("sequential.jsonl")}
    assert run("aggregate", crowd, *FIXED, "-o", files["conll"], "-q")[0] == 0
    assert run("audit", "plan", consensus, "--sequential", "-o", files["sequential"])[0] == 0
    code, _, err = run("audit", *(one.format(**files) for one in arguments))
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_more_than_there_are_is_all_of_them(run: Run, consensus: Path, sample: Corpus, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    code, _, err = run("audit", "plan", consensus, "-n", 500, "-o", path)
    assert code == 0
    assert "that is all of them: the scores will be exact" in err
    code, out, _ = run("audit", "result", consensus, "--checked", check(path, sample, as_tags))
    assert code == 0
    assert "Every document was checked: the scores are exact." in out


def test_offsets_of_characters_are_corrected_where_there_is_text(run: Run, tmp_path: Path) -> None:
    records = [
        {
            "id": str(n),
            "text": TEXT,
            "annotations": {
                who: [{"start": 0, "end": 12, "label": "PER"}, {"start": 17, "end": 32, "label": "PER"}]
                for who in "abc"
            },
        }
        for n in range(12)
    ]
    crowd, out, plan = tmp_path / "crowd.jsonl", tmp_path / "out.jsonl", tmp_path / "plan.jsonl"
    assert run("aggregate", write_lines(crowd, records), "-o", out, *FIXED, "-q")[0] == 0
    assert run("audit", "plan", out, "-n", 10, "-o", plan)[0] == 0
    checked = lines_of(plan)
    for one in checked:
        one["checked"] = True
        one["gold"][1] = {"start": 17, "end": 24, "label": "PER"}
        one["gold"].append({"start": 36, "end": 42, "label": "LOC"})
    code, shown, err = run("audit", "result", out, "--checked", write_lines(plan, checked), "--json")
    assert code == 0, err
    found = json.loads(shown)
    assert found["precision"]["value"] == pytest.approx(0.5)
    assert found["recall"]["value"] == pytest.approx(1 / 3)
    checked[0]["gold"][0]["end"] = 10  # the words that came with it say otherwise
    code, _, err = run("audit", "result", out, "--checked", write_lines(plan, checked))
    assert code == 2
    assert "do not hold the words given with them" in err


def test_plain_labels_are_audited_token_by_token(run: Run, tmp_path: Path) -> None:
    records = [
        {"id": str(n), "tokens": ["a", "b"], "annotations": {who: ["noun", "verb"] for who in "abc"}} for n in range(15)
    ]
    crowd, out, plan = tmp_path / "crowd.jsonl", tmp_path / "out.jsonl", tmp_path / "plan.jsonl"
    assert run("aggregate", write_lines(crowd, records), "-o", out, *FIXED, "-q")[0] == 0
    assert run("audit", "plan", out, "-n", 12, "-o", plan)[0] == 0
    checked = lines_of(plan)
    for one in checked:
        one |= {"checked": True, "gold": ["noun", "noun"]}
    code, shown, err = run("audit", "result", out, "--checked", write_lines(plan, checked), "--json")
    assert code == 0, err
    assert json.loads(shown)["precision"]["value"] == pytest.approx(0.5, abs=0.1)
