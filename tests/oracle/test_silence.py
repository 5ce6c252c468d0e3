"""How much of what others mark everybody marks, by loops over spans; and what silence counts in the first votes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import simulated_crowds as crowds
import quorate
from problems import certain, random_corpus, tagset
from quorate.api import estimator
from quorate.choose.silence import (
    Coverage,
    Silence,
    coverage,
    first_votes,
    hardly_meet,
    hardly_overlap,
    mostly_silent,
    silent_votes,
)
from quorate.choose.sources import coverage_and_sharing
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import Behaviour, crowd, with_copies
from quorate.corpus.spans import Span
from quorate.corpus.tags import Invalid, Scheme, find_spans
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.crowd.sharing import Sharing
from quorate.errors import SettingsError
from quorate.estimators.bsc import BSC
from quorate.model.places import without_types
from quorate.model.start import Start

PRIOR, ENOUGH = 5.0, 40
"""Spans of the average annotator that everybody has; marks of others below which the average is not known either."""


def encoded(corpus: Corpus) -> Crowd:
    return encode(corpus, corpus.tagset())


def of_silence(
    corpus: Corpus, profiles: Mapping[str, Profile] | None = None, *, beside_rules: bool = True
) -> NDArray[np.float64]:
    profiles = corpus.profiles if profiles is None else profiles
    return silent_votes(encoded(corpus), profiles, beside_rules=beside_rules)


def usual_share(met: float, total: float) -> float:
    """What the average annotator marks of what others marked; of few marks, the most of which these are likely.

    That is the share p at which p is two standard errors of p above what was seen, by halving.
    """
    if total >= ENOUGH or not total:
        return met / total if total else 1.0
    low, high = met / total, 1.0
    for _ in range(60):
        p = (low + high) / 2
        low, high = (p, high) if p - 2 * (p * (1 - p) / total) ** 0.5 < met / total else (low, p)
    return low


def by_loops(corpus: Corpus, team: Mapping[str, str] | None = None) -> Coverage:
    """Mark by mark of somebody else, whether a token of it is in a span of one's own.

    Those of one team are not somebody else, and what they mark counts as the marks of one.
    """
    team = team or {name: name for name in corpus.annotators}
    names, types = corpus.annotators, corpus.tagset().types
    met, total = np.zeros((2, len(names), len(types)))
    seen, marked, lengths = np.zeros(len(names)), dict[str, list[Span]](), list[int]()
    for document in corpus:
        looked = {name: certain(tags) for name, tags in document.annotations.items() if set(tags) - {None}}
        spans = {name: find_spans(tags) for name, tags in looked.items()}
        for k, name in enumerate(names):
            if name not in looked:
                continue
            seen[k] += len(document.tokens)
            marked.setdefault(name, []).extend(spans[name])
            lengths += [span.end - span.start for span in spans[name]]
            mine = {place for span in spans[name] for place in range(span.start, span.end)}
            for other in looked:
                counts = 1 / sum(team[one] == team[other] for one in looked)
                for span in spans[other] if team[other] != team[name] else ():
                    total[k, types.index(span.label)] += counts
                    met[k, types.index(span.label)] += counts * bool(mine & set(range(span.start, span.end)))
    usual = usual_share(float(met.sum()), float(total.sum()))
    known = [t for t in range(len(types)) if total[:, t].any()]
    share = [np.mean([(met[k, t] + PRIOR * usual) / (total[k, t] + PRIOR) for t in known]) for k in range(len(names))]
    chance = [
        sum(span.end - span.start + np.mean(lengths) - 1 for span in marked.get(name, [])) / max(seen[k], 1)
        for k, name in enumerate(names)
    ]
    own = np.array([float(len(marked.get(name, []))) for name in names])
    return Coverage(np.array(share), np.minimum(chance, 1.0), total.sum(axis=1), own)


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.IO, Scheme.BIOES])
@pytest.mark.parametrize("seed", range(4))
def test_coverage_by_loops(scheme: Scheme, seed: int) -> None:
    """With several types, tokens and documents that somebody skipped, and one who saw a single document."""
    rng = np.random.default_rng(seed)
    tags = tagset(scheme, n_types=1 if scheme is Scheme.BIOES else 2)
    made = random_corpus(rng, tags, n_documents=30, longest=4, n_annotators=4, missing=0.1 * seed)
    guest = replace(made[0], annotations={**made[0].annotations, "guest": made[0].gold or ()})
    corpus = Corpus([guest, *made.documents[1:], Document("nobody's", ("w",))])
    found, expected = coverage(encoded(corpus)), by_loops(corpus)
    assert expected.others.max() > ENOUGH > expected.others.min()
    for column, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(column, wanted, rtol=1e-12)
    assert np.ptp(found.share) > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_coverage_of_those_who_have_most_in_common_by_loops(seed: int) -> None:
    """Two pairs that hang together are a team of three, also in documents that not all of them saw."""
    rng = np.random.default_rng(seed)
    corpus = random_corpus(rng, tagset(Scheme.BIO, n_types=2), n_documents=40, longest=4, n_annotators=5, missing=0.3)
    corpus = Corpus(
        replace(one, annotations={who: tags for who, tags in one.annotations.items() if rng.random() < 0.7})
        for one in corpus
    )
    names = corpus.annotators
    found = coverage(encoded(corpus), Sharing.of([(0, 1, 0.9), (1, 3, 0.5), (2, 4, 0.49)]))
    expected = by_loops(corpus, {name: names[0] if k in (0, 1, 3) else name for k, name in enumerate(names)})
    for column, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(column, wanted, rtol=1e-12)
    assert not np.allclose(found.share, coverage(encoded(corpus)).share)


def test_copies_do_not_change_who_is_silent() -> None:
    """Copies of a rule mark what it marks, and yet neither it nor the others speak up for that."""
    rules = crowds.rules(300)
    alone, _ = coverage_and_sharing(encoded(rules), {})
    with_five = with_copies(rules, "rule2", 5)
    covered, sharing = coverage_and_sharing(encoded(with_five), {})
    share = dict(zip(with_five.annotators, covered.share.tolist(), strict=True))
    assert sharing
    assert [share[name] for name in rules.annotators] == pytest.approx(alone.share.tolist(), abs=0.03)
    assert share["rule2+1"] == pytest.approx(share["rule2"], abs=0.03)
    as_if_others = dict(zip(with_five.annotators, coverage(encoded(with_five)).share.tolist(), strict=True))
    assert as_if_others["rule2"] > share["rule2"] + 0.1


def test_touching_is_sharing_a_token() -> None:
    """Spans side by side do not touch, and one long span meets two short ones."""
    said = {"short": ("B-A", "B-A", "O", "O"), "long": ("B-A", "I-A", "O", "O"), "beside": ("O", "O", "B-A", "O")}
    corpus = Corpus([Document(str(n), ("w",) * 4, said) for n in range(200)])
    share = dict(zip(corpus.annotators, coverage(encoded(corpus)).share.tolist(), strict=True))
    # Of the others' marks "short" meets one of two, "long" two of three, "beside" none of three.
    assert share == pytest.approx({"short": 1 / 2, "long": 2 / 3, "beside": 0.0}, abs=0.01)


def test_coverage_is_the_mean_over_types() -> None:
    """Of a rule that knows one type of two the coverage is a half, however rare the other type is."""
    tags = {"ann": ("B-PER", "B-PER", "B-PER", "B-LOC"), "rule": ("B-PER", "B-PER", "B-PER", "O")}
    corpus = Corpus([Document(str(n), ("w",) * 4, tags) for n in range(500)])
    ann, rule = coverage(encoded(corpus)).share.tolist()
    assert rule == pytest.approx(0.5, abs=0.01)
    usual = 6 / 7  # of a type that nobody else marked, everybody is taken to mark as much as of others
    assert ann == pytest.approx((1 + usual) / 2, abs=0.01)


@pytest.mark.parametrize("per_document", [1, None], ids=["nobody shares a document", "one annotator"])
def test_of_those_whom_nobody_can_judge_an_o_counts_as_a_label_does(per_document: int | None) -> None:
    usual = Behaviour(miss=0.1, confuse=0.1)
    names = ("ann", "bob") if per_document else ("ann",)
    corpus = crowd(crowds.sentences(60), dict.fromkeys(names, usual), per_document=per_document)
    found = coverage(encoded(corpus))
    np.testing.assert_array_equal(found.share, np.ones(len(names)))
    np.testing.assert_array_equal(of_silence(corpus), np.ones(len(names)))
    assert not found.silent.any()
    result = quorate.aggregate(corpus)
    said = [list(certain(next(iter(document.annotations.values())))) for document in corpus]
    assert sum(mine == theirs for mine, theirs in zip(result.tags, said, strict=True)) > 0.95 * len(corpus)


@pytest.mark.parametrize("marks", [2, 3, 6, 12])
def test_of_a_handful_of_marks_nobody_is_silent_unless_next_to_none_is_marked_twice(marks: int) -> None:
    """Eight sources, of which nobody marks what another does; and the same marks, which all of them make."""
    documents = [Document(str(n), ("w",) * 3, {f"r{k}": ("O",) * 3 for k in range(8)}) for n in range(60)]
    marked = ("B-X", "O", "O")
    alone = [replace(one, annotations={**one.annotations, f"r{n % 8}": marked}) for n, one in enumerate(documents)]
    alone = [*alone[:marks], *documents[marks:]]
    apart = of_silence(Corpus(alone))
    assert hardly_overlap(apart)
    together = [replace(one, annotations=dict.fromkeys(one.annotations, marked)) for one in documents]
    assert of_silence(Corpus([*together[:marks], *documents[marks:]])).tolist() == [1.0] * 8
    covered = coverage(encoded(Corpus(alone)))
    np.testing.assert_allclose(covered.share, by_loops(Corpus(alone)).share, rtol=1e-9)


def test_nothing_marked_is_no_silence() -> None:
    corpus = Corpus([Document(str(n), ("w", "w"), {"a": ("O", "O"), "b": ("O", "O")}) for n in range(60)])
    found = silent_votes(encode(corpus, tagset(Scheme.BIO)), {})
    np.testing.assert_array_equal(found, np.ones(2))


@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_coverage_is_the_same_in_any_order_and_in_pieces(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = crowds.rules(300)
    whole = coverage(encoded(corpus))
    monkeypatch.setattr("quorate.model.marked._n_pieces", lambda *_: pieces)
    again = coverage(encoded(Corpus(corpus.documents[::-1])))
    for column, same in zip(whole, again, strict=True):
        np.testing.assert_array_equal(column, same)


def test_plain_labels_have_no_silence() -> None:
    corpus = random_corpus(np.random.default_rng(0), tagset(Scheme.PLAIN))
    found = coverage(encode(corpus, tagset(Scheme.PLAIN)))
    np.testing.assert_array_equal(found.share, np.ones(3))
    np.testing.assert_array_equal(silent_votes(encode(corpus, tagset(Scheme.PLAIN)), {}), np.ones(3))
    assert not found.silent.any()


def test_an_o_counts_so_that_a_span_wins_at_half_of_those_expected() -> None:
    """With n annotators of coverage c who all may know a span, c·n / 2 marks are as much as the others' silence."""
    corpus = crowds.rules(200)
    crowd_of_rules = encoded(corpus)
    for c in (0.05, 0.2, 0.45):
        share = np.full(9, c)
        weight = silent_votes(crowd_of_rules, {}, Coverage(share, np.zeros(9), np.full(9, 100.0), np.ones(9)))
        n, marks = 40.0, c * 40.0 / 2
        np.testing.assert_allclose(weight * (n - marks), marks, rtol=1e-12)


