"""Files in and out: one module a format, found by name or by content (:mod:`quorate.formats.registry`).

A reader yields documents; :class:`~quorate.formats.assemble.Assembly` makes a corpus of them. A writer is given a
:class:`~quorate.formats.exports.Export`, which a corpus and a result can both be made into.
"""

from __future__ import annotations

import gc
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from quorate.corpus.offsets import Unit
from quorate.corpus.profiles import Profile, profile_fields, read_map
from quorate.corpus.records import Corpus, Document
from quorate.errors import InputError, QuorateError, SettingsError, knows_its_options
from quorate.formats import consensus_records, frames, table
from quorate.formats.assemble import Assembly, Options
from quorate.formats.consensus_records import ConsensusRecord
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument, export_of, export_of_layers
from quorate.formats.jsonl import ConsensusSpan
from quorate.formats.known import read_known
from quorate.formats.layering import Layer
from quorate.formats.layers import Layers
from quorate.formats.notes import Notes
from quorate.formats.opened import Content, Input, Samples, files_of, opened
from quorate.formats.registry import FORMATS, Format, folder_format, named, output_format, sniff
from quorate.formats.repeated import file_per_annotator, hash_of, refuse_most
from quorate.formats.seen import NOTHING_SAID, Seen, seen_named
from quorate.formats.texts import Texts, texts_in_table, texts_of_folder
from quorate.limits import size_named

__all__ = [
    "FORMATS",
    "ConsensusRecord",
    "ConsensusSpan",
    "Export",
    "ExportAnnotation",
    "ExportDocument",
    "Format",
    "Notes",
    "digest_of",
    "documents",
    "format_of",
    "is_annotated",
    "named",
    "output_format",
    "read",
    "read_consensus",
    "read_known",
    "read_layers",
    "write",
]

Given = str | Path | Sequence[str | Path] | Any
"""A file, a folder, several of them, or a table in memory."""

Names = str | Path | Mapping[str, str | None]
"""New names by old ones (``None`` drops), or the file that has them."""

Profiles = str | Path | Mapping[str, Profile | Mapping[str, Any]]
"""What is known beforehand of annotators, by name, or the file that says it."""

AnnotatorFrom = Literal["filename", "folder"]
SamplesName = Literal["soft", "group"]
SeenBy = str | Path | Mapping[str, Iterable[str]] | None
"""Who saw what, of tables of spans: ``all``, ``marked``, the file that lists it, or annotators by document."""

UnitName = Literal["code-points", "utf-16", "code-points-lf", "utf-16-lf"]


_NO_PROFILES = (
    "what is known beforehand of {} {annotator|annotators} (kind, group) is not in it (JSONL holds it; or give it "
    "again with --annotators)"
)
_A_FEW = 100  # documents, by which it is told whether anybody annotated a file
_DOCUMENT_A_RECORD = ("jsonl", "conll")  # formats whose records are whole documents
_SPANS_IN_ROWS = ("spans_csv", "huggingface")
_ONE_TAG_A_TOKEN = ("conll", "table", "sheet", "parquet")  # formats in which spans cannot overlap


@knows_its_options
def read(
    *paths: Given,
    format: str | None = None,
    annotator_from: AnnotatorFrom | None = None,
    map_labels: Names | None = None,
    map_annotators: Names | None = None,
    annotators: Profiles | None = None,
    pseudonymise: str | Path | None = None,
    predictions: bool = False,
    samples: SamplesName | None = None,
    tag_column: int | str | None = None,
    texts: str | Path | None = None,
    seen: SeenBy = None,
    offsets: UnitName | None = None,
    max_size: int | str | None = None,
) -> Corpus:
    """Read annotations from files into one :class:`Corpus`.

    A path may be a file, plain or gzipped, a folder of such files (read in the order of their names), or ``-`` for
    standard input; or a table of pandas, polars or Arrow (:meth:`quorate.Corpus.from_pandas` says which columns), or a
    ``datasets.Dataset``. Which format a file is in is seen from its content, or said by ``format`` (see
    ``quorate formats``).

    ``annotator_from="filename"`` (or ``"folder"``) takes each file for one annotator's. ``map_labels`` and
    ``map_annotators`` rename, merge, or (``None``) drop. ``annotators`` gives profiles: kind, trust, abstains, group.
    ``pseudonymise`` is the file that keeps names and pseudonyms. ``predictions`` takes models' predictions in as
    annotators. ``samples`` says what several answers of a language model to one prompt become: ``"soft"`` (the default)
    one annotator whose probabilities are their shares, ``"group"`` annotators of one group. ``tag_column`` names the
    columns of CoNLL that hold tags, by number from 1 or by the header: ``4``, ``"3,4"``, ``"ner"``. ``offsets`` says
    what offsets count, where the file's own words cannot tell. ``texts`` is the file with the texts of a table of
    spans; ``seen`` says what it means that an annotator has no row of a document in one: ``"all"`` have seen it,
    ``"marked"`` only those with a row, or who saw what (a file of ``document,annotator``, or annotators by document).
    ``max_size`` is how long a line or record may be, and what a small compressed file may unpack to: bytes, or ``"4G"``
    (``"1G"`` unless given).

    >>> import tempfile
    >>> line = '{"id": "1", "tokens": ["Ada", "sang"], "annotations": {"ann": ["B-PER", "O"]}}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "crowd.jsonl").write_text(line)
    ...     read(f"{folder}/crowd.jsonl", map_labels={"PER": "PERSON"})[0].annotations
    {'ann': ('B-PERSON', 'O')}
    """
    options = _options(annotator_from, map_labels, map_annotators, annotators, pseudonymise, offsets)
    taken = _taken(predictions, samples, tag_column, texts, seen, max_size)
    return _assembled(paths, format, options, taken).corpus()


