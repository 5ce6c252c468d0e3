"""The demo: the sample crowd combined, beside gold, and who is who. Also the table of annotators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quorate.api import aggregate
from quorate.cli.terminal import escaped
from quorate.corpus.records import Corpus
from quorate.corpus.sample import SAMPLE_CROWD
from quorate.corpus.spans import Span
from quorate.corpus.tags import find_spans
from quorate.evaluate import metrics
from quorate.result.annotators import AnnotatorSummary
from quorate.result.habits import SpanHabits
from quorate.result.result import Result

__all__ = ["annotator_table", "show"]

_WORTH_SAYING = 0.05  # the share of spans with other bounds from which on it matters how they are off


_WAYS = {
    "early_start": "starts early",
    "late_start": "starts late",
    "early_end": "ends early",
    "late_end": "ends late",
    "split": "in pieces",
}
_NARROW = ("found", "exact", "bounds off", "type", "invented")
_ALL = ("found", "exact", "shifted", "in pieces", "type", "missed", "invented")
_FIELDS = {"in pieces": "split", "type": "wrong_type"}


def annotator_table(
    rows: Iterable[AnnotatorSummary], made_as: Mapping[str, str] | None = None, *, wide: bool = False
) -> Table:
    """Annotators, a line each; ``made_as`` says as what each was simulated.

    Shares of spans are in percent, with a 95% interval for the exact ones; in a ``wide`` table for all.
    """
    everybody = list(rows)
    marks_spans = any(row.habits.spans or row.habits.marks for row in everybody)
    shares = (_ALL if wide else _NARROW) if marks_spans else ()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("who" if made_as else "annotator", overflow="fold")
    table.add_column("made as" if made_as else "labels", justify="left" if made_as else "right")
    for name in (*(() if marks_spans else ("accuracy",)), "bits", *shares):
        table.add_column(name, justify="left" if name == "bounds off" else "right")
    for row in everybody:
        told = [made_as[row.name] if made_as else f"{row.n_labels:,.0f}"]
        if not marks_spans:
            told.append(f"{row.accuracy:.3f}" if row.n_labels > 0 else "–")
        told.append(f"{row.informativeness:.3f}")
        spans = (_share(row.habits, name, interval=wide or name == "exact") for name in shares)
        table.add_row(Text(escaped(row.name)), *told, *spans)
    return table


def _share(habits: SpanHabits, shown: str, *, interval: bool) -> str:
    """A share in percent, perhaps with its interval."""
    if shown == "bounds off":
        return _bounds_off(habits)
    name = _FIELDS.get(shown, shown)
    if not habits.of(name) > 0:
        return "–"
    text = f"{100 * habits.share(name):.0f}"
    if not interval:
        return text
    low, high = habits.interval(name)
    return f"{text} ({100 * low:.0f}–{100 * high:.0f})"


def _bounds_off(habits: SpanHabits) -> str:
    """The share of spans that they mark with other bounds, and what is mostly the matter with those."""
    if not habits.spans > 0:
        return "–"
    off = habits.shifted + habits.split
    most = max(_WAYS, key=lambda name: float(getattr(habits, name)))
    says_much = off >= _WORTH_SAYING * habits.spans and getattr(habits, most) > 0.5 * off
    return f"{100 * off / habits.spans:2.0f}{f' {_WAYS[most]}' if says_much else ''}"


def show(corpus: Corpus, console: Console, *, written: str | None = None) -> None:
    """Combine the sample with majority vote and with BSC, and print what came of it."""
    gold = [document.gold or () for document in corpus]
    results = {method: aggregate(corpus, method) for method in ("mv", "auto")}
    best = results["auto"]
    console.print(
        f"[bold]A sample crowd[/bold]: {len(corpus)} sentences, {corpus.n_tokens:,} tokens, "
        f"{len(corpus.annotators)} annotators, five to a sentence."
    )
    console.print("The sentences were written for this package; the annotators are simulated.\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("consensus against gold")
    for name in ("precision", "recall", "F1", "cross entropy"):
        table.add_column(name, justify="right")
    for method, result in results.items():
        spans = metrics.strict(result.tags, gold)
        entropy = metrics.cross_entropy(result.probabilities, gold, result.labels)
        name = {"mv": "majority vote", "auto": "quorate"}[method]
        table.add_row(name, *(f"{100 * value:.1f}" for value in spans), f"{entropy.mean:.3f}")
    console.print(table)
    console.print("\n[bold]Who is who[/bold], as learned without gold:\n")
    console.print(annotator_table(sorted(best.annotators, key=lambda row: -row.informativeness), SAMPLE_CROWD))
    console.print(
        "\nbits: how much a label tells about the truth; a spammer's next to nothing. Then, in %, of the spans of the "
        "consensus: found, exact (95% interval), with other bounds, with another type; of their own: invented.\n"
    )
    _show_examples(results["mv"], best, console)
    if written is None:
        console.print("\nTo try it on a file: quorate demo --write crowd.jsonl")
    else:
        name = escaped(written)
        console.print(
            f"\nThe sample crowd is in {name}. Next:\n  quorate aggregate {name} -o consensus.jsonl", markup=False
        )


def _show_examples(votes: Result, best: Result, console: Console, how_many: int = 3) -> None:
    """Sentences that the vote got wrong and the model right."""
    console.print("[bold]Where the vote fails[/bold]:\n")
    table = Table.grid(padding=(0, 2))
    shown = 0
    for voted, combined in zip(votes, best, strict=True):
        gold = set(find_spans(combined.document.gold or ()))
        vote_right, right = (gold == {span.bare for span in each.spans} for each in (voted, combined))
        if shown < how_many and right and not vote_right and len(gold) > 1:
            shown += 1
            tokens = combined.document.tokens
            table.add_row("vote", _marked(tokens, voted.spans))
            table.add_row("quorate", _marked(tokens, combined.spans))
            least = min(span.sure for span in combined.spans)
            table.add_row("", f"[dim]least certain span {least:.2f}, whole sentence {combined.confidence:.2f}[/dim]")
    console.print(table)


def _marked(tokens: tuple[str, ...], spans: list[Span]) -> Text:
    """The sentence with its spans in brackets."""
    text = Text()
    cursor = 0
    for span in spans:
        text.append(" ".join([*tokens[cursor : span.start], ""]))
        text.append(f"[{' '.join(tokens[span.start : span.end])}]", style="bold")
        text.append(f" {span.label} ", style="cyan")
        cursor = span.end
    text.append(" ".join(tokens[cursor:]))
    return text
