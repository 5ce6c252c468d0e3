"""Sources that abstain: how much of what others mark everybody marks, and where their marks end, by loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import quorate
import simulated_crowds as crowds
from problems import certain, random_corpus, tagset
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, find_spans
from quorate.crowd.abstaining import ENDS, Abstaining, account_for_abstaining, coverage
from quorate.crowd.algebra import first_votes
from quorate.crowd.changes import with_notes
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode

PRIOR = 5.0
"""Spans of the average annotator that everybody has."""


def encoded(corpus: Corpus) -> Crowd:
    return replace(encode(corpus, corpus.tagset()), profiles=corpus.profiles)


def by_loops(corpus: Corpus) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mark by mark of somebody else, whether a token of it is in a span of one's own; and how many own marks."""
    names, types = corpus.annotators, corpus.tagset().types
    met, total = np.zeros((2, len(names), len(types)))
    own = np.zeros(len(names))
    for document in corpus:
        looked = {name: certain(tags) for name, tags in document.annotations.items() if set(tags) - {None}}
        spans: dict[str, list[Span]] = {name: find_spans(tags) for name, tags in looked.items()}
        for k, name in enumerate(names):
            if name not in looked:
                continue
            own[k] += len(spans[name])
            mine = {place for span in spans[name] for place in range(span.start, span.end)}
            for span in (span for other in looked if other != name for span in spans[other]):
                total[k, types.index(span.label)] += 1
                met[k, types.index(span.label)] += bool(mine & set(range(span.start, span.end)))
    usual = met.sum() / total.sum() if total.any() else 1.0
    known = [t for t in range(len(types)) if total[:, t].any()]
    share = [
        np.mean([(met[k, t] + PRIOR * usual) / (total[k, t] + PRIOR) for t in known]) if known else usual
        for k in range(len(names))
    ]
    return np.array(share), own


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.IO, Scheme.BIOES])
@pytest.mark.parametrize("seed", range(3))
def test_coverage_by_loops(scheme: Scheme, seed: int) -> None:
    """With several types, tokens and documents that somebody skipped, and one who saw a single document."""
    rng = np.random.default_rng(seed)
    tags = tagset(scheme, n_types=1 if scheme is Scheme.BIOES else 2)
    made = random_corpus(rng, tags, n_documents=30, longest=4, n_annotators=4, missing=0.1 * seed)
    guest = replace(made[0], annotations={**made[0].annotations, "guest": made[0].gold or ()})
    corpus = Corpus([guest, *made.documents[1:], Document("nobody's", ("w",))])
    for column, wanted in zip(coverage(encoded(corpus)), by_loops(corpus), strict=True):
        np.testing.assert_allclose(column, wanted, rtol=1e-12)
    assert np.ptp(coverage(encoded(corpus)).share) > 0.01


def test_touching_is_sharing_a_token() -> None:
    """Spans side by side do not touch, and one long span meets two short ones."""
    said = {"short": ("B-A", "B-A", "O", "O"), "long": ("B-A", "I-A", "O", "O"), "beside": ("O", "O", "B-A", "O")}
    corpus = Corpus([Document(str(n), ("w",) * 4, said) for n in range(200)])
    share = dict(zip(corpus.annotators, coverage(encoded(corpus)).share.tolist(), strict=True))
    # Of the others' marks "short" meets one of two, "long" two of three, "beside" none of three.
    assert share == pytest.approx({"short": 1 / 2, "long": 2 / 3, "beside": 0.0}, abs=0.01)


