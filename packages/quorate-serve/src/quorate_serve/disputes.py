"""Where reviewers of a document differ: the rules are those of :mod:`quorate.corpus.decisions`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from quorate.corpus.decisions import Decision, Review, settle
from quorate.corpus.records import Source, hard_tags
from quorate.corpus.spans import CharSpan
from quorate_serve.answers import Place
from quorate_serve.database import tables
from quorate_serve.documents import SpanRecord, char_span, document_record, document_with, layers_of


class Word(NamedTuple):
    """What a reviewer says of a document, and as what; ``event`` is when they said it, among all that happened."""

    person: str
    spans: Sequence[SpanRecord]
    adjudicates: bool
    event: int = 0


class Dispute(NamedTuple):
    """A document on which reviewers differ, what they say, and where that is open."""

    document: Mapping[str, Any]
    words: Sequence[Word]
    places: Sequence[Place]


def words_on(connection: Connection, document: int) -> list[Word]:
    """What reviewers say of a document, in the order in which they said it."""
    kept = tables.reviews
    rows = connection.execute(select(kept).where(kept.c.document == document).order_by(kept.c.event))
    return [_word(row) for row in rows]


def in_dispute(connection: Connection, after: int, most: int) -> list[Dispute]:
    """The documents on which reviewers differ, by number."""
    kept = tables.reviews
    several = select(kept.c.document).group_by(kept.c.document).having(func.count() > 1)
    query = select(kept).where(kept.c.document > after, kept.c.document.in_(several))
    found: list[Dispute] = []
    rows = connection.execute(query.order_by(kept.c.document, kept.c.event)).all()
    for number, its in groupby(rows, key=lambda row: int(row.document)):
        words = [_word(row) for row in its]
        if _differ(words):
            document = document_record(connection, number)
            places = open_places(document, words)
            found += [Dispute(document, words, places)] if places else []
        if len(found) == most:
            break
    return found


def _word(row: Any) -> Word:
    return Word(row.person, row.spans, row.adjudicates, row.event)


def open_places(document: Mapping[str, Any], words: Sequence[Word]) -> list[Place]:
    """Where reviewers differ and nobody has decided between them.

    >>> text = {"number": 1, "id": "1", "text": "Ada sang", "tokens": [[0, 3], [4, 8]], "split": None, "gold": None,
    ...         "origin": None}
    >>> ann, bob = Word("ann", [{"start": 0, "end": 3, "label": "PER"}], False), Word("bob", [], False)
    >>> open_places(text, [ann, bob]), open_places(text, [ann, bob, Word("cat", [], True)])
    ([Place(start=0, end=3)], [])
    """
    if not _differ(words):
        return []
    layers = layers_of([document_with(document, {word.person: word.spans for word in words})])
    source = Source("the service", document["number"])
    tokens: set[int] = set()
    for corpus in layers.values():
        annotations = corpus[0].annotations
        decisions = [
            Decision(hard_tags(annotations[word.person]), source, Review(word.person, adjudicated=word.adjudicates))
            for word in words
        ]
        tokens.update(settle(decisions).disputed)
    if tokens:
        return [_place(document, run) for run in _runs(sorted(tokens))]
    # spans can differ within a word, where tags cannot
    return sorted({Place(span.start, span.end) for span in _differences(words)})


def _decisive(words: Sequence[Word]) -> list[Word]:
    """Those whose word counts: who adjudicates, if somebody does."""
    return [word for word in words if word.adjudicates] or list(words)


def _differences(words: Sequence[Word]) -> set[CharSpan]:
    """The spans that only some of those say whose word counts."""
    marked = [set(map(char_span, word.spans)) for word in _decisive(words)]
    return marked[0].union(*marked) - marked[0].intersection(*marked) if marked else set()


def _differ(words: Sequence[Word]) -> bool:
    return bool(_differences(words))


def _runs(positions: Iterable[int]) -> Iterable[list[int]]:
    """Neighbours among sorted positions, together."""
    for _, run in groupby(enumerate(positions), key=lambda pair: pair[1] - pair[0]):
        yield [position for _, position in run]


def _place(document: Mapping[str, Any], tokens: Sequence[int]) -> Place:
    return Place(document["tokens"][tokens[0]][0], document["tokens"][tokens[-1]][1])
