"""What damaged or careless files say of themselves: repeated keys, bytes that are no text, and how long they take."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import quorate
from quorate import Corpus, InputError
from quorate.corpus.tags import Scheme, TagSet


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"tokens": ["a"], "annotations": {"ann": ["O"], "bob": ["O"], "ann": ["B-X"]}}', "'ann' is in it twice"),
        ('{"tokens": ["a"], "annotations": {"Zoë": ["O"], "Zo\\u00eb": ["B-X"]}}', "'Zoë' is in it twice"),
        ('{"tokens": ["a"], "annotations": {"ann": ["O"]}, "annotations": {"bob": ["O"]}}', "'annotations' is in it"),
        ('{"text": "a", "annotations": {"ann": []}, "gold": [], "gold": []}', "'gold' is in it twice"),
    ],
)
def test_a_repeated_key_is_refused(tmp_path: Path, line: str, told: str) -> None:
    good = '{"tokens": ["a"], "annotations": {"ann": ["O"]}}'
    (tmp_path / "a.jsonl").write_text(f"{good}\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"a.jsonl:2: {told}"):
        quorate.read(tmp_path / "a.jsonl")


def test_a_key_that_only_looks_repeated_is_none(tmp_path: Path) -> None:
    profile = '"profiles": {"ann": {"kind": "expert"}}'
    line = f'{{"text": "\\"ann\\"", "tokens": ["ann"], "annotations": {{"ann": ["ann"], "gold": ["text"]}}, {profile}}}'
    (tmp_path / "a.jsonl").write_text(line)
    assert list(quorate.read(tmp_path / "a.jsonl")[0].annotations) == ["ann", "gold"]


def test_one_of_very_many_annotators_twice(tmp_path: Path) -> None:
    names = [f"w{number}" for number in range(2000)]
    said = ", ".join(f'"{name}": ["O"]' for name in [*names, "w7"])
    (tmp_path / "a.jsonl").write_text(f'{{"tokens": ["a"], "annotations": {{{said}}}}}')
    with pytest.raises(InputError, match="'w7' is in it twice"):
        quorate.read(tmp_path / "a.jsonl")


def test_unknown_keys_are_told_once_with_what_may_be_meant(tmp_path: Path) -> None:
    lines = [{"id": n, "tokens": ["a"], "annotations": {"ann": ["O"]}, "url": "x", "splt": "dev"} for n in range(3)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, [*lines, {**lines[0], "id": 9, "goldd": ["O"]}])))
    corpus = quorate.read(tmp_path / "a.jsonl")
    assert corpus.notes == ("keys that are not read: goldd (did you mean gold?), splt (did you mean split?), url",)
    assert corpus[0].split is None


def test_what_is_written_here_has_no_unknown_keys(tmp_path: Path) -> None:
    sample = Corpus(quorate.sample().documents[:10])
    quorate.formats.write(sample, tmp_path / "a.jsonl")
    assert quorate.read(tmp_path / "a.jsonl").notes == ()


def test_a_slip_for_all_annotations_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"tokens": ["a"], "annotation": {"ann": ["B-X"]}}')
    with pytest.raises(InputError, match="no document of it has 'annotations', but 'annotation'"):
        quorate.read(tmp_path / "a.jsonl")


FILES = {
    "a.jsonl": ('{"tokens": ["a"], "annotations": {"x": ["O"]}}', '{"tokens": ["Köln"], "annotations": {"x": ["O"]}}'),
    "a.conll": ("a O", "Köln O"),
    "a.csv": ("task,worker,label", "1,ann,Köln"),
    "sheet.csv": ("token,ann,bob", "Köln,B-X,B-X"),
    "mace.csv": ("O,O", "B-Köln,O"),
    "spans.csv": ("document,annotator,start,end,label,text", "1,ann,0,4,X,Köln"),
    "records.jsonl": (
        '{"text": "a", "annotator": "ann", "spans": []}',
        '{"text": "Köln", "annotator": "ann", "spans": []}',
    ),
    "doccano.jsonl": ('{"text": "a", "label": []}', '{"text": "Köln", "label": []}'),
}


@pytest.mark.parametrize("name", FILES)
def test_bytes_that_are_no_text_are_told_by_their_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes("\r\n".join(FILES[name]).encode("latin-1"))
    with pytest.raises(InputError, match=rf"{name}:2: not UTF-8 text \(save the file as UTF-8\)"):
        quorate.read(tmp_path / name)


def test_bytes_in_a_file_of_a_folder_are_told_by_their_line(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_bytes("Ada\nKöln".encode("latin-1"))
    (tmp_path / "1.ann").write_text("T1\tPER 0 3\tAda\n")
    with pytest.raises(InputError, match=r"1.txt:2: not UTF-8 text"):
        quorate.read(tmp_path)


def test_a_file_for_each_of_many_annotators_of_one_document(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "users.zip", "w") as archive:
        for number in range(1000):
            line = json.dumps({"id": 0, "text": "Ada sang", "label": [[0, 3, "PER"]]})
            archive.writestr(f"user{number}.jsonl", line)
    (document,) = quorate.read(tmp_path / "users.zip")
    assert len(document.annotations) == 1000


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.BIOES])
def test_what_may_follow_is_what_the_scheme_says(scheme: Scheme) -> None:
    tagset = TagSet.of_types(scheme, ["LOC", "ORG", "PER"])
    for before, row in zip(tagset.parts, tagset.allowed, strict=True):
        is_open = before[0] in ("B", "I")
        for after, may in zip(tagset.parts, row, strict=True):
            if after[0] in ("I", "E"):
                assert may == (is_open and before[1] == after[1])
            else:
                assert may == (scheme is Scheme.BIO or not is_open)


def test_thousands_of_types_are_no_matter_of_minutes() -> None:
    tagset = TagSet.of_types(Scheme.BIO, [f"T{number}" for number in range(3000)])
    assert np.count_nonzero(tagset.allowed[:, tagset.index["I-T7"]]) == 2
