"""What a result says of itself beyond its tags, where it does: a certificate, reasons for settings, a guard's word.

These are read by their shape, so that a result without them, or with more of them, can be reported all the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

__all__ = ["certificate_of", "choice_of", "guard_of", "reasons_of"]


def _fields(value: Any) -> dict[str, Any]:
    """A record as names and values; empty if it is none."""
    if isinstance(value, Mapping):
        return {str(name): item for name, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dict(value._asdict()) if hasattr(value, "_asdict") else {}


def certificate_of(result: Any) -> dict[str, Any] | None:
    """Expected F1 with its interval, and everything else that is promised, field by field; ``None`` without any.

    >>> class Result:
    ...     certificate = {"expected_f1": 0.8, "interval": (0.75, 0.85), "method": "held-out agreement"}
    >>> found = certificate_of(Result())
    >>> found["f1"], found["low"], found["high"]
    (0.8, 0.75, 0.85)
    """
    promise = getattr(result, "certificate", None)
    fields = _fields(promise)
    if not fields:
        return None
    found: dict[str, Any] = {"f1": None, "low": None, "high": None, "rows": []}
    for name, value in fields.items():
        bounds = _bounds(value)
        if "interval" in name and bounds is not None:
            found["low"], found["high"] = bounds
            found["rows"].append({"name": name.replace("_", " "), "value": f"{bounds[0]:.3f} to {bounds[1]:.3f}"})
        elif isinstance(value, str | int | float):
            found["rows"].append({"name": name.replace("_", " "), "value": value})
            if name in ("low", "high"):
                found[name] = float(value)
            elif "f1" in name and found["f1"] is None and isinstance(value, int | float):
                found["f1"] = float(value)
    return found


def _bounds(value: Any) -> tuple[float, float] | None:
    """Low and high of an interval, however it is written."""
    fields = _fields(value)
    pair = (fields.get("low"), fields.get("high")) if fields else value
    if isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(item, int | float) for item in pair):
        return float(pair[0]), float(pair[1])
    return None


def reasons_of(result: Any) -> dict[str, str]:
    """Why settings have their values, by name: from ``reasons``, or from entries of ``settings_`` that carry one.

    >>> class Result:
    ...     settings_ = {"temper": (0.6, "annotators repeat one another"), "alpha0": 1.0}
    >>> reasons_of(Result())
    {'temper': 'annotators repeat one another'}
    """
    chosen = getattr(result, "settings_", None)
    given = _fields(getattr(result, "reasons", None) or getattr(chosen, "reasons", None))
    found = {name: str(reason) for name, reason in given.items()}
    for name, entry in _fields(chosen).items():
        reason: Any = None
        if isinstance(entry, tuple) and len(entry) == 2 and not hasattr(entry, "_asdict"):
            reason = entry[1]
        else:
            parts = _fields(entry)
            reason = parts.get("reason") or parts.get("why")
        if isinstance(reason, str):
            found.setdefault(name, reason)
    return found


def choice_of(result: Any) -> list[str]:
    """How the settings were chosen, in sentences; none where they were not.

    >>> class Result:
    ...     settings_ = {"temper": 0.6, "why": ["a hidden annotator agrees best with these"]}
    >>> choice_of(Result())
    ['a hidden annotator agrees best with these']
    """
    said = _fields(getattr(result, "settings_", None)).get("why")
    return [str(sentence) for sentence in said] if isinstance(said, list | tuple) else []


def guard_of(result: Any) -> str | None:
    """What a guard against bad settings had to say, if anything.

    >>> guard_of(object()) is None
    True
    """
    word = getattr(result, "guard", None) or getattr(getattr(result, "settings_", None), "guard", None)
    return word if isinstance(word, str) and word else None
