"""JSON with a record for each annotator and document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate import Corpus, InputError

# An emoji, a combining mark, a letter beyond the basic plane, a Windows line end.
TEXT = "👋 Zoe\u0308 \U0001d400da\r\nsang"
START = TEXT.index("sang")


def read(path: Path, *given: object, array: bool = False, **options: Any) -> Corpus:
    lines = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in given]
    path.write_text(f"[{','.join(lines)}]" if array else "\n".join(lines), encoding="utf-8")
    return quorate.read(path, **options)


def record(annotator: str, *spans: object, key: str = "spans", **more: object) -> dict[str, object]:
    return {"id": "7", "text": TEXT, "annotator": annotator, key: list(spans), **more}


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("key", ["spans", "entities", "labels", "label", "annotations"])
def test_records_with_the_same_id_are_one_document(tmp_path: Path, key: str, array: bool) -> None:
    span = {"start": START, "end": START + 4, "label": "V", "text": "sang"}
    corpus = read(tmp_path / "all.json", record("ann", span, key=key), record("bob", key=key), array=array)
    assert len(corpus) == 1
    assert corpus["7"].tokens == ("👋", "Zoe\u0308", "\U0001d400da", "sang")
    assert corpus["7"].annotations == {"ann": ("O", "O", "O", "B-V"), "bob": ("O", "O", "O", "O")}


@pytest.mark.parametrize(
    ("unit", "start"),
    [
        ("code-points", START),
        ("utf-16", START + 2),
        ("utf-16-lf", START + 1),
        ("code-points-lf", START - 1),
    ],
)
def test_offsets_are_told_by_the_words_of_spans(tmp_path: Path, unit: str, start: int) -> None:
    span = {"start": start, "end": start + 4, "label": "V", "text": "sang"}
    document = read(tmp_path / "a.jsonl", record("ann", span))[0]
    assert document.annotations["ann"] == ("O", "O", "O", "B-V")
    assert document.unit == unit


@pytest.mark.parametrize(
    "span",
    [
        [0, 3, "PER"],
        {"start_offset": 0, "end_offset": 3, "label": "PER"},
        {"begin": 0, "end": 3, "type": "PER"},
        {"start": 0, "end": 3, "labels": ["PER"], "score": 1},
    ],
)
def test_spans_as_tools_write_them(tmp_path: Path, span: object) -> None:
    given = {"id": 1, "text": "Ada sang", "worker_id": 12, "entities": [span]}
    assert read(tmp_path / "a.jsonl", given)["1"].annotations == {"12": ("B-PER", "O")}


def test_entities_alone_are_those_of_the_file(tmp_path: Path) -> None:
    given = {"id": 1, "text": "Ada sang", "entities": [{"start": 0, "end": 3, "label": "PER"}]}
    assert read(tmp_path / "alice.jsonl", given)[0].annotations == {"alice": ("B-PER", "O")}
    doccano = {"id": 1, "text": "Ada sang", "entities": [{"start_offset": 0, "end_offset": 3, "label": "PER"}]}
    assert read(tmp_path / "bob.jsonl", doccano)[0].annotations == {"bob": ("B-PER", "O")}


def test_tags_of_an_annotator(tmp_path: Path) -> None:
    given = {"id": 1, "tokens": ["Ada", "sang"], "annotator": "ann", "tags": ["B-PER", None]}
    assert read(tmp_path / "a.jsonl", given)[0].annotations == {"ann": ("B-PER", None)}
    with pytest.raises(InputError, match="one for each of 2 tokens"):
        read(tmp_path / "a.jsonl", given | {"tags": ["O"]})


def test_a_text_is_given_once_and_ids_may_be_missing(tmp_path: Path) -> None:
    later = {"id": "7", "annotator": "bob", "spans": []}
    assert read(tmp_path / "a.jsonl", record("ann"), later)["7"].annotations.keys() == {"ann", "bob"}
    nameless = [{"text": "Ada", "annotator": name, "spans": [[0, 3, "PER"]]} for name in ("ann", "bob")]
    assert read(tmp_path / "a.jsonl", *nameless)[0].annotations == {"ann": ("B-PER",), "bob": ("B-PER",)}


def test_answers_of_several_models(tmp_path: Path) -> None:
    given = {"id": 1, "text": "Ada sang", "answers": {"llm-a": [{"text": "Ada", "label": "PER"}], "llm-b": "[]"}}
    corpus = read(tmp_path / "a.jsonl", given)
    assert corpus[0].annotations == {"llm-a": ("B-PER", "O"), "llm-b": ("O", "O")}
    assert {profile.kind for profile in corpus.profiles.values()} == {"model"}


def test_spans_that_name_nobody_may_be_a_consensus(tmp_path: Path) -> None:
    given = {"id": 1, "text": "Ada sang", "spans": [{"start": 0, "end": 3, "label": "PER"}]}
    with pytest.raises(InputError, match="if the file is one annotator's, say --from records"):
        read(tmp_path / "ann.jsonl", given)
    assert read(tmp_path / "ann.jsonl", given, format="records")[0].annotations == {"ann": ("B-PER", "O")}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (record("ann", {"start": 0, "label": "X"}), r"a.jsonl:1: span 1 is none: .*\(a span is"),
        (record("ann", [0, 3]), "span 1 is none"),
        (record(""), "'annotator' must be a name"),
        ({"id": 1, "text": "Ada", "annotator": "ann", "spans": None}, "no list of spans"),
        ({"id": 1, "annotator": "ann", "spans": []}, "neither 'text' nor 'tokens'"),
        ({"id": 1, "text": 3, "annotator": "ann", "spans": []}, "'text' must be a text in quotes"),
        (record("ann", [0, 99, "X"]), "ends after the text"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, given: object, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read(tmp_path / "a.jsonl", given)
