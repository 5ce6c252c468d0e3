"""What can go wrong, as a tree.

::

    QuorateError            everything below; the command line prints its one line and exits with 2
    ├── InputError          a file or a corpus that cannot be used as it is
    ├── SettingsError       an unknown method, an option out of range, options that do not go together
    │   └── NotFittedError  an estimator asked for what it has not learned yet
    ├── OutputError         a file that cannot be written
    ├── ModelFileError      a saved model that is damaged, or of another version
    ├── ServerError         a server that cannot be reached, or that refuses
    └── FitError            inference itself: no path is possible, or the bound fell (a bug)

Every message says where, what and what to do:
``crowd.conll:412: tag 'I-LOC' follows 'O' (use --invalid repair, or fix the file)``.
"""

from __future__ import annotations

__all__ = [
    "FitError",
    "InputError",
    "ModelFileError",
    "NotFittedError",
    "OutputError",
    "QuorateError",
    "ServerError",
    "SettingsError",
]


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
