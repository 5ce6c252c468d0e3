"""A stranger's first minute: a fresh clone and empty caches. ``python benchmarks/first_minute.py``.

What is not committed does not count. Packages come from the index, so the line decides over much of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import options

ROOT = Path(__file__).resolve().parents[1]
CROWD = ROOT.parent / "shared" / "data" / "ner.jsonl.gz"
IMPORT = "import time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"


def timed(what: str, folder: Path, *command: str) -> float:
    """Run a command in a folder whose caches are empty; print and return its seconds."""
    caches = {"PIP_NO_CACHE_DIR": "1", "XDG_CACHE_HOME": str(folder / ".cache"), "PYTHON": sys.executable}
    surroundings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MAKEFLAGS")}
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env=surroundings | caches, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    print(f"{what:<44}{seconds:8.1f} s", flush=True)
    return seconds


def megabytes(folder: Path) -> float:
    """What the files of a folder take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if not path.is_symlink()) / 1e6


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("--repository", default=str(ROOT), help="what is cloned [this checkout]")
    parser.add_argument(
        "--crowd", type=Path, default=CROWD, help="what is fitted twice at the end [NER, if it is there]"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        timed("clone", Path(name), "git", "clone", "--quiet", "--depth", "1", f"file://{given.repository}", "quorate")
        clone = Path(name, "quorate")
        python = clone / ".venv" / "bin" / "python"
        timed("environment alone", Path(name), sys.executable, "-m", "venv", "environment")
        install = timed("environment, packages, kernels", clone, "make", "--silent", ".venv/.ready")
        answer = timed("first answer", clone, "make", "--silent", "demo")
        print(f"{'make demo, these two together':<44}{install + answer:8.1f} s")
        print(f"{'size of the environment':<44}{megabytes(clone / '.venv'):8.0f} MB")
        for module in ("quorate", "quorate.cli", "quorate.api"):
            took = float(subprocess.check_output([python, "-c", IMPORT.format(module)], text=True, cwd=name))
            print(f"{f'import {module}':<44}{1000 * took:8.0f} ms")
        if given.crowd.exists():
            for which in ("first", "second"):
                fit = [str(python), "-m", "quorate", "aggregate", str(given.crowd), "-o", "out.jsonl", "--quiet"]
                timed(f"quorate aggregate {given.crowd.name}, the {which} time", clone, *fit)


if __name__ == "__main__":
    main()
