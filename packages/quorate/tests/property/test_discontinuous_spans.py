"""Entities of several pieces go into tags, layers and files, and come out as they were."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import quorate
from quorate import formats
from quorate.corpus.discontinuous import in_pieces, joined
from quorate.corpus.offsets import Ruler, Unit
from quorate.corpus.records import Document, hard_tags
from quorate.corpus.schemes import Scheme
from quorate.corpus.spans import Span
from quorate.corpus.tags import TagSet, find_spans
from quorate.corpus.tokens import tokenize
from quorate.formats.layering import deal
from quorate.formats.marked import Placed, tagged
from quorate.formats.notes import Notes

LABELS = ("ADR", "DRUG")
LENGTH = 10
TEXT = "muscle 👋 pain\r\nand a\u0301 שלום sore 👩\u200d🔬 3.5 , naïve \n𝔘 ache"


@st.composite
def any_entity(draw: st.DrawFn, sets: Sequence[str] = ("",)) -> Span:
    """A span of one to three pieces that do not touch."""
    edges = sorted(draw(st.sets(st.integers(0, LENGTH), min_size=2, max_size=6)))
    pieces = list(zip(edges[::2], edges[1::2], strict=False))
    return Span.of_pieces(pieces, draw(st.sampled_from(LABELS)), layer=draw(st.sampled_from(sets)))


def fits(span: Span, others: list[Span]) -> bool:
    """An oracle of its own: no token is shared, and none of its label stands between the pieces of another."""
    for other in others:
        if set(span.tokens) & set(other.tokens):
            return False
        between = set(range(span.start, span.end)) & set(range(other.start, other.end))
        if span.label == other.label and between:
            return False
    return True


@st.composite
def entities(draw: st.DrawFn) -> list[Span]:
    """Spans that one sequence of tags can hold."""
    kept: list[Span] = []
    for span in draw(st.lists(any_entity(), max_size=6)):
        if fits(span, kept):
            kept.append(span)
    return sorted(kept)


@given(entities(), st.sampled_from([Scheme.BIO, Scheme.BIOES]))
def test_tags_hold_entities_of_several_pieces(spans: list[Span], scheme: Scheme) -> None:
    tagset = TagSet.of_types(scheme, [f"{label}{more}" for label in LABELS for more in ("", "…")])
    tags = tagset.tags(spans, LENGTH)
    assert tagset.is_valid(tags)
    assert find_spans(tags) == spans
    assert sorted(joined(in_pieces(spans))) == spans


@given(entities(), st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6))
def test_taking_apart_and_joining_keeps_what_was_stated(spans: list[Span], sure: list[float]) -> None:
    stated = [span._replace(confidence=p, layer="a") for span, p in zip(spans, sure, strict=False)]
    assert sorted(joined(in_pieces(stated))) == sorted(stated)


@given(st.lists(any_entity(), max_size=6))
def test_what_tags_cannot_hold_is_left_out_and_counted(spans: list[Span]) -> None:
    notes = Notes()
    tags = tagged(spans, LENGTH, notes)
    kept = find_spans(tags)  # type: ignore[arg-type]
    assert set(kept) <= set(spans)
    left_out = len(spans) - len(kept)
    assert notes.sentences() == ([] if not left_out else [notes.sentences()[0]])
    assert not left_out or notes.sentences()[0].startswith(f"{left_out} span{'s' * (left_out > 1)} overlapped")
    for span in spans:
        assert span in kept or not fits(span, kept)


@example([[Span(0, 5, "ADR", layer="", pieces=((0, 1), (4, 5))), Span(2, 3, "ADR", layer="s")]])
@given(st.lists(st.lists(any_entity(("", "s")), max_size=6, unique=True), min_size=1, max_size=3))
def test_layers_take_every_entity_whole(everybody: list[list[Span]]) -> None:
    said = {f"a{number}": spans for number, spans in enumerate(everybody)}
    dealt = deal([Placed(Document("1", ("w",) * LENGTH), said, None)])
    for name, spans in said.items():
        held = [after[0].annotations[name] for _, after in dealt]
        assert sorted(span for own in held for span in own) == sorted(spans)
        for own in held:
            notes = Notes()
            found = find_spans(tagged(own, LENGTH, notes))  # type: ignore[arg-type]
            assert found == sorted(span.bare for span in own)
            assert notes.sentences() == []


def offsets_of(span: Span, unit: Unit) -> dict[str, Any]:
    """A span of ``TEXT`` as JSON."""
    places, ruler = tokenize(TEXT), Ruler(TEXT, unit)
    parts = [(places[first][0], places[last - 1][1]) for first, last in span.parts]
    outward = [[ruler.outward(start), ruler.outward(end)] for start, end in parts]
    words = " ".join(TEXT[start:end] for start, end in parts)
    found = {"start": outward[0][0], "end": outward[-1][1], "label": span.label, "text": words}
    return {**found, "pieces": outward} if span.pieces else found


def in_corpus(folder: str, spans: list[Span], unit: Unit) -> quorate.Corpus:
    said = {"ann": [offsets_of(span, unit) for span in spans], "bob": []}
    line = {"id": "d", "text": TEXT, "annotations": said, "offset_unit": unit.value}
    Path(folder, "in.jsonl").write_text(json.dumps(line))
    return quorate.read(f"{folder}/in.jsonl")


NAMES = ["label-studio", "doccano", "prodigy", "brat", "jsonl", "cas", "spacy", "conll", "parquet"]
NEEDS = {"cas": "cassis", "spacy": "spacy", "parquet": "pyarrow"}


@settings(deadline=None)
@given(entities(), st.sampled_from(NAMES), st.sampled_from(list(Unit)))
def test_every_format_brings_them_back(spans: list[Span], name: str, unit: Unit) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    with tempfile.TemporaryDirectory() as folder:
        corpus = in_corpus(folder, spans, unit)
        assert find_spans(corpus[0].annotations["ann"]) == spans  # type: ignore[arg-type]
        out = f"{folder}/out.zip" if name == "doccano" else f"{folder}/out"
        formats.write(corpus, out, name)
        if name == "cas":
            back = quorate.read(f"{out}/ann", f"{out}/bob", annotator_from="folder")
        else:
            back = quorate.read(out, format=name, offsets=None if name == "jsonl" else "code-points")
    assert back[0].annotations == corpus[0].annotations
    assert not [note for note in back.notes if "documents count" not in note]


@settings(deadline=None)
@given(entities(), st.sampled_from(list(Unit)))
def test_offsets_of_the_consensus_are_those_of_the_words(spans: list[Span], unit: Unit) -> None:
    """JSONL and brat, read by nothing of this package."""
    assume(spans)
    places = tokenize(TEXT)
    words = {
        (span.label, tuple(TEXT[places[first][0] : places[last - 1][1]] for first, last in span.parts))
        for span in spans
    }
    with tempfile.TemporaryDirectory() as folder:
        corpus = in_corpus(folder, spans, unit)
        result = quorate.aggregate(corpus, "mv", known={"d": hard_tags(corpus[0].annotations["ann"])})
        assert [span.bare for span in result[0].spans] == spans
        result.write(f"{folder}/out.jsonl")
        result.write(f"{folder}/brat", "brat")
        (line,) = map(json.loads, Path(folder, "out.jsonl").read_text().splitlines())
        text = Path(folder, "brat", "d.txt").read_bytes().decode()
        brat = Path(folder, "brat", "d.ann").read_bytes().decode()
    assert {(span["label"], held_by(line["text"], span, unit)) for span in line["spans"]} == words
    for span in line["spans"]:
        tokens = [line["tokens"][n] for start, end in token_pieces(span) for n in range(start, end)]
        assert "".join(tokens) == "".join(span["text"].split())
    rows = re.findall(r"^T\d+\t(\S+) ([\d ;]+)\t(.*)$", brat, re.MULTILINE)
    for label, where, said in rows:
        held = tuple(text[int(a) : int(b)] for a, b in re.findall(r"(\d+) (\d+)", where))
        assert (label, held) in words
        assert said.split() == " ".join(held).split()
    assert len(rows) == len(words)


def held_by(text: str, span: dict[str, Any], unit: Unit) -> tuple[str, ...]:
    """The words at a span's offsets, by an encoder; where a line end is one, the words are compared with its text."""
    pieces = span.get("pieces", [[span["start"], span["end"]]])
    assert (span["start"], span["end"]) == (pieces[0][0], pieces[-1][1])
    joined_ends = unit in (Unit.CODE_POINTS_LF, Unit.UTF16_LF)
    measured = text.replace("\r\n", "\n") if joined_ends else text
    wide = unit in (Unit.UTF16, Unit.UTF16_LF)
    encoded, size = (measured.encode("utf-16-le"), 2) if wide else (measured.encode("utf-32-le"), 4)
    held = [encoded[size * start : size * end].decode("utf-16-le" if wide else "utf-32-le") for start, end in pieces]
    return tuple(words.replace("\n", "\r\n") if joined_ends and "\r\n" in span["text"] else words for words in held)


def token_pieces(span: dict[str, Any]) -> list[list[int]]:
    return span.get("token_pieces", [[span["token_start"], span["token_end"]]])  # type: ignore[no-any-return]
