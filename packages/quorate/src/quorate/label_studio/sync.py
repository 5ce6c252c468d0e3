"""One sync: pull the annotations of a project, combine them, and make its predictions say what the consensus says."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import IO, Any, NamedTuple

from quorate import formats
from quorate.api import aggregate_layers
from quorate.corpus.records import Document
from quorate.errors import InputError, ServerError, SettingsError
from quorate.estimators.layered import KnownInLayers
from quorate.estimators.methods import DEFAULT_METHOD
from quorate.formats.exports import ExportDocument
from quorate.formats.label_studio import OWN_PREFIX, Controls, prediction_of
from quorate.formats.layers import Layers
from quorate.label_studio.client import Client
from quorate.model.settings import check_number
from quorate.result.layers import LayeredResult

LEAST_CHANGE = 0.005
"""Of a score, unless another is given: a prediction whose scores moved by less is left as it is."""

_AT_ONCE = 200  # predictions in one request
_SPAN_TYPES = {"Labels": "labels", "HyperTextLabels": "hypertextlabels"}

Prediction = dict[str, Any]


class Synced(NamedTuple):
    """What a sync did: tasks combined, and predictions created, changed, left as they were, and deleted.

    ``result`` is the consensus that the predictions say.

    >>> Synced(10, 2, 1, 7, 0, "", ()).sentence()
    '10 tasks: 2 predictions created, 1 changed, 7 left as they were, 0 deleted'
    """

    tasks: int
    created: int
    changed: int
    kept: int
    deleted: int
    fingerprint: str
    notes: tuple[str, ...]
    result: LayeredResult | None = None

    def sentence(self) -> str:
        """In words."""
        return (
            f"{self.tasks:,} tasks: {self.created:,} predictions created, {self.changed:,} changed, "
            f"{self.kept:,} left as they were, {self.deleted:,} deleted"
        )


def sync(
    client: Client,
    project: int,
    *,
    method: str = DEFAULT_METHOD,
    settings: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    model_version: str | None = None,
    all_tasks: bool = False,
    layers: bool = False,
    least_change: float = LEAST_CHANGE,
    seen: str = "",
    progress: Callable[[Any], None] | None = None,
) -> Synced | None:
    """Make a project's predictions those of the consensus; ``None`` if nothing has changed since ``seen``.

    ``reading`` are options of :func:`quorate.read`, ``seen`` is the fingerprint of an earlier sync. Tasks that nobody
    has annotated get no prediction, unless ``all_tasks``. Ground truth is taken as certain. With ``layers``, spans that
    overlap are combined in layers of their own, and predictions hold the spans of all of them. A prediction is written
    if it marks other spans than the one that is there, or if a score moved by ``least_change`` or more.
    """
    check_number("least_change", least_change)
    if not 0 <= least_change <= 1:
        raise SettingsError(f"the least change of a score must be from 0 to 1, not {least_change:g}")
    version = model_version or f"{OWN_PREFIX} {method}"
    if not version.startswith(OWN_PREFIX):
        raise SettingsError(
            f"the model version must begin with {OWN_PREFIX!r}, so that it is known again, not {version!r}"
        )
    about = client.get(f"/api/projects/{project}/")
    controls = controls_of(about)
    pulled = _pulled(client, project, dict(reading or {}), layers)
    corpus = pulled.corpus
    fingerprint = _fingerprint(pulled, version, all_tasks)
    if fingerprint == seen:
        return None
    known: KnownInLayers = "inline" if corpus.has_gold else None
    result = aggregate_layers(pulled, method, known=known, progress=progress, **(settings or {}))
    wanted = _predictions(result, controls, version, all_tasks)
    done: Synced = client.patiently(lambda: apply_predictions(client, project, wanted, least_change))
    notes = (*corpus.notes, *show_version(client, project, about, version))
    return done._replace(fingerprint=fingerprint, notes=notes, result=result)


def show_version(client: Client, project: int, about: Mapping[str, Any], version: str) -> Iterator[str]:
    """See to it that the Data Manager shows these scores: it knows those of one model version alone."""
    chosen = client.masked(str(about.get("model_version") or ""))
    if chosen and not chosen.startswith(OWN_PREFIX):
        yield f"the project shows predictions of {chosen!r}; choose {version!r} in its settings to sort by these scores"
        return
    if chosen != version:
        client.change(f"/api/projects/{project}/", {"model_version": version})
    if about.get("show_collab_predictions"):
        yield "annotators of this project see predictions before they label, which sways them (Settings, Annotation)"


def pull(client: Client, project: int, target: IO[bytes]) -> None:
    """The export of a project: every task, with its annotations."""
    client.download(f"/api/projects/{project}/export", target, exportType="JSON", download_all_tasks="true")


def _pulled(client: Client, project: int, reading: dict[str, Any], layers: bool) -> Layers:
    """Every task of the project, with its annotations, in layers if that is wanted."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        pull(client, project, file)
        file.flush()
        try:
            if layers:
                pulled = formats.read_layers(file.name, format="label-studio", **reading)
            else:
                pulled = Layers.alone(formats.read(file.name, format="label-studio", **reading))
        except InputError as error:
            raise InputError(client.masked(str(error).replace(file.name, f"project {project}"))) from None
    if not any(document.annotations for document in pulled.corpus):
        raise InputError(f"project {project}: nobody has annotated anything yet (sync again when they have)")
    return pulled


