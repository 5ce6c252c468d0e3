"""The compiled writer of a consensus gives the bytes that documents give one by one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quorate
from quorate import Corpus, Document, Result
from quorate.corpus.offsets import Unit
from quorate.formats.json_lines import consensus_lines, encoded_lines
from quorate.model.kernels.lines import ConsensusColumns, DocumentColumns, lines_of, quoted
from quorate.storage.corpora import StoredCorpus, store
from quorate.storage.joined import JoinedCorpus

MANY = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
TAGS = ("O", "B-PER", "I-PER", 'B-a "b"\\\n', "B-Ω", "I-Ω")

# No surrogates; often what JSON escapes, what UTF-16 writes as two, and line ends that some tools count as one.
character = st.one_of(
    st.characters(exclude_categories=["Cs"]), st.sampled_from('ab "\\\n\r\t\b\f\0\x1f\x7fé😀👩🏽‍🚀\u2028\ufffe/')
)
string = st.text(character, max_size=6)
mixed = st.lists(st.sampled_from(["\r\n", "😀", "a "]), max_size=12).map("".join)
text = st.one_of(st.text(character, max_size=40), mixed)


ALL_TAGS = Document("every tag", tuple("abcdef"), {"a": TAGS}, TAGS)


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    names = draw(st.lists(string, min_size=1, max_size=9, unique=True))
    return [*(draw(document(name)) for name in names), ALL_TAGS]


@st.composite
def document(draw: st.DrawFn, name: str) -> Document:
    split, unit = draw(st.sampled_from([None, "train", 'te"st'])), draw(st.sampled_from(list(Unit)))
    if draw(st.booleans()):
        tokens, whole, offsets = tuple(draw(st.lists(string, max_size=8))), None, None
    else:
        whole = draw(text)
        bounds = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=9)))
        offsets = tuple(pairwise(bounds))
        tokens = tuple(whole[start:end] for start, end in offsets)
    tags = st.tuples(*[st.sampled_from(TAGS)] * len(tokens))
    annotations = {who: draw(tags) for who in draw(st.sets(st.sampled_from("abc")))}
    gold = draw(st.one_of(st.none(), tags, st.tuples(*[st.sampled_from((None, *TAGS))] * len(tokens))))
    return Document(name, tokens, annotations, gold, split, whole, offsets, unit=unit)


def by_document(result: Result) -> bytes:
    return b"".join(encoded_lines(consensus_lines(result.export())))


def compiled(result: Result) -> bytes:
    lines = result.export().lines
    assert lines is not None
    pieces = list(lines())
    assert sum(number for number, _ in pieces) == len(result)
    return b"".join(piece for _, piece in pieces)


def consensus(corpus: Corpus, known: str | None) -> Result:
    gold = any(document.gold is not None for document in corpus)
    return quorate.aggregate(corpus, "mv", known="inline" if known and gold else None, scheme="bio")


@MANY
@given(documents(), st.sampled_from([None, "inline"]))
def test_lines_of_records_are_the_same(made: list[Document], known: str | None) -> None:
    result = consensus(Corpus(made), known)
    assert compiled(result) == by_document(result)


@MANY
@given(documents(), st.sampled_from([None, "inline"]), st.integers(0, 9))
def test_lines_of_files_are_the_same(made: list[Document], known: str | None, cut: int) -> None:
    plain = [replace(each, unit=Unit.CODE_POINTS) for each in made]  # which is what encoded corpora keep
    with tempfile.TemporaryDirectory() as folder:
        pieces = [each for each in (plain[:cut], plain[cut:]) if each]
        pieces = [[*each, replace(ALL_TAGS, id=f"every tag, {number}")] for number, each in enumerate(pieces)]
        for number, piece in enumerate(pieces):
            store(piece, f"{folder}/{number}.qr")
        files = [StoredCorpus(f"{folder}/{number}.qr") for number in range(len(pieces))]
        for corpus in (*files, JoinedCorpus(files)):
            result = consensus(corpus, known)
            assert compiled(result) == by_document(result)
            assert corpus.unannotated() == [each.id for each in corpus if not each.annotations]


def test_every_confidence_of_a_token_is_written_with_the_same_digits() -> None:
    """All that six decimals can say, and what lies half way between two of them."""
    rng = np.random.default_rng(0)
    sure = np.concatenate([np.arange(1_000_001) / 1e6, (np.arange(100_000) + 0.5) / 1e6, rng.random(100_000) ** 4])
    written = msgspec.json.decode(_one_document(sure), type=dict[str, msgspec.Raw])
    assert bytes(written["token_confidence"]) == msgspec.json.encode(np.round(sure, 6).tolist())


def _one_document(sure: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bytes:
    N, none = len(sure), np.zeros(0, np.uint8)
    name, no_split = np.frombuffer(b"1", np.uint8), np.full(1, -1, np.int32)
    word, whole, ends = np.zeros(N, np.int32), np.array([0, N]), np.zeros(1, np.int64)
    columns = DocumentColumns(
        whole, name, np.ones(1, np.int64), word, *quoted(["a"]),
        np.zeros(1, np.uint8), none, ends, word[:0], none, no_split, none, ends[:0],
    )  # fmt: skip
    number = np.frombuffer(b"1.0]", np.uint8)
    tags = (*quoted(["O"]), *quoted(["O"]))
    return bytes(lines_of(columns, ConsensusColumns(word, sure, word, 0, np.zeros(0, np.bool_), number, none, *tags)))


def test_strings_are_told_apart_by_their_quotes() -> None:
    names = ["", '"', '\\"', "\\", '","', "a", "é😀", "\n", "]["]
    strings, end = quoted(names)
    pieces = np.split(strings, end)[:-1]
    assert [msgspec.json.decode(bytes(piece)) for piece in pieces] == names


def test_half_a_character_is_refused_as_before(tmp_path: Path) -> None:
    result = quorate.aggregate(Corpus([Document("1", ("a", "\ud800"), {"ann": ("B-PER", "O")})]), "mv")
    for write in (by_document, compiled, lambda one: one.write(tmp_path / "out.jsonl")):
        with pytest.raises(UnicodeEncodeError):
            write(result)
    assert not list(tmp_path.iterdir())


def test_half_a_character_in_a_file_is_refused_as_before(tmp_path: Path) -> None:
    """An id with one is kept in an encoded corpus; one that is cut into two was made up."""
    store([Document("é\ud800", ("a",), {"ann": ("B-PER",)}), ALL_TAGS], tmp_path / "half.qr")
    result = quorate.aggregate(StoredCorpus(tmp_path / "half.qr"), "mv")
    for write in (by_document, compiled):
        with pytest.raises(UnicodeEncodeError):
            write(result)
    store([Document("é", ("a",), {"ann": ("B-PER",)}), ALL_TAGS], tmp_path / "cut.qr")
    corpus = StoredCorpus(tmp_path / "cut.qr")
    result = quorate.aggregate(corpus, "mv")
    corpus.arrays["id_end"][0] = 1
    for write in (by_document, compiled):
        with pytest.raises(quorate.InputError, match="its id is not UTF-8"):
            write(result)


def test_a_text_without_offsets_is_written_by_document() -> None:
    document = Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")}, text="Ada sang")
    result = quorate.aggregate(Corpus([document]), "mv")
    assert compiled(result) == by_document(result)


def test_only_what_compiled_code_can_write_is_given_to_it() -> None:
    result = quorate.aggregate(quorate.sample(), "mv")
    assert result.export().lines is not None
    assert result.export(probabilities=True).lines is None
    apart = Corpus([Document("1", ("a", "b", "c"), {"ann": ("B-X", "O", "B-X…")})])
    assert quorate.aggregate(apart, "mv").export().lines is None


@pytest.mark.parametrize("method", list(quorate.METHODS))
def test_lines_of_every_method_are_the_same(method: str) -> None:
    few = Corpus(quorate.sample().documents[:40])
    result = quorate.aggregate(few, method, known="inline" if method in ("best", "worst") else None)
    assert compiled(result) == by_document(result)


def test_lines_of_some_documents_and_of_some_spans_are_the_same() -> None:
    result = quorate.aggregate(quorate.sample(), "bsc-cm", max_iter=3)
    for part in (result.only([7, 3, 5]), result.only([]), result.surest(0.9), result.surest(0.9).only([1, 2])):
        assert compiled(part) == by_document(part)


def test_a_file_is_the_same_from_one_core_or_many(monkeypatch: pytest.MonkeyPatch) -> None:
    result = quorate.aggregate(quorate.sample(), "mv")
    written = []
    for threads in (1, 3):
        monkeypatch.setattr("quorate.result.lines.available_threads", lambda threads=threads: threads)
        written.append(compiled(result))
    assert written[0] == written[1] == by_document(result)


@pytest.mark.parametrize("name", ["out.jsonl", "out.conll"])
def test_how_far_a_write_has_come_is_told(name: str, tmp_path: Path) -> None:
    result, told = quorate.aggregate(quorate.sample(), "mv"), list[tuple[int, int]]()
    result.write(tmp_path / name, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(result), len(result))
    assert told == sorted(told)
    result.write(tmp_path / f"again-{name}")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes()


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, path = quorate.aggregate(quorate.sample(), "mv"), tmp_path / "out.jsonl"
    path.write_bytes(b"before")
    whole = Result._json_lines

    def interrupted(self: Result) -> Iterator[tuple[int, memoryview]]:
        lines = whole(self)
        yield next(lines)
        raise KeyboardInterrupt

    monkeypatch.setattr(Result, "_json_lines", interrupted)
    with pytest.raises(KeyboardInterrupt):
        result.write(path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
