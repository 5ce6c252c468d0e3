"""A file for whoever settles what reviewers dispute: it is edited, and given back as known labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from quorate.corpus.decisions import last_words
from quorate.corpus.records import Document
from quorate.formats.json_lines import place_fields, write_lines
from quorate.reviews.reviews import Reviews


def write_adjudication(reviews: Reviews | Iterable[Reviews], path: str | Path) -> None:
    """Write a line for every document in dispute, of each layer its own, whole or not at all; ``-`` is standard output.

    ``gold`` is what is known, null where it is not; ``proposals`` are what reviewers say. Whoever decides fills in
    ``gold`` and makes ``checked`` true: until then the line says nothing.

    >>> import json, tempfile
    >>> from quorate import reviews
    >>> line = '{"id": "1", "tokens": ["Ada", "sang"], "tags": ["%s", "O"], "reviewer": "%s"}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "both.jsonl").write_text(f"{line % ('B-PER', 'ann')}\\n{line % ('O', 'bob')}")
    ...     write_adjudication(reviews.read(f"{folder}/both.jsonl"), f"{folder}/adjudicate.jsonl")
    ...     json.loads(Path(folder, "adjudicate.jsonl").read_text())["gold"]
    [None, 'O']
    """
    layers = [reviews] if isinstance(reviews, Reviews) else reviews
    write_lines((line for one in layers for line in adjudication_lines(one)), path)


def adjudication_lines(reviews: Reviews) -> Iterator[dict[str, Any]]:
    """The lines that :func:`write_adjudication` writes of one layer, as values."""
    for name in dict.fromkeys(dispute.document for dispute in reviews.disputes):
        yield _line(reviews, reviews.corpus[name])


def _line(reviews: Reviews, document: Document) -> dict[str, Any]:
    words = last_words(reviews.decisions[document.id])
    proposals = {who: {"tags": word.tags} | ({"note": word.note} if word.note else {}) for who, word in words.items()}
    return {
        "id": document.id,
        "tokens": document.tokens,
        "gold": reviews.known[document.id],
        "proposals": proposals,
        **place_fields(document),
        **({"layer": reviews.layer} if reviews.layer else {}),
        "reviewer": "",
        "note": "",
        "checked": False,
        "adjudicated": True,
    }
