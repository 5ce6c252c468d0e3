"""Commands that combine annotations: aggregate, predict, annotators, methods, demo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import quorate
from quorate.cli.common import (
    Inputs,
    Quiet,
    Reading,
    Threads,
    app,
    bar,
    check_outputs,
    console,
    fit_progress,
    reads,
    say,
    tell,
    write_json,
)
from quorate.cli.known import KnownLabels, KnownOption
from quorate.cli.options import Chosen, Keeping, Machine, Method, Writing, takes_groups
from quorate.cli.settings import Given, takes_output_settings, takes_settings
from quorate.cli.summaries import acceptance, fit_summary, predict_summary, tagger_summary
from quorate.errors import SettingsError
from quorate.models.settings import READ as _DATA

if TYPE_CHECKING:
    from quorate.audit.acceptance import Guaranteed
    from quorate.corpus.records import Corpus
    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.voting import MajorityVote
    from quorate.models.prepared import Known
    from quorate.result.ambiguity import Ambiguity
    from quorate.result.annotators import AnnotatorSummaries, AnnotatorSummary
    from quorate.result.habits import SpanHabits
    from quorate.result.result import Accepted, Result
    from quorate.result.sources import Sources

_SHARES = ("found", "exact", "shifted", "type", "missed", "invented", "precision", "coverage")
_COLUMNS = ("name", "labels", "accuracy", "informativeness", *_SHARES)
_WIDE = 120  # columns of a terminal that has room for every interval


@app.command(
    epilog="Examples:\n\n"
    "quorate aggregate crowd.jsonl -o consensus.jsonl\n\n"
    "quorate aggregate shards/ -o consensus.jsonl --save crowd.quorate --probabilities\n\n"
    "quorate aggregate crowd.jsonl -o sure.jsonl --accept 0.95 --review unsure.jsonl\n\n"
    "quorate aggregate crowd.jsonl -o consensus.jsonl --tagger crf\n\n"
    "zcat crowd.jsonl.gz | quorate aggregate - --method mv > votes.jsonl"
)
@reads
@takes_settings
@takes_groups
def aggregate(
    inputs: Inputs,
    how: Method,
    layers: Annotated[
        str,
        typer.Option(
            metavar="none|auto",
            help="Overlapping spans: none keeps the longer; auto combines them in layers of their own.",
            rich_help_panel=_DATA,
        ),
    ] = "none",
    known: KnownOption = None,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A saved model of an earlier project: what it learned of annotators is their prior here.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    *,
    writing: Writing,
    keeping: Keeping,
    machine: Machine,
    quiet: Quiet = False,
    given: Given,
    reading: Reading,
) -> None:
    """Combine annotations into one sequence per document, with confidence."""
    writing.check(keeping.review)
    chosen = how.chosen({**given, **machine.given()})
    model = chosen.estimator()
    if "probabilities" in model.get_params():
        soft = writing.soft() or writing.soft(keeping.review)
        model.set_params(probabilities=soft or not quiet or keeping.report is not None)
    keeping.check(chosen.method, model)
    certain = KnownLabels(known, inputs, reading.options["max_size"])
    if keeping.checked and certain.files:
        raise SettingsError("--checked is for a consensus without --known: known labels would be audited by themselves")
    outputs = [writing.output, keeping.review, keeping.save, keeping.meta, keeping.report]
    check_outputs([*inputs, *certain.files, *(keeping.checked or ())], outputs, writing.to)
    past = {} if history is None else _history(history, model, chosen.method)
    found = _read_layers(inputs, layers, reading)
    if len(found) > 1:
        if any(each is not None for each in (keeping.save, keeping.accept, keeping.report, history)) or certain.files:
            raise SettingsError(
                f"{len(found)} layers are not saved, accepted, reported, known from files or given a history "
                "(take one by one)"
            )
        _aggregate_layers(found, chosen, certain, writing, keeping.meta, quiet)
        return
    (corpus,) = found.values()
    labels = certain.of(corpus)
    with fit_progress(quiet) as after_pass:
        model.fit(corpus, known=labels, progress=after_pass, **past)
    model.meta_["inputs"] |= certain.digests
    accepted = _write(model, writing, keeping, reading.options["max_size"])
    if keeping.report is not None:
        make_report(model, model.result_, keeping.report, inputs=inputs, known=labels, quiet=quiet)
    if not quiet:
        say(fit_summary(model.result_, chosen.method, model.meta_["known"]) + tagger_summary(model))
        if writing.shares:
            say(ambiguity_summary(model.result_.ambiguity))
        if accepted is not None:
            say(acceptance(accepted, str(keeping.review), model.result_.certificate))


def ambiguity_summary(ambiguity: Ambiguity) -> list[str]:
    """How much of the text allows two readings, in a line."""
    types = ", ".join(f"{name} {100 * share:.1f} %" for name, share in ambiguity.by_type.items())
    return [f"ambiguous: {100 * ambiguity.share:.1f} % of tokens (of those marked as {types})"]


def _read_layers(inputs: list[str], layers: str, reading: Reading) -> dict[str, Corpus]:
    """The annotations, by the name of their layer; without layers they are one, which has no name."""
    if layers not in ("none", "auto"):
        raise SettingsError(f"--layers {layers!r} is not known (one of: none, auto)")
    return reading.layers(inputs) if layers == "auto" else {"": reading.corpus(inputs)}


def _write(
    model: BSC | CRFMA | MajorityVote, writing: Writing, keeping: Keeping, max_size: str | None
) -> Accepted | Guaranteed | None:
    """The model, the consensus and what is told of the fit; which documents were accepted, if that was asked."""
    from quorate.estimators.capabilities import Saves

    if keeping.save is not None and isinstance(model, Saves):
        model.save(keeping.save)
    result, accepted = model.result_, None
    if keeping.accept is None:
        writing.write(result)
    else:
        accepted = _accepted(result, keeping.accept, keeping.checked, max_size)
        writing.write(result.only(accepted.documents))
        writing.write(result.only(accepted.review), keeping.review)
    if keeping.meta is not None:
        write_json(model.meta_, keeping.meta)
    return accepted


def _accepted(
    result: Result, precision: float, checked: list[str] | None, max_size: str | None
) -> Accepted | Guaranteed:
    """The documents that meet a precision: by an audit if there is one, else as expected."""
    if not checked:
        return result.accept(precision)
    from quorate import audit

    return audit.result(result, checked, max_size=max_size).accept(precision)


def _aggregate_layers(
    layers: dict[str, Corpus], chosen: Chosen, known: KnownLabels, writing: Writing, meta: str | None, quiet: bool
) -> None:
    """Combine each layer, and put the results together."""
    from quorate.result.layers import LayeredResult

    models = {name: chosen.estimator() for name in layers}
    for name, corpus in layers.items():
        with fit_progress(quiet) as report:
            models[name].fit(corpus, known=known.of(corpus), progress=report)
    writing.write(LayeredResult({name: model.result_ for name, model in models.items()}))
    if meta is not None:
        write_json({name: model.meta_ for name, model in models.items()}, meta)
    if not quiet:
        for name, model in models.items():
            say(f"layer {name}: {line}" for line in fit_summary(model.result_, chosen.method, model.meta_["known"]))


@app.command(
    epilog="Examples:\n\n"
    "quorate predict crowd.quorate new.jsonl -o consensus.jsonl\n\n"
    "quorate predict crowd.quorate new.jsonl -o sure.jsonl --precision 0.95"
)
@reads
@takes_output_settings
@takes_groups
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'aggregate --save' wrote.")],
    inputs: Inputs,
    writing: Writing,
    threads: Threads = None,
    quiet: Quiet = False,
    *,
    given: Given,
    reading: Reading,
) -> None:
    """Apply a saved model to new documents, from annotators old and new, or from none."""
    writing.check()
    check_outputs([model, *inputs], [writing.output], writing.to)
    fitted = quorate.load(model).set_params(n_jobs=threads)
    if given.keys() & {"precision", "recall"}:  # one that the model was saved with no longer holds
        given = Given({"precision": None, "recall": None} | given)
    fitted.set_params(**given)
    result = fitted.combine(reading.corpus(inputs))
    writing.write(result)
    if not quiet:
        say(predict_summary(result, model))


@app.command(epilog="Example: quorate annotators crowd.quorate --sort accuracy")
def annotators(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'aggregate --save' wrote.")],
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help=f"{', '.join(_COLUMNS)}; informativeness, of rules precision, if not given."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object an annotator, with the matrices.")] = False,
) -> None:
    """Show whom to trust: the annotators of a saved model, people, models and rules apart, and who errs together."""
    fitted = quorate.load(model)
    rows = _sorted(fitted.annotators_, sort, fitted.sources_)
    if as_json:
        for row in rows:
            tags = {"tags": fitted.tagset_.labels, "matrix": row.matrix.round(6).tolist()}
            print(json.dumps(_record(row, fitted.sources_) | tags))
        return
    _print_annotators(rows, fitted.sources_)


@app.command()
def methods() -> None:
    """List the methods."""
    from quorate.estimators.methods import METHODS

    width = max(map(len, METHODS))
    for name, method in METHODS.items():
        print(f"{name:<{width}}  {method.description}")


@app.command(epilog="Example: quorate demo --write crowd.jsonl, then quorate aggregate crowd.jsonl")
def demo(
    write: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write the sample crowd to this file, as JSONL.")
    ] = None,
) -> None:
    """Combine a small sample crowd (simulated) and compare the consensus with gold."""
    from quorate.cli.demo import show
    from quorate.formats import jsonl
    from quorate.storage.files.atomic import written_whole

    corpus = quorate.sample()
    if write is not None:
        with written_whole(write) as stream:
            jsonl.write_corpus(corpus, stream)
    show(corpus, console(), written=write)


def _history(path: str, model: Any, method: str) -> dict[str, Any]:
    """The option of a fit for an earlier project's model."""
    from quorate.estimators.capabilities import Updates

    past = quorate.load(path)
    if not isinstance(model, Updates) or not isinstance(past, Updates):
        whose = f"method {method!r}" if not isinstance(model, Updates) else f"the model in {path}"
        raise SettingsError(f"{whose} has no annotators that a history could be of (leave out --history)")
    return {"history": past}


