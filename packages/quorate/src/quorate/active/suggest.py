"""What a project should do next: which documents to have labelled, by whom, and whether to go on at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.active.stopping import Change, change_of, somebody_else
from quorate.active.strategies import Strategy, Uncertainty, diverse
from quorate.active.view import BITS, View, check_cost, left_out, together, views_of
from quorate.corpus.records import Corpus
from quorate.crowd.algebra import seen_pairs
from quorate.errors import InputError, SettingsError, knows_its_options
from quorate.estimators.capabilities import Advises
from quorate.estimators.comparison import compared_with_nobody, not_judged
from quorate.estimators.layered import KnownInLayers, LayeredModel
from quorate.evaluate.describe import agreement_of
from quorate.formats.notes import some
from quorate.model.prepared import Known
from quorate.model.settings import check_number, choice
from quorate.result.layers import LayeredResult
from quorate.wording import counted

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LIST_PER_CHOICE, _SHORTEST_LIST = 50, 1_000  # candidate documents for each one to be chosen, and at least
_LEAST_DRAWN = 20  # documents in the estimate that says whether to go on, however few are asked for
_NOTHING_LEFT = "nothing is left to ask for: every document that may be asked for is decided, or labelled by"
_LEAST_CERTAIN = "'quorate report' shows what is least certain"
_NOBODY_LEFT = f"{_NOTHING_LEFT} all annotators (somebody new could label more; {_LEAST_CERTAIN})"
_NOBODY_LEFT_IN_POOL = f"{_NOTHING_LEFT} everybody who may be asked (allow others: --annotators; {_LEAST_CERTAIN})"
_MOST_ANNOTATORS = 200  # candidates in a large crowd: the most informative per cost


class Suggestion(NamedTuple):
    """A document to have labelled, and by whom; ``None`` is somebody who has labelled nothing yet.

    ``gain`` is the expected information of this annotator's labels, in bits; ``score`` what the strategy ranks by;
    ``confidence`` the probability of the present sequence; ``labels`` how many annotators it has already.
    """

    document: str
    annotator: str | None
    gain: float
    cost: float
    score: float
    confidence: float
    labels: int


class Advice(NamedTuple):
    """What to ask for, the best first; what that batch should change; and whether to ``stop`` instead, and why.

    ``change`` is about the documents of ``suggestions``; ``stop`` and ``reason`` may be about more (20 at least).
    ``agreement`` is that of the annotators (Krippendorff's alpha). Those ``not_judged`` share no document with anybody,
    so that their accuracy is unknown; where most documents are theirs alone, it is unknown when to ``stop``. If there
    is but one of them, a second annotator is suggested. With ``nobody_left`` to ask there is no suggestion, and
    ``stop`` does not mean that the consensus is good enough.
    """

    suggestions: tuple[Suggestion, ...]
    change: Change
    stop: bool
    reason: str
    agreement: float | None = None
    not_judged: tuple[str, ...] = ()
    nobody_left: bool = False


@knows_its_options
def next_labels(
    corpus: Corpus | Mapping[str, Corpus],
    model: Advises | LayeredModel | None = None,
    *,
    n: int = 20,
    strategy: str = Strategy.INFORMATION.value,
    annotators: Sequence[str] | None = None,
    cost: Mapping[str, float] | None = None,
    per_document_max: int | None = None,
    exclude: Iterable[str] = (),
    known: Known | KnownInLayers = None,
    diversity: float = 0.5,
    enough: float = 0.005,
    seed: int = 0,
    cluster: Any = None,
) -> Advice:
    """The ``n`` documents whose labels help most, each with the annotator of most expected information per cost.

    Without a ``model`` one is fitted by the default method (on a ``cluster``: the address of a Dask scheduler, or its
    ``Client``). Documents with ``per_document_max`` annotators, and those to ``exclude``, are not asked for; nor are
    those that are decided: all their labels are ``known``, here or in the fit of the model, or an expert (by their
    profile) has labelled them. Of a document with some known labels only the others count.

    Where annotators differ because the text allows two readings (``Result.ambiguity``), more labels bring nothing, and
    such documents come last. ``enough`` is the gain of the expected score (F1, as the model's own
    probabilities have it) below which to stop: by one more label of every document, at
    the gain per nat of entropy of this batch (of the best 20 documents, if it is smaller). Annotations may be in layers
    (:func:`quorate.read_layers`): then information is the sum over layers, and ``model`` and ``known`` are in layers
    too.

    >>> import quorate
    >>> advice = next_labels(quorate.sample(), quorate.BSC("cm").fit(quorate.sample()), n=3)
    >>> len(advice.suggestions), advice.change.now > 0.5
    (3, True)
    """
    chosen_by = choice(Strategy, "strategy", strategy)
    for name, whole in (("n", n), ("per-document-max", 1 if per_document_max is None else per_document_max)):
        check_number(name, whole, whole=True)
    for name, number in (("diversity", diversity), ("enough", enough)):
        check_number(name, number)
    if n < 1:
        raise SettingsError(f"n must be 1 or more, not {n}")
    if per_document_max is not None and per_document_max < 1:
        raise SettingsError(f"per-document-max must be 1 or more, not {per_document_max}")
    if not 0 <= diversity <= 1:
        raise SettingsError(f"diversity must be from 0 to 1, not {diversity}")
    documents, views = views_of(corpus, model, known, cluster)
    given = views[0].crowd.as_given
    labels = np.bincount(seen_pairs(given)[0], minlength=len(documents))
    names = _names(views)
    known_people = len(names)
    pool, costs = _pool(names, annotators), _costs(names, cost or {})
    decided = np.all([view.decided for view in views], axis=0)
    may = (np.diff(given.doc_start) > 0) & ~left_out(documents, exclude) & ~decided
    if per_document_max is not None:
        may &= labels < per_document_max
    alone = _not_compared(views, documents, decided)
    if annotators is None and set(names) == alone and len(names) == 1:
        # Only a second annotator's labels of the same documents show how good the first one is.
        new = somebody_else({name for view in views for name in view.crowd.annotators})
        names, pool, costs = (*names, new), np.array([1]), np.append(costs, 1.0)
        may &= labels > 0
    unsure = together([view.unsure for view in views])
    reducible = together([view.unsure.reducible(view.reducible) for view in views])
    entropy = np.where(decided, 0.0, reducible.sequence)
    candidates = max(n, _LEAST_DRAWN)
    doc, who, gains = _gains(views, names, unsure, pool, costs, may, candidates)
    if not len(doc):
        change = change_of([view.drawn([], names, seed) for view in views], [], entropy)
        reason = _NOBODY_LEFT_IN_POOL if len(pool) < known_people else _NOBODY_LEFT
        return _advice(views, documents, alone, (), change, True, reason)._replace(nobody_left=True)
    worth = gains / costs[who]
    order = np.lexsort((-worth, doc))
    best = order[np.r_[True, doc[order[1:]] != doc[order[:-1]]]]  # by document, the annotator of most worth
    information = np.zeros(len(documents))
    information[doc[best]] = worth[best] * BITS
    score = reducible.rank_by(chosen_by, information, np.random.default_rng(seed))
    ranked = best[np.argsort(-score[doc[best]], kind="stable")]
    if chosen_by is Strategy.RANDOM:
        diversity = 0.0
    positions = diverse(doc[ranked], score[doc[ranked]], documents.documents, candidates, diversity)
    pair_of = {int(doc[pair]): int(pair) for pair in best}
    pairs = [pair_of[position] for position in positions]
    suggestions = tuple(
        Suggestion(
            documents[int(doc[pair])].id,
            names[who[pair]] if who[pair] < known_people else None,
            float(gains[pair] * BITS),
            float(costs[who[pair]]),
            float(score[doc[pair]]),
            float(np.exp(unsure.log_probability[doc[pair]])),
            int(labels[doc[pair]]),
        )
        for pair in sorted(pairs[:n], key=lambda pair: -score[doc[pair]])
    )
    asked = [(int(doc[pair]), int(who[pair])) for pair in pairs]
    drawn = [view.drawn(asked, names, seed + number) for number, view in enumerate(views)]
    of_batch, of_all = (change_of(drawn, [d for d, _ in some_of], entropy) for some_of in (asked[:n], asked))
    return _advice(views, documents, alone, suggestions, of_batch, *_verdict(of_all, enough))


def _not_compared(views: Sequence[View], documents: Corpus, decided: NDArray[np.bool_]) -> set[str]:
    """Annotators who share no document with anybody, so that their accuracy is unknown."""
    certain = [document.id for document, known in zip(documents, decided, strict=True) if known]
    results = [view.result for view in views]
    return set.intersection(*(set(compared_with_nobody(one.model, one.corpus, certain)) for one in results))


def _advice(
    views: Sequence[View],
    documents: Corpus,
    alone: set[str],
    suggestions: tuple[Suggestion, ...],
    change: Change,
    stop: bool,
    reason: str,
) -> Advice:
    """The advice, unless most documents were labelled only by those who are compared with nobody."""
    agreement = agreement_of(LayeredResult({view.layer: view.result for view in views}))
    labelled = [set(document.annotations) for document in documents if document.annotations]
    if 2 * sum(who <= alone for who in labelled) > len(labelled):
        stop, reason = False, not_judged(sorted(alone))
    return Advice(suggestions, change, stop, reason, agreement, tuple(sorted(alone)))


def _names(views: Sequence[View]) -> tuple[str, ...]:
    """Everybody who can be asked: those whom all layers know."""
    others = [set(view.names) for view in views[1:]]
    return tuple(name for name in views[0].names if all(name in known for known in others))


def _verdict(change: Change, enough: float) -> tuple[bool, str]:
    most = f"one more label of every document should add {100 * change.all_round:.2f} points or less"
    by = f"an estimate of the model, from {counted(change.labels, 'document')}"
    return change.all_round < enough, f"{most} to the expected score ({by})"


def _pool(names: Sequence[str], wanted: Sequence[str] | None) -> Integers:
    """Whom to ask: those named, or everyone who has labelled something."""
    number = {name: k for k, name in enumerate(names)}
    if wanted is None:
        if not number:
            raise InputError("nobody has labelled anything, so that there is nobody to ask")
        return np.arange(len(number))
    strange = [name for name in wanted if name not in number]
    if strange:
        raise SettingsError(f"nobody is called {some(strange)} (known: {some(list(names), 10)})")
    if not wanted:
        raise SettingsError("no annotator was given to ask")
    return np.array(sorted({number[name] for name in wanted}), np.int64)


def _costs(names: Sequence[str], cost: Mapping[str, float]) -> Floats:
    """``[K]`` What a document costs with each annotator; 1 by default."""
    number = {name: k for k, name in enumerate(names)}
    costs = np.ones(len(number))
    for name, price in cost.items():
        if name not in number:
            raise SettingsError(f"a cost is given for {name!r}, who has labelled nothing (annotators go by name)")
        check_cost(name, price)
        costs[number[name]] = price
    return costs


def _gains(
    views: Sequence[View],
    names: Sequence[str],
    unsure: Uncertainty,
    pool: Integers,
    costs: Floats,
    may: NDArray[np.bool_],
    n: int,
) -> tuple[Integers, Integers, Floats]:
    """Document, annotator and expected nats of pairs that may be asked for, and have no labels.

    The information about a document is at most its entropy, so that only those of the highest entropy are candidates.
    """
    if len(pool) > _MOST_ANNOTATORS:
        informativeness = sum(_informativeness(view, names) for view in views)
        pool = np.sort(pool[np.argsort(-(informativeness / costs)[pool], kind="stable")[:_MOST_ANNOTATORS]])
    listed = np.argsort(-np.where(may, unsure.sequence, -1.0), kind="stable")
    listed = np.sort(listed[: max(_LIST_PER_CHOICE * n, _SHORTEST_LIST)])
    listed = listed[may[listed]]
    doc, who = np.repeat(listed, len(pool)), np.tile(np.arange(len(pool)), len(listed))
    asked = [names[k] for k in pool.tolist()]
    fresh = views[0].unlabelled(doc, who, asked)
    doc, who = doc[fresh], who[fresh]
    gains = np.sum([view.gains(doc, who, asked) for view in views], axis=0)
    return doc, pool[who], gains


def _informativeness(view: View, names: Sequence[str]) -> Floats:
    """``[K]`` The informativeness of each annotator; 0 where it is unknown."""
    known = view.result.annotators
    found = dict(zip(known.names, np.nan_to_num(known.informativeness), strict=True))
    return np.array([found.get(name, 0.0) for name in names])
