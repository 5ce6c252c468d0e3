"""From a corpus of strings to the crowd that a fit sees, with the labels that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from quorate.corpus.records import Corpus, Tag, known_gold
from quorate.corpus.tags import Invalid, Scheme, TagSet
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode, encode_known
from quorate.errors import InputError, SettingsError

Known = Literal["inline"] | Mapping[str, Sequence[Tag]] | None
"""Known labels: none, the corpus's own gold, or tags by document id."""


def crowd_of(corpus: Corpus, scheme: Scheme | None, invalid: Invalid, known: Known = None) -> Crowd:
    """The crowd of a corpus, before any change.

    >>> import quorate
    >>> crowd_of(quorate.sample(), None, Invalid.REPAIR).n_docs
    320
    """
    check_corpus(corpus)
    if not len(corpus):
        raise InputError("the corpus has no document")
    given = known_tags(corpus, known)
    tagset = corpus.tagset(scheme, known=(tag for tags in given.values() for tag in tags))
    return encoded_with(corpus, tagset, invalid, given)


def encoded_with(
    corpus: Corpus,
    tagset: TagSet,
    invalid: Invalid,
    known: Mapping[str, Sequence[Tag]],
    names: Sequence[str] | None = None,
    words: Sequence[str] | None = None,
) -> Crowd:
    """The crowd of a corpus under these tags and, if given, with the numbers that names and words had before."""
    crowd = encode(corpus, tagset, invalid=invalid, annotators=names, words=words)
    if not known and not corpus.profiles:
        return crowd
    codes = encode_known(corpus, tagset, known, invalid) if known else None
    return crowd.knowing(codes, corpus.profiles)


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
