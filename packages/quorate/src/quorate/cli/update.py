"""The command that goes on from a saved model: update."""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from quorate.cli.common import Json, LayeredReading, Quiet, Threads, app, check_json, check_outputs, reads, say, typed
from quorate.cli.known import KnownLabels, KnownOption
from quorate.cli.layers import by_layer, documents_for, loaded
from quorate.cli.options import WithoutDocuments, Writing, takes_groups
from quorate.cli.project_run import NO_MODEL, Project, model_meant, refuse_outputs_of_a_run
from quorate.cli.settings import Given, takes_output_settings
from quorate.cli.summaries import Summary
from quorate.cli.tables import print_json
from quorate.errors import InputError, SettingsError
from quorate.model.settings import WRITTEN
from quorate.storage.files.locks import only_here
from quorate.wording import counted

if TYPE_CHECKING:
    from quorate.corpus.records import Corpus
    from quorate.estimators.bsc import BSC
    from quorate.estimators.layered import KnownInLayers, LayeredModel
    from quorate.formats.layers import Layers
    from quorate.result.layers import LayeredResult

_ENDING = ".quorate"
_NO_INPUT = "nothing to update with (give files with new labels, or known ones with --known FILE)"


_STRANGE = (
    "warning: the input has no annotator and no document of the model: is it of another crowd? (the model has "
    "both now; to undo that, combine its own inputs again)"
)


@app.command(
    epilog="Examples:\n\n"
    "quorate update crowd.quorate today.jsonl -o consensus.jsonl\n\n"
    "quorate update crowd.quorate export.json -o consensus.json --only-new --save tuesday.quorate\n\n"
    "quorate update crowd.quorate --known checked.jsonl -o consensus.jsonl"
)
@reads
@takes_output_settings
@takes_groups
def update(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help="A file that 'aggregate --save' wrote; in a project, that of the last version."
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="New labels, or a whole export: what the model has is skipped. With the model of a project's version, "
            "new labels alone; inputs that are new since then, if not given.",
        ),
    ] = None,
    known: KnownOption = None,
    passes: Annotated[int, typer.Option(help="Passes over everything, after those over what is new.")] = 0,
    *,
    writing: Writing,
    only_new: Annotated[
        bool,
        typer.Option(
            "--only-new",
            help="Write only the documents of the input, not all that the model has.",
            rich_help_panel=WRITTEN,
        ),
    ] = False,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Keep the model in this file, and leave the old one as it is.",
            rich_help_panel=WRITTEN,
        ),
    ] = None,
    without_documents: WithoutDocuments = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for another update of this model to end.")] = False,
    as_json: Json = False,
    threads: Threads = None,
    quiet: Quiet = False,
    given: Given,
    reading: LayeredReading,
) -> None:
    """Continue from a saved model with new labels, documents and annotators, without a fit from scratch.

    MODEL is replaced when everything is done; an interrupted update leaves it as it was. While another update of the
    same model runs, this one is refused, or waits (--wait).
    """
    writing.check()
    check_json(as_json, writing.output)
    model, files, known = _sorted_out(context, model, inputs, known)
    of_project = model is None and not typed(context, "known")
    certain = KnownLabels(context, known, files, reading.options["max_size"], others=of_project)
    if not files and not certain.files:
        raise SettingsError(_NO_INPUT)
    place = model if save is None else save  # None: the model of a version stays as it is
    refuse_outputs_of_a_run(context, {"-o": writing.output, "--save": place})
    check_outputs([*files, *certain.files, *([] if model is None else [model])], [writing.output, save], writing.to)
    check_outputs([*files, *certain.files], [model if save is None else None])
    alone = save is None and model is not None
    with (
        model_meant(context, model) as path,
        only_here(path, wait=wait, hint="wait for it: --wait") if alone else nullcontext(),
    ):
        fitted = _loaded(path).set_params(n_jobs=threads, **given.anew())
        layers, labels = _read(fitted, files, certain, reading)
        strange = _strange(fitted, layers.corpus)
        fitted.update(layers, known=labels, passes=passes)
        result = _part_of(fitted.result_, layers.corpus) if only_new else fitted.result_
        not_written = writing.write(result.single or result, quiet=quiet)
        changed = bool(passes) or without_documents or any(map(_is_changed, _parts(fitted).values()))
        if place is not None and (save is not None or changed):
            for one in fitted.models_.values():
                one.meta_["inputs"] |= certain.digests
            _whole(fitted).save(place, documents=not without_documents)
    lines = [*_summary(fitted, layers.corpus), *strange, *not_written] if as_json or not quiet else []
    if as_json:
        print_json(Summary([], lines, [], _record(fitted, place)).as_json())
    elif not quiet:
        say(lines)
        if place is None:
            say(["note: the model of the last version stays as it is (--save keeps the new one)"])
        if writing.output != "-":
            say([f"written to {writing.output}" + ("" if place is None else f" (model: {place})")])


