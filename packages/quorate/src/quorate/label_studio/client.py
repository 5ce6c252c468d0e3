"""The few requests that a sync makes of a Label Studio server: retries have an end, and the key is kept secret."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import IO, Any

from quorate.errors import ServerError, SettingsError
from quorate.limits import size_in_words, size_named

_KEY = "LABEL_STUDIO_API_KEY"
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_LONGEST_WAIT = 30.0
_CHUNK = 1 << 20
_MASK = "***"
_REFRESH = "/api/token/refresh"
_LONGEST_TOKEN = 100_000


class FaultError(Exception):
    """The network or the server failed in a way that may pass."""


class NoAnswerError(ServerError):
    """A server that has not answered as often as it was asked, or not in JSON; it may be there again later."""


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects on the same host alone: the key must not go to another."""

    def __init__(self, masked: Callable[[str], str]) -> None:
        self._masked = masked

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            fp.close()
            there = self._masked(f"{new.scheme}://{new.netloc}")
            raise ServerError(f"{old.scheme}://{old.netloc} sends us to {there} (give that as --url)")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Client:
    """Requests to one server with one key: a personal access token, or a legacy token.

    What fails in a way that may pass (no connection, a timeout, an overloaded server) is tried ``attempts`` times, with
    longer and longer pauses; then one :class:`NoAnswerError` says so. An answer may be no longer than ``max_size``:
    bytes, or ``"4G"`` (``"1G"`` unless given).

    >>> Client("ftp://example.com", "key")
    Traceback (most recent call last):
    quorate.errors.SettingsError: 'ftp://example.com' is not the address of a server (http://… or https://…)
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        attempts: int = 5,
        timeout: float = 120.0,
        max_size: int | str | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"{url!r} is not the address of a server (http://… or https://…)")
        if parts.username or parts.password:
            raise SettingsError("the address of the server must not hold a password (the key is enough)")
        if not key.strip() or not key.isascii() or not key.isprintable():
            raise SettingsError("the key is empty or not a key (copy it from Account & Settings in Label Studio)")
        if attempts < 1:
            raise SettingsError(f"attempts must be 1 or more, not {attempts}")
        self.url = url.rstrip("/")
        self._key = key.strip()
        self._access = ""
        self._attempts, self._timeout, self._pause = attempts, timeout, pause
        self._most = size_named(max_size)
        self._opener = urllib.request.build_opener(_SameHost(self.masked))

    def __repr__(self) -> str:
        return f"<Client of {self.url}>"

    def masked(self, text: str) -> str:
        """A text of the server without the key, or what it bought, should the server have sent them back.

        >>> Client("http://localhost", "0123abcd").masked("no user has the token 0123abcd")
        'no user has the token ***'
        """
        for secret in (self._key, self._access.partition(" ")[2]):
            text = text.replace(secret, _MASK) if secret else text
        return text

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at a path."""
        return self._patiently(lambda: self._json("GET", f"{path}?{urllib.parse.urlencode(query)}"))

    def download(self, path: str, target: IO[bytes], **query: Any) -> None:
        """What is at a path, to a file, which is begun anew if a try fails."""

        def once() -> None:
            target.seek(0)
            target.truncate()
            try:
                with self._open("GET", f"{path}?{urllib.parse.urlencode(query)}", None) as response:
                    wanted, got = response.headers.get("Content-Length"), 0
                    while chunk := response.read(_CHUNK):
                        got += target.write(chunk)
                        self._check_size(got, path)
            except (http.client.HTTPException, OSError) as error:
                raise self._fault(error) from None
            _check_whole(got, wanted)

        self._patiently(once)

    def change(self, path: str, content: Any) -> Any:
        """Change what is at a path (to do it twice does no harm)."""
        return self._patiently(lambda: self._json("PATCH", path, content))

    def delete(self, path: str) -> None:
        """Delete what is at a path, if it is still there."""
        self._patiently(lambda: self._json("DELETE", path, gone_is_fine=True))

    def create(self, path: str, content: Any) -> Any:
        """Create something; tried once, as a second try might make it twice. :class:`FaultError` if it failed."""
        return self._json("POST", path, content)

    def patiently(self, attempt: Callable[[], Any]) -> Any:
        """Something that may raise :class:`FaultError`, tried as often as allowed."""
        return self._patiently(attempt)

    def _patiently(self, attempt: Callable[[], Any]) -> Any:
        for number in range(1, self._attempts + 1):
            try:
                return attempt()
            except FaultError as fault:
                if number == self._attempts:
                    times = "attempt" if number == 1 else "attempts"
                    raise NoAnswerError(
                        f"{self.url}: no answer after {number} {times}: {fault} (is Label Studio running there?)"
                    ) from None
                self._pause(min(2.0 ** (number - 1), _LONGEST_WAIT))
        raise AssertionError("unreachable")

    def _json(self, method: str, path: str, content: Any = None, *, gone_is_fine: bool = False) -> Any:
        try:
            with self._open(method, path, content) as response:
                wanted, body = response.headers.get("Content-Length"), response.read(self._most + 1)
                self._check_size(len(body), path)
        except MissingError:
            if gone_is_fine:
                return None
            raise
        except (http.client.HTTPException, OSError) as error:
            raise self._fault(error) from None
        _check_whole(len(body), wanted)
        return self._parsed(body, path) if body.strip() or method == "GET" else None

    def _parsed(self, body: bytes, path: str) -> Any:
        """The JSON of an answer; a proxy may show a page of its own, as if all were well, while the server starts."""
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise NoAnswerError(f"{self.url}{_bare(path)}: not JSON (is it a Label Studio server?)") from None

    def _check_size(self, size: int, path: str) -> None:
        if size > self._most:
            raise ServerError(
                f"{self.url}{_bare(path)}: an answer of more than {size_in_words(self._most)} "
                "(if that is right, raise --max-size)"
            )

    def _open(self, method: str, path: str, content: Any) -> Any:
        """An open response; the errors of HTTP as faults, or as what the user can do."""
        for fresh in (False, True):
            if not self._access or fresh:
                self._access = self._authorization()
            data = None if content is None else json.dumps(content).encode()
            headers = {"Authorization": self._access, "Content-Type": "application/json", "Accept": "application/json"}
            request = urllib.request.Request(self.url + path, data, headers, method=method)
            try:
                return self._opener.open(request, timeout=self._timeout)
            except urllib.error.HTTPError as error:
                if error.code == 401 and not fresh and self._is_personal:  # the short-lived access has run out
                    continue
                raise self._refused(error, path) from None
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                raise self._fault(error) from None
        raise AssertionError("unreachable")

    @property
    def _is_personal(self) -> bool:
        """Whether the key is a personal access token, which buys short-lived access; a legacy one is used as it is."""
        return self._key.count(".") == 2

    def _authorization(self) -> str:
        if not self._is_personal:
            return f"Token {self._key}"
        data = json.dumps({"refresh": self._key}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + _REFRESH, data, headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return f"Bearer {self._parsed(response.read(_LONGEST_TOKEN), _REFRESH)['access']}"
        except urllib.error.HTTPError as error:
            raise self._refused(error, _REFRESH) from None
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            raise self._fault(error) from None
        except (KeyError, TypeError):
            raise ServerError(f"{self.url}: no access for this key (is it a Label Studio server?)") from None

    def _fault(self, error: Exception) -> FaultError:
        """What went wrong on the way."""
        return FaultError(self.masked(str(getattr(error, "reason", error))) or type(error).__name__)

    def _refused(self, error: urllib.error.HTTPError, path: str) -> Exception:
        with error:
            detail = _one_line(self.masked(_detail(error)))
            reason = _one_line(self.masked(str(error.reason)))
        if error.code in _AGAIN:
            return FaultError(f"the server answers {error.code} {reason}")
        if error.code in (401, 403):
            return ServerError(f"{self.url}: the key was refused: {detail} (see Account & Settings in Label Studio)")
        if error.code == 404:
            return MissingError(
                f"{self.url}{_bare(path)}: no such thing there (check --project, and the rights of the key)"
            )
        return ServerError(f"{self.url}{_bare(path)}: the server answers {error.code}: {detail}")


def client_of(url: str, **options: Any) -> Client:
    """A client of a server, with the key that the environment has."""
    key = os.environ.get(_KEY, "")
    if not key:
        raise SettingsError(f"no key (export {_KEY}=… with the access token from Account & Settings in Label Studio)")
    return Client(url, key, **options)


class MissingError(ServerError):
    """What was asked for is not there."""


def _check_whole(got: int, wanted: str | None) -> None:
    """:class:`FaultError` if the connection was lost before the answer was there."""
    if wanted is not None and wanted.isdecimal() and got < int(wanted):
        raise FaultError(f"only {got:,} of {int(wanted):,} bytes came")


def _bare(path: str) -> str:
    return path.split("?", 1)[0]


def _detail(error: urllib.error.HTTPError) -> str:
    """What the server says of an error."""
    try:
        content = json.loads(error.read(100_000))
        reason = content.get("validation_errors") or content.get("detail") or error.reason
    except (ValueError, RecursionError, AttributeError, OSError, http.client.HTTPException):
        reason = error.reason
    return str(reason)


def _one_line(text: str) -> str:
    """The beginning of a text, as one line."""
    return " ".join(text.split())[:200]
