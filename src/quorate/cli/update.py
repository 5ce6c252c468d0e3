"""The command that goes on from a saved model: update."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import quorate
from quorate.cli.common import Json, Quiet, Reading, Threads, app, check_json, check_outputs, reads, say
from quorate.cli.known import KnownLabels, KnownOption
from quorate.cli.options import WithoutDocuments, Writing, takes_groups
from quorate.cli.settings import Given, takes_output_settings
from quorate.cli.tables import print_json
from quorate.errors import SettingsError
from quorate.models.settings import WRITTEN

if TYPE_CHECKING:
    from quorate.corpus.records import Corpus
    from quorate.estimators.bsc import BSC
    from quorate.models.prepared import Known

_NO_INPUT = "nothing to update with (give files with new labels, or known ones with --known FILE)"


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
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'aggregate --save' wrote.")],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[INPUT]...", help="New labels, or a whole export: what the model has is skipped."),
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
    as_json: Json = False,
    threads: Threads = None,
    quiet: Quiet = False,
    given: Given,
    reading: Reading,
) -> None:
    """Continue from a saved model with new labels, documents and annotators, without a fit from scratch.

    MODEL is replaced when everything is done; an interrupted update leaves it as it was.
    """
    files = inputs or []
    certain = KnownLabels(known, files, reading.options["max_size"])
    writing.check()
    check_json(as_json, writing.output)
    if not files and not certain.files:
        raise SettingsError(_NO_INPUT)
    check_outputs([model, *files, *certain.files], [writing.output, save], writing.to)
    check_outputs([*files, *certain.files], [model])
    fitted = _loaded(model).set_params(n_jobs=threads, **given.anew())
    corpus, labels = _read(fitted, files, certain, reading)
    fitted.update(corpus, known=labels, passes=passes)
    fitted.meta_["inputs"] |= certain.digests
    result = fitted.result_
    written = result.only([result.corpus.position(one.id) for one in corpus]) if only_new else result
    writing.write(written, quiet=quiet)
    done = fitted.updated_
    if save is not None or done.new or done.changed or passes or without_documents:
        fitted.save(save or model, documents=not without_documents)
    if as_json:
        print_json(_record(fitted, model if save is None else save))
    elif not quiet:
        say(_summary(fitted, corpus))
        if writing.output != "-":
            say([f"written to {writing.output} (model: {model if save is None else save})"])


def _loaded(path: str) -> BSC:
    from quorate.estimators.capabilities import Updates

    fitted = quorate.load(path)
    if hasattr(fitted, "layers_"):
        raise SettingsError(
            f"{path}: a model in layers is not updated here (fit it again: quorate aggregate --layers auto)"
        )
    if not isinstance(fitted, Updates):
        raise SettingsError(f"{path}: a model of this kind cannot go on with new labels (fit it again)")
    return fitted


def _read(fitted: BSC, inputs: list[str], known: KnownLabels, reading: Reading) -> tuple[Corpus, Known]:
    """The documents of an update and their known labels; files of those may be of documents that the model has."""
    from quorate.corpus.records import Corpus

    corpus = reading.corpus(inputs) if inputs else Corpus([])
    if not known.files:
        return corpus, known.of(corpus)
    ids = {one.id for one in corpus}
    # Their gold was in an earlier input, and is not that of this one.
    others = [replace(one, gold=None) for one in fitted.kept_documents() if one.id not in ids]
    labels = known.of(Corpus([*corpus, *others]))
    named = [one for one in others if labels is not None and one.id in labels]
    whole = Corpus([*corpus, *named], notes=corpus.notes, digests=corpus.digests, profiles=corpus.profiles)
    return whole, labels


def _summary(fitted: BSC, corpus: Corpus) -> list[str]:
    """What was new, how good the whole is as far as that can be told, and what the user should know."""
    result = fitted.result_
    lines = [fitted.updated_.sentence()]
    if result.certificate.given:
        lines.append(f"estimate from agreement, of all {len(result):,} documents: F1 {result.certificate}")
    if fitted.tagger_note_:
        lines.append(f"note: {fitted.tagger_note_}")
    if not fitted.has_documents:
        lines.append("note: the model was saved without its documents: labels that it has met before counted again")
    return lines + [f"note: {note}" for note in corpus.notes]


def _record(fitted: BSC, saved: str) -> dict[str, Any]:
    """The same for a program."""
    result, certificate = fitted.result_, fitted.result_.certificate
    estimate = {"f1": certificate.f1, "low": certificate.low, "high": certificate.high} if certificate.given else None
    counts = {"documents": len(result), "annotators": len(result.annotators)}
    return {
        **fitted.updated_._asdict(),
        **counts,
        "estimate": estimate,
        "no_estimate": certificate.reason or None,
        "model": saved,
    }
