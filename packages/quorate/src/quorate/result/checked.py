"""What checked documents said of the others, in words."""

from __future__ import annotations

from quorate.model.correction import Belief, Correction
from quorate.wording import counted

_NOTABLE = 0.05  # change of a probability that is worth a word
_MOST_KINDS = 2


def checked_in_words(correction: Correction) -> str:
    """What the correction does to the kinds of spans that it changes most.

    >>> alone = Belief("marks of one annotator alone", 0.4, 0.15)
    >>> checked_in_words(Correction(30, (0.0,) * 5, 0.1, True, (0.61, 0.54, 0.68), (alone,)))
    '30 checked documents: marks of one annotator alone are believed less than without a check (15 % for 40 %)'
    """
    notable = [one for one in correction.beliefs if abs(one.corrected - one.stated) >= _NOTABLE]
    notable = sorted(notable, key=lambda one: -abs(one.corrected - one.stated))[:_MOST_KINDS]
    changes = "; ".join(map(_belief, notable)) or "confidence stays about as it is"
    return f"{counted(correction.documents, 'checked document')}: {changes}"


def _belief(one: Belief) -> str:
    direction = "less" if one.corrected < one.stated else "more"
    numbers = f"{100 * one.corrected:.0f} % for {100 * one.stated:.0f} %"
    return f"{one.kind} are believed {direction} than without a check ({numbers})"
