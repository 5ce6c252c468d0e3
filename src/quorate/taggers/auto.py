"""Whether a tagger is tried that nobody asked for: where it can be judged, has enough to learn from, and is quick."""

from __future__ import annotations

import numpy as np

from quorate.choose.choice import Choice
from quorate.choose.silence import hardly_overlap, mostly_silent, read_everything
from quorate.crowd.algebra import seen_pairs
from quorate.crowd.crowd import Crowd
from quorate.model.settings import Decode, Settings
from quorate.taggers.loop import ROUNDS, TAGGER

__all__ = ["worth_trying"]

_ENOUGH_TO_LEARN_FROM = 500  # documents; a tagger of fewer knows little, and hidden annotators cannot tell what
_MOST_SECONDS = 60.0
# Microseconds that a round of the tagger crf takes for each token, and for each label beside that: on two cores, 5 s
# for the 82,000 tokens and 9 labels of a crowd of news, 45 s for the 1.4 million tokens and 3 labels of abstracts.
_PER_TOKEN, _PER_LABEL = 17.0, 5.0


def worth_trying(encoded: Crowd, choice: Choice, settings: Settings) -> tuple[bool, str]:
    """Whether to try one, and if not, why; "" where nobody would expect one.

    How long it takes is told by the size of the corpus alone: the outcome must not hang on a clock.
    """
    has_spans = encoded.tagset.outside is not None and settings.decode is not Decode.TOKEN
    labelled = len(np.unique(seen_pairs(encoded)[0]))
    if choice.vote is None or not has_spans or not settings.text or labelled < _ENOUGH_TO_LEARN_FROM:
        return False, ""
    if TAGGER in encoded.annotators:
        return False, f"a tagger was not tried: an annotator is called {TAGGER!r}"
    # A tagger learns from the words what a rule marks: it agrees with one that was hidden, be that right or wrong.
    by_rules = hardly_overlap(choice.of_silence)
    if by_rules or (mostly_silent(choice.of_silence) and read_everything(encoded)):
        whom = "rules" if by_rules else "those who mark little"
        why = f"among {whom} none can tell whether it helps"
        return False, f"a tagger was not tried: {why} (--tagger crf takes one)"
    seconds = 1e-6 * ROUNDS * encoded.n_tokens * (_PER_TOKEN + _PER_LABEL * len(encoded.tagset.labels))
    if seconds > _MOST_SECONDS:
        return False, f"a tagger was not tried: it would take some {seconds:,.0f} s (--tagger crf takes one)"
    return True, ""
