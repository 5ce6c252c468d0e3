"""Layers: their models, documents that are dealt into them, known labels, and scores that can be counted by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from by_name import bsc
from quorate import BSC, Corpus, Document, InputError, LayeredModel, Layers, SettingsError, Span
from quorate.active.suggest import next_labels
from quorate.estimators.methods import estimator
from quorate.evaluate.layers import compare_layers, read_layered_answers, score_layers
from quorate.formats import read_consensus
from quorate.formats.known_layers import read_settled_layers
from quorate.result.layers import LayeredResult

TEXT = "Bath Spa won"
ORG, LOC, WON = (0, 8, "ORG"), (0, 4, "LOC"), (9, 12, "EVENT")
INNER_ORG = (0, 4, "ORG")

Mark = tuple[int, int, str]


def spans(*marks: Mark) -> list[dict[str, Any]]:
    return [{"start": start, "end": end, "label": label} for start, end, label in marks]


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def crowd(path: Path, *said: Sequence[Sequence[Mark]], **fields: Any) -> Path:
    """Documents with what their annotators a, b, … mark."""
    lines = [
        {"id": str(n), "text": TEXT, "annotations": {"abcd"[k]: spans(*marks) for k, marks in enumerate(each)}} | fields
        for n, each in enumerate(said)
    ]
    return written(path, *lines)


@pytest.fixture
def nested(tmp_path: Path) -> Layers:
    both = [ORG, LOC]
    return quorate.read_layers(crowd(tmp_path / "crowd.jsonl", *[(both, both, [ORG])] * 6, gold=spans(ORG, LOC)))


def marked(result: LayeredResult, key: str) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.label) for span in result[key].spans]


def test_a_model_in_layers_comes_back_from_its_file(nested: Layers, tmp_path: Path) -> None:
    model = LayeredModel(bsc("bsc-cm")).fit(nested)
    model.save(tmp_path / "m.quorate")
    again = quorate.load(tmp_path / "m.quorate")
    assert isinstance(again, LayeredModel)
    assert again.layers_ == model.layers_ == nested.held
    assert again.meta_ == model.meta_
    assert set(again.meta_["layers"]) == {"LOC", "ORG"}
    assert again.meta_["documents"] == 6
    assert "documents" not in again.meta_["layers"]["LOC"]
    assert again.combine(nested).spans == model.combine(nested).spans
    assert [span.layer for span in again.combine(nested)["0"].spans] == ["LOC", "ORG"]
    model.save(tmp_path / "again.quorate")
    assert (tmp_path / "m.quorate").read_bytes() == (tmp_path / "again.quorate").read_bytes()


def test_votes_in_layers_have_nothing_to_save(nested: Layers, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'mv' has nothing to save"):
        LayeredModel(estimator("mv")).fit(nested).save(tmp_path / "m")
    with pytest.raises(SettingsError, match="'mv' cannot go on"):
        LayeredModel(estimator("mv")).fit(nested).update(nested)


def test_new_documents_are_dealt_into_the_layers_of_the_model(nested: Layers, tmp_path: Path) -> None:
    model = LayeredModel(bsc("bsc-cm")).fit(nested)
    flat = crowd(tmp_path / "flat.jsonl", ([LOC], [LOC]))
    assert set(quorate.read_layers(flat)) == {"LOC"}  # by itself it would need one
    layers = quorate.read_layers(flat, layers=model.layers_)
    assert list(layers) == list(nested)
    assert layers["LOC"][0].annotations["a"] == ("B-LOC", "O", "O")
    assert layers["ORG"][0].annotations["a"] == ("O", "O", "O")
    assert (0, 1, "LOC") in marked(model.combine(layers), "0")
    with pytest.raises(InputError, match="the documents are in layers LOC, and the model has LOC, ORG"):
        model.combine(quorate.read_layers(flat))


def test_a_label_that_no_layer_takes_is_refused(nested: Layers, tmp_path: Path) -> None:
    path = crowd(tmp_path / "new.jsonl", ([WON],))
    with pytest.raises(InputError, match=r"new\.jsonl:1: document '0': no layer takes label 'EVENT'"):
        quorate.read_layers(path, layers=nested.held)


def test_spans_that_overlap_as_none_did_are_left_out_with_a_note(nested: Layers, tmp_path: Path) -> None:
    path = crowd(tmp_path / "new.jsonl", ([ORG, INNER_ORG],))
    layers = quorate.read_layers(path, layers=nested.held)
    assert layers["ORG"][0].annotations["a"] == ("B-ORG", "I-ORG", "O")
    assert "1 span was left out that no layer of the model takes" in layers.corpus.notes[0]


def test_label_sets_of_another_tool_are_found_by_label(nested: Layers, tmp_path: Path) -> None:
    task = {"id": 1, "data": {"text": TEXT}, "annotations": [{"completed_by": 1, "result": []}]}
    for start, end, label in (ORG, LOC):
        value = {"start": start, "end": end, "labels": [label], "text": TEXT[start:end]}
        task["annotations"][0]["result"].append({"type": "labels", "from_name": f"set {label}", "value": value})  # type: ignore[index]
    (tmp_path / "tasks.json").write_text(json.dumps([task]))
    layers = quorate.read_layers(tmp_path / "tasks.json", layers=nested.held)
    assert layers["LOC"][0].annotations["1"] == ("B-LOC", "O", "O")
    assert layers["ORG"][0].annotations["1"] == ("B-ORG", "I-ORG", "O")


def test_a_single_layer_and_plain_labels_stay_as_they_are(tmp_path: Path) -> None:
    path = written(
        tmp_path / "pos.jsonl", {"id": "1", "tokens": ["Ada", "sang"], "annotations": {"a": ["NOUN", "VERB"]}}
    )
    (corpus,) = quorate.read_layers(path).values()
    assert corpus[0].annotations == {"a": ("NOUN", "VERB")}
    model = LayeredModel(estimator("mv")).fit({"LOC": Corpus([Document("1", ("Bath",), {"a": ("B-LOC",)})])})
    assert model.single is not None
    assert model.result_.single is not None
    assert marked(model.result_, "1") == [(0, 1, "LOC")]


def test_updates_go_to_every_layer(nested: Layers, tmp_path: Path) -> None:
    model = LayeredModel(BSC("cm", max_iter=5)).fit(nested)
    more = crowd(tmp_path / "more.jsonl", *[([ORG, LOC], [ORG, LOC])] * 8)
    model.update(quorate.read_layers(more, layers=model.layers_))
    assert len(model.result_) == 8
    assert marked(model.result_, "7") == [(0, 1, "LOC"), (0, 2, "ORG")]


def test_soft_spans_and_documents_without_annotators(tmp_path: Path) -> None:
    soft = [spans(ORG)[0] | {"score": 0.8}, spans(LOC)[0] | {"score": 0.7}]
    lines: list[dict[str, Any]] = [
        {"id": str(n), "text": TEXT, "annotations": {"a": soft, "b": spans(ORG, LOC), "c": spans(ORG)}}
        for n in range(6)
    ]
    layers = quorate.read_layers(written(tmp_path / "c.jsonl", *lines, {"id": "bare", "text": TEXT}))
    assert layers["LOC"][0].annotations["a"][0] == {"B-LOC": 0.7, "O": pytest.approx(0.3)}
    result = quorate.aggregate_layers(layers, "bsc-cm")
    assert marked(result, "0") == [(0, 1, "LOC"), (0, 2, "ORG")]
    assert len(result) == 7


def test_labels_of_gold_alone_are_scored_and_known_but_not_combined(tmp_path: Path) -> None:
    gold = spans(ORG, LOC, INNER_ORG)
    layers = quorate.read_layers(crowd(tmp_path / "c.jsonl", *[([ORG], [ORG])] * 4, gold=gold))
    assert len(layers) == 3
    assert set(LayeredModel(bsc("bsc-cm")).fit(layers).models_) == {"ORG"}
    known = LayeredModel(bsc("bsc-cm")).fit(layers, known="inline").result_
    assert marked(known, "3") == [(0, 1, "LOC"), (0, 1, "ORG"), (0, 2, "ORG")]
    rows = compare_layers(layers, ["mv"]).rows
    assert rows[0].scores.strict is not None
    assert rows[0].scores.strict.precision == 1
    assert rows[0].scores.strict.recall == pytest.approx(1 / 3)


def test_documents_are_accepted_by_the_spans_of_all_layers() -> None:
    """Three documents, whose shares of votes are 1 and ½, 1 and 1, and ½ alone."""
    inner = [{"a": ("B-LOC",), "b": ("O",)}, {"a": ("B-LOC",), "b": ("B-LOC",)}, {"a": ("B-LOC",), "b": ("O",)}]
    outer = [{"a": ("B-ORG",), "b": ("B-ORG",)}, {"a": ("B-ORG",), "b": ("B-ORG",)}, {"a": ("O",), "b": ("O",)}]
    layers = {
        name: Corpus([Document(str(n), ("Bath",), said) for n, said in enumerate(each)])
        for name, each in (("LOC", inner), ("ORG", outer))
    }
    result = quorate.aggregate_layers(layers, "mv")
    assert [round(float(p), 9) for p in result.confidence] == [0.5, 1, 0.5]
    assert result.accept(0.95).documents == [1]
    some = result.accept(0.8)  # (1 + 1 + 1 + ½) / 4; with the last it would be 4 / 5
    assert (some.documents, some.precision) == ([0, 1, 2], 0.8)
    some = result.accept(0.85)
    assert (some.documents, some.review, some.precision) == ([0, 1], [2], 0.875)
    assert [one.document.id for one in result.only([2, 0])] == ["2", "0"]
    assert result.expected.precision == pytest.approx(0.8)


def test_the_precision_expected_of_all_layers_is_that_of_their_spans(sample: Corpus) -> None:
    half = Corpus([Document(d.id, d.tokens, {k: v for k, v in d.annotations.items() if k != "ana"}) for d in sample])
    result = quorate.aggregate_layers({"all": sample, "without ana": half})
    counts = [one.span_tallies() for one in result.layers.values()]
    assert result.expected.precision == pytest.approx(
        sum(float(one.found.sum()) for one in counts) / sum(float(one.given.sum()) for one in counts)
    )


def test_known_spans_are_dealt_as_annotations_are(nested: Layers, tmp_path: Path) -> None:
    path = written(
        tmp_path / "known.jsonl",
        {"id": "0", "text": TEXT, "gold": spans(ORG, LOC)},
        {"id": "1", "tokens": TEXT.split(), "tags": ["B-LOC", "O", None]},
        {"id": "2", "tokens": TEXT.split(), "tags": ["O", "B-ORG", "O"], "layer": "ORG"},
        {"id": "3", "text": TEXT, "gold": spans(ORG), "checked": False},
    )
    layers, known = read_known_layers(path, nested)
    assert layers is nested
    assert known["LOC"] == {"0": ("B-LOC", "O", "O"), "1": ("B-LOC", "O", None)}
    assert known["ORG"] == {"0": ("B-ORG", "I-ORG", "O"), "1": ("O", "O", None), "2": ("O", "B-ORG", "O")}


def read_known_layers(paths: Any, layers: Layers, **options: Any) -> tuple[Layers, dict[str, Any]]:
    layers, found = read_settled_layers(paths, layers, **options)
    return layers, {name: settled.tags for name, settled in found.items()}


def test_known_spans_that_no_layer_takes_have_one_of_their_own(nested: Layers, tmp_path: Path) -> None:
    path = written(tmp_path / "known.jsonl", {"id": "0", "text": TEXT, "gold": spans(ORG, INNER_ORG, LOC, WON)})
    layers, known = read_known_layers(path, nested)
    assert len(layers) > len(nested)
    result = LayeredModel(bsc("bsc-cm")).fit(layers, known=known).result_
    assert marked(result, "0") == [(0, 1, "LOC"), (0, 1, "ORG"), (0, 2, "ORG"), (2, 3, "EVENT")]


PER = (0, 8, "PER")


@pytest.mark.parametrize(
    ("annotated", "line", "known"),
    [
        (  # one new nested annotation, and each label has a layer
            [PER, LOC],
            {"layer": "LOC+PER", "tags": ["B-LOC", "B-PER", None]},
            {"LOC": ("B-LOC", "O", None), "PER": ("O", "B-PER", None)},
        ),
        (
            [PER, LOC],
            {"layer": "LOC+PER", "gold": spans((0, 4, "LOC"), (5, 8, "PER"))},
            {"LOC": ("B-LOC", "O", "O"), "PER": ("O", "B-PER", "O")},
        ),
        (
            [PER, LOC],
            {"layer": "LOC+PER", "tags": ["B-LOC", "I-LOC", "O"], "spans": spans((0, 8, "LOC"))},
            {"LOC": ("B-LOC", "I-LOC", "O"), "PER": ("O", "O", "O")},
        ),
        ([ORG, LOC], {"layer": "LOC+PER", "tags": ["O", "O", None]}, {"LOC": ("O", "O", None), "ORG": None}),
        (  # what is no place may be an event, of which the line does not speak
            [ORG, LOC, WON],
            {"layer": "LOC+PER", "tags": ["B-LOC", "O", "O"]},
            {"EVENT+LOC": ("B-LOC", None, None), "ORG": None},
        ),
        (
            [ORG, LOC, WON],
            {"layer": "LOC+PER", "spans": spans(WON)},
            {"EVENT+LOC": (None, None, "B-EVENT"), "ORG": None},
        ),
        (  # nobody marks such: it stays with the labels that it was found with
            [PER, LOC],
            {"layer": "LOC+PER", "tags": ["B-ŽÁR", "O", "O"]},
            {"LOC": ("B-ŽÁR", "O", "O"), "PER": ("O", "O", "O")},
        ),
        (  # an outer span is not outside of the inner layer, nor the other way round
            [ORG, INNER_ORG, LOC],
            {"layer": "LOC+ORG", "tags": ["B-ORG", "I-ORG", "O"]},
            {"LOC": ("O", "O", "O"), "ORG": ("B-ORG", "I-ORG", "O"), "ORG (1 deep)": None},
        ),
        (
            [ORG, INNER_ORG, LOC],
            {"layer": "LOC+ORG (1 deep)", "tags": ["B-ORG", "O", "O"]},
            {"LOC": None, "ORG": None, "ORG (1 deep)": ("B-ORG", "O", "O")},
        ),
    ],
)
def test_a_review_of_a_layer_that_has_parted_since_is_dealt_by_its_labels(
    tmp_path: Path, annotated: list[Mark], line: dict[str, Any], known: dict[str, Any]
) -> None:
    layers = quorate.read_layers(crowd(tmp_path / "crowd.jsonl", (annotated,)))
    path = written(tmp_path / "known.jsonl", {}, {"id": "0", "text": TEXT, "reviewer": "ann"} | line)
    path.write_text(path.read_text().removeprefix("{}"))  # the line keeps its number behind an empty one
    again, found = read_known_layers(path, layers)
    assert again is layers
    assert {name: tags.get("0") for name, tags in found.items()} == known


def test_a_file_that_waits_to_be_checked_says_nothing_yet(nested: Layers, tmp_path: Path) -> None:
    line = {"id": "0", "text": TEXT, "gold": spans(ORG)}
    waits = written(tmp_path / "waits.jsonl", line | {"checked": False})
    known = written(tmp_path / "known.jsonl", line)
    digests: dict[str, str] = {}
    assert read_known_layers([waits, known], nested, digests=digests) == read_known_layers(known, nested)
    assert list(digests) == [str(waits), str(known)]
    with pytest.raises(InputError, match=r"waits.jsonl: no document in it is checked"):
        read_known_layers(waits, nested)
    silent = written(tmp_path / "silent.jsonl", {"id": "0", "text": TEXT})
    with pytest.raises(InputError, match=r"silent.jsonl: no document in it has 'gold'"):
        read_known_layers([silent, known], nested)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"tags": ["O", "O", "O"], "layer": "PER"}, "labels of layer 'PER', which the input does not have"),
        ({"gold": [{"start": 0}]}, "not a document with known labels"),
        ({"gold": spans((0, 99, "ORG"))}, "ends after the text"),
        ({"gold": spans(ORG), "id": "nobody"}, "this document is not in the input"),
        (
            {"layers": {"ORG": {"tags": ["O", "O", "O"]}}, "spans": [spans(ORG)[0] | {"layer": "ORG"}]},
            "document '0'",
        ),
    ],
)
def test_known_labels_that_cannot_be_are_refused(
    nested: Layers, tmp_path: Path, line: dict[str, Any], message: str
) -> None:
    path = written(tmp_path / "known.jsonl", {"id": "0", "text": TEXT} | line)
    with pytest.raises(InputError, match=message) as error:
        read_known_layers(path, nested)
    assert "known.jsonl:1" in str(error.value)


@pytest.mark.parametrize("layers", [{}, {"LOC": {"tags": ["O", "O", "O"]}}])
def test_a_consensus_whose_spans_are_of_no_layer_is_refused(tmp_path: Path, layers: dict[str, Any]) -> None:
    marks = [span | {"layer": "ORG", "confidence": 1.0} for span in spans(ORG)]
    path = written(tmp_path / "c.jsonl", {"id": "0", "text": TEXT, "layers": layers, "spans": marks})
    with pytest.raises(InputError, match=r"c.jsonl:1: spans of layers that it does not have \(write it again\)"):
        read_consensus(path)


def consensus(tmp_path: Path, *found: Sequence[Mark]) -> Path:
    """A consensus in layers that finds these spans, in each document."""
    layers = quorate.read_layers(crowd(tmp_path / "found.jsonl", *[(each,) for each in found]))
    quorate.aggregate_layers(layers, "mv").write(tmp_path / "c.jsonl")
    return tmp_path / "c.jsonl"


def test_scores_over_all_spans_are_sums_of_counts(tmp_path: Path) -> None:
    """Found: 5 spans, of which 3 are right, and there are 6: precision 3/5, recall 3/6."""
    path = consensus(tmp_path, [ORG, LOC], [ORG, LOC, WON])
    gold = written(
        tmp_path / "gold.jsonl",
        {"id": "0", "text": TEXT, "gold": spans(ORG, LOC, WON)},
        {"id": "1", "text": TEXT, "gold": spans(ORG, (5, 8, "LOC"), INNER_ORG)},
    )
    answers, missing = read_layered_answers(path, quorate.read_layers(gold))
    scores = score_layers(answers)
    assert missing == 0
    assert scores.together.documents == 2
    assert scores.together.strict is not None
    assert scores.together.strict[:2] == pytest.approx((3 / 5, 3 / 6))
    assert {kind: one.support for kind, one in scores.together.by_type.items()} == {"EVENT": 1, "LOC": 2, "ORG": 3}
    counted = {name: one.errors for name, one in scores.layers.items()}
    assert sum(one.gold_spans for one in counted.values() if one is not None) == 6
    assert sum(one.exact for one in counted.values() if one is not None) == 3


def test_a_span_inside_its_own_label_matches_whatever_its_layer(tmp_path: Path) -> None:
    """Only the inner span is found: alone it would be the outer layer's."""
    path = consensus(tmp_path, [INNER_ORG], [ORG, INNER_ORG])
    gold = written(
        tmp_path / "gold.jsonl", *({"id": name, "text": TEXT, "gold": spans(ORG, INNER_ORG)} for name in "01")
    )
    together = score_layers(read_layered_answers(path, quorate.read_layers(gold))[0]).together
    assert together.strict is not None
    assert together.strict[:2] == pytest.approx((1, 3 / 4))


