"""The live consensus of ``quorate serve``: ``python benchmarks/service.py [live] [replay] [large]``.

``live`` loads the NER crowd into a service on SQLite, then saves one label after another over HTTP, and measures how
long it takes from the acknowledgement of a save until the stream of news tells of it and its row is there. ``replay``
lets the 47 annotators of the NER crowd save all their labels over HTTP, then compares the consensus that the worker
fits with that of ``quorate aggregate`` on an export of what they saved (in the crowd's own file some annotators did not
see some tokens, which a save cannot say). ``large`` fits 2 million labels (tokens × annotators; five times the NER
crowd) from what the worker has in memory, then updates single documents. Each needs the NER crowd beside the checkout
(../shared/data).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import Connection, func, insert, select

import core
import options
import quorate
from quorate.corpus.records import Corpus, Document, hard_tags
from quorate.formats import write
from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.documents import add_document, spans_of_tags
from quorate_serve.exporting import annotations_of
from quorate_serve.importing import import_corpus
from quorate_serve.live.collected import Collected, Entry
from quorate_serve.live.fitting import combine, fit, rows_of
from quorate_serve.live.summary import summary_of
from quorate_serve.live.worker import Follower
from quorate_serve.people import Role, add_person
from quorate_serve.sessions import make_token
from quorate_serve.settings import ServiceSettings
from quorate_serve.supervisor import listen, supervise

CROWD = core.DATA / "ner.jsonl.gz"
PARTS = ("live", "replay", "large")
SAVES = 60
TIMES_NER = 5


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("parts", metavar="PART", nargs="*", choices=[*PARTS, "all"], default="all")
    wanted = parser.parse_args().parts
    if not CROWD.exists():
        print(f"ner: not found in {core.DATA}, skipped")
        return
    for name in PARTS if "all" in wanted else wanted:
        with tempfile.TemporaryDirectory(prefix="quorate-service-") as folder:
            {"live": live, "replay": replay, "large": large}[name](Path(folder))


def live(folder: Path) -> None:
    """From the acknowledgement of a save to its row and its tick."""
    settings, corpus = ServiceSettings(folder, port=_free_port()), quorate.read(CROWD)
    database = Database.open(settings.database)
    found = import_corpus(database, settings.secret(), corpus)
    print(f"live: {found.documents:,} documents, {found.labels:,} labels by {found.annotators:,} annotators loaded")
    token, person = _somebody(database, settings, "Ada", Role.ADMIN)
    rows = corpus.documents[:: len(corpus) // SAVES][:SAVES]
    numbers = _numbers(database)
    database.change(lambda connection: _lend(connection, [(numbers[one.id], person) for one in rows]))
    heard: dict[int, float] = {}
    with _served(settings) as address, httpx.Client(base_url=address, headers=token) as client:
        threading.Thread(target=_hear, args=(address, token, heard), daemon=True).start()
        _wait_for_fit(database)
        ticks, visible, acknowledged = [], [], []
        for document in rows:
            number = numbers[document.id]
            spans = _spans(database, number, next(iter(document.annotations.values())))
            heard.pop(number, None)
            began = time.perf_counter()
            save = {"id": uuid.uuid4().hex, "document": number, "spans": spans}
            client.post("/api/v1/annotations", json=save).raise_for_status()
            saved = time.perf_counter()
            while number not in heard:
                time.sleep(0.005)
                if time.perf_counter() - saved > 30:
                    raise SystemExit(f"live: no tick for document {number}")
            row = client.get(f"/api/v1/consensus/{number}").raise_for_status().json()
            assert row["labels"] == len(document.annotations) + 1
            acknowledged.append(saved - began)
            ticks.append(heard[number] - saved)
            visible.append(time.perf_counter() - saved)
            time.sleep(0.2)
    for what, seconds in (("acknowledged", acknowledged), ("told by the stream", ticks), ("read", visible)):
        print(f"live: {what} after {_spread(seconds)}")
    database.close()


def replay(folder: Path) -> None:
    """All labels of the NER crowd saved over HTTP by its annotators; the consensus is that of the command line."""
    settings, corpus = ServiceSettings(folder, port=_free_port()), quorate.read(CROWD)
    database = Database.open(settings.database)
    people = {name: _somebody(database, settings, name, Role.ANNOTATOR) for name in corpus.annotators}
    database.change(lambda connection: [add_document(connection, _bare(one)) for one in corpus])
    numbers = _numbers(database)
    pairs = [(numbers[one.id], people[name][1]) for one in corpus for name in one.annotations]
    database.change(lambda connection: _lend(connection, pairs))
    with database.read() as connection:
        places = {row.number: row.tokens for row in connection.execute(select(tables.documents))}
    began = time.perf_counter()
    with _served(settings) as address, ThreadPoolExecutor(len(people)) as pool:

        def work(name: str) -> int:
            own = [one for one in corpus if name in one.annotations]
            with httpx.Client(base_url=address, headers=people[name][0], timeout=60) as client:
                for one in own:
                    spans = spans_of_tags(hard_tags(one.annotations[name]), places[numbers[one.id]])
                    save = {"id": uuid.uuid4().hex, "document": numbers[one.id], "spans": spans}
                    client.post("/api/v1/annotations", json=save).raise_for_status()
            return len(own)

        saved = sum(pool.map(work, people))
    seconds = time.perf_counter() - began
    print(f"replay: {saved:,} saves by {len(people)} annotators in {seconds:.0f} s ({saved / seconds:.0f} a second)")
    with database.read() as connection:
        versions = connection.execute(select(func.count()).select_from(tables.snapshots)).scalar_one()
    print(f"replay: meanwhile the worker gave out {versions:,} versions")
    Follower(settings, database).refit()
    with database.read() as connection:
        exported = annotations_of(connection, names=True)
    assert isinstance(exported, Corpus)
    write(exported, folder / "export.jsonl")
    subprocess.run(
        [sys.executable, "-m", "quorate", "aggregate", "export.jsonl", "-o", "out.jsonl"],
        check=True,
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with database.read() as connection:
        rows = {row.document: row.spans for row in connection.execute(select(tables.consensus))}
    lines = [json.loads(line) for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    same = sum(
        [(span["start"], span["end"], span["label"]) for span in rows[numbers[line["id"]]]]
        == [
            (span["start"], span["end"], span["label"])
            for span in spans_of_tags(line["tags"], places[numbers[line["id"]]])
        ]
        for line in lines
    )
    print(f"replay: the consensus is that of the command line on {same:,} of {len(lines):,} documents")
    database.close()


def large(folder: Path) -> None:
    """Two million labels: fits, then updates of single documents."""
    corpus = quorate.read(CROWD)
    documents = [replace(one, id=f"{one.id}/{n}") for n in range(TIMES_NER) for one in corpus]
    many = _collected(documents)
    labels = sum(len(one.tokens) * len(one.annotations) for one in documents)
    entries = many.telling()
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        fitted = fit(many.laid_out(entries), many.known(entries))
        result = fitted.model.result_
        rows, _ = rows_of(entries, result), summary_of(fitted, result)
        seconds.append(time.perf_counter() - began)
    print(f"large: {len(rows):,} documents, {labels:,} labels: fitted again in {_spread(seconds)}", flush=True)
    updates = []
    for entry in entries[:40]:
        tags = next(iter(entry.document.annotations.values()))
        changed = replace(entry.document, annotations={**entry.document.annotations, "somebody new": tags})
        one = [entry._replace(documents={"": changed})]
        began = time.perf_counter()
        fitted.model.update(many.laid_out(one), known=many.known(one))
        rows_of(one, combine(fitted.model, many.laid_out(one), many.known(one)))
        updates.append(time.perf_counter() - began)
    print(f"large: a document updated in {_spread(updates)}")


def _collected(documents: Any) -> Collected:
    """What the worker has in memory of a corpus."""
    collected = Collected()
    for number, one in enumerate(documents, 1):
        text, places, at = " ".join(one.tokens), [], 0
        for token in one.tokens:
            places.append((at, at + len(token)))
            at += len(token) + 1
        document = replace(one, gold=None, text=text, offsets=places)
        collected.entries[number] = Entry(number, "work", {"": document}, {})
        collected.labels += len(one.annotations)
    return collected


def _bare(document: Document) -> Document:
    return replace(document, annotations={}, gold=None)


def _somebody(database: Database, settings: ServiceSettings, name: str, role: Role) -> tuple[dict[str, str], str]:
    """Somebody with a token: the header of their requests, and their id."""

    def add(connection: Connection) -> tuple[str, str]:
        person = add_person(connection, settings.secret(), name, role=role)
        return make_token(connection, person, "benchmark", days=90)[1], person

    token, person = database.change(add)
    return {"Authorization": f"Bearer {token}"}, person


def _lend(connection: Connection, pairs: list[tuple[int, str]]) -> None:
    lease = {"purpose": "work", "state": "leased", "at": time.time(), "until": time.time() + 86_400}
    connection.execute(
        insert(tables.assignments), [{"document": number, "person": person, **lease} for number, person in pairs]
    )


def _numbers(database: Database) -> dict[str, int]:
    with database.read() as connection:
        rows = connection.execute(select(tables.documents.c.id, tables.documents.c.number))
        return {row.id: row.number for row in rows}


def _spans(database: Database, number: int, tags: Any) -> list[dict[str, Any]]:
    with database.read() as connection:
        query = select(tables.documents.c.tokens).where(tables.documents.c.number == number)
        return spans_of_tags(hard_tags(tags), connection.execute(query).scalar_one())


def _hear(address: str, token: dict[str, str], heard: dict[int, float]) -> None:
    """Note when the stream told of each document."""
    with httpx.stream("GET", f"{address}/api/v1/live", headers=token, timeout=None) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: ") and "changed" in line:
                for number in json.loads(line.removeprefix("data: "))["changed"] or ():
                    heard[number] = time.perf_counter()


def _wait_for_fit(database: Database) -> None:
    began = time.perf_counter()
    while time.perf_counter() - began < 900:
        with database.read() as connection:
            query = select(tables.snapshots.c.summary).where(tables.snapshots.c.kind == "refit")
            found = connection.execute(query.limit(1)).scalar()
        if found is not None:
            print(f"live: the first fit took {found['seconds']:.1f} s", flush=True)
            time.sleep(2)
            return
        time.sleep(0.5)
    raise SystemExit("live: no fit within 15 minutes")


@contextmanager
def _served(settings: ServiceSettings) -> Iterator[str]:
    """The service with all its processes."""
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(settings,))
    process.start()
    try:
        for _ in range(600):
            try:
                httpx.get(f"{settings.address}/api/v1/health").raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield settings.address
    finally:
        process.terminate()
        process.join(60)


def _serve(settings: ServiceSettings) -> None:
    supervise(settings, listen(settings))


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _spread(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return f"{statistics.median(ordered):.3f} s (median; 99th percentile {last:.3f}, longest {ordered[-1]:.3f})"


if __name__ == "__main__":
    main()
