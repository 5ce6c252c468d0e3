"""Every benchmark says what it does, and shows test figures only to whoever asks for them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
BENCHMARKS = [path for path in sorted((ROOT / "benchmarks").glob("*.py")) if '"__main__"' in path.read_text()]


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_prints_help_and_scores_test_only_if_asked(path: Path) -> None:
    done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {path.name} ")
    source = ast.parse(path.read_text())
    assert (ast.get_docstring(source) or "").splitlines()[0] in done.stdout
    names_test = any(
        (isinstance(node, ast.Constant) and node.value == "test")
        or (isinstance(node, ast.Name) and node.id == "Row")  # of crowds.py, some of them test splits
        for node in ast.walk(source)
    )
    assert ("--test" in done.stdout) is names_test


FIGURES = {
    "crowds.md": "make crowds",
    "coverage.md": "python benchmarks/audit.py --test -o docs/coverage.md",
    "paper.md": "python benchmarks/paper.py --test -o docs/paper.md",
}
"""The pages with figures of accuracy, and what writes each."""


@pytest.mark.parametrize(("page", "command"), FIGURES.items())
def test_a_page_with_figures_of_accuracy_names_the_command_that_writes_it(page: str, command: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert f"`{command}`" in text


def test_no_other_page_has_a_table_of_accuracy() -> None:
    heads = re.compile(
        r"^\|.*\b(strict|relaxed|F1|CEE|ECE|cross entropy|calibration error)\b.*\|\n\|[-:| ]+\|\n\|.*\d\.\d", re.M
    )
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    assert [page.name for page in pages if page.name not in FIGURES and heads.search(page.read_text("utf-8"))] == []


def test_docs_name_only_benchmarks_that_are_there() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "RELEASING.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"benchmarks/(\w+)\.py", page.read_text(encoding="utf-8"))}
    assert named
    assert [name for name in sorted(named) if not (ROOT / "benchmarks" / f"{name}.py").exists()] == []


def test_docs_name_only_options_that_benchmarks_have() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    for name, arguments in re.findall(r"python\s+benchmarks/(\w+)\.py([^`]*)`", pages):
        source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
        for flag in re.findall(r"--[a-z-]+", arguments):
            assert f'"{flag}"' in source or (flag == "--test" and "scores_splits" in source), (name, flag)
