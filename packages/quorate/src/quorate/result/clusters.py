"""Groups of like annotators: K-means on the posterior means of their matrices, the number of groups by silhouette."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from quorate.errors import SettingsError
from quorate.result.annotators import AnnotatorSummaries, check_matrix
from quorate.wording import counted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_STARTS = 10
_MOST_STEPS = 200
_MOST_GROUPS = 8
_MOST_COMPARED = 1500  # silhouettes need all distances: of more points, a sample is compared


class Clusters(NamedTuple):
    """Points in groups: the group of each ``[N]``, the groups' means ``[n, F]``, and Σ of squared distances to them.

    >>> k_means(np.array([[0.0], [1.0], [9.0]]), 2).inertia
    0.5
    """

    member: Ints
    centres: Floats
    inertia: float


def k_means(points: Floats, n: int, *, seed: int = 0) -> Clusters:
    """The best of ten runs of Lloyd's algorithm from k-means++ starts (Arthur and Vassilvitskii, 2007).

    >>> k_means(np.array([[0.0], [0.1], [5.0], [5.1]]), 2).centres.ravel().round(2).tolist()
    [0.05, 5.05]
    """
    if not 1 <= n <= len(points):
        raise SettingsError(
            f"{counted(len(points), 'annotator')} cannot be put into {n} groups (from 1 to {len(points)})"
        )
    runs = [_lloyd(points, _spread_start(points, n, rng)) for rng in np.random.default_rng(seed).spawn(_STARTS)]
    best = min(runs, key=lambda run: run.inertia)
    order = np.lexsort(best.centres.T[::-1])  # the same names for the same groups, whatever the start
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    return Clusters(rank[best.member], best.centres[order], best.inertia)


def _spread_start(points: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Points far from one another: each next one is drawn in proportion to its squared distance from the others."""
    chosen = [int(rng.integers(len(points)))]
    nearest = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    for _ in range(n - 1):
        total = nearest.sum()
        weights = nearest / total if total > 0 else np.full(len(points), 1 / len(points))
        chosen.append(int(rng.choice(len(points), p=weights)))
        nearest = np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return points[chosen]


def _lloyd(points: Floats, centres: Floats) -> Clusters:
    member = np.full(len(points), -1)
    for _ in range(_MOST_STEPS):
        squares = cdist(points, centres, "sqeuclidean")
        nearest = squares.argmin(axis=1)
        for empty in np.flatnonzero(np.bincount(nearest, minlength=len(centres)) == 0):
            # The point that lies worst takes the empty group, unless its own would be empty then.
            worst = np.where(np.bincount(nearest)[nearest] > 1, squares[np.arange(len(points)), nearest], -1.0).argmax()
            nearest[worst] = empty
            squares[worst, empty] = 0.0
        if np.array_equal(nearest, member):
            break
        member = nearest
        centres = np.stack([points[member == group].mean(axis=0) for group in range(len(centres))])
    return Clusters(member, centres, float(((points - centres[member]) ** 2).sum()))


def silhouette(points: Floats, member: Ints) -> float:
    """How well points sit in their groups, from −1 to 1 (Rousseeuw, 1987): the mean of (b − a) / max(a, b).

    a is a point's mean distance to the others of its group, b to the nearest other group; a point alone counts 0.

    >>> round(silhouette(np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, 0, 1, 1])), 2)
    0.98
    """
    sizes = np.bincount(member)
    distance = cdist(points, points)
    total = np.stack([distance[:, member == group].sum(axis=1) for group in range(len(sizes))], axis=1)
    own = total[np.arange(len(points)), member] / np.maximum(sizes[member] - 1, 1)
    other = total / sizes
    other[np.arange(len(points)), member] = np.inf
    nearest = other.min(axis=1)
    widest = np.maximum(own, nearest)
    score = np.divide(nearest - own, widest, out=np.zeros_like(own), where=(widest > 0) & (sizes[member] > 1))
    return float(score.mean())


def choose_clusters(points: Floats, *, seed: int = 0) -> tuple[Clusters, dict[int, float]]:
    """The grouping, into 2 to 8 groups, with the best silhouette; and the silhouette of each number tried.

    Fewer than four points, or points that are all alike, are one group.

    >>> choose_clusters(np.array([[0.0], [0.1], [5.0], [5.1]]))[0].member.tolist()
    [0, 0, 1, 1]
    """
    distinct = len(np.unique(points, axis=0))
    if len(points) < 4 or distinct < 3:
        return k_means(points, 1, seed=seed), {}
    compared = np.arange(len(points))
    if len(points) > _MOST_COMPARED:
        compared = np.sort(np.random.default_rng(seed).choice(len(points), _MOST_COMPARED, replace=False))
    tried: dict[int, float] = {}
    found: dict[int, Clusters] = {}
    for n in range(2, min(_MOST_GROUPS, distinct - 1) + 1):
        found[n] = k_means(points, n, seed=seed)
        _, member = np.unique(found[n].member[compared], return_inverse=True)
        tried[n] = silhouette(points[compared], member) if member.max() > 0 else -1.0
    best = max(tried, key=lambda n: (tried[n], -n))
    return found[best], tried


class Groups(NamedTuple):
    """Annotators in groups, the most informative group first.

    ``member [K]`` is the group of each annotator, in the order of their names; ``matrices [n, P, J, J]`` is the mean of
    the members' matrices; ``silhouettes`` has those of the numbers tried, none if the number was given.

    >>> import quorate
    >>> groups = group_annotators(quorate.aggregate(quorate.sample(), "bsc-cm").annotators, 3)
    >>> len(groups.member), groups.matrices.shape
    (12, (3, 1, 9, 9))
    """

    member: Ints
    matrices: Floats
    silhouettes: dict[int, float]

    @property
    def sizes(self) -> list[int]:
        """How many annotators there are in each group."""
        return [int(size) for size in np.bincount(self.member, minlength=len(self.matrices))]

    def members(self, group: int, names: Sequence[str]) -> list[str]:
        """Who of ``names`` is in a group."""
        return [name for name, own in zip(names, self.member.tolist(), strict=True) if own == group]


def group_annotators(annotators: AnnotatorSummaries, n: int | None = None, *, seed: int = 0) -> Groups:
    """Group annotators by the posterior means of their matrices, as in Figure 1 of Simpson and Gurevych (2019)."""
    if not len(annotators):
        raise SettingsError("there is no annotator to group")
    check_matrix(annotators.matrix_shape, len(annotators))
    matrices = np.stack([one.matrix for one in annotators])
    points = matrices.reshape(len(matrices), -1)
    clusters, silhouettes = choose_clusters(points, seed=seed) if n is None else (k_means(points, n, seed=seed), {})
    bits = np.bincount(clusters.member, annotators.informativeness) / np.bincount(clusters.member)
    order = np.argsort(-bits, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Groups(rank[clusters.member], clusters.centres[order].reshape(-1, *matrices.shape[1:]), silhouettes)
