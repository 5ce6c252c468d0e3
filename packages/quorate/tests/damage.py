"""Damage to bytes and to JSON, drawn from a generator; and a limit on the time that reading it may take."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STRANGE: list[Any] = [None, True, -1, 0, 10**30, 1.5, 1e308, "", "x", "\ud800", "👋", [], {}, [[]], {"a": {}}, [1, "2"]]
HARMFUL = [
    b"\x00",
    b"\xff\xfe",
    b"{",
    b"]",
    b'"',
    b"\\",
    b"\n\n",
    b"\t",
    b",",
    b"9" * 40,
    b"\xed\xa0\x80",
    b"NaN",
    b"<",
]


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if not data:
            break
        start = rng.randrange(len(data))
        length = min(rng.choice((1, 1, 2, 8, 50, 400)), len(data) - start)
        piece = bytes(data[start : start + length])
        match rng.randrange(6):
            case 0:
                data[start] ^= 1 << rng.randrange(8)
            case 1:
                del data[start : start + length]
            case 2:
                data[start:start] = piece * rng.choice((1, 2, 30))
            case 3:
                data[start : start + length] = rng.choice(HARMFUL)
            case 4:
                data = data[:start]
            case _:
                place = rng.randrange(len(data))
                data[place : place + length] = piece
    return bytes(data)


def damaged_json(rng: random.Random, value: Any) -> Any:
    """A copy with one value replaced, dropped, doubled, or moved under another key."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, inner in items:
            places.append((node, key))
            walk(inner)

    copy = json.loads(json.dumps(value))
    walk(copy)
    if not places:
        return rng.choice(STRANGE)
    node, key = rng.choice(places)
    match rng.randrange(5):
        case 0:
            del node[key]
        case 1 if isinstance(node, list):
            node.append(node[key])
        case 2 if isinstance(node, dict):
            node[rng.choice(("id", "text", "start", "label", "\x00", "%ID"))] = node.pop(key)
        case 3 if isinstance(node[key], int):
            node[key] += rng.choice((-5, -1, 1, 2, 100))
        case _:
            node[key] = rng.choice(STRANGE)
    return copy


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """A reader that hangs is as bad as one that falls over."""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"no answer in {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
