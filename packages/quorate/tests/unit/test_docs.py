"""Examples in the docs do what the docs say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import quorate
from quorate import score
from quorate.cli import app
from simulated_crowds import every_kind

ROOT = Path(__file__).resolve().parents[4]


def error_examples() -> list[tuple[str, list[str], list[str]]]:
    text = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z ]+) \| `([^`]*)`<br>`([^`]*)` \|", text, flags=re.M)
    return [(kind.replace(" ", "_"), gold.split(), predicted.split()) for kind, gold, predicted in rows]


@pytest.mark.parametrize(("kind", "gold", "predicted"), error_examples())
def test_examples_of_error_kinds(kind: str, gold: list[str], predicted: list[str]) -> None:
    assert getattr(score.error_kinds([predicted], [gold]), kind) == 1


def test_every_kind_of_error_has_an_example() -> None:
    assert {kind for kind, _, _ in error_examples()} == set(score.ErrorKinds._fields) - {"length_error"}


GUIDES = [page for page in sorted((ROOT / "docs" / "tools").glob("*.md")) if page.name != "index.md"]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_a_guide_takes_five_lines_from_the_export_to_the_consensus(guide: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:console|python)\n(.*?)```", text, flags=re.S)
    first = next(block for block in blocks if "quorate" in block)
    commands = [line for line in first.splitlines() if line.strip() and not line.startswith("quorate:")]
    assert 1 <= len(commands) <= 5
    assert "aggregate" in first


def test_every_format_has_its_guide_and_every_guide_is_linked() -> None:
    from quorate.formats import FORMATS

    overview = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in overview for name in FORMATS)
    assert all(f"tools/{guide.name}" in overview for guide in GUIDES)


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.S)


def test_samples_of_one_model_are_one_annotator_with_their_shares() -> None:
    page = ROOT / "docs" / "tools" / "models-and-rules.md"
    block = next(block for block in python_blocks(page) if "def shares" in block)
    names: dict[str, Any] = {}
    exec(compile(block, page.name, "exec"), names)
    call, shown = re.findall(r"^(shares\(.*)\n# (.*)", block, flags=re.M)[0]
    assert repr(eval(call, names)) == shown


def test_annotators_by_kind_are_as_the_page_shows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "tools" / "models-and-rules.md").read_text(encoding="utf-8")
    shown = re.search(r"\$ quorate annotators crowd.quorate\n(.*?)```", page, flags=re.S)
    assert shown
    quorate.BSC().fit(every_kind()).save(tmp_path / "crowd.quorate")
    monkeypatch.setenv("COLUMNS", "80")
    printed = CliRunner().invoke(app, ["annotators", str(tmp_path / "crowd.quorate")]).output
    lines = [line.rstrip() for line in printed.splitlines()]
    assert [line for line in shown[1].splitlines() if line != "…" and line not in lines] == []
