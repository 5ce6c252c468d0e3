"""What annotators do with spans, counted by arrays and by plain loops."""

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta

import quorate
from by_name import bsc, loaded
from quorate.corpus.records import Corpus, Document, hard_tags
from quorate.corpus.spans import Span
from quorate.corpus.tags import Invalid, TagSet
from quorate.crowd.encode import encode
from quorate.estimators.methods import estimator
from quorate.result.habits import BOUNDS, KINDS, SpanHabits
from quorate.storage import model_files


def crowd(seed: int, *, scheme: str = "BIO", documents: int = 12) -> Corpus:
    """Annotators who mark at random, and leave tokens unlabelled; some see few documents."""
    rng = np.random.default_rng(seed)
    tags = {"BIO": ["O", "O", "B-X", "I-X", "B-Y", "I-Y"], "IO": ["O", "O", "I-X", "I-Y"]}[scheme]
    made = []
    for d in range(documents):
        length = int(rng.integers(0, 9))
        truth = rng.choice(tags, length).tolist()
        given = {}
        for name in "abcd":
            if rng.random() < 0.8:
                noisy = [tag if rng.random() < 0.7 else str(rng.choice(tags)) for tag in truth]
                given[name] = tuple(None if rng.random() < 0.05 else tag for tag in noisy)
        if rng.random() < 0.8:
            given["rule"] = tuple(tag if tag.endswith("X") and rng.random() < 0.8 else None for tag in truth)
        made.append(Document(str(d), tuple("abcdefghij"[:length]), given))
    return Corpus(made)


def by_loops(result: quorate.Result, tagset: TagSet, invalid: Invalid) -> dict[tuple[str, str], dict[str, float]]:
    """The habits of everybody by type, span by span."""
    counts: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    few = leave_most_out(result.corpus)
    for one in result:
        for name in few:
            for span in one.spans:
                counts[name, span.label]["there"] += span.sure
        for name, given in one.document.annotations.items():
            tags = repaired(one.document, name, tagset, invalid)
            own = tagset.spans(tags)
            for span in one.spans:
                mine = counts[name, span.label]
                mine["there"] += span.sure * (name not in few and any(tag is not None for tag in given))
                if any(given[t] is None for t in range(span.start, span.end)):
                    continue
                over = [mark for mark in own if mark.start < span.end and span.start < mark.end]
                alike = [mark for mark in over if mark.label == span.label]
                mine[kind(span, over, alike)] += span.sure
                if len(alike) == 1:
                    mine["early_start"] += span.sure * (alike[0].start < span.start)
                    mine["late_start"] += span.sure * (alike[0].start > span.start)
                    mine["early_end"] += span.sure * (alike[0].end < span.end)
                    mine["late_end"] += span.sure * (alike[0].end > span.end)
            for mark in own:
                mine = counts[name, mark.label]
                mine["marks"] += 1
                mine["invented"] += not any(mark.start < span.end and span.start < mark.end for span in one.spans)
    return counts


def leave_most_out(corpus: Corpus) -> set[str]:
    """Those who label less than half of the tokens of documents of which they label something."""
    labels: dict[str, int] = defaultdict(int)
    tokens: dict[str, int] = defaultdict(int)
    for document in corpus:
        for name, given in document.annotations.items():
            n = sum(tag is not None for tag in given)
            labels[name] += n
            tokens[name] += len(given) if n else 0
    return {name for name, n in labels.items() if 0 < n < 0.5 * tokens[name]}


def repaired(document: Document, name: str, tagset: TagSet, invalid: Invalid) -> list[str | None]:
    """The tags of one annotator as the model reads them."""
    alone = Corpus([Document("0", document.tokens, {name: document.annotations[name]})])
    encoded = encode(alone, tagset, invalid=invalid)
    tags: list[str | None] = [None] * len(document.tokens)
    for t in range(len(tags)):
        for event in range(encoded.event_start[t], encoded.event_start[t + 1]):
            tags[t] = tagset.labels[encoded.cells.label[encoded.event_cell[event]]]
    return tags


def kind(span: Span, over: list[Span], alike: list[Span]) -> str:
    if not over:
        return "missed"
    if not alike:
        return "wrong_type"
    if span.bare in alike:
        return "exact"
    return "split" if len(alike) > 1 else "shifted"


@pytest.mark.parametrize("method", ["mv", "bsc-cm", "auto"])
@pytest.mark.parametrize("scheme", ["BIO", "IO"])
@pytest.mark.parametrize("seed", range(4))
def test_habits_are_those_that_plain_loops_count(seed: int, scheme: str, method: str) -> None:
    result = estimator(method).fit(crowd(seed, scheme=scheme)).result_
    wanted = by_loops(result, result.tagset, Invalid.REPAIR)
    assert leave_most_out(result.corpus) == {"rule"}
    for row in result.annotators:
        for name in SpanHabits._fields:
            by_type = [wanted[row.name, kind][name] for kind in result.tagset.types]
            told = [getattr(row.by_type[kind], name) for kind in result.tagset.types]
            assert told == pytest.approx(by_type, abs=1e-9), (row.name, name)
            assert getattr(row.habits, name) == pytest.approx(sum(by_type), abs=1e-9), (row.name, name)


