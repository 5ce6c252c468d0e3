"""From what readers yield to a corpus: names changed, spans laid on tokens, documents of several files put together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from quorate.corpus.discontinuous import whole_label
from quorate.corpus.offsets import Unit
from quorate.corpus.profiles import Fields, Kind, Profile, gold_like, pseudonyms, read_profiles
from quorate.corpus.records import Corpus, Document, SoftTag, Tag, changed_tag, hard_tags
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, find_spans, marks_span, split_tag
from quorate.errors import InputError, nearest
from quorate.formats.changes import REPLACED, LabelChanges, not_met, rename_annotators
from quorate.formats.layering import Layer, deal_into, deal_rare, named
from quorate.formats.layers import Layers
from quorate.formats.marked import (
    GOLD_OVERLAPPING,
    SPANS_OVERLAPPING,
    Marked,
    Placed,
    UnitVotes,
    Words,
    find_units_of,
    placed,
    tagged,
)
from quorate.formats.notes import Notes, people, some
from quorate.formats.opened import stem
from quorate.formats.repeated import file_per_annotator, repeated_texts, texts_by_file
from quorate.wording import counted


@dataclass(frozen=True)
class Options:
    """What is to be done with documents on the way in."""

    annotator_from: str | None = None
    map_labels: Mapping[str, str | None] = field(default_factory=dict)
    map_annotators: Mapping[str, str | None] = field(default_factory=dict)
    profiles: Mapping[str, Fields] = field(default_factory=dict)
    pseudonymise: str | None = None
    unit: Unit | None = None
    layers: bool = False


Item = Document | Placed
_MERGED = 0
_IN_NO_LAYER = (
    "{} {span was|spans were} left out that no layer of the model takes, by their label or depth (fit again with them)"
)
_CLASHING = (
    "{} {span overlaps others of its|spans overlap others of their} layer, as none did in the fit, and "
    "{was|were} left out (fit again with {it|them})"
)
_RARE = (
    "{} {span overlaps|spans overlap} others as hardly any {does|do}: {it is|they are} kept, and not combined "
    "(docs/formats.md says when labels part)"
)
_UNIT_UNKNOWN = (
    "{} {document holds|documents hold} emoji or Windows line ends before a span, and nothing tells what offsets "
    "count: code points "
    "were assumed (commands that read annotations take --offsets to say it)"
)


class _Met(NamedTuple):
    """Under which key a document was taken in, and in which file it was met last."""

    key: tuple[str, int]
    file: str


class Assembly:
    """Takes in the documents of file after file, and gives out a corpus, or one for each layer."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.notes = Notes()
        self.digests: dict[str, str] = {}
        self._labels = LabelChanges(options.map_labels, self.notes) if options.map_labels else None
        self._words = Words()
        self._items: dict[tuple[str, int], Item] = {}
        self._models: set[str] = set()
        self._profiles: dict[str, Profile] = {}
        self._met: dict[str, _Met] = {}
        self._names: dict[str, None] = {}
        self._met_names: set[str] = set()  # of annotators, before they are changed
        self.numbered = False  # whether a document's id is only its number among all

    def __len__(self) -> int:
        return len(self._items)

    def add(self, given: Iterable[Document | Marked], file: str, *, merge: bool) -> None:
        """Take in the documents of one file. ``merge``: a document met before is the same one, of other annotators."""
        laid: list[tuple[bool, Document | Placed | Marked, list[Unit]]] = []
        votes = UnitVotes()
        for position, item in enumerate(given, 1):
            alone = self.options.annotator_from is not None or "" in item.annotations
            same = merge or alone
            changed = self._changed(item, file)
            if not changed.id:  # where each annotator has a file, the same place in it is the same document
                changed = replace(changed, id=str(position if alone else len(self._items) + len(laid) + 1))
                self.numbered = True
            if isinstance(changed, Marked):
                self._models |= changed.models
                units = [self.options.unit] if self.options.unit else find_units_of(changed)
                if len(units) > 1:
                    laid.append((same, changed, units))
                    continue
                votes.count(changed, units[0])
                laid.append((same, self._laid(changed, units[0]), []))
            else:
                laid.append((same, changed, []))
        for same, made, units in laid:
            # where a document's own spans do not tell what offsets count, the file's other documents choose among
            # the units that suit it
            if isinstance(made, Marked):
                unit, certain = votes.choose(made, units)
                self.notes.count(_UNIT_UNKNOWN, not certain)
                self._put(self._laid(made, unit), file, same)
            else:
                self._put(made, file, same)

    def introduce(self, profiles: Mapping[str, Profile], file: str) -> None:
        """Take in what a file itself says of its annotators."""
        source, renamed = self.options.annotator_from, self.options.map_annotators
        for name, profile in profiles.items():
            known = (name or stem(file)) if source is None else stem(file) if source == "filename" else folder_of(file)
            new = renamed[known] if known in renamed else renamed.get("*", known)
            if new is not None and (new == known or new not in self._profiles):  # one's own before another's
                self._profiles[new] = profile

    def profiles(self) -> dict[str, Profile]:
        """What is known of the annotators who were met; a note tells of those who have a name of gold."""
        own = {name: Profile(kind=Kind.MODEL) for name in self._models} | self._profiles
        found = own | read_profiles(self.options.profiles, own)
        for warning in gold_like(self._names, found):
            self.notes.add(warning)
        return {name: profile for name, profile in found.items() if name in self._names}

    def alone(self, item: Document | Marked, file: str, number: int) -> Document:
        """One document by itself, which is not kept."""
        self.add([item if item.id else replace(item, id=str(number))], file, merge=False)
        _, made = self._items.popitem()
        self._met.clear()
        return made if isinstance(made, Document) else self._tagged(made)

    def corpus(self) -> Corpus:
        """Everything as one corpus."""
        self._tell_not_met()
        self._tell_columns()
        self._tell_repeated()
        return self._finished([item for item in self._items.values() if isinstance(item, Document)])

    def layers(self, into: Mapping[str, Layer] | None = None) -> Layers:
        """A corpus for each layer, by its name: those that are given, or as many as it takes."""
        self._tell_not_met()
        self._tell_columns()
        self._tell_repeated()
        items = list(self._items.values())
        placed = self.placed()
        rare: set[str] = set()
        if into is None:
            found, thin = deal_rare(placed)
            held: Mapping[str, Layer] = named(layer for layer, _ in found)
            dealt = {name: documents for name, (_, documents) in zip(held, found, strict=True)}
            rare = {name for name, layer in held.items() if layer in thin}
            self.notes.count(_RARE, sum(_spans_in(dealt[name], gold=False) for name in rare))
        else:
            held, dealt = into, deal_into(into, placed)
        self.notes.count(_IN_NO_LAYER, _spans_in(placed) - sum(map(_spans_in, dealt.values())))
        documents = {
            name: [
                self._tagged(spans, _CLASHING) if isinstance(item, Placed) else _only(item, layer, held)
                for item, spans in zip(items, dealt[name], strict=True)
            ]
            for name, layer in held.items()
        }
        return Layers({name: self._finished(its) for name, its in documents.items()}, held, rare)

    def placed(self) -> list[Placed]:
        """The documents that were taken in, each with its spans on tokens."""
        return [item if isinstance(item, Placed) else _spans_of(item) for item in self._items.values()]

    def _tell_not_met(self) -> None:
        """Note the names that were to be changed and that no label or annotator has: they may be misspelt."""
        if self._labels is not None and (labels := not_met(self.options.map_labels, self._labels.met)):
            self.notes.add(f"--map-labels: no label is called {some(labels)}")
        names = not_met(self.options.map_annotators, self._met_names)
        if names and self.options.pseudonymise is not None:
            self.notes.add(f"--map-annotators: {counted(len(names), 'name is', 'names are')} nobody's")
        elif names:
            self.notes.add(f"--map-annotators: no annotator is called {some(names)}")

    def _tell_columns(self) -> None:
        """Note the columns that are left out, and those that may be no annotator's, unless somebody said whose."""

        def listed(names: list[str]) -> str:
            return str(len(names)) if self.options.pseudonymise is not None else some(names)

        if self.notes.left_out:
            self.notes.add(f"columns with no tags are left out: {listed(list(self.notes.left_out))}")
        changed = self.options.map_annotators
        names = [] if "*" in changed else [name for name in self.notes.doubtful if name not in changed]
        if names:
            self.notes.add(
                f"columns whose labels nobody else uses, taken for annotators: {listed(names)} (--map-annotators NAME= "
                "leaves one out)"
            )

    def _tell_repeated(self) -> None:
        """Note the texts that come more than once: each may be one document, of several annotators."""
        documents = [
            (item if isinstance(item, Document) else item.document, len(item.annotations))
            for item in self._items.values()
        ]
        if not self.numbered:
            note = repeated_texts(document for document, _ in documents)
        else:  # what has no id of its own may come twice in a file, but not once in each of several
            note = "" if self.options.annotator_from else file_per_annotator(texts_by_file(documents)).note
        if note:
            self.notes.add(note)

    def _changed(self, item: Document | Marked, file: str) -> Document | Marked:
        """With new names for labels and annotators."""
        if self._labels is not None:
            item = self._labels.apply(item)
        source = self.options.annotator_from
        if source is not None:
            if len(item.annotations) > 1:
                raise InputError(
                    f"{len(item.annotations)} annotators in a document, so that the {source} cannot name them all "
                    "(leave out --annotator-from)",
                    where=item.where(),
                )
            item = rename_annotators(item, {"*": stem(file) if source == "filename" else folder_of(file)}, self.notes)
        elif "" in item.annotations:
            item = rename_annotators(item, {"": stem(file)}, self.notes)
        if self.options.map_annotators:
            self._met_names.update(item.annotations)
            item = rename_annotators(item, self.options.map_annotators, self.notes)
        return item

    def _laid(self, marked: Marked, unit: Unit) -> Item:
        found = placed(marked, unit, self._words, self.notes)
        return found if self.options.layers else self._tagged(found)

    def _tagged(self, item: Placed, left_out: str = SPANS_OVERLAPPING) -> Document:
        length = len(item.document.tokens)
        gold = None if item.gold is None else [span._replace(confidence=None) for span in item.gold]
        return replace(
            item.document,
            annotations={name: tagged(spans, length, self.notes, left_out) for name, spans in item.annotations.items()},
            gold=None if gold is None else hard_tags(tagged(gold, length, self.notes, GOLD_OVERLAPPING)),
        )

    def _put(self, item: Item, file: str, merge: bool) -> None:
        self._names.update(dict.fromkeys(item.annotations))
        document = item if isinstance(item, Document) else item.document
        met = self._met.get(document.id)
        # In another file it is the same document: of a later export, say.
        if met is not None and (merge or met.file != file or met.key[1] == _MERGED):
            key = met.key
        else:
            key = (document.id, _MERGED if merge else len(self._items) + 1)
        self._met[document.id] = _Met(key, file)
        first = self._items.get(key)
        self._items[key] = item if first is None else self._joined(first, item)

    def _joined(self, first: Item, second: Item) -> Item:
        """One document from two that have the same id."""
        one = first if isinstance(first, Document) else first.document
        other = second if isinstance(second, Document) else second.document
        if type(first) is not type(second):
            raise InputError(f"given with tags here and with spans elsewhere, {one.where()}", where=other.where())
        texts = {one.text, other.text} - {None}
        if one.tokens != other.tokens or len(texts) > 1:
            raise InputError(
                f"another text than that of the same document elsewhere, {one.where()} (ids must be unique)",
                where=other.where(),
            )
        self.notes.count(REPLACED, len(set(first.annotations) & set(second.annotations)))
        annotations = {**first.annotations, **second.annotations}
        gold = first.gold if second.gold is None else second.gold
        document = (
            one if one.text is not None or other.text is None else replace(one, text=other.text, offsets=other.offsets)
        )
        if isinstance(first, Document):
            return replace(document, annotations=annotations, gold=gold)  # type: ignore[arg-type]
        return Placed(document, annotations, gold)  # type: ignore[arg-type]

    def _finished(self, documents: list[Document]) -> Corpus:
        profiles = self.profiles()
        names = {name for document in documents for name in document.annotations}
        strange = sorted(set(self.options.profiles) - names)
        known = sorted(names) if self.options.pseudonymise is None else ()  # names are to be hidden
        notes = [*self.notes.sentences(), *([_nobodys(strange, known)] if strange else [])]
        profiles = {name: profile for name, profile in profiles.items() if name in names}
        digests = self.digests
        if self.options.pseudonymise is not None:
            groups = {profile.group for profile in profiles.values() if profile.group is not None}
            new: Mapping[str, str | None] = pseudonyms(self.options.pseudonymise, names | groups)
            documents = [rename_annotators(document, new, self.notes) for document in documents]  # type: ignore[misc]
            profiles = {
                str(new[name]): replace(profile, group=None if profile.group is None else new[profile.group])
                for name, profile in profiles.items()
            }
            digests = {f"input {number}": digest for number, digest in enumerate(digests.values(), 1)}
        corpus = Corpus(documents, notes=notes, digests=digests, profiles=profiles)
        corpus.numbered = self.numbered
        return corpus


