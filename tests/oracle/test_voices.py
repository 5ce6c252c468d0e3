"""Copies speak with one voice: what most of them say, by loops over documents; and who is taken for a copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import simulated_crowds as crowds
import quorate
from problems import certain, random_corpus, tagset
from quorate import Result
from quorate.choose.alike import Pairs, in_common
from quorate.choose.copies import _alone, _unseen, copies_of_one, nearly_the_same
from quorate.choose.correlation import shared_mistakes
from quorate.choose.kept import as_plain, from_plain, taken_over
from quorate.choose.sources import coverage_and_sharing
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.simulate import Behaviour, crowd, with_copies
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet, find_spans
from quorate.crowd.algebra import token_of_events
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.crowd.sharing import Sharing
from quorate.crowd.voices import in_one_voice
from quorate.estimators.bsc import BSC

EXPERT = Behaviour(miss=0.03, confuse=0.02)


def encoded(corpus: Corpus) -> Crowd:
    return encode(corpus, corpus.tagset())


def voices(corpus: Corpus) -> list[list[str]]:
    """Who speaks with one voice, by name."""
    _, sharing = coverage_and_sharing(encoded(corpus), corpus.profiles)
    return [[corpus.annotators[k] for k in voice] for voice in sharing.voices]


def bare(result: Result) -> set[tuple[int, Span]]:
    """The spans of a consensus, with the number of their document."""
    return {(number, span.bare) for number, spans in enumerate(result.spans) for span in spans}


def by_loops(corpus: Corpus, tags: TagSet, members: Sequence[str]) -> Corpus:
    """The corpus in which the first of the members says what most of those who are there do."""
    documents = []
    for document in corpus:
        here = [name for name in members if any(tag is not None for tag in document.annotations.get(name, ()))]
        said = {name: found for name, found in document.annotations.items() if name not in members}
        if len(here) == 1:
            said[members[0]] = document.annotations[here[0]]
        elif here:
            marked = {name: find_spans(certain(document.annotations[name])) for name in here}
            votes = Counter(span for spans in marked.values() for span in spans)
            read = {s: sum(document.annotations[name][s.start] is not None for name in here) for s in votes}
            by_place = sorted(
                votes, key=lambda span: (2 * votes[span] <= read[span], span.start, -span.end, span.label)
            )
            kept: list[Span] = []
            for span in by_place:
                if 2 * votes[span] >= read[span] and all(span.end <= k.start or k.end <= span.start for k in kept):
                    kept.append(span)
            whole: list[Tag] = list(tags.tags(sorted(kept), len(document.tokens)))
            for place in range(len(whole)):
                if all(document.annotations[name][place] is None for name in here):
                    whole[place] = None
            said[members[0]] = tuple(whole)
        documents.append(replace(document, annotations=said))
    return Corpus(documents)


def events(crowd: Crowd) -> list[tuple[int, str, int, int, float]]:
    """Token, annotator, own label before, label and weight of all that was said."""
    cell, cells = crowd.event_cell, crowd.cells
    weight = np.ones(len(cell)) if crowd.event_weight is None else crowd.event_weight
    names = [crowd.annotators[k] for k in cells.annotator[cell].tolist()]
    columns = (token_of_events(crowd), names, cells.previous[cell], cells.label[cell], weight)
    return sorted(zip(*(list(column) for column in columns), strict=True))


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.IO, Scheme.BIOES])
@pytest.mark.parametrize("seed", range(6))
def test_what_a_voice_says_by_loops(scheme: Scheme, seed: int) -> None:
    rng, tags = np.random.default_rng(seed), tagset(scheme, 2)
    corpus = random_corpus(rng, tags, n_documents=40, longest=5, n_annotators=6, missing=0.08 * (seed % 3))
    n_members = 2 + seed % 4
    members = sorted(rng.choice(6, n_members, replace=False).tolist())
    crowd = encode(corpus, tags)
    heard = in_one_voice(crowd, [members])
    expected = encode(
        by_loops(corpus, tags, [f"a{k}" for k in members]), tags, annotators=crowd.annotators, words=crowd.words
    )
    assert events(heard) == events(expected)
    assert (np.diff(heard.cells.keys) > 0).all()
    assert in_one_voice(heard, [members]) is heard


def test_two_voices_speak_beside_each_other() -> None:
    rng, tags = np.random.default_rng(0), tagset(Scheme.BIO, 2)
    corpus = random_corpus(rng, tags, n_documents=40, n_annotators=7, missing=0.1)
    crowd = encode(corpus, tags)
    both = in_one_voice(crowd, [[0, 2, 3], [1, 5, 6]])
    in_turn = in_one_voice(in_one_voice(crowd, [[0, 2, 3]]), [[1, 5, 6]])
    assert events(both) == events(in_turn)
    assert set(both.cells.annotator.tolist()) == {0, 1, 4}


def test_soft_labels_vote_for_the_likeliest_and_stay_soft_where_one_is_alone() -> None:
    soft = ({"B-T0": 0.7, "O": 0.3},)
    documents = [
        Document("1", ("w",), {"a": soft, "b": ("B-T0",), "c": ("O",), "d": ("O",)}),
        Document("2", ("w",), {"b": soft, "d": ("O",)}),
    ]
    tags = tagset(Scheme.BIO, 1)
    heard = in_one_voice(encode(Corpus(documents), tags), [[0, 1, 2]])
    by_name = {(token, name, tags.labels[label], round(weight, 1)) for token, name, _, label, weight in events(heard)}
    assert by_name == {
        (0, "a", "B-T0", 1.0),
        (0, "d", "O", 1.0),
        (1, "a", "B-T0", 0.7),
        (1, "a", "O", 0.3),
        (1, "d", "O", 1.0),
    }


def test_plain_labels_have_no_voices() -> None:
    corpus = random_corpus(np.random.default_rng(0), tagset(Scheme.PLAIN, 2))
    crowd = encode(corpus, tagset(Scheme.PLAIN, 2))
    assert in_one_voice(crowd, [[0, 1, 2]]) is crowd


def test_sharing_everything_is_not_yet_a_voice() -> None:
    crowd = encoded(crowds.careful_three(20))
    assert Sharing.of([(0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0)]).heard(crowd) is crowd
    one = Sharing.of(voices=[(2, 0, 1)])
    assert one.voices == ((0, 1, 2),)
    assert one.groups(4) == [[0, 1, 2]]
    assert one.heard(crowd) is not crowd


@pytest.mark.parametrize("seed", range(8))
def test_every_two_of_those_who_are_nearly_the_same_have_much_in_common(seed: int) -> None:
    rng, K = np.random.default_rng(seed), 12
    one, other = (np.array(each) for each in zip(*combinations(range(K), 2), strict=True))
    group = rng.integers(0, 4, K)
    cosine = np.where(group[one] == group[other], rng.uniform(0.7, 1.0, len(one)), rng.uniform(0.0, 0.74, len(one)))
    spans = rng.choice([20.0, 100.0], len(one), p=[0.1, 0.9])
    number = nearly_the_same(Pairs(one, other, np.zeros(len(one), np.int64), cosine, spans), K)
    close = {(k, n): c >= 0.75 and s >= 40 for k, n, c, s in zip(one, other, cosine, spans, strict=True)}
    for each in set(number.tolist()) - {-1}:
        members = np.flatnonzero(number == each).tolist()
        assert len(members) >= 3
        assert all(close[pair] for pair in combinations(members, 2))
    apart = np.flatnonzero(number < 0).tolist()  # no three of those who are left out are all close
    assert not any(all(close[pair] for pair in combinations(three, 2)) for three in combinations(apart, 3))


def test_whoever_was_not_shown_a_token_has_no_vote_on_it() -> None:
    """Three copies that labelled a third of a document each."""
    tags = tagset(Scheme.BIO, 1)
    parts = {name: tuple("B-T0" if place == k else None for place in range(3)) for k, name in enumerate("abc")}
    heard = in_one_voice(encode(Corpus([Document("1", ("u", "v", "w"), parts)]), tags), [[0, 1, 2]])
    assert [tags.labels[label] for _, _, _, label, _ in events(heard)] == ["B-T0"] * 3


@pytest.mark.parametrize("seed", range(4))
def test_names_do_not_matter_to_a_voice(seed: int) -> None:
    tags = tagset(Scheme.BIO, 2)
    corpus = random_corpus(np.random.default_rng(seed), tags, n_documents=40, n_annotators=5, missing=0.1)
    name = {f"a{k}": f"a{9 - k}" for k in range(5)}
    renamed = Corpus(replace(one, annotations={name[n]: tags for n, tags in one.annotations.items()}) for one in corpus)
    one, other = (
        in_one_voice(encode(each, tags), [voice]) for each, voice in ((corpus, range(4)), (renamed, range(1, 5)))
    )
    assert [event[:1] + event[2:] for event in events(one) if event[1] != "a4"] == [
        event[:1] + event[2:] for event in events(other) if event[1] != "a5"
    ]


@pytest.mark.parametrize("seed", range(4))
def test_who_is_alone_by_loops(seed: int) -> None:
    rng, tags = np.random.default_rng(seed), tagset(Scheme.BIO, 2)
    corpus = random_corpus(rng, tags, n_documents=30, n_annotators=5, missing=0.05 * seed)
    members = [0, 1, 3, 4] if seed else [0, 1, 2, 3, 4]
    expected = []
    for k in members:
        alone = 0
        for document in corpus:
            here = [n for n in members if any(tag is not None for tag in document.annotations.get(f"a{n}", ()))]
            if k not in here:
                continue
            marked = {n: set(find_spans(certain(document.annotations[f"a{n}"]))) for n in here}
            for span in set().union(*marked.values()):
                others = [span in marked[n] for n in here if n != k]
                if sum(others) * 2 != len(others):
                    alone += (span in marked[k]) != (2 * sum(others) > len(others))
        expected.append(alone)
    assert _alone(encode(corpus, tags), np.array(members)).tolist() == expected


def test_whoever_has_more_in_common_than_the_original_explains_is_no_copy() -> None:
    """Two more experts are as close to the original as its copies are, and closer to each other."""
    corpus = with_copies(crowds.experts_among_vague(), "expert2", 5)
    crowd = encoded(corpus)
    experts = np.array([k for k, name in enumerate(corpus.annotators) if name.startswith("expert")])
    found = copies_of_one(crowd, in_common(crowd, [None], 0.0), experts)
    assert [corpus.annotators[k] for k in found] == ["expert2", *(f"expert2+{n}" for n in range(1, 6))]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (crowds.one_expert, "expert"),
        (crowds.one_expert, "a5"),
        (crowds.disjoint_batches, "a0"),
        (crowds.careful_three, "ann"),
        (crowds.experts_among_vague, "expert2"),
        (crowds.experts_among_vague, "vague4"),
        (crowds.spammer_majority, "good2"),
        (crowds.jury, "model2"),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_copies_of_anybody_are_found(make: Callable[[], Corpus], name: str, seed: int) -> None:
    corpus = with_copies(make(), name, 5, seed=seed)
    assert voices(corpus) == [[name, *(f"{name}+{n}" for n in range(1, 6))]]


@pytest.mark.parametrize("n_experts", [3, 5])
@pytest.mark.parametrize(
    "others",
    [
        Behaviour(miss=0.35, confuse=0.15, start_late=0.15, invent=0.01),
        Behaviour(miss=0.3, start_late=0.4),
        Behaviour(miss=0.2, vague=0.6, reach=1.0),
        Behaviour(miss=0.2, confuse=0.1, blind_to=frozenset({"ORG"})),
    ],
)
@pytest.mark.parametrize("expert", [EXPERT, Behaviour(miss=0.08, confuse=0.04, invent=0.002)])
def test_experts_whose_mistakes_are_their_own_are_no_copies(
    n_experts: int, others: Behaviour, expert: Behaviour
) -> None:
    kinds = {f"e{n}": expert for n in range(n_experts)} | {f"w{n}": others for n in range(4)}
    for seed in range(3):
        assert voices(crowd(crowds.sentences(300, seed=seed), kinds, seed=seed)) == []


@pytest.mark.parametrize("seed", range(3))
def test_good_annotators_beside_a_perfect_one_are_no_copies_where_the_rest_is_vague(seed: int) -> None:
    """Nothing tells them from copies, and a vague crowd would outvote a single voice."""
    good, vague = Behaviour(miss=0.08, confuse=0.02), Behaviour(miss=0.2, vague=0.6, reach=1.0)
    kinds = {"best": Behaviour(), **{f"g{n}": good for n in range(4)}, **{f"w{n}": vague for n in range(4)}}
    assert voices(crowd(crowds.sentences(300, seed=seed), kinds, seed=seed)) == []


def unseen_by_loops(corpus: Corpus, members: Sequence[str]) -> tuple[int, int, float, list[int], list[int]]:
    """What members mark alone, span by span: how much, what most agree on, what is expected; who is confirmed."""
    types = corpus.tagset().types
    here = [
        (one.annotations, {who: set(find_spans(certain(tags))) for who, tags in one.annotations.items()})
        for one in corpus
    ]
    outsiders = [name for name in corpus.annotators if name not in members]
    met, total = (dict.fromkeys(((name, kind) for name in outsiders for kind in types), 0) for _ in range(2))
    marks, saw = Counter[tuple[bool, str]](), Counter[bool]()
    for seen, spans in here:
        saw.update(name in members for name in seen)
        marks.update((name in members, span.label) for name in seen for span in spans[name])
        for one, other in ((one, other) for one in seen for other in seen if {one, other}.isdisjoint(members)):
            for span in spans[other] if one != other else ():
                total[one, span.label] += 1
                met[one, span.label] += any(mine.start < span.end and span.start < mine.end for mine in spans[one])
    share = {
        (name, kind): (met[name, kind] + 5 * usual) / (total[name, kind] + 5)
        for kind in types
        for usual in [sum(met[one, kind] for one in outsiders) / max(sum(total[one, kind] for one in outsiders), 1)]
        for name in outsiders
    }
    known = {kind for kind in types if marks[False, kind] * saw[True] >= 0.25 * marks[True, kind] * saw[False]}
    spans_alone = agreed = 0
    expected, confirmed, possible = 0.0, dict.fromkeys(members, 0), dict.fromkeys(members, 0)
    for seen, spans in here:
        mine, theirs = ([name for name in seen if (name in members) is inside] for inside in (True, False))
        if len(mine) < 2 or len(theirs) < 2:
            continue
        for span in {span for name in mine for span in spans[name] if span.label in known}:
            by = [name for name in mine if span in spans[name]]
            touched = any(one.start < span.end and span.start < one.end for name in theirs for one in spans[name])
            if 2 * len(by) > len(mine):
                agreed += not touched
                expected += float(np.prod([max(1 - share[name, span.label], 0.01) for name in theirs]))
            if not touched:
                spans_alone += 1
                for name in by:
                    confirmed[name] += len(by) - 1
                    possible[name] += len(mine) - 1
    return spans_alone, agreed, expected, list(confirmed.values()), list(possible.values())


@pytest.mark.parametrize("seed", range(3))
def test_what_is_marked_where_nobody_else_marks_anything_by_loops(seed: int) -> None:
    """With documents that some did not see, and a type that hardly any outsider marks."""
    rng = np.random.default_rng(seed)
    people = {name: Behaviour(miss=0.3, vague=0.2, invent=0.05, blind_to=frozenset({"ORG"})) for name in "abcd"}
    people |= {name: Behaviour(miss=0.1, invent=0.05) for name in "xyz"}
    made = crowd(crowds.sentences(80, seed=seed), people, seed=seed)
    corpus = Corpus(
        replace(one, annotations={who: tags for who, tags in one.annotations.items() if rng.random() < 0.7})
        for one in made
    )
    found = _unseen(encoded(corpus), np.array([4, 5, 6]))
    spans, agreed, expected, confirmed, possible = unseen_by_loops(corpus, "xyz")
    assert (found.spans, found.agreed) == (spans, agreed)
    assert found.expected == pytest.approx(expected, rel=1e-9)
    assert (found.confirmed.tolist(), found.possible.tolist()) == (confirmed, possible)
    assert min(agreed, *confirmed) > 3


@pytest.mark.parametrize("seed", range(3))
def test_copies_of_the_best_of_many_who_are_nearly_as_good_are_found(seed: int) -> None:
    """Nobody contradicts them, but of what they make up nobody else marks anything, and all of them do."""
    people = {f"a{n}": Behaviour(miss=0.25, confuse=0.05, start_late=0.05, invent=0.01) for n in range(12)}
    best = {"best": Behaviour(miss=0.05, confuse=0.03, invent=0.02)}
    corpus = crowd(crowds.sentences(800, seed=seed), {**people, **best}, per_document=6, seed=seed)
    assert voices(corpus) == []
    with_five = with_copies(corpus, "best", 5, jitter=0.1)
    assert voices(with_five) == [["best", *(f"best+{n}" for n in range(1, 6))]]
    without_original = Corpus(
        replace(one, annotations={who: tags for who, tags in one.annotations.items() if who != "best"})
        for one in with_five
    )
    assert voices(without_original) == [[f"best+{n}" for n in range(1, 6)]]


def test_experts_who_know_a_type_that_nobody_else_marks_are_no_copies() -> None:
    experts = {f"expert{n}": Behaviour(miss=0.05, confuse=0.02) for n in range(3)}
    others = {f"other{n}": Behaviour(miss=0.15, confuse=0.05, blind_to=frozenset({"ORG"})) for n in range(4)}
    assert voices(crowd(crowds.sentences(600, seed=31), {**experts, **others}, seed=31)) == []


def test_silent_members_of_a_declared_group_do_not_silence_the_others() -> None:
    corpus = with_copies(crowds.careful_three(100), "ann", 2)
    nothing = {f"none{n}": "O" for n in range(4)}
    documents = [
        replace(one, annotations={**one.annotations, **{n: (tag,) * len(one.tokens) for n, tag in nothing.items()}})
        for one in corpus
    ]
    group = dict.fromkeys(["ann", "ann+1", "ann+2", *nothing], Profile(group="llm"))
    assert voices(Corpus(documents, profiles=group)) == [["ann", "ann+1", "ann+2"]]


def test_copies_of_a_rule_are_as_silent_as_it_is() -> None:
    choice = BSC(tagger=None).fit(with_copies(crowds.rules(300), "rule0", 3, jitter=0.05)).choice_
    assert choice is not None
    assert choice.sharing.voices != ()
    assert {"rule0", "rule0+1", "rule0+2", "rule0+3"} <= set(choice.silent)
    left = [name for name in choice.annotators if name not in ("rule0", "rule0+3")]
    over = taken_over(choice, choice.settings, ("temper",), left)
    of_rule = choice.of_silence[choice.annotators.index("rule0")]
    assert over.of_silence[left.index("rule0+1")] == of_rule
    assert from_plain(as_plain(choice)).sharing.voices == choice.sharing.voices


def test_five_copies_change_nothing() -> None:
    """Of the best and of the worst: the consensus is that of the crowd without them, but for a few spans."""
    corpus = crowds.one_expert(200)
    before = bare(quorate.aggregate(corpus, tagger=None))
    for name in ("expert", "a5"):
        result = quorate.aggregate(with_copies(corpus, name, 5), tagger=None)
        assert len(bare(result) ^ before) <= 0.01 * len(before)
        assert result.choice is not None
        assert result.choice.votes == pytest.approx((12.0, 7.0))


def test_what_copies_share_with_others_is_told_by_what_all_of_them_say() -> None:
    corpus = crowds.every_kind(200)
    alone, copied = encoded(corpus), encoded(with_copies(corpus, "bob", 5))

    def of_others(crowd: Crowd) -> dict[frozenset[str], float]:
        pairs = shared_mistakes(crowd).pairs()
        named = {frozenset((crowd.annotators[k], crowd.annotators[n])): share for k, n, share in pairs}
        return {pair: share for pair, share in named.items() if not any("+" in name for name in pair)}

    assert of_others(copied).keys() == of_others(alone).keys()
    assert of_others(copied) == pytest.approx(of_others(alone), abs=0.02)


def test_copies_are_judged_one_by_one() -> None:
    """The model hears one of them, and yet each has an accuracy and confusions of its own."""
    corpus = with_copies(crowds.one_expert(200), "expert", 4, jitter=0.1)
    corpus = Corpus([*with_copies(corpus, "expert+1", 1, jitter=0.0)], profiles=corpus.profiles)
    model = BSC(tagger=None).fit(corpus)
    first, second = model.annotators_["expert"], model.annotators_["expert+2"]
    assert first.accuracy > second.accuracy > 0.9
    right = [np.diagonal(one.matrix, axis1=-2, axis2=-1).mean() for one in (first, second)]
    assert right[0] > right[1] > 0.5
    assert model.annotators_["expert+1+1"].accuracy == pytest.approx(model.annotators_["expert+1"].accuracy)


def test_a_voice_goes_on_in_other_documents_files_and_updates(tmp_path: Path) -> None:
    corpus = with_copies(crowds.one_expert(220), "expert", 5)
    first, later = Corpus(corpus.documents[:180]), Corpus(corpus.documents[180:])
    model = BSC(tagger=None).fit(first)
    assert model.sources_.sharing.voices != ()
    alone = Corpus(
        replace(one, annotations={n: t for n, t in one.annotations.items() if n[0] == "a" or n == "expert+3"})
        for one in later
    )
    renamed = Corpus(
        replace(one, annotations={n.partition("+")[0]: t for n, t in one.annotations.items()}) for one in alone
    )
    assert model.combine(alone).tags == model.combine(renamed).tags  # a copy is heard as the voice that it has
    model.save(tmp_path / "model.quorate")
    loaded = quorate.load(tmp_path / "model.quorate")
    assert isinstance(loaded, BSC)
    assert loaded.combine(later).tags == model.combine(later).tags
    assert np.allclose(loaded.annotators_["expert+3"].matrix, model.annotators_["expert+3"].matrix)
    updated, from_file = model.update(later).result_, loaded.update(later).result_
    assert updated.tags == from_file.tags
    assert np.diagonal(model.annotators_["expert+3"].matrix, axis1=-2, axis2=-1).mean() > 0.7
    gold = [one.gold for one in corpus]
    whole = quorate.score.strict(BSC(tagger=None).fit(corpus).result_.tags, gold).f1
    assert quorate.score.strict(updated.tags, gold).f1 > whole - 0.01


def test_declared_samples_that_are_nearly_the_same_speak_with_one_voice() -> None:
    """Where nobody else is there, nothing but the word of the user tells copies from people who are right."""
    corpus = with_copies(
        Corpus(replace(one, annotations={"ann": one.gold or ()}) for one in crowds.careful_three(100)), "ann", 2
    )
    declared = Corpus(corpus, profiles=dict.fromkeys(corpus.annotators, Profile(group="llm")))
    assert voices(corpus) == []
    assert voices(declared) == [["ann", "ann+1", "ann+2"]]


def test_no_copy_is_asked_where_another_was_heard() -> None:
    corpus = with_copies(crowds.one_expert(120), "expert", 5)
    some = Corpus(
        replace(one, annotations={n: t for n, t in one.annotations.items() if n[0] == "a" or number < 60})
        for number, one in enumerate(corpus)
    )
    model = BSC(tagger=None).fit(some)
    assert model.sources_.sharing.voices != ()
    found = quorate.next_labels(some, model, n=20, annotators=["expert+2"]).suggestions
    assert len(found) == 20
    assert all(some.position(one.document) >= 60 and one.labels == 6 for one in found)


def test_copies_count_once_in_what_annotators_would_say_and_where_they_differ() -> None:
    corpus = crowds.every_kind(150)
    alone, copied = (quorate.aggregate(each, tagger=None) for each in (corpus, with_copies(corpus, "bob", 5)))
    assert copied.sources.voices[0] == ("bob", *(f"bob+{n}" for n in range(1, 6)))
    assert np.abs(copied.ambiguity.tokens - alone.ambiguity.tokens).mean() < 0.02
    assert np.abs(np.concatenate(copied.shares) - np.concatenate(alone.shares)).mean() < 0.02
    for one, other in zip(copied.shares_of("bob"), copied.shares_of("bob+3"), strict=True):
        assert np.array_equal(one, other)
