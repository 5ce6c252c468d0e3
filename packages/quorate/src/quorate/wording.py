"""Numbers in sentences and names: one document is, two documents are; week 9 comes before week 10."""

from __future__ import annotations

import re
from string import Formatter


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun.

    >>> counted(1, "document"), counted(1234, "document"), counted(2, "pass", "passes")
    ('1 document', '1,234 documents', '2 passes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def corpus_size(documents: int, tokens: int, annotators: int) -> str:
    """How large a corpus is.

    >>> corpus_size(1, 12, 3)
    '1 document, 12 tokens, 3 annotators'
    """
    return f"{counted(documents, 'document')}, {counted(tokens, 'token')}, {counted(annotators, 'annotator')}"


def in_number(sentence: str, n: int, *others: str) -> str:
    """A sentence with its number: ``{}`` stands for that, then for ``others``; of ``{one|many}`` one word is taken.

    >>> in_number("{} {span was|spans were} widened", 1), in_number("{} {span was|spans were} widened", 1200)
    ('1 span was widened', '1,200 spans were widened')
    """
    values, parts = iter([f"{n:,}", *others]), []
    for text, field, _, _ in Formatter().parse(sentence):
        parts.append(text)
        if field == "":
            parts.append(next(values))
        elif field is not None:
            one, many = field.split("|")
            parts.append(one if n == 1 else many)
    return "".join(parts)


def person(name: str) -> str:
    """An annotator in a sentence, where a name that is nothing but a number would be read as one.

    >>> person("ann"), person("3")
    ('ann', 'annotator “3”')
    """
    return f"annotator “{name}”" if name.isdecimal() else name


def repaired(tags: int) -> str:
    """What was done about tags that cannot stand where they do.

    >>> repaired(1)
    '1 tag that could not follow the one before was repaired'
    """
    return in_number("{} {tag|tags} that could not follow the one before {was|were} repaired", tags)


def in_words_and_numbers(name: str) -> list[tuple[int, str]]:
    """To sort names as people do.

    >>> sorted(["week-10", "week-9"], key=in_words_and_numbers)
    ['week-9', 'week-10']
    """
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
