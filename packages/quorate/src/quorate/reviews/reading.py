"""Files of reviews, with the documents that they are of, or without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from quorate.corpus.records import Corpus, Document
from quorate.errors import InputError
from quorate.formats import jsonl
from quorate.formats.known import decisions_on, read_records
from quorate.formats.known_layers import read_layer_records
from quorate.formats.layers import Layers
from quorate.reviews.reviews import Reviews


def read(
    paths: str | Path | Sequence[str | Path],
    corpus: Corpus | None = None,
    *,
    digests: dict[str, str] | None = None,
    max_size: int | str | None = None,
) -> Reviews:
    """What reviewers decided, from files of known labels (those that ``--known`` takes).

    Without a corpus, documents are made of the tokens that the files themselves hold, as those of a report do.
    The SHA-256 of each file is added to ``digests``; ``max_size`` is that of :func:`quorate.read`.

    >>> import tempfile
    >>> line = '{"id": "1", "tokens": ["Ada", "sang"], "tags": ["B-PER", "O"], "reviewer": "ann"}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "ann.jsonl").write_text(line)
    ...     read(f"{folder}/ann.jsonl").known
    {'1': ('B-PER', 'O')}
    """
    records = read_records(paths, digests=digests, max_size=max_size)
    documents = _documents(records) if corpus is None else corpus
    return Reviews(documents, decisions_on(records, documents))


def read_layers(
    paths: str | Path | Sequence[str | Path],
    layers: Layers,
    *,
    digests: dict[str, str] | None = None,
    max_size: int | str | None = None,
) -> dict[str, Reviews]:
    """The same of annotations in layers, by layer: those of which somebody decided something.

    >>> import quorate, tempfile
    >>> inner = Corpus([Document("1", ("Bath", "Spa"), {"p": ("B-LOC", "O")})])
    >>> outer = Corpus([Document("1", ("Bath", "Spa"), {"p": ("B-ORG", "I-ORG")})])
    >>> line = '{"id": "1", "tags": ["B-LOC", "O"], "layer": "LOC", "reviewer": "ann"}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "ann.jsonl").write_text(line)
    ...     found = read_layers(f"{folder}/ann.jsonl", quorate.Layers({"LOC": inner, "ORG": outer}))
    >>> {name: reviews.known for name, reviews in found.items()}
    {'LOC': {'1': ('B-LOC', 'O')}}
    """
    layers, records = read_layer_records(paths, layers, digests=digests, max_size=max_size)
    return {name: Reviews(layers[name], decisions_on(its, layers[name]), name) for name, its in records.items() if its}


def _documents(records: Iterable[jsonl.KnownRecord]) -> Corpus:
    """The documents that records are of, in the order in which they first occur."""
    first: dict[str, jsonl.KnownRecord] = {}
    for record in records:
        earlier = first.setdefault(record.id, record)
        if earlier.tokens is None and record.tokens is not None:
            first[record.id] = record
    return Corpus(_document(record) for record in first.values())


def _document(record: jsonl.KnownRecord) -> Document:
    if record.tokens is None:
        raise InputError(
            "nobody says what its tokens are (give the annotations with --input)",
            where=f"{record.source.at()}: document {record.id!r}",
        )
    return Document(record.id, record.tokens, source=record.source)
