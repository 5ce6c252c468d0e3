"""Names and labels that would write lines of their own, move the cursor, or reckon in a spreadsheet."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import quorate
from quorate import Corpus, Document, InputError, formats
from quorate.cli.terminal import escaped
from quorate.report.data import collect
from running import Run

FORGED = "quorate: nothing odd was found"
EVIL = f"\x1b[2J\x1b]0;title\x07\r\n{FORGED}\n[/bold]\x9b1m\u202e"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def corpus(path: Path) -> Path:
    """A crowd in which everything that can be named has an evil name, and every sort of note is due."""
    label, lines = f"PER{EVIL}", []
    for n in range(8):
        spans = {who: [{"start": 0, "end": 3, "label": label}] for who in (f"ann{EVIL}", f"bob{EVIL}", "cho")}
        spans[f"idle{EVIL}"] = [{"start": 0, "end": 3, "label": label}] if n == 0 else []
        gold = [{"start": 0, "end": 3, "label": label}]
        lines.append({"id": f"d{n}{EVIL}", "text": f"Ada sang {n} songs", "annotations": spans, "gold": gold})
    lines.append({"id": f"bare{EVIL}", "text": "Nobody saw this", "annotations": {}})
    lines.append({"id": f"one{EVIL}", "text": "One saw this", "annotations": {f"ann{EVIL}": []}})
    for line in lines:
        line["split"] = "dev"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def safe(text: str) -> None:
    assert not RAW.search(text), repr(RAW.search(text))
    assert not [line for line in text.splitlines() if line.startswith((FORGED, "[/bold]"))]


COMMANDS: dict[str, tuple[str, ...]] = {
    "aggregate": ("aggregate", "crowd.jsonl", "-o", "out"),
    "votes": ("aggregate", "crowd.jsonl", "--method", "mv", "-o", "out"),
    "known": ("aggregate", "crowd.jsonl", "--known", "inline", "-o", "out"),
    "layers": ("aggregate", "crowd.jsonl", "--layers", "auto", "-o", "out"),
    "accept": ("aggregate", "crowd.jsonl", "-o", "out", "--accept", "0.9", "--review", f"re{EVIL.replace('/', '')}"),
    "predict": ("predict", "m.quorate", "new.jsonl", "-o", "out"),
    "annotators": ("annotators", "m.quorate"),
    "annotators as JSON": ("annotators", "m.quorate", "--json"),
    "check": ("check", "crowd.jsonl"),
    "agreement": ("agreement", "crowd.jsonl"),
    "agreement as JSON": ("agreement", "crowd.jsonl", "--json"),
    "evaluate": ("evaluate", "c.jsonl", "--gold", "crowd.jsonl", "--errors"),
    "compare": ("compare", "crowd.jsonl", "--methods", "mv,bsc-cm", "--errors"),
    "compare as Markdown": ("compare", "crowd.jsonl", "--methods", "mv,bsc-cm", "--markdown"),
    "tune": ("tune", "crowd.jsonl", "--grid", "epsilon0=10", "--jobs", "1"),
    "next": ("next", "crowd.jsonl", "--model", "m.quorate"),
    "report": ("report", "crowd.jsonl", "-o", f"report{EVIL.replace('/', '')}"),
    "encode": ("encode", "crowd.jsonl", "-o", "out.qr"),
    "convert": ("convert", "crowd.jsonl", "out.json"),
    "demo": ("demo", "--write", f"demo{EVIL.replace('/', '')}"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_lets_a_name_write_to_the_terminal(run: Run, tmp_path: Path, name: str) -> None:
    crowd = corpus(tmp_path / "crowd.jsonl")
    lines = crowd.read_text().replace("ann", "dee")
    (tmp_path / "new.jsonl").write_text(lines)
    assert run("aggregate", crowd, "--method", "bsc-cm", "-o", "c.jsonl", "--save", "m.quorate", "-q")[0] == 0
    code, out, err = run(*COMMANDS[name])
    assert code == (1 if name == "check" else 0), err
    safe(out)
    safe(err)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"id": EVIL, "tokens": ["a"], "annotations": {EVIL: ["O", "O"]}}, "2 tags by annotator"),
        ({"id": EVIL, "tokens": ["a"], "annotations": {"ann": [f"I-{EVIL}"], "bob": ["B-"]}}, "tag"),
        ({"id": EVIL, "text": "a", "annotations": {"ann": [{"start": 0, "end": 9, "label": EVIL}]}}, "ends after"),
        ({"id": "1", "tokens": ["a"], "annotations": {"ann": [{EVIL: "x"}]}}, "not a probability"),
    ],
)
def test_no_error_lets_a_name_write_to_the_terminal(run: Run, tmp_path: Path, content: object, message: str) -> None:
    (tmp_path / "crowd.jsonl").write_text(json.dumps(content))
    code, out, err = run("aggregate", "crowd.jsonl")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    safe(err)


def test_an_annotator_whose_name_is_a_number_is_not_read_as_one(run: Run, tmp_path: Path) -> None:
    """In sentences; a table has the name as it is."""
    documents = quorate.sample().documents
    number = {name: str(k) for k, name in enumerate(quorate.sample().annotators)}
    shared = [
        Document(one.id, one.tokens, {number[name]: tags for name, tags in one.annotations.items()})
        for one in documents[:60]
    ]
    alone = [Document(one.id, one.tokens, {"77": next(iter(one.annotations.values()))}) for one in documents[60:63]]
    lines = [{"id": one.id, "tokens": one.tokens, "annotations": one.annotations} for one in Corpus([*shared, *alone])]
    Path("crowd.jsonl").write_text("\n".join(map(json.dumps, lines)))
    told = "annotator “77” shares no document with anybody and cannot be judged"
    assert told in run("check", "crowd.jsonl")[1]
    fixed = ("--method", "bsc-cm", "--max-passes", "3")
    assert told in run("aggregate", "crowd.jsonl", "-o", "c.jsonl", "--save", "m.quorate", *fixed)[2]
    assert re.search(r"^77 ", run("annotators", "m.quorate")[1], flags=re.M)
    Path("new.jsonl").write_text(json.dumps({**lines[-1], "annotations": {"88": alone[-1].annotations["77"]}}))
    assert "the model does not know annotator “88”, and" in run("predict", "m.quorate", "new.jsonl", "-o", "n.jsonl")[2]
    model = quorate.load("m.quorate")
    assert isinstance(model, quorate.BSC)
    report = collect(model, model.combine(quorate.read("crowd.jsonl")), title="", documents=3)
    assert any(found.text.startswith("Annotator “77” shares no document") for found in report.findings)
    assert "Have a second annotator label some documents of annotator “77”" in report.next[0]
    assert not any(re.match(r"\d+ (shares|tells|marks|misses|starts|ends)", found.text) for found in report.findings)


def test_no_file_name_writes_to_the_terminal(run: Run) -> None:
    code, _, err = run("check", f"no{EVIL}.jsonl")
    assert code == 2
    assert err.count("\n") == 1
    assert escaped(f"no{EVIL}.jsonl") in err
    safe(err)


def test_halves_of_characters_can_be_shown() -> None:
    assert escaped("\udcff").encode() == b"\\udcff"


# Spreadsheets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " =", "\uff1d"])
def test_no_cell_of_the_spans_is_a_formula(run: Run, tmp_path: Path, start: str) -> None:
    evil = f"{start}HYPERLINK(1)"
    spans = [{"start": 0, "end": 1, "label": evil}]
    lines = [{"id": f"{evil}{n}", "text": "= x", "annotations": {evil: spans, "ann": spans}} for n in range(4)]
    (tmp_path / "crowd.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert run("convert", "crowd.jsonl", "spans.csv", "-q")[0] == 0
    assert run("next", "crowd.jsonl", "-o", "next.csv", "-q")[0] == 0
    with open("spans.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["annotator"] for row in rows} == {f"'{evil}", "ann"}
    assert {row["label"] for row in rows} == {f"'{evil}"}
    assert {row["text"] for row in rows} == {"'="}
    assert {row["id"] for row in rows} == {f"'{evil}{n}" for n in range(4)}
    with open("next.csv", newline="") as stream:
        asked = list(csv.DictReader(stream))
    assert all(row["document"].startswith("'") for row in asked)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\uff1d", "'=", "''@"])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_no_cell_of_a_long_table_is_a_formula_and_all_come_back(tmp_path: Path, start: str, ending: str) -> None:
    evil = f"{start}HYPERLINK(1)"
    document = Document(
        evil, (evil, "sang", "'tis"), {evil: (evil, "-", "O"), "ann": ("O", evil, "O")}, (evil, "O", "O")
    )
    formats.write(Corpus([document]), tmp_path / f"long.{ending}", "table")
    with open(tmp_path / f"long.{ending}", newline="") as stream:
        rows = list(csv.reader(stream, delimiter="," if ending == "csv" else "\t"))
    assert len(rows) == 7
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\uff1d"))]
    assert "'tis" in cells
    (again,) = quorate.read(tmp_path / f"long.{ending}").documents
    assert (again.id, again.tokens, again.gold) == (document.id, document.tokens, document.gold)
    assert again.annotations == document.annotations


# Formats in lines ---------------------------------------------------------------------------------------------------

LINE_ENDS = ["\n", "\r", "\r\n", "\t", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"]


@pytest.mark.parametrize("end", LINE_ENDS)
def test_a_label_forges_no_line_of_brat(tmp_path: Path, end: str) -> None:
    label = f"PER 0 3{end}T9\tFAKE 0 1\tA"
    given = Corpus(
        [Document("1", ("Ada", "sang"), {"ann": (f"B-{label}", "O")}, text="Ada sang", offsets=((0, 3), (4, 8)))]
    )
    formats.write(given, tmp_path / "out", "brat")
    content = (tmp_path / "out" / "ann" / "1.ann").read_text()
    assert len(content.splitlines()) == 1
    assert content.count("\t") == 2
    (tags,) = quorate.read(tmp_path / "out")[0].annotations.values()
    assert str(tags[0]).startswith("B-PER_0_3_")


@pytest.mark.parametrize("end", LINE_ENDS)
def test_words_that_hold_a_line_end_stay_one_line_of_brat(tmp_path: Path, end: str) -> None:
    text = f"Ada{end}Ng sang"
    places = ((0, 3), (3 + len(end), 5 + len(end)), (6 + len(end), 10 + len(end)))
    tags = ("B-PER", "I-PER", "O")
    formats.write(
        Corpus([Document("1", ("Ada", "Ng", "sang"), {"ann": tags}, text=text, offsets=places)]),
        tmp_path / "out",
        "brat",
    )
    assert len((tmp_path / "out" / "ann" / "1.ann").read_bytes().split(b"\n")) == 2
    assert quorate.read(tmp_path / "out")[0].annotations["ann"] == tags


@pytest.mark.parametrize("end", ["\n", "\r", "\t"])
@pytest.mark.parametrize("what", ["annotator", "label", "id", "token"])
def test_nothing_forges_a_line_or_column_of_conll(tmp_path: Path, what: str, end: str) -> None:
    evil = f"x{end}forged"
    names = {"annotator": "ann", "label": "PER", "id": "1", "token": "Ada"} | {what: evil}
    document = Document(names["id"], (names["token"],), {names["annotator"]: (f"B-{names['label']}",)})
    with pytest.raises(InputError, match="cannot stand in a column"):
        formats.write(Corpus([document]), tmp_path / "out.conll")
    assert not (tmp_path / "out.conll").exists()


def test_no_annotator_of_conll_becomes_gold_and_no_tag_becomes_unseen(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="annotator 'gold' cannot have a column"):
        formats.write(Corpus([Document("1", ("Ada",), {"gold": ("B-PER",), "ann": ("O",)})]), tmp_path / "out.conll")
    with pytest.raises(InputError, match="would be read as not annotated"):
        formats.write(Corpus([Document("1", ("Ada",), {"ann": ("?",), "bob": ("x",)})]), tmp_path / "out.conll")
