"""A look at a corpus before any fit: what is thin, what cannot be compared, what a fit would count less or merge."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from quorate.corpus.discontinuous import is_continued
from quorate.corpus.profiles import Kind, gold_like
from quorate.corpus.records import Corpus
from quorate.corpus.tags import Invalid, Scheme
from quorate.crowd.abstaining import coverage
from quorate.crowd.algebra import document_of, marked_spans, seen_pairs
from quorate.crowd.changes import changed
from quorate.crowd.crowd import Crowd
from quorate.errors import nearest
from quorate.estimators.comparison import not_judged
from quorate.evaluate.describe import mostly_null
from quorate.formats.notes import people, some
from quorate.formats.repeated import REPEATED
from quorate.model.prepared import encoded_with
from quorate.result.sources import Sources
from quorate.wording import counted, person

_HANDFUL = 20
_MOST_NAMED = 5  # labels in a sentence
_LITTLE = 0.25  # coverage, below which an annotator marks little of what others mark
_SHINGLE = 3
_HASHES, _BANDS = 48, 12
_ALIKE = 0.8
_PRIME = (1 << 31) - 1


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
    crowd = encoded_with(corpus, tagset, Invalid.REPAIR, {})
    labels = crowd.annotator_weights()
    seen_by = _seen_by(crowd)
    numbers = Numbers(
        documents=len(corpus),
        tokens=crowd.n_tokens,
        annotators=len(crowd.annotators),
        labels_given=int(labels.sum()),
        annotators_per_document=float(seen_by.sum()) / max(len(corpus), 1),
        labels_per_annotator=float(np.median(labels)) if len(labels) else 0.0,
        documents_with_gold=sum(document.gold is not None for document in corpus),
        tags_to_repair=crowd.repaired,
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
    seen = changed(crowd)
    sources = Sources.of(seen.annotators, corpus.profiles, seen.notes, seen.priors)
    little = _who_marks_little(crowd, sources)
    warnings = [
        *corpus.notes,
        *(sentence for sentence in gold_like(corpus.annotators, corpus.profiles) if sentence not in corpus.notes),
        *_thin_documents(corpus, seen_by),
        *_thin_annotators(crowd.annotators, labels),
        *filter(None, [mostly_null(corpus)]),
        *_rare_labels(corpus, crowd, sources, seen_by, little),
        *_alone(corpus),
        *_separate_groups(corpus, crowd),
        *_duplicates(sources),
        *_correlated(sources),
        *_sentence_on_little(sources, little),
        *_near_duplicates(corpus, crowd),
    ]
    return Checked(numbers, tuple(counts), tuple(warnings))


def _seen_by(crowd: Crowd) -> NDArray[np.int64]:
    """``[D]`` How many annotators gave a label in each document."""
    doc, who = seen_pairs(crowd)
    return np.bincount(doc, minlength=crowd.n_docs) if len(who) else np.zeros(crowd.n_docs, np.int64)


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
    corpus: Corpus, crowd: Crowd, sources: Sources, seen_by: NDArray[np.int64], little: Collection[str]
) -> Iterator[str]:
    """Labels that are used once, or by one annotator alone where others saw the same: they may be misspelt.

    Where labels are used but a few times on average, that is nothing odd; nor where all have labels of their own, or of
    those who mark little of what others mark, as rules do.
    """
    spans, types, K = marked_spans(crowd), crowd.tagset.types, len(crowd.annotators)
    if len(spans.kind) < _HANDFUL * len(types):
        return
    kinds, users = np.divmod(np.unique(spans.kind * K + spans.who), K)
    once, of_one, how_many = {}, {}, np.bincount(kinds, minlength=len(types))
    for kind in np.flatnonzero(how_many == 1).tolist():
        label, user = types[kind], crowd.annotators[int(users[kinds == kind][0])]
        if is_continued(label) or sources.declared(user) or user in little:
            continue
        documents = document_of(crowd, spans.start[spans.kind == kind])
        if len(documents) == 1:
            once[label] = f"{label} by {person(user)} in {corpus[int(documents[0])].id}"
        elif how_many.max() > 1 and (seen_by[documents] > 1).any():
            of_one[label] = f"{label} by {person(user)}, {len(documents):,} times"
    often = np.bincount(spans.kind, minlength=len(types))
    known = [types[kind] for kind in np.argsort(often, kind="stable")]  # of PER and per, the one that is used most
    known = [label for label in known if label not in once and label not in of_one]
    for found, what in ((once, "only once"), (of_one, "by one annotator alone, though others saw the same documents")):
        if found:
            named = some([*found.values()], _MOST_NAMED)
            yield (
                f"{counted(len(found), 'label was', 'labels were')} used {what}: {named} (if misspelt: --map-labels "
                f"{_respelt([*found][:_MOST_NAMED], known)})"
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


def _separate_groups(corpus: Corpus, crowd: Crowd) -> Iterator[str]:
    """Annotators are linked by the documents they share; groups without a link cannot be compared.

    Those who share none with anybody are left to :func:`_alone`.
    """
    doc, who = seen_pairs(crowd)
    D, K = len(corpus), len(crowd.annotators)
    graph = coo_array((np.ones(len(doc), np.int8), (doc, D + who)), shape=(D + K, D + K))
    _, group = connected_components(graph, directed=False)
    active = np.unique(who)
    sizes = np.bincount(group[D + active])
    groups = np.flatnonzero(sizes > 1)
    if len(groups) > 1:
        smallest = groups[np.argmin(sizes[groups])]
        members = [crowd.annotators[k] for k in active if group[D + k] == smallest]
        yield (
            f"annotators fall into {len(groups):,} groups that share no document, and cannot be compared between "
            f"groups; the smallest is {people(members, 5)}"
        )


def _duplicates(sources: Sources) -> Iterator[str]:
    """Annotators who marked the same spans: a fit merges them."""
    for group in sources.duplicates:
        yield f"{people(group, 5)} marked the same spans wherever two of them looked: they count as one annotator"


def _correlated(sources: Sources) -> Iterator[str]:
    """Annotators who agree more than their reliability explains, unless profiles put all of them in one group."""
    for one in sources.together:
        groups = {sources.profiles[name].group if name in sources.profiles else None for name in one.names}
        if not one.merged and (None in groups or len(groups) > 1):
            yield f'{one} (if they come from one source, give them one "group": --annotators)'


def _who_marks_little(crowd: Crowd, sources: Sources) -> list[str]:
    """Annotators whose ``O`` says next to nothing: sources that abstain, and who touches few of others' marks."""
    few = coverage(crowd).share < _LITTLE
    return [name for k, name in enumerate(crowd.annotators) if few[k] or name in sources.abstaining]


