"""Entities of several pieces: what people mark, one consensus, scores by hand, tools, damage."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from by_name import bsc
from quorate import Corpus, Document, InputError, formats, score
from quorate.audit.recalibration import Line, Recalibration, recalibrated
from quorate.corpus.discontinuous import joined
from quorate.corpus.spans import Span
from quorate.corpus.tags import TagSet, find_pieces, find_spans
from quorate.label_studio.sync import _says_the_same
from quorate.report.data import collect

TEXT = "severe muscle and joint pain today"  # both "muscle pain" and "joint pain"
MUSCLE_PAIN = [[7, 13], [24, 28]]
APART = Span(1, 5, "ADR", pieces=((1, 2), (4, 5)))
TAGS = ("O", "B-ADR", "O", "O", "B-ADR…", "O")


def span(pieces: list[list[int]], label: str = "ADR", **more: Any) -> dict[str, Any]:
    found = {"start": pieces[0][0], "end": pieces[-1][1], "label": label, **more}
    return {**found, "pieces": pieces} if len(pieces) > 1 else found


def crowd(folder: Path, *spans: list[dict[str, Any]], text: str = TEXT, copies: int = 1) -> Path:
    """A file in which annotators a, b, c … each marked these spans."""
    said = {"abcdef"[number]: own for number, own in enumerate(spans)}
    lines = [{"id": f"d{number}", "text": text, "annotations": said} for number in range(copies)]
    path = folder / "crowd.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


# --- tags ---------------------------------------------------------------------------------------------------------


def test_a_piece_goes_on_with_the_last_entity_of_its_label() -> None:
    tags = ["B-ADR", "O", "B-ADR", "B-DRUG", "B-ADR…", "I-ADR…", "O", "B-ADR…", "B-DRUG…"]
    assert find_spans(tags) == [
        Span(0, 1, "ADR"),
        Span(2, 8, "ADR", pieces=((2, 3), (4, 6), (7, 8))),
        Span(3, 9, "DRUG", pieces=((3, 4), (8, 9))),
    ]
    assert [piece.label for piece in find_pieces(tags)] == ["ADR", "ADR", "DRUG", "ADR…", "ADR…", "DRUG…"]


def test_a_piece_without_an_entity_is_one_by_itself_and_the_next_goes_on_with_it() -> None:
    assert find_spans(["B-ADR…", "O", "B-ADR…"]) == [Span(0, 3, "ADR", pieces=((0, 1), (2, 3)))]
    assert find_spans(["O", "I-ADR…"], orphans=False) == []


def test_pieces_that_touch_are_one_span() -> None:
    assert find_spans(["B-ADR", "B-ADR…", "O"]) == [Span(0, 2, "ADR")]


def test_a_label_of_nothing_but_dots_is_a_label() -> None:
    assert find_spans(["B-X", "O", "B-…"]) == [Span(0, 1, "X"), Span(2, 3, "…")]


def test_spans_that_differ_in_pieces_alone_are_not_equal() -> None:
    whole, other = Span(1, 5, "ADR"), Span(1, 5, "ADR", pieces=((1, 3), (4, 5)))
    assert len({APART, whole, other, APART._replace(confidence=0.5).bare}) == 3


# --- one consensus ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["mv", "bsc-seq", "auto"])
def test_a_crowd_of_three_is_combined_to_one_entity(method: str, tmp_path: Path) -> None:
    short, whole = [span([[7, 13]])], [span(MUSCLE_PAIN)]
    corpus = quorate.read(crowd(tmp_path, whole, whole, short, copies=12))
    result = quorate.aggregate(corpus, method)
    for one in result:
        (entity,) = one.spans
        assert entity.bare == APART
        assert one.text(entity) == "muscle pain"
        assert one.confidence <= entity.sure <= min(piece.sure for piece in result.pieces(0))
    assert result[0].tags == list(TAGS)


def test_an_entity_is_as_sure_as_its_pieces_by_themselves_and_as_the_document_at_least(tmp_path: Path) -> None:
    corpus = quorate.read(crowd(tmp_path, [span(MUSCLE_PAIN)], [span(MUSCLE_PAIN)], [span([[24, 28]])]))
    result = quorate.aggregate(corpus, "mv")
    first, second = (piece.sure for piece in result.pieces(0))
    assert result[0].spans[0].sure == pytest.approx(max(first * second, result[0].confidence), rel=1e-12)
    assert joined([Span(0, 1, "X", 0.5), Span(2, 3, "X…", 0.8)])[0].confidence == 0.5


def test_known_pieces_are_certain(tmp_path: Path) -> None:
    corpus = quorate.read(crowd(tmp_path, [], [], []))
    known = tmp_path / "known.jsonl"
    known.write_text(json.dumps({"id": "d0", "text": TEXT, "gold": [span(MUSCLE_PAIN)]}))
    result = quorate.aggregate(corpus, "mv", known=formats.read_known(known, corpus))
    assert result[0].spans == [APART._replace(confidence=1.0)]


def test_a_corrected_consensus_is_known_again_and_contradictions_are_refused(tmp_path: Path) -> None:
    corpus = quorate.read(crowd(tmp_path, [span(MUSCLE_PAIN)], [span(MUSCLE_PAIN)]))
    path = tmp_path / "out.jsonl"
    quorate.aggregate(corpus, "mv").write(path)
    assert formats.read_known(path, corpus) == {"d0": TAGS}
    (line,) = map(json.loads, path.read_text().splitlines())
    line["tags"][4] = "O"
    path.write_text(json.dumps(line))
    with pytest.raises(InputError, match="'tags' and 'spans' contradict each other"):
        formats.read_known(path, corpus)


def test_soft_pieces_keep_the_score_of_their_entity(tmp_path: Path) -> None:
    corpus = quorate.read(crowd(tmp_path, [span(MUSCLE_PAIN, score=0.75)]))
    assert corpus[0].annotations["a"][4] == {"B-ADR…": 0.75, "O": 0.25}
    formats.write(corpus, tmp_path / "out.json", "label-studio")
    assert quorate.read(tmp_path / "out.json")[0].annotations == corpus[0].annotations


def test_an_entity_of_soft_tags_is_as_sure_as_its_least_sure_token(tmp_path: Path) -> None:
    tags = ("O", {"B-ADR": 0.9, "O": 0.1}, "O", "O", {"B-ADR…": 0.6, "O": 0.4}, "O")
    formats.write(Corpus([Document("1", tuple(TEXT.split()), {"a": tags})]), tmp_path / "out.csv", "csv")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text()))
    assert (row["text"], row["confidence"]) == ("muscle pain", "0.6")


def test_later_pieces_marked_with_a_label_of_their_own_are_joined_whatever_their_order(tmp_path: Path) -> None:
    """As people mark them in tools without discontinuous spans; what overlaps one piece parts the entity from it."""
    spans = [span([[24, 28]], "ADR…"), span([[24, 34]], "WHEN"), span([[7, 13]])]
    layers = quorate.read_layers(crowd(tmp_path, spans))
    assert {name: corpus[0].annotations["a"] for name, corpus in layers.items()} == {
        "ADR": TAGS,
        "WHEN": ("O", "O", "O", "O", "B-WHEN", "I-WHEN"),
    }


def test_entities_woven_into_each_other_need_layers(tmp_path: Path) -> None:
    """Those that share a token, and those of one label of which one stands between the pieces of the other."""
    for inner, label in (([[18, 28]], "ADR"), ([[18, 23]], "ADR"), ([[24, 28]], "DRUG")):
        path = crowd(tmp_path, *[[span(MUSCLE_PAIN), span(inner, label)]] * 3)
        plain = quorate.read(path)
        assert find_spans(plain[0].annotations["a"]) == [APART]  # type: ignore[arg-type]
        assert any("overlapped a longer one" in note and "3 spans" in note for note in plain.notes)
        layered = quorate.aggregate_layers(quorate.read_layers(path), method="mv")
        first, last = inner[0]
        tokens = {7: 1, 18: 3, 24: 4}[first], {23: 4, 28: 5}[last]
        assert {found.bare for found in layered[0].spans} == {APART, Span(*tokens, label)}
    other = crowd(tmp_path, [span(MUSCLE_PAIN), span([[18, 23]], "DRUG")])
    assert quorate.read(other).notes == ()
    assert len(quorate.read_layers(other)) == 1


# --- scores, by hand ----------------------------------------------------------------------------------------------


GOLD = ["O", "B-ADR", "O", "O", "B-ADR…", "O", "B-DRUG"]
HALF = ["O", "B-ADR", "O", "O", "O", "O", "B-DRUG"]
TWO = ["O", "B-ADR", "O", "O", "B-ADR", "O", "B-DRUG"]
FULL = ["O", "B-ADR", "I-ADR", "I-ADR", "I-ADR", "O", "B-DRUG"]


def test_strict_scores_want_all_pieces() -> None:
    assert score.strict([GOLD], [GOLD]).f1 == 1
    assert score.strict([HALF], [GOLD]) == score.PRF(0.5, 0.5, 0.5)
    assert score.strict([TWO], [GOLD]).precision == pytest.approx(1 / 3)
    assert score.strict([FULL], [GOLD]).f1 == 0.5
    assert set(score.strict_by_type([HALF], [GOLD])) == {"ADR", "DRUG"}


def test_relaxed_scores_count_the_tokens_of_pieces() -> None:
    assert score.relaxed([HALF], [GOLD])[:2] == (1.0, 0.75)
    assert score.relaxed([FULL], [GOLD])[:2] == (0.75, 1.0)
    assert score.relaxed([TWO], [GOLD])[:2] == (1.0, 1.0)


def test_partial_and_typed_scores() -> None:
    assert score.partial([FULL], [GOLD])[:2] == (0.75, 0.75)
    assert score.partial([GOLD], [GOLD]).f1 == score.typed([FULL], [GOLD]).f1 == 1
    between = ["O", "O", "B-ADR", "I-ADR", "O", "O", "B-DRUG"]  # where the gold has a gap: nothing is shared
    assert score.typed([between], [GOLD])[:2] == score.partial([between], [GOLD])[:2] == (0.5, 0.5)


def test_kinds_of_errors() -> None:
    kinds = score.error_kinds([FULL], [GOLD])
    assert (kinds.exact, kinds.partial, kinds.late_start, kinds.early_finish) == (1, 1, 0, 0)
    assert kinds.length_error == pytest.approx((4 + 1) / 2 - (2 + 1) / 2)
    assert score.error_kinds([HALF], [GOLD]).early_finish == 1
    assert score.error_kinds([TWO], [GOLD]).split == 1
    other = [tag.replace("ADR", "DRUG") for tag in GOLD]
    assert score.error_kinds([other], [GOLD]).wrong_type == 1


def test_agreement_counts_whole_entities() -> None:
    same = Corpus([Document("1", ("w",) * 7, {"a": tuple(GOLD), "b": tuple(GOLD)})])
    half = Corpus([Document("1", ("w",) * 7, {"a": tuple(GOLD), "b": tuple(HALF)})])
    assert score.measure_agreement(same).spans_matched == 1
    assert score.measure_agreement(half).spans_matched == 0.5
    assert score.measure_agreement(same).unitizing_alpha == 1


def test_pieces_are_units_by_themselves_for_krippendorff() -> None:
    two = Corpus([Document("1", ("w",) * 7, {"a": tuple(GOLD), "b": tuple(TWO)})])
    assert score.measure_agreement(two).unitizing_alpha == 1
    assert score.measure_agreement(two).spans_matched == pytest.approx(2 * 1 / (2 + 3))


def test_confidence_is_judged_by_the_whole_entity() -> None:
    found = [Span(1, 5, "ADR", 0.9, pieces=((1, 2), (4, 5))), Span(6, 7, "DRUG", 0.8)]
    assert score.span_reliability([found], [GOLD], bins=1).bins[0].right == 1
    assert score.span_reliability([found], [HALF], bins=1).bins[0].right == 0.5


# --- tools --------------------------------------------------------------------------------------------------------


def test_brat_and_back(tmp_path: Path) -> None:
    for name in ("ann", "bob"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "1.txt").write_text(TEXT)
        (tmp_path / "in" / name / "1.ann").write_text("T1\tADR 7 13;24 28\tmuscle pain\n")
    corpus = quorate.read(tmp_path / "in")
    assert corpus.notes == ()
    quorate.aggregate(corpus, "mv").write(tmp_path / "out", "brat")
    assert (tmp_path / "out" / "1.ann").read_text().splitlines()[0] == "T1\tADR 7 13;24 28\tmuscle pain"


def test_a_span_of_brat_over_two_lines_is_continuous(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("muscle\npain")
    (tmp_path / "1.ann").write_text("T1\tADR 0 6;7 11\tmuscle pain\n")
    assert list(quorate.read(tmp_path)[0].annotations.values()) == [("B-ADR", "I-ADR")]


EMOJI = "👋 muscle 👋 and joint pain"
ADR_REGIONS = [(3, 9, "muscle"), (23, 27, "pain")]  # in UTF-16


def region(name: str, start: int, end: int, text: str, label: str = "ADR") -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": [label]}
    return {"id": name, "type": "labels", "from_name": "ner", "to_name": "text", "value": value}


def relation(one: str, other: str, *labels: str) -> dict[str, Any]:
    return {"type": "relation", "from_id": one, "to_id": other, "direction": "right", "labels": list(labels)}


def task(*result: dict[str, Any]) -> dict[str, Any]:
    return {"id": 1, "data": {"text": EMOJI}, "annotations": [{"completed_by": 7, "result": list(result)}]}


def label_studio(folder: Path, *result: dict[str, Any]) -> Corpus:
    (folder / "export.json").write_text(json.dumps([task(*result)]))
    return quorate.read(folder / "export.json")


PAIR = [region("x", *ADR_REGIONS[0]), region("y", *ADR_REGIONS[1])]


@pytest.mark.parametrize("ends", [("x", "y"), ("y", "x")])
def test_label_studio_joins_regions_by_a_relation(ends: tuple[str, str], tmp_path: Path) -> None:
    corpus = label_studio(tmp_path, *PAIR, relation(*ends, "continues"))
    assert corpus[0].annotations["7"] == ("O", "B-ADR", "O", "O", "O", "B-ADR…")
    assert not [note for note in corpus.notes if "UTF-16" not in note]
    result = quorate.aggregate(corpus, "mv")
    result.write(tmp_path / "out.json", "label-studio")
    (written,) = json.loads((tmp_path / "out.json").read_text())
    *regions, joining = written["predictions"][0]["result"]
    units = EMOJI.encode("utf-16-le")
    for found, (start, end, text) in zip(regions, ADR_REGIONS, strict=True):
        assert found["value"] == {"start": start, "end": end, "text": text, "labels": ["ADR"]}
        assert units[2 * start : 2 * end].decode("utf-16-le") == text
    ids = {"from_id": regions[0]["id"], "to_id": regions[1]["id"]}
    assert joining == {"type": "relation", **ids, "direction": "right", "labels": ["continues"]}


def test_relations_of_label_studio_that_join_nothing(tmp_path: Path) -> None:
    apart = ("O", "B-ADR", "O", "O", "O", "B-ADR")
    other = label_studio(tmp_path, *PAIR, relation("x", "y", "causes"))
    assert other[0].annotations["7"] == apart
    assert "1 region that is no labelled span of text was left out" in other.notes
    for odd in (relation("x", "z", "continues"), relation("x", "x", "continues"), relation("x", "w", "continues")):
        corpus = label_studio(tmp_path, *PAIR, region("w", 13, 16, "and", "DRUG"), odd)
        assert [tag for tag in corpus[0].annotations["7"] if "DRUG" not in str(tag)] == [*apart[:3], *apart[4:]]
        assert any("'continues' joined what are not two spans of one label" in note for note in corpus.notes)


def test_three_regions_of_label_studio_joined_in_any_order(tmp_path: Path) -> None:
    three = [*PAIR, region("w", 13, 16, "and")]
    corpus = label_studio(tmp_path, *three, relation("y", "w", "continues"), relation("y", "x", "continues"))
    assert corpus[0].annotations["7"] == ("O", "B-ADR", "O", "B-ADR…", "O", "B-ADR…")


def test_a_prediction_whose_pieces_are_joined_otherwise_is_another() -> None:
    three = [*PAIR, region("w", 13, 16, "and")]
    one, other = ({"result": [*three, relation("x", end, "continues")]} for end in ("y", "w"))
    assert _says_the_same(one, {"result": list(reversed(one["result"]))})
    assert not _says_the_same(one, other)
    assert not _says_the_same(one, {"result": three})


@pytest.mark.parametrize("how", ["relation layer", "relation label", "link", "plain link", "another relation"])
@pytest.mark.parametrize("kind", ["xmi", "json"])
def test_inception_joins_spans_by_relations_and_links(how: str, kind: str, tmp_path: Path) -> None:
    cassis = pytest.importorskip("cassis")
    types = cassis.TypeSystem()
    annotation, custom = "uima.tcas.Annotation", "webanno.custom."
    entity = types.create_type(f"{custom}Entity", supertypeName=annotation)
    types.create_feature(entity, "value", "uima.cas.String")
    link = types.create_type(f"{custom}EntityContinuesLink", supertypeName="uima.cas.TOP")
    types.create_feature(link, "role", "uima.cas.String")
    types.create_feature(link, "target", annotation)
    name = "Continues" if how == "relation layer" else "Relation"
    relations = types.create_type(f"{custom}{name}", supertypeName=annotation)
    for feature in ("Governor", "Dependent"):
        types.create_feature(relations, feature, annotation)
    types.create_feature(relations, "label", "uima.cas.String")
    if how == "plain link":
        types.create_feature(entity, "continues", annotation)
    else:
        types.create_feature(entity, "continues", "uima.cas.FSArray", elementType=link.name)
    cas = cassis.Cas(types)
    cas.sofa_string, cas.sofa_mime = EMOJI, "text/plain"
    one, other = (
        entity(begin=EMOJI.index(word), end=EMOJI.index(word) + len(word), value="ADR") for _, _, word in ADR_REGIONS
    )
    drug = entity(begin=EMOJI.index("and"), end=EMOJI.index("and") + 3, value="DRUG")
    cas.add_all([one, other, drug])
    if "relation" in how:
        label = {"relation label": "continues", "another relation": "causes"}.get(how)
        cas.add(relations(begin=other.begin, end=other.end, Governor=one, Dependent=other, label=label))
    elif how == "link":
        one.continues = types.get_type("uima.cas.FSArray")(elements=[link(role="", target=other)])
    else:
        one.continues = other
    path = tmp_path / f"ann.{kind}"
    if kind == "xmi":
        cas.to_xmi(path)
        types.to_xml(tmp_path / "TypeSystem.xml")
    else:
        cas.to_json(path)
    corpus = quorate.read(path)
    last = "B-ADR" if how == "another relation" else "B-ADR…"
    assert list(corpus[0].annotations.values()) == [("O", "B-ADR", "O", "B-DRUG", "O", last)]
    assert corpus.notes == ("1 document counts offsets in UTF-16 units, and is answered in them",)


def test_a_table_of_spans_has_a_row_an_entity(tmp_path: Path) -> None:
    corpus = quorate.read(crowd(tmp_path, [span(MUSCLE_PAIN), span([[29, 34]], "WHEN")]))
    formats.write(corpus, tmp_path / "out.csv", "csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [(row["start"], row["end"], row["text"], row["pieces"]) for row in rows] == [
        ("7", "28", "muscle pain", "7-13;24-28"),
        ("29", "34", "today", ""),
    ]
    formats.write(quorate.sample(), tmp_path / "plain.csv", "csv")
    assert "pieces" not in (tmp_path / "plain.csv").read_text().splitlines()[0]


def test_a_consensus_in_a_file_is_written_in_another_format(tmp_path: Path) -> None:
    from quorate.formats.consensus_export import consensus_export

    corpus = quorate.read(crowd(tmp_path, [span(MUSCLE_PAIN)], [span(MUSCLE_PAIN)]))
    path = tmp_path / "out.jsonl"
    quorate.aggregate(corpus, "mv").write(path)
    formats.write(consensus_export(formats.read_consensus(path)), tmp_path / "brat", "brat")
    assert (tmp_path / "brat" / "d0.ann").read_text().startswith("T1\tADR 7 13;24 28\tmuscle pain\n")
    (line,) = map(json.loads, path.read_text().splitlines())
    for odd in ([[4, 5], [1, 2]], [[1, 3], [2, 5]], [[1, 2], [4, 9]], [[0, 2], [4, 5]]):
        line["spans"][0]["token_pieces"] = odd
        path.write_text(json.dumps(line))
        with pytest.raises(InputError, match="tags or spans that do not fit the tokens"):
            formats.write(consensus_export(formats.read_consensus(path)), tmp_path / "odd", "brat")


def test_renamed_labels_take_their_pieces_along(tmp_path: Path) -> None:
    path = crowd(tmp_path, [span(MUSCLE_PAIN)])
    renamed = ("O", "B-AE", "O", "O", "B-AE…", "O")
    assert quorate.read(path, map_labels={"ADR": "AE"})[0].annotations["a"] == renamed
    formats.write(quorate.read(path), tmp_path / "tags.jsonl")
    for names in ({"ADR": "AE"}, {"*": "AE"}):
        assert quorate.read(tmp_path / "tags.jsonl", map_labels=names)[0].annotations["a"] == renamed
    assert set(quorate.read(tmp_path / "tags.jsonl", map_labels={"ADR": None})[0].annotations["a"]) == {"O"}


def test_tags_of_pieces_go_into_the_layer_of_their_label(tmp_path: Path) -> None:
    """Where one file has tags and nesting comes from another."""
    formats.write(quorate.read(crowd(tmp_path, [span(MUSCLE_PAIN)])), tmp_path / "tags.jsonl")
    nested = {"id": "n", "text": "a b", "annotations": {"a": [span([[0, 3]]), span([[0, 1]], "DRUG")]}}
    (tmp_path / "nested.jsonl").write_text(json.dumps(nested))
    layers = quorate.read_layers(tmp_path / "tags.jsonl", tmp_path / "nested.jsonl")
    assert layers["ADR"]["d0"].annotations["a"] == TAGS
    assert set(layers["DRUG"]["d0"].annotations["a"]) == {"O"}


def test_the_type_of_pieces_brings_that_of_entities() -> None:
    corpus = Corpus([Document("1", ("a", "b"), {"x": ("B-ADR…", "O"), "y": ("B-ADR…", "O")})])
    assert corpus.tagset() == TagSet.of_types(corpus.tagset().scheme, ["ADR", "ADR…"])
    assert quorate.aggregate(corpus, "mv")[0].spans[0].bare == Span(0, 1, "ADR")


# --- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([[7, 13], [24, 99]], r"span 24–99 'ADR' ends after the text, which ends at 34"),
        ([[7, 13], [28, 24]], r"span 28–24 'ADR' is not a span"),
        ([[-1, 13], [24, 28]], r"span -1–13 'ADR' is not a span"),
        ([[7, 13], ["a", 28]], r"entry 1 of entry 2 of pieces of entry 1 must be a whole number, not a text"),
        ([[7, 13], [24]], r"entry 2 of pieces of entry 1 must be a list \[…\] of length 2, not 1"),
    ],
)
def test_damaged_pieces_are_refused(pieces: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        quorate.read(crowd(tmp_path, [{"start": 7, "end": 28, "label": "ADR", "pieces": pieces}]))


def test_pieces_must_be_of_their_span(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"span 0–28 'ADR' does not go from the start of its first piece to the end"):
        quorate.read(crowd(tmp_path, [{"start": 0, "end": 28, "label": "ADR", "pieces": MUSCLE_PAIN}]))


@pytest.mark.parametrize(
    ("pieces", "tags", "note"),
    [
        ([[24, 28], [7, 13]], TAGS, None),
        ([[7, 13], [10, 17], [24, 28]], ("O", "B-ADR", "I-ADR", "O", "B-ADR…", "O"), "pieces that overlapped"),
        ([[7, 13], [13, 14], [24, 28]], TAGS, "ended in blanks"),
        ([[7, 13], [17, 18], [24, 28]], TAGS, "pieces that held no token"),
        ([[7, 13], [20, 20], [24, 28]], TAGS, "pieces that held no token"),
        ([[7, 13], [14, 28]], ("O", "B-ADR", "I-ADR", "I-ADR", "I-ADR", "O"), None),
        ([[7, 9], [24, 28]], TAGS, "widened to whole tokens"),
    ],
)
def test_pieces_are_mended_by_rule_and_counted(
    pieces: list[list[int]], tags: tuple[str, ...], note: str | None, tmp_path: Path
) -> None:
    given = {"start": 7, "end": 28, "label": "ADR", "pieces": pieces}
    corpus = quorate.read(crowd(tmp_path, [given]))
    assert corpus[0].annotations["a"] == tags
    assert len(corpus.notes) == (note is not None)
    assert note is None or note in corpus.notes[0]


def test_words_of_pieces_are_compared_with_the_file(tmp_path: Path) -> None:
    right, wrong = span(MUSCLE_PAIN, text="muscle pain"), span(MUSCLE_PAIN, text="muscle and joint pain")
    assert quorate.read(crowd(tmp_path, [right])).notes == ()
    assert "does not hold the words" in quorate.read(crowd(tmp_path, [wrong])).notes[0]


def test_damaged_pieces_of_brat(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text(TEXT)
    for offsets in ("7 13;", "7 13;24", ";7 13", "7 13 24 28", "7 13,24 28"):
        (tmp_path / "1.ann").write_text(f"T1\tADR {offsets}\tmuscle pain\n")
        with pytest.raises(InputError, match=r"1\.ann:1: not a span"):
            quorate.read(tmp_path)
    (tmp_path / "1.ann").write_text("T1\tADR 7 13;24 280\tmuscle pain\n")
    with pytest.raises(InputError, match="ends after the text"):
        quorate.read(tmp_path)


def test_known_pieces_without_a_token_are_refused(tmp_path: Path) -> None:
    corpus = quorate.read(crowd(tmp_path, []))
    known = tmp_path / "known.jsonl"
    known.write_text(json.dumps({"id": "d0", "text": TEXT, "gold": [span([[7, 13], [17, 18]])]}))
    with pytest.raises(InputError, match="spans that have pieces that hold no token cannot be known labels"):
        formats.read_known(known, corpus)


def test_recalibration_takes_the_gap_for_outside() -> None:
    lines = Recalibration(Line(0, 1), Line(1, 1), Line(-1, 1), Line(0, 1))
    _, tokens, spans = recalibrated(lines, 0.1, np.full(6, 0.5), [APART._replace(confidence=0.99)])
    inside, outside = 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))
    assert tokens == pytest.approx([outside, inside, outside, outside, inside, outside])
    assert [span.bare for span in spans] == [APART]
    assert spans[0].confidence == pytest.approx(inside)


# --- what people look at ------------------------------------------------------------------------------------------


def test_reports_figures_and_notebooks_show_pieces_with_a_hint(tmp_path: Path) -> None:
    people = [[span(MUSCLE_PAIN)], [span(MUSCLE_PAIN)], [span([[7, 13]])]]
    corpus = quorate.read(crowd(tmp_path, *people, copies=6))
    model = bsc("bsc-seq").fit(corpus)
    shown = collect(model, model.result_, title="", documents=None)
    (row, *_) = shown.documents.list
    assert [found[:3] for found in row.spans] == [(1, 2, "ADR"), (4, 5, "ADR…")]
    assert [label.label for label in shown.labels.rows] == ["ADR"]
    assert shown.summary.spans == 6
    page = model.result_[0]._repr_html_()
    assert "<b>ADR</b>" in page
    assert "<b>ADR…</b>" in page
    assert model.result_.plot_document(0).axes


def test_an_audit_counts_whole_entities(tmp_path: Path) -> None:
    whole = [span(MUSCLE_PAIN)]
    result = quorate.aggregate(quorate.read(crowd(tmp_path, whole, whole, whole, copies=8)), "mv")
    result.write(tmp_path / "out.jsonl")
    drawn = quorate.audit.plan(result, 8)
    drawn.write(tmp_path / "plan.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "plan.jsonl").read_text().splitlines()]
    assert all(line["gold"] == [span(MUSCLE_PAIN, text="muscle pain")] for line in lines)
    for line in lines:
        line["checked"] = True
    lines[0]["gold"] = [span([[7, 13]])]
    (tmp_path / "plan.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = quorate.audit.result(tmp_path / "out.jsonl", tmp_path / "plan.jsonl")
    assert found.precision.value == found.recall.value == pytest.approx(7 / 8)
    found.write_recalibrated(tmp_path / "again.jsonl")
    (line, *_) = map(json.loads, (tmp_path / "again.jsonl").read_text().splitlines())
    assert line["spans"][0]["pieces"] == MUSCLE_PAIN
