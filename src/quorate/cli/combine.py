"""Commands that combine annotations: aggregate, predict, annotators, methods, demo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import quorate
from quorate.cli.common import (
    Cluster,
    Engine,
    Inputs,
    Output,
    Probabilities,
    Quiet,
    Reading,
    Threads,
    To,
    app,
    bar,
    check_outputs,
    console,
    fit_progress,
    reads,
    say,
    write_json,
)
from quorate.cli.known import KnownLabels, KnownOption
from quorate.cli.settings import Given, takes_settings
from quorate.errors import SettingsError
from quorate.models.settings import MODEL as _MODEL
from quorate.models.settings import READ as _DATA
from quorate.models.settings import WRITTEN as _OUT

if TYPE_CHECKING:
    from quorate.corpus.records import Corpus
    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.voting import MajorityVote
    from quorate.models.prepared import Known
    from quorate.result.annotators import AnnotatorSummaries, AnnotatorSummary
    from quorate.result.result import Accepted, Result

_ENOUGH_TO_LEARN_FROM = 200  # documents


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
def aggregate(
    inputs: Inputs,
    output: Output = "-",
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="See 'quorate methods' (default auto).", rich_help_panel=_MODEL),
    ] = None,
    settings: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Settings that 'tune' wrote; other options win.", rich_help_panel=_MODEL),
    ] = None,
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
    tagger: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A model that reads the text, learns from the consensus and joins it: crf, or context (an extra).",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    ties: Annotated[
        str | None,
        typer.Option(
            metavar="RULE", help="For mv: entity-first (default), outside-first or random.", rich_help_panel=_MODEL
        ),
    ] = None,
    to: To = None,
    probabilities: Probabilities = False,
    accept: Annotated[
        float | None,
        typer.Option(
            metavar="PRECISION",
            help="Write only documents whose spans together meet this expected precision; the others go to --review.",
            rich_help_panel=_OUT,
        ),
    ] = None,
    review: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="With --accept: where the documents for a person to look at go.", rich_help_panel=_OUT
        ),
    ] = None,
    save: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Keep the fitted model in this file.", rich_help_panel=_OUT)
    ] = None,
    meta: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write version, settings and hashes of the input as JSON.", rich_help_panel=_OUT
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Also write a report as HTML ('quorate report --help').", rich_help_panel=_OUT
        ),
    ] = None,
    threads: Threads = None,
    engine: Engine = None,
    cluster: Cluster = None,
    quiet: Quiet = False,
    *,
    given: Given,
    reading: Reading,
) -> None:
    """Combine annotations into one sequence per document, with confidence."""
    from quorate.estimators.capabilities import Saves
    from quorate.estimators.methods import DEFAULT_METHOD, estimator
    from quorate.formats import named, output_format

    others = {"tagger": tagger, "ties": ties, "n_jobs": threads, "engine": engine, "cluster": cluster}
    given |= {name: value for name, value in others.items() if value is not None}
    method, tuned = settings_from_file(settings, method)
    method = method or DEFAULT_METHOD
    model = estimator(method, **{**tuned, **given})
    if "probabilities" in model.get_params():
        soft = probabilities or any(
            named(to or output_format(path), to_write=True).soft for path in (output, review or output)
        )
        model.set_params(probabilities=soft or not quiet or report is not None or tagger is not None)
    if save is not None and not isinstance(model, Saves):
        raise SettingsError(f"method {method!r} has nothing to save (leave out --save)")
    if (accept is None) != (review is None):
        raise SettingsError("--accept and --review go together: a precision, and a file for the documents below it")
    certain = KnownLabels(known, inputs, reading.options["max_size"])
    check_outputs([*inputs, *certain.files], [output, review, save, meta, report], to)
    past = None if history is None else _history(history, model, method)
    if layers not in ("none", "auto"):
        raise SettingsError(f"--layers {layers!r} is not known (one of: none, auto)")
    if layers == "auto":
        found = reading.layers(inputs)
        if len(found) > 1:
            if any(each is not None for each in (save, accept, report, history)) or certain.files:
                raise SettingsError(
                    f"{len(found)} layers are not saved, accepted, reported, known from files or given a history "
                    "(take one by one)"
                )
            _aggregate_layers(found, method, {**tuned, **given}, certain, output, to, probabilities, meta, quiet)
            return
        corpus = next(iter(found.values()))
    else:
        corpus = reading.corpus(inputs)
    labels_known = certain.of(corpus)
    with fit_progress(quiet) as after_pass:
        model.fit(corpus, known=labels_known, progress=after_pass, **past or {})
    model.meta_["inputs"] |= certain.digests
    if save is not None and isinstance(model, Saves):
        model.save(save)
    result = model.result_
    if accept is None or review is None:
        accepted = None
        result.write(output, to, probabilities=probabilities)
    else:
        accepted = result.accept(accept)
        result.only(accepted.documents).write(output, to, probabilities=probabilities)
        result.only(accepted.review).write(review, to, probabilities=probabilities)
    if meta is not None:
        write_json(model.meta_, meta)
    if report is not None:
        make_report(model, model.result_, report, inputs=inputs, known=labels_known, quiet=quiet)
    if not quiet:
        say(_fit_summary(result, method, model.meta_["known"]) + _tagger_summary(model))
        if accepted is not None:
            say(_acceptance(accepted, str(review), calibrated=result.certificate.calibrated))


def _aggregate_layers(
    layers: dict[str, Corpus],
    method: str,
    settings: dict[str, Any],
    known: KnownLabels,
    output: str,
    to: str | None,
    probabilities: bool,
    meta: str | None,
    quiet: bool,
) -> None:
    """Combine each layer, and put the results together."""
    from quorate.estimators.methods import estimator
    from quorate.result.layers import LayeredResult

    models = {name: estimator(method, **settings) for name in layers}
    for name, corpus in layers.items():
        with fit_progress(quiet) as report:
            models[name].fit(corpus, known=known.of(corpus), progress=report)
    result = LayeredResult({name: model.result_ for name, model in models.items()})
    result.write(output, to, probabilities=probabilities)
    if meta is not None:
        write_json({name: model.meta_ for name, model in models.items()}, meta)
    if not quiet:
        for name, model in models.items():
            say(f"layer {name}: {line}" for line in _fit_summary(model.result_, method, model.meta_["known"]))


@app.command(epilog="Example: quorate predict crowd.quorate new.jsonl -o consensus.jsonl")
@reads
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'aggregate --save' wrote.")],
    inputs: Inputs,
    output: Output = "-",
    to: To = None,
    probabilities: Probabilities = False,
    threads: Threads = None,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Apply a saved model to new documents, from annotators old and new, or from none."""
    check_outputs([model, *inputs], [output], to)
    fitted = quorate.load(model).set_params(n_jobs=threads)
    result = fitted.combine(reading.corpus(inputs))
    result.write(output, to, probabilities=probabilities)
    if not quiet:
        say(_predict_summary(result, model))


