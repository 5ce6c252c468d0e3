"""Agreement against published worked examples, and on corpora small enough to work out by hand."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import quorate
from quorate import score
from quorate.corpus.records import Corpus, Document, SoftTag, Tag
from quorate.corpus.spans import Span
from quorate.errors import InputError

# K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C: 4 observers, 12 units, dots missing.
KRIPPENDORFF = ["123321412...", "12332241253.".replace("53.", "5.3"), ".3332342251.", "12332441251."]

# J. L. Fleiss, "Measuring nominal scale agreement among many raters" (1971), table 1: 30 patients, 6 psychiatrists.
FLEISS = """
00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""


def counts_of(rows: Sequence[str], labels: str) -> np.ndarray:
    return np.array([[sum(row[unit] == label for row in rows) for label in labels] for unit in range(len(rows[0]))])


def test_krippendorff_alpha_of_his_own_example() -> None:
    assert [len(row) for row in KRIPPENDORFF] == [12] * 4
    assert score.krippendorff_alpha(counts_of(KRIPPENDORFF, "12345")) == pytest.approx(0.743, abs=5e-4)


def test_fleiss_kappa_of_his_own_example() -> None:
    counts = np.array([[int(digit) for digit in row] for row in FLEISS.split()])
    assert counts.sum(axis=0).tolist() == [26, 26, 30, 55, 43]  # the column totals that he prints
    assert score.fleiss_kappa(counts) == pytest.approx(0.430, abs=5e-4)


@pytest.mark.parametrize(
    ("table", "kappa"), [((20, 5, 10, 15), 0.4), ((45, 15, 25, 15), 0.1304), ((25, 35, 5, 35), 0.2593)]
)
def test_cohen_kappa_of_textbook_tables(table: tuple[int, ...], kappa: float) -> None:
    """Yes-yes, yes-no, no-yes, no-no; the second and third have the same observed agreement."""
    first, second = [], []
    for n, (one, other) in zip(table, [("Y", "Y"), ("Y", "N"), ("N", "Y"), ("N", "N")], strict=True):
        first += [one] * n
        second += [other] * n
    assert score.cohen_kappa(first, second) == pytest.approx(kappa, abs=5e-5)


def test_unitizing_alpha_of_krippendorff_2004_page_254() -> None:
    """Two observers, tokens 150 to 450, types c and k; spans of different types may overlap."""
    first = [(225, 70, "c"), (370, 30, "c"), (180, 60, "k"), (300, 50, "k")]
    second = [(220, 80, "c"), (355, 20, "c"), (400, 20, "c"), (180, 60, "k"), (300, 50, "k")]
    annotators = [[Span(b - 150, b - 150 + n, kind) for b, n, kind in spans] for spans in (first, second)]
    found = score.unitizing_alpha([score.Continuum(300, annotators)])
    assert found.alpha == pytest.approx(0.8591, abs=5e-4)
    assert found.by_type["c"] == pytest.approx(0.7286, abs=1e-4)
    assert found.by_type["k"] == 1.0
    assert found.observed / 300 == pytest.approx(0.0144, abs=5e-5)  # of c alone: k has none
    assert found.expected / 300 == pytest.approx(0.0532 + 0.0490, abs=1e-4)


def test_unitizing_alpha_by_hand() -> None:
    """Two annotators of 4 tokens: one marks [0, 1), the other [0, 2).

    δ² = 0² + 1², over both orders 2; T = 8, so D_o·L = 2 / 8. Units 1 and 2, N = 2, gaps 3 and 2: of length 1,
    (2 − 3 + 1)/3 + 1·(3 + 2) = 5; of length 2, (16 − 12 + 2)/3 + 4·(2 + 1) = 14. D_e·L = 2·19 / (8·7 − 2) = 38/54.
    """
    found = score.unitizing_alpha([score.Continuum(4, [[Span(0, 1, "X")], [Span(0, 2, "X")]])])
    assert found.alpha == pytest.approx(1 - (2 / 8) / (38 / 54), rel=1e-12)


def test_unitizing_alpha_ignores_texts_with_one_annotator_and_refuses_overlaps() -> None:
    texts = [score.Continuum(4, [[Span(0, 1, "X")], [Span(0, 2, "X")]])]
    assert score.unitizing_alpha([*texts, score.Continuum(9, [[Span(0, 1, "X")]])]) == score.unitizing_alpha(texts)
    with pytest.raises(InputError, match="document 1: spans of the same type by one annotator overlap"):
        score.unitizing_alpha([score.Continuum(4, [[Span(0, 2, "X"), Span(1, 3, "X")], []])])


def test_what_is_not_defined_is_none() -> None:
    assert score.cohen_kappa(["O"], ["O"]) is None
    assert score.cohen_kappa([], []) is None
    assert score.fleiss_kappa([[3, 0], [2, 0]]) is None
    assert score.krippendorff_alpha([[3, 0], [2, 0]]) is None
    assert score.krippendorff_alpha([[1, 0], [0, 1]]) is None
    assert score.unitizing_alpha([]).alpha is None


def test_cohen_kappa_wants_two_labels_a_token() -> None:
    with pytest.raises(InputError, match="1 label against 2"):
        score.cohen_kappa(["O"], ["O", "O"])


