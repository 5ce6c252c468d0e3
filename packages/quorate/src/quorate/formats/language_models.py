"""What language models returned: JSONL or an array, a record for each answer; those with the same id are one document.

A record is ``{"id", "text" or "tokens", "annotator" (or "source", or "model" and "prompt"), "sample"?, "answer"}``. The
text is given once for each id. :mod:`quorate.formats.answers` understands answers, :mod:`quorate.formats.mentions`
finds mentions that come without offsets. Several samples of one prompt are one annotator whose probabilities are their
shares, or annotators of one group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from quorate.corpus.offsets import Unit
from quorate.corpus.profiles import Kind, Profile
from quorate.corpus.records import Document, SoftTag, Source, Tag
from quorate.corpus.spans import CharSpan
from quorate.corpus.tokens import Places, locate, place_span, tokenize
from quorate.errors import InputError
from quorate.formats.answers import Asked, Listed, understood
from quorate.formats.json_records import decoded, records
from quorate.formats.logprobs import scored_by_tokens, token_logarithms
from quorate.formats.marked import Marked, Words, placed, tagged
from quorate.formats.mentions import Found, Page
from quorate.formats.notes import Notes
from quorate.formats.opened import Input, Samples, stem
from quorate.wording import in_number

_NOT_UNDERSTOOD = (
    "{} {answer was|answers were} not understood, or cut off, and {counts|count} as not seen (such as {} to "
    "document {})"
)
_LOST = (
    "{} {mention was not found in its|mentions were not found in their} text, and left out (such as {} in document {})"
)
_SURPLUS = (
    "{} {mention was listed more often than it occurs|mentions were listed more often than they occur}, and left "
    "out (such as {} in document {})"
)
_SPREAD = (
    "{} {mention was|mentions were} listed once by a source that lists nothing twice, and {is marked wherever it "
    "occurs|are marked wherever they occur} "
    '(such as {} in document {}; "mentions": "each" in its records keeps the first alone)'
)
_MOVED = (
    "{} {mention was not at the offsets given with it, and was|mentions were not at the offsets given with them, "
    "and were} looked for (such as {} in document {})"
)
_TOKENS = (
    "{} {answer is not made of the tokens in its|answers are not made of the tokens in their} 'logprobs', which "
    "were left out (such as {} to document {})"
)
_SCORES = "{} {score that is no probability was|scores that are no probabilities were} left out"
_TWICE = "{} {answer was|answers were} given again by the same source to the same document, and the last counts"
_SHOWN = 40


class _Record(msgspec.Struct):
    id: str | int | None = None
    text: str | None = None
    tokens: list[str] | None = None
    annotator: str | None = None
    source: str | None = None
    model: str | None = None
    prompt: str | int | None = None
    sample: str | int | None = None
    group: str | None = None
    label: str | None = None
    mentions: str | None = None
    logprobs: Any = None
    answer: Any = msgspec.UNSET
    answers: list[Any] | msgspec.UnsetType = msgspec.UNSET
    output: Any = msgspec.UNSET
    response: Any = msgspec.UNSET
    completion: Any = msgspec.UNSET

    def given(self) -> dict[str | None, Any]:
        """The answers by the name of their sample."""
        if isinstance(self.answers, list):
            return {str(number): answer for number, answer in enumerate(self.answers)}
        sample = None if self.sample is None else str(self.sample)
        fields = (self.answer, self.output, self.response, self.completion)
        return next(({sample: answer} for answer in fields if answer is not msgspec.UNSET), {})

    def named(self) -> str:
        """Who answered; an empty string if that is not said."""
        prompt = "" if self.prompt is None else str(self.prompt)
        return self.annotator or self.source or "/".join(filter(None, (self.model, prompt)))

    def grouped(self, name: str) -> str | None:
        """Those with whom the answerer errs: the group that is told, or the model where the prompt is told too."""
        return self.group or (self.model if self.model and self.model != name else None)


class _Answer(NamedTuple):
    """An answer, how its mentions are meant, and the log-probabilities of its tokens.

    ``each`` is ``None`` where that is to be seen from all answers of the source.
    """

    value: Any
    each: bool | None
    logprobs: Any = None


_Parts = dict[str | None, _Answer]
"""Answers to questions about one label each, by label; ``None`` for an answer about all of them."""


@dataclass
class _Asked:
    """A document, and all answers about it by who gave them and the name of their sample."""

    id: str
    source: Source
    text: str | None = None
    tokens: list[str] | None = None
    answers: dict[tuple[str, str | None], _Parts] = field(default_factory=dict)

    def where(self) -> str:
        return f"{self.source.at()}: document {self.id!r}"

    def take_text(self, record: _Record, source: Source) -> None:
        """The text, which has to be the same in every record that has it."""
        if self.text is not None and record.text is not None and self.text != record.text:
            raise InputError(
                f"another text than that of the same document elsewhere, {self.where()} (ids must be unique)",
                where=source.at(),
            )
        if self.tokens is not None and record.tokens is not None and self.tokens != record.tokens:
            raise InputError(
                f"other tokens than those of the same document elsewhere, {self.where()} (ids must be unique)",
                where=source.at(),
            )
        self.text = record.text if self.text is None else self.text
        self.tokens = record.tokens if self.tokens is None else self.tokens

    def page(self) -> tuple[Page, Places]:
        """The text in which words are looked for, and its tokens: of tokens without a text, one with blanks between."""
        if self.text is None and self.tokens is None:
            raise InputError(
                "neither 'text' nor 'tokens' in any record of it (give one of them once for each id)",
                where=self.where(),
            )
        text = " ".join(self.tokens or ()) if self.text is None else self.text
        tokens = tokenize(text) if self.tokens is None else locate(self.tokens, text, where=self.where())
        return Page(text), tokens

    def marked(self, annotations: dict[str, list[CharSpan]], places: Places) -> Marked:
        """The document with spans, in tokens where it came without a text."""
        if self.text is None:
            annotations = {name: _in_tokens(marks, places) for name, marks in annotations.items()}
        return Marked(self.id, self.text, annotations, self.source, tokens=self.tokens, unit=Unit.CODE_POINTS)


def _in_tokens(marks: Sequence[CharSpan], places: Places) -> list[CharSpan]:
    laid = [(mark, place_span(mark.start, mark.end, places.starts, places.ends)) for mark in marks]
    return [mark._replace(start=place.first, end=place.last) for mark, place in laid if place is not None]


def read(given: Input, notes: Notes) -> Iterator[Marked | Document]:
    """The documents that models were asked about, with what they said."""
    asked = _collected(given, notes)
    report = _Report(notes)
    pages = {name: document.page() for name, document in asked.items()}
    readings = {name: _understood(document, *pages[name], report) for name, document in asked.items()}
    habits = _Habits()
    for name, answers in readings.items():
        for (who, _), parts in answers.items():
            for part in parts:
                habits.count(who, part.reading, pages[name][0])
    words = Words()
    for name, document in asked.items():
        page, places = pages.pop(name)
        found = {
            key: [
                span for part in parts for span in report.spans_of(habits.located(key[0], part, page), part, document)
            ]
            for key, parts in readings.pop(name).items()
        }
        yield _document(document, found, places, given.samples, words, notes)
    report.finish()


def _collected(given: Input, notes: Notes) -> dict[str, _Asked]:
    """All answers by document; fills in what is known of those who gave them."""
    decoder = msgspec.json.Decoder(_Record)
    asked: dict[str, _Asked] = {}
    unnamed: dict[str, str] = {}
    for number, (source, raw) in enumerate(records(given.stream, given.name, "answer"), given.first_number):
        record = decoded(decoder, raw, source, "an answer of a language model")
        answers = record.given()
        if not answers and record.text is None and record.tokens is None:
            raise InputError("neither an answer nor a text (give 'answer')", where=source.at())
        if record.mentions not in (None, "all", "each"):
            raise InputError(f"mentions {record.mentions!r} is not known (one of: all, each)", where=source.at())
        if record.id is not None:
            name = str(record.id)
        else:  # without an id, the same text is the same document
            text = record.text if record.text is not None else "\0".join(record.tokens or ())
            name = unnamed.setdefault(text, str(number))
        document = asked.setdefault(name, _Asked(name, source))
        document.take_text(record, source)
        who = record.named() or stem(given.name)
        for sample, value in answers.items():
            parts = document.answers.setdefault((who, sample), {})
            notes.count(_TWICE, record.label in parts)
            each = None if record.mentions is None else record.mentions == "each"
            parts[record.label] = _Answer(value, each, record.logprobs)
            _introduce(given, who, sample, record, source)
    given.numbered = bool(unnamed)
    return asked


def _introduce(given: Input, who: str, sample: str | None, record: _Record, source: Source) -> None:
    """Write down that this is a model, and of which group."""
    group = record.grouped(who)
    if given.samples is Samples.GROUP and sample is not None:
        who, group = f"{who}#{sample}", group or who
    before = given.profiles.setdefault(who, Profile(kind=Kind.MODEL, group=group))
    if before.group is None or group is None:  # one record may tell what the others leave out
        given.profiles[who] = replace(before, group=before.group or group)
    elif before.group != group:
        raise InputError(
            f"{who!r} is of the group {group!r} here and of {before.group!r} elsewhere (give each a group of its own)",
            where=source.at(),
        )


class _Part(NamedTuple):
    reading: Listed | Found
    each: bool | None


_Readings = dict[tuple[str, str | None], list[_Part]]


def _understood(document: _Asked, page: Page, places: Places, report: _Report) -> _Readings:
    """What each answer says; one of which a part is not understood is left out."""
    found: _Readings = {}
    for key, parts in document.answers.items():
        readings: list[_Part] = []
        for label, answer in parts.items():
            one = understood(answer.value, Asked(page, places, label))
            if one is None:
                report.count(_NOT_UNDERSTOOD, _in_words(answer.value), document)
            else:
                readings.append(_Part(_scored(one, answer, document, report), answer.each))
        if len(readings) == len(parts):
            found[key] = readings
    return found


def _scored(reading: Listed | Found, answer: _Answer, document: _Asked, report: _Report) -> Listed | Found:
    """The mentions with the probabilities of their tokens, where the record has those."""
    if answer.logprobs is None or not isinstance(reading, Listed):
        return reading
    tokens = token_logarithms(answer.logprobs)
    text = answer.value if isinstance(answer.value, str) else ""
    mentions = None if tokens is None else scored_by_tokens(reading.mentions, text, tokens)
    if mentions is None:
        report.count(_TOKENS, _in_words(answer.value), document)
        return reading
    return reading._replace(mentions=mentions)


def _in_words(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else msgspec.json.encode(value).decode()


class _Habits:
    """Whether a source lists words as often as they occur: seen from those that occur several times."""

    def __init__(self) -> None:
        self._once: Counter[str] = Counter()
        self._again: Counter[str] = Counter()

    def count(self, who: str, reading: Listed | Found, page: Page) -> None:
        """Take in an answer."""
        if isinstance(reading, Listed):
            listed = Counter(mention.words for mention in reading.mentions if mention.place is None)
            for words, times in listed.items():
                if times > 1:
                    self._again[who] += 1
                elif len(page.places(words)) > 1:
                    self._once[who] += 1

    def located(self, who: str, part: _Part, page: Page) -> Found:
        """The spans of an answer: what was listed once is meant everywhere, unless its source lists words again."""
        if isinstance(part.reading, Found):
            return part.reading
        each = self._again[who] > self._once[who] if part.each is None else part.each
        mentions = part.reading.mentions if part.each is not False else list(dict.fromkeys(part.reading.mentions))
        return page.located(mentions, not each)


class _Report:
    """Counts what went otherwise than the answers say, and keeps the first example of each."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, tuple[str, str]] = {}

    def count(self, sentence: str, example: str, document: _Asked) -> None:
        """One more, and what it is about."""
        self._counts[sentence] += 1
        self._examples.setdefault(sentence, (example, document.id))

    def spans_of(self, found: Found, part: _Part, document: _Asked) -> list[CharSpan]:
        """The spans that were found, after a note of those that were not."""
        lists = {_LOST: found.lost, _SURPLUS: found.surplus, _SPREAD: found.spread, _MOVED: found.moved}
        if part.each is not None:
            lists.pop(_SPREAD)
        for sentence, words in lists.items():
            for each in words:
                self.count(sentence, each, document)
        if isinstance(part.reading, Listed):
            for each in part.reading.lost:
                self.count(_LOST, each, document)
            self._notes.count(_SCORES, part.reading.odd)
        return found.spans

    def finish(self) -> None:
        """Say it all."""
        for sentence, times in self._counts.items():
            words, name = self._examples[sentence]
            short = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
            self._notes.add(in_number(sentence, times, repr(short), repr(name)))


