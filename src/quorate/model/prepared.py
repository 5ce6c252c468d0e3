"""A corpus laid out for fits, with the labels that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Tag, known_gold
from quorate.corpus.tags import Invalid, Scheme, TagSet
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode, encode_known
from quorate.errors import InputError, SettingsError

__all__ = ["Known", "Prepared", "check_corpus", "known_tags", "prepare"]


Known = Literal["inline"] | Mapping[str, Sequence[Tag]] | None
"""Known labels: none, the corpus's own gold, or tags by document id."""


class Prepared(NamedTuple):
    """A corpus ready for fits: its tags, its arrays, and its known labels as :func:`encode_known` gives them."""

    corpus: Corpus
    tagset: TagSet
    encoded: Crowd
    known: NDArray[np.int32] | None


def prepare(corpus: Corpus, scheme: Scheme | None, invalid: Invalid, known: Known = None) -> Prepared:
    """Lay out a corpus once, for one fit or many."""
    check_corpus(corpus)
    if not len(corpus):
        raise InputError("the corpus has no document")
    given = known_tags(corpus, known)
    tagset = corpus.tagset(scheme, known=(tag for tags in given.values() for tag in tags))
    encoded = encode(corpus, tagset, invalid=invalid)
    clamped = encode_known(corpus, tagset, given, invalid) if given else None
    return Prepared(corpus, tagset, encoded, clamped)


def check_corpus(corpus: Corpus) -> None:
    """:class:`SettingsError` if this is something else, as the name of a file."""
    if not isinstance(corpus, Corpus):
        raise SettingsError(f"a Corpus is needed, not {type(corpus).__name__} (quorate.read gives one from files)")


def known_tags(corpus: Corpus, known: Known, *, none_yet: bool = False) -> Mapping[str, Sequence[Tag]]:
    """Known labels by document id, whichever way they were given; with ``none_yet``, there may be no gold."""
    if known is None:
        return {}
    if isinstance(known, str):
        if known != "inline":
            raise SettingsError(f"known must be None, 'inline' or tags by document id, not {known!r}")
        if none_yet:
            return {document.id: document.gold for document in corpus if document.gold is not None}
        return known_gold(corpus)
    return known