def test_nested_gold_counts_against_a_consensus_without_layers(tmp_path: Path, run_json: Any) -> None:
    path = crowd(tmp_path / "crowd.jsonl", *[([ORG],)] * 3, gold=spans(ORG, LOC))
    quorate.aggregate(quorate.read(path), "mv").write(tmp_path / "c.jsonl")
    plain = run_json("evaluate", tmp_path / "c.jsonl", "--gold", path)
    assert plain["strict"]["recall"] == 1
    layered = run_json("evaluate", tmp_path / "c.jsonl", "--gold", path, "--layers", "auto")
    assert layered["strict"]["recall"] == 0.5
    assert layered["layers"]["LOC"]["strict"]["recall"] == 0


def test_a_consensus_in_layers_may_come_from_a_folder_or_a_pipe(tmp_path: Path, run_json: Any) -> None:
    path = crowd(tmp_path / "crowd.jsonl", *[([ORG, LOC],)] * 3, gold=spans(ORG, LOC))
    (tmp_path / "consensus").mkdir()
    quorate.aggregate_layers(quorate.read_layers(path), "mv").write(tmp_path / "consensus" / "c.jsonl")
    assert run_json("evaluate", tmp_path / "consensus", "--gold", path)["strict"]["f1"] == 1
    content = (tmp_path / "consensus" / "c.jsonl").read_bytes()
    found = run_json("evaluate", "-", "--gold", path, "--layers", "auto", given=content)
    assert set(found["layers"]) == {"LOC", "ORG"}
    with pytest.raises(InputError, match=r"a consensus in layers \(--layers auto takes it\)"):
        run_json("evaluate", "-", "--gold", path, given=content)


