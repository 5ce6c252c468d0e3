"""What a language model returned, understood: lists of mentions, tags around words, a tag for every token.

An answer is JSON, or a string with JSON in it; what a model says around it, and fences, are passed over. Its kind is
seen from the content. One that is none of these, or that holds only part of the text, is not understood: whoever gave
it has not seen the document.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from quorate.corpus.spans import CharSpan
from quorate.corpus.tags import OUTSIDE, find_pieces, marks_span, tag_inside
from quorate.corpus.tokens import Offsets
from quorate.formats.mentions import Found, Mention, Page, Rewriting


class Asked(NamedTuple):
    """What a model was asked about: the text, its tokens, and the label, where it was asked for one alone."""

    page: Page
    tokens: Offsets
    label: str | None = None


class Listed(NamedTuple):
    """Mentions whose places are to be found; ``lost`` are entries without words or label, ``odd`` counts odd scores."""

    mentions: list[Mention]
    lost: Sequence[str] = ()
    odd: int = 0


Reading = Listed | Found | None
"""Mentions to find, spans that are found, or ``None``: not understood."""

_WORDS = ("text", "mention", "span", "word", "words", "token", "phrase", "name", "string", "entity")
_LABELS = ("label", "type", "entity_type", "entity_group", "category", "class", "tag", "ner", "ner_tag", "entity")
_SCORES = ("score", "probability", "confidence", "prob")
_LOGARITHMS = ("logprob", "logprobs", "log_prob", "log_probability")
_STARTS = ("start", "start_offset", "begin")
_ENDS = ("end", "end_offset", "stop")
_HOLDERS = (
    "arguments",
    "entities",
    "mentions",
    "spans",
    "annotations",
    "named_entities",
    "answer",
    "output",
    "result",
    "results",
)
_TALK = {"comment", "comments", "confidence", "explanation", "note", "notes", "reasoning", "thought", "thoughts"}
_WRAPPERS = {"answer", "document", "output", "p", "response", "result", "s", "sentence", "text"}

_THOUGHT = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL)
_BRACKET = re.compile(r"[\[{]")
_FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(
    r"<(?P<close>/?)(?P<name>[^\W\d][\w.:-]*)(?P<more>\s[^<>]*)?>"
    r"|\[(?P<words>[^\[\]\n]+)\]\((?P<label>[^()\n]+)\)"
    r"|@@(?P<given>[^@#]+)##"
)
_ATTRIBUTE = re.compile(r"""\b(?:type|label|class|category|entity_type)\s*=\s*["']?([^"'>]+)""", re.IGNORECASE)
_LINE = re.compile(r"^[ \t]*(\S+)(?:[ \t]*[\t|,:][ \t]*|[ \t]+)(\S+)[ \t]*$", re.MULTILINE)
_NOTHING = re.compile(
    r"\W*(?:none|n/a|nothing|(?:there (?:are|were) )?no (?:named )?(?:entities|mentions|spans)"
    r"(?: (?:are|were))?(?: (?:found|present|mentioned))?(?: in (?:the|this) (?:text|sentence))?)\W*",
    re.IGNORECASE,
)


def end_of_thoughts(answer: str) -> int:
    """Where a model's thinking aloud ends, and its answer begins.

    >>> end_of_thoughts("<think>Ada?</think>[]"), end_of_thoughts("[]")
    (19, 0)
    """
    thought = _THOUGHT.match(answer)
    return 0 if thought is None else thought.end()


def understood(answer: Any, asked: Asked) -> Reading:
    """What an answer says of a text.

    >>> text = Asked(Page("Ada Ng sang in Rome."), ((0, 3), (4, 6), (7, 11), (12, 14), (15, 19), (19, 20)))
    >>> understood('Sure! [{"text": "Rome", "label": "LOC"}]', text).mentions
    [Mention(words='Rome', label='LOC', confidence=None, place=None)]
    >>> understood("<PER>Ada Ng</PER> sang in Rome.", text).spans
    [CharSpan(start=0, end=6, label='PER', text=None, confidence=None, layer='')]
    >>> understood(["B-PER", "I-PER", "O", "O", "B-LOC", "O"], text).spans[1][:3]
    (15, 19, 'LOC')
    >>> understood("I would rather not say.", text) is None
    True
    """
    return _of_text(answer, asked) if isinstance(answer, str) else _of_value(answer, asked)


def _of_text(answer: str, asked: Asked) -> Reading:
    return _first(_readings(answer[end_of_thoughts(answer) :].strip(), asked))


def _first(readings: Iterator[Reading]) -> Reading:
    return next((reading for reading in readings if reading is not None), None)


def _readings(text: str, asked: Asked) -> Iterator[Reading]:
    """What a string may say, the surest first: as JSON, by what stands between fences, by its own words."""
    yield _of_value(_json(text), asked)
    for inner in reversed(_FENCE.findall(text)):
        yield from _readings_of_words(inner.strip(), asked)
    yield from _readings_of_words(text, asked)


def _readings_of_words(text: str, asked: Asked) -> Iterator[Reading]:
    yield _of_value(_json(text), asked)
    marked = _inline(text, asked)
    if marked is not None:
        yield _rewritten(marked, asked)
    yield _lines(text, asked)
    yield _embedded(text, asked)
    if marked is not None and _is_list(marked, asked):
        yield _listed(marked)
    if marked is None and _says_nothing(text, asked):
        yield Listed([])


def _says_nothing(text: str, asked: Asked) -> bool:
    """Whether a string says that there is nothing, or is the text with nothing marked in it."""
    return _NOTHING.fullmatch(text) is not None or _is_bare(text, asked.page.aligned(text))


def _is_bare(text: str, written: Rewriting) -> bool:
    """Whether a text is the one asked about, and no more talk around it than half as much."""
    extra = len(Page(text).tokens) - len(written.matched)
    return written.length > 0 and written.missing <= written.length // 10 and extra <= written.length // 2


# JSON ---------------------------------------------------------------------------------------------------------------


def _json(text: str) -> Any:
    """A JSON value, or one as Python writes it; ``None`` if it is neither."""
    if not text.startswith(("[", "{")):
        return None
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes that Python does not know
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _embedded(text: str, asked: Asked) -> Reading:
    """The last JSON in a string that is understood and says something; objects that are a mention each are one list."""
    decoder = json.JSONDecoder(strict=False)
    reading: list[Reading] = []
    alone: list[Any] = []
    place = 0
    while (bracket := _BRACKET.search(text, place)) is not None:
        try:
            value, place = decoder.raw_decode(text, bracket.start())
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
                return None  # cut off: what is missing might have been said
            place = bracket.start() + 1
        except (ValueError, RecursionError):
            place = bracket.start() + 1
        else:
            if isinstance(value, dict) and _entry(value, asked.label) is not None:
                alone.append(value)
            else:
                reading.append(_of_value(value, asked))
    reading.append(_of_value(alone, asked) if alone else None)
    good = [one for one in reading if one is not None]
    if not good:
        first, last = _BRACKET.search(text), max(text.rfind("]"), text.rfind("}"))
        return None if first is None else _of_value(_json(text[first.start() : last + 1]), asked)
    return next((one for one in reversed(good) if not isinstance(one, Listed) or one.mentions), good[-1])


def _of_value(value: Any, asked: Asked) -> Reading:
    """What a JSON value says."""
    if isinstance(value, Mapping):
        return _of_object({str(key): each for key, each in value.items()}, asked)
    if isinstance(value, set | tuple):
        value = list(value)
    return _of_list(value, asked) if isinstance(value, list) else None


def _of_object(value: dict[str, Any], asked: Asked) -> Reading:
    lower = {key.lower(): each for key, each in value.items()}
    words, tags = lower.get("tokens"), lower.get("tags", lower.get("labels"))
    if isinstance(words, list) and isinstance(tags, list):
        return (
            _of_list([list(pair) for pair in zip(words, tags, strict=False)], asked)
            if len(words) == len(tags)
            else None
        )
    holder = _holder(lower, asked)
    if holder is not None:
        return _of_value(holder, asked)
    if _entry(value, asked.label) is not None:
        return _of_list([value], asked)
    if len(value) == 1 and isinstance(next(iter(value.values())), dict):
        return _of_value(next(iter(value.values())), asked)
    return _by_label(value, asked)


def _holder(value: dict[str, Any], asked: Asked) -> Any:
    """What an object holds as its entities; ``None`` if its keys may be labels, though one is called so."""
    key = next((name for name in (*_HOLDERS, "tags") if isinstance(value.get(name), list | dict)), None)
    if key is None or any(isinstance(each, list | dict) for name, each in value.items() if name != key):
        return None
    held = value[key]
    is_words = bool(held) and all(isinstance(each, str) and not _is_tag(each) for each in held)
    return None if isinstance(held, list) and is_words and asked.label is None else held


def _by_label(value: dict[str, Any], asked: Asked) -> Reading:
    """Mentions under their labels; or labels under mentions, where the keys are words of the text."""
    reading = {label: each for label, each in value.items() if label.lower() not in _TALK and each is not None}
    if reading and all(isinstance(each, str) for each in reading.values()):
        keys = sum(bool(asked.page.places(label)) for label in reading)
        words = sum(bool(asked.page.places(each)) for each in reading.values())
        if not keys and not words:
            return None  # a message about something else
        if keys > words:
            return _of_list([[words, label] for words, label in reading.items()], asked)
    entries: list[Any] = []
    for label, each in reading.items():
        for one in each if isinstance(each, list) else [each]:
            if not isinstance(one, str | dict):
                return None
            entries.append([one, label] if isinstance(one, str) else {**one, "label": label})
    return _of_list(entries, asked)


def _of_list(value: list[Any], asked: Asked) -> Reading:
    if not value:
        return Listed([])
    if all(isinstance(each, str) for each in value):
        return _of_strings(value, asked)
    entries = [_entry(each, asked.label) for each in value]
    found = [entry for entry in entries if entry is not None]
    if not found:
        return None
    lost = [str(each) for each, entry in zip(value, entries, strict=True) if entry is None]
    if not lost and all(_is_tag(entry.label) and entry.place is None for entry in found):
        return _of_tagged_words([entry.words for entry in found], [entry.label for entry in found], asked)
    mentions = [Mention(each.words, each.label, each.score, each.place) for each in found if each.label != OUTSIDE]
    return Listed(mentions, lost, sum(each.odd for each in found))


def _is_tag(label: str) -> bool:
    return label == OUTSIDE or marks_span(label)


def _of_strings(value: list[str], asked: Asked) -> Reading:
    """Tags, one for each token; or words, where it is told what they are."""
    if any(map(_is_tag, value)) and len(value) == len(asked.tokens):
        places = list(asked.tokens)
        spans = find_pieces(_as_tags(value))
        return Found(
            [CharSpan(places[span.start][0], places[span.end - 1][1], span.label) for span in spans], [], [], [], []
        )
    if asked.label is None or all(map(_is_tag, value)):
        return None
    return Listed([Mention(_clean(words), asked.label) for words in value])


def _as_tags(labels: Sequence[str]) -> list[str]:
    return [label if _is_tag(label) else tag_inside(label) for label in labels]


class _Entry(NamedTuple):
    words: str
    label: str
    score: float | None = None
    place: tuple[int, int] | None = None
    odd: bool = False


def _entry(value: Any, label: str | None) -> _Entry | None:
    """One mention, from an object or a list; ``None`` if it is none."""
    if isinstance(value, Mapping):
        return _entry_of_object({str(key).lower(): each for key, each in value.items()}, label)
    if not isinstance(value, list | tuple) or not 2 <= len(value) <= 4:
        return None
    match list(value):
        case [str(words), str(kind)] if kind.strip():
            return _Entry(_clean(words), _clean(kind))
        case [int(start), int(end), str(kind)] if kind.strip():
            return _Entry("", _clean(kind), None, (start, end))
        case [str(words), str(kind), int(start), int(end)] if kind.strip():
            return _Entry(_clean(words), _clean(kind), None, (start, end))
        case [str(words), str(kind), score] if kind.strip():
            probability, odd = _probability(score, logarithm=False)
            return _Entry(_clean(words), _clean(kind), probability, None, odd)
    return None


def _entry_of_object(value: dict[str, Any], given: str | None) -> _Entry | None:
    key = next((name for name in _WORDS if isinstance(value.get(name), str)), None)
    kind = next((name for name in _LABELS if name != key and isinstance(value.get(name), str)), None)
    label = given if kind is None else _clean(value[kind])
    place = _place(value)
    if not label or (key is None and place is None):
        return None
    score, odd = None, False
    for names, logarithm in ((_SCORES, False), (_LOGARITHMS, True)):
        stated = next((value[name] for name in names if value.get(name) is not None), None)
        if stated is not None and score is None:
            score, odd = _probability(stated, logarithm=logarithm)
    return _Entry("" if key is None else _clean(value[key]), label, score, place, odd)


def _place(value: dict[str, Any]) -> tuple[int, int] | None:
    """The offsets of a mention, if it has any."""
    both = next((value[name] for name in ("span", "offsets", "position") if isinstance(value.get(name), list)), None)
    start = next((value[name] for name in _STARTS if name in value), None)
    end = next((value[name] for name in _ENDS if name in value), None)
    match both if both is not None else [start, end]:
        case [int(first), int(last)]:
            return first, last
    return None


def _probability(value: Any, *, logarithm: bool) -> tuple[float | None, bool]:
    """A probability, or ``None`` and that it is odd; of logarithms of several tokens, that of them all.

    >>> _probability(0.9, logarithm=False), _probability([0, 0.0], logarithm=True)
    ((0.9, False), (1.0, False))
    >>> _probability("high", logarithm=False)
    (None, True)
    """
    parts = value if isinstance(value, list) and logarithm else [value]
    if not parts or not all(isinstance(part, int | float) and not isinstance(part, bool) for part in parts):
        return None, True
    try:
        total = math.fsum(parts)
        probability = math.exp(total) if logarithm else total
    except (OverflowError, ValueError):
        return None, True
    return (probability, False) if 0 <= probability <= 1 else (None, True)


def _clean(text: str) -> str:
    """Without blanks around it, and without halves of characters, which no file can hold."""
    return text.strip().encode("utf-8", "replace").decode()


# Texts written once more --------------------------------------------------------------------------------------------


class _Marked(NamedTuple):
    """A text that a model wrote, and what it marked in it; ``broken`` are marks that do not end."""

    text: str
    marks: list[CharSpan]
    broken: list[str]


def _of_tagged_words(words: Sequence[str], tags: Sequence[str], asked: Asked) -> Reading:
    """Words with a tag each: all of the text's, or those alone that are marked."""
    ends: list[int] = []
    for word in words:
        ends.append((ends[-1] + 1 if ends else 0) + len(word))
    starts = [end - len(word) for end, word in zip(ends, words, strict=True)]
    marks = [CharSpan(starts[span.start], ends[span.end - 1], span.label) for span in find_pieces(_as_tags(tags))]
    marked = _Marked(" ".join(words), marks, [])
    reading = _rewritten(marked, asked)
    return _listed(marked) if reading is None and _is_list(marked, asked) else reading


def _lines(text: str, asked: Asked) -> Reading:
    """Lines of a word and its tag."""
    pairs = [(word, tag) for word, tag in _LINE.findall(text) if _is_tag(tag)]
    return _of_tagged_words([word for word, _ in pairs], [tag for _, tag in pairs], asked) if pairs else None


def _inline(text: str, asked: Asked) -> _Marked | None:
    """A text without the tags around its words, and what they mark; ``None`` if there are none."""
    pieces: list[str] = []
    length = cursor = 0
    marks: list[CharSpan] = []
    opened: list[tuple[str, str, int]] = []
    for match in _INLINE.finditer(text):
        words, label = _of_match(match, asked)
        if words is None:
            continue
        pieces += [text[cursor : match.start()], words]
        cursor, length = match.end(), length + match.start() - cursor
        name = (match["name"] or "").lower()
        if match["close"]:
            place = next((n for n in reversed(range(len(opened))) if opened[n][0] == name), None)
            if place is not None:
                _, label, start = opened.pop(place)
                marks.append(CharSpan(start, length, label))
        elif name:
            opened.append((name, label, length))
        else:
            marks.append(CharSpan(length, length + len(words), label))
        length += len(words)
    if not pieces:
        return None
    written = "".join([*pieces, text[cursor:]])
    kept = [mark for mark in marks if written[mark.start : mark.end].strip() and not _wraps(mark, asked)]
    return _Marked(written, kept, [f"<{label}>" for name, label, _ in opened if name not in _WRAPPERS])


def _wraps(mark: CharSpan, asked: Asked) -> bool:
    """Whether tags stand around the answer, not around a mention."""
    return mark.label.lower() in _WRAPPERS and 2 * (mark.end - mark.start) >= len(asked.page.text)


def _of_match(match: re.Match[str], asked: Asked) -> tuple[str | None, str]:
    """What a mark leaves in the text, and its label; ``None`` if it is no mark: the text has it itself, or a link."""
    if match[0] in asked.page.text:
        return None, ""
    if match["name"]:
        attribute = _ATTRIBUTE.search(match["more"] or "")
        return "", _clean(attribute[1]) if attribute else match["name"]
    if match["label"]:
        is_link = re.match(r"[#/.]|\w+:", match["label"]) is not None
        return (None, "") if is_link or not match["label"].strip() else (match["words"], _clean(match["label"]))
    return (None, "") if asked.label is None else (match["given"], asked.label)


def _rewritten(marked: _Marked, asked: Asked) -> Found | None:
    """The marks of a text that is the one asked about, but for a few words; ``None`` if it is not."""
    written = asked.page.aligned(marked.text)
    few, some = 2 + written.length // 10, 2 + written.length // 4
    if written.missing > min(some, written.length // 2) or written.tail > few:
        return None
    if not marked.marks and not _is_bare(marked.text, written):
        return None
    found = asked.page.carried_over(marked.text, marked.marks, written)
    found.lost.extend(marked.broken)
    return found


def _is_list(marked: _Marked, asked: Asked) -> bool:
    """Whether a text lists what it marks; otherwise it is part of the text that was asked about, cut off, or talk."""
    if not any(asked.page.places(marked.text[mark.start : mark.end]) for mark in marked.marks):
        return False
    matched = set(asked.page.aligned(marked.text).matched)
    held = set(chain.from_iterable(range(mark.start, mark.end) for mark in marked.marks))
    outside = [token for token in Page(marked.text).tokens if token[0] not in held]
    return 2 * sum(token in matched for token in outside) <= len(outside)


def _listed(marked: _Marked) -> Listed:
    return Listed([Mention(marked.text[mark.start : mark.end].strip(), mark.label) for mark in marked.marks])