def make_report(
    model: BSC | CRFMA | MajorityVote,
    result: Result,
    path: str,
    *,
    inputs: list[str],
    known: Known = None,
    audit: list[str] | None = None,
    max_size: str | None = None,
    quiet: bool = False,
    **options: Any,
) -> None:
    """Write a report about a result, with a progress bar; documents with known labels are told apart."""
    from quorate.formats.notes import some
    from quorate.report import write_report
    from quorate.report.audits import read_audit

    given = {document.id for document in result.corpus if document.gold is not None} if known == "inline" else known
    title = options.pop("title", None) or some([Path(name).name for name in inputs])
    options["audit"] = None if not audit else read_audit(result, audit, max_size=max_size)
    with bar("reporting", quiet) as progress:
        write_report(model, path, result=result, title=title, known=set(given or ()), progress=progress, **options)


def _finite(value: float) -> float | None:
    return value if value == value else None


def _record(row: AnnotatorSummary, sources: Sources) -> dict[str, Any]:
    """An annotator as JSON has them, but for the matrix."""
    labels = int(row.n_labels) if row.n_labels.is_integer() else row.n_labels
    record: dict[str, Any] = {"name": row.name, "labels": labels, "accuracy": _finite(row.accuracy)}
    if row.name in sources.profiles:
        record |= sources.profiles[row.name].plain()
    record["source"] = sources.kind(row.name).value
    for together in sources.together:
        if row.name in together.names:
            record["errs_with"] = {"names": together.names, "votes": together.votes}
    spans = _spans_of(row.habits)
    by_type = {kind: _spans_of(habits) for kind, habits in row.by_type.items()}
    return record | {"informativeness": row.informativeness, "spans": spans, "by_type": by_type}


