"""A look at a corpus before any fit: what is thin, what cannot be compared, what looks copied."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from quorate.choose.silence import Coverage
from quorate.choose.sources import coverage_and_sharing
from quorate.corpus.discontinuous import is_continued
from quorate.corpus.profiles import Kind, gold_like
from quorate.corpus.records import Corpus
from quorate.corpus.tags import Invalid, Scheme
from quorate.crowd.algebra import document_of, marked_spans, seen_pairs
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.crowd.sharing import Sharing
from quorate.errors import nearest
from quorate.estimators.comparison import not_judged
from quorate.formats.notes import people, some
from quorate.formats.repeated import REPEATED
from quorate.result.sources import MUCH_IN_COMMON, Sources, err_together
from quorate.wording import counted, person

__all__ = ["Checked", "Numbers", "check"]

_HANDFUL = 20
_MOST_TOLD = 5  # labels in a sentence
_COPY_TOKENS = 50
_COPY_MARKED = 10
_SHINGLE = 3
_HASHES, _BANDS = 48, 12
_ALIKE = 0.8
_PRIME = (1 << 31) - 1
_NEARLY_ALL = 0.8  # share in common from which on annotators are nearly copies


class Numbers(NamedTuple):
    """What was counted; ``labels_per_annotator`` is a median.

    >>> import quorate
    >>> check(quorate.sample()).numbers.annotators_per_document
    5.0
    """

    documents: int
    tokens: int
    annotators: int
    labels_given: int
    annotators_per_document: float
    labels_per_annotator: float
    documents_with_gold: int
    tags_to_repair: int


@dataclass(frozen=True)
class Checked:
    """What was counted, as numbers and in plain sentences, and what should be looked at.

    >>> import quorate
    >>> checked = check(quorate.sample())
    >>> checked.counts[0]
    '320 documents, 5,227 tokens, 12 annotators, 26,135 labels given'
    >>> checked.warnings
    ()
    """

    numbers: Numbers
    counts: tuple[str, ...]
    warnings: tuple[str, ...]


def check(corpus: Corpus, *, scheme: Scheme | None = None) -> Checked:
    """Count what is there, and warn of what will make a consensus weak or its annotators incomparable."""
    tagset = corpus.tagset(scheme)
    encoded = encode(corpus, tagset, invalid=Invalid.REPAIR)
    labels = encoded.annotator_weights()
    seen_by = _seen_by(encoded)
    numbers = Numbers(
        documents=len(corpus),
        tokens=encoded.n_tokens,
        annotators=len(encoded.annotators),
        labels_given=int(labels.sum()),
        annotators_per_document=float(seen_by.sum()) / max(len(corpus), 1),
        labels_per_annotator=float(np.median(labels)) if len(labels) else 0.0,
        documents_with_gold=sum(document.gold is not None for document in corpus),
        tags_to_repair=encoded.repaired,
    )
    counts = [
        f"{counted(numbers.documents, 'document')}, {counted(numbers.tokens, 'token')}, "
        f"{counted(numbers.annotators, 'annotator')}, {counted(numbers.labels_given, 'label')} given",
        f"scheme {tagset.scheme.value}, {counted(len(tagset.labels), 'label')}: {some(tagset.labels, 12)}",
        f"{numbers.annotators_per_document:.1f} annotators a document on average, "
        f"{counted(int(numbers.labels_per_annotator), 'label')} an annotator (median)",
    ]
    if numbers.documents_with_gold:
        counts.append(f"{counted(numbers.documents_with_gold, 'document has', 'documents have')} gold")
    if numbers.tags_to_repair:
        counts.append(f"{counted(numbers.tags_to_repair, 'tag')} that cannot follow the one before will be repaired")
    sources = Sources(encoded.annotators, corpus.profiles)
    copies = _copies(corpus)
    covered, sharing = coverage_and_sharing(encoded, corpus.profiles)
    warnings = [
        *corpus.notes,
        *(sentence for sentence in gold_like(corpus.annotators, corpus.profiles) if sentence not in corpus.notes),
        *_thin_documents(corpus, seen_by),
        *_thin_annotators(encoded.annotators, labels),
        *_rare_labels(corpus, encoded, sources, seen_by, covered),
        *_alone(corpus),
        *_separate_groups(corpus, encoded),
        *_told_copies(copies),
        *_who_err_together(sharing, sources, copies),
        *_who_mark_little(sources, covered),
        *_near_duplicates(corpus, encoded),
    ]
    return Checked(numbers, tuple(counts), tuple(warnings))


def _seen_by(encoded: Crowd) -> NDArray[np.int64]:
    """``[D]`` How many annotators gave a label in each document."""
    doc, who = seen_pairs(encoded)
    return np.bincount(doc, minlength=encoded.n_docs) if len(who) else np.zeros(encoded.n_docs, np.int64)


def _thin_documents(corpus: Corpus, seen_by: NDArray[np.int64]) -> Iterator[str]:
    for number, what in ((0, "no annotator"), (1, "only one annotator")):
        found = [corpus[int(d)].id for d in np.flatnonzero(seen_by == number)]
        if found:
            yield f"{counted(len(found), 'document has', 'documents have')} {what}: {some(found, 5)}"


def _thin_annotators(names: Sequence[str], labels: NDArray[np.float64]) -> Iterator[str]:
    idle = [names[k] for k in np.flatnonzero(labels == 0).tolist()]
    if idle:
        yield f"{counted(len(idle), 'annotator')} gave no label: {people(idle, 5)}"
    few = [names[k] for k in np.flatnonzero((labels > 0) & (labels < _HANDFUL)).tolist()]
    if few:
        who = counted(len(few), "annotator")
        yield f"{who} gave fewer than {_HANDFUL} labels, too few to know them by: {people(few, 5)}"


def _rare_labels(
    corpus: Corpus, encoded: Crowd, sources: Sources, seen_by: NDArray[np.int64], covered: Coverage
) -> Iterator[str]:
    """Labels that are used once, or by one annotator alone where others saw the same: they may be misspelt.

    Where labels are used but a few times on average, that is nothing odd; nor where all have labels of their own, or of
    those who mark little of what others mark, as rules do.
    """
    spans, types, K = marked_spans(encoded), encoded.tagset.types, len(encoded.annotators)
    if len(spans.kind) < _HANDFUL * len(types):
        return
    kinds, users = np.divmod(np.unique(spans.kind * K + spans.who), K)
    once, of_one, how_many = {}, {}, np.bincount(kinds, minlength=len(types))
    for kind in np.flatnonzero(how_many == 1).tolist():
        k = int(users[kinds == kind][0])
        label, user = types[kind], encoded.annotators[k]
        if is_continued(label) or sources.declared(user) or covered.silent[k]:
            continue
        documents = document_of(encoded, spans.start[spans.kind == kind])
        if len(documents) == 1:
            once[label] = f"{label} by {person(user)} in {corpus[int(documents[0])].id}"
        elif how_many.max() > 1 and (seen_by[documents] > 1).any():
            of_one[label] = f"{label} by {person(user)}, {len(documents):,} times"
    often = np.bincount(spans.kind, minlength=len(types))
    known = [types[kind] for kind in np.argsort(often, kind="stable")]  # of PER and per, the one that is used most
    known = [label for label in known if label not in once and label not in of_one]
    for found, what in ((once, "only once"), (of_one, "by one annotator alone, though others saw the same documents")):
        if found:
            told = some([*found.values()], _MOST_TOLD)
            yield (
                f"{counted(len(found), 'label was', 'labels were')} used {what}: {told} (if misspelt: --map-labels "
                f"{_respelt([*found][:_MOST_TOLD], known)})"
            )


def _respelt(labels: Sequence[str], known: Sequence[str]) -> str:
    """Labels and the known ones that are most like them, as ``--map-labels`` takes them."""
    meant = {label: nearest(label, known) for label in labels}
    return ",".join(f"{label}={like}" for label, like in meant.items() if like) or f"{labels[0]}=NEW"


def _alone(corpus: Corpus) -> Iterator[str]:
    """Whoever shares no document with anybody, unless a profile says that they need no judging."""
    experts = {name for name, profile in corpus.profiles.items() if profile.kind is Kind.EXPERT}
    alone = sorted(set(corpus.annotators) - corpus.compared() - experts)
    if alone:
        yield not_judged(alone)


def _separate_groups(corpus: Corpus, encoded: Crowd) -> Iterator[str]:
    """Annotators are linked by the documents they share; groups without a link cannot be compared.

    Of those who share none with anybody, :func:`_alone` tells.
    """
    doc, who = seen_pairs(encoded)
    D, K = len(corpus), len(encoded.annotators)
    graph = coo_array((np.ones(len(doc), np.int8), (doc, D + who)), shape=(D + K, D + K))
    _, group = connected_components(graph, directed=False)
    active = np.unique(who)
    sizes = np.bincount(group[D + active])
    groups = np.flatnonzero(sizes > 1)
    if len(groups) > 1:
        smallest = groups[np.argmin(sizes[groups])]
        members = [encoded.annotators[k] for k in active if group[D + k] == smallest]
        yield (
            f"annotators fall into {len(groups):,} groups that share no document, and cannot be compared between "
            f"groups; the smallest is {people(members, 5)}"
        )


def _copies(corpus: Corpus) -> dict[tuple[str, str], int]:
    """Pairs who said the same wherever both saw a document, too often for it to be chance; and on how many tokens."""
    tokens: dict[tuple[str, str], int] = {}
    marked: dict[tuple[str, str], int] = {}
    differ: set[tuple[str, str]] = set()
    for document in corpus:
        names = sorted(document.annotations)
        for n, first in enumerate(names):
            said = document.annotations[first]
            for second in names[n + 1 :]:
                pair = (first, second)
                if pair in differ:
                    continue
                if said == document.annotations[second]:
                    tokens[pair] = tokens.get(pair, 0) + len(said)
                    marked[pair] = marked.get(pair, 0) + sum(tag is not None and tag != "O" for tag in said)
                else:
                    differ.add(pair)
    enough = (pair for pair in sorted(tokens) if tokens[pair] >= _COPY_TOKENS and marked[pair] >= _COPY_MARKED)
    return {pair: tokens[pair] for pair in enough if pair not in differ}


def _told_copies(copies: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Copies in sentences; where three or more are all copies of each other, they share one."""
    names = sorted({name for pair in copies for name in pair})
    number = {name: n for n, name in enumerate(names)}
    linked = Sharing.of([(number[one], number[other], 1.0) for one, other in copies])
    told: set[tuple[str, str]] = set()
    for members in linked.groups(len(names)):
        pairs = list(combinations([names[n] for n in members], 2))
        if len(members) > 2 and all(pair in copies for pair in pairs):
            told.update(pairs)
            yield (
                f"{people([names[n] for n in members], 5)} said the same wherever two of them saw a document: they may "
                f"be copies of one, which would count {len(members)} times"
            )
    for one, other in copies:
        if (one, other) not in told:
            yield (
                f"{person(one)} and {person(other)} said the same on all {copies[one, other]:,} tokens that both saw: "
                "one may be a copy of the other, and would count twice"
            )


