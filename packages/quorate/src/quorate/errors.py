"""What can go wrong, as a tree.

::

    QuorateError            everything below; the command line prints its one line and exits with 2
    ├── InputError          a file or a corpus that cannot be used as it is
    │   └── OtherConsensusError  an audit of another consensus than the one that it is held against
    ├── SettingsError       an unknown method, an option out of range, options that do not go together
    │   ├── NotFittedError  an estimator asked for what it has not learned yet
    │   └── UnknownOptionError  an option by a name that there is not: it says which may have been meant
    ├── OutputError         a file that cannot be written
    ├── ModelFileError      a saved model that is damaged, or of another version
    ├── ServerError         a server that cannot be reached, or that refuses
    └── FitError            inference itself: no path is possible, or the bound fell (a bug)

Every message says where, what and what to do:
``crowd.conll:412: tag 'I-LOC' follows 'O' (use --invalid repair, or fix the file)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

__all__ = [
    "FitError",
    "InputError",
    "ModelFileError",
    "NotFittedError",
    "OtherConsensusError",
    "OutputError",
    "QuorateError",
    "RenamedWarning",
    "ServerError",
    "SettingsError",
    "UnknownOptionError",
    "did_you_mean",
    "knows_its_options",
    "nearest",
    "tell_renamed",
]

P = ParamSpec("P")
R = TypeVar("R")


class QuorateError(Exception):
    """The base of every error that this package raises on purpose.

    >>> issubclass(InputError, QuorateError)
    True
    """


class InputError(QuorateError):
    """A file or a corpus that cannot be used as it is.

    >>> str(InputError("3 tags for 4 tokens (give one tag a token)", where="crowd.jsonl:7"))
    'crowd.jsonl:7: 3 tags for 4 tokens (give one tag a token)'
    """

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)


class OtherConsensusError(InputError):
    """An audit of another consensus than the one that it is held against: ``consensus`` is the digest of that one.

    With the ``same_tags`` only its confidence is another, or the plan was changed. ``drawn`` are the lines of the plan.

    >>> OtherConsensusError("this plan was drawn from another consensus", "0d1f", where="audit.jsonl").consensus
    '0d1f'
    """

    def __init__(
        self, message: str, consensus: str, *, where: str = "", same_tags: bool = False, drawn: Sequence[Any] = ()
    ) -> None:
        super().__init__(message, where=where)
        self.consensus, self.where, self.same_tags, self.drawn = consensus, where, same_tags, drawn


class SettingsError(QuorateError):
    """An unknown method, an option out of range, or options that do not go together.

    >>> raise SettingsError("alpha0 must be positive, not -1")
    Traceback (most recent call last):
    quorate.errors.SettingsError: alpha0 must be positive, not -1
    """


class NotFittedError(SettingsError, ValueError, AttributeError):
    """An estimator that is asked for what it has not learned yet; caught as scikit-learn's error of that name is.

    >>> isinstance(NotFittedError(), ValueError) and isinstance(NotFittedError(), AttributeError)
    True
    """


class UnknownOptionError(SettingsError, TypeError):
    """An option by a name that there is not; caught as Python's own error for that is.

    >>> isinstance(UnknownOptionError(), TypeError)
    True
    """


class OutputError(QuorateError):
    """A file that cannot be written.

    >>> raise OutputError("out.jsonl: cannot be written: No space left on device")
    Traceback (most recent call last):
    quorate.errors.OutputError: out.jsonl: cannot be written: No space left on device
    """


class ModelFileError(QuorateError):
    """A saved model that is damaged, or that another version wrote.

    >>> raise ModelFileError("m.quorate: not a model file")
    Traceback (most recent call last):
    quorate.errors.ModelFileError: m.quorate: not a model file
    """


class ServerError(QuorateError):
    """A server that cannot be reached, or that refuses.

    >>> raise ServerError("http://localhost:8080: no answer after 5 attempts: Connection refused")
    Traceback (most recent call last):
    quorate.errors.ServerError: http://localhost:8080: no answer after 5 attempts: Connection refused
    """


class FitError(QuorateError):
    """Inference cannot go on: no path is possible, or the bound fell. ``document`` is the number of the one at fault.

    >>> raise FitError("document '7': no tag sequence is possible at token 3")
    Traceback (most recent call last):
    quorate.errors.FitError: document '7': no tag sequence is possible at token 3
    """

    document: int | None = None


class RenamedWarning(FutureWarning):
    """Something was called by a name that it had in an earlier version, and that will go.

    >>> issubclass(RenamedWarning, FutureWarning)
    True
    """


_WARNED: set[tuple[str, str]] = set()


def tell_renamed(what: str, old: str, new: str) -> None:
    """Warn, once in a process, that an old name was used, and say which is the present one.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as told:
    ...     tell_renamed("option", "--seats", "--people")
    ...     tell_renamed("option", "--seats", "--people")
    >>> [str(one.message) for one in told]
    ["option '--seats' is now called '--people' (the old name will go: use the new one)"]
    """
    if (what, old) not in _WARNED:
        _WARNED.add((what, old))
        message = f"{what} {old!r} is now called {new!r} (the old name will go: use the new one)"
        warnings.warn(message, RenamedWarning, stacklevel=3)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What to do about a name that is not known: the one that is like it, or all there are.

    >>> did_you_mean("alpah0", ["alpha0", "gamma0"]), did_you_mean("size", ["alpha0", "gamma0"])
    ("did you mean 'alpha0'?", 'one of: alpha0, gamma0')
    """
    from difflib import get_close_matches

    names = list(known)
    close = get_close_matches(name, names, n=1, cutoff=0.7)
    return f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(names)}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that is most like one that somebody gave, upper or lower case aside; ``None`` if none is like it.

    >>> nearest("ogr", ["ORG", "PER"]), nearest("MISC", ["ORG", "PER"])
    ('ORG', None)
    """
    from difflib import get_close_matches

    names = {one.casefold(): one for one in known if one != name}
    close = get_close_matches(name.casefold(), names, n=1)
    return names[close[0]] if close else None


def knows_its_options(function: Callable[P, R], called: str = "", what: str = "option") -> Callable[P, R]:
    """The function, which says what may have been meant by an option that it has not.

    >>> @knows_its_options
    ... def read(path, *, max_size=None): ...
    >>> read("a.jsonl", maxsize=1)
    Traceback (most recent call last):
    quorate.errors.UnknownOptionError: read has no option 'maxsize' (did you mean 'max_size'?)
    """
    parameters = signature(function).parameters
    if any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values()):  # it takes any, and sees to them itself
        return function

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in parameters:
                meant = did_you_mean(name, [one for one in parameters if one != "self"])
                raise UnknownOptionError(f"{called or function.__name__} has no {what} {name!r} ({meant})")
        return function(*args, **options)

    return checked