def test_who_counts_less_is_told_by_coverage_or_by_profile() -> None:
    corpus = crowds.every_kind(150)
    covered = coverage(encoded(corpus))
    names = corpus.annotators
    below = covered.share < 0.5
    assert below.any()
    assert not below.all()
    somebody = {"bob": Profile.of()}
    for told in (somebody, {"ann": Profile.of(kind="rule")}, {"ann": Profile.of(abstains=True), **somebody}):
        found = of_silence(corpus, told)
        for k, name in enumerate(names):
            declared = "ann" in told and name == "ann"
            silent, c = below[k] or declared, min(covered.share[k], 0.25 if declared else 1.0)
            assert found[k] == pytest.approx(c / (2 - c) if silent else 1.0, rel=1e-12)
    np.testing.assert_array_equal(of_silence(corpus, {}), silent_votes(encoded(corpus), {}, covered, beside_rules=True))


def test_first_votes_weigh_what_is_outside_and_nothing_else() -> None:
    corpus = crowds.every_kind(100)
    crowd_of_all = encoded(corpus)
    weight = silent_votes(crowd_of_all, corpus.profiles)
    found = first_votes(crowd_of_all, corpus.profiles, Start.COVERAGE)
    assert found is not None
    cells = crowd_of_all.cells
    for cell, (k, label) in enumerate(zip(cells.annotator.tolist(), cells.label.tolist(), strict=True)):
        outside = crowd_of_all.tagset.labels[label] == "O"
        assert found.weight[cell] == (weight[k] if outside else 1.0)
    assert not mostly_silent(weight)
    given = first_votes(crowd_of_all, {}, Start.COVERAGE, of_silence=np.full(len(weight), 0.3))
    assert given is not None
    assert set(given.weight.tolist()) == {0.3, 1.0}
    assert given.smoothing < found.smoothing  # a lone mark must not drown where most are silent
    assert first_votes(crowd_of_all, {}, Start.VOTES) is None
    assert first_votes(crowd_of_all, {}, Start.PRIOR) is None


