"""A project folder: its file, runs that do only what changed, versions, and what becomes of runs that are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import quorate
from processes import started_here
from project_folder import QUICK, WEEKS, export, lines, never, project
from quorate.corpus.profiles import Profile
from quorate.corpus.records import hard_tags
from quorate.corpus.tags import find_spans
from quorate.formats import write
from quorate.project.store import Store
from running import Run


def test_init_writes_a_file_that_a_run_can_do(run: Run, tmp_path: Path) -> None:
    export(tmp_path, 1)
    code, _, said = run("init")
    assert (code, "exports/week-1.jsonl: 60 documents, 12 annotators" in said) == (0, True)
    written = (tmp_path / "quorate.toml").read_text()
    assert 'inputs = ["exports/*.jsonl"]' in written
    assert run("init")[::2] == (2, "quorate: quorate.toml is here already (edit it, or replace it with --force)\n")
    (tmp_path / "quorate.toml").write_text(written + QUICK)
    assert run("run")[0] == 0
    assert len(lines(tmp_path / "consensus.jsonl")) == 60
    assert (tmp_path / "report.html").exists()


def test_init_says_layers_where_spans_overlap(run: Run, tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 8, "label": "ORG"}, {"start": 0, "end": 4, "label": "LOC"}]
    line = {"id": "1", "text": "Bath Spa", "annotations": {"ann": spans, "bob": spans}}
    (tmp_path / "nested.jsonl").write_text(json.dumps(line))
    assert run("init")[0] == 0
    assert '\nlayers = "auto"' in (tmp_path / "quorate.toml").read_text()


def test_init_takes_files_with_the_same_texts_for_one_annotators_each(run: Run, tmp_path: Path) -> None:
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.conll").write_text("Bath B-LOC\nsang O\n\nAda B-PER\nslept O\n")
    code, _, said = run("init")
    assert (code, "all 2 have the same texts: each is taken for one annotator's" in said) == (0, True)
    written = (tmp_path / "quorate.toml").read_text()
    assert '\nannotator-from = "filename"' in written
    (tmp_path / "quorate.toml").write_text(written + QUICK)
    assert run("run")[0] == 0
    assert len(lines(tmp_path / "consensus.jsonl")) == 2
    (tmp_path / "bob.conll").write_text("Cy B-PER\nran O\n")
    run("init", "--force")
    assert '\n# annotator-from = "filename"' in (tmp_path / "quorate.toml").read_text()


@pytest.mark.parametrize("files", [{}, {"notes.json": "{}"}, {"a.jsonl": '{"id": "1", "tokens": ["a"]}'}])
def test_init_without_annotations_says_so(run: Run, tmp_path: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    code, _, said = run("init")
    assert (code, said.startswith("quorate: no file"), len(said.splitlines())) == (2, True, 1)


BAD = {
    "": "quorate.toml: no inputs (add inputs",
    "inputs = []": "quorate.toml:1: no inputs (add inputs",
    "inputs = 'exports'": "quorate.toml:1: inputs is a list",
    "inputs = [": "quorate.toml: not TOML: ",
    "input = ['a']": "quorate.toml:1: 'input' is not known here",
    "inputs = ['gone.jsonl']": "quorate.toml: gone.jsonl: no such file (in inputs",
    "inputs = ['none/*.jsonl']": "quorate.toml: no file matches 'none/*.jsonl'",
    "inputs = [3]": "quorate.toml:1: 3 is not an input",
    "inputs = [{label-studio = 'http://x'}]": "is not an input",
    "inputs = ['exports']\nknown = 'a.jsonl'": "quorate.toml:2: known is a list of files",
    "inputs = ['exports']\n[aggregate]\nmethd = 'mv'": "quorate.toml:3: 'quorate aggregate' has no option 'methd' "
    "(did you mean 'method'?)",
    "inputs = ['exports']\n\n[agregate]\nmethod = 'mv'": "quorate.toml:3: [agregate] is not a command "
    "(did you mean [aggregate]?)",
    "inputs = ['exports']\n[aggregate]\nno-text = 3": "quorate.toml:3: no-text is true or false, not 3",
    "inputs = ['exports']\n[aggregate]\nmethod = true": "quorate.toml:3: method takes a value, not True",
    "inputs = ['exports']\n[aggregate]\nmethod = ['mv', 'ds']": "quorate.toml:3: method takes one value, not a list",
    "inputs = ['exports']\n[aggregate]\noutput = '-'": "quorate.toml:3: output is the name of a file",
    "inputs = ['exports']\n[aggregate]\n\naccept = 'high'": "quorate.toml:4: Invalid value for '--accept'",
    "inputs = ['exports']\n[aggregate]\nmethod = 'none-such'": "unknown method 'none-such'",
    "inputs = ['exports']\n[aggregate]\naccept = 0.9": "--accept and --review go together",
}


@pytest.mark.parametrize("content", BAD)
def test_a_file_that_cannot_be_used_says_where_and_what(run: Run, tmp_path: Path, content: str) -> None:
    export(tmp_path, 1)
    (tmp_path / "quorate.toml").write_text(content)
    code, out, said = run("run")
    assert (code, out) == (2, "")
    assert BAD[content] in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "consensus.jsonl").exists()
    assert not (tmp_path / ".quorate" / "versions").exists()


def test_without_a_file_a_line_says_how_to_get_one(run: Run) -> None:
    for command in ("run", "status", "versions", "diff"):
        assert run(command)[::2] == (
            2,
            "quorate: no quorate.toml here or in a folder above (quorate init writes one)\n",
        )


def test_a_run_does_only_what_changed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path)
    assert run("status")[:2] == (1, "no version yet: quorate run makes the first\n")
    assert "version 1: 60 documents" in run("run")[2]
    code, out, _ = run("status")
    assert (code, "is up to date: 60 documents" in out) == (0, True)
    with monkeypatch.context() as patch:
        patch.setattr(quorate.BSC, "fit", never)
        assert run("run")[::2] == (0, "quorate: nothing has changed since version 1\n")
        (tmp_path / "consensus.jsonl").unlink()
        assert run("status")[:2][0] == 1
        assert "written: consensus.jsonl" in run("run")[2]
        assert len(lines(tmp_path / "consensus.jsonl")) == 60
    export(tmp_path, 2)
    code, out, _ = run("status")
    assert (code, "new input exports/week-2.jsonl" in out) == (1, True)
    said = run("run", "-m", "second week")[2]
    assert "version 2: 64 documents" in said
    assert "new input exports/week-2.jsonl" in said
    project(tmp_path, QUICK.replace("4", "5"))
    assert "quorate: since version 2: max-passes: 4 → 5\n" in run("run")[2]
    code, out, _ = run("versions")
    assert [row.split()[0] for row in out.splitlines()[1:4]] == ["3", "2", "1"]
    assert "second week" in out


def test_a_field_of_a_profile_that_was_left_out_is_not_the_same_as_its_default(run: Run, tmp_path: Path) -> None:
    """What is left out is as the input has it."""
    who, of_week = tmp_path / "who.json", tmp_path / "exports" / "week-1.jsonl"
    project(tmp_path, f'{QUICK}\nannotators = "who.json"')
    corpus = quorate.read(of_week)
    name = corpus.annotators[0]
    write(quorate.Corpus(corpus.documents, profiles={name: Profile.of("model", group="g")}), of_week)
    who.write_text(json.dumps({name: {"trust": 2}}))
    assert "version 1" in run("run")[2]
    assert run("run")[2] == "quorate: nothing has changed since version 1\n"
    who.write_text(json.dumps({name: {"trust": 2, "kind": "person", "group": None}}))
    assert "version 2" in run("run")[2]


def test_an_export_that_no_pattern_matches_is_named(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path)
    week_2 = quorate.Corpus(quorate.sample().documents[WEEKS[1]])
    write(week_2, tmp_path / "exports" / "week-2.conll")
    (tmp_path / "exports" / "people.json").write_text('{"ann": {"kind": "person"}}')  # no annotations
    left_open = "Exception ignored"  # what Python says of a reader that was left in the middle of a file
    table = tmp_path / "exports" / "week-3.csv"
    write(week_2, table, "table")
    said = run("status")[2]
    assert "exports/week-3.csv" in said
    assert left_open not in said + capfd.readouterr().err
    table.unlink()
    corpus = tmp_path / "exports" / "week-3.qr"
    run("encode", "exports/week-2.conll", "-o", corpus)
    assert "exports/week-3.qr" in run("status")[2]
    corpus.unlink()
    note = (
        'quorate: note: exports/week-2.conll: not among the inputs (add "exports/*.conll" to inputs in quorate.toml)\n'
    )
    assert run("status")[2] == note
    assert run("run")[2].endswith(note)
    assert run("run")[2] == f"quorate: nothing has changed since version 1\n{note}"
    assert run("status")[::2] == (0, note)
    assert json.loads(run("status", "--json")[1])["overlooked"] == ["exports/week-2.conll"]
    assert note.removeprefix("quorate: note: ").strip() in json.loads(run("run", "--json")[1])["notes"]
    project(tmp_path, head='inputs = ["exports/*.jsonl", "exports/*.conll"]')
    assert run("status")[1:] == (run("status")[1], "")
    assert "version 2: 64 documents" in run("run")[2]


def test_a_project_may_be_in_a_folder_with_brackets(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "crowd [1]"
    place.mkdir()
    project(place)
    monkeypatch.chdir(place)
    assert "version 1: 60 documents" in run("run")[2]


def test_a_run_is_the_aggregate_of_its_inputs(run: Run, tmp_path: Path) -> None:
    project(tmp_path, "")
    run("run")
    export(tmp_path, 2)
    run("run")
    exports = sorted((tmp_path / "exports").iterdir())
    assert run("--no-project", "aggregate", *exports, "-o", "other.jsonl", "-q")[0] == 0
    assert (tmp_path / "other.jsonl").read_bytes() == (tmp_path / "consensus.jsonl").read_bytes()


def test_a_version_of_an_earlier_release_is_read(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    run("run")
    kept = tmp_path / ".quorate" / "versions" / "1.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"chosen": 1}))
    assert run("status")[0] == 0
    assert [one["number"] for one in json.loads(run("versions", "--json")[1])] == [1]


def test_many_small_runs_end_where_one_would(run: Run, tmp_path: Path) -> None:
    """Nothing of the runs before decides a consensus."""
    project(tmp_path, options="")
    run("run")
    shutil.copytree(tmp_path / ".quorate", tmp_path / "kept")
    documents = quorate.sample().documents[60:65]
    for n in range(len(documents)):
        write(quorate.Corpus(documents[n : n + 1]), tmp_path / "exports" / f"week-2-{n}.jsonl")
        assert run("run")[0] == 0
    after_many = (tmp_path / "consensus.jsonl").read_bytes()
    shutil.rmtree(tmp_path / ".quorate")
    os.replace(tmp_path / "kept", tmp_path / ".quorate")
    assert "version 2: 65 documents" in run("run")[2]
    assert (tmp_path / "consensus.jsonl").read_bytes() == after_many


def test_several_outputs_and_folders(run: Run, tmp_path: Path) -> None:
    outputs = 'output = ["out/consensus.jsonl", "consensus.csv", "train.conll"]\n'
    project(tmp_path, QUICK + outputs + 'save = "crowd.quorate"\nmeta = "meta.json"\n')
    assert run("run")[0] == 0
    for name in ("out/consensus.jsonl", "consensus.csv", "train.conll", "crowd.quorate", "meta.json"):
        assert (tmp_path / name).exists(), name
    decided = json.loads((tmp_path / "meta.json").read_text())["decided"]
    assert (decided["method"], decided["settings"]["max_iter"]) == ("bsc-cm", 4)


def test_an_input_is_no_output(run: Run, tmp_path: Path) -> None:
    project(tmp_path, QUICK + 'output = "exports/week-1.jsonl"\n')
    before = (tmp_path / "exports" / "week-1.jsonl").read_bytes()
    code, _, said = run("run")
    assert (code, "exports/week-1.jsonl: an input is there, which would be lost" in said) == (2, True)
    assert (tmp_path / "exports" / "week-1.jsonl").read_bytes() == before


def test_a_folder_with_inputs_is_no_output(run: Run, tmp_path: Path) -> None:
    project(tmp_path, QUICK + 'output = "exports"\nto = "brat"\n')
    assert run("run")[0] == 2
    assert (tmp_path / "exports" / "week-1.jsonl").exists()


def test_a_folder_that_was_edited_is_kept_twice(run: Run, tmp_path: Path) -> None:
    project(tmp_path, QUICK + 'output = "standoff"\nto = "brat"\n')
    (tmp_path / "standoff").mkdir()
    for text in ("one", "two"):
        (tmp_path / "standoff" / "mine.txt").write_text(text)
        assert run("run")[0] == 0
        assert not (tmp_path / "standoff" / "mine.txt").exists()
    kept = [(tmp_path / f"standoff.edited{end}" / "mine.txt").read_text() for end in ("", "-2")]
    assert kept == ["one", "two"]


def test_what_is_written_decides_too(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    run("run")
    project(tmp_path, QUICK + "probabilities = true\n")
    code, out, _ = run("status")
    assert (code, out.splitlines()[1:]) == (1, ["  probabilities: no → yes"])
    run("run")
    assert "probabilities" in lines(tmp_path / "consensus.jsonl")[0]


def test_of_labels_given_twice_the_later_file_counts(run: Run, tmp_path: Path) -> None:
    (tmp_path / "exports").mkdir()
    for week, tag in ((2, "O"), (10, "B-PER")):
        line = {"id": "1", "tokens": ["Ada"], "annotations": {"ann": [tag], "bob": [tag]}}
        more = {"id": "2", "tokens": ["Bo"], "annotations": {"ann": ["B-PER"]}}
        (tmp_path / "exports" / f"week-{week}.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(more))
    (tmp_path / "quorate.toml").write_text('inputs = ["exports/*.jsonl"]\n[aggregate]\nmethod = "mv"\n')
    run("run")
    assert lines(tmp_path / "consensus.jsonl")[0]["tags"] == ["B-PER"]
    head = 'inputs = ["exports/week-10.jsonl", "exports/week-2.jsonl"]\n[aggregate]\nmethod = "mv"\n'
    (tmp_path / "quorate.toml").write_text(head)
    code, out, _ = run("status")
    assert (code, out.splitlines()[1:]) == (1, ["  input files: in another order"])
    run("run")
    assert lines(tmp_path / "consensus.jsonl")[0]["tags"] == ["O"]


def test_other_outputs_are_told_as_such(run: Run, tmp_path: Path) -> None:
    project(tmp_path, QUICK + 'output = ["consensus.jsonl", "tags.conll"]\n')
    run("run")
    project(tmp_path, QUICK + 'output = ["consensus.jsonl", "spans.csv"]\n')
    code, out, _ = run("status")
    assert (code, out.splitlines()[1:]) == (1, ["  outputs: spans.csv new, tags.conll gone"])
    assert "quorate: since version 1: outputs: spans.csv new, tags.conll gone\n" in run("run")[2]
    assert (tmp_path / "spans.csv").exists()
    project(tmp_path)
    assert run("status")[0] == 1
    run("run")
    assert run("status")[0] == 0
    assert [version.changes for version in Store(tmp_path).versions()[1:]] == [
        ["outputs: spans.csv new, tags.conll gone"],
        ["outputs: spans.csv gone"],
    ]
    run("run", "--fresh")
    latest = Store(tmp_path).latest
    assert latest is not None
    assert latest.changes == ["fitted again"]


def test_every_output_has_the_accepted_documents_alone(run: Run, tmp_path: Path) -> None:
    options = 'output = ["sure.jsonl", "also.jsonl"]\naccept = 0.985\nreview = "unsure.jsonl"\n'
    project(tmp_path, QUICK + options)
    assert " of 60 documents accepted, " in run("run")[2]
    assert (tmp_path / "also.jsonl").read_bytes() == (tmp_path / "sure.jsonl").read_bytes()
    kept, left = len(lines(tmp_path / "sure.jsonl")), len(lines(tmp_path / "unsure.jsonl"))
    assert kept + left == 60
    assert min(kept, left) > 0
    inputs = sorted(map(str, (tmp_path / "exports").iterdir()))
    asked = ("--no-project", "aggregate", *inputs, "-o", "by-hand.jsonl", "--accept", 0.985, "--review", "rest.jsonl")
    by_hand = json.loads(run(*asked, "--method", "bsc-cm", "--max-passes", 4, "--json")[1])["accepted"]
    assert by_hand["documents"] == kept
    for again in (("run",), ("restore", "1")):
        assert json.loads(run(*again, "--json")[1])["accepted"] == by_hand


def test_quiet_or_not_the_agreement_is_kept(run: Run, tmp_path: Path) -> None:
    project(tmp_path, "")
    _, out, said = run("run", "--quiet")
    assert (out, said) == ("", "")
    version = Store(tmp_path).latest
    assert version is not None
    assert version.agreement == quorate.score.token_alpha(quorate.read(*sorted((tmp_path / "exports").iterdir())))


def test_a_run_names_the_command_that_tells_f1(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    said = run("run")[2]
    assert "(Krippendorff's alpha); F1 " in said
    assert " by the gold of 60 documents\n" in said
    bare = quorate.Corpus([replace(one, gold=None) for one in quorate.sample().documents[:40]])
    write(bare, tmp_path / "bare.jsonl")
    (tmp_path / "quorate.toml").write_text(f'inputs = ["bare.jsonl"]\n[aggregate]\n{QUICK}')
    assert "; F1 unknown: quorate audit plan consensus.jsonl -n 30 -o audit.jsonl\n" in run("run")[2]


def test_layers_have_an_agreement(run: Run, tmp_path: Path) -> None:
    def write_nested(name: str, documents: slice) -> None:
        with (tmp_path / "exports" / name).open("w") as stream:
            for one in quorate.sample().documents[documents]:
                said = {
                    who: [*({"start": s.start, "end": s.end, "label": s.label} for s in find_spans(hard_tags(tags)))]
                    for who, tags in one.annotations.items()
                }
                said = {who: spans + [span | {"label": "NAME"} for span in spans] for who, spans in said.items()}
                stream.write(json.dumps({"id": one.id, "tokens": one.tokens, "annotations": said}) + "\n")

    (tmp_path / "exports").mkdir()
    write_nested("a.jsonl", slice(0, 120))
    (tmp_path / "quorate.toml").write_text('inputs = ["exports/*.jsonl"]\n[aggregate]\nlayers = "auto"\n')
    assert "agreement " in run("run")[2]
    write_nested("b.jsonl", slice(120, 124))
    assert run("run")[0] == 0
    assert json.loads(run("diff", "--json")[1])["agreement"][0] is not None


def test_a_folder_as_output_is_kept_restored_and_replaced(run: Run, tmp_path: Path) -> None:
    project(tmp_path, QUICK + 'output = "standoff"\nto = "brat"\n')
    assert run("run")[0] == 0
    before = sorted(path.name for path in (tmp_path / "standoff").iterdir())
    export(tmp_path, 2)
    assert run("run")[0] == 0
    assert len(sorted((tmp_path / "standoff").iterdir())) == len(before) + 8
    assert run("restore", "1")[0] == 0
    assert sorted(path.name for path in (tmp_path / "standoff").iterdir()) == before
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_what_was_changed_by_hand_is_kept(run: Run, tmp_path: Path) -> None:
    (tmp_path / "consensus.jsonl").write_text("mine\n")
    project(tmp_path)
    assert "kept as consensus.jsonl.edited" in run("run")[2]
    assert (tmp_path / "consensus.jsonl.edited").read_text() == "mine\n"
    with (tmp_path / "consensus.jsonl").open("a") as stream:
        stream.write("\n")
    assert "output consensus.jsonl: changed since the run" in run("status")[1]
    export(tmp_path, 2)
    assert "kept as consensus.jsonl.edited-2" in run("run")[2]
    assert (tmp_path / "consensus.jsonl.edited-2").read_text().endswith("\n\n")


def test_versions_are_compared_restored_and_forgotten(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    run("run")
    first = (tmp_path / "consensus.jsonl").read_bytes()
    assert run("diff")[0] == 2
    export(tmp_path, 2)
    known = {"id": "s001", "tags": ["O"] * len(quorate.sample()["s001"].tokens), "reviewer": "rita"}
    (tmp_path / "reviews").mkdir()
    (tmp_path / "reviews" / "rita.jsonl").write_text(json.dumps(known))
    project(tmp_path, head='inputs = ["exports/*.jsonl"]\nknown = ["reviews/*.jsonl"]')
    run("run")
    found = json.loads(run("diff", "1", "2", "--json")[1])
    changed = {one["id"]: one for one in found["documents"] if one["kind"] == "changed"}
    removed = [span["before"] for span in changed["s001"]["spans"] if span["kind"] == "removed"]
    assert removed == [[span["text"], span["label"]] for span in json.loads(first.splitlines()[0])["spans"]] != []
    assert sum(one["kind"] == "added" for one in found["documents"]) == 4
    assert "new review reviews/rita.jsonl" in found["decided"]
    code, out, _ = run("diff")
    assert (code, "  - Bergen [LOC]" in out, "4 added" in out) == (0, True, True)
    assert run("restore", "1")[0] == 0
    assert (tmp_path / "consensus.jsonl").read_bytes() == first
    latest = Store(tmp_path).latest
    assert latest is not None
    assert (latest.number, latest.restored) == (3, 1)
    assert run("restore", "9")[::2] == (2, "quorate: there is no version 9 (quorate versions lists them)\n")
    assert run("versions", "--keep", "1", "--json")[0] == 0
    assert [version.number for version in Store(tmp_path).versions()] == [3]
    assert run("restore", "3")[0] == 0
    assert run("run")[0] == 0
    assert [version.number for version in Store(tmp_path).versions()] == [3, 4, 5]


def test_all_that_decides_is_in_a_version(run: Run, tmp_path: Path) -> None:
    (tmp_path / "who.json").write_text('{"fay": {"kind": "rule"}}')
    options = (
        'map-labels = { WORK = "", PER = "PERSON" }\nannotators = "who.json"\naccept = 0.5\nreview = "unsure.jsonl"\n'
    )
    project(tmp_path, QUICK + options)
    assert run("run")[0] == 0
    decided = json.loads(run("versions", "--json")[1])[0]["decided"]
    assert decided["reading"]["map_labels"] == {"WORK": None, "PER": "PERSON"}
    assert decided["reading"]["annotators"]["fay"]["kind"] == "rule"
    assert decided["accept"] == 0.5
    labels = {span["label"] for line in lines(tmp_path / "consensus.jsonl") for span in line["spans"]}
    assert labels <= {"LOC", "ORG", "PERSON"}
    (tmp_path / "who.json").write_text('{"fay": {"kind": "person"}}')
    assert "  annotators fay kind: rule → person\n" in run("status")[1]


def test_every_command_takes_the_settings_of_the_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, QUICK + 'map-labels = { WORK = "" }\n[check]\nscheme = "io"\n')
    code, out, _ = run("check")
    assert (code in (0, 1), "60 documents" in out) == (True, True)
    assert "WORK" not in run("agreement", "--json")[1]
    below = tmp_path / "exports"
    monkeypatch.chdir(below)
    assert "60 documents" in run("check")[1]
    assert run("run")[0] == 0
    assert (tmp_path / "consensus.jsonl").exists()
    assert run("--no-project", "check")[0] == 2
    assert run("report", "-o", "here.html", "-q")[0] == 0
    assert (below / "here.html").exists()
    assert run("aggregate", "-o", "-", "--tagger", "none", "-q")[1].count("\n") == 60
    assert run("check", "--help")[0] == 0


def test_a_project_knows_its_model_and_its_consensus(run: Run, tmp_path: Path) -> None:
    project(tmp_path, QUICK + 'map-labels = { WORK = "" }\nsave = "m.quorate"\n')
    assert run("annotators")[::2] == (2, "quorate: no version yet (quorate run makes the first)\n")
    assert run("run", "-q")[0] == 0
    assert run("annotators") == run("annotators", "m.quorate")
    named = ("evaluate", "consensus.jsonl", "--gold", "exports/week-1.jsonl")
    code, scores, _ = run("evaluate", "--json")
    assert code == 0
    assert scores == run(*named, "--json")[1]
    assert "WORK" not in json.loads(scores)["by_type"]
    assert "WORK" in json.loads(run("--no-project", *named, "--json")[1])["by_type"]


def test_without_a_project_a_line_says_what_to_give(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    assert run("run", "-q")[0] == 0
    for arguments, said in (
        (("annotators",), "no model (give one"),
        (("update",), "no model (give one"),
        (("audit", "plan"), "no consensus (give a file that 'quorate aggregate' wrote as JSONL, or a project"),
        (("audit", "result", "--checked", "exports/week-1.jsonl"), "no consensus (give a file"),
        (("evaluate",), "no gold to compare with (give it: --gold FILE)"),
        (("evaluate", "--gold", "exports/week-1.jsonl"), "no consensus (give a file"),
    ):
        code, out, err = run("--no-project", *arguments)
        assert (code, out, err.startswith(f"quorate: {said}"), len(err.splitlines())) == (2, "", True, 1)


def test_audits_are_of_the_consensus_of_the_last_version(run: Run, tmp_path: Path) -> None:
    project(tmp_path, QUICK + '["audit plan"]\ndocuments = 20\n')
    assert run("audit", "plan", "-o", "audit.jsonl")[::2] == (
        2,
        "quorate: no version yet (quorate run makes the first)\n",
    )
    assert run("run", "-q")[0] == 0
    assert run("audit", "plan", "-o", "audit.jsonl", "-q")[0] == 0
    assert len(lines(tmp_path / "audit.jsonl")) == 20
    assert run("audit", "plan", "consensus.jsonl", "-o", "same.jsonl", "-q")[0] == 0
    assert lines(tmp_path / "same.jsonl") == lines(tmp_path / "audit.jsonl")
    checked = (tmp_path / "audit.jsonl").read_text().replace('"checked":false', '"checked":true')
    (tmp_path / "audit.jsonl").write_text(checked)
    code, out, err = run("audit", "result", "--checked", "audit.jsonl", "--json")
    assert (code, err, json.loads(out)["checked"]) == (0, "", 20)
    code, _, err = run("audit", "plan", "-o", "consensus.jsonl")
    assert (code, err) == (2, "quorate: consensus.jsonl: 'quorate run' writes this file (give another name with -o)\n")


def test_a_run_in_the_middle_of_an_audit_says_of_which_version_it_is(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    assert run("run", "-q")[0] == 0
    assert run("audit", "plan", "-n", "20", "-o", "audit.jsonl", "-q")[0] == 0
    export(tmp_path, 2)
    assert run("run")[2].splitlines()[-1] == (
        "quorate: note: audit.jsonl is an audit of version 1 (to go on with it: quorate restore 1; for version 2, "
        "plan again)"
    )
    told = "quorate: audit.jsonl: this plan was drawn from version 1, not from this consensus (quorate restore 1 brings"
    for _ in range(2):
        code, _, err = run("audit", "result", "--checked", "audit.jsonl")
        assert (code, err) == (2, f"{told} that version back; or draw a new plan: quorate audit plan)\n")
        checked = (tmp_path / "audit.jsonl").read_text().replace('"checked":false', '"checked":true')
        (tmp_path / "audit.jsonl").write_text(checked)
    export(tmp_path, 3)
    assert "audit of version" not in run("run")[2]  # which was said when it was so
    project(tmp_path, QUICK + 'precision = 0.5\nchecked = "audit.jsonl"\n')
    code, _, err = run("run")
    assert (code, err) == (
        2,
        f"{told} that version back; or take 'checked' out of quorate.toml, run, and draw a new plan: quorate audit "
        "plan)\n",
    )
    assert run("restore", "1", "-q")[0] == 0
    assert run("audit", "result", "--checked", "audit.jsonl")[::2] == (0, "")


def test_a_file_of_what_was_checked_that_is_not_there_is_named(run: Run, tmp_path: Path) -> None:
    project(tmp_path, QUICK + 'precision = 0.5\nchecked = "audit.jsonl"\n')
    assert run("run")[::2] == (2, "quorate: audit.jsonl: no such file\n")


def test_an_update_goes_on_from_the_model_of_the_last_version(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    assert run("run", "-q")[0] == 0
    code, out, err = run("update", "-o", "new.jsonl")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("quorate: no input is new since version 1 (")
    export(tmp_path, 2)
    code, _, err = run("update", "-o", "new.jsonl")
    assert (code, "4 new documents, 0 changed" in err) == (0, True), err
    assert "the model of the last version stays as it is (--save keeps the new one)" in err
    assert len(lines(tmp_path / "new.jsonl")) == 4
    shutil.move(tmp_path / "exports/week-2.jsonl", tmp_path / "today.jsonl")
    for arguments in (("today.jsonl",), ("today.jsonl", "--save", "today.quorate")):
        assert run("update", *arguments, "-o", "same.jsonl", "-q")[0] == 0
        assert lines(tmp_path / "same.jsonl") == lines(tmp_path / "new.jsonl")
    assert run("annotators", "today.quorate", "--json")[0] == 0
    assert run("status")[0] == 0, "the version is as it was"
    with (tmp_path / "exports/week-1.jsonl").open("a") as stream:
        stream.write((tmp_path / "today.jsonl").read_text())
    code, _, err = run("update", "-o", "new.jsonl")
    assert (code, len(err.splitlines())) == (2, 1)
    assert err.startswith("quorate: exports/week-1.jsonl has changed since version 1, ")
    assert run("update", "exports/week-1.jsonl", "-o", "new.jsonl")[::2] == (2, err)
    assert run("--no-project", "update", "today.jsonl", "-o", "new.jsonl")[0] == 2
    export(tmp_path, 2)
    os.remove(tmp_path / "exports/week-1.jsonl")
    code, _, err = run("update", "-o", "new.jsonl")
    assert (code, err.startswith("quorate: exports/week-1.jsonl is gone since version 1, ")) == (2, True)


def test_a_damaged_archive_is_no_model_and_no_input(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    assert run("run", "-q")[0] == 0
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("meta.json", "{}")
    content = (tmp_path / "export.zip").read_bytes()
    for odd in (content, content.replace(b"PK\x01\x02\x14\x03\x14", b"PK\x01\x02\x14\x03\xff")):
        (tmp_path / "export.zip").write_bytes(odd)
        code, _, err = run("update", "export.zip", "-o", "new.jsonl")
        assert (code, len(err.splitlines()), err.startswith("quorate: export.zip")) == (2, 1, True), err
        assert "model" not in err


def test_an_update_takes_what_the_project_knows_of_new_inputs(run: Run, tmp_path: Path) -> None:
    project(tmp_path, head='inputs = ["exports/*.jsonl"]\nknown = ["reviews/*.jsonl"]')
    assert run("run", "-q")[0] == 0
    export(tmp_path, 2)
    old, new = quorate.sample().documents[0], quorate.sample().documents[61]
    wrong = {one.id: ["B-WORK"] * len(one.tokens) for one in (old, new)}
    (tmp_path / "reviews").mkdir()
    review = "".join(json.dumps({"id": name, "tags": tags}) + "\n" for name, tags in wrong.items())
    (tmp_path / "reviews" / "ann.jsonl").write_text(review)
    for command in (("update",), ("update", "exports/week-2.jsonl")):
        code, _, err = run(*command, "-o", "new.jsonl", "-q")
        assert code == 0, err
        written = {line["id"]: line["tags"] for line in lines(tmp_path / "new.jsonl")}
        assert written[new.id] == wrong[new.id]
        assert len(written) == 4
    assert run("update", "--known", "none", "-o", "none.jsonl", "-q")[0] == 0
    assert {line["id"]: line["tags"] for line in lines(tmp_path / "none.jsonl")}[new.id] != wrong[new.id]
    code, _, err = run("update", "--known", "reviews/ann.jsonl", "-o", "new.jsonl")
    assert (code, len(err.splitlines())) == (2, 1)
    assert err.startswith("quorate: the model keeps no documents, which known labels could be about (in a project, add")


@pytest.mark.parametrize("gold", [True, False])
def test_an_update_takes_the_gold_in_new_inputs_where_the_project_does(run: Run, tmp_path: Path, gold: bool) -> None:
    project(tmp_path, head='inputs = ["exports/*.jsonl"]\nknown = ["inline"]')
    assert run("run", "-q")[0] == 0
    odd = [
        replace(one, gold=("B-WORK",) * len(one.tokens) if gold else None) for one in quorate.sample().documents[60:64]
    ]
    write(quorate.Corpus(odd), tmp_path / "exports" / "week-2.jsonl")
    assert run("update", "-o", "new.jsonl", "-q")[::2] == (0, "")
    told = [set(line["tags"]) == {"B-WORK"} for line in lines(tmp_path / "new.jsonl")]
    assert told == [gold] * 4


def test_reviews_of_a_project_are_not_of_other_files(run: Run, tmp_path: Path) -> None:
    project(tmp_path, QUICK + 'save = "m.quorate"\n', head='inputs = ["exports/*.jsonl"]\nknown = ["review.jsonl"]')
    document = quorate.sample().documents[0]
    review = {"id": document.id, "tokens": document.tokens, "tags": document.gold, "reviewer": "ann"}
    (tmp_path / "review.jsonl").write_text(json.dumps(review))
    write(quorate.Corpus(quorate.sample().documents[100:110]), tmp_path / "other.jsonl")
    assert run("run", "-q")[0] == 0
    for arguments in (
        ("report", "other.jsonl", "-o", "other.html"),
        ("report", "other.jsonl", "--model", "m.quorate", "-o", "other.html"),
        ("report", "--model", "m.quorate", "-o", "other.html"),
        ("aggregate", "other.jsonl", "-o", "other-consensus.jsonl"),
        ("next", "other.jsonl", "-n", 1),
        ("update", "m.quorate", "other.jsonl", "-o", "all.jsonl", "--save", "mine.quorate"),
    ):
        code, _, err = run(*arguments, "-q")
        assert code == 0, err
    assert json.loads(run("aggregate", "-o", "c.jsonl", "--json")[1])["known_tokens"] == len(document.tokens)
    own = ("aggregate", "exports/week-1.jsonl", "-o", "c.jsonl", "--json")
    assert json.loads(run(*own)[1])["known_tokens"] == len(document.tokens)
    code, _, err = run("aggregate", "other.jsonl", "--known", "review.jsonl", "-o", "c.jsonl")
    assert (code, document.id in err) == (2, True)
    code, _, err = run("report", "--model", "m.quorate", "--known", "review.jsonl", "-o", "other.html")
    assert (code, "--model brings its own" in err) == (2, True)


def test_a_report_leaves_that_of_the_run_alone(run: Run, tmp_path: Path) -> None:
    project(tmp_path, QUICK + 'report = "report.html"\n')
    assert run("run", "-q")[0] == 0
    said = "quorate: report.html: 'quorate run' writes this file (give another name with -o)\n"
    assert run("report") == (2, "", said)
    assert run("report", "-o", "mine.html", "-q")[0] == 0
    assert run("status")[0] == 0


def test_no_command_writes_over_what_the_run_has_written(run: Run, tmp_path: Path) -> None:
    outputs = 'output = ["consensus.jsonl", "train.conll"]\nsave = "crowd.quorate"\n'
    project(tmp_path, QUICK + outputs)
    assert run("run", "-q")[0] == 0
    project(tmp_path, QUICK + outputs + 'meta = "bound.svg"\n')  # what the next run will write
    (tmp_path / "below").mkdir()
    crowd = "exports/week-1.jsonl"
    commands: list[tuple[str, tuple[str, ...]]] = [
        ("consensus.jsonl", ("aggregate", "-o", "consensus.jsonl")),
        ("train.conll", ("aggregate", "-o", "train.conll")),
        ("below/../consensus.jsonl", ("aggregate", "-o", "below/../consensus.jsonl")),
        ("crowd.quorate", ("aggregate", "-o", "mine.jsonl", "--save", "crowd.quorate")),
        ("consensus.jsonl", ("predict", "crowd.quorate", crowd, "-o", "consensus.jsonl")),
        ("consensus.jsonl", ("update", "crowd.quorate", crowd, "-o", "consensus.jsonl", "--save", "m.quorate")),
        ("crowd.quorate", ("update", "crowd.quorate", crowd, "-o", "new.jsonl")),
        ("consensus.jsonl", ("convert", crowd, "consensus.jsonl")),
        ("consensus.jsonl", ("next", "-n", "1", "-o", "consensus.jsonl")),
        ("consensus.jsonl", ("encode", "-o", "consensus.jsonl")),
        ("consensus.jsonl", ("tune", "-o", "consensus.jsonl")),
        ("consensus.jsonl", ("tune", "--results", "consensus.jsonl")),
        ("consensus.jsonl", ("reviews", crowd, "-o", "consensus.jsonl")),
        ("bound.svg", ("plot", "trace", "crowd.quorate", "-o", "bound.svg")),
        ("bound.svg", ("plot", "annotators", "crowd.quorate", "-o", "bound.svg")),
        ("bound.svg", ("simulate-active", "--figure", "bound.svg")),
        ("consensus.jsonl", ("simulate-active", "--table", "consensus.jsonl")),
        ("consensus.jsonl", ("simulate-active", "--results", "consensus.jsonl")),
    ]
    before = {name: (tmp_path / name).read_bytes() for name in ("consensus.jsonl", "train.conll", "crowd.quorate")}
    for name, command in commands:
        code, out, said = run(*command)
        assert (code, out) == (2, ""), command
        assert said.startswith(f"quorate: {name}: 'quorate run' writes this file (give another name with -"), command
        assert len(said.splitlines()) == 1
    assert before == {name: (tmp_path / name).read_bytes() for name in before}
    assert run("aggregate", "-o", "mine.jsonl", "-q")[0] == 0
    assert run("--no-project", "aggregate", crowd, "--method", "mv", "-o", "consensus.jsonl", "-q")[0] == 0


def test_what_a_run_writes_is_told_without_its_inputs(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    assert run("run", "-q")[0] == 0
    shutil.move(tmp_path / "consensus.jsonl", tmp_path / "theirs.jsonl")
    shutil.rmtree(tmp_path / "exports")
    assert run("audit", "plan", "theirs.jsonl", "-n", 20, "-o", "plan.jsonl", "-q")[::2] == (0, "")
    assert run("audit", "plan", "theirs.jsonl", "-n", 20, "-o", "consensus.jsonl", "-q")[0] == 2


def test_an_export_that_has_grown_is_the_same_documents_with_more_labels(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    run("run")
    write(quorate.Corpus(quorate.sample().documents[:70]), tmp_path / "exports" / "later.jsonl")
    assert "version 2: 70 documents" in run("run")[2]


def test_without_a_review_a_line_says_so(run: Run, tmp_path: Path) -> None:
    project(tmp_path, head='inputs = ["exports/*.jsonl"]\nknown = ["reviews/*.jsonl"]')
    code, _, said = run("reviews")
    assert (code, said.startswith("quorate: no review yet"), len(said.splitlines())) == (2, True, 1)


def test_damaged_contents_do_not_stop_a_run(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    run("run")
    for path in (tmp_path / ".quorate" / "contents").glob("*/*"):
        path.write_bytes(b"damaged")
    export(tmp_path, 2)
    assert run("run")[0] == 0
    assert run("restore", "1")[0] == 2
    (tmp_path / "exports" / "week-2.jsonl").unlink()
    assert run("run")[0] == 0  # the same content as in version 1 is kept anew
    assert run("restore", "1")[0] == 0
    (tmp_path / ".quorate" / "versions" / "1.json").write_text("{")
    code, _, said = run("versions")
    assert (code, "1.json: damaged" in said) == (2, True)


PAUSES = {
    "before anything is kept": ("quorate.project.store.Store", "put_path"),
    "before the version is": ("quorate.project.store.Store", "add"),
    "before outputs are in place": ("quorate.project.store.Store", "put_in_place"),
}
SCRIPT = """
import importlib, sys
from quorate.cli import main
module, _, kind = {owner!r}.rpartition(".")
owner = getattr(importlib.import_module(module), kind)

