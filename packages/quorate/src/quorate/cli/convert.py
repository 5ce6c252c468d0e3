"""Commands about formats: convert, formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorate.cli.common import (
    Json,
    LayeredReading,
    Quiet,
    To,
    app,
    check_outputs,
    not_written,
    reads,
    say,
    say_notes,
    tell,
    typed,
)
from quorate.cli.project_run import refuse_outputs_of_a_run
from quorate.cli.tables import print_json
from quorate.errors import QuorateError, SettingsError
from quorate.wording import corpus_size, counted

if TYPE_CHECKING:
    from quorate.formats.exports import Export


@app.command(
    epilog="Examples:\n\n"
    "quorate convert export.json crowd.jsonl\n\n"
    "quorate convert ann.jsonl bob.jsonl crowd.conll --from doccano\n\n"
    "quorate convert crowd.jsonl --to conll | head\n\n"
    "quorate convert consensus.jsonl train.spacy\n\n"
    "quorate convert audit.jsonl tasks.json --to label-studio"
)
@reads
def convert(
    context: typer.Context,
    inputs: Annotated[
        list[str] | None, typer.Argument(metavar="IN", help="Annotations in any format, or a consensus.")
    ] = None,
    last: Annotated[
        str | None,
        typer.Argument(metavar="OUT", help="Where to write, unless -o says it; the ending decides the format."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; with --to, standard output if not given."),
    ] = None,
    to: To = None,
    quiet: Quiet = False,
    *,
    reading: LayeredReading,
) -> None:
    """Convert annotations, a consensus, or the plan of an audit from one format to another.

    From a plan, a tool gets the documents to check, with the consensus to correct.
    """
    from quorate import formats

    given, is_named = inputs if inputs and typed(context, "inputs") else [], output is not None
    if output is not None:
        inputs = [*given, last] if last is not None else inputs
    elif given and last is not None:
        output = last
    elif to is not None:  # a project's inputs leave the one name that was typed an input
        inputs, output = [last] if last is not None else inputs, "-"
    if not inputs or output is None:
        raise SettingsError(_where_to(last, in_project=bool(inputs)))
    refuse_outputs_of_a_run(context, {"-o": output})
    if not is_named:
        _refuse_what_may_be_an_input(inputs, output, to)
    format = to or formats.output_format(output)
    formats.named(format, to_write=True).check_installed()
    check_outputs(inputs, [output], format)
    whole = _taken_as_it_is(inputs, format, reading)
    if whole is not None:
        what, export = whole
        lost = formats.write(export, output, to)
        if not quiet:
            say([f"{counted(sum(1 for _ in export.documents()), 'document')} of {what}", *_written(output, lost)])
        return
    layers = reading.layers(inputs)
    corpus = layers.corpus
    lost = formats.write(layers if layers.single is None else layers.single, output, to)
    if not quiet:
        say([corpus_size(len(corpus), corpus.n_tokens, len(corpus.annotators)), *_written(output, lost)])
        say_notes(corpus)


def _refuse_what_may_be_an_input(inputs: list[str], output: str, to: str | None) -> None:
    """The last of several names may be meant to be read: where two come before it, or it is of another format."""
    from quorate import formats

    if not Path(output).is_file():
        return
    try:
        is_another = to is not None and to not in (formats.output_format(output), formats.format_of(output))
    except QuorateError:
        is_another = False
    if is_another or len(inputs) > 1:
        raise SettingsError(
            f"{output}: it is there already, and would be lost (if it is to be read, name another OUT behind it"
            f"{', or -o - for standard output' if to is not None else ''}; -o {output} writes over it)"
        )


def _written(output: str, lost: list[str]) -> list[str]:
    """Where it is, and what the format could not hold."""
    place = [] if output == "-" else [f"written to {output}"]
    return [*place, *not_written(output, lost)]


def _where_to(only: str | None, *, in_project: bool) -> str:
    """What to give, where one name or none was."""
    if only is None:
        return "nothing to convert (quorate convert IN OUT)"
    if in_project:
        return (
            f"{only}: read or written? (quorate convert {only} OUT, or -o {only} to write the project's inputs there)"
        )
    return f"{only}: where to? (quorate convert {only} OUT, or --to FORMAT for standard output)"


def _taken_as_it_is(inputs: list[str], to: str, reading: LayeredReading) -> tuple[str, Export] | None:
    """A single file that is a consensus or a plan: which of them, and its pages."""
    from quorate import formats
    from quorate.formats.consensus_export import consensus_export, is_consensus
    from quorate.formats.plan_export import is_plan, plan_export

    path, max_size = inputs[0], reading.options["max_size"]
    if len(inputs) > 1 or path == "-" or not Path(path).is_file():
        return None
    what = "a consensus" if is_consensus(path) else "a plan to check" if is_plan(path) else None
    if what is None:
        return None
    if any(value for name, value in reading.options.items() if name != "max_size"):
        raise SettingsError(f"{path}: {what} is taken as it is (leave out what changes it)")
    if is_plan(path):
        if to == "jsonl":  # where nothing would tell what is proposed from what somebody has checked
            raise SettingsError(f"{path}: a plan is JSONL already (correct it as it is, or convert it for a tool)")
        return what, plan_export(path, max_size=max_size)
    return what, consensus_export(formats.read_consensus(path, max_size=max_size), path)


@app.command("formats")
def list_formats(as_json: Json = False) -> None:
    """List the formats that are read and written."""
    from quorate.formats import FORMATS

    if as_json:
        shown = ("title", "reads", "writes", "extra")
        print_json([{"name": name} | {each: getattr(one, each) for each in shown} for name, one in FORMATS.items()])
        return
    width = max(map(len, FORMATS))
    for name, format in FORMATS.items():
        does = ", ".join(what for what, able in (("read", format.reads), ("write", format.writes)) if able)
        extra = f" (needs quorate[{format.extra}])" if format.extra else ""
        tell(f"{name:<{width}}  {does:<11}  {format.title}{extra}", indent=width + 15)