def test_whoever_joins_later_speaks_up() -> None:
    corpus = crowds.rules(60)
    crowd_of_rules = encoded(corpus)
    more = crowd_of_rules.cells._replace(
        annotator=np.append(crowd_of_rules.cells.annotator, 9),
        previous=np.append(crowd_of_rules.cells.previous, 0),
        label=np.append(crowd_of_rules.cells.label, crowd_of_rules.tagset.outside or 0),
        n_annotators=10,
    )
    found = first_votes(crowd_of_rules, {}, Start.COVERAGE, cells=more, of_silence=np.full(9, 0.1))
    assert found is not None
    assert found.weight[-1] == 1.0
    assert set(found.weight[:-1].tolist()) == {0.1, 1.0}


@pytest.mark.parametrize(
    ("make", "hardly"),
    [
        (lambda: crowds.rules(200), True),
        (lambda: crowds.rules(600), True),
        (lambda: crowds.careful_three(60), False),
        (lambda: crowds.sparse(200, 200), False),
        (lambda: crowds.sparse(300, 30), False),
        (lambda: crowds.vague_boundaries(100), False),
        (lambda: crowds.spammer_majority(300), False),
        (lambda: crowds.one_expert(200), False),
        (lambda: crowds.every_kind(200), False),
        (lambda: crowd(crowds.sentences(200), {f"s{n}": Behaviour(spam=1.0) for n in range(5)}), False),
    ],
    ids=["rules", "more rules", "careful", "sparse", "fewer", "vague", "spammers", "expert", "every kind", "spam only"],
)
def test_rules_hardly_overlap_and_people_do(make: Callable[[], Corpus], hardly: bool) -> None:
    assert hardly_overlap(of_silence(make())) is hardly


