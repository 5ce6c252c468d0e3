"""The report on the real NER crowd: quick to make, small, and with what the paper's data is known for."""

from __future__ import annotations

from pathlib import Path

import pytest

from by_name import bsc
from quorate import BSC, Corpus
from quorate.report import write_report
from quorate.report.content import plain
from quorate.report.data import collect

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
    assert found["gold"]["method"]["strict"][2] == pytest.approx(0.774, abs=0.002)
    assert len(found["matrices"]["groups"]) == 5
    assert sum(len(group["members"]) for group in found["matrices"]["groups"]) == 47
