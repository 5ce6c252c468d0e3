"""What checked documents said of the others, in words."""

from __future__ import annotations

from quorate.model.correction import Belief, Correction
from quorate.wording import counted

__all__ = ["checked_sentences"]

_NOTABLE = 0.05  # change of a probability that is worth a word
_MOST_KINDS = 2


def checked_sentences(correction: Correction | None) -> list[str]:
    """What changed by them, and F1 that they show.

    >>> alone = Belief("marks of one annotator alone", 0.4, 0.15)
    >>> for line in checked_sentences(Correction(30, (0.0,) * 5, 0.1, True, (0.61, 0.54, 0.68), (alone,))):
    ...     print(line)
    30 checked documents: marks of one annotator alone are believed less than without a check (15 % for 40 %)
    F1 of the checked documents, predicted without knowing them: 61 (54 to 68, if they were drawn at random)
    """
    if correction is None:
        return []
    notable = [one for one in correction.beliefs if abs(one.corrected - one.stated) >= _NOTABLE]
    notable = sorted(notable, key=lambda one: -abs(one.corrected - one.stated))[:_MOST_KINDS]
    said = "; ".join(map(_belief, notable)) or "confidence stays about as it is"
    value, low, high = (f"{100 * share:.0f}" for share in correction.f1)
    return [
        f"{counted(correction.documents, 'checked document')}: {said}",
        f"F1 of the checked documents, predicted without knowing them: {value} ({low} to {high}, if they were drawn at "
        "random)",
    ]


def _belief(one: Belief) -> str:
    direction = "less" if one.corrected < one.stated else "more"
    numbers = f"{100 * one.corrected:.0f} % for {100 * one.stated:.0f} %"
    return f"{one.kind} are believed {direction} than without a check ({numbers})"