@pytest.mark.parametrize(
    ("make", "share", "by_chance", "taken"),
    [
        (lambda: crowds.rules(60), 0.38, 0.0, 0.25),  # it looks like rules
        (lambda: crowds.rules(60), 0.42, 0.0, 0.42),  # people may have as much
        (lambda: crowds.rules(60), 0.38, 0.36, 0.38),  # spammers meet as much by chance
        (lambda: read_by_five(crowds.rules(60)), 0.38, 0.0, 0.38),  # people do not read everything
        (lambda: without_types(crowds.rules(60)), 0.38, 0.0, 0.38),  # of one type, a jury looks the same
    ],
    ids=["rules", "more", "chance", "some read", "one type"],
)
def test_a_crowd_that_has_read_everything_and_marks_little_is_taken_for_rules(
    make: Callable[[], Corpus], share: float, by_chance: float, taken: float
) -> None:
    corpus = encoded(make())
    K = len(corpus.annotators)
    covered = Coverage(np.full(K, share), np.full(K, by_chance), np.full(K, 100.0), np.ones(K))
    np.testing.assert_allclose(silent_votes(corpus, {}, covered), taken / (2 - taken), rtol=1e-12)


def test_those_who_have_read_everything_beside_rules_are_taken_for_rules() -> None:
    """Unless profiles say who they are, or they have not read everything; idle ones are as good as absent."""
    sentences = crowds.sentences(200, seed=9)
    taggers = {f"tagger{n}": Behaviour(miss=0.2, confuse=0.1, invent=0.01) for n in range(3)}
    rule = Behaviour(miss=0.5, blind_to=frozenset({"LOC", "PER"}))
    alone = crowd(sentences, taggers, seed=9)
    beside = crowd(sentences, {**taggers, "rule": rule}, seed=9)
    assert of_silence(alone).tolist() == [1.0] * 3
    assert of_silence(with_idle_rules(alone, 2))[2:].tolist() == [1.0] * 3
    as_a_rule = 0.25 / (2 - 0.25)
    assert of_silence(beside)[1:] == pytest.approx(as_a_rule, rel=1e-12)
    assert of_silence(beside)[0] < as_a_rule
    assert of_silence(beside, beside_rules=False)[1:].tolist() == [1.0] * 3
    for name in ("tagger0", "rule"):
        assert of_silence(beside, {name: Profile.of()})[1:].tolist() == [1.0] * 3
    assert of_silence(beside, {"tagger0": Profile.of(kind="model")})[1:] == pytest.approx(as_a_rule, rel=1e-12)
    assert of_silence(without_types(beside))[1:].tolist() == [1.0] * 3
    lazy = {f"ann{n}": Behaviour(miss=0.1, confuse=0.05) for n in range(6)} | {"lazy": Behaviour(miss=0.85)}
    assert of_silence(crowd(sentences, lazy, seed=9))[:6].tolist() == [1.0] * 6
    read_half = Corpus(
        replace(one, annotations={who: tags for who, tags in one.annotations.items() if who != "rule" or n % 2})
        for n, one in enumerate(beside)
    )
    assert of_silence(read_half)[1:].tolist() == [1.0] * 3


