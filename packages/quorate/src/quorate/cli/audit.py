"""Commands about audits: which documents to check, and what that says of the whole consensus."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorate.cli.common import (
    Json,
    MaxSize,
    Quiet,
    app,
    cell,
    check_json,
    check_outputs,
    console,
    say,
    spare_what_was_checked,
    tell,
)
from quorate.cli.project_audits import tells_version_audited
from quorate.cli.project_run import Project, consensus_meant, refuse_outputs_of_a_run
from quorate.cli.tables import print_json, table_of
from quorate.errors import SettingsError, tell_renamed
from quorate.wording import counted

if TYPE_CHECKING:
    from quorate.audit import Audit, Estimate, Plan, Scores

audit = typer.Typer(
    no_args_is_help=True, help="Check a few documents, and know how good the whole consensus is, with a guarantee."
)
app.add_typer(audit, name="audit")

Consensus = Annotated[
    str | None,
    typer.Argument(
        metavar="CONSENSUS",
        help="A file that 'quorate aggregate' wrote as JSONL; in a project, the consensus of the last version.",
    ),
]
Checked = Annotated[
    list[str] | None,
    typer.Option(
        "--checked",
        metavar="FILE",
        help="The plan with the documents checked, corrections from a report, or a tool's export by one person; may be "
        "repeated.",
    ),
]


@audit.callback()
def _group() -> None:
    """Check a few documents, and know how good the whole consensus is, with a guarantee."""


@audit.command(
    epilog="Look through the documents in the order of the plan, correct 'gold' and set 'checked' to true; "
    "or do so in a report (quorate report --audit), or in a tool (quorate convert audit.jsonl tasks.json --to "
    "label-studio).\n\n"
    "Examples:\n\n"
    "quorate audit plan consensus.jsonl -n 50 -o audit.jsonl\n\n"
    "quorate audit plan consensus.jsonl -n 30 --sequential -o audit.jsonl\n\n"
    "quorate audit plan consensus.jsonl --extend audit.jsonl -n 10 -o more.jsonl"
)
def plan(
    context: typer.Context,
    consensus: Consensus = None,
    n: Annotated[int, typer.Option("-n", "--documents", help="How many documents to check.")] = 50,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where the plan goes; - for standard output.")
    ] = "-",
    seed: Annotated[int, typer.Option(help="The seed of the random draw; it is kept in the file.")] = 0,
    sequential: Annotated[
        bool,
        typer.Option(
            "--sequential",
            help="Look at any time and add documents; intervals are wider, and hold however often you look.",
        ),
    ] = False,
    extend: Annotated[
        list[str] | None,
        typer.Option(metavar="PLAN", help="Draw -n more documents for this sequential plan; may be repeated."),
    ] = None,
    max_size: MaxSize = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw documents for a person to check: some of all kinds, and more of those in which more may be wrong."""
    import quorate

    check_json(as_json, output)
    refuse_outputs_of_a_run(context, {"-o": output})
    spare_what_was_checked(output)
    if extend and (sequential or seed):
        raise SettingsError("--extend goes on with the plan's own seed (leave out --seed and --sequential)")
    with consensus_meant(context, consensus) as path, _version_told(context):
        check_outputs([path, *(extend or ())], [output])
        if extend:
            before = _plan_in(path, extend, max_size)
            drawn, first = quorate.audit.extended(before, n), len(before)
        else:
            drawn, first = quorate.audit.plan(path, n, seed=seed, sequential=sequential, max_size=max_size), 0
    if first and len(drawn) == first:
        raise SettingsError(f"all documents are in the plan: {first:,} (there are no more)")
    drawn.write(output, first=first)
    if as_json:
        print_json(_plan_record(drawn, first, output))
    elif not quiet:
        say(_plan_summary(drawn, first, output, extend or []))


