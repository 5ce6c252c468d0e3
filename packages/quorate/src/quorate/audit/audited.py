"""What an audit found: scores of the whole consensus with intervals, what can be accepted, and better probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.audit.acceptance import Guaranteed, GuaranteedSpans, guaranteed, guaranteed_spans
from quorate.audit.checked import read_checked, read_plan
from quorate.audit.claims import Claims
from quorate.audit.estimate import Estimate, Seen, scores_of
from quorate.audit.expected import expected
from quorate.audit.plan import LEAST, NOT_SEQUENTIAL, OTHER_CONSENSUS, Plan, planned_by
from quorate.audit.recalibration import (
    Line,
    OffBeyondChance,
    Recalibration,
    beyond_chance,
    fit_line,
    recalibrated,
    recalibrated_layers,
)
from quorate.corpus.records import Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, Scheme
from quorate.errors import InputError, OtherConsensusError, SettingsError, knows_its_options
from quorate.formats.json_lines import DIGITS, write_lines
from quorate.formats.notes import some
from quorate.model.settings import as_share
from quorate.result.acceptance import check_precision
from quorate.result.layers import LayeredResult
from quorate.result.result import Result
from quorate.wording import counted

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """Precision, recall and F1 of the whole consensus, each with its interval; ``seen`` true spans were met.

    >>> Scores(Estimate(0.9, 0.8, 0.95), Estimate(0.8, 0.7, 0.9), Estimate(0.85, 0.75, 0.92), 40).f1.low
    0.75
    """

    precision: Estimate
    recall: Estimate
    f1: Estimate
    seen: int


@dataclass(frozen=True)
class Audit:
    """The documents of a plan that were checked, and what follows for the whole consensus.

    ``confidence`` is that of the intervals; ``n`` how many documents count. Of a sequential plan these are the first
    ones, up to the first that is not checked.

    >>> import quorate
    >>> corpus = quorate.sample()
    >>> drawn = quorate.audit.plan(quorate.aggregate(corpus, "mv"), 40)
    >>> audit = result(drawn.claims, {name: corpus[name].gold for name in drawn.ids}, plan=drawn)
    >>> audit.n, audit.more_to_halve > 40, len(audit.accept(0.5).documents) > 100
    (40, True, True)
    """

    plan: Plan = field(repr=False)
    truth: Mapping[str, tuple[Tag, ...]] = field(repr=False)
    confidence: float
    n: int

    def __str__(self) -> str:
        scores = f"F1 {self.f1}, precision {self.precision}, recall {self.recall}"
        return f"{scores}, with {100 * self.confidence:g} % confidence, from {counted(self.n, 'document')} checked"

    @property
    def new_types(self) -> list[str]:
        """Types that were found and that the consensus never gives: slips, perhaps."""
        return sorted({span.label for spans in self._true for span in spans} - set(self.plan.claims.kind.tolist()))

    @cached_property
    def scores(self) -> Scores:
        """Of all spans."""
        return self._scores(None)

    @property
    def precision(self) -> Estimate:
        """How many of the spans given are right."""
        return self.scores.precision

    @property
    def recall(self) -> Estimate:
        """How many of the true spans were given."""
        return self.scores.recall

    @property
    def f1(self) -> Estimate:
        """The harmonic mean of the two."""
        return self.scores.f1

    @cached_property
    def by_type(self) -> dict[str, Scores]:
        """The same for every type of span."""
        kinds = {str(kind) for kind in self.plan.claims.kind} | {span.label for spans in self._true for span in spans}
        return {kind: self._scores(kind) for kind in sorted(kinds)}

    @property
    def nothing_corrected(self) -> bool:
        """Whether the consensus was found right in every document: perhaps nobody looked."""
        given = (self.plan.claims.spans[d] for d in self._sample.tolist())
        return all(
            {span.bare for span in own} == {span.bare for span in true}
            for own, true in zip(given, self._true, strict=True)
        )

    @property
    def more_to_halve(self) -> int:
        """How many more documents than were checked would make the intervals half as wide, as expected."""
        return self.plan.documents_for(0.5, self.n) - self.n

    def accept(self, precision: float) -> Guaranteed:
        """The largest set of documents whose spans meet this precision, with the audit's confidence.

        A document without spans counts as one, which is right if there is none.
        """
        self._can_accept(precision)
        claims, sample = self.plan.claims, self._sample
        right = np.where(claims.given[sample] == 0, [not spans for spans in self._true], self._right(None))
        count = np.maximum(claims.given, 1.0)
        return guaranteed(count, claims.mean_sure, self._seen(None), right, precision, self.confidence)

    def accept_spans(self, precision: float) -> GuaranteedSpans:
        """The largest set of spans, from the surest on, that meets this precision, with the audit's confidence."""
        self._can_accept(precision)
        claims = self.plan.claims
        if claims.scheme is Scheme.PLAIN:
            raise SettingsError("every token has a label here, so there are no spans to choose from (use accept)")
        rows = [
            (place, span.sure, span.bare in gold)
            for place, (d, true) in enumerate(zip(self._sample.tolist(), self._true, strict=True))
            for gold in [{span.bare for span in true}]
            for span in claims.spans[d]
        ]
        place, sure, hit = np.array(rows, np.float64).reshape(-1, 3).T
        return guaranteed_spans(
            claims.sure, self._seen(None), place.astype(np.int64), sure, hit, precision, self.confidence
        )

    def _can_accept(self, precision: float) -> None:
        check_precision(precision)
        if self.plan.sequential:
            raise SettingsError(NOT_SEQUENTIAL)

    @cached_property
    def recalibration(self) -> Recalibration:
        """How the probabilities of the consensus are to be corrected."""
        return Recalibration(*(outcomes.line() for outcomes in self._outcomes))

    @cached_property
    def off_beyond_chance(self) -> OffBeyondChance:
        """Of which kinds the probabilities were off by more than chance: the correction of others may be noise."""
        return OffBeyondChance(*(outcomes.beyond_chance() for outcomes in self._outcomes))

    @cached_property
    def _outcomes(self) -> tuple[_Outcomes, _Outcomes, _Outcomes, _Outcomes]:
        """What came true in the sample: of spans, tokens in them, tokens outside, documents."""
        claims, weight = self.plan.claims, self._weight
        spans, inside, outside, whole = _Outcomes(), _Outcomes(), _Outcomes(), _Outcomes()
        length = max(float(np.mean([len(span.tokens) for one in claims.spans for span in one] or [1])), 1.0)
        for d, w, true in zip(self._sample.tolist(), weight.tolist(), self._true, strict=True):
            gold = {span.bare for span in true}
            spans.add(d, [span.sure for span in claims.spans[d]], [span.bare in gold for span in claims.spans[d]], w)
            tags, truth = claims.tags[d], self.truth[claims.corpus[d].id]
            marked = claims.marked(d)
            # What is right may be in more layers than the consensus has: nothing of that is in it.
            same = np.array([one == other for one, other in zip(tags, truth[: len(tags)], strict=True)], np.bool_)
            for outcomes, here in ((inside, marked), (outside, ~marked)):
                outcomes.add(
                    d, claims.token_confidence[d][here], same[here], w / length
                )  # tokens of a span err together
            beyond = any(tag != OUTSIDE for tag in truth[len(tags) :])
            whole.add(d, [claims.confidence[d]], [bool(same.all()) and not beyond], w)
        return spans, inside, outside, whole

    def write_recalibrated(self, path: str | Path) -> None:
        """Write the consensus with corrected probabilities, as JSONL; its tags are as they were."""
        write_lines(self.recalibrated_lines(), path)

    def recalibrated_lines(self) -> Iterator[dict[str, Any]]:
        """The lines of the consensus, with corrected probabilities."""
        claims, lines = self.plan.claims, self.recalibration
        for d, line in enumerate(claims.lines(range(len(claims)))):
            if claims.layers:
                yield recalibrated_layers(lines, line, claims.spans[d])
                continue
            whole, tokens, spans = recalibrated(
                lines, float(claims.confidence[d]), claims.token_confidence[d], claims.spans[d]
            )
            line |= {"confidence": whole, "token_confidence": np.round(tokens, DIGITS).tolist()}
            line["spans"] = [
                record | {"confidence": span.sure} for record, span in zip(line["spans"], spans, strict=False)
            ]
            line.pop("probabilities", None)  # of all labels: they are not corrected
            if "shares" not in line:
                line.pop("labels", None)
            yield line

    @cached_property
    def _sample(self) -> NDArray[np.int64]:
        return self.plan.documents[: self.n]

    @cached_property
    def _true(self) -> list[list[Any]]:
        claims = self.plan.claims
        return [claims.true_spans(d, self.truth[claims.corpus[d].id]) for d in self._sample.tolist()]

    @property
    def _weight(self) -> Floats:
        """``[n]`` 1/π, in all as many documents as an even sample would need to tell as much."""
        weight = 1 / self.plan.probability(self.n)
        return np.asarray(weight * weight.sum() / (weight**2).sum())

    def _right(self, kind: str | None) -> Floats:
        """``[n]`` How many spans (of a type) are right."""
        claims = self.plan.claims
        found = (
            {span.bare for span in claims.spans[d]} & {span.bare for span in true}
            for d, true in zip(self._sample.tolist(), self._true, strict=True)
        )
        return np.array([sum(kind is None or span.label == kind for span in spans) for spans in found], np.float64)

    def _seen(self, kind: str | None) -> Seen:
        true = [sum(kind is None or span.label == kind for span in spans) for spans in self._true]
        return Seen(self._sample, self.plan.probability(self.n), self._right(kind), np.array(true, np.float64))

    def _scores(self, kind: str | None) -> Scores:
        seen, reach = self._seen(kind), self.plan.reach(self.confidence, self.n)
        return Scores(*scores_of(expected(self.plan.claims, kind), seen, reach), int(seen.true.sum()))


