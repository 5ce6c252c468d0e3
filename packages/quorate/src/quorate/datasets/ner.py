"""The NER crowd: ``crf-ma-NER-task1.zip``, a file per article and worker, one ``token tag`` a line.

Workers typed into the text, so that 844 of the 1,964 files have another number of lines than the expert's: tokens were
split (``German`` tagged, ``y`` not), tags written onto tokens (``Paris/LOC``), and labels left without a token. Each
worker's lines are therefore aligned to the expert's tokens by their characters, and everything that does not fit is
counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from quorate.corpus.records import Corpus, Document, Source, Tag
from quorate.corpus.tags import Scheme, TagSet, inside_of
from quorate.datasets.archives import digest_of, text_of, zip_files
from quorate.errors import InputError
from quorate.formats.notes import Notes

_MEMBER = re.compile(r"(?:.*/)?(val|test)/(?:ground_truth|mturk_train_data/([^/]+))/([^/]+)\.txt")
_SPLITS = {"val": "dev", "test": "test"}  # in the order of the documents
_TAGS = {tag: tag for tag in TagSet.of_types(Scheme.BIO, ["LOC", "MISC", "ORG", "PER"]).labels}
_GLUED = re.compile(r"(?<=.)(?:/(?:[BI]-)?(?:LOC|LOS|MISC|ORG|PER))+$")  # "LOS" is how one worker spelt LOC

_OTHER_LENGTH = (
    "{} worker {file has|files have} another number of lines than the expert's and {was aligned by its|were "
    "aligned by their} characters"
)
_GLUED_IN_GOLD = "{} {tag|tags} written onto a token in the expert's files {was|were} taken off; the tag column counts"
_GLUED_ON = (
    "{} {tag|tags} written onto a token ('Paris/LOC') in workers' files {was|were} taken off; the tag column counts"
)
_NO_TOKEN = "{} {label|labels} without a token in workers' files {was|were} left out"
_SPLIT = "{} {token|tokens} that a worker had split {was|were} put together; the tag of the last piece counts"
_JOINED = "{} {token|tokens} that a worker had joined to others {was|were} taken apart"
_NOT_ALIGNED = "{} {token has|tokens have} no counterpart in a worker's file and {is|are} null there"
_TOO_MUCH = "{} {line|lines} of workers' files {has|have} no counterpart in the expert's tokens and {was|were} left out"
_NO_WORKER = "{} {article|articles} that no worker tagged {was|were} left out"
_NO_GOLD = "{} worker {file|files} of articles without an expert's file {was|were} left out"


class _Line(NamedTuple):
    number: int
    word: str
    tag: str


def read_ner(archive: str | Path) -> Corpus:
    """The sentences of ``crf-ma-NER-task1.zip``: folder ``val`` as split "dev", then ``test``, articles by name.

    A sentence's id is its article's name and its number there, ``ARTICLE#000``. A token that a worker had split takes
    the tag of its last piece; where a stretch of a worker's file spells something else than the expert's tokens, these
    tokens are ``None`` (not seen). An ``I`` with no span before it stays as it is.

    >>> import pathlib, tempfile, zipfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "tiny.zip")
    >>> with zipfile.ZipFile(file, "w") as archive:
    ...     archive.writestr("t/val/ground_truth/a.txt", "\\nGermany B-LOC\\nwon O\\n")
    ...     archive.writestr("t/val/mturk_train_data/w1/a.txt", "\\nGerman B-MISC\\ny O\\nwon O\\n")
    >>> corpus = read_ner(file)
    >>> corpus["a#000"].tokens, corpus["a#000"].annotations
    (('Germany', 'won'), {'w1': ('O', 'O')})
    >>> folder.cleanup()
    """
    files = zip_files(archive, lambda name: _MEMBER.fullmatch(name) is not None)
    gold: dict[tuple[str, str], str] = {}
    workers: dict[tuple[str, str], dict[str, str]] = {}
    for name in sorted(files):
        split, worker, article = _MEMBER.fullmatch(name).groups()  # type: ignore[union-attr]
        if worker is None:
            gold[split, article] = name
        else:
            workers.setdefault((split, article), {})[worker] = name
    for part, found in (("ground_truth", gold), ("mturk_train_data", workers)):
        if not found:
            raise InputError(
                f"no {part} folder with .txt files in val or test (give crf-ma-NER-task1.zip)", where=str(archive)
            )
    notes = Notes()
    notes.count(_NO_WORKER, len(gold.keys() - workers.keys()))
    notes.count(_NO_GOLD, sum(len(workers[key]) for key in workers.keys() - gold.keys()))
    documents: list[Document] = []
    for split in _SPLITS:
        for article in sorted(name for folder, name in gold.keys() & workers.keys() if folder == split):
            key = split, article
            members = {worker: workers[key][worker] for worker in sorted(workers[key])}
            documents.extend(_article(str(archive), article, _SPLITS[split], gold[key], members, files, notes))
    if not documents:
        raise InputError(
            "no article that both an expert and a worker tagged (get the archive again)", where=str(archive)
        )
    return Corpus(documents, notes=notes.sentences(), digests={str(archive): digest_of(archive)})


def _article(
    archive: str, article: str, split: str, gold: str, members: dict[str, str], files: dict[str, bytes], notes: Notes
) -> list[Document]:
    """The sentences of one article: cut where the expert's file has a blank line."""
    path = f"{archive}:{gold}"
    lines = _lines(files[gold], path)
    for line in lines:
        if not line.word:
            raise InputError(
                f"tag {line.tag} stands without a token (get the archive again)", where=f"{path}:{line.number}"
            )
    words = [_without_glued_tag(line.word, notes, _GLUED_IN_GOLD) for line in lines]
    tags: dict[str, list[Tag]] = {}
    for worker, member in members.items():
        given = _lines(files[member], f"{archive}:{member}")
        notes.count(_OTHER_LENGTH, len(given) != len(lines))
        tags[worker] = _tags_for(words, given, notes)
    starts = [
        position for position, line in enumerate(lines) if not position or line.number > lines[position - 1][0] + 1
    ]
    return [
        Document(
            f"{article}#{number:03d}",
            tuple(words[start:end]),
            {worker: tuple(given[start:end]) for worker, given in tags.items()},
            tuple([line.tag for line in lines[start:end]]),
            split,
            source=Source(path, lines[start].number, line_per_token=True),
        )
        for number, (start, end) in enumerate(pairwise([*starts, len(lines)]))
    ]


