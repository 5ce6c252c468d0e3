"""Known labels for layers: every line of a file is dealt out into one for each layer, which is read as any other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import IO, Any

import msgspec

from quorate.corpus.discontinuous import clash, whole_label
from quorate.corpus.records import Corpus, Document, Source
from quorate.corpus.spans import Pieces, Span
from quorate.corpus.tags import OUTSIDE, split_tag
from quorate.errors import InputError
from quorate.formats import jsonl
from quorate.formats.json_records import decoded, lines, reason
from quorate.formats.known import LineCounts, Paths, Settled, decisions_on, read_files, settle_all
from quorate.formats.layering import Layer, deal, deal_into
from quorate.formats.layers import Layers
from quorate.formats.marked import Placed
from quorate.formats.notes import some

Line = dict[str, Any]
_Taken = dict[str, list[int]]
"""For each layer the numbers of the spans that it takes."""
_LABELS = ("gold", "tags", "spans", "layers", "layer")
_ANY = msgspec.json.Decoder(Line)


class _Record(msgspec.Struct):
    """The part of a line that says what is known, and of which layer, if it is a review of one."""

    gold: list[Any] | None = None
    tags: list[Any] | None = None
    spans: list[Line] | None = None
    layers: dict[str, Line] | None = None
    layer: str = ""
    checked: bool = True


class _Place(msgspec.Struct):
    start: int
    end: int
    label: str
    layer: str = ""
    pieces: Pieces = ()


def read_settled_layers(
    paths: Paths,
    layers: Layers,
    *,
    inline: bool = False,
    digests: dict[str, str] | None = None,
    max_size: int | str | None = None,
    others: bool = False,
) -> tuple[Layers, dict[str, Settled]]:
    """What is known by layer and document, from files as :func:`quorate.formats.read_known` takes them, and more.

    Spans may overlap: they are dealt to the layers as annotations are. A line with ``layer`` (a review of one layer)
    is about that layer alone, and a consensus in layers about all of its own. Spans that no layer takes, as nobody
    marks such, get layers of their own, which are added to those given. With ``others`` the files may be about more
    than the layers: their documents alone count.

    >>> import tempfile
    >>> from pathlib import Path
    >>> inner = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-LOC", "O")})])
    >>> outer = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-ORG", "I-ORG")})])
    >>> spans = '[{"start": 0, "end": 8, "label": "ORG"}, {"start": 0, "end": 4, "label": "LOC"}]'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "known.jsonl").write_text('{"id": "1", "text": "Bath Spa", "gold": %s}' % spans)
    ...     _, known = read_settled_layers(f"{folder}/known.jsonl", Layers({"LOC": inner, "ORG": outer}))
    >>> {name: settled.tags for name, settled in known.items()}
    {'LOC': {'1': ('B-LOC', 'O')}, 'ORG': {'1': ('B-ORG', 'I-ORG')}}
    """
    layers, records = read_layer_records(paths, layers, digests=digests, max_size=max_size, others=others)
    return layers, {
        name: settle_all(decisions_on(records[name], corpus, inline=inline)) for name, corpus in layers.items()
    }


def read_layer_records(
    paths: Paths,
    layers: Layers,
    *,
    digests: dict[str, str] | None = None,
    max_size: int | str | None = None,
    others: bool = False,
) -> tuple[Layers, dict[str, list[jsonl.KnownRecord]]]:
    """What the checked lines of files say of each layer; and the layers, with those that were added for it.

    With ``others``, lines about documents that are not in the layers are passed over.
    """
    records: dict[str, list[jsonl.KnownRecord]] = defaultdict(list)
    ids = {document.id for document in layers.corpus}

    def read(stream: IO[bytes], name: str) -> LineCounts:
        nonlocal layers
        content = [(source, decoded(_ANY, line, source, "a document")) for source, line in lines(stream, name)]
        among = [(source, line) for source, line in content if not others or str(line.get("id")) in ids]
        layers, own = known_records(among, layers, name)
        for layer, known in own.items():
            records[layer] += known
        known_lines = sum(map(len, own.values())) + len(content) - len(among)
        return LineCounts(known_lines, sum(line.get("checked") is False for _, line in content))

    read_files(paths, read, digests=digests, max_size=max_size)
    return layers, {name: records[name] for name in layers}


def known_records(
    content: Sequence[tuple[Source, Line]], layers: Layers, name: str
) -> tuple[Layers, dict[str, list[jsonl.KnownRecord]]]:
    """What the lines of a file say of each layer; and the layers, with those that were added for it."""
    layers, written, in_part = _dealt(content, layers)
    records = {layer: list(jsonl.read_known(BytesIO(its), name)) for layer, its in written.items()}
    for layer, its in records.items():
        for record in its:
            if (layer, record.source.line) in in_part:
                record.tags = tuple(None if tag == OUTSIDE else tag for tag in record.tags)
    return layers, records


def _dealt(
    content: Sequence[tuple[Source, Line]], layers: Layers
) -> tuple[Layers, dict[str, bytes], set[tuple[str, int]]]:
    """The lines of a file for each layer, in their places; and the layers, with those that were added for it.

    Last are the layers and numbers of lines that speak of some of the layer's labels only: what is outside of these
    may be inside of another.
    """
    given = [(source, line, _record(line, source)) for source, line in content]
    layers, taken = _taken(layers, [_places(record, source) for source, _, record in given])
    written: dict[str, list[bytes]] = {name: [b""] * (content[-1][0].line if content else 0) for name in layers}
    in_part: set[tuple[str, int]] = set()
    for (source, line, record), held in zip(given, taken, strict=True):
        if record.checked:
            rest = {key: value for key, value in line.items() if key not in _LABELS}
            for name, labelled in _by_layer(record, layers, held, source):
                written[name][source.line - 1] = msgspec.json.encode(rest | labelled)
                if record.layer not in ("", name) and not _labels(layers.held[name]) <= _labels_named(record.layer):
                    in_part.add((name, source.line))
    return layers, {name: b"\n".join(its) for name, its in written.items()}, in_part


def _by_layer(record: _Record, layers: Layers, held: _Taken, source: Source) -> Iterator[tuple[str, Line]]:
    """What a line says of each layer."""
    named = [record.layer] if record.layer else list(record.layers or ())
    strange = [name for name in named if name not in layers]
    among = _layers_now(record, layers) if strange and record.layer else []
    if strange and not among:
        raise InputError(
            f"labels of layer {strange[0]!r}, which the input does not have (it has {some(list(layers), 10)})",
            where=source.at(),
        )
    if among:
        for name in among:
            takes = _takes(layers, name, among)
            given = _given(gold=record.gold, tags=record.tags, spans=record.spans)
            yield name, {key: _taken_of(value, takes) for key, value in given.items()}
    elif record.layer:
        yield record.layer, _given(gold=record.gold, tags=record.tags, spans=record.spans)
    elif record.layers is not None:
        for name, layer in record.layers.items():
            inside = [span for span in record.spans or () if span.get("layer") == name]
            yield name, _given(tags=layer.get("tags"), spans=None if record.spans is None else inside)
    else:
        spans, (gold, tags) = _spans_in(record), _tags_in(record)
        for name in layers:
            own = None if spans is None else [spans[number] for number in held.get(name, ())]
            certain = own if gold is None else _tags_of(layers, name, gold)
            labelled = None if tags is None else _tags_of(layers, name, tags)
            is_gold = record.gold is not None
            yield name, _given(gold=certain if is_gold else None, tags=labelled, spans=None if is_gold else own)


def _layers_now(record: _Record, layers: Layers) -> list[str]:
    """The layers that take what a line says of one that is no more, as layers part when new spans overlap."""
    depth = Layer.named(record.layer).depth
    used = {_label(each) for labelled in (record.gold, record.tags, record.spans) for each in labelled or ()}
    labels = used | _labels_named(record.layer)
    return [name for name, layer in layers.held.items() if layer.depth == depth and _labels(layer) & labels]


def _labels_named(layer: str) -> set[str]:
    return _labels(Layer.named(layer))


def _given(**given: Any) -> Line:
    return {key: value for key, value in given.items() if value is not None}


def _record(line: Line, source: Source) -> _Record:
    try:
        return msgspec.convert(line, _Record)
    except msgspec.ValidationError as error:
        raise InputError(reason(error, "a document with known labels"), where=source.at()) from None


def _spans_in(record: _Record) -> list[Line] | None:
    """The spans of a line, as they stand: its gold, unless that is tags, or its spans beside no gold."""
    if record.gold is None:
        return record.spans
    return None if any(not isinstance(each, dict) for each in record.gold) else record.gold


def _tags_in(record: _Record) -> tuple[list[Any] | None, list[Any] | None]:
    """The tags of a line: its gold, if that is tags, and those beside no gold."""
    gold = record.gold if record.gold is not None and _spans_in(record) is None else None
    return gold, record.tags if record.gold is None else None


def _places(record: _Record, source: Source) -> list[Span]:
    """Where the spans of a line lie, by their own offsets: whether two overlap, these tell as well as tokens."""
    if record.layer or record.layers is not None or not record.checked:
        return []
    try:
        marks = msgspec.convert(_spans_in(record) or [], list[_Place])
    except msgspec.ValidationError as error:
        raise InputError(reason(error, "a document with known labels"), where=source.at()) from None
    return [Span(mark.start, mark.end, mark.label, layer=mark.layer, pieces=mark.pieces) for mark in marks]


def _taken(layers: Layers, places: Sequence[Sequence[Span]]) -> tuple[Layers, list[_Taken]]:
    """Which spans of every line each layer takes; and the layers, with as many more as it takes for all spans."""
    taken = [_in_layers(layers.held, spans) for spans in places]
    left: list[Placed] = []
    for spans, held in zip(places, taken, strict=True):
        found = {number for numbers in held.values() for number in numbers}
        over = [span._replace(layer="") for n, span in enumerate(spans) if n not in found]
        left.append(Placed(Document("", ()), {}, over))
    if not any(one.gold for one in left):
        return layers, taken
    corpora, held_by = dict(layers), dict(layers.held)
    for layer, documents in deal(left):
        deeper = [other.depth for other in held_by.values() if _labels(other) & _labels(layer)]
        layer = layer._replace(depth=1 + max(deeper) if deeper else 0)
        name = layer.name if layer.name not in held_by else f"{layer.name} #{len(held_by) + 1}"
        held_by[name], corpora[name] = layer, _unmarked(layers.corpus)
        for spans, held, document in zip(places, taken, documents, strict=True):
            own = document.gold or ()
            held[name] = [number for number, span in enumerate(spans) if span._replace(layer="") in own]
    return Layers(corpora, held_by, layers.rare), taken


def _labels(layer: Layer) -> set[str]:
    return {label for _, label in layer.labels}


def _in_layers(held: Mapping[str, Layer], spans: Sequence[Span]) -> _Taken:
    """Which of the spans each layer takes; of two in one layer that overlap, only the longer."""
    number_of = {span._replace(layer=""): number for number, span in enumerate(spans)}
    found: _Taken = {}
    for name, (document,) in deal_into(held, [Placed(Document("", ()), {}, list(spans))]).items():
        taken: list[Span] = []
        for span in sorted(document.gold or (), key=lambda span: span.start - span.end):
            if not any(clash(span, other) for other in taken):
                taken.append(span)
        found[name] = sorted(number_of[span._replace(layer="")] for span in taken)
    return found


def _unmarked(corpus: Corpus) -> Corpus:
    """The documents, in which nobody marks anything."""

    def nothing(document: Document) -> Document:
        labelled = {
            name: tuple(None if tag is None else OUTSIDE for tag in tags) for name, tags in document.annotations.items()
        }
        gold = None if document.gold is None else tuple(None if tag is None else OUTSIDE for tag in document.gold)
        return replace(document, annotations=labelled, gold=gold)

    return Corpus(map(nothing, corpus), notes=corpus.notes, digests=corpus.digests, profiles=corpus.profiles)


def _tags_of(layers: Layers, name: str, tags: Sequence[Any]) -> list[Any]:
    """The tags of one layer among all of a document, of which tags tell no depth."""
    takes = _takes(layers, name, list(layers))
    return _taken_of(tags, takes if layers.held[name].depth == 0 else lambda label: False)


def _takes(layers: Layers, name: str, among: Sequence[str]) -> Callable[[str], bool]:
    """Whether a layer takes a label; one that no layer takes stays in the first of those among which it is dealt."""
    own = _labels(layers.held[name])
    known = {label for layer in layers.held.values() for label in _labels(layer)}
    return lambda label: label in own or (label not in known and name == among[0])


def _taken_of(labelled: Sequence[Any], takes: Callable[[str], bool]) -> list[Any]:
    """The tags or spans whose labels are taken; the tag of another is outside."""
    found: list[Any] = []
    for each in labelled:
        label = _label(each)
        if label is None or takes(label):
            found.append(each)
        elif isinstance(each, str):
            found.append(OUTSIDE)
    return found


def _label(labelled: Any) -> str | None:
    """The label of a tag or of a span; ``None`` where it has none."""
    if isinstance(labelled, dict):
        label = labelled.get("label")
        return label if isinstance(label, str) else None
    return whole_label(split_tag(labelled)[1]) if isinstance(labelled, str) and labelled != OUTSIDE else None
