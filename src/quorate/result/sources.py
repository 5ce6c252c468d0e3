"""Annotators as sources of evidence: people, models and rules, who of them errs together, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from quorate.corpus.profiles import Kind, Profile
from quorate.crowd.sharing import Sharing
from quorate.formats.notes import people

__all__ = ["MUCH_IN_COMMON", "SourceKind", "Sources", "Together", "err_together", "votes_in_words"]

MUCH_IN_COMMON = 0.25
"""Share from which on annotators are told to make the same mistakes."""


class SourceKind(StrEnum):
    """How an annotator is judged and shown: a rule by what it marks, the others by all that they say.

    >>> [kind.value for kind in SourceKind]
    ['people', 'models', 'rules']
    """

    PEOPLE = "people"
    MODELS = "models"
    RULES = "rules"


class Together(NamedTuple):
    """Annotators who err together, and how many independent ones they are worth where all of them see a document.

    ``as_one``: they are copies of one another, and heard as one annotator.

    >>> str(Together(("llm-a", "llm-b"), 1.25))
    'llm-a, llm-b make the same mistakes: their 2 votes count as 1.2'
    >>> str(Together(("a", "a+1", "a+2"), 1.0, as_one=True))
    'a, a+1, a+2 are nearly copies of each other, and are heard as one'
    """

    names: tuple[str, ...]
    votes: float
    as_one: bool = False

    def __str__(self) -> str:
        if self.as_one:
            return f"{people(self.names)} are nearly copies of each other, and are heard as one"
        return f"{people(self.names)} make the same mistakes: their {len(self.names)} votes count as {self.votes:.1f}"


def err_together(names: Sequence[str], sharing: Sharing, least: float = MUCH_IN_COMMON) -> list[Together]:
    """Annotators who err together, group by group, the largest first.

    >>> err_together(["a", "b", "c"], Sharing.of([(0, 2, 0.5), (0, 1, 0.1)]))[0].names
    ('a', 'c')
    """
    found, spoken_for = [], sharing.speaker
    for group in sharing.at_least(least).groups(len(names)):
        heard = np.array([k for k in group if k not in spoken_for])
        votes = float(sharing.weights(np.zeros(len(heard), np.int64), heard).sum())
        found.append(Together(tuple(names[k] for k in group), votes, tuple(group) in sharing.voices))
    return sorted(found, key=lambda one: -len(one.names))


def votes_in_words(given: float, worth: float) -> str:
    """How many annotators a document has, and how many independent ones they are worth.

    >>> votes_in_words(16, 9.84)
    '16.0 annotators a document count as 9.8, as some make the same mistakes'
    """
    return f"{given:.1f} annotators a document count as {worth:.1f}, as some make the same mistakes"


class Sources(NamedTuple):
    """What is known of ``names`` as sources: their ``profiles``, and what was found out about them.

    ``sharing`` is what they have in common beyond the truth. ``votes`` are how many of them see a document, on average,
    and how many independent ones those are worth; ``None`` where it was not looked at. ``silent`` are those who mark so
    little that their ``O`` says next to nothing.

    >>> profiles = {"llm": Profile.of(kind="model"), "regex": Profile.of(kind="rule"), "eva": Profile.of(kind="expert")}
    >>> sources = Sources(("ann", "bob", "eva", "llm", "regex"), profiles, silent=("bob", "eva"))
    >>> {kind.value: names for kind, names in sources.by_kind().items()}
    {'people': ['ann', 'eva'], 'models': ['llm'], 'rules': ['bob', 'regex']}
    """

    names: tuple[str, ...]
    profiles: Mapping[str, Profile] = MappingProxyType({})
    sharing: Sharing = Sharing.of()
    votes: tuple[float, float] | None = None
    silent: tuple[str, ...] = ()

    def __repr__(self) -> str:
        kinds = ", ".join(f"{len(names)} {kind.value}" for kind, names in self.by_kind().items())
        return f"<Sources: {kinds or 'nobody'}; {len(self.together)} groups make the same mistakes>"

    def kind(self, name: str) -> SourceKind:
        """As the profile says; of those of whom it says nothing, whoever marks next to nothing is taken for a rule."""
        profile = self.profiles.get(name, Profile())
        if profile.kind is Kind.RULE or profile.abstains:
            return SourceKind.RULES
        if profile.kind is Kind.MODEL:
            return SourceKind.MODELS
        return SourceKind.RULES if profile.kind is Kind.PERSON and name in self.silent else SourceKind.PEOPLE

    def by_kind(self, names: Iterable[str] | None = None) -> dict[SourceKind, list[str]]:
        """Names by kind, in the order in which they are given; only kinds that occur."""
        found: dict[SourceKind, list[str]] = {kind: [] for kind in SourceKind}
        for name in self.names if names is None else names:
            found[self.kind(name)].append(name)
        return {kind: members for kind, members in found.items() if members}

    def declared(self, name: str) -> bool:
        """Whether the profile says that they abstain, or what they are."""
        profile = self.profiles.get(name, Profile())
        return profile.abstains or profile.kind is not Kind.PERSON

    @property
    def voices(self) -> list[tuple[str, ...]]:
        """Copies that are heard as one annotator, by name; the first of each stands for all.

        >>> Sources(("a", "a+1", "a+2", "bob"), sharing=Sharing.of(voices=[(0, 1, 2)])).voices
        [('a', 'a+1', 'a+2')]
        """
        return [tuple(self.names[k] for k in copies) for copies in self.sharing.voices]

    @property
    def together(self) -> list[Together]:
        """Those who err together, group by group, the largest first."""
        return err_together(self.names, self.sharing)
