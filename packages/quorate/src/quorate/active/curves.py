"""Learning curves as a figure (the extra ``plot``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.result.figures import empty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quorate.active.simulation import Simulation


def curves_figure(found: Simulation) -> Figure:
    """F1 and cross entropy against labels, a line for each method and strategy, with bands of a standard deviation."""
    figure = empty_figure(11, 4.5)
    left, right = figure.subplots(1, 2)
    for number, curve in enumerate(found.curves):
        colour, line = f"C{number % 10}", ("-", "--", ":")[number // 10 % 3]
        for axes, mean, spread, scale in (
            (left, curve.f1, curve.f1_spread, 100),
            (right, curve.cee, curve.cee_spread, 1),
        ):
            axes.plot(curve.labels, scale * mean, color=colour, linestyle=line, label=curve.name)
            low, high = scale * (mean - spread), scale * (mean + spread)
            axes.fill_between(curve.labels, low, high, color=colour, alpha=0.15, linewidth=0)
    left.set_ylabel("strict F1")
    right.set_ylabel("cross entropy (CEE)")
    if max(curve.cee.max() for curve in found.curves) > 3:
        right.set_yscale("log")
    for axes in (left, right):
        axes.set_xlabel("labels asked for")
        axes.grid(alpha=0.3)
    left.legend(fontsize="small")
    return figure
