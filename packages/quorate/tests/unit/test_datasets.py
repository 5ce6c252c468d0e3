"""The converters on tiny hand-made archives that have every quirk of the real ones."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from quorate.corpus.records import Corpus
from quorate.datasets import DATASETS, convert, read_ner, read_pico
from quorate.datasets.pico_tokens import PicoTokenizer
from quorate.errors import InputError, SettingsError
from quorate.formats import jsonl, read

GOLD = "\nGermany B-LOC\nbeat O\nBrazil/B-MISC O\n\nNew B-LOC\nYork I-LOC\nslept O\n"


def zipped(folder: Path, workers: dict[str, str], gold: str = GOLD, split: str = "val") -> Path:
    file = folder / "ner.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"task/{split}/ground_truth/art.txt", gold)
        for worker, lines in workers.items():
            archive.writestr(f"task/{split}/mturk_train_data/{worker}/art.txt", lines)
    return file


def tags_of(corpus: Corpus, worker: str) -> list[str | None]:
    return [tag for document in corpus for tag in document.annotations[worker]]  # type: ignore[misc]


def noted(corpus: Corpus, part: str) -> int:
    """The number in the one note that has these words."""
    [note] = [note for note in corpus.notes if part in note]
    return int(note.split()[0])


class TestNer:
    def test_sentences_ids_gold_and_split(self, tmp_path: Path) -> None:
        lines = "\nGermany B-LOC\nbeat O\nBrazil B-LOC\n\nNew B-LOC\nYork I-LOC\nslept O\n"
        corpus = read_ner(zipped(tmp_path, {"w2": lines, "w1": lines}))
        assert [document.id for document in corpus] == ["art#000", "art#001"]
        assert [document.tokens for document in corpus] == [("Germany", "beat", "Brazil"), ("New", "York", "slept")]
        assert [document.gold for document in corpus] == [("B-LOC", "O", "O"), ("B-LOC", "I-LOC", "O")]
        assert {document.split for document in corpus} == {"dev"}
        assert list(corpus[0].annotations) == ["w1", "w2"]
        assert corpus[1].annotations["w1"] == ("B-LOC", "I-LOC", "O")
        assert noted(corpus, "in the expert's files was taken off") == 1
        assert corpus[1].where(1).endswith("ground_truth/art.txt:7: document 'art#001', token 2")

    def test_dev_comes_before_test_and_articles_by_name(self, tmp_path: Path) -> None:
        file = tmp_path / "ner.zip"
        with zipfile.ZipFile(file, "w") as archive:
            for split, article in (("test", "a"), ("val", "c"), ("val", "b")):
                for part in ("ground_truth", "mturk_train_data/w"):
                    archive.writestr(f"{split}/{part}/{article}.txt", "Ada B-PER\n")
        assert [(document.id, document.split) for document in read_ner(file)] == [
            ("b#000", "dev"),
            ("c#000", "dev"),
            ("a#000", "test"),
        ]

    def test_a_split_token_takes_the_tag_of_its_last_piece(self, tmp_path: Path) -> None:
        lines = "German B-MISC\ny O\nbeat O\nBra O\nzil B-LOC\n\nNew O\nYo B-ORG\nr I-ORG\nk I-LOC\nslept O\n"
        corpus = read_ner(zipped(tmp_path, {"w": lines}))
        assert tags_of(corpus, "w") == ["O", "O", "B-LOC", "O", "I-LOC", "O"]
        assert noted(corpus, "had split") == 3
        assert noted(corpus, "another number of lines") == 1

    def test_joined_tokens_are_one_span(self, tmp_path: Path) -> None:
        lines = "Germanybeat O\nBrazil O\n\nNewYork B-LOC\nslept O\n"
        corpus = read_ner(zipped(tmp_path, {"w": lines}))
        assert tags_of(corpus, "w") == ["O", "O", "O", "B-LOC", "I-LOC", "O"]
        assert noted(corpus, "had joined") == 2
        assert not [note for note in corpus.notes if "had split" in note]

    def test_tokens_cut_elsewhere_take_the_piece_they_end_in(self, tmp_path: Path) -> None:
        lines = "Germany O\nbeat O\nBrazil O\n\nNe B-LOC\nwYor I-LOC\nk O\nslept O\n"
        corpus = read_ner(zipped(tmp_path, {"w": lines}))
        assert tags_of(corpus, "w")[3:] == ["I-LOC", "O", "O"]
        assert noted(corpus, "had split") == 2

    def test_tags_written_onto_tokens_are_taken_off(self, tmp_path: Path) -> None:
        lines = "Germany/LOS/LOC B-LOC\nbeat O\nBrazil/I-PER O\n\nNew O\nYork/MISC O\nslept O\n"
        corpus = read_ner(zipped(tmp_path, {"w": lines}))
        assert tags_of(corpus, "w") == ["B-LOC", "O", "O", "O", "O", "O"]
        assert noted(corpus, "in workers' files were taken off") == 3

    def test_a_slash_that_is_no_tag_stays(self, tmp_path: Path) -> None:
        corpus = read_ner(zipped(tmp_path, {"w": "1/2 O\n/ O\n"}, gold="1/2 O\n/ O\n"))
        assert corpus[0].tokens == ("1/2", "/")

    def test_labels_without_a_token_are_left_out_and_counted(self, tmp_path: Path) -> None:
        lines = "Germany B-LOC\n I-LOC\nbeat O\nBrazil O\n  B-PER\n\nNew O\nYork O\nslept O\n"
        corpus = read_ner(zipped(tmp_path, {"w": lines}))
        assert tags_of(corpus, "w") == ["B-LOC", "O", "O", "O", "O", "O"]
        assert noted(corpus, "labels without a token") == 2

    def test_what_spells_something_else_is_not_seen(self, tmp_path: Path) -> None:
        lines = "Germany B-LOC\nbeat O\nBrazil/B-MI O\nSC B-ORG\n\nNew O\nslept O\n"
        corpus = read_ner(zipped(tmp_path, {"w": lines}))
        assert tags_of(corpus, "w") == ["B-LOC", "O", None, "O", None, "O"]
        assert noted(corpus, "are null there") == 2
        assert noted(corpus, "have no counterpart in the expert's tokens") == 2

    def test_articles_with_one_side_only_are_counted(self, tmp_path: Path) -> None:
        file = zipped(tmp_path, {"w": "Germany O\nbeat O\nBrazil O\nNew O\nYork O\nslept O\n"})
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr("task/test/ground_truth/lonely.txt", "Ada B-PER\n")
            archive.writestr("task/test/mturk_train_data/w/stray.txt", "Ada B-PER\n")
        corpus = read_ner(file)
        assert len(corpus) == 2
        assert noted(corpus, "no worker tagged") == 1
        assert noted(corpus, "without an expert's file") == 1

    @pytest.mark.parametrize(
        ("gold", "worker", "where", "what"),
        [
            (GOLD, "\nGermany LOC\n", "mturk_train_data/w/art.txt:2", "'LOC' is not a tag"),
            ("Ada\n", "Ada O\n", "ground_truth/art.txt:1", "'Ada' is not a tag"),
            (" B-PER\n", "Ada O\n", "ground_truth/art.txt:1", "stands without a token"),
            ("\n", "\n", "ner.zip", "no article"),
        ],
    )
    def test_bad_lines_say_where(self, tmp_path: Path, gold: str, worker: str, where: str, what: str) -> None:
        with pytest.raises(InputError, match=what) as caught:
            read_ner(zipped(tmp_path, {"w": worker}, gold=gold))
        assert where in str(caught.value)


TEXT = "Trial in twins.\n\nWe asked (8 adult) twins and boys."


def crowd(text_id: str, **spans: list[list[int]]) -> str:
    return json.dumps({"docid": text_id, "Participants": spans}) + "\n"


def tarred(folder: Path, files: dict[str, str], *, top: str = "") -> Path:
    file = folder / "pico.tar.gz"
    usual = {f"annotations/{name}/PICO-annos-crowdsourcing.json": "" for name in ("acl17-test", "train", "test", "dev")}
    usual["annotations/acl17-test/PICO-annos-professional.json"] = ""
    with tarfile.open(file, "w:gz") as archive:
        for name, content in (usual | files).items():
            member = tarfile.TarInfo(top + name)
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return file


GOLD_CROWD = "annotations/acl17-test/PICO-annos-crowdsourcing.json"
GOLD_EXPERTS = "annotations/acl17-test/PICO-annos-professional.json"
TRAIN = "annotations/train/PICO-annos-crowdsourcing.json"


class TestPico:
    def test_title_and_abstract_are_two_documents(self, tmp_path: Path) -> None:
        files = {"docs/7.txt": TEXT, TRAIN: crowd("7", w2=[[9, 14], [36, 41]], w1=[])}
        title, abstract = read_pico(tarred(tmp_path, files))
        assert (title.id, abstract.id) == ("7:title", "7:abstract")
        assert title.tokens == ("Trial", "in", "twins", ".")
        assert abstract.tokens == ("We", "asked", "(", "8", "adult", ")", "twins", "and", "boys", ".")
        assert title.annotations == {"w1": ("O",) * 4, "w2": ("O", "O", "B-P", "O")}
        assert list(title.annotations) == ["w1", "w2"]
        assert abstract.annotations["w2"][5:8] == ("O", "B-P", "O")
        assert (title.gold, title.split) == (None, None)
        assert title.source is not None
        assert title.source.at().endswith("annotations/train/PICO-annos-crowdsourcing.json:1")

    def test_folders_in_order_and_a_folder_around_everything(self, tmp_path: Path) -> None:
        files = {f"docs/{number}.txt": TEXT for number in "1234"}
        for number, folder in zip("1234", ("dev", "test", "train", "acl17-test"), strict=True):
            files[f"annotations/{folder}/PICO-annos-crowdsourcing.json"] = crowd(number, w=[])
        corpus = read_pico(tarred(tmp_path, files, top="PICO-data/"))
        assert [document.id for document in corpus][::2] == ["4:title", "3:title", "2:title", "1:title"]

    def test_spans_are_sorted_widened_and_cut_at_the_abstract(self, tmp_path: Path) -> None:
        spans = [[36, 39], [27, 34], [33, 35], [10, 19], [15, 16]]
        title, abstract = corpus = read_pico(tarred(tmp_path, {"docs/7.txt": TEXT, TRAIN: crowd("7", w=spans)}))
        assert title.annotations["w"] == ("O", "O", "B-P", "I-P")
        assert abstract.annotations["w"] == ("B-P", "O", "O", "B-P", "B-P", "I-P", "B-P", "O", "O", "O")
        assert noted(corpus, "were widened") == 3
        assert noted(corpus, "overlapped an earlier one") == 2
        assert noted(corpus, "cut in two") == 1
        assert noted(corpus, "held no token") == 1

    def test_touching_spans_are_two_of_a_worker_but_one_of_gold(self, tmp_path: Path) -> None:
        spans = [[9, 14], [14, 15]]
        files = {"docs/7.txt": TEXT, GOLD_CROWD: crowd("7", w=spans), GOLD_EXPERTS: crowd("7", expert=spans)}
        corpus = read_pico(tarred(tmp_path, files))
        assert corpus[0].annotations["w"] == ("O", "O", "B-P", "B-P")
        assert corpus[0].gold == ("O", "O", "B-P", "I-P")
        assert noted(corpus, "of professionals that touched") == 1

    def test_gold_without_spans_is_all_outside_and_decides_the_split(self, tmp_path: Path) -> None:
        half = "1780092"  # the one abstract whose title is tested on and whose abstract is not
        whole = "10390665"
        files = {f"docs/{number}.txt": TEXT for number in (half, whole, "7", "8")}
        files[GOLD_CROWD] = "".join(crowd(number, w=[]) for number in (half, whole, "7"))
        files[GOLD_EXPERTS] = "".join(crowd(number) for number in (half, whole, "7", "8"))
        corpus = read_pico(tarred(tmp_path, files))
        assert corpus[0].gold == ("O",) * 4
        assert [document.split for document in corpus] == ["test", "dev", "test", "test", "dev", "dev"]
        assert noted(corpus, "no worker saw") == 1

    @pytest.mark.parametrize(
        ("files", "where", "what"),
        [
            ({}, "pico.tar.gz", "no document"),
            ({TRAIN: crowd("7", w=[])}, "crowdsourcing.json:1", "no file docs/7.txt"),
            ({TRAIN: crowd("7", w=[[3, 99]]), "docs/7.txt": TEXT}, "crowdsourcing.json:1", "span 3–99 is not in"),
            ({GOLD_EXPERTS: crowd("7", w=[[3, 3]]), "docs/7.txt": TEXT}, "professional.json:1", "span 3–3 is not in"),
            ({TRAIN: crowd("7", w=[]), "docs/7.txt": "One line."}, "docs/7.txt", "no title, blank line and abstract"),
            ({TRAIN: '\n{"docid": "7"}'}, "crowdsourcing.json:2", "not the spans of an abstract"),
        ],
    )
    def test_bad_content_says_where(self, tmp_path: Path, files: dict[str, str], where: str, what: str) -> None:
        with pytest.raises(InputError, match=what) as caught:
            read_pico(tarred(tmp_path, files))
        assert where in str(caught.value)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Women (n=12), aged 18-40.", "Women|(|n=12|)|,|aged|18|-|40|."),
        ("dose-response: 5%; p<0.01", "dose|-|response|:|5|%|;|p<0.01"),
        ("We cannot, didn't and won't.", "We|can|not|,|did|n't|and|wo|n't|."),
        ("Patients' and child's mg/d.", "Patients|'|and|child|'s|mg|/|d."),
        ("(see www.some-where.org/a-b).", "(|see|www.some-where.org/a-b|)|."),
        ("tea and/or milk, e.g., at 37°C.", "tea|and/or|milk|,|e.g.|,|at|37|°|C|."),
        ("Tea(R):\u00a0end.Start", "Tea(R|):|end|.|Start"),
    ],
)
def test_tokens(text: str, tokens: str) -> None:
    cut = PicoTokenizer().offsets(text)
    assert [text[start:end] for start, end in cut] == tokens.split("|")


class TestArchives:
    @pytest.mark.parametrize("reader", [read_ner, read_pico])
    def test_not_an_archive_is_one_line(self, tmp_path: Path, reader: object) -> None:
        file = tmp_path / "plain.txt"
        file.write_text("nothing packed here")
        for path, what in (
            (file, "cannot be read as"),
            (tmp_path / "none", "no such file"),
            (tmp_path, "cannot be read"),
        ):
            with pytest.raises(InputError, match=what) as caught:
                reader(path)  # type: ignore[operator]
            assert "\n" not in str(caught.value)
            assert str(caught.value).startswith(f"{path}: ")

    def test_the_wrong_archive(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
            archive.writestr("readme.txt", "hello")
        with tarfile.open(tmp_path / "other.tar", "w"):
            pass
        with pytest.raises(InputError, match=r"no ground_truth folder .*give crf-ma-NER-task1.zip"):
            read_ner(tmp_path / "other.zip")
        with pytest.raises(InputError, match=r"no file annotations/acl17-test/.*give PICO-data.tar.gz"):
            read_pico(tmp_path / "other.tar")

    def test_a_cut_off_archive(self, tmp_path: Path) -> None:
        file = tarred(tmp_path, {"docs/7.txt": TEXT * 500, TRAIN: crowd("7", w=[])})
        file.write_bytes(file.read_bytes()[:-40])
        with pytest.raises(InputError, match="or get it again"):
            read_pico(file)

    def test_text_that_is_not_utf8(self, tmp_path: Path) -> None:
        file = zipped(tmp_path, {})
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr("task/val/mturk_train_data/w/art.txt", b"\xff O\n")
        with pytest.raises(InputError, match="not UTF-8 text"):
            read_ner(file)


def test_convert_by_name_and_write_as_jsonl(tmp_path: Path) -> None:
    assert list(DATASETS) == ["ner", "pico"]
    corpus = convert("pico", tarred(tmp_path, {"docs/7.txt": TEXT, TRAIN: crowd("7", w=[[9, 14]])}))
    with open(tmp_path / "out.jsonl", "wb") as stream:
        jsonl.write_corpus(corpus, stream)
    again = read(tmp_path / "out.jsonl")
    assert [(d.id, d.tokens, d.annotations) for d in again] == [(d.id, d.tokens, d.annotations) for d in corpus]
    assert len(corpus.digests) == 1
    with pytest.raises(SettingsError, match="one of: ner, pico"):
        convert("arg", "x.zip")
