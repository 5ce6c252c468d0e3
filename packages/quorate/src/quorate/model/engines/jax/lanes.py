"""Documents dealt into lanes of like length, with NumPy: where each document lies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.model.engines.jax.device import roomy

Ints = NDArray[np.int64]

_SHORTEST = 128  # positions of a lane at least: so many lanes that a device has enough to do, and so few steps
_APART = 8  # longer documents lie in lanes of their own if they are so many times as long
_ROUNDED = 8  # lanes have a multiple of so many positions
_ENOUGH = 1 << 18  # tokens that are worth code of their own
_MOST = 1 << 28  # numbers of an array [L, J, B]


class Share(NamedTuple):
    """Documents that are done at once: document ``documents[n]`` begins at place ``first[n]`` of ``[L, B]``."""

    documents: Ints
    first: Ints
    length: int
    lanes: int
    room: int  # documents for which there is room

    @property
    def places(self) -> int:
        """L·B."""
        return self.length * self.lanes


def shares_of(lengths: Ints, n_labels: int) -> list[Share]:
    """All documents that have tokens, in shares: a few that have about as many tokens and the same shape."""
    shares = []
    for documents in _alike(lengths):
        own = lengths[documents]
        longest = max(int(own.max()), _SHORTEST)
        parts = -(-int(own.sum()) * n_labels // _MOST)
        lanes = roomy(-(-int(own.sum()) // (longest * parts)))
        lane, offset, length = _dealt(own, lanes * parts, longest)
        length = -(-length // _ROUNDED) * _ROUNDED
        room = roomy(int(np.bincount(lane // lanes, minlength=parts).max()))
        for part in range(parts):
            here = np.flatnonzero(lane // lanes == part)
            first = offset[here] * lanes + lane[here] % lanes
            shares.append(Share(documents[here], first, length, lanes, room))
    return shares


def _alike(lengths: Ints) -> list[Ints]:
    """Documents by length, so that few long ones do not make the lanes of many short ones long."""
    longest, groups, so_far = _SHORTEST, [], np.zeros(0, np.int64)
    done = 0
    while done < lengths.max(initial=0):
        so_far = np.concatenate([so_far, np.flatnonzero((lengths > done) & (lengths <= longest))])
        done, longest = longest, longest * _APART
        if lengths[so_far].sum() >= _ENOUGH or (len(so_far) and done >= lengths.max()):
            groups.append(np.sort(so_far))
            so_far = np.zeros(0, np.int64)
    return groups


def _dealt(lengths: Ints, n_lanes: int, most: int) -> tuple[Ints, Ints, int]:
    """The lane of each document and its first position there, and the length of the longest lane.

    In every round the longest documents that are left go to the emptiest lanes, if they fit.
    """
    lane, offset, filled = np.empty_like(lengths), np.empty_like(lengths), np.zeros(n_lanes, np.int64)
    left = np.argsort(-lengths, kind="stable")
    while len(left):
        emptiest = np.argsort(filled, kind="stable")[: len(left)]
        next_up = left[: len(emptiest)]
        fits = filled[emptiest] + lengths[next_up] <= most
        if not fits.any():
            fits[:] = True  # there is no other room: lanes get longer
        chosen, where = next_up[fits], emptiest[fits]
        lane[chosen], offset[chosen] = where, filled[where]
        filled[where] += lengths[chosen]
        left = np.concatenate([next_up[~fits], left[len(emptiest) :]])
    return lane, offset, int(filled.max(initial=0))
