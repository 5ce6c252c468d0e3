"""Commands about data: encoded corpora, and the paper's archives."""

from __future__ import annotations

from typing import Annotated

import typer

from quorate.cli.common import (
    Inputs,
    Json,
    Output,
    Quiet,
    Reading,
    app,
    bar,
    check_outputs,
    reads,
    say,
    say_notes,
    tell,
)
from quorate.cli.project_run import refuse_outputs_of_a_run
from quorate.cli.tables import print_json
from quorate.errors import SettingsError
from quorate.wording import corpus_size

datasets = typer.Typer(no_args_is_help=True, help="The paper's data, from the archives that their makers publish.")
app.add_typer(datasets, name="datasets")


@app.command(epilog="Example: quorate encode shards/ -o corpus.qr, then quorate aggregate corpus.qr -o consensus.jsonl")
@reads
def encode(
    context: typer.Context,
    inputs: Inputs,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The encoded corpus, usually .qr.")],
    scheme: Annotated[
        str | None,
        typer.Option(metavar="SCHEME", help="How tags mark spans: bio, bioes, io or plain; inferred if not given."),
    ] = None,
    invalid: Annotated[
        str, typer.Option(metavar="RULE", help="Tags that cannot follow the one before: repair, keep or error.")
    ] = "repair",
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Encode a corpus once, for many fits, or for one that does not fit into memory."""
    from quorate.corpus.tags import Invalid
    from quorate.model.settings import choice, scheme_named
    from quorate.storage.corpora import StoredCorpus, encode_files

    if output == "-":
        raise SettingsError("an encoded corpus needs a file of its own (give one with -o)")
    refuse_outputs_of_a_run(context, {"-o": output})
    check_outputs(inputs, [output])
    rule, tags = choice(Invalid, "invalid", invalid), scheme_named(scheme)
    with bar("encoding", quiet) as report:
        after_document = None if report is None else lambda number: report(number, None, "documents")
        encode_files(*inputs, output=output, scheme=tags, invalid=rule, progress=after_document, **reading.options)
    if not quiet:
        corpus = StoredCorpus(output)
        say([corpus_size(len(corpus), corpus.n_tokens, len(corpus.annotators))])
        say_notes(corpus)


@datasets.command("list")
def list_all(as_json: Json = False) -> None:
    """List the datasets that can be converted, and the archive each comes in."""
    from quorate.datasets import DATASETS

    if as_json:
        shown = ("archive", "description")
        print_json([{"name": name} | {each: getattr(one, each) for each in shown} for name, one in DATASETS.items()])
        return
    for name, dataset in DATASETS.items():
        tell(f"{name:<5} {dataset.archive}: {dataset.description}", indent=6)


@datasets.command(epilog="Example: quorate datasets convert ner crf-ma-NER-task1.zip -o ner.jsonl")
def convert(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="ner|pico", help="Which dataset.")],
    archive: Annotated[str, typer.Argument(metavar="ARCHIVE", help="The archive as published.")],
    output: Output = "-",
) -> None:
    """Convert an archive to JSONL; what had to be aligned or repaired is counted."""
    from quorate.datasets import convert as read_archive
    from quorate.formats.jsonl import save_corpus

    refuse_outputs_of_a_run(context, {"-o": output})
    check_outputs([archive], [output])
    corpus = read_archive(name, archive)
    save_corpus(corpus, output)
    say([corpus_size(len(corpus), corpus.n_tokens, len(corpus.annotators))])
    say_notes(corpus)
