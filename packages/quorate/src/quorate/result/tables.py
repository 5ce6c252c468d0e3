"""A consensus as tables, a row a span, a token, a document or an annotator."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from quorate.corpus.tags import Scheme
from quorate.errors import SettingsError
from quorate.formats.exports import ExportDocument
from quorate.formats.frames import Columns, span_columns
from quorate.result.annotators import AnnotatorSummary

if TYPE_CHECKING:
    from quorate.result.layers import LayeredResult
    from quorate.result.result import Result

ResultTable = Literal["spans", "tokens", "documents", "annotators"]


def result_columns(result: Result, kind: ResultTable) -> Columns:
    """What a consensus holds, as a table."""
    if kind == "spans":
        return span_columns(result.export(), annotator=False)
    if kind == "tokens":
        return _tokens(result)
    if kind == "documents":
        return _documents(result)
    if kind == "annotators":
        return _annotators(result)
    raise SettingsError(f"a table of {kind!r} is not known (one of: spans, tokens, documents, annotators)")


def layered_columns(result: LayeredResult, kind: ResultTable) -> Columns:
    """The same of several layers: each row says which it is of, but for documents, which are right in all."""
    if kind == "documents":
        first = _documents(next(iter(result.layers.values())))
        first["n_spans"] = np.array([len(one.spans) for one in result], np.int64)
        first["confidence"] = np.array([one.confidence for one in result])
        return first
    tables = {name: result_columns(one, kind) for name, one in result.layers.items()}
    joined: Columns = {
        column: _joined([table[column] for table in tables.values()]) for column in next(iter(tables.values()))
    }
    joined["layer"] = [name for name, table in tables.items() for _ in next(iter(table.values()))]
    return joined


def _joined(parts: list[Any]) -> Any:
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else [one for part in parts for one in part]


def _tokens(result: Result) -> Columns:
    rows = [
        (one.document.id, place, *offsets, word, tag)
        for one in result
        for place, (word, tag, offsets) in enumerate(
            zip(one.document.tokens, one.tags, ExportDocument(one.document).offsets(), strict=True)
        )
    ]
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(6)]
    document, token, start, end, word, tag = columns
    return {
        "document": document,
        "token": np.array(token, np.int64),
        "start": np.array(start, np.int64),
        "end": np.array(end, np.int64),
        "word": word,
        "tag": tag,
        "confidence": np.concatenate([one.token_confidence for one in result]) if len(result) else np.zeros(0),
    }


def _documents(result: Result) -> Columns:
    plain = result.tagset.scheme is Scheme.PLAIN
    documents = list(result.corpus)
    return {
        "document": [document.id for document in documents],
        "text": [ExportDocument(document).text() for document in documents],
        "n_tokens": np.array([len(document.tokens) for document in documents], np.int64),
        "n_spans": np.array([0 if plain else len(spans) for spans in result.spans], np.int64),
        "confidence": result.confidence.copy(),
        "split": [document.split for document in documents],
    }


def _annotators(result: Result) -> Columns:
    summaries = list(result.annotators)
    figures = [field.name for field in fields(AnnotatorSummary) if field.name != "name"]
    return {
        "annotator": [one.name for one in summaries],
        "kind": [result.sources.kind(one.name).value for one in summaries],
        **{name: np.array([getattr(one, name) for one in summaries], np.float64) for name in figures},
    }
