"""Files into the service: documents, and what annotators said of them elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from sqlalchemy import Connection

from quorate.corpus.overlaps import OverlapRule, Overlaps
from quorate.corpus.records import Corpus, Document, hard_tags
from quorate.formats.layers import Layers
from quorate.wording import in_number
from quorate_serve.annotating import import_annotation
from quorate_serve.answers import Imported
from quorate_serve.database.engine import Database
from quorate_serve.documents import (
    add_document,
    document_record,
    overlap_in,
    places_of,
    purposes_of,
    spans_of_layers,
    tags_of_layers,
)
from quorate_serve.events import Kind, append
from quorate_serve.people import named
from quorate_serve.problems import OverlapError

_TOGETHER = 200  # documents in one transaction: nobody who saves meanwhile waits for long
_HERE_FOR = (
    "{} {document is|documents are} here for {} already: {it stays|they stay} so, and {its|their} gold is left out"
)
_OVERLAPPING = (
    "in {} {label|labels} spans overlap although they must not here: the longer counts, and the page Progress shows "
    "{it|them} (option overlaps)"
)
_WITHOUT_GOLD = "{} {document|documents} for {} {has|have} no gold: nobody can be told right from wrong by {it|them}"


def import_corpus(
    database: Database,
    secret: bytes,
    given: Corpus | Layers,
    *,
    by: str | None = None,
    purpose: str = "work",
    source: str = "",
    rule: OverlapRule | None = None,
    least: int | None = None,
) -> Imported:
    """Put documents there, with what everybody said of them; what is there already stays one.

    In layers (:func:`quorate.read_layers`) spans that overlap are all kept.

    Of documents for checks and training the gold is kept; of those for work, gold is left out: nothing here is to
    learn from it. An id that stands for another text refuses all, before anything is written. So does an annotator of
    whom more spans share a token than ``rule`` allows; other spans that overlap although they must not are noted.
    ``least`` is how many annotators complete a document, where webhooks are to be told.
    """
    layers = given if isinstance(given, Layers) else Layers.alone(given)
    corpus = layers.corpus
    with database.read() as connection:
        notes = _left_out(corpus, purposes_of(connection, corpus.documents), purpose)
    if rule is not None and len(layers) > 1:  # in one layer nothing overlaps
        notes += _overlapping(layers, rule)
    people = database.change(
        lambda connection: named(connection, secret, corpus.annotators, profiles=corpus.profiles, by=by)
    )
    documents = labels = 0
    for first in range(0, len(corpus), _TOGETHER):
        some = list(zip(*(each.documents[first : first + _TOGETHER] for each in layers.values()), strict=True))
        found = database.change(partial(_put, documents=some, people=people, purpose=purpose, least=least))
        documents, labels = documents + found[0], labels + found[1]
    body = {"source": source, "documents": documents, "labels": labels, "purpose": purpose}
    database.change(lambda connection: append(connection, Kind.IMPORTED, person=by, body=body))
    return Imported(documents, labels, len(people), list(notes))


def import_at_once(
    connection: Connection, secret: bytes, layers: Layers, *, by: str | None, source: str, rule: OverlapRule
) -> Imported:
    """Put documents there in a transaction that does more; those who save meanwhile would wait for all of it."""
    corpus = layers.corpus
    notes = _left_out(corpus, purposes_of(connection, corpus.documents), "work")
    if len(layers) > 1:
        notes += _overlapping(layers, rule)
    people = named(connection, secret, corpus.annotators, profiles=corpus.profiles, by=by)
    together = list(zip(*(each.documents for each in layers.values()), strict=True))
    documents, labels = _put(connection, together, people, "work", least=None)
    body = {"source": source, "documents": documents, "labels": labels, "purpose": "work"}
    append(connection, Kind.IMPORTED, person=by, body=body)
    return Imported(documents, labels, len(people), list(notes))


def _left_out(corpus: Corpus, there: Mapping[str, str], purpose: str) -> tuple[str, ...]:
    """What is to be said of documents that are not what the file is imported for, or not of use for it."""
    other = Counter(there[document.id] for document in corpus if there.get(document.id, purpose) != purpose)
    notes = [in_number(_HERE_FOR, count, before) for before, count in sorted(other.items())]
    bare = sum(document.gold is None and document.id not in there for document in corpus)
    if purpose != "work" and bare:
        notes.append(in_number(_WITHOUT_GOLD, bare, purpose))
    return tuple(notes)


def _overlapping(layers: Layers, rule: OverlapRule) -> tuple[str, ...]:
    """What is to be said of spans that overlap although they must not."""
    most = OverlapRule(Overlaps.ANY, rule.limit)
    against = 0
    for in_layers in zip(*layers.values(), strict=True):
        document = in_layers[0]
        offsets = places_of(document)
        sequences = [[hard_tags(each.annotations[name]) for each in in_layers] for name in document.annotations]
        gold = [each.gold for each in in_layers if each.gold is not None]
        for tags in [*sequences, gold]:
            spans = spans_of_layers(tags, offsets)
            if (found := overlap_in(spans, most, lambda offsets=offsets: offsets)) is not None:  # type: ignore[misc]
                raise OverlapError(
                    f"document {document.id!r}: more than {rule.limit} spans of one annotator share the word at "
                    f"{found.span.start}, the most that may overlap here (option overlap-limit)"
                )
            against += overlap_in(spans, rule, lambda offsets=offsets: offsets) is not None  # type: ignore[misc]
    return (in_number(_OVERLAPPING, against),) if against else ()


def _put(
    connection: Connection,
    documents: Sequence[Sequence[Document]],
    people: dict[str, str],
    purpose: str,
    least: int | None,
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
            sequences = [each.annotations[name] for each in in_layers]
            spans = spans_of_layers(map(hard_tags, sequences), offsets)
            labels += import_annotation(connection, people[name], number, spans, tags_of_layers(sequences), least=least)
    return added, labels
