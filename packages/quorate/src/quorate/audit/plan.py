"""The plan of an audit: which documents to check, in which order, and how probable each was; kept as JSONL.

A line of the file is a document with the consensus as its ``"gold"``, for a person to correct, ``"checked": false``,
and ``"audit"``: what makes the estimate possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from quorate.audit.claims import Claims
from quorate.audit.design import drawing_order, inclusion, sizes
from quorate.audit.estimate import Estimate, Reach, at_every_look, once
from quorate.audit.expected import result_if_as_sure_as_stated, result_without_mistakes
from quorate.corpus.tags import Scheme
from quorate.errors import InputError, OtherConsensusError, SettingsError, knows_its_options
from quorate.formats.json_lines import write_lines
from quorate.result.layers import LayeredResult
from quorate.result.result import Result

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_PLACE = ("tokens", "text", "offsets", "offset_unit", "split")
_ROUNDING = 1e-6  # relative, of a probability in a file
OTHER_CONSENSUS = (
    "this plan was drawn from another consensus: its documents or tags differ (audit the one that it was drawn from, "
    "with the same settings, without --known or a saved model; or draw a new plan)"
)
NO_PLAN = "no line in it is of a plan (give the file that quorate audit plan wrote: --plan FILE)"
NOT_SEQUENTIAL = "a sequential audit gives no guarantee for what is accepted (draw a plan without --sequential)"
LEAST = 10
"""Documents of a plan: of fewer, no interval is worth anything."""
TELLS_LITTLE = 0.6
"""The width of an interval above which it tells next to nothing of F1."""


class Drawn(msgspec.Struct, frozen=True):
    """What a line of a plan says of its draw: its number, how probable it was, and of which plan."""

    draw: int
    probability: float
    documents: int
    planned: int
    of: int
    seed: int
    sequential: bool
    consensus: str


@dataclass(frozen=True)
class Plan:
    """Documents to check, in the order of drawing: ``documents`` are their positions in the consensus.

    ``planned`` is how many there were to be at first, ``sequential`` whether one may look at any time.

    >>> import quorate
    >>> drawn = plan(quorate.aggregate(quorate.sample(), "mv"), 30)
    >>> len(drawn), len(set(drawn.ids))
    (30, 30)
    """

    claims: Claims = field(repr=False)
    documents: Integers = field(repr=False)
    seed: int
    planned: int
    sequential: bool

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def ids(self) -> list[str]:
        """The ids of the documents, in the order of drawing."""
        return [self.claims.corpus[int(d)].id for d in self.documents]

    def probability(self, n: int | None = None) -> Floats:
        """Of each of the first ``n`` documents (all unless given), that of being among as many."""
        n = len(self) if n is None else n
        return inclusion(sizes(self.claims), n)[self.documents[:n]]

    def reach(self, confidence: float, n: int) -> Reach:
        """How many standard errors an interval reaches to either side when ``n`` documents are checked."""
        return at_every_look(confidence, n, self.planned) if self.sequential else once(confidence)

    @cached_property
    def expected_f1(self) -> Estimate:
        """F1 with its interval (90 %) as the result should give it, if the consensus is as good as its confidence says.

        >>> import quorate
        >>> drawn = plan(quorate.aggregate(quorate.sample(), "mv"), 30)
        >>> drawn.expected_f1.low < drawn.expected_f1.value < drawn.f1_without_mistakes.value
        True
        """
        return result_if_as_sure_as_stated(*self._as_checked())

    @cached_property
    def f1_without_mistakes(self) -> Estimate:
        """F1 with its interval (90 %) as the result will give it, if no mistake is found in any document.

        >>> import quorate
        >>> result = quorate.aggregate(quorate.sample(), "mv")
        >>> plan(result, 30).f1_without_mistakes.low < plan(result, 100).f1_without_mistakes.low
        True
        """
        return result_without_mistakes(*self._as_checked())

    @property
    def expected_half_width(self) -> float:
        """Half the width of the interval of F1 that is to be expected."""
        return self.expected_f1.width / 2

    def _as_checked(self) -> tuple[Claims, Integers, Floats, Reach]:
        """What an interval is computed from when all documents of the plan are checked."""
        return self.claims, self.documents, self.probability(), self.reach(0.9, len(self))

    def documents_for(self, share_of_width: float, checked: int | None = None) -> int:
        """How many documents would make intervals so much narrower, as expected; all of them if it takes all.

        Narrower than with all documents of the plan, or with as many as were ``checked``.

        >>> import quorate
        >>> plan(quorate.aggregate(quorate.sample(), "mv"), 30).documents_for(0.5) > 60
        True
        """
        x = sizes(self.claims)

        def expected_variance(n: int) -> float:
            return float(((1 / inclusion(x, n) - 1) * x**2).sum())

        first = len(self) if checked is None else checked
        wanted, low, high = expected_variance(first) * share_of_width**2, first, len(x)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if expected_variance(middle) <= wanted else (middle + 1, high)
        return low

    def write(self, path: str | Path, *, first: int = 0) -> None:
        """Write the plan for a person to check, whole or not at all; ``first`` leaves out as many of the first."""
        write_lines(self.lines(first), path)

    def lines(self, first: int = 0) -> Iterator[dict[str, Any]]:
        """The lines of the file."""
        probability = self.probability()
        for n, line in enumerate(self.claims.lines(self.documents[first:].tolist()), first):
            drawn = Drawn(
                n + 1,
                float(probability[n]),
                len(self),
                self.planned,
                len(self.claims),
                self.seed,
                self.sequential,
                self.claims.digest,
            )
            place = {name: line[name] for name in _PLACE if name in line}
            yield (
                {"id": line["id"], "checked": False, "gold": self._proposed(line)}
                | place
                | {"audit": msgspec.to_builtins(drawn)}
            )

    def _proposed(self, line: dict[str, Any]) -> list[Any]:
        """The consensus as what a person corrects: spans, or plain labels."""
        if self.claims.scheme is Scheme.PLAIN:
            return list(line["tags"])
        kept = ("start", "end", "label", "text", "pieces")
        return [{name: span[name] for name in kept if name in span} for span in line["spans"]]


@knows_its_options
def plan(
    consensus: Result | LayeredResult | Claims | str | Path,
    n: int = 50,
    *,
    seed: int = 0,
    sequential: bool = False,
    max_size: int | str | None = None,
) -> Plan:
    """Draw ``n`` documents for a person to check: more often those in which more may be wrong.

    The interval of a plan holds when all its documents are checked. With ``sequential`` one may look at any time and
    add documents (:func:`extended`); intervals are wider then, and hold however often you look.

    >>> import quorate
    >>> result = quorate.aggregate(quorate.sample())
    >>> plan(result, 30, seed=1).ids == plan(result, 30, seed=1).ids
    True
    """
    for name, value, least in (("n", n, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise SettingsError(f"{name} must be a whole number, {least} or more, not {value!r}")
    claims = consensus if isinstance(consensus, Claims) else Claims.of(consensus, max_size=max_size)
    if n < min(LEAST, len(claims)):
        enough = f"at least {LEAST}" if len(claims) > LEAST else f"all {len(claims)}"
        raise SettingsError(f"{n} documents are too few to say anything (check {enough})")
    n = min(n, len(claims))
    return _drawn(claims, n, seed, n, sequential)


def extended(drawn: Plan, more: int) -> Plan:
    """A plan with so many more documents: those that were drawn next.

    >>> import quorate
    >>> first = plan(quorate.aggregate(quorate.sample(), "mv"), 20, sequential=True)
    >>> extended(first, 10).ids[:20] == first.ids
    True
    """
    if not drawn.sequential:
        raise SettingsError(
            "this plan is for one look: more documents after it would break its interval (plan with sequential=True, "
            "--sequential on the command line, from the start)"
        )
    if more < 1:
        raise SettingsError(f"{more} more documents are none (ask for 1 or more)")
    n = min(len(drawn) + more, len(drawn.claims))
    return _drawn(drawn.claims, n, drawn.seed, drawn.planned, drawn.sequential)


def _drawn(claims: Claims, n: int, seed: int, planned: int, sequential: bool) -> Plan:
    order = drawing_order(claims, seed, None if sequential else n)
    return Plan(claims, order[:n], seed, planned, sequential)


def refuse_other_consensus(claims: Claims, drawn: Sequence[tuple[str, Drawn]], where: str) -> None:
    """Raise :class:`InputError` if lines of a plan are of another consensus than this."""
    other = next((one.consensus for _, one in drawn if one.consensus != claims.digest), None)
    if other is not None:
        raise OtherConsensusError(OTHER_CONSENSUS, other, where=where, drawn=drawn)


def planned_by(claims: Claims, drawn: Sequence[tuple[str, Drawn]], where: str) -> Plan:
    """The plan that lines of a file are of; refused unless it was drawn from this very consensus."""
    if not drawn:
        raise InputError(NO_PLAN, where=where)
    refuse_other_consensus(claims, drawn, where)
    first = drawn[0][1]
    plans = {(one.seed, one.sequential, one.planned, one.sequential or one.documents) for _, one in drawn}
    if len(plans) > 1:
        raise InputError("its lines are of several plans (give the files of one)", where=where)
    n = min(max(one.documents for _, one in drawn), len(claims))
    made = _drawn(claims, n, first.seed, first.planned, first.sequential)
    in_order, probability = made.ids, {size: made.probability(size) for size in {one.documents for _, one in drawn}}
    for name, one in drawn:
        same = 0 < one.draw <= one.documents <= n and in_order[one.draw - 1] == name
        if not same or not math.isclose(probability[one.documents][one.draw - 1], one.probability, rel_tol=_ROUNDING):
            raise OtherConsensusError(
                f"document {name!r} was not drawn so from this consensus (its 'audit' field was changed, or the "
                "confidence of the consensus, or another version drew it: draw a new plan)",
                claims.digest,
                where=where,
                same_tags=True,
                drawn=drawn,
            )
    return made
