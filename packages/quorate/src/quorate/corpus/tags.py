"""Tag schemes: which tags there are, which may follow which, and spans ⇄ tags.

A :class:`TagSet` is the ordered list of labels that a model works with. Span schemes (BIO, BIOES, IO) always hold ``O``
and every tag of every type, used or not; the plain scheme (part-of-speech tags, classes) holds the labels in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.discontinuous import in_pieces, joined, whole_label
from quorate.corpus.schemes import Invalid, Scheme
from quorate.corpus.spans import Span
from quorate.errors import InputError

__all__ = [
    "OUTSIDE",
    "Invalid",
    "Scheme",
    "TagSet",
    "find_pieces",
    "find_spans",
    "goes_on",
    "inside_of",
    "marks_span",
    "opening",
    "scheme_of",
    "span_of_one",
    "split_tag",
    "tag_inside",
]

OUTSIDE = "O"
MISSING = -1

_PREFIXES = {
    Scheme.BIO: ("B", "I"),
    Scheme.BIOES: ("B", "I", "E", "S"),
    Scheme.IO: ("I",),
    Scheme.PLAIN: (),
}


def marks_span(tag: str) -> bool:
    """Whether a tag is of a span scheme, by its form: a prefix, and a type.

    >>> marks_span("B-PER"), marks_span("O"), marks_span("NOUN"), marks_span("B-")
    (True, False, False, False)
    """
    return len(tag) > 2 and tag[1] == "-" and tag[0] in _PREFIXES[Scheme.BIOES]


def split_tag(tag: str) -> tuple[str, str]:
    """Prefix and type of a tag; of anything that is not of this form, no prefix and the tag.

    >>> split_tag("B-PER"), split_tag("O")
    (('B', 'PER'), ('', 'O'))
    """
    return (tag[0], tag[2:]) if marks_span(tag) else ("", tag)


def goes_on(tag: str) -> bool:
    """Whether a tag says that its span began before: ``I`` and ``E``.

    >>> goes_on("I-PER"), goes_on("B-PER"), goes_on("O")
    (True, False, False)
    """
    return split_tag(tag)[0] in ("I", "E")


def opening(tag: str) -> str:
    """The tag with which a span would begin at this token: ``B`` for ``I``, ``S`` for ``E``; others stay as they are.

    >>> opening("I-PER"), opening("E-PER"), opening("B-PER")
    ('B-PER', 'S-PER', 'B-PER')
    """
    return {"I": "B", "E": "S"}[tag[0]] + tag[1:] if goes_on(tag) else tag


def inside_of(tag: str) -> str:
    """The tag of the next token of a span that goes on: ``I-x`` for ``B-x``; any other stays as it is.

    >>> inside_of("B-PER"), inside_of("O")
    ('I-PER', 'O')
    """
    prefix, kind = split_tag(tag)
    return f"I-{kind}" if prefix == "B" else tag


def span_of_one(label: str) -> str:
    """The tag of a token that is a span by itself.

    >>> span_of_one("NOUN")
    'S-NOUN'
    """
    return f"S-{label}"


def tag_inside(label: str) -> str:
    """The tag of a token of a span, where neighbours of one type are one span.

    >>> tag_inside("PER")
    'I-PER'
    """
    return f"I-{label}"


def scheme_of(tags: Iterable[str]) -> Scheme:
    """The scheme that tags are of, by their prefixes.

    BIOES if any is ``E-`` or ``S-``, BIO if any is ``B-``, IO if any is ``I-``; otherwise plain.

    >>> scheme_of(["O", "I-PER"])
    <Scheme.IO: 'io'>
    """
    prefixes = {split_tag(tag)[0] for tag in tags} - {""}
    if prefixes & {"E", "S"}:
        return Scheme.BIOES
    if "B" in prefixes:
        return Scheme.BIO
    return Scheme.IO if prefixes else Scheme.PLAIN


def find_spans(tags: Sequence[str | None], *, orphans: bool = True) -> list[Span]:
    """The spans that a sequence of BIO, BIOES or IO tags marks, read as people mean them.

    An *orphan* is an ``I`` (or ``E``) with no open span of its type before it: with ``orphans`` it opens a span,
    without it is passed over. A missing tag (``None``) ends a span. Pieces of a discontinuous span are one span.

    >>> find_spans(["B-PER", "I-PER", "O", "I-LOC"])
    [Span(start=0, end=2, label='PER'), Span(start=3, end=4, label='LOC')]
    >>> find_spans(["B-PER", "I-PER", "O", "I-LOC"], orphans=False)
    [Span(start=0, end=2, label='PER')]
    >>> find_spans(["B-ADR", "O", "B-ADR…"])
    [Span(start=0, end=3, label='ADR', pieces=((0, 1), (2, 3)))]
    """
    return joined(find_pieces(tags, orphans=orphans))


def find_pieces(tags: Sequence[str | None], *, orphans: bool = True) -> list[Span]:
    """The spans as they stand in the tags, as :func:`find_spans` reads them: every piece is a span by itself.

    >>> find_pieces(["B-ADR", "O", "B-ADR…"])
    [Span(start=0, end=1, label='ADR'), Span(start=2, end=3, label='ADR…')]
    """
    spans: list[Span] = []
    start, label = -1, ""
    for position, tag in enumerate(tags):
        if tag is None or tag == OUTSIDE:
            if start >= 0:
                spans.append(Span(start, position, label))
                start = -1
            continue
        prefix, kind = tag[0], tag[2:]
        if not (prefix in "IE" and start >= 0 and kind == label):
            if start >= 0:
                spans.append(Span(start, position, label))
            start, label = (position, kind) if prefix in "BS" or orphans else (-1, "")
        if prefix in "ES" and start >= 0:
            spans.append(Span(start, position + 1, label))
            start = -1
    if start >= 0:
        spans.append(Span(start, len(tags), label))
    return spans


class _Repaired(NamedTuple):
    codes: NDArray[np.int16]
    changed: int


@dataclass(frozen=True)
class TagSet:
    """The labels of a corpus in a fixed order, and the rules of their scheme.

    >>> tagset = TagSet.of_types(Scheme.BIO, ["PER", "LOC"])
    >>> tagset.labels
    ('O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER')
    >>> tagset.tags([Span(1, 3, "PER")], length=4)
    ['O', 'B-PER', 'I-PER', 'O']
    """

    scheme: Scheme
    labels: tuple[str, ...]

    @classmethod
    def of_types(cls, scheme: Scheme, types: Iterable[str]) -> TagSet:
        """Every tag of the given span types (of the plain scheme: the labels themselves), sorted.

        The type of later pieces comes with that of the entities whose pieces they are.

        >>> TagSet.of_types(Scheme.IO, ["ADR…"]).labels
        ('O', 'I-ADR', 'I-ADR…')
        """
        names = sorted(set(types))
        if scheme is Scheme.PLAIN:
            return cls(scheme, tuple(names))
        names = sorted({*names, *map(whole_label, names)})
        return cls(scheme, (OUTSIDE, *(f"{p}-{name}" for name in names for p in _PREFIXES[scheme])))

    @classmethod
    def infer(cls, tags: Iterable[str], scheme: Scheme | None = None) -> TagSet:
        """The tag set that these tags belong to; the scheme is inferred unless given.

        Tags that begin with ``B-``, ``I-``, ``E-`` or ``S-`` make it a span scheme: BIOES if any is ``E-`` or ``S-``,
        BIO if any is ``B-``, IO otherwise. Without any such tag the scheme is plain. Where IO is asked for, tags of the
        other two are read as ``I-``: that is how spans are written before anybody says in which scheme they are wanted.

        >>> TagSet.infer(["O", "I-PER", "B-PER"]).scheme
        <Scheme.BIO: 'bio'>
        """
        used = sorted(set(tags))
        if scheme is None and OUTSIDE in used and {"B", "I"} & set(used) and set(used) <= set("BIESO"):
            raise InputError(
                f"tags {', '.join(used)} carry no type (write B-x and I-x with any x, or use --scheme plain)"
            )
        scheme = scheme_of(used) if scheme is None else scheme
        if scheme is Scheme.PLAIN:
            tagset = cls.of_types(scheme, used)
        else:
            readable = _PREFIXES[Scheme.BIOES if scheme is Scheme.IO else scheme]
            stray = [tag for tag in used if tag != OUTSIDE and split_tag(tag)[0] not in readable]
            if stray:
                raise UnknownTagError(stray[0], scheme)
            tagset = cls.of_types(scheme, (split_tag(tag)[1] for tag in used if tag != OUTSIDE))
        if len(tagset.labels) < 2:
            what = f"every tag is {used[0]!r}" if used else "nobody gave any tag"
            raise InputError(f"{what}, so there is nothing to combine (at least two labels are needed)")
        return tagset

    @cached_property
    def index(self) -> dict[str, int]:
        """From label to its position."""
        return {label: position for position, label in enumerate(self.labels)}

    @cached_property
    def reads(self) -> dict[str, int]:
        """From every tag that can be read to a label's position; in IO ``B-``, ``E-`` and ``S-`` are read as ``I-``.

        >>> TagSet.infer(["O", "B-PER"], Scheme.IO).reads["B-PER"]
        1
        """
        aliases: dict[str, int] = {}
        if self.scheme is Scheme.IO:
            aliases = {f"{p}-{kind}": self.index[f"I-{kind}"] for kind in self.types for p in _PREFIXES[Scheme.BIOES]}
        return aliases | self.index

    @property
    def outside(self) -> int | None:
        """The position of ``O``, which stands before the first token; ``None`` in the plain scheme."""
        return None if self.scheme is Scheme.PLAIN else 0

    @cached_property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Prefix and type of every label: ``("B", "PER")``, and ``("", "O")`` for ``O`` and for plain labels."""
        if self.scheme is Scheme.PLAIN:
            return tuple(("", label) for label in self.labels)
        return tuple(split_tag(label) for label in self.labels)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The span types, sorted; in the plain scheme, the labels."""
        if self.scheme is Scheme.PLAIN:
            return self.labels
        return tuple(sorted({kind for prefix, kind in self.parts if prefix}))

    @property
    def span_types(self) -> tuple[str, ...]:
        """The types that spans have; none in the plain scheme, which has no spans."""
        return () if self.outside is None else self.types

    @cached_property
    def opens(self) -> NDArray[np.bool_]:
        """``[J]``: does a span always begin at this label? In IO none says so."""
        return np.array([prefix in ("B", "S") for prefix, _ in self.parts])

    @cached_property
    def closes(self) -> NDArray[np.bool_]:
        """``[J]``: does a span always end with this label?"""
        return np.array([prefix in ("E", "S") for prefix, _ in self.parts])

    @cached_property
    def in_span(self) -> NDArray[np.bool_]:
        """``[J]``: is a token with this label in a span? In the plain scheme none is."""
        return np.array([bool(prefix) for prefix, _ in self.parts])

    @cached_property
    def continues(self) -> NDArray[np.bool_]:
        """``[J, J]``: does the second label, after the first, go on with the same span?"""
        same = (self.type_of[:, None] == self.type_of) & self.in_span
        return np.asarray(same & ~self.closes[:, None] & ~self.opens)

    @cached_property
    def span_labels(self) -> tuple[NDArray[np.int64], ...]:
        """For every type the label of a span of one token, and of a longer one's first, inner and last token.

        >>> [int(label[0]) for label in TagSet.of_types(Scheme.BIO, ["PER"]).span_labels]
        [1, 1, 2, 2]
        """
        prefixes = {Scheme.IO: "IIII", Scheme.BIO: "BBII", Scheme.BIOES: "SBIE"}[self.scheme]
        return tuple(np.array([self.index[f"{prefix}-{kind}"] for kind in self.types], np.int64) for prefix in prefixes)

    @cached_property
    def precedence(self) -> NDArray[np.int64]:
        """``[J]``: labels that open a span come before those inside of one, and those before its end; ``O`` has 0."""
        return np.array(["BSIE".index(prefix) if prefix else 0 for prefix, _ in self.parts])

    @cached_property
    def type_of(self) -> NDArray[np.int64]:
        """``[J]``: which of ``types`` a label belongs to, −1 for ``O``."""
        if self.scheme is Scheme.PLAIN:
            return np.arange(len(self.labels))
        return np.array([self.types.index(kind) if prefix else -1 for prefix, kind in self.parts])

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """``[J, J]``: may the second label follow the first?"""
        J = len(self.labels)
        table = np.ones((J, J), dtype=np.bool_)
        if self.scheme in (Scheme.IO, Scheme.PLAIN):
            return table
        for i, (before, before_type) in enumerate(self.parts):
            for j, (after, after_type) in enumerate(self.parts):
                is_open = before in ("B", "I")
                continues = after in ("I", "E")
                if continues:
                    table[i, j] = is_open and before_type == after_type
                elif self.scheme is Scheme.BIOES:
                    table[i, j] = not is_open
        return table

    @cached_property
    def allowed_first(self) -> NDArray[np.bool_]:
        """``[J]``: may a document begin with this label?"""
        if self.outside is None:
            return np.ones(len(self.labels), dtype=np.bool_)
        return np.asarray(self.allowed[self.outside])

    @cached_property
    def allowed_last(self) -> NDArray[np.bool_]:
        """``[J]``: may a document end with this label?"""
        if self.scheme is not Scheme.BIOES:
            return np.ones(len(self.labels), dtype=np.bool_)
        return np.array([prefix not in ("B", "I") for prefix, _ in self.parts])

    def stands_for(self, before: int, label: int) -> int:
        """The allowed label that comes nearest to a forbidden one after ``before``; all three are positions.

        A continuation of nothing stands for an opening (``I-x`` for ``B-x``; in BIOES ``E-x`` for ``S-x``), as where
        tags are repaired. In BIOES, inside a span of type y, ``I-x`` stands for ``I-y``, and what ends or is outside
        for ``E-y``.

        >>> tagset = TagSet.of_types(Scheme.BIO, ["PER"])
        >>> tagset.labels[tagset.stands_for(tagset.index["O"], tagset.index["I-PER"])]
        'B-PER'
        """
        prefix, kind = self.parts[label]
        before_prefix, before_kind = self.parts[before]
        if before_prefix in ("B", "I") and self.scheme is Scheme.BIOES:
            return self.index[f"I-{before_kind}" if prefix in ("B", "I") else f"E-{before_kind}"]
        return self.index[f"B-{kind}" if prefix == "I" else f"S-{kind}"]

    def is_valid(self, tags: Sequence[str]) -> bool:
        """Whether no tag of a complete sequence breaks the scheme.

        >>> TagSet.infer(["O", "B-PER"]).is_valid(["O", "I-PER"])
        False
        """
        codes = np.array([self.index[tag] for tag in tags], dtype=np.int16)
        return not self.invalid_positions(codes, np.array([0, len(codes)])).size

    def spans(self, tags: Sequence[str | None], *, orphans: bool = True) -> list[Span]:
        """The spans in a sequence of tags; none in the plain scheme.

        >>> TagSet.infer(["O", "I-PER"]).spans(["I-PER", "I-PER", "O"])
        [Span(start=0, end=2, label='PER')]
        """
        return joined(self.pieces(tags, orphans=orphans))

    def pieces(self, tags: Sequence[str | None], *, orphans: bool = True) -> list[Span]:
        """The spans as they stand in a sequence of tags: every piece of a discontinuous one is a span by itself.

        >>> [(piece.start, piece.label) for piece in TagSet.infer(["O", "I-X…"]).pieces(["I-X", "O", "I-X…"])]
        [(0, 'X'), (2, 'X…')]
        """
        if self.scheme is Scheme.PLAIN:
            return []
        return find_pieces(tags, orphans=orphans or self.scheme is Scheme.IO)

    def tags(self, spans: Iterable[Span], length: int) -> list[str]:
        """The tags of a sequence of ``length`` tokens with these spans, which must not overlap, nor clash otherwise.

        >>> TagSet.of_types(Scheme.BIOES, ["X"]).tags([Span(0, 3, "X"), Span(3, 4, "X")], length=4)
        ['B-X', 'I-X', 'E-X', 'S-X']
        """
        tags = [OUTSIDE] * length
        for span in in_pieces(spans):
            for position in range(span.start, span.end):
                tags[position] = f"I-{span.label}"
            if self.scheme in (Scheme.BIO, Scheme.BIOES):
                tags[span.start] = f"B-{span.label}"
            if self.scheme is Scheme.BIOES:
                tags[span.end - 1] = f"E-{span.label}" if span.end - span.start > 1 else f"S-{span.label}"
        return tags

    def invalid_positions(
        self, codes: NDArray[np.int16], starts: NDArray[np.int64], *, unknown: bool = False
    ) -> NDArray[np.int64]:
        """Where labels break the scheme, in sequences laid end to end.

        ``codes`` holds label positions, or ``MISSING``; sequence s is ``codes[starts[s]:starts[s + 1]]``. Before the
        first token, and after a missing one, stands ``O``; with ``unknown`` a missing label may be any that fits.
        """
        if self.outside is None or not len(codes):
            return np.zeros(0, dtype=np.int64)
        filled = starts[:-1][np.diff(starts) > 0]
        before = np.empty_like(codes)
        before[1:] = codes[:-1]
        before[filled] = self.outside
        ok = self.allowed[np.where(before == MISSING, self.outside, before), codes] | (codes == MISSING)
        if unknown:
            # One unknown label in between can forbid a pair (B-x ? I-y, in BIOES); two fit between any.
            earlier = np.full_like(codes, MISSING)
            earlier[2:] = codes[:-2]
            earlier[filled[filled + 1 < len(codes)] + 1] = MISSING
            after = before == MISSING
            ok |= after
            after &= (earlier != MISSING) & (codes != MISSING)
            ok[after] = self._allowed_over_one[earlier[after], codes[after]]
        last = starts[1:][np.diff(starts) > 0] - 1
        ok[last] &= self.allowed_last[codes[last]] | (codes[last] == MISSING)
        return np.flatnonzero(~ok)

    @cached_property
    def _allowed_over_one(self) -> NDArray[np.bool_]:
        """``[J, J]``: may the second label stand two tokens after the first?"""
        steps = self.allowed.astype(np.int64)
        return np.asarray(steps @ steps > 0)

    def repaired(self, codes: NDArray[np.int16], starts: NDArray[np.int64], *, unknown: bool = False) -> _Repaired:
        """The same sequences with every label that breaks the scheme mended, and how many labels changed.

        The spans are read as people mean them (an ``I-x`` with no open span begins one); those that hold a label which
        breaks the scheme, or end where one does, are written again. With ``unknown``, a span goes on into a missing
        label where its own say so.
        """
        invalid = self.invalid_positions(codes, starts, unknown=unknown)
        if not invalid.size:
            return _Repaired(codes, 0)
        mended = codes.copy()
        for s in np.unique(np.searchsorted(starts, invalid, side="right") - 1):
            piece = slice(starts[s], starts[s + 1])
            tags = [None if code == MISSING else self.labels[code] for code in codes[piece]]
            wrong = set((invalid[(invalid >= starts[s]) & (invalid < starts[s + 1])] - starts[s]).tolist())
            for span in find_pieces(tags):
                if not wrong.isdisjoint(range(span.start, span.end + 1)):
                    whole = self._into_unknown(span, tags) if unknown else span
                    valid = self.tags([whole], len(tags))[span.start : span.end]
                    mended[starts[s] + span.start : starts[s] + span.end] = [self.index[tag] for tag in valid]
        return _Repaired(mended, int(np.count_nonzero(mended != codes)))

    def _into_unknown(self, span: Span, tags: Sequence[str | None]) -> Span:
        """The span with the missing tags beside it that its own first and last tag say it goes on into."""
        start, end = span.start, span.end
        first, last = str(tags[start]), str(tags[end - 1])
        comes_from = start > 0 and tags[start - 1] is None and first[0] in "IE"
        if comes_from and start > 1 and (earlier := tags[start - 2]) is not None:
            comes_from = bool(self._allowed_over_one[self.index[earlier], self.index[first]])
        goes_on = end < len(tags) and tags[end] is None and last[0] in "BI"
        return Span(start - comes_from, end + goes_on, span.label)


class UnknownTagError(InputError):
    """A tag that is not of the scheme; whoever knows the documents says where it stands."""

    def __init__(self, tag: str, scheme: Scheme, *, where: str = "") -> None:
        self.tag, self.scheme = tag, scheme
        forms = ", ".join([OUTSIDE, *(f"{prefix}-x" for prefix in _PREFIXES[scheme])])
        super().__init__(
            f"tag {tag!r} is not of the scheme {scheme.value.upper()} ({forms}) that the other tags follow "
            "(correct it, or give the scheme with --scheme)",
            where=where,
        )
