"""What the worker has in memory: every document with everybody's labels, and what is known of it.

The database is read once as a whole; after that only documents are read in which something happened. What reviewers
decided is put together by the same rules as files of decisions are (:mod:`quorate.corpus.decisions`): an adjudication
wins, and what is in dispute is not known. Of documents for checks and training the gold is known, which tells the model
about those who labelled them; they are not in the consensus that is given out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection, select

from quorate.corpus.decisions import Decision, Review, settle
from quorate.corpus.overlaps import OverlapRule, Overlaps, conflict, part
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document, Source, Tag, hard_tags
from quorate.corpus.spans import CharSpan
from quorate.formats.layering import Layer, Layering, named
from quorate.formats.layers import Layers
from quorate_serve.database import tables
from quorate_serve.documents import (
    GivenDocument,
    assembled,
    corpus_of,
    marked_documents,
    profiles_of,
)

_REVIEW = "review of "  # before the id of a reviewer; no id of an annotator has blanks
_AT_ONCE = 500  # documents that one query names
_MOST_OVERLAPS = 20  # spans of one annotator in a document that overlap although they must not, of which it is told
_ALONE = ""  # the name of the only layer, where nothing overlaps


class Overlap(NamedTuple):
    """A span of somebody's that overlaps although it must not, and so is in no layer; and the one that counts."""

    person: str
    span: CharSpan
    other: CharSpan | None


class Entry(NamedTuple):
    """A document as it stands: what everybody said of it, and the known tags, in each layer.

    ``known`` is empty if nothing was ever known of it; tags that are all ``None`` say that nothing is known any more.
    """

    number: int
    purpose: str
    documents: Mapping[str, Document]
    known: Mapping[str, tuple[Tag, ...]]

    @property
    def document(self) -> Document:
        """The document in its first layer; text and tokens are the same in all."""
        return next(iter(self.documents.values()))

    @property
    def labels(self) -> int:
        """How many annotators have labelled it."""
        return len(self.document.annotations)

    @property
    def is_decided(self) -> bool:
        """Whether every tag of it is known."""
        return bool(self.known) and all(tag is not None for tags in self.known.values() for tag in tags)

    @property
    def is_work(self) -> bool:
        """Whether it is there to be labelled; the others are for checks and training."""
        return self.purpose == "work"

    @property
    def tells(self) -> bool:
        """Whether there is anything to learn from it: labels or, of one for work, a decision."""
        return bool(self.document.annotations) or (
            self.is_work and any(tag is not None for tags in self.known.values() for tag in tags)
        )


