"""The options of reading and writing, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

import pytest

from running import Run

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NESTED = [
    {
        "id": str(n),
        "text": "Bath Spa won against York City of York",
        "annotations": {
            name: [
                {"start": 0, "end": 8, "label": "ORG"},
                {"start": 0, "end": 4, "label": "LOC"},
                {"start": 21, "end": 38, "label": "ORG"},
                {"start": 21, "end": 30, "label": "ORG"},
                {"start": 34, "end": 38, "label": "LOC"},
            ]
            for name in ("ann", "bob", "cho")
        },
    }
    for n in range(4)
]


class Checked(Protocol):
    """Runs a command that must end with ``code``; gives its standard output and standard error."""

    def __call__(self, *arguments: object, code: int = 0) -> tuple[str, str]: ...


@pytest.fixture
def checked(run: Run) -> Checked:
    def call(*arguments: object, code: int = 0) -> tuple[str, str]:
        ended, out, err = run(*arguments)
        assert ended == code, err
        return out, err

    return call


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    path = tmp_path / "nested.jsonl"
    path.write_text("\n".join(map(json.dumps, NESTED)))
    return path


def test_nested_spans_come_back_all(checked: Checked, nested: Path, tmp_path: Path) -> None:
    _, said = checked(
        "aggregate", nested, "-o", tmp_path / "c.jsonl", "--layers", "auto", "--meta", tmp_path / "meta.json"
    )
    assert "left out" not in said
    expected = sorted((span["start"], span["end"], span["label"]) for span in NESTED[0]["annotations"]["ann"])  # type: ignore[index]
    for line in map(json.loads, (tmp_path / "c.jsonl").read_text().splitlines()):
        assert sorted((span["start"], span["end"], span["label"]) for span in line["spans"]) == expected
        assert set(line["layers"]) == {"LOC", "ORG", "ORG (1 deep)"}
        assert 0 < line["confidence"] <= min(layer["confidence"] for layer in line["layers"].values())
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert set(meta["layers"]) == {"LOC", "ORG", "ORG (1 deep)"}
    assert {"version", "inputs", "documents", "decided"} <= set(meta)
    _, without = checked("aggregate", nested, "-o", tmp_path / "d.jsonl")
    assert (
        "36 spans overlapped a longer one of the same annotator and were left out (aggregate --layers auto keeps them)"
        in without
    )


@pytest.mark.parametrize(
    "name", ["brat", "label-studio", "csv", "prodigy", "doccano", "spacy", "conll", "table", "sheet"]
)
def test_layers_are_written_in_every_format_that_holds_them(
    checked: Checked, nested: Path, tmp_path: Path, name: str
) -> None:
    if name == "spacy":
        pytest.importorskip("spacy", reason="spaCy is not installed")
    out = tmp_path / "out"
    checked("aggregate", nested, "-q", "-o", out, "--to", name, "--layers", "auto", "--method", "mv")
    if name == "brat":
        assert sum(line.startswith("T") for line in (out / "0.ann").read_text().splitlines()) == 5
    if name == "label-studio":
        assert len(json.loads(out.read_text())[0]["predictions"][0]["result"]) == 5
    if name == "csv":
        assert out.read_text().splitlines()[0].endswith(",layer")
        assert len(out.read_text().splitlines()) == 21
    if name == "conll":
        assert out.read_text().splitlines()[0].split("\t")[2:] == ["quorate LOC", "quorate ORG", "quorate ORG (1 deep)"]


def test_parquet_says_that_it_holds_one_layer(checked: Checked, nested: Path, tmp_path: Path) -> None:
    _, said = checked("aggregate", nested, "-q", "-o", tmp_path / "c.parquet", "--layers", "auto", code=2)
    assert "holds one tag a token, and there are several layers" in said
    assert not (tmp_path / "c.parquet").exists()


def test_one_layer_is_an_ordinary_result(checked: Checked, tmp_path: Path) -> None:
    example = EXAMPLES / "label-studio.json"
    checked("aggregate", example, "-q", "-o", tmp_path / "a.jsonl", "--layers", "auto")
    checked("aggregate", example, "-q", "-o", tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_text() == (tmp_path / "b.jsonl").read_text()
    _, said = checked("aggregate", example, "--layers", "all", code=2)
    assert "--layers 'all' is not known" in said


def test_convert_and_back(checked: Checked, tmp_path: Path) -> None:
    _, said = checked("convert", EXAMPLES / "label-studio.json", tmp_path / "crowd.jsonl")
    assert "2 documents, 10 tokens, 2 annotators" in said
    checked("convert", tmp_path / "crowd.jsonl", tmp_path / "crowd.conll", "-q")
    checked("convert", tmp_path / "crowd.conll", tmp_path / "again.jsonl", "-q")
    first, again = (json.loads((tmp_path / f"{name}.jsonl").read_text().splitlines()[0]) for name in ("crowd", "again"))
    assert (first["tokens"], first["annotations"]) == (again["tokens"], again["annotations"])


def test_convert_of_a_consensus(checked: Checked, tmp_path: Path) -> None:
    checked("aggregate", EXAMPLES / "label-studio.json", "-q", "-o", tmp_path / "c.jsonl", "--known", "inline")
    checked("convert", tmp_path / "c.jsonl", tmp_path / "c.json", "-q")
    regions = json.loads((tmp_path / "c.json").read_text())[0]["predictions"][0]["result"]
    assert [region["value"]["text"] for region in regions] == ["Ada Ng", "Rome"]
    _, said = checked("convert", tmp_path / "c.jsonl", tmp_path / "d.json", "--map-labels", "PER=X", code=2)
    assert "a consensus is taken as it is" in said
    _, said = checked("convert", tmp_path / "c.jsonl", tmp_path / "c.jsonl", code=2)
    assert "this is an input, which would be lost" in said
    _, said = checked("convert", tmp_path / "c.jsonl", tmp_path / "c.x", "--to", "mace", code=2)
    assert "a format that is not written: 'mace'" in said


def test_several_files_with_their_annotators(checked: Checked, tmp_path: Path) -> None:
    out, _ = checked("check", EXAMPLES / "doccano" / "ann.jsonl", EXAMPLES / "doccano" / "bob.jsonl", code=1)
    assert out.startswith("3 things to look at:\nwarning: ")
    assert "\n2 documents, 10 tokens, 2 annotators" in out
    who = tmp_path / "who.json"
    checked(
        "convert", EXAMPLES / "doccano", tmp_path / "out.jsonl", "-q", "--pseudonymise", who, "--map-labels", "LOC="
    )
    line = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert sorted(line["annotations"]) == sorted(json.loads(who.read_text()).values())
    assert "B-LOC" not in str(line)


def test_the_list_of_formats(checked: Checked) -> None:
    out, _ = checked("formats")
    lines = out.splitlines()
    assert len(lines) == 17
    assert any(line.startswith("label-studio  read, write") for line in lines)
    assert any("quorate[spacy]" in line for line in lines)


def test_every_command_that_reads_takes_the_same_options(checked: Checked) -> None:
    for command in ("aggregate", "predict", "check", "agreement", "compare", "tune", "convert"):
        out, _ = checked(command, "--help")
        for option in (
            "--from",
            "--annotator-from",
            "--map-labels",
            "--map-annotators",
            "--pseudonymise",
            "--annotators",
        ):
            assert option in out, (command, option)
