"""A choice of settings that is kept: in a file, and for a fit to almost the same labels.

To choose takes many times as long as to fit. When a crowd has grown by little, what was chosen, how confidence is to
be read and who errs together still hold: a fit may take them over, and learns everything else anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from quorate.choose.choice import Choice
from quorate.choose.trials import Trial
from quorate.encode.sharing import Sharing
from quorate.models.settings import Settings, present_names
from quorate.result.calibration import Calibration

__all__ = ["as_plain", "from_plain", "taken_over"]


class _Trial(msgspec.Struct):
    settings: dict[str, Any]
    passes: int
    f1: float


class _Kept(msgspec.Struct):
    """A choice in a file."""

    settings: dict[str, Any]
    calibration: dict[str, float]
    annotators: list[str]
    sharing: list[tuple[int, int, float]]
    votes: tuple[float, float]
    of_silence: list[float]
    silent: list[str]
    trials: list[_Trial]
    vote: float | None
    gain: float | None
    error: float | None
    left_out: list[str]
    with_tagger: dict[str, float] | None
    places: dict[str, Any] | None = None
    voices: list[list[int]] = []


def as_plain(choice: Choice) -> dict[str, Any]:
    """A choice as plain values, for a file.

    >>> import quorate
    >>> chosen = quorate.BSC().fit(quorate.sample()).choice_
    >>> from_plain(as_plain(chosen)).settings == chosen.settings
    True
    """
    kept = _Kept(
        settings=choice.settings.plain(),
        calibration=choice.calibration._asdict(),
        annotators=list(choice.annotators),
        sharing=choice.sharing.pairs(),
        voices=[list(copies) for copies in choice.sharing.voices],
        votes=choice.votes,
        of_silence=choice.of_silence.tolist(),
        silent=list(choice.silent),
        trials=[_Trial(one.settings.plain(), one.passes, float(one.f1)) for one in choice.trials],
        vote=_number(choice.vote),
        gain=_number(choice.gain),
        error=_number(choice.error),
        left_out=list(choice.left_out),
        with_tagger=None if choice.with_tagger is None else choice.with_tagger._asdict(),
        places=None if choice.places is None else as_plain(choice.places),
    )
    plain: dict[str, Any] = msgspec.to_builtins(kept)
    return plain


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def from_plain(plain: Any) -> Choice:
    """The choice that was kept; ``ValueError`` if that is no choice."""
    kept = msgspec.convert(plain, _Kept)
    K = len(kept.annotators)
    named = [k for one, other, _ in kept.sharing for k in (one, other)] + [k for copies in kept.voices for k in copies]
    if len(kept.of_silence) != K or not all(0 <= k < K for k in named):
        raise ValueError("a choice that is not of its annotators")
    return Choice(
        Settings.of(**present_names(kept.settings)),
        Calibration(**kept.calibration),
        tuple(kept.annotators),
        Sharing.of(kept.sharing, kept.voices),
        kept.votes,
        np.array(kept.of_silence, np.float64),
        tuple(kept.silent),
        tuple(Trial(Settings.of(**present_names(one.settings)), one.passes, one.f1) for one in kept.trials),
        kept.vote,
        kept.gain,
        kept.error,
        tuple(kept.left_out),
        None if kept.with_tagger is None else Calibration(**kept.with_tagger),
        None if kept.places is None else from_plain(kept.places),
    )


def taken_over(choice: Choice, settings: Settings, free: Sequence[str], names: Sequence[str]) -> Choice:
    """The choice of the settings that are ``free``, for a fit with other settings, or with other annotators.

    Those who are new stand for themselves, and are not taken to be silent.

    >>> import quorate
    >>> chosen = quorate.BSC().fit(quorate.sample()).choice_
    >>> float(taken_over(chosen, chosen.settings, ("temper",), ["zoe", *chosen.annotators]).of_silence[0])
    1.0
    """
    number = {name: k for k, name in enumerate(names)}
    place = [number.get(name) for name in choice.annotators]
    shared = [(place[k], place[n], share) for k, n, share in choice.sharing.pairs()]
    voices = [[k for k in (place[one] for one in copies) if k is not None] for copies in choice.sharing.voices]
    sharing = Sharing.of(
        [(k, n, share) for k, n, share in shared if k is not None and n is not None],
        [copies for copies in voices if len(copies) > 1],
    )
    speaker, spoken_for, of_silence = choice.sharing.speaker, sharing.speaker, np.ones(len(names))
    for before, k in enumerate(place):
        if k is not None:  # a copy for whom nobody speaks any more is as silent as their voice was
            of_silence[k] = choice.of_silence[before if k in spoken_for else speaker.get(before, before)]
    return choice._replace(
        settings=replace(settings, **{name: getattr(choice.settings, name) for name in free}),
        annotators=tuple(names),
        sharing=sharing,
        of_silence=of_silence,
        silent=tuple(name for name in choice.silent if name in number),
    )
