"""The model that follows what people say: fitted now and then, and updated as labels come.

It is the model of ``quorate aggregate``, with its defaults. Where spans overlap there is a model for every layer;
without any, one of a single layer, which has no name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from quorate.corpus.records import Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import OUTSIDE, split_tag
from quorate.corpus.tokens import Offsets
from quorate.estimators.bsc import BSC
from quorate.estimators.capabilities import Advises
from quorate.estimators.layered import LayeredModel
from quorate.formats.exports import ExportAnnotation
from quorate.formats.json_lines import DIGITS
from quorate.formats.layers import Layers
from quorate.result.layers import LayeredResult
from quorate_serve.live.collected import Entry

KnownTags = Mapping[str, Mapping[str, Sequence[Tag]]]
_SHOWN_DIGITS = 4  # of a confidence: what moves by less has not changed


class Fitted(NamedTuple):
    """A model, and how many seconds its fit took."""

    model: LayeredModel
    seconds: float


def fit(layers: Layers, known: KnownTags) -> Fitted:
    """Fit to everything."""
    began = time.perf_counter()
    model = LayeredModel(BSC()).fit(layers, known=known)
    return Fitted(model, time.perf_counter() - began)


def combine(model: LayeredModel, layers: Layers, known: KnownTags) -> LayeredResult:
    """The consensus on some documents."""
    found = {}
    for name, corpus in model.own(layers):
        one = model.models_[name]
        assert isinstance(one, Advises)
        found[name] = one.combine(corpus, known=known.get(name))
    return LayeredResult(found)


class Row(NamedTuple):
    """What is given out of a document: spans in characters, each with its confidence; that of all of it.

    ``labels`` says how many annotators have labelled it, ``known`` whether somebody has decided it. ``layers`` has what
    a file of the consensus tells beyond that, by layer (where nothing overlaps, one without a name): the types that it
    takes, its tags, and how sure it is of all of them together and of each.
    """

    spans: list[dict[str, Any]]
    confidence: float
    labels: int
    known: bool
    layers: Mapping[str, Mapping[str, Any]] = {}

    @property
    def shown(self) -> Row:
        """What of it has to be other for it to have changed."""
        spans = [{**span, "confidence": round(span["confidence"], _SHOWN_DIGITS)} for span in self.spans]
        layers = {name: {"types": layer["types"]} for name, layer in self.layers.items()}
        return self._replace(spans=spans, confidence=round(self.confidence, _SHOWN_DIGITS), layers=layers)


def rows_of(entries: Sequence[Entry], result: LayeredResult) -> dict[int, Row]:
    """The rows of a consensus on these documents, by number; those for checks and training have none."""
    export = (result.single or result).export()
    found = {}
    for entry, exported in zip(entries, export.documents(), strict=True):
        if entry.is_work:
            consensus = exported.consensus
            assert consensus is not None  # it is the export of a consensus
            layers = {name: _layer(one, export.layers[name]) for name, one in consensus.layers.items()}
            found[entry.number] = Row(
                [_span(span, consensus, exported.offsets()) for span in consensus.spans],
                _rounded(consensus.confidence),
                entry.labels,
                entry.is_decided,
                layers or {"": _layer(consensus, export.labels)},
            )
    return found


def _span(span: Span, consensus: ExportAnnotation, offsets: Offsets) -> dict[str, Any]:
    values = {
        "start": offsets[span.start][0],
        "end": offsets[span.end - 1][1],
        "label": span.label,
        "confidence": round(span.sure, DIGITS),
    }
    if span.layer:
        values["layer"] = span.layer
    if consensus.knows(span) and not consensus.is_known:  # where all is known, the document says so
        values["known"] = True
    return values


def _layer(consensus: ExportAnnotation, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "types": sorted({split_tag(label)[1] for label in labels if label != OUTSIDE}),
        "tags": list(consensus.tags or ()),
        "confidence": _rounded(consensus.confidence),
        "token_confidence": np.round(
            () if consensus.token_confidence is None else consensus.token_confidence, DIGITS
        ).tolist(),
    }


def _rounded(confidence: float | None) -> float:
    return 1.0 if confidence is None else round(confidence, DIGITS)