class _Outcomes:
    """Probabilities of one kind, whether each came true, how much each counts, and in which document it is."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, bool, float, int]] = []

    def add(self, document: int, probability: Iterable[float], right: Iterable[bool], weight: float) -> None:
        rows = zip(probability, right, strict=True)
        self._rows += [(float(p), bool(hit), weight, document) for p, hit in rows]

    @property
    def _columns(self) -> tuple[Floats, NDArray[np.bool_], Floats]:
        table = np.array(self._rows, np.float64).reshape(-1, 4)
        return table[:, 0], table[:, 1] > 0, table[:, 2]

    def line(self) -> Line:
        return fit_line(*self._columns)

    def beyond_chance(self) -> bool:
        return beyond_chance(*self._columns, np.array([row[3] for row in self._rows], np.int64))


@knows_its_options
def result(
    consensus: Result | LayeredResult | Claims | str | Path,
    checked: str | Path | Sequence[str | Path] | Mapping[str, Sequence[Tag]] | Mapping[str, Sequence[Span]],
    *,
    plan: Plan | str | Path | None = None,
    confidence: float = 0.9,
    max_size: int | str | None = None,
) -> Audit:
    """Precision, recall and F1 of a consensus from the documents of a plan that somebody checked.

    ``checked`` are files (see :func:`quorate.audit.checked.read_checked`), or the right tags by document (of a
    consensus in layers, the right spans); ``plan`` is needed where they do not hold it themselves. Unless the plan is
    sequential, all its documents must be checked.

    >>> import quorate
    >>> corpus = quorate.sample()
    >>> consensus = quorate.aggregate(corpus, "mv")
    >>> drawn = quorate.audit.plan(consensus, 40)
    >>> audit = result(consensus, {name: corpus[name].gold for name in drawn.ids}, plan=drawn)
    >>> audit.f1.low < 0.72 < audit.f1.high
    True
    """
    if not 0 < confidence < 1:
        hint = as_share(confidence, below_one=True)
        raise SettingsError(f"confidence must be above 0 and below 1, not {confidence:g}{hint}")
    claims = consensus if isinstance(consensus, Claims) else Claims.of(consensus, max_size=max_size)
    if isinstance(plan, Plan) and plan.claims.digest != claims.digest:
        raise OtherConsensusError(OTHER_CONSENSUS, plan.claims.digest)
    if isinstance(checked, Plan):
        raise SettingsError("a plan says what to check, not what was found (give files, or the right tags by document)")
    if isinstance(checked, Mapping):
        truth, drawn, where = _given(checked, claims), [], "checked"
    else:
        paths = [checked] if isinstance(checked, str | Path) else list(checked)
        where = some([str(path) for path in paths])
        found = read_checked(paths, claims, max_size=max_size)
        truth, drawn = found.tags, found.drawn
    if plan is None:
        plan = planned_by(claims, drawn, where)
    elif not isinstance(plan, Plan):
        plan = read_plan([plan], claims, max_size=max_size)
    return Audit(plan, truth, confidence, _how_many(plan, truth, where))


def _given(checked: Mapping[str, Any], claims: Claims) -> dict[str, tuple[Tag, ...]]:
    """The right tags of documents, if they fit them."""
    found: dict[str, tuple[Tag, ...]] = {}
    for name, tags in checked.items():
        try:
            tokens = claims.corpus[name].tokens
        except KeyError:
            raise InputError("this document is not in the consensus", where=f"document {name!r}") from None
        if claims.layers:
            found[name] = claims.truth_of(claims.corpus.position(name), tags)
            continue
        found[name] = tuple(tags)
        if len(tags) != len(tokens) or None in tags:
            raise InputError(
                f"{counted(len(tags), 'tag')} for {counted(len(tokens), 'token')} (give one a token)",
                where=f"document {name!r}",
            )
    return found


def _how_many(plan: Plan, truth: Mapping[str, Sequence[Tag]], where: str) -> int:
    """How many of a plan's first documents count."""
    unchecked = [name for name in plan.ids if name not in truth]
    if not unchecked:
        return len(plan)
    done = len(plan) - len(unchecked)
    if not plan.sequential:
        raise InputError(
            f"{done:,} of the {len(plan):,} documents are checked, not {some(unchecked, 3)}: the interval of this plan "
            "holds when all are (check the rest; a plan of 'audit plan --sequential' can be looked at before)",
            where=where,
        )
    first = plan.ids.index(unchecked[0])
    if first < LEAST:
        raise InputError(
            f"document {unchecked[0]!r} is not checked, and is one of the first {LEAST} (check them in the order of "
            f"the plan; after {LEAST} one may look)",
            where=where,
        )
    return first
