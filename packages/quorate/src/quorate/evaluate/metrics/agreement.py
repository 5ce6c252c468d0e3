"""Do annotators agree, before any model? By token (kappas, alpha) and by span (F1, unitizing alpha)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Tag, hard_tags
from quorate.corpus.spans import Span
from quorate.corpus.tags import MISSING, Scheme, find_spans, marks_span
from quorate.errors import InputError
from quorate.evaluate.metrics.kappa import fleiss_kappa, kappa_of, krippendorff_alpha, observed_agreement
from quorate.evaluate.metrics.reading import opens_at_orphans
from quorate.evaluate.metrics.unitizing import Continuum, unitizing_alpha

Ints = NDArray[np.int64]

_BLOCK = 1 << 21  # tokens of sequence pairs compared at once, which bounds memory


class PairAgreement(NamedTuple):
    """Two annotators on the documents they share.

    ``tokens`` were labelled by both; ``observed`` is the share of them with the same label; ``kappa`` is Cohen's;
    ``spans_matched`` is the strict F1 of one against the other, the same both ways. ``None``: no such number exists.

    >>> PairAgreement("ann", "bob", 3, 20, 0.9, 0.7, None).kappa
    0.7
    """

    first: str
    second: str
    documents: int
    tokens: int
    observed: float | None
    kappa: float | None
    spans_matched: float | None


class Agreement(NamedTuple):
    """How far annotators agree. ``None``: no such number exists.

    ``documents`` and ``tokens`` have two annotators or more. ``observed`` is the mean over tokens of the share of pairs
    of annotators who give the same label. ``mean_kappa`` is the mean of Cohen's kappa over pairs (Light, 1971),
    ``alpha`` is Krippendorff's for nominal labels, ``unitizing_alpha`` his alpha for spans. ``spans_matched`` pools the
    spans of all pairs. ``partly_seen`` sequences have tokens without a label; they do not enter ``unitizing_alpha``.

    >>> import quorate
    >>> round(measure_agreement(quorate.sample()).alpha, 2)
    0.36
    """

    documents: int
    tokens: int
    observed: float
    mean_kappa: float | None
    fleiss_kappa: float | None
    alpha: float | None
    unitizing_alpha: float | None
    unitizing_by_type: dict[str, float | None]
    spans_matched: float | None
    partly_seen: int
    pairs: tuple[PairAgreement, ...]


def measure_agreement(corpus: Corpus, *, orphans: bool = True, scheme: Scheme | None = None) -> Agreement:
    """How far the annotators of a corpus agree, overall and two by two; gold is not looked at.

    With ``orphans`` a span may also open at an ``I`` that continues nothing. A tag with probabilities counts as its
    most probable one. Labels that mark no spans (parts of speech, say) have no span measures.

    >>> from quorate.corpus.records import Document
    >>> said = {"ann": ("B-X", "O", "O"), "bob": ("B-X", "O", "B-X")}
    >>> found = measure_agreement(Corpus([Document("1", ("a", "b", "c"), said)]))
    >>> round(found.pairs[0].kappa, 2), round(found.spans_matched, 2)
    (0.4, 0.67)
    """
    sequences = _sequences(corpus)
    pairs = _sequence_pairs(sequences)
    counts = _label_counts(sequences)
    observed = observed_agreement(counts)
    if observed is None:
        raise InputError("no token has labels of two annotators, so there is no agreement to measure")
    tables = _pair_tables(sequences, pairs)
    kappas = [kappa_of(int(e), f, s) for e, f, s in zip(tables.equal, tables.first, tables.second, strict=True)]
    partly_seen = _partly_seen(sequences)
    spans = _spans(sequences, orphans=orphans, scheme=scheme)
    right, marked = _shared_spans(sequences, pairs, spans, partly_seen)
    unitizing = unitizing_alpha(_continua(sequences, spans, partly_seen))
    defined = [kappa for kappa in kappas if kappa is not None]
    per_pair = []
    for p, key in enumerate(pairs.keys.tolist()):
        first, second = divmod(key, len(sequences.names))
        tokens = int(tables.first[p].sum())
        per_pair.append(
            PairAgreement(
                sequences.names[first],
                sequences.names[second],
                int(tables.documents[p]),
                tokens,
                _share(int(tables.equal[p]), tokens),
                kappas[p],
                _share(2 * int(right[p]), int(marked[p])),
            )
        )
    return Agreement(
        len(np.unique(sequences.document[pairs.left])),
        int((counts.sum(axis=1) >= 2).sum()),
        observed,
        sum(defined) / len(defined) if defined else None,
        fleiss_kappa(counts),
        krippendorff_alpha(counts),
        unitizing.alpha,
        unitizing.by_type,
        _share(2 * int(right.sum()), int(marked.sum())),
        int(partly_seen.sum()),
        tuple(per_pair),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


class _Sequences(NamedTuple):
    """Everything that annotators said: sequence s is ``codes[starts[s]:starts[s + 1]]``, ordered by document."""

    names: tuple[str, ...]
    tags: list[tuple[Tag, ...]]
    codes: Ints
    starts: Ints
    document: Ints
    annotator: Ints
    first_token: Ints  # of the sequence's document
    n_tokens: int
    labels: list[str]


def _sequences(corpus: Corpus) -> _Sequences:
    names = corpus.annotators
    number = {name: k for k, name in enumerate(names)}
    tags: list[tuple[Tag, ...]] = []
    rows: list[tuple[int, int, int]] = []
    used: set[Tag] = set()
    n_tokens = 0
    for d, document in enumerate(corpus):
        for name in sorted(document.annotations):
            hard = hard_tags(document.annotations[name])
            used.update(hard)
            tags.append(hard)
            rows.append((d, number[name], n_tokens))
        n_tokens += len(document.tokens)
    labels = sorted(tag for tag in used if tag is not None)
    code_of: dict[Tag, int] = {label: code for code, label in enumerate(labels)} | {None: MISSING}
    starts = np.concatenate([[0], np.cumsum([len(sequence) for sequence in tags], dtype=np.int64)])
    codes = np.fromiter((code_of[tag] for sequence in tags for tag in sequence), np.int64, starts[-1])
    document_of, annotator, first_token = np.array(rows, np.int64).reshape(-1, 3).T
    return _Sequences(names, tags, codes, starts, document_of, annotator, first_token, n_tokens, labels)


def _label_counts(sequences: _Sequences) -> NDArray[np.int64]:
    """``[N, J]`` How many annotators gave each token each label."""
    J = len(sequences.labels)
    shift = np.repeat(sequences.first_token - sequences.starts[:-1], np.diff(sequences.starts))
    place = (shift + np.arange(len(sequences.codes))) * J + sequences.codes
    return np.bincount(place[sequences.codes != MISSING], minlength=sequences.n_tokens * J).reshape(-1, J)


class _Pairs(NamedTuple):
    """Sequences of the same document, two by two; ``pair`` says which two annotators, by its number in ``keys``."""

    left: Ints
    right: Ints
    pair: Ints
    keys: Ints


def _sequence_pairs(sequences: _Sequences) -> _Pairs:
    per_document = np.bincount(sequences.document)
    first = np.cumsum(per_document) - per_document
    sides: list[tuple[Ints, Ints]] = []
    for size in np.unique(per_document[per_document > 1]).tolist():
        begins = first[per_document == size][:, None]
        one, other = np.triu_indices(size, 1)
        sides.append(((begins + one).ravel(), (begins + other).ravel()))
    if not sides:
        raise InputError("no document has two annotators, so there is no agreement to measure")
    left, right = (np.concatenate(side) for side in zip(*sides, strict=True))
    keys, pair = np.unique(
        sequences.annotator[left] * len(sequences.names) + sequences.annotator[right], return_inverse=True
    )
    return _Pairs(left, right, pair, keys)


class _PairTables(NamedTuple):
    """Of each pair: documents shared ``[P]``, equal labels ``[P]``, and how often each gave each label ``[P, J]``."""

    documents: Ints
    equal: Ints
    first: Ints
    second: Ints


def _pair_tables(sequences: _Sequences, pairs: _Pairs) -> _PairTables:
    P, J = len(pairs.keys), len(sequences.labels)
    equal = np.zeros(P, np.int64)
    tables = np.zeros((2, P * J), np.int64)
    lengths = np.diff(sequences.starts)[pairs.left]
    block_of = (np.cumsum(lengths) - 1) // _BLOCK
    for block in np.split(np.arange(len(lengths)), np.flatnonzero(np.diff(block_of)) + 1):
        n = lengths[block]
        within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        one, other = (
            sequences.codes[np.repeat(sequences.starts[side[block]], n) + within] for side in (pairs.left, pairs.right)
        )
        pair = np.repeat(pairs.pair[block], n)
        both = (one != MISSING) & (other != MISSING)
        if not both.all():
            one, other, pair = one[both], other[both], pair[both]
        equal += np.bincount(pair[one == other], minlength=P)
        for table, codes in zip(tables, (one, other), strict=True):
            table += np.bincount(pair * J + codes, minlength=P * J)
    first, second = tables.reshape(2, P, J)
    return _PairTables(np.bincount(pairs.pair, minlength=P), equal, first, second)


def _partly_seen(sequences: _Sequences) -> NDArray[np.bool_]:
    """``[S]`` Whether some token of the sequence has no label."""
    before = np.concatenate([[0], np.cumsum(sequences.codes == MISSING)])[sequences.starts]
    return np.diff(before) > 0


def _spans(sequences: _Sequences, *, orphans: bool, scheme: Scheme | None) -> list[list[Span]]:
    if not any(map(marks_span, sequences.labels)):
        return [[] for _ in sequences.tags]
    opens = opens_at_orphans(sequences.labels, orphans=orphans, scheme=scheme)
    return [find_spans(tags, orphans=opens) for tags in sequences.tags]


def _shared_spans(
    sequences: _Sequences, pairs: _Pairs, spans: list[list[Span]], partly_seen: NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """``[P]`` Of each pair: how many spans both marked, and how many each marked, added up.

    A span that holds a token which the other did not see does not count.
    """
    right, marked = [0] * len(pairs.keys), [0] * len(pairs.keys)
    partly = partly_seen.tolist()
    sets = [frozenset(found) for found in spans]
    for left, other, pair in zip(pairs.left.tolist(), pairs.right.tolist(), pairs.pair.tolist(), strict=True):
        one, two = sets[left], sets[other]
        if partly[left] or partly[other]:
            one, two = _seen_by(one, sequences.tags[other]), _seen_by(two, sequences.tags[left])
        if one or two:
            right[pair] += len(one & two)
            marked[pair] += len(one) + len(two)
    return np.array(right), np.array(marked)


def _seen_by(spans: frozenset[Span], tags: Sequence[Tag]) -> frozenset[Span]:
    return frozenset(span for span in spans if None not in tags[span.start : span.end])


def _continua(sequences: _Sequences, spans: list[list[Span]], partly_seen: NDArray[np.bool_]) -> Iterator[Continuum]:
    first = np.flatnonzero(np.diff(sequences.document, prepend=-1)).tolist()
    for begin, end in zip(first, [*first[1:], len(spans)], strict=True):
        whole = [spans[s] for s in range(begin, end) if not partly_seen[s]]
        yield Continuum(len(sequences.tags[begin]), whole)
