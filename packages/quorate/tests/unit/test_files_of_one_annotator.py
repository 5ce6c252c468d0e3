"""A file for each annotator: what names nobody is refused, and what has other numbers is joined by its text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import quorate
from quorate import InputError
from quorate.storage.corpora import encode_files

TEXTS = ["Ada sang", "Bo slept", "yes", "Cy ran to Rome", "yes", "Dee left"]


def conll(path: Path, numbers: Sequence[int], *, ids: bool = False, tag: str = "B-PER") -> Path:
    lines = []
    for place, number in enumerate(numbers, 1):
        first, *rest = TEXTS[number].split()
        head = f"# sent_id = {place}\n" if ids else ""
        lines.append(head + f"{first} {tag}\n" + "".join(f"{word} O\n" for word in rest))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def seen(corpus: quorate.Corpus) -> list[tuple[str, list[str]]]:
    return [(" ".join(document.tokens), list(document.annotations)) for document in corpus]


@pytest.mark.parametrize("ids", [False, True])
def test_missing_sentences_and_other_numbers_are_joined_by_text(tmp_path: Path, ids: bool) -> None:
    files = [
        conll(tmp_path / "ann.conll", [0, 1, 2, 3, 4, 5], ids=ids),
        conll(tmp_path / "bob.conll", [1, 3, 4, 5], ids=ids),
        conll(tmp_path / "cho.conll", [0, 2, 3, 4, 5], ids=ids),
    ]
    corpus = quorate.read(*files, annotator_from="filename")
    everybody = ["ann", "bob", "cho"]
    assert seen(corpus) == [
        ("Ada sang", ["ann", "cho"]),
        ("Bo slept", ["ann", "bob"]),
        ("yes", ["ann", "cho"]),
        ("Cy ran to Rome", everybody),
        ("yes", everybody),
        ("Dee left", everybody),
    ]
    assert corpus.notes == (
        "ids do not fit from file to file: 8 documents were joined by text, and 0 documents have a text that one file "
        "alone has",
    )


def test_the_first_file_may_be_the_one_that_misses_something(tmp_path: Path) -> None:
    files = [conll(tmp_path / "ann.conll", [1, 3]), conll(tmp_path / "bob.conll", [0, 1, 3, 5])]
    corpus = quorate.read(*files, annotator_from="filename")
    assert dict(seen(corpus)) == {
        "Bo slept": ["ann", "bob"],
        "Cy ran to Rome": ["ann", "bob"],
        "Ada sang": ["bob"],
        "Dee left": ["bob"],
    }
    assert len({document.id for document in corpus}) == 4
    assert corpus.notes == (
        "ids do not fit from file to file: 2 documents were joined by text, and 2 documents have a text that one file "
        "alone has",
    )


def test_ids_that_fit_are_believed(tmp_path: Path) -> None:
    for name, ids in (("ann", "abc"), ("bob", "abd")):
        lines = [{"id": one, "text": "yes", "label": [[0, 3, "X"]]} for one in ids]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    corpus = quorate.read(tmp_path, annotator_from="filename")
    assert [document.id for document in corpus] == ["a", "b", "c", "d"]


def test_an_id_with_another_text_is_refused_where_ids_fit(tmp_path: Path) -> None:
    for name, texts in (("ann", ["one", "two", "three"]), ("bob", ["one", "two", "four"])):
        lines = [{"id": n, "text": text, "label": []} for n, text in enumerate(texts)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match="another text than that of the same document elsewhere"):
        quorate.read(tmp_path, annotator_from="filename")


def test_offsets_stay_those_of_each_file(tmp_path: Path) -> None:
    """An emoji, a Windows line end and a combining mark stand before the span."""
    text = "👋\r\ne\u0301 Ada"
    start = text.index("Ada")
    for name, ids in (("ann", [7, 8]), ("bob", [1, 2])):
        lines = [
            {"id": n, "text": t, "label": [[start, start + 3, "X"]]}
            for n, t in zip(ids, (text, text + "!"), strict=True)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    corpus = quorate.read(tmp_path, annotator_from="filename", offsets="code-points")
    assert seen(corpus) == [("👋 e\u0301 Ada", ["ann", "bob"]), ("👋 e\u0301 Ada !", ["ann", "bob"])]
    assert corpus[0].annotations["bob"] == ("O", "O", "B-X")


@pytest.mark.parametrize("ids", [False, True])
def test_without_the_option_the_same_texts_are_refused(tmp_path: Path, ids: bool) -> None:
    conll(tmp_path / "ann.conll", [0, 1, 2, 3, 4, 5], ids=ids)
    conll(tmp_path / "bob.conll", [0, 1, 2, 3, 4, 5], ids=ids, tag="O")
    with pytest.raises(InputError, match="--annotator-from filename"):
        quorate.read(tmp_path)
    conll(tmp_path / "bob.conll", [1, 3, 4, 5], tag="O")
    conll(tmp_path / "ann.conll", [0, 1, 2, 3, 4, 5])
    with pytest.raises(InputError, match=r"2 files have the same texts.*--annotator-from filename"):
        quorate.read(tmp_path)


def test_files_of_annotators_who_saw_a_part_each_are_refused(tmp_path: Path) -> None:
    """Each sentence was seen by two of four annotators, so that a file shares but a third with each other one."""
    for place, name in enumerate(("ann", "bob", "cho", "dee")):
        rows = [
            "".join(f"{word} O\n" for word in f"this is sentence {number} of them all".split())
            for number in range(48)
            if place in (number % 4, number // 4 % 4)
        ]
        (tmp_path / f"{name}.conll").write_text("\n".join(rows))
    with pytest.raises(InputError, match="--annotator-from filename"):
        quorate.read(tmp_path)


def test_two_files_of_many_with_the_same_text_are_only_noted(tmp_path: Path) -> None:
    for number, text in enumerate(["Ada sang", "Bo slept", "Cy ran", "Dee left", "Eve won", "Ada sang"]):
        first, second = text.split()
        (tmp_path / f"{number}.conll").write_text(f"{first} B-PER\n{second} O\n")
    (told,) = quorate.read(tmp_path).notes
    assert told.startswith("2 files have the same texts")


def test_they_are_refused_where_they_are_encoded_one_by_one(tmp_path: Path) -> None:
    files = [conll(tmp_path / f"{name}.conll", [0, 1, 2, 3]) for name in ("ann", "bob")]
    with pytest.raises(InputError, match=r"2 files have the same texts.*--annotator-from filename"):
        encode_files(*files, output=tmp_path / "c.qr")
    assert not (tmp_path / "c.qr").exists()
    encode_files(*files, output=tmp_path / "c.qr", annotator_from="filename")
    assert seen(quorate.read(tmp_path / "c.qr"))[0] == ("Ada sang", ["ann", "bob"])
