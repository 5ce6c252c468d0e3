"""A tagger that nobody asked for: where it joins by itself, where it is left out or not tried, and what is said."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import simulated_crowds as crowds
import quorate
from by_name import bsc, loaded
from quorate import BSC, score
from quorate.cli import app
from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.tags import TagSet
from quorate.errors import SettingsError
from quorate.estimators import bsc_tagger as estimator
from quorate.formats import jsonl
from quorate.model.places import without_types
from quorate.taggers import TaggerChoice, auto
from quorate.taggers.loop import ROUNDS, TAGGER

ENOUGH = 500
QUICK: dict[str, Any] = {"annotator": "cm", "epsilon0": 10.0, "temper": 0.9, "evidence": "tokens"}
"""All but the number of passes is fixed: settings are still chosen, and quickly."""


def where_text_helps(how_many: int = ENOUGH) -> Corpus:
    """Workers who often miss a name, or where it ends; its words tell."""
    return crowds.vague_and_sparse(how_many, 100)


def where_text_tells_nothing() -> Corpus:
    """The same workers, on words that stand anywhere."""
    rng = np.random.default_rng(0)
    return Corpus(
        [
            replace(document, tokens=tuple(f"w{n}" for n in rng.integers(0, 9, len(document.tokens))))
            for document in where_text_helps()
        ]
    )


def f1(model: BSC) -> float:
    return 100 * score.strict(model.result_.tags, [document.gold or () for document in model.result_.corpus]).f1


@pytest.fixture(scope="module")
def joined() -> BSC:
    return bsc().fit(where_text_helps())


class Sayer:
    """Says what it was made to say, tags by document; ``O`` where nothing is known."""

    def __init__(self, tagset: TagSet, tags: dict[str, Sequence[str]]) -> None:
        self.tagset, self.tags = tagset, tags

    def fit(self, documents: Sequence[Document], posteriors: Sequence[np.ndarray]) -> None:
        """Nothing to learn."""

    def predict(self, documents: Sequence[Document]) -> list[np.ndarray]:
        said = [self.tags.get(document.id, ["O"] * len(document.tokens)) for document in documents]
        return [np.eye(len(self.tagset.labels))[[self.tagset.index[tag] for tag in tags]] for tags in said]


def say(monkeypatch: pytest.MonkeyPatch, tags: dict[str, Sequence[str]]) -> None:
    """Whatever tagger is made says these."""

    def made(_choice: TaggerChoice, tagset: TagSet) -> Sayer:
        return Sayer(tagset, tags)

    monkeypatch.setattr(estimator, "make_tagger", made)


@pytest.fixture
def no_tagger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making a tagger fails the test."""

    def made(_choice: TaggerChoice, _tagset: TagSet) -> Sayer:
        raise AssertionError("a tagger was made")

    monkeypatch.setattr(estimator, "make_tagger", made)


def test_it_joins_where_hidden_annotators_agree_better_with_it(joined: BSC) -> None:
    assert re.fullmatch(
        r"a tagger has joined \(agreement with hidden annotators: \+\d+\.\d ± \d\.\d points\)",
        joined.tagger_note_,
    )
    assert 1 <= len(joined.tagger_rounds_) <= ROUNDS
    assert joined.meta_["tagger"] == "auto"
    assert joined.meta_["rounds"] == len(joined.tagger_rounds_)
    assert joined.annotators_[TAGGER].n_labels == joined.result_.corpus.n_tokens
    assert joined.choice_ is not None
    assert TAGGER not in joined.choice_.annotators
    assert joined.result_.calibration == joined.calibration_ != joined.choice_.calibration
    assert f1(joined) > f1(bsc(tagger=None).fit(where_text_helps())) + 3