def _spans_of(habits: SpanHabits) -> dict[str, Any] | None:
    """What an annotator does with spans, as JSON has it; ``None`` where nothing is known of that."""
    from quorate.result.habits import BOUNDS, KINDS

    if not habits.spans and not habits.marks:
        return None
    found: dict[str, Any] = {"shown": habits.spans, "marked": habits.marks}
    for name in ("found", *KINDS, *BOUNDS, "invented", "precision", "coverage"):
        low, high = habits.interval(name)
        found[name] = {"share": _finite(habits.share(name)), "low": low, "high": high}
    return found


def _sorted(summaries: AnnotatorSummaries, column: str | None, sources: Sources) -> list[AnnotatorSummary]:
    """By a column, the most first; without one by what they tell, and rules by what of theirs is surely right."""
    from quorate.result.sources import SourceKind

    if column is not None and column not in _COLUMNS:
        raise SettingsError(f"--sort {column!r} is not a column (one of: {', '.join(_COLUMNS)})")
    rows = list(summaries)
    if column == "name":
        return rows
    if column is None:
        is_rule = {row.name: sources.kind(row.name) is SourceKind.RULES for row in rows}
        others = sorted((row for row in rows if not is_rule[row.name]), key=lambda row: -row.informativeness)
        rules = (row for row in rows if is_rule[row.name])
        return [*others, *sorted(rules, key=lambda row: -row.habits.interval("precision")[0])]
    column = {"labels": "n_labels", "type": "wrong_type"}.get(column, column)
    return sorted(rows, key=lambda row: -getattr(row, column) if getattr(row, column) == getattr(row, column) else 1.0)


def _print_annotators(rows: list[AnnotatorSummary], sources: Sources) -> None:
    from quorate.cli.annotator_tables import tables_by_kind
    from quorate.result.sources import votes_in_words

    shown = console()
    for n, (heading, table) in enumerate(tables_by_kind(rows, sources, wide=shown.width >= _WIDE)):
        if n:
            print()
        if heading:
            print(heading)
        shown.print(table)
    lines = [str(together) for together in sources.together]
    if sources.votes is not None and lines:
        lines.insert(0, votes_in_words(*sources.votes))
    if lines:
        print()
    for line in lines:
        tell(line)
