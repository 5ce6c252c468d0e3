"""The command ``reviews``: what it prints, writes and exits with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import quorate
from running import Run

ADA = ["Ada", "Ng", "sang", "in", "Bath"]
ANN = ["B-PER", "I-PER", "O", "O", "B-LOC"]
BOB = ["B-PER", "O", "O", "O", "B-LOC"]


def written(name: str, *lines: dict[str, Any]) -> str:
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return name


@pytest.fixture
def both(run: Run) -> tuple[str, str]:
    """Two reviews with a dispute in the first document."""
    one = {"id": "1", "tokens": ADA, "tags": ANN, "reviewer": "ann", "time": "2026-11-17T09:30:00+01:00"}
    other = {"id": "1", "tokens": ADA, "tags": BOB, "reviewer": "Zoë 👋", "note": "Ng is a verb\n\x1b[2J"}
    same = [line | {"id": "2", "tags": ANN} for line in (one, other)]
    return written("ann.jsonl", one, same[0]), written("zoe.jsonl", other, same[1])


def test_reviewers_agreement_and_disputes_are_shown(run: Run, both: tuple[str, str]) -> None:
    code, out, err = run("reviews", *both)
    lines = out.splitlines()
    assert (code, err, lines[0]) == (1, "", "documents in dispute: 1 of 2")
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:2] == ["ann", "2"] and "2026-11-17 09:30" in line for line in lines)
    assert any(line.split() == ["Zoë", "👋", "ann", "2", "75.0", "0.857"] for line in lines)
    assert lines[-3:] == [
        "document '1', token 1 to 2: Ada Ng",
        "  ann: PER Ada Ng",
        "  Zoë 👋: PER Ada – Ng is a verb\\n\\x1b[2J",
    ]


def test_a_discontinuous_span_is_shown_by_its_own_words(run: Run) -> None:
    tokens = ["muscle", "and", "joint", "pain"]
    one = {"id": "1", "tokens": tokens, "tags": ["B-ADR", "O", "O", "B-ADR…"], "reviewer": "ann"}
    other = {"id": "1", "tokens": tokens, "tags": ["O", "O", "B-ADR", "I-ADR"], "reviewer": "bob"}
    written("both.jsonl", one, other)
    _, out, _ = run("reviews", "both.jsonl")
    assert out.splitlines()[-3:] == [
        "document '1', token 3 to 4: joint pain",
        "  ann: ADR muscle pain",
        "  bob: ADR joint pain",
    ]
    said = json.loads(run("reviews", "both.jsonl", "--json")[1])["disputes"][-1]["says"]
    assert said[0]["spans"] == [{"start": 0, "end": 4, "label": "ADR", "pieces": [[0, 1], [3, 4]]}]
    assert said[1]["spans"] == [{"start": 2, "end": 4, "label": "ADR"}]


def test_nothing_in_dispute_is_a_success(run: Run, both: tuple[str, str]) -> None:
    code, out, _ = run("reviews", both[0], "-o", "adjudicate.jsonl")
    assert (code, out.splitlines()[0]) == (0, "documents in dispute: 0 of 2")
    assert not Path("adjudicate.jsonl").exists()


def test_as_json_everything_is_there(run: Run, both: tuple[str, str]) -> None:
    consensus = [{"id": "1", "tokens": ADA, "tags": ANN, "confidence": 1.0, "token_confidence": [1.0] * 5, "spans": []}]
    written("consensus.jsonl", *consensus)
    code, out, _ = run("reviews", *both, "--json", "--consensus", "consensus.jsonl")
    found = json.loads(out)
    assert code == 1
    assert [row["name"] for row in found["reviewers"]] == ["Zoë 👋", "ann"]
    assert found["reviewers"][1]["first"] == "2026-11-17T09:30:00+01:00"
    assert {row["first"]: row["spans_matched"] for row in found["consensus"]} == {"ann": 1.0, "Zoë 👋": 0.5}
    assert found["disputes"][0]["says"][0]["spans"] == [{"start": 0, "end": 2, "label": "PER"}]
    assert "consensus" in run("reviews", *both, "--consensus", "consensus.jsonl")[1]


def test_from_a_dispute_to_adjudicated_labels(run: Run, both: tuple[str, str]) -> None:
    annotations = {"a": BOB, "b": BOB}
    crowd = written("crowd.jsonl", *({"id": str(n), "tokens": ADA, "annotations": annotations} for n in range(1, 5)))
    known = [part for name in (*both, "adjudicate.jsonl") for part in ("--known", name)]
    code, _, err = run("reviews", *both, "-o", "adjudicate.jsonl")
    assert code == 1
    assert err == "quorate: adjudicate.jsonl: fill in 'gold', make 'checked' true, and give it back with the others\n"
    open_still = run("aggregate", crowd, *known, "--method", "mv", "-q")[1]
    assert json.loads(open_still.splitlines()[0])["tags"] == BOB  # nobody has decided
    line = json.loads(Path("adjudicate.jsonl").read_text(encoding="utf-8"))
    written("adjudicate.jsonl", line | {"gold": ANN, "checked": True, "reviewer": "cat"})
    assert run("reviews", *both, "adjudicate.jsonl", "-q")[0] == 0
    code, out, err = run("aggregate", crowd, *known, "--method", "mv", "-q")
    assert (code, err, json.loads(out.splitlines()[0])["tags"]) == (0, "", ANN)
    code, _, err = run("reviews", *both, "-o", "adjudicate.jsonl")
    assert (code, err) == (
        2,
        "quorate: adjudicate.jsonl: documents in it were checked, which would be lost (give another name)\n",
    )


def test_the_tokens_may_come_from_the_input(run: Run) -> None:
    crowd = written("crowd.jsonl", {"id": "1", "tokens": ADA, "annotations": {"a": BOB}})
    for name, tags in (("a.jsonl", ANN), ("b.jsonl", BOB)):
        written(name, {"id": "1", "tags": tags})
    code, _, err = run("reviews", "a.jsonl", "b.jsonl")
    assert code == 2
    assert "document '1': nobody says what its tokens are (give the annotations with --input)" in err
    code, out, _ = run("reviews", "a.jsonl", "b.jsonl", "--input", crowd)
    assert (code, out.splitlines()[-3]) == (1, "document '1', token 1 to 2: Ada Ng")
    assert out.splitlines()[-2:] == ["  a.jsonl: PER Ada Ng", "  b.jsonl: PER Ada"]


def test_reviewers_as_annotators(run: Run, both: tuple[str, str]) -> None:
    assert run("reviews", *both, "--as-annotators", "-o", "reviewers.jsonl") == (0, "", "")
    corpus = quorate.read("reviewers.jsonl")
    assert corpus.annotators == ("Zoë 👋", "ann")
    code, out, _ = run("agreement", "reviewers.jsonl", "--json")
    assert (code, json.loads(out)["pairs"][0]["documents"]) == (0, 2)
    code, out, _ = run("reviews", *both, "--as-annotators")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["1", "2"]


def test_the_file_for_adjudication_may_go_into_a_pipe(run: Run, both: tuple[str, str]) -> None:
    code, out, err = run("reviews", *both, "-o", "-")
    assert (code, err, json.loads(out)["gold"]) == (1, "", [None, None, *ANN[2:]])


@pytest.fixture
def layered(run: Run) -> tuple[str, ...]:
    """Two reviews of two layers, with a dispute in one of them; and where the layers are from."""
    marks = [{"start": 0, "end": 8, "label": "ORG"}, {"start": 0, "end": 4, "label": "LOC"}]
    crowd = [{"id": str(n), "text": "Bath Spa won", "annotations": {"p": marks, "q": marks}} for n in range(3)]
    written("crowd.jsonl", *crowd)
    assert run("aggregate", "crowd.jsonl", "--layers", "auto", "--method", "mv", "-o", "consensus.jsonl", "-q")[0] == 0
    line: dict[str, Any] = {"id": "1", "tokens": ["Bath", "Spa", "won"]}
    for who, tags in (("ann", ["B-LOC", "O", "O"]), ("bob", ["B-LOC", "I-LOC", "O"])):
        own = line | {"reviewer": who}
        written(f"{who}.jsonl", own | {"layer": "LOC", "tags": tags}, own | {"layer": "ORG", "tags": ["O", "O", "O"]})
    return "ann.jsonl", "bob.jsonl", "--input", "crowd.jsonl", "--layers", "auto"


def test_reviews_of_layers_are_gone_through_layer_by_layer(run: Run, layered: tuple[str, ...]) -> None:
    code, out, err = run("reviews", *layered, "--consensus", "consensus.jsonl")
    lines = out.splitlines()
    assert (code, err, lines[0]) == (1, "", "documents in dispute: 1 of 1")
    place = lines.index("document '1', token 1 to 2: Bath Spa")
    assert lines[place + 1 : place + 3] == ["  ann: LOC Bath", "  bob: LOC Bath Spa"]
    assert lines.index("layer LOC") < place < lines.index("layer ORG")
    found = json.loads(run("reviews", *layered, "--consensus", "consensus.jsonl", "--json")[1])
    assert [(row["layer"], row["name"], row["spans"]) for row in found["reviewers"]] == [
        ("LOC", "ann", 1),
        ("LOC", "bob", 1),
        ("ORG", "ann", 0),
        ("ORG", "bob", 0),
    ]
    assert [(row["layer"], row["first"], row["spans_matched"]) for row in found["consensus"]][:2] == [
        ("LOC", "ann", 1.0),
        ("LOC", "bob", 0.0),
    ]
    assert [(dispute["layer"], dispute["start"], dispute["end"]) for dispute in found["disputes"]] == [("LOC", 0, 2)]


def test_what_is_adjudicated_in_a_layer_settles_it(run: Run, layered: tuple[str, ...]) -> None:
    assert run("reviews", *layered, "-o", "adjudicate.jsonl", "-q")[0] == 1
    (line,) = map(json.loads, Path("adjudicate.jsonl").read_text(encoding="utf-8").splitlines())
    assert (line["id"], line["layer"], line["gold"]) == ("1", "LOC", [None, None, "O"])
    assert run("reviews", "adjudicate.jsonl", *layered, "-q")[0] == 1  # nobody has looked yet
    written("adjudicate.jsonl", line | {"gold": ["B-LOC", "I-LOC", "O"], "checked": True, "reviewer": "cat"})
    assert run("reviews", "adjudicate.jsonl", *layered, "-q")[0] == 0
    known = [part for name in ("ann", "bob", "adjudicate") for part in ("--known", f"{name}.jsonl")]
    code, out, err = run("aggregate", "crowd.jsonl", "--layers", "auto", "--method", "mv", "-q", *known)
    assert (code, err) == (0, "")
    layers = json.loads(out.splitlines()[1])["layers"]
    assert [layers[name]["tags"] for name in ("LOC", "ORG")] == [["B-LOC", "I-LOC", "O"], ["O", "O", "O"]]


def test_reviews_of_layers_that_cannot_be_are_refused(
    run: Run, layered: tuple[str, ...], both: tuple[str, str]
) -> None:
    assert (
        run("reviews", "bob.jsonl")[2]
        == "quorate: bob.jsonl:1: labels of layer 'LOC' (they are known with --layers auto)\n"
    )
    assert "(give them with --input)" in run("reviews", "bob.jsonl", "--layers", "auto")[2]
    assert "(leave out --layers auto)" in run("reviews", *layered, "--as-annotators")[2]
    code, _, err = run("reviews", *both, "--consensus", "consensus.jsonl")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("quorate: consensus.jsonl: its layers are not those of the reviews")


def test_what_cannot_be_is_refused(run: Run, both: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("reviews", *both, "-o", "ann.jsonl")[2].startswith("quorate: ann.jsonl: this is an input")
    assert run("reviews", "-", "--input", "-")[2].startswith("quorate: standard input can be read once")
    written("empty.jsonl")
    assert run("reviews", "empty.jsonl")[0] == 2
    with open(both[0], encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert run("reviews", "-")[0] == 0
