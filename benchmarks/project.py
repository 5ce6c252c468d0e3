"""How long a project's run takes when one label in a hundred is new, against a run from the beginning.

``python benchmarks/project.py`` on PICO (beside the checkout); both runs are processes of their own, in turn,
so that the ratio holds on a busy machine too.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import options
import quorate
from quorate.formats import write

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FILE = 'inputs = ["exports/*.jsonl"]\n[aggregate]\noutput = "consensus.jsonl"\n'


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("--crowd", default="pico", help="a file in shared/data, without its ending")
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    corpus = quorate.read(DATA / f"{given.crowd}.jsonl.gz")
    few = len(corpus) // 100
    with tempfile.TemporaryDirectory() as place:
        project = Path(place, "project")
        (project / "exports").mkdir(parents=True)
        (project / "quorate.toml").write_text(FILE)
        write(quorate.Corpus(corpus.documents[few:]), project / "exports" / "first.jsonl")
        run(project)
        kept = shutil.copytree(project / ".quorate", Path(place, "kept"))
        write(quorate.Corpus(corpus.documents[:few]), project / "exports" / "second.jsonl")
        print(f"{given.crowd}: {len(corpus):,} documents, {few:,} of them new")
        for _ in range(given.times):
            shutil.rmtree(project / ".quorate")
            whole = run(project)
            shutil.rmtree(project / ".quorate")
            shutil.copytree(kept, project / ".quorate")
            after = run(project)
            print(f"from the beginning {whole:.1f} s of CPU, with what is new {after:.1f} s: {after / whole:.2f}")


def run(project: Path) -> float:
    """The CPU time of a run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "quorate", "run", "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as where quorate is installed
    subprocess.run(command, cwd=project, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