def _nobodys(strange: Sequence[str], known: Collection[str]) -> str:
    """That nobody has such names, and which of the known ones may be meant."""
    meant = [like for like in (nearest(name, known) for name in strange) if like is not None]
    return f"no document is annotated by {people(strange)}" + (f" (did you mean {people(meant)}?)" if meant else "")


def folder_of(file: str) -> str:
    """The name of the folder that a file is in."""
    return Path(file).resolve().parent.name


def _spans_of(document: Document) -> Placed:
    """The spans of a document with tags, to find its layers by."""

    def spans(tags: Sequence[Tag | SoftTag]) -> list[Span]:
        hard = [max(tag, key=lambda name: tag[name]) if isinstance(tag, Mapping) else tag for tag in tags]
        return find_spans([tag if tag and marks_span(tag) else None for tag in hard])

    annotations = {name: spans(tags) for name, tags in document.annotations.items()}
    return Placed(document, annotations, None if document.gold is None else spans(document.gold))


def _spans_in(documents: Iterable[Placed], *, gold: bool = True) -> int:
    return sum(
        len(spans) for one in documents for spans in (*one.annotations.values(), (one.gold if gold else None) or ())
    )


def _only(document: Document, layer: Layer, layers: Mapping[str, Layer]) -> Document:
    """The document with the tags of one of the layers; the others become ``O``."""
    if len(layers) == 1:
        return document
    labels = {label for _, label in layer.labels} if layer.depth == 0 else set()

    def own(tag: Tag) -> Tag:
        return tag if tag is None or whole_label(split_tag(tag)[1]) in labels else OUTSIDE

    return replace(
        document,
        annotations={
            name: tuple([changed_tag(tag, own) for tag in tags]) for name, tags in document.annotations.items()
        },
        gold=None if document.gold is None else tuple(map(own, document.gold)),
    )
