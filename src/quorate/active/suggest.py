"""What a project should do next: which documents to have labelled, by whom, and whether to go on at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.active.stopping import Change, expected_change
from quorate.active.strategies import (
    Strategy,
    Uncertainty,
    diverse,
    document_entropy,
    expected_information,
    matrices_of,
    share_with_one_reading,
    token_entropy,
)
from quorate.corpus.profiles import Kind
from quorate.corpus.records import Corpus, Tag
from quorate.corpus.tags import TagSet
from quorate.encode.algebra import seen_pairs
from quorate.encode.encoded import Encoded
from quorate.errors import InputError, SettingsError
from quorate.estimators.capabilities import Advises
from quorate.estimators.methods import DEFAULT_METHOD, estimator
from quorate.estimators.updating import ModelState
from quorate.formats.notes import some
from quorate.models.consensus import conclude
from quorate.models.prepared import Known, known_tags
from quorate.models.settings import check_number, choice
from quorate.result.result import Result

__all__ = ["Advice", "Suggestion", "next_labels"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_BITS = 1 / np.log(2)
_LIST_PER_CHOICE, _SHORTEST_LIST = 50, 1_000  # documents whose annotators are looked at, for each to be chosen
_MOST_ANNOTATORS = 200  # of a large crowd, those who tell most for their cost are looked at


class Suggestion(NamedTuple):
    """A document to have labelled, and by whom.

    ``gain`` is what this annotator's labels are expected to tell, in bits; ``score`` what the strategy ranks by;
    ``confidence`` the probability of the sequence as it is now; ``labels`` how many annotators it has already.
    """

    document: str
    annotator: str
    gain: float
    cost: float
    score: float
    confidence: float
    labels: int


class Advice(NamedTuple):
    """What to ask for, the best first; what that batch should change; and whether to ``stop`` instead, and why."""

    suggestions: tuple[Suggestion, ...]
    change: Change
    stop: bool
    reason: str


def next_labels(
    corpus: Corpus,
    model: Advises | None = None,
    *,
    n: int = 20,
    strategy: str = Strategy.INFORMATION.value,
    annotators: Sequence[str] | None = None,
    cost: Mapping[str, float] | None = None,
    per_document_max: int | None = None,
    exclude: Iterable[str] = (),
    known: Known = None,
    diversity: float = 0.5,
    enough: float = 0.005,
    seed: int = 0,
) -> Advice:
    """The ``n`` documents whose labels help most, each with the annotator whose labels tell most for their cost.

    Without a ``model`` one is fitted to the documents that have labels, by the default method. Documents with
    ``per_document_max`` annotators, and those to ``exclude``, are not asked for; nor are those that are decided: all
    their labels are ``known``, here or in the fit of the model, or an expert (by their profile) has labelled them.
    One of which a part is known is asked for by what is still open.
    Where annotators differ because the text allows two readings (``Result.ambiguity``), more labels bring nothing, and
    such documents come last. ``enough`` is the gain of F1 by one more label of every document, with as much gain for
    what is unknown as in this batch, below which to stop.

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
    certain = known_tags(corpus, known)
    model = model or _fitted(corpus, certain)
    legible = _legible(certain, model.model_state().tagset)
    encoded, state = model.encoded(corpus), model.model_state()
    pool = _pool(encoded, annotators)
    costs = _costs(encoded, cost or {})
    decided = _decided(corpus, model, certain)
    open_documents = _open(corpus, encoded, per_document_max, exclude) & ~decided
    result = model.combine(corpus, known=legible)
    unsure = _uncertainty(state, corpus, result, legible)
    told = share_with_one_reading(result.posterior, result.ambiguity.tokens, encoded.doc_start)
    unknown = np.where(decided, 0.0, unsure.sequence * told)
    doc, who, gains = _gains(state, encoded, unsure, pool, costs, open_documents, n, result)
    gains = gains * told[doc]
    if not len(doc):
        change = expected_change(result, state.model, encoded, [], unknown, model.combine)
        return Advice((), change, True, "every document that may be asked for is decided, or labelled by everyone")
    worth = gains / costs[who]
    order = np.lexsort((-worth, doc))
    best = order[np.r_[True, doc[order[1:]] != doc[order[:-1]]]]  # by document, who tells most for their cost
    information = np.zeros(len(corpus))
    information[doc[best]] = worth[best] * _BITS
    score = unsure.that_labels_can_tell(told).rank_by(chosen_by, information, np.random.default_rng(seed))
    ranked = best[np.argsort(-score[doc[best]], kind="stable")]
    if chosen_by is Strategy.RANDOM:
        diversity = 0.0
    positions = diverse(doc[ranked], score[doc[ranked]], corpus.documents, n, diversity)
    pair_of = {int(doc[pair]): int(pair) for pair in best}
    pairs = [pair_of[position] for position in positions]
    said = np.bincount(seen_pairs(encoded)[0], minlength=len(corpus))
    suggestions = tuple(
        Suggestion(
            corpus[int(doc[pair])].id,
            encoded.annotators[who[pair]],
            float(gains[pair] * _BITS),
            float(costs[who[pair]]),
            float(score[doc[pair]]),
            float(np.exp(unsure.log_probability[doc[pair]])),
            int(said[doc[pair]]),
        )
        for pair in pairs
    )
    asked = [(int(doc[pair]), int(who[pair])) for pair in pairs]
    change = expected_change(result, state.model, encoded, asked, unknown, model.combine, seed=seed)
    return Advice(suggestions, change, *_verdict(change, enough))


