"""Audits keep their promise: draws are as probable as stated, estimates solve their equation, intervals hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import beta as beta_distribution
from scipy.stats import norm, t

import quorate
import simulated_crowds as crowds
from quorate import Corpus, Document, audit
from quorate.audit import acceptance
from quorate.audit.acceptance import guaranteed, guaranteed_spans
from quorate.audit.claims import Claims
from quorate.audit.design import drawing_order, inclusion, sizes
from quorate.audit.estimate import Expected, Seen, at_every_look, lower_bound, once, scores_of
from quorate.audit.recalibration import Line, Recalibration, beyond_chance, fit_line, recalibrated
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme
from quorate.errors import InputError, SettingsError

LENGTH = 12
SHIFTED = 0.7


class World:
    """A consensus on simulated documents of single-token spans, and what is true of them.

    Spans are right as often as σ(shift + slope·logit p) says, where the consensus says p: with shift 0 and slope 1 it
    is as sure as it should be. Wrong ones are mostly true ones beside their place, and some true ones were missed.
    """

    def __init__(self, documents: int, *, shift: float = 0.0, slope: float = 1.0, missed: float = 0.1, seed: int = 0):
        rng = np.random.default_rng(seed)
        rows: list[tuple[list[str], list[str], NDArray[np.float64], list[Span]]] = []
        for _ in range(documents):
            places = np.flatnonzero(rng.random(LENGTH // 2) < rng.beta(1, 2)) * 2
            p = rng.beta(6, 1, len(places))
            right = rng.random(len(places)) < expit(shift + slope * logit(p))
            tags, gold, sure = ["O"] * LENGTH, ["O"] * LENGTH, np.full(LENGTH, 1 - missed / LENGTH)
            spans = []
            for place, probability, hit in zip(places.tolist(), p.tolist(), right.tolist(), strict=True):
                tags[place], sure[place] = "B-X", probability
                if hit or rng.random() < SHIFTED:
                    gold[place if hit else place + 1] = "B-X"
                spans.append(Span(place, place + 1, "X", probability))
            if rng.random() < missed:
                gold[int(rng.integers(LENGTH // 2)) * 2 + 1] = "B-X"
            rows.append((tags, gold, sure, spans))
        self.gold = {str(n): tuple(row[1]) for n, row in enumerate(rows)}
        self.claims = claims_of([row[0] for row in rows], [row[3] for row in rows], [row[2] for row in rows])
        given = self.claims.given
        self.right = np.array([sum(a == b == "B-X" for a, b in zip(r[0], r[1], strict=True)) for r in rows], float)
        self.true = np.array([row[1].count("B-X") for row in rows], float)
        self.f1 = float(2 * self.right.sum() / (given.sum() + self.true.sum()))
        self.precision = float(self.right.sum() / given.sum())
        self.hit = np.array([row[1][span.start] == "B-X" for row in rows for span in row[3]], float)

    def audit(self, n: int, seed: int, *, sequential: bool = False) -> audit.Audit:
        plan = audit.plan(self.claims, n, seed=seed, sequential=sequential)
        return audit.result(self.claims, {name: self.gold[name] for name in plan.ids}, plan=plan)


def claims_of(
    tags: Sequence[Sequence[str]], spans: Sequence[Sequence[Span]], sure: Sequence[NDArray[np.float64]]
) -> Claims:
    corpus = Corpus(Document(str(n), tuple(f"w{i}" for i in range(len(one)))) for n, one in enumerate(tags))
    whole = np.array([float(np.prod(one)) for one in sure])

    def lines(positions: Sequence[int]) -> list[dict[str, Any]]:
        return [{"id": str(d), "tokens": list(corpus[d].tokens), "tags": list(tags[d]), "spans": []} for d in positions]

    return Claims(corpus, Scheme.BIO, spans, whole, sure, tags, lines)


@pytest.fixture(scope="module")
def world() -> World:
    return World(400)


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("n", [15, 40])
def test_documents_are_drawn_as_often_as_is_stated(n: int, sequential: bool) -> None:
    claims = World(60).claims
    stated = inclusion(sizes(claims), n)
    times = np.zeros(60)
    for seed in range(4000):
        drawn = drawing_order(claims, seed, None if sequential else n)[:n]
        assert len(set(drawn.tolist())) == n
        times[drawn] += 1
    assert stated.sum() == pytest.approx(n)
    assert np.abs(times / 4000 - stated).max() < 0.05  # four standard errors, and they are exact only nearly
    assert np.corrcoef(times, stated)[0, 1] > 0.99


def test_inclusion_is_proportional_below_one() -> None:
    x = np.array([9.0, 5.0, 1.0, 2.0, 1.0])
    p = inclusion(x, 3)
    assert p[:2] == pytest.approx([1, 1])
    assert p[2:] == pytest.approx([0.25, 0.5, 0.25])
    assert inclusion(x, 5) == pytest.approx(np.ones(5))


def test_a_draw_does_not_hang_on_rounding(world: World) -> None:
    claims = world.claims
    nearly = [[span._replace(confidence=span.sure * (1 - 1e-11)) for span in spans] for spans in claims.spans]
    other = claims_of(claims.tags, nearly, claims.token_confidence)
    for seed in range(50):
        assert drawing_order(claims, seed, 50).tolist() == drawing_order(other, seed, 50).tolist()


def test_the_first_of_a_sequential_draw_are_a_smaller_draw(world: World) -> None:
    large, small = (audit.plan(world.claims, n, seed=3, sequential=True).ids for n in (80, 30))
    assert large[:30] == small


def test_a_draw_for_one_look_does_not_begin_a_larger_one(world: World) -> None:
    large, small = (audit.plan(world.claims, n, seed=3).ids for n in (80, 30))
    assert large[:30] != small


def test_another_consensus_is_drawn_from_anew(world: World) -> None:
    other = World(400, seed=5).claims
    same = set(audit.plan(world.claims, 40).ids) & set(audit.plan(other, 40).ids)
    assert len(same) < 15


def test_documents_that_are_certain_to_be_drawn_are_drawn() -> None:
    spans = [[Span(2 * k, 2 * k + 1, "X", 0.9) for k in range(6 if n < 5 else n % 2)] for n in range(60)]
    tags = [["B-X" if Span(k, k + 1, "X", 0.9) in own else "O" for k in range(LENGTH)] for own in spans]
    claims = claims_of(tags, spans, [np.full(LENGTH, 0.999)] * 60)
    assert (inclusion(sizes(claims), 30)[:5] == 1).all()
    for seed in range(50):
        assert set(audit.plan(claims, 30, seed=seed).ids) >= set("01234")


def test_an_audit_is_of_the_consensus_of_its_plan(world: World) -> None:
    plan = audit.plan(world.claims, 20)
    with pytest.raises(InputError, match="drawn from another consensus"):
        audit.result(World(400, seed=5).claims, world.gold, plan=plan)


@pytest.mark.parametrize(("n", "seed"), [(20.5, 0), (20, -1), (0, 0), (True, 0)])
def test_odd_numbers_are_refused(world: World, n: Any, seed: int) -> None:
    with pytest.raises(SettingsError):
        audit.plan(world.claims, n, seed=seed)


def test_a_draw_does_not_hang_on_the_order_of_documents(world: World) -> None:
    back = world.claims
    order = list(range(len(back)))[::-1]
    mirrored = Claims(
        Corpus([back.corpus[d] for d in order]),
        back.scheme,
        [back.spans[d] for d in order],
        back.confidence[order],
        [back.token_confidence[d] for d in order],
        [back.tags[d] for d in order],
        back.lines,
    )
    assert audit.plan(mirrored, 40, seed=1).ids == audit.plan(back, 40, seed=1).ids
    assert mirrored.digest == back.digest


def test_weights_are_the_nearest_that_give_a_sample_the_totals_of_all() -> None:
    """Nearest by squares, each in units of the variance that a document's weight has."""
    rng = np.random.default_rng(1)
    given = rng.integers(0, 5, 60).astype(float)
    right = given * rng.uniform(0.6, 1, 60)
    pi = inclusion(rng.random(60) + 0.5, 20)
    sample = rng.permutation(60)[:20]
    own, totals = np.array([given, right])[:, sample], [given.sum(), right.sum()]

    # The conditions of Lagrange: the nearest weights, and what each total costs.
    cost = np.diag(pi[sample] ** 2 / (1 - pi[sample]))
    system = np.block([[cost, own.T], [own, np.zeros((2, 2))]])
    nearest = np.linalg.solve(system, np.concatenate([cost @ (1 / pi[sample]), totals]))[:20]
    assert (nearest > 1).all()
    hits = np.minimum(rng.integers(0, 5, 20), given[sample]).astype(float)
    true = hits + rng.integers(0, 3, 20)
    scores = scores_of(Expected(given, right), Seen(sample, pi[sample], hits, true), once(0.9))
    assert scores.precision.value == pytest.approx(nearest @ hits / given.sum())
    assert scores.recall.value == pytest.approx(nearest @ hits / (nearest @ true))


