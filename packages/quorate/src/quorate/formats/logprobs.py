"""How sure a language model was of each mention that it listed, from the log-probabilities of the tokens it wrote."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from quorate.formats.answers import end_of_thoughts
from quorate.formats.mentions import Mention

_CLOSING = "]})\n"
_LEAST = -1e6


def token_logarithms(given: Any) -> list[tuple[str, float]] | None:
    """Tokens and the logarithms of their probabilities, as services return them; ``None`` if they are none.

    >>> token_logarithms({"content": [{"token": "[]", "logprob": -0.5, "top_logprobs": []}]})
    [('[]', -0.5)]
    """
    listed = given.get("content") if isinstance(given, dict) else given
    if not isinstance(listed, list):
        return None
    found: list[tuple[str, float]] = []
    for each in listed:
        match each:
            case {"token": str(token), "logprob": int(logarithm) | float(logarithm)} if _LEAST <= logarithm <= 0:
                found.append((token, float(logarithm)))
            case _:
                return None
    return found


def scored_by_tokens(
    mentions: Sequence[Mention], answer: str, tokens: Sequence[tuple[str, float]]
) -> list[Mention] | None:
    """Mentions with the probability that their words, and the label after them, were written so.

    ``None`` if the answer is not made of these tokens. A mention that has a score of its own keeps it.

    >>> tokens = [('[["', 0.0), ("Ada", -0.1), ('", "', 0.0), ("PER", -0.2), ('"]]', 0.0)]
    >>> [scored] = scored_by_tokens([Mention("Ada", "PER")], '[["Ada", "PER"]]', tokens)
    >>> round(math.log(scored.confidence), 6)
    -0.3
    """
    if "".join(token for token, _ in tokens).strip() != answer.strip():
        return None
    written = "".join(token for token, _ in tokens)
    ends = list(accumulate(len(token) for token, _ in tokens))
    starts = [0, *ends[:-1]]
    cursor = end_of_thoughts(written)  # what was thought aloud may have the same words
    found: list[Mention] = []
    for mention in mentions:
        place = _place(mention, written, cursor)
        if place is not None and mention.confidence is None:
            first, last = bisect_right(ends, place[0]), bisect_left(starts, place[1])
            logarithm = math.fsum(each for _, each in tokens[first:last])
            mention = mention._replace(confidence=math.exp(logarithm))
        cursor = cursor if place is None else place[1]
        found.append(mention)
    return found


def _place(mention: Mention, written: str, cursor: int) -> tuple[int, int] | None:
    """Where an answer has a mention, from some character on: its words, and the label if the same entry has it next."""
    forms = {mention.words, json.dumps(mention.words)[1:-1], json.dumps(mention.words, ensure_ascii=False)[1:-1]}
    for quote in ('"', "'", ""):
        found = [(written.find(f"{quote}{form}{quote}", cursor) + len(quote), form) for form in forms if form]
        start, form = min(((place, form) for place, form in found if place >= len(quote)), default=(-1, ""))
        if start >= 0:
            end = start + len(form)
            closed = min((place for mark in _CLOSING if (place := written.find(mark, end)) >= 0), default=len(written))
            label = written.find(mention.label, end, closed)
            return start, end if label < 0 else label + len(mention.label)
    return None