def _sentence_on_little(sources: Sources, little: Sequence[str]) -> Iterator[str]:
    """Unless a profile says that they abstain, or what they are."""
    found = [name for name in little if not sources.declared(name)]
    if found:
        yield (
            f"{people(found, 5)} {'marks' if len(found) == 1 else 'mark'} little of what others mark, so that their O "
            'is weak evidence (if they are rules, give them the "kind" rule: --annotators)'
        )


def _near_duplicates(corpus: Corpus, crowd: Crowd) -> Iterator[str]:
    """Documents that share four fifths of their word triples (found by min-hashing, then checked).

    Those that share all are left out where the notes of the reader name them.
    """
    lengths = np.diff(crowd.doc_start)
    enough = np.flatnonzero(lengths >= 2 * _SHINGLE)
    if any(REPEATED in note for note in corpus.notes):
        first = {corpus[d].tokens: d for d in reversed(enough.tolist())}
        enough = np.array(sorted(first.values()), np.int64)
    if len(enough) < 2 or len(crowd.words) < 2:  # in a table without words all are alike
        return
    shingles = _shingles(crowd, enough)
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


def _shingles(crowd: Crowd, docs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """For each document the set of its word triples, as numbers."""
    V = len(crowd.words) + 1
    words = crowd.word.astype(np.int64)
    found = []
    for d in docs.tolist():
        w = words[crowd.doc_start[d] : crowd.doc_start[d + 1]]
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
