"""Documents in the database: put there from a corpus, and given out again as one, with everybody's labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, insert, select

from quorate.corpus.offsets import Unit
from quorate.corpus.overlaps import MOST_DEEP, Conflict, OverlapRule, Overlaps, conflict, part
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document, SoftTag, Source, Tag, hard_tags
from quorate.corpus.spans import CharSpan, Span
from quorate.corpus.tags import OUTSIDE, find_spans, marks_span
from quorate.corpus.tokens import Places, tokenize
from quorate.formats.assemble import Assembly, Options
from quorate.formats.layers import Layers
from quorate.formats.marked import Marked
from quorate_serve.database import tables
from quorate_serve.problems import InvalidError, NotFoundError, OverlapError

Offsets = Sequence[tuple[int, int]]
SpanRecord = dict[str, Any]
"""``{"start": 3, "end": 9, "label": "PER"}``, in code points, end excluded."""

_MOST_SPANS = 20_000
_LONGEST_LABEL = 200
_ASKED_TOGETHER = 500  # documents in one question


def check_spans(spans: Sequence[Mapping[str, Any]], length: int, labels: Sequence[str] = ()) -> list[SpanRecord]:
    """Spans as they are kept, in their order in the text, each once; :class:`InvalidError` says which one cannot be.

    >>> check_spans([{"start": 4, "end": 8, "label": "X"}, {"start": 0, "end": 3, "label": "X"}], 8)[0]
    {'start': 0, 'end': 3, 'label': 'X'}
    """
    if len(spans) > _MOST_SPANS:
        raise InvalidError(f"{len(spans):,} spans are more than a document may have ({_MOST_SPANS:,})")
    found: set[CharSpan] = set()
    for number, span in enumerate(spans, 1):
        start, end, label = span["start"], span["end"], span["label"]
        if not 0 <= start < end <= length:
            raise InvalidError(f"span {number} is from {start} to {end} in a text of {length:,} characters")
        if not label or len(label) > _LONGEST_LABEL or (labels and label not in labels):
            raise InvalidError(
                f"span {number} has the label {label[:50]!r} (labels here: {', '.join(labels) or 'any word'})"
            )
        found.add(CharSpan(start, end, label))
    in_order = sorted(found, key=lambda span: (span.start, span.end, span.label))
    return [{"start": span.start, "end": span.end, "label": span.label} for span in in_order]


def overlap_in(spans: Sequence[SpanRecord], rule: OverlapRule, tokens: Callable[[], Offsets]) -> Conflict | None:
    """A span that overlaps although it must not, if there is one; ``tokens`` are asked for only if they tell."""
    few = rule.allowed is Overlaps.NONE or len(spans) <= rule.limit
    kept, left = part(map(char_span, spans), rule, () if few else tokens())
    return conflict(left[0], kept, rule) if left else None


def check_overlaps(spans: Sequence[SpanRecord], rule: OverlapRule | None, tokens: Callable[[], Offsets]) -> None:
    """:class:`OverlapError` says which spans of somebody overlap although they must not.

    >>> ada = [{"start": 0, "end": 3, "label": "PER"}, {"start": 0, "end": 12, "label": "PER"}]
    >>> check_overlaps(ada, OverlapRule(), lambda: ())
    Traceback (most recent call last):
    ...
    quorate_serve.problems.OverlapError: PER from 0 to 3 overlaps PER from 0 to 12, and no spans may overlap here \
