"""Hugging Face datasets: Parquet, Arrow, or a folder that ``save_to_disk`` wrote; and a ``Dataset`` from memory.

``tokens`` is a list of words, ``ner_tags`` (or ``tags``, ``labels``) a list of names, or of numbers whose names are in
the dataset's features; ``soft_labels`` are a row of probabilities a token, in place of tags. Several annotators are
written as ``annotators`` and ``crowd_tags``, gold as ``gold_tags``. A Parquet file with other columns is a long table.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from quorate.corpus.records import Document, SoftTag, Source, Tag
from quorate.errors import InputError, OutputError
from quorate.formats.exports import Export, ExportDocument
from quorate.formats.notes import Notes
from quorate.formats.opened import Input, check_unpacked, most_of
from quorate.formats.table import rows_to_documents, whole_numbers
from quorate.storage.files.atomic import written_whole

_TAG_COLUMNS = ("ner_tags", "tags", "labels")
_SOFT = "soft_labels"
_IGNORED = (-1, -100)  # what trainers write where there is no label
_MISSING = "Parquet and Arrow need pyarrow (pip install 'quorate[table]')"

Names = Mapping[str, list[str]]
"""The names of the numbers in each column of tags."""

_ROWS_AT_ONCE = 1024  # of a packed table, to look how much it is by now


def read(given: Input, notes: Notes) -> Iterator[Document]:
    """The rows of a Parquet or Arrow file, or of a saved dataset."""
    folder = Path(given.name)
    if given.name != "-" and folder.is_dir():
        yield from _folder(folder, most_of(given.stream))
        return
    content = given.stream.read()
    table = _table(content, given.name, most_of(given.stream))
    yield from _table_documents(table, given.name, None)


def _table(content: bytes, name: str, most: int) -> Any:
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError:
        raise InputError(_MISSING, where=name) from None
    try:
        if content.startswith(b"PAR1"):
            source = parquet.ParquetFile(io.BytesIO(content))
            schema, batches = source.schema_arrow, source.iter_batches(_ROWS_AT_ONCE)
        elif content.startswith(b"ARROW1"):
            source = ipc.open_file(io.BytesIO(content))
            schema, batches = source.schema, map(source.get_batch, range(source.num_record_batches))
        else:
            source = ipc.open_stream(io.BytesIO(content))
            schema, batches = source.schema, source
        kept, total = [], 0
        for batch in batches:
            total += batch.get_total_buffer_size()
            check_unpacked(total, len(content), name, most)
            kept.append(batch)
        table = pyarrow.Table.from_batches(kept, schema)
        table.validate(full=True)  # Arrow trusts the offsets in a file, and would follow damaged ones anywhere
        return table
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        line = str(error).split("\n", 1)[0]
        raise InputError(f"not a Parquet or Arrow file: {line} (write it again)", where=name) from None


def _folder(folder: Path, most: int) -> Iterator[Document]:
    """A saved ``Dataset``, or each split of a saved ``DatasetDict``."""
    splits = sorted(path for path in folder.iterdir() if (path / "state.json").is_file())
    for place in splits or [folder]:
        split = place.name if splits else None
        features = _features_of_folder(place)
        for file in sorted(place.glob("*.arrow")):
            try:
                table = _table(file.read_bytes(), str(file), most)
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror or error}", where=str(file)) from None
            yield from _table_documents(table, str(file), split, features)


def _features_of_folder(place: Path) -> Any:
    try:
        return json.loads((place / "dataset_info.json").read_text(encoding="utf-8")).get("features")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None


def _table_documents(table: Any, name: str, split: str | None, features: Any = None) -> Iterator[Document]:
    try:
        rows = (row for batch in table.to_batches() for row in batch.to_pylist())
        if "tokens" not in table.column_names:
            yield from rows_to_documents(enumerate(map(whole_numbers, rows), 1), name)
            return
        yield from _documents(rows, _names(features or _features_in(table)), name, split)
    except (ValueError, OverflowError) as error:  # text that is no text in a damaged file
        raise InputError(f"damaged: {error} (write it again)", where=name) from None


def _features_in(table: Any) -> Any:
    try:
        return json.loads((table.schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError, RecursionError):
        return None


def _names(features: Any) -> Names:
    """The names of labels, wherever they are in the features of a column."""

    def inside(feature: Any) -> list[str] | None:
        if isinstance(feature, list):
            return inside(feature[0]) if feature else None
        if not isinstance(feature, Mapping):
            return None
        names = feature.get("names")
        return [str(name) for name in names] if isinstance(names, list) else inside(feature.get("feature"))

    columns = features.items() if isinstance(features, Mapping) else ()
    return {column: names for column, feature in columns if (names := inside(feature)) is not None}


def dataset_documents(dataset: Any) -> Iterator[Document]:
    """The rows of a ``datasets.Dataset``."""
    names = _names(dataset.features.to_dict())
    yield from _documents(iter(dataset), names, "Dataset", str(dataset.split) if dataset.split else None)


def _documents(rows: Iterator[Mapping[str, Any]], names: Names, name: str, split: str | None) -> Iterator[Document]:
    for number, row in enumerate(rows, 1):
        source = Source(name, number, record="row")
        try:
            yield _document(row, names, source, split)
        except (TypeError, ValueError, KeyError) as error:
            raise InputError(
                f"not a row with tokens and tags: {error} (see docs/formats.md)", where=source.at()
            ) from None


def _document(row: Mapping[str, Any], names: Names, source: Source, split: str | None) -> Document:
    if not isinstance(row["tokens"], list) or not all(isinstance(token, str) for token in row["tokens"]):
        raise ValueError("'tokens' must be a list of words")
    annotations: dict[str, tuple[Tag | SoftTag, ...]] = {}
    if row.get("annotators") is not None:
        tags_of_each = row["crowd_tags"]
        for annotator, tags in zip(row["annotators"], tags_of_each, strict=True):
            annotations[str(annotator)] = _tags(tags, names.get("crowd_tags"))
    else:
        column = next((column for column in _TAG_COLUMNS if row.get(column) is not None), None)
        labels = names.get(column or "") or names.get(_SOFT)
        if row.get(_SOFT) is not None and labels:
            annotations[""] = tuple(_soft(values, labels) for values in row[_SOFT])
        elif column is not None:
            annotations[""] = _tags(row[column], labels)
    gold = None if row.get("gold_tags") is None else _tags(row["gold_tags"], names.get("gold_tags"))
    given_id, given_split = row.get("id"), row.get("split")
    return Document(
        "" if given_id is None else str(given_id),
        tuple(row["tokens"]),
        annotations,
        gold,
        given_split if isinstance(given_split, str) else split,
        source=source,
    )


def _tags(values: Sequence[Any], names: list[str] | None) -> tuple[Tag, ...]:
    return tuple(_tag(value, names) for value in values)


def _tag(value: Any, names: list[str] | None) -> Tag:
    if value is None or value in _IGNORED:
        return None
    if isinstance(value, str):
        if not value:
            raise ValueError("'' is not a tag")
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is not a tag")
    if names is None:
        raise ValueError(f"tag {value} has no name (save the dataset with its features, or tags as strings)")
    if not 0 <= value < len(names):
        raise ValueError(f"tag {value} is not one of the {len(names)} names")
    return names[value]


def _soft(values: Sequence[Any], names: list[str]) -> Tag | SoftTag:
    if len(values) != len(names) or not all(isinstance(value, int | float) and value >= 0 for value in values):
        raise ValueError(f"soft labels must be {len(names)} numbers a token, 0 or more")
    soft = {name: float(value) for name, value in zip(names, values, strict=True) if value > 0}
    return soft or None


def write(export: Export, path: str) -> None:
    """A Parquet file that ``datasets.load_dataset("parquet", …)`` reads with its features.

    The consensus has ``ner_tags`` and ``soft_labels`` (a row of probabilities a token); annotators have
    ``annotators`` and ``crowd_tags``, and gold ``gold_tags``.
    """
    export.check_layers("Parquet")
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise OutputError(_MISSING) from None
    rows = [_row(exported, export) for exported in export.documents()]
    columns = {name for row in rows for name in row}
    types = {
        "id": arrow.string(),
        "tokens": arrow.list_(arrow.string()),
        "text": arrow.string(),
        "split": arrow.string(),
        "ner_tags": arrow.list_(arrow.int64()),
        _SOFT: arrow.list_(arrow.list_(arrow.float64())),
        "confidence": arrow.float64(),
        "annotators": arrow.list_(arrow.string()),
        "crowd_tags": arrow.list_(arrow.list_(arrow.int64())),
        "gold_tags": arrow.list_(arrow.int64()),
    }
    schema = arrow.schema([(name, kind) for name, kind in types.items() if name in columns])
    features = {name: _feature(schema.field(name).type, name, export.labels) for name in schema.names}
    schema = schema.with_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    with written_whole(path, pack=False) as stream:
        parquet.write_table(arrow.Table.from_pylist(rows, schema=schema), stream)


def _feature(kind: Any, column: str, labels: Sequence[str]) -> dict[str, Any]:
    """A column's type as the library ``datasets`` writes it."""
    if hasattr(kind, "value_type"):
        return {"feature": _feature(kind.value_type, column, labels), "_type": "List"}
    if column.endswith("_tags"):
        return {"names": list(labels), "_type": "ClassLabel"}
    return {"dtype": {"double": "float64"}.get(str(kind), str(kind)), "_type": "Value"}


def _row(exported: ExportDocument, export: Export) -> dict[str, Any]:
    document = exported.document
    number_of = {label: number for number, label in enumerate(export.labels)}

    def numbers(tags: Sequence[Any] | None) -> list[int]:
        if any(isinstance(tag, Mapping) for tag in tags or ()):
            raise OutputError(f"{document.where()}: tags of a crowd hold no probabilities in Parquet (use jsonl)")
        return [-1 if tag is None else number_of[tag] for tag in tags or ()]

    row: dict[str, Any] = {"id": document.id, "tokens": list(document.tokens)}
    if document.text is not None:
        row["text"] = document.text
    if document.split is not None:
        row["split"] = document.split
    if exported.consensus is not None:
        row["ner_tags"] = numbers(exported.consensus.tags)
        if exported.consensus.probabilities is not None:
            row[_SOFT] = exported.consensus.probabilities.tolist()
        row["confidence"] = exported.consensus.confidence
        return row
    row["annotators"] = [annotation.name for annotation in exported.annotators]
    row["crowd_tags"] = [numbers(annotation.tags) for annotation in exported.annotators]
    if exported.gold is not None:
        row["gold_tags"] = numbers(exported.gold.tags)
    return row
