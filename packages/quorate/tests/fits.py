"""A crowd to fit to, and two fits side by side."""

from __future__ import annotations

import numpy as np

from quorate import BSC, Corpus
from quorate.corpus.simulate import Behaviour, crowd

__all__ = ["assert_same", "people_on", "statistics"]


def people_on(corpus: Corpus) -> Corpus:
    people = {f"a{n}": Behaviour(miss=0.1 + 0.05 * n, confuse=0.05 * n, start_late=0.1, invent=0.004) for n in range(6)}
    return crowd(corpus, people, per_document=4, seed=1)


def statistics(model: BSC) -> dict[str, np.ndarray]:
    """Everything that a model has learned, by name and not by number."""
    fitted = model.fitted_
    parts = fitted.model
    found = dict(parts.truth.arrays())
    if parts.text is not None:
        found |= {f"word {word}": row for word, row in zip(fitted.words, parts.text.counts, strict=True)}
    for number, name in enumerate(fitted.names):
        found[f"annotator {name}"] = parts.annotators.matrix(number)
    return found


def assert_same(one: BSC, other: BSC, atol: float) -> None:
    mine, theirs = statistics(one), statistics(other)
    nothing = np.zeros(len(one.tagset_.labels))
    for name in mine.keys() | theirs.keys():  # a word that only ever stood in a document taken out counts nothing
        np.testing.assert_allclose(mine.get(name, nothing), theirs.get(name, nothing), rtol=0, atol=atol, err_msg=name)
