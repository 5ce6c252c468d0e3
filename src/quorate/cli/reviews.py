"""The command about reviewers: who decided what, how far they agree, and what is to be settled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorate.cli.common import (
    Json,
    Quiet,
    Reading,
    app,
    cell,
    check_json,
    check_outputs,
    console,
    reads,
    say,
    say_notes,
    spare_what_was_checked,
    tell,
)
from quorate.cli.tables import number, plain, print_json, table_of
from quorate.errors import SettingsError

if TYPE_CHECKING:
    from quorate.corpus.records import Corpus
    from quorate.corpus.spans import Span
    from quorate.evaluate.metrics import PairAgreement
    from quorate.reviews import Dispute, Reviewer, Reviews, Says

__all__ = ["reviews"]


@app.command(
    epilog="Examples:\n\n"
    "quorate reviews ann.jsonl bob.jsonl\n\n"
    "quorate reviews ann.jsonl bob.jsonl --consensus consensus.jsonl -o adjudicate.jsonl\n\n"
    "quorate reviews ann.jsonl bob.jsonl --as-annotators -o reviewers.jsonl"
)
@reads
def reviews(
    known: Annotated[
        list[str], typer.Argument(metavar="KNOWN", help="Files of reviews, as a report exports and --known takes them.")
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="INPUT", help="The annotations, if reviews do not hold the tokens themselves."),
    ] = None,
    consensus: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also say how far each reviewer agrees with this consensus, as JSONL."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write what is in dispute here, to be settled, as JSONL."),
    ] = None,
    as_annotators: Annotated[
        bool,
        typer.Option("--as-annotators", help="Write the reviews as annotations, each reviewer an annotator, and stop."),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Say how far reviewers agree and list what they dispute; exit code 1 if something is still to be settled."""
    from quorate.formats.jsonl import save_corpus
    from quorate.reviews import read, write_adjudication

    if "-" in known and "-" in (inputs or ()):
        raise SettingsError("standard input can be read once: - is KNOWN and --input (give one as a file)")
    check_json(as_json, output or ("-" if as_annotators else ""))
    check_outputs([*known, *(inputs or ()), *([] if consensus is None else [consensus])], [output])
    if output is not None:
        spare_what_was_checked(output)
    found = read(known, _corpus(inputs, reading, quiet), max_size=reading.options["max_size"])
    if as_annotators:
        save_corpus(found.as_corpus(), output or "-")
        return
    beside = () if consensus is None else _beside(found, consensus, reading.options["max_size"])
    if as_json:
        print_json(_record(found, beside))
    elif output != "-":
        _show(found, beside)
    if output is not None and found.disputes:
        write_adjudication(found, output)
        if not quiet and output != "-":
            say([f"{output}: fill in 'gold', make 'checked' true, and give it back with the others"])
    if found.disputes:
        raise typer.Exit(1)


def _corpus(inputs: list[str] | None, reading: Reading, quiet: bool) -> Corpus | None:
    if not inputs:
        return None
    corpus = reading.corpus(inputs)
    if not quiet:
        say_notes(corpus)
    return corpus


def _beside(found: Reviews, consensus: str, max_size: str | None) -> Sequence[PairAgreement]:
    """How far each reviewer agrees with a consensus."""
    from quorate.formats import read_consensus

    tags = {record.id: record.tags for record in read_consensus(consensus, max_size=max_size)}
    return found.agreement_with(tags)


def _record(found: Reviews, beside: Sequence[PairAgreement]) -> dict[str, Any]:
    """Everything, as JSON has it."""
    reviewers = [
        plain(reviewer) | {"first": _iso(reviewer.first), "last": _iso(reviewer.last)} for reviewer in found.reviewers
    ]
    disputes = [plain(dispute) | {"says": [_says(one) for one in dispute.says]} for dispute in found.disputes]
    return {
        "documents": len(found.decisions),
        "reviewers": reviewers,
        "agreement": plain(found.agreement),
        "consensus": plain(beside),
        "disputes": disputes,
    }


def _says(one: Says) -> dict[str, Any]:
    return plain(one) | {"spans": [_span(span) for span in one.spans]}  # type: ignore[no-any-return]


def _span(span: Span) -> dict[str, Any]:
    place = {"start": span.start, "end": span.end, "label": span.label}
    return place | ({"pieces": span.pieces} if span.pieces else {})


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _show(found: Reviews, beside: Sequence[PairAgreement]) -> None:
    """Everything, on a terminal; the first line is the answer."""
    documents = len({dispute.document for dispute in found.disputes})
    tell(f"documents in dispute: {documents:,} of {len(found.decisions):,}")
    print()
    _show_reviewers(found.reviewers)
    for pairs in (found.agreement, beside):
        if pairs:
            print()
            _show_pairs(pairs)
    for dispute in found.disputes:
        print()
        _show_dispute(dispute, found.corpus[dispute.document].tokens)


def _show_reviewers(reviewers: Sequence[Reviewer]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("reviewer", overflow="fold")
    for name in ("documents", "spans", "adjudicated"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("first", "last"):
        table.add_column(name, no_wrap=True)
    for one in reviewers:
        counts = (f"{one.documents:,}", f"{one.spans:,}", f"{one.adjudicated:,}")
        table.add_row(cell(one.name), *counts, _minute(one.first), _minute(one.last))
    console().print(table)


def _minute(time: datetime | None) -> str:
    return "–" if time is None else f"{time:%Y-%m-%d %H:%M}"


def _show_pairs(pairs: Sequence[PairAgreement]) -> None:
    table = table_of(["reviewer", "and"], ["documents", "span F1", "kappa"])
    for pair in pairs:
        scores = (number(pair.span_f1), number(pair.kappa))
        table.add_row(cell(pair.first), cell(pair.second), f"{pair.documents:,}", *scores)
    console().print(table)


def _show_dispute(dispute: Dispute, tokens: Sequence[str]) -> None:
    where = f"token {dispute.start + 1}" + ("" if dispute.end == dispute.start + 1 else f" to {dispute.end}")
    tell(f"document {dispute.document!r}, {where}: {' '.join(dispute.tokens)}")
    for one in dispute.says:
        role = " (adjudicated)" if one.adjudicated else ""
        note = f" – {one.note}" if one.note else ""
        tell(f"  {one.reviewer}{role}: {_in_words(one, tokens)}{note}")


def _in_words(one: Says, tokens: Sequence[str]) -> str:
    """The spans with their own words, of those of the document; or, of plain labels, the labels."""
    if not one.spans:
        labels = [tag or "?" for tag in one.tags]
        return "no span" if set(labels) <= {"O", "?"} else " ".join(labels)
    return ", ".join(f"{span.label} {' '.join(tokens[position] for position in span.tokens)}" for span in one.spans)
