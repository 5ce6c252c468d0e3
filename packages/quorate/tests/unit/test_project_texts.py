"""Texts that nobody has annotated: told from files of annotations, and put into a project by ``quorate init``."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import quorate
from quorate.cli import app
from quorate.errors import SettingsError
from quorate.project.settings_file import SettingsFile
from quorate.project.tables import with_values
from quorate.project.texts import Plain, as_jsonl, plain_texts


def init(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["init", *arguments])
    return done.exit_code, done.output + str(done.exception or "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b"Ada B-PER\nsang O\n\nBen B-PER\n"),
        ("a.txt", b'{"id": "1", "text": "Ada sang."}\n'),
        ("a.jsonl", b'{"id": "1", "text": "Ada sang."}\n'),
        ("a.csv", b"task,worker,label\n1,ann,PER\n"),
        ("a.csv", b"token,ann,ben\nAda,B-PER,O\nsang,O,O\n"),
        ("a.csv", b"id,ann,ben\n1,PER,O\n"),
        ("a.conll", b"Ada O\n"),
    ],
)
def test_files_of_annotations_are_left_to_their_readers(name: str, content: bytes) -> None:
    assert plain_texts(content, name) is None


def test_texts_come_back_as_they_were() -> None:
    given = "Zoë \u2028 said “hi”\n\n𝒳\tb\n".encode()
    texts = plain_texts(given, "notes.md", Plain.LINES)
    assert texts is not None
    assert [json.loads(line) for line in as_jsonl(texts).decode().split("\n")[:-1]] == [
        {"id": "notes-1", "text": "Zoë \u2028 said “hi”"},
        {"id": "notes-2", "text": "𝒳\tb"},
    ]


def test_a_project_of_texts_from_the_command_line(folder: Path) -> None:
    (folder / "news.txt").write_text("Ada sang in Bath.\nBen slept.\n")
    (folder / "how.md").write_text("# How\n")
    code, said = init("news.txt", "--labels", "PER,LOC", "--guidelines", "how.md", "--per-document-max", "3")
    assert code == 0, said
    assert "quorate serve" in said
    file = SettingsFile.read(folder / "quorate.toml")
    assert file.inputs == ("news.jsonl",)
    assert file.options["serve"] == {"labels": "PER,LOC", "guidelines": "how.md", "per-document-max": 3}
    assert [document.text for document in quorate.read("news.jsonl")] == ["Ada sang in Bath.", "Ben slept."]


def test_texts_without_labels_are_told_what_is_missing(folder: Path) -> None:
    (folder / "news.txt").write_text("Ada sang in Bath.\nBen slept.\n")
    (folder / "texts.jsonl").write_text('{"id": "1", "text": "Ada sang."}\n')
    for name in ("news.txt", "texts.jsonl"):
        code, said = init(name)
        assert code != 0
        assert "--labels PER,LOC" in said
    assert not (folder / "quorate.toml").exists()


@pytest.mark.parametrize(
    ("content", "expected"), [(b"\n \n", "no text in it"), (b"caf\xe9 au lait\n", "not UTF-8"), (None, "no such file")]
)
def test_what_is_no_text_leaves_nothing(folder: Path, content: bytes | None, expected: str) -> None:
    if content is not None:
        (folder / "a.txt").write_bytes(content)
    code, said = init("a.txt", "--labels", "PER")
    assert code != 0
    assert expected in said
    assert not list(folder.glob("*.jsonl"))
    assert not (folder / "quorate.toml").exists()


def test_a_table_is_changed_and_all_else_stays() -> None:
    text = (
        '# mine\ninputs = ["a.jsonl"]\n\n[serve] # told\nport = 1 # ours\nlabels = "A"\n\n# why\n'
        '["label-studio sync"]\nwatch = 5\nlabels = "X"\n'
    )
    changed = with_values(text, "serve", {"labels": 'B"ö', "colours": {"B x": "red"}, "port": None})
    assert changed == (
        '# mine\ninputs = ["a.jsonl"]\n\n[serve] # told\nlabels = "B\\"ö"\ncolours = { "B x" = "red" }\n\n# why\n'
        '["label-studio sync"]\nwatch = 5\nlabels = "X"\n'
    )
    assert tomllib.loads(changed)["serve"] == {"labels": 'B"ö', "colours": {"B x": "red"}}
    assert with_values("", "serve", {"port": 1}) == "[serve]\nport = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        'serve = { labels = "A" }\n',
        'serve.labels = "A"\n',
        '[serve]\ncolours = [\n  "a",\n]\n',
        '[serve]\ncolours.A = "red"\n',
    ],
)
def test_a_file_that_is_put_together_otherwise_is_not_changed(text: str) -> None:
    tomllib.loads(text)
    with pytest.raises(SettingsError, match="cannot be changed as it is written"):
        with_values(text, "serve", {"colours": {"A": "blue"}})