def _who_err_together(sharing: Sharing, sources: Sources, copies: Collection[tuple[str, str]]) -> Iterator[str]:
    """Annotators who agree more than their reliability explains, unless a profile says so or they are ``copies``."""
    names = sources.names
    groups = [sources.profiles[name].group if name in sources.profiles else None for name in names]
    found = [
        (one, other, share)
        for one, other, share in sharing.pairs()
        if groups[one] is None or groups[one] != groups[other]
    ]
    nearly = err_together(names, Sharing.of(found), _NEARLY_ALL)
    as_one = {names[k] for voice in sharing.voices for k in voice}
    for group in nearly:
        if set(combinations(group.names, 2)) <= set(copies):
            continue
        if as_one.issuperset(group.names):
            yield (
                f"{people(group.names, 5)} are nearly copies of each other, and are heard as one (if they come from "
                'one source, give them one "group": --annotators)'
            )
        else:
            yield (
                f"{people(group.names, 5)} are nearly copies of each other: keep one and leave out the rest "
                '(--map-annotators NAME=), or give them one "group" (--annotators)'
            )
    told = {group.names for group in nearly}
    for group in err_together(names, Sharing.of(found), MUCH_IN_COMMON):
        if group.names not in told:
            yield f'{group} (if they come from one source, give them one "group": --annotators)'


