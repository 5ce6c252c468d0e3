"""What people expect of Python: results know their model, things show themselves, a bar on request."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import quorate
from by_name import from_file
from quorate import BSC, CRFMA, Corpus, Document, MajorityVote
from quorate.estimators import progress
from quorate.model.loop import Progress


@pytest.fixture(scope="module")
def few() -> Corpus:
    return Corpus(quorate.sample().documents[:40])


@pytest.mark.parametrize("method", ["mv", "span-vote", "bsc-cm", "crf-ma"])
def test_a_result_knows_the_model_that_made_it(few: Corpus, method: str, tmp_path: Path) -> None:
    result = quorate.aggregate(few, method) if method != "crf-ma" else quorate.aggregate(few, method, iterations=3)
    assert result.model.result_ is result
    assert result.only([1, 2]).model is result.model
    assert result.model.predict(few) == result.tags
    if isinstance(result.model, BSC | CRFMA):
        result.model.save(tmp_path / "m.quorate")
        assert from_file(tmp_path / "m.quorate").predict(few) == result.tags
        assert result.model.combine(few).model is result.model
    else:
        assert isinstance(result.model, MajorityVote)
    quorate.report.write_report(result.model, tmp_path / "r.html", documents=2)


def test_a_model_goes_on_from_its_result(few: Corpus) -> None:
    result = quorate.aggregate(Corpus(few.documents[:30]), "bsc-cm", max_iter=3)
    assert isinstance(result.model, BSC)
    assert len(result.model.update(few).result_) == 40


def test_results_are_copied_pickled_and_forgotten(few: Corpus) -> None:
    result = quorate.aggregate(few, "bsc-cm", max_iter=3)
    for again in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert again.tags == result.tags
        assert again.model.result_ is again
    gone = weakref.ref(result)
    del result
    gc.collect()
    assert gone() is None


def test_long_things_show_themselves_shortly(few: Corpus) -> None:
    long = Document("1", ("word",) * 10_000, {f"a{n}": ("O",) * 10_000 for n in range(50)}, gold=("O",) * 10_000)
    assert repr(long) == f"<Document '1': '{' '.join(['word'] * 8)}…', 10,000 tokens, 50 annotators, gold>"
    many = Document("2", ("Ada", "王芳") * 500, {"ann": ("B-PER", "B-PER") * 500})
    result = quorate.aggregate(Corpus([many]), "mv")
    assert repr(result[0]).startswith("<Consensus on '2': PER 'Ada' 1.00, PER '王芳' 1.00, ")
    assert repr(result[0]).endswith(" and 995 more; all tags right 1.00>")
    assert repr(result) == "<Result: 1 documents, 1000 spans, 1 annotators, mv>"
    layers = quorate.aggregate_layers({"A": Corpus([many]), "B": Corpus([many])}, "mv")
    assert repr(layers) == "<LayeredResult: 1 document, 2,000 spans, 1 annotator, mv, layers A, B>"
    assert repr(layers[0]) == "<LayeredConsensus on '2': spans A 1000, B 1000; all right 1.00>"
    plain = quorate.aggregate(Corpus([Document("3", ("x",), {"ann": ("yes",), "bob": ("no",)})]), "mv")
    assert "1 token, no span" in repr(plain[0])
    chosen = quorate.aggregate(few)
    for one in (chosen.trace, chosen.sources, chosen.ambiguity, chosen.accept(0.5)):
        assert repr(one).startswith(f"<{type(one).__name__}: ")
        assert len(repr(one)) < 250


def test_nothing_is_shown_unless_asked_for(few: Corpus, capfd: pytest.CaptureFixture[str]) -> None:
    quorate.aggregate(few, "bsc-cm", max_iter=2)
    quorate.aggregate(few, "bsc-cm", max_iter=2, progress=False)
    quorate.aggregate(few, "bsc-cm", max_iter=2, progress=True)  # nobody looks: standard error is a pipe here
    assert capfd.readouterr() == ("", "")


def test_a_function_is_told_of_every_pass_instead_of_a_bar(few: Corpus) -> None:
    steps: list[Progress] = []
    quorate.aggregate(few, "bsc-cm", max_iter=2, progress=steps.append)
    assert [step.passes for step in steps] == [1, 2]
    quorate.aggregate_layers({"A": few, "B": few}, "bsc-cm", max_iter=2, progress=steps.append)
    assert len(steps) == 6


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar(few: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    quorate.aggregate(few, "bsc-cm", max_iter=3, progress=True)
    assert "fitting" in screen.getvalue()
    assert "3/3" in screen.getvalue()


def test_a_notebook_without_widgets_shows_a_line_and_clears_it(few: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    import rich.console

    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    with suppress(KeyError), quorate.progress_bar() as report:
        report(Progress(0, 1, 1, 4, -10.0))
        report(Progress(0, 1, 4, 4, note="done"))
        raise KeyError
    lines = screen.getvalue().split("\r")
    assert lines[1] == "fitting [========                      ] 1/4 "
    assert lines[2].rstrip() == "fitting [==============================] 4/4 done"
    assert lines[3].strip() == lines[4] == ""
    assert len(lines[2]) >= len(lines[1])  # nothing of the line before is left


def test_a_notebook_with_widgets_is_left_to_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    import rich.console
    import rich.progress

    shown: list[Any] = []
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "find_spec", lambda name: object())
    monkeypatch.setattr(rich.progress.Progress, "start", lambda self: shown.append(self.disable))
    monkeypatch.setattr(rich.progress.Progress, "stop", lambda self: None)
    with quorate.progress_bar() as report:
        report(Progress(0, 1, 1, 4, -10.0))
    assert shown == [False]


def test_the_name_of_a_file_in_place_of_a_corpus_is_refused_with_what_reads_it() -> None:
    model = quorate.BSC("cm", max_iter=2).fit(quorate.sample())
    calls: list[Callable[[Any], object]] = [quorate.aggregate, model.fit, model.predict, model.combine, model.update]
    for call in calls:
        with pytest.raises(quorate.SettingsError, match=r"a Corpus is needed, not str \(quorate.read gives one"):
            call("crowd.jsonl")
