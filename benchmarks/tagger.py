"""What a tagger in the loop adds, round by round: ``python benchmarks/tagger.py ner crf``.

Takes a crowd (ner, pico or wikigold-rules) and a tagger (crf or context). Prints one row a round for docs/tagger.md:
dev, or with --test dev, test and both together. No gold is read in fitting.
``python benchmarks/tagger.py disjoint_batches --hidden``: whether annotators who were hidden can tell what one round of
the tagger crf does to strict F1, on a real crowd (dev) or a simulated one.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import accuracy
import options
import quorate
from quorate import score
from quorate.choose.choice import CHOSEN, choose
from quorate.choose.hidden import hide
from quorate.corpus.profiles import trust_of
from quorate.corpus.tags import Invalid
from quorate.encode.algebra import only_documents, with_annotator
from quorate.encode.encoded import Encoded
from quorate.estimators.bsc import BSC
from quorate.estimators.methods import DEFAULT_METHOD, METHODS
from quorate.infer import loop
from quorate.infer.engines.protocol import Decoded
from quorate.infer.engines.threads import ThreadsEngine
from quorate.models.build import model_of
from quorate.models.prepared import prepare
from quorate.models.settings import Settings
from quorate.result.result import Result
from quorate.taggers import make_tagger
from quorate.taggers.loop import ROUNDS, TAGGER, best_path, cross_fitted

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main() -> None:
    parser = options.scores_splits(options.parser_of(__doc__))
    parser.add_argument("crowd", help="ner, pico or wikigold-rules; with --hidden also a crowd of tests/crowds.py")
    parser.add_argument("tagger", nargs="?", choices=["crf", "context"], default="crf")
    parser.add_argument("--hidden", action="store_true", help="whether hidden annotators can tell what it does")
    given = parser.parse_args()
    if given.hidden:
        judged_by_hidden(given.crowd)
    else:
        rounds(given.crowd, given.tagger, [("dev",), ("test",), ("dev", "test")] if given.test else [("dev",)])


def rounds(crowd: str, tagger: str, splits: list[tuple[str, ...]]) -> None:
    """A row for each."""
    print(f"{crowd}, {tagger}")
    heads = [f"{' and '.join(names)}: {what}" for names in splits for what in ("strict", "relaxed", "CEE")]
    print(f"| round | {' | '.join(heads)} | CPU s |")
    print("|---" * (len(heads) + 2) + "|")
    began, number = time.process_time(), 0

    class Shown(BSC):
        """Prints a row after every round."""

        def _conclude(self, *given: Any) -> None:
            nonlocal began, number
            super()._conclude(*given)
            spent = time.process_time() - began
            label = str(number) if number <= ROUNDS else "calibrated"  # the last round's fit, read anew
            print(f"| {label} | {' | '.join(row(self.result_, names) for names in splits)} | {spent:.0f} |", flush=True)
            number += 1
            began = time.process_time()

    Shown(**METHODS[DEFAULT_METHOD].settings, tagger=tagger).fit(quorate.read(DATA / f"{crowd}.jsonl.gz"))


def judged_by_hidden(name: str) -> None:
    """One round of the tagger on a crowd of which some is hidden, and on all of it."""
    path = DATA / f"{name}.jsonl.gz"
    corpus = quorate.read(path) if path.exists() else accuracy.simulated(name)
    prepared = prepare(corpus, None, Invalid.REPAIR)
    settings = choose(prepared, Settings(), CHOSEN).settings
    hidden = hide(prepared.encoded, seed=1)  # not those who have chosen
    assert hidden is not None
    agreements, scores = [], []
    for encoded, numbers in ((hidden.rest, hidden.documents), (prepared.encoded, np.arange(len(corpus)))):
        said = encoded
        for _ in range(2):
            engine = ThreadsEngine(said)
            blank = model_of(settings, said.tagset, said, trust_of(said.annotators, corpus.profiles))
            model = loop.fit(engine, blank, said.cells, start=settings.start, max_passes=settings.max_iter).model
            sample = only_documents(said, numbers)
            decoded = loop.decode(ThreadsEngine(sample), model, sample.cells)
            if encoded is hidden.rest:
                agreements.append(hidden.agreement(decoded))
            else:
                scores.append(strict_of(decoded, sample, corpus))
            posterior = loop.decode(engine, model, said.cells).posterior
            tagger = make_tagger("crf", said.tagset)
            rng = np.random.default_rng(0)
            tagged = cross_fitted(corpus, encoded, tagger, posterior, folds=3, rng=rng, progress=lambda _: None)
            said = with_annotator(encoded, TAGGER, best_path(encoded.tagset, tagged, encoded.doc_start))
    gain, error = agreements[1].gain_over(agreements[0])
    print(
        f"{name}: strict F1 {scores[0]:.1f} to {scores[1]:.1f} with the tagger; hidden annotators say "
        f"{100 * gain:+.1f} (standard error {100 * error:.1f})",
        flush=True,
    )


def strict_of(decoded: Decoded, encoded: Encoded, corpus: quorate.Corpus) -> float:
    """In points, on dev where there are splits."""
    places = [d for d, document in enumerate(corpus) if document.gold and document.split in (None, "dev")]
    tags = [
        [encoded.tagset.labels[code] for code in decoded.path[encoded.doc_start[d] : encoded.doc_start[d + 1]]]
        for d in places
    ]
    return 100 * score.strict(tags, [corpus[d].gold or () for d in places]).f1


def row(result: Result, splits: tuple[str, ...]) -> str:
    """Strict and relaxed F1 in points, and cross entropy."""
    chosen = [one for one in result if one.document.split in splits and one.document.gold is not None]
    tags, gold = [one.tags for one in chosen], [one.document.gold or () for one in chosen]
    entropy = score.cross_entropy([one.probabilities for one in chosen], gold, result.labels)
    strict, relaxed = score.strict(tags, gold), score.relaxed(tags, gold)
    return f"{100 * strict.f1:.1f} | {100 * relaxed.f1:.1f} | {entropy.mean:.2f}"


if __name__ == "__main__":
    main()
