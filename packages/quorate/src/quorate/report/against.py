"""The consensus beside other answers: the majority vote, and gold where there is any."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from quorate.corpus.records import Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme
from quorate.estimators.voting import MajorityVote
from quorate.evaluate import compare, metrics
from quorate.evaluate.compare import Answers, score_answers, scored_positions
from quorate.evaluate.metrics.span_errors import ErrorKinds, kinds_of_gold, kinds_of_predicted
from quorate.report.content import Bins, Calibration, ErrorExample, ErrorRow, Gold, Scores, Vote, VoteSpans
from quorate.report.documents import Codes
from quorate.result.result import Result

_EXAMPLES = 3

KINDS: dict[str, str] = {
    "missed": "Missed",
    "false_positive": "Invented",
    "wrong_type": "Wrong type",
    "late_start": "Starts late",
    "early_start": "Starts early",
    "late_finish": "Ends late",
    "early_finish": "Ends early",
    "split": "Split in two",
    "fused": "Two made one",
}
"""Kinds of error in the order in which the report has them, and how it calls them."""


def majority_of(result: Result) -> Result:
    """The majority vote on the result's corpus, with the same tags.

    >>> import quorate
    >>> majority_of(quorate.aggregate(quorate.sample(), "bsc-cm")).settings_["method"]
    'mv'
    """
    invalid = result.settings_.get("invalid", "repair")
    return MajorityVote(scheme=result.tagset.scheme.value, invalid=invalid).fit(result.corpus).result_


def against_vote(result: Result, votes: Result) -> Vote:
    """What the consensus changes in the majority vote: documents, tokens, and spans by what became of them."""
    tags, voted = result.tags, votes.tags
    changed = [mine != theirs for mine, theirs in zip(tags, voted, strict=True)]
    tokens = sum(a != b for mine, theirs in zip(tags, voted, strict=True) for a, b in zip(mine, theirs, strict=True))
    if result.tagset.scheme is Scheme.PLAIN:
        return Vote(sum(changed), tokens)
    kinds = metrics.error_kinds(tags, voted, scheme=result.tagset.scheme)
    spans = VoteSpans(
        vote=kinds.gold_spans,
        kept=kinds.exact,
        moved=kinds.partial,
        retyped=kinds.wrong_type,
        dropped=kinds.missed,
        added=kinds.false_positive,
        consensus=sum(len(spans) for spans in result.spans),
    )
    return Vote(sum(changed), tokens, spans)


def against_gold(
    result: Result, votes: Result | None, codes: Codes, *, known: Collection[str] = (), split: str | None = None
) -> Gold | None:
    """Scores, calibration and errors with examples, on the documents whose gold was not given as known.

    ``None`` if there is no such document; a split that no document is of is an error.
    """
    if split is not None:
        scored_positions(result.corpus, split)
    positions = [
        position
        for position, document in enumerate(result.corpus)
        if document.gold is not None
        and any(tag is not None for tag in document.gold)
        and document.id not in known
        and (split is None or document.split == split)
    ]
    if not positions:
        return None
    answers = Answers.of(result, positions)
    scores = score_answers(answers._replace(probabilities=None))  # no score of theirs is shown
    return Gold(
        documents=len(positions),
        split=split,
        right=sum(map(_is_right, answers.tags, answers.gold)),
        method=Scores(scores.strict, scores.relaxed, scores.tokens.accuracy),
        by_type=scores.by_type,
        calibration=_calibration(scores),
        document_calibration=_bins(_whole_documents(result, answers, positions)),
        vote=None if votes is None else _vote_scores(votes, answers, positions),
        errors=None if scores.errors is None else _errors(result, positions, scores.errors, codes),
    )


def _is_right(tags: Sequence[str], gold: Sequence[Tag] | None) -> bool:
    return all(wish is None or tag == wish for tag, wish in zip(tags, gold or (), strict=False))


def _vote_scores(votes: Result, answers: Answers, positions: Sequence[int]) -> Scores:
    every = votes.tags
    tags = [every[position] for position in positions]
    accuracy = metrics.token_scores(tags, answers.gold).accuracy
    if answers.scheme is Scheme.PLAIN:
        return Scores(accuracy=accuracy)
    strict = metrics.strict(tags, answers.gold, scheme=answers.scheme)
    return Scores(strict, metrics.relaxed(tags, answers.gold, scheme=answers.scheme), accuracy)


def _bins(reliability: metrics.Reliability | None) -> Bins | None:
    if reliability is None or not reliability.count:
        return None
    rows = [(one.low, one.high, one.count, one.confidence, one.right) for one in reliability.bins]
    return Bins(reliability.error, reliability.count, rows)


def _calibration(scores: compare.Scores) -> Calibration:
    return Calibration(_bins(scores.calibration), _bins(scores.span_calibration))


def _whole_documents(result: Result, answers: Answers, positions: Sequence[int]) -> metrics.Reliability:
    right = list(map(_is_right, answers.tags, answers.gold))
    sure = np.minimum(result.confidence[list(positions)], 1.0)
    return metrics.reliability(sure, right)


def _errors(result: Result, positions: Sequence[int], kinds: ErrorKinds, codes: Codes) -> list[ErrorRow]:
    """Each kind of error with its number, and examples in which the consensus was surest."""
    wanted = {kind: getattr(kinds, kind) for kind in KINDS if getattr(kinds, kind)}
    examples: dict[str, list[ErrorExample]] = {kind: [] for kind in wanted}
    surest = -result.confidence
    order = sorted(positions, key=lambda position: surest[position])
    for position in order:
        if all(len(found) == min(_EXAMPLES, wanted[kind]) for kind, found in examples.items()):
            break
        one = result[position]
        gold = one.document.gold or ()
        if _is_right(one.tags, gold):
            continue
        own = [span.bare for span in one.spans]
        for kind in dict.fromkeys(_kinds(own, result.tagset.spans(gold, orphans=False))):
            if kind in examples and len(examples[kind]) < _EXAMPLES:
                document = one.document
                examples[kind].append(ErrorExample(document.id, document.tokens, codes.of(one.tags), codes.of(gold)))
    return [ErrorRow(kind, KINDS[kind], count, examples[kind]) for kind, count in wanted.items()]


def _kinds(own: Sequence[Span], gold: Sequence[Span]) -> Iterator[str]:
    yield from kinds_of_gold(own, gold)
    yield from kinds_of_predicted(own, gold)