def test_what_a_calibration_follows_adds_no_variance() -> None:
    """The variance is that of what a regression on the numbers leaves, by its normal equations."""
    rng = np.random.default_rng(2)
    N, n = 200, 40
    given = rng.integers(1, 8, N).astype(float)
    expected = given * np.array([0.9, 0.5])[rng.integers(0, 2, N)]
    right = np.minimum(np.round(expected + rng.normal(0, 0.3, N)), given).clip(0)
    sample, weight = rng.permutation(N)[:n], N / n
    table = np.column_stack([given, expected])
    lacking = table.sum(axis=0) - weight * table[sample].sum(axis=0)
    w = weight + table[sample] @ np.linalg.solve(table[sample].T @ table[sample], lacking)
    share = w @ right[sample] / given.sum()
    residual = right[sample] - share * given[sample]
    hat = table[sample] @ np.linalg.inv(table[sample].T @ table[sample]) @ table[sample].T
    each = (1 - n / N) * (w * (residual - hat @ residual)) ** 2 / (1 - np.diag(hat))
    worth = share * (1 - share) * given.sum() ** 2 / (each.sum() * n / (n - 1))
    far = once(0.9)(min(2 * each.sum() ** 2 / ((each**2).sum() - each.sum() ** 2 / n), n - 2))
    half = far * math.sqrt(share * (1 - share) / worth + far**2 / (4 * worth**2)) / (1 + far**2 / worth)
    seen = Seen(sample, np.full(n, n / N), right[sample], right[sample])
    narrow, wide = (scores_of(Expected(given, one), seen, once(0.9)).precision for one in (expected, np.zeros(N)))
    assert narrow.value == pytest.approx(share)
    assert narrow.width == pytest.approx(2 * half, rel=1e-9)
    assert narrow.width < 0.7 * wide.width


