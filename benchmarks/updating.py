"""How long ``model.update`` takes for one new document on the NER crowd: ``python benchmarks/updating.py``.

``python benchmarks/updating.py files`` has the model files of NER and PICO: how large they are without documents and
with them, and how long they take to be saved, loaded, and updated with 60 documents to the whole consensus.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import options
import quorate
from common import bsc_seq
from quorate import Corpus

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
NEW = 60  # documents of an update


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("what", nargs="?", choices=("documents", "files"), default="documents")
    if parser.parse_args().what == "files":
        for crowd in ("ner", "pico"):
            files(crowd)
    else:
        one_document()


def files(crowd: str) -> None:
    """The files of a model of all but a few documents, and the update with those."""
    documents = quorate.read(DATA / f"{crowd}.jsonl.gz").documents
    model = bsc_seq(spans=True).fit(Corpus(documents[NEW:]))
    with tempfile.TemporaryDirectory() as folder:
        path, bare = Path(folder, "model.quorate"), Path(folder, "bare.quorate")
        model.save(bare, documents=False)
        began = time.perf_counter()
        model.save(path)
        saved = time.perf_counter()
        loaded = quorate.load(path)
        there = time.perf_counter()
        assert isinstance(loaded, quorate.BSC)
        spans = loaded.update(Corpus(documents[:NEW])).result_.n_spans
        done = time.perf_counter()
        sizes = " ".join(f"{file.stat().st_size / 1e6:.1f} MB" for file in (bare, path))
    print(
        f"{crowd}: {sizes} (with documents); saved in {saved - began:.1f} s, loaded in {there - saved:.2f} s, ", end=""
    )
    print(f"updated with {NEW} documents in {done - there:.1f} s ({spans:,} spans)")


def one_document() -> None:
    """An update with one document at a time."""
    corpus = quorate.read(DATA / "ner.jsonl.gz")
    documents = corpus.documents
    began = time.perf_counter()
    model = bsc_seq().fit(corpus)
    print(f"a fit from scratch: {time.perf_counter() - began:.2f} s")
    model.update(Corpus([replace(documents[0], id="first")]))  # compiled code is loaded
    times, work = [], []
    for number in range(20):
        began, worked = time.perf_counter(), time.process_time()
        model.update(Corpus([replace(documents[number], id=f"new {number}")]))
        times.append(time.perf_counter() - began)
        work.append(time.process_time() - worked)
    print(f"an update with one new document: {1000 * min(times):.0f} ms ({1000 * min(work):.0f} ms of one core)")


if __name__ == "__main__":
    main()
