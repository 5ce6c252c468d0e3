"""Ours against crowd-kit on the NER crowd, in one run: ``python benchmarks/rivals.py``.

Both get their input laid out as they take it (crowd-kit a DataFrame of labels, ours a crowd of arrays); what is timed
is fit and output, and the least of five runs counts. Reads ../shared/data/ner.jsonl.gz.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import options
import quorate
from quorate.corpus.tags import Invalid
from quorate.crowd.crowd import Crowd
from quorate.estimators.methods import estimator
from quorate.model.fit import fit_and_decode
from quorate.model.prepared import crowd_of
from quorate.model.settings import Decode
from quorate.model.votes import majority

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "ner.jsonl.gz"


def main() -> None:
    options.parser_of(__doc__).parse_args()
    compare()


def compare() -> None:
    """Every method that both have, and what the times are to each other."""
    if not DATA.exists():
        sys.exit(f"{DATA}: not found")
    try:
        import pandas as pd
        from crowdkit.aggregation import MACE, DawidSkene, MajorityVote
    except ImportError:
        sys.exit("crowd-kit is not installed (pip install -e './packages/quorate[dev]')")
    warnings.simplefilter("ignore")
    corpus = quorate.read(DATA)
    frame = pd.DataFrame(
        [
            (f"{document.id}:{position}", worker, tag)
            for document in corpus
            for worker, tags in document.annotations.items()
            for position, tag in enumerate(tags)
            if tag is not None
        ],
        columns=["task", "worker", "label"],
    )
    seen = crowd_of(corpus, None, Invalid.KEEP)
    models: dict[str, Any] = {
        "ds": estimator("ds", tol=0.0),
        "mace": estimator("mace", tol=0.0, n_init=1),
        "hmm-crowd": estimator("hmm-crowd", tol=0.0),
    }
    theirs: dict[str, Any] = {"ds": DawidSkene(n_iter=20), "mace": MACE(n_restarts=1, n_iter=20)}
    vote = partial(majority, seen, decode=Decode.TOKEN)
    report("mv, by token", vote, partial(MajorityVote().fit_predict, frame))
    for name, model in models.items():
        rival = partial(theirs[name].fit_predict, frame) if name in theirs else None
        report(f"{name}, 20 passes", partial(fitted, model, seen), rival)


def fitted(model: quorate.BSC, seen: Crowd) -> None:
    """Fit and output, without reading and without summaries."""
    fit_and_decode(seen, model.checked_settings(), model.engines())


def report(name: str, ours: Callable[[], Any], theirs: Callable[[], Any] | None) -> None:
    ours()  # loads the kernels
    seconds = best_of_five(ours)
    if theirs is None:
        print(f"{name}: {seconds:.3f} s")
        return
    other = best_of_five(theirs)
    print(f"{name}: {seconds:.3f} s, crowd-kit {other:.2f} s: {other / seconds:.0f} times", flush=True)


def best_of_five(work: Callable[[], Any]) -> float:
    """The least of five runs: what else the machine does can only add to it. One run is enough for what takes long."""
    seconds = timed(work)
    return seconds if seconds > 10 else min(seconds, *(timed(work) for _ in range(4)))


def timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
