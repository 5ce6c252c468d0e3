"""A consensus and a gold of the same texts in other tokens are compared by characters."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import quorate
from quorate import Corpus, Document, InputError
from quorate.cli import app
from quorate.corpus.tags import find_spans
from quorate.corpus.tokens import tokenize
from quorate.evaluate.compare import read_answers, score_answers

TEXT = "Dr. Ng-Lee met 王芳 in Köln 👋🏽 today"


def consensus(path: Path, *records: dict[str, Any]) -> Path:
    plain = {"confidence": 0.9, "token_confidence": None}
    path.write_text("\n".join(json.dumps({**plain, **record}) for record in records))
    return path


def record(tokens: list[str], tags: list[str], **others: Any) -> dict[str, Any]:
    spans = [
        {
            "start": s.start,
            "end": s.end,
            "token_start": s.start,
            "token_end": s.end,
            "label": s.label,
            "confidence": 0.8,
        }
        for s in find_spans(tags)
    ]
    others = {"token_confidence": [0.9] * len(tokens), **others}
    return {"id": "1", "tokens": tokens, "tags": tags, "spans": spans, **others}


GOLD = Document(
    "1", ("Dr", ".", "Ng", "-", "Lee", "met", "王", "芳"), gold=("O", "O", "B-P", "I-P", "I-P", "O", "B-P", "I-P")
)  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "tags", "right"),
    [
        (["Dr.", "Ng-Lee", "met", "王芳"], ["O", "B-P", "O", "B-P"], 2),
        (["Dr", ".", "Ng-", "Lee", "met王芳"], ["O", "O", "B-P", "I-P", "B-P"], 1),
        (["Dr.Ng", "-", "Lee", "met", "王芳"], ["B-P", "I-P", "I-P", "O", "O"], 0),
        (["Dr.", "Ng - Lee", "met", "王芳"], ["O", "B-P", "O", "O"], 1),  # blanks do not count
    ],
)
def test_spans_are_compared_by_characters(tmp_path: Path, tokens: list[str], tags: list[str], right: int) -> None:
    answers, missing = read_answers(consensus(tmp_path / "c.jsonl", record(tokens, tags)), Corpus([GOLD]))
    scores = score_answers(answers)
    assert (answers.aligned, missing) == (1, 0)
    assert scores.strict is not None
    assert (scores.strict.precision, scores.strict.recall) == (right / len(find_spans(tags)), right / 2)
    assert (scores.cross_entropy, scores.brier, scores.calibration) == (None, None, None)
    assert scores.span_calibration is not None
    assert [span.confidence for spans in answers.spans for span in spans] == [0.8] * len(find_spans(tags))


@pytest.mark.parametrize("seed", range(20))
def test_any_two_cuts_of_a_text_give_the_counts_that_characters_give(seed: int, tmp_path: Path) -> None:
    """An oracle in characters: spans are sets of (start, end, label)."""
    rng = random.Random(seed)
    text = "".join(rng.choice("ab王é👋") for _ in range(30))

    def cut() -> tuple[list[tuple[int, int]], list[str], set[tuple[int, int, str]]]:
        bounds = [0, *sorted(rng.sample(range(1, 30), 14)), 30]
        places = list(pairwise(bounds))
        tags, before = [], "O"
        for _ in places:
            inside = [f"I-{before[2:]}"] if before != "O" else []
            before = rng.choice(["O", "B-X", "B-Y", *inside])
            tags.append(before)
        return places, tags, {(places[s.start][0], places[s.end - 1][1], s.label) for s in find_spans(tags)}

    (mine, tags, spans), (theirs, gold, true) = cut(), cut()
    corpus = Corpus(
        [Document("1", tuple(text[a:b] for a, b in theirs), gold=tuple(gold), text=text, offsets=tuple(theirs))]
    )
    line = record([text[a:b] for a, b in mine], tags, text=text, offsets=mine)
    answers, _ = read_answers(consensus(tmp_path / "c.jsonl", line), corpus)
    strict = quorate.score.strict(answers.tags, answers.gold)
    assert strict.precision == len(spans & true) / max(len(spans), 1)
    assert strict.recall == len(spans & true) / max(len(true), 1)


def test_offsets_count_where_tokens_are_spelled_otherwise_than_the_text(tmp_path: Path) -> None:
    text = 'He said "Ada".'
    gold = Document("1", ("He", "said", "``", "Ada", "''", "."), gold=("O", "O", "O", "B-P", "O", "O"), text=text,
                    offsets=((0, 2), (3, 7), (8, 9), (9, 12), (12, 13), (13, 14)))  # fmt: skip
    mine = record(["He said", '"Ada".'], ["O", "B-P"], text=text, offsets=[(0, 7), (8, 14)])
    answers, _ = read_answers(consensus(tmp_path / "c.jsonl", mine), Corpus([gold]))
    assert answers.gold[0] == ["O", "O", "O", "B-P", "O", "O"]
    assert answers.tags[0] == ["O", "O", "B-P", "I-P", "I-P", "I-P"]


def test_what_gold_does_not_say_is_not_scored_and_plain_tags_are_told_on_pieces(tmp_path: Path) -> None:
    gold = Document("1", ("ab", "c", "d"), gold=(None, "N", "V"))
    answers, _ = read_answers(
        consensus(tmp_path / "c.jsonl", record(["a", "bc", "d"], ["V", "N", "V"])), Corpus([gold])
    )
    assert answers.tags == [["V", "N", "N", "V"]]
    assert answers.gold == [[None, None, "N", "V"]]


def test_another_text_is_refused_by_name(tmp_path: Path) -> None:
    for tokens in (["Dr.", "Wu", "met", "王芳"], ["Dr.", "Ng-Lee"]):
        path = consensus(tmp_path / "c.jsonl", record(tokens, ["O"] * len(tokens)))
        with pytest.raises(InputError, match=r"c\.jsonl: document '1': . tags for 8 gold tokens of another text"):
            read_answers(path, Corpus([GOLD]))


def test_the_same_tokens_keep_scores_of_tokens(tmp_path: Path) -> None:
    line = record(list(GOLD.tokens), list(map(str, GOLD.gold or ())))
    answers, _ = read_answers(consensus(tmp_path / "c.jsonl", line), Corpus([GOLD]))
    assert answers.aligned == 0
    assert answers.confidence is not None


def test_evaluate_says_what_was_left_out(tmp_path: Path) -> None:
    places = tokenize(TEXT)
    words = TEXT.split()
    tags = ["O", "B-P", "O", "B-P", "O", "B-L", "O", "O"]
    crowd, found, true = (str(tmp_path / name) for name in ("crowd.jsonl", "c.jsonl", "gold.jsonl"))
    Path(crowd).write_text(json.dumps({"id": "1", "tokens": words, "annotations": {"ann": tags}}) + "\n")
    assert CliRunner().invoke(app, ["aggregate", crowd, "-o", found, "--method", "mv", "-q"]).exit_code == 0
    marked = [(TEXT.index(words), words, label) for words, label in (("Ng-Lee", "P"), ("王芳", "P"), ("Köln", "L"))]
    spans = [{"start": start, "end": start + len(words), "label": label} for start, words, label in marked]
    Path(true).write_text(json.dumps({"id": "1", "text": TEXT, "gold": spans}) + "\n")
    assert len(places) > len(words)
    done = CliRunner().invoke(app, ["evaluate", found, "--gold", true, "--json"])
    assert done.exit_code == 0, done.output
    assert "1 document has other tokens than the gold" in done.stderr
    scores = json.loads(done.stdout)
    assert scores["strict"]["f1"] == 1.0
    assert scores["cross_entropy"] is None


def test_discontinuous_spans_are_compared_by_the_characters_of_their_pieces(tmp_path: Path) -> None:
    gold = Document("1", ("muscle", "and", "joint", "pa", "in"), gold=("B-ADR", "O", "O", "B-ADR…", "I-ADR…"))
    line = {"id": "1", "tokens": ["muscle", "and joint", "pain"], "tags": ["B-ADR", "O", "B-ADR…"], "spans": []}
    answers, _ = read_answers(consensus(tmp_path / "c.jsonl", line), Corpus([gold]))
    assert answers.tags == [list(gold.gold or ())]
    strict = score_answers(answers).strict
    assert strict is not None
    assert strict.f1 == 1.0
