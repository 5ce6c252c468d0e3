"""A report as one HTML file: template, style and script from this package, and the data inside it as JSON."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import quorate
from quorate.errors import SettingsError
from quorate.report.content import Report, plain

__all__ = ["DOCUMENTS", "check_documents", "embedded_json", "render", "render_layers"]

DOCUMENTS = 300
"""How many documents a report shows unless told otherwise: the least certain ones."""

_SCRIPTS = ("dom.js", "charts.js", "people.js", "review.js", "documents.js", "audit.js", "main.js")


def embedded_json(data: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end that element or open another.

    >>> embedded_json({"text": "</script><script>alert(1)</script>"})
    '{"text":"\\\\u003c/script\\\\u003e\\\\u003cscript\\\\u003ealert(1)\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    # Half a surrogate pair cannot be written as UTF-8.
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half.group()):04x}", text)


def render(report: Report) -> str:
    """The whole page.

    >>> import quorate
    >>> from quorate.report.data import collect
    >>> result = quorate.aggregate(quorate.sample(), "mv")
    >>> page = render(collect(None, result, title="A <sample>", documents=1))
    >>> page[:15], "<title>A &lt;sample&gt;</title>" in page
    ('<!doctype html>', True)
    """
    scripts = "\n".join(map(_asset, _SCRIPTS))
    return _filled("report.html", report.title, report.version, scripts, plain(report))


def render_layers(title: str, pages: Mapping[str, str]) -> str:
    """The page that holds the whole page of each layer.

    >>> render_layers("Nested", {"LOC": "<!doctype html>"}).count("<title>Nested</title>")
    1
    """
    data = [{"layer": name, "page": page} for name, page in pages.items()]
    return _filled("layers.html", title, quorate.__version__, _asset("layers.js"), data)


def _filled(template: str, title: str, version: str, script: str, data: Any) -> str:
    parts = {
        "title": html.escape(title).encode("utf-8", "replace").decode(),
        "version": html.escape(version),
        "style": _asset("report.css"),
        "script": script,
        "data": embedded_json(data),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda hole: parts[hole.group(1)], _asset(template))


def _asset(name: str) -> str:
    return files("quorate.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def check_documents(documents: int | None) -> None:
    """:class:`SettingsError` unless a report can show so many."""
    if documents is not None and documents < 0:
        raise SettingsError(f"a report shows 0 documents or more, not {documents}")
