"""Who is a person, a model or a rule; who is said to be silent; and what those who err together are worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import quorate
from by_name import bsc, loaded
from simulated_crowds import copies, rules, sentences
from quorate.choose.silence import Coverage, coverage, silent_votes
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import Behaviour, crowd
from quorate.crowd.encode import encode
from quorate.crowd.sharing import Sharing
from quorate.errors import ModelFileError
from quorate.estimators.comparison import compared_with_nobody
from quorate.result.sources import SourceKind, Sources, err_together
from quorate.storage import model_files
from quorate.storage.corpora import store


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
    assert Sources(("x",), profiles, silent=("x",)).kind("x") is found_out


def test_a_group_is_worth_the_sum_of_what_each_counts() -> None:
    """Each of a group counts 1 / (1 + what it has in common with the others)."""
    sharing = Sharing.of([(0, 1, 0.5), (1, 2, 0.25), (0, 2, 0.1), (3, 4, 0.2)])
    (group,) = err_together("abcde", sharing)
    assert group.names == ("a", "b", "c")
    assert group.votes == pytest.approx(1 / 1.6 + 1 / 1.75 + 1 / 1.35, rel=1e-12)
    assert [one.names for one in err_together("abcde", sharing, 0.15)] == [("a", "b", "c"), ("d", "e")]


def test_rules_are_silent_and_people_with_a_weak_recall_are_not() -> None:
    result = quorate.aggregate(rules(300))
    assert result.choice is not None
    assert result.choice.silent == tuple(f"rule{n}" for n in range(9))
    assert result.sources.by_kind() == {SourceKind.RULES: [f"rule{n}" for n in range(9)]}
    assert sum("counts little, as they mark little" in reason for reason in result.choice.reasons) == 1
    people = {f"p{n}": Behaviour(miss=0.1, invent=0.01) for n in range(4)} | {"weak": Behaviour(miss=0.6)}
    corpus = crowd(sentences(300), people, seed=1)
    encoded = encode(corpus, corpus.tagset())
    assert silent_votes(encoded, {})[-1] < 1
    weak = quorate.aggregate(corpus)
    assert weak.choice is not None
    assert weak.choice.silent == ()
    assert not any("counts little" in reason for reason in weak.choice.reasons)


def test_below_a_half_is_silent_only_where_most_are_below_a_quarter() -> None:
    def silent(*share: float, chance: float = 0.0, others: float = 100.0) -> list[bool]:
        K = len(share)
        return [
            bool(one) for one in Coverage(np.array(share), np.full(K, chance), np.full(K, others), np.ones(K)).silent
        ]

    assert silent(0.24, 0.26, 0.49, 0.9) == [True, False, False, False]
    assert silent(0.24, 0.2, 0.1, 0.49, 0.6) == [True, True, True, True, False]
    assert silent() == []
    assert silent(0.2, 0.9, 0.9, chance=0.15) == [True, False, False]
    assert silent(0.2, 0.9, 0.9, chance=0.19) == [False, False, False]  # as one who marks at random
    assert silent(0.2, 0.9, 0.9, others=39) == [False, False, False]  # too little is known


def test_whoever_marks_at_random_meets_what_chance_says() -> None:
    people = {f"p{n}": Behaviour(miss=0.1) for n in range(4)} | {f"spam{n}": Behaviour(spam=1.0) for n in range(2)}
    corpus = crowd(sentences(1500), people, seed=1)
    found = coverage(encode(corpus, corpus.tagset()))
    np.testing.assert_allclose(found.share[4:], found.chance[4:], rtol=0.15)
    assert (found.share[:4] > 1.5 * found.chance[:4]).all()
    assert not found.silent.any()


def test_what_was_found_out_is_kept_in_a_file(tmp_path: Path) -> None:
    model = quorate.BSC().fit(copies(200))
    assert model.choice_ is not None
    assert model.sources_.votes == model.choice_.votes
    assert [one.names for one in model.sources_.together] == [tuple(f"model{n}" for n in range(5))]
    assert model.result_.sources == model.sources_
    model.save(tmp_path / "m")
    again = loaded(tmp_path / "m")
    assert again.sources_.together == model.sources_.together
    assert again.sources_.votes == pytest.approx(model.choice_.votes)
    assert again.combine(copies(20)).sources.together == model.sources_.together
    ruled = quorate.BSC().fit(rules(200))
    ruled.save(tmp_path / "r")
    assert loaded(tmp_path / "r").sources_.silent == tuple(f"rule{n}" for n in range(9))


@pytest.mark.parametrize("head", [{"silent": ["nobody"]}, {"votes": [float("nan"), 1.0]}, {"votes": [-1.0, 1.0]}])
def test_a_file_in_which_sources_cannot_be_is_refused(head: dict[str, object], tmp_path: Path) -> None:
    bsc("bsc-cm", max_iter=2).fit(quorate.sample()).save(tmp_path / "m")
    stored = model_files.load(tmp_path / "m")
    model_files.save(stored._replace(meta=stored.meta | head), tmp_path / "m")
    with pytest.raises(ModelFileError, match="damaged model file"):
        quorate.load(tmp_path / "m")


def test_a_file_of_an_earlier_version_says_nothing_of_sources(tmp_path: Path) -> None:
    bsc("bsc-cm", max_iter=2).fit(quorate.sample()).save(tmp_path / "m")
    stored = model_files.load(tmp_path / "m")
    meta = {name: value for name, value in stored.meta.items() if name not in ("votes", "silent")}
    model_files.save(stored._replace(meta=meta), tmp_path / "m")
    sources = loaded(tmp_path / "m").sources_
    assert (sources.votes, sources.silent, sources.together) == (None, (), [])


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
    """The documents one after the other, each labelled by one of these alone, with what the first there said."""
    said = [next(iter(document.annotations.values())) for document in corpus]
    return Corpus(
        Document(document.id, document.tokens, {names[n % len(names)]: tags}, document.gold if known else None)
        for n, (document, tags) in enumerate(zip(corpus, said, strict=True))
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
