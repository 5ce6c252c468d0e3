"""How often somebody may ask: token buckets in memory, one a kind of request and a person or address.

Each process counts for itself. What must hold over all of them, and over restarts, belongs in the database.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from ipaddress import IPv6Address, IPv6Network, ip_address
from math import ceil
from threading import Lock
from typing import NamedTuple

_MOST_BUCKETS = 100_000
_ROUNDING = 1e-6  # seconds: a wait as short as this is one of floating point alone


class Limit(NamedTuple):
    """So many at once, then one every so many seconds.

    >>> Limit(burst=10, every=6.0)  # ten at once, then ten a minute
    Limit(burst=10, every=6.0)
    """

    burst: int
    every: float


class RateLimits:
    """The buckets of all who ask, by kind of request.

    A bucket is kept as the moment at which it will be full again, as everything else follows from that; one that is
    full is forgotten. When there are ``most`` of them, the one that was asked longest ago goes.

    >>> limits = RateLimits({"login": Limit(burst=2, every=30.0)}, clock=lambda: 0.0)
    >>> [limits.take("login", "192.0.2.1") for _ in range(3)]
    [0.0, 0.0, 30.0]
    """

    def __init__(
        self, limits: Mapping[str, Limit], *, clock: Callable[[], float] = time.monotonic, most: int = _MOST_BUCKETS
    ) -> None:
        self._limits, self._clock, self._most = dict(limits), clock, most
        self._full_at: OrderedDict[bytes, float] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, kind: str, who: str) -> float:
        """0, and one token less; or the seconds until there is one, and nothing taken."""
        limit = self._limits[kind]
        # Of one length whatever was typed in, and no name is kept.
        key = blake2b(f"{kind}\0{who}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            now = self._clock()
            full_at = max(self._full_at.get(key, now), now) + limit.every
            wait = full_at - now - limit.burst * limit.every
            if wait > _ROUNDING:
                return wait
            self._full_at[key] = full_at
            self._full_at.move_to_end(key)
            self._forget(now)
            return 0.0

    def _forget(self, now: float) -> None:
        """Drop one or two that are full, so that memory follows use, and what is beyond the limit."""
        for _ in range(2):
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now and len(self._full_at) <= self._most:
                return
            del self._full_at[oldest]


def retry_after(wait: float) -> str:
    """The value of the header ``Retry-After``: whole seconds, never too few.

    >>> retry_after(0.2), retry_after(30.0)
    ('1', '30')
    """
    return str(max(ceil(wait - _ROUNDING), 1))


def network_of(address: str) -> str:
    """Whom an address stands for: itself, or the network of 64 bits that one customer has all of in IPv6.

    >>> network_of("192.0.2.7"), network_of("2001:db8::1:2"), network_of("::ffff:192.0.2.7"), network_of("unix")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7', 'unix')
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or IPv6Network((int(parsed), 64), strict=False))
    return str(parsed)