def test_who_is_taken_for_rules_beside_rules_is_told() -> None:
    taggers = {f"tagger{n}": Behaviour(miss=0.2, confuse=0.1, invent=0.01) for n in range(3)}
    rule = Behaviour(miss=0.5, blind_to=frozenset({"LOC", "PER"}))
    beside = crowd(crowds.sentences(200, seed=9), {**taggers, "rule": rule}, seed=9)
    for profiles, told in (({}, True), ({"rule": Profile.of(kind="rule")}, False)):
        choice = quorate.aggregate(Corpus(beside, profiles=profiles)).choice
        assert choice is not None
        said = " ".join(choice.notes)
        assert ("all annotators are taken for rules" in said) is told
        assert ("rule marks as little of what others mark as rules do" in said) is told


def read_by_five(corpus: Corpus) -> Corpus:
    """Of every document, what five of its annotators said, not always the same ones."""
    documents = []
    for number, document in enumerate(corpus):
        names = sorted(document.annotations)
        kept = [names[(number + n) % len(names)] for n in range(5)]
        documents.append(replace(document, annotations={name: document.annotations[name] for name in kept}))
    return Corpus(documents)


def test_marks_of_rules_are_rare_beforehand_whether_they_are_true_or_not() -> None:
    corpus = crowds.rules(60)
    rules, people = (Silence((0.01, 0.1, 1.0, 0.0), words) for words in (frozenset[str](), None))
    names = [*corpus.annotators[:4]]
    believed = rules.believed(names, {})
    assert believed.speaks == pytest.approx((0.1, 0.2 / 1.1, 1.0, 1.0))  # who marks nothing is told of by that alone
    assert people.believed(names, {}).speaks is None
    assert believed.marks == people.believed(names, {}).marks


