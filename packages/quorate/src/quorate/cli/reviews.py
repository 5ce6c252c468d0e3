"""The command about reviewers: who decided what, how far they agree, and what is to be settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorate.cli.common import (
    Json,
    LayeredReading,
    Quiet,
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
from quorate.cli.project_run import refuse_outputs_of_a_run
from quorate.cli.tables import number, plain, points, print_json, table_of
from quorate.errors import InputError, SettingsError

if TYPE_CHECKING:
    from quorate.corpus.spans import Span
    from quorate.evaluate.metrics import PairAgreement
    from quorate.reviews import Dispute, Reviewer, Reviews, Says


@app.command(
    epilog="Examples:\n\n"
    "quorate reviews ann.jsonl bob.jsonl\n\n"
    "quorate reviews ann.jsonl bob.jsonl --consensus consensus.jsonl -o adjudicate.jsonl\n\n"
    "quorate reviews ann.jsonl bob.jsonl --as-annotators -o reviewers.jsonl"
)
@reads
def reviews(
    context: typer.Context,
    known: Annotated[
        list[str] | None,
        typer.Argument(metavar="KNOWN", help="Files of reviews, as a report exports and --known takes them."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="INPUT", help="The annotations, if reviews do not contain the tokens themselves."
        ),
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
    reading: LayeredReading,
) -> None:
    """Say how far reviewers agree and list what they dispute; exit code 1 if something is still to be settled."""
    from quorate.formats.jsonl import save_corpus
    from quorate.reviews import write_adjudication

    if not known:
        raise SettingsError("no review yet (give files, or put them where 'known' of quorate.toml looks for them)")
    if "-" in known and "-" in (inputs or ()):
        raise SettingsError("standard input can be read once: - is KNOWN and --input (give one as a file)")
    check_json(as_json, output or ("-" if as_annotators else ""))
    refuse_outputs_of_a_run(context, {"-o": output})
    check_outputs([*known, *(inputs or ()), *([] if consensus is None else [consensus])], [output])
    if output is not None:
        spare_what_was_checked(output)
    if as_annotators and reading.in_layers:
        raise SettingsError("--as-annotators is for reviews without layers (leave out --layers auto)")
    found = _read(known, inputs, reading, quiet)
    if as_annotators:
        save_corpus(found[""].as_corpus(), output or "-")
        return
    beside = {} if consensus is None else _beside(found, consensus, reading.options["max_size"])
    disputed = any(one.disputes for one in found.values())
    if as_json:
        print_json(_record(found, beside))
    elif output != "-":
        _show(found, beside)
    if output is not None and disputed:
        write_adjudication(found.values(), output)
        if not quiet and output != "-":
            say([f"{output}: fill in 'gold', make 'checked' true, and give it back with the others"])
    if disputed:
        raise typer.Exit(1)


def _read(known: list[str], inputs: list[str] | None, reading: LayeredReading, quiet: bool) -> dict[str, Reviews]:
    """The reviews of each layer; without --layers auto of a single one, which has no name."""
    from quorate.reviews import read, read_layers

    max_size = reading.options["max_size"]
    if not inputs:
        if reading.in_layers:
            raise SettingsError("only the annotations tell what the layers are (give them with --input)")
        return {"": read(known, max_size=max_size)}
    layers = reading.layers(inputs)
    if not quiet:
        say_notes(layers.corpus)
    if layers.named:
        return read_layers(known, layers, max_size=max_size)
    return {"": read(known, layers.corpus, max_size=max_size)}


def _beside(found: Mapping[str, Reviews], consensus: str, max_size: str | None) -> dict[str, Sequence[PairAgreement]]:
    """How far each reviewer agrees with a consensus, by layer."""
    from quorate.formats import read_consensus
    from quorate.formats.consensus_records import by_layer

    records = read_consensus(consensus, max_size=max_size)
    layers = by_layer(records, consensus) or {"": records}
    if layers.keys().isdisjoint(found):
        raise InputError(
            "its layers are not those of the reviews (one in layers needs --layers auto, any other goes without)",
            where=consensus,
        )
    tags = {name: {record.id: record.tags for record in its} for name, its in layers.items()}
    return {name: one.agreement_with(tags[name]) for name, one in found.items() if name in tags}


def _record(found: Mapping[str, Reviews], beside: Mapping[str, Sequence[PairAgreement]]) -> dict[str, Any]:
    """Everything, as JSON has it; what is of a layer says of which."""
    record: dict[str, Any] = {"documents": len(_documents(found))}
    record |= {"reviewers": [], "agreement": [], "consensus": [], "disputes": []}
    for name, reviews in found.items():
        layer = {"layer": name} if name else {}
        for one in reviews.reviewers:
            record["reviewers"].append(layer | plain(one) | {"first": _iso(one.first), "last": _iso(one.last)})
        record["agreement"] += [layer | plain(pair) for pair in reviews.agreement]
        record["consensus"] += [layer | plain(pair) for pair in beside.get(name, ())]
        for dispute in reviews.disputes:
            values = {key: value for key, value in plain(dispute).items() if key != "layer"}
            record["disputes"].append(layer | values | {"says": [_says(one) for one in dispute.says]})
    return record


def _documents(found: Mapping[str, Reviews]) -> set[str]:
    """The documents of which somebody decided something, in any layer."""
    return {document for reviews in found.values() for document in reviews.decisions}


def _says(one: Says) -> dict[str, Any]:
    values: dict[str, Any] = plain(one)
    return values | {"spans": [_span(span) for span in one.spans]}


def _span(span: Span) -> dict[str, Any]:
    place = {"start": span.start, "end": span.end, "label": span.label}
    return place | ({"pieces": span.pieces} if span.pieces else {})


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _show(found: Mapping[str, Reviews], beside: Mapping[str, Sequence[PairAgreement]]) -> None:
    """Everything, on a terminal, layer by layer; the first line is the answer."""
    documents = len({dispute.document for reviews in found.values() for dispute in reviews.disputes})
    tell(f"documents in dispute: {documents:,} of {len(_documents(found)):,}")
    for name, reviews in found.items():
        print()
        if name:
            tell(f"layer {name}")
        _show_layer(reviews, beside.get(name, ()))


def _show_layer(reviews: Reviews, beside: Sequence[PairAgreement]) -> None:
    _show_reviewers(reviews.reviewers)
    for pairs in (reviews.agreement, beside):
        if pairs:
            print()
            _show_pairs(pairs)
    for dispute in reviews.disputes:
        print()
        _show_dispute(dispute, reviews.corpus[dispute.document].tokens)


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
    table = table_of(["reviewer", "and"], ["documents", "matched", "kappa"])
    for pair in pairs:
        scores = (points(pair.spans_matched), number(pair.kappa))
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