def test_gold_that_overlaps_is_written_where_nobody_annotated(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"id": "1", "text": TEXT, "gold": spans(ORG, LOC)}, {"id": "2", "text": TEXT}]
    layers = quorate.read_layers(written(tmp_path / "gold.jsonl", *lines))
    quorate.formats.write(layers, tmp_path / "out.jsonl")
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert {(span["start"], span["end"], span["label"]) for span in first["gold"]} == {ORG, LOC}
    assert second["annotations"] == {}
    with pytest.raises(quorate.OutputError, match="holds one tag a token, and there are several layers"):
        quorate.formats.write(layers, tmp_path / "out.conll")


def test_tags_stay_tags_where_nothing_overlaps(tmp_path: Path) -> None:
    tags: list[Any] = [{"B-LOC": 0.6, "O": 0.4}, None, "B-ORG"]
    lines = [
        {"id": "1", "text": TEXT, "annotations": {"a": spans(ORG, LOC)}},
        {"id": "2", "tokens": ["Bath", "or", "Spa"], "annotations": {"a": tags}},
    ]
    quorate.formats.write(quorate.read_layers(written(tmp_path / "mixed.jsonl", *lines)), tmp_path / "out.jsonl")
    second = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[1])
    assert second["annotations"]["a"] == tags


