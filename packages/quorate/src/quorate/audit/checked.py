"""What a person found in the documents of a plan: from the plan's own file, from reviews, or from a tool's export."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from quorate.audit.claims import Claims
from quorate.audit.plan import NO_PLAN, NOT_SEQUENTIAL, Drawn, Plan, planned_by, refuse_other_consensus
from quorate.corpus.offsets import Unit
from quorate.corpus.records import Corpus, Document, Source, Tag, hard_tags
from quorate.corpus.spans import CharSpan, Span
from quorate.corpus.tags import find_pieces, find_spans
from quorate.errors import InputError
from quorate.formats import jsonl, read_layers
from quorate.formats.corrected import tags_of_spans
from quorate.formats.exports import ExportDocument
from quorate.formats.json_records import decoded, lines
from quorate.formats.known import decisions_on, settle_all
from quorate.formats.known_layers import Line, known_records
from quorate.formats.layering import Layer
from quorate.formats.layers import Layers
from quorate.formats.marked import Marked, Words
from quorate.formats.notes import some
from quorate.formats.opened import files_of, opened
from quorate.formats.plan_export import PROPOSER
from quorate.formats.registry import sniff
from quorate.limits import size_named
from quorate.storage.corpora import read


class Checked(NamedTuple):
    """The right tags of documents that were checked, by id; and the lines of plans that were met on the way."""

    tags: dict[str, tuple[Tag, ...]]
    drawn: list[tuple[str, Drawn]]


class _PlanLine(msgspec.Struct):
    id: Any = None  # other files may have numbers, or none
    audit: Drawn | None = None
    tags: Any = None
    spans: Any = None


_ANY = msgspec.json.Decoder(Line)
_LINES = msgspec.json.Decoder(_PlanLine)
_Content = list[tuple[Source, bytes]]


def read_checked(paths: Sequence[str | Path], claims: Claims, *, max_size: int | str | None = None) -> Checked:
    """What people found, from files of three kinds, alone or together.

    A plan's own file, in which ``"checked"`` is true where somebody looked, and ``"gold"`` is as it should be; JSONL
    with known labels, as reports and reviews give it; and the export of a tool, if one person labelled each document.
    """
    if claims.layers:
        return _checked_in_layers(paths, claims, max_size)
    records: list[jsonl.KnownRecord] = []
    drawn: list[tuple[str, Drawn]] = []
    for name, content in _contents(paths, max_size):
        drawn += _drawn_in(content)
        refuse_other_consensus(claims, drawn, name)
        if any(b'"annotations"' not in line for _, line in content):
            records += jsonl.read_known(BytesIO(b"".join(line.rstrip(b"\n") + b"\n" for _, line in content)), name)
        else:
            records += _of_one_person(read(name, max_size=max_size), name, claims)
    return Checked(_known_of(records, claims, paths), drawn)


def _known_of(
    records: Sequence[jsonl.KnownRecord], claims: Claims, paths: Sequence[str | Path]
) -> dict[str, tuple[Tag, ...]]:
    """What records say of documents of the consensus; all of a document must be known."""
    ids = {document.id for document in claims.corpus}
    if records and not any(record.id in ids for record in records):
        raise InputError(
            f"none of the {len(records):,} documents that were checked is in the consensus (keep their ids)",
            where=some([str(path) for path in paths]),
        )
    settled = settle_all(decisions_on([record for record in records if record.id in ids], claims.corpus))
    if settled.disputed:
        raise InputError(
            f"those who checked disagree about {some([repr(name) for name in settled.disputed])} (an audit needs one "
            "right answer: 'quorate reviews' lists what is to be settled)",
            where=some([str(path) for path in paths]),
        )
    known = settled.tags
    partly = next((name for name, tags in known.items() if None in tags), None)
    if partly is not None:
        raise InputError(f"document {partly!r} is known only in part (an audit needs all of it, or nothing)")
    return known


def _checked_in_layers(paths: Sequence[str | Path], claims: Claims, max_size: int | str | None) -> Checked:
    """The same of a consensus in layers: what is right may overlap, and is dealt to them."""
    records: dict[str, list[jsonl.KnownRecord]] = defaultdict(list)
    drawn: list[tuple[str, Drawn]] = []
    layers = _layers_of(claims)
    for name, content in _contents(paths, max_size):
        drawn += _drawn_in(content)
        refuse_other_consensus(claims, drawn, name)
        if any(b'"annotations"' not in line for _, line in content):
            given = [(source, decoded(_ANY, line, source, "a document")) for source, line in content]
            layers, own = known_records(given, layers, name)
            for layer, its in own.items():
                records[layer] += its
        else:
            for layer, corpus in read_layers(name, max_size=max_size).items():
                records[f"{name}: {layer}"] += _of_one_person(corpus, name, claims)
    found: dict[str, list[Span]] = {}
    for its in records.values():
        for document, tags in _known_of(its, claims, paths).items():
            found.setdefault(document, []).extend(find_spans(tags))
    right = {name: claims.truth_of(claims.corpus.position(name), spans) for name, spans in found.items()}
    return Checked(right, drawn)


def _layers_of(claims: Claims) -> Layers:
    """The layers of a consensus, without annotations, for what is right to be dealt to."""
    held: dict[str, Layer] = {}
    for name, types in claims.layers.items():
        labels = frozenset(("", kind) for kind in types)
        held[name] = Layer(labels, sum(bool(layer.labels & labels) for layer in held.values()))
    return Layers(dict.fromkeys(held, claims.corpus), held)


def read_plan(paths: Sequence[str | Path], claims: Claims, *, max_size: int | str | None = None) -> Plan:
    """The plan in a file, or in those of its parts, whatever of it is checked."""
    drawn = [one for _, content in _contents(paths, max_size) for one in _drawn_in(content)]
    return planned_by(claims, drawn, some([str(path) for path in paths]))


def drawn_from(path: str | Path) -> str | None:
    """The digest of the consensus that a plan was drawn from; ``None`` if the first line of a file is of no plan."""
    name = str(path)
    with opened(name) as (stream, _):
        drawn = _drawn_in(list(islice(lines(stream, name), 1)))
    return drawn[0][1].consensus if drawn else None


def refuse_without_guarantee(paths: Sequence[str | Path], *, max_size: int | str | None = None) -> None:
    """Raise if files cannot guarantee what is accepted, whatever the consensus: before it is made."""
    where = some([str(path) for path in paths])
    drawn = [one for _, content in _contents(paths, max_size) for one in _drawn_in(content)]
    if not drawn:
        raise InputError(NO_PLAN, where=where)
    if any(one.sequential for _, one in drawn):
        raise InputError(NOT_SEQUENTIAL, where=where)


def _contents(paths: Sequence[str | Path], max_size: int | str | None) -> Iterator[tuple[str, _Content]]:
    """The files, and the lines of those that are JSONL."""
    for path in paths:
        for name in files_of(str(path)):
            with opened(name, size_named(max_size)) as (stream, _):
                content = list(lines(stream, name)) if sniff(stream, name) == "jsonl" else []
            yield name, content


def _drawn_in(content: _Content) -> list[tuple[str, Drawn]]:
    """The lines of a plan among these."""
    found = (_plan_line(line, source) for source, line in content)
    return [(str(one.id), one.audit) for one in found if one.audit is not None]


def _plan_line(line: bytes, source: Source) -> _PlanLine:
    found = decoded(_LINES, line, source, "a line of a plan, or a document with known labels")
    if found.audit is not None and (found.tags is not None or found.spans is not None):
        raise InputError(
            "a plan has what is right in 'gold' (correct that; leave out 'tags', 'spans')", where=source.at()
        )
    return found


def _of_one_person(corpus: Corpus, name: str, claims: Claims) -> Iterator[jsonl.KnownRecord]:
    """What the only annotator of every document said, or, where nobody did, its gold."""
    tokens = {document.id: document.tokens for document in claims.corpus}
    for document in _by_text(corpus, claims):
        tags = _only_version(document)
        tags = document.gold if tags is None else tags
        if tags is None:
            continue
        source = document.source or Source(name, 1)
        if document.text is None or document.tokens == tokens.get(document.id, document.tokens):
            yield jsonl.KnownRecord(document.id, tags, document.tokens, source)
        else:
            yield _on_tokens(document, tags, tokens[document.id], source)


def _by_text(corpus: Corpus, claims: Claims) -> Iterator[Document]:
    """The documents of a tool, by the ids of the consensus: many a tool numbers them anew, and keeps the text."""
    texts = {document.id: ExportDocument(document).text() for document in claims.corpus}
    times = Counter(texts.values())
    ids = {text: name for name, text in texts.items() if times[text] == 1}
    for document in corpus:
        text = ExportDocument(document).text()
        same = texts.get(document.id) == text or text not in ids
        yield document if same else replace(document, id=ids[text])


def _on_tokens(document: Document, tags: tuple[Tag, ...], tokens: tuple[str, ...], source: Source) -> jsonl.KnownRecord:
    """What was marked in the text of a tool that knows no tokens, on those of the consensus."""
    offsets = document.offsets or ()
    marks = [CharSpan(offsets[piece.start][0], offsets[piece.end - 1][1], piece.label) for piece in find_pieces(tags)]
    marked = Marked(document.id, document.text, {}, source, marks, None, list(tokens), None, Unit.CODE_POINTS)
    return jsonl.KnownRecord(document.id, tags_of_spans(marked, Words())[1], tokens, source)


def _only_version(document: Document) -> tuple[Tag, ...] | None:
    """What the only person said; what was proposed to them, and came back as it went out, was said by nobody."""
    said = {name: tags for name, tags in document.annotations.items() if name != PROPOSER}
    if len(said) > 1:
        raise InputError(
            f"{len(said)} people labelled it (an audit needs one right answer: give the file of one person, or 'gold')",
            where=document.where(),
        )
    return next((hard_tags(tags) for tags in said.values()), None)