def corpus_of(*documents: Mapping[str, Sequence[Tag | SoftTag]]) -> Corpus:
    return Corpus(
        Document(str(d), tuple("abcdefgh"[: len(next(iter(said.values())))]), {k: tuple(v) for k, v in said.items()})
        for d, said in enumerate(documents)
    )


def test_a_corpus_by_hand() -> None:
    found = score.measure_agreement(
        corpus_of(
            {"bob": ["B-X", "I-X", "O"], "ann": ["B-X", "O", "O"]},
            {"ann": ["B-X"], "bob": ["B-X"], "cy": [None]},
            {"cy": ["O", "O"]},
        )
    )
    assert (found.documents, found.tokens, found.partly_seen) == (2, 4, 1)
    assert found.observed == pytest.approx(3 / 4, rel=1e-12)
    assert found.spans_matched == pytest.approx(2 * 1 / 4, rel=1e-12)  # two spans each, one of them the same
    pair = found.pairs[0]
    assert (pair.first, pair.second, pair.documents, pair.tokens) == ("ann", "bob", 2, 4)
    # ann: B 2, O 2; bob: B 2, I 1, O 1; chance (2·2 + 2·1) / 16
    assert pair.kappa == pytest.approx((3 / 4 - 6 / 16) / (1 - 6 / 16), rel=1e-12)
    assert [(p.first, p.second, p.tokens, p.kappa, p.observed, p.spans_matched) for p in found.pairs[1:]] == [
        ("ann", "cy", 0, None, None, None),
        ("bob", "cy", 0, None, None, None),
    ]
    assert found.mean_kappa == pair.kappa


def test_spans_where_the_other_did_not_look_do_not_count() -> None:
    found = score.measure_agreement(corpus_of({"ann": ["B-X", "O", "B-X"], "bob": ["B-X", "O", None]}))
    assert found.spans_matched == 1.0


def test_the_size_of_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = score.measure_agreement(quorate.sample())
    monkeypatch.setattr("quorate.evaluate.metrics.agreement._BLOCK", 50)
    assert score.measure_agreement(quorate.sample()) == whole


@pytest.mark.parametrize("block", [1, 7, 1 << 18])
def test_alpha_in_one_pass_is_that_of_all_measures(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("quorate.evaluate.metrics.description._BLOCK", block)
    unseen: list[tuple[Tag | SoftTag, ...]] = [(None, "B-X", "O"), ("O", {"B-X": 0.8, "O": 0.2}, None)]
    odd = Document("odd", ("a", "b", "c"), dict(zip("xy", unseen, strict=True)))
    alone = Document("alone", ("a",), {"x": ("B-Z",)})
    corpus = Corpus([alone, odd, *quorate.sample().documents[:50]])
    assert score.token_alpha(corpus) == pytest.approx(score.measure_agreement(corpus).alpha, abs=1e-12)


def test_alpha_of_layers_lies_between_theirs_and_is_theirs_where_they_are_alike() -> None:
    sample = quorate.sample()
    some, others = Corpus(sample.documents[:100]), Corpus(sample.documents[100:])
    one, other, both = score.token_alpha(some), score.token_alpha(others), score.token_alpha(some, others)
    assert one is not None
    assert other is not None
    assert both is not None
    assert min(one, other) < both < max(one, other)
    assert score.token_alpha(some, some) == pytest.approx(one, abs=1e-12)


def test_alpha_of_nobody_or_of_one_label_is_none() -> None:
    assert score.token_alpha(Corpus([])) is None
    assert score.token_alpha(Corpus([Document("1", ("a",), {"x": ("O",)})])) is None
    assert score.token_alpha(Corpus([Document("1", ("a",), {"x": ("O",), "y": ("O",)})])) is None
    assert score.token_alpha(Corpus([Document("1", ("a",), {"x": (None,), "y": ("O",)})])) is None


def test_plain_labels_have_no_span_measures() -> None:
    found = score.measure_agreement(corpus_of({"ann": ["NOUN", "VERB"], "bob": ["NOUN", "NOUN"]}))
    assert (found.spans_matched, found.unitizing_alpha) == (None, None)
    assert found.observed == 0.5


def test_soft_tags_count_as_their_most_probable_tag() -> None:
    soft = corpus_of({"ann": [{"O": 0.2, "B-X": 0.8}, "O"], "bob": ["B-X", "O"]})
    assert score.measure_agreement(soft).observed == 1.0


def test_io_labels_have_spans() -> None:
    assert score.measure_agreement(corpus_of({"ann": ["I-X"], "bob": ["I-X"]}), orphans=False).spans_matched == 1.0


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([{"ann": ["O"]}, {"bob": ["O"]}], "no document has two annotators"),
        ([{"ann": ["O", None], "bob": [None, "O"]}], "no token has labels of two annotators"),
    ],
)
def test_no_agreement_to_measure(documents: list[dict[str, list[Tag]]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        score.measure_agreement(corpus_of(*documents))


def test_nobody_there() -> None:
    with pytest.raises(InputError, match="no document has two annotators"):
        score.measure_agreement(Corpus([Document("1", ("a",))]))