@knows_its_options
def read_layers(
    *paths: Given,
    format: str | None = None,
    annotator_from: AnnotatorFrom | None = None,
    map_labels: Names | None = None,
    map_annotators: Names | None = None,
    annotators: Profiles | None = None,
    pseudonymise: str | Path | None = None,
    predictions: bool = False,
    samples: SamplesName | None = None,
    tag_column: int | str | None = None,
    texts: str | Path | None = None,
    seen: SeenBy = None,
    offsets: UnitName | None = None,
    max_size: int | str | None = None,
    layers: Mapping[str, Layer] | None = None,
) -> Layers:
    """Read annotations whose spans overlap: a corpus for each layer, by its name; options are those of :func:`read`.

    In a layer nobody's spans overlap, so that each can be combined by itself and no span is left out
    (:func:`quorate.aggregate_layers` does so, and puts the results together). Layers that hardly any document needs are
    ``rare``: they are kept, and not combined. ``layers`` are those of a fitted model
    (``LayeredModel.layers_``), for new documents: a label that none of them takes is refused, and spans that overlap
    as none did in the fit are left out, with a note.

    >>> import tempfile
    >>> spans = '[{"start": 0, "end": 8, "label": "ORG"}, {"start": 0, "end": 4, "label": "LOC"}]'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.jsonl").write_text('{"text": "Bath Spa", "annotations": {"ann": %s}}' % spans)
    ...     sorted(read_layers(f"{folder}/a.jsonl"))
    ['LOC', 'ORG']
    """
    options = _options(annotator_from, map_labels, map_annotators, annotators, pseudonymise, offsets, layers=True)
    return _assembled(paths, format, options, _taken(predictions, samples, tag_column, texts, seen, max_size)).layers(
        layers
    )


class _Taken(NamedTuple):
    """What readers take from a file, and how long its records may be."""

    predictions: bool
    samples: Samples
    tag_column: str | None
    texts: str | None
    seen: Seen | None
    most: int


def _taken(
    predictions: bool,
    samples: str | None,
    tag_column: int | str | None,
    texts: str | Path | None,
    seen: SeenBy,
    max_size: int | str | None,
) -> _Taken:
    if samples is not None and samples not in tuple(Samples):
        raise SettingsError(f"samples {samples!r} is not known (one of: {', '.join(Samples)})")
    column = None if tag_column is None else str(tag_column)
    who = None if seen is None else seen_named(seen)
    beside = None if texts is None else str(texts)
    return _Taken(predictions, Samples(samples or Samples.SOFT), column, beside, who, size_named(max_size))


def _options(
    annotator_from: str | None,
    map_labels: Names | None,
    map_annotators: Names | None,
    annotators: str | Path | Mapping[str, Any] | None,
    pseudonymise: str | Path | None,
    offsets: str | None,
    *,
    layers: bool = False,
) -> Options:
    if annotator_from not in (None, "filename", "folder"):
        raise SettingsError(f"annotator-from {annotator_from!r} is not known (one of: filename, folder)")
    if offsets is not None and offsets not in tuple(Unit):
        raise SettingsError(f"offsets {offsets!r} is not known (one of: {', '.join(Unit)})")
    return Options(
        annotator_from,
        {} if map_labels is None else read_map(map_labels),
        {} if map_annotators is None else read_map(map_annotators),
        {} if annotators is None else profile_fields(annotators),
        None if pseudonymise is None else str(pseudonymise),
        None if offsets is None else Unit(offsets),
        layers,
    )