(take one of them out)
    """
    found = None if rule is None else overlap_in(spans, rule, tokens)
    if rule is None or found is None:
        return
    one = f"{found.span.label} from {found.span.start} to {found.span.end}"
    if found.other is None:
        raise OverlapError(
            f"{one} lies on a word on which there are {rule.limit} spans already, the most that may overlap here "
            "(take some of them out)"
        )
    two = f"{found.other.label} from {found.other.start} to {found.other.end}"
    if rule.allowed is Overlaps.NONE:
        raise OverlapError(f"{one} overlaps {two}, and no spans may overlap here (take one of them out)")
    raise OverlapError(f"{one} crosses {two}, and spans may only lie inside one another here (take one of them out)")


class _Laid(NamedTuple):
    text: str
    offsets: Sequence[tuple[int, int]]


def _laid(document: Document) -> _Laid:
    """A text, and where the tokens are in it: of a document that has none, its tokens with blanks between."""
    if document.text is not None and document.offsets is not None:
        return _Laid(document.text, document.offsets)
    places, at = [], 0
    for token in document.tokens:
        places.append((at, at + len(token)))
        at += len(token) + 1
    return _Laid(" ".join(document.tokens), places)


def places_of(document: Document) -> Offsets:
    """Where the tokens of a document will be in its text."""
    return _laid(document).offsets


def add_document(
    connection: Connection, document: Document, *, purpose: str = "work", gold: Iterable[Sequence[Tag]] | None = None
) -> tuple[int, bool]:
    """Put a document there without its labels: its number, and whether it is new.

    ``gold`` are the tags of what is right in it, in every layer; the document's own is left out.

    :class:`InvalidError` if its id stands for another text.
    """
    text, offsets = _laid(document)
    there = connection.execute(
        select(tables.documents.c.number, tables.documents.c.text).where(tables.documents.c.id == document.id)
    ).one_or_none()
    if there is not None:
        _check_same(document.id, there.text, text)
        return int(there.number), False
    made = connection.execute(
        insert(tables.documents).values(
            id=document.id,
            text=text,
            tokens=[list(place) for place in offsets],
            split=document.split,
            purpose=purpose,
            gold=None if gold is None else spans_of_layers(gold, offsets),
            origin=None if document.origin is None else dict(document.origin),
        )
    ).inserted_primary_key
    assert made is not None
    return int(made[0]), True


def purposes_of(connection: Connection, documents: Sequence[Document]) -> dict[str, str]:
    """What those of the documents are for that are here already, by id.

    :class:`InvalidError` if an id stands for two texts, here or among these documents.
    """
    texts: dict[str, str] = {}
    for document in documents:
        text = _laid(document).text
        _check_same(document.id, texts.setdefault(document.id, text), text)
    found: dict[str, str] = {}
    table, ids = tables.documents.c, list(texts)
    for first in range(0, len(ids), _ASKED_TOGETHER):
        some = table.id.in_(ids[first : first + _ASKED_TOGETHER])
        for row in connection.execute(select(table.id, table.text, table.purpose).where(some)):
            _check_same(row.id, row.text, texts[row.id])
            found[row.id] = row.purpose
    return found


def _check_same(id: str, there: str, text: str) -> None:
    if there != text:
        raise InvalidError(f"document {id!r} is here with another text (ids must be unique)")


def add_text(connection: Connection, id: str, text: str, *, purpose: str = "work") -> int:
    """Put a text there that nobody has labelled."""
    offsets = tokenize(text)
    words = tuple(text[start:end] for start, end in offsets)
    return add_document(connection, Document(id, words, text=text, offsets=offsets), purpose=purpose)[0]


def spans_of_tags(tags: Sequence[Tag], offsets: Sequence[tuple[int, int]]) -> list[SpanRecord]:
    """The spans that tags mark, in characters; of plain labels, neighbours that have the same one are a span.

    >>> spans_of_tags(("PER", "PER", "O", "LOC"), [(0, 3), (4, 6), (7, 9), (10, 14)])[0]
    {'start': 0, 'end': 6, 'label': 'PER'}
    """
    plain = any(tag not in (None, OUTSIDE) and not marks_span(tag) for tag in tags)
    return [
        {"start": offsets[span.start][0], "end": offsets[span.end - 1][1], "label": span.label}
        for span in (_runs(tags) if plain else find_spans(tags))
        if span.label
    ]


def _runs(labels: Sequence[Tag]) -> Iterator[Span]:
    """Neighbours with the same plain label."""
    for label, group in groupby(range(len(labels)), key=lambda place: labels[place]):
        places = list(group)
        if label is not None and label != OUTSIDE:
            yield Span(places[0], places[-1] + 1, label)


def spans_of_layers(layers: Iterable[Sequence[Tag]], offsets: Sequence[tuple[int, int]]) -> list[SpanRecord]:
    """The spans that tags mark in all layers, in their order in the text."""
    spans = (span for tags in layers for span in spans_of_tags(tags, offsets))
    return sorted(spans, key=lambda span: (span["start"], span["end"], span["label"]))


def tags_of_layers(layers: Sequence[Sequence[Tag | SoftTag]]) -> list[Any] | None:
    """What :func:`kept_tags` keeps, put together from layers; ``None`` also where their spans overlap.

    >>> tags_of_layers([[{"B-X": 0.75, "O": 0.25}, "O"], ["O", "B-Y"]])
    [{'B-X': 0.75, 'O': 0.25}, 'B-Y']
    >>> tags_of_layers([["B-X", {"I-X": 0.75, "O": 0.25}], ["O", "B-Y"]]) is None
    True
    """
    if all(kept_tags(tags) is None for tags in layers):
        return None
    together: list[Any] = []
    for tags in zip(*layers, strict=True):
        marks = [tag for tag in tags if tag != OUTSIDE]
        if len(marks) < 2 or None in marks:
            together.append(None if None in marks else marks[0] if marks else OUTSIDE)
            continue
        shares: dict[str, float] = {}
        for tag in marks:
            of_layer = tag if isinstance(tag, Mapping) else {str(tag): 1.0}
            shares |= {name: share for name, share in of_layer.items() if name != OUTSIDE}
        rest = 1.0 - sum(shares.values())
        if rest < -1e-6 or sum(tag != OUTSIDE for tag in hard_tags(marks)) > 1:
            return None
        together.append({**shares, OUTSIDE: max(rest, 0.0)})
    return kept_tags(together)


def kept_tags(tags: Sequence[Tag | SoftTag]) -> list[Any] | None:
    """Tags that spans cannot hold (a token not seen, probabilities) as they are kept; ``None`` where spans do."""
    if all(isinstance(tag, str) for tag in tags):
        return None
    return [dict(tag) if isinstance(tag, Mapping) else tag for tag in tags]


def document_record(connection: Connection, number: int) -> dict[str, Any]:
    """A document by its number; :class:`NotFoundError` if there is none."""
    row = connection.execute(select(tables.documents).where(tables.documents.c.number == number)).mappings().first()
    if row is None:
        raise NotFoundError(f"no document {number}")
    return dict(row)


def content_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """What answers have of a document: its number, id and text, and where its tokens are."""
    place = {name: row[name] for name in ("number", "id", "text")}
    return {**place, "tokens": [(start, end) for start, end in row["tokens"]]}


def tokens_of(connection: Connection, number: int) -> Offsets:
    """Where the tokens of a document are."""
    return document_record(connection, number)["tokens"]  # type: ignore[no-any-return]


def count_documents(connection: Connection, purpose: str = "work") -> int:
    """How many documents there are for a purpose."""
    query = select(func.count()).select_from(tables.documents).where(tables.documents.c.purpose == purpose)
    return int(connection.execute(query).scalar_one())


def marked_documents(connection: Connection, numbers: Iterable[int] | None = None) -> Iterator[GivenDocument]:
    """Documents with everybody's spans as they stand, by number; these, or all."""
    query = select(tables.documents).order_by(tables.documents.c.number)
    kept = tables.current_annotations.c
    labels = select(kept.document, kept.person, kept.spans, kept.tags).order_by(kept.document, kept.person)
    if numbers is not None:
        wanted = list(numbers)
        query = query.where(tables.documents.c.number.in_(wanted))
        labels = labels.where(kept.document.in_(wanted))
    marks: dict[int, dict[str, list[CharSpan]]] = {}
    tags: dict[int, dict[str, tuple[Tag | SoftTag, ...]]] = {}
    for row in connection.execute(
        labels.order_by(tables.current_annotations.c.document, tables.current_annotations.c.person)
    ):
        if row.tags is not None:
            tags.setdefault(row.document, {})[row.person] = tuple(row.tags)
        marks.setdefault(row.document, {})[row.person] = _char_spans(row.spans)
    for document in connection.execute(query).mappings():
        number = document["number"]
        yield GivenDocument(_marked(dict(document), marks.get(number, {})), tags.get(number, {}))


