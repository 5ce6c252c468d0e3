"""Reviews as values: reviewers, their agreement, disputes, adjudication, and reviewers as annotators."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate import Corpus, Document, InputError, Span
from quorate.formats import read_known
from quorate.reviews import Reviews, read, write_adjudication

ADA = ["Ada", "Ng", "sang", "in", "Bath"]
ANN = ["B-PER", "I-PER", "O", "O", "B-LOC"]
BOB = ["B-PER", "O", "O", "O", "B-LOC"]


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def line(document: str, tags: list[str] | list[str | None], reviewer: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": document, "tokens": ADA, "tags": tags, "reviewer": reviewer, **more}


def reviewed(folder: Path, *lines: dict[str, Any]) -> Reviews:
    return read(written(folder / "reviews.jsonl", *lines))


def test_reviewers_are_counted_with_their_first_and_last_time(tmp_path: Path) -> None:
    found = reviewed(
        tmp_path,
        line("1", ANN, "ann", time="2026-11-17T09:30:00+01:00"),
        line("2", ANN, "ann", time="2026-11-16T09:30:00Z"),
        line("1", BOB, "Zoë 👋", adjudicated=True),
        line("2", ["O"] * 5),
    )
    first, last = datetime(2026, 11, 16, 9, 30, tzinfo=UTC), datetime(2026, 11, 17, 8, 30, tzinfo=UTC)
    assert {reviewer.name: reviewer[1:] for reviewer in found.reviewers} == {
        "Zoë 👋": (1, 2, 1, None, None),
        "ann": (2, 4, 0, first, last),
        str(tmp_path / "reviews.jsonl"): (1, 0, 0, None, None),
    }


def test_agreement_is_that_of_annotators_who_say_the_same(tmp_path: Path) -> None:
    """The oracle is the pair of plain metrics, by hand: one span of two is shared, and 4 of 5 tokens."""
    found = reviewed(tmp_path, line("1", ANN, "ann"), line("1", BOB, "bob"), line("2", ANN, "ann"))
    (pair,) = found.agreement
    assert pair[:4] == ("ann", "bob", 1, 5)
    assert pair.spans_matched == quorate.score.strict([ANN], [BOB]).f1 == 0.5
    assert pair.kappa == pytest.approx(quorate.score.cohen_kappa(ANN, BOB), rel=1e-12)
    assert [one[:3] for one in found.agreement_with({"1": ANN, "3": BOB})] == [
        ("ann", "consensus", 1),
        ("bob", "consensus", 1),
    ]
    assert [one.spans_matched for one in found.agreement_with({"1": ANN})] == [1.0, 0.5]
    assert found.agreement_with({}) == ()
    assert reviewed(tmp_path, line("1", ANN, "ann")).agreement == ()
    apart = reviewed(tmp_path, line("1", ["O", *[None] * 4], "ann"), line("1", [None, *["O"] * 4], "bob"))
    assert apart.agreement == ()


def test_a_dispute_says_who_says_what_and_why(tmp_path: Path) -> None:
    found = reviewed(tmp_path, line("1", ANN, "ann"), line("1", BOB, "bob", note="Ng is a verb"), line("2", ANN, "ann"))
    (dispute,) = found.disputes
    assert dispute[:4] == ("1", 0, 2, ("Ada", "Ng"))
    assert dispute.says == (
        ("ann", ("B-PER", "I-PER"), (Span(0, 2, "PER"),), "", False),
        ("bob", ("B-PER", "O"), (Span(0, 1, "PER"),), "Ng is a verb", False),
    )
    assert found.known == {"1": (None, None, "O", "O", "B-LOC"), "2": tuple(ANN)}


def test_an_adjudication_that_a_person_filled_in_settles_the_dispute(tmp_path: Path) -> None:
    both = written(tmp_path / "both.jsonl", line("1", ANN, "ann"), line("1", BOB, "bob", note="Ng is a verb"))
    crowd = Corpus([Document("1", tuple(ADA)), Document("2", ("a",))])
    path = tmp_path / "adjudicate.jsonl"
    write_adjudication(read(both, crowd), path)
    (made,) = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert made == {
        "id": "1",
        "tokens": ADA,
        "gold": [None, None, "O", "O", "B-LOC"],
        "proposals": {"ann": {"tags": ANN}, "bob": {"tags": BOB, "note": "Ng is a verb"}},
        "reviewer": "",
        "note": "",
        "checked": False,
        "adjudicated": True,
    }
    assert len(read([both, path]).disputes) == 1  # nobody has looked yet
    written(path, made | {"gold": ANN, "checked": True, "reviewer": "cat"})
    settled = read([both, path])
    assert settled.disputes == ()
    assert settled.known == read_known([both, path], crowd) == {"1": tuple(ANN)}
    spans = {"spans": [{"start": 0, "end": 2, "label": "PER"}], "checked": True}
    written(path, {name: value for name, value in made.items() if name != "gold"} | spans)
    assert read([both, path]).known == {"1": ("B-PER", "I-PER", "O", "O", "O")}


def test_the_text_of_the_input_is_in_the_file_for_adjudication(tmp_path: Path) -> None:
    marks = [{"start": 3, "end": 6, "label": "PER"}]
    crowd = written(tmp_path / "crowd.jsonl", {"id": "1", "text": "👋 Ada", "annotations": {"x": marks}})
    both = written(tmp_path / "both.jsonl", {"id": "1", "tags": ["O", "O"]}, {"id": "1", "tags": ["O", "B-PER"]})
    write_adjudication(read(both, quorate.read(crowd)), tmp_path / "adjudicate.jsonl")
    made = json.loads((tmp_path / "adjudicate.jsonl").read_text(encoding="utf-8"))
    assert (made["text"], made["offset_unit"], made["gold"]) == ("👋 Ada", "utf-16", ["O", None])
    with pytest.raises(InputError, match=r"both.jsonl:1: document '1': nobody says what its tokens are .*--input"):
        read(both)


def test_reviewers_are_annotators_and_what_was_adjudicated_is_gold(tmp_path: Path) -> None:
    lines = [line(str(n), ANN if n % 3 else BOB, who) for n in range(6) for who in ("ann", "bob", "eve")]
    final = line("0", ANN, "ann", adjudicated=True)
    corpus = reviewed(tmp_path, *lines, final).as_corpus()
    assert corpus.annotators == ("ann", "bob", "eve")
    assert (corpus["0"].annotations["ann"], corpus["0"].gold, corpus["1"].gold) == (tuple(BOB), tuple(ANN), None)
    assert quorate.aggregate(corpus, "mv")["0"].tags == BOB
    assert quorate.score.measure_agreement(corpus).alpha == 1.0


def test_documents_of_which_two_reviews_have_other_tokens_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"reviews.jsonl:2: document '1': other tokens"):
        reviewed(tmp_path, line("1", ANN, "ann"), line("1", ANN, "bob", tokens=[*ADA[:4], "Wells"]))


def test_plain_labels_are_reviewed_too(tmp_path: Path) -> None:
    one, other = ({"id": "1", "tokens": ["a", "b"], "tags": tags} for tags in (["NOUN", "VERB"], ["NOUN", "NOUN"]))
    found = reviewed(tmp_path, one | {"reviewer": "ann"}, other | {"reviewer": "bob"})
    assert [(dispute.start, dispute.end) for dispute in found.disputes] == [(1, 2)]
    assert [says.tags for says in found.disputes[0].says] == [("VERB",), ("NOUN",)]
    assert (found.agreement[0].spans_matched, found.agreement[0].observed) == (None, 0.5)