def test_hardly_is_by_the_median() -> None:
    at = 0.3 / (2 - 0.3)  # what an O counts of those who mark three tenths
    assert hardly_overlap(np.array([at - 0.01, at - 0.01, 1.0]))
    assert not hardly_overlap(np.array([at - 0.01, at + 0.01, 1.0]))
    assert not hardly_overlap(np.zeros(0))
    assert not mostly_silent(np.zeros(0))
    assert mostly_silent(np.array([0.5, 0.5, 1.0]))
    assert not mostly_silent(np.array([0.5, 1.0, 1.0]))


def test_rules_that_hardly_meet_are_trusted_as_usual() -> None:
    """What is marked once is not counted twice; where rules meet now and then, all are trusted less."""
    sentences = crowds.sentences(300, seed=9)
    names = {f"rule{n}": Behaviour(miss=0.95) for n in range(6)}
    choices = [
        quorate.aggregate(crowd(sentences, people, seed=9), tagger=None).choice
        for people in (names, {name: Behaviour(miss=0.8) for name in names})
    ]
    assert [choice.settings.temper for choice in choices if choice is not None] == [0.9, 0.6]
    assert hardly_meet(np.full(3, 0.05))
    assert not hardly_meet(np.full(3, 0.06))
    assert not hardly_meet(np.zeros(0))


def with_idle_rules(corpus: Corpus, how_many: int) -> Corpus:
    """Rules that never mark anything beside the others."""
    names = [f"idle{n}" for n in range(how_many)]
    return Corpus(
        replace(one, annotations={**one.annotations, **dict.fromkeys(names, ("O",) * len(one.tokens))})
        for one in corpus
    )


def test_of_whoever_marks_nothing_an_o_counts_nothing() -> None:
    """Neither in votes nor beforehand, and what the crowd is like is told by the others."""
    people = crowds.careful_three(60)
    more = with_idle_rules(people, 5)
    counts = dict(zip(more.annotators, of_silence(more).tolist(), strict=True))
    assert {counts[name] for name in people.annotators} == {1.0}
    assert {counts[f"idle{n}"] for n in range(5)} == {0.0}
    assert not mostly_silent(of_silence(more))
    few = Corpus(with_idle_rules(people, 1).documents[:3])
    assert of_silence(few).min() > 0  # who has seen next to nothing may yet speak


def test_whoever_marks_nothing_changes_nothing() -> None:
    """They are as good as absent: next to no document has another consensus for them."""
    rules = crowds.rules(300)
    alone = quorate.aggregate(rules, tagger=None).tags
    beside = quorate.aggregate(with_idle_rules(rules, 12), tagger=None).tags
    assert sum(one != other for one, other in zip(alone, beside, strict=True)) <= 0.02 * len(rules)


