"""What a consensus claims of every document: its spans and how sure it is of each, from a fit or from a file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from quorate.corpus.discontinuous import clash
from quorate.corpus.offsets import Unit
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, Scheme, TagSet, find_spans
from quorate.errors import InputError, SettingsError
from quorate.evaluate.layers import gold_by_layer
from quorate.formats.consensus_records import ConsensusRecord, LayeredRecord, by_layer, read_consensus
from quorate.formats.json_lines import DIGITS, consensus_lines
from quorate.formats.opened import files_of, opened
from quorate.formats.registry import sniff
from quorate.limits import size_named
from quorate.result.layers import LayeredResult
from quorate.result.result import Result

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def spans_of(tags: Sequence[str | None], scheme: Scheme) -> list[Span]:
    """The spans that tags mark; in the plain scheme every token is one.

    >>> [(span.start, span.label) for span in spans_of(["noun", "verb"], Scheme.PLAIN)]
    [(0, 'noun'), (1, 'verb')]
    """
    if scheme is Scheme.PLAIN:
        return [Span(place, place + 1, str(tag)) for place, tag in enumerate(tags)]
    return list(find_spans(tags))


class Claims:
    """The documents of a consensus, their spans with confidence, and what follows from these for each document.

    In the columns below D are documents and S all spans, document after document.

    >>> import quorate
    >>> claims = Claims.of(quorate.aggregate(quorate.sample(), "mv"))
    >>> len(claims.corpus), int(claims.given.sum()) == len(claims.sure)
    (320, True)
    """

    def __init__(
        self,
        corpus: Corpus,
        scheme: Scheme,
        spans: Sequence[Sequence[Span]],
        confidence: Floats,
        token_confidence: Sequence[Floats],
        tags: Sequence[Sequence[str]],
        lines: Callable[[Sequence[int]], list[dict[str, Any]]],
        layers: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """``layers`` are the types that each layer takes, where there are several.

        Then the spans of all are together, and the tags of a document (and how sure each is) are those of its layers,
        one after another.
        """
        self.layers = dict(layers or {})
        self.corpus, self.scheme, self.spans, self.confidence = corpus, scheme, spans, confidence
        self.token_confidence, self.tags, self.lines = token_confidence, tags, lines

    @classmethod
    def of(cls, consensus: Result | LayeredResult | str | Path, *, max_size: int | str | None = None) -> Claims:
        """Those of a result, or of a file that ``aggregate`` wrote as JSONL; in layers or not."""
        if isinstance(consensus, Result):
            return cls._of_result(consensus)
        if isinstance(consensus, LayeredResult):
            return cls._of_layered(consensus)
        if not isinstance(consensus, str | Path):
            raise SettingsError(f"an audit is of a result or a file, not of {type(consensus).__name__}")
        records = _records(consensus, max_size)
        layers = by_layer(records, str(consensus)) or {"": records}
        flat = [record for own in layers.values() for record in own]
        if any(record.confidence is None or record.token_confidence is None for record in flat):
            raise InputError(
                "no confidence in it (an audit needs a consensus as aggregate writes it: JSONL)", where=str(consensus)
            )
        return cls._of_records(records) if "" in layers else cls._of_layered_records(records, layers)

    @classmethod
    def _of_result(cls, result: Result) -> Claims:
        scheme = result.tagset.scheme
        documents = list(result)
        tokens = [np.round(one.token_confidence, DIGITS) for one in documents]  # as in a file
        spans = [_sure_spans(one.tags, one.spans, sure, scheme) for one, sure in zip(documents, tokens, strict=True)]

        def lines(positions: Sequence[int]) -> list[dict[str, Any]]:
            return list(consensus_lines(result.only(positions).export()))

        return cls(
            result.corpus,
            scheme,
            spans,
            np.asarray(result.confidence),
            tokens,
            [one.tags for one in documents],
            lines,
        )

    @classmethod
    def _of_records(cls, records: list[ConsensusRecord]) -> Claims:
        scheme = _scheme_of(records)
        tokens = [np.asarray(record.token_confidence, np.float64) for record in records]
        spans = [
            _sure_spans(record.tags, record.token_spans(), sure, scheme)
            for record, sure in zip(records, tokens, strict=True)
        ]

        def lines(positions: Sequence[int]) -> list[dict[str, Any]]:
            return [{"spans": []} | msgspec.to_builtins(records[d]) for d in positions]

        return cls(
            Corpus(map(_document, records)),
            scheme,
            spans,
            np.array([record.confidence for record in records], np.float64),
            tokens,
            [record.tags for record in records],
            lines,
        )

    @classmethod
    def _of_layered(cls, result: LayeredResult) -> Claims:
        def lines(positions: Sequence[int]) -> list[dict[str, Any]]:
            return list(consensus_lines(result.only(positions).export()))

        documents = list(result)
        return cls(
            result.corpus,
            Scheme.BIO,
            [one.spans for one in documents],
            result.confidence,
            [
                np.concatenate([np.round(own.token_confidence, DIGITS) for own in one.layers.values()])
                for one in documents
            ],
            [[tag for own in one.layers.values() for tag in own.tags] for one in documents],
            lines,
            {name: one.tagset.types for name, one in result.layers.items()},
        )

    @classmethod
    def _of_layered_records(cls, records: list[ConsensusRecord], layers: Mapping[str, list[ConsensusRecord]]) -> Claims:
        columns = list(zip(*layers.values(), strict=True))
        first = records[0]
        assert isinstance(first, LayeredRecord)

        def lines(positions: Sequence[int]) -> list[dict[str, Any]]:
            return [{"spans": []} | msgspec.to_builtins(records[d]) for d in positions]

        return cls(
            Corpus(map(_document, records)),
            Scheme.BIO,
            [record.token_spans() for record in records],
            np.array([record.confidence for record in records], np.float64),
            [np.concatenate([np.asarray(own.token_confidence, np.float64) for own in column]) for column in columns],
            [[tag for own in column for tag in own.tags] for column in columns],
            lines,
            {name: one.types for name, one in first.layers.items()},
        )

    def marked(self, d: int) -> NDArray[np.bool_]:
        """Which of a document's tags are of a span; where there are layers, those of one after another."""
        marked, length = np.zeros(len(self.tags[d]), np.bool_), len(self.corpus[d].tokens)
        rows = {name: row * length for row, name in enumerate(self.layers)}
        for span in self.spans[d]:
            first = rows.get(span.layer, 0)
            marked[[first + token for token in span.tokens]] = True
        return marked

    def true_spans(self, d: int, truth: Sequence[Tag]) -> list[Span]:
        """The spans of a document that was checked, from its right tags."""
        if not self.layers:
            return spans_of(truth, self.scheme)
        length = max(len(self.corpus[d].tokens), 1)
        return [span for row in range(0, len(truth), length) for span in find_spans(truth[row : row + length])]

    def truth_of(self, d: int, spans: Sequence[Span]) -> tuple[Tag, ...]:
        """The right tags of a document, from its right spans: those of each layer, and of more if it takes more."""
        gold = sorted({span.bare for span in spans}, key=lambda span: (span.start - span.end, span))
        own = {name: [span for span in self.spans[d] if span.layer == name] for name in self.layers}
        rows = list(gold_by_layer(gold, own, self.layers).values())
        for span in gold:
            if not any(span in row for row in rows):
                free = [row for row in rows[len(self.layers) :] if not any(clash(span, other) for other in row)]
                if free:
                    free[0].append(span)
                else:
                    rows.append([span])
        tagset = TagSet.of_types(Scheme.BIO, {span.label for span in gold})
        return tuple(tag for row in rows for tag in tagset.tags(row, len(self.corpus[d].tokens)))

    def __len__(self) -> int:
        return len(self.corpus)

    @cached_property
    def document(self) -> Integers:
        """``[S]`` The document of every span."""
        return np.repeat(np.arange(len(self)), [len(spans) for spans in self.spans])

    @cached_property
    def sure(self) -> Floats:
        """``[S]`` The probability that each span is right."""
        return np.array([span.sure for spans in self.spans for span in spans], np.float64)

    @cached_property
    def kind(self) -> NDArray[np.str_]:
        """``[S]`` The type of each span."""
        return np.array([span.label for spans in self.spans for span in spans], np.str_)

    @cached_property
    def given(self) -> Floats:
        """``[D]`` How many spans each document was given."""
        return self.summed(np.ones(len(self.sure)))

    @cached_property
    def mean_sure(self) -> Floats:
        """``[D]`` The mean probability of a document's spans; of one without any, that there is none."""
        mean = self.summed(self.sure) / np.maximum(self.given, 1.0)
        return np.where(self.given > 0, mean, self.confidence)

    @cached_property
    def missed(self) -> Floats:
        """``[D]`` How many spans the consensus expects to have missed: its doubt outside of spans, by their length."""
        if self.scheme is Scheme.PLAIN:
            return np.zeros(len(self))
        lengths = [len(span.tokens) for spans in self.spans for span in spans]
        doubt = [
            float((1 - sure)[[tag == OUTSIDE for tag in tags]].sum())
            for sure, tags in zip(self.token_confidence, self.tags, strict=True)
        ]
        return np.array(doubt) / (np.mean(lengths) if lengths else 1.0)

    @cached_property
    def digest(self) -> str:
        """Which consensus this is, by documents and tags; in whatever order, and however sure."""
        documents = zip(self.corpus, self.tags, strict=True)
        lines = sorted(f"{document.id}\t{' '.join(tags)}" for document, tags in documents)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    def summed(self, of_span: Floats) -> Floats:
        """``[D]`` The sum of a number of every span, over those of each document."""
        return np.bincount(self.document, of_span, minlength=len(self)).astype(np.float64)


