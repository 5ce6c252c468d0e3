"""From a fitted token model to a consensus on spans (see :mod:`quorate.model.span_model`).

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

from quorate.corpus.schemes import Scheme
from quorate.corpus.tags import TagSet
from quorate.crowd.algebra import Spans, labels_of_spans, ranges_of, seen_pairs, sums_between
from quorate.crowd.crowd import Crowd
from quorate.errors import SettingsError
from quorate.model import loop
from quorate.model.calibration import AS_STATED, Calibration
from quorate.model.candidates import Candidates, find_candidates, looked_up, voted_spans
from quorate.model.correction import Correction, corrected
from quorate.model.engines.protocol import Decoded, Likely
from quorate.model.parts.dirichlet import log_mean
from quorate.model.parts.responses import Responses
from quorate.model.settings import Decode, Settings
from quorate.model.span_model import SpanEngine, SpanModel, prior_log_odds

Floats = NDArray[np.float64]
Chosen = NDArray[np.bool_]
NOTED = 0.01
"""The least probability of a span that is looked up in the token model."""
LIKELY = 0.1
"""The probability from which on a span that nobody marked is a candidate."""
_LEAST_GIVEN = LIKELY  # of a span that is given out
_PASSES = 8
_TOLERANCE = 1e-6
_TOKEN_SHARE = 0.2  # share of the token model in what is given out
_THRESHOLD_ROUNDS = 20
_LEAST = 1e-300  # of a probability whose logarithm is taken
_CERTAIN = 50.0  # log odds of what is known
_ENOUGH_SPANS = 50.0  # to estimate from them how many nobody saw


class SpanEvidence(NamedTuple):
    """The candidates of a crowd with their prior, ready for passes.

    ``clamped [D]``: some of its labels are known; ``beginning [D]``: how many spans the token model expects in each
    document, or ``None`` where labels do not say whether a span begins.
    """

    crowd: Crowd
    candidates: Candidates
    engine: SpanEngine
    clamped: NDArray[np.bool_]
    beginning: Floats | None

    def spans_of(self, chosen: Chosen, probability: Floats) -> tuple[Spans, Floats]:
        """The chosen candidates as spans, and the probability of each."""
        c = self.candidates
        nobody = np.full(int(chosen.sum()), -1)
        return Spans(c.start[chosen], c.end[chosen], c.kind[chosen], nobody), probability[chosen]

    def only(self, documents: NDArray[np.int64], sample: Crowd, threads: int | None = None) -> SpanEvidence:
        """That of some documents, of which ``sample`` is made: a document's evidence is the same without the others."""
        shift = sample.doc_start[:-1] - self.crowd.doc_start[documents]
        found = self.candidates.only(documents, shift)
        first = self.candidates.first
        prior = ranges_of(self.engine.prior, first[documents], first[documents + 1])
        engine = SpanEngine(found, prior, threads=threads)
        beginning = None if self.beginning is None else self.beginning[documents]
        return SpanEvidence(sample, found, engine, self.clamped[documents], beginning)


def needs_spans(settings: Settings, tagset: TagSet) -> bool:
    """Whether a consensus with these settings looks at candidates; :class:`SettingsError` if there can be none."""
    if tagset.outside is None:
        asked = [name for name in ("precision", "recall") if getattr(settings, name) is not None]
        asked += ["decode f1"] if settings.decode is Decode.F1 else []
        if asked:
            raise SettingsError(f"{asked[0]} is for spans, and labels of the plain scheme have none (leave it out)")
    if tagset.outside is None or settings.decode is Decode.TOKEN:
        return False
    return settings.spans or settings.decode is Decode.F1 or settings.dialled


