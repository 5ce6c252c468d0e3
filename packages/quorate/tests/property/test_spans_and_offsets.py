"""Character spans go in and come out the same, whatever the text holds and whatever offsets count."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import quorate
from quorate import formats
from quorate.corpus.offsets import Ruler, Unit, find_units
from quorate.corpus.records import Document, Source
from quorate.corpus.spans import CharSpan, Span
from quorate.corpus.tags import find_spans
from quorate.corpus.tokens import Places, tokenize
from quorate.formats.exports import ExportAnnotation, ExportDocument, outward_spans
from quorate.formats.layering import deal
from quorate.formats.marked import Marked, Placed, Words, find_units_of, placed, tagged
from quorate.formats.notes import Notes

# Emoji alone and joined, marks that combine, right-to-left letters, Windows line ends, blanks of several kinds.
PIECES = [
    "Ada",
    "Ng",
    "co-op",
    "👋",
    "👩\u200d🔬",
    "cafe\u0301",
    "हिन्दी",
    "שלום",
    "عالم",
    "\u200f",
    "𝔘",
    "naïve",
    "3.5",
    ",",
]
BLANKS = [" ", "  ", "\r\n", "\n", "\t", "\u00a0", "\u3000", ""]
texts = st.lists(st.sampled_from(PIECES + BLANKS), max_size=25).map("".join)
any_text = st.one_of(texts, st.text(max_size=40).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)))


TextAndSpans = tuple[str, list[tuple[int, int, str]]]


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


ORACLES: dict[Unit, Callable[[str], int]] = {
    Unit.CODE_POINTS: len,
    Unit.UTF16: utf16_length,
    Unit.CODE_POINTS_LF: lambda text: len(text.replace("\r\n", "\n")),
    Unit.UTF16_LF: lambda text: utf16_length(text.replace("\r\n", "\n")),
}


@given(any_text, st.sampled_from(list(Unit)))
def test_rulers_agree_with_encoders(text: str, unit: Unit) -> None:
    ruler = Ruler(text, unit)
    for position in range(len(text) + 1):
        if text[max(position - 1, 0) : position + 1] == "\r\n":
            continue  # inside a line end that counts as one
        offset = ORACLES[unit](text[:position])
        assert ruler.outward(position) == offset
        back = ruler.inward(offset)
        assert back is not None
        assert not text[back:position].strip(
            "\r\n"
        )  # where two places are one in this unit, only a line end lies between
    assert ruler.length == ORACLES[unit](text)
    assert ruler.inward(-1) is None
    assert ruler.inward(ruler.length + 1) is None


@given(texts, st.sampled_from(list(Unit)), st.data())
def test_the_unit_is_told_by_the_words_of_the_spans(text: str, unit: Unit, data: st.DataObject) -> None:
    offsets = tokenize(text)
    assume(offsets)
    ruler = Ruler(text, unit)
    chosen = data.draw(st.lists(st.sampled_from(list(offsets)), min_size=1, max_size=5))
    claims = [CharSpan(ruler.outward(start), ruler.outward(end), "X", text[start:end]) for start, end in chosen]
    for found in find_units(text, claims):  # each of them puts every span on the words that it says
        other = Ruler(text, found)
        for claim in claims:
            start, end = other.inward(claim.start), other.inward(claim.end)
            assert start is not None
            assert end is not None
            assert "".join(text[start:end].split()) == "".join((claim.text or "").split())


@st.composite
def span_sets(draw: st.DrawFn) -> TextAndSpans:
    """A text, and token spans that do not overlap."""
    text = draw(texts)
    cuts = sorted(draw(st.sets(st.integers(0, len(tokenize(text))), max_size=8)))
    spans = []
    for first, last in zip(cuts[::2], cuts[1::2], strict=False):
        spans.append((first, last, draw(st.sampled_from(["PER", "LOC"]))))
    return text, spans


@given(span_sets(), st.sampled_from(list(Unit)))
def test_spans_to_tags_to_spans_returns_the_input(given_spans: TextAndSpans, unit: Unit) -> None:
    text, spans = given_spans
    offsets, ruler, notes = tokenize(text), Ruler(text, unit), Notes()
    places = [(offsets[first][0], offsets[last - 1][1], label) for first, last, label in spans]
    marks = [CharSpan(ruler.outward(start), ruler.outward(end), label) for start, end, label in places]
    laid = placed(Marked("1", text, {"ann": marks}, Source("x", 1), unit=unit), unit, Words(), notes)
    tags = tagged(laid.annotations["ann"], len(laid.document.tokens), notes)
    assert [span[:3] for span in find_spans(tags)] == spans  # type: ignore[arg-type]
    annotation = ExportAnnotation("quorate", find_spans(tags), tags)  # type: ignore[arg-type]
    out = list(outward_spans(ExportDocument(laid.document), annotation))
    assert [CharSpan(span.start, span.end, span.label) for span in out] == marks
    assert [span.text for span in out] == [text[start:end] for start, end, _ in places]
    assert not [note for note in notes.sentences() if "document counts" not in note]


@given(any_text, st.data())
def test_any_span_is_trimmed_or_widened_by_rule_and_counted(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    notes = Notes()
    marked = Marked("1", text, {"ann": [CharSpan(start, end, "X")]}, Source("x", 1))
    laid = placed(marked, Unit.CODE_POINTS, Words(), notes)
    touched = [n for n, (first, last) in enumerate(tokenize(text)) if first < end and start < last]
    found = laid.annotations["ann"]
    said = " ".join(notes.sentences())
    if not touched or start == end:
        assert not found
        assert "held no token" in said
        return
    assert [(span.start, span.end) for span in found] == [(touched[0], touched[-1] + 1)]
    begins, stops = tokenize(text)[touched[0]][0], tokenize(text)[touched[-1]][1]
    assert ("widened" in said) == (begins < start or stops > end)
    assert ("trimmed" in said) == (begins > start or stops < end)
    if begins > start:
        assert not text[start:begins].strip() or begins < start
    assert not text[stops:end].strip()


NAMES = ["label-studio", "doccano", "prodigy", "brat", "jsonl", "spacy", "conll", "parquet"]


@settings(deadline=None)
@given(span_sets(), st.sampled_from(NAMES))
def test_corpora_survive_every_format(given_spans: TextAndSpans, name: str) -> None:
    if name in ("spacy", "parquet"):
        pytest.importorskip({"spacy": "spacy", "parquet": "pyarrow"}[name])
    text, spans = given_spans
    offsets = tokenize(text)
    assume(offsets or name != "conll")  # columns hold no empty document
    places = [(offsets[first][0], offsets[last - 1][1], label) for first, last, label in spans]
    marks = [{"start": start, "end": end, "label": label, "text": text[start:end]} for start, end, label in places]
    with tempfile.TemporaryDirectory() as folder:
        line = {"id": "d", "text": text, "annotations": {"ann": marks, "bob": []}, "offset_unit": "code-points"}
        Path(folder, "in.jsonl").write_text(json.dumps(line))
        corpus = quorate.read(f"{folder}/in.jsonl")
        assert [span[:3] for span in find_spans(corpus[0].annotations["ann"])] == spans  # type: ignore[arg-type]
        out = f"{folder}/out.zip" if name == "doccano" else f"{folder}/out"
        formats.write(corpus, out, name)
        back = quorate.read(out, format=name, offsets="code-points")
    assert back[0].tokens == corpus[0].tokens
    assert back[0].annotations == corpus[0].annotations
    if name not in ("conll", "parquet"):
        assert back[0].text == text


@st.composite
def nests(draw: st.DrawFn) -> list[Placed]:
    """Documents with spans that overlap as they please."""
    documents = []
    for number in range(draw(st.integers(1, 3))):
        length = draw(st.integers(1, 8))
        annotations = {}
        for name in ("ann", "bob"):
            found = set()
            for _ in range(draw(st.integers(0, 6))):
                first = draw(st.integers(0, length - 1))
                last = draw(st.integers(first + 1, length))
                found.add(Span(first, last, draw(st.sampled_from("XYZ")), layer=draw(st.sampled_from(["", "s"]))))
            annotations[name] = sorted(found)
        documents.append(Placed(Document(str(number), ("w",) * length), annotations, None))
    return documents


@given(nests())
def test_layers_take_every_span_once_and_none_overlap_in_them(documents: list[Placed]) -> None:
    dealt = deal(documents)
    for number, before in enumerate(documents):
        for name, spans in before.annotations.items():
            held = [after[number].annotations[name] for _, after in dealt]
            assert sorted(span for own in held for span in own) == spans
            for own in held:
                notes = Notes()
                tags = tagged(own, len(before.document.tokens), notes)
                assert notes.sentences() == []
                assert sorted(find_spans(tags)) == sorted(span.bare for span in own)  # type: ignore[arg-type]


def test_a_span_that_somebody_gives_with_and_without_a_score_is_dealt_to_two_layers() -> None:
    spans = {"ann": [Span(0, 1, "X", 0.9), Span(0, 1, "X")]}
    dealt = deal([Placed(Document("1", ("w",)), spans, None)])
    assert [layer.name for layer, _ in dealt] == ["X", "X (1 deep)"]
    assert [after[0].annotations["ann"] for _, after in dealt] == [[span] for span in spans["ann"]]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8))
def test_places_are_a_sequence_of_pairs(pairs: list[tuple[int, int]]) -> None:
    places = Places(pairs)
    assert list(places) == pairs
    assert len(places) == len(pairs)
    assert places == pairs
    assert places[:2] == tuple(pairs[:2])
    assert [places[n] for n in range(len(pairs))] == pairs
    assert places == Places(pairs)


def test_a_document_that_cannot_tell_follows_the_others_of_its_file() -> None:
    emoji = "👋 Ada sang"
    lines = [
        {"id": "a", "text": emoji, "annotations": {"x": [{"start": 3, "end": 6, "label": "P"}]}},
        {"id": "b", "text": emoji, "annotations": {"x": [{"start": 3, "end": 6, "label": "P", "text": "Ada"}]}},
    ]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
        corpus = quorate.read(f"{folder}/in.jsonl")
    assert [document.unit for document in corpus] == [Unit.UTF16, Unit.UTF16]
    assert [document.annotations["x"] for document in corpus] == [("O", "B-P", "O")] * 2


def jsonl_line(text: str, unit: Unit, *words: str) -> dict[str, object]:
    """A document whose spans are of these words, with offsets in a unit."""
    ruler = Ruler(text, unit)
    places = [(text.index(word), text.index(word) + len(word), word) for word in words]
    spans = [
        {"start": ruler.outward(start), "end": ruler.outward(end), "label": "P", "text": word}
        for start, end, word in places
    ]
    return {"text": text, "annotations": {"x": spans}}


def read_lines(*lines: dict[str, object]) -> quorate.Corpus:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
        return quorate.read(f"{folder}/in.jsonl")


def test_a_document_takes_a_unit_that_holds_its_words_whatever_the_others_count() -> None:
    """The words of the last document lie in both units with a line end of one; those before count code points."""
    others = [jsonl_line(f"👋👋 a\r\nAda {n}", Unit.CODE_POINTS, "Ada") for n in range(3)]
    own = jsonl_line("x\r\nAda met\r\nBob and\r\nCho 👋", Unit.CODE_POINTS_LF, "Ada", "Bob", "Cho")
    corpus = read_lines(*others, own)
    tags = corpus[3].annotations["x"]
    assert [token for token, tag in zip(corpus[3].tokens, tags, strict=True) if tag == "B-P"] == ["Ada", "Bob", "Cho"]
    assert corpus[3].unit is Unit.CODE_POINTS_LF
    assert not any("do not hold the words" in note for note in corpus.notes)


def test_the_other_documents_choose_among_the_units_that_hold_the_words() -> None:
    """Most of the file counts line ends as two; of the units that suit the last document, the wide one is met too."""
    most = [jsonl_line(f"👋👋 a\r\nAda {n}", Unit.CODE_POINTS, "Ada") for n in range(3)]
    some = [jsonl_line(f"👋👋 a\r\nAda {n}", Unit.UTF16_LF, "Ada") for n in range(2)]
    own = jsonl_line("x\r\nAda 👋", Unit.UTF16_LF, "Ada")
    assert read_lines(*most, *some, own)[5].unit is Unit.UTF16_LF


def test_a_unit_told_elsewhere_counts_where_it_measures_the_same() -> None:
    """Without a line end in it a text is measured alike with and without line ends of one."""
    others = [jsonl_line(f"👋👋 a\r\nAda {n}", Unit.UTF16_LF, "Ada") for n in range(2)]
    bare: dict[str, object] = {"text": "👋 Ada sang", "annotations": {"x": [{"start": 3, "end": 6, "label": "P"}]}}
    corpus = read_lines(*others, bare)
    assert corpus[2].annotations["x"] == ("O", "B-P", "O")
    assert corpus[2].unit is Unit.UTF16


def test_no_text_needs_no_unit() -> None:
    assert find_units_of(Marked("1", None, {}, Source("x", 1), tokens=["a"])) == [Unit.CODE_POINTS]