def _document(
    document: _Asked,
    found: Mapping[tuple[str, str | None], list[CharSpan]],
    places: Places,
    samples: Samples,
    words: Words,
    notes: Notes,
) -> Marked | Document:
    """The document with everybody's spans; with tags, where somebody's samples differ."""
    if samples is Samples.GROUP:
        named = {who if sample is None else f"{who}#{sample}": spans for (who, sample), spans in found.items()}
        return document.marked(named, places)
    by_name: dict[str, list[list[CharSpan]]] = {}
    for (who, _), spans in found.items():
        by_name.setdefault(who, []).append(spans)
    if all(len(each) == 1 for each in by_name.values()):
        return document.marked({who: spans for who, (spans,) in by_name.items()}, places)
    numbered = {f"{n} {who}": spans for who, each in by_name.items() for n, spans in enumerate(each)}
    laid = placed(document.marked(numbered, places), Unit.CODE_POINTS, words, notes)
    tags = {name: tagged(spans, len(laid.document.tokens), notes) for name, spans in laid.annotations.items()}
    annotations = {who: shares([tags[f"{n} {who}"] for n in range(len(each))]) for who, each in by_name.items()}
    return replace(laid.document, annotations=annotations)


def shares(samples: Sequence[Sequence[Tag | SoftTag]]) -> tuple[Tag | SoftTag, ...]:
    """Several sequences of tags as one: at each token the share of the samples that say a tag.

    >>> shares([("B-PER", "O"), ("B-PER", "O"), ("O", "O"), ("B-PER", "O")])
    ({'B-PER': 0.75, 'O': 0.25}, 'O')
    """
    merged: list[Tag | SoftTag] = []
    for tags in zip(*samples, strict=True):
        weight: dict[str, float] = {}
        for tag in tags:
            for name, probability in (tag if isinstance(tag, Mapping) else {str(tag): 1.0}).items():
                weight[name] = weight.get(name, 0.0) + probability / len(tags)
        merged.append(next(iter(weight)) if len(weight) == 1 else weight)
    return tuple(merged)
