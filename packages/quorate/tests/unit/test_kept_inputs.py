"""What a project keeps of its inputs gives the same corpus as reading them, and is never trusted blindly."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import quorate
from quorate.corpus.records import Corpus, Document
from quorate.corpus.tags import Invalid
from quorate.crowd.crowd import Crowd
from quorate.crowd.encode import encode
from quorate.errors import InputError
from quorate.formats import digest_of
from quorate.project.inputs import KeptInputs
from quorate.storage.kept_files import KeptCorpus

TOKENS = [
    {
        "id": "1",
        "tokens": ["Ada", "Ng", "sang"],
        "annotations": {"bob": ["B-PER", "I-PER", "O"], "ann": ["O", "I-PER", None]},
    },
    {"id": "2", "tokens": ["Rome"], "annotations": {"ann": ["B-LOC"]}, "gold": ["B-GPE"], "split": "dev"},
    {"id": "3", "tokens": ["nobody", "looked"], "annotations": {}},
]
TEXTS = [
    {"id": "4", "text": "Ada 🎵 sang.", "annotations": {"eve": [{"start": 0, "end": 3, "label": "PER"}], "ann": []}},
    {"id": "ü", "text": "", "annotations": {"eve": []}, "split": "test"},
]
SOFT = [{"id": "5", "tokens": ["Ada"], "annotations": {"model": [{"B-PER": 0.7, "O": 0.3}]}}]


class Project:
    """Inputs in a folder, what is kept of them, and which files were read."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.read_files = folder, list[str]()

    def put(self, name: str, records: Sequence[object]) -> str:
        path = self.folder / name
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
        return str(path)

    def corpus(self, *inputs: str, version: str = "1", **options: object) -> Corpus:
        self.read_files = []

        def read(paths: Sequence[str]) -> Corpus:
            self.read_files += paths
            return quorate.read(*paths, **options)  # type: ignore[arg-type]

        kept = KeptInputs(self.folder / "kept", {path: digest_of(path) for path in inputs}, version)
        return kept.corpus(inputs, options, read)

    @property
    def kept(self) -> list[Path]:
        return sorted((self.folder / "kept").glob("*"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def assert_same(found: Corpus, expected: Corpus) -> None:
    assert tuple(found) == expected.documents
    assert found.documents == expected.documents
    assert (tuple(found.notes), found.digests, found.profiles) == (
        tuple(expected.notes),
        expected.digests,
        expected.profiles,
    )
    assert found.used_tags() == expected.used_tags()
    assert (found.annotators, found.n_tokens, found.n_labels) == (
        expected.annotators,
        expected.n_tokens,
        expected.n_labels,
    )
    for invalid in (Invalid.REPAIR, Invalid.KEEP):
        one, other = (encode(corpus, corpus.tagset(), invalid=invalid) for corpus in (found, expected))
        assert_same_arrays(one, other)


def assert_same_arrays(one: Crowd, other: Crowd) -> None:
    assert (one.tagset, one.annotators, one.words, one.repaired) == (
        other.tagset,
        other.annotators,
        other.words,
        other.repaired,
    )
    for name in ("doc_start", "word", "event_start", "event_cell"):
        mine, theirs = getattr(one, name), getattr(other, name)
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype
    for mine, theirs in zip(one.cells, other.cells, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("contents", [[TOKENS], [TEXTS], [TOKENS, TEXTS], [TEXTS, TOKENS]])
def test_what_is_kept_is_what_would_be_read(project: Project, contents: list[list[object]]) -> None:
    inputs = [project.put(f"{n}.jsonl", records) for n, records in enumerate(contents)]
    expected = quorate.read(*inputs)
    assert_same(project.corpus(*inputs), expected)
    assert project.read_files == inputs
    again = project.corpus(*inputs)
    assert project.read_files == []
    assert_same(again, expected)


def test_a_whole_crowd_is_fitted_to_the_same_bits(project: Project, sample: Corpus) -> None:
    quorate.formats.write(Corpus(sample.documents[:300]), project.folder / "a.jsonl")
    quorate.formats.write(Corpus(sample.documents[300:]), project.folder / "b.jsonl")
    inputs = [str(project.folder / name) for name in ("a.jsonl", "b.jsonl")]
    project.corpus(*inputs)
    results = [
        quorate.BSC("seq", max_iter=3).fit(one).result_ for one in (project.corpus(*inputs), quorate.read(*inputs))
    ]
    assert project.read_files == []
    np.testing.assert_array_equal(results[0].posterior, results[1].posterior)
    assert results[0].tags == results[1].tags


def test_only_what_has_changed_is_read(project: Project) -> None:
    first, second = project.put("a.jsonl", TOKENS), project.put("b.jsonl", TEXTS)
    project.corpus(first, second)
    project.put("b.jsonl", TEXTS[:1])
    found = project.corpus(first, second)
    assert project.read_files == [second]
    assert_same(found, quorate.read(first, second))


def test_what_is_kept_of_other_inputs_is_deleted(project: Project) -> None:
    first, second = project.put("a.jsonl", TOKENS), project.put("b.jsonl", TEXTS)
    project.corpus(first, second)
    assert len(project.kept) == 2
    project.corpus(second)
    assert len(project.kept) == 1
    project.put("b.jsonl", TEXTS[:1])
    project.corpus(second)
    assert len(project.kept) == 1
    project.corpus(second, map_labels={"PER": "PERSON"})
    assert not project.kept


@pytest.mark.parametrize("damage", ["cut off", "a byte", "empty", "of another kind", "another version of the program"])
def test_what_is_damaged_or_old_is_read_again_and_kept_anew(project: Project, damage: str) -> None:
    path = project.put("a.jsonl", TOKENS)
    project.corpus(path)
    (place,) = project.kept
    content = bytearray(place.read_bytes())
    if damage == "cut off":
        place.write_bytes(content[: len(content) // 2])
    elif damage == "a byte":
        content[-1] ^= 1
        place.write_bytes(content)
    elif damage == "empty":
        place.write_bytes(b"")
    elif damage == "of another kind":
        from quorate.storage.corpora import store

        store(quorate.read(path), place)
    version = "2" if "version" in damage else "1"
    found = project.corpus(path, version=version)
    assert project.read_files == [path]
    assert_same(found, quorate.read(path))
    project.corpus(path, version=version)
    assert project.read_files == []


def test_numbers_that_name_nothing_are_found(project: Project, tmp_path: Path) -> None:
    kept = KeptCorpus.of(quorate.read(project.put("a.jsonl", TOKENS)))
    assert kept is not None
    kept._arrays["word"] = kept._arrays["word"] + 1000
    kept.keep(tmp_path / "kept")
    with pytest.raises(InputError, match="word"):
        KeptCorpus.opened(tmp_path / "kept")


def test_a_document_in_two_files_is_read_as_one(project: Project) -> None:
    first = project.put("a.jsonl", TOKENS[:1])
    second = project.put("b.jsonl", [TOKENS[0] | {"annotations": {"eve": ["O", "O", "O"]}}])
    for _ in range(2):
        found = project.corpus(first, second)
        assert list(found[0].annotations) == ["bob", "ann", "eve"]
        assert_same(found, quorate.read(first, second))


def test_two_files_with_notes_are_read_together(project: Project) -> None:
    overlapping = {"start": 0, "end": 2, "label": "X"}, {"start": 0, "end": 1, "label": "X"}
    records = [{"id": name, "text": "ab", "annotations": {"ann": overlapping}} for name in "12"]
    inputs = [project.put(f"{n}.jsonl", [record]) for n, record in enumerate(records)]
    for _ in range(2):
        assert_same(project.corpus(*inputs), quorate.read(*inputs))


@pytest.mark.parametrize("options", [{"map_labels": {"PER": "PERSON"}}, {"annotator_from": "folder"}])
def test_options_that_change_names_keep_nothing(project: Project, options: dict[str, object]) -> None:
    one = TOKENS[0] | {"annotations": {"bob": ["B-PER", "I-PER", "O"]}}
    path = project.put("a.jsonl", [one])
    assert tuple(project.corpus(path, **options)) == quorate.read(path, **options).documents  # type: ignore[arg-type]
    assert not project.kept


def test_probabilities_are_not_kept(project: Project) -> None:
    path = project.put("a.jsonl", SOFT)
    for _ in range(2):
        found = project.corpus(path)
        assert project.read_files
        assert tuple(found) == quorate.read(path).documents
    assert not project.kept


def test_encoded_corpora_are_used_as_they_are(project: Project, sample: Corpus) -> None:
    from quorate.storage.corpora import StoredCorpus, store

    path = str(project.folder / "sample.qr")
    store(sample, path)
    assert isinstance(project.corpus(path), StoredCorpus)
    assert not project.kept


def test_annotations_are_a_mapping_like_any_other(project: Project) -> None:
    path = project.put("a.jsonl", TOKENS)
    project.corpus(path)
    document = project.corpus(path)[0]
    assert project.read_files == []
    assert dict(document.annotations) == quorate.read(path)[0].annotations
    assert len(document.annotations) == 2
    assert repr(document.annotations) == repr(dict(document.annotations))
    assert pickle.loads(pickle.dumps(document)) == document
    assert type(pickle.loads(pickle.dumps(document)).annotations) is dict


def test_where_nothing_can_be_kept_the_run_goes_on(project: Project) -> None:
    path = project.put("a.jsonl", TOKENS)
    (project.folder / "kept").write_text("a file where the folder should be")
    assert_same(project.corpus(path), quorate.read(path))


def without_ids(records: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    return [{name: value for name, value in record.items() if name != "id"} for record in records]


@pytest.mark.parametrize("name", ["b.jsonl", "b.conll"])
def test_documents_without_ids_are_numbered_as_if_read_together(project: Project, name: str) -> None:
    named = [record | {"id": f"named {n}"} for n, record in enumerate(TOKENS)]
    inputs = [project.put("a.jsonl", named), project.put(name, without_ids(TEXTS))]
    if name == "b.conll":
        Path(inputs[1]).write_text("Ada B-PER\n\nsang O\n")
    for _ in range(2):
        found = project.corpus(*inputs)
        assert_same(found, quorate.read(*inputs))
        assert [document.id for document in found] == ["named 0", "named 1", "named 2", "4", "5"]


def test_numbers_of_a_single_file_are_kept(project: Project) -> None:
    path = project.put("a.jsonl", without_ids(TOKENS))
    project.corpus(path)
    assert_same(project.corpus(path), quorate.read(path))
    assert project.read_files == []


def test_a_file_without_documents_is_read_with_the_others(project: Project) -> None:
    inputs = [project.put("a.jsonl", TOKENS), str(project.folder / "b.conll")]
    Path(inputs[1]).write_text("# nothing yet\n")
    for _ in range(2):
        assert_same(project.corpus(*inputs), quorate.read(*inputs))
    with pytest.raises(InputError, match="no document in it"):
        project.corpus(inputs[1])


def test_a_text_beside_the_file_is_not_forgotten(project: Project) -> None:
    path = project.folder / "a.ann"
    path.write_text("T1\tPER 0 3\tAda\n")
    for text in ("Ada sang", "Ada slept"):
        path.with_suffix(".txt").write_text(text)
        assert project.corpus(str(path), format="brat")[0].text == text
        assert project.read_files == [str(path)]
    assert not project.kept


def test_what_a_file_says_of_the_annotators_of_another_is_not_lost(project: Project) -> None:
    answer = {"id": "9", "text": "Ada sang", "model": "eve", "answer": "nothing that could be read"}
    inputs = [project.put("a.jsonl", TEXTS), project.put("b.jsonl", [answer])]
    expected = quorate.read(*inputs)
    assert "eve" in expected.profiles
    assert quorate.read(inputs[1]).profiles == {}
    for _ in range(2):
        assert_same(project.corpus(*inputs), expected)


def test_what_cannot_be_kept_is_read_once(project: Project) -> None:
    soft, plain = project.put("a.jsonl", SOFT), project.put("b.jsonl", TOKENS)
    project.corpus(soft)
    assert project.read_files == [soft]
    for inputs in ([soft, plain], [plain, soft]):
        expected = quorate.read(*inputs)
        found = project.corpus(*inputs)
        assert sorted(project.read_files) == ([soft, plain] if inputs[0] == soft else [soft])
        for corpus in (found, project.corpus(*inputs)):
            assert tuple(corpus) == expected.documents
            assert (corpus.notes, corpus.digests, corpus.profiles) == (
                expected.notes,
                expected.digests,
                expected.profiles,
            )
        assert project.read_files == [soft]


def test_what_has_to_be_read_with_the_others_is_read_once(project: Project) -> None:
    inputs = [project.put("a.jsonl", TOKENS), project.put("b.jsonl", without_ids(TEXTS))]
    project.corpus(*inputs)
    project.put("a.jsonl", TOKENS[:2])
    found = project.corpus(*inputs)
    assert project.read_files == inputs, "b is known to be numbered, so that a is not read alone"
    assert_same(found, quorate.read(*inputs))


def test_soft_labels_of_a_document_in_another_file_are_read_together(project: Project) -> None:
    inputs = [project.put("a.jsonl", SOFT), project.put("b.jsonl", [*TOKENS, SOFT[0] | {"annotations": {}}])]
    for _ in range(2):
        assert tuple(project.corpus(*inputs)) == quorate.read(*inputs).documents


def test_more_splits_than_numbers_are_not_kept() -> None:
    documents = [Document(str(n), ("a",), {"ann": ("O",)}, split=f"s{n}") for n in range(32_768)]
    assert KeptCorpus.of(Corpus(documents)) is None
    halves = [KeptCorpus.of(Corpus(part)) for part in (documents[:20_000], documents[20_000:])]
    assert KeptCorpus.joined([half for half in halves if half is not None]) is None
    assert KeptCorpus.joined([]) is None


def test_names_that_no_file_holds_are_read_each_time(project: Project) -> None:
    try:
        path = project.put(os.fsdecode(b"\xff.jsonl"), TOKENS)
    except OSError:
        pytest.skip("the disk takes no such name")
    for _ in range(2):
        assert tuple(project.corpus(path)) == quorate.read(path).documents
        assert project.read_files == [path]


def test_what_cannot_be_deleted_does_not_keep_the_rest(project: Project) -> None:
    path = project.put("a.jsonl", TOKENS)
    project.corpus(path)
    for name in "abc":
        (project.folder / "kept" / name).mkdir()
        (project.folder / "kept" / f"{name}.old").touch()
    project.corpus(path)
    assert [place.suffix for place in project.kept if place.is_file()] == [""]
