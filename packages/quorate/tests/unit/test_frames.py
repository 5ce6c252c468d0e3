"""Tables of pandas, polars and Arrow: a corpus from them, a corpus and a result as them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import quorate
from quorate import Corpus, Document, InputError, SettingsError
from quorate.corpus.records import hard_tags
from quorate.corpus.tags import find_spans
from quorate.result.tables import ResultTable

pandas = pytest.importorskip("pandas", reason="pandas is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

TEXT = "👋 Ada Ng met 王芳 in Köln"


@pytest.fixture
def spans() -> Any:
    rows = [
        ("a", "ann", 2, 8, "PER", TEXT),
        ("a", "ann", 13, 15, "PER", TEXT),
        ("a", "bob", 2, 5, "PER", TEXT),
        ("b", "bob", None, None, None, "Rain"),
    ]
    return pandas.DataFrame(rows, columns=["document", "annotator", "start", "end", "label", "text"])


class OnlyArrow:
    """What a library gives that knows of Arrow's streams alone."""

    def __init__(self, frame: Any) -> None:
        self._table = pyarrow.Table.from_pandas(frame, preserve_index=False)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class OnlyInterchange:
    """What a library gives that knows of the interchange protocol alone."""

    def __init__(self, frame: Any) -> None:
        self._table = pyarrow.Table.from_pandas(frame, preserve_index=False)

    def __dataframe__(self, **options: Any) -> object:
        return self._table.__dataframe__(**options)


def in_polars(frame: Any) -> Any:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    return polars.from_arrow(pyarrow.Table.from_pandas(frame, preserve_index=False))


@pytest.mark.parametrize("given", [lambda f: f, OnlyArrow, OnlyInterchange, pyarrow.Table.from_pandas, in_polars])
def test_a_table_of_spans_is_a_corpus(spans: Any, given: Any) -> None:
    corpus = Corpus.from_pandas(given(spans))
    assert [document.id for document in corpus] == ["a", "b"]
    assert corpus["a"].tokens == ("👋", "Ada", "Ng", "met", "王芳", "in", "Köln")
    assert corpus["a"].annotations["ann"] == ("O", "B-PER", "I-PER", "O", "B-PER", "O", "O")
    assert corpus["b"].annotations == {"bob": ("O",)}  # seen, and nothing marked
    assert quorate.read(given(spans)).documents == corpus.documents


@pytest.mark.parametrize("given", [lambda f: f, OnlyArrow, in_polars])
def test_texts_may_be_in_a_table_of_their_own(spans: Any, given: Any) -> None:
    words = spans.dropna(subset="label")
    words = words.assign(text=[TEXT[int(row.start) : int(row.end)] for row in words.itertuples()])
    texts = pandas.DataFrame(
        {"document": ["a", "b"], "text": [TEXT, "Rain"], "annotators": [["ann", "bob", "eve"], ["bob"]], "split": "dev"}
    )
    corpus = Corpus.from_pandas(given(words), given(texts))
    assert corpus["a"].annotations["eve"] == ("O",) * 7
    assert (corpus["b"].annotations, corpus["b"].split) == ({"bob": ("O",)}, "dev")


def test_a_corpus_comes_back_from_its_tables(sample: Corpus) -> None:
    back = Corpus.from_pandas(sample.to_pandas("spans"), sample.to_pandas("documents"))
    for one, other in zip(sample, back, strict=True):
        assert (other.id, other.tokens, other.gold, other.split) == (one.id, one.tokens, one.gold, one.split)
        assert other.annotations == one.annotations
    tagged = Corpus.from_pandas(sample.to_pandas("tokens"))
    assert [(one.id, one.tokens, one.annotations, one.gold) for one in tagged] == [
        (one.id, one.tokens, one.annotations, one.gold) for one in sample
    ]


