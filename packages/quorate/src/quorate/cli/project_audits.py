"""Audits in a project: a plan is of one version, and a run in the middle of an audit leads on to another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from quorate.errors import InputError, OtherConsensusError, QuorateError
from quorate.project.store import Store, Version

if TYPE_CHECKING:
    from quorate.audit.claims import Claims


@contextmanager
def tells_version_audited(store: Store, go_on: str) -> Iterator[None]:
    """Where a plan is of another consensus than it should be, say of which version it is, and how to go on."""
    try:
        yield
    except OtherConsensusError as error:
        found = _drawn_from_version(store, error)
        if found is None:
            raise
        raise InputError(
            f"this plan was drawn from version {found.number}, not from this consensus (quorate restore "
            f"{found.number} brings that version back; {go_on})",
            where=error.where,
        ) from None


@contextmanager
def tells_of_another_fit(store: Store | None) -> Iterator[None]:
    """The same for a command that fits by itself, where that may give another consensus than the version has."""
    try:
        yield
    except OtherConsensusError as error:
        found = None if store is None else _drawn_from_version(store, error)
        latest = None if store is None else store.latest
        if found is None or latest is None:
            raise
        drawn, scores = f"this plan was drawn from version {found.number}", "quorate audit result gives its scores"
        if found.number == latest.number:
            message = (
                f"{drawn}, and this fit gives another consensus ({scores}; here, leave out inputs and settings that "
                "are not the project's or, if you gave none, quorate run --fresh, then draw a new plan)"
            )
        else:
            message = (
                f"{drawn}, and version {latest.number} is the last (after quorate restore {found.number}, {scores}; "
                "or draw a new plan: quorate audit plan)"
            )
        raise InputError(message, where=error.where) from None


def audits_left_behind(store: Store, before: Version, after: Version) -> list[str]:
    """Notes on plans in the project's folder that were drawn from the version before, and do not fit the one after."""
    plans = {path.name: digest for path in sorted(store.root.glob("*.jsonl")) if (digest := _drawn_from(path))}
    if not plans or before.consensus == after.consensus:
        return []
    audited = _digest(store, before)
    if audited == _digest(store, after):
        return []
    return [
        f"note: {name} is an audit of version {before.number} (to go on with it: quorate restore {before.number}; "
        f"for version {after.number}, plan again)"
        for name, digest in plans.items()
        if digest == audited
    ]


def _drawn_from_version(store: Store, error: OtherConsensusError) -> Version | None:
    """The last version that a plan was drawn from; where its confidence was not looked at, one with the same tags."""
    from quorate.audit.plan import planned_by

    alike = None
    for version in reversed(store.versions()):
        claims = _claims(store, version)
        if claims is None or claims.digest != error.consensus:
            continue
        with suppress(QuorateError):
            planned_by(claims, error.drawn, error.where)
            return version
        alike = alike or version
    return None if error.same_tags else alike


def _digest(store: Store, version: Version) -> str | None:
    """The digest of a version's consensus, as plans have it; ``None`` if it cannot be read."""
    claims = _claims(store, version)
    return None if claims is None else claims.digest


def _claims(store: Store, version: Version) -> Claims | None:
    from quorate.audit.claims import Claims

    with TemporaryDirectory() as folder:
        path = Path(folder, "consensus.jsonl")
        try:
            path.write_bytes(store.content(version.consensus))
            return Claims.of(path)
        except QuorateError:
            return None


def _drawn_from(path: Path) -> str | None:
    from quorate.audit.checked import drawn_from

    try:
        return drawn_from(path)
    except QuorateError:
        return None