@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_coverage_is_the_same_in_any_order_and_in_pieces(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = crowds.rules(150)
    whole = coverage(encoded(corpus))
    monkeypatch.setattr("quorate.crowd.marked._n_pieces", lambda *_: pieces)
    for column, same in zip(whole, coverage(encoded(Corpus(corpus.documents[::-1]))), strict=True):
        np.testing.assert_array_equal(column, same)


def read_by_five(corpus: Corpus) -> Corpus:
    """Of every document, what five of its annotators said, not always the same ones."""
    documents = []
    for number, document in enumerate(corpus):
        names = sorted(document.annotations)
        kept = [names[(number + n) % len(names)] for n in range(5)]
        documents.append(replace(document, annotations={name: document.annotations[name] for name in kept}))
    return Corpus(documents)


@pytest.mark.parametrize(
    ("make", "abstain"),
    [
        (lambda: crowds.rules(150), True),
        (lambda: read_by_five(crowds.rules(150)), False),  # people do not read everything
        (lambda: crowds.careful_three(60), False),
        (lambda: crowds.sparse(150, 150), False),
        (lambda: crowds.one_expert(100), False),
    ],
    ids=["rules", "some read", "careful", "sparse", "expert"],
)
def test_who_has_read_everything_and_marks_little_abstains(make: Callable[[], Corpus], abstain: bool) -> None:
    crowd = encoded(make())
    changed = account_for_abstaining(crowd)
    assert changed.abstains is abstain
    if not abstain:
        assert changed is crowd
        return
    assert changed.annotators == (*crowd.annotators, ENDS)
    assert changed.coverage is not None
    np.testing.assert_allclose(changed.coverage[:-1], np.minimum(coverage(crowd).share, 0.999))
    assert changed.coverage[-1] == 1.0


def test_whoever_is_declared_to_abstain_does_and_nobody_else() -> None:
    corpus = crowds.careful_three(60)
    told = Corpus(corpus, profiles={"bob": Profile.of(abstains=True)})
    changed = account_for_abstaining(encoded(told))
    found = dict(zip(changed.annotators, (changed.coverage if changed.coverage is not None else []), strict=True))
    assert found == {"ann": 1.0, "bob": 0.25, "cem": 1.0, ENDS: 1.0}
    assert not changed.abstains


def test_plain_labels_of_rules_are_no_silence() -> None:
    corpus = random_corpus(np.random.default_rng(0), tagset(Scheme.PLAIN))
    told = Corpus(corpus, profiles={name: Profile.of(kind="rule", abstains=True) for name in corpus.annotators})
    crowd = encode(told, tagset(Scheme.PLAIN))
    assert account_for_abstaining(replace(crowd, profiles=told.profiles)).coverage is None


def ends_by_loops(corpus: Corpus, silent: set[str]) -> list[int]:
    """Token by token: whether a source that abstains marked the one beside and said O of this one, nobody marked it,
    and its word is mostly not marked.
    """
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
                who in silent and tags[n] == "O" and any(tags[other] not in (None, "O") for other in beside)
                for who, tags in one.annotations.items()
            )
            nobody = all(tags[n] in (None, "O") for tags in one.annotations.values())
            labels.append(outside if ends and nobody and often[word] <= seen[word] / 2 else -1)
    return labels


def labels_of(crowd: Crowd, name: str) -> list[int]:
    """``[N]`` What somebody said, −1 where they said nothing."""
    said = np.full(crowd.n_tokens, -1)
    token = np.repeat(np.arange(crowd.n_tokens), np.diff(crowd.event_start))
    mine = crowd.cells.annotator[crowd.event_cell] == crowd.annotators.index(name)
    said[token[mine]] = crowd.cells.label[crowd.event_cell[mine]]
    return said.tolist()


@pytest.mark.parametrize("everybody", [True, False])
@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_ends_of_marks_by_loops(missing: float, everybody: bool) -> None:
    rng = np.random.default_rng(3)
    made = [
        replace(
            one,
            annotations={
                who: tuple(None if rng.random() < missing and tag == "O" else tag for tag in certain(tags))
                for who, tags in one.annotations.items()
            },
        )
        for one in crowds.rules(100)
    ]
    corpus = Corpus([*made, Document("nobody's", made[0].tokens), Document("empty", ())])
    crowd = encode(corpus, corpus.tagset())
    silent = set(crowd.annotators) if everybody else set(crowd.annotators[:4])
    if everybody:
        changed = account_for_abstaining(crowd)
    else:
        told = {name: Profile.of(abstains=True) for name in silent}
        changed = account_for_abstaining(replace(crowd, profiles=told))
        if changed.coverage is not None and (changed.coverage[4:-1] < 1).any():
            silent = set(crowd.annotators)  # they all look like rules
    found, expected = labels_of(changed, ENDS), ends_by_loops(corpus, silent)
    assert found == expected
    assert 0 < expected.count(crowd.tagset.outside or 0) < len(expected) / 2


