"""The PICO crowd: ``PICO-data.tar.gz``, abstracts of clinical trials with the participants marked by character spans.

A text has its title, a blank line and the abstract: two documents, ``ID:title`` and ``ID:abstract``. Spans are
characters of the whole text. Only the abstracts in folder ``acl17-test`` have spans of professionals, which are gold.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from quorate.corpus.records import Corpus, Document, Source
from quorate.corpus.tags import OUTSIDE, Scheme, TagSet
from quorate.corpus.tokens import Offsets
from quorate.datasets.archives import digest_of, tar_files, text_of
from quorate.datasets.pico_tokens import PicoTokenizer
from quorate.errors import InputError
from quorate.formats.notes import Notes

_, _BEGIN, _INSIDE = TagSet.of_types(Scheme.BIO, ["P"]).labels
_CROWD = {
    folder: f"annotations/{folder}/PICO-annos-crowdsourcing.json" for folder in ("acl17-test", "train", "test", "dev")
}  # in the order of the documents
_MEMBER = re.compile(r"(?:.*/)?(annotations/[^/]+/[^/]+\.json|docs/[^/]+\.txt)")
_PROFESSIONALS = "annotations/acl17-test/PICO-annos-professional.json"

# The archive does not say which of its 191 abstracts with gold are for tuning and which for testing, and no rule by
# which the halves were drawn is known: these are the ones that the project's reference data test on, the rest is dev.
_TESTED = """
    361799 1968178 2088233 2188766 2224060 2678230 2908133 3067745 3534803 6920252 6951573 6989377 7017018
    7707420 7814711 7827398 7853069 8726604 8771302 8911223 8989009 9481998 9730996 9816035 10390665 10475150
    10578479 10752495 10764172 11317090 11495215 11642083 11737955 11891832 12477021 12709693 12960652 14739125
    14763035 15133359 15358868 16295154 16505427 17293018 18077611 18189160 18229990 18337284 18503531 18773733
    18783504 18958161 18975051 19159999 19301724 19376304 19708562 19802506 20189026 20226474 20560622 20618920
    20804366 21170734 21491990 21866656 21896676 21914768 21924760 21975269 22154769 22341427 22420121 22538329
    22646975 22881991 22897461 23103798 23114870 23357440 23417625 23838728 23985254 24451919 24515505 24726342
    24803369 24989854 25369243 25784723 25885649 25898782 25931290 25950425 26210844
"""
_TEST_ABSTRACTS = frozenset(_TESTED.split())
_TEST_TITLES = _TEST_ABSTRACTS | {"1780092"}  # the middle: its title is in one half, its abstract in the other

_WIDENED = "{} {span|spans} that began or ended inside a token {was|were} widened to whole tokens"
_EMPTY = "{} {span|spans} that held no token {was|were} left out"
_OVERLAPPING = (
    "{} {span|spans} of workers overlapped an earlier one of the same worker: a new span begins where {it "
    "begins|they begin}"
)
_IN_TWO = "{} {span|spans} that ran from a title into its abstract {was|were} cut in two"
_NO_WORKER = "{} {abstract|abstracts} that no worker saw {was|were} left out"
_GOLD_JOINED = (
    "{} {span|spans} of professionals that touched or overlapped the one before {it was|them were} joined to it"
)


class _Record(msgspec.Struct):
    docid: str
    spans: dict[str, list[tuple[int, int]]] = msgspec.field(name="Participants")


class _Part(NamedTuple):
    """A title or an abstract: its tokens, and where they are in the whole text."""

    name: str
    tokens: tuple[str, ...]
    starts: list[int]
    ends: list[int]


def read_pico(archive: str | Path) -> Corpus:
    """The titles and abstracts of ``PICO-data.tar.gz``: those with gold first, then folders train, test and dev.

    A token is marked when a span touches it. A span that begins where another ends makes a new ``B-P``, but gold spans
    that touch are one. ``split`` is "dev" or "test" where there is gold, which the archive's folders ``test`` and
    ``dev`` have not; a document's folder is to be seen in its ``source`` only.

    >>> import io, pathlib, tarfile, tempfile
    >>> files = dict.fromkeys([*_CROWD.values(), _PROFESSIONALS], "")
    >>> files["docs/7.txt"] = "Trial in twins.\\n\\nWe asked twins."
    >>> files[_CROWD["dev"]] = '{"docid": "7", "Participants": {"w1": [[9, 14]]}}'
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "tiny.tar.gz")
    >>> with tarfile.open(file, "w:gz") as archive:
    ...     for name, content in files.items():
    ...         member = tarfile.TarInfo(name)
    ...         member.size = len(content)
    ...         archive.addfile(member, io.BytesIO(content.encode()))
    >>> read_pico(file)["7:title"].annotations
    {'w1': ('O', 'O', 'B-P', 'O')}
    >>> folder.cleanup()
    """
    members = tar_files(archive, lambda name: _MEMBER.fullmatch(name) is not None)
    files = {_MEMBER.sub(r"\1", name): content for name, content in members.items()}
    for name in (*_CROWD.values(), _PROFESSIONALS):
        if name not in files:
            raise InputError(f"no file {name} in it (give PICO-data.tar.gz)", where=str(archive))
    gold: dict[str, list[tuple[int, int]]] = {}
    for source, record in _records(archive, _PROFESSIONALS, files):
        _check(record, files, source)
        gold.setdefault(record.docid, []).extend(span for spans in record.spans.values() for span in spans)
    notes = Notes()
    tokenizer = PicoTokenizer()
    words: dict[str, str] = {}  # one string object for each word
    documents: list[Document] = []
    for folder in _CROWD.values():
        for source, record in _records(archive, folder, files):
            text = _check(record, files, source)
            parts = _parts(text, tokenizer.offsets(text), words, f"{archive}:docs/{record.docid}.txt")
            documents.extend(_documents(record, parts, gold.get(record.docid), source, notes))
    seen = {document.id.partition(":")[0] for document in documents}
    notes.count(_NO_WORKER, len(gold.keys() - seen))
    if not documents:
        raise InputError("no document in it (get the archive again)", where=str(archive))
    return Corpus(documents, notes=notes.sentences(), digests={str(archive): digest_of(archive)})


def _records(archive: str | Path, name: str, files: dict[str, bytes]) -> Iterator[tuple[Source, _Record]]:
    """The abstracts of an annotation file, one JSON object a line."""
    decoder = msgspec.json.Decoder(_Record)
    for number, line in enumerate(files[name].splitlines(), 1):
        source = Source(f"{archive}:{name}", number)
        if line.strip():
            try:
                yield source, decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(
                    f"not the spans of an abstract: {error} (get the archive again)", where=source.at()
                ) from None


def _check(record: _Record, files: dict[str, bytes], source: Source) -> str:
    """The text that a record's spans are of, once it is there and all of them are inside it."""
    name = f"docs/{record.docid}.txt"
    if name not in files:
        raise InputError(f"no file {name} in the archive (get the archive again)", where=source.at())
    text = text_of(files[name], f"{source.at()}: {name}")
    for start, end in (span for spans in record.spans.values() for span in spans):
        if not 0 <= start < end <= len(text):
            raise InputError(
                f"span {start}–{end} is not in {name}, which has {len(text)} characters (get the archive again)",
                where=source.at(),
            )
    return text


