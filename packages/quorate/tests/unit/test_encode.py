"""Corpora as arrays."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import quorate
from by_name import bsc
from quorate import Corpus, Document, InputError
from quorate.corpus.records import SoftTag, Tag
from quorate.corpus.tags import Invalid, Scheme, TagSet
from quorate.crowd.algebra import marked_spans, seen_pairs, with_likeliest_labels
from quorate.crowd.encode import encode, encode_known
from quorate.crowd.shapes import Shape, shape_of

BIO = TagSet.of_types(Scheme.BIO, ["X"])


def said(corpus: Corpus, tagset: TagSet = BIO, invalid: Invalid = Invalid.REPAIR) -> list[tuple[int, str, str, str]]:
    """(token, annotator, previous label, label), read back from the arrays."""
    encoded = encode(corpus, tagset, invalid=invalid)
    annotator, previous, label, *_ = encoded.cells
    labels = (*tagset.labels, "start")
    return [
        (t, encoded.annotators[annotator[g]], labels[previous[g]], labels[label[g]])
        for t in range(encoded.n_tokens)
        for g in encoded.event_cell[encoded.event_start[t] : encoded.event_start[t + 1]]
    ]


def test_events_in_the_order_of_tokens() -> None:
    corpus = Corpus(
        [
            Document("1", ("a", "b", "c"), {"bob": ("B-X", "I-X", "O"), "ann": ("O", None, "B-X")}),
            Document("2", ()),
            Document("3", ("d",), {"bob": ("O",)}),
        ]
    )
    assert said(corpus) == [
        (0, "ann", "O", "O"),
        (0, "bob", "O", "B-X"),
        (1, "bob", "B-X", "I-X"),
        (2, "ann", "O", "B-X"),
        (2, "bob", "I-X", "O"),
        (3, "bob", "O", "O"),
    ]


def test_start_row_of_the_plain_scheme() -> None:
    tagset = TagSet.of_types(Scheme.PLAIN, ["N", "V"])
    corpus = Corpus([Document("1", ("a", "b", "c"), {"ann": ("N", None, "V")})])
    assert said(corpus, tagset) == [(0, "ann", "start", "N"), (2, "ann", "start", "V")]


def test_invalid_tags_by_each_rule() -> None:
    corpus = Corpus([Document("1", ("a", "b", "c"), {"ann": ("O", "I-X", "I-X")})])
    assert [label for *_, label in said(corpus)] == ["O", "B-X", "I-X"]
    assert encode(corpus, BIO).repaired == 1
    assert said(corpus, invalid=Invalid.KEEP)[1] == (1, "ann", "O", "I-X")
    with pytest.raises(InputError, match=r"token 2: tag 'I-X' follows 'O' \(use --invalid repair"):
        encode(corpus, BIO, invalid=Invalid.ERROR)


def test_soft_labels_become_weighted_pairs() -> None:
    corpus = Corpus([Document("1", ("a", "b"), {"m": ({"O": 1, "B-X": 3}, {"O": 0.5, "I-X": 0.5})})])
    encoded = encode(corpus, BIO)
    assert encoded.event_weight is not None
    weights = {
        (t, BIO.labels[encoded.cells.previous[g]], BIO.labels[encoded.cells.label[g]]): float(encoded.event_weight[e])
        for t in range(2)
        for e in range(encoded.event_start[t], encoded.event_start[t + 1])
        for g in [encoded.event_cell[e]]
    }
    # O→I-X cannot occur: its share, 1/8, is read as O→B-X.
    first = {(0, "O", "O"): 0.25, (0, "O", "B-X"): 0.75}
    second = {(1, "O", "O"): 1 / 8, (1, "O", "B-X"): 1 / 8, (1, "B-X", "O"): 3 / 8, (1, "B-X", "I-X"): 3 / 8}
    assert weights == pytest.approx(first | second)


@pytest.mark.parametrize("seed", range(20))
def test_the_likeliest_labels_mark_what_probabilities_mark(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def said(length: int) -> tuple[Tag | SoftTag, ...]:
        soft = [dict(zip(BIO.labels, rng.dirichlet(np.ones(len(BIO.labels))), strict=True)) for _ in range(length)]
        return tuple(each if rng.random() < 0.5 else str(rng.choice(BIO.labels)) for each in soft)

    documents = [
        Document(str(d), tuple("abcde"[:length]), {name: said(length) for name in "xyz" if rng.random() < 0.8})
        for d, length in enumerate([3, 0, 5, 1])
    ]
    encoded = encode(Corpus(documents), BIO, invalid=Invalid.REPAIR)
    hard = with_likeliest_labels(encoded)
    assert hard.event_weight is None
    for columns in (marked_spans, seen_pairs):
        for ours, theirs in zip(columns(hard), columns(encoded), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert with_likeliest_labels(hard) is hard


def test_soft_labels_that_are_all_but_certain_are_all_but_tags() -> None:
    almost = Corpus([Document("1", ("a", "b"), {"m": ({"O": 1 - 1e-6, "B-X": 1e-6}, {"O": 1e-6, "I-X": 1 - 1e-6})})])
    encoded = encode(almost, BIO)
    assert encoded.event_weight is not None
    label = encoded.cells.label[encoded.event_cell]
    last = slice(encoded.event_start[1], encoded.event_start[2])
    assert encoded.event_weight[last][label[last] == BIO.index["B-X"]].sum() > 0.99999


@pytest.mark.parametrize("soft", [{"O": 0.0}, {"O": float("inf")}, {"O": -1.0, "B-X": 2.0}])
def test_soft_labels_that_are_no_distribution(soft: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"document '1', token 1: .* is not a distribution over tags"):
        encode(Corpus([Document("1", ("a",), {"m": (soft,)})]), BIO)


def test_names_of_an_earlier_fit_keep_their_numbers() -> None:
    corpus = Corpus([Document("1", ("new", "old"), {"zoe": ("O", "O"), "ann": ("O", "O")})])
    encoded = encode(corpus, BIO, annotators=("zoe",), words=("old",))
    assert encoded.annotators == ("zoe", "ann")
    assert encoded.word.tolist() == [1, 0]


def test_a_tag_outside_the_label_set() -> None:
    corpus = Corpus([Document("1", ("a",), {"ann": ("B-Y",)})])
    with pytest.raises(
        InputError, match="document '1', token 1: tag 'B-Y' is not among the model's labels, O, B-X, I-X"
    ):
        encode(corpus, BIO)


def test_known_labels() -> None:
    corpus = Corpus([Document("1", ("a", "b")), Document("2", ("c",))])
    assert encode_known(corpus, BIO, {"1": ("O", "I-X")}, Invalid.REPAIR).tolist() == [0, 1, -1]
    with pytest.raises(InputError, match="1 known tags for 2 tokens"):
        encode_known(corpus, BIO, {"1": ("O",)}, Invalid.REPAIR)
    with pytest.raises(InputError, match="document '9', which is not in the input"):
        encode_known(corpus, BIO, {"9": ("O",)}, Invalid.REPAIR)


@pytest.mark.parametrize(
    ("scheme", "given", "clamped"),
    [
        (Scheme.BIO, (None, "I-X"), (None, "I-X")),
        (Scheme.BIO, ("O", None, "I-X", "O"), ("O", None, "I-X", "O")),
        (Scheme.BIO, ("I-X", None), ("B-X", None)),
        (Scheme.BIO, ("O", "I-X", None), ("O", "B-X", None)),
        (Scheme.BIOES, (None, "E-X"), (None, "E-X")),
        (Scheme.BIOES, ("B-X", None), ("B-X", None)),
        (Scheme.BIOES, (None, "I-X", None), (None, "I-X", None)),
        (Scheme.BIOES, (None, "I-X"), (None, "E-X")),
        (Scheme.BIOES, (None, "I-X", "O"), (None, "E-X", "O")),
        (Scheme.BIOES, ("O", "I-X", "I-X", None), ("O", "B-X", "I-X", None)),
        (Scheme.BIOES, ("B-X", None, "I-Y", None), ("B-X", None, "B-Y", None)),
        (Scheme.BIOES, ("B-X", None, None, "I-Y", None), ("B-X", None, None, "I-Y", None)),
    ],
)
def test_null_among_known_labels_means_unknown(
    scheme: Scheme, given: tuple[str | None, ...], clamped: tuple[str | None, ...]
) -> None:
    """What stands beside an unknown label stays as it is; only what cannot stand so goes through the rule."""
    tagset = TagSet.of_types(scheme, ["X", "Y"])
    words = tuple("abcdefg"[: len(given)])
    corpus = Corpus([Document("0", ("z",)), Document("1", words), Document("2", ("z",))])
    codes = encode_known(corpus, tagset, {"0": ("B-X" if scheme is Scheme.BIO else "S-X",), "1": given}, Invalid.REPAIR)
    assert tuple(None if code < 0 else tagset.labels[code] for code in codes[1:-1]) == clamped
    if given != clamped:
        with pytest.raises(InputError, match=r"document '1', token \d: .*(follows|fits between|cannot end)"):
            encode_known(corpus, tagset, {"1": given}, Invalid.ERROR)
    else:
        assert encode_known(corpus, tagset, {"1": given}, Invalid.ERROR).tolist()[1:-1] == codes.tolist()[1:-1]


@pytest.mark.parametrize("scheme", [Scheme.BIO, Scheme.BIOES])
def test_known_labels_stay_wherever_a_valid_sequence_agrees_with_them(scheme: Scheme) -> None:
    """Against every valid sequence enumerated: what one agrees with is clamped as it is, and the rest is made so."""
    tagset, length = TagSet.of_types(scheme, ["X", "Y"]), 4
    valid = np.array(
        [path for path in product(range(len(tagset.labels)), repeat=length) if _is_valid(tagset, path)], np.int32
    )
    given = list(product([None, *tagset.labels], repeat=length))
    corpus = Corpus([Document(str(n), tuple("abcd")) for n in range(len(given))])
    codes = encode_known(corpus, tagset, {str(n): tags for n, tags in enumerate(given)}, Invalid.REPAIR)
    for tags, clamped in zip(given, codes.reshape(-1, length), strict=True):
        wanted = np.array([-1 if tag is None else tagset.index[tag] for tag in tags])
        if _agrees(valid, wanted):
            assert clamped.tolist() == wanted.tolist(), tags
        else:
            assert _agrees(valid, clamped), (tags, clamped)
            assert ((clamped < 0) == (wanted < 0)).all(), tags


def _is_valid(tagset: TagSet, path: tuple[int, ...]) -> bool:
    return tagset.is_valid([tagset.labels[code] for code in path])


def _agrees(valid: np.ndarray, codes: np.ndarray) -> bool:
    return bool(((valid == codes) | (codes < 0)).all(axis=1).any())


def test_huge_key_space_takes_the_other_route() -> None:
    """Two ways to number the cells: a table of all that could occur, and sorting what does."""
    tagset = TagSet.of_types(Scheme.PLAIN, [f"t{n:03}" for n in range(120)])
    rng = np.random.default_rng(0)
    documents = [
        Document(f"{n:04}", ("a", "b"), {f"a{n:04}": tuple(f"t{rng.integers(120):03}" for _ in range(2))})
        for n in range(100)
    ]
    encoded = encode(Corpus(documents), tagset)
    assert max(4 * len(encoded.event_cell), 1 << 20) < 100 * 121 * 120
    assert np.all(np.diff(encoded.cells.keys) > 0)
    first = documents[0].annotations["a0000"]
    assert [tagset.labels[encoded.cells.label[g]] for g in encoded.event_cell[:2]] == list(first)


def test_spans_can_be_wanted_as_io(tmp_path: Path) -> None:
    """Spans in a text are written as BIO when they are read; asked for as IO, they are IO."""
    file = tmp_path / "spans.jsonl"
    file.write_text(
        '{"id": "1", "text": "Ada Ng sang", "annotations": {"x": [{"start": 0, "end": 6, "label": "P"}], "y": []}}\n'
        '{"id": "2", "tokens": ["Ada", "sang"], "annotations": {"x": [{"B-P": 0.3, "I-P": 0.4, "O": 0.3}, "O"]}}\n'
    )
    corpus = quorate.read(file)
    for method in ("bsc-seq", "mv"):
        result = quorate.aggregate(corpus, method, scheme="io")
        assert result.labels == ("O", "I-P")
        assert result.tags[0] in (["I-P", "I-P", "O"], ["O", "O", "O"])
    model = bsc("bsc-seq", scheme="io", max_iter=2).fit(corpus)
    assert model.predict(corpus) == model.result_.tags
    encoded = encode(corpus, corpus.tagset(Scheme.IO))
    soft = slice(*encoded.event_start[3:5])
    weight = dict(zip(encoded.cells.label[encoded.event_cell[soft]], encoded.event_weight[soft], strict=True))  # type: ignore[index]
    assert weight == pytest.approx({0: 0.3, 1: 0.7})


def test_tags_may_be_any_kind_of_string() -> None:
    corpus = Corpus([Document("1", ("a", "b"), {"ann": (np.str_("NOUN"), np.str_("VERB"))})])
    encoded = encode(corpus, corpus.tagset())
    labels = encoded.cells.label[encoded.event_cell]
    assert [encoded.tagset.labels[label] for label in labels] == ["NOUN", "VERB"]


@pytest.mark.parametrize(
    ("word", "accented", "shape"),
    [
        ("berlin", "bérlin", Shape.SMALL),
        ("Berlin", "Bérlin", Shape.CAPITALISED),
        ("BERLIN", "BÉRLIN", Shape.CAPITALS),
        ("McCall", "McCáll", Shape.MIXED),
        ("iPhone", "iPhoné", Shape.MIXED),
    ],
)
def test_words_of_plain_letters_have_the_shapes_of_others(word: str, accented: str, shape: Shape) -> None:
    assert shape_of(word) is shape_of(accented) is shape
