"""Requests to a service: what fails in a way that may pass is tried again, what is refused is an error of its kind."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import msgspec

from quorate.errors import ServerError, SettingsError
from quorate.storage.files.atomic import written_whole
from quorate_serve.answers import Event

T = TypeVar("T")
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_LONGEST_WAIT = 30.0
_CHUNK = 1 << 20
_PAGE = 500
_TOKENS = "/tokens"  # where the password has no other that it could be taken for


class ServiceError(ServerError):
    """The service refuses a request, and says why; ``status`` is that of HTTP (0: there was no answer)."""

    status = 0


class NotAllowedError(ServiceError):
    """The person whose token it is may not do this."""


class NotLoggedInError(NotAllowedError):
    """The token is not good, or no longer."""


class NotFoundError(ServiceError):
    """There is no such thing, or not for the person whose token it is."""


class ConflictError(ServiceError):
    """It is there already, or was changed by somebody else meanwhile."""


class InvalidError(ServiceError):
    """What was sent makes no sense to the service, or is too much."""


class WaitError(ServiceError):
    """The service has not answered as often as it was asked; it may later."""

    def __init__(self, message: str, after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after
        """Seconds that the service asks to be left alone for."""


_KINDS: dict[int, type[ServiceError]] = {
    400: InvalidError,
    401: NotLoggedInError,
    403: NotAllowedError,
    404: NotFoundError,
    409: ConflictError,
    413: InvalidError,
    422: InvalidError,
}


class Connection:
    """Requests to one service with one token."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        attempts: int = 8,
        timeout: float = 60.0,
        pause: Callable[[float], None] = time.sleep,
        transport: Any = None,
    ) -> None:
        import httpx

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"{url!r} is not the address of a service (http://… or https://…)")
        token = token.strip()
        if not token or not token.isascii() or not token.isprintable():
            raise SettingsError("the token is empty or not a token (make one on the page Account of the service)")
        if attempts < 1:
            raise SettingsError(f"attempts must be 1 or more, not {attempts}")
        self.url, self._attempts, self._pause = url.rstrip("/"), attempts, pause
        self._faults = (httpx.TransportError,)
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout,
            transport=transport,
        )
        self._browser: Callable[[], Any] = lambda: httpx.Client(base_url=self.url, timeout=timeout, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.url}>"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _ask(self, kind: type[T], method: str, path: str, **content: Any) -> T:
        """The answer to a request, as a value of some kind."""

        def once() -> Any:
            answer = self._http.request(method, path, **content)
            self._check(answer)
            return answer.json() if answer.content else None

        return self._converted(kind, self._patiently(once))

    def _pages(self, kind: type[T], path: str, **query: Any) -> Iterator[T]:
        """All that there is at a path, a page at a time."""
        query = {name: value for name, value in query.items() if value is not None}
        while True:
            page = self._ask(dict[str, Any], "GET", path, params={**query, "limit": _PAGE})
            yield from (self._converted(kind, item) for item in page["items"])
            if page["next"] is None:
                return
            query["after"] = page["next"]

    def _upload(self, kind: type[T], path: str, file: Path, data: dict[str, str]) -> T:
        """Send a file."""

        def once() -> Any:
            with open(file, "rb") as stream:
                answer = self._http.post(path, data=data, files={"file": (file.name, stream)})
            self._check(answer)
            return answer.json()

        return self._converted(kind, self._patiently(once))

    def _download(self, path: str, file: Path, **query: Any) -> None:
        """What is at a path, to a file, which is there whole or not at all."""

        def once() -> None:
            with self._opened(path, params=query) as answer, written_whole(file) as stream:
                for chunk in answer.iter_bytes(_CHUNK):
                    stream.write(chunk)

        self._patiently(once)

    def _events(self, path: str, after: int | None) -> Iterator[Event]:
        """Server-sent events from a path, until the service ends or is lost."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}

        def begun() -> Any:
            opened = self._opened(path, headers=headers)
            return opened, opened.__enter__()

        opened, answer = self._patiently(begun)
        try:
            fields: dict[str, str] = {}
            for line in answer.iter_lines():
                name, _, value = line.partition(":")
                if line:
                    fields[name] = value.removeprefix(" ")
                elif "data" in fields:
                    id = int(fields["id"]) if "id" in fields else None
                    yield Event(fields.get("event", "message"), json.loads(fields["data"]), id)
                    fields = {}
        except self._faults:
            return
        finally:
            opened.__exit__(None, None, None)

    def _ask_again(self, kind: type[T], method: str, path: str, password: str, content: dict[str, Any]) -> T:
        """The answer to what a token alone may not ask for: whose token it is logs in for it, and out again.

        Without a password it is asked by the token, and the service says what is missing.
        """
        if not password:
            return self._ask(kind, method, path, json=content)
        content = {**content, ("password" if path == _TOKENS else "own_password"): password}
        name = self._ask(dict[str, Any], "GET", "/people/me")["name"]
        try:
            with self._browser() as http:
                # The header stands for the page that a browser sends from; before the login any value will do.
                given = {"name": name, "password": password}
                began = http.post("/login", data=given, headers={"X-CSRF-Token": "none"})
                if began.status_code == 403:
                    raise NotAllowedError(f"{self.url}: the password is not right")
                if began.status_code != 303:
                    self._check(began)
                # The cookie is sent by hand, as a jar keeps that of a service behind https from plain http.
                cookie = began.headers["Set-Cookie"].partition(";")[0]
                headers = {"X-CSRF-Token": began.headers["X-CSRF-Token"], "Cookie": cookie}
                try:
                    answer = http.request(method, f"/api/v1{path}", json=content, headers=headers)
                    self._check(answer)
                    return self._converted(kind, answer.json())
                finally:
                    http.post("/logout", headers=headers)
        except self._faults as fault:
            raise WaitError(f"{self.url}: no answer: {fault} (is it running?)") from None

    @contextmanager
    def _opened(self, path: str, **content: Any) -> Iterator[Any]:
        """An answer that is read as it comes."""
        with self._http.stream("GET", path, **content) as answer:
            if answer.status_code >= 300:
                answer.read()
                self._check(answer)
            yield answer

    def _converted(self, kind: type[T], answer: Any) -> T:
        try:
            return msgspec.convert(answer, kind)
        except msgspec.ValidationError as error:
            raise ServerError(f"{self.url}: an answer that is not understood: {error} (upgrade quorate)") from None

    def _patiently(self, once: Callable[[], T]) -> T:
        for number in range(1, self._attempts + 1):
            try:
                return once()
            except (*self._faults, WaitError) as fault:
                if number == self._attempts:
                    reason, times = str(fault) or type(fault).__name__, "attempt" if number == 1 else "attempts"
                    raise WaitError(
                        f"{self.url}: no answer after {number} {times}: {reason} (is it running?)"
                    ) from None
                wait = min(2.0 ** (number - 2), _LONGEST_WAIT) * random.uniform(0.5, 1.0)
                self._pause(max(wait, getattr(fault, "after", 0.0)))
            except json.JSONDecodeError:  # as of a proxy, or of something else that is no service
                raise ServerError(f"{self.url}: an answer that is not JSON (is it a service of quorate?)") from None
        raise AssertionError("unreachable")

    def _check(self, answer: Any) -> None:
        """Raise what the service says went wrong."""
        if answer.status_code < 300:
            return
        try:
            reason = str(answer.json()["error"]["message"])
        except (ValueError, KeyError, TypeError):
            reason = answer.reason_phrase
        if answer.status_code in _AGAIN:
            asked = answer.headers.get("Retry-After", "")
            raise WaitError(f"{answer.status_code} {reason}", float(asked) if asked.isdecimal() else 0.0)
        if answer.status_code < 400:
            reason = f"it sends us to {answer.headers.get('Location', 'elsewhere')} (give that address)"
        error = _KINDS.get(answer.status_code, ServiceError)(f"{self.url}: {reason}")
        error.status = answer.status_code
        raise error
