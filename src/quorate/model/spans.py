"""From a fitted token model to a consensus whose evidence is spans (see :mod:`quorate.model.span_model`).

What is given out is one distribution: that of the span model, raised to a power that calibration finds, mixed with a
little of the token model's, which knows of spans that nobody marked. Whole documents, spans and tokens are read off
it, so that none of them is surer than what it contains. What neither has seen is estimated from how many spans only one
annotator found, and how many two did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.tags import TagSet
from quorate.crowd.algebra import labels_of_spans, ranges_of
from quorate.crowd.crowd import Crowd
from quorate.crowd.sharing import Sharing
from quorate.errors import SettingsError
from quorate.model import loop
from quorate.model.candidates import Candidates, find_candidates, looked_up, voted_spans
from quorate.model.engines.protocol import Decoded, Engine, Likely
from quorate.model.parts.dirichlet import log_mean
from quorate.model.parts.responses import Responses
from quorate.model.settings import Decode, Evidence, Settings
from quorate.model.span_model import (
    SUREST,
    USUAL_WEIGHTS,
    WEIGHTS_OF_PASSAGES,
    SpanEngine,
    SpanModel,
    TokenWeights,
    prior_log_odds,
)

__all__ = [
    "LIKELY",
    "GivenSpans",
    "Heard",
    "SpanEvidence",
    "by_label",
    "clamped_documents",
    "decode_spans",
    "fit_spans",
    "given_spans",
    "likely_spans",
    "mixed",
    "needs_spans",
    "span_evidence",
    "stated_spans",
    "token_f1_terms",
    "tokens_inside",
    "with_known",
    "with_spans",
]

Floats = NDArray[np.float64]
Chosen = NDArray[np.bool_]
_NOTED = 0.01  # the least probability of a span that is looked up
LIKELY = 0.1
"""The probability from which on a span that nobody marked is a candidate."""
_LEAST_GIVEN = LIKELY  # of a span that is given out
_TIES = 1e-6  # what a span counts beside its tokens
_PASSES = 8
_TOLERANCE = 1e-6
# The share of the token model in what is given out: on the dev splits of two real crowds, anything from 0.1 to 0.3 has
# about the same cross entropy, and none of it twice as much.
_TOKEN_SHARE = 0.2
_THRESHOLD_ROUNDS = 20
_LEAST = 1e-300  # of a probability whose logarithm is taken
_CERTAIN = 50.0  # log odds of what is known
_ENOUGH_SPANS = 50.0  # to estimate from them how many nobody saw


class Heard(NamedTuple):
    """A corpus as both models hear it: ``said`` is for that of spans, ``weighed`` for that of tokens.

    ``weighed`` has the same labels, of which what annotators have in common (``sharing``) counts once, and perhaps
    those of a tagger, which learned from the crowd and marks no spans of its own. ``known [N]`` are labels that are
    known, −1 where none is. ``tokens`` is how much it counts of a span what is said of its tokens.
    """

    said: Crowd
    weighed: Crowd
    known: NDArray[np.int32] | None = None
    sharing: Sharing = Sharing.of()
    threads: int | None = None
    tokens: TokenWeights = USUAL_WEIGHTS

    def for_evidence(self, evidence: Evidence) -> Heard:
        """The same, where what is said of tokens counts as it does for this evidence."""
        return self._replace(tokens=WEIGHTS_OF_PASSAGES if evidence is Evidence.PASSAGES else USUAL_WEIGHTS)

    @property
    def has_tagger(self) -> bool:
        """Whether the token model hears one."""
        return len(self.weighed.event_cell) != len(self.said.event_cell)


class SpanEvidence(NamedTuple):
    """The candidates of a corpus with their prior, ready for passes; ``clamped [D]``: some of its labels are known."""

    encoded: Crowd
    candidates: Candidates
    engine: SpanEngine
    clamped: NDArray[np.bool_]

    def only(self, documents: NDArray[np.int64], sample: Crowd, threads: int | None = None) -> SpanEvidence:
        """That of some documents, of which ``sample`` is made: a document's evidence is the same without the others."""
        shift = sample.doc_start[:-1] - self.encoded.doc_start[documents]
        found = self.candidates.only(documents, shift)
        first = self.candidates.first
        prior = ranges_of(self.engine.prior, first[documents], first[documents + 1])
        engine = SpanEngine(found, prior, threads=threads)
        return SpanEvidence(sample, found, engine, self.clamped[documents])


