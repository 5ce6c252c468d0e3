"""What cannot be done is refused in one line before anything is fitted, and what is written is what its name says."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate import Corpus
from quorate.formats import format_of, write
from quorate.formats.registry import Format
from running import Run


@pytest.fixture
def crowd(tmp_path: Path, sample: Corpus) -> Path:
    path = tmp_path / "crowd.jsonl"
    write(Corpus(sample.documents[:60]), path)
    return path


@pytest.fixture
def no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fitted(*_: Any, **__: Any) -> None:
        raise AssertionError("it was fitted")

    monkeypatch.setattr("quorate.estimators.layered.LayeredModel.fit", fitted)
    monkeypatch.setattr("quorate.estimators.layered.LayeredModel.combine", fitted)


NO_SHARE = "must be a precision above 0 and below 1, not 95 (95 % is 0.95)"
NO_FOLDER = "cannot be written: no such folder"
REFUSED = [
    (("--accept", "95", "--review", "r.jsonl"), f"--accept {NO_SHARE}"),
    (("--precision", "95"), "precision must be above 0 and at most 1, not 95 (95 % is 0.95)"),
    (("--recall", "87.5"), "recall must be above 0 and at most 1, not 87.5 (87.5 % is 0.875)"),
    (("--recall", "100"), "recall must be above 0 and at most 1, not 100 (100 % is 1)"),
    (("--recall", "-1"), "recall must be above 0 and at most 1, not -1\n"),
    (("--recall", "950"), "recall must be above 0 and at most 1, not 950\n"),
    (("--precision", "95", "--checked", "audit.jsonl"), f"precision {NO_SHARE}"),
    (("-o", "no/such.jsonl"), NO_FOLDER),
    (("-o", "."), "it is a folder"),
    (("-o", "m.quorate"), "m.quorate: by its name this is a model (--save), not a file of annotations"),
    (("-o", "gold.xlsx"), "gold.xlsx: by its name this is a spreadsheet (which can open .csv)"),
    (("-o", "crowd.qr"), "crowd.qr: by its name this is an encoded corpus (quorate encode)"),
    (("--accept", "0.9", "--review", "r.html"), "r.html: by its name this is a report (--report)"),
    (("--report", "no/such.html"), NO_FOLDER),
    (("--report", "r.pdf"), "r.pdf: by its name this is a PDF, and a report is HTML (write r.html, and print that)"),
    (("--report", "r.xlsx"), "by its name this is a spreadsheet (which can open .csv), and a report is HTML"),
    (("--save", "no/such.quorate"), NO_FOLDER),
    (("--meta", "no/such.json"), NO_FOLDER),
    (("--accept", "0.9", "--review", "no/such.jsonl"), NO_FOLDER),
    (("--tagger", "seer"), "tagger 'seer' is not known (one of: none, crf, context)"),
    (("--engine", "steam"), "engine 'steam' is not known"),
    (("--threads", "0"), "--threads must be 1 or more"),
    (("--to", "word"), "unknown format 'word'"),
    (("--to", "mace"), "a format that is not written: 'mace'"),
]


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize(("options", "said"), REFUSED, ids=lambda given: " ".join(given[:2]))
def test_what_cannot_be_is_refused_before_the_fit(run: Run, crowd: Path, options: tuple[str, ...], said: str) -> None:
    output = () if "-o" in options else ("-o", "out.jsonl")
    code, out, err = run("aggregate", crowd, *output, *options)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err
    assert [path.name for path in crowd.parent.iterdir()] == ["crowd.jsonl"]


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("name", ["rep.pdf", "Rep.PDF", "rep.docx", "rep.jsonl", "rep.json", "m.quorate", "rep.csv.gz"])
def test_a_report_is_not_written_under_the_name_of_another_kind(run: Run, crowd: Path, name: str) -> None:
    code, _, err = run("report", crowd, "-o", name)
    assert (code, len(err.splitlines())) == (2, 1)
    assert f"{name}: by its name this is a" in err
    assert f"and a report is HTML (write {name.partition('.')[0]}.html" in err
    assert [path.name for path in crowd.parent.iterdir()] == ["crowd.jsonl"]


def test_a_percentage_where_a_share_is_meant_gets_a_hint_everywhere(run: Run, crowd: Path) -> None:
    assert run("aggregate", crowd, "-o", "c.jsonl", "--method", "bsc-cm", "--save", "m.quorate", "-q")[0] == 0
    for command in (
        ("predict", "m.quorate", crowd, "-o", "out.jsonl", "--precision", "95"),
        ("update", "m.quorate", crowd, "-o", "out.jsonl", "--recall", "95"),
        ("audit", "result", "c.jsonl", "--checked", crowd, "--confidence", "95"),
    ):
        code, out, err = run(*command)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert err.endswith("not 95 (95 % is 0.95)\n")
    assert not Path("out.jsonl").exists()


@pytest.mark.parametrize(
    ("option", "given", "said"),
    [
        ("--accept", "95%", "'95%' is not a number (95 % is 0.95)"),
        ("--precision", "0,9", "'0,9' is not a number (write it as 0.9)"),
        ("--accept", "high", "'high' is not a number "),
        ("--max-passes", "ten", "'ten' is not a whole number"),
    ],
)
def test_what_is_no_number_is_said_in_plain_words(run: Run, crowd: Path, option: str, given: str, said: str) -> None:
    code, _, err = run("aggregate", crowd, option, given)
    assert code == 2
    assert said in err.replace("│", " ")
    (crowd.parent / "quorate.toml").write_text(f'inputs = ["crowd.jsonl"]\n[aggregate]\n{option[2:]} = "{given}"\n')
    code, _, err = run("run")
    assert (code, f"quorate.toml:3: Invalid value for '{option}': {said.strip()}" in err) == (2, True)


@pytest.mark.parametrize("command", ["aggregate", "predict", "update", "convert"])
def test_a_library_that_is_missing_is_told_before_the_fit(
    run: Run, crowd: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    assert run("aggregate", crowd, "-o", "c.jsonl", "--method", "bsc-cm", "--save", "m.quorate", "-q")[0] == 0
    monkeypatch.setattr(Format, "is_installed", property(lambda self: not self.extra))
    monkeypatch.setattr("quorate.load", lambda _: pytest.fail("the model was loaded"))
    monkeypatch.setattr("quorate.read", lambda *_, **__: pytest.fail("the input was read"))
    model = ["m.quorate"] if command in ("predict", "update") else []
    code, out, err = run(command, *model, crowd, "-o", "out.spacy")
    assert (code, out) == (2, "")
    assert err == "quorate: spaCy needs spacy (pip install 'quorate[spacy]')\n"


def test_convert_says_where_it_can_write(run: Run, crowd: Path) -> None:
    only = "quorate: crowd.jsonl: where to? (quorate convert crowd.jsonl OUT, or --to FORMAT for standard output)\n"
    assert run("convert", "crowd.jsonl") == (2, "", only)
    assert run("convert") == (2, "", "quorate: nothing to convert (quorate convert IN OUT)\n")
    assert run("convert", "crowd.jsonl", "--to", "brat")[::2] == (
        2,
        "quorate: a folder cannot go to standard output (give a name)\n",
    )
    assert [path.name for path in crowd.parent.iterdir()] == ["crowd.jsonl"]


def test_convert_writes_to_a_file_named_last_or_by_an_option_or_to_standard_output(run: Run, crowd: Path) -> None:
    assert run("convert", crowd, "last.conll", "-q")[0] == 0
    assert run("convert", crowd, "-o", "named.conll", "-q")[0] == 0
    code, out, _ = run("convert", crowd, "--to", "conll", "-q")
    assert code == 0
    assert out == Path("last.conll").read_text() == Path("named.conll").read_text()


def test_convert_writes_over_no_file_that_may_be_meant_as_an_input(run: Run, crowd: Path, sample: Corpus) -> None:
    write(Corpus(sample.documents[60:65]), "other.jsonl")
    before = Path("other.jsonl").read_bytes()
    for arguments in ((crowd, "third.jsonl", "other.jsonl"), (crowd, "other.jsonl", "--to", "conll")):
        write(Corpus(sample.documents[65:70]), "third.jsonl")
        code, _, said = run("convert", *arguments)
        assert (code, "other.jsonl: it is there already, and would be lost" in said) == (2, True)
        assert Path("other.jsonl").read_bytes() == before
    for again in range(2):
        assert run("convert", crowd, "last.conll", "-q")[0] == 0
        assert run("convert", crowd, "last.txt", "--to", "conll", "-q")[0] == 0
        assert run("convert", crowd, "last.csv", "--to", "csv", "-q")[0] == 0
        assert run("convert", crowd, "third.jsonl", *(["-o"] if again else []), "both.jsonl", "-q")[0] == 0
    assert run("convert", crowd, "third.jsonl", "-o", "other.jsonl", "-q")[0] == 0
    assert len(quorate.read("other.jsonl")) == 65


def test_convert_in_a_project_takes_its_inputs_unless_others_are_given(run: Run, crowd: Path, sample: Corpus) -> None:
    Path("quorate.toml").write_text('inputs = ["crowd.jsonl"]\n')
    write(Corpus(sample.documents[60:65]), "other.jsonl")
    for arguments, documents in (
        (("-o", "mine.conll"), 60),
        (("other.jsonl", "-o", "mine.conll"), 5),
        (("other.jsonl", "mine.conll"), 5),
        (("other.jsonl", "crowd.jsonl", "-o", "mine.conll"), 65),
    ):
        assert run("convert", *arguments, "-q")[0] == 0
        assert len(quorate.read("mine.conll")) == documents


def test_convert_in_a_project_writes_over_no_file_that_is_named_alone(run: Run, crowd: Path, sample: Corpus) -> None:
    Path("quorate.toml").write_text('inputs = ["crowd.jsonl"]\n')
    write(Corpus(sample.documents[60:65]), "other.jsonl")
    before = Path("other.jsonl").read_bytes()
    assert run("convert", "other.jsonl", "expected.conll", "-q")[0] == 0
    assert run("convert", "other.jsonl", "--to", "conll", "-q")[:2] == (0, Path("expected.conll").read_text())
    code, _, said = run("convert", "other.jsonl")
    assert (code, "other.jsonl: read or written?" in said) == (2, True)
    assert Path("other.jsonl").read_bytes() == before
    assert run("convert", crowd, "whole.conll", "-q")[0] == 0
    assert run("convert", "--to", "conll", "-q")[:2] == (0, Path("whole.conll").read_text())


def table_of(path: Path | str, delimiter: str) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


@pytest.mark.parametrize("format", ["table", "csv"])
def test_a_table_named_tsv_has_tabs(run: Run, crowd: Path, format: str) -> None:
    for ending in ("csv", "tsv"):
        assert run("aggregate", crowd, "-o", f"out.{ending}", "--to", format, "--method", "mv", "-q")[0] == 0
    rows = table_of("out.tsv", "\t")
    assert len(rows[0]) >= 6
    assert rows == table_of("out.csv", ",")


def test_a_table_named_tsv_is_read_as_it_was_written(run: Run, crowd: Path) -> None:
    assert run("convert", crowd, "out.tsv", "--to", "table", "-q")[0] == 0
    before, after = (quorate.read(name) for name in (crowd, "out.tsv"))
    assert {one.id: one.annotations for one in before} == {one.id: one.annotations for one in after}


def test_annotators_in_columns_may_be_parted_by_tabs(tmp_path: Path) -> None:
    (tmp_path / "mace.tsv").write_text("O\tB-PER\n\tO\n")
    assert quorate.read(tmp_path / "mace.tsv", format="mace")[0].annotations == {
        "A1": ("O", None),
        "A2": ("B-PER", "O"),
    }


MACE = "O\tO\nB-PER\tB-PER\nI-PER\t\n"
COLUMNS = "Ada\tB-PER\tB-PER\nO\tO\tO\n"  # of CoNLL: the second word is one that looks like a tag
TABLE = "doc\ttoken\tworker\tlabel\n1\t0\tann\tB-PER\n1\t1\tann\tO\n1\t0\tbob\tO\n"


@pytest.mark.parametrize(
    ("content", "annotations"),
    [
        (MACE, {"A1": ("O", "B-PER", "I-PER"), "A2": ("O", "B-PER", None)}),
        ("\tO\n" + MACE, {"A1": (None, "O", "B-PER", "I-PER"), "A2": ("O", "O", "B-PER", None)}),
        (COLUMNS, {"A1": ("B-PER", "O"), "A2": ("B-PER", "O")}),
        ("# token\tann\nO\tO\nB-12\tB-PER\n", {"ann": ("O", "B-PER")}),
        (TABLE, {"ann": ("B-PER", "O"), "bob": ("O", None)}),
        (TABLE.replace("\ttoken\t", " \t token \t"), {"ann": ("B-PER", "O"), "bob": ("O", None)}),
        (TABLE.replace("doc\t", "Document\t"), {"ann": ("B-PER", "O"), "bob": ("O", None)}),
        (TABLE.replace("doc\t", "Letter\t"), None),
    ],
    ids=[
        "mace",
        "mace, a first cell empty",
        "conll",
        "conll, named",
        "table",
        "table with blanks",
        "other names",
        "no table",
    ],
)
def test_a_file_named_tsv_is_told_by_its_content(tmp_path: Path, content: str, annotations: dict[str, Any]) -> None:
    (tmp_path / "crowd.tsv").write_text(content)
    (tmp_path / "packed.tsv.gz").write_bytes(gzip.compress(content.encode()))
    for name in ("crowd.tsv", "packed.tsv.gz"):
        if annotations is None:
            assert format_of(str(tmp_path / name)) == "conll"
        else:
            assert quorate.read(tmp_path / name)[0].annotations == annotations


@pytest.mark.parametrize("delimiter", [", ", ";", "; ", "\t "])
def test_a_table_may_be_parted_as_spreadsheets_do(tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "crowd.csv").write_text(TABLE.replace("\t", delimiter))
    assert quorate.read(tmp_path / "crowd.csv")[0].annotations == {"ann": ("B-PER", "O"), "bob": ("O", None)}


@pytest.mark.parametrize("delimiter", [",", ", ", " , ", ";", "; ", "\t"])
def test_names_in_the_header_of_a_table_may_be_quoted(tmp_path: Path, delimiter: str) -> None:
    head, *rows = TABLE.split("\n")
    quoted = delimiter.join(f'"{name}"' for name in head.split("\t"))
    (tmp_path / "crowd.csv").write_text("\n".join([quoted, *(row.replace("\t", delimiter) for row in rows)]))
    assert quorate.read(tmp_path / "crowd.csv")[0].annotations == {"ann": ("B-PER", "O"), "bob": ("O", None)}


def test_a_line_that_is_cut_off_where_a_file_is_looked_at_tells_nothing(tmp_path: Path) -> None:
    long = "B-PER\tB-" + "X" * 32_000
    (tmp_path / "crowd.tsv").write_text("\n".join([long, long, f"B-{'Y' * 32_000}\tO"]))
    assert format_of(str(tmp_path / "crowd.tsv")) == "mace"


def test_a_table_of_spans_named_tsv_is_refused_as_one(run: Run, crowd: Path) -> None:
    assert run("convert", crowd, "spans.tsv", "--to", "csv", "-q")[0] == 0
    code, _, err = run("aggregate", "spans.tsv", "-o", "c.jsonl")
    assert (code, err.startswith("quorate: spans.tsv:1: a table of spans, which has no texts (")) == (2, True)


def test_what_to_label_next_and_what_it_costs_may_be_tsv(run: Run, crowd: Path) -> None:
    assert run("aggregate", crowd, "-o", "c.jsonl", "--method", "bsc-cm", "--save", "m.quorate", "-q")[0] == 0
    names = {name for line in crowd.read_text().splitlines() for name in json.loads(line)["annotations"]}
    for ending, delimiter in (("csv", ","), ("tsv", "\t")):
        rows = [["annotator", "cost"], *([name, str(2 + place)] for place, name in enumerate(sorted(names)))]
        Path(f"cost.{ending}").write_text("".join(delimiter.join(row) + "\n" for row in rows))
        arguments = ("--model", "m.quorate", "-n", 3, "--cost", f"cost.{ending}", "-o", f"next.{ending}", "-q")
        code, _, err = run("next", crowd, *arguments)
        assert code == 0, err
    assert len(table_of("next.tsv", "\t")) == 3
    assert table_of("next.tsv", "\t") == table_of("next.csv", ",")


def test_a_setting_of_before_is_refused_and_the_one_that_is_meant_is_named(run: Run, crowd: Path) -> None:
    Path("best.json").write_text(json.dumps({"method": "bsc-cm", "settings": {"max_passes": 2, "alpha0": 1.0}}))
    code, out, err = run("aggregate", crowd, "--settings", "best.json", "-o", "out.jsonl")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert "has no setting 'max_passes'" in err


def test_an_option_by_its_former_name_works_and_is_told(run: Run, crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.errors._WARNED", set())
    assert run("aggregate", crowd, "-o", "c.jsonl", "--method", "bsc-cm", "-q")[0] == 0
    assert run("audit", "plan", "c.jsonl", "-n", 20, "-o", "plan.jsonl", "-q")[0] == 0
    lines = [json.loads(line) | {"checked": True} for line in Path("plan.jsonl").read_text().splitlines()]
    Path("plan.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, err = run("audit", "result", "c.jsonl", "--known", "plan.jsonl", "--json")
    note = "quorate: note: option '--known' is now called '--checked' (the old name will go: use the new one)\n"
    assert (code, err.startswith(note)) == (0, True)
    assert out == run("audit", "result", "c.jsonl", "--checked", "plan.jsonl", "--json")[1]


def test_help_says_where_to_begin_and_is_wrapped_by_the_terminal(run: Run) -> None:
    out = run("--help")[1]
    assert "New here? quorate demo --write crowd.jsonl, then: quorate aggregate" in out
    said = " ".join(run("report", "--help")[1].split())
    assert "Corrections made in it can be exported and given back with --known. With --audit it has" in said
    lines = [line.strip() for line in run("report", "--help")[1].splitlines()]
    assert "and given" not in lines  # a line as the source breaks it