@pytest.mark.parametrize("kind", ["spans", "tokens", "documents"])
def test_tables_of_pandas_and_arrow_are_the_same(sample: Corpus, kind: Any) -> None:
    few = Corpus(sample.documents[:30])
    assert plain(few.to_arrow(kind).to_pandas()) == plain(few.to_pandas(kind))
    for empty in (Corpus([]), Corpus([Document("1", ("a",))])):
        assert few.to_arrow(kind).column_names == list(empty.to_pandas(kind).columns) == list(few.to_pandas(kind))
        assert len(empty.to_arrow(kind)) == len(empty.to_pandas(kind))


def plain(frame: Any) -> list[list[Any]]:
    """Rows without what differs by library: how nothing is written, and whether a list is an array."""
    rows = frame.astype(object).where(frame.notna(), None).values.tolist()
    return [[list(cell) if isinstance(cell, np.ndarray | list) else cell for cell in row] for row in rows]


def test_spans_of_a_table_are_those_of_the_documents(sample: Corpus) -> None:
    table = sample.to_pandas()
    texts = sample.to_pandas("documents").set_index("document")["text"]
    assert [texts[row.document][row.start : row.end] for row in table.itertuples()] == table["text"].tolist()
    counted = sum(len(find_spans(hard_tags(tags))) for one in sample for tags in one.annotations.values())
    assert len(table) == counted
    first = table.iloc[0]
    assert " ".join(sample[first.document].tokens[first.token_start : first.token_end]) == first.text


def test_soft_tags_have_a_confidence_in_tables() -> None:
    corpus = Corpus([Document("1", ("Ada", "sang"), {"llm": ({"B-PER": 0.9, "O": 0.1}, "O"), "ann": ("O", None)})])
    spans, tokens = corpus.to_pandas(), corpus.to_pandas("tokens")
    assert spans["confidence"].tolist() == pytest.approx([0.9])
    assert tokens[["annotator", "token", "tag"]].values.tolist() == [
        ["llm", 0, "B-PER"],
        ["llm", 1, "O"],
        ["ann", 0, "O"],
    ]
    assert tokens["confidence"].tolist() == pytest.approx([0.9, np.nan, np.nan], nan_ok=True)
    assert Corpus.from_pandas(spans, corpus.to_pandas("documents"))["1"].annotations["llm"][0] == pytest.approx(
        {"B-PER": 0.9, "O": 0.1}
    )


def test_a_result_is_four_tables(sample: Corpus) -> None:
    result = quorate.aggregate(sample, "bsc-cm", max_iter=3)
    kinds: tuple[ResultTable, ...] = ("spans", "tokens", "documents", "annotators")
    spans, tokens, documents, people = map(result.to_pandas, kinds)
    flat = [(one.document.id, span) for one in result for span in one.spans]
    assert list(zip(spans["document"], spans["token_start"], spans["token_end"], spans["label"], strict=True)) == [
        (name, span.start, span.end, span.label) for name, span in flat
    ]
    assert spans["confidence"].tolist() == [span.confidence for _, span in flat]
    assert tokens["tag"].tolist() == [tag for tags in result.tags for tag in tags]
    texts = documents.set_index("document")["text"]
    assert [texts[row.document][row.start : row.end] for row in tokens.itertuples()] == tokens["word"].tolist()
    assert documents["confidence"].tolist() == result.confidence.tolist()
    assert documents["n_spans"].tolist() == [len(spans) for spans in result.spans]
    assert people["annotator"].tolist() == list(result.annotators.names)
    assert people["accuracy"].tolist() == [one.accuracy for one in result.annotators]
    assert set(people["kind"]) == {"people"}
    for kind in kinds:
        assert plain(result.to_arrow(kind).to_pandas()) == plain(result.to_pandas(kind))


def test_layers_are_a_column() -> None:
    inner = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-LOC", "O")})])
    outer = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-ORG", "I-ORG")})])
    result = quorate.aggregate_layers({"LOC": inner, "ORG": outer}, "mv")
    assert result.to_pandas()[["text", "layer"]].values.tolist() == [["Bath", "LOC"], ["Bath Spa", "ORG"]]
    assert len(result.to_pandas("tokens")) == 4
    assert result.to_pandas("documents")["n_spans"].tolist() == [2]
    assert result.to_arrow("annotators")["layer"].to_pylist() == ["LOC", "ORG"]


