"""Who is a person, a model or a rule; who abstains; and what annotators with correlated errors are worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import quorate
from by_name import bsc, loaded
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import Behaviour, crowd
from quorate.crowd.correlated import Correlated
from quorate.estimators.comparison import compared_with_nobody
from quorate.result.sources import SourceKind, Sources, Together, err_together
from quorate.storage.corpora import store
from simulated_crowds import copies, rules, sentences


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, SourceKind.PEOPLE),
        ({"kind": "expert"}, SourceKind.PEOPLE),
        ({"kind": "model", "group": "llm"}, SourceKind.MODELS),
        ({"kind": "rule"}, SourceKind.RULES),
        ({"kind": "rule", "abstains": False}, SourceKind.RULES),
        ({"abstains": True}, SourceKind.RULES),
        ({"kind": "model", "abstains": True}, SourceKind.RULES),
    ],
)
def test_a_profile_says_what_an_annotator_is(fields: dict[str, object], kind: SourceKind) -> None:
    profiles = {"x": Profile.of(**fields)}  # type: ignore[arg-type]
    assert Sources(("x",), profiles).kind("x") is kind
    found_out = SourceKind.RULES if fields in ({}, {"abstains": True}) else kind
    assert Sources(("x",), profiles, abstaining=("x",)).kind("x") is found_out


def test_a_group_is_worth_the_sum_of_what_each_counts() -> None:
    """Each of a group counts 1 / (1 + what it has in common with the others)."""
    correlated = Correlated.of([(0, 1, 0.5), (1, 2, 0.25), (0, 2, 0.1), (3, 4, 0.2)])
    (group,) = err_together("abcde", correlated)
    assert group.names == ("a", "b", "c")
    assert group.votes == pytest.approx(1 / 1.6 + 1 / 1.75 + 1 / 1.35, rel=1e-12)
    assert [one.names for one in err_together("abcde", correlated, 0.15)] == [("a", "b", "c"), ("d", "e")]


def test_rules_abstain_and_people_with_a_weak_recall_do_not() -> None:
    names = [f"rule{n}" for n in range(9)]
    found = quorate.BSC("cm", calibrate=False).fit(rules(300)).sources_
    assert found.abstaining == tuple(names)
    assert found.by_kind() == {SourceKind.RULES: names}
    people = {f"p{n}": Behaviour(miss=0.1, invent=0.01) for n in range(4)} | {"weak": Behaviour(miss=0.6)}
    weak = quorate.BSC("cm", calibrate=False).fit(crowd(sentences(300), people, seed=1)).sources_
    assert weak.abstaining == ()
    assert weak.by_kind() == {SourceKind.PEOPLE: sorted(people)}


def test_what_the_changes_found_is_kept_in_a_file(tmp_path: Path) -> None:
    model = quorate.BSC(calibrate=False).fit(copies(200))
    samples = tuple(f"model{n}" for n in range(5))
    assert model.sources_.duplicates == (samples,)
    assert model.sources_.together == (Together(samples, 1.0, merged=True),)
    assert model.result_.sources == model.sources_
    model.save(tmp_path / "m")
    again = loaded(tmp_path / "m")
    assert again.sources_ == model.sources_
    assert again.combine(copies(20)).sources.together == model.sources_.together
    ruled = quorate.BSC(calibrate=False).fit(rules(200))
    ruled.save(tmp_path / "r")
    assert loaded(tmp_path / "r").sources_.abstaining == tuple(f"rule{n}" for n in range(9))


def test_without_changes_nothing_is_found() -> None:
    for corpus in (copies(100), rules(100)):
        found = quorate.BSC("cm", adapt=False, calibrate=False).fit(corpus).sources_
        assert (found.abstaining, found.duplicates, found.together) == ((), (), ())


class SaysNothing:
    """A tagger for which everything is O."""

    def __init__(self, tagset: quorate.TagSet) -> None:
        self.row = np.eye(len(tagset.labels))[tagset.index["O"]]

    def fit(self, documents: Sequence[quorate.Document], posteriors: Sequence[np.ndarray]) -> None:
        """Nothing to learn."""

    def predict(self, documents: Sequence[quorate.Document]) -> list[np.ndarray]:
        return [np.tile(self.row, (len(document.tokens), 1)) for document in documents]


def test_a_tagger_is_a_model() -> None:
    few = quorate.Corpus(quorate.sample().documents[:60])
    model = bsc("bsc-cm", max_iter=2, tagger=SaysNothing).fit(few)
    assert model.sources_.by_kind()[SourceKind.MODELS] == ["(tagger)"]


def only(corpus: Corpus, *names: str, known: bool = False) -> Corpus:
    """The documents one after the other, each labelled by one of these alone, with the labels of the first there."""
    given = [next(iter(document.annotations.values())) for document in corpus]
    return Corpus(
        Document(document.id, document.tokens, {names[n % len(names)]: tags}, document.gold if known else None)
        for n, (document, tags) in enumerate(zip(corpus, given, strict=True))
    )


def test_whoever_shares_no_document_cannot_be_judged(sample: Corpus, tmp_path: Path) -> None:
    alone = only(Corpus(sample.documents[:40]), "ann", "bob")
    model = bsc("bsc-cm", max_iter=2).fit(alone)
    assert compared_with_nobody(model) == ("ann", "bob")
    assert compared_with_nobody(quorate.aggregate(alone, method="mv").model) == ("ann", "bob")
    both = Document(alone[0].id, alone[0].tokens, dict.fromkeys(("ann", "bob"), alone[0].annotations["ann"]))
    assert compared_with_nobody(model, Corpus([both])) == ()
    assert compared_with_nobody(model, alone, known=[alone[0].id]) == ("bob",)
    model.save(tmp_path / "m.quorate")
    assert compared_with_nobody(loaded(tmp_path / "m.quorate")) == ("ann", "bob")
    assert compared_with_nobody(model.update(Corpus([both]))) == ()
    store(alone, tmp_path / "alone.qr")
    store(sample, tmp_path / "sample.qr")
    assert quorate.read(tmp_path / "alone.qr").compared() == set()
    assert quorate.read(tmp_path / "sample.qr").compared() == set(sample.annotators)


def test_known_labels_experts_and_earlier_projects_judge_somebody_alone(sample: Corpus, tmp_path: Path) -> None:
    alone = only(Corpus(sample.documents[:40]), "ann", known=True)
    model = bsc("bsc-cm", max_iter=2).fit(alone)
    assert compared_with_nobody(model) == ("ann",)
    model.save(tmp_path / "bare.quorate", documents=False)
    assert compared_with_nobody(loaded(tmp_path / "bare.quorate")) == ("ann",)
    assert compared_with_nobody(bsc("bsc-cm", max_iter=2).fit(alone, known="inline")) == ()
    assert compared_with_nobody(bsc("bsc-cm", max_iter=2).fit(alone, history=model)) == ()
    expert = Corpus(alone, profiles={"ann": Profile.of(kind="expert")})
    assert compared_with_nobody(bsc("bsc-cm", max_iter=2).fit(expert)) == ()
