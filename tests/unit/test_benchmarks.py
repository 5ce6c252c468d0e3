"""Every benchmark says what it does, and shows test figures only to whoever asks for them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = [path for path in sorted((ROOT / "benchmarks").glob("*.py")) if '"__main__"' in path.read_text()]


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_prints_help_and_scores_test_only_if_asked(path: Path) -> None:
    done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {path.name} ")
    source = ast.parse(path.read_text())
    assert (ast.get_docstring(source) or "").splitlines()[0] in done.stdout
    names_test = any(isinstance(node, ast.Constant) and node.value == "test" for node in ast.walk(source))
    assert ("--test" in done.stdout) is names_test


@pytest.mark.parametrize(
    "command",
    [
        "accuracy.py --test",
        "accuracy.py groups --test",
        "paper.py --test",
        "sources.py --test",
        "tagger.py ner crf --test",
    ],
)
def test_docs_that_show_test_figures_name_the_command_that_prints_them(command: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"python benchmarks/{command}" in page.read_text(encoding="utf-8") for page in pages)


def test_docs_name_only_options_that_benchmarks_have() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    for name, arguments in re.findall(r"python\s+benchmarks/(\w+)\.py([^`]*)`", pages):
        source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
        for flag in re.findall(r"--[a-z-]+", arguments):
            assert f'"{flag}"' in source or (flag == "--test" and "scores_splits" in source), (name, flag)


@pytest.mark.parametrize("what", ["sources", "copies"])
def test_the_table_of_sources_has_a_cell_for_each_head(what: str) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "sources.py"), what, "--only", "rules"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    head, line, row = [text.strip("|").split("|") for text in done.stdout.splitlines()]
    assert len(head) == len(line) == len(row)
    assert row[0].strip() == "rules"
    told = dict(zip((text.strip() for text in head), (text.strip(" *") for text in row), strict=True))
    assert float(told["default"]) > 85
    assert what == "copies" or float(told["silent-vote"]) > float(told["mv"])


def test_the_table_of_sources_knows_its_crowds() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "sources.py"), "--only", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("no crowd 'nowhere' (one of: wikigold-rules, ")