def _who_mark_little(sources: Sources, covered: Coverage) -> Iterator[str]:
    """Annotators whose ``O`` says next to nothing, unless a profile says that they abstain, or what they are."""
    silent = np.flatnonzero(covered.silent).tolist()
    found = [sources.names[k] for k in silent if not sources.declared(sources.names[k])]
    if found:
        yield (
            f"{people(found, 5)} {'marks' if len(found) == 1 else 'mark'} little of what others mark, so that their O "
            'says next to nothing (if they are rules, give them the "kind" rule: --annotators)'
        )


def _near_duplicates(corpus: Corpus, encoded: Crowd) -> Iterator[str]:
    """Documents that share four fifths of their word triples (found by min-hashing, then checked).

    Those that share all are left out where the reader has told of them.
    """
    lengths = np.diff(encoded.doc_start)
    enough = np.flatnonzero(lengths >= 2 * _SHINGLE)
    if any(REPEATED in note for note in corpus.notes):
        first = {corpus[d].tokens: d for d in reversed(enough.tolist())}
        enough = np.array(sorted(first.values()), np.int64)
    if len(enough) < 2 or len(encoded.words) < 2:  # in a table without words all are alike
        return
    shingles = _shingles(encoded, enough)
    signatures = _min_hashes(shingles)
    alike: dict[int, int] = {}
    for band in np.split(signatures, _BANDS, axis=1):
        _, place, times = np.unique(band, axis=0, return_inverse=True, return_counts=True)
        order = np.argsort(place, kind="stable")
        for bucket in np.split(order, np.cumsum(times)[:-1]):
            one = int(bucket[0])
            for other in bucket[1:].tolist():
                if other not in alike and _jaccard(shingles[one], shingles[other]) >= _ALIKE:
                    alike[other] = one
    if alike:
        other, one = min(alike.items())
        pair = f"{corpus[int(enough[one])].id} and {corpus[int(enough[other])].id}"
        which = counted(len(alike), "document is", "documents are")
        yield f"{which} nearly the same as another, such as {pair}: their labels count twice"


def _shingles(encoded: Crowd, docs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """For each document the set of its word triples, as numbers."""
    V = len(encoded.words) + 1
    words = encoded.word.astype(np.int64)
    found = []
    for d in docs.tolist():
        w = words[encoded.doc_start[d] : encoded.doc_start[d + 1]]
        found.append(np.unique((w[:-2] * V + w[1:-1]) % _PRIME * V + w[2:]) % _PRIME)
    return found


def _min_hashes(shingles: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """``[D, H]`` The least hash of each document's shingles, under H random hashes: equal with probability Jaccard."""
    rng = np.random.default_rng(0)
    flat = np.concatenate(shingles)
    starts = np.concatenate([[0], np.cumsum([len(s) for s in shingles])[:-1]])
    factors, shifts = rng.integers(1, _PRIME, (2, _HASHES))
    return np.stack(
        [
            np.minimum.reduceat((flat * factor + shift) % _PRIME, starts)
            for factor, shift in zip(factors, shifts, strict=True)
        ],
        axis=1,
    )


def _jaccard(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=False))
    return shared / (len(one) + len(other) - shared)
