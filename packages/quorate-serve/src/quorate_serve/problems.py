"""What the service refuses: one shape for every error, with a status that a browser understands."""

from __future__ import annotations

from quorate.errors import QuorateError


class RequestError(QuorateError):
    """Something that was asked for and is not done: ``code`` for programs, the message for people.

    >>> NotFoundError("no document 7 (it may have been taken out)").status
    404
    """

    status = 400
    code = "bad-request"


class InvalidError(RequestError):
    """What was sent does not make sense."""

    status = 422
    code = "invalid"


class OverlapError(InvalidError):
    """Spans overlap that must not in this project."""

    code = "overlap"


class NotLoggedInError(RequestError):
    """Nobody is logged in, or no longer."""

    status = 401
    code = "not-logged-in"


class RefusedError(RequestError):
    """Whoever asks may not do this."""

    status = 403
    code = "refused"


class ReauthenticationError(RefusedError):
    """It takes more than a session: the password again, or a new login."""

    code = "reauthenticate"


class StalePageError(RefusedError):
    """A page of a session that has ended: what it sends is kept in the browser until somebody logs in again."""

    code = "csrf"


class NotFoundError(RequestError):
    """It is not there, or not for whoever asks."""

    status = 404
    code = "not-found"


class ConflictError(RequestError):
    """It was changed by somebody else meanwhile, or is there already."""

    status = 409
    code = "conflict"


class BusyError(RequestError):
    """Not now: to be tried again, as the same request."""

    status = 503
    code = "busy"


class TooManyError(RequestError):
    """Too often in a short time: to be tried again in ``wait`` seconds.

    >>> TooManyError("too many logins", 30.0).wait
    30.0
    """

    status = 429
    code = "too-many"

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait
