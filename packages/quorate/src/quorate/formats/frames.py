"""Tables in memory: pandas, polars, Arrow, or whatever gives its columns as these do; in and out.

A table of spans has a row a span: ``document, annotator, start, end, label``, with offsets in characters of ``text``,
the whole document's, and ``pieces`` (``0-5;10-12``) of one that is discontinuous. Who saw a document and marked nothing
has a row of it without a span. The texts may be in a table of their own instead, a row a document: ``document, text``,
and if known ``tokens``, ``annotators`` who saw it, ``gold`` (a tag a token) and ``split``. A table of tags has a row a
token: ``document, token, annotator, tag, word, gold``; or a row a token and a column an annotator
(:mod:`quorate.formats.sheet`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.offsets import Unit
from quorate.corpus.records import Corpus, Document, Source, hard_tags
from quorate.corpus.spans import CharSpan, Pieces
from quorate.corpus.tags import Scheme
from quorate.errors import InputError, SettingsError
from quorate.formats import sheet
from quorate.formats.assemble import Assembly, Options
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument, export_of, outward_spans
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.table import rows_to_documents, whole_numbers

if TYPE_CHECKING:
    import pandas
    import pyarrow

Columns = dict[str, NDArray[Any] | Sequence[Any]]
"""A table: numbers as arrays; words, and lists of words, as lists."""

CorpusTable = Literal["spans", "tokens", "documents"]

Row = Mapping[str, Any]

_ALIASES = {"doc": "document", "id": "document", "task": "document", "worker": "annotator", "tag": "label"}
_TABLE_NAMES = {"document": "doc", "annotator": "worker"}  # as formats.table has them
_FRAME = "DataFrame"
_COLUMNS_OF_SPANS = ("start", "end", "label")


def is_frame(given: object) -> bool:
    """Whether this is a table in memory.

    >>> is_frame("crowd.jsonl")
    False
    """
    return any(hasattr(given, name) for name in ("__arrow_c_stream__", "__dataframe__", "columns"))


def frame_documents(frame: Any, notes: Notes, columns: Mapping[str, str] | None = None) -> Iterator[Document | Marked]:
    """The documents of a table of spans, which holds their texts, or of tags; ``columns`` renames what it has."""
    given, renamed = _plain_rows(frame), columns or {}
    _check_renamed(given, renamed)
    head = [renamed.get(name, str(name)) for name in given[0]] if given else []
    if given and _is_sheet(head, given):
        yield from _sheet_documents(head, given, notes)
        return
    rows = _rows(given, renamed)
    if rows and all(name in rows[0] for name in ("start", "end")):
        yield from _marked(rows, None).values()
    else:
        names = {name: _TABLE_NAMES.get(name, name) for row in rows[:1] for name in row}
        yield from rows_to_documents(enumerate({names[k]: v for k, v in row.items()} for row in rows), _FRAME)


def corpus_of(frame: Any, documents: Any = None, columns: Mapping[str, str] | None = None) -> Corpus:
    """A corpus from a table: see :meth:`quorate.Corpus.from_pandas`."""
    assembly = Assembly(Options())
    if documents is None:
        assembly.add(frame_documents(frame, assembly.notes, columns), _FRAME, merge=False)
        return assembly.corpus()
    texts: dict[str, Row] = {}
    for row in _rows(_plain_rows(documents), columns or {}, needed=("document",)):
        if texts.setdefault(str(row["document"]), row) is not row:
            raise InputError(f"document {row['document']!r} is given twice (give a row a document)", where=_FRAME)
    rows = _rows(_plain_rows(frame), columns or {}, needed=("document", "annotator", *_COLUMNS_OF_SPANS))
    assembly.add(_marked(rows, texts).values(), _FRAME, merge=False)
    corpus = assembly.corpus()
    with_gold = (
        one if (gold := texts[one.id].get("gold")) is None else replace(one, gold=tuple(gold)) for one in corpus
    )
    return Corpus(with_gold, notes=corpus.notes)


def _is_sheet(head: Sequence[str], rows: Sequence[Row]) -> bool:
    return sheet.is_sheet(head, [_cells(row) for row in rows[: sheet.ROWS]])


def _sheet_documents(head: Sequence[str], rows: Sequence[Row], notes: Notes) -> Iterator[Document]:
    """The documents of a table with a row a token and a column an annotator."""
    made = sheet.Sheet(head, _FRAME, 0)
    for number, row in enumerate(rows):
        made.add(number, _cells(row))
    return made.documents(notes)


def _cells(row: Row) -> list[str]:
    return ["" if value is None else str(value) for value in row.values()]


def _check_renamed(rows: Sequence[Row], names: Mapping[str, str]) -> None:
    given = list(rows[0]) if rows else []
    strange = [name for name in names if rows and name not in given]
    if strange:
        raise InputError(f"no column {strange[0]!r} (it has: {', '.join(map(str, given))})", where=_FRAME)


def _rows(rows: list[dict[str, Any]], names: Mapping[str, str], needed: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The rows by columns, under the names that they have here; ``None`` where nothing is."""
    _check_renamed(rows, names)
    given = list(rows[0]) if rows else []
    ours = {name: names.get(name) or _ALIASES.get(name.lower(), name.lower()) for name in map(str, given)}
    missing = [name for name in needed if rows and name not in ours.values()]
    if missing:
        raise InputError(f"no column {missing[0]!r} (it has: {', '.join(given)}; columns= renames)", where=_FRAME)
    return [{ours[str(name)]: value for name, value in row.items()} for row in rows]


def _plain_rows(frame: Any) -> list[dict[str, Any]]:
    return list(map(whole_numbers, _rows_given(frame)))


def _rows_given(frame: Any) -> list[dict[str, Any]]:
    if hasattr(frame, "to_dicts"):  # polars, without pyarrow
        return list(frame.to_dicts())
    if hasattr(frame, "notna"):  # pandas, likewise
        return list(frame.astype(object).where(frame.notna(), None).to_dict("records"))
    if not is_frame(frame):
        raise InputError(f"{type(frame).__name__} is not a table (give one of pandas, polars or Arrow)")
    arrow = _pyarrow("a table of this kind")
    if hasattr(frame, "__arrow_c_stream__"):
        return list(arrow.table(frame).to_pylist())
    from pyarrow.interchange import from_dataframe

    return list(from_dataframe(frame).to_pylist())


def _marked(rows: Iterable[Row], texts: Mapping[str, Row] | None) -> dict[str, Marked]:
    """Documents with their spans; without ``texts``, each row has that of its document."""
    found: dict[str, Marked] = {}
    for key, row in (texts or {}).items():
        found[key] = _document(key, row, Source(_FRAME, len(found), record="row"))
    for number, row in enumerate(rows):
        source = Source(_FRAME, number, record="row")
        key, who = (_name(row, column, source) for column in ("document", "annotator"))
        if texts is None:
            known = found.setdefault(key, _document(key, row, source))
            if known.text != row.get("text"):
                raise InputError(
                    f"another text than in an earlier row of document {key!r} (text is the whole document's; words of "
                    "spans need the texts in a table of their own: documents=)",
                    where=source.at(),
                )
        elif key not in found:
            raise InputError(f"document {key!r} is not in the table of documents", where=source.at())
        marks = found[key].annotations.setdefault(who, [])
        mark = _span(row, source, words=texts is not None)
        if mark is not None:
            marks.append(mark)
    return found


def _document(key: str, row: Row, source: Source) -> Marked:
    """A document in which nobody has marked anything yet."""
    tokens, text = row.get("tokens"), row.get("text")
    if text is None and tokens is None:
        raise InputError(f"no text of document {key!r} (give a column text, or tokens)", where=source.at())
    words = None if tokens is None else list(map(str, tokens))
    return Marked(
        key,
        " ".join(words or ()) if text is None else str(text),
        {str(name): [] for name in _listed(row.get("annotators"))},
        source,
        split=None if row.get("split") is None else str(row["split"]),
        tokens=words,
        unit=Unit.CODE_POINTS,
    )


def _listed(value: Any) -> Iterable[Any]:
    return () if value is None else value


def _name(row: Row, column: str, source: Source) -> str:
    value = row.get(column)
    if value is None or value == "":
        raise InputError(f"no {column} (columns: document, annotator, start, end, label)", where=source.at())
    return str(value)


def _span(row: Row, source: Source, *, words: bool) -> CharSpan | None:
    """The span of a row, ``None`` where it has none."""
    missing = [column for column in _COLUMNS_OF_SPANS if row.get(column) is None]
    if len(missing) == len(_COLUMNS_OF_SPANS):
        return None
    if missing:
        raise InputError(f"a span without {missing[0]} (give start, end and label, or none of them)", where=source.at())
    start, end = (_whole(row[column], column, source) for column in ("start", "end"))
    text, confidence = row.get("text") if words else None, row.get("confidence")
    return CharSpan(
        start,
        end,
        str(row["label"]),
        None if text is None else str(text),
        None if confidence is None else float(confidence),
        pieces=_pieces_read(row.get("pieces"), source),
    )


def _whole(value: Any, column: str, source: Source) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if isinstance(value, str) or number != value:
        raise InputError(f"{column} {value!r} is not a whole number (count characters from 0)", where=source.at())
    return number


def corpus_columns(corpus: Corpus, kind: CorpusTable) -> Columns:
    """What a corpus holds, as a table."""
    if kind == "spans":
        return span_columns(export_of(corpus), annotator=True)
    if kind == "tokens":
        return _token_columns(corpus)
    if kind == "documents":
        return _document_columns(corpus)
    raise SettingsError(f"a table of {kind!r} is not known (one of: spans, tokens, documents)")


def span_columns(export: Export, *, annotator: bool) -> Columns:
    """Every span, in characters of the text (or of the tokens with blanks between), and in tokens.

    >>> corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})])
    >>> span_columns(export_of(corpus), annotator=True)["text"]
    ['Ada']
    """
    if export.scheme is Scheme.PLAIN:
        raise SettingsError("plain labels mark no spans (ask for 'tokens')")
    names: list[list[str]] = [[] for _ in range(6)]
    places: list[tuple[int, int, int, int]] = []
    sure: list[float] = []
    for exported, annotation in _readings(export):
        outward = outward_spans(exported, annotation, Unit.CODE_POINTS)
        for own, span in zip(annotation.spans, outward, strict=True):
            row = (exported.document.id, annotation.name, span.label, span.text or "", own.layer, _pieces_named(span))
            for column, name in zip(names, row, strict=True):
                column.append(name)
            places.append((span.start, span.end, own.start, own.end))
            sure.append(np.nan if span.confidence is None else span.confidence)
    start, end, token_start, token_end = np.array(places, np.int64).reshape(-1, 4).T
    document, who, label, text, layer, pieces = names
    return {
        "document": document,
        **({"annotator": who} if annotator else {}),
        "start": start,
        "end": end,
        "label": label,
        "text": text,
        "confidence": np.array(sure),
        "token_start": token_start,
        "token_end": token_end,
        **({"layer": layer} if export.layers else {}),
        **({"pieces": pieces} if export.discontinuous else {}),
    }


def _pieces_named(span: CharSpan) -> str:
    return ";".join(f"{start}-{end}" for start, end in span.pieces)


def _pieces_read(value: Any, source: Source) -> Pieces:
    """The pieces that :func:`_pieces_named` wrote."""
    if value is None or value == "":
        return ()
    try:
        pairs = [tuple(map(int, piece.split("-"))) for piece in str(value).split(";")]
        return tuple((start, end) for start, end in pairs)
    except ValueError:
        raise InputError(f"pieces {value!r} are none (write them as 0-5;10-12)", where=source.at()) from None


def _readings(export: Export) -> Iterator[tuple[ExportDocument, ExportAnnotation]]:
    for exported in export.documents():
        for annotation in exported.annotations():
            yield exported, annotation


def _token_columns(corpus: Corpus) -> Columns:
    """Every tag that an annotator gave; of probabilities the most probable, with its own."""
    rows = [
        (document.id, place, name, tag, _sure(given), word, gold)
        for document in corpus
        for name, tags in document.annotations.items()
        for place, (tag, given, word, gold) in enumerate(
            zip(hard_tags(tags), tags, document.tokens, document.gold or [None] * len(tags), strict=True)
        )
        if tag is not None
    ]
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(7)]
    document, token, annotator, tag, sure, word, gold = columns
    return {
        "document": document,
        "token": np.array(token, np.int64),
        "annotator": annotator,
        "tag": tag,
        "confidence": np.array(sure, np.float64),
        "word": word,
        "gold": gold,
    }


def _sure(tag: object) -> float:
    """The probability of the tag that counts; nan where none is stated."""
    return max(tag.values()) / sum(tag.values()) if isinstance(tag, Mapping) else np.nan


def _document_columns(corpus: Corpus) -> Columns:
    return {
        "document": [document.id for document in corpus],
        "text": [ExportDocument(document).text() for document in corpus],
        "tokens": [list(document.tokens) for document in corpus],
        "annotators": [list(document.annotations) for document in corpus],
        "gold": [None if document.gold is None else list(document.gold) for document in corpus],
        "split": [document.split for document in corpus],
    }


def pandas_frame(columns: Columns) -> pandas.DataFrame:
    """The table as pandas has it.

    >>> pandas_frame({"document": ["1"], "start": np.array([0])}).shape
    (1, 2)
    """
    try:
        import pandas
    except ImportError:
        raise SettingsError("to_pandas needs pandas (pip install 'quorate[pandas]')") from None
    return pandas.DataFrame(columns)


def arrow_table(columns: Columns) -> pyarrow.Table:
    """The table as Arrow has it, which polars and others take as it is.

    >>> arrow_table({"document": ["1"], "start": np.array([0])}).num_rows
    1
    """
    arrow = _pyarrow("to_arrow")
    return arrow.table({name: _arrow_array(arrow, column) for name, column in columns.items()})


def _arrow_array(arrow: Any, column: NDArray[Any] | Sequence[Any]) -> Any:
    if isinstance(column, np.ndarray):
        return arrow.array(column, from_pandas=True)
    of_lists = any(isinstance(one, list) for one in column)
    return arrow.array(column, arrow.list_(arrow.string()) if of_lists else arrow.string())


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise SettingsError(f"{what} needs pyarrow (pip install 'quorate[table]')") from None
    return pyarrow
