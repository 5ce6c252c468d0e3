"""Who the annotators are: people, experts, models, rules; how far they are trusted; what silence means; and groups."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import fields as fields_of
from enum import StrEnum
from pathlib import Path
from typing import Any

from quorate.errors import InputError, SettingsError, did_you_mean
from quorate.storage.files.atomic import written_whole

_MOST_TRUST = 1000.0
_NAMES_OF_GOLD = {
    "gold", "goldlabel", "goldlabels", "goldtag", "goldtags", "goldstandard",
    "label", "labels", "tag", "tags", "nertag", "nertags",
    "truth", "true", "truelabel", "truelabels", "truetag", "truetags", "groundtruth", "ytrue",
    "reference", "ref", "correct", "target", "targets", "answer", "answers", "adjudicated", "curated",
}  # fmt: skip


class Kind(StrEnum):
    """What an annotator is.

    >>> Kind("rule") is Kind.RULE
    True
    """

    PERSON = "person"
    EXPERT = "expert"
    MODEL = "model"
    RULE = "rule"


_TRUST = {Kind.PERSON: 1.0, Kind.EXPERT: 10.0, Kind.MODEL: 1.0, Kind.RULE: 1.0}


@dataclass(frozen=True)
class Profile:
    """What is known of an annotator before any label is read.

    ``trust`` multiplies the prior count ``epsilon0`` with which everybody is taken to be right: 1 is the crowd's, 0 is
    none, and an expert has 10 unless told otherwise. ``abstains``: where they mark nothing they mostly had nothing to
    say; so a rule does unless told otherwise. ``group``: a name that is shared by those who err together, as samples
    and prompts of one language model do; ``None`` for somebody who judges alone.

    >>> Profile.of(kind="expert").trust, Profile.of(kind="rule").abstains, Profile.of(trust=2).kind.value
    (10.0, True, 'person')
    >>> Profile.of(kind="model", group="llm-c").group
    'llm-c'
    """

    kind: Kind = Kind.PERSON
    trust: float = 1.0
    abstains: bool = False
    group: str | None = None

    @classmethod
    def of(
        cls,
        kind: str = "person",
        trust: float | None = None,
        abstains: bool | None = None,
        group: str | None = None,
    ) -> Profile:
        """From plain values; what is not given follows from the kind."""
        try:
            what = Kind(kind)
        except ValueError:
            known = ", ".join(member.value for member in Kind)
            raise SettingsError(f"kind {kind!r} is not known (one of: {known})") from None
        if trust is not None and (isinstance(trust, bool) or not isinstance(trust, int | float)):
            raise SettingsError(f"trust must be a number, not {trust!r}")
        if trust is not None and not 0 <= trust <= _MOST_TRUST:
            raise SettingsError(f"trust must be from 0 to {_MOST_TRUST:g}, not {trust:g}")
        if not isinstance(abstains, bool | None):
            raise SettingsError(f"abstains must be true or false, not {abstains!r}")
        if group is not None and not (isinstance(group, str) and group.strip()):
            raise SettingsError(f"group must be a name, not {group!r} (leave it out for one who judges alone)")
        return cls(
            what,
            _TRUST[what] if trust is None else float(trust),
            abstains if abstains is not None else what is Kind.RULE,
            group,
        )

    def but(self, fields: Mapping[str, Any]) -> Profile:
        """With what these fields say in place of its own; a kind that is another one brings its own trust and silence.

        >>> Profile.of(kind="model", group="llm-c").but({"trust": 2})
        Profile(kind=<Kind.MODEL: 'model'>, trust=2.0, abstains=False, group='llm-c')
        >>> Profile.of(kind="model", group="llm-c").but({"kind": "rule"})
        Profile(kind=<Kind.RULE: 'rule'>, trust=1.0, abstains=True, group='llm-c')
        """
        own = self.plain() if fields.get("kind", self.kind) == self.kind else {"group": self.group}
        return Profile.of(**(own | dict(fields)))

    def plain(self) -> dict[str, Any]:
        """As plain values, for a file; ``group`` only where there is one.

        >>> Profile.of(kind="model").plain()
        {'kind': 'model', 'trust': 1.0, 'abstains': False}
        >>> Profile.of(kind="model", group="llm-c").plain()
        {'kind': 'model', 'trust': 1.0, 'abstains': False, 'group': 'llm-c'}
        """
        group = {} if self.group is None else {"group": self.group}
        return {"kind": self.kind.value, "trust": self.trust, "abstains": self.abstains, **group}


Fields = Profile | Mapping[str, Any]
"""A profile, or those of its fields that were given."""


def gold_like(names: Iterable[str], profiles: Mapping[str, Profile]) -> Iterator[str]:
    """A warning for each annotator who has a name of gold, unless a profile says that they are no person.

    >>> [warning[:24] for warning in gold_like(["ann", "Ground_Truth", "label"], {})]
    ["annotator 'Ground_Truth'", "annotator 'label' counts"]
    >>> list(gold_like(["gold"], {"gold": Profile.of(kind="expert")}))
    []
    """
    for name in names:
        bare = "".join(filter(str.isalnum, name.casefold()))
        if bare in _NAMES_OF_GOLD and (name not in profiles or profiles[name].kind is Kind.PERSON):
            yield (
                f"annotator {name!r} counts as one of the crowd, but has a name of gold: if it is gold, it leaks into "
                "the consensus (give it as gold, or leave it out with --map-annotators NAME=)"
            )


def profile_fields(given: str | Path | Mapping[str, Any]) -> Mapping[str, Fields]:
    """Profiles by annotator as given, in a JSON file or a dictionary; :class:`SettingsError` if one cannot be."""
    if isinstance(given, Mapping):
        content, source = given, "annotators"
    else:
        content, source = _json_object(str(given)), str(given)
    for name, fields in content.items():
        try:
            _profile(fields)
        except SettingsError as error:
            raise SettingsError(f"{source}: annotator {name!r}: {error}") from None
    return content


def read_profiles(
    given: str | Path | Mapping[str, Any], own: Mapping[str, Profile] | None = None
) -> dict[str, Profile]:
    """Profiles by annotator, from a JSON file or a dictionary, each a :class:`Profile` or its fields.

    What is not given is as in the annotator's ``own``: what a file with their annotations says of them.

    >>> read_profiles({"gazetteer": {"kind": "rule"}})["gazetteer"].abstains
    True
    """
    before = own or {}
    return {name: _profile(fields, before.get(name, Profile())) for name, fields in profile_fields(given).items()}


def _profile(fields: Fields, own: Profile = Profile()) -> Profile:
    if isinstance(fields, Profile):
        return fields
    known = [field.name for field in fields_of(Profile)]
    if not isinstance(fields, Mapping):
        raise SettingsError(f"not a profile (an object: {', '.join(known)}, all optional)")
    for name in fields:
        if name not in known:
            raise SettingsError(f"a profile has no field {name!r} ({did_you_mean(str(name), known)})")
    return own.but(fields)


def _json_object(path: str) -> dict[str, Any]:
    """The object in a file, or in the text itself where that is one."""
    try:
        content = json.loads(path if path.startswith("{") else Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=path) from None
    except ValueError as error:
        raise InputError(f"not JSON: {error}", where=path) from None
    except RecursionError:
        raise InputError("not JSON that is read: nested too deeply", where=path) from None
    if not isinstance(content, dict):
        raise InputError("not a JSON object ({name: …})", where=path)
    return content


def read_map(given: str | Path | Mapping[str, str | None]) -> dict[str, str | None]:
    """New names by old name, ``None`` to drop: a dictionary, a JSON object or file, or ``old=new,old=new,old=``.

    >>> read_map("PERS=PER,person=PER,MISC=")
    {'PERS': 'PER', 'person': 'PER', 'MISC': None}
    """
    if isinstance(given, Mapping):
        pairs: dict[str, Any] = dict(given)
    elif "=" in str(given) and not str(given).startswith("{") and not Path(given).exists():
        pairs = {}
        for piece in str(given).split(","):
            old, equals, new = piece.partition("=")
            if not equals or not old.strip():
                raise SettingsError(f"{piece!r} is not of the form OLD=NEW (OLD= drops it; or give a JSON file)")
            pairs[old.strip()] = new.strip() or None
    elif not str(given).startswith("{") and not Path(given).exists():
        raise InputError("no such file, and not of the form OLD=NEW (OLD= drops a name)", where=str(given))
    else:
        pairs = _json_object(str(given))
    for old, new in pairs.items():
        if not isinstance(new, str | None) or new == "":
            raise SettingsError(f"{old!r} cannot become {new!r} (a name, or null to drop it)")
    return pairs


def pseudonyms(path: str | Path, names: Iterable[str]) -> dict[str, str]:
    """A pseudonym for every name, kept in a JSON file: the same name has the same pseudonym next time.

    Pseudonyms are drawn by lot and say nothing about the names. Whoever has the file can undo them, so keep it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = pseudonyms(f"{folder}/who.json", ["ann", "bob"])
    ...     pseudonyms(f"{folder}/who.json", ["bob", "cho"])["bob"] == first["bob"]
    True
    """
    table = read_map(_json_object(str(path))) if Path(path).exists() else {}
    given = {new for new in table.values() if new is not None}
    if len(given) < len(table):
        raise InputError(
            "two names have the same pseudonym, or one has none (correct it, or start a new file)", where=str(path)
        )
    missing = sorted(set(names) - set(table))
    for name in missing:
        pseudonym = _drawn()
        while pseudonym in given:
            pseudonym = _drawn()
        given.add(pseudonym)
        table[name] = pseudonym
    if missing:
        with written_whole(path) as stream:
            stream.write(json.dumps(table, indent=2, ensure_ascii=False, sort_keys=True).encode() + b"\n")
    return {name: new for name, new in table.items() if new is not None}


def _drawn() -> str:
    return f"annotator-{secrets.randbelow(10**6):06}"
