"""Who can be judged: an annotator is judged by others who saw the same documents, or by labels that are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorate.corpus.profiles import Kind
from quorate.corpus.records import Corpus
from quorate.estimators.bsc import BSC
from quorate.estimators.capabilities import Remembers
from quorate.estimators.crf_ma import CRFMA
from quorate.estimators.voting import MajorityVote
from quorate.formats.notes import people
from quorate.taggers.loop import TAGGER


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
