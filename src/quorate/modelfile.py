"""Fitted models in files: a zip of plain arrays (NumPy's npz) with one JSON text. Nothing in it is ever executed."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.errors import ModelFileError
from quorate.files import written_whole

__all__ = ["VERSION", "Stored", "load", "save"]

VERSION = 1
_KIND = "quorate model"
_META = "meta.json"


class Stored(NamedTuple):
    """A JSON-ready description and named arrays."""

    meta: dict[str, Any]
    arrays: dict[str, NDArray[np.float64]]


def save(stored: Stored, path: str | Path) -> None:
    """Write a model file, whole or not at all."""
    with (
        written_whole(path, pack=False) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        head = {"kind": _KIND, "version": VERSION, **stored.meta}
        _add(archive, _META, json.dumps(head, ensure_ascii=True).encode())
        for name, array in sorted(stored.arrays.items()):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            _add(archive, f"{name}.npy", buffer.getvalue())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    # A fixed date: the same model makes the same file.
    archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 1)


def load(path: str | Path) -> Stored:
    """Read a model file; :class:`ModelFileError` if it is not one, is damaged, or is of another version."""
    try:
        with zipfile.ZipFile(path) as archive:
            meta = json.loads(archive.read(_META))
            if not isinstance(meta, dict) or meta.get("kind") != _KIND:
                raise ModelFileError(f"{path}: not a model file (make one with --save)")
            if meta.get("version") != VERSION:
                raise ModelFileError(
                    f"{path}: a model file of version {meta.get('version')}, where {VERSION} is read "
                    "(fit and save it again)"
                )
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(archive.open(name), allow_pickle=False)
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file") from None
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError) as error:
        raise ModelFileError(f"{path}: not a model file, or a damaged one: {error} (make one with --save)") from None
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    return Stored(meta, arrays)
