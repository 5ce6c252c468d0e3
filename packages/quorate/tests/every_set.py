"""Plain definitions of what the span model works with: overlaps, clusters, sets of spans, responses to a span."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from quorate.corpus.spans import Span
from quorate.model.kernels import spans as kernels

Place = tuple[int, int, int]
"""First token, token after the last, type."""


def places_of(spans: Iterable[Span], types: Sequence[str], first: int = 0) -> list[Place]:
    """Where spans are, with the numbers of their types; tokens are counted from ``first``."""
    return [(first + span.start, first + span.end, types.index(span.label)) for span in spans]


def overlap(one: Place, other: Place, apart: int = 0) -> bool:
    """Whether two spans share a token, or have less than ``apart`` between them."""
    return one[0] < other[1] + apart and other[0] < one[1] + apart


def components(spans: Sequence[Place], apart: int) -> list[int]:
    """The number of the group that each span is in with all it overlaps, directly or through others."""
    group = list(range(len(spans)))
    for i, j in itertools.combinations(range(len(spans)), 2):
        if overlap(spans[i], spans[j], apart) and group[i] != group[j]:
            group = [group[i] if g == group[j] else g for g in group]
    return [sorted(set(group), key=group.index).index(g) for g in group]


def sets_of(spans: Sequence[Place], apart: int) -> Iterator[tuple[int, ...]]:
    """Every set of spans that do not overlap; ``apart`` tokens must lie between two of one type."""
    for chosen in itertools.product([False, True], repeat=len(spans)):
        members = tuple(i for i, is_in in enumerate(chosen) if is_in)
        pairs = [(spans[i], spans[j]) for i, j in itertools.combinations(members, 2)]
        if not any(overlap(one, other, apart if one[2] == other[2] else 0) for one, other in pairs):
            yield members


def response_to(span: Place, marks: Sequence[Place], runs: Sequence[tuple[int, int]]) -> int:
    """What somebody who was shown these runs of tokens and marked these did with a span."""
    if not any(low <= span[0] and span[1] <= high for low, high in runs):
        return kernels.UNSEEN
    touching = [mark for mark in marks if overlap(mark, span)]
    alike = [mark for mark in touching if mark[2] == span[2]]
    if span in marks:
        return kernels.EXACT
    if alike:
        return kernels.SPLIT if len(alike) > 1 else kernels.SHIFTED
    if not touching:
        return kernels.MISSED
    most = max(touching, key=lambda mark: min(mark[1], span[1]) - max(mark[0], span[0]))
    return kernels.OTHER_TYPE if most[:2] == span[:2] else kernels.OTHER_TYPE_SHIFTED
