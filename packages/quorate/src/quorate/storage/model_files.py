"""Fitted models in files: a zip of plain arrays (NumPy's npz) with one JSON text. Nothing in it is ever executed."""

from __future__ import annotations

import io
import json
import math
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import Scheme
from quorate.errors import ModelFileError
from quorate.limits import size_named, too_much, unpacks_to_too_much
from quorate.storage.files.atomic import written_whole

VERSION = 1
_KIND = "quorate model"
_NOT_A_MODEL = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError, RecursionError)
_META = "meta.json"


class Stored(NamedTuple):
    """A JSON-ready description and named arrays."""

    meta: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def prefixed(name: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Arrays that belong together, as a file names them.

    >>> list(prefixed("documents", {"word": np.zeros(1)}))
    ['documents.word']
    """
    return {f"{name}.{each}": array for each, array in arrays.items()}


def under(name: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Those arrays of a file that :func:`prefixed` named, by their own names."""
    start = f"{name}."
    return {each.removeprefix(start): array for each, array in arrays.items() if each.startswith(start)}


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


def is_model(path: str | Path) -> bool:
    """Whether a file looks like a model, by what it is made of.

    >>> is_model("no/such.jsonl")
    False
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open(_META) as stream:
            return f'"kind": "{_KIND}"'.encode() in stream.read(1 << 10)  # it comes first
    except (OSError, *_NOT_A_MODEL):
        return False


def _is_archive(path: str | Path) -> bool:
    """Whether a file begins as an archive does, be it damaged."""
    with open(path, "rb") as stream:
        return stream.read(2) == b"PK"


def load(path: str | Path, *, max_size: int | str | None = None) -> Stored:
    """Read a model file; :class:`ModelFileError` if it is not one, is damaged, or is of another version."""
    most = size_named(max_size)
    try:
        packed = Path(path).stat().st_size
        with zipfile.ZipFile(path) as archive:
            if unpacks_to_too_much(sum(info.file_size for info in archive.infolist()), packed, most):
                raise ModelFileError(f"{path}: {too_much(most)} (if that is right, load it with a larger max_size)")
            meta = json.loads(archive.read(_META))
            if not isinstance(meta, dict) or meta.get("kind") != _KIND:
                raise ModelFileError(f"{path}: not a model file (make one with --save)")
            if meta.get("version") != VERSION:
                raise ModelFileError(
                    f"{path}: a model file of version {meta.get('version')}, where {VERSION} is read "
                    "(fit and save it again)"
                )
            arrays = {
                name.removesuffix(".npy"): _array(name, archive.read(name))  # to its end, where its digest is checked
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file") from None
    except _NOT_A_MODEL as error:
        why = f", or a damaged one: {error}" if _is_archive(path) else ""
        raise ModelFileError(f"{path}: not a model file{why} (make one with --save)") from None
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    return Stored(meta, arrays)


def _array(name: str, content: bytes) -> NDArray[Any]:
    """An array of plain numbers; ``ValueError`` if it is none, or shorter or longer than its head says."""
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("of another version")
        shape, by_columns, kind = np.lib.format.read_array_header_1_0(stream)
    except (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError) as error:
        raise ValueError(f"{name} is not an array: {str(error).splitlines()[0]}") from None
    size = math.prod(shape) * kind.itemsize
    if kind.kind not in "fiu" or by_columns or min(shape, default=0) < 0 or size != len(content) - stream.tell():
        raise ValueError(f"{name} is not an array of plain numbers, or not all of it")
    return np.frombuffer(content, kind, offset=stream.tell()).reshape(shape).copy()


class Tags(TypedDict):
    """The scheme and the labels of a model."""

    scheme: Scheme
    labels: list[str]


class Head(TypedDict):
    """What every model says of itself."""

    fit: dict[str, Any]
    bounds: list[float]
    seconds: float
    tags: Tags
    annotators: list[str]


class CombinationHead(Head):
    """What :class:`quorate.BSC` says of itself."""

    starts: list[float]
    profiles: dict[str, dict[str, Any]]
    words: list[str]
    calibration: dict[str, Any]
    notes: list[dict[str, Any]]
    summarised: list[str]
    decided: NotRequired[list[str]]
    documents: NotRequired[DocumentsHead]


class DocumentsHead(TypedDict):
    """What numbers in the arrays of the documents stand for, and how many models their counts came from."""

    tags: list[str]
    splits: list[str]
    sources: int
    before: bool


class TaggerHead(Head):
    """What :class:`quorate.CRFMA` says of itself."""

    n_features: int


def is_former(meta: Mapping[str, Any]) -> bool:
    """Whether this is a combination, alone or in layers, of version 0.11 or before."""
    layers = meta.get("layers")
    models = [layer.get("model") for layer in layers if isinstance(layer, dict)] if isinstance(layers, list) else [meta]
    return any(_is_former(model) for model in models if isinstance(model, dict))


def _is_former(model: dict[str, Any]) -> bool:
    parts = {"calibration", "annotators", "words"}
    return model.get("estimator") == "BSC" and "notes" not in model and parts <= model.keys()


def combination_head(meta: dict[str, Any]) -> CombinationHead:
    """The description of a combination, if it is whole; ``ValueError`` if not."""
    head = msgspec.convert(meta, CombinationHead)
    if not set(head["summarised"]) <= set(head["annotators"]):
        raise ValueError("those who are summarised are not among the annotators")
    return head


def tagger_head(meta: dict[str, Any]) -> TaggerHead:
    """The description of a tagger, if it is whole; ``ValueError`` if not."""
    if "features" in meta:
        raise ValueError("its CRF has the features of an earlier version")
    return msgspec.convert(meta, TaggerHead)


class LayerHead(TypedDict):
    """What a model in layers says of one of them: its name, the labels that it takes, each with its set, its model."""

    name: str
    labels: list[tuple[str, str]]
    depth: int
    model: dict[str, Any]


def layer_heads(meta: dict[str, Any]) -> list[LayerHead]:
    """The descriptions of all layers, if they are whole; ``ValueError`` if not."""
    heads = msgspec.convert(meta["layers"], list[LayerHead])
    names = {head["name"] for head in heads}
    if not heads or len(names) < len(heads) or any(head["depth"] < 0 for head in heads):
        raise ValueError("its layers are none, or two have one name, or one lies at no depth")
    return heads