@audit.command(
    epilog="Examples:\n\n"
    "quorate audit result consensus.jsonl --checked audit.jsonl\n\n"
    "quorate audit result consensus.jsonl --checked corrections.jsonl --plan audit.jsonl\n\n"
    "quorate audit result consensus.jsonl --checked audit.jsonl --recalibrated better.jsonl"
)
def result(
    context: typer.Context,
    consensus: Consensus = None,
    checked: Checked = None,
    formerly: Annotated[list[str] | None, typer.Option("--known", hidden=True)] = None,
    plan: Annotated[
        list[str] | None,
        typer.Option("--plan", metavar="PLAN", help="The plan, if the files with what was checked do not contain it."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="The confidence of the intervals.")] = 0.9,
    recalibrated: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the consensus with probabilities corrected by the audit, as JSONL."),
    ] = None,
    max_size: MaxSize = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Precision, recall and F1 of the whole consensus, with guaranteed intervals, from the documents checked."""
    import quorate
    from quorate.audit.sentences import Outcome, notes

    if formerly:
        tell_renamed("option", "--known", "--checked")
        checked = [*(checked or ()), *formerly]
    if not checked:
        raise SettingsError("nothing was checked (give --checked FILE; quorate audit plan draws what to check)")
    refuse_outputs_of_a_run(context, {"--recalibrated": recalibrated})
    with consensus_meant(context, consensus) as path, _version_told(context):
        check_outputs([path, *checked, *(plan or ())], [recalibrated])
        drawn = None if not plan else _plan_in(path, plan, max_size)
        claims = path if drawn is None else drawn.claims
        found = quorate.audit.result(claims, checked, plan=drawn, confidence=confidence, max_size=max_size)
    if recalibrated is not None:
        found.write_recalibrated(recalibrated)
    if as_json:
        print_json(_record(found))
        return
    _print(found)
    if not quiet:
        for line in ["", *notes(Outcome.of(found))]:
            tell(line)
        if recalibrated is not None:
            tell(f"Probabilities corrected by these documents are in {recalibrated}.")
            tell(_how_far_off(found))


def _version_told(context: typer.Context) -> AbstractContextManager[None]:
    """In a project, a plan of another consensus is told by the version that it was drawn from."""
    project = Project.around(context)
    if project is None:
        return nullcontext()
    return tells_version_audited(project.store, "or draw a new plan: quorate audit plan")


def _plan_in(consensus: str, paths: list[str], max_size: Any) -> Plan:
    """The plan that files hold."""
    from quorate.audit.checked import read_plan
    from quorate.audit.claims import Claims

    return read_plan(paths, Claims.of(consensus, max_size=max_size), max_size=max_size)


def _plan_summary(drawn: Plan, first: int, output: str, before: list[str]) -> list[str]:
    from quorate.audit.plan import LEAST

    new = len(drawn) - first
    count = f"{new:,} of {counted(len(drawn.claims), 'document')}" if not first else counted(new, "more document")
    where = "" if output == "-" else f" are in {output}"
    lines = [f"{count}{where}, in the order to check (seed {drawn.seed})"]
    if len(drawn) == len(drawn.claims):
        return [*lines, "that is all of them: the scores will be exact"]
    if first:
        files = " ".join(f"--checked {name}" for name in [*before, output])
        return [*lines, f"all files count: quorate audit result … {files}"]
    lines += _promise(drawn)
    if drawn.sequential:
        return [*lines, f"look at any time from {LEAST} on: intervals are wider, and hold however often you look"]
    return [*lines, "check all of them before you look at the result, and draw one plan, not the best of several"]


def _promise(drawn: Plan) -> list[str]:
    """What the result will tell, by the same computation."""
    from quorate.audit.plan import TELLS_LITTLE

    width, at_best = drawn.expected_f1.width, drawn.f1_without_mistakes
    if width > TELLS_LITTLE:
        return ["so few documents say almost nothing about F1 (draw more: -n)"]
    low, high = (f"{100 * end:.1f}" for end in (at_best.low, at_best.high))
    return [
        f"the result should give F1 to about ± {100 * width / 2:.0f} points, if confidence is right; "
        f"if no mistake is found, F1 will be from {low} to {high}"
    ]


def _plan_record(drawn: Plan, first: int, output: str) -> dict[str, Any]:
    record: dict[str, Any] = {"documents": len(drawn.claims), "drawn": drawn.ids[first:], "planned": len(drawn)}
    record |= {"seed": drawn.seed, "sequential": drawn.sequential, "consensus": drawn.claims.digest}
    record |= {"expected_half_width": drawn.expected_half_width, "f1_without_mistakes": drawn.f1_without_mistakes}
    return record | {"written": {"plan": output}}


def _print(found: Audit) -> None:
    from quorate.audit.sentences import Outcome, enough_seen, headline

    tell(headline(Outcome.of(found)))
    table = table_of([f"{counted(found.n, 'document')} checked"], ["precision", "recall", "F1"])

    def add(name: str, scores: Scores) -> None:
        table.add_row(cell(name), *map(_in_points, (scores.precision, scores.recall, scores.f1)))

    add("all spans", found.scores)
    if len(found.by_type) > 1:
        for kind, scores in enough_seen(found).items():
            add(f"  {kind}", scores)
    console().print(table)


def _in_points(estimate: Estimate) -> str:
    value, low, high = (100 * one for one in estimate)
    return f"{value:.1f} ({low:.1f}–{high:.1f})" if value == value else "–"


def _how_far_off(found: Audit) -> str:
    """Whether there was anything to correct, as far as that can be told from chance."""
    from quorate.formats.notes import some

    names = found.off_beyond_chance.names
    if not names:
        return "What was off is within chance: the correction may be noise, and the consensus as good as it was."
    return f"Off by more than chance: {some(names, len(names))}."


def _record(found: Audit) -> dict[str, Any]:
    def scores(one: Scores) -> dict[str, Any]:
        return {
            name: None if value != value else {"value": value, "low": low, "high": high}
            for name in ("precision", "recall", "f1")
            for value, low, high in [getattr(one, name)]
        } | {"true_spans_seen": one.seen}

    return {
        "documents": len(found.plan.claims),
        "checked": found.n,
        "confidence": found.confidence,
        "sequential": found.plan.sequential,
        "seed": found.plan.seed,
        "consensus": found.plan.claims.digest,
        **scores(found.scores),
        "by_type": {kind: scores(one) for kind, one in found.by_type.items()},
        "more_to_halve": found.more_to_halve,
        "recalibration": found.recalibration,
        "off_beyond_chance": found.off_beyond_chance,
    }
