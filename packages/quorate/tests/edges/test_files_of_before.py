"""Files that earlier versions wrote still open, or say that they cannot."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import quorate
from quorate.project.store import Store
from running import Run

FILES = Path(__file__).parents[1] / "assets" / "formats"
VERSIONS = sorted(path.name for path in FILES.iterdir() if path.is_dir())


def written_by(version: str, name: str) -> Path:
    path = FILES / version / name
    if not path.exists():
        pytest.skip(f"no such file of {version} is kept")
    return path


def tags_of(version: str) -> dict[str, list[str]]:
    """The consensus that a version came to."""
    lines = (FILES / version / "consensus.jsonl").read_text(encoding="utf-8").splitlines()
    return {record["id"]: record["tags"] for record in map(json.loads, lines)}


def test_this_version_has_written_its_files() -> None:
    assert ".".join(quorate.__version__.split(".")[:2]) in VERSIONS  # tests/assets/formats/write.py


@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_opens_or_says_that_it_cannot(version: str) -> None:
    path = written_by(version, "model.quorate")
    if tuple(map(int, version.split("."))) <= (0, 11):
        with pytest.raises(quorate.QuorateError) as refused:
            quorate.load(path)
        assert "\n" not in str(refused.value)
        assert "saved by quorate 0.11 or earlier, whose models this version cannot read" in str(refused.value)
        return
    model = quorate.load(path)
    assert isinstance(model, quorate.BSC)
    assert isinstance(model.result_, quorate.Result)
    assert {one.document.id: list(one.tags) for one in model.result_} == tags_of(version)
    document = quorate.read(FILES / "crowd.jsonl").documents[0]
    model.update(quorate.Corpus([replace(document, id="another")]))
    assert model.result_["another"].tags


@pytest.mark.parametrize("version", VERSIONS)
def test_an_encoded_corpus_opens(version: str) -> None:
    plain = quorate.read(FILES / "crowd.jsonl")
    encoded = quorate.read(written_by(version, "corpus.qr"))
    ours = quorate.aggregate(plain, method="bsc-seq")
    theirs = quorate.aggregate(encoded, method="bsc-seq")
    assert [one.tags for one in ours] == [one.tags for one in theirs]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.token_confidence, other.token_confidence, rtol=1e-9)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_project_goes_on(version: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(written_by(version, "project.tar.gz")) as packed:
        packed.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    (first,) = Store(tmp_path).versions()
    assert first.quorate.startswith(version)
    (tmp_path / "consensus.jsonl").unlink()
    assert run("restore", "1", "--quiet")[0] == 0
    assert (tmp_path / "consensus.jsonl").read_bytes() == Store(tmp_path).content(first.consensus)
    with (tmp_path / "crowd.jsonl").open("a", encoding="utf-8") as crowd:
        crowd.write('{"id": "new", "tokens": ["Bath"], "annotations": {"dov": ["B-LOC"], "eva": ["B-LOC"]}}\n')
    assert run("run", "--quiet")[0] == 0
    assert run("diff", "1", "2")[0] == 0
