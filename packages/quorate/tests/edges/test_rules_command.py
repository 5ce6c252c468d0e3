"""What commands say of rules that cannot be judged, and of rules that are written with null where they say nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate import Corpus, Document
from quorate.formats.jsonl import write_corpus
from quorate.report.data import collect
from quorate.storage.files.atomic import written_whole
from running import Run

RULES, OWN = 6, 10  # words that a rule knows
LITTLE = "too little overlap to tell how often they are right"
NULL = "have null on most tokens: null means 'did not label' and counts as nothing, O means 'looked and marked nothing'"


def rules(*, shared: int, nothing: str | None = "O") -> Corpus:
    """Rules that know words of their own, and some words that the next rule knows too."""
    draw, words = random.Random(0), [f"w{n}" for n in range(RULES * OWN)]
    known = [{words[(rule * OWN + n) % len(words)] for n in range(OWN + shared)} for rule in range(RULES)]
    documents = []
    for number in range(200):
        tokens = tuple(draw.choices([*words, "the", "of"], k=12))
        said = {
            f"rule{k}": tuple("B-X" if token in own else nothing for token in tokens) for k, own in enumerate(known)
        }
        documents.append(Document(str(number), tokens, said))
    return Corpus(documents)


@pytest.fixture
def crowd(tmp_path: Path) -> Any:
    def write(corpus: Corpus) -> str:
        with written_whole(tmp_path / "rules.jsonl") as stream:
            write_corpus(corpus, stream)
        return "rules.jsonl"

    return write


def test_of_rules_that_hardly_overlap_nothing_is_told_but_that(run: Run, crowd: Any) -> None:
    code, _, err = run("aggregate", crowd(rules(shared=0)), "-o", "c.jsonl", "--save", "m.quorate")
    assert code == 0, err
    assert f"note: rule0, rule1, rule2 and 3 more mark next to nothing that others mark: {LITTLE}" in err
    out = run("annotators", "m.quorate")[1]
    assert LITTLE in " ".join(out.split())
    assert not any(character == "(" for line in out.splitlines()[2:8] for character in line)  # no share has an interval
    told = [json.loads(line) for line in run("annotators", "m.quorate", "--json")[1].splitlines()]
    assert [one["compared"] for one in told] == [False] * RULES


def test_of_rules_that_overlap_it_is_told_how_often_they_are_right(run: Run, crowd: Any) -> None:
    code, _, err = run("aggregate", crowd(rules(shared=2)), "-o", "c.jsonl", "--save", "m.quorate")
    assert code == 0, err
    out = run("annotators", "m.quorate")[1]
    assert "too little" not in err + out
    assert "(" in out


def test_the_report_says_so_too() -> None:
    result = quorate.aggregate(rules(shared=0))
    report = collect(result.model, result, title="", documents=3)
    assert {row.kind for row in report.annotators.rows} == {"too little overlap"}
    assert all(row.precision is None for row in report.annotators.rows)
    assert any(LITTLE in finding.text for finding in report.findings)
    assert report.next[0].startswith(
        "Have a person label some documents in which rule0, rule1, rule2, rule3 and 2 more"
    )
    assert not any("guidelines" in step for step in report.next)


def test_null_is_explained_where_most_labels_of_somebody_are_null(run: Run, crowd: Any) -> None:
    for command in (("check",), ("aggregate", "-o", "c.jsonl")):
        code, out, err = run(*command, crowd(rules(shared=2, nothing=None)))
        assert code == (command[0] == "check"), err
        assert NULL in out + err
        assert NULL not in "".join(run(*command, crowd(rules(shared=2)))[1:])


def test_whoever_did_not_see_a_document_needs_no_explanation(run: Run, crowd: Any) -> None:
    tokens = ("Ada", "sang")
    seen, unseen = {"ann": ("B-X", "O"), "bob": ("B-X", "O")}, {"cat": ("B-X", "O"), "bob": (None, None)}
    corpus = Corpus([Document(str(n), tokens, unseen if n % 3 else seen) for n in range(30)])
    code, _, err = run("aggregate", crowd(corpus), "-o", "c.jsonl")
    assert code == 0, err
    assert "null" not in err
