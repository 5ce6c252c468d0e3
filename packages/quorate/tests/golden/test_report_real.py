"""The report on real sets: quick to make, small, with what the paper's data is known for, and fair to rules."""

from __future__ import annotations

from pathlib import Path

import pytest

import quorate
from by_name import bsc
from quorate import BSC, Corpus
from quorate.corpus.profiles import Profile
from quorate.report import write_report
from quorate.report.content import plain
from quorate.report.data import collect
from quorate.report.people import people, right_where_they_mark
from quorate.result.habits import SpanHabits

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def model(ner: Corpus) -> BSC:
    return bsc("bsc-seq").fit(ner)


def test_it_has_at_most_eight_megabytes(model: BSC, tmp_path: Path) -> None:
    write_report(model, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size <= 8e6


def test_with_all_documents_it_still_has_at_most_eight_megabytes(model: BSC, tmp_path: Path) -> None:
    write_report(model, tmp_path / "all.html", documents=None)
    assert (tmp_path / "all.html").stat().st_size <= 8e6


def test_scores_and_errors_are_those_of_the_split(model: BSC) -> None:
    found = plain(collect(model, model.result_, title="", documents=0, groups=5, split="test"))
    assert found["gold"]["documents"] == 3256
    scored = [one for one in model.result_ if one.document.split == "test" and one.document.gold is not None]
    f1 = quorate.score.strict([one.tags for one in scored], [one.document.gold for one in scored]).f1
    assert found["gold"]["method"]["strict"][2] == pytest.approx(f1, abs=1e-5)
    assert f1 > 0.7
    assert len(found["matrices"]["groups"]) == 5
    assert sum(len(group["members"]) for group in found["matrices"]["groups"]) == 47


def test_no_real_rule_that_is_right_where_it_marks_is_noise(laptop_rules: Corpus) -> None:
    few = laptop_rules.documents[:1500]
    names = laptop_rules.annotators
    declared = Corpus(few, profiles={name: Profile.of(kind="rule") for name in names})
    for corpus, method in ((Corpus(few), "auto"), (Corpus(few), "bsc-cm"), (declared, "bsc-cm")):
        found = {person.name: person for person in people(quorate.aggregate(corpus, method))}
        crowd = SpanHabits(*(sum(column) for column in zip(*(one.habits for one in found.values()), strict=True)))
        noise = [person.name for person in found.values() if person.kind == "noise"]
        assert not [name for name in noise if right_where_they_mark(found[name].habits, crowd)]
        assert not noise or corpus is not declared
        if method == "auto":
            assert noise == []
            assert found["link-ExtractedPhrase"].kind in ("right where they mark", "mostly right")
