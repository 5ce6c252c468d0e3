"""Figures for papers and notebooks, by matplotlib (the extra ``quorate[plot]``): annotators, a document, the fit."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.discontinuous import in_pieces, whole_label
from quorate.corpus.records import hard_tags
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet
from quorate.errors import SettingsError
from quorate.formats.notes import some
from quorate.result.annotators import AnnotatorSummaries
from quorate.result.clusters import group_annotators
from quorate.result.glyphs import Lettering
from quorate.storage.files.atomic import written_whole
from quorate.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from quorate.model.loop import Trace
    from quorate.result.consensus import Consensus

Floats = NDArray[np.float64]

FORMATS = ("pdf", "png", "svg")
"""What a figure can be saved as, by the end of the file's name."""

# Okabe and Ito's colours, which colour-blind readers can tell apart; a span always has its type written in it too.
_HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_MOST_LABELS = 25
_MOST_COLUMNS = 6  # of annotators' matrices side by side
_NAMES_SHOWN = 6  # of a group of annotators

# Of a document: inches, but for the sizes of letters, which are points.
_WIDTH, _ROW, _GAP = 11.0, 0.26, 0.1
_MOST_NAME = 2.0
_LETTER, _NOTE = 8, 7


def empty_figure(width: float, height: float) -> Figure:
    """An empty figure that no window or global state knows of."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingsError("figures need matplotlib (pip install 'quorate[plot]')") from None
    return Figure(figsize=(width, height), layout="constrained")


def kind_of(path: str | Path) -> str:
    """What a file of this name holds; :class:`SettingsError` if it is no figure.

    >>> kind_of("figure.PDF")
    'pdf'
    """
    kind = Path(path).suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        ends = ", ".join(f".{one}" for one in FORMATS)
        raise SettingsError(f"{path}: not a figure's name (give one that ends in {ends})")
    return kind


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as PDF, PNG or SVG, whole or not at all; the same figure gives the same file."""
    kind = kind_of(path)
    from matplotlib import rc_context

    undated: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    with rc_context({"svg.hashsalt": "quorate", "svg.fonttype": "none"}), written_whole(path, pack=False) as stream:
        figure.savefig(stream, format=kind, dpi=200, metadata=undated[kind])


def annotators_figure(
    annotators: AnnotatorSummaries,
    tagset: TagSet,
    *,
    groups: int | None = None,
    name: str | None = None,
    bars: bool = False,
    previous: Sequence[str] | None = None,
) -> Figure:
    """Confusion matrices of groups of annotators, or of one: a column a group, a row a previous label.

    This is Figure 1 of Simpson and Gurevych (2019); with ``bars``, their alternative view as bars in 3D. ``groups`` is
    chosen by silhouette unless given; ``previous`` names the previous labels to show, all unless given.
    """
    if not len(annotators):
        raise SettingsError("there is no annotator to draw")
    labels = tagset.labels
    if len(labels) > _MOST_LABELS:
        raise SettingsError(f"{len(labels)} labels are too many to draw (at most {_MOST_LABELS})")
    if name is not None:
        if name not in annotators.names:
            raise SettingsError(f"no annotator is called {name!r}")
        matrices, titles = annotators[name].matrix[None], [name]
    else:
        found = group_annotators(annotators, groups)
        matrices = found.matrices
        titles = [_group_title(n, found.members(n, annotators.names)) for n in range(len(found.sizes))]
    rows = _previous_rows(matrices.shape[1], labels, previous)
    side = max(1.7, 0.26 * len(labels) + 0.5)
    across = min(len(titles), _MOST_COLUMNS)  # what is more goes beneath, under titles of its own
    down = len(rows) * math.ceil(len(titles) / across)
    figure = empty_figure(side * across + 0.9, side * down + 0.35 * (1 + down / len(rows)))
    for group, title in enumerate(titles):
        band, column = divmod(group, across)
        for row, (number, before) in enumerate(rows):
            place = (down, across, (band * len(rows) + row) * across + column + 1)
            matrix = matrices[group, number]
            above = title if row == 0 else ""
            beside = f"previous label {before}" if before is not None and column == 0 else ""
            if bars:
                _draw_bars(figure.add_subplot(*place, projection="3d"), matrix, labels, above, beside)
            else:
                _draw_heat(
                    figure.add_subplot(*place),
                    matrix,
                    labels,
                    above,
                    beside,
                    first=column == 0,
                    last=row == len(rows) - 1,
                )
    return figure


