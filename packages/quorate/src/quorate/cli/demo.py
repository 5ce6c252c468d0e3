"""The demo: the sample crowd combined, beside gold, and who is who."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quorate.api import aggregate
from quorate.cli.annotator_tables import annotator_table
from quorate.cli.terminal import escaped
from quorate.corpus.records import Corpus
from quorate.corpus.sample import SAMPLE_CROWD
from quorate.corpus.spans import Span
from quorate.corpus.tags import find_spans
from quorate.errors import SettingsError
from quorate.evaluate import metrics
from quorate.formats.jsonl import save_corpus
from quorate.result.result import Result
from quorate.wording import counted


def write_sample(corpus: Corpus, path: Path) -> None:
    """Write the sample crowd; :class:`SettingsError` if another file is there, which would be lost."""
    with TemporaryDirectory() as folder:
        fresh = Path(folder, path.name)
        save_corpus(corpus, fresh)
        if path.is_file() and path.read_bytes() != fresh.read_bytes():
            raise SettingsError(f"{path}: another file is there, which would be lost (give another name)")
    save_corpus(corpus, path)


def show(corpus: Corpus, console: Console, *, written: str | None = None) -> None:
    """Combine the sample with majority vote and with BSC, and print what came of it."""
    gold = [document.gold or () for document in corpus]
    results = {method: aggregate(corpus, method) for method in ("mv", "auto")}
    best = results["auto"]
    console.print(
        f"[bold]A sample crowd[/bold]: {len(corpus)} sentences, {counted(corpus.n_tokens, 'token')}, "
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
    console.print("\n[bold]The annotators[/bold], as learned without gold (made as: how each was simulated):\n")
    console.print(annotator_table(sorted(best.annotators, key=lambda row: -row.informativeness), SAMPLE_CROWD))
    console.print(
        "\nbits: how much one of their labels tells about the truth; of a spammer, almost nothing. Of the spans of the "
        "consensus, in %: found (marked in some way), exact (with a 95% interval), bounds off (with another start or "
        "end), type (with another type). invented: of their own spans, in %, those that touch none of the consensus.\n"
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
            table.add_row(
                "", f"[dim]confidence: least certain span {least:.2f}, whole sentence {combined.confidence:.2f}[/dim]"
            )
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
