"""What kinds of sources a crowd has: who is silent, and who errs together, which must be known to tell the other."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.choose.correlation import shared_mistakes
from quorate.choose.silence import MOSTLY_THE_SAME, Coverage, coverage, only_rules
from quorate.corpus.profiles import Profile
from quorate.crowd.crowd import Crowd
from quorate.crowd.sharing import Sharing

__all__ = ["coverage_and_sharing"]


def coverage_and_sharing(encoded: Crowd, profiles: Mapping[str, Profile]) -> tuple[Coverage, Sharing]:
    """How much of what others marked each annotator marked too, and how much annotators have in common.

    Copies of a rule mark what it marks, so that rules with copies look as if they overlapped: copies are found first,
    and then count as one.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> tags = {"rule": ("B-PER", "O"), "again": ("B-PER", "O"), "ann": ("O", "B-LOC")}
    >>> corpus = Corpus([Document(str(n), ("Ada", "Rome"), tags) for n in range(50)])
    >>> encoded = encode(corpus, corpus.tagset())
    >>> copies = {"rule": Profile(group="r"), "again": Profile(group="r")}
    >>> covered, sharing = coverage_and_sharing(encoded, copies)
    >>> covered.share.round(1).tolist(), sharing.pairs()
    ([0.0, 0.0, 0.0], [(0, 2, 1.0)])
    """
    groups = [profiles[name].group if name in profiles else None for name in encoded.annotators]
    covered = coverage(encoded)
    among_rules = only_rules(encoded, profiles, covered)
    sharing = shared_mistakes(encoded, groups, among_rules=among_rules)
    if sharing.at_least(MOSTLY_THE_SAME):
        heard = sharing.heard(encoded)
        covered = coverage(heard, sharing)
        if only_rules(heard, profiles, covered) is not among_rules:
            sharing = shared_mistakes(encoded, groups, among_rules=not among_rules)
            covered = coverage(sharing.heard(encoded), sharing)
    return covered, sharing
