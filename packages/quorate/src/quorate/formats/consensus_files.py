"""A consensus, or gold, to be scored, from a file in any format that is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from quorate import formats
from quorate.corpus.records import Corpus, Document, SoftTag, Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, find_spans, marks_span
from quorate.errors import InputError, SettingsError
from quorate.formats import jsonl
from quorate.formats.assemble import Assembly, Options
from quorate.formats.by_text import fitted
from quorate.formats.consensus_export import keys_of
from quorate.formats.consensus_records import ConsensusRecord
from quorate.formats.label_studio import OWN_PREFIX
from quorate.formats.layers import Layers
from quorate.formats.notes import people
from quorate.formats.opened import Input, files_of, opened
from quorate.formats.registry import FORMATS, folder_format
from quorate.formats.seen import Seen
from quorate.limits import size_named

_READ_HERE = ("csv", "label-studio")
_OWN = "quorate"  # under which name a consensus is written


class _Told(ConsensusRecord, omit_defaults=True):
    """A document of a consensus that states no confidence."""

    def token_spans(self) -> list[Span]:
        """Its spans, in tokens."""
        return find_spans([tag if marks_span(tag) else None for tag in self.tags])


def consensus_records(
    path: str | Path, gold: Corpus, *, max_size: int | str | None = None
) -> Sequence[ConsensusRecord]:
    """The documents of a consensus: as ``aggregate`` wrote it as JSONL, or in any format with one annotator.

    Those of a table of spans have the texts of the gold. Where no id is one of the gold, texts tell which is which.

    >>> import tempfile
    >>> gold = Corpus([Document("1", ("Ada", "sang"), {}, ("B-PER", "O"))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "c.conll").write_text("Ada B-PER\\nsang O\\n")
    ...     consensus_records(f"{folder}/c.conll", gold)[0].tags
    ['B-PER', 'O']
    """
    name = str(path)
    place = Path(name)
    first = Path(files_of(name)[0]) if place.is_dir() and folder_format(place) is None else place
    if not first.is_dir() and (not first.is_file() or _is_jsonl(str(first))):  # nothing may be read ahead of a pipe
        return formats.read_consensus(path, max_size=max_size)
    format = formats.format_of(name) if place.is_file() else ""
    if format in _READ_HERE:
        corpus = _read(name, format, gold, max_size)
    else:
        corpus = formats.read(name, max_size=max_size, predictions=True)
    whose = _whose(corpus, name)
    found = [_record(document, whose(document)) for document in corpus]
    return _found_by_text([record for record in found if record is not None], gold)


def _is_jsonl(name: str) -> bool:
    """Whether a file has what only a consensus has, or is no file of annotations."""
    keys = keys_of(name)
    return bool(keys) and formats.format_of(name) == "jsonl" and "annotations" not in keys


def _read(name: str, format: str, gold: Corpus, max_size: int | str | None) -> Corpus:
    """Predictions that were written here; or spans of a table on the texts of the gold, none where it has no row."""
    texts = {
        document.id: {"text": document.text, "tokens": list(document.tokens), "offsets": document.offsets}
        for document in gold
    }
    assembly = Assembly(Options())
    with opened(name, size_named(max_size)) as (stream, _):
        given = Input(stream, name, predictions=True, texts=texts, seen=Seen("all"), is_consensus=True)
        assembly.add(FORMATS[format].load().read(given, assembly.notes), name, merge=False, source=given)
    return assembly.corpus()


def _whose(corpus: Corpus, name: str) -> Callable[[Document], Sequence[Tag | SoftTag] | None]:
    """What the consensus is of a document: the word of the only annotator, or the gold, where nobody annotated.

    In a folder of files each may be named as an annotator is, and have one document.
    """
    who = corpus.annotators
    own = next((one for one in who if one == _OWN or one.startswith(OWN_PREFIX)), who[0] if len(who) == 1 else None)
    if own is not None:
        return lambda document: document.annotations.get(own)
    if who and len(who) == len(corpus) == sum(len(document.annotations) for document in corpus):
        return lambda document: next(iter(document.annotations.values()), None)
    if who:
        raise InputError(
            f"annotations by {people(who)}, where a consensus is one annotator's (combine them with "
            "aggregate, or keep one with convert --map-annotators)",
            where=name,
        )
    if any(document.gold is not None for document in corpus):
        return lambda document: document.gold
    raise InputError("no document of it has tags or spans", where=name)


def _record(document: Document, said: Sequence[Tag | SoftTag] | None) -> ConsensusRecord | None:
    if said is None:
        return None
    tags = [_surest(tag) for tag in said]
    if None in tags:
        raise InputError(
            "a token without a tag (a consensus has one for each; O where nothing is)", where=document.where()
        )
    return _Told(
        document.id,
        [str(tag) for tag in tags],
        tokens=list(document.tokens),
        text=document.text,
        offsets=None if document.offsets is None else list(document.offsets),
        offset_unit=document.unit.value,
        split=document.split,
    )


def _surest(tag: Tag | SoftTag) -> Tag:
    """The tag; of a span with its probability that of the span, be it ever so unsure."""
    if not isinstance(tag, Mapping):
        return tag
    marked = {name: probability for name, probability in tag.items() if name != OUTSIDE}
    return max(marked or tag, key=lambda name: tag[name])


def _found_by_text(records: list[ConsensusRecord], gold: Corpus) -> list[ConsensusRecord]:
    """The records with the ids of the gold's documents of the same texts, if their own ids do not fit."""
    known = {document.id: Document(document.id, document.tokens) for document in gold}
    given = [Document(record.id, tuple(record.tokens)) for record in records]
    for record, name in zip(records, fitted(given, known, numbered=False, whose="").ids, strict=True):
        record.id = name
    return records


def read_gold(
    paths: Sequence[str], read: Callable[[list[str]], Layers], *, in_layers: bool
) -> tuple[Layers, list[str]]:
    """Documents with gold, and notes: from files that have some, from a consensus, or from one annotator's files.

    ``read`` reads annotations.
    """
    if not in_layers and all(_has_only_tags(path) for path in paths):
        return Layers.alone(Corpus([document for path in paths for document in _known(path)])), []
    layers = read(list(paths))
    corpus = layers.corpus
    if layers.single is None or any(document.gold is not None for document in corpus) or len(corpus.annotators) != 1:
        return layers, []
    (who,) = corpus.annotators
    documents = [
        replace(document, annotations={}, gold=tuple(map(_surest, document.annotations[who])))
        if who in document.annotations
        else document
        for document in corpus
    ]
    told = f"nothing in it is called gold, and there is one annotator, {people([who])}: taken for the gold"
    made = Corpus(documents, notes=corpus.notes, digests=corpus.digests)
    return (Layers({next(iter(layers)): made}, layers.held) if layers.named else Layers.alone(made)), [told]


def _has_only_tags(path: str) -> bool:
    """Whether a file is JSONL with tags or spans that are nobody's: a consensus, corrected or not."""
    if path == "-" or not Path(path).is_file():
        return False
    keys = keys_of(path)
    tagged = {"tokens", "tags"} <= keys or ({"text", "spans"} <= keys and formats.format_of(path) == "jsonl")
    return tagged and not {"annotations", "gold", "layers", "checked"} & keys and formats.format_of(path) == "jsonl"


def _known(path: str) -> list[Document]:
    with opened(path) as (stream, _):
        found: list[Any] = [one for one in jsonl.read_known(stream, path) if one.tokens is not None]
    if not found:
        raise SettingsError(f"{path}: no document with tokens in it (give them, to be compared)")
    return [Document(one.id, one.tokens, {}, one.tags, source=one.source) for one in found]