@app.command(epilog="Example: quorate annotators crowd.quorate --sort accuracy")
def annotators(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'aggregate --save' wrote.")],
    sort: Annotated[
        str, typer.Option(metavar="COLUMN", help="name, labels, accuracy or informativeness.")
    ] = "informativeness",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object an annotator, with the matrices.")] = False,
) -> None:
    """Show whom to trust: the annotators of a saved model."""
    fitted = quorate.load(model)
    profiles = getattr(fitted, "profiles_", {})
    rows = _sorted(fitted.annotators_, sort)
    if as_json:
        for row in rows:
            labels = int(row.n_labels) if row.n_labels.is_integer() else row.n_labels
            record: dict[str, Any] = {"name": row.name, "labels": labels, "accuracy": _finite(row.accuracy)}
            if row.name in profiles:
                record |= profiles[row.name].plain()
            record |= {"informativeness": row.informativeness, "tags": fitted.tagset_.labels}
            print(json.dumps(record | {"matrix": row.matrix.round(6).tolist()}))
        return
    _print_annotators(rows)


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


def settings_from_file(path: str | None, method: str | None) -> tuple[str | None, dict[str, Any]]:
    """Method and settings from a file of 'tune'; a method given on the command line must be the same."""
    from quorate.models.settings import present_names

    if path is None:
        return method, {}
    try:
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
        tuned_method, settings = content["method"], dict(content["settings"])
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SettingsError(f"{path}: not a settings file (make one with: quorate tune … -o FILE)") from None
    if method is not None and method != tuned_method:
        raise SettingsError(f"{path}: these settings are for method {tuned_method!r}, not {method!r}")
    return tuned_method, present_names(settings)


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
    quiet: bool = False,
    **options: Any,
) -> None:
    """Write a report about a result, with a progress bar; documents with known labels are told apart."""
    from quorate.formats.notes import some
    from quorate.report import write_report

    given = {document.id for document in result.corpus if document.gold is not None} if known == "inline" else known
    title = options.pop("title", None) or some([Path(name).name for name in inputs])
    with bar("reporting", quiet) as progress:
        write_report(model, path, result=result, title=title, known=set(given or ()), progress=progress, **options)


def _counts(result: Result, what: str) -> str:
    corpus = result.corpus
    return f"{len(result):,} documents, {corpus.n_tokens:,} tokens, {len(corpus.annotators):,} annotators, {what}"


