"""Tables of spans with a file of texts, and what it means that an annotator has no row of a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quorate
from quorate import Corpus, Document, InputError, SettingsError, formats

# An emoji, a Windows line end, a combining mark and a letter beyond the basic plane.
TEXT = "👋\r\nZoe\u0308 met \U0001d400da"
PLACE = TEXT.index("\U0001d400da")
ROWS = f"""document,annotator,start,end,label,text
1,ann,{PLACE},{PLACE + 3},PER,\U0001d400da
1,bob,{PLACE},{PLACE + 3},PER,\U0001d400da
2,ann,0,2,PER,Bo
"""
TEXTS = f'id,text\r\n1,"{TEXT}"\r\n2,Bo ran\r\n3,nobody came\r\n'


@pytest.fixture
def spans(tmp_path: Path) -> Path:
    (tmp_path / "texts.csv").write_text(TEXTS, encoding="utf-8", newline="")
    (tmp_path / "spans.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path / "spans.csv"


def read(spans: Path, **options: Any) -> Corpus:
    return quorate.read(spans, texts=spans.parent / "texts.csv", **options)


def test_texts_are_in_a_file_of_their_own(spans: Path) -> None:
    corpus = read(spans, seen="marked")
    assert [document.id for document in corpus] == ["1", "2", "3"]
    assert corpus["1"].text == TEXT
    assert corpus["1"].annotations == dict.fromkeys(("ann", "bob"), ("O", "O", "O", "B-PER"))
    assert corpus["2"].annotations == {"ann": ("B-PER", "O")}
    with pytest.raises(InputError, match=r"spans.csv:1: a table of spans, which has no texts \(.*--texts FILE"):
        quorate.read(spans)


@pytest.mark.parametrize(("moved", "unit"), [(1, "utf-16"), (0, "utf-16-lf"), (-1, "code-points-lf")])
def test_offsets_may_count_something_else(spans: Path, moved: int, unit: str) -> None:
    """The end of a span is one further, where its first letter counts as two."""
    longer = 4 if unit.startswith("utf") else 3
    rows = ROWS.replace(f"{PLACE},{PLACE + 3}", f"{PLACE + moved},{PLACE + moved + longer}")
    spans.write_text(rows, encoding="utf-8")
    corpus = read(spans, seen="all")
    assert corpus["1"].annotations["ann"] == ("O", "O", "O", "B-PER")
    assert corpus["1"].unit == unit


def test_no_row_is_asked_for(spans: Path) -> None:
    with pytest.raises(InputError, match=r"2 documents have no row of some annotators.*--seen all, --seen marked"):
        read(spans)


def test_all_saw_all(spans: Path) -> None:
    corpus = read(spans, seen="all")
    assert corpus["2"].annotations == {"ann": ("B-PER", "O"), "bob": ("O", "O")}
    assert corpus["3"].annotations == {"ann": ("O", "O"), "bob": ("O", "O")}
    assert corpus.notes == (
        "2 documents have no row of some annotators, who count as having seen them and marked nothing",
    )


def test_only_what_has_a_row_was_seen(spans: Path) -> None:
    corpus = read(spans, seen="marked")
    assert (list(corpus["2"].annotations), list(corpus["3"].annotations)) == (["ann"], [])
    assert corpus.notes == ("2 documents have no row of some annotators, who count as not having seen them",)


@pytest.mark.parametrize(
    "listed",
    [
        "document,annotator\n1,ann\n1,bob\n2,ann\n3,bob\n3,cho\n",
        '[{"id": 1, "annotators": ["ann", "bob"]}, {"id": 2, "annotators": ["ann"]}, '
        '{"id": 3, "annotators": ["bob", "cho"]}]',
    ],
)
def test_a_file_says_who_saw_what(spans: Path, listed: str) -> None:
    seen = spans.parent / "seen"
    seen.write_text(listed)
    corpus = read(spans, seen=seen)
    assert (list(corpus["2"].annotations), list(corpus["3"].annotations)) == (["ann"], ["bob", "cho"])
    assert corpus["3"].annotations["cho"] == ("O", "O")


def test_a_column_of_the_texts_says_who_saw_what(spans: Path) -> None:
    texts = f'id,annotators,text\r\n1,ann;bob,"{TEXT}"\r\n2,ann; cho,Bo ran\r\n3,,nobody came\r\n'
    (spans.parent / "texts.csv").write_text(texts, encoding="utf-8", newline="")
    corpus = read(spans)
    assert (list(corpus["2"].annotations), list(corpus["3"].annotations)) == (["ann", "cho"], [])


def test_a_row_without_a_span_says_that_a_document_was_seen(spans: Path) -> None:
    spans.write_text(ROWS + "2,bob,,,,\n", encoding="utf-8")
    corpus = read(spans)
    assert corpus["2"].annotations["bob"] == ("O", "O")
    assert corpus["3"].annotations == {}
    assert corpus.notes == ("1 document has no row of some annotators, who count as not having seen it",)


def test_a_frame_asks_too() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [("1", "ann", 0, 3, "PER"), ("1", "bob", 0, 3, "PER"), ("2", "ann", 0, 2, "PER")]
    frame = pandas.DataFrame(rows, columns=["document", "annotator", "start", "end", "label"])
    texts = pandas.DataFrame({"document": ["1", "2"], "text": ["Ada sang", "Bo ran"]})
    with pytest.raises(InputError, match="1 document has no row of some annotators"):
        Corpus.from_pandas(frame, texts)
    assert Corpus.from_pandas(frame, texts, seen="all")["2"].annotations["bob"] == ("O", "O")
    assert "bob" not in Corpus.from_pandas(frame, texts, seen={"1": ["bob"]})["2"].annotations
    whole = frame.assign(text=["Ada sang", "Ada sang", "Bo ran"])
    assert quorate.read(whole, seen="all")["2"].annotations["bob"] == ("O", "O")


def test_spans_in_parquet(spans: Path) -> None:
    pandas, parquet = pytest.importorskip("pandas"), spans.with_suffix(".parquet")
    pytest.importorskip("pyarrow")
    pandas.read_csv(spans, dtype={"document": str}).to_parquet(parquet)
    assert read(parquet, seen="all")["1"].annotations == read(spans, seen="all")["1"].annotations


@pytest.mark.parametrize("given", ["jsonl", "conll"])
def test_what_is_written_comes_back_with_the_texts_of_its_source(tmp_path: Path, given: str) -> None:
    sample = Corpus(quorate.sample().documents[:40])
    formats.write(sample, tmp_path / f"crowd.{given}")
    formats.write(sample, tmp_path / "spans.csv")
    back = quorate.read(tmp_path / "spans.csv", texts=tmp_path / f"crowd.{given}")
    assert {one.id: one.annotations for one in back} == {one.id: one.annotations for one in sample}
    assert not any("widened" in note for note in back.notes)


def test_offsets_of_tokens_are_not_taken_for_characters(tmp_path: Path) -> None:
    corpus = Corpus([Document("1", ("The", "choir", "of", "Bath"), {"ann": ("O", "O", "O", "B-LOC")})])
    formats.write(corpus, tmp_path / "spans.csv")
    (tmp_path / "texts.csv").write_text("id,text\n1,The choir of Bath\n")
    with pytest.raises(InputError, match="its offsets count tokens, as its documents had no text"):
        quorate.read(tmp_path / "spans.csv", texts=tmp_path / "texts.csv")
    (tmp_path / "tokens.jsonl").write_text('{"id": "1", "text": "The choir  of Bath", "annotations": {"ann": []}}')
    back = quorate.read(tmp_path / "spans.csv", texts=tmp_path / "tokens.jsonl")
    assert back[0].annotations["ann"] == ("O", "O", "O", "B-LOC")


def test_names_that_look_like_formulas_come_back(tmp_path: Path) -> None:
    corpus = Corpus([Document("=1", ("Ada", "sang"), {"'=x": ("B--", "O"), "@b": ("O", "O")})])
    formats.write(corpus, tmp_path / "crowd.jsonl")
    formats.write(corpus, tmp_path / "spans.csv")
    back = quorate.read(tmp_path / "spans.csv", texts=tmp_path / "crowd.jsonl")
    assert back[0].annotations == {"'=x": ("B--", "O"), "@b": ("O", "O")}


def test_texts_may_be_a_folder(spans: Path) -> None:
    folder = spans.parent / "texts"
    folder.mkdir()
    for name, text in (("1", TEXT), ("2", "Bo ran")):
        (folder / f"{name}.txt").write_bytes(text.encode())
    assert quorate.read(spans, texts=folder, seen="all")["1"].text == TEXT
    (folder / "1.txt").write_bytes("Köln".encode("latin-1"))
    with pytest.raises(InputError, match=r"1\.txt: not UTF-8 text, at byte 1"):
        quorate.read(spans, texts=folder, seen="all")


def test_a_document_may_be_longer_than_a_cell_is_elsewhere(spans: Path) -> None:
    long = "Bo ran. " * 20_000
    (spans.parent / "texts.csv").write_text(TEXTS.replace("Bo ran", long), encoding="utf-8", newline="")
    assert read(spans, seen="all")["2"].text == long


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("9,ann,0,1,PER,x\n", "document '9' is not in the table of documents"),
        ("2,ann,a,1,PER,x\n", r"spans.csv:5: start 'a' is not a number"),
        ("2,ann,0,,PER,x\n", "a span without end"),
        ("2,ann,0,99,PER,x\n", "ends after the text"),
        (",ann,0,1,PER,x\n", "no document"),
    ],
)
def test_rows_that_cannot_be(spans: Path, rows: str, told: str) -> None:
    spans.write_text(ROWS + rows, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read(spans, seen="all")


def test_options_of_other_tables_are_refused(spans: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"tokens": ["Ada"], "annotations": {"ann": ["B-PER"]}}')
    with pytest.raises(SettingsError, match="--seen is for tables of spans"):
        quorate.read(tmp_path / "a.jsonl", seen="all")
    with pytest.raises(SettingsError, match="--texts is for tables of spans"):
        quorate.read(tmp_path / "a.jsonl", texts=spans.parent / "texts.csv")
    with pytest.raises(SettingsError, match="seen 'none' is not known"):
        read(spans, seen="none")
    with pytest.raises(InputError, match="document '9', which somebody saw, is not among the documents"):
        read(spans, seen={"9": ["ann"]})
