"""A corpus as flat arrays: documents, tokens, events and cells.

What an annotator said about a token is an *event*; events that say the same (annotator k, own previous label ι, label
i) share a *cell*. Every annotator model gives each cell one row of J log-likelihoods, and gets back one row of J
expected counts, so that time and memory grow with the labels that were given and not with K·J³.

Letters: D documents, N tokens, E events, G cells, K annotators, J labels, P previous labels (J, and in the plain scheme
one more for the start), V words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.profiles import Profile
from quorate.corpus.tags import TagSet

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

WORKED_OUT = "_worked_out"
"""Where a corpus has what was worked out from it once; it is not pickled."""


class Cells(NamedTuple):
    """What was said: annotator k, having said ι on the token before, says i. Sorted by (k, ι, i), each once.

    >>> Cells(np.array([0]), np.array([2]), np.array([1]), 1, 3, 3).keys
    array([7])
    """

    annotator: NDArray[np.int64]
    previous: NDArray[np.int64]
    label: NDArray[np.int64]
    n_annotators: int
    n_labels: int
    n_previous: int

    @classmethod
    def of_keys(cls, keys: NDArray[np.int64], n_annotators: int, n_labels: int, n_previous: int) -> Cells:
        """Those that have these ``keys``."""
        row, label = np.divmod(keys, n_labels)
        return cls(*np.divmod(row, n_previous), label, n_annotators, n_labels, n_previous)

    @property
    def keys(self) -> NDArray[np.int64]:
        """``[G]`` One integer for each (k, ι, i), ascending."""
        return (self.annotator * self.n_previous + self.previous) * self.n_labels + self.label

    def without_previous(self) -> tuple[Cells, NDArray[np.int64] | None]:
        """Cells with the previous label left out, each once, and which of them each is (``None``: each is another)."""
        keys, place = self.annotator * self.n_labels + self.label, None
        if not np.all(keys[1:] > keys[:-1]):
            keys, place = np.unique(keys, return_inverse=True)
        annotator, label = np.divmod(keys, self.n_labels)
        return Cells(annotator, np.zeros_like(label), label, self.n_annotators, self.n_labels, 1), place


class AnnotatorPriors(NamedTuple):
    """What is assumed of each annotator before any label, in their order; ``None``: the same of all.

    ``trust`` multiplies the prior count ``epsilon0`` of the right label. ``coverage`` is the share of what others mark
    that a source that abstains marks too, and 1 for everybody whose ``O`` is a label.

    >>> AnnotatorPriors(coverage=(1.0, 0.2, 1.0)).abstains(4).tolist()
    [False, True, False, False]
    """

    trust: tuple[float, ...] | None = None
    coverage: tuple[float, ...] | None = None

    def trust_of(self, n: int) -> NDArray[np.float64]:
        """``[n]`` 1 for whoever comes after those that are known."""
        return _filled(self.trust, n, 1.0)

    def coverage_of(self, n: int) -> NDArray[np.float64]:
        """``[n]`` The median for whoever comes after those that are known."""
        return _filled(self.coverage, n, float(np.median(self.coverage)) if self.coverage else 1.0)

    def abstains(self, n: int) -> NDArray[np.bool_]:
        """``[n]`` Whose ``O`` mostly means that they have nothing to say."""
        return self.coverage_of(n) < 1.0


def _filled(values: tuple[float, ...] | None, n: int, other: float) -> NDArray[np.float64]:
    out = np.full(n, other)
    if values is not None:
        out[: len(values)] = values[:n]
    return out


class Note(Protocol):
    """What a change of a crowd found, as values: it is kept with the model, and made of other documents too."""

    def applied(self, crowd: Crowd) -> Crowd:
        """The crowd with this change."""

    @property
    def merges(self) -> bool:
        """Whether it makes several annotators one, which holds as well if some of their labels are held out."""

    @property
    def adds(self) -> tuple[str, ...]:
        """Names of annotators that are there by this change alone."""

    def plain(self) -> dict[str, Any]:
        """As plain values, for a file."""

    def dependent(self, document: Longs, who: Longs) -> tuple[Longs, Longs]:
        """Annotators whose labels are not independent of those of ``who``, each beside the ``document`` of that one."""


class SlicesOnDisk(Protocol):
    """A corpus as an engine cuts it up, done before: see :class:`quorate.storage.corpora.StoredSlices`.

    ``bounds`` are the documents at which slices begin, and the end; ``files`` the slices at which files begin, and the
    end. ``digest`` is another one where anything in the files is.
    """

    bounds: list[int]
    files: list[int]
    digest: str

    def fits(self, encoded: Crowd) -> bool:
        """Whether this is a layout of these very arrays."""

    def __getitem__(self, s: int) -> tuple[NDArray[Any], ...]: ...

    def part(self, first: int, last: int) -> PartOnDisk:
        """Slices ``first`` to ``last``, which lie in one file, for another process to open."""

    def numbers_here(self, first: int, cells: Longs, words: Longs) -> tuple[Longs, Longs]:
        """The cells and words of a file, that of slice ``first``, by their numbers in the corpus."""


@dataclass(frozen=True)
class Crowd:
    """All that a fit sees of a corpus, as integers.

    Token t has the events ``event_start[t]`` to ``event_start[t + 1]``; ``event_cell`` says which cell each is of, and
    ``event_weight`` how much it counts (``None``: all count 1). ``word[t]`` is V for a word that is not in ``words``.
    ``slices`` are there if an engine's layout was made before, and kept on disk. Where labels are ``soft``, somebody
    gave probabilities: several events at a token, whose weights sum to 1. ``known [N]`` are labels that are known (-1
    where none is; ``None``: nowhere), ``profiles`` what people said of annotators, and ``coverage [K]`` how much of
    what others mark each source that abstains marks (see :class:`AnnotatorPriors`). ``notes`` are the changes that were
    made to the ``original`` crowd, if there were any.
    """

    tagset: TagSet
    annotators: tuple[str, ...]
    words: tuple[str, ...]
    doc_start: NDArray[np.int64]
    word: Ints
    event_start: NDArray[np.int64]
    event_cell: Ints
    event_weight: NDArray[np.float64] | None
    cells: Cells
    repaired: int
    slices: SlicesOnDisk | None = None
    soft: bool = False
    known: Ints | None = None
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    coverage: NDArray[np.float64] | None = None
    notes: tuple[Note, ...] = ()
    original: Crowd | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != WORKED_OUT}

    @property
    def n_docs(self) -> int:
        """D."""
        return len(self.doc_start) - 1

    @property
    def n_tokens(self) -> int:
        """N."""
        return int(self.doc_start[-1])

    @property
    def as_given(self) -> Crowd:
        """The crowd before any change."""
        return self if self.original is None else self.original

    def knowing(self, known: Ints | None, profiles: Mapping[str, Profile]) -> Self:
        """The crowd with these known labels and profiles; arrays that were not looked at yet are not made for it."""
        made = copy(self)
        vars(made).update(known=known, profiles=profiles)
        return made

    def noting(self, note: Note) -> Crowd:
        """The crowd with the change of a note."""
        changed = note.applied(self)
        return replace(changed, notes=(*self.notes, note), original=self.as_given)

    @property
    def priors(self) -> AnnotatorPriors:
        """What is assumed of its annotators before any label."""
        trust = tuple(self.profiles[name].trust if name in self.profiles else 1.0 for name in self.annotators)
        coverage = None if self.coverage is None else tuple(self.coverage.tolist())
        return AnnotatorPriors(trust if any(value != 1.0 for value in trust) else None, coverage)

    @property
    def abstains(self) -> bool:
        """Whether most annotators are sources that abstain."""
        return self.coverage is not None and bool(np.median(self.coverage) < 1.0)

    def cell_weights(self) -> NDArray[np.float64]:
        """``[G]`` How many labels fell into each cell."""
        G, weight = len(self.cells.label), self.event_weight
        total = np.zeros(G)
        for first in range(0, len(self.event_cell), _AT_ONCE):  # in pieces: the events may lie on disk
            piece = slice(first, first + _AT_ONCE)
            total += np.bincount(self.event_cell[piece], None if weight is None else weight[piece], minlength=G)
        return total

    def annotator_weights(self) -> NDArray[np.float64]:
        """``[K]`` How many labels each annotator gave."""
        weights = np.bincount(self.cells.annotator, self.cell_weights(), minlength=len(self.annotators))
        return weights.astype(np.float64)


_AT_ONCE = 1 << 22


class CrowdWhenAsked(Crowd):
    """A corpus as integers, whose long arrays are made when somebody first looks at them: an engine may never do so."""

    @classmethod
    def of(cls, long_arrays: Mapping[str, Callable[[], NDArray[Any]]], **fields: Any) -> Self:
        """``long_arrays`` makes each of those fields that are not given."""
        made = object.__new__(cls)
        vars(made).update({"profiles": {}} | fields, _long_arrays=long_arrays)
        return made

    def makes_as(self, other: Crowd) -> bool:
        """Whether the long arrays are those of another one."""
        return vars(self).get("_long_arrays") is vars(other).get("_long_arrays")

    def __getattr__(self, name: str) -> Any:  # of what is not there yet
        make = vars(self).get("_long_arrays", {}).get(name)
        if make is None:
            raise AttributeError(name)
        return vars(self).setdefault(name, make())


class Shard(NamedTuple):
    """Some documents with short numbers of their own; which cells and words of the corpus these stand for."""

    encoded: Crowd
    cells: Longs
    words: Longs


class PartOnDisk(Protocol):
    """Slices of a file by its path, which can be sent to another process."""

    @property
    def n_tokens(self) -> int:
        """How large it is."""

    def opened(self) -> Shard | None:
        """Its documents, with the file's own numbers of cells and words; ``None`` if that very file is not there."""


class Events(NamedTuple):
    """Who said what of which token: ``token``, the cell's key (see :class:`Cells`), and a weight if not all are 1."""

    token: NDArray[np.integer]
    key: NDArray[np.integer]
    weight: NDArray[np.float64] | None