def needs_spans(settings: Settings, tagset: TagSet) -> bool:
    """Whether a consensus with these settings looks at candidates; :class:`SettingsError` if there can be none."""
    if tagset.outside is None:
        asked = [name for name in ("precision", "recall") if getattr(settings, name) is not None]
        asked += [f"decode {settings.decode.value}"] if settings.asks_for_f1 else []
        asked += [f"evidence {settings.evidence.value}"] if settings.evidence is not Evidence.TOKENS else []
        if asked:
            raise SettingsError(f"{asked[0]} is for spans, and labels of the plain scheme have none (leave it out)")
    if tagset.outside is None or settings.decode is Decode.TOKEN:
        return False
    return not settings.by_tokens or settings.asks_for_f1 or settings.dialled


def likely_spans(engine: Engine, model: loop.Model, heard: Heard, sharpness: float = 1.0) -> Likely:
    """What a fitted token ``model`` thinks likely; ``engine`` is over what it hears."""
    return engine.likely_spans(*loop.output_tables(model, heard.weighed.cells, sharpness), _NOTED)


def span_evidence(model: loop.Model, heard: Heard, likely: Likely, from_text: Likely | None = None) -> SpanEvidence:
    """What there is to say about spans: the marks of annotators, and what a fitted token ``model`` thinks of them.

    ``likely`` is what it thinks likely. What else is likely ``from_text`` has that prior probability.
    """
    said, weighed, known, sharing, threads, tokens = heard
    voted = voted_spans(sharing.weighed(said) if heard.has_tagger else weighed)
    others = [voted] if from_text is None else [voted, from_text]
    found = find_candidates(said, likely, LIKELY, sharing, *others)
    words = np.zeros(len(found.start))
    if model.text is not None:
        from quorate.model.kernels.likely import SpanLabels
        from quorate.model.kernels.spans import word_support

        labels, outside = SpanLabels(*said.tagset.span_labels), said.tagset.outside or 0
        rows = model.text.log_lik(log_mean)
        words = word_support(found.start, found.end, found.kind, weighed.word, rows, labels, outside)
    prior = prior_log_odds(found.likely, words, looked_up(found, voted, said), found.middle(), tokens)
    if from_text is not None:
        p = np.clip(looked_up(found, from_text, said), 0.0, SUREST)
        prior = np.where(p > 0, np.log(np.maximum(p, _LEAST)) - np.log1p(-p), prior)
    clamped = clamped_documents(said, known)
    if known is not None:
        decided = _known_labels(said, known) == np.diff(said.doc_start)
        prior = np.where(decided[found.document], np.where(found.likely > 0.5, _CERTAIN, -_CERTAIN), prior)
    return SpanEvidence(said, found, SpanEngine(found, prior, threads=threads), clamped)


def clamped_documents(encoded: Crowd, known: NDArray[np.int32] | None) -> NDArray[np.bool_]:
    """``[D]`` Whether some of a document's labels are known."""
    if known is None:
        return np.zeros(encoded.n_docs, np.bool_)
    return _known_labels(encoded, known) > 0


def _known_labels(encoded: Crowd, known: NDArray[np.int32]) -> NDArray[np.int64]:
    """``[D]`` How many labels of each document are known."""
    return np.diff(np.concatenate([[0], np.cumsum(known >= 0)])[encoded.doc_start])


def fit_spans(evidence: SpanEvidence, sharpness: float = 1.0) -> SpanModel:
    """What every annotator does with spans, learned from all candidates; and how many spans nobody touches.

    That is expected of what is given out, at ``sharpness``.
    """
    encoded, candidates, engine, _ = evidence
    start = SpanModel(Responses.of(len(encoded.annotators)))
    model = loop.passes(engine, start, candidates, _PASSES, _TOLERANCE)[0]
    true = mixed(engine.posterior(model, sharpness).true, candidates.likely)
    return replace(model, unseen=_unseen_rate(candidates, true, encoded.doc_start))


