"""Texts that come more than once: in files of one annotator each that name nobody, or under several ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from quorate.corpus.records import Document
from quorate.errors import InputError
from quorate.formats.notes import some
from quorate.wording import counted

REPEATED = "the same text"
"""In every note that is given here."""

_NEARLY_ALL = 0.8  # of the texts of a file, that are in another one too
_MOST = 0.5  # of the files
_MANY_ALIKE = 0.25  # of the long texts of a file: each may have been seen by some of the annotators only
_ENOUGH = 10  # of them
_LONG_ENOUGH = 6  # tokens: shorter texts may well come twice by chance
_MANY = 0.05  # of all documents: a few may come twice by chance, and quorate check tells of them


def texts_by_file(documents: Iterable[tuple[Document, int]]) -> dict[str, list[int]]:
    """For each file the hashes of its texts, in their order, from documents and how many annotated them.

    A file is left out if several annotated a document of it, and all are if they have no words.
    """
    found: dict[str, list[int]] = {}
    left_out: set[str] = set()
    words: set[str] = set()
    for document, annotators in documents:
        if document.source is not None:
            found.setdefault(document.source.path, []).append(hash_of(document.tokens))
            if annotators > 1:
                left_out.add(document.source.path)
            if len(words) < 2:  # a table without words has the same one everywhere
                words.update(document.tokens)
    return {file: texts for file, texts in found.items() if file not in left_out} if len(words) > 1 else {}


def hash_of(tokens: Sequence[str]) -> int:
    """The hash of a text, which is odd if it is long enough not to come twice by chance."""
    return 2 * hash(tuple(tokens)) + (len(tokens) >= _LONG_ENOUGH)


class Alike(NamedTuple):
    """Files with nearly the same texts, and what to say of them."""

    files: list[str]
    note: str


def file_per_annotator(texts: Mapping[str, Sequence[int]]) -> Alike:
    """Files that have nearly the same texts, which are numbered in each: they may be one annotator's each.

    >>> file_per_annotator({"ann.conll": [1, 2, 3], "bob.conll": [1, 2, 3], "more.conll": [7, 8]}).files
    ['ann.conll', 'bob.conll']
    """
    files_with: dict[int, int] = {}
    for its in texts.values():
        for text in set(its):
            files_with[text] = files_with.get(text, 0) + 1
    files = [
        file
        for file, its in texts.items()
        if its and (_repeat(its, files_with, _NEARLY_ALL) or _repeat([one for one in its if one % 2], files_with))
    ]
    if len(files) < 2:
        return Alike([], "")
    note = (
        f"{len(files):,} files have {REPEATED}s, each as a document of its own: if every file is one annotator's, "
        "say --annotator-from filename"
    )
    return Alike(files, note)


def _repeat(texts: Sequence[int], files_with: Mapping[int, int], share: float = 0.0) -> bool:
    """Whether so many of the texts are in other files too; without a share, whether enough are."""
    repeated = sum(files_with[text] > 1 for text in texts)
    return repeated >= share * len(texts) if share else repeated >= max(_ENOUGH, _MANY_ALIKE * len(texts))


def refuse_most(alike: Alike, files: int) -> None:
    """:class:`InputError` if most of the files have the same texts, each as a document of its own."""
    if len(alike.files) > _MOST * files:
        raise InputError(
            f"{len(alike.files):,} files have {REPEATED}s, each as a document of its own (if every file is one "
            "annotator's, say --annotator-from filename; else give each document an id of its own)",
            where=some(alike.files),
        )


def repeated_texts(documents: Iterable[Document]) -> str:
    """A note of how many documents have the text of another one, if they are many.

    >>> repeated_texts([Document(name, tuple("she sang all day and night".split())) for name in ("a1", "b1")])
    '1 document has the same text as another under another id, such as a1 and b1 (if they are one, give them one id)'
    """
    first: dict[tuple[str, ...], str] = {}
    again: list[tuple[str, str]] = []
    words: set[str] = set()
    total = 0
    for total, document in enumerate(documents, 1):  # noqa: B007
        if len(document.tokens) >= _LONG_ENOUGH and first.setdefault(document.tokens, document.id) != document.id:
            again.append((first[document.tokens], document.id))
        if len(words) < 2:
            words.update(document.tokens)
    if len(words) < 2 or not again or len(again) < _MANY * total:
        return ""
    one, other = again[0]
    return (
        f"{counted(len(again), 'document has', 'documents have')} {REPEATED} as another under another id, such as "
        f"{one} and {other} (if they are one, give them one id)"
    )
