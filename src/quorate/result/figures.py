"""Figures for papers and notebooks, by matplotlib (the extra ``quorate[plot]``): annotators, a document, the fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.discontinuous import in_pieces, whole_label
from quorate.corpus.records import hard_tags
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet
from quorate.errors import SettingsError
from quorate.result.annotators import AnnotatorSummaries
from quorate.result.clusters import group_annotators
from quorate.storage.files.atomic import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from quorate.infer.loop import Trace
    from quorate.result.consensus import Consensus

__all__ = ["FORMATS", "annotators_figure", "document_figure", "empty_figure", "kind_of", "save", "trace_figure"]

Floats = NDArray[np.float64]

FORMATS = ("pdf", "png", "svg")
"""What a figure can be saved as, by the end of the file's name."""

# Okabe and Ito's colours, which colour-blind readers can tell apart; a span always has its type written in it too.
_HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_MOST_LABELS = 25
_TOKENS_A_LINE = 16


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
        titles = [f"Group {n + 1} ({size})" for n, size in enumerate(found.sizes)]
    rows = _previous_rows(matrices.shape[1], labels, previous)
    side = max(1.7, 0.26 * len(labels) + 0.5)
    figure = empty_figure(side * len(titles) + 0.9, side * len(rows) + 0.7)
    for row, (number, before) in enumerate(rows):
        for column, title in enumerate(titles):
            place = (len(rows), len(titles), row * len(titles) + column + 1)
            matrix = matrices[column, number]
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
    axes.set_title(above, fontsize=8)
    if last:
        axes.set_xlabel("annotator says", fontsize=6)
    if first:
        axes.set_ylabel(f"{beside}\ntruth" if beside else "truth", fontsize=6.5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_bars(axes: Any, matrix: Floats, labels: Sequence[str], above: str, beside: str) -> None:
    J = len(labels)
    truth, said = (grid.ravel() for grid in np.meshgrid(np.arange(J), np.arange(J), indexing="ij"))
    right = truth == said
    colours = np.where(right, _HUES[0], _HUES[1])
    axes.bar3d(said - 0.35, truth - 0.35, np.zeros(J * J), 0.7, 0.7, matrix.ravel(), color=colours.tolist(), shade=True)
    axes.set_xticks(np.arange(J), labels, fontsize=5)
    axes.set_yticks(np.arange(J), labels, fontsize=5)
    axes.set_zlim(0, 1)
    axes.set_zticks([0, 0.5, 1], ["0", ".5", "1"], fontsize=5)
    axes.set_xlabel("says", fontsize=6)
    axes.set_ylabel("truth", fontsize=6)
    axes.view_init(elev=32, azim=-58)
    axes.set_title("\n".join(part for part in (above, beside) if part), fontsize=7.5)


def document_figure(consensus: Consensus, tagset: TagSet) -> Figure:
    """One document: the consensus shaded by confidence, and beneath it what every annotator (and gold) marks."""
    document = consensus.document
    plain = tagset.scheme is Scheme.PLAIN
    versions: list[tuple[str, list[Span]]] = []
    given = [*sorted(document.annotations.items()), *([("gold", document.gold)] if document.gold is not None else [])]
    for name, tags in given:
        hard = hard_tags(tags)
        if plain:
            versions.append((name, [Span(at, at + 1, tag) for at, tag in enumerate(hard) if tag is not None]))
        else:
            versions.append((name, tagset.pieces(hard)))
    if plain:
        own = [Span(at, at + 1, tag, float(consensus.token_confidence[at])) for at, tag in enumerate(consensus.tags)]
    else:
        own = in_pieces(consensus.spans)
    tokens = document.tokens
    lines = [
        (first, min(first + _TOKENS_A_LINE, len(tokens))) for first in range(0, max(len(tokens), 1), _TOKENS_A_LINE)
    ]
    tall = len(versions) + 2.2
    figure = empty_figure(11, 0.3 * tall * len(lines) + 0.5)
    axes = figure.add_subplot(1, 1, 1)
    for number, (first, last) in enumerate(lines):
        top = -number * tall
        widths = [max(len(token), 4) + 1.5 for token in tokens[first:last]]
        edges = np.concatenate([[0.0], np.cumsum(widths)])
        for at in range(first, last):
            middle = float(edges[at - first : at - first + 2].mean())
            axes.text(middle, top, tokens[at], ha="center", va="center", fontsize=8, parse_math=False)
        for span in own:
            alpha, note = 0.2 + 0.8 * span.sure, f" {span.sure:.2f}"
            _draw_span(axes, edges, first, last, top - 1, span, tagset, alpha, note)
        axes.text(-1.5, top - 1, "consensus", ha="right", va="center", fontsize=8, weight="bold")
        for row, (name, spans) in enumerate(versions, 2):
            axes.text(-1.5, top - row, name, ha="right", va="center", fontsize=8, parse_math=False)
            for span in spans:
                _draw_span(axes, edges, first, last, top - row, span, tagset, 0.55, "")
    longest = max((sum(max(len(t), 4) + 1.5 for t in tokens[first:last]) for first, last in lines), default=10.0)
    axes.set_xlim(-14, max(longest, 60))
    axes.set_ylim(-tall * len(lines) + 0.5, 1)
    axes.set_axis_off()
    axes.set_title(f"{document.id}: {consensus.confidence:.2f}", fontsize=9, loc="left", parse_math=False)
    return figure


def _draw_span(
    axes: Axes, edges: Floats, first: int, last: int, y: float, span: Span, tagset: TagSet, alpha: float, note: str
) -> None:
    """The part of a span that falls on this line of tokens."""
    start, end = max(span.start, first), min(span.end, last)
    if start >= end:
        return
    kind = whole_label(span.label)
    hue = _HUES[tagset.types.index(kind) % len(_HUES)] if kind in tagset.types else _HUES[-1]
    left, right = float(edges[start - first]), float(edges[end - first])
    axes.barh(y, right - left - 0.4, left=left + 0.2, height=0.78, color=hue, alpha=min(alpha, 1.0) * 0.6, linewidth=0)
    axes.text((left + right) / 2, y, span.label + note, ha="center", va="center", fontsize=7, parse_math=False)


def trace_figure(trace: Trace) -> Figure:
    """The bound after every pass.

    >>> from quorate.infer.loop import StopReason, Trace
    >>> len(trace_figure(Trace((-9.0, -8.5), StopReason.MAX_PASSES, (-8.5,), 0.1)).axes)
    1
    """
    figure = empty_figure(5, 3)
    from matplotlib.ticker import MaxNLocator

    axes = figure.add_subplot(1, 1, 1)
    axes.plot(np.arange(1, trace.passes + 1), trace.bounds, marker="o", markersize=3.5, color=_HUES[0])
    axes.set_xlabel("pass")
    axes.set_ylabel("bound")
    axes.set_title(f"{trace.passes} passes, stopped: {trace.reason.value}", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    return figure