def test_of_soft_labels_the_likeliest_tell_where_spans_end() -> None:
    hard = crowds.rules(60)
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
    of_hard, of_soft = (account_for_abstaining(encode(each, hard.tagset())) for each in (hard, soft))
    assert labels_of(of_soft, ENDS) == labels_of(of_hard, ENDS)


def test_an_o_counts_so_that_a_span_wins_at_half_of_those_expected() -> None:
    """With n annotators of coverage c who all may know a span, c·n / 2 marks are as much as the others' silence."""
    crowd = encoded(crowds.rules(60))
    for c in (0.05, 0.2, 0.45):
        note = Abstaining((c,) * len(crowd.annotators), frozenset())
        changed = crowd.noting(note)
        weight, _ = first_votes(changed)
        cells = changed.cells
        helper = cells.annotator == len(crowd.annotators)
        outside = cells.label == crowd.tagset.outside
        n, marks = 40.0, c * 40.0 / 2
        np.testing.assert_allclose(weight[outside & ~helper] * (n - marks), marks, rtol=1e-12)
        assert set(weight[~outside | helper].tolist()) == {1.0}


def test_what_was_found_goes_on_with_other_documents() -> None:
    """The same ends by the same words, coverage by name, and whoever is new is taken for a source like the others."""
    rules = crowds.rules(150)
    first = Corpus(rules.documents[:120])
    later = Corpus(
        replace(one, annotations={**one.annotations, "zoe": one.annotations["rule0"]}) for one in rules.documents[120:]
    )
    changed = account_for_abstaining(encoded(first))
    other = encode(later, changed.tagset, annotators=changed.annotators, words=changed.words)
    seen = with_notes(other, changed.notes)
    assert seen.annotators == (*changed.annotators, "zoe")
    assert seen.coverage is not None
    assert changed.coverage is not None
    np.testing.assert_array_equal(seen.coverage[:-1], changed.coverage)
    (note,) = changed.notes
    assert isinstance(note, Abstaining)
    assert seen.coverage[-1] == pytest.approx(np.median(note.coverage))
    assert Abstaining.of_plain(note.plain()) == note
    alone = encode(later, changed.tagset, annotators=(*changed.annotators[:-1], "zoe"))
    assert labels_of(seen, ENDS) == labels_of(alone.noting(note), ENDS)
    assert seen.as_given is other


def test_whoever_marks_nothing_changes_next_to_nothing() -> None:
    rules = crowds.rules(150)
    idle = {f"idle{n}": ("O",) for n in range(4)}
    beside = Corpus(
        replace(one, annotations={**one.annotations, **{name: tags * len(one.tokens) for name, tags in idle.items()}})
        for one in rules
    )
    alone, with_idle = quorate.aggregate(rules).tags, quorate.aggregate(beside).tags
    assert sum(one != other for one, other in zip(alone, with_idle, strict=True)) <= 0.03 * len(rules)


def test_what_nobody_marks_is_outside_however_silent_all_are() -> None:
    """Of two rules that never meet, silence is worth next to nothing, and yet more than no evidence at all."""
    said = {"cities": ("B-LOC", "O", "O", "O"), "names": ("O", "O", "B-PER", "O")}
    corpus = Corpus([Document(str(n), ("Rome", "saw", "Ada", "go"), said) for n in range(100)])
    assert quorate.aggregate(corpus).tags == [["B-LOC", "O", "B-PER", "O"]] * 100


def test_ends_are_no_annotator_that_is_told_of() -> None:
    result = quorate.aggregate(crowds.rules(150))
    assert ENDS not in [one.name for one in result.annotators]
    assert ENDS not in result.sources.names
    assert set(result.sources.abstaining) == set(result.corpus.annotators)
