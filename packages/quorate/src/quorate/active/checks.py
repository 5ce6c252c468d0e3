"""Documents with known labels among a person's work: training to begin with, then checks.

Which ones is decided by a hash of the person, of how many documents they have done, and of a secret. It is the same at
any time, and neither waiting nor giving a document back changes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TypeVar

from quorate.errors import SettingsError
from quorate.model.settings import check_number

DocumentKey = TypeVar("DocumentKey", int, str)


class Turn(StrEnum):
    """What a person's next document is for.

    >>> Turn("check") is Turn.CHECK
    True
    """

    TRAINING = "training"
    CHECK = "check"
    WORK = "work"


@dataclass(frozen=True)
class Mix:
    """How many documents are not work: the first ``training`` of everybody, then checks.

    Every later document is a check with the probability ``check_rate``, until a person has had ``checks_max``. Without
    the ``secret`` nobody can tell beforehand which these are.

    >>> Mix(check_rate=2.0)
    Traceback (most recent call last):
    quorate.errors.SettingsError: check-rate must be from 0 to 1, not 2.0
    """

    training: int = 0
    check_rate: float = 0.0
    checks_max: int = 50
    secret: str = ""

    def __post_init__(self) -> None:
        check_whole("training", self.training, 0)
        check_whole("checks-max", self.checks_max, 0)
        check_number("check-rate", self.check_rate)
        if not 0 <= self.check_rate <= 1:
            raise SettingsError(f"check-rate must be from 0 to 1, not {self.check_rate}")


def turn(person: str, done: int, checks: int, mix: Mix) -> Turn:
    """What the next document of a person is for, who has ``done`` so many, of which so many ``checks``.

    Each document is a check independently of the others: with one check in every ten, nine would be safe after it.

    >>> mix = Mix(training=2, check_rate=0.1, secret="open sesame")
    >>> [str(turn("ann", done, 0, mix)) for done in range(4)]
    ['training', 'training', 'work', 'work']
    """
    if done < mix.training:
        return Turn.TRAINING
    if checks < mix.checks_max and uniform(mix.secret, person, done) < mix.check_rate:
        return Turn.CHECK
    return Turn.WORK


def check_documents(person: str, documents: Iterable[DocumentKey], mix: Mix) -> list[DocumentKey]:
    """Documents with known labels, in the order in which a person meets them as checks or in training.

    The order differs by person, so that nobody can tell another which ones are checks.

    >>> sorted(check_documents("ann", ["a", "b", "c"], Mix()))
    ['a', 'b', 'c']
    """
    return sorted(documents, key=lambda document: (uniform(mix.secret, person, document), document))


def uniform(*key: object) -> float:
    """A pseudo-random number in [0, 1) that is a hash of a key."""
    digest = blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def check_whole(name: str, value: int | None, least: int) -> None:
    """:class:`SettingsError` unless a number is whole and not below the least, or there is none."""
    if value is not None:
        check_number(name, value, whole=True)
        if value < least:
            raise SettingsError(f"{name} must be {least} or more, not {value}")
