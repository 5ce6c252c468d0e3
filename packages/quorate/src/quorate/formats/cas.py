"""INCEpTION and other UIMA tools: CAS as XMI or JSON, by itself, in a zip, or a whole project export.

In a project export annotations are ``annotation/DOCUMENT/USER.…``, and the curator's are gold. By itself a file is one
annotator's, named by the file. Spans are of DKPro's type ``NamedEntity`` (feature ``value``), or of a layer of the
project's own (``webanno.custom.…``), labelled by its first feature that is a string. Offsets in these files are UTF-16.

INCEpTION has no discontinuous spans; its makers advise a relation, or a link feature, from one piece to the next. Those
that are named ``continues`` (the relation's layer, its label, or the feature) join spans of one layer and label to one.

What is written is a folder of CAS JSON, a file a document: ``NamedEntity`` spans, and relations of the layer
``custom.Continues`` between the pieces of one. Tokens are left to the tool, which parts text into sentences too.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from quorate.corpus.offsets import Ruler, Unit, ruler
from quorate.corpus.records import Source
from quorate.corpus.spans import CharSpan
from quorate.corpus.tokens import Offsets, Places
from quorate.errors import InputError, OutputError
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument, outward_spans
from quorate.formats.folders import targets
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.opened import Content, Input, most_of, stem
from quorate.formats.pieces import CONTINUES, NOT_ALIKE, Joining
from quorate.formats.zipped import members
from quorate.storage.files.atomic import folder_written_whole

_NAMED_ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
_TOKEN = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token"
_CUSTOM = ("webanno.custom.", "custom.")
_LABELS = ("value", "label", "Label", "identifier")
_RELATION = ("Governor", "Dependent")  # the features that hold the spans which a relation joins
_CONTINUES_LAYER = "custom.Continues"
_CURATOR = "CURATION_USER"
_INITIAL = "INITIAL_CAS"
_TYPES = "TypeSystem.xml"
_PROJECT = "exportedproject.json"
_UNLABELLED = "{} {span|spans} without a label {was|were} left out"
_MISSING = "XMI and CAS JSON need dkpro-cassis (pip install 'quorate[cas]')"


def read(given: Input, notes: Notes) -> Iterator[Marked]:
    """The documents of a file, an archive, or a project export."""
    try:
        import cassis  # noqa: F401
    except ImportError:
        raise InputError(_MISSING, where=given.name) from None
    if given.stream.peek(2)[:2] == b"PK":
        yield from _archive(given, notes)
        return
    content = given.stream.read()
    types = Path(given.name).parent / _TYPES
    type_system = types.read_bytes() if given.name != "-" and types.is_file() else None
    yield _document(content, type_system, given.name, stem(given.name), "", notes)


def _archive(given: Input, notes: Notes) -> Iterator[Marked]:
    """Every CAS in an archive: of a project export, or one document with its type system."""
    files = dict(members(given, (".xmi", ".json", ".xml", ".zip")))
    for name, content in files.items():
        place = PurePosixPath(name)
        if place.suffix not in (".xmi", ".json", ".zip") or place.stem == _INITIAL:
            continue
        where = f"{given.name}/{name}"
        if len(place.parts) >= 3 and place.parts[-3] in ("annotation", "curation"):
            document, user = place.parts[-2], place.stem
        elif len(place.parts) == 1 and place.name != _PROJECT:
            document, user = place.stem, ""
        else:
            continue
        types = files.get(str(place.parent / _TYPES), files.get(_TYPES))
        if place.suffix == ".zip":
            content, types = _inner(content, where, most_of(given.stream))
        yield _document(content, types, where, document, user, notes)


def _inner(content: bytes, where: str, most: int) -> tuple[bytes, bytes | None]:
    """The CAS and the type system in an archive inside the archive."""
    inner = dict(members(Input(Content(io.BytesIO(content), where, most), where), (".xmi", ".json", ".xml")))
    found = [name for name in inner if name.endswith((".xmi", ".json"))]
    if len(found) != 1:
        raise InputError(
            f"{len(found)} CAS files in it where one was expected (export as XMI or CAS JSON)", where=where
        )
    return inner[found[0]], next((inner[name] for name in inner if name.endswith(_TYPES)), None)


def _document(content: bytes, types: bytes | None, where: str, name: str, user: str, notes: Notes) -> Marked:
    cas = _loaded(content, types, where)
    try:
        text = cas.sofa_string
        if not isinstance(text, str):
            raise InputError("no text in it (its view _InitialView has none)", where=where)
        marks = _marks(cas, ruler(text, Unit.UTF16), notes)
        offsets = _tokens(cas, text)
    except InputError:
        raise
    except Exception as error:  # the library trusts what it read
        raise _damaged(error, where) from None
    annotations, gold = ({}, marks) if user == _CURATOR else ({user: marks}, None)
    return Marked(name, text, annotations, Source(where, 1, record="CAS"), gold, offsets=offsets, unit=Unit.UTF16)


def _loaded(content: bytes, types: bytes | None, where: str) -> Any:
    from cassis import load_cas_from_json, load_cas_from_xmi, load_typesystem

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of types that it does not know, which are none of ours
            if content.lstrip().startswith(b"{"):
                return load_cas_from_json(io.BytesIO(content))
            type_system = None if types is None else load_typesystem(io.BytesIO(types))
            return load_cas_from_xmi(io.BytesIO(content), typesystem=type_system, lenient=True)
    except Exception as error:  # it raises whatever its parsers do
        raise _damaged(error, where) from None


def _damaged(error: Exception, where: str) -> InputError:
    line = (str(error).splitlines() or [""])[0][:200]
    return InputError(
        f"not a CAS: {type(error).__name__} {line} (export XMI with its {_TYPES} beside it, or CAS JSON)", where=where
    )


def _marks(cas: Any, measure: Ruler, notes: Notes) -> list[CharSpan]:
    """The spans of every layer; pieces that something named ``continues`` joins are one."""
    kinds = [kind for kind in cas.typesystem.get_types() if kind.name == _NAMED_ENTITY or kind.name.startswith(_CUSTOM)]
    spans = Joining()
    for kind in kinds:
        feature = _label_feature(kind)
        if feature is None or not _has(kind, "begin", "end") or _has(kind, *_RELATION):
            continue
        for span in cas.select(kind.name):
            label = getattr(span, feature, None)
            begin, end = getattr(span, "begin", None), getattr(span, "end", None)
            if not label or not isinstance(begin, int) or not isinstance(end, int):
                notes.count(_UNLABELLED, 1)
                continue
            layer = "" if kind.name == _NAMED_ENTITY else kind.name
            spans.add(span.xmiID, CharSpan(measure.outward(begin), measure.outward(end), str(label), layer=layer))
    for kind in kinds:
        for one, other in _continued(cas, kind):
            notes.count(NOT_ALIKE, not spans.join(getattr(one, "xmiID", None), getattr(other, "xmiID", None)))
    return spans.spans()


def _has(kind: Any, *features: str) -> bool:
    return {feature.name for feature in kind.all_features}.issuperset(features)


def _continued(cas: Any, kind: Any) -> Iterator[tuple[Any, Any]]:
    """The pairs of spans that relations of a layer, or links of its spans, say to be pieces of one."""
    if _has(kind, *_RELATION):
        feature, named = _label_feature(kind), _is_continues(kind.name.rpartition(".")[2])
        for relation in cas.select(kind.name):
            if named or (feature is not None and _is_continues(getattr(relation, feature, None))):
                yield relation.Governor, relation.Dependent
    for link in (feature.name for feature in kind.all_features if _is_continues(feature.name)):
        for span in cas.select(kind.name):
            linked = getattr(span, link, None)
            for one in getattr(linked, "elements", None) or ([] if linked is None else [linked]):
                yield span, getattr(one, "target", one)  # with a role the target is in between


def _is_continues(name: object) -> bool:
    return isinstance(name, str) and name.casefold() == CONTINUES


def write(export: Export, path: str) -> None:
    """A folder of CAS JSON files; one folder in it for each annotator, unless it is the consensus."""
    export.check_spans("a CAS")
    try:
        import cassis  # noqa: F401
    except ImportError:
        raise OutputError(_MISSING) from None
    with folder_written_whole(path) as folder:
        for target, exported, annotation in targets(export, folder, ".json"):
            target.write_bytes(_cas(exported, annotation).to_json().encode())


def _cas(exported: ExportDocument, annotation: ExportAnnotation) -> Any:
    from cassis import Cas, TypeSystem

    types = TypeSystem()
    entity = types.create_type(_NAMED_ENTITY, "uima.tcas.Annotation")
    for feature in ("value", "identifier"):
        types.create_feature(entity, feature, "uima.cas.String")
    relation = types.create_type(_CONTINUES_LAYER, "uima.tcas.Annotation")
    for end in _RELATION:
        types.create_feature(relation, end, _NAMED_ENTITY)
    cas = Cas(types)
    cas.sofa_string, cas.sofa_mime = exported.text(), "text/plain"
    for span in outward_spans(exported, annotation, Unit.CODE_POINTS):  # the library turns them into UTF-16
        pieces = [entity(begin=start, end=end, value=span.label) for start, end in span.parts]
        cas.add_all(pieces)
        for one, other in pairwise(pieces):
            cas.add(relation(begin=other.begin, end=other.end, Governor=one, Dependent=other))
    return cas


def _label_feature(kind: Any) -> str | None:
    features = [f.name for f in kind.all_features if f.rangeType.name == "uima.cas.String"]
    return next((name for name in _LABELS if name in features), features[0] if features else None)


def _tokens(cas: Any, text: str) -> Offsets | None:
    """The file's own tokens, if it has any and they are pieces of the text in order."""
    if not cas.typesystem.contains_type(_TOKEN):
        return None
    found = sorted((token.begin, token.end) for token in cas.select(_TOKEN))
    cursor = 0
    for begin, end in found:
        if not cursor <= begin < end <= len(text):
            return None
        cursor = end
    return Places(found) if found else None
