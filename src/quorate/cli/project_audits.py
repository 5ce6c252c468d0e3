"""Audits in a project: a plan is of one version, and a run in the middle of an audit leads on to another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from quorate.errors import InputError, OtherConsensusError, QuorateError
from quorate.project.store import Store, Version

__all__ = ["audits_left_behind", "tells_version_audited"]


@contextmanager
def tells_version_audited(store: Store, go_on: str) -> Iterator[None]:
    """Where a plan is of another consensus than it should be, say of which version it is, and how to go on."""
    try:
        yield
    except OtherConsensusError as error:
        found = _version_with(store, error.consensus)
        if found is None:
            raise
        raise InputError(
            f"this plan was drawn from version {found.number}, not from this consensus (quorate restore "
            f"{found.number} brings that version back; {go_on})",
            where=error.where,
        ) from None


def audits_left_behind(store: Store, before: Version, after: Version) -> list[str]:
    """Notes on plans in the project's folder that were drawn from the version before, and do not fit the one after."""
    plans = {path.name: digest for path in sorted(store.root.glob("*.jsonl")) if (digest := _drawn_from(path))}
    if not plans or before.consensus == after.consensus or _digest(store, before) == _digest(store, after):
        return []
    return [
        f"note: {name} is an audit of version {before.number} (to go on with it: quorate restore {before.number}; "
        f"for version {after.number}, plan again)"
        for name, digest in plans.items()
        if digest == _digest(store, before)
    ]


def _version_with(store: Store, digest: str) -> Version | None:
    """The last version with a consensus of this digest, as plans have it."""
    return next((version for version in reversed(store.versions()) if _digest(store, version) == digest), None)


def _digest(store: Store, version: Version) -> str | None:
    """The digest of a version's consensus, as plans have it; ``None`` if it cannot be read."""
    from quorate.audit.claims import Claims

    with TemporaryDirectory() as folder:
        path = Path(folder, "consensus.jsonl")
        try:
            path.write_bytes(store.content(version.consensus))
            return Claims.of(path).digest
        except QuorateError:
            return None


def _drawn_from(path: Path) -> str | None:
    from quorate.audit.checked import drawn_from

    try:
        return drawn_from(path)
    except QuorateError:
        return None