def stated_spans(evidence: SpanEvidence, model: SpanModel, sharpness: float) -> Floats:
    """``[C]`` The probability of every candidate, as :func:`given_spans` states it at some power."""
    _, candidates, engine, _ = evidence
    true = mixed(engine.posterior(model, sharpness).true, candidates.likely)
    read = np.diff(candidates.pair_start)[candidates.document] > 0  # of the others only the token model knows
    return np.where(read, true, candidates.likely)


class GivenSpans(NamedTuple):
    """The spans that are given out: which candidates are ``chosen``, and what is ``true`` with which probability.

    ``of_sets [C]`` is the probability by the evidence alone, ``true [C]`` with the token model's share in it, and
    ``stated [C]`` that before it is calibrated;
    ``unseen [D]`` how many true spans of each document nobody is expected to have touched.
    """

    of_sets: Floats
    true: Floats
    stated: Floats
    chosen: Chosen
    unseen: Floats


def given_spans(
    evidence: SpanEvidence,
    model: SpanModel | None,
    settings: Settings,
    sharpness: float = 1.0,
    told: Callable[[Floats], Floats] | None = None,
) -> GivenSpans:
    """The spans that the settings ask for; ``model`` is for evidence of spans.

    ``told`` makes of the candidates' probabilities those that people are told, by which a precision or a recall is kept
    to.
    """
    encoded, candidates, engine, _ = evidence
    if model is not None:
        of_sets = engine.posterior(model, sharpness).true
        true = stated = mixed(of_sets, candidates.likely)
        if sharpness != 1.0:
            stated = mixed(engine.posterior(model).true, candidates.likely)
        read = np.diff(candidates.pair_start)[candidates.document] > 0  # of the others only the token model knows
        of_sets, true, stated = (np.where(read, each, candidates.likely) for each in (of_sets, true, stated))
    else:
        of_sets = true = stated = candidates.likely
        if settings.evidence is Evidence.VOTES:
            of_sets = candidates.votes()
            true = stated = mixed(of_sets, candidates.likely)
    chooses = of_sets if model is None else true
    rate = _unseen_rate(candidates, chooses, encoded.doc_start, 0.0 if model is None else model.unseen)
    unseen = rate * np.diff(encoded.doc_start)
    if settings.dialled:
        sure = true if told is None else told(true)
        chosen = _dialled(engine.best_set, sure, float(true.sum() + unseen.sum()), settings)
    elif settings.for_token_f1:
        chosen = _best_f1(engine.best_set, *token_f1_terms(candidates, stated, encoded.n_tokens))
    elif model is None:
        chosen = _best_f1(engine.best_set, chooses, float(chooses.sum() + unseen.sum()))
    elif settings.decode is Decode.SEQUENCE:
        chosen = engine.likeliest_set(model)
    else:  # which spans are given out does not hang on how sure one may be of them
        chosen = _best_f1(engine.best_set, stated, float(stated.sum()))
    return GivenSpans(of_sets, true, stated, chosen, unseen)


def with_spans(evidence: SpanEvidence, given: GivenSpans, tokens: Decoded) -> Decoded:
    """The token model's consensus with these spans in place of its own; nothing else of it is changed."""
    encoded, candidates, chosen = evidence.encoded, evidence.candidates, given.chosen
    start = candidates.start[chosen]
    span_end, span_probability = np.zeros(encoded.n_tokens, np.int32), np.zeros(encoded.n_tokens)
    span_end[start], span_probability[start] = candidates.end[chosen], given.true[chosen]
    path = _path(candidates, chosen, encoded)
    return tokens._replace(path=path, span_end=span_end, span_probability=span_probability)


