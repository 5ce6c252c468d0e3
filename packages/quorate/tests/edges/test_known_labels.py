"""Labels taken as certain: from several files, from standard input, and from records that people have edited."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import quorate
from by_name import bsc
from quorate import Corpus, Document, InputError
from quorate.formats import read_known
from running import Run

ADA = ("Ada", "Ng", "sang", "in", "Bath")
CROWD = {"ann": ("B-PER", "I-PER", "O", "O", "B-LOC"), "bob": ("B-PER", "I-PER", "O", "O", "O")}
METHODS = ("auto", "mv", "mv-abstain", "span-vote", "bsc-cm", "crf-ma")


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    documents = [{"id": str(n), "tokens": ADA, "annotations": CROWD} for n in range(6)]
    return written(tmp_path / "crowd.jsonl", *documents)


def consensus(run: Run, crowd: Path) -> list[dict[str, Any]]:
    assert run("aggregate", crowd, "--method", "mv", "-o", "consensus.jsonl", "-q")[0] == 0
    return [json.loads(line) for line in Path("consensus.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("method", METHODS)
def test_an_inside_tag_after_an_unknown_one_does_not_split_its_span(method: str) -> None:
    corpus = Corpus([Document(str(n), ADA, CROWD) for n in range(6)])
    settings: dict[str, Any] = {"iterations": 5} if method == "crf-ma" else {}
    result = quorate.aggregate(corpus, method, known={"0": (None, "I-PER", None, None, None)}, **settings)
    assert result["0"].tags[:3] == ["B-PER", "I-PER", "O"]


def test_an_inside_tag_after_an_unknown_one_is_kept_in_an_update() -> None:
    documents = [Document(str(n), ADA, CROWD) for n in range(6)]
    model = bsc("bsc-cm", max_iter=3).fit(Corpus(documents))
    model.update(Corpus(documents[:1]), known={"0": (None, "I-PER", None, None, None)})
    assert model.result_["0"].tags[:3] == ["B-PER", "I-PER", "O"]


def test_spans_that_were_edited_and_tags_that_were_not_are_refused(run: Run, crowd: Path) -> None:
    line = consensus(run, crowd)[0]
    assert [span["label"] for span in line["spans"]] == ["PER", "LOC"]
    line["spans"] = [line["spans"][0] | {"end": 1}, *line["spans"][1:]]
    written(crowd.with_name("checked.jsonl"), line)
    for command in (("aggregate", "-o", "out.jsonl"), ("report", "-o", "out.html")):
        code, _, err = run(*command, crowd, "--known", "checked.jsonl")
        assert (code, err) == (
            2,
            "quorate: checked.jsonl:1: document '0': 'tags' and 'spans' contradict each other: PER, token 1 to 1, in "
            "'spans' alone, PER, token 1 to 2, in 'tags' alone (correct both, or leave out the one that does not "
            "hold)\n",
        )


def test_spans_in_characters_are_held_against_the_tags(run: Run, tmp_path: Path) -> None:
    text = "👋 Ada Ng sang in Bath"
    marks = [{"start": 3, "end": 9, "label": "PER", "text": "Ada Ng"}]
    source = written(tmp_path / "text.jsonl", {"id": "1", "text": text, "annotations": {"ann": marks}})
    line = consensus(run, source)[0]
    assert line["offset_unit"] == "utf-16"
    corpus = quorate.read(source)
    assert read_known(written(tmp_path / "same.jsonl", line), corpus)["1"] == tuple(line["tags"])
    moved = line["spans"][0] | {"end": 6}
    with pytest.raises(InputError, match="document '1': 'tags' and 'spans' contradict each other"):
        read_known(written(tmp_path / "moved.jsonl", line | {"spans": [moved]}), corpus)
    in_tokens = line["spans"][0] | {"token_end": 2}
    with pytest.raises(InputError, match="document '1': 'tags' and 'spans' contradict each other"):
        read_known(written(tmp_path / "tokens.jsonl", line | {"spans": [in_tokens]}), corpus)
    alone = {name: value for name, value in line.items() if name != "tags"} | {"spans": [moved]}
    assert read_known(written(tmp_path / "alone.jsonl", alone), corpus)["1"][1:3] == ("B-PER", "O")


def test_an_unknown_tag_contradicts_no_span_and_plain_labels_mark_none(run: Run, crowd: Path, tmp_path: Path) -> None:
    line = consensus(run, crowd)[0]
    line["tags"] = [None, *line["tags"][1:]]
    assert read_known(written(tmp_path / "open.jsonl", line), quorate.read(crowd))["0"] == tuple(line["tags"])
    plain = {"id": "1", "tokens": ["a", "b"], "annotations": {"ann": ["NOUN", "VERB"]}}
    source = written(tmp_path / "plain.jsonl", plain)
    tagged = consensus(run, source)[0] | {"tags": ["VERB", "VERB"]}
    assert read_known(written(tmp_path / "verbs.jsonl", tagged), quorate.read(source))["1"] == ("VERB", "VERB")


def test_a_prefix_without_a_type_is_a_plain_label_and_contradicts_no_spans(tmp_path: Path) -> None:
    corpus = Corpus([Document("1", ("a", "b"), {"ann": ("B-", "O")})])
    line = {"id": "1", "tokens": ["a", "b"], "tags": ["B-", "O"], "spans": []}
    assert read_known(written(tmp_path / "plain.jsonl", line), corpus)["1"] == ("B-", "O")


def test_a_layered_consensus_is_known_in_layers_alone(crowd: Path, tmp_path: Path) -> None:
    line = {"id": "0", "tokens": ADA, "layers": {"PER": {}}, "spans": []}
    with pytest.raises(InputError, match=r"a consensus in layers \(it is known with --layers auto\)"):
        read_known(written(tmp_path / "layers.jsonl", line), quorate.read(crowd))


def test_all_files_of_known_labels_count(run: Run, crowd: Path) -> None:
    written(crowd.with_name("a.jsonl"), {"id": "0", "tags": ["O", "O", None, None, None]})
    written(
        crowd.with_name("b.jsonl"), {"id": "0", "gold": [None, "O", "O", None, None]}, {"id": "3", "gold": ["O"] * 5}
    )
    files = ("--known", "a.jsonl", "--known", "b.jsonl")
    code, out, err = run("aggregate", crowd, *files, "--method", "mv", "--meta", "meta.json")
    assert code == 0
    tags = {line["id"]: line["tags"] for line in map(json.loads, out.splitlines())}
    assert (tags["0"][:3], tags["3"], tags["1"][0]) == (["O"] * 3, ["O"] * 5, "B-PER")
    assert "8 tokens have known labels" in err
    assert set(json.loads(Path("meta.json").read_text())["inputs"]) == {str(crowd), "a.jsonl", "b.jsonl"}
    assert run("report", crowd, *files, "-o", "report.html", "-q")[0] == 0
    assert Path("report.html").read_text(encoding="utf-8").count('"known":true') == 2


DISPUTED = "quorate: warning: known labels disagree (documents: 1); 'quorate reviews' lists what is left open\n"


def test_what_known_labels_disagree_about_is_left_open_and_said(run: Run, crowd: Path) -> None:
    written(crowd.with_name("a.jsonl"), {"id": "0", "tags": ["O", "O", None, None, None]})
    written(
        crowd.with_name("b.jsonl"), {"id": "1", "tags": ["O"] * 5}, {"id": "0", "tags": ["B-PER", None, None, "O", "O"]}
    )
    files = ("--known", "a.jsonl", "--known", "b.jsonl")
    assert read_known(["a.jsonl", "b.jsonl"], quorate.read(crowd))["0"] == (None, "O", None, "O", "O")
    for command in (("aggregate", "-o", "out.jsonl"), ("report", "-o", "out.html")):
        assert run(*command, crowd, *files, "-q") == (0, "", DISPUTED)
    written(crowd.with_name("twice.jsonl"), *({"id": "0", "tags": [tag] * 5} for tag in ("O", "B-PER")))
    code, _, err = run("aggregate", crowd, "--known", "twice.jsonl", "-q", "-o", "out.jsonl")
    assert (code, err) == (0, DISPUTED)
    assert read_known("twice.jsonl", quorate.read(crowd)) == {"0": (None,) * 5}


def test_a_reviewer_who_changes_their_mind_is_counted(run: Run, crowd: Path) -> None:
    early, late = ({"id": "0", "reviewer": "ann", "tags": [tag] * 5} for tag in ("O", "B-PER"))
    written(crowd.with_name("ann.jsonl"), early, late)
    code, out, err = run("aggregate", crowd, "--known", "ann.jsonl", "--method", "mv")
    assert code == 0
    assert json.loads(out.splitlines()[0])["tags"] == ["B-PER"] * 5
    assert "quorate: note: a reviewer's later labels replace earlier ones (documents: 1)\n" in err
    times = ("2026-11-17T10:00:00+01:00", "2026-11-17T09:30:00Z")  # the second is the later one
    written(crowd.with_name("ann.jsonl"), late | {"time": times[1]}, early | {"time": times[0]})
    assert read_known("ann.jsonl", quorate.read(crowd))["0"] == ("B-PER",) * 5


@pytest.mark.parametrize("time", ["yesterday", "2026-11-17", "2026-11-17T09:30:00", ""])
def test_a_time_that_is_none_or_has_no_zone_is_refused_by_name(run: Run, crowd: Path, time: str) -> None:
    written(crowd.with_name("a.jsonl"), {"id": "0", "tags": ["O"] * 5}, {"id": 1, "tags": ["O"] * 5, "time": time})
    code, _, err = run("aggregate", crowd, "--known", "a.jsonl")
    assert (code, err) == (
        2,
        f"quorate: a.jsonl:2: document '1': time {time!r} is not a time with its zone (write it as "
        "2026-11-17T09:30:00+01:00)\n",
    )


def test_known_spans_without_a_label_are_refused_with_what_a_span_is(crowd: Path, tmp_path: Path) -> None:
    line = {"id": "0", "text": "Ada", "spans": [{"start": 0, "end": 3}]}
    with pytest.raises(InputError, match=r"a\.jsonl:1: not known spans: 'label' is missing in entry 1 \(a span is"):
        read_known(written(tmp_path / "a.jsonl", line), quorate.read(crowd))


@pytest.mark.parametrize(
    "field", [{"reviewer": 3}, {"note": ["a"]}, {"version": 1.5}, {"adjudicated": "yes"}, {"time": 17}]
)
def test_a_field_of_a_review_that_is_no_such_thing_is_refused_by_name(
    crowd: Path, tmp_path: Path, field: dict[str, object]
) -> None:
    line = {"id": "0", "tags": ["O"] * 5} | field
    with pytest.raises(InputError, match=rf"a.jsonl:1: .*: {next(iter(field))} must be"):
        read_known(written(tmp_path / "a.jsonl", line), quorate.read(crowd))


def test_documents_that_wait_to_be_checked_are_not_known(run: Run, crowd: Path) -> None:
    waiting = {"id": "0", "gold": ["O"] * 5, "checked": False}
    written(crowd.with_name("open.jsonl"), waiting)
    written(crowd.with_name("a.jsonl"), {"id": "1", "gold": ["O"] * 5})
    assert set(read_known(["open.jsonl", "a.jsonl"], quorate.read(crowd))) == {"1"}
    code, _, err = run("aggregate", crowd, "--known", "open.jsonl")
    assert (code, err) == (
        2,
        'quorate: open.jsonl: no document in it is checked ("checked": true says that somebody has looked)\n',
    )


def test_spans_that_are_not_those_of_the_gold_are_refused(run: Run, crowd: Path) -> None:
    gold = ["B-PER", "I-PER", "O", "O", "O"]
    other = [{"start": 0, "end": 1, "label": "PER"}]
    in_text = {"id": "0", "text": "Ada Ng sang in Bath", "gold": [{"start": 0, "end": 6, "label": "PER"}]}
    in_text |= {"spans": [{"start": 0, "end": 3, "label": "PER"}]}
    for line in (
        {"id": "0", "tokens": ADA, "gold": gold, "spans": other},
        {"id": "0", "gold": gold, "spans": other},
        in_text,
    ):
        written(crowd.with_name("checked.jsonl"), line)
        code, _, err = run("aggregate", crowd, "--known", "checked.jsonl")
        assert (code, err) == (
            2,
            "quorate: checked.jsonl:1: document '0': 'gold' and 'spans' contradict each other: PER, token 1 to 1, in "
            "'spans' alone, PER, token 1 to 2, in 'gold' alone (correct both, or leave out the one that does not "
            "hold)\n",
        )
    same = {"id": "0", "tokens": ADA, "gold": gold, "spans": [{"start": 0, "end": 2, "label": "PER"}]}
    assert read_known(written(crowd.with_name("same.jsonl"), same), quorate.read(crowd))["0"] == tuple(gold)


def test_gold_in_the_input_counts_beside_files(run: Run, tmp_path: Path) -> None:
    documents = [{"id": str(n), "tokens": ADA, "annotations": CROWD} for n in range(3)]
    crowd = written(tmp_path / "gold.jsonl", documents[0] | {"gold": ["O"] * 5}, *documents[1:])
    written(tmp_path / "a.jsonl", {"id": "1", "tags": ["O"] * 5})
    code, out, _ = run("aggregate", crowd, "--known", "inline", "--known", "a.jsonl", "--method", "mv", "-q")
    assert code == 0
    assert [json.loads(line)["tags"][0] for line in out.splitlines()] == ["O", "O", "B-PER"]
    written(tmp_path / "a.jsonl", {"id": "0", "tags": ["B-PER", *["O"] * 4]})
    code, _, err = run("aggregate", crowd, "--known", "inline", "--known", "a.jsonl", "-q")
    assert (code, err) == (0, DISPUTED)
    code, _, err = run("aggregate", crowd, "--known", "none", "--known", "a.jsonl")
    assert (code, err) == (2, "quorate: --known none goes with no other --known (leave it out)\n")


def test_inline_without_gold_says_so(run: Run, crowd: Path) -> None:
    message = "no document has gold, so that 'inline' gives no known labels (leave it out, or give a file with gold)"
    for command in (("aggregate",), ("report", "-o", "out.html")):
        assert run(*command, crowd, "--known", "inline") == (2, "", f"quorate: {message}\n")
    corpus = Corpus([Document(str(n), ADA, CROWD, (None,) * 5) for n in range(3)])
    for method in METHODS:
        with pytest.raises(InputError, match="no document has gold"):
            quorate.aggregate(corpus, method, known="inline")


def test_inline_without_gold_says_so_beside_files_too(run: Run, crowd: Path, tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", {"id": "1", "tags": ["O"] * 5})
    message = "no document has gold, so that 'inline' gives no known labels (leave it out, or give a file with gold)"
    files = ("--known", "inline", "--known", "a.jsonl")
    for command in (("aggregate",), ("report", "-o", "out.html"), ("next",)):
        assert run(*command, crowd, *files) == (2, "", f"quorate: {message}\n")
    open_gold = Corpus([Document(str(n), ADA, CROWD, (None,) * 5) for n in range(3)])
    with pytest.raises(InputError, match="no document has gold"):
        read_known(tmp_path / "a.jsonl", open_gold, inline=True)


TEXT = {"id": "0", "text": "Ada Ng sang in Bath"}


def span(start: int, end: int, label: str, **more: object) -> dict[str, object]:
    return {"start": start, "end": end, "label": label, **more}


@pytest.fixture
def texts() -> Corpus:
    return Corpus([Document("0", ADA)])


def test_gold_spans_that_overlap_are_refused_as_known_labels(texts: Corpus, tmp_path: Path) -> None:
    """They were left out without a word, and what remained was taken as certain."""
    in_tokens = {"id": "0", "tokens": ADA, "gold": [span(0, 2, "PER"), span(1, 4, "LOC")]}
    for line in (in_tokens, TEXT | {"gold": [span(0, 6, "PER"), span(4, 11, "LOC")]}):
        with pytest.raises(InputError, match=r"1: document '0': spans that overlap cannot be known labels"):
            read_known(written(tmp_path / "known.jsonl", line), texts)


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        (span(6, 7, "PER"), "hold no token"),
        (span(0, 6, "PER", text="Bath"), "do not hold the words"),
    ],
)
def test_gold_spans_that_cannot_be_what_was_meant_are_refused_as_known_labels(
    texts: Corpus, tmp_path: Path, mark: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=f"1: document '0': spans that {message} .*cannot be known labels"):
        read_known(written(tmp_path / "known.jsonl", TEXT | {"gold": [mark]}), texts)


def test_the_score_of_a_gold_span_makes_no_probability_of_a_known_label(texts: Corpus, tmp_path: Path) -> None:
    gold = [span(0, 6, "PER", score=0.7), span(0, 6, "PER", score=0.9)]
    known = read_known(written(tmp_path / "known.jsonl", TEXT | {"gold": gold}), texts)
    assert known["0"] == ("B-PER", "I-PER", "O", "O", "O")


def test_other_documents_tell_what_the_offsets_of_known_labels_count(tmp_path: Path) -> None:
    """As where annotations are read: the first unit that suits a document was taken, and the wrong words were known."""
    corpus = Corpus([Document("0", ("👋", "a", "-", "b")), Document("1", ("👋", "Ada"))])
    unsure = {"id": "0", "text": "👋 a-b", "gold": [span(4, 5, "X")]}
    sure = {"id": "1", "text": "👋 Ada", "gold": [span(3, 6, "X", text="Ada")]}
    for lines in ((unsure, sure), (sure, unsure)):
        known = read_known(written(tmp_path / "known.jsonl", *lines), corpus)
        assert known == {"0": ("O", "O", "B-X", "O"), "1": ("O", "B-X")}
    named = unsure | {"offset_unit": "code-points"}
    assert read_known(written(tmp_path / "named.jsonl", named, sure), corpus)["0"] == ("O", "O", "O", "B-X")
    with pytest.raises(InputError, match=r"1: document '0': nothing tells what its offsets count.*offset_unit"):
        read_known(written(tmp_path / "alone.jsonl", unsure), corpus)
    before = {"id": "0", "text": "a b c 👋", "gold": [span(0, 1, "X")]}
    other = Corpus([Document("0", ("a", "b", "c", "👋"))])
    assert read_known(written(tmp_path / "before.jsonl", before), other)["0"] == ("B-X", "O", "O", "O")


@pytest.mark.parametrize("field", ["spans", "tags"])
@pytest.mark.parametrize("foreign", ["many", 3, {"a": 1}, [["a", 1]], [{"from": 0}]])
def test_a_foreign_field_beside_gold_is_passed_over(texts: Corpus, tmp_path: Path, field: str, foreign: object) -> None:
    for line in (TEXT | {"gold": [span(0, 6, "PER")]}, {"id": "0", "gold": ["B-PER", "I-PER", "O", "O", "O"]}):
        known = read_known(written(tmp_path / "known.jsonl", line | {field: foreign}), texts)
        assert known["0"] == ("B-PER", "I-PER", "O", "O", "O")
    with pytest.raises(InputError, match=r"known.jsonl:1: "):
        read_known(written(tmp_path / "known.jsonl", {"id": "0", "tokens": ADA, field: foreign}), texts)


def test_known_labels_from_standard_input(run: Run, crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    review = written(crowd.with_name("review.jsonl"), {"id": "0", "tags": ["O"] * 5})
    for command in (("aggregate", "-o", "out.jsonl"), ("report", "-o", "out.html")):
        with review.open() as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            code, _, err = run(*command, crowd, "--known", "-", "-q")
        assert (code, err) == (0, "")
    assert json.loads(Path("out.jsonl").read_text().splitlines()[0])["tags"] == ["O"] * 5
    code, _, err = run("aggregate", "-", "--known", "-")
    assert code == 2
    assert err.startswith("quorate: standard input can be read once")


def test_known_labels_are_not_written_over(run: Run, crowd: Path) -> None:
    written(crowd.with_name("review.jsonl"), {"id": "0", "tags": ["O"] * 5})
    code, _, err = run("aggregate", crowd, "--known", "review.jsonl", "-o", "review.jsonl")
    assert (code, err) == (2, "quorate: review.jsonl: this is an input, which would be lost (give another name)\n")


def spans_of(result: quorate.Result, path: Path) -> list[dict[str, Any]]:
    result.write(path)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("method", METHODS)
def test_the_output_marks_what_is_known(method: str, tmp_path: Path) -> None:
    corpus = Corpus([Document(str(n), ADA, CROWD) for n in range(6)])
    settings: dict[str, Any] = {"iterations": 5} if method == "crf-ma" else {}
    known = {
        "0": ("B-PER", "I-PER", "O", "O", "B-LOC"),
        "1": ("B-PER", "I-PER", "O", None, None),
        "2": (None, "I-PER", None, None, None),
        "3": (None,) * 5,
    }
    result = quorate.aggregate(corpus, method, known=known, **settings)
    lines = spans_of(result, tmp_path / "out.jsonl")
    assert [line.get("known") for line in lines] == [True, None, None, None, None, None]
    assert all("known" not in span for line in (lines[0], *lines[2:]) for span in line["spans"])
    assert (lines[1]["spans"][0]["label"], lines[1]["spans"][0]["known"]) == ("PER", True)
    assert all("known" not in span for span in lines[1]["spans"][1:])
    assert result["1"].known.tolist() == [True, True, True, False, False]
    part = spans_of(result.only([4, 0, 1]), tmp_path / "part.jsonl")
    assert part == [lines[4], lines[0], lines[1]]
    nothing = quorate.aggregate(corpus, method, **settings)
    assert all(not one.known.any() for one in nothing)
    nothing.write(tmp_path / "nothing.jsonl")
    assert "known" not in (tmp_path / "nothing.jsonl").read_text(encoding="utf-8")


def test_a_consensus_that_marks_what_is_known_is_read_and_written_again(run: Run, crowd: Path) -> None:
    written(crowd.with_name("a.jsonl"), {"id": "0", "tags": ["B-PER", "I-PER", "O", None, None]})
    written(crowd.with_name("b.jsonl"), {"id": "1", "gold": ["O"] * 5})
    known = ("--known", "a.jsonl", "--known", "b.jsonl")
    assert run("aggregate", crowd, *known, "--method", "mv", "-o", "out.jsonl", "-q")[0] == 0
    assert run("convert", "out.jsonl", "again.jsonl")[0] == 0
    first, again = (
        [json.loads(line) for line in Path(name).read_text().splitlines()] for name in ("out.jsonl", "again.jsonl")
    )
    assert [line["spans"] for line in first] == [line["spans"] for line in again]
    assert [line.get("known") for line in first] == [line.get("known") for line in again] == [None, True, *[None] * 4]
    assert first[0]["spans"][0]["known"] is True
    records = quorate.formats.read_consensus("out.jsonl")
    assert records[0].known_tokens() == [True, True, False, False, False]
    assert read_known("out.jsonl", quorate.read(crowd))["1"] == ("O",) * 5  # and is a file of known labels itself