def wait(*_, **__):
    print("here", flush=True)
    sys.stdin.readline()

setattr(owner, {name!r}, wait)
sys.argv = ["quorate", "run", "--quiet"]
main()
"""


@pytest.mark.parametrize("when", PAUSES)
def test_a_run_that_was_killed_loses_nothing_and_the_next_goes_on(run: Run, tmp_path: Path, when: str) -> None:
    project(tmp_path)
    run("run")
    first = (tmp_path / "consensus.jsonl").read_bytes()
    export(tmp_path, 2)
    owner, name = PAUSES[when]
    with started_here() as start:
        script = SCRIPT.format(owner=owner, name=name)
        process = start(
            [sys.executable, "-c", script], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        code, _, said = run("run")
        assert (code, f"another run is at work here (process {process.pid}" in said) == (2, True)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    assert (tmp_path / "consensus.jsonl").read_bytes() == first
    assert run("run")[0] == 0
    assert len(lines(tmp_path / "consensus.jsonl")) == 64
    assert [version.number for version in Store(tmp_path).versions()] == [1, 2]
    assert not (tmp_path / ".quorate" / "work").exists()


def test_a_run_can_wait_for_another(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    with started_here() as start:
        with Store(tmp_path).locked():
            command = [sys.executable, "-m", "quorate", "run", "--wait", "--quiet"]
            process = start(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(2)
        assert process.wait(60) == 0
    assert (tmp_path / "consensus.jsonl").exists()
