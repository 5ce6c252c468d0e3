"""The model that follows what people say: fitted now and then, and updated as labels come.

It is the model of ``quorate aggregate --tagger none``: a tagger learns from a whole consensus, which is too slow to
follow every save. Settings are chosen when labels have doubled, and taken over by the fits between. Where spans overlap
there is a model for every layer; without any, one of a single layer, which has no name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quorate.choose.choice import Choice
from quorate.choose.kept import as_plain, from_plain
from quorate.corpus.records import Tag
from quorate.estimators.bsc import BSC
from quorate.estimators.layered import LayeredModel
from quorate.formats.layers import Layers
from quorate.result.layers import LayeredResult
from quorate.service.live.collected import Entry

__all__ = ["Chosen", "Fitted", "Row", "combine", "fit", "rows_of"]

KnownTags = Mapping[str, Mapping[str, Sequence[Tag]]]
_DIGITS = 4  # of a confidence: what moves by less has not changed


class Chosen(NamedTuple):
    """The settings that were chosen, by layer, and how many labels (documents by annotators) there were then."""

    choices: Mapping[str, Choice]
    labels: int

    def plain(self) -> dict[str, Any]:
        """As the database keeps it."""
        return {"labels": self.labels, "layers": {name: as_plain(choice) for name, choice in self.choices.items()}}

    @classmethod
    def from_plain(cls, plain: Any) -> Chosen | None:
        """What :meth:`plain` gave; ``None`` if this version cannot read it, so that settings are chosen again."""
        try:
            return cls({name: from_plain(one) for name, one in plain["layers"].items()}, int(plain["labels"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


class Fitted(NamedTuple):
    """A model, what was chosen for it, whether that was new, and how long it took."""

    model: LayeredModel
    chosen: Chosen
    is_new_choice: bool
    seconds: float


def fit(layers: Layers, known: KnownTags, labels: int, chosen: Chosen | None) -> Fitted:
    """Fit to everything; with settings that were chosen before, or else they are chosen now."""
    began = time.perf_counter()
    before = {} if chosen is None else chosen.choices
    model = LayeredModel(BSC(tagger="none")).fit(layers, known=known, choices=lambda name, _: before.get(name))
    made = {name: one.choice_ for name, one in model.models_.items() if isinstance(one, BSC)}
    choices = {name: choice for name, choice in made.items() if choice is not None}
    is_new = not set(choices) <= set(before)
    now = Chosen(choices, labels if is_new or chosen is None else chosen.labels)
    return Fitted(model, now, is_new, time.perf_counter() - began)


def combine(model: LayeredModel, layers: Layers, known: KnownTags) -> LayeredResult:
    """The consensus on some documents."""
    found = {}
    for name, corpus in model.own(layers):
        one = model.models_[name]
        assert isinstance(one, BSC)
        found[name] = one.combine(corpus, known=known.get(name))
    return LayeredResult(found)


class Row(NamedTuple):
    """What is given out of a document: spans in characters, each with its confidence; that of all of it.

    ``labels`` says how many annotators have labelled it, ``known`` whether somebody has decided it.
    """

    spans: list[dict[str, Any]]
    confidence: float
    labels: int
    known: bool


def rows_of(entries: Sequence[Entry], result: LayeredResult) -> dict[int, Row]:
    """The rows of a consensus on these documents, by number; those for checks and training have none."""
    columns = result.single or result
    found = {}
    for entry, spans, confidence in zip(entries, columns.spans, columns.confidence.tolist(), strict=True):
        if entry.is_work:
            offsets = entry.document.offsets
            assert offsets is not None  # every document of the service has a text
            placed = [
                {
                    "start": offsets[span.start][0],
                    "end": offsets[span.end - 1][1],
                    "label": span.label,
                    "confidence": round(span.sure, _DIGITS),
                }
                for span in spans
            ]
            found[entry.number] = Row(placed, round(confidence, _DIGITS), entry.labels, entry.is_decided)
    return found
