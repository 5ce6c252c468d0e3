"""What the commands share: the app, options that mean the same everywhere, progress, output."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
import typer.core

from quorate.cli.elsewhere import commands_of_others
from quorate.cli.terminal import escaped, width_of, wrapped
from quorate.errors import SettingsError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from quorate.corpus.records import Corpus
    from quorate.estimators.base import ProgressCallback
    from quorate.formats.layering import Layer
    from quorate.formats.layers import Layers

# Commands in the order of a job, by their panel in the help. One that is not named here comes last.
_JOB = {
    "A project": ("init", "run", "status", "versions", "diff", "restore", "reviews"),
    "A team": ("serve", "service"),
    "Combine": ("check", "agreement", "aggregate", "predict", "update"),
    "Whom to trust, and what to look at": ("annotators", "report", "audit", "ambiguous", "next"),
    "Against gold": ("evaluate", "compare", "tune"),
    "Files and tools": ("convert", "encode", "label-studio", "plot"),
    "What there is": ("formats", "methods", "datasets", "demo", "simulate-active"),
}
_OTHERS = "Others"


class InOrderOfAJob(typer.core.TyperGroup):
    """Commands as a job needs them, in panels; flags are shown without a type, as they take no value."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._put_in_order()

    def get_command(self, context: Any, name: str) -> Any:
        """A command of ours, or else of another package."""
        if name not in self.commands:
            self.add_others()
        return super().get_command(context, name)

    def list_commands(self, context: Any) -> list[str]:
        """All commands, with those of other packages."""
        self.add_others()
        return super().list_commands(context)

    def add_others(self) -> None:
        """Take in the commands of other packages, which are loaded for that."""
        self.commands = commands_of_others() | dict(self.commands)
        self._put_in_order()

    def _put_in_order(self) -> None:
        panels = {name: panel for panel, names in _JOB.items() for name in names}
        place = {name: number for number, name in enumerate(panels)}
        self.commands = dict(sorted(self.commands.items(), key=lambda item: place.get(item[0], len(place))))
        for name, command in self.commands.items():
            command.rich_help_panel = panels.get(name, _OTHERS)  # type: ignore[attr-defined]
        _show_plainly(self)

    def invoke(self, context: Any) -> Any:
        """Do as always, and say in plain words what is no number, or no option any more."""
        with _plain_mistakes():
            return super().invoke(context)


def _show_plainly(command: Any) -> None:
    """Flags without a type, and paragraphs that are wrapped where the terminal ends, not where the source does."""
    if command.help:
        command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(command.help))
    for each in command.params:
        if getattr(each, "is_flag", False) and each.metavar is None:
            each.metavar = ""
    for part in getattr(command, "commands", {}).values():
        _show_plainly(part)


app = typer.Typer(
    name="quorate",
    cls=InOrderOfAJob,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="New here? quorate demo --write crowd.jsonl, then: quorate aggregate crowd.jsonl -o consensus.jsonl",
)

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="Files in any format that 'quorate formats' lists, plain or .gz, folders, or - for standard input.",
    ),
]
Output = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write it; - for standard output, as JSONL."),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="FORMAT", help="The format to write; by default, from the ending of the name."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no progress bar.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also say how it was done: passes, calibration.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Probabilities = Annotated[
    bool, typer.Option("--probabilities", help="Also write the probability of every label at every token.")
]
Shares = Annotated[
    bool,
    typer.Option(
        "--shares", help="Also write, as JSONL, what share of annotators would give each label, and the ambiguity."
    ),
]
Threads = Annotated[int | None, typer.Option("--threads", help="How many threads; all cores if not given.")]


_READ = "What is read"


def _option(name: str, metavar: str, help: str) -> Any:
    return Annotated[str | None, typer.Option(name, metavar=metavar, help=help, rich_help_panel=_READ)]


MaxSize = _option(
    "--max-size", "SIZE", "How long a line may be, or what a small compressed file may unpack to (default 1G)."
)

LayersOption = Annotated[
    str,
    typer.Option(
        "--layers",
        metavar="none|auto",
        help="Spans that overlap: none keeps the longer; auto keeps all, in layers.",
        rich_help_panel=_READ,
    ),
]

_NoLayers = Annotated[str, typer.Option("--layers", hidden=True)]  # to be refused in a line