@pytest.mark.parametrize("seed", range(4))
def test_precision_and_coverage_are_shares_of_own_marks_and_of_all_that_is_there(seed: int) -> None:
    """Counted with the consensus written out, and each of its spans as often as it is probable."""
    result = quorate.aggregate(crowd(seed, documents=60), "bsc-cm")
    few = leave_most_out(result.corpus)
    for row in result.annotators:
        right = marks = covered = there = 0.0
        for one in result:
            given = one.document.annotations.get(row.name)
            asked = row.name in few or (given is not None and any(tag is not None for tag in given))
            tags = repaired(one.document, row.name, result.tagset, Invalid.REPAIR) if given is not None else []
            own = result.tagset.spans(tags)
            marks += len(own)
            for span in one.spans:
                there += span.sure * asked
                right += span.sure * (span.bare in own)
                seen = given is not None and None not in given[span.start : span.end]
                alike = [m for m in own if m.label == span.label and m.start < span.end and span.start < m.end]
                covered += span.sure * (seen and bool(alike))
        assert row.precision == pytest.approx(right / marks, abs=1e-9)
        assert row.coverage == pytest.approx(covered / there, abs=1e-9)
        low, high = row.habits.interval("precision")
        assert (low, high) == pytest.approx(beta.ppf([0.025, 0.975], right + 0.5, marks - right + 0.5))
        low, high = row.habits.interval("coverage")
        assert (low, high) == pytest.approx(beta.ppf([0.025, 0.975], covered + 0.5, there - covered + 0.5))


@pytest.mark.parametrize("seed", range(10))
def test_every_span_of_the_consensus_comes_out_in_one_way(seed: int) -> None:
    for row in quorate.aggregate(crowd(seed), "bsc-cm").annotators:
        habits = row.habits
        if not habits.spans:
            assert math.isnan(row.found)
            continue
        assert sum(habits.share(name) for name in KINDS) == pytest.approx(1.0)
        assert row.found + row.missed == pytest.approx(1.0)
        assert sum(getattr(habits, name) for name in BOUNDS) >= habits.shifted - 1e-9
        assert all(getattr(habits, name) <= habits.shifted + 1e-9 for name in BOUNDS)
        assert habits.invented <= habits.marks


def test_habits_are_the_same_however_many_labels_are_looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = quorate.aggregate(crowd(1), "bsc-cm").annotators.table
    for pieces in (2, 7, 1000):
        monkeypatch.setattr("quorate.crowd.marked._n_pieces", lambda *_, pieces=pieces: pieces)
        np.testing.assert_allclose(quorate.aggregate(crowd(1), "bsc-cm").annotators.table, at_once, rtol=1e-12)


def test_intervals_are_those_of_a_beta_distribution() -> None:
    habits = SpanHabits(exact=7.5, missed=4.5, marks=9, invented=0)
    low, high = habits.interval("exact")
    assert (low, high) == pytest.approx(beta.ppf([0.025, 0.975], 8.0, 5.0))
    assert habits.interval("invented")[0] == 0.0
    assert SpanHabits().interval("exact") == (0.0, 1.0)


def test_there_are_no_habits_of_spans_where_tags_are_plain() -> None:
    documents = [Document(str(d), ("a", "b"), {"ann": ("N", "V"), "bob": ("N", "N")}) for d in range(3)]
    row = quorate.aggregate(Corpus(documents), "bsc-cm", scheme="plain").annotators["ann"]
    assert row.habits == SpanHabits()
    assert row.by_type == {}
    assert math.isnan(row.exact)


def test_habits_are_kept_in_a_file_and_added_to_by_an_update(tmp_path: Path) -> None:
    documents = quorate.sample().documents
    model = bsc("bsc-cm", max_iter=3).fit(Corpus(documents[:200]))
    model.save(tmp_path / "model")
    again = loaded(tmp_path / "model")
    assert [row.habits for row in again.annotators_] == [row.habits for row in model.annotators_]
    assert [row.by_type for row in again.annotators_] == [row.by_type for row in model.annotators_]
    again.update(Corpus(documents[200:]))
    for row in again.annotators_:
        assert row.habits.marks == sum(
            len(again.tagset_.spans(hard_tags(document.annotations[row.name])))
            for document in documents
            if row.name in document.annotations
        )
        assert sum(one.marks for one in row.by_type.values()) == row.habits.marks


def test_a_file_without_some_habits_is_refused(tmp_path: Path) -> None:
    bsc("bsc-cm", max_iter=3).fit(quorate.sample()).save(tmp_path / "model")
    stored = model_files.load(tmp_path / "model")
    stored.arrays["summary"] = stored.arrays["summary"][:14]
    model_files.save(stored, tmp_path / "model")
    with pytest.raises(quorate.ModelFileError, match="summary"):
        loaded(tmp_path / "model")
