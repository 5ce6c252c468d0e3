"""The queue: who gets which document next, what nobody gets, who is held back, and when a document is a check."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from by_name import bsc
from problems import random_corpus, tagset
from quorate import BSC, Corpus, Document, LayeredModel, SettingsError
from quorate.active import assignment
from quorate.active.assignment import Ranking, rankings
from quorate.active.checks import Mix, Turn, check_documents, turn
from quorate.corpus.profiles import Profile
from quorate.corpus.simulate import KINDS, Behaviour, crowd
from quorate.corpus.tags import Scheme
from simulated_crowds import sentences

PEOPLE = {f"a{n}": Behaviour(miss=0.05 + 0.05 * n, confuse=0.1, invent=0.005) for n in range(5)}


@pytest.fixture(scope="module")
def small() -> Corpus:
    """Five people, of whom two labelled each of sixty documents, and twenty that nobody has labelled."""
    labelled = crowd(sentences(60, seed=3), PEOPLE, per_document=2, seed=3)
    return Corpus([*labelled, *(replace(one, id=f"new {one.id}") for one in sentences(20, seed=4))])


@pytest.fixture(scope="module")
def model(small: Corpus) -> BSC:
    return fit_to(small)


def fit_to(corpus: Corpus) -> BSC:
    return bsc("bsc-cm").fit(corpus.select(lambda one: bool(one.annotations)))


def ids(ranking: Ranking) -> list[str]:
    return [ranked.document for ranked in ranking.documents]


@pytest.mark.parametrize("fitted", [True, False])
def test_nobody_gets_a_document_that_they_have_labelled_and_all_others_are_listed(
    small: Corpus, model: BSC, fitted: bool
) -> None:
    found = rankings(small, model if fitted else None, [*PEOPLE, "zoe"])
    for name, ranking in found.items():
        assert sorted(ids(ranking)) == sorted(one.id for one in small if name not in one.annotations)
    assert len(ids(found["zoe"])) == 80
    assert len(ids(rankings(small, model if fitted else None, ["a0"], n=40)["a0"])) == 40


@pytest.mark.parametrize("fitted", [True, False])
def test_what_is_full_in_hand_decided_or_left_out_is_not_given(small: Corpus, model: BSC, fitted: bool) -> None:
    first, third = [one for one in small if not one.annotations.keys() & {"a0", "a1"} and one.annotations][:2]
    second = next(one for one in small if not one.annotations and one.id != "new 0")
    profiles = {"pro": Profile.of(kind="expert")}
    by_expert = Document("pro", ("Ada", "sang"), {"pro": ("B-PER", "O")})
    empty = Document("empty", ())
    corpus = Corpus([*small, by_expert, empty], profiles=profiles)
    found = rankings(
        corpus,
        model if fitted else None,
        ["a0", "a1"],
        waiting={first.id: ["a0", "zoe"], second.id: ["a0"]},
        known={third.id: ["O"] * len(third.tokens)},
        exclude=["new 0"],
        per_document_max=3,
    )
    assert not {first.id, second.id} & set(ids(found["a0"]))  # in her own hands
    assert first.id not in ids(found["a1"])  # two labels, and two to come
    assert second.id in ids(found["a1"])  # one to come
    for ranking in found.values():
        assert ranking.documents
        assert not {third.id, "new 0", "pro", "empty"} & set(ids(ranking))


def test_labels_to_come_leave_less_to_be_told_and_nothing_else_changes(small: Corpus, model: BSC) -> None:
    before = dict(rankings(small, model, ["a4"])["a4"].documents)
    best = max(before, key=lambda document: before[document])
    after = dict(rankings(small, model, ["a4"], waiting={best: ["a0"]})["a4"].documents)
    twice = dict(rankings(small, model, ["a4"], waiting={best: ["a0", "zoe"]})["a4"].documents)
    assert 0 < twice[best] < after[best] < before[best]
    assert {**after, best: 0} == {**before, best: 0}
    done = next(one for one in small if one.annotations and "a4" not in one.annotations)
    again = rankings(small, model, ["a4"], waiting={done.id: [*done.annotations]})["a4"]
    assert dict(again.documents) == before  # who has given their label is no longer waited for


@pytest.fixture(scope="module")
def of_one_token() -> tuple[Corpus, BSC]:
    rng = np.random.default_rng(1)
    corpus = random_corpus(rng, tagset(Scheme.PLAIN, 2), n_documents=30, longest=1, n_annotators=3, missing=0.0)
    part = [
        replace(one, annotations={name: tags for name, tags in one.annotations.items() if rng.random() < 0.6})
        for one in corpus
    ]
    return Corpus(part), fit_to(Corpus(part))


def information(truth: np.ndarray, matrix: np.ndarray) -> float:
    """H(truth) − Σ over labels of p(label) H(truth | label), in bits."""

    def entropy(p: np.ndarray) -> float:
        return float(-(p[p > 0] * np.log2(p[p > 0])).sum())

    joint = truth[:, None] * matrix
    return entropy(truth) - sum(float(column.sum()) * entropy(column / column.sum()) for column in joint.T)


def test_the_order_is_that_of_expected_information_by_cost(of_one_token: tuple[Corpus, BSC]) -> None:
    """By enumeration, which is exact for documents of one token."""
    corpus, model = of_one_token
    result, known = model.combine(corpus), len(model.annotators_.names)
    matrices = {name: model.fitted_.model.annotators.matrix(k)[0] for k, name in enumerate(model.fitted_.names)}
    matrices["zoe"] = model.fitted_.model.annotators.matrix(known)[0]  # as the others are on average
    found = rankings(corpus, model, matrices, cost={"zoe": 2.5})
    for name, matrix in matrices.items():
        expected = {
            one.id: information(result.posterior[d], matrix) * (1 - result.ambiguity.tokens[d])
            for d, one in enumerate(corpus)
            if name not in one.annotations
        }
        gains = dict(found[name].documents)
        assert gains.keys() == expected.keys()
        for document, gain in gains.items():
            assert gain * (2.5 if name == "zoe" else 1) == pytest.approx(expected[document], abs=1e-9)
        assert list(gains.values()) == sorted(gains.values(), reverse=True)


def test_what_labels_to_come_leave_is_near_what_they_leave_by_enumeration(of_one_token: tuple[Corpus, BSC]) -> None:
    """Against Σ over the label to come of p(label) · I(truth; own label | label), for each of the documents."""
    corpus, model = of_one_token
    result, first, second = model.combine(corpus), *(model.fitted_.model.annotators.matrix(k)[0] for k in (0, 1))
    names = model.fitted_.names
    open_to = [d for d, one in enumerate(corpus) if not one.annotations.keys() & set(names[:2])]
    waiting = {corpus[d].id: [names[0]] for d in open_to}
    gains = dict(rankings(corpus, model, [names[1]], waiting=waiting)[names[1]].documents)
    assert open_to
    for d in open_to:
        joint = result.posterior[d][:, None] * first
        exact = sum(column.sum() * information(column / column.sum(), second) for column in joint.T)
        alone = information(result.posterior[d], second)
        assert gains[corpus[d].id] < alone
        assert gains[corpus[d].id] == pytest.approx(exact * (1 - result.ambiguity.tokens[d]), rel=0.25)


def test_only_the_least_known_documents_of_a_large_corpus_are_looked_at(
    small: Corpus, model: BSC, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = rankings(small, model, ["a0", "zoe"], n=5)
    monkeypatch.setattr(assignment, "_SHORTEST_LIST", 10)
    part = rankings(small, model, ["a0", "zoe"], n=5)
    assert [len(one.documents) for one in part.values()] == [5, 5]
    for name in whole:
        assert len(set(ids(whole[name])) & set(ids(part[name]))) >= 4


def test_the_same_question_has_the_same_answer(small: Corpus, model: BSC) -> None:
    for one in (model, None):
        found = rankings(small, one, PEOPLE, seed=1)
        assert rankings(small, one, [*PEOPLE, "a0"], seed=1) == found
        backwards = rankings(Corpus(list(small)[::-1]), one, [*PEOPLE][::-1], seed=1)
        for name in PEOPLE:
            assert ids(backwards[name]) == ids(found[name])
    assert rankings(small, None, PEOPLE, seed=2) != rankings(small, None, PEOPLE, seed=1)


def test_documents_below_the_least_overlap_come_first(small: Corpus, model: BSC) -> None:
    dull = Document("dull", (small[0].tokens[0],))
    corpus = Corpus([*small, dull])
    assert "dull" not in ids(rankings(corpus, model, ["zoe"])["zoe"])[:21]
    for one in (model, None):
        first = ids(rankings(corpus, one, ["zoe"], per_document_min=1)["zoe"])[:21]
        assert sorted(first) == sorted(["dull", *(f"new {n}" for n in range(20))])


def test_who_has_done_their_share_gets_no_more(small: Corpus, model: BSC) -> None:
    done = sum("a0" in one.annotations for one in small)
    for one in (model, None):
        assert rankings(small, one, ["a0", "zoe"], per_person_max=done)["a0"].documents == ()
        assert rankings(small, one, ["a0", "zoe"], per_person_max=done)["zoe"].documents
        assert rankings(small, one, ["a0"], per_person_max=done + 1)["a0"].documents


def test_a_person_gets_only_what_they_may_see(small: Corpus, model: BSC) -> None:
    may = [one.id for one in small if "a0" not in one.annotations][:3]
    for one in (model, None):
        found = rankings(small, one, ["a0", "a1"], allowed={"a0": [*may, small[-1].id]})
        assert sorted(ids(found["a0"])) == sorted([*may, small[-1].id])
        assert len(ids(found["a1"])) > 4


def test_fifty_people_at_once_are_all_served_and_no_document_is_overfull() -> None:
    """Each goes down their list and passes over what others have in hand; then all give their labels."""
    people = {f"p{n:02}": Behaviour(miss=0.01 * n) for n in range(50)}
    answers = crowd(sentences(60, seed=6), people, seed=6)
    given: list[set[str]] = [set() for _ in answers]
    served: Counter[str] = Counter()
    model: BSC | None = None
    for number in range(6):
        part = Corpus(
            [
                replace(one, annotations={name: one.annotations[name] for name in sorted(had)})
                for one, had in zip(answers, given, strict=True)
            ]
        )
        if number == 2:
            model = fit_to(part)
        found = rankings(part, model, people, per_document_max=5)
        in_hand: Counter[str] = Counter()
        for name in people:
            place = next((one for one in ids(found[name]) if not in_hand[one]), None)
            if place is not None:
                in_hand[place] += 1
                served[name] += 1
                assert name not in given[answers.position(place)]
        for name in people:
            for one in [one for one in ids(found[name]) if in_hand[one]][:1]:
                in_hand[one] -= 1
                given[answers.position(one)].add(name)
    assert max(map(len, given)) <= 5
    assert min(served[name] for name in people) >= max(served.values()) - 1


def test_before_there_is_a_model_two_people_share_each_document_that_is_begun() -> None:
    answers = crowd(sentences(40, seed=7), PEOPLE, seed=7)
    given: list[set[str]] = [set() for _ in answers]
    for number in range(30):
        part = Corpus(
            [
                replace(one, annotations={name: one.annotations[name] for name in had})
                for one, had in zip(answers, given, strict=True)
            ]
        )
        name = f"a{number % 5}"
        given[answers.position(ids(rankings(part, None, PEOPLE)[name])[0])].add(name)
    assert Counter(map(len, given)) == {2: 15, 0: 25}
    begun = Corpus(
        [replace(one, annotations={"a0": one.annotations["a0"]} if d > 29 else {}) for d, one in enumerate(answers)]
    )
    assert set(ids(rankings(begun, None, ["a1"])["a1"])[:10]) == {one.id for one in answers.documents[30:]}


def test_who_tells_much_less_than_others_is_held_back_but_never_more_than_half() -> None:
    people = {**{f"good{n}": KINDS["careful"] for n in range(4)}, "random": KINDS["spammer"]}
    corpus = crowd(sentences(80, seed=8), people, per_document=3, seed=8)
    model = fit_to(corpus)
    free = rankings(corpus, model, [*people, "zoe"])
    held = rankings(corpus, model, [*people, "zoe"], hold_back=0.5)
    assert [name for name, one in held.items() if one.held_back] == ["random"]
    assert held["random"].documents == ()
    assert held["random"].worth < 0.5 * held["good0"].worth
    assert not any(one.held_back for one in free.values())
    assert free["random"].documents
    assert {name: one for name, one in held.items() if name != "random"} == {
        name: one for name, one in free.items() if name != "random"
    }
    strict = rankings(corpus, model, people, hold_back=1.0)
    assert sum(one.held_back for one in strict.values()) <= len(people) / 2
    assert not rankings(corpus, model, ["random"], hold_back=1.0)["random"].held_back  # nobody else is there


def test_nobody_is_held_back_before_their_tenth_document() -> None:
    people = {**{f"good{n}": KINDS["careful"] for n in range(4)}, "random": KINDS["spammer"]}
    corpus = crowd(sentences(60, seed=8), people, seed=8)
    for least, held in ((9, False), (10, True)):
        few = [
            replace(one, annotations={k: v for k, v in one.annotations.items() if k != "random" or d < least})
            for d, one in enumerate(corpus)
        ]
        assert rankings(Corpus(few), fit_to(corpus), people, hold_back=0.5)["random"].held_back is held


def test_a_dear_person_is_ranked_by_what_they_cost(small: Corpus, model: BSC) -> None:
    usual, dear = (rankings(small, model, ["a0"], cost=cost)["a0"] for cost in ({}, {"a0": 4.0, "gone": 2.0}))
    assert ids(usual) == ids(dear)
    assert dear.documents[0].gain == pytest.approx(usual.documents[0].gain / 4)
    assert dear.worth == pytest.approx(usual.worth / 4)
    assert rankings(small, model, PEOPLE, cost={"a0": 4.0}, hold_back=0.5)["a0"].held_back


def test_an_ambiguous_document_comes_last() -> None:
    """Half of the people read one name in another way wherever it stands; elsewhere, two say nothing and err."""
    readings = [("B-PER", "B-ORG"), ("B-ORG", "B-PER")]
    people = [f"p{n}" for n in range(8)]
    documents = [
        Document(f"two {d}", (f"x{d}", "Ford"), {name: ("O", readings[n % 2][d % 2]) for n, name in enumerate(people)})
        for d in range(30)
    ]
    documents += [
        Document(f"one {d}", (f"x{d}", "Ada"), dict.fromkeys(people[d % 4 : d % 4 + 2], ("O", "B-PER")))
        for d in range(30)
    ]
    corpus = Corpus(documents)
    order = ids(rankings(corpus, fit_to(corpus), ["zoe"])["zoe"])
    places = [place for place, document in enumerate(order) if document.startswith("two")]
    assert np.mean(places) > np.mean(range(60))


def test_layers_count_together(small: Corpus) -> None:
    part = Corpus(small.documents[:60])
    corpora = {"first": part, "second": part}
    model = LayeredModel(bsc("bsc-cm")).fit(corpora)
    found = rankings(corpora, model, ["a0", "zoe"])
    alone = rankings(part, fit_to(part), ["a0", "zoe"])
    assert ids(found["zoe"]) == ids(alone["zoe"])
    assert found["a0"].documents[0].gain == pytest.approx(2 * alone["a0"].documents[0].gain, rel=1e-6)
    assert len(ids(rankings(corpora, None, ["zoe"])["zoe"])) == 60


def test_nobody_and_nothing_are_no_mistake(small: Corpus, model: BSC) -> None:
    assert rankings(small, model, []) == {}
    assert rankings(small, None, []) == {}
    everything = [one.id for one in small]
    assert rankings(small, model, ["a0"], exclude=everything)["a0"].documents == ()
    assert rankings(small, None, ["a0"], exclude=everything)["a0"].documents == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, "n must be 1 or more, not 0"),
        ({"per_document_min": -1}, "per-document-min must be 0 or more, not -1"),
        ({"per_document_max": 0}, "per-document-max must be 1 or more, not 0"),
        ({"per_person_max": -1}, "per-person-max must be 0 or more, not -1"),
        ({"hold_back": 1.5}, "hold-back must be from 0 to 1, not 1.5"),
        ({"cost": {"a0": 0.0}}, "the cost of 'a0' must be a positive number, not 0"),
        ({"exclude": ["ü"]}, "document 'ü', which is to be left out, is not in the input"),
        ({"waiting": {"ü": ["a0"]}}, "document 'ü', which is in hand, is not in the input"),
        ({"allowed": {"a0": ["ü"]}}, "document 'ü', which is allowed, is not in the input"),
    ],
)
def test_mistakes_say_what_to_do(small: Corpus, settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        rankings(small, None, ["a0"], **settings)  # type: ignore[arg-type]


def test_checks_come_at_their_rate_and_nobody_can_tell_when() -> None:
    mix = Mix(training=3, check_rate=0.1, checks_max=1_000_000, secret="s")
    turns = {name: [turn(name, done, 0, mix) for done in range(3_000)] for name in ("ann", "zoë 🙂")}
    for mine in turns.values():
        assert mine[:3] == [Turn.TRAINING] * 3
        assert Turn.TRAINING not in mine[3:]
        rate = mine[3:].count(Turn.CHECK) / 2_997
        assert rate == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 2_997))
        after = [following for one, following in itertools.pairwise(mine) if one is Turn.CHECK]
        assert after.count(Turn.CHECK) / len(after) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / len(after)))
    assert turns["ann"] != turns["zoë 🙂"]
    assert turns["ann"] == [turn("ann", done, 0, mix) for done in range(3_000)]
    assert turns["ann"] != [turn("ann", done, 0, replace(mix, secret="t")) for done in range(3_000)]


def test_nobody_gets_more_checks_than_the_most() -> None:
    mix = Mix(check_rate=1.0, checks_max=4)
    checks = 0
    for done in range(20):
        checks += turn("ann", done, checks, mix) is Turn.CHECK
    assert checks == 4
    assert turn("ann", 5, 0, Mix()) is Turn.WORK


def test_everybody_meets_checks_in_an_order_of_their_own() -> None:
    documents = [f"d{n}" for n in range(30)]
    ann, bob = (check_documents(name, documents, Mix(secret="s")) for name in ("ann", "bob"))
    assert sorted(ann) == sorted(bob) == sorted(documents)
    assert ann != bob
    assert ann == check_documents("ann", documents[::-1], Mix(secret="s"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"training": -1}, "training must be 0 or more, not -1"),
        ({"check_rate": -0.1}, "check-rate must be from 0 to 1, not -0.1"),
        ({"check_rate": "often"}, "check-rate must be a number, not 'often'"),
        ({"checks_max": 1.5}, "checks-max must be a whole number, not 1.5"),
    ],
)
def test_a_mix_that_cannot_be_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Mix(**settings)  # type: ignore[arg-type]
