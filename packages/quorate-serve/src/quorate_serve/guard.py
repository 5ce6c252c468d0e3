"""The application as it is served: behind headers, hosts and limits that are of these settings."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from quorate_serve.reach import is_everywhere, names_of_this_machine
from quorate_serve.security_headers import guarded
from quorate_serve.settings import ServiceSettings

_MOST = 2 << 20  # bytes: a save of the most spans that a document may have
_MOST_TEXTS = 64 << 20  # of documents that are sent as JSON
_AROUND_A_FILE = 1 << 20  # what a form has beyond the file in it


def guard(app: ASGIApp, settings: ServiceSettings) -> ASGIApp:
    """An application behind all that every answer and every request goes through."""
    upload = settings.upload_limit + _AROUND_A_FILE
    larger = {"/api/v1/import": upload, "/settings/import": upload, "/setup": upload, "/api/v1/documents": _MOST_TEXTS}
    return guarded(
        app,
        hosts=hosts_of(settings),
        addresses=is_everywhere(settings.host),
        most=_MOST,
        larger=larger,
        https=settings.is_https,
    )


def hosts_of(settings: ServiceSettings) -> set[str]:
    """The names under which browsers may ask for the service; one that listens everywhere has those of the machine.

    >>> from pathlib import Path
    >>> sorted(hosts_of(ServiceSettings(Path("."), origin="https://labels.example.org")))
    ['127.0.0.1', '::1', 'labels.example.org', 'localhost']
    """
    origin = urlsplit(settings.origin or "").hostname
    own = names_of_this_machine() if is_everywhere(settings.host) else ()
    return {settings.host, "localhost", "127.0.0.1", "::1", *own, *([origin] if origin else [])}


def local_path(then: str) -> str:
    """A page of this service to go on to; the first page instead of anything that a browser takes for another site.

    >>> local_path("/review?document=3"), local_path("//evil.example"), local_path("https://evil.example")
    ('/review?document=3', '/', '/')
    """
    return then if re.fullmatch(r"/(?![/\\])[!-\[\]-~]*", then) and len(then) <= 1000 else "/"
