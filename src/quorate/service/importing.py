"""Files into the service: documents, and what annotators said of them elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from quorate.corpus.records import Corpus, Document, hard_tags
from quorate.formats.layers import Layers
from quorate.service.annotating import import_annotation
from quorate.service.database.engine import Database
from quorate.service.documents import add_document, document_record, spans_of_layers, tags_of_layers
from quorate.service.events import Kind, append
from quorate.service.people import named

__all__ = ["Imported", "import_corpus"]

_TOGETHER = 200  # documents in one transaction: nobody who saves meanwhile waits for long


class Imported(NamedTuple):
    """What came in: documents that were not here, labels (a document by an annotator) that are new, annotators."""

    documents: int
    labels: int
    annotators: int


def import_corpus(
    database: Database,
    secret: bytes,
    given: Corpus | Layers,
    *,
    by: str | None = None,
    purpose: str = "work",
    source: str = "",
) -> Imported:
    """Put documents there, with what everybody said of them; what is there already stays one.

    In layers (:func:`quorate.read_layers`) spans that overlap are all kept.

    Of documents for checks and training the gold is kept; of those for work, gold is left out: nothing here is to
    learn from it.
    """
    layers = given if isinstance(given, Layers) else Layers.alone(given)
    corpus = layers.corpus
    people = database.change(
        lambda connection: named(connection, secret, corpus.annotators, profiles=corpus.profiles, by=by)
    )
    documents = labels = 0
    for first in range(0, len(corpus), _TOGETHER):
        some = list(zip(*(each.documents[first : first + _TOGETHER] for each in layers.values()), strict=True))
        found = database.change(lambda connection, some=some: _put(connection, some, people, purpose))  # type: ignore[misc]
        documents, labels = documents + found[0], labels + found[1]
    body = {"source": source, "documents": documents, "labels": labels, "purpose": purpose}
    database.change(lambda connection: append(connection, Kind.IMPORTED, person=by, body=body))
    return Imported(documents, labels, len(people))


def _put(
    connection: Connection, documents: Sequence[Sequence[Document]], people: dict[str, str], purpose: str
) -> tuple[int, int]:
    """Documents, each as it is in every layer: how many are new, and how many labels."""
    added = labels = 0
    for in_layers in documents:
        document = in_layers[0]
        right = [each.gold for each in in_layers if each.gold is not None]
        gold = right if right and purpose != "work" else None
        number, is_new = add_document(connection, document, purpose=purpose, gold=gold)
        added += is_new
        if not document.annotations:
            continue
        offsets = document_record(connection, number)["tokens"]
        for name in document.annotations:
            said = [each.annotations[name] for each in in_layers]
            spans = spans_of_layers(map(hard_tags, said), offsets)
            labels += import_annotation(connection, people[name], number, spans, tags_of_layers(said))
    return added, labels
