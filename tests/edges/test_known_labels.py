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
METHODS = ("auto", "mv", "silent-vote", "span-vote", "bsc-cm", "crf-ma")


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


def test_contradictions_between_known_labels_are_listed(run: Run, crowd: Path) -> None:
    written(crowd.with_name("a.jsonl"), {"id": "0", "tags": ["O", "O", None, None, None]})
    written(
        crowd.with_name("b.jsonl"), {"id": "1", "tags": ["O"] * 5}, {"id": "0", "tags": ["B-PER", None, None, "O", "O"]}
    )
    message = (
        "quorate: known labels contradict one another: document '0', token 1: 'O' in a.jsonl:1, 'B-PER' in b.jsonl:2 "
        "(correct one of the two, or make it null)\n"
    )
    for command in (("aggregate",), ("report", "-o", "out.html")):
        assert run(*command, crowd, "--known", "a.jsonl", "--known", "b.jsonl") == (2, "", message)
    written(crowd.with_name("twice.jsonl"), *({"id": "0", "tags": [tag] * 5} for tag in ("O", "B-PER")))
    code, _, err = run("aggregate", crowd, "--known", "twice.jsonl")
    assert code == 2
    assert "document '0', token 5: 'O' in twice.jsonl:1, 'B-PER' in twice.jsonl:2" in err


def test_gold_in_the_input_counts_beside_files(run: Run, tmp_path: Path) -> None:
    documents = [{"id": str(n), "tokens": ADA, "annotations": CROWD} for n in range(3)]
    crowd = written(tmp_path / "gold.jsonl", documents[0] | {"gold": ["O"] * 5}, *documents[1:])
    written(tmp_path / "a.jsonl", {"id": "1", "tags": ["O"] * 5})
    code, out, _ = run("aggregate", crowd, "--known", "inline", "--known", "a.jsonl", "--method", "mv", "-q")
    assert code == 0
    assert [json.loads(line)["tags"][0] for line in out.splitlines()] == ["O", "O", "B-PER"]
    written(tmp_path / "a.jsonl", {"id": "0", "tags": ["B-PER", *["O"] * 4]})
    code, _, err = run("aggregate", crowd, "--known", "inline", "--known", "a.jsonl")
    assert code == 2
    assert "token 1: 'O' in gold.jsonl:1: document '0', 'B-PER' in a.jsonl:1" in err.replace(f"{tmp_path}/", "")
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
