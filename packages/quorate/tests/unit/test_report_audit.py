"""The audit in a report: what it says of one that was checked, and which documents it offers of one that was not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from by_name import bsc
from quorate import BSC, Corpus, Document, InputError
from quorate.audit import Audit, Plan
from quorate.audit.plan import TELLS_LITTLE
from quorate.cli.audit import _promise
from quorate.corpus.tags import find_spans
from quorate.evaluate import metrics
from quorate.report import content as say
from quorate.report import write_report
from quorate.report.audits import read_audit, to_check, weighted_bins
from quorate.report.content import Report, plain
from quorate.report.data import collect
from quorate.report.findings import find, next_steps


@pytest.fixture(scope="module")
def model(sample: Corpus) -> BSC:
    return bsc("bsc-seq", max_iter=8).fit(sample)


@pytest.fixture(scope="module")
def plan(model: BSC) -> Plan:
    return quorate.audit.plan(model.result_, 50, seed=3)


def truth_of(sample: Corpus, ids: list[str]) -> Mapping[str, Any]:
    return {name: sample[name].gold for name in ids}


@pytest.fixture(scope="module")
def audit(sample: Corpus, model: BSC, plan: Plan) -> Audit:
    return quorate.audit.result(model.result_, truth_of(sample, plan.ids), plan=plan)


def told(model: BSC, audit: Audit | Plan, documents: int | None = 10) -> Report:
    return collect(model, model.result_, title="", documents=documents, audit=audit)


def test_weights_are_as_many_answers() -> None:
    """Against the unweighted bins of as many answers of the same kind as each weight says."""
    rng = np.random.default_rng(0)
    sure, weight = rng.random(200), rng.integers(1, 9, 200)
    right = rng.random(200) < sure**2
    expected = metrics.reliability(np.repeat(sure, weight), np.repeat(right, weight), bins=7)
    found = weighted_bins(sure, right, weight, bins=7)
    assert found.count == 200
    assert sum(row[2] for row in found.bins) == 200
    np.testing.assert_allclose(found.error, expected.error, rtol=1e-12)
    rows = [(one.low, one.high, one.confidence, one.right) for one in expected.bins]
    np.testing.assert_allclose([(*row[:2], *row[3:]) for row in found.bins], rows, rtol=1e-12)
    assert found.mean is not None
    np.testing.assert_allclose(
        found.mean, (np.average(sure, weights=weight), np.average(right, weights=weight)), rtol=1e-12
    )


def test_a_checked_audit_is_told(sample: Corpus, model: BSC, audit: Audit) -> None:
    report = told(model, audit)
    found = report.audit
    assert found is not None
    assert report.to_check is None
    assert not report.documents.of_audit
    assert (found.checked, found.documents, found.seed) == (50, 320, 3)
    assert any(f"About {audit.more_to_halve} more documents" in line for line in found.notes)
    every = found.scores[0]
    assert every.precision == tuple(audit.precision)
    assert every.f1 == tuple(audit.f1)
    assert every.seen == sum(len(find_spans(sample[name].gold or ())) for name in audit.plan.ids)
    scored = {kind for kind, scores in audit.by_type.items() if scores.seen >= 10}
    assert {row.name for row in found.scores[1:]} == scored
    few = sorted(set(audit.by_type) - scored)
    assert any("Too few were seen of" in line and all(name in line for name in few) for line in found.notes) == bool(
        few
    )
    assert f"({100 * audit.f1.low:.1f} to {100 * audit.f1.high:.1f}), guaranteed" in report.findings[0].text
    json.dumps(plain(report), allow_nan=False)


def test_reliability_of_all_documents_is_that_against_gold(sample: Corpus, model: BSC) -> None:
    """If every document is drawn, each counts once, and what was checked is gold."""
    whole = quorate.audit.plan(model.result_, 320)
    checked = quorate.audit.result(model.result_, truth_of(sample, whole.ids), plan=whole)
    report = told(model, checked)
    assert report.audit is not None
    assert report.gold is not None
    before = {one.name: one.before for one in report.audit.reliability}
    for name, gold in (("Spans", report.gold.calibration.spans), ("Tokens", report.gold.calibration.tokens)):
        assert gold is not None
        np.testing.assert_allclose(before[name].bins, gold.bins, rtol=1e-5, atol=1e-6)  # files have fewer digits
        np.testing.assert_allclose(before[name].error, gold.error, rtol=1e-4)
    assert before["Whole documents"].mean is not None
    np.testing.assert_allclose(before["Whole documents"].mean[1], report.gold.right / 320, rtol=1e-12)


def test_a_document_counts_for_those_it_stands_for(sample: Corpus, model: BSC, plan: Plan, audit: Audit) -> None:
    """The share of documents that are right, by the probabilities that stand in the plan's own file."""
    drawn = {line["id"]: line["audit"]["probability"] for line in plan.lines()}
    assert max(drawn.values()) > 2 * min(drawn.values())
    right = [tuple(model.result_[name].tags) == sample[name].gold for name in drawn]
    found = told(model, audit, 0).audit
    assert found is not None
    for one in (found.reliability[0].before, found.reliability[0].after):
        assert one.mean is not None
        np.testing.assert_allclose(one.mean[1], np.average(right, weights=1 / np.array([*drawn.values()])), rtol=1e-9)


