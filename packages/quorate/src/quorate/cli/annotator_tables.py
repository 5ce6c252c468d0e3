"""Annotators on the terminal, in tables of people, models and rules, each with columns that make sense; and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from quorate.cli.tables import plain
from quorate.cli.terminal import escaped
from quorate.result.annotators import AnnotatorSummary
from quorate.result.habits import BOUNDS, KINDS, SpanHabits
from quorate.result.sources import SourceKind, Sources

_WORTH_SAYING = 0.05  # the share of spans with other bounds from which on it matters how they are off
_WAYS = {
    "early_start": "starts early",
    "late_start": "starts late",
    "early_end": "ends early",
    "late_end": "ends late",
    "split": "in pieces",
}
_NARROW = ("found", "exact", "bounds off", "type", "invented")
_OF_MODELS = ("found", "exact", "bounds off", "invented")
_ALL = ("found", "exact", "shifted", "in pieces", "type", "missed", "invented")
_FIELDS = {"in pieces": "split", "type": "wrong_type"}
_FEW_MARKS = 5  # of a type, below which nothing is said of it
_BEST_TYPES = 2
_LEAST_PRECISION = 0.5  # of a type that a rule is best at


def tables_by_kind(
    rows: Sequence[AnnotatorSummary], sources: Sources, *, wide: bool = False, alone: Collection[str] = ()
) -> Iterator[tuple[str, Table]]:
    """A heading and a table for each kind of annotator that occurs; where all are people, there is no heading.

    Of those who are ``alone``, as they were compared with nobody, only what they gave is shown.
    """
    by_name = {row.name: row for row in rows}
    found = sources.by_kind(by_name)
    for kind, names in found.items():
        here = [by_name[name] for name in names]
        if not any(row.habits.spans or row.habits.marks for row in rows):  # plain labels
            table = annotator_table(here, wide=wide, alone=alone)
        elif kind is SourceKind.RULES:
            table = _rule_table(here, alone)
        elif kind is SourceKind.MODELS:
            table = annotator_table(here, wide=wide, sources=sources, alone=alone)
        else:
            table = annotator_table(here, wide=wide, alone=alone)
        others = kind is SourceKind.RULES and not all(map(sources.declared, names))
        heading = f"{kind.value}, and others that abstain" if others else kind.value
        yield ("" if list(found) == [SourceKind.PEOPLE] else heading), table


def annotator_table(
    rows: Iterable[AnnotatorSummary],
    made_as: Mapping[str, str] | None = None,
    *,
    wide: bool = False,
    sources: Sources | None = None,
    alone: Collection[str] = (),
) -> Table:
    """Annotators, a line each; ``made_as`` says as what each was simulated, ``sources`` who errs together.

    Nothing is said of how good those are who are ``alone``. Shares of spans are in percent, with a 95% interval for the
    exact ones; in a ``wide`` table for all.
    """
    everybody = list(rows)
    marks_spans = any(row.habits.spans or row.habits.marks for row in everybody)
    groups = {} if sources is None else _groups(everybody, sources)
    shares = (_ALL if wide else _OF_MODELS if groups else _NARROW) if marks_spans else ()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("who" if made_as else "annotator", overflow="fold")
    if wide or not groups:  # there is no room for everything
        table.add_column("made as" if made_as else "labels", justify="left" if made_as else "right", no_wrap=True)
    for name in (*(() if marks_spans else ("accuracy",)), "bits", *shares):
        table.add_column(name, justify="left" if name == "bounds off" else "right", no_wrap=True)
    if groups:
        table.add_column("group", overflow="fold")
        table.add_column("votes", justify="right", no_wrap=True)
    for row in everybody:
        columns = [made_as[row.name] if made_as else f"{row.n_labels:,.0f}"] if wide or not groups else []
        judged = row.name not in alone
        if not marks_spans:
            columns.append(f"{row.accuracy:.3f}" if judged and row.n_labels > 0 else "–")
        columns.append(f"{row.informativeness:.3f}" if judged else "–")
        habits = row.habits if judged else SpanHabits()
        spans = (_share(habits, name, interval=wide or name == "exact") for name in shares)
        table.add_row(Text(escaped(row.name)), *columns, *spans, *groups.get(row.name, ()))
    return table


def _groups(rows: Sequence[AnnotatorSummary], sources: Sources) -> dict[str, tuple[Text, str]]:
    """By name, the group that they are of and what its votes are worth; nothing where nobody is of one.

    A group that was not declared goes by the number that it has among those who err together.
    """
    found: dict[str, tuple[Text, str]] = {}
    worth = {name: (n, one) for n, one in enumerate(sources.together, 1) for name in one.names}
    for row in rows:
        declared = sources.profiles[row.name].group if row.name in sources.profiles else None
        if row.name in worth:
            number, one = worth[row.name]
            name, votes = declared or str(number), f"{one.votes:.1f}/{len(one.names)}"
        else:
            name, votes = declared or "–", "1"
        found[row.name] = Text(escaped(name)), votes
    return found if any(name.plain != "–" for name, _ in found.values()) else {}


def annotator_record(row: AnnotatorSummary, sources: Sources, alone: Collection[str] = ()) -> dict[str, Any]:
    """An annotator as JSON has them, but for the matrix; ``compared`` says whether anything tells how good they are."""
    labels = int(row.n_labels) if row.n_labels.is_integer() else row.n_labels
    record: dict[str, Any] = {"name": row.name, "labels": labels, "accuracy": row.accuracy}
    if row.name in sources.profiles:
        record |= sources.profiles[row.name].plain()
    record |= {"source": sources.kind(row.name).value, "compared": row.name not in alone}
    for together in sources.together:
        if row.name in together.names:
            record["errs_with"] = {"names": together.names, "votes": together.votes}
    spans = _spans_of(row.habits)
    by_type = {kind: _spans_of(habits) for kind, habits in row.by_type.items()}
    record |= {"informativeness": row.informativeness, "spans": spans, "by_type": by_type}
    return dict(plain(record))


def _spans_of(habits: SpanHabits) -> dict[str, Any] | None:
    """What an annotator does with spans, as JSON has it; ``None`` where nothing is known of that."""
    if not habits.spans and not habits.marks:
        return None
    found: dict[str, Any] = {"shown": habits.spans, "marked": habits.marks}
    for name in ("found", *KINDS, *BOUNDS, "invented", "precision", "coverage"):
        low, high = habits.interval(name)
        found["confirmed" if name == "precision" else name] = {"share": habits.share(name), "low": low, "high": high}
    return found


def _rule_table(rows: Sequence[AnnotatorSummary], alone: Collection[str]) -> Table:
    """Rules, a line each: how much of what they mark the consensus confirms, their coverage, and their best types."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("annotator", overflow="fold")
    for name in ("spans", "confirmed", "coverage"):
        table.add_column(name, justify="right", no_wrap=True)
    by_type = any(len(row.by_type) > 1 for row in rows)
    if by_type:
        table.add_column("best at", overflow="fold")
    for row in rows:
        judged = row.name not in alone
        habits, types = (row.habits, row.by_type) if judged else (SpanHabits(), {})
        shares = (_share(habits, name, interval=True) for name in ("precision", "coverage"))
        best = [Text(escaped(_best_types(types)))] if by_type else []
        table.add_row(Text(escaped(row.name)), f"{row.habits.marks:,.0f}", *shares, *best)
    return table


def _best_types(by_type: Mapping[str, SpanHabits]) -> str:
    """The types of which the consensus confirms most marks, the surest first, with the share in percent."""
    enough = {kind: habits for kind, habits in by_type.items() if habits.marks >= _FEW_MARKS}
    marked = [kind for kind, habits in enough.items() if habits.share("precision") >= _LEAST_PRECISION]
    best = sorted(marked, key=lambda kind: -by_type[kind].interval("precision")[0])[:_BEST_TYPES]
    return ", ".join(f"{kind} {100 * by_type[kind].share('precision'):.0f}" for kind in best) or "–"


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
