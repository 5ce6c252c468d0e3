"""``evaluate`` takes a consensus, and gold, in every format that is written or read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorate.formats import FORMATS
from running import Run

WORDS = [
    ("Ada Ng sang in Rome", "B-PER I-PER O O B-LOC"),
    ("👋 Bo slept", "O B-PER O"),
    ("nobody came", "O O"),
    ("Ze\u0301 met \U0001d400da", "B-PER O B-PER"),
]
WRITTEN = [name for name, format in FORMATS.items() if format.writes]


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    lines = []
    for number, (text, tags) in enumerate(WORDS, 1):
        gold = tags.split()
        wrong = ["O" if tag == "B-LOC" else tag for tag in gold]
        line = {"id": f"d{number}", "text": text, "tokens": text.split(), "gold": gold}
        lines.append(line | {"annotations": {"ann": gold, "bob": wrong, "cho": wrong}})
    path = tmp_path / "crowd.jsonl"
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    return path


def strict(run: Run, *arguments: object) -> dict[str, float]:
    code, out, err = run("evaluate", *arguments, "--json")
    assert code == 0, err
    return {key: json.loads(out)["strict"][key] for key in ("precision", "recall")}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_consensus_in_every_format(run: Run, crowd: Path, tmp_path: Path, name: str) -> None:
    if not FORMATS[name].is_installed:
        pytest.skip(f"needs {FORMATS[name].extra}")
    assert run("aggregate", crowd, "--method", "mv", "-o", "c.jsonl", "-q")[0] == 0
    assert run("convert", "c.jsonl", "-o", f"out.{name}", "--to", name, "-q")[0] == 0
    assert strict(run, f"out.{name}", "--gold", crowd) == {"precision": 1.0, "recall": pytest.approx(4 / 5)}


def test_columns_without_ids_or_names_on_both_sides(run: Run, crowd: Path, tmp_path: Path) -> None:
    for name, texts in (("gold", WORDS), ("system", WORDS[1:])):
        rows = ["\n".join(map(" ".join, zip(text.split(), tags.split(), strict=True))) for text, tags in texts]
        Path(f"{name}.conll").write_text("\n\n".join(rows), encoding="utf-8")
    code, _, err = run("evaluate", "system.conll", "--gold", "gold.conll")
    assert (code, "there is one annotator, A1: taken for the gold" in err) == (0, True)
    assert "1 document with gold is not in the consensus" in err
    assert strict(run, "system.conll", "--gold", "gold.conll") == {"precision": 1.0, "recall": 1.0}
    assert strict(run, "gold.conll", "--gold", crowd) == {"precision": 1.0, "recall": 1.0}


def test_a_corrected_consensus_is_gold(run: Run, crowd: Path) -> None:
    assert run("aggregate", crowd, "--method", "mv", "-o", "c.jsonl", "-q")[0] == 0
    assert strict(run, "c.jsonl", "--gold", "c.jsonl") == {"precision": 1.0, "recall": 1.0}


def test_without_confidence_there_is_no_calibration(run: Run, crowd: Path) -> None:
    assert run("aggregate", crowd, "--method", "mv", "-o", "c.conll", "-q")[0] == 0
    code, out, err = run("evaluate", "c.conll", "--gold", crowd, "--json")
    assert code == 0, err
    assert (json.loads(out)["calibration"], json.loads(out)["span_calibration"]) == (None, None)
    assert run("evaluate", "c.conll", "--gold", crowd)[0] == 0


def test_what_several_annotated_is_no_consensus(run: Run, crowd: Path) -> None:
    assert run("convert", crowd, "-o", "crowd.conll", "-q")[0] == 0
    code, _, err = run("evaluate", "crowd.conll", "--gold", crowd)
    assert (code, "annotations by ann, bob, cho, where a consensus is one annotator's" in err) == (2, True)
    assert len(err.splitlines()) == 1


def test_a_token_without_a_tag_is_named(run: Run, crowd: Path) -> None:
    Path("c.conll").write_text("# id = d3\nnobody O\ncame ?\n", encoding="utf-8")
    code, _, err = run("evaluate", "c.conll", "--gold", crowd)
    assert (code, "c.conll:2: document 'd3': a token without a tag" in err) == (2, True)