def _assembled(paths: Sequence[Given], format: str | None, options: Options, taken: _Taken) -> Assembly:
    """Everything that the paths hold, read."""
    if format is not None:
        named(format)
    given = [path for each in paths for path in (each if isinstance(each, list | tuple) else [each])]
    if not given:
        raise SettingsError("no file to read was given")
    assembly = Assembly(options)
    texts = None if taken.texts is None else _texts(taken.texts, taken.most)
    for path in given:
        if hasattr(path, "features") and hasattr(path, "column_names"):
            assembly.add(FORMATS["huggingface"].load().dataset_documents(path), "Dataset", merge=False)
        elif frames.is_frame(path):
            assembly.add(
                frames.frame_documents(path, assembly.notes, seen=taken.seen or NOTHING_SAID), "DataFrame", merge=False
            )
        else:
            _add(assembly, str(path), format, taken, texts)
    if not len(assembly):
        raise InputError("no document in it (see docs/formats.md for what is read)", where=str(given[0]))
    return assembly


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Nobody looks for cycles: there are none among millions of tags, and to look takes an eighth of the reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def documents(
    *paths: Given,
    format: str | None = None,
    max_size: int | str | None = None,
    notes: Notes,
    digests: dict[str, str],
    profiles: dict[str, Profile],
) -> Iterator[Document]:
    """The documents of files, one after the other.

    Adds to ``notes``, the SHA-256 of each file to ``digests``, and what files say of their annotators to ``profiles``.
    Files whose records are whole documents are streamed; others are in memory first.
    """
    given = [path for each in paths for path in (each if isinstance(each, list | tuple) else [each])]
    names = [name for path in given if isinstance(path, str | Path) for name in files_of(str(path))]
    # Of a pipe, as of standard input, nothing may be read ahead that is not kept.
    if not names or not all(name != "-" and Path(name).is_file() and _streams(name, format) for name in names):
        corpus = read(*paths, format=format, max_size=max_size)
        digests.update(corpus.digests)
        profiles.update(corpus.profiles)
        for sentence in corpus.notes:
            notes.add(sentence)
        yield from corpus
        return
    number, numbered = 0, False
    texts: dict[str, list[int]] = {}  # of files in which each document has one annotator at most
    several: set[str] = set()
    assembly = Assembly(Options())
    assembly.notes = notes
    for name in names:
        with opened(name, size_named(max_size)) as (stream, digest):
            kind = named(format or sniff(stream, name))
            source = Input(stream, name, number + 1, False)
            for item in kind.load().read(source, notes):
                number += 1
                document = assembly.alone(item, name, number)
                if len(names) > 1:
                    texts.setdefault(name, []).append(hash_of(document.tokens))
                    several |= {name} if len(document.annotations) > 1 else set()
                yield document
            numbered |= source.numbered
            digests[name] = digest()
            assembly.introduce(source.profiles, name)
    if numbered:
        refuse_most(file_per_annotator({file: its for file, its in texts.items() if file not in several}), len(names))
    profiles.update(assembly.profiles())
    if not number:
        raise InputError("no document in it (see docs/formats.md for what is read)", where=str(given[0]))


def _streams(name: str, format: str | None) -> bool:
    """Whether the records of a file are whole documents."""
    return format_of(name, format) in _DOCUMENT_A_RECORD


def format_of(name: str, format: str | None = None) -> str:
    """The format of a file: the one that is named, or else what its content gives away."""
    if format is not None:
        return format
    with opened(name) as (stream, _):
        return sniff(stream, name)


def is_annotated(path: str | Path) -> bool:
    """Whether a file has somebody's annotations, judging by its first documents.

    >>> import quorate, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write(quorate.sample(), f"{folder}/crowd.jsonl")
    ...     is_annotated(f"{folder}/crowd.jsonl")
    True
    """
    name = str(path)
    try:
        with (
            opened(name) as (stream, _),
            closing(named(sniff(stream, name)).load().read(Input(stream, name), Notes())) as found,
        ):
            return any(one.annotations for one in islice(found, _A_FEW))
    except QuorateError:
        return False


