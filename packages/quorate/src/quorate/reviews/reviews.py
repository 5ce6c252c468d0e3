"""What reviewers decided, as values: who they are, how far they agree, and what they dispute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from quorate.corpus.decisions import Decision, Outcome, by_reviewer, last_words, settle
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, find_spans, marks_span
from quorate.evaluate.metrics import PairAgreement, measure_agreement

CONSENSUS = "consensus"


class Reviewer(NamedTuple):
    """A reviewer: how many documents and spans are theirs, how many documents they adjudicated, and from when to when.

    Where no reviewer is named, the file stands for one. Times are ``None`` where no decision has any.

    >>> Reviewer("ann", 12, 30, 0, None, None).documents
    12
    """

    name: str
    documents: int
    spans: int
    adjudicated: int
    first: datetime | None
    last: datetime | None


class Says(NamedTuple):
    """What a reviewer says of tokens in dispute: a tag each, the spans among them, their note; and as what they say it.

    >>> Says("ann", ("B-PER",), (Span(3, 4, "PER"),), "", False).spans[0].label
    'PER'
    """

    reviewer: str
    tags: tuple[Tag, ...]
    spans: tuple[Span, ...]
    note: str
    adjudicated: bool


class Dispute(NamedTuple):
    """Tokens ``start`` to ``end`` (excluded) of a document about which reviewers disagree, and what each says.

    ``layer`` is the one that it is about, where there are several.

    >>> Dispute("1", 0, 2, ("Ada", "Ng"), ()).tokens
    ('Ada', 'Ng')
    """

    document: str
    start: int
    end: int
    tokens: tuple[str, ...]
    says: tuple[Says, ...]
    layer: str = ""


@dataclass(frozen=True)
class Reviews:
    """All decisions on the documents of a corpus, by document id; :func:`quorate.reviews.read` gives them.

    ``layer`` is the one that they are about, where there are several: :func:`quorate.reviews.read_layers`.

    >>> from quorate.corpus.decisions import Review
    >>> from quorate.corpus.records import Source
    >>> corpus = Corpus([Document("1", ("Ada", "sang"))])
    >>> ann = Decision(("B-PER", "O"), Source("ann.jsonl", 1), Review("ann"))
    >>> bob = Decision(("O", "O"), Source("bob.jsonl", 1), Review("bob"))
    >>> reviews = Reviews(corpus, {"1": [ann, bob]})
    >>> reviews.known, [(dispute.document, dispute.tokens) for dispute in reviews.disputes]
    ({'1': (None, 'O')}, [('1', ('Ada',))])
    """

    corpus: Corpus
    decisions: Mapping[str, Sequence[Decision]]
    layer: str = ""

    @cached_property
    def known(self) -> dict[str, tuple[Tag, ...]]:
        """What is known of every document, ``None`` where it is in dispute or nobody says anything."""
        return {name: outcome.tags for name, outcome in self._outcomes.items()}

    @cached_property
    def reviewers(self) -> tuple[Reviewer, ...]:
        """Everybody who decided something, by name."""
        own: dict[str, list[tuple[str, list[Decision]]]] = {}
        for document, made in self.decisions.items():
            for name, theirs in by_reviewer(made).items():
                own.setdefault(name, []).append((document, theirs))
        return tuple(_reviewer(name, own[name]) for name in sorted(own))

    @cached_property
    def agreement(self) -> tuple[PairAgreement, ...]:
        """How far reviewers agree, two by two, on the documents that both decided by themselves."""
        return _pairs(self.as_corpus())

    def agreement_with(self, consensus: Mapping[str, Sequence[Tag]]) -> tuple[PairAgreement, ...]:
        """How far each reviewer agrees with a consensus, given as tags by document id."""
        own_corpus = self.as_corpus()
        found = []
        for name in own_corpus.annotators:
            both = Corpus(_beside(document, name, consensus) for document in own_corpus if name in document.annotations)
            found += [pair._replace(first=name, second=CONSENSUS) for pair in _pairs(both)]
        return tuple(found)

    @cached_property
    def disputes(self) -> tuple[Dispute, ...]:
        """What is still open, document by document, in the order of the corpus."""
        return tuple(
            self._dispute(document, start, end)
            for document in self.corpus
            if document.id in self._outcomes
            for start, end in _runs(self._outcomes[document.id].disputed)
        )

    def as_corpus(self) -> Corpus:
        """What each reviewer decided by themselves, as annotations; what was adjudicated is the gold.

        All that can be asked of annotators can be asked of reviewers then.

        >>> from quorate.corpus.decisions import Review
        >>> from quorate.corpus.records import Source
        >>> ann = Decision(("B-PER",), Source("ann.jsonl", 1), Review("ann"))
        >>> Reviews(Corpus([Document("1", ("Ada",))]), {"1": [ann]}).as_corpus()["1"].annotations
        {'ann': ('B-PER',)}
        """
        return Corpus(
            replace(document, annotations=self._independent(document.id), gold=self._adjudicated(document.id))
            for document in self.corpus
            if document.id in self.decisions
        )

    @cached_property
    def _outcomes(self) -> dict[str, Outcome]:
        return {name: settle(made) for name, made in self.decisions.items()}

    def _independent(self, document: str) -> dict[str, tuple[Tag, ...]]:
        """Adjudications are made in sight of what others said."""
        own = [one for one in self.decisions[document] if not one.review.adjudicated]
        return {name: word.tags for name, word in last_words(own).items()}

    def _adjudicated(self, document: str) -> tuple[Tag, ...] | None:
        made = [one for one in self.decisions[document] if one.review.adjudicated]
        return settle(made).tags if made else None

    def _dispute(self, document: Document, start: int, end: int) -> Dispute:
        made = self.decisions[document.id]
        says = []
        for adjudicated in (False, True):
            words = last_words(one for one in made if one.review.adjudicated is adjudicated)
            for name, word in words.items():
                tags = word.tags[start:end]
                if any(tag is not None for tag in tags):
                    spans = [span for span in _spans(word.tags) if span.overlaps(Span(start, end, span.label))]
                    says.append(Says(name, tags, tuple(spans), word.note, adjudicated))
        return Dispute(document.id, start, end, document.tokens[start:end], tuple(says), self.layer)


def _reviewer(name: str, made: Sequence[tuple[str, Sequence[Decision]]]) -> Reviewer:
    """A reviewer, by what they decided on each document."""
    every = [one for _, theirs in made for one in theirs]
    times = [one.review.time for one in every if one.review.time is not None]
    return Reviewer(
        name,
        len(made),
        sum(len(_spans(word.tags)) for _, theirs in made for word in last_words(theirs).values()),
        sum(any(one.review.adjudicated for one in theirs) for _, theirs in made),
        min(times, default=None),
        max(times, default=None),
    )


def _spans(tags: Sequence[Tag]) -> list[Span]:
    """The spans that tags mark; plain labels mark none."""
    plain = any(tag is not None and tag != OUTSIDE and not marks_span(tag) for tag in tags)
    return [] if plain else find_spans(tags)


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Start and end of each run of neighbours among sorted positions."""
    for _, run in groupby(enumerate(positions), key=lambda pair: pair[1] - pair[0]):
        places = [position for _, position in run]
        yield places[0], places[-1] + 1


def _pairs(corpus: Corpus) -> tuple[PairAgreement, ...]:
    """How far annotators agree, two by two; nothing where nobody shares a token with anybody."""
    shared = any(_share_a_token(document) for document in corpus)
    return measure_agreement(corpus).pairs if shared else ()


def _share_a_token(document: Document) -> bool:
    labels = document.annotations.values()
    return any(sum(tag is not None for tag in column) > 1 for column in zip(*labels, strict=True))


def _beside(document: Document, name: str, consensus: Mapping[str, Sequence[Tag]]) -> Document:
    """A document with what one reviewer says of it, and the consensus, if that has it."""
    pair = {"reviewer": document.annotations[name]}
    if document.id in consensus:
        pair[CONSENSUS] = tuple(consensus[document.id])
    return replace(document, annotations=pair)
