"""What hidden annotators say of an estimate from agreement: how sure it is, and where there can be none.

An estimate rests on how often those who were hidden confirm the spans of a consensus. It needs annotators who say all
they see, work on their own, and are three to a document: of two who disagree, nobody knows who is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quorate.choose.calibrate import Confirmations, Said, log_likelihood
from quorate.choose.hidden import HiddenLabels
from quorate.choose.silence import mostly_silent
from quorate.corpus.profiles import Kind, Profile
from quorate.crowd.algebra import label_counts, seen_pairs, sure_events, without
from quorate.crowd.crowd import Crowd
from quorate.model.engines.protocol import Decoded
from quorate.result.calibration import Calibration
from quorate.result.sources import votes_in_words

__all__ = ["confirmation_noise", "explained", "why_no_estimate"]

Floats = NDArray[np.float64]

# Of what annotators say, the share that must be evidence of its own. Where a third is not, as among runs of one model,
# some of what is shared stays unseen: it is told from pairs alone.
_INDEPENDENT = 2 / 3
_THREE = 3


def why_no_estimate(
    encoded: Crowd, profiles: Mapping[str, Profile], of_silence: Floats, votes: tuple[float, float]
) -> str:
    """Why agreement tells nothing of how right a consensus is, in one phrase; empty where it does.

    ``of_silence [K]`` is how much an ``O`` of each counts, ``votes`` how many annotators a document has, and how many
    independent ones they are worth.

    >>> from quorate.corpus.records import Corpus, Document
    >>> from quorate.crowd.encode import encode
    >>> corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O"), "bob": ("O", "O")})])
    >>> why_no_estimate(encode(corpus, corpus.tagset()), {}, np.ones(2), (2.0, 2.0))
    'hardly any document has three annotators'
    """
    if encoded.tagset.outside is None:
        return "labels of the plain scheme have no spans"
    document, who = seen_pairs(encoded)
    people = np.bincount(document, minlength=encoded.n_docs)
    if (people >= _THREE).sum() < (people >= 1).sum() / 2:
        few = (people >= 2).sum() < (people >= 1).sum() / 2
        return "most documents have one annotator" if few else "hardly any document has three annotators"
    machines = [name in profiles and _is_machine(profiles[name]) for name in encoded.annotators]
    if np.array(machines, np.bool_)[who].mean() > 1 / 2:
        return "most annotators are models or rules, which make the same mistakes"
    if mostly_silent(of_silence):
        return "most annotators mark less than half of what others mark"
    given, worth = votes
    return votes_in_words(given, worth) if worth < _INDEPENDENT * given else ""


def _is_machine(profile: Profile) -> bool:
    return profile.kind in (Kind.MODEL, Kind.RULE) or profile.abstains


def confirmation_noise(hidden: Sequence[HiddenLabels], decoded: Sequence[Decoded], calibration: Calibration) -> float:
    """The relative standard error of how often hidden annotators confirm what a consensus gives out, against expected.

    It is over documents and over hidden annotators at once. What is sure stays sure, whoever was hidden: of a mean
    probability p it is the share 2·√(p·(1 − p)), if that is below 1.

    >>> import quorate
    >>> from quorate.choose.hidden import hide
    >>> from quorate.crowd.encode import encode
    >>> from quorate.model.votes import majority
    >>> corpus = quorate.sample()
    >>> hidden = hide(encode(corpus, corpus.tagset()))
    >>> voted = majority(hidden.sample).decoded
    >>> from quorate.result.calibration import AS_STATED
    >>> 0 < confirmation_noise([hidden], [voted], AS_STATED) < 0.1
    True
    """
    found = Confirmations.of(hidden, decoded)
    stated, matched = calibration.spans(found.stated), found.matched.astype(np.float64)
    expected, confirmed = stated * found.expected, float(matched.sum())
    if not confirmed:
        return 1.0
    off = matched - confirmed / max(float(expected.sum()), 1e-9) * expected
    p = float(stated.mean())
    error = float(np.sqrt(found.variance(off[None])[0, 0])) / confirmed
    return round(error * min(2 * float(np.sqrt(p * (1 - p))), 1.0), 9)


def explained(hidden: Sequence[HiddenLabels], posteriors: Sequence[Floats]) -> float | None:
    """How much of the disagreement a model explains: 1 − H(model) / H(shares), 0 to 1.

    Both are cross entropies of what hidden annotators said on tokens where those who are left disagree: one as the
    model's probabilities ``[N, J]`` predict it, one as the shares of votes do, each read through the confusion matrix
    that suits it best. ``None`` if nobody disagrees.

    >>> import quorate
    >>> from quorate.choose.hidden import hide
    >>> from quorate.crowd.encode import encode
    >>> from quorate.model.votes import majority
    >>> corpus = quorate.sample()
    >>> hidden = hide(encode(corpus, corpus.tagset()))
    >>> voted = majority(hidden.sample).decoded
    >>> explained([hidden], [voted.posterior])  # votes explain no more than votes do
    0.0
    """
    by_model, by_votes = [], []
    for one, posterior in zip(hidden, posteriors, strict=True):
        shares = _shares(one.sample)
        open_here = (shares[one.token] < 1).all(axis=1) & (shares[one.token].sum(axis=1) > 0)
        said = one.token[open_here], one.label[open_here]
        by_model.append(Said(posterior, *said))
        by_votes.append(Said(shares, *said))
    if not any(len(one.token) for one in by_votes):
        return None
    entropies = [-log_likelihood(said) for said in (by_model, by_votes)]
    if entropies[1] <= 0:
        return None
    return round(min(max(1 - entropies[0] / entropies[1], 0.0), 1.0), 9)


def _shares(encoded: Crowd) -> Floats:
    """``[N, J]`` The share of votes for every label at every token."""
    if encoded.event_weight is not None:
        encoded = replace(without(encoded, ~sure_events(encoded)), event_weight=None)
    counts = label_counts(encoded)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