def decode_spans(
    evidence: SpanEvidence,
    model: SpanModel | None,
    tokens: Decoded,
    settings: Settings,
    sharpness: float = 1.0,
    told: Callable[[Floats], Floats] | None = None,
) -> Decoded:
    """The consensus that the settings ask for; ``tokens`` is that of the token model, with its posterior.

    Documents of which labels are known stay as the token model, which is bound by them, has them.
    """
    encoded, candidates, engine, clamped = evidence
    of_labels = _least_label(candidates, tokens.posterior, encoded.tagset) if settings.by_tokens else 1.0

    def as_told(true: Floats) -> Floats:  # no span is told to be surer than its labels
        return np.minimum(true if told is None else told(true), of_labels)

    given = given_spans(evidence, model, settings, sharpness, as_told)
    decoded = with_spans(evidence, given, tokens)
    by_tokens = _if_same(decoded.path, tokens, encoded.doc_start)
    probability = np.where(np.isnan(by_tokens), _one_by_one(given, candidates, decoded.path), by_tokens)
    if model is not None:  # of a document that nobody labelled, only the token model knows
        of_sets = np.exp(engine.log_probability(model, given.chosen, sharpness))
        read = mixed(of_sets, np.nan_to_num(by_tokens)) * np.exp(-given.unseen)
        probability = np.where(np.diff(candidates.pair_start) > 0, read, probability)
    probability = np.minimum(probability, _least(given, candidates.first))
    posterior = tokens.posterior
    if not settings.by_tokens:
        of_labels = by_label(candidates, given.of_sets, encoded.tagset, encoded.n_tokens)
        unread = np.repeat(np.diff(candidates.pair_start) == 0, np.diff(encoded.doc_start))
        if unread.any():
            of_labels[unread] = _with_rest(candidates, of_labels, posterior, encoded)[unread]
        posterior = mixed(of_labels, posterior)
    probability = np.minimum(probability, _least_token(posterior, decoded.path, encoded.doc_start))
    decoded = decoded._replace(
        posterior=posterior,
        log_probability=np.log(np.maximum(probability, _LEAST)),
        expected_spans=_by_document(given.true, candidates) + given.unseen,
        stated_spans=_by_document(np.where(given.chosen, given.stated, 0.0), candidates),
    )
    return with_known(decoded, tokens, clamped, encoded)


def mixed(spans: Floats, tokens: Floats) -> Floats:
    """What is given out, of what the span model says and what the token model says."""
    return np.asarray((1 - _TOKEN_SHARE) * spans + _TOKEN_SHARE * tokens)


def with_known(decoded: Decoded, tokens: Decoded, clamped: NDArray[np.bool_], encoded: Crowd) -> Decoded:
    """The consensus with the documents of which labels are known as the token model has them."""
    if not clamped.any():
        return decoded
    here = np.repeat(clamped, np.diff(encoded.doc_start))
    starts = np.concatenate([[0], np.cumsum(tokens.span_end > 0)])[encoded.doc_start]
    return decoded._replace(
        posterior=np.where(here[:, None], tokens.posterior, decoded.posterior),
        path=np.where(here, tokens.path, decoded.path),
        log_probability=np.where(clamped, tokens.log_probability, decoded.log_probability),
        span_end=np.where(here, tokens.span_end, decoded.span_end),
        span_probability=np.where(here, tokens.span_probability, decoded.span_probability),
        expected_spans=np.where(clamped, np.diff(starts), decoded.expected_spans),
        stated_spans=np.where(clamped, np.diff(starts), decoded.stated_spans)
        if len(decoded.stated_spans)
        else np.zeros(0),
    )


def _least_label(candidates: Candidates, posterior: Floats, tagset: TagSet) -> Floats:
    """``[C]`` The probability of the least sure label that each candidate gives a token."""
    first, token, label = labels_of_spans(candidates.start, candidates.end, candidates.kind, tagset)
    return np.asarray(np.minimum.reduceat(posterior[token, label], first)) if len(first) else np.zeros(0)


def _by_document(values: Floats, candidates: Candidates) -> Floats:
    """``[D]`` Sums over the candidates of each document."""
    return np.asarray(np.diff(np.concatenate([[0.0], np.cumsum(values)])[candidates.first]))


def _least(given: GivenSpans, first: NDArray[np.int64]) -> Floats:
    """``[D]`` The probability of each document's least sure span, 1 where there is none."""
    least = np.ones(len(first) - 1)
    document = np.repeat(np.arange(len(first) - 1), np.diff(first))
    np.minimum.at(least, document[given.chosen], given.true[given.chosen])
    return least


