"""Damaged inputs for every reader: nothing but this package's own errors may come out.

A thousand for each by default, and ten thousand with ``make fuzz``, which CI runs.

The damage is drawn from a fixed seed: bytes flipped, pieces cut out, doubled or moved, values of JSON replaced.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from damage import damaged_bytes, damaged_json, limit
from quorate import QuorateError, formats
from quorate.formats import FORMATS
from quorate.formats.assemble import Assembly, Options
from quorate.formats.opened import Input

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TIMES = int(os.environ.get("QUORATE_DAMAGED_INPUTS", "1000"))


def read_bytes(name: str, content: bytes, source: str = "in") -> None:
    """Read as :func:`quorate.read` does, from memory, and make a corpus of it."""
    stream: io.BufferedReader = io.BufferedReader(io.BytesIO(content))
    assembly = Assembly(Options(layers=len(content) % 2 == 1))
    reader = FORMATS[name].load()
    documents = reader.read(Input(stream, source, 1, True), assembly.notes)
    assembly.add(documents, source, merge=FORMATS[name].merges)
    corpora = assembly.layers().values() if assembly.options.layers else [assembly.corpus()]
    for corpus in corpora:
        for document in corpus:
            document.check()


def inputs(content: bytes, times: int) -> Iterator[bytes]:
    rng = random.Random(2019)
    try:
        lines = [json.loads(content)]
    except ValueError:
        try:
            lines = [json.loads(line) for line in content.splitlines()]
        except ValueError:
            lines = []
    for _ in range(times):
        if lines and rng.random() < 0.5:
            changed = [damaged_json(rng, line) if rng.random() < 0.7 else line for line in lines]
            yield "\n".join(json.dumps(line) for line in changed).encode("utf-8", "surrogatepass")
        else:
            yield damaged_bytes(rng, content)


FILES = {
    "jsonl": "crowd.jsonl",
    "label-studio": "label-studio.json",
    "doccano": "doccano/ann.jsonl",
    "prodigy": "prodigy.jsonl",
    "argilla": "argilla.json",
    "llm": "llm.jsonl",
    "conll": "columns.conll",
    "mace": "mace.csv",
    "table": "table.csv",
    "sheet": "sheet.csv",
    "sagemaker": "sagemaker.manifest",
}


@pytest.mark.parametrize("name", FILES)
def test_damaged_text_gives_only_our_errors(name: str) -> None:
    refused = several_lines = 0
    with limit(300):
        for content in inputs((EXAMPLES / FILES[name]).read_bytes(), TIMES):
            try:
                read_bytes(name, content)
            except QuorateError as error:
                refused += 1
                several_lines += "\n" in str(error)
    assert not several_lines
    assert TIMES / 20 < refused < TIMES  # neither blind nor deaf


def test_damaged_brat_gives_only_our_errors(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    shutil.copy(EXAMPLES / "brat" / "ann" / "1.txt", tmp_path / "ann")
    place, content = tmp_path / "ann" / "1.ann", (EXAMPLES / "brat" / "ann" / "1.ann").read_bytes()
    refused = 0
    with limit(300):
        for damaged in inputs(content, TIMES):
            place.write_bytes(damaged)
            try:
                read_bytes("brat", b"", str(tmp_path / "ann"))
            except QuorateError:
                refused += 1
    assert TIMES / 20 < refused < TIMES


@pytest.mark.parametrize("name", ["cas", "spacy", "parquet", "huggingface", "doccano"])
def test_damaged_archives_give_only_our_errors(name: str, tmp_path: Path) -> None:
    refused = 0
    content = binary_example(name, tmp_path)
    with limit(300):
        for damaged in inputs(content, TIMES):
            try:
                read_bytes(name, damaged)
            except QuorateError:
                refused += 1
    assert TIMES / 20 < refused <= TIMES


def binary_example(name: str, folder: Path) -> bytes:
    if name == "cas":
        pytest.importorskip("cassis", reason="dkpro-cassis is not installed")
        return (EXAMPLES / "cas" / "letter.json").read_bytes()
    if name == "doccano":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.write(EXAMPLES / "doccano" / "ann.jsonl", "ann.jsonl")
        return packed.getvalue()
    pytest.importorskip({"spacy": "spacy"}.get(name, "pyarrow"), reason=f"what {name} needs is not installed")
    import quorate

    corpus = quorate.read(EXAMPLES / "crowd.jsonl")
    formats.write(corpus, folder / "in", "spacy" if name == "spacy" else "parquet")
    if name != "huggingface":
        return (folder / "in").read_bytes()
    import pyarrow
    from pyarrow import parquet

    table, sink = parquet.read_table(folder / "in"), io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