def span_evidence(
    model: loop.Model, crowd: Crowd, likely: Likely, posterior: Floats, labels: Floats, threads: int | None = None
) -> SpanEvidence:
    """What there is to say about spans: the marks of annotators, and what a fitted token ``model`` thinks of them.

    ``likely`` are the spans that it thinks likely, ``posterior [N, J]`` is that of labels, and ``labels [K]`` how many
    each annotator gave in the fit.
    """
    voted = voted_spans(crowd)
    found = find_candidates(crowd, likely, LIKELY, voted)
    words = np.zeros(len(found.start))
    if model.text is not None:
        from quorate.model.kernels.likely import SpanLabels
        from quorate.model.kernels.spans import word_support

        written, outside = SpanLabels(*crowd.tagset.span_labels), crowd.tagset.outside or 0
        rows = model.text.log_lik(log_mean)
        words = word_support(found.start, found.end, found.kind, crowd.word, rows, written, outside)
        words = words * _by_others(crowd, labels)[found.document]
    vote = None if crowd.abstains else looked_up(found, voted, crowd)
    prior = prior_log_odds(found.likely, words, vote, found.middle())
    clamped = clamped_documents(crowd)
    if crowd.known is not None:
        decided = _known_labels(crowd) == np.diff(crowd.doc_start)
        prior = np.where(decided[found.document], np.where(found.likely > 0.5, _CERTAIN, -_CERTAIN), prior)
    engine = SpanEngine(found, prior, threads=threads)
    return SpanEvidence(crowd, found, engine, clamped, spans_beginning(posterior, crowd))


def _by_others(crowd: Crowd, labels: Floats) -> Floats:
    """``[D]`` Of all ``labels [K]`` of the fit, the share by annotators who gave none in this document."""
    document, who = seen_pairs(crowd)
    gave = np.zeros(len(crowd.annotators))
    gave[: len(labels)] = labels
    by_same = np.bincount(document, gave[who], minlength=crowd.n_docs)
    return np.asarray(1.0 - by_same / max(gave.sum(), 1.0))


def clamped_documents(crowd: Crowd) -> NDArray[np.bool_]:
    """``[D]`` Whether some of a document's labels are known."""
    if crowd.known is None:
        return np.zeros(crowd.n_docs, np.bool_)
    return _known_labels(crowd) > 0


def _known_labels(crowd: Crowd) -> NDArray[np.int64]:
    """``[D]`` How many labels of each document are known."""
    assert crowd.known is not None
    return sums_between(crowd.known >= 0, crowd.doc_start)


def fit_spans(evidence: SpanEvidence) -> SpanModel:
    """What every annotator does with spans, learned from all candidates; and how many spans nobody touches."""
    crowd, candidates, engine, *_ = evidence
    start = SpanModel(Responses.of(len(crowd.annotators)))
    model = loop.passes(engine, start, candidates, _PASSES, _TOLERANCE)[0]
    true = mixed(engine.posterior(model).true, candidates.likely)
    return replace(model, unseen=_unseen_rate(candidates, true, crowd.doc_start))


def stated_spans(evidence: SpanEvidence, model: SpanModel, exponent: float) -> Floats:
    """``[C]`` The probability of every candidate, as :func:`given_spans` states it at some power."""
    _, candidates, engine, *_ = evidence
    return np.where(
        _read(candidates), mixed(engine.posterior(model, exponent).true, candidates.likely), candidates.likely
    )


def _powered(probability: Floats, exponent: float) -> Floats:
    """Probabilities of yes or no, raised to a power and normalised."""
    yes, no = probability**exponent, (1.0 - probability) ** exponent
    return np.asarray(yes / (yes + no))


def _read(candidates: Candidates) -> NDArray[np.bool_]:
    """``[C]`` Whether somebody labelled its document: of the others only the token model knows."""
    return (np.diff(candidates.pair_start) > 0)[candidates.document]


class GivenSpans(NamedTuple):
    """The spans that are given out: which candidates are ``chosen``, and what is ``true`` with which probability.

    ``of_sets [C]`` is the probability by the span model alone, ``true [C]`` with the token model's share in it, and
    ``stated [C]`` the one by which spans are chosen, before it is calibrated. ``elsewhere [D]`` is how many true spans
    each document is expected to have that are no candidates: those that the token model finds unlikely, which are
    ``beside [D]`` the spans where these are chosen, and those that nobody touched.
    """

    of_sets: Floats
    true: Floats
    stated: Floats
    chosen: Chosen
    elsewhere: Floats
    beside: Floats


