"""How often somebody may ask."""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from typing import Any

import pytest

from quorate_serve.rate_limits import Limit, RateLimits, network_of, retry_after


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1e6

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


class SlowDict(OrderedDict[bytes, float]):
    """Gives other threads their chance between what is read and what is written."""

    def get(self, key: bytes, default: Any = None) -> Any:
        found = super().get(key, default)
        time.sleep(0.001)
        return found


class PlainBucket:
    """The textbook's bucket: tokens that drip in, counted."""

    def __init__(self, limit: Limit, now: float) -> None:
        self.limit, self.tokens, self.at = limit, float(limit.burst), now

    def take(self, now: float) -> float:
        self.tokens = min(self.limit.burst, self.tokens + (now - self.at) / self.limit.every)
        self.at = now
        if self.tokens >= 1 - 1e-6:
            self.tokens -= 1
            return 0.0
        return (1 - self.tokens) * self.limit.every


@pytest.mark.parametrize("limit", [Limit(1, 1.0), Limit(5, 0.3), Limit(20, 6.0), Limit(3, 3600.0)])
def test_buckets_fill_and_empty_as_the_textbooks_do(clock: Clock, limit: Limit) -> None:
    draw = random.Random(3)
    limits, plain = RateLimits({"save": limit}, clock=clock), PlainBucket(limit, clock.now)
    outcomes = set()
    for _ in range(3000):
        clock.now += draw.choice([0.0, draw.expovariate(1 / limit.every), draw.random() * 4 * limit.every])
        expected = plain.take(clock.now)
        assert limits.take("save", "ada") == pytest.approx(expected, abs=1e-4 * limit.every)
        outcomes.add(expected > 0)
    assert outcomes == {True, False}


def test_after_the_wait_that_was_told_there_is_one_token_and_no_more(clock: Clock) -> None:
    limits = RateLimits({"login": Limit(3, 0.1)}, clock=clock)
    while not (wait := limits.take("login", "ada")):
        pass
    clock.now += wait
    assert limits.take("login", "ada") == 0
    assert limits.take("login", "ada") == pytest.approx(0.1, abs=1e-6)


def test_to_be_refused_costs_nothing(clock: Clock) -> None:
    limits = RateLimits({"login": Limit(1, 10.0)}, clock=clock)
    assert [limits.take("login", "ada") for _ in range(4)] == pytest.approx([0, 10, 10, 10], abs=1e-6)


def test_people_and_kinds_of_requests_have_buckets_of_their_own(clock: Clock) -> None:
    limits = RateLimits({"login": Limit(1, 10.0), "save": Limit(2, 1.0)}, clock=clock)
    assert limits.take("login", "ada") == 0
    assert limits.take("login", "ada") > 0
    assert limits.take("login", "bob") == 0
    assert limits.take("save", "ada") == 0
    assert limits.take("save", "Zoë 🦜 \udc80") == 0
    with pytest.raises(KeyError):
        limits.take("unknown", "ada")


def test_memory_is_bounded_and_those_who_came_last_are_remembered(clock: Clock) -> None:
    limits = RateLimits({"login": Limit(1, 1e6)}, clock=clock, most=100)
    for number in range(1000):
        assert limits.take("login", f"{number}" * 1000) == 0
        assert len(limits) <= 100
    assert all(limits.take("login", f"{number}" * 1000) > 0 for number in range(900, 1000))
    assert limits.take("login", "0" * 1000) == 0


def test_who_asks_again_is_remembered_longer(clock: Clock) -> None:
    limits = RateLimits({"login": Limit(2, 1e6)}, clock=clock, most=2)
    assert [limits.take("login", who) for who in ("ada", "bob", "ada", "cyd")] == [0, 0, 0, 0]
    assert limits.take("login", "ada") > 0


def test_buckets_that_are_full_again_are_forgotten(clock: Clock) -> None:
    limits = RateLimits({"save": Limit(10, 1.0)}, clock=clock)
    for number in range(1000):
        limits.take("save", str(number))
    assert len(limits) == 1000
    clock.now += 100
    for _ in range(600):
        clock.now += 2
        limits.take("save", "late")
    assert len(limits) == 1


def test_threads_take_no_token_twice() -> None:
    limits = RateLimits({"save": Limit(5, 1e6)}, clock=lambda: 0.0)
    limits._full_at = SlowDict()
    taken: list[int] = []

    def take() -> None:
        taken.append(sum(limits.take("save", "ada") == 0 for _ in range(5)))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 5


@pytest.mark.parametrize(("wait", "told"), [(0.001, "1"), (1.0, "1"), (1.0000000001, "1"), (1.01, "2"), (59.2, "60")])
def test_the_header_tells_whole_seconds_and_never_too_few(wait: float, told: str) -> None:
    assert retry_after(wait) == told


def test_one_customer_has_one_network_of_ipv6() -> None:
    assert network_of("2001:db8:1:2:3:4:5:6") == network_of("2001:db8:1:2::1%eth0") == "2001:db8:1:2::/64"
    assert network_of("2001:db8:1:3::1") != network_of("2001:db8:1:2::1")
    assert network_of("::ffff:192.0.2.7") == network_of("192.0.2.7") == "192.0.2.7"
    assert network_of("") == ""
