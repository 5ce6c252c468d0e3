"""Simulated annotators do what their probabilities say."""

from __future__ import annotations

import numpy as np
import pytest

from quorate import Corpus, Document
from quorate.corpus.profiles import Profile
from quorate.corpus.records import hard_tags
from quorate.corpus.simulate import Behaviour, crowd, with_copies
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet, find_spans
from quorate.errors import InputError

GOLD = "B-PER I-PER I-PER O O B-LOC I-LOC O B-PER O O B-LOC I-LOC I-LOC O O"
LONG = ("O",) * 200 + ("B-X", *("I-X",) * 199) + ("O",) * 200


def marked(gold: tuple[str, ...], behaviour: Behaviour, times: int = 1, seed: int = 0) -> list[list[Span]]:
    """The spans that someone marks in each of some copies of a document."""
    documents = Corpus(Document(str(n), ("w",) * len(gold), gold=gold) for n in range(times))
    return [
        find_spans(hard_tags(document.annotations["ann"]))
        for document in crowd(documents, {"ann": behaviour}, seed=seed)
    ]


def test_a_crowd_of_old_is_drawn_as_ever() -> None:
    """What was measured on a crowd stands only as long as a seed gives the same crowd."""
    people = Behaviour(
        miss=0.3, confuse=0.3, start_late=0.3, start_early=0.3, end_early=0.3, end_late=0.3, split=0.5, invent=0.1,
        spam=0.2,
    )  # fmt: skip
    documents = Corpus(Document(str(n), ("w",) * 16, gold=tuple(GOLD.split())) for n in range(4))
    assert [" ".join(map(str, one.annotations["a"])) for one in crowd(documents, {"a": people}, seed=1)] == [
        "O O O O O B-LOC B-LOC B-PER B-PER O O B-LOC I-LOC I-LOC O O",
        "B-LOC B-LOC I-LOC O O O B-LOC O B-PER O B-PER O B-LOC I-LOC I-LOC B-LOC",
        "O O O B-LOC B-LOC I-LOC I-LOC B-PER I-PER O B-PER B-LOC O O B-PER O",
        "O O O O O O B-LOC O O B-PER O O O O O O",
    ]


@pytest.mark.parametrize("reach", [1.0, 2.5])
def test_vague_boundaries_move_either_way_by_so_many_tokens_on_average(reach: float) -> None:
    spans = [one for (one,) in marked(LONG, Behaviour(vague=0.4, reach=reach), times=3000)]
    for moved in (np.array([span.start - 200 for span in spans]), np.array([span.end - 400 for span in spans])):
        assert np.mean(moved != 0) == pytest.approx(0.4, abs=0.03)
        assert np.mean(np.abs(moved[moved != 0])) == pytest.approx(reach, rel=0.06)
        assert np.mean(moved[moved != 0] > 0) == pytest.approx(0.5, abs=0.05)
        assert (np.abs(moved).max() == 1) == (reach == 1.0)


def test_a_vague_span_keeps_a_token_and_stays_in_its_document() -> None:
    for spans in marked(("O", "B-X", "O"), Behaviour(vague=1.0, reach=4.0), times=300):
        assert len(spans) == 1
        assert 0 <= spans[0].start < spans[0].end <= 3


def test_who_joins_makes_one_of_two_spans_of_a_type_that_are_near() -> None:
    near = ("B-X", "I-X", "O", "B-X", "B-Y", "B-X")
    assert marked(near, Behaviour(join=1.0)) == [[Span(0, 4, "X"), Span(4, 5, "Y"), Span(5, 6, "X")]]
    far = ("B-X", *("O",) * 13, "B-X")
    assert marked(far, Behaviour(join=1.0)) == [[Span(0, 1, "X"), Span(14, 15, "X")]]
    assert marked(("B-X",) * 3, Behaviour(join=1.0)) == [[Span(0, 2, "X"), Span(2, 3, "X")]]
    often = marked(("B-X", "O", "B-X"), Behaviour(join=0.3), times=2000)
    assert np.mean([len(spans) == 1 for spans in often]) == pytest.approx(0.3, abs=0.04)


def copied(corpus: Corpus, **how: float) -> Corpus:
    """Two noisy copies of ``ann``."""
    return with_copies(corpus, "ann", 2, jitter=how.get("jitter", 0.1), seed=int(how.get("seed", 0)))