def _lines(content: bytes, where: str) -> list[_Line]:
    """The lines that are not blank; a label without a token has an empty word."""
    found = []
    for number, line in enumerate(text_of(content, where).split("\n"), 1):
        if not line.strip():
            continue
        word, _, tag = line.rstrip().rpartition(" ")
        if tag not in _TAGS:
            raise InputError(
                f"{tag!r} is not a tag (O, or B- or I- with LOC, MISC, ORG or PER; get the archive again)",
                where=f"{where}:{number}",
            )
        found.append(_Line(number, word.strip(), _TAGS[tag]))
    return found


def _without_glued_tag(word: str, notes: Notes, sentence: str) -> str:
    bare = _GLUED.sub("", word)
    notes.count(sentence, bare != word)
    return bare


def _tags_for(tokens: Sequence[str], lines: Sequence[_Line], notes: Notes) -> list[Tag]:
    """A worker's tag for every token of the expert; ``None`` where the worker's file spells something else."""
    labelled = [line for line in lines if line.word]
    notes.count(_NO_TOKEN, len(lines) - len(labelled))
    pieces = [_without_glued_tag(line.word, notes, _GLUED_ON) for line in labelled]
    tags: list[Tag] = [None] * len(tokens)
    for kind, first, last, start, end in SequenceMatcher(None, tokens, pieces, autojunk=False).get_opcodes():
        given = [line.tag for line in labelled[start:end]]
        if kind == "equal":
            tags[first:last] = given
        elif "".join(tokens[first:last]) == "".join(pieces[start:end]):
            tags[first:last] = _tags_by_characters(tokens[first:last], pieces[start:end], given, notes)
        else:
            notes.count(_NOT_ALIGNED, last - first)
            notes.count(_TOO_MUCH, end - start)
    return tags


def _tags_by_characters(tokens: Sequence[str], pieces: Sequence[str], tags: Sequence[str], notes: Notes) -> list[Tag]:
    """Tags for tokens that were cut in other places but spell the same: each has that of the piece it ends in.

    Where several tokens end in one piece, they are one span: after the first, ``B`` becomes ``I``.
    """
    found: list[Tag] = []
    piece, token_end, piece_end, before = 0, 0, len(pieces[0]), -1
    for token in tokens:
        begins_in = piece if token_end < piece_end else piece + 1
        token_end += len(token)
        while piece_end < token_end:
            piece += 1
            piece_end += len(pieces[piece])
        notes.count(_SPLIT, begins_in < piece)
        notes.count(_JOINED, piece == before)
        tag = tags[piece]
        found.append(_TAGS[inside_of(tag)] if piece == before else tag)
        before = piece
    return found