def test_columns_are_renamed_and_a_class_for_each_task_is_a_document() -> None:
    votes = pandas.DataFrame({"item": ["1", "1", "2"], "rater": ["a", "b", "a"], "class": ["yes", "no", "no"]})
    corpus = Corpus.from_pandas(votes, columns={"item": "document", "rater": "annotator", "class": "label"})
    assert [one.annotations for one in corpus] == [{"a": ("yes",), "b": ("no",)}, {"a": ("no",)}]
    with pytest.raises(SettingsError, match="plain labels mark no spans"):
        corpus.to_pandas()
    with pytest.raises(InputError, match="no column 'nope'"):
        Corpus.from_pandas(votes, columns={"nope": "document"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": 1.5}, "row 0: start 1.5 is not a whole number"),
        ({"start": "x"}, "row 0: start 'x' is not a whole number"),
        ({"end": 99}, "span 2–99 'PER' ends after the text"),
        ({"label": None}, "row 0: a span without label"),
        ({"annotator": None}, "row 0: no annotator"),
        ({"document": ""}, "row 0: no document"),
        ({"text": "Ada"}, "row 1: another text than in an earlier row of document 'a'"),
        ({"text": None}, "row 0: no text of document 'a'"),
    ],
)
def test_what_cannot_be_used_is_named(spans: Any, change: dict[str, Any], message: str) -> None:
    rows = spans.astype(object).where(spans.notna(), None).to_dict("records")
    rows[0].update(change)
    with pytest.raises(InputError, match=message):
        Corpus.from_pandas(pandas.DataFrame(rows, dtype=object))


def test_tables_that_are_none_or_lack_something_are_named(spans: Any) -> None:
    with pytest.raises(InputError, match="no column 'label'"):
        Corpus.from_pandas(spans.drop(columns="label"), spans.loc[2:, ["document", "text"]])
    with pytest.raises(InputError, match="document 'b' is not in the table of documents"):
        Corpus.from_pandas(spans, spans.loc[:0, ["document", "text"]])
    with pytest.raises(InputError, match="document 'a' is given twice"):
        Corpus.from_pandas(spans, spans[["document", "text"]])
    with pytest.raises(InputError, match="list is not a table"):
        Corpus.from_pandas([1, 2])
    with pytest.raises(SettingsError, match="a table of 'people' is not known"):
        Corpus([]).to_pandas("people")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="a table of 'people' is not known"):
        quorate.aggregate(quorate.sample(), "mv").to_arrow("people")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("library", "call", "extra"), [("pandas", "to_pandas", "pandas"), ("pyarrow", "to_arrow", "table")]
)
def test_without_the_library_the_extra_is_named(library: str, call: str, extra: str) -> None:
    code = f"""
import sys
sys.modules[{library!r}] = None
import quorate
try:
    quorate.sample().{call}()
except quorate.SettingsError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == f"{call} needs {library} (pip install 'quorate[{extra}]')"


def test_discontinuous_spans_keep_their_pieces() -> None:
    tags = ("B-ADR", "O", "O", "B-ADR…")
    corpus = Corpus(
        [Document("1", ("muscle", "and", "joint", "pain"), {"ann": tags, "bob": ("O", "O", "B-ADR", "I-ADR")})]
    )
    table = corpus.to_pandas()
    assert table["pieces"].tolist() == ["0-6;17-21", ""]
    assert Corpus.from_pandas(table, corpus.to_pandas("documents"))["1"].annotations == corpus["1"].annotations
    assert quorate.aggregate(corpus, "mv").to_pandas().columns[-1] == "pieces"
    with pytest.raises(InputError, match="row 0: pieces '0-x' are none"):
        Corpus.from_pandas(table.assign(pieces=["0-x", ""]), corpus.to_pandas("documents"))
