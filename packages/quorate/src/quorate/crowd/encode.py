"""Names become integers here, once, in sorted order: from a corpus of strings to arrays.

Letters as in :mod:`quorate.crowd.crowd`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from sys import intern

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Document, SoftTag, Tag
from quorate.corpus.tags import MISSING, OUTSIDE, Invalid, TagSet
from quorate.crowd.crowd import Cells, Crowd, Events
from quorate.crowd.kernels import Sequences, events_by_token, keys_by_token
from quorate.errors import InputError

Ints = NDArray[np.int32]
_PIECE = 1 << 16  # tags that are laid out at once: what that takes stays in a cache, and is not given back in between
_LEAST_WEIGHT = 1e-9  # a pair less probable than this is left out


def encode(
    corpus: Corpus,
    tagset: TagSet,
    *,
    invalid: Invalid = Invalid.REPAIR,
    annotators: Sequence[str] | None = None,
    words: Sequence[str] | None = None,
) -> Crowd:
    """Lay a corpus out as arrays.

    With ``annotators`` and ``words`` of an earlier fit, names keep the numbers they had there: new annotators are
    numbered after the known ones, and new words get the number V.

    >>> from quorate.corpus.records import Document
    >>> corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O"), "bob": ("O", None)})])
    >>> encoded = encode(corpus, corpus.tagset())
    >>> encoded.event_start.tolist(), encoded.cells.annotator.tolist(), encoded.cells.label.tolist()
    ([0, 2, 3], [0, 0, 1], [1, 0, 0])
    """
    if annotators is None and words is None:
        done_before = corpus.encoded_as(tagset, invalid)
        if isinstance(done_before, Crowd):
            return done_before
    known_names = tuple(annotators or ())
    met = set(known_names)
    names = known_names + tuple(name for name in corpus.annotators if name not in met)
    lengths = np.fromiter((len(document.tokens) for document in corpus), np.int64, len(corpus))
    doc_start = np.concatenate([[0], np.cumsum(lengths)])
    vocabulary = tuple(words) if words is not None else tuple(sorted(set(_all_tokens(corpus))))
    word_number = {word: number for number, word in enumerate(vocabulary)}
    numbers = map(word_number.get, _all_tokens(corpus), repeat(len(vocabulary)))
    word = np.fromiter(numbers, np.int32, doc_start[-1])
    labels, sequences, soft, repaired = _hard_labels(corpus, tagset, names, doc_start, invalid)
    keys, event_start, event_cell = events_by_token(
        labels, sequences, doc_start, len(names), label_before(tagset), n_previous(tagset), len(tagset.labels)
    )
    weight = None
    if soft:
        hard = Events(np.repeat(np.arange(len(word)), np.diff(event_start)), keys[event_cell], None)
        token, key, weight = _with_soft_events(hard, soft, corpus, tagset, names, doc_start, invalid)
        event_start = np.concatenate([[0], np.cumsum(np.bincount(token, minlength=len(word)))])
        keys, place = np.unique(key, return_inverse=True)
        event_cell = place.astype(np.int32)
    cells = Cells.of_keys(keys, len(names), len(tagset.labels), n_previous(tagset))
    return Crowd(
        tagset, names, vocabulary, doc_start, word, event_start, event_cell, weight, cells, repaired, soft=bool(soft)
    )


def _all_tokens(corpus: Corpus) -> chain[str]:
    return chain.from_iterable(document.tokens for document in corpus)


def n_previous(tagset: TagSet) -> int:
    """P: how many labels may stand before one, the start of a plain sequence included."""
    return len(tagset.labels) + (tagset.outside is None)


def label_before(tagset: TagSet) -> int:
    """What stands before the first token and after a missing one: ``O``, or a row of its own in the plain scheme."""
    return len(tagset.labels) if tagset.outside is None else tagset.outside


class _Codes:
    """Tags as numbers, end to end: a byte each where labels are few, as most corpora are many times their words."""

    def __init__(self, tagset: TagSet) -> None:
        self._few = len(tagset.labels) <= np.iinfo(np.int8).max
        codes = [*tagset.reads.items(), (None, MISSING)]
        # Interned, as readers do with tags: a dictionary finds the same object sooner than an equal one.
        self._code_of: dict[Tag, int] = {
            tag and intern(str(tag)): code % 256 if self._few else code for tag, code in codes
        }
        self._raw = bytearray()

    def __len__(self) -> int:
        return len(self._raw) if self._few else len(self._raw) // 2

    def add(self, document: Document, tags: Sequence[Tag]) -> None:
        """One more sequence; ``TypeError`` if it holds probabilities, which are not hashable."""
        try:
            codes = map(self._code_of.__getitem__, tags)
            self._raw += bytes(codes) if self._few else array("h", list(codes)).tobytes()
        except KeyError:
            position = next(p for p, tag in enumerate(tags) if tag not in self._code_of)
            raise _unknown(document, position, str(tags[position]), list(self._code_of)) from None

    def taken(self) -> NDArray[np.int16]:
        """All of them, which are gone after that."""
        raw, self._raw = self._raw, bytearray()
        return np.frombuffer(raw, np.int8 if self._few else np.int16).astype(np.int16)


def _unknown(document: Document, position: int, tag: str, known: Sequence[Tag]) -> InputError:
    from quorate.formats.notes import some  # for the message alone: file formats need more than NumPy

    names = [name for name in known if name is not None]
    return InputError(
        f"tag {tag!r} is not among the model's labels, {some(names, 12)} (correct it, or fit a model that knows it)",
        where=document.where(position),
    )


def _hard_labels(
    corpus: Corpus, tagset: TagSet, names: Sequence[str], doc_start: NDArray[np.int64], invalid: Invalid
) -> tuple[NDArray[np.int16], Sequences, list[tuple[int, str]], int]:
    """The labels of all sequences of tags, end to end; the sequences of probabilities; how many tags were mended."""
    number = {name: k for k, name in enumerate(names)}
    most = sum(len(document.tokens) * len(document.annotations) for document in corpus)
    labels, codes = np.empty(most, np.int16), _Codes(tagset)
    start, annotator, of_document = array("q", [0]), array("i"), array("q", [0])
    soft: list[tuple[int, str]] = []
    first = changed = n = 0
    for d, document in enumerate(corpus):
        for name in sorted(document.annotations):
            try:
                codes.add(document, document.annotations[name])  # type: ignore[arg-type]
            except TypeError:
                soft.append((d, name))
            else:
                start.append(n + len(codes))
                annotator.append(number[name])
        of_document.append(len(annotator))
        if len(codes) >= _PIECE or d == len(corpus) - 1:
            here = np.array(start[of_document[first] :], np.int64) - n
            named = partial(_document_of_sequence, corpus, of_document, of_document[first])
            piece, mended = by_rule(codes.taken(), here, tagset, invalid, named)
            labels[n : n + len(piece)] = piece
            first, n, changed = d + 1, n + len(piece), changed + mended
    sequences = Sequences(np.array(start), np.array(annotator, np.int32), np.array(of_document))
    return labels[:n], sequences, soft, changed


def _document_of_sequence(corpus: Corpus, of_document: Sequence[int], first: int, sequence: int) -> Document:
    """The document of a sequence, counted from ``first``."""
    return corpus[bisect_right(of_document, first + sequence) - 1]


def keys_of_codes(
    codes: NDArray[np.int16],
    doc: NDArray[np.int64],
    annotator: NDArray[np.int32],
    doc_start: NDArray[np.int64],
    tagset: TagSet,
    invalid: Invalid,
    document_of: Callable[[int], Document],
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Where each token's events begin (and all end), the key of every event, and how many tags were mended.

    Sequences lie end to end: ``doc`` (ascending) and ``annotator`` say whose each is, ``doc_start`` where each
    document's tokens begin.
    """
    start = np.concatenate([[0], np.cumsum(np.diff(doc_start)[doc])])
    labels, changed = by_rule(codes, start, tagset, invalid, lambda s: document_of(int(doc[s])))
    sequences = Sequences(start, annotator, np.searchsorted(doc, np.arange(len(doc_start))))
    before, J = n_previous(tagset), len(tagset.labels)
    return *keys_by_token(labels, sequences, doc_start, label_before(tagset), before, J), changed