def document_with(row: Mapping[str, Any], marks: Mapping[str, Iterable[SpanRecord]]) -> GivenDocument:
    """A document (a row of its table) with spans by whoever says so, in place of those that stand."""
    return GivenDocument(_marked(row, {name: _char_spans(spans) for name, spans in marks.items()}), {})


class GivenDocument(NamedTuple):
    """A document with spans, and the tags of those whose labels spans cannot hold."""

    marked: Marked
    tags: Mapping[str, tuple[Tag | SoftTag, ...]]


def _char_spans(spans: Iterable[SpanRecord]) -> list[CharSpan]:
    return [char_span(span) for span in spans if span["label"] and span["start"] < span["end"]]


def char_span(span: Mapping[str, Any]) -> CharSpan:
    """A span as a value."""
    return CharSpan(span["start"], span["end"], span["label"])


def _marked(row: Mapping[str, Any], marks: dict[str, list[CharSpan]]) -> Marked:
    offsets = Places((start, end) for start, end in row["tokens"])
    return Marked(
        row["id"],
        row["text"],
        marks,
        Source("the service", row["number"], record="document"),
        gold=None if row["gold"] is None else _char_spans(row["gold"]),
        split=row["split"],
        tokens=[row["text"][start:end] for start, end in offsets],
        offsets=offsets,
        origin=row["origin"],
    )


