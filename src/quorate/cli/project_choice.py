"""The choice of settings of a project's version, which later runs and other commands take over."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import quorate
from quorate.errors import QuorateError
from quorate.project.store import Store, Version

if TYPE_CHECKING:
    from quorate.choose.choice import Choice
    from quorate.corpus.records import Corpus

__all__ = ["KeptChoice", "chose_itself"]

# On dev splits, a choice kept from 90 % of the documents gave −1.3 to +0.4 points of F1 beside one made on all of them,
# and one from 50 % of them −1.4 to +0.2: python benchmarks/project.py kept.
_MUCH = 0.1  # of the labels by which settings were chosen: when so many have come or gone, they are chosen again
_AS_FITTED = ("method", "layers", "reading")


class KeptChoice:
    """The choice of the last version's fit, where it still holds: the same settings, and about as many labels."""

    def __init__(self, store: Store, latest: Version, decided: Mapping[str, Any]) -> None:
        self.used, self.version = False, latest.chosen
        self._models: Mapping[str, Any] = {}
        if _of_the_fit(latest.decided) != _of_the_fit(decided):
            return
        if latest.model is None or latest.quorate != quorate.__version__:
            return
        with suppress(QuorateError), TemporaryDirectory() as folder:  # without it, settings are chosen again
            self._labels = store.version(latest.chosen).counts["labels"]
            path = Path(folder, "last.quorate")
            path.write_bytes(store.content(latest.model))
            model = quorate.load(path)
            self._models = getattr(model, "models_", {"": model})

    def choice(self, layer: str, corpus: Corpus) -> Choice | None:
        """The choice to take over for a layer."""
        model = self._models.get(layer, self._models.get(""))  # a single layer is saved without its name
        found: Choice | None = getattr(model, "choice_", None)
        if found is None or abs(corpus.n_labels - self._labels) > _MUCH * self._labels:
            return None
        self.used = True
        return found

    @property
    def told(self) -> list[str]:
        """Where the settings are from, in a line, if they were taken over."""
        return (
            [f"settings as chosen in version {self.version} (quorate run --fresh chooses again)"] if self.used else []
        )


def chose_itself(store: Store, version: Version) -> bool:
    """Whether the settings of a version were chosen in its own fit, or in that of the version that it brought back."""
    while version.restored is not None:
        version = store.version(version.restored)
    return version.chosen == version.number


def _of_the_fit(decided: Mapping[str, Any]) -> list[Any]:
    """What decides a fit; a precision that an audit is to guarantee is about what is written of it."""
    settings = dict(decided.get("settings") or {})
    if decided.get("checked") and decided.get("accept") is None:
        settings.pop("precision", None)
    return [settings, *(decided.get(name) for name in _AS_FITTED)]