def _texts(path: str, most: int) -> Texts:
    """The texts in a file: of a table with a row a document, of a folder of .txt files, or of any file of documents."""
    place = Path(path)
    found = texts_of_folder(place) if place.is_dir() else None
    if found is None and place.is_file() and _is_table(path):
        found = texts_in_table(path, most)
    if found is not None:
        return found
    corpus = read(path, max_size=most)
    return {
        document.id: {"text": document.text, "tokens": list(document.tokens), "offsets": document.offsets}
        | {"split": document.split, "seen_by": list(document.annotations)}
        for document in corpus
    }


def _is_table(path: str) -> bool:
    with opened(path) as (stream, _):
        line = stream.peek(1 << 16)[: 1 << 16].split(b"\n", 1)[0]
    return "text" in {cell.lower() for cell in table.cells_in(line.decode("utf-8-sig", "replace").strip())}


def _add(assembly: Assembly, path: str, format: str | None, taken: _Taken, texts: Texts | None) -> None:
    folder = Path(path)
    whole = folder_format(folder) if path != "-" and folder.is_dir() else None
    if whole is not None and format in (None, whole):
        given = Input(Content(io.BytesIO(), path, taken.most), path, len(assembly) + 1, taken.predictions)
        assembly.add(FORMATS[whole].load().read(given, assembly.notes), path, merge=FORMATS[whole].merges)
        assembly.digests[path] = _folder_digest(folder)
        return
    for name in files_of(path):
        with opened(name, taken.most) as (stream, digest):
            kind = named(format or sniff(stream, name))
            first_number = 1 if assembly.options.annotator_from is not None else len(assembly) + 1
            given = Input(
                stream,
                name,
                first_number,
                taken.predictions,
                taken.samples,
                tag_column=taken.tag_column,
                texts=texts,
                seen=taken.seen,
            )
            if taken.tag_column is not None and kind.module != "conll":
                raise SettingsError(f"{name}: --tag-column is for CoNLL columns (leave it out, or say --from conll)")
            if (texts is not None or taken.seen is not None) and kind.module not in _SPANS_IN_ROWS:
                option = "--texts" if texts is not None else "--seen"
                raise SettingsError(
                    f"{name}: {option} is for tables of spans, in CSV or Parquet (name their columns document, "
                    "annotator, start, end and label, or leave it out)"
                )
            with _collector_at_rest() if kind.module in _DOCUMENT_A_RECORD else nullcontext():
                assembly.add(kind.load().read(given, assembly.notes), name, merge=kind.merges, source=given)
            assembly.introduce(given.profiles, name)
            assembly.digests[name] = digest()


def write(export: Export | Corpus | Layers, path: str | Path, format: str | None = None) -> list[str]:
    """Write a corpus, one in layers, or the pages of a result, whole or not at all; the path's ending says in what.

    Layers go into formats in which spans may overlap. What the format cannot hold is returned, in sentences.

    >>> import quorate, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(quorate.sample(), f"{folder}/crowd.conll")
    ...     len(read(f"{folder}/crowd.conll"))
    []
    320
    """
    name = format or output_format(str(path))
    kind = named(name, to_write=True)
    pages = replace(_pages(export, name), notes=Notes())  # of this file alone
    kind.load().write(pages, str(path))
    if name != "jsonl":
        pages.notes.count(_NO_PROFILES, len(pages.profiles))
    return pages.notes.sentences()


def _pages(given: Export | Corpus | Layers, format: str) -> Export:
    if isinstance(given, Corpus):
        return export_of(given)
    if not isinstance(given, Layers):
        return given
    export = export_of_layers(given)
    if format in _ONE_TAG_A_TOKEN:
        export.check_layers(format)
    return export


def read_consensus(path: str | Path, *, max_size: int | str | None = None) -> list[ConsensusRecord]:
    """Read back a consensus that was written as JSONL, in layers or not; ``max_size`` is that of :func:`read`."""
    records: list[ConsensusRecord] = []
    for name in files_of(str(path)):
        with opened(name, size_named(max_size)) as (stream, _):
            records.extend(consensus_records.read_consensus(stream, name))
    if not records:
        raise InputError("no document in it", where=str(path))
    return records


def digest_of(path: str | Path) -> str:
    """The SHA-256 of a file."""
    with opened(str(path)) as (_, digest):
        return digest()


def _folder_digest(folder: Path) -> str:
    """The SHA-256 of the names and digests of all files in a folder."""
    total = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        total.update(f"{file.relative_to(folder).as_posix()} {digest_of(file)}\n".encode())
    return total.hexdigest()