def test_a_plan_brings_its_documents(model: BSC, plan: Plan) -> None:
    report = told(model, plan)
    assert report.audit is None
    assert report.to_check is not None
    assert report.to_check.ids == plan.ids
    assert report.to_check.half_width == plan.expected_half_width
    assert report.to_check.without_mistakes == plan.f1_without_mistakes[1:]
    assert len(report.documents.list) == 10
    listed = [row.id for row in report.documents.list]
    beyond = [row.id for row in report.documents.of_audit]
    assert beyond == [name for name in plan.ids if name not in listed]
    assert len(beyond) > 30
    assert all(row.labels for row in report.documents.of_audit)
    assert told(model, plan, None).documents.of_audit == []
    assert "Check the 50 documents of the audit" in report.next[0]


@pytest.mark.parametrize("sequential", [False, True])
def test_a_plan_promises_in_the_report_what_the_command_line_says(model: BSC, sequential: bool) -> None:
    enough = quorate.audit.plan(model.result_, 40, sequential=sequential)
    left = told(model, enough, 0).to_check
    assert left is not None
    assert (left.half_width, left.without_mistakes) == (enough.expected_half_width, enough.f1_without_mistakes[1:])
    assert not left.tells_little
    assert any("to about ±" in line for line in _promise(enough))


def test_a_plan_of_too_few_documents_gives_no_number_in_the_report() -> None:
    marked, nothing = ("B-PER", "O"), ("O", "O")
    documents = [
        Document(str(n), ("Ada", "sang"), {"ann": nothing if n % 2 else marked, "ben": nothing}) for n in range(200)
    ]
    few = quorate.audit.plan(quorate.aggregate(Corpus(documents), "mv"), 10, sequential=True)
    assert few.expected_f1.width > TELLS_LITTLE
    left = to_check(few)
    assert left is not None
    assert left.tells_little
    assert _promise(few) == ["so few documents say almost nothing about F1 (draw more: -n)"]


def test_of_a_sequential_audit_the_rest_is_to_be_checked(sample: Corpus, model: BSC) -> None:
    first = quorate.audit.plan(model.result_, 20, sequential=True)
    more = quorate.audit.extended(first, 10)
    part = quorate.audit.result(model.result_, truth_of(sample, first.ids), plan=more)
    report = told(model, part, 0)
    assert report.audit is not None
    assert (report.audit.checked, report.audit.planned) == (20, 30)
    assert report.to_check is not None
    assert report.to_check.ids == more.ids[20:]
    assert [row.id for row in report.documents.of_audit] == more.ids[20:]


