"""Commands about formats: convert, formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quorate.cli.common import Json, LayeredReading, Quiet, To, app, check_outputs, reads, say, say_notes, tell
from quorate.cli.tables import print_json
from quorate.errors import SettingsError


@app.command(
    epilog="Examples:\n\n"
    "quorate convert export.json crowd.jsonl\n\n"
    "quorate convert ann.jsonl bob.jsonl crowd.conll --from doccano\n\n"
    "quorate convert consensus.jsonl train.spacy"
)
@reads
def convert(
    inputs: Annotated[list[str], typer.Argument(metavar="IN", help="Annotations in any format, or a consensus.")],
    output: Annotated[str, typer.Argument(metavar="OUT", help="Where to write; the ending decides the format.")],
    to: To = None,
    quiet: Quiet = False,
    *,
    reading: LayeredReading,
) -> None:
    """Convert annotations, or a consensus, from one format to another."""
    from quorate import formats
    from quorate.formats.consensus_export import consensus_export, is_consensus

    check_outputs(inputs, [output], to or formats.output_format(output))
    if len(inputs) == 1 and inputs[0] != "-" and Path(inputs[0]).is_file() and is_consensus(inputs[0]):
        if any(value for name, value in reading.options.items() if name != "max_size"):
            raise SettingsError(f"{inputs[0]}: a consensus is taken as it is (leave out what changes it)")
        records = formats.read_consensus(inputs[0], max_size=reading.options["max_size"])
        formats.write(consensus_export(records, inputs[0]), output, to)
        if not quiet:
            say([f"{len(records):,} documents of a consensus"])
        return
    layers = reading.layers(inputs)
    corpus = layers.corpus
    formats.write(layers if layers.single is None else layers.single, output, to)
    if not quiet:
        say([f"{len(corpus):,} documents, {corpus.n_tokens:,} tokens, {len(corpus.annotators):,} annotators"])
        say_notes(corpus)


@app.command("formats")
def list_formats(as_json: Json = False) -> None:
    """List the formats that are read and written."""
    from quorate.formats import FORMATS

    if as_json:
        told = ("title", "reads", "writes", "extra")
        print_json([{"name": name} | {each: getattr(one, each) for each in told} for name, one in FORMATS.items()])
        return
    width = max(map(len, FORMATS))
    for name, format in FORMATS.items():
        does = ", ".join(what for what, able in (("read", format.reads), ("write", format.writes)) if able)
        extra = f" (needs quorate[{format.extra}])" if format.extra else ""
        tell(f"{name:<{width}}  {does:<11}  {format.title}{extra}", indent=width + 15)
