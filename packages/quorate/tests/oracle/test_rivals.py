"""The rivals against independent implementations: plain EM written out, and crowd-kit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from crowdkit.aggregation import DawidSkene as CrowdKitDawidSkene
from crowdkit.aggregation import MajorityVote as CrowdKitMajorityVote
from crowdkit.aggregation import OneCoinDawidSkene as CrowdKitOneCoin
from numpy.typing import NDArray

import quorate
from by_name import bsc
from quorate import Corpus, Document, InputError, score

# crowd-kit's own use of pandas is not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

Floats = NDArray[np.float64]
TINY = 1e-10


class Long:
    """A crowd as crowd-kit takes it: a task for every token."""

    def __init__(self, corpus: Corpus) -> None:
        rows = [
            (f"{d}:{t}", worker, tag)
            for d, document in enumerate(corpus)
            for worker, tags in document.annotations.items()
            for t, tag in enumerate(tags)
            if tag is not None
        ]
        self.frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
        self.tasks = [f"{d}:{t}" for d, document in enumerate(corpus) for t in range(len(document.tokens))]
        self.labels = list(corpus.tagset().labels)
        number = {task: n for n, task in enumerate(self.tasks)}
        self.task = self.frame.task.map(number).to_numpy()
        self.label = self.frame.label.map({label: j for j, label in enumerate(self.labels)}).to_numpy()
        self.worker = pd.factorize(self.frame.worker)[0]

    def votes(self, smoothing: float) -> Floats:
        shares = np.full((len(self.tasks), len(self.labels)), smoothing)
        np.add.at(shares, (self.task, self.label), 1.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def by(self, model: Any) -> NDArray[np.str_]:
        return np.asarray(model.fit_predict(self.frame).reindex(self.tasks).to_numpy(dtype=str))

    def dawid_skene(self, steps: int, smoothing: float) -> NDArray[np.str_]:
        """Dawid and Skene (1979), from shares of votes, by the book."""
        p = self.votes(smoothing)
        K, J = self.worker.max() + 1, len(self.labels)
        for _ in range(steps):
            errors = np.zeros((K, J, J))  # worker, label, truth
            np.add.at(errors, (self.worker, self.label), p[self.task])
            errors = np.maximum(errors, TINY)
            errors /= errors.sum(axis=1, keepdims=True)
            weight = np.tile(np.log(np.maximum(p.mean(axis=0), TINY)), (len(p), 1))
            np.add.at(weight, self.task, np.log(errors[self.worker, self.label]))
            p = np.exp(weight - weight.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
        return np.asarray(np.array(self.labels)[p.argmax(axis=1)])


def flat(tags: list[list[str]]) -> NDArray[np.str_]:
    return np.array([tag for sequence in tags for tag in sequence])


BARE: dict[str, Any] = {"decode": "token", "tol": 0.0, "alpha0": TINY, "gamma0": TINY}


@pytest.fixture(scope="module")
def long_sample(sample: Corpus) -> Long:
    return Long(sample)


@pytest.fixture(scope="module")
def long_ner(ner: Corpus) -> Long:
    return Long(ner)


def agree_with_the_book(corpus: Corpus, crowd: Long) -> None:
    for passes in (1, 9):
        ours = flat(quorate.aggregate(corpus, "ds", max_iter=passes, **BARE).tags)
        # A fit of n passes ends with one more look at the labels.
        assert np.mean(ours == crowd.dawid_skene(passes + 1, smoothing=0.1)) > 0.9999


def test_dawid_skene_on_the_sample(sample: Corpus, long_sample: Long) -> None:
    agree_with_the_book(sample, long_sample)


@pytest.mark.realdata
def test_dawid_skene_on_ner(ner: Corpus, long_ner: Long) -> None:
    """The book's EM, from the same start. crowd-kit starts from bare shares of votes, and its loss stops it early."""
    agree_with_the_book(ner, long_ner)
    crowd_kit = long_ner.by(CrowdKitDawidSkene(n_iter=2, tol=0))
    assert np.mean(crowd_kit == long_ner.dawid_skene(2, smoothing=0.0)) > 0.9999


