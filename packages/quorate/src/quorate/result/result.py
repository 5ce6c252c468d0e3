"""From posteriors to what people use: the consensus on every document of a corpus, and how it came about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate import formats
from quorate.corpus.discontinuous import is_continued, joined
from quorate.corpus.records import Corpus, Document
from quorate.corpus.schemes import Invalid
from quorate.corpus.spans import Span
from quorate.corpus.tags import TagSet
from quorate.crowd.algebra import laid_end_to_end, sums_between
from quorate.crowd.crowd import Crowd
from quorate.errors import SettingsError, knows_its_options
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument
from quorate.formats.frames import arrow_table, pandas_frame
from quorate.formats.json_lines import consensus_lines, encoded_lines
from quorate.model.engines.protocol import Decoded
from quorate.model.loop import Trace
from quorate.result.acceptance import Accepted, accepted
from quorate.result.ambiguity import Ambiguity
from quorate.result.annotators import AnnotatorSummaries
from quorate.result.coherent import Probabilities, coherent
from quorate.result.consensus import Consensus
from quorate.result.expectations import Expectations
from quorate.result.habits import count_habits
from quorate.result.lines import can_be_compiled, json_lines
from quorate.result.sources import Sources
from quorate.result.tables import ResultTable, result_columns
from quorate.result.tallies import Expected, SpanTallies, expected_scores, span_tallies

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.voting import MajorityVote

__all__ = ["Accepted", "Result"]


Floats = NDArray[np.float64]


class _Found(NamedTuple):
    """Where spans begin; those of document d are ``of_document[d]`` to ``of_document[d + 1]``."""

    of_document: list[int]
    start: NDArray[np.int64]


class _Place(NamedTuple):
    """Which documents of the fit these are, and which of its tokens."""

    documents: NDArray[np.int64]
    tokens: NDArray[np.int64] | slice


class Result:
    """The consensus on every document of a corpus, in its order, and how it came about.

    Iterate over it, or take a document by position or id, for :class:`Consensus` records; or take a column:
    ``tags``, ``spans``, ``confidence``, ``probabilities``; or a table, by ``to_pandas`` and ``to_arrow``. ``model`` is
    the fitted estimator, to save, update or report. ``settings_`` says what was used and, where it was chosen, why;
    ``repaired`` how many tags of the input were repaired; ``sources`` who of the annotators are people, models and
    rules, and whose errors are correlated.

    >>> import quorate
    >>> result = quorate.aggregate(quorate.sample(), method="mv")
    >>> result[0].tags == result.tags[0]
    True
    """

    def __init__(
        self,
        model: BSC | CRFMA | MajorityVote,
        corpus: Corpus,
        tagset: TagSet,
        doc_start: NDArray[np.int64],
        decoded: Decoded,
        annotators: AnnotatorSummaries | Callable[[], AnnotatorSummaries],
        trace: Trace | None,
        settings: dict[str, Any],
        repaired: int,
        known: NDArray[np.int32] | None = None,
        sources: Sources | None = None,
    ) -> None:
        self.model, self.corpus, self.tagset = model, corpus, tagset
        self._annotators, self.trace, self.settings_, self.repaired = annotators, trace, dict(settings), repaired
        self.sources = Sources.of(self.annotators.names, corpus.profiles) if sources is None else sources
        self._doc_start = doc_start
        self._stated = coherent(decoded, doc_start, known)
        self._known = np.zeros(len(decoded.path), np.bool_) if known is None else known == decoded.path
        with np.errstate(divide="ignore"):
            log_probability = np.minimum(decoded.log_probability, np.log(self._stated.documents))
        self._decoded = decoded._replace(log_probability=log_probability)
        invalid = Invalid(settings.get("invalid") or Invalid.REPAIR)
        posterior = decoded.posterior[: 0 if len(decoded.token_probability) else None]
        self._expectations = Expectations(corpus, tagset, invalid, posterior, self.sources.duplicates)
        self._place = _Place(np.arange(len(corpus)), slice(None))

    @cached_property
    def annotators(self) -> AnnotatorSummaries:
        """What is known about each annotator; after an update that takes a look at every document of the fit."""
        return self._annotators() if callable(self._annotators) else self._annotators

    @cached_property
    def expected(self) -> Expected:
        """The precision, recall and F1 that this consensus expects of itself, by its own probabilities.

        >>> import quorate
        >>> 0.8 < quorate.aggregate(quorate.sample()).expected.precision < 1
        True
        """
        return expected_scores(self.span_tallies())

    def span_tallies(self) -> SpanTallies:
        """Of every document, how many spans are given, how many of them are expected to be right, and how many true.

        >>> import quorate
        >>> tallies = quorate.aggregate(quorate.sample()).span_tallies()
        >>> bool((tallies.found <= tallies.given).all())
        True
        """
        posterior, stated = self._kept_posterior(), self._stated
        sure = stated.tokens if self.tagset.outside is None else stated.spans
        return span_tallies(self._decoded, posterior, self.tagset, self._doc_start, sure)

    def span_habits(self, encoded: Crowd) -> Floats:
        """``[12, T, K]`` The :class:`quorate.result.habits.SpanHabits` of everybody in the corpus, by type."""
        return count_habits(encoded, self._decoded)

    def accept(self, precision: float) -> Accepted:
        """Part the documents: those whose spans together meet an expected precision, and those for a person to see.

        Documents are taken from the surest on, as many as will do; of those equally sure, all or none. One without any
        span counts as one that is right if it has none; one without any token is accepted, and does not count.

        >>> import quorate
        >>> accepted = quorate.aggregate(quorate.sample()).accept(0.9)
        >>> accepted.precision >= 0.9, len(accepted.documents) + len(accepted.review)
        (True, 320)
        """
        return accepted(self.spans, self.confidence, precision, np.diff(self._doc_start))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the columns of ``probabilities``."""
        return self.tagset.labels

    @property
    def tags(self) -> list[list[str]]:
        """For every document, a tag for every token."""
        return [self._tags(d) for d in range(len(self))]

    @property
    def spans(self) -> list[list[Span]]:
        """For every document, its spans."""
        return [self._spans(d) for d in range(len(self))]

    @property
    def n_spans(self) -> int:
        """How many spans all documents have together.

        >>> import quorate
        >>> result = quorate.aggregate(quorate.sample(), "mv")
        >>> result.n_spans == sum(map(len, result.spans))
        True
        """
        if any(is_continued(kind) for kind in self.tagset.types):  # several pieces are one span
            return sum(map(len, self.spans))
        return len(self._found.start)

    @property
    def confidence(self) -> Floats:
        """``[D]`` The probability of each document's whole sequence."""
        return self._stated.documents

    @property
    def posterior(self) -> Floats:
        """``[N, J]`` The probability of every label at every token, all documents end to end."""
        return self._decoded.posterior

    @property
    def probabilities(self) -> list[Floats]:
        """For every document, ``[L, J]`` the probability of every label at every token."""
        return [self._posterior(d) for d in range(len(self))]

    @property
    def shares(self) -> list[Floats]:
        """For every document, ``[L, J]`` the share of annotators that would give each label to each token.

        Soft labels for training: what people would say, where ``probabilities`` are of what is true. They are learned
        when first asked for, by hiding annotators from each other (docs/ambiguity.md).

        >>> import quorate
        >>> few = quorate.Corpus(quorate.sample().documents[:40])
        >>> result = quorate.aggregate(few, "mv")
        >>> result.shares[0].shape == (len(result[0].tags), len(result.labels))
        True
        """
        return self._by_document(self._expectations.shares)

    def shares_of(self, annotator: str) -> list[Floats]:
        """For every document, ``[L, J]`` the probability that this annotator would give each label to each token.

        As ``shares``, with this annotator's habits elsewhere; of somebody unknown it is what anybody would say.

        >>> import quorate
        >>> few = quorate.Corpus(quorate.sample().documents[:40])
        >>> result = quorate.aggregate(few, "mv")
        >>> len(result.shares_of(result.annotators[0].name)) == len(result)
        True
        """
        return self._by_document(self._expectations.of(annotator))

    @cached_property
    def ambiguity(self) -> Ambiguity:
        """Where annotators differ because the text allows two readings, told apart from their errors.

        >>> import quorate
        >>> ambiguity = quorate.aggregate(quorate.sample(), "mv").ambiguity
        >>> len(ambiguity.documents), 0 <= ambiguity.share <= 1
        (320, True)
        """
        return self._expectations.ambiguity.only(self._place.documents)

    def _by_document(self, rows: Floats) -> list[Floats]:
        own = rows[self._place.tokens]
        return [own[self._tokens(d)] for d in range(len(self))]

    def _kept_posterior(self) -> Floats:
        if len(self._decoded.token_probability):
            raise SettingsError("the probabilities of all labels were not kept (fit with probabilities=True)")
        return self._decoded.posterior

    def _posterior(self, d: int) -> Floats:
        return self._kept_posterior()[self._tokens(d)]

    def known_documents(self) -> set[str]:
        """The ids of documents of which some labels were known in the fit."""
        count = sums_between(self._known, self._doc_start)
        return {self.corpus[int(d)].id for d in np.flatnonzero(count)}

    def only(self, documents: Sequence[int]) -> Result:
        """The same for some of the documents, by their positions.

        >>> import quorate
        >>> result = quorate.aggregate(quorate.sample(), "mv")
        >>> result.only([3, 5])[1].tags == result[5].tags
        True
        """
        decoded, chosen = self._decoded, np.asarray(documents, np.int64)
        doc_start, token = laid_end_to_end(self._doc_start[chosen], np.diff(self._doc_start)[chosen])
        shift = token - np.arange(len(token))
        span_end = decoded.span_end[token]
        part = decoded._replace(
            posterior=decoded.posterior if len(decoded.token_probability) else decoded.posterior[token],
            token_probability=decoded.token_probability[token] if len(decoded.token_probability) else np.zeros(0),
            path=decoded.path[token],
            log_probability=decoded.log_probability[chosen],
            log_z=decoded.log_z[chosen],
            span_end=np.where(span_end > 0, span_end - shift, 0).astype(np.int32),
            span_probability=decoded.span_probability[token],
            expected_spans=decoded.expected_spans[chosen] if len(decoded.expected_spans) else np.zeros(0),
        )
        result = self._without_what_was_derived()
        spans = np.zeros(len(decoded.path))
        spans[self._found.start] = self._stated.spans
        result.corpus, result._doc_start, result._decoded = (
            Corpus([self.corpus[int(d)] for d in chosen]),
            doc_start,
            part,
        )
        of_fit = self._place.tokens
        tokens = token if isinstance(of_fit, slice) else of_fit[token]
        result._place = _Place(self._place.documents[chosen], tokens)
        result._known = self._known[token]
        result._stated = Probabilities(
            self._stated.documents[chosen], spans[token][span_end > 0], self._stated.tokens[token]
        )
        return result

    def surest(self, least: float) -> Result:
        """The same without the spans that are less sure than that.

        Their tokens are as sure as it is that they are outside of spans, and documents no surer than what they hold.

        >>> import quorate
        >>> result = quorate.aggregate(quorate.sample(), "mv")
        >>> fewer = result.surest(0.9)
        >>> 0 < fewer.n_spans < result.n_spans, min(span.sure for spans in fewer.spans for span in spans) >= 0.9
        (True, True)
        """
        if self.tagset.outside is None:
            raise SettingsError("every token has a label here, so no span can be left out")
        self._kept_posterior()  # which says how sure it is that there is no span
        decoded = self._decoded
        unmarked = np.zeros(len(decoded.path), np.bool_)
        for first, spans in zip(self._doc_start.tolist(), self.spans, strict=False):
            unmarked[[first + token for span in spans if span.sure < least for token in span.tokens]] = True
        changed = sums_between(unmarked, self._doc_start) > 0
        with np.errstate(divide="ignore"):
            at_most = np.log1p(-self._stated.documents)  # what the document was before is not true then
        part = decoded._replace(
            path=np.where(unmarked, self.tagset.outside, decoded.path).astype(np.int32),
            log_probability=np.where(changed, at_most, decoded.log_probability),
            span_end=np.where(unmarked, 0, decoded.span_end).astype(np.int32),
            span_probability=np.where(unmarked, 0.0, decoded.span_probability),
        )
        result = self._without_what_was_derived()
        result._known = self._known & ~unmarked
        known = np.where(result._known, decoded.path, -1).astype(np.int32)
        result._decoded, result._stated = part, coherent(part, self._doc_start, known)
        result.settings_ = self.settings_ | {"surest": least}
        return result

    def _without_what_was_derived(self) -> Result:
        """A copy that computes again what follows from the consensus."""
        result = copy(self)
        for derived in ("expected", "_found", "ambiguity"):
            result.__dict__.pop(derived, None)
        return result

    @knows_its_options
    def write(
        self,
        path: str | Path,
        format: str | None = None,
        *,
        probabilities: bool = False,
        shares: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[str]:
        """Write the consensus, whole or not at all; ``-`` is standard output.

        ``format`` is one that is written (see ``quorate formats``); unless given, the path's ending says which.
        ``probabilities`` of labels, and ``shares`` of annotators with each document's ambiguity, go into JSONL.
        ``progress`` is called with how many documents are done, and of how many. What the format cannot hold is
        returned, in sentences.

        >>> import quorate, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     quorate.aggregate(quorate.sample(), "mv").write(f"{folder}/votes.jsonl")
        ...     len(Path(folder, "votes.jsonl").read_text().splitlines())
        []
        320
        """
        if probabilities and len(self):
            self._posterior(0)  # says so now if they were not kept
        export = self.export(probabilities=probabilities, shares=shares)
        if progress is not None:
            export = export.watched(lambda done: progress(done, len(self)))
        return formats.write(export, path, format)

    def to_pandas(self, kind: ResultTable = "spans") -> pandas.DataFrame:
        """The consensus as a table of pandas: a row a span, or one of ``"tokens"``, ``"documents"``, ``"annotators"``.

        Offsets count characters of the text, or of the tokens with blanks between, where there is none.

        >>> import quorate
        >>> result = quorate.aggregate(quorate.sample(), "mv")
        >>> list(result.to_pandas().columns)[:6]
        ['document', 'start', 'end', 'label', 'text', 'confidence']
        >>> len(result.to_pandas("documents")), len(result.to_pandas("annotators"))
        (320, 12)
        """
        return pandas_frame(result_columns(self, kind))

    def to_arrow(self, kind: ResultTable = "spans") -> pyarrow.Table:
        """The same table of Arrow, which polars takes as it is: ``polars.from_arrow(result.to_arrow())``.

        >>> import quorate
        >>> quorate.aggregate(quorate.sample(), "mv").to_arrow("tokens").num_rows
        5227
        """
        return arrow_table(result_columns(self, kind))

    def export(self, *, probabilities: bool = False, shares: bool = False) -> Export:
        """The consensus as writers take it."""
        model = f"quorate {self.settings_.get('method', '')}".strip()
        is_plain = not (probabilities or shares) and can_be_compiled(self.tagset)
        return Export(
            lambda: map(_exported, self.corpus, self.annotations(shares=shares)),
            self.labels,
            self.tagset.scheme,
            model,
            probabilities,
            lines=self._json_lines if is_plain else None,
        )

    def _json_lines(self) -> Iterator[tuple[int, memoryview]]:
        def otherwise(first: int, last: int) -> bytes:
            pages = (ExportDocument(self.corpus[d], consensus=self[d].annotation()) for d in range(first, last))
            return b"".join(encoded_lines(consensus_lines(Export(lambda: pages, self.labels, self.tagset.scheme))))

        stated = (self._decoded, self._stated, self._known)
        return json_lines(self.corpus, self.tagset, self._doc_start, *stated, otherwise)

    def annotations(self, *, shares: bool = False) -> Iterator[ExportAnnotation]:
        """The consensus on every document as writers take it, with what annotators would say if asked for."""
        if not shares:
            yield from (one.annotation() for one in self)
            return
        for one, soft, ambiguous in zip(self, self.shares, self.ambiguity.documents.tolist(), strict=True):
            yield one.annotation()._replace(shares=soft, ambiguity=ambiguous)

    def plot_annotators(self, *, groups: int | None = None, name: str | None = None, bars: bool = False) -> Figure:
        """A matplotlib figure of groups of like annotators, or of one: a column a group, a row a previous label.

        ``groups`` is chosen unless given; ``bars`` draws bars in 3D in place of heat maps.
        """
        from quorate.result import figures

        return figures.annotators_figure(self.annotators, self.tagset, groups=groups, name=name, bars=bars)

    def plot_document(self, key: int | str) -> Figure:
        """A matplotlib figure of a document, by its position or id: the consensus and everybody's version."""
        from quorate.result import figures

        return figures.document_figure(self[key], self.tagset)

    def plot_trace(self) -> Figure:
        """A matplotlib figure of the bound, pass by pass."""
        if self.trace is None:
            raise SettingsError("this result was not fitted pass by pass, so there is no trace to draw")
        from quorate.result import figures

        return figures.trace_figure(self.trace)

    def _repr_html_(self) -> str:
        from quorate.result import notebook

        return notebook.result_html(self)

    def __len__(self) -> int:
        return len(self.corpus)

    def __iter__(self) -> Iterator[Consensus]:
        return (self[d] for d in range(len(self)))

    def __getitem__(self, key: int | str) -> Consensus:
        """The consensus on a document, by its position or its id."""
        d = self.corpus.position(key) if isinstance(key, str) else range(len(self))[key]
        kept = not len(self._decoded.token_probability)
        return Consensus(
            self.corpus[d],
            self._tags(d),
            self._spans(d),
            float(self._stated.documents[d]),
            self._stated.tokens[self._tokens(d)],
            self._posterior(d) if kept else np.zeros((0, len(self.labels))),
            self._known[self._tokens(d)],
        )

    def __repr__(self) -> str:
        found = f"{len(self)} documents, {self.n_spans} spans"
        return f"<Result: {found}, {len(self.annotators)} annotators, {self.settings_.get('method')}>"

    def _tokens(self, d: int) -> slice:
        return slice(self._doc_start[d], self._doc_start[d + 1])

    def _tags(self, d: int) -> list[str]:
        labels = self.labels
        return [labels[label] for label in self._decoded.path[self._tokens(d)].tolist()]

    @cached_property
    def _found(self) -> _Found:
        """The spans of all documents."""
        start = np.flatnonzero(self._decoded.span_end)
        return _Found(np.searchsorted(start, self._doc_start).tolist(), start)

    def _spans(self, d: int) -> list[Span]:
        """A discontinuous span is as sure as its pieces if each were right or wrong by itself.

        People mark them together, so that this is too low rather than too high; it is never below the whole document.
        """
        least = float(self._stated.documents[d])
        return joined(self.pieces(d), lambda sure: max(math.prod(sure), least))

    def pieces(self, d: int) -> list[Span]:
        """The spans of a document as they stand in its tags: every piece of a discontinuous one by itself.

        >>> import quorate
        >>> corpus = quorate.Corpus([quorate.Document("1", ("a", "b", "c"), {"ann": ("B-X", "O", "B-X…")})])
        >>> result = quorate.aggregate(corpus, "mv")
        >>> [piece.label for piece in result.pieces(0)], [span.pieces for span in result.spans[0]]
        (['X', 'X…'], [((0, 1), (2, 3))])
        """
        found, decoded, first = self._found, self._decoded, int(self._doc_start[d])
        here = slice(found.of_document[d], found.of_document[d + 1])
        start, parts = found.start[here], self.tagset.parts
        columns = (start - first, decoded.span_end[start] - first, decoded.path[start], self._stated.spans[here])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Span(begin, end, parts[label][1], confidence) for begin, end, label, confidence in rows]


def _exported(document: Document, annotation: ExportAnnotation) -> ExportDocument:
    return ExportDocument(document, consensus=annotation)
