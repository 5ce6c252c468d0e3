"""What is known from the input alone: how far annotators agree and, where there is gold, its F1."""

from __future__ import annotations

from typing import NamedTuple

from quorate.evaluate.metrics.description import token_alpha
from quorate.evaluate.metrics.significance import bootstrap_f1
from quorate.evaluate.metrics.spans import strict_tallies
from quorate.result.layers import LayeredResult
from quorate.result.result import Result
from quorate.wording import counted

_MOST_DRAWN = 20_000_000  # documents, over all resamples
_RESAMPLES, _LEAST_RESAMPLES = 2000, 100


class KnownF1(NamedTuple):
    """The strict F1 of a consensus, with an interval that holds it at this ``level``, ``by`` gold or an audit.

    ``documents`` are those that have gold or were checked.

    >>> str(KnownF1(0.931, 0.91, 0.952, 0.95, 100))
    'F1 93.1 (91.0 to 95.2) by the gold of 100 documents'
    """

    value: float
    low: float
    high: float
    level: float
    documents: int
    by: str = "gold"

    def __str__(self) -> str:
        value, low, high = (f"{100 * each:.1f}" for each in self[:3])
        return f"F1 {value} ({low} to {high}) by the {self.by} of {counted(self.documents, 'document')}"


def agreement_of(result: Result | LayeredResult) -> float | None:
    """Krippendorff's alpha of the annotators of a result, over all its layers; ``None`` if there is no such number.

    >>> import quorate
    >>> round(agreement_of(quorate.aggregate(quorate.sample(), "mv")), 2)
    0.36
    """
    layers = result.layers.values() if isinstance(result, LayeredResult) else [result]
    return token_alpha(*(one.corpus for one in layers))


def f1_by_gold(result: Result) -> KnownF1 | None:
    """F1 on the documents of a result that have gold, which must not have been given as known; ``None`` without any.

    >>> import quorate
    >>> f1_by_gold(quorate.aggregate(quorate.sample(), "mv")).documents
    320
    """
    scored = [(one.tags, one.document.gold) for one in result if one.document.gold is not None]
    if not scored or result.tagset.outside is None:
        return None
    tags, gold = zip(*scored, strict=True)
    tallies = strict_tallies(tags, gold, scheme=result.tagset.scheme)
    resamples = min(max(_MOST_DRAWN // len(scored), _LEAST_RESAMPLES), _RESAMPLES)
    return KnownF1(*bootstrap_f1(tallies, resamples=resamples), len(scored))