READING: dict[str, Any] = {
    "format": _option(
        "--from", "FORMAT", "The format of the input: see 'quorate formats'; by default, recognised from the content."
    ),
    "annotator_from": _option(
        "--annotator-from", "WHAT", "Each file belongs to one annotator, named by its filename or its folder."
    ),
    "map_labels": _option(
        "--map-labels", "OLD=NEW,…|FILE", "Rename or merge labels; OLD= drops one, *= all that are not named."
    ),
    "map_annotators": _option(
        "--map-annotators", "OLD=NEW,…|FILE", "Rename annotators, or merge two accounts; OLD= drops one."
    ),
    "annotators": _option(
        "--annotators", "FILE", "JSON with what is known about some annotators: kind, trust, abstains, group."
    ),
    "pseudonymise": _option(
        "--pseudonymise", "FILE", "Use pseudonyms for annotators; FILE records who is who: keep it to yourself."
    ),
    "samples": _option(
        "--samples", "HOW", "Samples of a language model: soft (default), one annotator with their shares, or group."
    ),
    "offsets": _option("--offsets", "UNIT", "What offsets count, if the file does not show it: code-points or utf-16."),
    "max_size": MaxSize,
    "predictions": Annotated[
        bool,
        typer.Option(
            "--with-predictions", help="Models' predictions in the file are annotators too.", rich_help_panel=_READ
        ),
    ],
}


class Reading:
    """The options of reading, as they were given."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def corpus(self, inputs: list[str]) -> Corpus:
        """The annotations in the inputs."""
        import quorate

        return quorate.read(*inputs, **self.options)


class LayeredReading(Reading):
    """The same with --layers, for commands that know layers."""

    def __init__(self, options: dict[str, Any]) -> None:
        layers = options.pop("layers")
        super().__init__(options)
        self.in_layers = wants_layers(layers)

    def layers(self, inputs: list[str], into: Mapping[str, Layer] | None = None) -> Layers:
        """The annotations by layer, those of a model if they are given; a single one without --layers auto."""
        import quorate
        from quorate.formats.layers import Layers

        if self.in_layers or into is not None:
            return quorate.read_layers(*inputs, **self.options, layers=into)
        return Layers.alone(self.corpus(inputs))


def wants_layers(given: str) -> bool:
    """What --layers says."""
    if given not in ("none", "auto"):
        raise SettingsError(f"--layers {given!r} is not known (one of: none, auto)")
    return given == "auto"


def reads(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of reading; it takes them as one parameter, ``reading``.

    One that takes a :class:`LayeredReading` has --layers too. An option that the command has itself, under the same
    name, is left to it.
    """
    own = inspect.signature(command, eval_str=True)
    kind: type[Reading] = own.parameters["reading"].annotation
    options = READING | {"layers": LayersOption if issubclass(kind, LayeredReading) else _NoLayers}
    parameters = [each for each in own.parameters.values() if each.name != "reading"]
    shared = [name for name in options if name not in own.parameters]
    for name in shared:
        default = {"predictions": False, "layers": "none"}.get(name)
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=options[name])
        )

    def run(**values: Any) -> Any:
        taken = {name: values.pop(name) for name in shared}
        if not issubclass(kind, LayeredReading) and wants_layers(taken.pop("layers")):
            raise SettingsError(
                f"'quorate {command.__name__.replace('_', '-')}' knows no layers (leave out --layers: of spans that "
                "overlap the longer is kept)"
            )
        return command(reading=kind(taken), **values)

    return with_options(run, command, parameters)


def with_options(
    run: Callable[..., Any], command: Callable[..., Any], parameters: Iterable[inspect.Parameter]
) -> Callable[..., Any]:
    """``run`` under the name of the command, with a signature from which its options are made."""
    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in named}
    return run


def typed(context: typer.Context, *names: str) -> bool:
    """Whether one of these parameters was given to the command itself; what a project's file gives is a default."""
    sources = (context.get_parameter_source(name) for name in names)
    return any(source is not None and source.name == "COMMANDLINE" for source in sources)


def say(lines: Iterable[str]) -> None:
    """Lines on standard error, whatever the names in them hold."""
    for line in lines:
        _put(f"quorate: {line}", sys.stderr, indent=len("quorate: "))


def tell(line: str, *, indent: int = 2) -> None:
    """A line on standard output, whatever the names in it hold; where it is wrapped, the rest is indented."""
    _put(line, sys.stdout, indent=indent)


def _put(line: str, stream: TextIO, *, indent: int) -> None:
    """A line, wrapped on a terminal; in a file or a pipe it stays one, for those who search in it."""
    line, width = escaped(line), width_of(stream)
    print(line if width is None else wrapped(line, width, indent=indent), file=stream)


def cell(text: str) -> Text:
    """A name or a label in a table, as it stands: neither control characters nor rich's markup have their way."""
    from rich.text import Text

    return Text(escaped(text))


