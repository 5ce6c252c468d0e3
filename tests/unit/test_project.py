"""Promises about the code itself: layers, public names, light import, docs that match."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import quorate

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "quorate"

# read → encode → infer → decode → score / report / write: a module imports only from lines above its own.
LAYERS = [
    ["errors", "terminal", "unfinished"],
    ["limits"],
    ["tags", "units", "files"],
    ["people", "tokens", "features"],
    ["corpus", "container", "resumable"],
    ["formats.notes", "formats.opened"],
    ["formats.zipped", "formats.json_records"],
    ["formats.marked", "formats.pages"],
    ["formats.changes", "formats.layering", "formats.corrected"],
    ["formats.assemble", "formats.jsonl", "formats.conll", "formats.table", "formats.spans_csv"],
    [
        "formats.argilla",
        "formats.brat",
        "formats.cas",
        "formats.doccano",
        "formats.huggingface",
        "formats.label_studio",
        "formats.mace",
        "formats.prodigy",
        "formats.sagemaker",
        "formats.spacy_docs",
    ],
    ["formats.registry", "formats.consensus_book"],
    ["formats.known"],
    ["formats"],
    ["encode", "stored_checks", "memory", "modelfile"],
    ["pairs"],
    ["lots"],
    ["infer.cores", "infer.simd", "infer.single", "infer.distinct", "infer.gain", "infer.compiled"],
    ["infer.special"],
    ["infer.dirichlet", "infer.layout", "infer.condense", "infer.gamma_kernels"],
    ["infer.lanes"],
    ["infer.chain"],
    ["infer.output"],
    ["infer", "infer.truth", "infer.text", "infer.annotators"],
    ["infer.confusions"],
    ["infer.plain"],
    ["infer.engine"],
    ["infer.jax_engine", "infer.cluster"],
    ["infer.engines"],
    ["infer.vb", "stored"],
    ["taggers.kernels", "taggers.features"],
    ["taggers.crf"],
    ["taggers.context"],
    ["taggers"],
    ["teaching"],
    ["settings", "summaries", "heldout"],
    ["groups", "notebook"],
    ["figures"],
    ["trust", "alike", "rivals"],
    ["decode", "models", "history"],
    ["asking"],
    ["stopping", "curves"],
    ["datasets.archives", "datasets.pico_tokens"],
    ["datasets.ner", "datasets.pico"],
    ["datasets"],
    ["score.reading"],
    ["score.spans", "score.kappa", "score.unitizing"],
    [
        "score.overlap",
        "score.tokens",
        "score.calibration",
        "score.span_errors",
        "score.significance",
        "score.agreement",
    ],
    ["score"],
    ["simulate"],
    ["samples"],
    ["estimators"],
    ["automatic", "updating"],
    ["crf"],
    ["crf_ma"],
    ["api"],
    ["check", "comparison", "demo", "layers", "streaming"],
    [
        "tuning",
        "active",
        "advice",
        "report.influence",
        "report.people",
        "report.page",
        "report.promises",
        "label_studio.client",
    ],
    ["report.documents", "report.findings", "label_studio.sync"],
    ["report.against", "label_studio"],
    ["report.data"],
    ["report"],
    ["cli.common"],
    ["cli.tables", "cli.known"],
    ["cli.ask", "cli.combine", "cli.measure", "cli.data", "cli.convert", "cli.label_studio"],
    ["cli.show"],
    ["cli"],
    ["__main__"],
]
LEVEL = {module: level for level, modules in enumerate(LAYERS) for module in modules}


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name:
            found.append((name, path))
    return found


def imports(path: Path) -> set[str]:
    """Modules of this package that a file imports at run time (what only type checkers read does not count)."""
    found: set[str] = set()

    class Visitor(ast.NodeVisitor):
        def visit_If(self, node: ast.If) -> None:
            if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
                self.generic_visit(node)

        def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
            if node.module == "quorate":
                found.update(alias.name for alias in node.names)
            elif node.module and node.module.startswith("quorate."):
                base = node.module.removeprefix("quorate.")
                subs = {f"{base}.{alias.name}" for alias in node.names} & set(LEVEL)
                found.update(subs or {base})

    Visitor().visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize(("name", "path"), modules())
def test_modules_import_only_what_stands_before_them(name: str, path: Path) -> None:
    assert name in LEVEL, f"{name} has no place in the order of layers"
    later = {other for other in imports(path) if other in LEVEL and LEVEL[other] >= LEVEL[name]}
    assert not later


@pytest.mark.parametrize(("name", "path"), modules())
def test_modules_stay_short(name: str, path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


@pytest.mark.parametrize("name", [name for name, _ in modules()])
def test_all_names_exist(name: str) -> None:
    module = importlib.import_module(f"quorate.{name}")
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public)


def test_every_public_name_has_a_docstring_with_an_example() -> None:
    assert set(quorate.__all__) <= set(dir(quorate))
    for name in quorate.__all__:
        value = getattr(quorate, name)
        if isinstance(value, type) or callable(value):
            assert ">>>" in (value.__doc__ or ""), f"{name} has no example"


def test_import_is_light() -> None:
    heavy = ("numpy", "scipy", "numba", "jax", "distributed", "typer", "rich", "msgspec", "pandas")
    code = f"import sys, quorate; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_numba_loads_only_when_a_fit_starts() -> None:
    code = "import sys, quorate; quorate.BSC(); quorate.sample(); print('numba' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


def test_docs_name_only_options_that_exist() -> None:
    import typer.main

    from quorate.cli import app

    command = typer.main.get_command(app)
    known = {"--help", "--version"}
    groups = [command]
    while groups:
        for sub in groups.pop().commands.values():  # type: ignore[attr-defined]
            known |= {flag for parameter in sub.params for flag in parameter.opts if flag.startswith("--")}
            groups += [sub] if hasattr(sub, "commands") else []
    text = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", "\n".join(re.findall(r"quorate [^\n]*|`--[^`]*`", text))))
    assert used
    assert used <= known, sorted(used - known)


def test_docs_explain_every_setting() -> None:
    from dataclasses import fields

    from quorate.settings import Settings

    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    missing = [field.name for field in fields(Settings) if f"`{field.name}`" not in text]
    assert not missing


def test_only_the_module_of_schemes_lists_their_prefixes() -> None:
    listed = re.compile(r'"BIES"|"B-", "I-"')
    assert [
        path.name for path in SOURCE.rglob("*.py") if path.name != "tags.py" and listed.search(path.read_text())
    ] == []