@given(st.data())
def test_f1_is_the_harmonic_mean_of_precision_and_recall(data: st.DataObject) -> None:
    """Whatever was drawn and found: the three are of one weighted sample."""
    n = data.draw(st.integers(3, 30))
    numbers = st.lists(st.integers(0, 6), min_size=2 * n, max_size=2 * n)
    given, hits, missed = (np.array(data.draw(numbers), float) for _ in range(3))
    right, true = np.minimum(hits, given), np.minimum(hits, given) + missed
    expected = given * np.array(data.draw(st.lists(st.floats(0, 1), min_size=2 * n, max_size=2 * n)))
    x = np.array(data.draw(st.lists(st.floats(0.1, 9), min_size=2 * n, max_size=2 * n)))
    sample, pi = np.arange(n), inclusion(x, n)
    scores = scores_of(Expected(given, expected), Seen(sample, pi[:n], right[:n], true[:n]), once(0.9))
    precision, recall, f1 = (one.value for one in scores)
    for one in scores:
        assert math.isnan(one.value) or 0 <= one.low <= one.value <= one.high <= 1
    if math.isnan(precision) or math.isnan(recall):
        assert not f1 > 0
    else:
        assert min(precision, recall) - 1e-12 <= f1 <= max(precision, recall) + 1e-12
        assert f1 * (precision + recall) == pytest.approx(2 * precision * recall)


def test_all_documents_checked_give_exact_scores(world: World) -> None:
    found = world.audit(400, 0)
    assert found.f1 == pytest.approx((world.f1,) * 3)
    assert found.precision == pytest.approx((world.precision,) * 3)
    assert found.recall.value == pytest.approx(world.right.sum() / world.true.sum())
    assert found.more_to_halve == 0