def by_rule(
    codes: NDArray[np.int16],
    starts: NDArray[np.int64],
    tagset: TagSet,
    invalid: Invalid,
    document_of: Callable[[int], Document],
    *,
    unknown: bool = False,
) -> tuple[NDArray[np.int16], int]:
    """The codes after the rule for invalid ones; with ``unknown`` a missing label may be any (see :class:`TagSet`)."""
    if invalid is Invalid.REPAIR:
        return tagset.repaired(codes, starts, unknown=unknown)
    if invalid is Invalid.ERROR:
        bad = tagset.invalid_positions(codes, starts, unknown=unknown)
        if bad.size:
            sequence = int(np.searchsorted(starts, bad[0], side="right") - 1)
            position = int(bad[0] - starts[sequence])
            what = _fault(codes[starts[sequence] : starts[sequence + 1]], position, tagset, unknown=unknown)
            raise InputError(
                f"{what} (use --invalid repair, or fix the file)", where=document_of(sequence).where(position)
            )
    return codes, 0


def _fault(codes: NDArray[np.int16], position: int, tagset: TagSet, *, unknown: bool) -> str:
    """What is wrong with a label of a sequence."""
    tag = tagset.labels[codes[position]]
    ends = f"a document cannot end with tag {tag!r}"
    if unknown and position and codes[position - 1] == MISSING:
        if position == len(codes) - 1 and not tagset.allowed_last[codes[position]]:
            return ends
        return f"no tag fits between {tagset.labels[codes[position - 2]]!r} and {tag!r}"
    before = OUTSIDE
    if position and codes[position - 1] != MISSING:
        before = tagset.labels[codes[position - 1]]
    return ends if tagset.allowed[tagset.index[before], codes[position]] else f"tag {tag!r} follows {before!r}"


