"""The sample that ships with the package: sentences written for it, and a simulated crowd that tags them."""

from __future__ import annotations

from importlib.resources import files

from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import KINDS, crowd
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet

_TYPES = ("LOC", "ORG", "PER", "WORK")

SAMPLE_CROWD: dict[str, str] = {
    "ana": "careful",
    "ben": "careful",
    "cho": "careful",
    "dov": "lazy",
    "eva": "lazy",
    "fay": "spammer",
    "gil": "spammer",
    "hal": "starts late",
    "ida": "starts late",
    "jun": "splits spans",
    "kit": "misses a type",
    "lou": "misses a type",
}
"""Who is in the sample's crowd, and of which kind each was made."""


def sentences() -> Corpus:
    """The sample's sentences with their gold tags, and no annotator yet.

    >>> len(sentences()) > 300
    True
    """
    text = files("quorate.corpus").joinpath("data", "sentences.txt").read_text(encoding="utf-8")
    return Corpus(_document(number, line) for number, line in enumerate(text.splitlines(), 1))


def sample() -> Corpus:
    """The sample: 320 sentences, five annotations each from a crowd of twelve, with gold. The crowd is simulated.

    >>> sample()[0].id, len(sample().annotators)
    ('s001', 12)
    """
    return crowd(sentences(), {name: KINDS[kind] for name, kind in SAMPLE_CROWD.items()}, per_document=5, seed=2019)


def _document(number: int, line: str) -> Document:
    """``[PER Ida Lind] sang .`` → tokens and gold."""
    tokens: list[str] = []
    spans: list[Span] = []
    start, label = 0, ""
    for piece in line.split():
        if piece.startswith("["):
            start, label = len(tokens), piece[1:]
            continue
        tokens.append(piece.removesuffix("]"))
        if piece.endswith("]"):
            spans.append(Span(start, len(tokens), label))
    gold = TagSet.of_types(Scheme.BIO, _TYPES).tags(spans, len(tokens))
    return Document(f"s{number:03}", tuple(tokens), gold=tuple(gold))