def given_spans(
    evidence: SpanEvidence,
    model: SpanModel | None,
    settings: Settings,
    calibration: Calibration = AS_STATED,
    *,
    most: Floats | float = 1.0,
    beginning: Floats | None = None,
) -> GivenSpans:
    """The spans that the settings ask for; without a span ``model``, those of the token model.

    No probability exceeds ``most [C]``. ``beginning [D]`` is how many spans the token model expects in each document.
    """
    crowd, candidates, engine, *_ = evidence
    of_sets = true = _powered(candidates.likely, calibration.tokens)
    stated, correction = candidates.likely, None if model is None else calibration.correction
    if model is not None:
        read = _read(candidates)
        by_sets = engine.posterior(model, calibration.of_sets).true
        of_sets = np.where(read, by_sets, true)
        true = np.where(read, mixed(by_sets, true), true)
        stated = stated_spans(evidence, model, 1.0)
    true = np.minimum(true, most)
    rest = _no_candidates(candidates, beginning, 1.0 if model is None else _TOKEN_SHARE)
    rate = _unseen_rate(candidates, true, crowd.doc_start) if model is None else model.unseen
    elsewhere = np.maximum(rest, rate * np.diff(crowd.doc_start))
    beside = _no_candidates(candidates, evidence.beginning, _TOKEN_SHARE)
    found = GivenSpans(of_sets, true, stated, np.zeros(len(true), np.bool_), elsewhere, beside)
    if correction is not None:
        found = _with_correction(found, evidence, correction)
    expected = float(found.true.sum() + found.elsewhere.sum())
    if settings.dialled:
        chosen = _dialled(engine.best_set, found.true, expected, settings)
    elif model is None:
        chosen = highest_f1(engine.best_set, found.true, expected)
    elif settings.decode is Decode.SEQUENCE:
        chosen = engine.likeliest_set(model)
    else:  # which spans are given out does not depend on how sure one may be of them
        chosen = _highest_f1_apart(evidence, found)
    return found._replace(chosen=chosen)


def chosen_by(correction: Correction, evidence: SpanEvidence, found: GivenSpans) -> Chosen:
    """The spans to give out by a correction of what was ``found`` without one."""
    return _highest_f1_apart(evidence, _with_correction(found, evidence, correction))


def _with_correction(found: GivenSpans, evidence: SpanEvidence, correction: Correction) -> GivenSpans:
    """What checked documents make of the spans of others that somebody labelled."""
    candidates = evidence.candidates
    labelled = (np.diff(candidates.pair_start) > 0) & ~evidence.clamped
    here = labelled[candidates.document]
    log_odds = np.where(here, correction.log_odds(candidates, found.stated), 0.0)
    true = np.where(here, corrected(found.stated, log_odds), found.true)
    missed = correction.missed * np.diff(evidence.crowd.doc_start)
    now = found._replace(
        of_sets=np.where(here, corrected(found.of_sets, log_odds), found.of_sets),
        true=true,
        elsewhere=np.where(labelled, missed, found.elsewhere),
    )
    if not correction.chooses:
        return now
    beside = np.where(labelled, missed, found.beside)
    return now._replace(stated=np.where(here, true, found.stated), beside=beside)


def _no_candidates(candidates: Candidates, beginning: Floats | None, share: float) -> Floats:
    """``[D]`` How many spans that are no candidates are expected in each document, by the token model's share."""
    D = len(candidates.first) - 1
    if beginning is None:
        return np.zeros(D)
    rest = np.maximum(beginning - _by_document(candidates.likely, candidates), 0.0)
    return np.where(np.diff(candidates.pair_start) > 0, share, 1.0) * rest


def with_spans(evidence: SpanEvidence, given: GivenSpans, tokens: Decoded) -> Decoded:
    """The token model's consensus with these spans in place of its own; nothing else of it is changed."""
    crowd, candidates, chosen = evidence.crowd, evidence.candidates, given.chosen
    start = candidates.start[chosen]
    span_end, span_probability = np.zeros(crowd.n_tokens, np.int32), np.zeros(crowd.n_tokens)
    span_end[start], span_probability[start] = candidates.end[chosen], given.true[chosen]
    path = _path(candidates, chosen, crowd)
    return tokens._replace(path=path, span_end=span_end, span_probability=span_probability)


