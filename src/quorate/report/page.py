"""A report as one HTML file: template, style and script from this package, and the data inside it as JSON."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from typing import Any

from quorate.report.content import Report, plain

__all__ = ["embedded_json", "render"]

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
    assets = files("quorate.report").joinpath("assets")
    parts = {
        "title": html.escape(report.title).encode("utf-8", "replace").decode(),
        "version": html.escape(report.version),
        "style": assets.joinpath("report.css").read_text(encoding="utf-8"),
        "script": "\n".join(assets.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS),
        "data": embedded_json(plain(report)),
    }
    template = assets.joinpath("report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda hole: parts[hole.group(1)], template)
