"""Texts that come more than once: in files of one annotator each that name nobody, or under several ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from quorate.corpus.records import Document
from quorate.wording import counted

REPEATED = "the same text"
"""In every note that is given here."""

_NEARLY_ALL = 0.8  # of the texts of a file, that are in another one too
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
            found.setdefault(document.source.path, []).append(hash(document.tokens))
            if annotators > 1:
                left_out.add(document.source.path)
            if len(words) < 2:  # a table without words has the same one everywhere
                words.update(document.tokens)
    return {file: texts for file, texts in found.items() if file not in left_out} if len(words) > 1 else {}


class Alike(NamedTuple):
    """Files with nearly the same texts, whether the same number has the same text in all, and what to say of them."""

    files: list[str]
    in_step: bool
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
        if its and sum(files_with[text] > 1 for text in its) >= _NEARLY_ALL * len(its)
    ]
    if len(files) < 2:
        return Alike([], False, "")
    in_step = all(len({*at} - {None}) == 1 for at in zip_longest(*(texts[file] for file in files)))
    ids = "" if in_step else "give each document an id, the same in all files (in CoNLL: # id = NAME), and "
    note = (
        f"{len(files):,} files have {REPEATED}s, each as a document of its own: if every file is one annotator's, "
        f"{ids}say --annotator-from filename"
    )
    return Alike(files, in_step, note)


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
