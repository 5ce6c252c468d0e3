"""What an audit found, in words: the same on the command line, in a report and in the service."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from quorate.formats.notes import some
from quorate.wording import counted, in_number

if TYPE_CHECKING:
    from quorate.audit.audited import Audit, Scores

FEW_SPANS = 10
"""True spans of a type in a sample: of fewer, no score is shown."""


class Outcome(NamedTuple):
    """What there is to tell: ``f1`` with the ends of its interval, none where nothing was given or found.

    ``few`` are the types of which too little was seen; ``waiting`` documents were not counted yet.
    """

    documents: int
    checked: int
    confidence: float
    sequential: bool
    f1: Sequence[float] | None
    few: Sequence[str] = ()
    new_types: Sequence[str] = ()
    more_to_halve: int = 0
    waiting: int = 0
    nothing_corrected: bool = False

    @classmethod
    def of(cls, found: Audit) -> Outcome:
        """That of an audit."""
        return cls(
            len(found.plan.claims),
            found.n,
            found.confidence,
            found.plan.sequential,
            None if math.isnan(found.f1.value) else found.f1,
            sorted(found.by_type.keys() - enough_seen(found).keys()) if len(found.by_type) > 1 else (),
            found.new_types,
            found.more_to_halve,
            len(found.plan) - found.n,
            found.nothing_corrected,
        )


def enough_seen(found: Audit) -> dict[str, Scores]:
    """The scores of types of which enough was seen."""
    return {kind: scores for kind, scores in found.by_type.items() if scores.seen >= FEW_SPANS}


def headline(found: Outcome) -> str:
    """The answer in a line.

    >>> headline(Outcome(320, 50, 0.9, False, (0.802, 0.751, 0.845)))
    'F1 of all 320 documents: 80.2 (75.1 to 84.5), guaranteed with 90 % confidence'
    """
    what = f"F1 of all {found.documents:,} documents"
    if found.f1 is None:
        return f"{what}: none, as no span was given or found"
    f1, low, high = (100 * one for one in found.f1)
    if found.checked == found.documents:
        return f"{what}: {f1:.1f}, exactly, as every one was checked"
    return f"{what}: {f1:.1f} ({low:.1f} to {high:.1f}), guaranteed with {100 * found.confidence:g} % confidence"


def notes(found: Outcome) -> list[str]:
    """What the intervals mean, what may be wrong, and what would make them narrower."""
    share = f"{100 * found.confidence:g} %"
    if found.sequential:
        lines = [f"Guaranteed however often you look: each interval holds, with {share} confidence."]
        if found.waiting:
            waiting = (
                "{} {document|documents} of the plan {does|do} not count yet, because the first of them is not checked."
            )
            lines.append(in_number(waiting, found.waiting))
    elif found.checked == found.documents:
        lines = ["Every document was checked: the scores are exact."]
    else:
        lines = [f"Guaranteed: each interval contains the score of all documents ({share} confidence)."]
    if found.new_types:
        lines.append(
            f"warning: the consensus never gives {some(found.new_types)}: is it a mistake in what was checked?"
        )
    if found.nothing_corrected:
        lines.append(
            f"warning: nothing was corrected in any of the {found.checked:,} documents: did somebody look at them?"
        )
    if found.few:
        lines.append(f"Too few were seen of {some(found.few)} to score.")
    if found.more_to_halve:
        lines.append(f"About {counted(found.more_to_halve, 'more document')} would make the intervals half as wide.")
    return lines