def _records(path: str | Path, max_size: int | str | None) -> list[ConsensusRecord]:
    records: list[ConsensusRecord] = []
    for name in files_of(str(path)):
        with opened(name, size_named(max_size)) as (stream, _):
            if sniff(stream, name) != "jsonl":
                raise InputError("an audit is of a consensus as JSONL (aggregate … -o consensus.jsonl)", where=name)
            records += read_consensus(stream, name)
    if not records:
        raise InputError("no document in it", where=str(path))
    return records


def _sure_spans(tags: Sequence[str], spans: Sequence[Span], token_confidence: Floats, scheme: Scheme) -> Sequence[Span]:
    """The spans of a document; in the plain scheme its tokens, as sure as each is."""
    if scheme is not Scheme.PLAIN:
        return spans
    return [Span(n, n + 1, tag, float(token_confidence[n])) for n, tag in enumerate(tags)]


def _scheme_of(records: list[ConsensusRecord]) -> Scheme:
    used = {tag for record in records for tag in record.tags}
    return Scheme.BIO if used <= {OUTSIDE} else TagSet.infer(used).scheme


def _document(record: ConsensusRecord) -> Document:
    unit = Unit.CODE_POINTS if record.offset_unit is None else Unit(record.offset_unit)
    return Document(
        record.id, tuple(record.tokens), split=record.split, text=record.text, offsets=record.offsets, unit=unit
    )