def _verdict(change: Change, enough: float) -> tuple[bool, str]:
    most = f"labels as good for every document would raise F1 by {100 * change.all_round:.2f} points at most"
    return change.all_round < enough, most


def _fitted(corpus: Corpus, known: Mapping[str, Sequence[Tag]]) -> Advises:
    labelled = corpus.select(lambda document: bool(document.annotations) or document.id in known)
    if not any(document.annotations for document in labelled):
        raise InputError("no document has a label yet (have some labelled, or give a --model)")
    model = estimator(DEFAULT_METHOD)
    if not isinstance(model, Advises):
        raise SettingsError(f"method {DEFAULT_METHOD!r} cannot say what to ask for next")
    return model.fit(labelled, known=known)


def _decided(corpus: Corpus, model: Advises, known: Mapping[str, Sequence[Tag]]) -> NDArray[np.bool_]:
    """``[D]`` Which documents need nobody: all their labels are known, or an expert has labelled them."""
    profiles = {**model.model_state().profiles, **corpus.profiles}
    experts = {name: profile for name, profile in profiles.items() if profile.kind is Kind.EXPERT}
    settled = model.decided_documents() | {name for name, tags in known.items() if None not in tags}
    return np.array(
        [
            document.id in settled
            or any(
                name in document.annotations and (expert.abstains or None not in document.annotations[name])
                for name, expert in experts.items()
            )
            for document in corpus
        ],
        np.bool_,
    )


def _pool(encoded: Encoded, wanted: Sequence[str] | None) -> Integers:
    """Whom to ask: those named, or everyone who has labelled something."""
    number = {name: k for k, name in enumerate(encoded.annotators)}
    if wanted is None:
        if not number:
            raise InputError("nobody has labelled anything, so that there is nobody to ask")
        return np.arange(len(number))
    strange = [name for name in wanted if name not in number]
    if strange:
        raise SettingsError(f"nobody is called {some(strange)} (known: {some(list(encoded.annotators), 10)})")
    if not wanted:
        raise SettingsError("no annotator was given to ask")
    return np.array(sorted({number[name] for name in wanted}), np.int64)


