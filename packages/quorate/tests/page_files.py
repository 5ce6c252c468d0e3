"""Files that pages of the docs take for granted: those that they name, and do not make."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import quorate
from quorate import Corpus

__all__ = ["FILES", "OF_ONE_PAGE", "SAMPLE", "crowd"]

EXAMPLES = Path(__file__).resolve().parent / "examples"
SMALL = 60
"""Documents of the sample that a page gets which does not write the whole of it by itself."""


SAMPLE = tuple(quorate.sample())


def crowd() -> Corpus:
    """A part of the sample, in two splits."""
    return Corpus([replace(one, split="dev" if n % 2 else "test") for n, one in enumerate(SAMPLE[:SMALL])])


def renamed(first: int, last: int) -> Corpus:
    """Documents of the sample as new ones, without gold."""
    return Corpus([replace(one, id=f"new-{one.id}", gold=None) for one in SAMPLE[first:last]])


def example(name: str) -> Callable[[Path], object]:
    source = EXAMPLES / name
    return lambda path: shutil.copytree(source, path) if source.is_dir() else shutil.copy(source, path)


def written(make: Callable[[], Corpus]) -> Callable[[Path], object]:
    return lambda path: quorate.formats.write(make(), path)


def archive_of(folder: str, names: dict[str, str]) -> Callable[[Path], object]:
    """A zip with files of an example folder under other names."""

    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, file in names.items():
                archive.write(EXAMPLES / folder / file, name)

    return make


def reviewed(reviewer: str, first: int, last: int) -> Callable[[Path], object]:
    """A review: some documents of the sample with their gold."""

    def make(path: Path) -> None:
        lines = [
            {"id": one.id, "tokens": one.tokens, "tags": one.gold, "reviewer": reviewer} for one in SAMPLE[first:last]
        ]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    return make


def nested(path: Path) -> None:
    """Spans in spans: a place in the name of an organisation."""
    whole, inner = {"start": 0, "end": 12, "label": "ORG"}, {"start": 0, "end": 4, "label": "LOC"}
    said = {"ann": [whole, inner], "bob": [whole, inner], "cat": [whole]}
    line = {"text": "Bath Theatre opened.", "annotations": said, "gold": [whole, inner]}
    path.write_text("".join(f"{json.dumps({'id': str(n), **line})}\n" for n in range(1, 7)), encoding="utf-8")


def dataset(path: Path) -> None:
    """A saved dataset of Hugging Face with the tags of two annotators."""
    import datasets

    rows = {"tokens": [["Ada", "sang"]], "annotators": [["ann", "bob"]]}
    tags = {"crowd_tags": [[["B-PER", "O"], ["B-PER", "O"]]]}
    datasets.Dataset.from_dict({**rows, **tags}).save_to_disk(str(path))


INCEPTION = {
    "exportedproject.json": "letter.json",
    "annotation/1/ann.json": "letter.json",
    "annotation/1/bob.json": "letter.json",
    "curation/1/CURATION_USER.json": "letter.json",
}
"""The files of an export of a whole project."""

FILES: dict[str, Callable[[Path], object]] = {
    "ann.jsonl": reviewed("ann", 0, 10),
    "answers.jsonl": example("llm.jsonl"),
    "bob.jsonl": reviewed("bob", 5, 15),
    "checked.jsonl": reviewed("ann", 0, 10),
    "crowd.jsonl": written(crowd),
    "crowd.spacy": written(crowd),
    "data/letters": example("brat"),
    "export.json": example("label-studio.json"),
    "exports/ann.jsonl": example("doccano/ann.jsonl"),
    "exports/bob.jsonl": example("doccano/bob.jsonl"),
    "export.zip": archive_of("doccano", {"ann.jsonl": "ann.jsonl", "bob.jsonl": "bob.jsonl"}),
    "labels.csv": example("table.csv"),
    "mace.csv": example("mace.csv"),
    "nested.jsonl": nested,
    "new.jsonl": written(lambda: renamed(60, 80)),
    "news.json": example("argilla.json"),
    "news.jsonl": example("prodigy.jsonl"),
    "people.jsonl": written(crowd),
    "project-1.json": example("label-studio.json"),
    "project.zip": archive_of("cas", INCEPTION),
    "review.jsonl": reviewed("ann", 0, 10),
    "sheet.csv": example("sheet.csv"),
    "shards/": lambda path: quorate.formats.write(crowd(), path / "first.jsonl"),
    "today.jsonl": written(lambda: renamed(80, 90)),
    "workers.manifest": example("sagemaker.manifest"),
}
"""What a page may take for granted: files that it names and does not make."""

OF_ONE_PAGE: dict[str, dict[str, Callable[[Path], object]]] = {"hugging-face": {"crowd": dataset}}
"""The same, of one page alone."""
