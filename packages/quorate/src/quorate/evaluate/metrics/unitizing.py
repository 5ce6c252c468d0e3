"""Krippendorff's alpha for unitizing: do annotators mark the same stretches of text?

K. Krippendorff, "On the reliability of unitizing continuous data", Sociological Methodology 25 (1995), and *Content
Analysis*, 2nd edition (2004), chapter 11. For each span type c, an annotator's tokens fall into units (spans of type
c) and the gaps between them. Two annotators' sections differ by

* δ² = (difference of starts)² + (difference of ends)², if both are units and they overlap;
* δ² = l², if a unit of length l lies wholly within a gap;
* δ² = 0 otherwise.

For m annotators of a text of L tokens, with N_c units of type c in all::

    D_o,c = Σ_{i≠j} Σ_{g,h} δ² / (m (m − 1) L²)
    D_e,c = (2/L) Σ_units [ (N_c − 1)/3 · (2l³ − 3l² + l) + l² Σ_gaps max(0, gap − l + 1) ]
            / ( mL (mL − 1) − Σ_units l (l − 1) )
    alpha_c = 1 − D_o,c / D_e,c        alpha = 1 − Σ_c D_o,c / Σ_c D_e,c

Documents are cut apart: no unit or gap spans two of them. Where annotators differ from document to document, mL becomes
T = Σ_d m_d L_d and a document's differences count 1/(m_d − 1), as in alpha with missing values; where all annotate all,
this is the formula above for the documents laid end to end. The formula counts places for a span that a cut takes away,
so alpha comes out a little low where spans are long against their documents.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from quorate.corpus.spans import Span
from quorate.errors import InputError

Bounds = tuple[int, int]


class Continuum(NamedTuple):
    """A text of ``length`` tokens, and the spans that each of its annotators marked.

    >>> Continuum(10, [[Span(0, 2, "X")], []]).length
    10
    """

    length: int
    annotators: Sequence[Sequence[Span]]


class Unitizing(NamedTuple):
    """Alpha over all types and by type, ``None`` where nobody marked a span; disagreements as in the formula, times L.

    >>> Unitizing(0.8, {"X": 0.8}, 0.2, 1.0).alpha
    0.8
    """

    alpha: float | None
    by_type: dict[str, float | None]
    observed: float
    expected: float


class _Seen(NamedTuple):
    """What was marked of one type."""

    units: list[int]  # lengths
    gaps: Counter[int]  # lengths, and how many; of the annotators who marked the type at all
    marked: Counter[int]  # lengths of the texts of those annotators


def unitizing_alpha(continua: Iterable[Continuum]) -> Unitizing:
    """Krippendorff's unitizing alpha, by the formula that this module states.

    1 is perfect agreement, 0 what chance would give. Texts with fewer than two annotators do not count. One annotator's
    spans of the same type must not overlap. The pieces of a discontinuous span are units by themselves.

    >>> unitizing_alpha([Continuum(10, [[Span(0, 2, "X")], [Span(0, 2, "X")]])]).alpha
    1.0
    >>> unitizing_alpha([Continuum(10, [[], []])]).alpha is None
    True
    """
    seen: defaultdict[str, _Seen] = defaultdict(lambda: _Seen([], Counter(), Counter()))
    differences: defaultdict[str, float] = defaultdict(float)
    texts: Counter[int] = Counter()  # lengths of the texts that annotators read, each as often as it was read
    for number, (length, annotators) in enumerate(continua, 1):
        m = len(annotators)
        if m < 2:
            continue
        texts[length] += m
        marked: defaultdict[str, dict[int, list[Bounds]]] = defaultdict(dict)
        for annotator, spans in enumerate(annotators):
            pieces = sorted((start, end, span.label) for span in spans for start, end in span.parts)
            for start, end, kind in pieces:
                marked[kind].setdefault(annotator, []).append((start, end))
        for kind, units_of in marked.items():
            for units in units_of.values():
                _count_sections(seen[kind], units, length, number)
            differences[kind] += 2 * _differences(units_of, m) / (m - 1)
    total = sum(length * times for length, times in texts.items())
    observed = {kind: differences[kind] / total for kind in sorted(seen)}
    expected = {kind: _expected(seen[kind], texts, total) for kind in sorted(seen)}
    by_type = {kind: _alpha(observed[kind], expected[kind]) for kind in observed}
    all_observed, all_expected = sum(observed.values()), sum(expected.values())
    return Unitizing(_alpha(all_observed, all_expected), by_type, all_observed, all_expected)


def _alpha(observed: float, expected: float) -> float | None:
    return 1 - observed / expected if expected else None


def _count_sections(seen: _Seen, units: list[Bounds], length: int, number: int) -> None:
    edges = [(0, 0), *units, (length, length)]
    for (_, end), (start, _) in pairwise(edges):
        if start < end:
            raise InputError(
                "spans of the same type by one annotator overlap, or leave the text", where=f"document {number}"
            )
        seen.gaps[start - end] += 1
    seen.units.extend(end - start for start, end in units)
    seen.marked[length] += 1


def _differences(units_of: dict[int, list[Bounds]], m: int) -> float:
    """Σ δ² over unordered pairs of m annotators, of whom those not in ``units_of`` marked nothing."""
    unmarked = m - len(units_of)
    total = unmarked * sum((end - start) ** 2 for units in units_of.values() for start, end in units)
    for one, other in combinations(units_of.values(), 2):
        if one != other:
            total += _difference(one, other)
    return total


def _difference(one: list[Bounds], other: list[Bounds]) -> int:
    total = 0
    met: set[Bounds] = set()
    for start, end in one:
        over = [unit for unit in other if unit[0] < end and start < unit[1]]
        met.update(over)
        total += sum((start - b) ** 2 + (end - e) ** 2 for b, e in over) if over else (end - start) ** 2
    return total + sum((end - start) ** 2 for start, end in other if (start, end) not in met)


def _expected(seen: _Seen, texts: Counter[int], total: int) -> float:
    gaps = seen.gaps.copy()
    for length, readers in texts.items():
        gaps[length] += readers - seen.marked[length]  # whoever marked nothing leaves one gap
    sizes, times = np.array(list(gaps)), np.array(list(gaps.values()), np.float64)
    n = len(seen.units)
    numerator = denominator = 0.0
    for length, count in Counter(seen.units).items():
        room = float(times @ np.maximum(sizes - length + 1, 0))
        numerator += count * ((n - 1) / 3 * (2 * length**3 - 3 * length**2 + length) + length**2 * room)
        denominator += count * length * (length - 1)
    return 2 * numerator / (total * (total - 1.0) - denominator)