def decode_spans(
    evidence: SpanEvidence,
    model: SpanModel | None,
    tokens: Decoded,
    settings: Settings,
    calibration: Calibration = AS_STATED,
) -> Decoded:
    """The consensus that the settings ask for; ``tokens`` is that of the token model, with its posterior.

    Documents of which labels are known stay as the token model, which is bound by them, has them.
    """
    crowd, candidates, engine, clamped, _ = evidence
    least_label = _least_label(candidates, tokens.posterior, crowd.tagset) if model is None else 1.0
    beginning = spans_beginning(tokens.posterior, crowd)
    given = given_spans(evidence, model, settings, calibration, most=least_label, beginning=beginning)
    decoded = with_spans(evidence, given, tokens)
    by_tokens = _if_same(decoded.path, tokens, crowd.doc_start)
    probability = np.where(
        np.isnan(by_tokens), _one_by_one(given, candidates, decoded.path, crowd.tagset.outside), by_tokens
    )
    if model is not None:  # of a document that nobody labelled, only the token model knows
        of_sets = np.exp(engine.log_probability(model, given.chosen, calibration.of_sets))
        read = mixed(of_sets, np.nan_to_num(by_tokens))
        if calibration.correction is not None:  # it is of spans, one by one
            read = _one_by_one(given, candidates, decoded.path, crowd.tagset.outside)
        read = read * np.exp(-given.elsewhere)
        probability = np.where(np.diff(candidates.pair_start) > 0, read, probability)
    probability = np.minimum(probability, _least(given, candidates.first))
    posterior = tokens.posterior
    if model is not None:
        of_spans = by_label(candidates, given.of_sets, crowd.tagset, crowd.n_tokens)
        unread = np.repeat(np.diff(candidates.pair_start) == 0, np.diff(crowd.doc_start))
        if unread.any():
            of_spans[unread] = _with_rest(candidates, of_spans, posterior, crowd)[unread]
        posterior = mixed(of_spans, posterior)
    probability = np.minimum(probability, _least_token(posterior, decoded.path, crowd.doc_start))
    decoded = decoded._replace(
        posterior=posterior,
        log_probability=np.log(np.maximum(probability, _LEAST)),
        expected_spans=_by_document(given.true, candidates) + given.elsewhere,
    )
    sure = np.minimum(given.true, _least_label(candidates, posterior, crowd.tagset))  # no surer than its labels
    decoded.span_probability[candidates.start[given.chosen]] = sure[given.chosen]
    return with_known(decoded, tokens, clamped, crowd)


def spans_beginning(posterior: Floats, crowd: Crowd) -> Floats | None:
    """``[D]`` How many spans the token model expects in each document: one for each label that opens one.

    ``None`` where labels do not say whether a span begins.
    """
    if crowd.tagset.scheme is Scheme.IO:
        return None
    opening = np.concatenate([[0.0], np.cumsum(posterior[:, crowd.tagset.opens].sum(axis=1))])
    return np.asarray(np.diff(opening[crowd.doc_start]))


def mixed(spans: Floats, tokens: Floats) -> Floats:
    """What is given out, of what the span model says and what the token model says."""
    return np.asarray((1 - _TOKEN_SHARE) * spans + _TOKEN_SHARE * tokens)


def with_known(decoded: Decoded, tokens: Decoded, clamped: NDArray[np.bool_], crowd: Crowd) -> Decoded:
    """The consensus with the documents of which labels are known as the token model has them."""
    if not clamped.any():
        return decoded
    here = np.repeat(clamped, np.diff(crowd.doc_start))
    starts = np.concatenate([[0], np.cumsum(tokens.span_end > 0)])[crowd.doc_start]
    return decoded._replace(
        posterior=np.where(here[:, None], tokens.posterior, decoded.posterior),
        path=np.where(here, tokens.path, decoded.path),
        log_probability=np.where(clamped, tokens.log_probability, decoded.log_probability),
        span_end=np.where(here, tokens.span_end, decoded.span_end),
        span_probability=np.where(here, tokens.span_probability, decoded.span_probability),
        expected_spans=np.where(clamped, np.diff(starts), decoded.expected_spans),
    )


def _least_label(candidates: Candidates, posterior: Floats, tagset: TagSet) -> Floats:
    """``[C]`` The probability of the least sure label that each candidate gives a token."""
    first, token, label = labels_of_spans(candidates.start, candidates.end, candidates.kind, tagset)
    return np.asarray(np.minimum.reduceat(posterior[token, label], first)) if len(first) else np.zeros(0)


def _by_document(values: Floats, candidates: Candidates) -> Floats:
    """``[D]`` Sums over the candidates of each document."""
    return sums_between(values, candidates.first)


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


