"""Known labels from several places, put together: files, and the gold in the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from quorate.corpus.records import Corpus, Tag, known_gold
from quorate.errors import InputError
from quorate.formats import jsonl
from quorate.formats.opened import files_of, opened
from quorate.formats.registry import sniff
from quorate.limits import size_named

__all__ = ["known_together", "read_known"]

_MOST_LISTED = 10  # contradictions that are told one by one


class _Claim(NamedTuple):
    """What one place says of a document: one tag a token, ``None`` where it does not know."""

    tags: tuple[Tag, ...]
    where: str


def read_known(
    paths: str | Path | Sequence[str | Path],
    corpus: Corpus,
    *,
    inline: bool = False,
    digests: dict[str, str] | None = None,
    max_size: int | str | None = None,
) -> dict[str, tuple[Tag, ...]]:
    """Known tags for documents of a corpus, by id, from files with ``gold``, or with corrected ``tags`` or ``spans``.

    All files count, and with ``inline`` the corpus's own gold too, which it must have then: where they contradict one
    another, all is refused.
    The SHA-256 of each file is added to ``digests``; ``max_size`` is that of :func:`quorate.read`.

    >>> import tempfile
    >>> from quorate import Document
    >>> corpus = Corpus([Document("1", ("Ada", "Ng", "sang"))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = Path(folder, "one.jsonl"), Path(folder, "other.jsonl")
    ...     _ = one.write_text('{"id": "1", "tags": ["B-PER", "I-PER", null]}')
    ...     _ = other.write_text('{"id": "1", "tags": [null, "I-PER", "O"]}')
    ...     read_known([one, other], corpus)
    {'1': ('B-PER', 'I-PER', 'O')}
    """
    records: list[jsonl.KnownRecord] = []
    digests = {} if digests is None else digests
    for path in [paths] if isinstance(paths, str | Path) else paths:
        found = list(_records(str(path), digests, size_named(max_size)))
        if not found:
            raise InputError("no document in it has 'gold', 'tags' or 'spans'", where=str(path))
        records += found
    return known_together(records, corpus, inline=inline)


def known_together(
    records: Iterable[jsonl.KnownRecord], corpus: Corpus, *, inline: bool = False
) -> dict[str, tuple[Tag, ...]]:
    """What all records say of documents of a corpus, by id; refused where two contradict each other.

    With ``inline`` the corpus's own gold counts too.
    """
    claims: dict[str, list[_Claim]] = {}
    if inline:
        claims = {name: [_Claim(tags, corpus[name].where())] for name, tags in known_gold(corpus).items()}
    ids = {document.id for document in corpus}
    for record in records:
        claims.setdefault(record.id, []).append(_checked(record, corpus, ids))
    return _together(claims)


def _records(path: str, digests: dict[str, str], max_size: int) -> Iterator[jsonl.KnownRecord]:
    for name in files_of(path):
        with opened(name, max_size) as (stream, digest):
            if sniff(stream, name) != "jsonl":
                raise InputError("known labels are read from JSONL only", where=name)
            yield from jsonl.read_known(stream, name)
            digests[name] = digest()


def _checked(record: jsonl.KnownRecord, corpus: Corpus, ids: set[str]) -> _Claim:
    """The known tags of a document, if it is one of the corpus and they fit it."""
    where = f"{record.source.at()}: document {record.id!r}"
    if record.id not in ids:
        raise InputError("this document is not in the input (leave it out)", where=where)
    tokens = corpus[record.id].tokens
    if record.tokens is not None and record.tokens != tokens:
        raise InputError("other tokens than in the input (known labels must be of the same text)", where=where)
    if len(record.tags) != len(tokens):
        raise InputError(f"{len(record.tags)} known tags for {len(tokens)} tokens (null where not known)", where=where)
    return _Claim(record.tags, record.source.at())


def _together(claims: dict[str, list[_Claim]]) -> dict[str, tuple[Tag, ...]]:
    """What all places say; refused where two contradict each other."""
    known: dict[str, tuple[Tag, ...]] = {}
    against: list[str] = []
    for name, (first, *others) in claims.items():
        tags, by = list(first.tags), [first.where] * len(first.tags)
        for other in others:
            for position, tag in enumerate(other.tags):
                if tags[position] is None:
                    tags[position], by[position] = tag, other.where
                elif tag is not None and tag != tags[position]:
                    place = f"document {name!r}, token {position + 1}"
                    against.append(f"{place}: {tags[position]!r} in {by[position]}, {tag!r} in {other.where}")
        known[name] = tuple(tags)
    if against:
        more = f"; and {len(against) - _MOST_LISTED:,} more" if len(against) > _MOST_LISTED else ""
        raise InputError(
            f"known labels contradict one another: {'; '.join(against[:_MOST_LISTED])}{more} "
            "(correct one of the two, or make it null)"
        )
    return known