def controls_of(about: Any) -> Controls:
    """For each label the control of the labelling page that makes it."""
    config = about.get("parsed_label_config") if isinstance(about, Mapping) else None
    if not isinstance(config, Mapping):
        raise ServerError("the server does not say how the project is labelled (is it a Label Studio server?)")
    controls: Controls = {}
    for name, control in config.items():
        kind = _SPAN_TYPES.get(str(control.get("type")))
        if kind is not None:
            for label in control.get("labels", ()):
                controls.setdefault(str(label), (name, str((control.get("to_name") or ["text"])[0]), kind))
    if not controls:
        raise InputError("the project labels no spans of text (its labelling page has no Labels)")
    return controls


def _fingerprint(layers: Layers, version: str, all_tasks: bool) -> str:
    """A digest of everything that the predictions follow from."""
    total = hashlib.sha256(repr((version, all_tasks, sorted(layers.corpus.profiles.items()))).encode())
    for name, corpus in layers.items():
        total.update(name.encode("utf-8", "surrogatepass"))
        for document in corpus:
            given = sorted((who, list(tags)) for who, tags in document.annotations.items())
            total.update(repr((document.id, document.text, given, document.gold)).encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _predictions(result: LayeredResult, controls: Controls, version: str, all_tasks: bool) -> dict[int, Prediction]:
    """The prediction for each task, by its id."""
    found: dict[int, Prediction] = {}
    strange = sorted({span.label for spans in result.spans for span in spans} - set(controls))
    if strange:
        raise InputError(f"the project has no label {strange[0]!r} (map it to one that it has: --map-labels)")
    for one in result:
        document = one.document
        if document.annotations or all_tasks:
            exported = ExportDocument(_with_controls(document, controls))
            found[int(document.id)] = prediction_of(exported, one.annotation(), version)
    return found


def _with_controls(document: Document, controls: Controls) -> Document:
    return replace(document, origin={**(document.origin or {}), "controls": controls})


def apply_predictions(
    client: Client, project: int, wanted: Mapping[int, Prediction], least_change: float = LEAST_CHANGE
) -> Synced:
    """Make these the predictions of a project, by task: change what differs and nothing else.

    After a fault, another call finds what is left to do.
    """
    own: dict[int, list[Any]] = {}
    for prediction in client.get("/api/predictions/", project=project):
        if str(prediction.get("model_version") or "").startswith(OWN_PREFIX):
            own.setdefault(prediction["task"], []).append(prediction)
    new, changed, kept, stale = [], 0, 0, []
    for task, prediction in wanted.items():
        there = own.pop(task, [])
        same = next((each for each in there if _says_the_same(each, prediction, least_change)), None)
        if same is not None:
            kept += 1
        elif there:
            client.change(f"/api/predictions/{there[0]['id']}/", prediction)
            changed += 1
            same = there[0]
        else:
            new.append({"task": task, **prediction})
        stale += [each for each in there if each is not same]
    stale += [each for rest in own.values() for each in rest]
    for first in range(0, len(new), _AT_ONCE):
        client.create(f"/api/projects/{project}/import/predictions", new[first : first + _AT_ONCE])
    for prediction in stale:
        client.delete(f"/api/predictions/{prediction['id']}/")
    return Synced(len(wanted), len(new), changed, kept, len(stale), "", ())


def _says_the_same(there: Mapping[str, Any], wanted: Mapping[str, Any], least_change: float = LEAST_CHANGE) -> bool:
    """Whether a prediction marks the same spans with about the same scores, whatever the order of its regions."""
    theirs, ours = _regions(there), _regions(wanted)
    return (
        there.get("model_version") == wanted.get("model_version")
        and [place for place, _ in theirs] == [place for place, _ in ours]
        and _about_equal(there.get("score"), wanted.get("score"), least_change)
        and all(_about_equal(before, now, least_change) for (_, before), (_, now) in zip(theirs, ours, strict=True))
    )


def same_regions(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether two predictions or annotations mark the same spans, whatever their order and their scores."""
    return [place for place, _ in _regions(there)] == [place for place, _ in _regions(wanted)]


def _regions(prediction: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What each region marks and where, without what the server adds; and its score."""
    result = prediction.get("result")
    return sorted(map(_region, result if isinstance(result, list) else ()), key=lambda region: region[0])


def _region(region: Mapping[str, Any]) -> tuple[str, Any]:
    kind, value = region.get("type"), region.get("value") or {}
    place = (value.get("start"), value.get("end"), value.get(str(kind)))
    ends = (region.get("from_id"), region.get("to_id"))  # of a relation
    return repr((region.get("from_name"), region.get("to_name"), kind, place, ends)), region.get("score")


def _about_equal(before: Any, after: Any, least_change: float) -> bool:
    if before is None or after is None:
        return before is after
    moved = abs(float(before) - float(after))
    return moved < least_change or moved == 0
