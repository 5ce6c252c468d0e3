"""Input from pipes that cannot seek, and output to links that lead nowhere."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import quorate
from quorate import Corpus, OutputError
from quorate.formats.jsonl import write_corpus
from running import Run


@pytest.fixture
def crowd(tmp_path: Path, sample: Corpus) -> Path:
    with (tmp_path / "crowd.jsonl").open("wb") as stream:
        write_corpus(Corpus(sample.documents[:60]), stream)
    return tmp_path / "crowd.jsonl"


@contextmanager
def piped(content: bytes, place: Path) -> Iterator[Path]:
    """A named pipe through which some bytes come, once: what <(…) and /dev/stdin are."""
    os.mkfifo(place)

    def pour() -> None:
        with place.open("wb") as stream:
            stream.write(content)

    writer = threading.Thread(target=pour, daemon=True)
    writer.start()
    yield place
    writer.join(timeout=10)
    place.unlink()


@pytest.mark.parametrize("packed", [False, True])
def test_annotations_and_known_labels_come_through_pipes(run: Run, crowd: Path, tmp_path: Path, packed: bool) -> None:
    content = gzip.compress(crowd.read_bytes()) if packed else crowd.read_bytes()
    assert run("aggregate", crowd, "--method", "mv", "-o", "plain.jsonl", "-q")[0] == 0
    with piped(content, tmp_path / "pipe") as pipe:
        code, _, err = run("aggregate", pipe, "--method", "mv", "-o", "out.jsonl", "--meta", "meta.json", "-q")
    assert (code, err) == (0, "")
    assert Path("out.jsonl").read_bytes() == Path("plain.jsonl").read_bytes()
    assert json.loads(Path("meta.json").read_text())["inputs"].keys() == {str(tmp_path / "pipe")}
    review = json.dumps({"id": "s001", "tags": ["O"] * len(quorate.sample()["s001"].tokens)}).encode()
    with piped(gzip.compress(review) if packed else review, tmp_path / "pipe") as pipe:
        code, _, err = run("aggregate", crowd, "--known", pipe, "--method", "mv", "-o", "out.jsonl", "-q")
    assert (code, err) == (0, "")
    assert set(json.loads(Path("out.jsonl").read_text().splitlines()[0])["tags"]) == {"O"}


@pytest.mark.parametrize(
    "command",
    [
        ("encode", "-o", "c.qr"),
        ("check",),
        ("agreement",),
        ("compare", "--methods", "mv"),
        ("next", "-n", 2),
        ("convert",),
    ],
)
def test_every_command_reads_from_a_pipe(run: Run, crowd: Path, tmp_path: Path, command: tuple[object, ...]) -> None:
    after = ["out.conll"] if command[0] == "convert" else []
    with piped(crowd.read_bytes(), tmp_path / "pipe") as pipe:
        code, _, err = run(*command, pipe, *after)
    assert code in ((0, 1) if command[0] == "check" else (0,)), err
    if command[0] == "encode":
        assert len(quorate.read("c.qr")) == 60


def test_a_consensus_and_its_gold_come_through_pipes(run: Run, crowd: Path, tmp_path: Path) -> None:
    run("aggregate", crowd, "--method", "mv", "-o", "out.jsonl", "-q")
    with (
        piped(Path("out.jsonl").read_bytes(), tmp_path / "one") as consensus,
        piped(crowd.read_bytes(), tmp_path / "two") as gold,
    ):
        code, out, err = run("evaluate", consensus, "--gold", gold)
    assert code == 0, err
    assert "60 documents" in out


@pytest.mark.parametrize("command", [("encode", "-", "-o", "c.qr"), ("convert", "-", "out.conll"), ("check", "-")])
def test_a_file_named_like_standard_input_does_not_stand_in_its_way(
    run: Run, crowd: Path, tmp_path: Path, command: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "-").write_text("no annotations")
    with crowd.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        code, _, err = run(*command)
    assert code in ((0, 1) if command[0] == "check" else (0,)), err
    assert "60 documents" in err or command[0] == "check"


def test_no_command_writes_over_what_it_reads(run: Run, crowd: Path, tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(crowd)
    before = crowd.read_bytes()
    message = "quorate: link.jsonl: this is an input, which would be lost (give another name)\n"
    for command in (
        ("convert", crowd, "link.jsonl"),
        ("encode", crowd, "-o", "link.jsonl"),
        ("tune", crowd, "-o", "link.jsonl"),
        ("tune", crowd, "--results", "link.jsonl"),
        ("datasets", "convert", "ner", crowd, "-o", "link.jsonl"),
    ):
        assert run(*command) == (2, "", message), command
    assert crowd.read_bytes() == before


def test_a_circle_of_links_as_output_is_one_line(run: Run, crowd: Path, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    message = "quorate: a: cannot be written: its symbolic links lead in a circle (give another name)\n"
    for command in (
        ("aggregate", crowd, "-o", "a"),
        ("aggregate", crowd, "-o", "out.jsonl", "--save", "a"),
        ("report", crowd, "-o", "a"),
        ("encode", crowd, "-o", "a"),
        ("convert", crowd, "a"),
        ("convert", crowd, "a", "--to", "brat"),
        ("next", crowd, "-o", "a"),
        ("demo", "--write", "a"),
    ):
        assert run(*command) == (2, "", message), command
    with pytest.raises(OutputError, match="lead in a circle"):
        quorate.aggregate(quorate.sample(), "mv").write(tmp_path / "a")
    code, _, err = run("aggregate", "a", "-o", "out.jsonl")
    assert code == 2
    assert err.count("\n") == 1
    assert "Too many levels of symbolic links" in err
    assert (tmp_path / "a").is_symlink()