def _costs(encoded: Encoded, cost: Mapping[str, float]) -> Floats:
    """``[K]`` What a document costs with each annotator; 1 unless it is said."""
    number = {name: k for k, name in enumerate(encoded.annotators)}
    costs = np.ones(len(number))
    for name, price in cost.items():
        if name not in number:
            raise SettingsError(f"a cost is given for {name!r}, who has labelled nothing (annotators go by name)")
        check_number(f"the cost of {name!r}", price)
        if not (np.isfinite(price) and price > 0):
            raise SettingsError(f"the cost of {name!r} must be a positive number, not {price:g}")
        costs[number[name]] = price
    return costs


def _open(corpus: Corpus, encoded: Encoded, most: int | None, exclude: Iterable[str]) -> NDArray[np.bool_]:
    """``[D]`` Which documents may be asked for."""
    may = np.diff(encoded.doc_start) > 0
    if most is not None:
        may &= np.bincount(seen_pairs(encoded)[0], minlength=len(corpus)) < most
    for name in exclude:
        try:
            may[corpus.position(name)] = False
        except KeyError:
            raise SettingsError(f"document {name!r}, which is to be left out, is not in the input") from None
    return np.asarray(may)


def _legible(known: Mapping[str, Sequence[Tag]], tagset: TagSet) -> dict[str, tuple[Tag, ...]]:
    """The known labels that a model can read: of one that it has never met, it is not known what else may stand."""
    return {name: tuple(tag if tag in tagset.reads else None for tag in tags) for name, tags in known.items()}


def _uncertainty(state: ModelState, corpus: Corpus, result: Result, known: Mapping[str, Sequence[Tag]]) -> Uncertainty:
    """What is not known of the consensus that is given out."""
    said, certain = state.encoded(corpus), state.known_codes(corpus, known)
    weighed, settings, calibration = state.weighed(said), state.settings, result.calibration
    with closing(state.engines.over(weighed, known=certain, text=settings.text)) as engine:
        threads = state.engines.threads
        found = conclude(
            engine,
            state.model,
            said,
            weighed,
            settings,
            calibration,
            spans=state.spans,
            known=certain,
            sharing=state.sharing,
            threads=threads,
        )
        sequence = document_entropy(engine, state.model, weighed.cells, found, calibration)
    tokens = token_entropy(result._kept_posterior(), said.doc_start)
    return Uncertainty(result._decoded.log_probability, np.diff(said.doc_start), tokens, sequence)


def _gains(
    state: ModelState,
    encoded: Encoded,
    unsure: Uncertainty,
    pool: Integers,
    costs: Floats,
    may: NDArray[np.bool_],
    n: int,
    result: Result,
) -> tuple[Integers, Integers, Floats]:
    """Document, annotator and expected nats of pairs that may be asked for, and have not been.

    What can be told of a document is less than what is unknown of it, so that only the least known are looked at.
    """
    K = len(encoded.annotators)
    if len(pool) > _MOST_ANNOTATORS:
        told = np.zeros(K)
        told[: len(result.annotators)] = np.nan_to_num(result.annotators.informativeness)
        pool = np.sort(pool[np.argsort(-(told / costs)[pool], kind="stable")[:_MOST_ANNOTATORS]])
    listed = np.argsort(-np.where(may, unsure.sequence, -1.0), kind="stable")
    listed = np.sort(listed[: max(_LIST_PER_CHOICE * n, _SHORTEST_LIST)])
    listed = listed[may[listed]]
    doc, who = np.repeat(listed, len(pool)), np.tile(np.arange(len(pool)), len(listed))
    seen_doc, seen_by = seen_pairs(encoded)
    fresh = ~np.isin(doc * K + pool[who], seen_doc * K + seen_by)
    doc, who = doc[fresh], who[fresh]
    matrices = matrices_of(state.model.annotators, pool.tolist())
    gains = expected_information(result._decoded, encoded.doc_start, unsure, matrices, state.tagset, doc, who)
    return doc, pool[who], gains