def say_notes(corpus: Corpus) -> None:
    """What reading changed or found odd, on standard error."""
    say(f"note: {note}" for note in corpus.notes)


def console(*, stderr: bool = False) -> Console:
    """Where tables go: standard output, or standard error."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


@contextmanager
def _plain_mistakes() -> Iterator[None]:
    """Where a number was wanted, the error says what was given instead; of an option of before, what to use now."""
    try:
        yield
    except typer.BadParameter as error:
        # Of the library that makes numbers of what is typed.
        faults: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
        kind = str(faults[0].get("type")) if faults else ""
        if kind in ("float_parsing", "int_parsing", "int_from_float"):
            error.message = _no_number(str(faults[0].get("input")), whole=kind.startswith("int"))
        raise
    except Exception as error:
        from quorate.cli.gone import option_gone

        gone = option_gone(getattr(error, "option_name", ""))
        if gone is None:
            raise
        raise SettingsError(gone) from None


def _no_number(given: str, *, whole: bool = False) -> str:
    """What is wrong with what should be a number.

    >>> _no_number("95%"), _no_number("0,95"), _no_number("ten", whole=True)
    ("'95%' is not a number (95 % is 0.95)", "'0,95' is not a number (write it as 0.95)", "'ten' is not a whole number")
    """
    from quorate.model.settings import as_share

    if whole:
        return f"{given!r} is not a whole number"
    bare, meant = given.strip().removesuffix("%"), ""
    with suppress(ValueError):
        number = float(bare.replace(",", "."))
        meant = as_share(number) if bare != given.strip() else f" (write it as {number:g})"
    return f"{given!r} is not a number{meant}"


@contextmanager
def option_errors_at(where: Callable[[str], str]) -> Iterator[None]:
    """What the parser of options does not take becomes one line; ``where`` says where an option stands."""
    try:
        with _plain_mistakes():
            yield
    except Exception as error:
        if not hasattr(error, "format_message"):  # the parser's errors have no base of a name that lasts
            raise
        message: str = error.format_message()
        option = re.search(r"'--([\w-]+)'", message)
        raise SettingsError(f"{where(option[1] if option else '')}: {message}") from None


@contextmanager
def bar(what: str, quiet: bool) -> Iterator[Any]:
    """A progress bar on a terminal, as a function ``(done, total, note)``; ``None`` in a pipe."""
    from quorate.estimators.progress import bar as drawn

    with drawn(what) if not quiet and sys.stderr.isatty() else nullcontext() as report:
        yield report


@contextmanager
def fit_progress(quiet: bool) -> Iterator[ProgressCallback | None]:
    """A progress bar over the passes of a fit."""
    from quorate.estimators.progress import progress_bar

    with progress_bar() if not quiet and sys.stderr.isatty() else nullcontext() as after_pass:
        yield after_pass


def check_json(as_json: bool, output: str) -> None:
    """Refuse, before any work, JSON that would go to standard output together with what is written."""
    if as_json and output == "-":
        raise SettingsError("--json and the output cannot both go to standard output (give a file with -o)")


def write_json(value: Any, path: str) -> None:
    """A JSON file, whole or not at all."""
    from quorate.storage.files.atomic import written_whole

    with written_whole(path) as stream:
        stream.write(json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")


def check_outputs(inputs: list[str], outputs: list[str | None], to: str | None = None) -> None:
    """Refuse, before any work, outputs that cannot be written, or that would take the place of something else.

    The first of them is what is written in the format ``to``.
    """
    from quorate.formats.registry import named
    from quorate.storage.files.atomic import check_can_write, place_of

    folder = to is not None and named(to, to_write=True).folder
    taken = {Path(os.path.realpath(name)): "an input" for name in inputs if name != "-"}
    for number, name in enumerate(outputs):
        if name is None or name == "-":
            continue
        check_can_write(name, folder=folder and number == 0)
        place = place_of(name)
        if place in taken:
            raise SettingsError(f"{name}: this is {taken[place]}, which would be lost (give another name)")
        taken[place] = "another output"


def not_written(path: str, sentences: Iterable[str]) -> list[str]:
    """Notes of what the format of an output could not hold.

    >>> not_written("train.conll", ["1 document is not written"])
    ['note: train.conll: 1 document is not written']
    """
    return [f"note: {'standard output' if path == '-' else path}: {sentence}" for sentence in sentences]


def spare_what_was_checked(output: str) -> None:
    """Refuse to write over a file in which a person has checked something."""
    path = Path(output)
    if output != "-" and path.is_file() and re.search(rb'"checked":\s*true', path.read_bytes()):
        raise SettingsError(f"{output}: documents in it were checked, which would be lost (give another name)")