def test_what_nobody_marks_starts_as_outside_however_silent_all_are() -> None:
    """Of two rules that never meet, silence is worth next to nothing, and yet more than no evidence at all."""
    said = {"cities": ("B-LOC", "O", "O", "O"), "names": ("O", "O", "B-PER", "O")}
    corpus = Corpus([Document(str(n), ("Rome", "saw", "Ada", "go"), said) for n in range(100)])
    rules = encoded(corpus)
    votes = first_votes(rules, {}, Start.COVERAGE)
    assert votes is not None
    outside = rules.cells.label == rules.tagset.outside
    assert votes.weight[outside].max() < 0.01
    of_o, J = 2 * votes.weight[outside].min(), len(rules.tagset.labels)
    assert (of_o + votes.smoothing) / (of_o + J * votes.smoothing) > 0.9  # a token that nobody marked
    assert (1 + votes.smoothing) / (1 + of_o + J * votes.smoothing) > 0.9  # one that one of them marked
    assert quorate.aggregate(corpus, tagger=None).tags == [["B-LOC", "O", "B-PER", "O"]] * 100


def closed_by_loops(corpus: Corpus) -> list[int]:
    """Token by token: whether somebody marked the one before or after and said O of this one, nobody marked this one,
    and its word is mostly not marked."""
    outside = corpus.tagset().labels.index("O")
    often, seen = dict[str, int](), dict[str, int]()
    for one in corpus:
        for word, *said in zip(one.tokens, *one.annotations.values(), strict=True):
            seen[word] = seen.get(word, 0) + any(tag is not None for tag in said)
            often[word] = often.get(word, 0) + any(tag not in (None, "O") for tag in said)
    labels = []
    for one in corpus:
        for n, word in enumerate(one.tokens):
            beside = [other for other in (n - 1, n + 1) if 0 <= other < len(one.tokens)]
            ends = any(
                tags[n] == "O" and any(tags[other] not in (None, "O") for other in beside)
                for tags in one.annotations.values()
            )
            nobody = all(tags[n] in (None, "O") for tags in one.annotations.values())
            labels.append(outside if ends and nobody and often[word] <= seen[word] / 2 else -1)
    return labels


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_spans_end_where_marks_do_by_loops(missing: float) -> None:
    rng = np.random.default_rng(3)
    made = [
        replace(
            one,
            annotations={
                who: tuple(None if rng.random() < missing else tag for tag in certain(tags))
                for who, tags in one.annotations.items()
            },
        )
        for one in crowds.rules(150)
    ]
    corpus = Corpus([*made, Document("nobody's", made[0].tokens), Document("empty", ())])
    rules = encode(corpus, corpus.tagset(), invalid=Invalid.KEEP)
    silence = Silence.of(rules, np.full(9, 0.1))
    found, expected = silence.closed(rules, None), closed_by_loops(corpus)
    assert found is not None
    assert found.tolist() == expected
    assert 0 < expected.count(rules.tagset.outside or 0) < len(expected) / 2
    known = np.full(rules.n_tokens, -1, np.int32)
    known[::7] = 1
    both = silence.closed(rules, known)
    assert both is not None
    assert (both[::7] == 1).all()
    assert (both[1::7] == -1).all()  # its span may go on
    assert (both[6::7] == -1).all()
    np.testing.assert_array_equal(both[3::7], found[3::7])


def test_of_soft_labels_the_likeliest_tell_where_spans_end() -> None:
    hard = crowds.rules(100)
    sure = {"O": {"O": 0.98, "B-PER": 0.02}}
    soft = Corpus(
        replace(
            one,
            annotations={
                who: tuple(sure.get(tag or "", {tag or "": 0.98, "O": 0.02}) for tag in certain(tags))
                for who, tags in one.annotations.items()
            },
        )
        for one in hard
    )
    of_hard, of_soft = encoded(hard), encode(soft, hard.tagset())
    expected = Silence.of(of_hard, np.full(9, 0.1))
    assert Silence.of(of_soft, np.full(9, 0.1)) == expected
    np.testing.assert_array_equal(expected.closed(of_soft, None), expected.closed(of_hard, None))


