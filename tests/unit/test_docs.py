"""Examples in the docs do what the docs say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorate import score

ROOT = Path(__file__).resolve().parents[2]


def error_examples() -> list[tuple[str, list[str], list[str]]]:
    text = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z ]+) \| `([^`]*)`<br>`([^`]*)` \|", text, flags=re.M)
    return [(kind.replace(" ", "_"), gold.split(), predicted.split()) for kind, gold, predicted in rows]


@pytest.mark.parametrize(("kind", "gold", "predicted"), error_examples())
def test_examples_of_error_kinds(kind: str, gold: list[str], predicted: list[str]) -> None:
    assert getattr(score.error_kinds([predicted], [gold]), kind) == 1


def test_every_kind_of_error_has_an_example() -> None:
    assert {kind for kind, _, _ in error_examples()} == set(score.ErrorKinds._fields) - {"length_error"}


GUIDES = sorted((ROOT / "docs" / "tools").glob("*.md"))


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


def test_readme_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for block in python_blocks(ROOT / "README.md"):
        exec(compile(block, "README.md", "exec"), {})
    assert "ana" in capsys.readouterr().out
