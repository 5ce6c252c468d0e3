"""Annotators as sources of evidence: people, models and rules, who of them errs together, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from quorate.corpus.profiles import Kind, Profile
from quorate.crowd.correlated import MUCH, Correlated
from quorate.crowd.crowd import AnnotatorPriors, Note
from quorate.crowd.duplicates import Duplicates
from quorate.crowd.together import groups_of
from quorate.formats.notes import people


class SourceKind(StrEnum):
    """How an annotator is judged and shown: a rule by what it marks, the others by all their labels.

    >>> [kind.value for kind in SourceKind]
    ['people', 'models', 'rules']
    """

    PEOPLE = "people"
    MODELS = "models"
    RULES = "rules"


class Together(NamedTuple):
    """Annotators with correlated errors, and how many independent ones they are worth where all see a document.

    ``merged``: they are duplicates, and one annotator in the fit.

    >>> str(Together(("llm-a", "llm-b"), 1.25))
    'llm-a, llm-b make the same mistakes: their 2 votes count as 1.2'
    >>> str(Together(("a", "a+1", "a+2"), 1.0, merged=True))
    'a, a+1, a+2 are duplicates, and count as one annotator'
    """

    names: tuple[str, ...]
    votes: float
    merged: bool = False

    def __str__(self) -> str:
        if self.merged:
            return f"{people(self.names)} are duplicates, and count as one annotator"
        return f"{people(self.names)} make the same mistakes: their {len(self.names)} votes count as {self.votes:.1f}"


def err_together(names: Sequence[str], correlated: Correlated, least: float = MUCH) -> list[Together]:
    """Annotators with correlated errors, group by group, the largest first.

    >>> err_together(["a", "b", "c"], Correlated.of([(0, 2, 0.5), (0, 1, 0.1)]))[0].names
    ('a', 'c')
    """
    much, found = correlated.at_least(least), []
    for group in groups_of(much.one, much.other, len(names)) if len(much.one) else []:
        members = np.array(group)
        votes = float(correlated.weights(np.zeros(len(members), np.int64), members).sum())
        found.append(Together(tuple(names[k] for k in group), votes))
    return sorted(found, key=lambda one: -len(one.names))


class Sources(NamedTuple):
    """What is known of ``names`` as sources: their ``profiles``, and what the changes of the crowd found.

    ``abstaining`` are those whose ``O`` mostly means that they have nothing to say, ``duplicates`` those who are one
    annotator in the fit, and ``together`` those with correlated errors, group by group.

    >>> profiles = {"llm": Profile.of(kind="model"), "regex": Profile.of(kind="rule"), "eva": Profile.of(kind="expert")}
    >>> sources = Sources(("ann", "bob", "eva", "llm", "regex"), profiles, abstaining=("bob", "eva"))
    >>> {kind.value: names for kind, names in sources.by_kind().items()}
    {'people': ['ann', 'eva'], 'models': ['llm'], 'rules': ['bob', 'regex']}
    """

    names: tuple[str, ...]
    profiles: Mapping[str, Profile] = MappingProxyType({})
    abstaining: tuple[str, ...] = ()
    duplicates: tuple[tuple[str, ...], ...] = ()
    together: tuple[Together, ...] = ()

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        profiles: Mapping[str, Profile],
        notes: Iterable[Note] = (),
        priors: AnnotatorPriors | None = None,
    ) -> Sources:
        """From what a fit found."""
        abstains = (priors or AnnotatorPriors()).abstains(len(names))
        duplicates: tuple[tuple[str, ...], ...] = ()
        together: list[Together] = []
        for note in notes:
            if isinstance(note, Duplicates):
                duplicates = tuple(tuple(names[k] for k in group) for group in note.groups)
                together += [Together(group, 1.0, merged=True) for group in duplicates]
            elif isinstance(note, Correlated):
                together += err_together(names, note)
        return cls(
            tuple(names),
            profiles,
            tuple(name for k, name in enumerate(names) if abstains[k]),
            duplicates,
            tuple(sorted(together, key=lambda one: -len(one.names))),
        )

    def __repr__(self) -> str:
        kinds = ", ".join(f"{len(names)} {kind.value}" for kind, names in self.by_kind().items())
        return f"<Sources: {kinds or 'nobody'}; {len(self.together)} groups make the same mistakes>"

    def kind(self, name: str) -> SourceKind:
        """As the profile says; of those of whom it says nothing, whoever abstains is taken for a rule."""
        profile = self.profiles.get(name, Profile())
        if profile.kind is Kind.RULE or profile.abstains:
            return SourceKind.RULES
        if profile.kind is Kind.MODEL:
            return SourceKind.MODELS
        return SourceKind.RULES if profile.kind is Kind.PERSON and name in self.abstaining else SourceKind.PEOPLE

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
