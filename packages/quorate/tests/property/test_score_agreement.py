"""Agreement against the definitions spelled out one value, one pair, one section at a time."""

from collections.abc import Sequence
from itertools import combinations, permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from problems import certain
from quorate import score
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, find_spans

TAGS = ["O", "B-X", "I-X", "B-Y"]
RTOL = 1e-9
Texts = list[tuple[int, list[list[Span]]]]
Section = tuple[int, int, bool]
EXAMPLES = settings(max_examples=100, deadline=None)


def alpha_by_pairs(units: list[list[Tag]]) -> float | None:
    """1 − D_o / D_e from all ordered pairs of values, as Krippendorff writes it."""
    units = [values for values in units if len(values) > 1]
    values = [value for unit in units for value in unit]
    if len(set(values)) < 2:
        return None
    n = len(values)
    observed = sum(sum(a != b for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units) / n
    expected = sum(a != b for a, b in permutations(values, 2)) / (n * (n - 1))
    return 1 - observed / expected


def fleiss_by_pairs(units: list[list[Tag]]) -> float | None:
    units = [values for values in units if len(values) > 1]
    values = [value for unit in units for value in unit]
    if len(set(values)) < 2:
        return None
    observed = np.mean([np.mean([a == b for a, b in combinations(unit, 2)]) for unit in units])
    chance = np.mean([[a == b for a in values] for b in values])
    return float((observed - chance) / (1 - chance))


def same(found: float | None, expected: float | None) -> None:
    assert (found is None) == (expected is None)
    assert found is None or found == pytest.approx(expected, rel=RTOL, abs=1e-9)


@st.composite
def corpora(draw: st.DrawFn, tags: Sequence[str | None] = (*TAGS, None), full: bool = False) -> Corpus:
    documents = []
    for d in range(draw(st.integers(1, 3))):
        length = draw(st.integers(1, 5))
        names = ["ann", "bob", "cy"] if full else draw(st.sets(st.sampled_from(["ann", "bob", "cy", "di"]), min_size=1))
        said = {name: tuple(draw(st.lists(st.sampled_from(tags), min_size=length, max_size=length))) for name in names}
        documents.append(Document(str(d), tuple("abcde"[:length]), said))
    return Corpus(documents)


def units_of(corpus: Corpus) -> list[list[Tag]]:
    return [
        [tags[p] for tags in map(certain, document.annotations.values()) if tags[p] is not None]
        for document in corpus
        for p in range(len(document.tokens))
    ]


def measurable(corpus: Corpus) -> bool:
    return any(len(values) > 1 for values in units_of(corpus))


@EXAMPLES
@given(corpora())
def test_token_measures_of_a_corpus(corpus: Corpus) -> None:
    if not measurable(corpus):
        return
    found = score.measure_agreement(corpus, scheme=Scheme.BIO)
    units = units_of(corpus)
    same(found.alpha, alpha_by_pairs(units))
    same(found.fleiss_kappa, fleiss_by_pairs(units))
    pairs = {(pair.first, pair.second): pair for pair in found.pairs}
    for first, second in combinations(corpus.annotators, 2):
        shared = [d.annotations for d in corpus if first in d.annotations and second in d.annotations]
        assert ((first, second) in pairs) == bool(shared)
        if not shared:
            continue
        one, other = ([tag for said in shared for tag in certain(said[name])] for name in (first, second))
        same(pairs[first, second].kappa, score.cohen_kappa(one, other))
        both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
        assert pairs[first, second].tokens == len(both)
        if len({tag for pair in both for tag in pair}) > 1:
            assert pairs[first, second].kappa == pytest.approx(
                cohen_kappa_score(*zip(*both, strict=True)), rel=RTOL, abs=1e-9
            )


@EXAMPLES
@given(corpora(tags=TAGS))
def test_pairwise_match_of_spans_is_the_strict_score_of_one_against_the_other(corpus: Corpus) -> None:
    if not measurable(corpus):
        return
    for pair in score.measure_agreement(corpus, orphans=False, scheme=Scheme.BIO).pairs:
        shared = [d.annotations for d in corpus if pair.first in d.annotations and pair.second in d.annotations]
        one, other = ([certain(said[name]) for said in shared] for name in (pair.first, pair.second))
        for expected in (score.strict(one, other, scheme=Scheme.BIO), score.strict(other, one, scheme=Scheme.BIO)):
            assert (pair.spans_matched or 0.0) == pytest.approx(expected.f1, rel=RTOL)


@EXAMPLES
@given(corpora(), st.randoms())
def test_order_and_names_change_nothing(corpus: Corpus, random: Random) -> None:
    if not measurable(corpus):
        return
    names = {"ann": "zoe", "bob": "yan", "cy": "xia", "di": "wes"}
    documents = [
        Document(d.id, d.tokens, {names[name]: tags for name, tags in reversed(list(d.annotations.items()))})
        for d in corpus
    ]
    random.shuffle(documents)
    one, other = (score.measure_agreement(c, scheme=Scheme.BIO) for c in (corpus, Corpus(documents)))
    for name in ("documents", "tokens", "partly_seen"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("observed", "mean_kappa", "fleiss_kappa", "alpha", "unitizing_alpha", "spans_matched"):
        same(getattr(one, name), getattr(other, name))


def sections(texts: Texts, annotator: int, kind: str) -> list[Section]:
    """(start, length, is a unit) over the texts laid end to end; no section crosses from one text to the next."""
    found, offset = [], 0
    for length, spans_of in texts:
        at = 0
        for start, end, label in [*(span[:3] for span in sorted(spans_of[annotator])), (length, length, kind)]:
            if label != kind:
                continue
            if start > at:
                found.append((offset + at, start - at, False))
            if end > start:
                found.append((offset + start, end - start, True))
            at = end
        offset += length
    return found


def delta(one: Section, other: Section) -> int:
    (b1, l1, v1), (b2, l2, v2) = one, other
    if v1 and v2 and -l1 < b1 - b2 < l2:
        return (b1 - b2) ** 2 + (b1 + l1 - b2 - l2) ** 2
    if v1 and not v2 and l2 - l1 >= b1 - b2 >= 0:
        return l1**2
    if v2 and not v1 and l2 - l1 <= b1 - b2 <= 0:
        return l2**2
    return 0


def unitizing_by_sections(texts: Texts, kind: str, m: int) -> tuple[float, float]:
    """D_o and D_e as Krippendorff (1995) writes them."""
    L = sum(length for length, _ in texts)
    by_annotator = [sections(texts, annotator, kind) for annotator in range(m)]
    observed = sum(delta(g, h) for one, other in permutations(by_annotator, 2) for g in one for h in other)
    everything = [section for found in by_annotator for section in found]
    units, gaps = ([n for _, n, v in everything if v == wanted] for wanted in (True, False))
    expected = sum(
        (len(units) - 1) / 3 * (2 * n**3 - 3 * n**2 + n) + n**2 * sum(gap - n + 1 for gap in gaps if gap >= n)
        for n in units
    )
    pairs = m * L * (m * L - 1) - sum(n * (n - 1) for n in units)
    return observed / (m * (m - 1) * L**2), 2 / L * expected / pairs if units else 0.0


@EXAMPLES
@given(corpora(tags=TAGS, full=True))
def test_unitizing_alpha_is_the_formula_where_all_annotate_all(corpus: Corpus) -> None:
    texts = [
        (len(d.tokens), [find_spans(certain(d.annotations[name])) for name in ("ann", "bob", "cy")]) for d in corpus
    ]
    found = score.unitizing_alpha(score.Continuum(length, spans) for length, spans in texts)
    by_kind = [unitizing_by_sections(texts, kind, 3) for kind in ("X", "Y")]
    observed, expected = (sum(column) for column in zip(*by_kind, strict=True))
    same(found.alpha, 1 - observed / expected if expected else None)
    for kind, (d_o, d_e) in zip(("X", "Y"), by_kind, strict=True):
        same(found.by_type.get(kind), 1 - d_o / d_e if d_e else None)
    same(score.measure_agreement(corpus, scheme=Scheme.BIO).unitizing_alpha, found.alpha)


def test_unitizing_alpha_is_near_zero_by_chance_and_one_in_agreement() -> None:
    rng = np.random.default_rng(0)

    def text(together: bool) -> score.Continuum:
        starts = rng.integers(0, 1990, 2)
        return score.Continuum(2000, [[Span(int(b), int(b) + 10, "X")] for b in starts[[0, 0] if together else [0, 1]]])

    assert score.unitizing_alpha([text(True) for _ in range(300)]).alpha == 1.0
    by_chance = score.unitizing_alpha([text(False) for _ in range(3000)]).alpha
    assert by_chance is not None
    assert abs(by_chance) < 0.02
