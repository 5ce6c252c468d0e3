"""A large Label Studio export: how long it takes to read, and how much memory. ``python benchmarks/formats.py``."""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import options

MOST_SECONDS, MOST_BYTES = 60.0, 1 << 30
WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "was",
    "for",
    "on",
    "that",
    "with",
    "as",
    "by",
    "at",
    "from",
    "it",
    "his",
]
NAMES = ("Ada Lovelace", "Port Ellery", "Crane Brothers", "Ottilie Crane", "Bergen", "Halden Observatory", "Ida Lind")


def task(rng: random.Random, number: int) -> dict[str, object]:
    """A paragraph with names in it, which three of forty people marked."""
    pieces: list[str] = []
    spans: list[tuple[int, int, str]] = []
    length = 0
    for _ in range(rng.randint(60, 200)):
        plain = rng.choice(WORDS) + (str(rng.randint(0, 999)) if rng.random() < 0.1 else "")
        word = rng.choice(NAMES) if rng.random() < 0.06 else plain
        if " " in word or word[0].isupper():
            spans.append((length, length + len(word), word))
        pieces.append(word)
        length += len(word) + 1
    annotations: list[dict[str, object]] = []
    for person in rng.sample(range(40), 3):
        result = [
            {
                "id": f"r{number}-{person}-{start}",
                "from_name": "label",
                "to_name": "text",
                "type": "labels",
                "origin": "manual",
                "value": {"start": start, "end": end, "text": text, "labels": [rng.choice(("PER", "LOC", "ORG"))]},
            }
            for start, end, text in spans
            if rng.random() < 0.85
        ]
        annotations.append(
            {
                "id": 3 * number + len(annotations),
                "completed_by": person,
                "result": result,
                "was_cancelled": False,
                "ground_truth": False,
                "created_at": "2026-01-01T00:00:00.000000Z",
                "updated_at": "2026-01-01T00:00:00.000000Z",
                "draft_created_at": None,
                "lead_time": 12.5,
                "prediction": {},
                "result_count": len(result),
                "unique_id": f"{rng.getrandbits(128):032x}",
                "task": number,
                "project": 1,
            }
        )
    data = {"text": " ".join(pieces)}
    return {"id": number, "annotations": annotations, "drafts": [], "predictions": [], "data": data, "meta": {}}


def write_export(path: Path, size: int) -> int:
    rng = random.Random(2019)
    with path.open("w", encoding="utf-8") as stream:
        number = 0
        while stream.tell() < size:
            stream.write("[" if not number else ",")
            stream.write(json.dumps(task(rng, number)))
            number += 1
        stream.write("]")
    return number


def measure(path: str) -> None:
    """Read in a process of its own, so that the peak of memory is that of reading alone."""
    import quorate

    began, began_cpu = time.perf_counter(), time.process_time()
    corpus = quorate.read(path)
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak, "documents": len(corpus), "tokens": corpus.n_tokens})
    )


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(given.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "export.json")
        write_export(path, given.megabytes * 1_000_000)
        size = path.stat().st_size
        command = [sys.executable, __file__, "--measure", str(path)]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(f"Label Studio export of {size / 1e6:.0f} MB, {found['documents']:,} tasks, {found['tokens']:,} tokens:")
    print(f"{found['cpu']:.1f} s of one core ({found['seconds']:.1f} s by the clock), at most {MOST_SECONDS:.0f} s")
    print(f"peak {found['peak'] / (1 << 20):.0f} MiB, at most {MOST_BYTES / (1 << 20):.0f} MiB")
    if given.megabytes <= 200 and (found["cpu"] > MOST_SECONDS or found["peak"] > MOST_BYTES):
        sys.exit("too slow, or too much memory")


if __name__ == "__main__":
    main()
