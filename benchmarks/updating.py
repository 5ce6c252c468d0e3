"""How long ``model.update`` takes for one new document on the NER crowd: ``python benchmarks/updating.py``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import options
import quorate
from quorate import Corpus

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "ner.jsonl.gz"


def main() -> None:
    options.parser_of(__doc__).parse_args()
    corpus = quorate.read(DATA)
    documents = corpus.documents
    began = time.perf_counter()
    model = quorate.BSC("seq", epsilon0=30.0, temper=0.6, max_iter=20).fit(corpus)
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
