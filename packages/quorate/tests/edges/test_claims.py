"""Without gold and without an audit nothing says how good the consensus is: no command, no column, no key, no page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.main

import quorate
from claims import claims_of_html, claims_of_record, claims_of_text
from quorate import Corpus
from quorate.cli import app
from quorate.formats.jsonl import write_corpus
from quorate.report import write_report
from quorate.storage.files.atomic import written_whole
from running import Run
from simulated_crowds import every_kind

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def commands(group: object, name: str = "") -> Iterator[str]:
    """The names of all commands."""
    for own, command in group.commands.items():  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            yield from commands(command, f"{name}{own} ")
        else:
            yield f"{name}{own}"


CALLS: dict[str, list[tuple[str, ...]]] = {
    "check": [("crowd.jsonl",)],
    "agreement": [("crowd.jsonl", "--pairs", "5")],
    "ambiguous": [("crowd.jsonl",)],
    "aggregate": [
        ("crowd.jsonl", "-o", "out.jsonl"),
        ("crowd.jsonl", "-o", "out.jsonl", "--verbose", "--shares"),
        ("crowd.jsonl", "-o", "out.conll", "--method", "mv"),
        ("crowd.jsonl", "-o", "out.jsonl", "--accept", "0.95", "--review", "rest.jsonl"),
        ("crowd.jsonl", "-o", "out.jsonl", "--accept", "0.5", "--review", "rest.jsonl"),
        ("crowd.jsonl", "-o", "out.jsonl", "--accept", "0.999", "--review", "rest.jsonl"),
        ("crowd.jsonl", "-o", "out.jsonl", "--precision", "0.9"),
        ("crowd.jsonl", "-o", "out.jsonl", "--recall", "0.9"),
    ],
    "predict": [("m.quorate", "crowd.jsonl", "-o", "out.jsonl")],
    "update": [("m.quorate", "crowd.jsonl", "-o", "out.jsonl", "--passes", "1")],
    "annotators": [("m.quorate",)],
    "audit plan": [("c.jsonl", "-n", "20", "-o", "plan.jsonl")],
    "next": [("crowd.jsonl", "--model", "m.quorate", "-n", "3"), ("crowd.jsonl", "--model", "m.quorate", "-n", "500")],
    "report": [("crowd.jsonl", "-o", "out.html")],
    "run": [("--fresh",)],
    "status": [()],
    "versions": [()],
    "diff": [()],
    "restore": [("1",)],
    "init": [("crowd.jsonl", "--force")],
    "convert": [("crowd.jsonl", "other.conll")],
    "encode": [("crowd.jsonl", "-o", "out.qr")],
    "methods": [()],
    "plot annotators": [("m.quorate", "-o", "plot.svg")],
    "plot trace": [("m.quorate", "-o", "plot.svg")],
}
WITHOUT_JSON = ("report", "init", "convert", "encode", "plot annotators", "plot trace")
NOT_OF_SUCH_A_CONSENSUS = {
    "audit result": "is the check",
    "reviews": "is of people's decisions",
    "evaluate": "needs gold",
    "compare": "needs gold",
    "tune": "needs gold",
    "simulate-active": "needs gold",
    "demo": "is of a crowd with gold",
    "formats": "is of no consensus",
    "datasets list": "is of no consensus",
    "datasets convert": "is of no consensus",
    "label-studio sync": "is of a server: its tests ask",
    "serve": "answers in the browser: tests/service/test_claims_of_pages.py",
    "service backup": "is of no consensus",
    "service restore": "is of no consensus",
    "service invite": "is of no consensus",
    "service rebuild": "is of no consensus",
}


def written(corpus: Corpus, name: str) -> None:
    with written_whole(name) as stream:
        write_corpus(Corpus([replace(one, gold=None) for one in corpus], profiles=corpus.profiles), stream)


@pytest.fixture(params=["people", "all kinds"])
def project(run: Run, tmp_path: Path, sample: Corpus, request: pytest.FixtureRequest) -> Path:
    """A crowd without gold, of people or of models and rules too: its consensus and model, and two versions."""
    written(Corpus(sample.documents[:60]) if request.param == "people" else every_kind(60), "crowd.jsonl")
    assert run("aggregate", "crowd.jsonl", "-o", "c.jsonl", "--save", "m.quorate", "-q")[0] == 0
    for settings in ("", "shares = true\n"):
        Path("quorate.toml").write_text(f'inputs = ["crowd.jsonl"]\n\n[aggregate]\n{settings}')
        assert run("run", "-q")[0] == 0
    return tmp_path


def test_every_command_is_asked_or_excused() -> None:
    assert set(CALLS) | set(NOT_OF_SUCH_A_CONSENSUS) == set(commands(typer.main.get_command(app)))
    assert not set(CALLS) & set(NOT_OF_SUCH_A_CONSENSUS)


@pytest.mark.parametrize("name", CALLS)
def test_no_command_says_how_good_it_is(run: Run, project: Path, name: str) -> None:
    for arguments in CALLS[name]:
        where = "--project" if name in ("run", "status", "versions", "diff", "restore") else "--no-project"
        code, out, err = run(where, *name.split(), *arguments)
        assert code in (0, 1), err
        assert name in WITHOUT_JSON or out + err
        assert claims_of_text(out + err) == []
        if name in WITHOUT_JSON:
            continue
        code, out, err = run(where, *name.split(), *arguments, "--json")
        assert code in (0, 1), err
        records = [json.loads(line) for line in out.splitlines()]
        assert records
        assert claims_of_record(records) == []


def test_no_page_of_the_report_says_so(browser: Browser, tmp_path: Path, sample: Corpus) -> None:
    for corpus in (Corpus(sample.documents[:60]), every_kind(60)):
        bare = Corpus([replace(one, gold=None) for one in corpus], profiles=corpus.profiles)
        result = quorate.aggregate(bare)
        write_report(result.model, tmp_path / "report.html", documents=5)
        page = browser.new_page()
        page.goto((tmp_path / "report.html").as_uri())
        page.wait_for_selector("#fit h2")
        for button in page.locator("#annotators button.who, #doc-list button.who").all():
            button.click()
        shown = page.content()
        assert len(re.findall('class="detail"', shown)) == len(bare.annotators)
        assert claims_of_html(shown) == []
        page.close()


def test_a_claim_would_be_found(monkeypatch: pytest.MonkeyPatch, run: Run, project: Path) -> None:
    """The same, where somebody adds a claim to the sentence that everything shares."""
    from quorate.evaluate import describe

    said: Callable[..., str] = describe.how_good
    monkeypatch.setattr(
        describe, "how_good", lambda *given, **named: f"{said(*given, **named)} (F1 should be 91 to 95)"
    )
    _, out, err = run("aggregate", "crowd.jsonl", "-o", "out.jsonl", "--method", "mv")
    assert claims_of_text(out + err) != []