@pytest.mark.parametrize(
    ("shift", "slope", "missed"), [(0.0, 1.0, 0.1), (-2.0, 0.7, 0.5)], ids=["as sure as right", "far too sure"]
)
def test_intervals_hold_whatever_the_consensus_thinks_of_itself(shift: float, slope: float, missed: float) -> None:
    world = World(600, shift=shift, slope=slope, missed=missed)
    found = [world.audit(50, seed) for seed in range(300)]
    held = np.mean([one.f1.low <= world.f1 <= one.f1.high for one in found])
    assert 0.86 <= held <= 0.96
    held = np.mean([one.precision.low <= world.precision <= one.precision.high for one in found])
    assert 0.86 <= held <= 0.97
    assert abs(np.mean([one.f1.value for one in found]) - world.f1) < 0.01


def test_intervals_hold_on_simulated_crowds() -> None:
    """Of a consensus as it is made, all three scores: as often as is said, over all crowds and about so on each."""
    shares = []
    for corpus in (crowds.careful_three(100), crowds.sparse(400, 400), crowds.rules(400), crowds.vague_boundaries(200)):
        claims = Claims.of(quorate.aggregate(corpus))
        gold = {document.id: document.gold or () for document in corpus}
        true = audit.result(claims, gold, plan=audit.plan(claims, len(claims)))
        held = []
        for seed in range(80):
            plan = audit.plan(claims, 30, seed=seed)
            found = audit.result(claims, {name: gold[name] for name in plan.ids}, plan=plan)
            pairs = [(getattr(found, name), getattr(true, name).value) for name in ("precision", "recall", "f1")]
            held += [one.low <= value <= one.high for one, value in pairs]
        shares.append(np.mean(held))
    assert min(shares) >= 0.84
    assert 0.88 <= np.mean(shares) <= 0.96


def test_sizes_and_expectations_make_intervals_narrower() -> None:
    world = World(600)
    narrow = np.mean([world.audit(50, seed).f1.width for seed in range(60)])
    rng = np.random.default_rng(0)
    nothing = np.zeros(600)
    widths = []
    for _ in range(60):
        sample = rng.permutation(600)[:50]
        seen = Seen(sample, np.full(50, 50 / 600), world.right[sample], world.true[sample])
        widths.append(scores_of(Expected(world.claims.given, nothing), seen, once(0.9)).f1.width)
    assert narrow < 0.85 * np.mean(widths)


@pytest.mark.parametrize("n", [15, 50])
def test_a_plan_promises_the_width_that_results_have_where_confidence_is_right(n: int) -> None:
    world = World(400)
    audits = [world.audit(n, seed) for seed in range(20)]
    promised = np.mean([one.plan.expected_f1.width for one in audits])
    assert 0.85 < promised / np.mean([one.f1.width for one in audits]) < 1.2


