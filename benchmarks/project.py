"""How long a project's run takes when one label in a hundred is new, against a run from the beginning.

``python benchmarks/project.py`` on PICO (beside the checkout); both runs are processes of their own, in turn,
so that the ratio holds on a busy machine too.

``python benchmarks/project.py kept`` says what is lost when a choice of settings is kept while labels come: strict F1
on the dev split with a choice that was made on a part of the documents, beside that with a choice made on all of them.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import options
import quorate
from quorate.formats import write

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FILE = 'inputs = ["exports/*.jsonl"]\n[aggregate]\noutput = "consensus.jsonl"\n'


def main() -> None:
    parser = options.parser_of(__doc__)
    parser.add_argument("what", nargs="?", choices=("time", "kept"), default="time")
    parser.add_argument("--crowd", default="pico", help="a file in shared/data, without its ending")
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    corpus = quorate.read(DATA / f"{given.crowd}.jsonl.gz")
    if given.what == "kept":
        lost_by_keeping(corpus, given.crowd, given.times)
        return
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


def lost_by_keeping(corpus: quorate.Corpus, crowd: str, draws: int) -> None:
    """What a choice of settings made on nine tenths of the documents, and on half of them, costs without a tagger."""
    gold = {d: one.gold for d, one in enumerate(corpus) if one.split in ("dev", "valid") and one.gold is not None}

    def f1(model: quorate.BSC) -> float:
        return 100 * quorate.score.strict([model.result_[d].tags for d in gold], list(gold.values())).f1

    whole = quorate.BSC(tagger=None).fit(corpus)
    print(f"{crowd}: {f1(whole):.2f} with a choice made on all {len(corpus):,} documents", flush=True)
    for share in (0.9, 0.5):
        found = []
        for draw in range(draws):
            drawn = np.random.default_rng(draw).permutation(len(corpus))[: int(share * len(corpus))]
            part = quorate.Corpus([corpus[int(d)] for d in np.sort(drawn)], profiles=corpus.profiles)
            chosen = quorate.BSC(tagger=None).fit(part).choice_
            found.append(f1(quorate.BSC(tagger=None).fit(corpus, choice=chosen)))
        told = ", ".join(f"{one:.2f}" for one in found)
        print(f"{crowd}: {told} with one made on {100 * share:.0f} % of them", flush=True)


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