def _parts(text: str, offsets: Offsets, words: dict[str, str], where: str) -> tuple[_Part, _Part]:
    """Title and abstract: what stands before and after the first blank line."""
    gap = text.find("\n\n")
    cut = bisect_left(offsets, (gap,))
    if gap < 0 or not 0 < cut < len(offsets):
        raise InputError("no title, blank line and abstract (get the archive again)", where=where)
    tokens = [words.setdefault(word, word) for word in [text[start:end] for start, end in offsets]]
    starts = [start for start, _ in offsets]
    ends = [end for _, end in offsets]
    return (
        _Part("title", tuple(tokens[:cut]), starts[:cut], ends[:cut]),
        _Part("abstract", tuple(tokens[cut:]), starts[cut:], ends[cut:]),
    )


def _documents(
    record: _Record, parts: tuple[_Part, _Part], gold: list[tuple[int, int]] | None, source: Source, notes: Notes
) -> Iterator[Document]:
    tags = {worker: _tags(sorted(record.spans[worker]), parts, notes) for worker in sorted(record.spans)}
    gold_tags = (
        None if gold is None else [_joined(given, notes) for given in _tags(sorted(gold), parts, notes, gold=True)]
    )
    for position, part in enumerate(parts):
        split = None
        if gold is not None:
            tested = _TEST_TITLES if part.name == "title" else _TEST_ABSTRACTS
            split = "test" if record.docid in tested else "dev"
        yield Document(
            f"{record.docid}:{part.name}",
            part.tokens,
            {worker: tuple(given[position]) for worker, given in tags.items()},
            None if gold_tags is None else tuple(gold_tags[position]),
            split,
            source=source,
        )


def _tags(
    spans: Sequence[tuple[int, int]], parts: tuple[_Part, ...], notes: Notes, *, gold: bool = False
) -> list[list[str]]:
    """For title and abstract, the tags of the tokens that sorted spans touch; every span begins with a ``B``."""
    tags = [[OUTSIDE] * len(part.tokens) for part in parts]
    reached = 0
    for start, end in spans:
        touched = 0
        widened = False
        for part, given in zip(parts, tags, strict=True):
            first = bisect_right(part.ends, start)
            last = bisect_left(part.starts, end)
            if first < last:
                given[first:last] = [_BEGIN, *[_INSIDE] * (last - first - 1)]
                touched += 1
                widened |= part.starts[first] < start or part.ends[last - 1] > end
        notes.count(_WIDENED, widened)
        notes.count(_EMPTY, touched == 0)
        notes.count(_IN_TWO, touched > 1)
        notes.count(_OVERLAPPING, not gold and start < reached)
        reached = max(reached, end)
    return tags


def _joined(tags: list[str], notes: Notes) -> list[str]:
    """Gold spans with no token between them as one span."""
    joined = list(tags)
    for position in range(1, len(tags)):
        if tags[position] == _BEGIN and tags[position - 1] != OUTSIDE:
            joined[position] = _INSIDE
            notes.count(_GOLD_JOINED, 1)
    return joined
