"""Audits in a project: other commands give the consensus of the version that a plan was drawn from."""

from __future__ import annotations

import json
from pathlib import Path

from project_folder import QUICK, export, lines, project
from running import Run


def all_checked(path: Path) -> None:
    path.write_text(path.read_text().replace('"checked":false', '"checked":true'))


def test_other_commands_give_the_consensus_of_the_last_version(run: Run, tmp_path: Path) -> None:
    project(tmp_path, 'report = "report.html"\n')
    run("run")
    export(tmp_path, 2)
    run("run")
    assert run("audit", "plan", "-n", "40", "-o", "audit.jsonl", "-q")[0] == 0
    assert run("report", "--audit", "audit.jsonl", "-o", "to-check.html")[0] == 0
    assert run("report", "-o", "same.html")[0] == 0
    assert (tmp_path / "same.html").read_bytes() == (tmp_path / "report.html").read_bytes()
    all_checked(tmp_path / "audit.jsonl")
    assert run("report", "--audit", "audit.jsonl", "-o", "found.html", "-q")[::2] == (0, "")
    for wanted in (("--accept", "0.5", "--review", "unsure.jsonl"), ("--precision", "0.5")):
        code, _, err = run("aggregate", "-o", "sure.jsonl", *wanted, "--checked", "audit.jsonl")
        assert (code, "guaranteed" in err) == (0, True), err
    assert run("aggregate", "-o", "same.jsonl", "-q")[::2] == (0, "")
    assert lines(tmp_path / "same.jsonl") == lines(tmp_path / "consensus.jsonl")
    assert run("restore", "2", "-q")[0] == 0
    assert run("report", "--audit", "audit.jsonl", "-o", "found.html", "-q")[::2] == (0, "")


def test_a_run_gives_what_an_audit_of_the_version_before_guarantees(run: Run, tmp_path: Path) -> None:
    project(tmp_path, "")
    run("run")
    assert run("audit", "plan", "-n", "40", "-o", "audit.jsonl", "-q")[0] == 0
    all_checked(tmp_path / "audit.jsonl")
    project(tmp_path, 'precision = 0.5\nchecked = "audit.jsonl"\n')
    code, _, err = run("run")
    assert (code, "guaranteed" in err) == (0, True), err
    accepted = json.loads(run("run", "--json")[1])["accepted"]
    assert (accepted["precision"], accepted["guaranteed_with"]) == (0.5, 0.9)


def test_a_report_is_made_with_all_settings_of_the_project(run: Run, tmp_path: Path) -> None:
    project(tmp_path, 'report = "report.html"\ntemper = 0.5\n' + QUICK)
    run("run")
    assert run("report", "-o", "same.html", "-q")[::2] == (0, "")
    assert (tmp_path / "same.html").read_bytes() == (tmp_path / "report.html").read_bytes()


def test_where_a_fit_is_another_the_version_audited_is_named_and_nobody_is_accused(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    run("run")
    assert run("audit", "plan", "-n", "20", "-o", "audit.jsonl", "-q")[0] == 0
    all_checked(tmp_path / "audit.jsonl")
    drawn = "quorate: audit.jsonl: this plan was drawn from version 1, and"
    other = (
        f"{drawn} this fit gives another consensus (quorate audit result gives its scores; here, leave out inputs and "
        "settings that are not the project's or, if you gave none, quorate run --fresh, then draw a new plan)\n"
    )
    for how in (("--temper", "0.5"), ("--max-passes", "8")):  # with other tags, and with other confidence alone
        asked = ("--precision", "0.5", "--checked", "audit.jsonl")
        assert run("aggregate", "-o", "sure.jsonl", *how, *asked)[::2] == (2, other)
    assert run("report", "-o", "a.html", "--method", "mv", "--audit", "audit.jsonl")[::2] == (2, other)
    project(tmp_path, QUICK.replace("4", "8"))
    run("run")
    last = (
        f"{drawn} version 2 is the last (after quorate restore 1, quorate audit result gives its scores; or draw a new "
        "plan: quorate audit plan)\n"
    )
    assert run("report", "-o", "a.html", "--audit", "audit.jsonl")[::2] == (2, last)
    assert "this plan was drawn from version 1, not" in run("audit", "result", "--checked", "audit.jsonl")[2]


def test_a_plan_that_was_changed_is_still_refused_as_such(run: Run, tmp_path: Path) -> None:
    project(tmp_path)
    run("run")
    assert run("audit", "plan", "-n", "20", "-o", "audit.jsonl", "-q")[0] == 0
    records = lines(tmp_path / "audit.jsonl")
    records[3]["audit"]["probability"] /= 2
    (tmp_path / "audit.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    code, _, err = run("report", "-o", "a.html", "--audit", "audit.jsonl")
    assert (code, f"document '{records[3]['id']}' was not drawn so" in err) == (2, True)


def test_reviews_of_a_project_are_named_where_an_audit_cannot_have_them(run: Run, tmp_path: Path) -> None:
    project(tmp_path, head='inputs = ["exports/*.jsonl"]\nknown = ["reviews/*.jsonl"]')
    run("run")
    assert run("audit", "plan", "-n", "20", "-o", "audit.jsonl", "-q")[0] == 0
    all_checked(tmp_path / "audit.jsonl")
    (tmp_path / "reviews").mkdir()
    first = {name: value for name, value in lines(tmp_path / "audit.jsonl")[0].items() if name != "audit"}
    (tmp_path / "reviews" / "one.jsonl").write_text(json.dumps(first) + "\n")
    asked = ("aggregate", "-o", "sure.jsonl", "--precision", "0.5", "--checked", "audit.jsonl")
    code, _, err = run(*asked)
    assert (code, "--known none leaves out a project's reviews" in err) == (2, True)
    assert run(*asked, "--known", "none", "-q")[::2] == (0, "")
