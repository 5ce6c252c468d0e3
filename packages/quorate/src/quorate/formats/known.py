"""Known labels from several places, put together: files, and the gold in the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from quorate.corpus.decisions import Decision, settle
from quorate.corpus.records import Corpus, Source, Tag, known_gold
from quorate.errors import InputError
from quorate.formats import jsonl
from quorate.formats.notes import some
from quorate.formats.opened import files_of, opened
from quorate.formats.registry import sniff
from quorate.limits import size_named
from quorate.wording import counted

Paths = str | Path | Sequence[str | Path]


class Settled(NamedTuple):
    """Known tags by document id, ``None`` where nothing is known.

    ``disputed`` are the ids of documents about which reviewers disagree: what they disagree about is not known.
    ``revised`` are those in which a reviewer's later word took the place of an earlier one.

    >>> Settled({"1": ("O", None)}, ("1",), ()).disputed
    ('1',)
    """

    tags: dict[str, tuple[Tag, ...]]
    disputed: tuple[str, ...]
    revised: tuple[str, ...]


def read_known(
    paths: Paths,
    corpus: Corpus,
    *,
    inline: bool = False,
    digests: dict[str, str] | None = None,
    max_size: int | str | None = None,
) -> dict[str, tuple[Tag, ...]]:
    """Known tags for documents of a corpus, by id, from files with ``gold``, or with corrected ``tags`` or ``spans``.

    All files count, and with ``inline`` the corpus's own gold too, which it must have then. What reviewers disagree
    about is ``None``, with all of the spans that it belongs to: :func:`read_settled` tells where that is so.
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
    return read_settled(paths, corpus, inline=inline, digests=digests, max_size=max_size).tags


def read_settled(
    paths: Paths,
    corpus: Corpus,
    *,
    inline: bool = False,
    digests: dict[str, str] | None = None,
    max_size: int | str | None = None,
    others: bool = False,
) -> Settled:
    """What :func:`read_known` gives, with the documents about which reviewers disagree or changed their mind.

    With ``others`` the files may be about more than the corpus: its documents alone count.

    >>> import tempfile
    >>> from quorate import Document
    >>> corpus = Corpus([Document("1", ("Ada", "Ng", "sang"))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = Path(folder, "one.jsonl"), Path(folder, "other.jsonl")
    ...     _ = one.write_text('{"id": "1", "tags": ["B-PER", "I-PER", "O"], "reviewer": "ann"}')
    ...     _ = other.write_text('{"id": "1", "tags": ["B-PER", "O", "O"], "reviewer": "bob"}')
    ...     read_settled([one, other], corpus)
    Settled(tags={'1': (None, None, 'O')}, disputed=('1',), revised=())
    """
    records = read_records(paths, digests=digests, max_size=max_size)
    return settle_all(decisions_on(records, corpus, inline=inline, others=others))


def read_records(
    paths: Paths, *, digests: dict[str, str] | None = None, max_size: int | str | None = None
) -> list[jsonl.KnownRecord]:
    """The lines of files of known labels that somebody has checked; there must be one."""
    records: list[jsonl.KnownRecord] = []

    def read(stream: IO[bytes], name: str) -> LineCounts:
        unchecked: list[str] = []
        found = list(jsonl.read_known(stream, name, unchecked=unchecked))
        records.extend(found)
        return LineCounts(len(found), len(unchecked))

    read_files(paths, read, digests=digests, max_size=max_size)
    return records


class LineCounts(NamedTuple):
    """How many lines of a file say what is known, and how many wait to be checked."""

    known: int
    unchecked: int


def read_files(
    paths: Paths,
    read: Callable[[IO[bytes], str], LineCounts],
    *,
    digests: dict[str, str] | None = None,
    max_size: int | str | None = None,
) -> None:
    """Have every file of known labels read; each must tell something, or wait to be checked, and one must tell."""
    digests, known = {} if digests is None else digests, 0
    given = [str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    for path in given:
        counts: list[LineCounts] = []
        for name in files_of(path):
            with opened(name, size_named(max_size)) as (stream, digest):
                if sniff(stream, name) != "jsonl":
                    raise InputError(
                        "known labels are read from JSONL only (a document a line, with 'gold')", where=name
                    )
                counts.append(read(stream, name))
                digests[name] = digest()
        if not any(map(any, counts)):
            raise InputError("no document in it has 'gold', 'tags' or 'spans'", where=path)
        known += sum(one.known for one in counts)
    if not known:
        raise InputError(
            'no document in it is checked ("checked": true says that somebody has looked)', where=some(given)
        )


def decisions_on(
    records: Iterable[jsonl.KnownRecord], corpus: Corpus, *, inline: bool = False, others: bool = False
) -> dict[str, list[Decision]]:
    """What records say of documents of a corpus, by id, if they fit it; with ``inline`` its own gold counts too.

    Records of ``others`` are an error, unless it is said that there may be some.
    """
    decisions: dict[str, list[Decision]] = {}
    if inline:
        for name, tags in known_gold(corpus).items():
            decisions[name] = [Decision(tags, corpus[name].source or Source("the input", 1))]
    ids = {document.id for document in corpus}
    for record in records:
        if others and record.id not in ids:
            continue
        _check(record, corpus, ids)
        decisions.setdefault(record.id, []).append(Decision(record.tags, record.source, record.review))
    return decisions


def settle_all(decisions: Mapping[str, Sequence[Decision]]) -> Settled:
    """All decisions on all documents, put together."""
    outcomes = {name: settle(made) for name, made in decisions.items()}
    return Settled(
        {name: outcome.tags for name, outcome in outcomes.items()},
        tuple(name for name, outcome in outcomes.items() if outcome.disputed),
        tuple(name for name, outcome in outcomes.items() if outcome.revised),
    )


def _check(record: jsonl.KnownRecord, corpus: Corpus, ids: set[str]) -> None:
    """Raise :class:`InputError` unless this is a document of the corpus and the tags fit it."""
    where = f"{record.source.at()}: document {record.id!r}"
    if record.id not in ids:
        raise InputError("this document is not in the input (leave it out)", where=where)
    tokens = corpus[record.id].tokens
    if record.tokens is not None and record.tokens != tokens:
        raise InputError("other tokens than in the input (known labels must be of the same text)", where=where)
    if len(record.tags) != len(tokens):
        raise InputError(
            f"{counted(len(record.tags), 'known tag')} for {counted(len(tokens), 'token')} (null where not known)",
            where=where,
        )
