"""``aggregate --shares``: soft labels and ambiguity in JSONL, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import quorate
from quorate.cli import app
from quorate.errors import SettingsError


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    path = tmp_path / "crowd.jsonl"
    lines = [
        {"id": one.id, "tokens": one.tokens, "annotations": dict(one.annotations)}
        for one in list(quorate.sample())[:60]
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def test_shares_are_written_beside_the_consensus(crowd: Path, tmp_path: Path) -> None:
    out = tmp_path / "consensus.jsonl"
    done = CliRunner().invoke(app, ["aggregate", str(crowd), "--method", "mv", "-o", str(out), "--shares"])
    assert done.exit_code == 0, done.output
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(records) == 60
    for record in records:
        shares = np.array(record["shares"])
        assert shares.shape == (len(record["tokens"]), len(record["labels"]))
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=0, atol=1e-4)
        assert 0 <= record["ambiguity"] <= len(record["tokens"])


def test_without_being_asked_for_they_are_not_written(crowd: Path, tmp_path: Path) -> None:
    out = tmp_path / "consensus.jsonl"
    CliRunner().invoke(app, ["aggregate", str(crowd), "--method", "mv", "-o", str(out), "--quiet"])
    assert not {"shares", "ambiguity", "labels"} & set(json.loads(out.read_text().splitlines()[0]))


def test_formats_that_hold_no_shares_are_refused(crowd: Path, tmp_path: Path) -> None:
    out = tmp_path / "consensus.conll"
    done = CliRunner().invoke(app, ["aggregate", str(crowd), "--method", "mv", "-o", str(out), "--shares"])
    assert isinstance(done.exception, SettingsError)
    assert "jsonl" in str(done.exception)
    assert not out.exists()


@pytest.mark.parametrize(
    "command",
    [
        ["aggregate", "gone.jsonl", "-o", "consensus.conll"],
        ["aggregate", "gone.jsonl", "-o", "-", "--to", "conll"],
        ["aggregate", "gone.jsonl", "-o", "sure.jsonl", "--accept", "0.9", "--review", "unsure.conll"],
        ["predict", "gone.quorate", "gone.jsonl", "-o", "consensus.conll"],
    ],
)
def test_they_are_refused_before_any_work(command: list[str]) -> None:
    """Not even the input is looked at."""
    done = CliRunner().invoke(app, [*command, "--shares"])
    assert isinstance(done.exception, SettingsError)
    assert "--shares goes into jsonl, and conll holds none" in str(done.exception)
