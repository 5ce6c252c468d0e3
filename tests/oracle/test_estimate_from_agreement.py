"""The estimate from agreement: its noise against crowds drawn again, what is explained against sums by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import log
from pathlib import Path

import numpy as np
import pytest

import simulated_crowds as crowds
import quorate
from by_name import bsc, from_file
from quorate import BSC, Corpus, score
from quorate.choose.calibrate import Confirmations
from quorate.choose.hidden import HiddenLabels, hide
from quorate.choose.witness import confirmation_noise, explained, why_no_estimate
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Document
from quorate.corpus.simulate import Behaviour
from quorate.corpus.simulate import crowd as simulated
from quorate.crowd.encode import encode
from quorate.model.votes import majority
from quorate.result.calibration import AS_STATED
from quorate.storage import model_files


def hidden_in(corpus: Corpus, draw: int = 0) -> HiddenLabels:
    found = hide(encode(corpus, corpus.tagset()), draw=draw)
    assert found is not None
    return found


def test_noise_is_the_spread_over_crowds_drawn_again() -> None:
    """One in four has habits of their own, so that who is hidden matters beside which documents there are."""
    usual, stated = Behaviour(miss=0.3, start_late=0.1, invent=0.005), []
    ratios = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        people = {f"a{n:02}": replace(usual, miss=float(rng.choice([0.1, 0.6]))) for n in range(12)}
        texts = simulated(crowds.sentences(120, seed=seed), people, per_document=5, seed=seed)
        hidden = [hidden_in(texts, draw) for draw in range(2)]
        voted = [majority(one.sample, threads=1).decoded for one in hidden]
        found = Confirmations.of(hidden, voted)
        likely = found.stated * found.expected
        off = found.matched - found.matched.sum() / likely.sum() * likely
        stated.append(np.sqrt(found.variance(off[None])[0, 0]) / found.matched.sum())
        each = [one.agreement(path) for one, path in zip(hidden, voted, strict=True)]
        probability = [path.span_probability[one.found.start] for one, path in zip(each, voted, strict=True)]
        expected = sum((p * one.expected).sum() for one, p in zip(each, probability, strict=True))
        ratios.append(sum(one.matched.sum() for one in each) / expected)
    spread = np.std(ratios) / np.mean(ratios)
    assert np.mean(stated) == pytest.approx(spread, rel=0.4)


def test_noise_by_hand() -> None:
    """Two documents and two annotators: squares of sums over documents and over annotators, less those of pairs."""
    tags = {"both": ("B-PER", "O", "B-LOC"), "one": ("B-PER", "O", "O"), "none": ("O", "O", "O")}
    said = {"0": ("both", "both", "both"), "1": ("both", "both", "one"), "2": ("one", "both", "both")}
    documents = [
        Document(f"{d}{copy}", ("Ada", "left", "Rome"), {n: tags[s] for n, s in zip("abc", what, strict=True)})
        for (d, what), copy in product(said.items(), range(4))
    ]
    one = hidden_in(Corpus(documents))
    voted = majority(one.sample, threads=1).decoded
    found = one.agreement(voted)
    p = voted.span_probability[found.found.start]
    place = np.searchsorted(one.sample.doc_start, found.found.start, side="right") - 1
    expected = p * found.expected
    rest = found.matched - found.matched.sum() / expected.sum() * expected

    def variance(groups: list[object]) -> float:
        sums: dict[object, float] = {}
        for group, off in zip(groups, rest, strict=True):
            sums[group] = sums.get(group, 0.0) + off
        return sum(off**2 for off in sums.values()) * len(sums) / (len(sums) - 1)

    documents_, people = place.tolist(), found.found.who.tolist()
    parts = variance(documents_), variance(people)
    both = sum(parts) - variance(list(zip(documents_, people, strict=True)))
    by_hand = np.sqrt(max(both, *parts)) / found.matched.sum() * min(2 * np.sqrt(p.mean() * (1 - p.mean())), 1)
    assert confirmation_noise([one], [voted], AS_STATED) == pytest.approx(by_hand, rel=1e-6)


def test_a_perfect_model_explains_all_and_a_vote_nothing() -> None:
    corpus = crowds.disjoint_batches(120)
    hidden = hidden_in(corpus)
    J = len(hidden.sample.tagset.labels)
    said = np.full((hidden.sample.n_tokens, J), 1 / J)
    said[hidden.token] = np.eye(J)[hidden.label]
    shares = np.zeros_like(said)
    cells = hidden.sample.cells
    token = np.repeat(np.arange(hidden.sample.n_tokens), np.diff(hidden.sample.event_start))
    np.add.at(shares, (token, cells.label[hidden.sample.event_cell]), 1.0)
    shares /= shares.sum(axis=1, keepdims=True)
    perfect, vote, blind = (explained([hidden], [p]) for p in (said, shares, np.full_like(said, 1 / J)))
    assert perfect is not None
    assert perfect > 0.9
    assert vote == pytest.approx(0.0, abs=1e-9)
    assert blind == 0.0


def test_what_is_explained_by_hand() -> None:
    """Two labels; a model whose confusion matrix is clear from the start: entropies of counts."""
    documents = [
        Document(f"{n}", ("Ada",), {"a": ("B-X",), "b": ("O",), "c": ("B-X" if n % 4 else "O",)}) for n in range(200)
    ]
    one = hidden_in(Corpus(documents))
    labels = one.label
    left = np.diff(one.sample.event_start)[one.token]
    assert (left == 2).all()
    J = len(one.sample.tagset.labels)
    # Where the two who are left disagree, shares are 1/2 and 1/2: nothing but the frequency of labels can be told.
    cells = one.sample.event_cell.reshape(-1, 2)
    said = one.sample.cells.label[cells]
    open_here = (said[:, 0] != said[:, 1])[one.token]
    counts = np.bincount(labels[open_here], minlength=J)
    share = counts[counts > 0] / counts.sum()
    votes = -(share * np.log(share)).sum()
    sure = 0.9
    model = np.full((one.sample.n_tokens, J), (1 - sure) / (J - 1))
    model[one.token, labels] = sure
    found = explained([one], [model])
    assert found is not None
    # No confusion matrix does worse than the identity.
    assert found > 1 + log(sure) / votes - 0.02


def test_nobody_disagrees() -> None:
    documents = [Document(f"{n}", ("Ada", "sang"), dict.fromkeys("abc", ("B-X", "O"))) for n in range(30)]
    one = hidden_in(Corpus(documents))
    assert explained([one], [np.full((one.sample.n_tokens, 3), 1 / 3)[:, : len(one.sample.tagset.labels)]]) is None


REASONS: dict[str, tuple[Callable[[], Corpus], str]] = {
    "rules": (lambda: crowds.rules(200), "less than half of what others mark"),
    "copies": (lambda: crowds.copies(200), "count as"),
    "jury of models": (lambda: as_models(crowds.vague_names(200, 6)), "models or rules"),
    "two a document": (lambda: thinned(crowds.sparse(200, 40), 2), "three annotators"),
    "one a document": (lambda: thinned(crowds.sparse(200, 40), 1), "one annotator"),
    "a few documents": (lambda: crowds.disjoint_batches(16), "could be hidden"),
}


def as_models(corpus: Corpus) -> Corpus:
    return Corpus(list(corpus), profiles={name: Profile.of(kind="model") for name in corpus.annotators})


def thinned(corpus: Corpus, left: int) -> Corpus:
    return Corpus([replace(one, annotations=dict(list(one.annotations.items())[:left])) for one in corpus])


@pytest.mark.parametrize("name", REASONS)
def test_where_agreement_cannot_tell_there_is_no_number(name: str) -> None:
    make, reason = REASONS[name]
    found = quorate.aggregate(make(), tagger=None).certificate
    assert not found.given
    assert found.f1 is found.low is found.high is None
    assert reason in found.reason
    assert str(found) == f"none: {found.reason}"
    assert not found.holds(0.5)


def test_settings_that_are_given_and_dials_have_no_estimate(sample: Corpus) -> None:
    assert "hidden" in quorate.aggregate(sample, "bsc-cm").certificate.reason
    assert "asked for" in quorate.aggregate(sample, precision=0.99).certificate.reason
    assert (
        "not kept" in quorate.aggregate(crowds.careful_three(40), tagger=None, probabilities=False).certificate.reason
    )


def test_a_model_from_a_file_has_the_check_that_its_settings_were_chosen_by(sample: Corpus, tmp_path: Path) -> None:
    """But for one from a file of an earlier version, which says so; and for one whose settings were given."""
    path = tmp_path / "crowd.quorate"
    chosen = BSC(tagger=None).fit(sample)
    chosen.save(path)
    assert from_file(path).combine(sample).certificate == chosen.combine(sample).certificate
    stored = model_files.load(path)
    model_files.save(stored._replace(meta={key: told for key, told in stored.meta.items() if key != "choice"}), path)
    assert "from a file" in from_file(path).combine(sample).certificate.reason
    bsc("bsc-cm", max_iter=3).fit(sample).save(path)
    assert "no setting was chosen" in from_file(path).combine(sample).certificate.reason


def test_plain_labels_have_no_spans_to_agree_on() -> None:
    corpus = Corpus([Document("1", ("x", "y"), dict.fromkeys("abc", ("NOUN", "VERB")))])
    encoded = encode(corpus, corpus.tagset())
    assert "plain" in why_no_estimate(encoded, {}, np.ones(3), (3.0, 3.0))


HELD: dict[str, Callable[[], Corpus]] = {
    "careful three": lambda: crowds.careful_three(120),
    "sparse": lambda: crowds.sparse(400, 300),
    "disjoint batches": lambda: crowds.disjoint_batches(300),
    "colluders": lambda: crowds.colluders(300),
    "one expert": lambda: crowds.one_expert(300),
}


BY_ABOUT = {"careful three": 0.01}
"""How far outside of an interval of 90 % the truth may be, where it is."""


@pytest.mark.parametrize("name", HELD)
def test_the_interval_holds_the_truth(name: str) -> None:
    corpus = HELD[name]()
    result = quorate.aggregate(corpus, tagger=None)
    truth = score.strict(result.tags, [one.gold or () for one in corpus]).f1
    found = result.certificate
    assert found.low is not None
    assert found.high is not None
    assert found.holds(truth) or found.low - BY_ABOUT.get(name, 0.0) < truth < found.high + BY_ABOUT.get(name, 0.0)
    assert found.high - found.low < 0.25
    assert found.explained is not None
    assert 0 <= found.explained < 1
