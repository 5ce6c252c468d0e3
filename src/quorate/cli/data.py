"""Commands about the paper's data."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from quorate.cli.common import Output, app

datasets = typer.Typer(no_args_is_help=True, help="The paper's data, from the archives that their makers publish.")
app.add_typer(datasets, name="datasets")


@datasets.command("list")
def list_all() -> None:
    """List the datasets that can be converted, and the archive each comes in."""
    from quorate.datasets import DATASETS

    for name, dataset in DATASETS.items():
        print(f"{name:<5} {dataset.archive}: {dataset.description}")


@datasets.command(epilog="Example: quorate datasets convert ner crf-ma-NER-task1.zip -o ner.jsonl")
def convert(
    name: Annotated[str, typer.Argument(metavar="ner|pico", help="Which dataset.")],
    archive: Annotated[str, typer.Argument(metavar="ARCHIVE", help="The archive as published.")],
    output: Output = "-",
) -> None:
    """Convert an archive to JSONL; what had to be aligned or mended is counted."""
    from quorate.datasets import convert as read_archive
    from quorate.files import written_whole
    from quorate.formats.jsonl import write_corpus

    corpus = read_archive(name, archive)
    with written_whole(output) as stream:
        write_corpus(corpus, stream)
    counts = f"{len(corpus):,} documents, {corpus.tokens:,} tokens, {len(corpus.annotators)} annotators"
    print(f"quorate: {counts}", file=sys.stderr)
    for note in corpus.notes:
        print(f"quorate: note: {note}", file=sys.stderr)