def _group_title(number: int, names: Sequence[str]) -> str:
    """How many annotators a group has, and who they are.

    >>> print(_group_title(0, ["ana", "ben"]))
    Group 1 (2)
    ana, ben
    """
    who = textwrap.wrap(some([name if len(name) <= 16 else f"{name[:15]}…" for name in names], _NAMES_SHOWN), 36)
    return "\n".join([f"Group {number + 1} ({len(names)})", *who])


def _previous_rows(
    n_previous: int, labels: Sequence[str], wanted: Sequence[str] | None
) -> list[tuple[int, str | None]]:
    """The rows to draw: number and name of each previous label; a single nameless one where it plays no part."""
    if n_previous == 1:
        return [(0, None)]
    names = [*labels, "start"][:n_previous]
    for label in wanted or ():
        if label not in names:
            raise SettingsError(f"no previous label is called {label!r} (one of: {', '.join(names)})")
    return [(number, label) for number, label in enumerate(names) if wanted is None or label in wanted]


def _draw_heat(
    axes: Axes, matrix: Floats, labels: Sequence[str], above: str, beside: str, *, first: bool, last: bool
) -> None:
    axes.imshow(matrix, cmap="Blues", vmin=0.0, vmax=1.0)
    for j, i in np.argwhere(matrix >= 0.005):
        dark = matrix[j, i] > 0.55
        text = f"{matrix[j, i]:.2f}".removeprefix("0")
        axes.text(float(i), float(j), text, ha="center", va="center", fontsize=5, color="white" if dark else "black")
    places = np.arange(len(labels))
    axes.set_xticks(places, labels if last else [""] * len(labels), fontsize=5.5, rotation=90)
    axes.set_yticks(places, labels if first else [""] * len(labels), fontsize=5.5)
    axes.tick_params(length=0)
    axes.set_title(above, fontsize=6.5, parse_math=False)
    if last:
        axes.set_xlabel("annotator says", fontsize=6)
    if first:
        axes.set_ylabel(f"{beside}\ntruth" if beside else "truth", fontsize=6.5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_bars(axes: Any, matrix: Floats, labels: Sequence[str], above: str, beside: str) -> None:
    J = len(labels)
    truth, label = (grid.ravel() for grid in np.meshgrid(np.arange(J), np.arange(J), indexing="ij"))
    right = truth == label
    colours = np.where(right, _HUES[0], _HUES[1])
    axes.bar3d(
        label - 0.35, truth - 0.35, np.zeros(J * J), 0.7, 0.7, matrix.ravel(), color=colours.tolist(), shade=True
    )
    axes.set_xticks(np.arange(J), labels, fontsize=5)
    axes.set_yticks(np.arange(J), labels, fontsize=5)
    axes.set_zlim(0, 1)
    axes.set_zticks([0, 0.5, 1], ["0", ".5", "1"], fontsize=5)
    axes.set_xlabel("says", fontsize=6)
    axes.set_ylabel("truth", fontsize=6)
    axes.view_init(elev=32, azim=-58)
    axes.set_title("\n".join(part for part in (above, beside) if part), fontsize=6.5, parse_math=False)


def document_figure(consensus: Consensus, tagset: TagSet) -> Figure:
    """One document: the consensus shaded by confidence, and beneath it what every annotator (and gold) marks.

    Every word is as wide as it is drawn, in a font that has its characters; lines break where they are full.
    """
    document, versions = consensus.document, _versions(consensus, tagset)
    names = [name for name, _ in versions]
    notes = [[_note(span, own=not row) for span in spans] for row, (_, spans) in enumerate(versions)]
    figure = empty_figure(_WIDTH, 1)
    letters = Lettering(figure, [*document.tokens, *names, document.id, *(note for row in notes for note in row)])
    names = [letters.cut(name, _LETTER, _MOST_NAME) for name in names]
    left = max(letters.width(name, _LETTER) for name in names) + 3 * _GAP
    tokens = [letters.cut(token, _LETTER, _WIDTH - left - 3 * _GAP) for token in document.tokens]
    widths = [letters.width(token, _LETTER) + _GAP for token in tokens]
    for (_, spans), written in zip(versions, notes, strict=True):
        for span, note in zip(spans, written, strict=True):
            short = letters.width(note, _NOTE) + _GAP - sum(widths[span.start : span.end])
            for at in range(span.start, span.end):
                widths[at] += max(short, 0.0) / (span.end - span.start)
    lines = _lines(widths, _WIDTH - left - _GAP)
    tall = len(versions) + 1.7  # rows of a line: its words, everybody's spans, and some room
    height = _ROW * (tall * len(lines) + 1.5)
    figure.set_size_inches(_WIDTH, height)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0.0, _WIDTH), ylim=(-height / _ROW, 0.0))
    axes.set_axis_off()
    page = _Page(axes, letters)
    page.write(_GAP, -0.6, f"{document.id}: {consensus.confidence:.2f}", 9, ha="left")
    for number, (first, last) in enumerate(lines):
        top = -2 - number * tall
        edges = left + np.concatenate([[0.0], np.cumsum(widths[first:last])])
        for at in range(first, last):
            page.write(float(edges[at - first : at - first + 2].mean()), top, tokens[at], _LETTER)
        for row, (name, (_, spans)) in enumerate(zip(names, versions, strict=True)):
            weight = "normal" if row else "bold"
            page.write(left - 1.5 * _GAP, top - 1 - row, name, _LETTER, ha="right", weight=weight)
            for span, note in zip(spans, notes[row], strict=True):
                alpha = 0.55 if row else 0.2 + 0.8 * span.sure
                page.mark(edges, first, last, top - 1 - row, span, note, _hue(span.label, tagset), alpha)
    return figure


