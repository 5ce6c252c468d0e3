"""The directive ``command-line``: every command with its options, read from the program itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from quorate.cli import app as program

__all__ = ["commands", "markdown", "setup"]


def commands(command: Any, name: str = "quorate") -> Iterator[tuple[str, Any]]:
    """A command, and all commands below it, each with its whole name; hidden ones are left out."""
    yield name, command
    for part, below in sorted(getattr(command, "commands", {}).items()):
        if not below.hidden:
            yield from commands(below, f"{name} {part}")


def markdown(name: str, command: Any) -> str:
    """The section of a command: what it does, how it is called, and a row for each option."""
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    rows = "".join(_row(parameter, context) for parameter in command.params if parameter.get_help_record(context))
    table = f"\n| option | what it does |\n|---|---|\n{rows}" if rows else ""
    return f"## `{name}`\n\n{_plain(command.help or '')}\n\n```text\n{usage}\n```\n{table}\n"


def _row(parameter: Any, context: Any) -> str:
    names, told = (text.replace("\n", " ").replace("|", "\\|") for text in parameter.get_help_record(context))
    return f"| `{names}` | {_plain(told)} |\n"


def _plain(text: str) -> str:
    """Without the marks of the terminal: paragraphs of it are those of the page."""
    text = re.sub(r"\[/?(?:bold|dim|italic|cyan|green|red|yellow)\]", "", text.replace("\b\n", ""))
    return text.replace("<", "\\<").strip()


class CommandLine(SphinxDirective):
    """``{command-line}``: a section for every command."""

    def run(self) -> list[nodes.Node]:
        """Parsed as if it stood on the page, which is read at every build, as the program may have changed."""
        self.env.note_reread()
        root: Any = typer.main.get_command(program)
        root.add_others()  # the commands of the service
        text = "\n".join(markdown(name, command) for name, command in commands(root))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True}