def _least_token(posterior: Floats, path: NDArray[np.int32], doc_start: NDArray[np.int64]) -> Floats:
    """``[D]`` The probability of each document's least sure tag, 1 where there is none."""
    least, filled = np.ones(len(doc_start) - 1), np.diff(doc_start) > 0
    if len(path):
        of_path = posterior[np.arange(len(path)), path]
        least[filled] = np.minimum.reduceat(of_path, doc_start[:-1][filled])
    return least


def _unseen_rate(candidates: Candidates, true: Floats, doc_start: NDArray[np.int64], otherwise: float = 0.0) -> float:
    """How many true spans a token nobody touched, by Chao's estimate from those that one annotator found, and two.

    Where n annotators see a document that is (n − 1)/n · f₁(f₁ − 1) / 2(f₂ + 1), at most as many as were found; less
    those that the candidates have all the same, as the token model or a tagger sees them in the text. Documents with
    one annotator do not show what others would have found, and are left out; with few spans in the others, it is as
    ``otherwise`` says.
    """
    people, length = np.diff(candidates.pair_start), np.diff(doc_start)
    several = people >= 2
    counts, touched = several[candidates.document], np.rint(candidates.touched)
    if float(true[counts].sum()) < _ENOUGH_SPANS:
        return otherwise
    never, once, twice = (float(true[counts & (touched == times)].sum()) for times in (0, 1, 2))
    n = float(people[several].mean())
    untouched = min((n - 1) / n * once * max(once - 1.0, 0.0) / (2 * (twice + 1.0)), float(true[counts].sum()))
    return max(untouched - never, 0.0) / max(float(length[several].sum()), 1.0)


def token_f1_terms(candidates: Candidates, true: Floats, n_tokens: int) -> tuple[Floats, float, Floats]:
    """What the highest expected F1 of tokens is looked for by, as :func:`_best_f1` takes it.

    Each span counts for next to nothing too: where the tokens are the same, the likelier and fewer spans are taken.
    """
    inside, expected = tokens_inside(candidates, true, n_tokens)
    return inside + _TIES * true, expected, (candidates.end - candidates.start).astype(np.float64) + _TIES


def tokens_inside(candidates: Candidates, true: Floats, n_tokens: int) -> tuple[Floats, float]:
    """``[C]`` How many tokens of each candidate can be expected in a true span of its type; and how many of all tokens.

    ``true [C]`` is the probability of every candidate.
    """
    start, end, kind = candidates.start, candidates.end, candidates.kind
    inside, total = np.zeros(len(start)), 0.0
    for number in np.unique(kind):
        mine = kind == number
        change = np.bincount(start[mine], true[mine], n_tokens + 1) - np.bincount(end[mine], true[mine], n_tokens + 1)
        before = np.concatenate([[0.0], np.cumsum(np.clip(np.cumsum(change)[:-1], 0.0, 1.0))])
        inside[mine] = before[end[mine]] - before[start[mine]]
        total += float(before[-1])
    return inside, total


def _best_f1(
    best_set: Callable[[Floats], Chosen],
    true: Floats,
    expected: float,
    size: Floats | float = 1.0,
) -> Chosen:
    """The spans of the highest expected F1, of ``expected`` true ones; or of tokens, of which each has ``size``.

    That set has the highest sum of p − θ, θ being half of the F1 itself. Where nothing is likely, any span would raise
    it; what is as unlikely as a span that is no candidate unless somebody marked it is not given out all the same: with
    tokens, what is so on average.
    """
    threshold = 0.5
    chosen = best_set(true - threshold * size)
    for _ in range(_THRESHOLD_ROUNDS):
        half = max(float(true[chosen].sum()) / max(float((chosen * size).sum()) + expected, 1e-9), _LEAST_GIVEN)
        if abs(half - threshold) < 1e-6:
            break
        threshold = half
        chosen = best_set(true - threshold * size)
    return chosen