def rows(how_many: int, *tags: str | None) -> Corpus:
    """Documents in which ``ann`` says these tags, and ``bob`` nothing."""
    said = {"ann": tags, "bob": ("O",) * len(tags)}
    return Corpus([Document(str(n), ("w",) * len(tags), said) for n in range(how_many)])


def test_a_copy_without_jitter_is_exact_and_stands_where_its_original_does() -> None:
    soft = Document("soft", ("x", "y"), {"ann": ({"B-PER": 0.4, "O": 0.6}, None)})
    corpus = Corpus([soft, Document("other", ("x",), {"bob": ("B-LOC",)})], profiles={"ann": Profile.of(kind="rule")})
    made = copied(corpus, jitter=0.0)
    assert made[0].annotations["ann+1"] == made[0].annotations["ann+2"] == soft.annotations["ann"]
    assert sorted(made[1].annotations) == ["bob"]
    assert made.profiles == dict.fromkeys(["ann", "ann+1", "ann+2"], Profile.of(kind="rule"))
    assert list(corpus.profiles) == ["ann"]


def test_copies_spoil_a_share_of_spans_each_in_its_own_way() -> None:
    corpus = rows(3000, "O", "O", "B-PER", "I-PER", "O", "O", "B-LOC")
    made = copied(corpus)
    true = Span(2, 4, "PER")
    kinds = {"missed": 0, "typed": 0, "moved": 0}
    for name in ("ann+1", "ann+2"):
        for document in made:
            spans = [span for span in find_spans(hard_tags(document.annotations[name])) if span.start < 5]
            if true not in spans:
                kinds["missed" if not spans else "typed" if spans[0].label == "LOC" else "moved"] += 1
                assert not spans or abs(spans[0].start - 2) + abs(spans[0].end - 4) == (spans[0].label == "PER")
    assert sum(kinds.values()) / 6000 == pytest.approx(0.1, abs=0.015)
    assert all(count / sum(kinds.values()) == pytest.approx(1 / 3, abs=0.08) for count in kinds.values())
    assert any(one.annotations["ann+1"] != one.annotations["ann+2"] for one in made)
    assert all(one.annotations[name] == other.annotations[name]
               for one, other in zip(made, corpus, strict=True) for name in ("ann", "bob"))  # fmt: skip


def test_a_seed_gives_the_same_copies_and_another_gives_others() -> None:
    corpus = rows(300, "B-PER", "I-PER", "O", "B-LOC")
    said = [[dict(one.annotations) for one in copied(corpus, seed=seed)] for seed in (1, 1, 2)]
    assert said[0] == said[1] != said[2]


def test_a_bound_moves_neither_into_another_span_nor_to_where_nobody_looked() -> None:
    corpus = rows(400, None, "B-PER", "B-LOC", "O", "B-LOC", None)
    tagset = corpus.tagset()
    for document in copied(corpus, jitter=1.0):
        for name in ("ann+1", "ann+2"):
            tags = hard_tags(document.annotations[name])
            assert [place for place, tag in enumerate(tags) if tag is None] == [0, 5]
            assert tagset.is_valid([tag for tag in tags if tag is not None])
            assert len(find_spans(tags)) <= 3


@pytest.mark.parametrize("scheme", [Scheme.IO, Scheme.BIOES])
def test_copies_are_written_in_the_scheme_of_the_corpus(scheme: Scheme) -> None:
    tagset = TagSet.of_types(scheme, ["LOC", "PER"])
    corpus = rows(200, *tagset.tags([Span(1, 4, "PER"), Span(5, 6, "LOC")], 7))
    for document in copied(corpus, jitter=0.7):
        assert tagset.is_valid([str(tag) for tag in document.annotations["ann+1"]])


def test_in_the_plain_scheme_labels_are_changed() -> None:
    corpus = rows(1000, "yes", "no", None)
    made = copied(corpus, jitter=0.2)
    same = [one.annotations["ann+1"][:2] for one in made]
    assert np.mean([tags[0] != "yes" for tags in same]) == pytest.approx(0.2, abs=0.05)
    assert all(one.annotations["ann+1"][2] is None for one in made)


def test_what_cannot_be_copied_is_said() -> None:
    corpus = rows(1, "B-PER")
    with pytest.raises(InputError, match="'eve' labelled nothing"):
        with_copies(corpus, "eve")
    with pytest.raises(InputError, match=r"from 0 to 1, not 1\.5"):
        with_copies(corpus, "ann", jitter=1.5)
    with pytest.raises(InputError, match=r"an annotator 'ann\+1' already"):
        with_copies(with_copies(corpus, "ann", 1), "ann")
