"""When the model is fitted again, and when its settings are chosen again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

__all__ = ["Due", "Pace"]

_GROWN = 0.1  # of the labels: when so many have come or changed, the model is fitted again
_AT_LEAST_EVERY, _SHARE = 60.0, 20.0  # seconds between fits when little changes, and times as long as a fit took
_DOUBLED = 2  # times as many labels as settings were chosen by: all choices together take twice the last
_QUIET = 300.0  # seconds in which nobody saves: then settings are chosen again, as a command would now


class Due(Enum):
    """What is to be done."""

    NOTHING = auto()
    FIT = auto()
    CHOOSE = auto()


@dataclass
class Pace:
    """What has happened since the last fit, and since settings were chosen. Times are seconds of one clock.

    >>> pace = Pace()
    >>> pace.due(labels=1, now=0.0)
    <Due.CHOOSE: 3>
    >>> pace.fitted(labels=40, chosen=40, seconds=2.0, now=10.0, anew=True)
    >>> pace.happened(3, now=12.5)
    >>> pace.due(labels=43, now=13.0)
    <Due.NOTHING: 1>
    >>> pace.happened(1, now=13.0)
    >>> pace.due(labels=44, now=13.0)
    <Due.FIT: 2>
    """

    changes: int = 0
    labels_fitted: int = 0
    labels_chosen: int | None = None
    since_chosen: int = 0
    ended: float = 0.0
    took: float = 0.0
    last: float = 0.0
    must: bool = False

    def happened(self, changes: int, now: float, *, must: bool = False) -> None:
        """Something was saved, decided or taken back; ``must``: of a kind that only a fit can follow."""
        self.changes += changes
        self.since_chosen += changes
        self.last, self.must = now, self.must or must

    def begun(self) -> None:
        """A fit begins: what happens from now on is for the next."""
        self.changes, self.must = 0, False

    def fitted(self, labels: int, chosen: int, seconds: float, now: float, *, anew: bool) -> None:
        """A fit has ended; ``chosen`` is by how many labels its settings were chosen, ``anew`` whether for this fit."""
        self.ended, self.took, self.labels_fitted = now, seconds, labels
        if anew:
            self.since_chosen = self.changes
        self.labels_chosen = chosen

    def failed(self, seconds: float, now: float) -> None:
        """A fit has failed, and is tried again after so many seconds."""
        self.ended, self.took, self.must = now, seconds, True

    def due(self, labels: int, now: float) -> Due:
        """Whether to fit now. At most half of the time is spent with fits."""
        if not labels:
            return Due.NOTHING
        rested = now - self.ended
        if rested < self.took:
            return Due.NOTHING
        if self.labels_chosen is None:
            return Due.CHOOSE
        much = self.must or self.changes >= max(1.0, _GROWN * self.labels_fitted)
        if (much or self.changes) and labels >= _DOUBLED * self.labels_chosen:
            return Due.CHOOSE
        if self.since_chosen and now - self.last >= _QUIET:
            return Due.CHOOSE
        if much or (self.changes and rested >= max(_AT_LEAST_EVERY, _SHARE * self.took)):
            return Due.FIT
        return Due.NOTHING
