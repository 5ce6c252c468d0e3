"""Whether anything is lost that a service acknowledged: ``python benchmarks/durability.py``.

Fifty people save through ``quorate serve`` and try again until they are answered, while its processes are killed with
SIGKILL at random moments: the one that answers, now and then the one that looks after it, and with ``--postgres`` the
processes of PostgreSQL. Afterwards everything that was acknowledged has to be in the database, once and in its order.

``python benchmarks/durability.py --kills 0 --rate 200 --seconds 60`` kills nothing and measures how long a save takes,
from the moment it was due, at 200 saves a second.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

import options

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "packages" / "quorate" / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "packages" / "quorate-serve" / "tests"))
from killing import LABELS, Kept, Served, Writer, kept_of, serving, writers_of
from quorate_serve.database.engine import Database
from quorate_serve.settings import ServiceSettings
from serving import PostgresServer, free_port, postgres_server

DOCUMENTS = 200
LONGEST = 0.5  # seconds between two kills, at most


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=1_000, help="how often something is killed")
    parser.add_argument("--writers", type=int, default=50, help="how many people save at once")
    parser.add_argument("--rate", type=float, default=100.0, help="saves a second of all of them together")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they save, if nothing is killed")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL, whose processes are killed too")
    parser.add_argument("--seed", type=int, default=0, help="of what is saved, and of when and what is killed")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quorate-durability-")))
        server = stack.enter_context(postgres_server(sync=True)) if given.postgres else None
        settings = ServiceSettings(folder, None if server is None else server.address, port=free_port(), labels=LABELS)
        writers = writers_of(settings, given.writers, DOCUMENTS, given.seed)
        served = stack.enter_context(serving(settings))
        killer = Killer(served, server, random.Random(given.seed))
        began = time.perf_counter()
        asyncio.run(run(writers, given.rate, given.seconds, killer, given.kills))
        taken = time.perf_counter() - began
        code = served.stop()
        database = Database.open(settings.database)
        kept = kept_of(database, writers)
        database.close()
    tell(writers, killer, kept, taken, code)


class Recovery(NamedTuple):
    """What was killed, and the seconds until a save was acknowledged again that was sent after it."""

    what: str
    seconds: float


class Killer:
    """Kills processes at random moments, also of a service that is only starting."""

    def __init__(self, served: Served, server: PostgresServer | None, chance: random.Random) -> None:
        self.served, self.server, self.random = served, server, chance
        self.kills: Counter[str] = Counter()
        self.recoveries: list[Recovery] = []
        self._last: int | None = None

    async def run(self, kills: int, writers: Sequence[Writer]) -> None:
        """Kill something so many times; whoever looks after a supervisor or a server starts it again."""
        while self.kills.total() < kills:
            await asyncio.sleep(self.random.uniform(0.0, LONGEST))
            what, kill = self._choice()
            began = time.perf_counter()
            if await kill():
                self.kills[what] += 1
                waits = asyncio.create_task(self._recovery(what, began, self.kills.total(), writers))
                if self.kills.total() == kills or self.random.random() < 0.8:
                    await waits
                if self.kills.total() % 50 == 0:
                    print(f"{self.kills.total():,} kills", flush=True)

    def _choice(self) -> tuple[str, Callable[[], Awaitable[bool]]]:
        lot = self.random.random()
        if lot < 0.02:
            return "supervisor", self._kill_supervisor
        if self.server is not None and lot < 0.1:
            return "postmaster", self._kill_postmaster
        if self.server is not None and lot < 0.4:
            return "process of PostgreSQL", self._kill_backend
        return "answering process", self._kill_answering

    async def _kill_answering(self) -> bool:
        killed = self.served.kill_answering(self._last)
        self._last = killed or self._last
        return killed is not None

    async def _kill_supervisor(self) -> bool:
        self.served.kill()
        await asyncio.to_thread(self.served.start)
        return True

    async def _kill_postmaster(self) -> bool:
        assert self.server is not None
        self.server.kill_and_start()  # here, as it would end with any other thread
        return True

    async def _kill_backend(self) -> bool:
        assert self.server is not None
        return self.server.kill_one(self.random)

    async def _recovery(self, what: str, began: float, number: int, writers: Sequence[Writer]) -> None:
        killed = time.perf_counter()
        while not any(writer.answered_at > killed for writer in writers):
            if self.kills.total() > number:
                return  # something was killed again before
            await asyncio.sleep(0.002)
        self.recoveries.append(Recovery(what, time.perf_counter() - began))


async def run(writers: Sequence[Writer], rate: float, seconds: float, killer: Killer, kills: int) -> None:
    """All of them save, each at moments of their own, until all is killed that is to be, or the time is over."""
    stopping = asyncio.Event()
    tasks = [asyncio.create_task(writer.save_all(len(writers) / rate, stopping)) for writer in writers]
    if kills:
        await killer.run(kills, writers)
    else:
        await asyncio.sleep(seconds)
    stopping.set()
    await asyncio.gather(*tasks)


def tell(writers: Sequence[Writer], killer: Killer, kept: Kept, taken: float, code: int) -> None:
    """Print what was found."""
    attempts = sum(writer.attempts for writer in writers)
    print(f"{len(writers)} writers, {taken:.0f} s: {kept.acknowledged:,} saves acknowledged, sent {attempts:,} times")
    print(f"lost {kept.lost}, duplicates {kept.duplicates}; the service ended with exit code {code}")
    for what, count in sorted(killer.kills.items()):
        print(f"{count:,} times killed: {what}; answered again after {figures(killer.recoveries, what)}")
    times = np.array([save.seconds for writer in writers for save in writer.acknowledged]) * 1000
    shown = ", ".join(f"p{share} {np.percentile(times, share):.1f}" for share in (50, 95, 99))
    print(f"a save took, in ms from when it was due: {shown}, at most {times.max():.1f}")


def figures(recoveries: Sequence[Recovery], what: str) -> str:
    """How long it took, of those after which nothing else was killed at once."""
    times = np.array([one.seconds for one in recoveries if one.what == what]) * 1000
    if not len(times):
        return "(killed again before)"
    middle, late = np.percentile(times, (50, 99))
    return f"{middle:.0f} ms (median), {late:.0f} ms (p99), {times.max():.0f} ms (at most) of {len(times):,}"


if __name__ == "__main__":
    main()
