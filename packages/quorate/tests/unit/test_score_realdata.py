"""Scores of the real crowds' majority vote: the paper's figures, and other packages' answers on the same tags."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from nervaluate import Evaluator
from seqeval.metrics.v1 import precision_recall_fscore_support  # seqeval's strict mode
from seqeval.scheme import IOB2

import quorate
from quorate import score

DATA = Path(__file__).resolve().parents[4].parent / "shared" / "data"

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"the real crowds are not in {DATA}"),
]


class Scored(NamedTuple):
    predicted: list[list[str]]
    gold: list[tuple[str | None, ...]]
    probabilities: list[np.ndarray]
    labels: tuple[str, ...]


@cache
def vote(name: str) -> Scored:
    """The vote on each token, with invalid tags kept, on the documents of the test split."""
    corpus = quorate.read(DATA / f"{name}.jsonl.gz").select(lambda d: d.split == "test" and d.gold is not None)
    result = quorate.aggregate(corpus, method="mv", invalid="keep", decode="token")
    return Scored(result.tags, [document.gold or () for document in corpus], result.probabilities, result.labels)


def test_majority_vote_on_ner_scores_as_in_the_paper() -> None:
    ner = vote("ner")
    found = score.strict(ner.predicted, ner.gold)
    assert [100 * value for value in found] == pytest.approx([79.9, 55.3, 65.4], abs=0.3)
    assert score.cross_entropy(ner.probabilities, ner.gold, ner.labels).mean == pytest.approx(6.24, abs=0.1)


def test_majority_vote_on_pico_scores_as_in_the_paper() -> None:
    pico = vote("pico")
    assert 100 * score.relaxed(pico.predicted, pico.gold).f1 == pytest.approx(64.3, abs=0.5)
    assert 100 * score.relaxed(pico.predicted, pico.gold, orphans=False).f1 == pytest.approx(61.6, abs=0.1)
    assert score.cross_entropy(pico.probabilities, pico.gold, pico.labels).mean == pytest.approx(2.55, abs=0.1)


@pytest.mark.parametrize("orphans", [True, False])
@pytest.mark.parametrize(("name", "gold_spans", "invalid"), [("ner", 5144, 81), ("pico", 349, 40)])
def test_error_kinds_add_up_to_the_gold_spans(name: str, gold_spans: int, invalid: int, orphans: bool) -> None:
    kinds = score.error_kinds(vote(name).predicted, vote(name).gold, orphans=orphans)
    assert kinds.exact + kinds.wrong_type + kinds.partial + kinds.missed == gold_spans
    assert kinds.invalid == invalid  # the paper's count, exactly


@pytest.mark.parametrize("name", ["ner", "pico"])
def test_strict_is_seqeval(name: str) -> None:
    predicted, gold = vote(name).predicted, [list(truth) for truth in vote(name).gold]
    theirs = precision_recall_fscore_support(gold, predicted, average="micro", scheme=IOB2)[:3]
    assert score.strict(predicted, gold) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize(("data", "types"), [("ner", ["PER", "LOC", "ORG", "MISC"]), ("pico", ["P"])])
def test_strict_partial_and_typed_are_nervaluate(data: str, types: list[str]) -> None:
    predicted, gold = vote(data).predicted, [list(truth) for truth in vote(data).gold]
    theirs = Evaluator(gold, predicted, tags=types, loader="list").evaluate()["overall"]
    for ours, name in [(score.strict, "strict"), (score.partial, "partial"), (score.typed, "ent_type")]:
        expected = (theirs[name].precision, theirs[name].recall, theirs[name].f1)
        assert ours(predicted, gold, orphans=True) == pytest.approx(expected, rel=1e-12), name


def test_agreement_of_the_ner_crowd_is_fair() -> None:
    found = score.measure_agreement(quorate.read(DATA / "ner.jsonl.gz"))
    assert found.alpha == pytest.approx(found.fleiss_kappa, abs=0.01)  # nearly five annotators everywhere
    assert found.alpha is not None
    assert 0.5 < found.alpha < 0.6
    assert set(found.unitizing_by_type) == {"PER", "LOC", "ORG", "MISC"}
    assert len(found.pairs) == 805