class Collected:
    """All documents, by number; ``labels`` are those of all of them, a document by an annotator each.

    ``layers`` are those that spans are dealt into where they may overlap; ``None`` if one holds all that is combined.
    They follow from what stands, however it came about. ``overlaps`` are, by document, spans that overlap although they
    must not.
    """

    def __init__(self, rule: OverlapRule | None = None) -> None:
        self._rule = OverlapRule() if rule is None else rule
        self._layering = Layering[int]()
        self.overlaps: dict[int, list[Overlap]] = {}
        self.entries: dict[int, Entry] = {}
        self.labels = 0
        self.layers: dict[str, Layer] | None = None
        self.profiles: dict[str, Profile] = {}

    def read_all(self, connection: Connection) -> None:
        """Read everything, and who is no person."""
        self.read_people(connection)
        purposes = _purposes(connection, None)
        self.entries, self.labels, self.overlaps, self._layering = {}, 0, {}, Layering()
        given = self._allowed(_with_reviews(connection, None))
        self.layers = self._layers_with(given)
        self._take(self._dealt(given), purposes)

    def read(self, connection: Connection, numbers: Collection[int]) -> bool:
        """Read these documents again; whether the layers are the same: if not, everything was read and dealt again."""
        wanted = sorted(numbers)
        for first in range(0, len(wanted), _AT_ONCE):
            some = wanted[first : first + _AT_ONCE]
            given = self._allowed(_with_reviews(connection, some))
            if self._layers_with(given) != self.layers:
                self.read_all(connection)
                return False
            self._take(self._dealt(given), _purposes(connection, some))
        return True

    def read_new(self, connection: Connection) -> bool:
        """Read the documents that have come since, as :meth:`read` does."""
        there = connection.execute(select(tables.documents.c.number)).scalars()
        return self.read(connection, [number for number in there if number not in self.entries])

    def read_people(self, connection: Connection) -> bool:
        """Read what is told of annotators; whether that is other than it was."""
        before, self.profiles = self.profiles, profiles_of(connection)
        return self.profiles != before

    def telling(self) -> list[Entry]:
        """The documents that a fit learns from, in the order of their numbers."""
        return [self.entries[number] for number in sorted(self.entries) if self.entries[number].tells]

    def work(self) -> list[Entry]:
        """The documents that are there to be labelled, in the order of their numbers."""
        return [self.entries[number] for number in sorted(self.entries) if self.entries[number].is_work]

    def laid_out(self, entries: Iterable[Entry]) -> Layers:
        """Documents as models take them."""
        entries = list(entries)
        names = {name for entry in entries for name in entry.document.annotations}
        profiles = {name: profile for name, profile in self.profiles.items() if name in names}
        corpora = {
            layer: Corpus([entry.documents[layer] for entry in entries], profiles=profiles)
            for layer in self.layers or (_ALONE,)
        }
        return Layers.alone(corpora[_ALONE]) if self.layers is None else Layers(corpora, self.layers)

    def known(self, entries: Iterable[Entry]) -> dict[str, dict[str, tuple[Tag, ...]]]:
        """What is known of documents, by layer and id."""
        found: dict[str, dict[str, tuple[Tag, ...]]] = {layer: {} for layer in self.layers or (_ALONE,)}
        for entry in entries:
            for layer, tags in entry.known.items():
                found[layer][entry.document.id] = tags
        return found

    @property
    def rare(self) -> list[int]:
        """The documents in which spans overlap as they hardly do elsewhere, so that only the longer is combined."""
        return sorted(self._layering.needing_rare)

    def _allowed(self, given: Iterable[GivenDocument]) -> list[GivenDocument]:
        """The documents with the spans that may be there together; of the others, :attr:`overlaps` tells."""
        found = []
        for one in given:
            marked, against = one.marked, list[Overlap]()
            kept = dict(marked.annotations)
            for name, spans in marked.annotations.items():
                rule = self._rule_of(name)
                own, left = part(spans, rule, marked.offsets or ()) if len(spans) > 1 else (spans, [])
                if left:
                    kept[name] = sorted(own)
                    against += [Overlap(name, *conflict(span, own, rule)) for span in left[:_MOST_OVERLAPS]]
            self.overlaps.pop(marked.source.line, None)
            if against:
                self.overlaps[marked.source.line] = against
            if self._rule.allowed is not Overlaps.NONE:  # otherwise one sequence of tags keeps the longer
                one = one._replace(marked=replace(marked, annotations=kept))
            found.append(one)
        return found

    def _rule_of(self, name: str) -> OverlapRule:
        """What somebody's spans may do; a reviewer who accepts a consensus in layers may accept spans that cross."""
        accepts = name.startswith(_REVIEW) and self._rule.allowed is Overlaps.NESTED
        return self._rule._replace(allowed=Overlaps.ANY) if accepts else self._rule

    def _layers_with(self, given: Sequence[GivenDocument]) -> dict[str, Layer] | None:
        """The layers to combine, now that these documents are as they are."""
        if self._rule.allowed is Overlaps.NONE:
            return None
        for one, placed in zip(given, assembled(given).placed(), strict=True):
            decided = [name for name in placed.annotations if name.startswith(_REVIEW)]
            self._layering.put(one.marked.source.line, placed, decided)
        held = self._layering.layers()
        combined = [layer for layer in held if layer not in self._layering.rare]
        return named(combined) if len(combined) > 1 else None

    def _dealt(self, given: Sequence[GivenDocument]) -> Layers:
        return Layers.alone(corpus_of(given)) if self.layers is None else assembled(given).layers(self.layers)

    def _take(self, layers: Layers, purposes: Mapping[int, str]) -> None:
        for documents in zip(*layers.values(), strict=True):
            source = documents[0].source
            assert source is not None  # its line is the number of the document
            number = source.line
            before = self.entries.get(number)
            purpose = purposes[number]
            parted = {layer: _parted(one, purpose) for layer, one in zip(layers, documents, strict=True)}
            known = {layer: tags for layer, (_, tags) in parted.items() if tags is not None}
            if not known and before is not None and before.known:
                known = {layer: (None,) * len(documents[0].tokens) for layer in layers}
            entry = Entry(number, purpose, {layer: one for layer, (one, _) in parted.items()}, known)
            self.labels += entry.labels - (0 if before is None else before.labels)
            self.entries[number] = entry


def _purposes(connection: Connection, numbers: Collection[int] | None) -> dict[int, str]:
    query = select(tables.documents.c.number, tables.documents.c.purpose)
    if numbers is not None:
        query = query.where(tables.documents.c.number.in_(numbers))
    return {row.number: row.purpose for row in connection.execute(query)}


def _with_reviews(connection: Connection, numbers: Collection[int] | None) -> Iterator[GivenDocument]:
    """Documents on which reviewers' decisions lie as those of annotators, so that they are laid on tokens alike."""
    query = select(tables.reviews)
    if numbers is not None:
        query = query.where(tables.reviews.c.document.in_(numbers))
    decided: dict[int, dict[str, list[CharSpan]]] = {}
    for row in connection.execute(query.order_by(tables.reviews.c.document, tables.reviews.c.event)):
        name = f"{_REVIEW}{'adjudicator' if row.adjudicates else 'reviewer'} {row.person}"
        spans = [CharSpan(span["start"], span["end"], span["label"]) for span in row.spans]
        decided.setdefault(row.document, {})[name] = spans
    for one in marked_documents(connection, numbers):
        reviews = decided.get(one.marked.source.line)
        if reviews:
            marked = replace(one.marked, annotations={**one.marked.annotations, **reviews})
            one = one._replace(marked=marked)
        yield one


def _parted(document: Document, purpose: str) -> tuple[Document, tuple[Tag, ...] | None]:
    """A document without the decisions on it, and what these say; of one for checks or training, its gold."""
    labels = {name: tags for name, tags in document.annotations.items() if not name.startswith(_REVIEW)}
    if len(labels) < len(document.annotations):
        decisions = [
            Decision(hard_tags(tags), document.source or Source("", 0), _review(name))
            for name, tags in document.annotations.items()
            if name.startswith(_REVIEW)
        ]
        return replace(document, annotations=labels, gold=None), settle(decisions).tags
    return replace(document, gold=None) if document.gold else document, None if purpose == "work" else document.gold


def _review(name: str) -> Review:
    role, person = name.removeprefix(_REVIEW).split(" ")
    return Review(person, adjudicated=role == "adjudicator")