def test_labels_that_are_known_within_a_span_are_possible_among_rules() -> None:
    """A rule marked the middle of what is known to be a longer name."""
    said = {"cities": ("B-LOC", "O", "O", "O", "O"), "names": ("O", "O", "O", "B-PER", "O")}
    corpus = Corpus([Document(str(n), ("Rome", "saw", "Jo", "Li", "Wu"), said) for n in range(100)])
    model = BSC(tagger=None).fit(corpus, known={"3": (None, None, None, "I-PER", "I-PER")})
    assert model.model_state().silence.go_on is not None
    assert model.result_.tags[3][2:] == ["B-PER", "I-PER", "I-PER"]


@pytest.mark.parametrize("annotator", ["acc", "spam", "cv", "cm", "seq"])
def test_whoever_marks_nothing_is_no_expert(annotator: Literal["acc", "spam", "cv", "cm", "seq"]) -> None:
    people = crowds.careful_three(80)
    gold = [certain(one.gold or ()) for one in people]

    def f1(corpus: Corpus) -> float:
        tags = BSC(annotator=annotator, tagger=None).fit(corpus).result_.tags
        return quorate.score.strict(tags, gold).f1

    assert f1(with_idle_rules(people, 1)) > f1(people) - 0.06


def test_plain_labels_of_rules_are_no_silence() -> None:
    corpus = random_corpus(np.random.default_rng(0), tagset(Scheme.PLAIN))
    rules = {name: Profile.of(kind="rule") for name in corpus.annotators}
    np.testing.assert_array_equal(silent_votes(encode(corpus, tagset(Scheme.PLAIN)), rules), np.ones(3))


def test_a_checkpoint_of_rules_is_of_what_was_found_of_silence(tmp_path: Path) -> None:
    """The same settings without it are another fit."""
    rules = crowds.rules(150)
    chosen = BSC(tagger=None, checkpoint=tmp_path).fit(rules)._settings
    again = estimator("bsc-cm", **{**chosen.plain(), "checkpoint": tmp_path})
    with pytest.raises(SettingsError, match="the data are others"):
        again.fit(rules)


def test_among_people_spans_may_go_on() -> None:
    people = encoded(crowds.careful_three(60))
    silence = Silence.of(people, silent_votes(people, {}))
    assert silence.go_on is None
    assert silence.closed(people, None) is None
    assert silence.believed(people.annotators, {}).marks is None


def test_a_model_of_rules_goes_on_from_its_file_as_if_it_had_never_left(tmp_path: Path) -> None:
    """What was found of silence is kept: the same documents have the same consensus, and so have new ones."""
    rules = crowds.rules(400)
    first, later = Corpus(rules.documents[:300]), Corpus(rules.documents[300:])
    model = BSC(tagger=None).fit(first)
    assert model.combine(first).tags == model.result_.tags
    model.save(tmp_path / "rules.quorate")
    loaded = quorate.load(tmp_path / "rules.quorate")
    assert isinstance(loaded, BSC)
    assert loaded.model_state().silence == model.model_state().silence
    assert model.model_state().silence.go_on
    assert loaded.combine(later).tags == model.combine(later).tags
    assert loaded.update(later).result_.tags == model.update(later).result_.tags


def test_rules_that_are_declared_are_taken_for_rules_however_much_they_overlap() -> None:
    """Variants of a list of names agree with one another, and would leave out what another list alone has found."""
    texts = crowds.sentences(300, seed=5)
    knows = {"names": Behaviour(miss=0.5, blind_to=frozenset({"LOC"})), "places": Behaviour(miss=0.4)}
    made = crowd(texts, knows, seed=5)
    made = with_copies(made, "names", 2, jitter=0.05)
    declared = Corpus(made.documents, profiles={name: Profile.of(kind="rule") for name in made.annotators})
    assert not hardly_overlap(of_silence(made))
    assert hardly_overlap(of_silence(declared, declared.profiles))
    gold = [certain(one.gold or ()) for one in made]
    alone, told = (quorate.aggregate(each, tagger=None).tags for each in (made, declared))
    assert quorate.score.strict(told, gold).f1 > quorate.score.strict(alone, gold).f1
