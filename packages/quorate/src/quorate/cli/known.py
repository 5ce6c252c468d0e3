"""The option --known, which means the same in every command that has it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorate.cli.common import say, typed
from quorate.errors import SettingsError

if TYPE_CHECKING:
    from quorate.corpus.records import Corpus
    from quorate.estimators.layered import KnownInLayers
    from quorate.formats.known import Settled
    from quorate.formats.layers import Layers
    from quorate.model.prepared import Known

KnownOption = Annotated[
    list[str] | None,
    typer.Option(
        "--known",
        metavar="none|inline|FILE",
        help="Labels taken as certain: the gold in the input, or that of a file, such as a review; may be repeated.",
        rich_help_panel="What is read",
    ),
]


class KnownLabels:
    """What --known was given: the gold in the input, files, or both; ``digests`` are those of files that were read.

    What a project knows is about its own inputs, and not about others that a command is given. It may be about
    ``others`` beside those that are read: about inputs of before, of which a version's model keeps no documents.
    """

    def __init__(
        self,
        context: typer.Context,
        given: list[str] | None,
        inputs: list[str],
        max_size: str | None = None,
        *,
        others: bool = False,
    ) -> None:
        if not typed(context, "known") and _are_others(context, inputs):
            given = None
        named = dict.fromkeys(given or ())
        self.inline = "inline" in named
        self.files = [name for name in named if name not in ("none", "inline")]
        self.digests: dict[str, str] = {}
        self._max_size, self._others = max_size, others
        if "none" in named and len(named) > 1:
            raise SettingsError("--known none goes with no other --known (leave it out)")
        if "-" in self.files and "-" in inputs:
            raise SettingsError("standard input can be read once: - is an input and --known (give one as a file)")

    def of(self, corpus: Corpus, *, quiet: bool = False) -> Known:
        """The known labels of a corpus; says in how many documents reviewers disagree, or changed their mind."""
        from quorate.formats.known import read_settled

        inline = self._is_inline(corpus)
        if not self.files:
            return "inline" if inline else None
        options: dict[str, Any] = {"digests": self.digests, "max_size": self._max_size, "others": self._others}
        found = read_settled(self.files, corpus, inline=inline, **options)
        _tell([found], quiet)
        return found.tags

    def of_layers(self, layers: Layers, *, quiet: bool = False) -> tuple[Layers, KnownInLayers]:
        """The known labels of each layer; and the layers, with those that only known labels need."""
        from quorate.formats.known_layers import read_settled_layers

        inline = self._is_inline(layers.corpus)
        if not self.files:
            return layers, "inline" if inline else None
        if not layers.named:
            return layers, dict.fromkeys(layers, self.of(layers.corpus, quiet=quiet))
        options: dict[str, Any] = {"digests": self.digests, "max_size": self._max_size, "others": self._others}
        layers, found = read_settled_layers(self.files, layers, inline=inline, **options)
        _tell(found.values(), quiet)
        return layers, {name: settled.tags for name, settled in found.items()}

    def _is_inline(self, corpus: Corpus) -> bool:
        """Whether gold counts; where there are others beside these documents, they may be those that have it."""
        return self.inline and (not self._others or any(one.gold is not None for one in corpus))


def _are_others(context: typer.Context, inputs: list[str]) -> bool:
    """Whether a command was given inputs none of which is of the project that it stands in."""
    own = {os.path.realpath(path) for path in (context.default_map or {}).get("inputs", ())}
    return typed(context, "inputs") and own.isdisjoint(map(os.path.realpath, inputs))


def _tell(settled: Iterable[Settled], quiet: bool) -> None:
    """In how many documents reviewers disagree, or changed their mind."""
    settled = list(settled)
    disputed = {name for one in settled for name in one.disputed}
    if disputed:
        count = f"{len(disputed):,}"
        say([f"warning: known labels disagree (documents: {count}); 'quorate reviews' lists what is left open"])
    revised = {name for one in settled for name in one.revised}
    if revised and not quiet:
        say([f"note: a reviewer's later labels replace earlier ones (documents: {len(revised):,})"])
