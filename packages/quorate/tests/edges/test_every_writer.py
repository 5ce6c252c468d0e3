"""Every format that is written, from every command that writes one: all spans are in it."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate.formats import FORMATS
from running import Run

WRITTEN = [name for name, format in FORMATS.items() if format.writes]
HOLDS_LAYERS = [name for name in WRITTEN if name != "parquet"]
METHODS = ["auto", "bsc-seq", "bsc-cm", "mv"]
FLAT = [{"start": 0, "end": 8, "label": "ORG"}, {"start": 21, "end": 30, "label": "ORG"}]
NESTED = [*FLAT, {"start": 0, "end": 4, "label": "LOC"}]
DOCUMENTS = 4


def crowd(folder: Path, spans: list[dict[str, Any]]) -> Path:
    """Three annotators who agree on everything."""
    text = "Bath Spa won against York City"
    lines = [
        {"id": f"d{n}", "text": text, "annotations": dict.fromkeys(("ann", "bob", "cho"), spans)}
        for n in range(DOCUMENTS)
    ]
    path = folder / "crowd.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def _columns(path: Path) -> int:
    """Openings of spans in all columns."""
    return sum(cell.startswith("B-") for line in path.read_text().splitlines() for cell in line.split("\t")[1:])


def _docbin(path: Path) -> int:
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    docs = spacy.tokens.DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)
    return sum(len(group) for doc in docs for group in doc.spans.values())


def _parquet(path: Path) -> int:
    tags = [tags for document in quorate.read(path) for tags in document.annotations.values()]
    return sum(len(quorate.corpus.tags.find_spans(quorate.corpus.records.hard_tags(each))) for each in tags)


def _entities(path: Path) -> int:
    return sum(file.read_text().count('NamedEntity", "@sofa"') for file in path.rglob("*.json"))


def _label_studio(path: Path) -> int:
    tasks = json.loads(path.read_text())
    said = [one for task in tasks for key in ("annotations", "predictions") for one in task.get(key, ())]
    return sum(len(one["result"]) for one in said)


def _doccano(path: Path) -> int:
    """The spans of one file, or of all files in a zip."""
    if not zipfile.is_zipfile(path):
        return sum(len(json.loads(line)["label"]) for line in path.read_text().splitlines())
    with zipfile.ZipFile(path) as archive:
        lines = [line for name in archive.namelist() for line in archive.read(name).splitlines()]
    return sum(len(json.loads(line)["label"]) for line in lines)


def _prodigy(path: Path) -> int:
    return sum(len(json.loads(line)["spans"]) for line in path.read_text().splitlines())


def _own(path: Path) -> int:
    """The spans of a consensus, or the openings of spans in annotations."""
    lines = list(map(json.loads, path.read_text().splitlines()))
    said: list[str] = [tag for line in lines for tags in line.get("annotations", {}).values() for tag in tags]
    return sum(len(line.get("spans", ())) for line in lines) + sum(tag.startswith("B-") for tag in said)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


SPANS_IN: dict[str, Callable[[Path], int]] = {
    "jsonl": _own,
    "label-studio": _label_studio,
    "doccano": _doccano,
    "prodigy": _prodigy,
    "brat": lambda path: sum(file.read_text().count("\nT") + 1 for file in path.rglob("*.ann")),
    "cas": _entities,
    "spacy": _docbin,
    "parquet": _parquet,
    "conll": _columns,
    "table": lambda path: sum(row["label"].startswith("B-") for row in _rows(path)),
    "sheet": lambda path: sum(cell.startswith("B-") for row in _rows(path) for cell in list(row.values())[3:]),
    "csv": lambda path: len(_rows(path)),
}


def place(name: str, stem: str = "out") -> Path:
    """Where a format goes: with the ending that stands for it, where it has one."""
    return Path(f"{stem}{(FORMATS[name].endings or ('',))[0]}")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", WRITTEN)
def test_aggregate_writes_every_format(run: Run, tmp_path: Path, name: str, method: str) -> None:
    out = place(name)
    code, _, err = run("aggregate", crowd(tmp_path, FLAT), "--method", method, "-o", out, "--to", name)
    assert code == 0, err
    assert SPANS_IN[name](out) == len(FLAT) * DOCUMENTS


@pytest.mark.parametrize("name", [name for name in WRITTEN if FORMATS[name].endings])
def test_the_ending_alone_says_the_format(run: Run, tmp_path: Path, name: str) -> None:
    out = Path(f"out{FORMATS[name].endings[0]}")
    code, _, err = run("aggregate", crowd(tmp_path, FLAT), "-o", out)
    assert code == 0, err
    assert out.is_file()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", HOLDS_LAYERS)
def test_aggregate_writes_layers_in_every_format_that_holds_them(
    run: Run, tmp_path: Path, name: str, method: str
) -> None:
    out = place(name)
    code, _, err = run(
        "aggregate", crowd(tmp_path, NESTED), "--layers", "auto", "--method", method, "-o", out, "--to", name
    )
    assert code == 0, err
    assert SPANS_IN[name](out) == len(NESTED) * DOCUMENTS


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", WRITTEN)
def test_accepted_and_reviewed_documents_go_to_every_format(run: Run, tmp_path: Path, name: str, method: str) -> None:
    sure, unsure = place(name, "sure"), place(name, "unsure")
    code, _, err = run(
        *("aggregate", crowd(tmp_path, FLAT), "--method", method, "--to", name),
        *("-o", sure, "--accept", 0.5, "--review", unsure),
    )
    assert code == 0, err
    assert SPANS_IN[name](sure) == len(FLAT) * DOCUMENTS
    assert unsure.exists()


@pytest.mark.parametrize("name", WRITTEN)
def test_predict_writes_every_format(run: Run, tmp_path: Path, name: str) -> None:
    given, out = crowd(tmp_path, FLAT), place(name)
    assert run("aggregate", given, "--method", "bsc-seq", "-o", "c.jsonl", "--save", "m.quorate", "-q")[0] == 0
    code, _, err = run("predict", "m.quorate", given, "-o", out, "--to", name)
    assert code == 0, err
    assert SPANS_IN[name](out) == len(FLAT) * DOCUMENTS


@pytest.mark.parametrize("name", WRITTEN)
def test_convert_writes_every_format_from_annotations_and_from_a_consensus(run: Run, tmp_path: Path, name: str) -> None:
    given = crowd(tmp_path, FLAT)
    assert run("aggregate", given, "-o", "c.jsonl", "-q", "--probabilities")[0] == 0
    for number, (source, annotators) in enumerate(((given, 3), (tmp_path / "c.jsonl", 1))):
        out = place(name, f"out{number}")
        code, _, err = run("convert", source, out, "--to", name)
        assert code == 0, err
        assert SPANS_IN[name](out) == len(FLAT) * DOCUMENTS * annotators


@pytest.mark.parametrize("name", [name for name, format in FORMATS.items() if not format.writes])
@pytest.mark.parametrize("method", ["auto", "mv"])
def test_a_format_that_is_only_read_is_refused_before_any_work(
    run: Run, tmp_path: Path, name: str, method: str
) -> None:
    code, _, err = run("aggregate", crowd(tmp_path, FLAT), "--method", method, "-o", "out", "--to", name)
    assert code == 2
    assert err.startswith(f"quorate: a format that is not written: {name!r}")
    assert not Path("out").exists()


@pytest.mark.parametrize("command", [("aggregate", "--method", "mv", "-o"), ("convert",)])
def test_a_format_that_is_a_folder_goes_into_an_empty_one_and_takes_the_place_of_nothing(
    command: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "one.jsonl").write_text(
        '{"text": "Ada sang", "annotations": {"ann": [{"start": 0, "end": 3, "label": "X"}]}}'
    )
    (tmp_path / "out").mkdir()
    first, *options = command
    assert run(first, "one.jsonl", *options, "out", "--to", "brat")[0] == 0
    assert list((tmp_path / "out").rglob("*.ann"))
    message = "quorate: out: there already, and not an empty folder (give another name)\n"
    assert run(first, "one.jsonl", *options, "out", "--to", "brat") == (2, "", message)


LOST = {
    "conll": "2 documents have no tokens and are not written: CoNLL has a line for each token",
    "table": "2 documents have no labels and are not written: a table has a row for each label",
    "sheet": "2 documents have no tokens and are not written: a sheet has a row for each token",
}


@pytest.mark.parametrize("name", ["jsonl", *LOST])
def test_documents_that_a_format_cannot_hold_are_counted_in_a_note(run: Run, tmp_path: Path, name: str) -> None:
    path, out = crowd(tmp_path, FLAT), place(name, "other")
    with path.open("a") as stream:
        for number in (1, 2):
            stream.write("\n" + json.dumps({"id": f"empty-{number}", "text": "", "annotations": {"ann": []}}))
    expected = [f"note: {out}: {LOST[name]}"] if name in LOST else []
    assert run("aggregate", path, "--method", "bsc-cm", "-o", "c.jsonl", "--save", "m.quorate", "-q") == (0, "", "")
    for command in (
        ("aggregate", path, "--method", "mv"),
        ("convert", path),
        ("convert", "c.jsonl"),
        ("predict", "m.quorate", path),
        ("update", "m.quorate", path),
    ):
        code, _, err = run(*command, "-o", out, "--to", name)
        told = [line.removeprefix("quorate: ") for line in err.splitlines() if "not written" in line]
        assert (code, told) == (0, expected), command
        assert run(*command, "-o", out, "--to", name, "-q") == (0, "", ""), command
    for command in (("aggregate", path, "--method", "mv"), ("update", "m.quorate", path)):
        printed = run(*command, "-o", out, "--to", name, "--json")[1]
        assert [f"note: {note}" for note in json.loads(printed)["notes"] if "not written" in note] == expected
    outputs = f'["all.jsonl", "{out.name}", "copy{out.suffix}"]'
    (tmp_path / "quorate.toml").write_text(
        f'inputs = ["{path.name}"]\n[aggregate]\nmethod = "mv"\noutput = {outputs}\n'
    )
    if out.suffix:  # copies are written as their endings say
        told = [line.removeprefix("quorate: ") for line in run("run")[2].splitlines() if "not written" in line]
        assert told == [f"note: {each}: {LOST[name]}" for each in (out.name, f"copy{out.suffix}") if expected]


@pytest.mark.parametrize("name", [name for name, format in FORMATS.items() if format.writes])
def test_documents_that_nobody_annotated_are_written_or_counted(run: Run, tmp_path: Path, name: str) -> None:
    path = crowd(tmp_path, FLAT)
    with path.open("a") as stream:
        stream.write("\n" + json.dumps({"id": "bare-1", "text": "Nobody was there."}))
        stream.write("\n" + json.dumps({"id": "bare-2", "text": "Nor here."}))
    out = place(name)
    code, _, err = run("convert", path, "-o", out, "--to", name)
    told = [line for line in err.splitlines() if "not written" in line]
    leaves_out = {"doccano", "prodigy", "brat", "cas", "table"}
    assert (code, len(told)) == (0, name in leaves_out)
    if name in leaves_out - {"table"}:
        assert told == [
            f"quorate: note: {out}: 2 documents that nobody annotated are not written: this format has what annotators "
            "said"
        ]
    if name not in leaves_out | {"csv"}:  # of which a row is a span
        assert len(quorate.read(out)) == len(quorate.read(path))


def test_python_is_told_what_a_format_cannot_hold(tmp_path: Path) -> None:
    documents = [quorate.Document("1", ("Ada",), {"ann": ("B-PER",)}), quorate.Document("2", (), {"ann": ()})]
    result = quorate.aggregate(quorate.Corpus(documents), "mv")
    assert result.write(tmp_path / "all.jsonl") == []
    assert result.write(tmp_path / "some.conll") == [
        "1 document has no tokens and is not written: CoNLL has a line for each token"
    ]