def test_a_fit_with_the_choice_of_another_takes_the_tagger_too_and_judges_nothing(
    joined: BSC, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.estimators.bsc_tagger.judged", None)
    monkeypatch.setattr("quorate.estimators.bsc_tagger.calibrated_with", None)
    again = BSC().fit(joined.result_.corpus, choice=joined.choice_)
    assert again.result_.tags == joined.result_.tags
    assert again.calibration_ == joined.calibration_
    assert again.result_.expected == joined.result_.expected


def test_where_words_tell_nothing_it_is_left_out_without_a_trace() -> None:
    corpus = where_text_tells_nothing()
    tried, without = (bsc(tagger=tagger, **QUICK).fit(corpus) for tagger in ("auto", None))
    assert tried.tagger_note_.startswith("a tagger was tried and left out (it learned too little: by itself ")
    assert without.tagger_note_ == ""
    assert tried.tagger_rounds_ == ()
    assert tried.meta_ == without.meta_
    assert tried.annotators_.names == without.annotators_.names == corpus.annotators
    assert tried.calibration_ == without.calibration_
    assert tried.result_.tags == without.result_.tags
    np.testing.assert_array_equal(tried.result_.posterior, without.result_.posterior)
    np.testing.assert_array_equal(tried.result_.confidence, without.result_.confidence)


@pytest.mark.parametrize("knows", [True, False])
def test_it_joins_if_it_is_right_and_not_if_it_is_wrong(knows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says the gold, and one that says the gold of another document."""
    corpus = where_text_helps()
    gold = [[str(tag) for tag in document.gold or ()] for document in corpus]
    wrong = [(other * 20)[: len(own)] for own, other in zip(gold, [*gold[1:], gold[0]], strict=True)]
    tagset = corpus.tagset()
    said = gold if knows else [tags if tagset.is_valid(tags) else ["O"] * len(tags) for tags in wrong]
    say(monkeypatch, dict(zip((document.id for document in corpus), said, strict=True)))
    model = bsc(**QUICK).fit(corpus)
    assert bool(model.tagger_rounds_) is knows
    assert (TAGGER in model.annotators_.names) is knows
    assert ("has joined" in model.tagger_note_) is knows
    assert ("left out" in model.tagger_note_) is not knows


@pytest.mark.parametrize(("how_many", "tried"), [(ENOUGH - 1, False), (ENOUGH, True)])
def test_it_is_tried_from_so_many_documents_on(how_many: int, tried: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, {})
    model = bsc(**QUICK).fit(Corpus(where_text_helps(ENOUGH).documents[:how_many]))
    assert bool(model.tagger_note_) is tried


@pytest.mark.usefixtures("no_tagger")
def test_among_rules_it_is_not_tried_and_the_note_says_why() -> None:
    model = bsc().fit(crowds.rules(ENOUGH))
    assert model.tagger_rounds_ == ()
    assert model.tagger_note_ == (
        "a tagger was not tried: among rules none can tell whether it helps (--tagger crf takes one)"
    )


@pytest.mark.usefixtures("no_tagger")
def test_among_those_who_mark_little_it_is_not_tried_and_the_note_says_why() -> None:
    """They overlap as language models do, more than rules."""
    models = {f"model{k}": Behaviour(miss=0.6, confuse=0.05) for k in range(5)}
    model = bsc().fit(without_types(crowd(crowds.sentences(ENOUGH, seed=3), models, seed=3)))
    assert model.tagger_note_ == (
        "a tagger was not tried: among those who mark little none can tell whether it helps (--tagger crf takes one)"
    )


@pytest.mark.usefixtures("no_tagger")
def test_one_that_would_take_long_is_not_tried_and_the_note_says_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "_MOST_SECONDS", 0.01)
    monkeypatch.setattr(auto, "_PER_TOKEN", 2000.0)
    monkeypatch.setattr(auto, "_PER_LABEL", 1000.0)
    corpus = where_text_helps()
    model = bsc(**QUICK).fit(corpus)
    seconds = ROUNDS * corpus.n_tokens * (0.002 + 0.001 * len(corpus.tagset().labels))
    assert model.tagger_note_ == (
        f"a tagger was not tried: it would take some {seconds:.0f} s (--tagger crf takes one)"
    )


@pytest.mark.usefixtures("no_tagger")
def test_plain_labels_have_no_tagger() -> None:
    rng = np.random.default_rng(0)
    documents = []
    for number in range(ENOUGH):
        truth, other = map(str, rng.permutation(["yes", "no", "maybe"])[:2])
        said = {name: (truth if rng.random() < 0.7 else other,) for name in "abcd"}
        documents.append(Document(str(number), (f"about-{truth}",), said))
    corpus = Corpus(documents)
    model = bsc(**{**QUICK, "evidence": "auto"}).fit(corpus)
    assert (model.tagger_note_, model.tagger_rounds_) == ("", ())


@pytest.mark.usefixtures("no_tagger")
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("bsc-seq", {"max_iter": 2}),
        ("auto", {**QUICK, "max_iter": 3}),
        ("auto", {**QUICK, "text": False}),
        ("auto", {**QUICK, "decode": "token"}),
    ],
    ids=["a fixed method", "nothing to choose", "words do not count", "tokens apart"],
)
def test_where_it_cannot_be_judged_or_is_not_meant_it_is_not_tried(method: str, settings: dict[str, Any]) -> None:
    model = bsc(method, **settings).fit(where_text_helps())
    assert (model.tagger_note_, model.tagger_rounds_) == ("", ())


@pytest.mark.usefixtures("no_tagger")
def test_with_a_history_it_is_not_tried() -> None:
    corpus = where_text_helps()
    before = bsc("bsc-cm", max_iter=2).fit(Corpus(corpus.documents[:50]))
    model = bsc(**QUICK).fit(corpus, history=before)
    assert (model.tagger_note_, model.tagger_rounds_) == ("", ())


@pytest.mark.usefixtures("no_tagger")
def test_none_by_name_is_none() -> None:
    corpus = where_text_helps()
    one, other = (bsc(tagger=tagger, **QUICK).fit(corpus) for tagger in (None, "none"))
    assert one.result_.tags == other.result_.tags
    np.testing.assert_array_equal(one.result_.posterior, other.result_.posterior)
    assert one.meta_ == other.meta_
    assert one.tagger_note_ == other.tagger_note_ == ""


def test_the_order_of_documents_and_names_of_annotators_change_nothing(joined: BSC) -> None:
    corpus = where_text_helps()
    rng = np.random.default_rng(1)
    new = dict(zip(corpus.annotators, (f"x{n}" for n in rng.permutation(len(corpus.annotators))), strict=True))
    shuffled = Corpus(
        [
            replace(one, annotations={new[name]: tags for name, tags in one.annotations.items()})
            for one in (corpus[int(d)] for d in rng.permutation(len(corpus)))
        ]
    )
    again = bsc().fit(shuffled)
    assert again.tagger_note_ == joined.tagger_note_
    assert {one.document.id: one.tags for one in again.result_} == {one.document.id: one.tags for one in joined.result_}


def test_an_update_goes_on_without_it() -> None:
    """As if it had never been there: nobody asked for it, and it does not learn from what is new."""
    corpus = where_text_helps(ENOUGH + 30)
    first, more = Corpus(corpus.documents[:ENOUGH]), Corpus(corpus.documents[ENOUGH:])
    with_tagger, without = (bsc(tagger=tagger, **QUICK).fit(first) for tagger in ("auto", None))
    assert with_tagger.result_.tags != without.result_.tags
    for model in (with_tagger, without):
        model.update(more)
    assert with_tagger.tagger_rounds_ == ()
    assert "has joined" not in with_tagger.tagger_note_
    assert TAGGER not in with_tagger.annotators_.names
    assert with_tagger.annotators_.names == without.annotators_.names
    assert with_tagger.calibration_ == without.calibration_
    assert "tagger" not in with_tagger.meta_
    assert with_tagger.result_.tags == without.result_.tags
    np.testing.assert_array_equal(with_tagger.result_.confidence, without.result_.confidence)
    with_tagger.update(Corpus(corpus.documents[:10]))
    assert len(with_tagger.result_) == len(corpus)


def test_an_update_that_changes_nothing_or_cannot_be_leaves_it_where_it_is(joined: BSC) -> None:
    tags = joined.result_.tags
    joined.update(Corpus([]))
    with pytest.raises(SettingsError, match="passes"):
        joined.update(joined.result_.corpus, passes=-1)
    assert joined.tagger_rounds_
    assert TAGGER in joined.annotators_.names
    assert joined.result_.tags == tags


def test_one_that_was_asked_for_is_not_left_behind() -> None:
    documents = quorate.sample().documents
    model = bsc("bsc-cm", max_iter=2, tagger="crf").fit(Corpus(documents[:60]))
    with pytest.raises(SettingsError, match="a fit with a tagger cannot go on"):
        model.update(Corpus(documents[60:70]))
    assert TAGGER in model.annotators_.names


def test_a_saved_model_is_loaded_with_what_it_knows_of_the_tagger(joined: BSC, tmp_path: Path) -> None:
    joined.save(tmp_path / "model.quorate")
    again = loaded(tmp_path / "model.quorate")
    assert again.meta_["tagger"] == "auto"
    assert again.annotators_[TAGGER].accuracy == joined.annotators_[TAGGER].accuracy
    assert again.calibration_ == joined.calibration_
    other = Corpus(where_text_helps(ENOUGH + 30).documents[ENOUGH:])
    assert again.predict(other) == joined.predict(other)
    again.update(other)  # nobody asked for a tagger, so nobody is told that one is in the way
    assert len(again.result_) == len(joined.result_) + len(other)
    assert all(again.tagset_.is_valid(tags) for tags in again.result_.tags)


@pytest.mark.parametrize("tagger", ["auto", "none", "crf"])
def test_the_command_line_takes_it_and_says_what_became_of_it(tagger: str, tmp_path: Path) -> None:
    with (tmp_path / "crowd.jsonl").open("wb") as stream:
        jsonl.write_corpus(where_text_helps(), stream)
    meta = tmp_path / "meta.json"
    options = [part for name, value in QUICK.items() for part in (f"--{name}", str(value))]
    files = [str(tmp_path / "crowd.jsonl"), "-o", str(tmp_path / "out.jsonl"), "--meta", str(meta)]
    done = CliRunner().invoke(app, ["aggregate", *files, "--tagger", tagger, *options, "--verbose"])
    assert done.exit_code == 0, done.output
    assert ("note: a tagger has joined (" in done.stderr) is (tagger == "auto")
    assert (f"{TAGGER}, a model: expected accuracy" in done.stderr) is (tagger != "none")
    assert json.loads(meta.read_text()).get("tagger") == (None if tagger == "none" else tagger)


def test_the_command_line_tells_of_one_that_was_not_tried(tmp_path: Path) -> None:
    with (tmp_path / "crowd.jsonl").open("wb") as stream:
        jsonl.write_corpus(crowds.rules(ENOUGH), stream)
    done = CliRunner().invoke(app, ["aggregate", str(tmp_path / "crowd.jsonl"), "-o", str(tmp_path / "out.jsonl")])
    assert done.exit_code == 0, done.output
    assert "note: a tagger was not tried: among rules" in done.stderr


def test_a_tagger_that_is_not_known_is_refused() -> None:
    with pytest.raises(SettingsError, match="'oracle' is not known"):
        bsc(tagger="oracle", **QUICK).fit(where_text_helps())


def test_careful_annotators_need_none() -> None:
    """Nothing is left to learn: what the tagger adds is its own mistakes."""
    careful = dict.fromkeys("abcde", Behaviour(miss=0.01))
    model = bsc(**QUICK).fit(crowd(crowds.sentences(ENOUGH), careful))
    assert "left out" in model.tagger_note_