def _with_soft_events(
    hard: Events,
    soft: Sequence[tuple[int, str]],
    corpus: Corpus,
    tagset: TagSet,
    names: Sequence[str],
    doc_start: NDArray[np.int64],
    invalid: Invalid,
) -> Events:
    """Add the sequences that hold probabilities: an event of weight p(ι)·p(i) for each pair.

    A label that cannot follow ι is read as tags are repaired: as one of its type that can.
    """
    if not soft:
        return hard
    number = {name: k for k, name in enumerate(names)}
    J, P = len(tagset.labels), n_previous(tagset)
    at_start = np.eye(P)[label_before(tagset)]
    may_follow = np.ones((P, J), dtype=np.bool_)
    if invalid is not Invalid.KEEP:
        may_follow[:J] = tagset.allowed
    stands_for = _stands_for(tagset, may_follow)
    columns: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for d, name in soft:
        before = at_start
        for position, tag in enumerate(corpus[d].annotations[name]):
            now = _distribution(corpus[d], position, tag, tagset)
            if now is None:
                before = at_start
                continue
            pairs = np.outer(before, now)
            previous, label = np.nonzero(pairs > _LEAST_WEIGHT)
            label_or_repair = stands_for[previous, label]
            weight = pairs[previous, label]
            here = int(doc_start[d]) + position
            keys, where = np.unique((number[name] * P + previous) * J + label_or_repair, return_inverse=True)
            weights = np.bincount(where, weight) / weight.sum()
            columns.append((np.full(len(keys), here), keys, weights))
            repaired = np.bincount(keys % J, weights, minlength=J).astype(np.float64)
            before = np.append(repaired, np.zeros(P - J))
    tokens, keys, weights = (np.concatenate(column) for column in zip(*columns, strict=True))
    token = np.concatenate([hard.token, tokens])
    key = np.concatenate([hard.key, keys])
    weight = np.concatenate([np.ones(len(hard.token)), weights])
    order = np.lexsort((key, token))
    return Events(token[order], key[order], weight[order])


def _distribution(document: Document, position: int, tag: Tag | SoftTag, tagset: TagSet) -> NDArray[np.float64] | None:
    """``[J]`` One label's probabilities, summing to 1; ``None`` if it is missing."""
    if tag is None:
        return None
    now: NDArray[np.float64] = np.zeros(len(tagset.labels))
    given = tag if isinstance(tag, Mapping) else {tag: 1.0}
    for name, probability in given.items():
        if name not in tagset.reads:
            raise _unknown(document, position, name, tagset.labels)
        now[tagset.reads[name]] += probability
    total = now.sum()
    if not (np.isfinite(total) and total > 0 and (now >= 0).all()):
        raise InputError(f"{dict(given)!r} is not a distribution over tags", where=document.where(position))
    now /= total
    return now


def _stands_for(tagset: TagSet, may_follow: NDArray[np.bool_]) -> NDArray[np.int64]:
    """``[P, J]`` The label itself where it may follow; else one of its type that may, or failing that any that may."""
    table = np.tile(np.arange(len(tagset.labels)), (len(may_follow), 1))
    for previous, label in np.argwhere(~may_follow):
        allowed = np.flatnonzero(may_follow[previous])
        same_type = [j for j in allowed if tagset.parts[j][1] == tagset.parts[label][1]]
        table[previous, label] = same_type[0] if same_type else allowed[0]
    return table


def encode_known(corpus: Corpus, tagset: TagSet, known: Mapping[str, Sequence[Tag]], invalid: Invalid) -> Ints:
    """``[N]`` The known label of every token, ``MISSING`` where it is not known.

    ``known`` maps document ids to one tag or ``None`` a token. ``None`` means that the label is not known, so that
    ``I-x`` after it stays; what cannot follow a known label goes through the same rule as annotators' tags.

    >>> from quorate.corpus.records import Document
    >>> corpus = Corpus([Document("1", ("Ada", "Ng", "sang"), {"ann": ("B-PER", "I-PER", "O")})])
    >>> encode_known(corpus, corpus.tagset(), {"1": (None, "I-PER", None)}, Invalid.REPAIR)
    array([-1,  2, -1], dtype=int32)
    """
    flat = _Codes(tagset)
    starts = [0]
    for document in corpus:
        tags = known.get(document.id)
        if tags is None:
            flat.add(document, [None] * len(document.tokens))
        elif len(tags) != len(document.tokens):
            raise InputError(
                f"{len(tags)} known tags for {len(document.tokens)} tokens (give one a token, null where not known)",
                where=document.where(),
            )
        else:
            flat.add(document, tags)
        starts.append(len(flat))
    stray = set(known) - {document.id for document in corpus}
    if stray:
        raise InputError(f"known labels are given for document {min(stray)!r}, which is not in the input")
    if invalid is Invalid.KEEP:
        invalid = Invalid.REPAIR  # the truth must follow the scheme, whatever annotators did
    codes, _ = by_rule(flat.taken(), np.array(starts), tagset, invalid, lambda d: corpus[d], unknown=True)
    return codes.astype(np.int32)