@pytest.mark.realdata
def test_one_coin_is_crowd_kits_on_ner(ner: Corpus, long_ner: Long) -> None:
    model = bsc(
        "bsc-acc", truth="independent", text=False, temper=1.0, invalid="keep", inference="em", epsilon0=0.0, **BARE
    )
    assert np.mean(flat(model.fit_predict(ner)) == long_ner.by(CrowdKitOneCoin(n_iter=20))) > 0.999


@pytest.mark.realdata
def test_majority_is_crowd_kits_on_ner_where_the_vote_is_not_tied(ner: Corpus, long_ner: Long) -> None:
    shares = np.sort(long_ner.votes(0.0), axis=1)
    clear = shares[:, -1] > shares[:, -2]
    assert 0.95 < clear.mean() < 0.99
    ours = flat(quorate.aggregate(ner, "mv", invalid="keep", decode="token").tags)
    assert np.all((ours == long_ner.by(CrowdKitMajorityVote()))[clear])


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("method", "f1", "most_entropy"),
    [("ds", 74.4, 0.5), ("ibcc", 74.4, 0.5), ("hmm-crowd", 74.2, 1.1), ("mace", 68.0, 1.8)],
)
def test_rivals_reach_their_figures_on_ner(ner: Corpus, method: str, f1: float, most_entropy: float) -> None:
    settings: dict[str, Any] = {} if method == "hmm-crowd" else {"decode": "token"}
    result = quorate.aggregate(ner, method, **settings)
    test = [one for one in result if one.document.split == "test"]
    gold = [one.document.gold for one in test]
    assert 100 * score.strict([one.tags for one in test], gold).f1 == pytest.approx(f1, abs=0.7)
    assert score.cross_entropy([one.probabilities for one in test], gold, result.labels).mean < most_entropy


def test_every_rival_gives_tags_probabilities_and_annotators(sample: Corpus) -> None:
    for method in ("span-vote", "best-worker", "worst-worker", "ds", "ibcc", "mace", "hmm-crowd"):
        result = quorate.aggregate(sample, method)
        assert result.settings_["method"] == method
        assert all(result.tagset.is_valid(tags) for tags in result.tags)
        np.testing.assert_allclose(result.probabilities[0].sum(axis=1), 1.0, rtol=1e-9)
        if method != "worst-worker":
            assert result.annotators["ana"].informativeness > result.annotators["fay"].informativeness


def test_oracles_follow_one_annotator_and_need_gold(sample: Corpus) -> None:
    best = quorate.aggregate(sample, "best-worker")
    for one in best:
        assert tuple(one.tags) in set(one.document.annotations.values())
    gold = [document.gold for document in sample]
    scores = [score.strict(quorate.aggregate(sample, m).tags, gold).f1 for m in ("best-worker", "mv", "worst-worker")]
    assert scores[0] > scores[1] > scores[2]
    with pytest.raises(InputError, match="needs gold to know whom to follow"):
        quorate.aggregate(Corpus([Document("1", ("a",), {"x": ("B-P",)})]), "best-worker")


def test_control_items_teach_mace() -> None:
    """Two who agree on nonsense outvote the one who is right, until known items show who that is."""
    rng = np.random.default_rng(0)
    truth, noise = rng.choice(["a", "b", "c"], (2, 90))
    corpus = Corpus(
        Document(str(n), ("item",), {"right": (str(truth[n]),), "x": (str(noise[n]),), "y": (str(noise[n]),)})
        for n in range(90)
    )
    known = {str(n): (str(truth[n]),) for n in range(60)}

    def share_right(result: quorate.Result) -> float:
        return float(np.mean([result[n].tags[0] == truth[n] for n in range(60, 90)]))

    assert share_right(quorate.aggregate(corpus, "mace")) < 0.5
    assert share_right(quorate.aggregate(corpus, "mace", known=known)) == 1.0


def test_random_ties_follow_the_seed() -> None:
    corpus = Corpus(Document(str(n), ("w",), {"x": ("B-P",), "y": ("O",)}) for n in range(60))
    one, again, other = (quorate.aggregate(corpus, "mv", ties="random", random_state=seed).tags for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert {tags[0] for tags in one} == {"B-P", "O"}