def _dialled(best_set: Callable[[Floats], Chosen], true: Floats, expected: float, settings: Settings) -> Chosen:
    """As many spans as possible with an expected precision, or as few as possible with an expected recall.

    Found by halving the threshold's interval: a higher one gives fewer and surer spans.
    """
    low, high = 0.0, 1.0
    for _ in range(_THRESHOLD_ROUNDS):
        threshold = (low + high) / 2
        chosen = best_set(true - threshold)
        right, given = float(true[chosen].sum()), float(chosen.sum())
        if settings.precision is not None:
            enough = right >= settings.precision * given
            low, high = (low, threshold) if enough else (threshold, high)
        else:
            assert settings.recall is not None
            enough = right >= settings.recall * expected
            low, high = (threshold, high) if enough else (low, threshold)
    return best_set(true - (high if settings.precision is not None else low))


def _path(candidates: Candidates, chosen: Chosen, encoded: Crowd) -> NDArray[np.int32]:
    """``[N]`` The labels of the chosen spans, ``O`` elsewhere."""
    path = np.full(encoded.n_tokens, encoded.tagset.outside, np.int32)
    found = (candidates.start[chosen], candidates.end[chosen], candidates.kind[chosen])
    _, token, label = labels_of_spans(*found, encoded.tagset)
    path[token] = label
    return path


def by_label(candidates: Candidates, true: Floats, tagset: TagSet, n_tokens: int) -> Floats:
    """``[N, J]`` The probability of every label at every token, from that of candidates."""
    J = len(tagset.labels)
    single, first, inside, last = tagset.span_labels
    start, end, kind = candidates.start, candidates.end, candidates.kind
    long = end - start > 1
    begins, ends = start * J + np.where(long, first[kind], single[kind]), (end[long] - 1) * J + last[kind[long]]
    weight = np.concatenate([true, true[long]])
    posterior = np.bincount(np.concatenate([begins, ends]), weight, n_tokens * J).astype(np.float64, copy=False)
    posterior = posterior.reshape(n_tokens, J)
    longer = end - start > 2
    for number in np.unique(kind[longer]):
        label, mine = inside[number], longer & (kind == number)
        change = np.bincount(start[mine] + 1, true[mine], n_tokens + 1)
        change -= np.bincount(end[mine] - 1, true[mine], n_tokens + 1)
        posterior[:, label] += np.maximum(np.cumsum(change)[:-1], 0.0)
    posterior[:, tagset.outside] = 0.0
    posterior[:, tagset.outside] = np.maximum(1.0 - posterior.sum(axis=1), 0.0)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def _with_rest(candidates: Candidates, of_labels: Floats, tokens: Floats, encoded: Crowd) -> Floats:
    """``[N, J]`` Labels where ``O`` also stands for spans that are no candidates: those go as the token model says.

    Of a document that nobody labelled, the candidates are only what the token model thinks likely; with all the rest
    taken for ``O`` it would look surer than it is.
    """
    outside = encoded.tagset.outside or 0
    likely = by_label(candidates, candidates.likely, encoded.tagset, encoded.n_tokens)
    likely[:, outside] = 0.0
    rest = np.maximum(tokens - likely, 0.0)
    rest /= np.maximum(rest.sum(axis=1, keepdims=True), _LEAST)
    spans = of_labels.copy()
    spans[:, outside] = 0.0
    return np.asarray(spans + of_labels[:, [outside]] * rest)


def _if_same(path: NDArray[np.int32], tokens: Decoded, doc_start: NDArray[np.int64]) -> Floats:
    """``[D]`` The token model's probability of documents on which it says the same, nan for the others."""
    differs = np.concatenate([[0], np.cumsum(path != tokens.path)])
    return np.where(np.diff(differs[doc_start]) == 0, np.exp(tokens.log_probability), np.nan)


def _one_by_one(given: GivenSpans, candidates: Candidates, path: NDArray[np.int32]) -> Floats:
    """``[D]`` The probability of each document if its spans were true or not each by itself."""
    inside = np.concatenate([[0], np.cumsum(path != 0)])
    beside = inside[candidates.start] == inside[candidates.end]  # overlaps nothing that is given out
    share = np.where(given.chosen, given.true, np.where(beside, 1 - given.true, 1.0))
    log_share = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(share, _LEAST)))])
    return np.asarray(np.exp(np.diff(log_share[candidates.first])))
