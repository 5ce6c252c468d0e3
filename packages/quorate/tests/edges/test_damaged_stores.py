"""Damaged and made-up corpora and models of our own: a clean error, or the same answer.

Two hundred of each by default, and two thousand with ``make fuzz``.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from by_name import bsc, from_file
from damage import damaged_bytes, damaged_json, limit
from quorate.storage import arrays as container
from quorate.storage import corpora, model_files
from quorate.storage.corpora import store

FLIPS = int(os.environ.get("QUORATE_DAMAGED_INPUTS", "1000")) // 5


@cache
def small_corpus() -> quorate.Corpus:
    """Some of everything: probabilities, gold, text, an empty document."""
    some = quorate.sample().documents[:12]
    odd = [
        quorate.Document("ä", ("Ada", "sang"), {"b": ("B-PER", {"O": 0.7, "B-PER": 0.3}), "a": ("O", None)}),
        quorate.Document("empty", (), {"a": ()}),
        quorate.Document("text", ("so", "it"), {}, ("O", None), "dev", "so  it", ((0, 2), (4, 6))),
    ]
    return quorate.Corpus([*some, *odd])


def corpus_answer(path: Path) -> Any:
    """All that is in a corpus, and what a fit makes of it."""
    corpus = quorate.read(path)
    if not isinstance(corpus, corpora.StoredCorpus):
        return "read as something else"
    fitted = bsc("bsc-seq", max_iter=2, n_jobs=1).fit(corpus)
    return list(corpus), fitted.result_.tags, fitted.trace_.bounds


def model_answer(path: Path) -> Any:
    """What a model says of other documents, and of its annotators."""
    model = from_file(path)
    documents = small_corpus()
    return model.predict(documents), [one.tolist() for one in model.predict_proba(documents)], model.annotators_.names


def flipped(rng: random.Random, content: bytes) -> bytes:
    damaged = bytearray(content)
    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def outcomes(path: Path, answer: Callable[[Path], Any], damage: Callable[[random.Random, bytes], bytes]) -> int:
    """Damage a file again and again; how often it was refused. Anything else must be the same answer."""
    content, wanted, rng = path.read_bytes(), answer(path), random.Random(2019)
    refused: list[str] = []
    with limit(1200):
        for _ in range(FLIPS):
            path.write_bytes(damage(rng, content))
            try:
                assert answer(path) == wanted
            except quorate.QuorateError as error:
                refused.append(str(error))
    path.write_bytes(content)
    assert [line for line in refused if "\n" in line or path.name not in line] == []
    return len(refused)


@pytest.mark.parametrize("name", ["crowd.qr", "crowd"])
def test_a_flipped_bit_of_a_corpus_is_found(name: str, tmp_path: Path) -> None:
    store(small_corpus(), tmp_path / name)
    assert outcomes(tmp_path / name, corpus_answer, flipped) == FLIPS


def test_a_damaged_corpus_is_found(tmp_path: Path) -> None:
    store(small_corpus(), tmp_path / "crowd.qr")
    refused = outcomes(tmp_path / "crowd.qr", corpus_answer, damaged_bytes)
    assert refused > FLIPS * 0.9  # some damage puts back what was there


@pytest.mark.parametrize("annotator", ["spam", "cm", "seq"])
@pytest.mark.parametrize("damage", [flipped, damaged_bytes])
def test_a_damaged_model_is_found_or_says_the_same(
    annotator: str, damage: Callable[[random.Random, bytes], bytes], tmp_path: Path
) -> None:
    bsc(f"bsc-{annotator}", max_iter=2).fit(small_corpus()).save(tmp_path / "m.quorate")
    refused = outcomes(tmp_path / "m.quorate", model_answer, damage)
    assert refused > FLIPS * 0.8  # dates and the like in a zip say nothing


def layered_answer(path: Path) -> Any:
    """What a model in layers says of documents, and of its layers and annotators."""
    model = quorate.load(path)
    assert isinstance(model, quorate.LayeredModel)
    result = model.combine(dict.fromkeys(model.layers_, small_corpus()))
    return result.spans, result.confidence.tolist(), model.layers_, [one.names for one in model.annotators_.values()]


@pytest.mark.parametrize("damage", [flipped, damaged_bytes])
def test_a_damaged_model_in_layers_is_found_or_says_the_same(
    damage: Callable[[random.Random, bytes], bytes], tmp_path: Path
) -> None:
    model = quorate.LayeredModel(bsc("bsc-cm", max_iter=2, n_jobs=1))
    model.fit({"one": small_corpus(), "other": small_corpus()}).save(tmp_path / "m.quorate")
    refused = outcomes(tmp_path / "m.quorate", layered_answer, damage)
    assert refused > FLIPS * 0.8


@pytest.mark.parametrize(
    "change",
    [
        {"layers": []},
        {"layers": [{"name": "one"}]},
        {"layers": "none"},
        {"depth": -1},
        {"name": "other"},
        {"model": {"estimator": "BSC"}},
    ],
)
def test_made_up_layers_of_a_model_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "m.quorate"
    model = quorate.LayeredModel(bsc("bsc-cm", max_iter=2, n_jobs=1))
    model.fit({"one": small_corpus(), "other": small_corpus()}).save(path)
    meta, arrays = model_files.load(path)
    if "layers" not in change:
        change = {"layers": [meta["layers"][0] | change, *meta["layers"][1:]]}
    model_files.save(model_files.Stored({**meta, **change}, arrays), path)
    with pytest.raises(quorate.ModelFileError, match=r"m\.quorate: a damaged model file"):
        quorate.load(path)


def made_up(rng: random.Random, arrays: dict[str, Any]) -> None:
    """Change one array: a number, its length, or its shape."""
    name = rng.choice(sorted(arrays))
    array = arrays[name].copy()
    match rng.randrange(6):
        case 0 if array.size:
            arrays[name] = array.reshape(-1)[:-1]
        case 1:
            arrays[name] = np.concatenate([array.reshape(-1), array.reshape(-1)[:1]])
        case 2:
            arrays[name] = array.reshape(1, *array.shape)
        case 3:
            arrays[name] = array.astype(np.float64 if array.dtype != np.float64 else np.int64)
        case _ if array.size:
            flat = array.reshape(-1)
            limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else np.finfo(array.dtype)
            strange = [limits.max, limits.min, 0, 1, flat[0], flat[-1] + type(flat[-1])(1)]
            if array.dtype.kind == "f":
                strange += [np.nan, np.inf]
            flat[rng.randrange(len(flat))] = rng.choice(strange)
            arrays[name] = array


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_made_up_corpus_gives_only_our_errors(tmp_path: Path) -> None:
    path, rng = tmp_path / "crowd.qr", random.Random(2019)
    refused: list[str] = []
    store(small_corpus(), path)
    given, text = container.mapped(path)
    given.check_all()
    original = {name: array.copy() for name, array in given.items()}
    with limit(1200):
        for _ in range(FLIPS):
            arrays, names = dict(original), text
            if rng.random() < 0.3:
                names = json.loads(json.dumps(damaged_json(rng, text)).replace("\\ud800", "?"))  # cannot be written
            else:
                made_up(rng, arrays)
            container.write(path, arrays, names)
            try:
                corpus_answer(path)
            except quorate.QuorateError as error:
                refused.append(str(error))
    assert len(refused) > FLIPS / 3
    assert [line for line in refused if "\n" in line] == []


def test_a_made_up_header_gives_only_our_errors(tmp_path: Path) -> None:
    path, rng = tmp_path / "crowd.qr", random.Random(2019)
    store(small_corpus(), path)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    deep = dict(header) | {"word": json.loads("[" * 500 + "]" * 500)}
    with limit(1200):
        for changed in [deep, *(damaged_json(rng, header) for _ in range(FLIPS))]:
            encoded = json.dumps(changed).encode("utf-8", "surrogatepass")
            encoded += b" " * (-len(encoded) % 8)
            head = len(encoded).to_bytes(8, "little") + encoded
            digest = container._own_digest(head)
            path.write_bytes(container._with_own_digest(head, digest) + content[8 + length :])
            with pytest.raises(quorate.InputError, match=r"crowd\.qr"):
                quorate.read(path)
    (tmp_path / "deep.qr").write_bytes((80_000).to_bytes(8, "little") + b"[" * 80_000)
    with pytest.raises(quorate.InputError, match="deep"):
        quorate.read(tmp_path / "deep.qr")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq"])
def test_a_made_up_model_gives_only_our_errors(annotator: str, tmp_path: Path) -> None:
    path, rng = tmp_path / "m.quorate", random.Random(2019)
    refused: list[str] = []
    bsc(f"bsc-{annotator}", max_iter=2).fit(small_corpus()).save(path)
    meta, original = model_files.load(path)
    with limit(1200):
        for _ in range(FLIPS):
            arrays, told = dict(original), meta
            if rng.random() < 0.5:
                told = damaged_json(rng, meta)
                told = told if isinstance(told, dict) else {"strange": told}
            else:
                made_up(rng, arrays)
            model_files.save(model_files.Stored(told, arrays), path)
            try:
                model_answer(path)
            except quorate.QuorateError as error:
                refused.append(str(error))
    assert len(refused) > FLIPS / 3
    assert [line for line in refused if "\n" in line] == []


@pytest.mark.parametrize("method", ["bsc-acc", "bsc-spam", "bsc-cv", "bsc-cm", "bsc-seq", "crf-ma"])
def test_a_shortened_array_of_a_model_is_refused(method: str, tmp_path: Path) -> None:
    path = tmp_path / "m.quorate"
    model = quorate.api.estimator(method, max_iter=2).fit(small_corpus())
    assert not isinstance(model, quorate.MajorityVote)
    model.save(path)
    meta, arrays = model_files.load(path)
    for name, array in arrays.items():
        for shorter in (array[:-1], array[..., :-1], array[:0]):
            model_files.save(model_files.Stored(meta, arrays | {name: shorter}), path)
            with pytest.raises(quorate.errors.ModelFileError, match=r"array .* is"):
                quorate.load(path)


def test_a_bomb_in_a_model_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.quorate"
    bsc("bsc-acc", max_iter=2).fit(small_corpus()).save(path)
    with zipfile.ZipFile(path, "a") as archive:
        header = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
        described = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }"
        archive.writestr("huge.npy", header + described.ljust(117) + b"\n")
    with pytest.raises(quorate.errors.ModelFileError, match="huge"):
        quorate.load(path)


def test_an_encoded_corpus_of_an_earlier_version_says_what_to_do(tmp_path: Path) -> None:
    old = tmp_path / "old.qr"
    header = json.dumps({"__metadata__": {"quorate": json.dumps({"kind": "quorate corpus", "version": 1})}}).encode()
    header += b" " * (-len(header) % 8)
    old.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(quorate.InputError, match=r"old\.qr: an encoded corpus of an earlier version.*encode it again"):
        quorate.read(old)


def test_a_huge_corpus_is_checked_as_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "huge.qr"
    corpus = small_corpus()
    store(corpus, path)
    content = path.read_bytes()
    given, _ = container.mapped(path)
    place = content.index(given["codes"].tobytes())
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    monkeypatch.setattr(corpora, "_CHECKED_AT_ONCE", 0)
    opened = quorate.read(path)
    assert len(opened) == len(corpus)
    with pytest.raises(quorate.InputError, match="'codes' is not what was written"):
        opened[0]


def test_a_stored_corpus_travels_to_another_process(tmp_path: Path) -> None:
    store(small_corpus(), tmp_path / "crowd.qr")
    again = pickle.loads(pickle.dumps(quorate.read(tmp_path / "crowd.qr")))
    assert list(again) == list(small_corpus())