def test_what_a_page_exports_is_what_an_audit_reads(sample: Corpus, model: BSC, plan: Plan, tmp_path: Path) -> None:
    """A line a document that was marked, with the tags that it has in the page or was given: {id, tokens, tags}."""
    data = plain(told(model, plan))
    rows = {row["id"]: row for row in [*data["documents"]["list"], *data["documents"]["of_audit"]]}
    lines = []
    for n, name in enumerate(data["to_check"]["ids"]):
        right_as_it_is = n % 2
        shown = [data["tags"][code] for code in rows[name]["tags"]]
        tags = shown if right_as_it_is else list(sample[name].gold or ())
        lines.append({"id": name, "tokens": rows[name]["tokens"], "tags": tags})
    (tmp_path / "corrections.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    plan.write(tmp_path / "audit.jsonl")
    found = quorate.audit.result(model.result_, tmp_path / "corrections.jsonl", plan=tmp_path / "audit.jsonl")
    assert found.n == 50
    assert {name: list(tags) for name, tags in found.truth.items()} == {line["id"]: line["tags"] for line in lines}
    both = [tmp_path / "audit.jsonl", tmp_path / "corrections.jsonl"]
    again = read_audit(model.result_, both)
    assert isinstance(again, Audit)
    assert again.f1 == found.f1
    assert isinstance(read_audit(model.result_, both[:1]), Plan)


def test_an_audit_of_another_consensus_is_refused(sample: Corpus, model: BSC, plan: Plan, tmp_path: Path) -> None:
    votes = quorate.aggregate(sample, "mv")
    with pytest.raises(InputError, match="this audit is of another consensus"):
        write_report(model, tmp_path / "r.html", audit=quorate.audit.plan(votes, 20))
    assert not (tmp_path / "r.html").exists()
    plan.write(tmp_path / "audit.jsonl")
    with pytest.raises(InputError, match="drawn from another consensus"):
        read_audit(votes, [tmp_path / "audit.jsonl"])


def test_documents_in_another_order_are_the_same(sample: Corpus, model: BSC) -> None:
    turned = quorate.audit.plan(model.result_.only(range(319, -1, -1)), 20)
    report = told(model, turned, 0)
    assert [row.id for row in report.documents.of_audit] == turned.ids
    assert all(tuple(row.tokens) == sample[row.id].tokens for row in report.documents.of_audit)


def test_plain_labels_are_audited() -> None:
    rng = np.random.default_rng(1)
    documents = []
    for n in range(30):
        gold = tuple(rng.choice(["A", "B"], 5).tolist())
        said = {name: tuple("A" if rng.random() < 0.2 else tag for tag in gold) for name in "xyz"}
        documents.append(Document(str(n), tuple("abcde"), said, gold))
    model = bsc("bsc-cm", truth="independent", text=False).fit(Corpus(documents))
    drawn = quorate.audit.plan(model.result_, 15)
    audit = quorate.audit.result(model.result_, truth_of(model.result_.corpus, drawn.ids), plan=drawn)
    found = told(model, audit).audit
    assert found is not None
    assert found.scores[0].seen == 75
    assert [one.name for one in found.reliability] == ["Whole documents", "Tokens"]


def test_a_poor_consensus_is_not_to_be_used() -> None:
    scores = [say.AuditScores("", None, None, (0.4, 0.3, 0.5), 40)]
    off, on = (say.Bins(error, 10, [(0, 1, 10, 0.5, 0.5)]) for error in (0.2, 0.1))
    told = say.Audit(20, 100, 20, scores=scores, headline="F1: 40.0", reliability=[say.Recalibrated("Spans", off, on)])
    report = Report(audit=told)
    assert find(report)[0].text == "F1: 40.0 (20 documents checked)."
    steps = next_steps(report)
    assert "by the audit its F1 is 40.0" in steps[0]
    assert "--recalibrated" in steps[1]
    untold = Report(audit=say.Audit(20, 100, 20, scores=[say.AuditScores("", None, None, None, 0)]))
    assert not any(finding.about == "audit" for finding in find(untold))