def test_only_what_is_checked_is_drawn_for_a_promise(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, sizes_drawn = audit.plan(world.claims, 15), []

    class Counting(np.random.Generator):
        def random(self, size: Any = None, *more: Any, **named: Any) -> Any:
            sizes_drawn.append(size)
            return super().random(size, *more, **named)

    monkeypatch.setattr("numpy.random.default_rng", lambda seed: Counting(np.random.PCG64(seed)))
    assert 0 < plan.expected_f1.value < 1
    assert set(sizes_drawn) == {int(world.claims.given[plan.documents].sum())}


@pytest.mark.parametrize("unsure", [0.02, 0.0])
def test_draws_with_nothing_to_compare_do_not_spoil_a_promise(unsure: float) -> None:
    """Of documents without a span, some draws find a missed one and some do not; if nothing is missed, none does."""
    tags, sure = [["O"] * 10] * 40, [np.full(10, 1 - unsure / 10)] * 40
    found = audit.plan(claims_of(tags, [[]] * 40, sure), 12).expected_f1
    assert math.isnan(found.value) == (not unsure)
    assert 0 <= found.low <= found.high <= 1


def test_a_sample_without_a_mistake_does_not_promise_that_there_is_none() -> None:
    given = np.full(1000, 2.0)
    sample = np.arange(50)
    seen = Seen(sample, np.full(50, 0.05), given[sample], given[sample])
    found = scores_of(Expected(given, given), seen, once(0.9)).precision
    exact = beta_distribution.ppf(0.05, 50, 1)  # Clopper and Pearson's, of 50 documents that are all right
    assert found.value == 1 == found.high
    assert found.low == pytest.approx(exact, abs=0.01)


def test_spans_that_err_together_do_not_break_intervals() -> None:
    """A few documents are wholly wrong; as seldom as they are, most samples have hardly one."""
    for share in (0.02, 0.06):
        rng = np.random.default_rng(0)
        wrong = rng.random(500) < share
        given, held = np.full(500, 10.0), []
        right = np.where(wrong, 0.0, given)
        for _ in range(200):
            sample = rng.permutation(500)[:50]
            seen = Seen(sample, np.full(50, 0.1), right[sample], given[sample])
            found = scores_of(Expected(given, 0.95 * given), seen, once(0.9)).precision
            held.append(found.low <= right.sum() / given.sum() <= found.high)
        assert np.mean(held) >= 0.87


def test_intervals_of_a_type_that_few_documents_have_hold() -> None:
    """Documents without it tell nothing of its precision, however many were checked."""
    rng = np.random.default_rng(0)
    given = np.where(rng.random(500) < 0.15, 3.0, 0.0)
    right = np.where(rng.random(500) < 0.2, 0.0, given)
    held = []
    for _ in range(200):
        sample = rng.permutation(500)[:50]
        seen = Seen(sample, np.full(50, 0.1), right[sample], given[sample])
        found = scores_of(Expected(given, 0.95 * given), seen, once(0.9)).precision
        held.append(found.low <= right.sum() / given.sum() <= found.high)
    assert np.mean(held) >= 0.87


@pytest.mark.parametrize("sequential", [False, True])
def test_a_promise_without_mistakes_does_not_fall_with_more_documents(sequential: bool) -> None:
    """Nearly all documents are certain to be drawn in the end, and the few others are a small part of the whole."""
    claims = Claims.of(quorate.aggregate(quorate.sample(), "mv"))
    low, noise = 0.0, 0.005  # of F1: plans have other documents
    for n in (50, 100, 200, 280, 300, 310, 319, 320):
        found = audit.plan(claims, n, sequential=sequential).f1_without_mistakes
        assert found.low >= low - noise, n
        low = max(low, found.low)
    assert low == 1


@pytest.mark.parametrize("n", [150, 285, 297])
def test_intervals_hold_where_most_documents_are_certain_to_be_drawn(n: int) -> None:
    """Few documents are wholly wrong, and only such as are seldom drawn: of other sizes, some without a span."""
    rng = np.random.default_rng(0)
    held, widths = [], []
    for _ in range(200):
        given = rng.integers(0, 8, 300).astype(float)
        x = np.sqrt(given * rng.beta(1, 5, 300) + 0.05) + 0.1
        pi = inclusion(x, n)
        right = given.copy()
        right[rng.permutation(np.argsort(pi)[:100])[:4]] = 0
        drawn = np.argsort(rng.random(300) / x)[:n]
        seen = Seen(drawn, pi[drawn], right[drawn], given[drawn])
        found = scores_of(Expected(given, 0.95 * given), seen, once(0.9)).precision
        held.append(found.low <= right.sum() / given.sum() <= found.high)
        widths.append(found.width)
    assert np.mean(held) >= 0.9
    assert np.mean(widths) < 0.08


def test_nothing_given_and_nothing_true_is_not_known() -> None:
    nothing = np.zeros(20)
    seen = Seen(np.arange(10), np.full(10, 0.5), np.zeros(10), np.zeros(10))
    found = scores_of(Expected(nothing, nothing), seen, once(0.9)).recall
    assert math.isnan(found.value)
    assert str(found) == "not known"


def for_one_look(found: audit.Audit) -> audit.Audit:
    """The same documents, as if nobody had looked before."""
    return replace(found, plan=replace(found.plan, sequential=False))


def test_intervals_of_a_sequential_audit_hold_at_all_looks_together() -> None:
    world = World(300)
    sizes_looked_at = range(20, 101, 10)
    held, naive = [], []
    for seed in range(60):
        every = [world.audit(n, seed, sequential=True) for n in sizes_looked_at]
        looks, single = ([one.f1 for one in those] for those in (every, [for_one_look(one) for one in every]))
        held.append(all(one.low <= world.f1 <= one.high for one in looks))
        naive.append(all(one.low <= world.f1 <= one.high for one in single))
    assert np.mean(held) >= 0.9
    assert np.mean(naive) < 0.85  # looking again and again breaks intervals that are made for one look


def test_the_reach_at_every_look_is_that_of_the_theorem() -> None:
    rho2 = 8 / 50
    n, alpha = 70, 0.1
    boundary = math.sqrt((n * rho2 + 1) / (n * rho2) * math.log((n * rho2 + 1) / alpha**2))
    assert at_every_look(0.9, 70, 50)(1e9) == pytest.approx(boundary, rel=1e-3)


def test_a_sequential_audit_accepts_nothing(world: World) -> None:
    found = world.audit(30, 0, sequential=True)
    for accept in (found.accept, found.accept_spans):
        with pytest.raises(SettingsError, match="a sequential audit gives no guarantee"):
            accept(0.5)


def test_a_guarantee_is_broken_as_seldom_as_is_stated() -> None:
    world = World(500, shift=-0.8, slope=1.0)
    count, empty = np.maximum(world.claims.given, 1), world.claims.given == 0
    right = np.where(empty, world.true == 0, world.right)
    for precision in (0.6, 0.75):
        sets = [world.audit(60, seed).accept(precision).documents for seed in range(150)]
        assert np.mean([bool(one) for one in sets]) > 0.3
        held = [not one or right[one].sum() / count[one].sum() >= precision for one in sets]
        assert np.mean(held) >= 0.9


def test_a_guarantee_holds_where_spans_err_together() -> None:
    rng = np.random.default_rng(0)
    right = np.where(rng.random(500) < 0.06, 0.0, 10.0)
    sure, count = np.linspace(0.99, 0.9, 500), np.full(500, 10.0)
    broken = []
    for _ in range(300):
        sample = rng.permutation(500)[:60]
        seen = Seen(sample, np.full(60, 60 / 500), np.zeros(0), np.zeros(0))
        found = guaranteed(count, sure, seen, right[sample], 0.95, 0.9).documents
        broken.append(bool(found) and right[found].sum() / count[found].sum() < 0.95)
    assert np.mean(broken) <= 0.1


def korn_and_graubard(right: NDArray[np.float64], count: NDArray[np.float64]) -> float:
    """Their bound (90 %) of documents that all count alike, where a few residuals are not larger than others."""
    n, share = len(count), right.sum() / count.sum()
    each = (right - share * count) ** 2
    worth = share * (1 - share) * count.sum() ** 2 / (each.sum() * n / (n - 1))
    freedom = min(2 * each.sum() ** 2 / ((each**2).sum() - each.sum() ** 2 / n), n - 1)
    worth *= (norm.ppf(0.9) / t.ppf(0.9, freedom)) ** 2
    return float(beta_distribution.ppf(0.1, worth * share, worth * (1 - share) + 1))


def test_the_bound_of_what_is_accepted_is_korn_and_graubards() -> None:
    rng = np.random.default_rng(0)
    count = rng.integers(1, 6, 40).astype(float)
    right = rng.binomial(count.astype(int), 0.7).astype(float)
    probability = np.full(40, 0.1)
    bound = korn_and_graubard(right, count)
    assert lower_bound(right, count, probability, 0.1) == pytest.approx(bound)
    outside = np.zeros(9)  # documents that are not of the set
    beside = np.concatenate([right, outside]), np.concatenate([count, outside])
    assert lower_bound(beside[0], beside[1], np.full(49, 0.1), 0.1) == pytest.approx(bound)


@pytest.mark.parametrize("wrong", [0, 1, 4])
def test_few_mistakes_show_no_more_than_as_many_documents(wrong: int) -> None:
    """Documents of ten spans each may be wrong as a whole."""
    count, right = np.full(30, 10.0), np.full(30, 10.0)
    right[:wrong] -= 1
    found = lower_bound(right, count, np.full(30, 0.1), 0.1)
    share = right.sum() / count.sum()
    assert found == pytest.approx(beta_distribution.ppf(0.1, 30 * share, 30 * (1 - share) + 1))


def test_of_documents_without_a_mistake_the_largest_set_is_accepted() -> None:
    sure = np.linspace(0.99, 0.5, 200)
    seen = Seen(np.arange(200), np.full(200, 0.999), np.zeros(0), np.zeros(0))
    found = guaranteed(np.ones(200), sure, seen, np.ones(200), 0.9, 0.9)
    assert len(found.documents) == 200
    assert found.bound == pytest.approx(0.1 ** (1 / 200))
    assert not guaranteed(np.ones(200), sure, seen, np.ones(200), 0.99, 0.9).documents


def test_a_guarantee_of_spans_is_broken_as_seldom_as_is_stated() -> None:
    """Also where a precision is asked for that the largest set just misses."""
    world = World(500, shift=-0.8, slope=1.0)
    sure = world.claims.sure
    least = np.quantile(sure, 0.2)
    for precision in (0.75, float(world.hit[sure >= least].mean())):
        found = [world.audit(60, seed).accept_spans(precision) for seed in range(150)]
        held = [not one.kept or world.hit[sure >= one.least].mean() >= precision for one in found]
        assert np.mean(held) >= 0.9
        assert all(one.kept == (sure >= one.least).sum() for one in found)
        assert np.mean([one.kept > 0 for one in found]) > 0.1


def test_more_can_be_shown_of_spans_than_of_documents() -> None:
    """Sure and doubtful spans stand side by side in every document."""
    world = World(500, shift=-0.8, slope=2.0)
    found = [world.audit(100, seed) for seed in range(20)]
    spans = np.mean([one.accept_spans(0.85).kept / world.claims.given.sum() for one in found])
    documents = np.mean([world.claims.given[one.accept(0.85).documents].sum() for one in found])
    assert spans > documents / world.claims.given.sum()


def test_a_guarantee_of_spans_holds_where_spans_err_together() -> None:
    rng = np.random.default_rng(0)
    hit = np.repeat((rng.random(500) >= 0.06).astype(float), 10)
    sure = rng.random(5000)
    broken = []
    for _ in range(300):
        sample = rng.permutation(500)[:60]
        mine = (10 * sample[:, np.newaxis] + np.arange(10)).ravel()
        seen = Seen(sample, np.full(60, 60 / 500), np.zeros(0), np.zeros(0))
        found = guaranteed_spans(sure, seen, np.repeat(np.arange(60), 10), sure[mine], hit[mine], 0.95, 0.9)
        broken.append(bool(found.kept) and hit[sure >= found.least].mean() < 0.95)
    assert np.mean(broken) <= 0.1


def test_spans_are_accepted_as_far_as_they_pass() -> None:
    sure = np.linspace(0.99, 0.5, 200)
    hit = np.ones(200)
    hit[160:] = np.arange(40) % 2
    seen = Seen(np.arange(200), np.full(200, 0.999), np.zeros(0), np.zeros(0))
    found = guaranteed_spans(sure, seen, np.arange(200), sure, hit, 0.9, 0.9)
    passing = [k for k in range(170, 201, 10) if korn_and_graubard(hit[:k], np.ones(k)) >= 0.9]
    assert (found.kept, found.given, found.least) == (passing[-1], 200, sure[passing[-1] - 1])
    assert found.bound == pytest.approx(korn_and_graubard(hit[: found.kept], np.ones(found.kept)))
    assert 170 < found.kept < 200
    assert guaranteed_spans(sure, seen, np.arange(200), sure, 0 * hit, 0.5, 0.9).kept == 0
    nothing = np.zeros(0)
    assert guaranteed_spans(nothing, seen, np.zeros(0, np.int64), nothing, nothing, 0.9, 0.9).kept == 0


HARSH: dict[str, tuple[Callable[[np.random.Generator, int], Any], float]] = {
    "whole documents are wrong, by lot": (lambda rng, n: rng.random(n) < 0.8, 0.8),
    "rarely one, but then all of it": (lambda rng, n: rng.random(n) < 0.95, 0.8),
    "half of a document": (lambda rng, n: rng.beta(0.8, 0.2, n), 0.8),
    "span by span": (lambda _, n: np.full(n, 0.8), 0.8),
}
"""How often spans of sure documents are right, by document; and those of the others, each by itself."""


@pytest.mark.parametrize("most", [3, 10])
@pytest.mark.parametrize("kind", HARSH)
def test_a_guarantee_holds_just_above_what_is_true(kind: str, most: int) -> None:
    """Confidence tells nothing within the surest half, of which just more is asked than is true.

    So whatever is accepted is a mistake. Beyond that half spans err each by themselves: how far they err together
    in it cannot be seen from all.
    """
    rng, documents, half = np.random.default_rng(most), 400, 200
    of_half, rest = HARSH[kind]
    rate = np.concatenate([np.asarray(of_half(rng, half), float), np.full(half, rest - 0.2)])
    count = rng.integers(1, most + 1, documents).astype(float)
    right = rng.binomial(count.astype(int), rate).astype(float)
    sure = np.concatenate([0.9 + 0.1 * rng.random(half), 0.9 * rng.random(half)])
    first = np.argsort(-sure, kind="stable")[
        : np.searchsorted(np.cumsum(count[np.argsort(-sure)]), count.sum() / 2) + 1
    ]
    asked = float(right[first].sum() / count[first].sum()) + 1e-9
    x = np.sqrt(count + 0.5)
    pi, broken = inclusion(x, 50), 0
    for _ in range(300):
        sample = np.argsort(rng.random(documents) / x)[:50]
        seen = Seen(sample, pi[sample], np.zeros(0), np.zeros(0))
        broken += bool(guaranteed(count, sure, seen, right[sample], asked, 0.9).documents)
    assert broken / 300 <= 0.1


def test_documents_equally_sure_are_accepted_together() -> None:
    sure = np.repeat([0.9, 0.8], 50)
    seen = Seen(np.arange(100), np.full(100, 0.999), np.zeros(0), np.zeros(0))
    right = np.repeat([1.0, 0.0], 50)
    found = guaranteed(np.ones(100), sure, seen, right, 0.9, 0.9)
    assert found.documents == list(range(50))


def test_least_spans_are_what_it_takes() -> None:
    least = acceptance.least_documents(0.9, 0.9)
    assert beta_distribution.ppf(0.1, least, 1) >= 0.9
    assert beta_distribution.ppf(0.1, least - 1, 1) < 0.9


def test_a_line_is_found_and_few_outcomes_change_little() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(4, 1, 20_000)
    right = rng.random(len(p)) < expit(-0.5 + 0.8 * logit(p))
    assert fit_line(p, right, np.ones(len(p))) == pytest.approx((-0.5, 0.8), abs=0.06)
    few = fit_line(np.array([0.9, 0.9]), np.array([False, True]), np.ones(2))
    assert abs(few.shift) < 0.5
    assert fit_line(np.zeros(0), np.zeros(0, np.bool_), np.zeros(0)) == pytest.approx((0, 1), abs=0.01)


def test_corrected_probabilities_are_coherent() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        lines = Recalibration(*(Line(*rng.normal([0, 1], 0.5)) for _ in range(4)))
        tokens = np.clip(rng.random(6) + 0.3, 0, 1)
        spans = [Span(0, 2, "X", float(tokens[:2].min() * rng.random())), Span(3, 4, "X", float(tokens[3]))]
        whole, sure, told = recalibrated(lines, float(rng.random()), tokens, spans)
        assert all(span.sure <= sure[span.start : span.end].min() for span in told)
        assert whole <= min([span.sure for span in told])


def test_what_is_off_by_chance_is_told_from_what_is_off() -> None:
    """Of a consensus as sure as it should be the test errs no more often than it says; one too sure is found out."""
    honest, too_sure = World(600), World(600, shift=-1.2)
    by_chance = np.mean([honest.audit(50, seed).off_beyond_chance.spans for seed in range(150)])
    assert by_chance <= 0.14
    assert np.mean([too_sure.audit(50, seed).off_beyond_chance.spans for seed in range(30)]) > 0.9


def test_spans_that_err_together_do_not_look_off() -> None:
    rng = np.random.default_rng(0)
    document, p = np.repeat(np.arange(50), 10), np.full(500, 0.8)
    found = [
        beyond_chance(p, np.repeat(rng.random(50) < 0.8, 10), np.ones(500), document)  # a document is right or wrong
        for _ in range(300)
    ]
    assert np.mean(found) <= 0.17


def test_recalibration_mends_a_consensus_that_is_too_sure() -> None:
    world = World(800, shift=-1.5)
    line = world.audit(300, 0).recalibration.spans
    p = np.linspace(0.3, 0.95, 20)
    truly = expit(-1.5 + logit(p))
    assert np.abs(line.of(p) - truly).mean() < 0.5 * np.abs(p - truly).mean()