def _versions(consensus: Consensus, tagset: TagSet) -> list[tuple[str, list[Span]]]:
    """What the consensus, every annotator and the gold mark; in the plain scheme every token is a span."""
    document = consensus.document
    given = [*sorted(document.annotations.items()), *([("gold", document.gold)] if document.gold is not None else [])]
    if tagset.scheme is not Scheme.PLAIN:
        labels = [(name, tagset.pieces(hard_tags(tags))) for name, tags in given]
        return [("consensus", in_pieces(consensus.spans)), *labels]
    sure = consensus.token_confidence.tolist()
    own = [Span(at, at + 1, tag, sure[at]) for at, tag in enumerate(consensus.tags)]
    labels = [(name, [Span(n, n + 1, tag) for n, tag in enumerate(hard_tags(tags)) if tag]) for name, tags in given]
    return [("consensus", own), *labels]


def _note(span: Span, *, own: bool) -> str:
    """What is written in a span: its label and, in the consensus, how sure it is."""
    return f"{span.label} {span.sure:.2f}" if own else span.label


def _lines(widths: Sequence[float], most: float) -> list[tuple[int, int]]:
    """The first and last (excluded) token of every line.

    >>> _lines([2, 2, 1, 4], 5)
    [(0, 3), (3, 4)]
    """
    lines, first, filled = [], 0, 0.0
    for at, width in enumerate(widths):
        if at > first and filled + width > most:
            lines.append((first, at))
            first, filled = at, 0.0
        filled += width
    return [*lines, (first, len(widths))]


def _hue(label: str, tagset: TagSet) -> str:
    kind = whole_label(label)
    return _HUES[tagset.types.index(kind) % len(_HUES)] if kind in tagset.types else _HUES[-1]


class _Page(NamedTuple):
    """Where a document is drawn: x in inches, y in rows."""

    axes: Axes
    letters: Lettering

    def write(self, x: float, y: float, text: str, size: float, ha: str = "center", weight: str = "normal") -> None:
        written, family = self.letters.drawn(text), self.letters.family if weight == "normal" else None
        self.axes.text(x, y, written, ha=ha, va="center", fontsize=size, family=family, weight=weight, parse_math=False)

    def mark(
        self, edges: Floats, first: int, last: int, y: float, span: Span, note: str, hue: str, alpha: float
    ) -> None:
        """The part of a span that falls on this line of tokens."""
        start, end = max(span.start, first), min(span.end, last)
        if start >= end:
            return
        left, right = float(edges[start - first]), float(edges[end - first])
        self.axes.barh(
            y, right - left - 0.04, left=left + 0.02, height=0.78, color=hue, alpha=min(alpha, 1.0) * 0.6, linewidth=0
        )
        self.write((left + right) / 2, y, self.letters.cut(note, _NOTE, right - left), _NOTE)


def trace_figure(trace: Trace) -> Figure:
    """The bound after every pass.

    >>> from quorate.model.loop import StopReason, Trace
    >>> len(trace_figure(Trace((-9.0, -8.5), StopReason.MAX_PASSES, (-8.5,), 0.1)).axes)
    1
    """
    figure = empty_figure(5, 3)
    from matplotlib.ticker import MaxNLocator

    axes = figure.add_subplot(1, 1, 1)
    axes.plot(np.arange(1, trace.passes + 1), trace.bounds, marker="o", markersize=3.5, color=_HUES[0])
    axes.set_xlabel("pass")
    axes.set_ylabel("bound")
    axes.set_title(f"{counted(trace.passes, 'pass', 'passes')}, stopped: {trace.reason.value}", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    return figure
