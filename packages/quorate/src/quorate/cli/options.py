"""Options that belong together, each group declared once: a command takes a group as one parameter.

A group is a dataclass whose fields are declared as options are; :func:`takes_groups` gives a command the options of all
the groups among its parameters, in the order in which they stand.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from quorate.cli.common import (
    Json,
    Output,
    Probabilities,
    Quiet,
    Shares,
    Threads,
    To,
    Verbose,
    bar,
    not_written,
    say,
    with_options,
)
from quorate.cli.tables import print_json
from quorate.errors import SettingsError
from quorate.model.settings import MODEL, WRITTEN, choice

if TYPE_CHECKING:
    from quorate.cli.summaries import Summary
    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.voting import MajorityVote
    from quorate.result.layers import LayeredResult
    from quorate.result.result import Result

WithoutDocuments = Annotated[
    bool,
    typer.Option(
        "--without-documents",
        help="Keep no documents in the model: it has no text except words, and does not know which labels it has seen.",
        rich_help_panel=WRITTEN,
    ),
]


@dataclass(frozen=True)
class Method:
    """What combines the annotations."""

    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What combines the annotations: see 'quorate methods' (default auto).",
            rich_help_panel=MODEL,
        ),
    ] = None
    settings: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Settings that 'tune' wrote; other options win.", rich_help_panel=MODEL),
    ] = None
    tagger: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A model that reads the text, learns from the consensus and joins it: crf, context (an extra) or none "
            "(default).",
            rich_help_panel=MODEL,
        ),
    ] = None
    ties: Annotated[
        str | None,
        typer.Option(
            metavar="RULE", help="For mv: entity-first (default), outside-first or random.", rich_help_panel=MODEL
        ),
    ] = None

    def chosen(self, given: dict[str, Any]) -> Chosen:
        """The method and its settings: those of the file, if there is one, and those that were given."""
        from quorate.cli.settings import settings_from_file
        from quorate.estimators.methods import DEFAULT_METHOD
        from quorate.taggers import TaggerName

        name, tuned = settings_from_file(self.settings, self.method)
        if self.tagger is not None:
            choice(TaggerName, "tagger", self.tagger)
        own = {"tagger": self.tagger, "ties": self.ties}
        return Chosen(name or DEFAULT_METHOD, {**tuned, **_those_given(own), **given})


class Chosen(NamedTuple):
    """A method and its settings."""

    method: str
    settings: dict[str, Any]

    def estimator(self) -> BSC | CRFMA | MajorityVote:
        """A new estimator; :class:`SettingsError` if there can be none."""
        from quorate.estimators.methods import estimator

        return estimator(self.method, **self.settings)


@cache  # what was given is asked for more than once
def _advise() -> None:
    from quorate.model.engines.jax.device import advice

    say(advice())


@dataclass(frozen=True)
class Machine:
    """Where the work is done."""

    n_jobs: Threads = None
    engine: Annotated[
        str | None,
        typer.Option(metavar="ENGINE", help="Where passes run: threads (default), or jax for an accelerator."),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler whose workers run the passes: tcp://scheduler:8786."),
    ] = None

    def given(self) -> dict[str, Any]:
        """What was given, by the names of an estimator's parameters."""
        if self.engine == "jax" and self.cluster is None:
            _advise()
        return _those_given(asdict(self))


@dataclass(frozen=True)
class Writing:
    """How a consensus is written."""

    output: Output = "-"
    to: To = None
    probabilities: Probabilities = False
    shares: Shares = False

    def soft(self, path: str | None = None) -> bool:
        """Whether probabilities of labels go into the output, or into another file of its kind."""
        from quorate.formats import named, output_format

        return (
            self.probabilities
            or self.shares
            or named(self.to or output_format(path or self.output), to_write=True).soft
        )

    def check(self, *others: str | None) -> None:
        """One clear error, before any work, if the output or another file cannot hold what was asked for."""
        from quorate.formats import named, output_format

        for path in (self.output, *others):
            written = self.to or output_format(path or self.output)
            named(written, to_write=True).check_installed()
            if self.shares and written != "jsonl":
                raise SettingsError(
                    f"--shares goes into jsonl, and {written} holds none (use --to jsonl, or leave it out)"
                )

    def write(self, result: Result | LayeredResult, path: str | None = None, *, quiet: bool = False) -> list[str]:
        """Write a consensus to the output, or to another file; notes say what could not be written."""
        place = path or self.output
        with bar("writing", quiet or place == "-") as report:
            left_out = result.write(
                place, self.to, probabilities=self.probabilities, shares=self.shares, progress=report
            )
        return not_written(place, left_out)


@dataclass(frozen=True)
class Keeping:
    """What is kept of a fit beside the consensus."""

    accept: Annotated[
        float | None,
        typer.Option(
            metavar="PRECISION",
            help="Write only the surest documents, as many as have this precision together (such as 0.95), and the "
            "others to --review. A ranking by confidence; with --checked, guaranteed by an audit.",
            rich_help_panel=WRITTEN,
        ),
    ] = None
    review: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --accept: where to write the documents that a person should look at.",
            rich_help_panel=WRITTEN,
        ),
    ] = None
    checked: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="With --accept or --precision: an audit of this consensus ('quorate audit'), by which the precision "
            "is guaranteed.",
            rich_help_panel=WRITTEN,
        ),
    ] = None
    save: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Save the fitted model in this file.", rich_help_panel=WRITTEN)
    ] = None
    without_documents: WithoutDocuments = False
    meta: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write version, settings and hashes of the input as JSON.", rich_help_panel=WRITTEN
        ),
    ] = None
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Also write a report as HTML ('quorate report --help').", rich_help_panel=WRITTEN
        ),
    ] = None

    def check(self, method: str, model: BSC | CRFMA | MajorityVote) -> None:
        """One clear error if that cannot be kept of a method's fit."""
        from quorate.estimators.capabilities import Saves
        from quorate.formats.registry import check_report_name
        from quorate.result.acceptance import check_precision

        if self.report is not None:
            check_report_name(self.report)
        if self.accept is not None:
            check_precision(self.accept)
        if self.save is not None and not isinstance(model, Saves):
            raise SettingsError(f"method {method!r} has nothing to save (leave out --save)")
        if self.without_documents and self.save is None:
            raise SettingsError("--without-documents goes with --save (there is no model to keep them in)")
        if (self.accept is None) != (self.review is None):
            raise SettingsError("--accept and --review go together: a precision, and a file for the documents below it")


@dataclass(frozen=True)
class Telling:
    """What is said when all is done."""

    quiet: Quiet = False
    verbose: Verbose = False
    as_json: Json = False

    @property
    def tells(self) -> bool:
        """Whether anything is said; a summary may need more than was kept for a quiet run."""
        return self.as_json or not self.quiet

    def tell(self, summary: Summary) -> None:
        """Say it."""
        if self.as_json:
            print_json(summary.as_json())
        else:
            say(summary.lines(verbose=self.verbose))


def _those_given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def takes_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of its groups; what is no group among its parameters stays as it is."""
    own = inspect.signature(command, eval_str=True)
    types: dict[str, type[Any]] = {name: each.annotation for name, each in own.parameters.items()}
    groups = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, each in own.parameters.items():
        parameters += _options(groups[name]) if name in groups else [each]

    def run(**values: Any) -> Any:
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**made, **values)

    return with_options(run, command, parameters)


def _options(group: type[Any]) -> list[inspect.Parameter]:
    """A parameter for every field."""
    declared = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=declared[field.name]
        )
        for field in fields(group)
    ]
