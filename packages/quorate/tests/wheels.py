"""The wheels that people install, built as an installation from the checkout builds them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from needs import missing

__all__ = ["PACKAGES", "beside_the_code", "built"]

PACKAGES = Path(__file__).resolve().parents[2]
LEFT_OUT = (
    ".so",
    ".pyd",
    ".dylib",
    ".o",
    ".c",
    ".h",
    ".pyc",
    ".dll",
)  # of a build


def built(package: str, folder: Path) -> zipfile.ZipFile:
    """The wheel of a package of the repository."""
    source = str(PACKAGES / package)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    wheels = list(folder.glob(f"{package.replace('-', '_')}-*.whl"))
    if not wheels:
        if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
            missing("there is no package index to get the build tools from")
        pytest.fail(done.stderr[-2_000:])
    return zipfile.ZipFile(wheels[0])


def beside_the_code(source: Path) -> set[str]:
    """All files of a package that its wheel is to have."""
    return {
        path.relative_to(source.parent).as_posix()
        for path in source.rglob("*")
        if path.is_file() and path.suffix not in LEFT_OUT and "__pycache__" not in path.parts
    }
