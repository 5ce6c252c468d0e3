"""When the model is fitted again."""

from __future__ import annotations

from dataclasses import dataclass

_GROWN = 0.1  # of the labels: when so many have come or changed, the model is fitted again
_AT_LEAST_EVERY, _SHARE = 60.0, 20.0  # seconds between fits when little changes, and times as long as a fit took


@dataclass
class Pace:
    """What has happened since the last fit. Times are seconds of one clock.

    >>> pace = Pace(must=True)
    >>> pace.due(labels=1, now=0.0)
    True
    >>> pace.begun()
    >>> pace.fitted(labels=40, seconds=2.0, now=10.0)
    >>> pace.happened(3)
    >>> pace.due(labels=43, now=13.0)
    False
    >>> pace.happened(1)
    >>> pace.due(labels=44, now=13.0)
    True
    """

    changes: int = 0
    labels_fitted: int = 0
    ended: float = 0.0
    took: float = 0.0
    must: bool = False

    def happened(self, changes: int, *, must: bool = False) -> None:
        """Something was saved, decided or taken back; ``must``: of a kind that only a fit can follow."""
        self.changes += changes
        self.must = self.must or must

    def begun(self) -> None:
        """A fit begins: what happens from now on is for the next."""
        self.changes, self.must = 0, False

    def fitted(self, labels: int, seconds: float, now: float) -> None:
        """A fit has ended."""
        self.ended, self.took, self.labels_fitted = now, seconds, labels

    def failed(self, seconds: float, now: float) -> None:
        """A fit has failed, and is tried again after so many seconds."""
        self.ended, self.took, self.must = now, seconds, True

    def due(self, labels: int, now: float) -> bool:
        """Whether to fit now. At most half of the time is spent with fits."""
        rested = now - self.ended
        if not labels or rested < self.took:
            return False
        if self.must or self.changes >= max(1.0, _GROWN * self.labels_fitted):
            return True
        return self.changes > 0 and rested >= max(_AT_LEAST_EVERY, _SHARE * self.took)
