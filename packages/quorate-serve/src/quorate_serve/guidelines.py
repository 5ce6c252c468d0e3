"""Guidelines as a page shows them: Markdown, without anything that could do more than be read."""

from __future__ import annotations

from functools import lru_cache

from markdown_it import MarkdownIt
from markupsafe import Markup

_DEEPEST = 6


@lru_cache(maxsize=8)
def rendered(text: str) -> Markup:
    """Markdown as HTML: no HTML of its own, no images, and its headings below that of the page.

    >>> rendered("# Names\\n*Mark* <b>all</b>")
    Markup('<h2>Names</h2>\\n<p><em>Mark</em> &lt;b&gt;all&lt;/b&gt;</p>\\n')
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = reader.parse(text)
    for token in tokens:
        if token.tag[:1] == "h" and token.tag[1:].isdecimal():
            token.tag = f"h{min(int(token.tag[1:]) + 1, _DEEPEST)}"
    return Markup(reader.renderer.render(tokens, reader.options, {}))
