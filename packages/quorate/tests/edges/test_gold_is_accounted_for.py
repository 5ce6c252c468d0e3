"""What happened to gold on the way in is said by every command that reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from running import Run

OUTER, INNER = {"start": 0, "end": 8, "label": "ORG"}, {"start": 0, "end": 4, "label": "LOC"}
LINES = [
    {
        "id": f"d{n}",
        "text": "Bath Spa won",
        "annotations": {name: [OUTER] for name in ("ann", "bob", "cho")},
        "gold": [OUTER, INNER],
        "split": "dev",
    }
    for n in range(6)
]
DROPPED = "6 gold spans overlapped a longer one and were left out (a token has one tag)"


@pytest.fixture
def crowd(run: Run, tmp_path: Path) -> str:
    (tmp_path / "crowd.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    return "crowd.jsonl"


COMMANDS: dict[str, tuple[str, ...]] = {
    "aggregate": ("aggregate", "crowd.jsonl", "-o", "out"),
    "known inline": ("aggregate", "crowd.jsonl", "--known", "inline", "-o", "out"),
    "predict": ("predict", "m.quorate", "crowd.jsonl", "-o", "out"),
    "evaluate": ("evaluate", "c.jsonl", "--gold", "crowd.jsonl"),
    "evaluate as JSON": ("evaluate", "c.jsonl", "--gold", "crowd.jsonl", "--json"),
    "compare": ("compare", "crowd.jsonl", "--methods", "mv,bsc-cm"),
    "tune": ("tune", "crowd.jsonl", "--grid", "epsilon0=10", "--jobs", "1"),
    "report": ("report", "crowd.jsonl", "-o", "out"),
    "report of a model": ("report", "crowd.jsonl", "--model", "m.quorate", "-o", "out"),
    "next": ("next", "crowd.jsonl", "--model", "m.quorate"),
    "simulate-active": ("simulate-active", "crowd.jsonl", "--methods", "mv", "--initial", "3", "--repeats", "1"),
    "encode": ("encode", "crowd.jsonl", "-o", "out"),
    "convert": ("convert", "crowd.jsonl", "out"),
    "agreement": ("agreement", "crowd.jsonl"),
    "ambiguous": ("ambiguous", "crowd.jsonl"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_gold_spans_that_are_left_out_are_counted(run: Run, crowd: str, name: str) -> None:
    assert run("aggregate", crowd, "--method", "bsc-cm", "-o", "c.jsonl", "--save", "m.quorate", "-q")[0] == 0
    code, _, err = run(*COMMANDS[name])
    assert code == 0, err
    assert f"note: {DROPPED}\n" in err
    assert "of the same annotator" not in err


def test_check_warns_of_gold_spans_that_are_left_out(run: Run, crowd: str) -> None:
    code, out, _ = run("check", crowd)
    assert code == 1
    assert f"warning: {DROPPED}\n" in out


def test_layers_leave_no_gold_out(run: Run, crowd: str) -> None:
    both = {name: [OUTER, INNER] for name in ("ann", "bob")}
    Path(crowd).write_text("\n".join(json.dumps(line | {"annotations": both}) for line in LINES))
    code, _, err = run("aggregate", crowd, "--layers", "auto", "-o", "out")
    assert code == 0
    assert "left out" not in err


def test_gold_in_a_column_is_never_combined_unseen(run: Run, tmp_path: Path) -> None:
    rows = ["Ada\tB-PER\tB-PER\tO", "sang\tO\tO\tO", ""] * 5
    (tmp_path / "tabs.conll").write_text("\n".join(["# token\tann\tbob\tgold", *rows]))
    code, out, _ = run("check", "tabs.conll")
    assert "2 annotators" in out
    assert "5 documents have gold" in out
    (tmp_path / "named.conll").write_text("\n".join(["# token\tann\tbob\tlabel", *rows]))
    warning = "annotator 'label' counts as one of the crowd, but has a name of gold"
    code, out, _ = run("check", "named.conll")
    assert code == 1
    assert f"warning: {warning}" in out
    for command in (("aggregate", "-o", "out"), ("encode", "-o", "out.qr"), ("agreement",)):
        code, _, err = run(command[0], "named.conll", *command[1:])
        assert code == 0, err
        assert f"note: {warning}" in err
    assert warning in run("aggregate", "out.qr", "-o", "again")[2]