def _fit_summary(result: Result, method: str, n_known: int) -> list[str]:
    """What was combined, how it went, and what the user should know."""
    from quorate.formats.notes import some

    tagset, trace, corpus = result.tagset, result.trace, result.corpus
    lines = [_counts(result, method), f"scheme {tagset.scheme.value}: {some(list(tagset.types), 10)}"]
    if trace is not None:
        lines.append(f"{trace.passes} passes in {trace.seconds:.2f} s, bound {trace.bound:,.1f} ({trace.reason.value})")
    if result.choice is not None:
        lines += result.choice.reasons
    if tagset.outside is not None and result.choice is not None and result.certificate.calibrated:
        lines.append(f"expected F1 {result.certificate}: docs/accuracy.md says how far to trust that")
    if n_known:
        lines.append(f"{n_known:,} tokens have known labels")
        voted = corpus.tagset(tagset.scheme).labels
        only_known = [label for label in tagset.labels if label not in voted]
        if only_known:
            lines.append(f"note: no annotator used {some(only_known)}, only the known labels do")
    if result.repaired:
        lines.append(_repairs(result))
    lines += [f"note: {note}" for note in corpus.notes]
    idle = [row.name for row in result.annotators if not row.n_labels > 0]
    if idle:
        lines.append(f"warning: no label by {some(idle)}")
    lines += _bare_documents(result)
    if not n_known and corpus.has_gold:
        lines.append("note: the gold in the input was not used (--known inline uses it)")
    return lines


def _tagger_summary(model: BSC | CRFMA | MajorityVote) -> list[str]:
    """How the tagger's rounds went, and how far it is trusted."""
    from quorate.taggers.loop import TAGGER

    finished = getattr(model, "tagger_rounds_", ())
    if not finished:
        return _tagger_hint(model.result_)
    tagger = model.result_.annotators[TAGGER]
    changes = ", ".join(f"{100 * one_round.changed:.2f}" for one_round in finished)
    seconds = sum(one_round.seconds for one_round in finished)
    return [
        f"{TAGGER}, a model: expected accuracy {tagger.accuracy:.3f}, informativeness {tagger.informativeness:.3f}",
        f"{len(finished)} rounds in {seconds:.1f} s; % of the consensus that each changed: {changes}",
    ]


def _tagger_hint(result: Result) -> list[str]:
    """That a tagger might help, where there is enough to learn from."""
    if result.choice is None or len(result) < _ENOUGH_TO_LEARN_FROM or result.tagset.outside is None:
        return []
    return ["with --tagger crf a model reads the text too, which takes longer and often helps: docs/tagger.md"]


def _acceptance(accepted: Accepted, review: str, *, calibrated: bool) -> list[str]:
    if not accepted.documents:
        return [f"no document meets that precision; all {len(accepted.review):,} are in {review}"]
    kept, all_of_them = len(accepted.documents), len(accepted.documents) + len(accepted.review)
    unchecked = "" if calibrated else " (as the model states it, unchecked: see docs/accuracy.md)"
    return [
        f"{kept:,} of {all_of_them:,} documents accepted, {100 * accepted.precision:.1f} % of their spans right as "
        f"expected{unchecked}; {len(accepted.review):,} to look at in {review}"
    ]


def _predict_summary(result: Result, model: str) -> list[str]:
    """What was combined, and whom the model had not met."""
    from quorate.formats.notes import some

    lines = [_counts(result, f"model {model}")]
    strangers = [name for name in result.corpus.annotators if name not in result.annotators.names]
    if strangers:
        lines.append(f"note: the model has not met {some(strangers)}, and takes them for average")
    if result.repaired:
        lines.append(_repairs(result))
    lines += _bare_documents(result)
    return lines + [f"note: {note}" for note in result.corpus.notes]


def _repairs(result: Result) -> str:
    return f"{result.repaired:,} tags that could not follow the one before were repaired"


def _bare_documents(result: Result) -> list[str]:
    from quorate.formats.notes import some

    bare = [document.id for document in result.corpus if not document.annotations]
    return [f"warning: no annotator for {some(bare)}: tagged from the words and the chain alone"] if bare else []


def _finite(value: float) -> float | None:
    return value if value == value else None


def _sorted(summaries: AnnotatorSummaries, column: str) -> list[AnnotatorSummary]:
    if column not in ("name", "labels", "accuracy", "informativeness"):
        raise SettingsError(f"--sort {column!r} is not a column (one of: name, labels, accuracy, informativeness)")
    rows = list(summaries)
    if column == "name":
        return rows
    column = "n_labels" if column == "labels" else column
    return sorted(rows, key=lambda row: -getattr(row, column) if getattr(row, column) == getattr(row, column) else 1.0)


def _print_annotators(rows: list[AnnotatorSummary]) -> None:
    from quorate.cli.demo import annotator_table

    console().print(annotator_table(rows))
