"""JSON records one by one: lines of JSONL, or the items of one large array, without ever holding the whole file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BufferedReader
from typing import IO, Any, NoReturn, Protocol, TypeVar

import msgspec

from quorate.corpus.records import Source
from quorate.errors import InputError
from quorate.formats.opened import most_of
from quorate.limits import size_in_words

Value = TypeVar("Value")
Made = TypeVar("Made", covariant=True)


class Decoder(Protocol[Made]):
    """What makes a value of the bytes of a record."""

    def decode(self, buf: bytes, /) -> Made:
        """The value; raises what :func:`decoded` tells."""
        ...


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
# Up to the next bracket that is not in a string; no match where the rest has none, or is cut off inside a string.
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}])", re.DOTALL)
_PIECE = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL)
_KEY = re.compile(rb'\s*"((?:[^"\\]|\\.)*)"\s*:', re.DOTALL)


def lines(stream: IO[bytes], name: str) -> Iterator[tuple[Source, bytes]]:
    """The lines of a file that are not blank, and where each stands."""
    for number, line in enumerate(stream, 1):
        text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        if text.strip():
            yield Source(name, number), text


def records(stream: IO[bytes], name: str, record: str) -> Iterator[tuple[Source, bytes]]:
    """The items of an array, if the file is one, else its lines."""
    given = stream if isinstance(stream, BufferedReader) else BufferedReader(stream)  # type: ignore[type-var]
    head = given.peek(64)[:64].removeprefix(_BYTE_ORDER_MARK).lstrip()
    return array_items(given, name, record) if head.startswith(b"[") else lines(given, name)


def array_items(stream: IO[bytes], name: str, record: str) -> Iterator[tuple[Source, bytes]]:
    """The objects in a JSON array, as bytes, and the number of each.

    >>> import io
    >>> [item for _, item in array_items(io.BytesIO(b'[{"a": "]"}, {}]'), "tasks.json", "task")]
    [b'{"a": "]"}', b'{}']
    """
    buffer, scanned, consumed, start, depth, number = b"", 0, 0, 0, 0, 0

    def broken(what: str) -> NoReturn:
        raise InputError(what, where=Source(name, number + 1, record=record).at())

    most = most_of(stream)
    while chunk := stream.read(max(_CHUNK, len(buffer))):
        buffer = buffer[consumed:] + chunk
        scanned, start, consumed = scanned - consumed, start - consumed, 0
        while piece := _TO_BRACKET.match(buffer, scanned):
            scanned = piece.end()
            if piece[1] in b"[{":
                depth += 1
                if depth == 1 and (number or piece[1] != b"["):
                    broken("not JSON: text after the end of the array")
                if depth == 2:
                    start = scanned - 1
                    between = buffer[consumed:start].removeprefix(_BYTE_ORDER_MARK).strip()
                    if between != (b"," if number else b"["):
                        broken("not JSON: records must be separated by one comma")
            else:
                depth -= 1
                if depth < 0:
                    broken("not JSON: a bracket too many")
                if depth == 1:
                    yield Source(name, number + 1, record=record), buffer[start:scanned]
                    number += 1
                    consumed = scanned
        if len(buffer) - consumed > most:
            broken(f"a {record} of more than {size_in_words(most)} (if that is right, raise --max-size)")
    if depth:
        broken("the file ends in the middle (export or copy it again)")
    rest = buffer[consumed:].removeprefix(_BYTE_ORDER_MARK).strip()
    if rest != b"]" if number else not re.fullmatch(rb"\[\s*\]", rest):
        broken(f"not JSON: an array of {record}s was expected")


def decoded(decoder: Decoder[Value], raw: bytes, source: Source, what: str) -> Value:
    """A record, or an :class:`InputError` that says where and what."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(reason(error, what), where=source.at()) from None


def reason(error: Exception, what: str, shape: str = "see docs/formats.md") -> str:
    """What is wrong with a record, and what it should be like.

    >>> class Span(msgspec.Struct):
    ...     label: str
    >>> try:
    ...     msgspec.json.decode(b'[{"label": 3}]', type=list[Span])
    ... except msgspec.ValidationError as error:
    ...     print(reason(error, "a list of spans"))
    not a list of spans: label of entry 1 must be a text in quotes, not a number (see docs/formats.md)
    """
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text (save the file as UTF-8)"
    if isinstance(error, msgspec.ValidationError):
        return f"not {what}: {_in_plain_words(str(error))} ({shape})"
    if isinstance(error, msgspec.DecodeError):
        found = str(error).removeprefix("JSON is malformed: ")
        if found == _CUT_OFF:
            return "not JSON: it ends in the middle (a line must be one whole JSON object)"
        return f"not JSON: {found} (give one whole JSON object)"
    if isinstance(error, RecursionError):
        return f"not {what}: nested too deeply"
    return str(error)


_CUT_OFF = "Input data was truncated"
_MISSING = re.compile(r"Object missing required field `(.+?)`")
_EXPECTED = re.compile(r"Expected `(.+?)`( of .*?length \d+)?, got `?(.+?)`?")
_PLACE = re.compile(r" - at `\$(.*?)`$")
_KINDS = {
    "object": "an object {…}",
    "array": "a list […]",
    "str": "a text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}


def _in_plain_words(message: str) -> str:
    """What a decoder says of a value, without its own words for kinds of values and for places.

    >>> _in_plain_words("Object missing required field `label` - at `$.spans[0]`")
    "'label' is missing in entry 1 of spans"
    >>> _in_plain_words("Expected `object`, got `array` - at `$.annotations`")
    'annotations must be an object {…}, not a list […]'
    """
    found = _PLACE.search(message)
    place, message = ("", message) if found is None else (_in_order_of_reading(found[1]), message[: found.start()])
    if missing := _MISSING.fullmatch(message):
        return f"{missing[1]!r} is missing" + (f" in {place}" if place else "")
    if expected := _EXPECTED.fullmatch(message):
        wanted = " or ".join(_KINDS.get(kind, kind) for kind in expected[1].split(" | "))
        given = "a number" if expected[3] == "int" else _KINDS.get(expected[3], expected[3])
        return f"{place or 'it'} must be {wanted}{expected[2] or ''}, not {given}"
    return f"{message}, in {place}" if place else message


def _in_order_of_reading(path: str) -> str:
    """A place in a value, from the inside outwards: ``.spans[0].start`` is *start of entry 1 of spans*."""
    steps = re.findall(r"\[(\d+|\.\.\.)\]|\.([^.\[]+)", path)
    names = [key or ("an entry" if number == "..." else f"entry {int(number) + 1}") for number, key in steps]
    return " of ".join(reversed(names))


def first_keys(head: bytes) -> set[str]:
    """The keys of the first object in the opening of a file, as far as it goes.

    >>> sorted(first_keys(b'[{"id": 1, "data": {"text": "a"}, "annot'))
    ['data', 'id']
    """
    keys: set[str] = set()
    depth = 0
    for piece in _PIECE.finditer(head, head.find(b"{")):
        first = head[piece.start()]
        if first == 0x22 and depth == 1:
            key = _KEY.match(head, piece.start())
            if key is not None and piece.end(0) <= key.end():
                keys.add(key.group(1).decode("utf-8", "replace"))
        elif first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
            if depth <= 0:
                break
    return keys


def plain(raw: bytes, source: Source) -> Any:
    """Any JSON value."""
    return decoded(msgspec.json.Decoder(), raw, source, "JSON")
