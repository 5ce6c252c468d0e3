"""Checkpoints of a fit: a folder with the settings that were chosen, and with what was learned up to the last pass.

A fit that is started again with the same data and settings goes on from there, and ends where it would have ended,
bit for bit if it runs as before. What a cluster began, threads may finish: that differs by rounding. An accelerator
rounds far more, so that what it began is not finished elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import quorate
from quorate.choose.choice import Choice
from quorate.choose.kept import as_plain, from_plain
from quorate.errors import InputError, OutputError, SettingsError
from quorate.model import loop
from quorate.model.build import arrays_of, with_arrays
from quorate.model.prepared import Prepared
from quorate.model.settings import Settings
from quorate.storage.arrays import mapped, write
from quorate.storage.files.atomic import written_whole
from quorate.storage.model_files import prefixed, under

__all__ = ["Checkpoints", "FitCheckpoint"]

_CHOICE, _NOW, _BEST = "choice.json", "now", "best"


class Checkpoints:
    """All that one call of ``fit`` keeps: a choice, and where each fit stands (with a tagger there are several).

    Without a folder nothing is kept.
    """

    def __init__(self, folder: str | Path | None, engine: str) -> None:
        self._folder, self._engine = None if folder is None else Path(folder), {"engine": engine}
        self._fits = 0
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(f"{folder}: no checkpoint can be written: {error.strerror or error}") from None

    def choice(
        self, prepared: Prepared, settings: Settings, free: Sequence[str], choose: Callable[[], Choice]
    ) -> Choice:
        """The choice of what is ``free`` that was made before, or the one that is made now."""
        if self._folder is None:
            return choose()
        path = self._folder / _CHOICE
        of = _identity(prepared, settings.plain() | self._engine | dict.fromkeys(free, "auto"))
        if path.exists():
            try:
                told = json.loads(path.read_bytes())
                _check_same(path, told["of"], of)
                return from_plain(told["choice"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise _damaged(path, error) from None
        choice = choose()
        with written_whole(path) as stream:
            stream.write(json.dumps({"of": of, "choice": as_plain(choice)}).encode())
        return choice

    def of_fit(self, prepared: Prepared, settings: Settings, blank: loop.Model) -> FitCheckpoint | None:
        """That of the next fit, whose model is ``blank`` before any data."""
        if self._folder is None:
            return None
        self._fits += 1
        path = self._folder / f"fit-{self._fits}.checkpoint"
        believed = blank.annotators.prior.believed
        beforehand = {"marks": np.array(believed.marks or ()), "speaks": np.array(believed.speaks or ())}
        learned = {**arrays_of(blank), **beforehand}
        return FitCheckpoint(path, _identity(prepared, settings.plain() | self._engine, learned), blank)


class FitCheckpoint:
    """One file, written anew after every pass: see :class:`quorate.model.loop.Checkpoint`."""

    def __init__(self, path: Path, identity: dict[str, Any], blank: loop.Model) -> None:
        self._path, self._identity, self._blank = path, identity, blank

    def last(self) -> loop.Standing | None:
        """Where the fit stood; :class:`SettingsError` if that was another fit."""
        if not self._path.exists():
            return None
        try:
            arrays, told = mapped(self._path)
            _check_same(self._path, told["of"], self._identity)
            arrays.check_all()
            found = {name: np.array(array) for name, array in arrays.items()}  # the file will be replaced
            best = told["best"]
            return loop.Standing(
                int(told["start"]),
                with_arrays(self._blank, under(_NOW, found)),
                tuple(told["bounds"]),
                None if told["reason"] is None else loop.StopReason(told["reason"]),
                tuple(told["finals"]),
                None
                if best is None
                else (
                    with_arrays(self._blank, under(_BEST, found)),
                    tuple(best["bounds"]),
                    loop.StopReason(best["reason"]),
                ),
            )
        except (InputError, ValueError, KeyError, TypeError) as error:
            raise _damaged(self._path, error) from None

    def keep(self, standing: loop.Standing) -> None:
        """Write it, whole or not at all."""
        arrays = prefixed(_NOW, dict(arrays_of(standing.model)))
        told = {
            "kind": "quorate checkpoint",
            "of": self._identity,
            "start": standing.start,
            "bounds": standing.bounds,
            "reason": standing.reason,
            "finals": standing.finals,
            "best": None,
        }
        if standing.best is not None:
            model, bounds, reason = standing.best
            arrays |= prefixed(_BEST, dict(arrays_of(model)))
            told["best"] = {"bounds": bounds, "reason": reason}
        write(self._path, arrays, told)


def _identity(
    prepared: Prepared, settings: Mapping[str, Any], blank: Mapping[str, NDArray[Any]] | None = None
) -> dict[str, Any]:
    """What a fit is of: version, settings, and a digest of all that it learns from, histories included."""
    encoded, digest = prepared.encoded, sha256()
    profiles = {name: profile.plain() for name, profile in sorted(prepared.corpus.profiles.items())}
    names = [encoded.tagset.scheme, encoded.tagset.labels, encoded.annotators, encoded.words, profiles]
    digest.update(json.dumps(names).encode())
    cells = encoded.cells
    arrays: list[NDArray[Any]] = [encoded.doc_start, cells.annotator, cells.previous, cells.label]
    arrays += [] if prepared.known is None else [prepared.known]
    if encoded.slices is not None and encoded.slices.fits(encoded):
        digest.update(encoded.slices.digest.encode())
    else:
        weight = [] if encoded.event_weight is None else [encoded.event_weight]
        arrays += [encoded.word, encoded.event_start, encoded.event_cell, *weight]
    for array in (*arrays, *(blank or {}).values()):
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return {"version": quorate.__version__, "settings": dict(settings), "data": digest.hexdigest()}


def _check_same(path: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """:class:`SettingsError` with what is other than it was."""
    before, now = there["settings"], json.loads(json.dumps(here["settings"]))
    changed = [
        f"{name} was {before.get(name)} and is {now.get(name)}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if there["version"] != here["version"]:
        changed.insert(0, f"version {there['version']} wrote it, and this is {here['version']}")
    if not changed and there["data"] != here["data"]:
        changed = ["the data are others"]
    if changed:
        raise SettingsError(
            f"{path}: a checkpoint of another fit: {', '.join(changed)} (give another folder, or delete this one)"
        )


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"a damaged checkpoint: {error} (delete it, and the fit begins anew)", where=str(path))
