"""Who can be judged: an annotator is judged by others who saw the same documents, or by labels that are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from quorate.corpus.profiles import Kind
from quorate.corpus.records import Corpus
from quorate.crowd.algebra import token_of_events, with_likeliest_labels
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.estimators.bsc import BSC
from quorate.estimators.capabilities import Remembers
from quorate.estimators.crf_ma import CRFMA
from quorate.estimators.voting import MajorityVote
from quorate.formats.notes import people
from quorate.result.sources import SourceKind, Sources
from quorate.taggers.loop import TAGGER

TOO_LITTLE_OVERLAP = "too little overlap to tell how often they are right"
_LEAST_OVERLAP = 0.05  # share of a source's marks that others judge, below which its precision is a guess


def compared_with_nobody(
    model: BSC | CRFMA | MajorityVote, corpus: Corpus | None = None, known: Iterable[str] = ()
) -> tuple[str, ...]:
    """Annotators of whom neither a fit nor other documents, ``corpus``, can tell how good they are.

    They share no document with anybody, and none of which labels are known (``known`` are such ids of ``corpus``). An
    expert needs no judging, and whoever is known from an earlier project was judged there. Where the documents of the
    fit were not kept, only somebody who was all alone in it is found.

    >>> from quorate.corpus.records import Document
    >>> shared = Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O"), "bob": ("O", "O")})
    >>> alone = Document("2", ("Bo", "ran"), {"cat": ("B-PER", "O")})
    >>> compared_with_nobody(BSC("cm").fit(Corpus([shared, alone])))
    ('cat',)
    """
    sources = model.sources_ if hasattr(model, "sources_") else model.result_.sources
    names = {name for name in sources.names if name != TAGGER}
    judged = {name for name, profile in sources.profiles.items() if profile.kind is Kind.EXPERT}
    if isinstance(model, Remembers):
        judged |= model.past.known_before
    if isinstance(model, Remembers) and model.has_documents:
        judged |= model._fit_state.compared()
    elif not model.meta_["known"] and "result_" in vars(model):
        judged |= model.result_.corpus.compared()
    elif model.meta_["known"] or len(names) > 1:
        judged |= names
    if corpus is not None:
        judged |= corpus.compared() | {name for one in known for name in corpus[one].annotations}
    return tuple(sorted(names - judged))


def not_judged(names: Sequence[str]) -> str:
    """What to say of annotators who were compared with nobody, and what to do.

    >>> not_judged(["ann"]).partition(" (")[0]
    'ann shares no document with anybody and cannot be judged'
    """
    return (
        f"{people(names)} {'shares' if len(names) == 1 else 'share'} no document with anybody and cannot be judged "
        "(have somebody else label some of the same, or do an audit)"
    )


def too_little_overlap(model: BSC | CRFMA | MajorityVote) -> tuple[str, ...]:
    """Sources that abstain and are alone with nearly all that they mark; none where that cannot be seen any more."""
    if model.meta_["known"] or not isinstance(model, Remembers) or not model.has_documents:
        return ()
    return overlap_too_little(encode(model.kept_documents(), model.tagset_), model.sources_)


def overlap_too_little(crowd: Crowd, sources: Sources) -> tuple[str, ...]:
    """Of sources that abstain, those with next to no mark that others judge.

    Others judge by a mark of their own or, if they do not abstain, by any label.

    >>> from quorate.corpus.records import Document
    >>> said = {"a": ("B-X", "O", "O", "B-X"), "b": ("O", "B-X", "O", "O"), "c": ("O", "O", "O", "B-X")}
    >>> corpus = Corpus([Document("1", ("t", "u", "v", "w"), said)])
    >>> overlap_too_little(encode(corpus, corpus.tagset()), Sources(("a", "b", "c"), abstaining=("a", "b", "c")))
    ('b',)
    """
    abstains = np.array([sources.kind(name) is SourceKind.RULES for name in crowd.annotators], np.bool_)
    if crowd.tagset.outside is None or not abstains.any():
        return ()
    crowd = with_likeliest_labels(crowd)
    who, label = (column[crowd.event_cell] for column in (crowd.cells.annotator, crowd.cells.label))
    token, marks = token_of_events(crowd), label != crowd.tagset.outside
    judges = np.bincount(token[marks | ~abstains[who]], minlength=crowd.n_tokens)
    own, judged = (np.bincount(who[some], minlength=len(abstains)) for some in (marks, marks & (judges[token] > 1)))
    found = np.flatnonzero(abstains & (judged < _LEAST_OVERLAP * own))
    return tuple(sorted(crowd.annotators[k] for k in found.tolist()))


def hardly_overlap(names: Sequence[str]) -> str:
    """What to say of sources with too little overlap, and what to do.

    >>> hardly_overlap(["r1", "r2"]).partition(" (")[0]
    'r1, r2 mark next to nothing that others mark: too little overlap to tell how often they are right'
    """
    return (
        f"{people(names)} {'marks' if len(names) == 1 else 'mark'} next to nothing that others mark: "
        f"{TOO_LITTLE_OVERLAP} (have a person label some of the same, or do an audit)"
    )
