"""Pages for tests in a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]


def page_of(person: str = "p_00000000000000ad", body: str = "<quorate-spans></quorate-spans>") -> str:
    """A page with everything a page of the service has."""
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Annotate</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="csrf-token" content="token of {person}"><meta name="person" content="{person}">
<link rel="stylesheet" href="/static/base.css"><link rel="stylesheet" href="/static/spans.css">
<script type="module" src="/static/spans.js"></script><script type="module" src="/static/outbox.js"></script></head>
<body><a class="skip" href="#main">To the text</a><header class="top"><a class="brand" href="/">quorate</a>
<nav aria-label="Pages"><ul><li><a href="#main" aria-current="page">Annotate</a></li></ul></nav>
<div class="who"><quorate-outbox></quorate-outbox></div></header>
<main id="main" tabindex="-1"><h1>A document</h1>{body}
<div class="actions"><button class="button main" id="after" type="button">Next</button></div></main></body></html>"""
