"""The same input makes the same bytes, whatever order Python's sets happen to have in a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from quorate import Corpus
from quorate.formats.jsonl import write_corpus

SCRIPT = """
import importlib.util
from dataclasses import replace
import quorate
from quorate.formats import FORMATS
from quorate.storage.corpora import store

corpus = quorate.read("crowd.jsonl")
store(corpus, "crowd.qr")
model = quorate.api.estimator("auto", tagger="crf").fit(corpus)
quorate.report.write_report(model, "report.html")
trace = model.trace_._replace(seconds=0.0)  # the time that a fit took is kept with it
model.fitted_ = replace(model.fitted_, trace=trace)
model.save("model.quorate")
needs = {"spacy": "spacy", "table": "pyarrow", "cas": "cassis"}
for name, format in FORMATS.items():
    if format.writes and (not format.extra or importlib.util.find_spec(needs[format.extra])):
        ending = "".join(format.endings[:1])
        quorate.formats.write(corpus, f"corpus-{name}{ending}", name)
        model.result_.write(f"consensus-{name}{ending}", name)
"""


def test_everything_written_is_the_same_under_any_hash_seed(tmp_path: Path, sample: Corpus) -> None:
    written = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        with (folder / "crowd.jsonl").open("wb") as stream:
            write_corpus(sample, stream)
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", SCRIPT], cwd=folder, env=environment, check=True, timeout=300)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        written.append({path.relative_to(folder).as_posix(): path.read_bytes() for path in files})
    first, second = written
    assert list(first) == list(second)
    assert {"crowd.qr", "report.html", "model.quorate", "consensus-jsonl.jsonl"} <= set(first)
    assert [name for name in first if first[name] != second[name]] == []
