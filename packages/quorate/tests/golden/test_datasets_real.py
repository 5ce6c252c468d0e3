"""The real archives, converted and compared with the reference files document for document."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from quorate.datasets import convert

DATA = Path(__file__).resolve().parents[4].parent / "shared" / "data"
ARCHIVES = {"ner": "crf-ma-NER-task1.zip", "pico": "PICO-data.tar.gz"}
NOTES = {
    "ner": {
        "1 article that no worker tagged was left out",
        "2,846 tags written onto a token ('Paris/LOC') in workers' files were taken off; the tag column counts",
        "844 worker files have another number of lines than the expert's and were aligned by their characters",
        "1,953 tokens that a worker had split were put together; the tag of the last piece counts",
        "1,237 labels without a token in workers' files were left out",
        "13 tags written onto a token in the expert's files were taken off; the tag column counts",
        "46 tokens have no counterpart in a worker's file and are null there",
        "126 lines of workers' files have no counterpart in the expert's tokens and were left out",
    },
    "pico": {
        "27 spans of professionals that touched or overlapped the one before them were joined to it",
        "128 spans of workers overlapped an earlier one of the same worker: a new span begins where they begin",
        "9 spans that began or ended inside a token were widened to whole tokens",
    },
}


class Reference(msgspec.Struct):
    id: str
    tokens: tuple[str, ...]
    annotations: dict[str, tuple[str | None, ...]]
    gold: tuple[str, ...] | None
    split: str | None
    source: str | None = None


@pytest.mark.realdata
@pytest.mark.parametrize("name", ARCHIVES)
def test_every_document_is_that_of_the_reference(name: str) -> None:
    archive, reference = DATA / "raw" / ARCHIVES[name], DATA / f"{name}.jsonl.gz"
    if not (archive.is_file() and reference.is_file()):
        pytest.skip(f"the real data are not there: {archive} and {reference} are needed")
    corpus = convert(name, archive)
    with gzip.open(reference) as lines:
        for document, line in zip(corpus, lines, strict=True):
            expected = msgspec.json.decode(line, type=Reference)
            assert document.id == expected.id
            assert document.tokens == expected.tokens
            assert list(document.annotations) == list(expected.annotations)
            assert document.annotations == expected.annotations
            assert document.gold == expected.gold
            assert document.split == expected.split
            if expected.source is not None:  # the folder in the archive
                assert document.source is not None
                assert f"annotations/{expected.source}/" in document.source.path
    assert set(corpus.notes) == NOTES[name]