def corpus_of(given: Iterable[GivenDocument], profiles: Mapping[str, Profile] | None = None) -> Corpus:
    """Documents as one corpus: of spans of one annotator that overlap, the longer is kept."""
    given = list(given)
    assembly = Assembly(Options(unit=Unit.CODE_POINTS))
    assembly.add([one.marked for one in given], "the service", merge=True)
    corpus = assembly.corpus()
    documents = [
        replace(document, annotations={**document.annotations, **one.tags}) if one.tags else document
        for document, one in zip(corpus, given, strict=True)
    ]
    there = {name for document in documents for name in document.annotations}
    known = {name: profile for name, profile in (profiles or {}).items() if name in there}
    return Corpus(documents, notes=corpus.notes, profiles=known)


def have_overlap(given: GivenDocument) -> bool:
    """Whether spans of one annotator, or of the gold, overlap, so that one sequence of tags cannot hold them."""
    for spans in (*given.marked.annotations.values(), given.marked.gold or ()):
        ordered = sorted((span.start, span.end) for span in spans)
        if any(start < end for (_, end), (start, _) in pairwise(ordered)):
            return True
    return False


def assembled(given: Iterable[GivenDocument]) -> Assembly:
    """Documents whose spans are laid on tokens, to be dealt into layers; more than these can take are left out."""
    assembly = Assembly(Options(unit=Unit.CODE_POINTS, layers=True))
    assembly.add([_within(one.marked) for one in given], "the service", merge=True)
    return assembly


def _within(marked: Marked) -> Marked:
    marks = {name: _most(spans, marked) for name, spans in marked.annotations.items()}
    return replace(marked, annotations=marks, gold=None if marked.gold is None else _most(marked.gold, marked))


def _most(spans: list[CharSpan], marked: Marked) -> list[CharSpan]:
    """As many spans as layers can take."""
    if len(spans) <= MOST_DEEP:
        return spans
    return sorted(part(spans, OverlapRule(Overlaps.ANY, MOST_DEEP), marked.offsets or ())[0])


def layers_of(given: Iterable[GivenDocument]) -> Layers:
    """Documents in as many layers as it takes to keep all spans that overlap."""
    return assembled(given).layers()


def profiles_of(connection: Connection) -> dict[str, Profile]:
    """What the model is told of annotators of whom files told something, or who are no people."""
    people = tables.people.c
    rows = connection.execute(select(people.id, people.kind, people.profile))
    known_profiles = {row.id: {**(row.profile or {}), "kind": row.kind} for row in rows}
    return {person: Profile.of(**fields) for person, fields in known_profiles.items() if fields != {"kind": "person"}}
