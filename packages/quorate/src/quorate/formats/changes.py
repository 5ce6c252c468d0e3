"""Labels and annotators renamed, merged or dropped, as documents are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from quorate.corpus.discontinuous import CONTINUED, is_continued, whole_label
from quorate.corpus.records import Document, Tag, changed_tag
from quorate.corpus.tags import OUTSIDE, split_tag
from quorate.errors import nearest
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes

_EVERY_OTHER = "*"
_DROPPED = "{} {label was|labels were} dropped by --map-labels"
REPLACED = "{} {annotation was|annotations were} replaced by a later one of the same document by the same annotator"
"""Counts annotations: of three that somebody gave of a document, the last counts, and two are replaced."""


class LabelChanges:
    """New names for labels; ``*`` is every label that is not named.

    >>> changes = LabelChanges({"PERS": "PER", "MISC": None}, Notes())
    >>> changes.tag("B-PERS"), changes.tag("I-MISC"), changes.tag("O"), changes.tag("B-LOC")
    ('B-PER', 'O', 'O', 'B-LOC')
    """

    def __init__(self, names: Mapping[str, str | None], notes: Notes) -> None:
        self._names, self._notes = names, notes
        self.met = {OUTSIDE}  # names of labels as they came
        self._tags: dict[Tag, Tag] = {None: None, OUTSIDE: names.get(OUTSIDE, OUTSIDE)}

    def label(self, label: str) -> str | None:
        """The new name; ``None``: dropped. Later pieces of a discontinuous span are renamed with their entity.

        >>> LabelChanges({"ADR": "AE"}, Notes()).label("ADR…")
        'AE…'
        """
        self.met.add(label)
        if is_continued(label) and label not in self._names:
            new = self.label(whole_label(label))
            return None if new is None else new + CONTINUED
        return self._names[label] if label in self._names else self._names.get(_EVERY_OTHER, label)

    def tag(self, tag: Tag) -> Tag:
        """The tag with its label renamed; ``O`` in place of a dropped one."""
        if tag not in self._tags:
            self._tags[tag] = self._new_tag(str(tag))
        new = self._tags[tag]
        self._notes.count(_DROPPED, new == OUTSIDE != tag)
        return new

    def _new_tag(self, tag: str) -> Tag:
        prefix, kind = split_tag(tag)
        label = self.label(kind)
        if label is None:
            return OUTSIDE
        return f"{prefix}-{label}" if prefix else label

    def apply(self, item: Document | Marked) -> Document | Marked:
        """The document with its labels changed."""
        if isinstance(item, Document):
            return replace(
                item,
                annotations={
                    name: tuple([changed_tag(tag, self.tag) for tag in tags]) for name, tags in item.annotations.items()
                },
                gold=None if item.gold is None else tuple(map(self.tag, item.gold)),
            )
        for marks in [*item.annotations.values(), *([] if item.gold is None else [item.gold])]:
            kept = []
            for mark in marks:
                label = self.label(mark.label)
                if label is not None:
                    kept.append(mark._replace(label=label))
            self._notes.count(_DROPPED, len(marks) - len(kept))
            marks[:] = kept
        return item


def not_met(names: Mapping[str, str | None], met: Collection[str]) -> list[str]:
    """The names that were to be changed and that nothing has, each with the one that may have been meant.

    >>> not_met({"PERSN": "PER", "MISC": None, "LOC": "PLACE"}, ["LOC", "PER", "PERSON"])
    ['PERSN (did you mean PERSON?)', 'MISC']
    """
    missing = [old for old, new in names.items() if old not in met and old not in (_EVERY_OTHER, new)]
    free = sorted(name for name in met if name not in names and not is_continued(name))
    found = []
    for old in missing:
        meant = nearest(old, [name for name in free if name != names[old]])
        found.append(old if meant is None else f"{old} (did you mean {meant}?)")
    return found


def rename_annotators(item: Document | Marked, names: Mapping[str, str | None], notes: Notes) -> Document | Marked:
    """The document with annotators renamed; of two who become one, the last counts; ``None`` drops one.

    >>> document = Document("1", ("a",), {"ann": ("O",), "ann2": ("B-X",), "bot": ("O",)})
    >>> rename_annotators(document, {"ann2": "ann", "bot": None}, Notes()).annotations
    {'ann': ('B-X',)}
    """
    annotations: dict[str, object] = {}
    for name, labels in item.annotations.items():
        new = names[name] if name in names else names.get(_EVERY_OTHER, name)
        if new is not None:
            notes.count(REPLACED, new in annotations)
            annotations[new] = labels
    return replace(item, annotations=annotations)  # type: ignore[arg-type]