@pytest.fixture
def run_json() -> Any:
    from typer.testing import CliRunner

    from quorate.cli import app

    def call(*arguments: object, given: bytes | None = None) -> Any:
        found = CliRunner().invoke(app, [*map(str, arguments), "--json"], input=given)
        if isinstance(found.exception, InputError):
            raise found.exception
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)

    return call


def test_what_labels_tell_adds_up_over_layers(nested: Layers, tmp_path: Path) -> None:
    said: list[list[Sequence[Mark]]] = [[[ORG, LOC], [ORG, LOC]], [[ORG], [LOC]], [[ORG, LOC], []], [[LOC], [ORG, LOC]]]
    layers = quorate.read_layers(crowd(tmp_path / "more.jsonl", *[each for each in said for _ in range(3)]))
    model = LayeredModel(bsc("bsc-cm")).fit(nested)
    options: dict[str, Any] = {"n": 12, "diversity": 0.0}
    together = {one.document: one.gain for one in next_labels(layers, model, annotators=["c"], **options).suggestions}
    alone: dict[str, float] = {}
    for name, corpus in layers.items():
        own = model.models_[name]
        assert isinstance(own, BSC)
        for one in next_labels(corpus, own, annotators=["c"], **options).suggestions:
            alone[one.document] = alone.get(one.document, 0.0) + one.gain
    assert together.keys() == alone.keys()
    np.testing.assert_allclose([together[name] for name in alone], list(alone.values()), rtol=1e-9)