def _unseen_rate(candidates: Candidates, true: Floats, doc_start: NDArray[np.int64]) -> float:
    """How many true spans a token nobody touched, by Chao's estimate from those that one annotator found, and two.

    Where n annotators see a document that is (n − 1)/n · f₁(f₁ − 1) / 2(f₂ + 1), at most as many as were found; less
    those that the candidates have all the same, as the token model or a tagger sees them in the text. Documents with
    one annotator do not show what others would have found, and are left out; of few spans in the others, nothing is
    estimated.
    """
    people, length = np.diff(candidates.pair_start), np.diff(doc_start)
    several = people >= 2
    counts, touched = several[candidates.document], np.rint(candidates.touched)
    if float(true[counts].sum()) < _ENOUGH_SPANS:
        return 0.0
    never, once, twice = (float(true[counts & (touched == times)].sum()) for times in (0, 1, 2))
    n = float(people[several].mean())
    untouched = min((n - 1) / n * once * max(once - 1.0, 0.0) / (2 * (twice + 1.0)), float(true[counts].sum()))
    return max(untouched - never, 0.0) / max(float(length[several].sum()), 1.0)


def _highest_f1_apart(evidence: SpanEvidence, found: GivenSpans) -> Chosen:
    """The spans of the highest expected F1 of labelled documents, of known ones, and of the others, each on its own.

    So what is given out of the first does not depend on the others.
    """
    candidates, engine = evidence.candidates, evidence.engine
    labelled, clamped = np.diff(candidates.pair_start) > 0, evidence.clamped
    chosen = np.zeros(len(found.stated), np.bool_)
    for documents in (labelled & ~clamped, labelled & clamped, ~labelled):
        of_these = np.where(documents[candidates.document], found.stated, 0.0)
        chosen |= highest_f1(engine.best_set, of_these, float(of_these.sum() + found.beside[documents].sum()))
    return chosen


def highest_f1(best_set: Callable[[Floats], Chosen], true: Floats, expected: float) -> Chosen:
    """The spans of the highest expected F1, of ``expected`` true ones.

    That set has the highest sum of p − θ, θ being half of the F1 itself (Dinkelbach). Where nothing is likely, any span
    would raise it; what is as unlikely as a span that is no candidate unless somebody marked it is not given out.
    """
    threshold = 0.5
    chosen = best_set(true - threshold)
    for _ in range(_THRESHOLD_ROUNDS):
        half = max(float(true[chosen].sum()) / max(float(chosen.sum()) + expected, 1e-9), _LEAST_GIVEN)
        if abs(half - threshold) < 1e-6:
            break
        threshold = half
        chosen = best_set(true - threshold)
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


def _path(candidates: Candidates, chosen: Chosen, crowd: Crowd) -> NDArray[np.int32]:
    """``[N]`` The labels of the chosen spans, ``O`` elsewhere."""
    path = np.full(crowd.n_tokens, crowd.tagset.outside, np.int32)
    found = (candidates.start[chosen], candidates.end[chosen], candidates.kind[chosen])
    _, token, label = labels_of_spans(*found, crowd.tagset)
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


def _with_rest(candidates: Candidates, of_labels: Floats, tokens: Floats, crowd: Crowd) -> Floats:
    """``[N, J]`` Labels where ``O`` also stands for spans that are no candidates: those go as the token model says.

    Of a document that nobody labelled, the candidates are only what the token model thinks likely; with all the rest
    taken for ``O`` it would look surer than it is.
    """
    outside = crowd.tagset.outside or 0
    likely = by_label(candidates, candidates.likely, crowd.tagset, crowd.n_tokens)
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


def _one_by_one(given: GivenSpans, candidates: Candidates, path: NDArray[np.int32], outside: int | None) -> Floats:
    """``[D]`` The probability of each document if its spans were true or not each by itself."""
    inside = np.concatenate([[0], np.cumsum(path != outside)])
    beside = inside[candidates.start] == inside[candidates.end]  # overlaps nothing that is given out
    share = np.where(given.chosen, given.true, np.where(beside, 1 - given.true, 1.0))
    log_share = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(share, _LEAST)))])
    return np.asarray(np.exp(np.diff(log_share[candidates.first])))
