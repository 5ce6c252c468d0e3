"""How scores are shown: on the terminal, as Markdown, as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import quorate
from quorate.cli.common import cell, console, tell
from quorate.cli.terminal import escaped
from quorate.errors import SettingsError
from quorate.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from quorate.evaluate.compare import Comparison, Scores
    from quorate.evaluate.metrics import PRF, ErrorKinds, Interval


def number(value: float | None, digits: int = 3) -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def points(value: float | None) -> str:
    """A score from 0 to 100, as all are shown to people, or a dash where there is none."""
    return "–" if value is None else f"{100 * value:.1f}"


def plain(value: Any) -> Any:
    """Values made of records, as JSON has them: names of fields as keys, ``None`` for what is no number.

    >>> plain({"f1": float("nan"), "low": 0.5})
    {'f1': None, 'low': 0.5}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # of NumPy
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_json(value: Any) -> None:
    """A result as one line of JSON on standard output, in ASCII, which every terminal and pipe can take."""
    print(json.dumps(plain(value), allow_nan=False), flush=True)


def table_of(texts: Iterable[str], numbers: Iterable[str]) -> Table:
    """A table without lines: columns of text, folded where room is short, and of numbers, which stay whole."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def print_scores(scores: Scores) -> None:
    """All scores of one consensus."""
    table = table_of([counted(scores.documents, "document")], ["precision", "recall", "F1", "gold spans"])

    def add(name: str, prf: PRF | tuple[float, float, float], support: str = "") -> None:
        table.add_row(cell(name), *map(points, prf), support)

    if scores.strict is not None and scores.relaxed is not None:
        add("strict (same start, end, type)", scores.strict)
        for kind, one in scores.by_type.items():
            add(f"  {kind}", one[:3], f"{one.support:,}")
        if len(scores.by_type) > 1:
            add("  mean over types", quorate.score.macro(scores.by_type))
        add("relaxed (share of tokens)", scores.relaxed)
    add("tokens other than O", scores.tokens[1:4])
    console().print(table)
    entropy, brier = scores.cross_entropy, scores.brier
    print(f"\ntoken accuracy            {points(scores.tokens.accuracy)}")
    if entropy is None or brier is None:
        print("cross entropy             – (needs aggregate --probabilities)")
    else:
        print(f"cross entropy (CEE)       {entropy.mean:.3f}")
        print(f"Brier score               {brier.mean:.3f}")
        if entropy.unknown:
            unknown = counted(entropy.unknown, "token has", "tokens have")
            print(f"                          {unknown} a gold label outside the label set")
    if scores.calibration is not None:
        print(f"calibration error, tokens {scores.calibration.error:.3f}")
    if scores.span_calibration is not None and scores.span_calibration.count:
        print(f"calibration error, spans  {scores.span_calibration.error:.3f}")


def print_errors(errors: ErrorKinds) -> None:
    """The kinds of error, a line each."""
    print("\nkinds of error")
    for name, value in errors._asdict().items():
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
        print(f"  {name.replace('_', ' '):<15} {shown:>8}")


def comparison_table(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of a comparison; the best of a column is between double asterisks."""
    columns = ["method", "P", "R", "F1", "relaxed", "CEE", "cal.", f"F1 − {found.reference}", "p", "s", "MB"]
    cells: list[list[str]] = []
    merits: list[list[float]] = []  # of the columns P to cal., higher is better
    for row in found.rows:
        scores = row.scores
        accuracy = scores.tokens.accuracy
        strict = scores.strict or (accuracy, accuracy, accuracy)
        relaxed = scores.relaxed.f1 if scores.relaxed else None
        entropy = scores.cross_entropy.mean if scores.cross_entropy else None
        calibration = scores.calibration.error if scores.calibration else None
        cells.append(
            [
                row.method,
                *map(points, strict),
                points(relaxed),
                number(entropy, 2),
                number(calibration),
                "" if row.difference is None else _interval(row.difference),
                "" if row.test is None else f"{row.test.p_value:.1g}",
                f"{row.seconds:.1f}",
                "–" if row.peak_megabytes is None else f"{row.peak_megabytes:.0f}",
            ]
        )
        merits.append(
            [*strict, *(-math.inf if m is None else m for m in (relaxed, _minus(entropy), _minus(calibration)))]
        )
    for place, column in enumerate(zip(*merits, strict=True), 1):
        for merit, line in zip(column, cells, strict=True):
            if len(cells) > 1 and merit == max(column) > -math.inf:
                line[place] = f"**{line[place]}**"
    return columns, cells


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def _interval(difference: Interval) -> str:
    return f"{100 * difference.estimate:+.1f} [{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"


def error_table(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the kinds of error, a column a method."""
    kinds = [row.scores.errors for row in found.rows if row.scores.errors is not None]
    if not kinds:
        raise SettingsError("plain tags mark no spans whose errors could be counted (leave out --errors)")
    rows = []
    for name in kinds[0]._fields:
        values = [getattr(one, name) for one in kinds]
        rows.append([name.replace("_", " "), *(f"{v:,}" if isinstance(v, int) else f"{v:.2f}" for v in values)])
    return ["kind of error", *(row.method for row in found.rows)], rows


def print_table(columns: list[str], rows: list[list[str]], *, markdown: bool, names: int = 1) -> None:
    """A table on the terminal, or as Markdown; what is between double asterisks is bold.

    A table that is too wide for the terminal is printed in parts, each with the first columns, which are ``names``.
    """
    if markdown:
        tell(f"| {' | '.join(columns)} |")
        print(f"|{'|'.join(['---'] + ['---:'] * (len(columns) - 1))}|")
        for row in rows:
            tell(f"| {' | '.join(row)} |")
        return
    from rich.text import Text

    cells = [
        [Text(escaped(value.strip("*")), style="bold" if value.startswith("**") else "") for value in row]
        for row in rows
    ]
    widths = [max(map(len, each)) for each in zip(map(Text, columns), *cells, strict=True)]
    for number, part in enumerate(parts_that_fit(widths, names, console().width)):
        if number:
            print()
        table = table_of(columns[:names], [columns[place] for place in part])
        for line in cells:
            table.add_row(*line[:names], *(line[place] for place in part))
        console().print(table)


def parts_that_fit(widths: Sequence[int], names: int, room: int) -> list[list[int]]:
    """The columns after the first ``names``, in as many tables as it takes for none to be wider than ``room``.

    >>> parts_that_fit([6, 8, 8, 8], 1, 30), parts_that_fit([6, 8, 8, 8], 1, 26)
    ([[1, 2], [3]], [[1, 2], [3]])
    """
    gap = 2
    first = sum(widths[:names]) + gap * (names - 1)
    parts: list[list[int]] = []
    used = room
    for place in range(names, len(widths)):
        if not parts or used + gap + widths[place] > room:
            parts.append([])
            used = first
        parts[-1].append(place)
        used += gap + widths[place]
    return parts or [[]]