def _sorted_out(
    context: typer.Context, first: str | None, inputs: list[str] | None, known: list[str] | None
) -> tuple[str | None, list[str], list[str] | None]:
    """The model, the inputs and what is known: in a project the model may be left out, and what is none is an input.

    Without inputs, those are meant that are new since the last version. What the project knows is about its inputs.
    """
    from quorate.storage.model_files import is_model

    project = Project.around(context)
    if first is not None and (project is None or first.endswith(_ENDING) or is_model(first)):
        return first, inputs or [], known
    if project is None:
        raise SettingsError(NO_MODEL)
    if first is not None:
        files = [first, *(inputs or [] if typed(context, "inputs") else [])]
        own = project.new_inputs(files)
        return None, files, known if own or typed(context, "known") else None
    return (
        None,
        [] if typed(context, "known") and {*(known or ())} - {"none", "inline"} else project.new_inputs(),
        known,
    )


def _loaded(path: str) -> LayeredModel:
    from quorate.estimators.capabilities import Updates

    fitted = loaded(path)
    if not all(isinstance(one, Updates) for one in fitted.models_.values()):
        raise SettingsError(f"{path}: a model of this kind cannot go on with new labels (fit it again)")
    return fitted


def _is_changed(model: BSC) -> bool:
    return bool(model.updated_.new or model.updated_.changed)


def _strange(fitted: LayeredModel, corpus: Corpus) -> list[str]:
    """A warning if the model, before its update, knows no annotator and no document of the input."""
    names, ids = set(corpus.annotators), {document.id for document in corpus}
    for one in _parts(fitted).values():
        names.difference_update(one.annotators_.names)
        ids.difference_update(kept.id for kept in (one.kept_documents() if one.has_documents else ()))
    is_other = len(corpus) > 0 and (len(names), len(ids)) == (len(corpus.annotators), len(corpus))
    return [_STRANGE] if is_other else []


def _parts(fitted: LayeredModel) -> dict[str, BSC]:
    """The model of each layer, which can be updated."""
    return cast("dict[str, BSC]", fitted.models_)


def _whole(fitted: LayeredModel) -> BSC | LayeredModel:
    """The model, without layers where there is one alone."""
    return cast("BSC | None", fitted.single) or fitted


def _part_of(result: LayeredResult, corpus: Corpus) -> LayeredResult:
    """The consensus on these documents alone."""
    return result.only([result.corpus.position(one.id) for one in corpus])


def _read(
    fitted: LayeredModel, inputs: list[str], known: KnownLabels, reading: LayeredReading
) -> tuple[Layers, KnownInLayers]:
    """The documents of an update and their known labels; files of those may be of documents that the model has."""
    from quorate.corpus.records import Corpus
    from quorate.formats.layers import Layers
    from quorate.formats.notes import some

    if known.files and not inputs and not all(one.has_documents for one in _parts(fitted).values()):
        raise SettingsError(
            "the model keeps no documents, which known labels could be about (in a project, add the file to 'known' "
            "and let quorate run fit everything; or give a model that was saved with its documents)"
        )
    none = Layers({name: Corpus([]) for name in fitted.models_}, fitted.layers_)
    layers = documents_for(fitted, reading, inputs) if inputs else none
    if not known.files:
        return known.of_layers(layers)
    ids = {one.id for one in layers.corpus}
    # Their gold was in an earlier input, and is not that of this one.
    others = {
        name: [replace(one, gold=None) for one in model.kept_documents() if one.id not in ids]
        for name, model in _parts(fitted).items()
    }

    def with_others(wanted: Container[str]) -> Layers:
        found = {
            name: Corpus(
                [*layers[name], *(one for one in its if one.id in wanted)],
                notes=layers[name].notes,
                digests=layers[name].digests,
                profiles=layers[name].profiles,
            )
            for name, its in others.items()
        }
        return Layers(found, fitted.layers_)

    everything = with_others({one.id for its in others.values() for one in its})
    dealt, labels = known.of_layers(everything)
    if set(dealt) != set(everything):
        strange = some([name for name in dealt if name not in everything])
        raise InputError(
            f"spans of {strange} are known, which no layer of the model takes (fit it again: quorate aggregate)",
            where=known.files[0],
        )
    assert isinstance(labels, Mapping)  # what files say is told by layer
    return with_others({name for its in labels.values() if isinstance(its, Mapping) for name in its}), labels


def _summary(fitted: LayeredModel, corpus: Corpus) -> list[str]:
    """What was new, how far annotators agree on all of it, and what the user should know."""
    from quorate.evaluate.describe import agreement_in_words, agreement_of

    parts = _parts(fitted)
    lines = by_layer({name: [one.updated_.sentence()] for name, one in parts.items()})
    lines.append(f"{agreement_in_words(agreement_of(fitted.result_))}, on {counted(len(fitted.result_), 'document')}")
    if corpus.n_labels and not all(one.has_documents for one in parts.values()):
        lines.append("note: the model was saved without its documents: labels that it has seen would count again")
    return lines + [f"note: {note}" for note in corpus.notes]


def _record(fitted: LayeredModel, saved: str | None) -> dict[str, Any]:
    """The same for a program."""
    from quorate.evaluate.describe import agreement_of

    result, parts = fitted.result_, _parts(fitted)
    annotators = {name for one in parts.values() for name in one.annotators_.names}
    records = {name: one.updated_._asdict() for name, one in parts.items()}
    return {
        **(next(iter(records.values())) if len(records) == 1 else {"layers": records}),
        "documents": len(result),
        "annotators": len(annotators),
        "agreement": agreement_of(result),
        "model": saved,
    }
