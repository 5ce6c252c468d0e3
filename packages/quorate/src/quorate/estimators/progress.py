"""How far a fit has come, for whoever waits: a bar on a terminal and in a notebook. Shown only if asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from quorate.estimators.base import ProgressCallback
    from quorate.model.loop import Progress

Report = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what there is to say of it."""

_CELLS = 30


@contextmanager
def progress_bar(what: str = "fitting") -> Iterator[ProgressCallback]:
    """A bar over the passes of a fit: by rich on a terminal and in a notebook (with ipywidgets; else a line of text).

    Where nobody looks, in a pipe or a file, nothing is written.

    >>> import quorate
    >>> with progress_bar() as report:
    ...     model = quorate.BSC("cm", max_iter=2).fit(quorate.sample(), progress=report)
    """
    with bar(what) as report:

        def after_pass(step: Progress) -> None:
            done = step.max_passes * step.start + step.passes
            report(done, step.max_passes * step.n_starts, step.note or "")

        yield after_pass


@contextmanager
def shown(progress: ProgressCallback | bool | None) -> Iterator[ProgressCallback | None]:
    """What is to be called after every pass: a bar for ``True``, nothing for ``False``.

    >>> with shown(False) as report:
    ...     report is None
    True
    """
    if progress is True:
        with progress_bar() as report:
            yield report
    else:
        yield progress or None


@contextmanager
def bar(what: str) -> Iterator[Report]:
    """A bar that is there until the end of the block."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False, soft_wrap=False)
    if console.is_jupyter and find_spec("ipywidgets") is None:  # which rich cannot do without
        line = _Line(what, sys.stderr)
        try:
            yield line.report
        finally:
            line.clear()
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    unseen = not (console.is_interactive or console.is_jupyter)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=unseen) as drawn:
        task = drawn.add_task("", total=None, note="")

        def report(done: int, total: int, note: str = "") -> None:
            drawn.update(task, total=total, completed=done, note=note)

        yield report


class _Line:
    """A line of text that is written over, as notebooks allow."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self.what, self.stream, self.width = what, stream, 0

    def report(self, done: int, total: int, note: str = "") -> None:
        full = round(_CELLS * done / max(total, 1))
        self._write(f"{self.what} [{'=' * full}{' ' * (_CELLS - full)}] {done}/{total} {note}")

    def clear(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        self.stream.write("\r" + text.ljust(self.width) + ("\r" if not text else ""))
        self.stream.flush()
        self.width = len(text)
