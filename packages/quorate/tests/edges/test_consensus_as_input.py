"""A consensus given where annotations are read: refused by name, never taken for texts that nobody annotated."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from running import Run

NESTED = [{"start": 0, "end": 8, "label": "ORG"}, {"start": 0, "end": 4, "label": "LOC"}]
LINES = [
    {"id": f"d{n}", "text": "Bath Spa won", "annotations": dict.fromkeys(("ann", "bob", "cho"), NESTED)}
    for n in range(4)
]


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    path = tmp_path / "crowd.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)))
    return path


@pytest.fixture
def layered(run: Run, crowd: Path) -> str:
    assert run("aggregate", crowd, "--layers", "auto", "-o", "layered.jsonl", "-q")[0] == 0
    assert "layers" in json.loads(Path("layered.jsonl").read_text().splitlines()[0])
    return "layered.jsonl"


COMMANDS: dict[str, tuple[str, ...]] = {
    "aggregate": ("aggregate", "layered.jsonl", "-o", "out"),
    "aggregate in layers": ("aggregate", "layered.jsonl", "--layers", "auto", "-o", "out"),
    "aggregate with it as known": ("aggregate", "crowd.jsonl", "--known", "layered.jsonl", "-o", "out"),
    "predict": ("predict", "m.quorate", "layered.jsonl", "-o", "out"),
    "check": ("check", "layered.jsonl"),
    "agreement": ("agreement", "layered.jsonl"),
    "ambiguous": ("ambiguous", "layered.jsonl"),
    "evaluate with it as gold": ("evaluate", "layered.jsonl", "--gold", "layered.jsonl"),
    "compare": ("compare", "layered.jsonl"),
    "tune": ("tune", "layered.jsonl", "--split", "all", "-o", "out"),
    "report": ("report", "layered.jsonl", "-o", "out"),
    "report with it as known": ("report", "crowd.jsonl", "--known", "layered.jsonl", "-o", "out"),
    "next": ("next", "layered.jsonl", "-o", "out", "--as", "csv"),
    "simulate-active": ("simulate-active", "layered.jsonl"),
    "encode": ("encode", "layered.jsonl", "-o", "out"),
    "convert of two files": ("convert", "crowd.jsonl", "layered.jsonl", "out", "--to", "csv"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_consensus_in_layers_is_refused_by_name(run: Run, crowd: Path, layered: str, name: str) -> None:
    gold = [{**line, "gold": [NESTED[0]]} for line in LINES]
    Path("gold.jsonl").write_text("\n".join(map(json.dumps, gold)))
    assert run("aggregate", crowd, "--method", "bsc-cm", "-o", "c.jsonl", "--save", "m.quorate", "-q")[0] == 0
    code, out, err = run(*COMMANDS[name])
    assert (code, out) == (2, "")
    assert "layered.jsonl:1: a consensus in layers (" in err
    assert not Path("out").exists()


TAKES_IT: dict[str, tuple[str, ...]] = {
    "aggregate": ("aggregate", "crowd.jsonl", "--layers", "auto", "--known", "layered.jsonl", "-o", "out"),
    "report": ("report", "crowd.jsonl", "--layers", "auto", "--known", "layered.jsonl", "-o", "out"),
    "next": ("next", "crowd.jsonl", "--layers", "auto", "--known", "layered.jsonl", "-o", "out", "--as", "csv"),
    "convert to conll": ("convert", "layered.jsonl", "out", "--to", "conll"),
    "convert to jsonl": ("convert", "layered.jsonl", "out", "--to", "jsonl"),
    "convert to label-studio": ("convert", "layered.jsonl", "out", "--to", "label-studio"),
    "evaluate": ("evaluate", "layered.jsonl", "--gold", "gold.jsonl"),
    "audit": ("audit", "plan", "layered.jsonl", "-n", "4", "-o", "out"),
}


@pytest.mark.parametrize("name", TAKES_IT)
def test_a_consensus_in_layers_is_a_consensus(run: Run, crowd: Path, layered: str, name: str) -> None:
    Path("gold.jsonl").write_text("\n".join(json.dumps({**line, "gold": NESTED}) for line in LINES))
    code, out, err = run(*TAKES_IT[name])
    assert code == 0, err
    assert Path("out").exists() or "100.0" in out


@pytest.mark.parametrize("change", ["layer", "one without", "other layers"])
def test_lines_that_do_not_belong_together_are_refused(run: Run, crowd: Path, layered: str, change: str) -> None:
    lines = [json.loads(line) for line in Path(layered).read_text().splitlines()]
    if change == "layer":
        lines[1]["spans"][0]["layer"] = "no such"
    if change == "one without":
        lines[1] = {"id": "d1", "tokens": ["Bath"], "tags": ["O"], "confidence": 1.0, "token_confidence": [1.0]}
    if change == "other layers":
        lines[1]["layers"] = {"LOC": lines[1]["layers"]["LOC"]}
        lines[1]["spans"] = []
    Path(layered).write_text("\n".join(map(json.dumps, lines)))
    code, _, err = run("convert", layered, "out.json")
    assert code == 2
    assert "layers" in err
    assert err.count("\n") == 1


def test_documents_may_have_layers_of_their_own(run: Run, crowd: Path) -> None:
    crowd.write_text("\n".join(json.dumps(line | {"layers": {"mine": 1}}) for line in LINES))
    assert run("convert", crowd, "out.jsonl", "-q")[0] == 0
    assert len(Path("out.jsonl").read_text().splitlines()) == len(LINES)


@pytest.mark.parametrize("source", ["two files", "standard input", "a folder"])
def test_a_consensus_is_never_converted_to_nothing(
    run: Run, crowd: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("folder").mkdir()
    assert run("aggregate", crowd, "-o", "folder/c.jsonl", "-q")[0] == 0
    assert run("convert", "folder/c.jsonl", "alone.conll", "-q")[0] == 0
    assert Path("alone.conll").read_text().count("B-ORG") == len(LINES)
    sources: dict[str, list[object]] = {
        "two files": [crowd, "folder/c.jsonl"],
        "standard input": ["-"],
        "a folder": ["folder"],
    }
    content = Path("folder/c.jsonl").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, _, err = run("convert", *sources[source], "out.conll")
    assert code == 2
    assert "'tags' that are nobody's, as in a consensus" in err
    assert not Path("out.conll").exists()


@pytest.mark.parametrize("command", [("check",), ("agreement",), ("aggregate",), ("aggregate", "--method", "mv")])
def test_tags_that_are_nobodys_are_not_passed_over(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "tags.jsonl").write_text('{"id": "1", "tokens": ["Ada", "sang"], "tags": ["B-PER", "O"]}')
    code, _, err = run(*command, "tags.jsonl")
    assert code == 2
    assert err.startswith("quorate: tags.jsonl:1: 'tags' that are nobody's")