def test_layers_of_different_documents_are_refused() -> None:
    one, other = (Corpus([Document(name, ("Bath",), {"a": ("B-X",)})]) for name in "12")
    with pytest.raises(InputError, match="not of the same documents"):
        Layers({"one": one, "other": other})
    with pytest.raises(SettingsError, match="no layer was given"):
        Layers({})
    with pytest.raises(quorate.NotFittedError):
        _ = LayeredModel().result_


def test_layers_made_by_hand_know_what_they_take() -> None:
    outer, inner = (Corpus([Document("1", ("a", "b"), {"a": tags})]) for tags in (("B-X", "I-X"), ("B-X", "O")))
    held = Layers({"outer": outer, "inner": inner}).held
    assert {name: (layer.labels, layer.depth) for name, layer in held.items()} == {
        "outer": (frozenset({("", "X")}), 0),
        "inner": (frozenset({("", "X")}), 1),
    }


def test_an_audit_of_layers_counts_all_spans(nested: Layers) -> None:
    result = quorate.aggregate_layers(nested, "mv")
    plan = quorate.audit.plan(result, 6)
    truth = {name: [Span(0, 2, "ORG"), Span(0, 1, "LOC"), Span(2, 3, "EVENT"), Span(1, 2, "ORG")] for name in plan.ids}
    found = quorate.audit.result(result, truth, plan=plan)
    assert found.precision.value == pytest.approx(1, abs=1e-6)
    assert found.recall.value == pytest.approx(0.5, abs=1e-6)
    assert {kind: one.recall.value for kind, one in found.by_type.items()} == pytest.approx(
        {"EVENT": 0, "LOC": 1, "ORG": 0.5}, abs=1e-6
    )
