"""CoNLL columns as other tools and corpora write them."""

from __future__ import annotations

from pathlib import Path

import pytest

import quorate
from quorate import Corpus, Document, InputError, SettingsError

CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
German JJ B-NP B-MISC
call NN I-NP O
. . O O

Peter NNP B-NP B-PER
Blackburn NNP I-NP I-PER
"""
LABEL_STUDIO = """-DOCSTART- -X- O
Ada -X- _ B-PER
Ng -X- _ I-PER
sang -X- _ O

Bo -X- _ B-PER
"""


def read(path: Path, text: str, **options: str) -> Corpus:
    path.write_text(text, encoding="utf-8", newline="")
    return quorate.read(path, **options)  # type: ignore[arg-type]


def tags(corpus: Corpus, annotator: str = "A1") -> list[tuple[object, ...]]:
    return [tuple(document.annotations[annotator]) for document in corpus]


def test_the_last_of_four_columns_has_the_tags(tmp_path: Path) -> None:
    corpus = read(tmp_path / "eng.train", CONLL_2003)
    assert tags(corpus) == [("B-ORG", "O", "B-MISC", "O", "O"), ("B-PER", "I-PER")]
    assert corpus.notes == (
        "tags are in column 4, and columns 2, 3 are not read; column 3 would read as tags too: --tag-column 3,4 takes "
        "all of them",
    )


def test_fillers_are_no_tags(tmp_path: Path) -> None:
    corpus = read(tmp_path / "export.conll", LABEL_STUDIO)
    assert [document.tokens for document in corpus] == [("Ada", "Ng", "sang"), ("Bo",)]
    assert tags(corpus) == [("B-PER", "I-PER", "O"), ("B-PER",)]
    assert corpus.notes == ("tags are in column 4, and columns 2, 3 are not read; --tag-column takes another",)


@pytest.mark.parametrize("ends", ["\r\n", "\n"])
@pytest.mark.parametrize("between", ["\t", "   "])
def test_tabs_and_blanks(tmp_path: Path, between: str, ends: str) -> None:
    text = CONLL_2003.replace(" ", between).replace("\n", ends)
    assert tags(read(tmp_path / "a.conll", text))[1] == ("B-PER", "I-PER")


def test_a_column_is_named_by_its_number(tmp_path: Path) -> None:
    chunks = read(tmp_path / "a.conll", CONLL_2003, tag_column="3")
    assert tags(chunks)[1] == ("B-NP", "I-NP")
    assert chunks.notes == ()
    both = read(tmp_path / "a.conll", CONLL_2003, tag_column="3,4")
    assert both["2"].annotations == {"A1": ("B-NP", "I-NP"), "A2": ("B-PER", "I-PER")}


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("5", r"no column '5' \(it has 4; --tag-column takes a number\)"),
        ("ner", r"no column 'ner' \(it has 4; --tag-column takes a number\)"),
        ("1", "column 1 has the words"),
    ],
)
def test_a_column_that_is_not_there(tmp_path: Path, column: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read(tmp_path / "a.conll", CONLL_2003, tag_column=column)


def test_only_columns_have_a_tag_column(tmp_path: Path) -> None:
    line = '{"tokens": ["Ada"], "annotations": {"ann": ["B-PER"]}}'
    with pytest.raises(SettingsError, match="--tag-column is for CoNLL columns"):
        read(tmp_path / "a.jsonl", line, tag_column="2")


@pytest.mark.parametrize("head", ["# token pos chunk ner\n", "word pos chunk ner\n", "FORM\tPOS\tCHUNK\tNER\n\n"])
def test_a_header_names_the_columns(tmp_path: Path, head: str) -> None:
    body = CONLL_2003.partition("\n\n")[2]
    corpus = read(tmp_path / "a.conll", head + (body.replace(" ", "\t") if "\t" in head else body))
    assert tags(corpus) == [("B-ORG", "O", "B-MISC", "O", "O"), ("B-PER", "I-PER")]
    named = read(tmp_path / "a.conll", "# token pos chunk ner\n" + body, tag_column="chunk")
    assert tags(named, "chunk")[1] == ("B-NP", "I-NP")


def test_annotators_beside_part_of_speech_are_taken_where_a_header_names_them(tmp_path: Path) -> None:
    corpus = read(tmp_path / "a.conll", "# token pos ann bob gold\nAda PROPN B-PER ? B-PER\nsang VERB O O O\n")
    assert corpus[0].annotations == {"ann": ("B-PER", "O"), "bob": (None, "O")}
    assert corpus[0].gold == ("B-PER", "O")


def test_a_header_is_no_token(tmp_path: Path) -> None:
    corpus = read(tmp_path / "a.conll", "word NOUN\nform NOUN\n")  # as its label is that of another token
    assert corpus[0].tokens == ("word", "form")


def test_columns_of_tags_alone_are_annotators_with_their_mistakes(tmp_path: Path) -> None:
    assert sorted(read(tmp_path / "a.conll", "Ada B-PER ?\nsang O O\n")[0].annotations) == ["A1", "A2"]
    corpus = read(tmp_path / "b.conll", "Ada B-PER PER\nNg I-PER I-PER\nsang O O\n")
    with pytest.raises(InputError, match="tag 'PER' is not of the scheme BIO"):
        corpus.tagset()


def test_a_number_may_come_before_the_token(tmp_path: Path) -> None:
    text = "# http://example.org \n1\tSchartau\tB-PER\tO\n2\tsagte\tO\tO\n\n# [2010]\n1\tBonn\tB-LOC\tB-ORG\n"
    corpus = read(tmp_path / "germeval.tsv", text, tag_column="3")
    assert [document.tokens for document in corpus] == [("Schartau", "sagte"), ("Bonn",)]
    assert tags(corpus) == [("B-PER", "O"), ("B-LOC",)]


def test_ids_of_multiconer(tmp_path: Path) -> None:
    corpus = read(tmp_path / "a.conll", "# id 7a-3e\tdomain=en\nAda _ _ B-PER\n\n# id 7b\tdomain=en\nBo _ _ B-PER\n")
    assert [document.id for document in corpus] == ["7a-3e", "7b"]


def test_iob1_is_read_as_bio(tmp_path: Path) -> None:
    text = "EU NNP I-NP I-ORG\nsays VBZ I-VP O\nGerman JJ I-NP I-MISC\nBritish JJ I-NP B-MISC\n\nPeter NNP I-NP I-PER\n"
    corpus = read(tmp_path / "a.conll", text)
    assert tags(corpus) == [("B-ORG", "O", "B-MISC", "B-MISC"), ("B-PER",)]
    assert "1 file marks spans as IOB1, which was read as BIO" in corpus.notes


def test_one_slip_in_bio_is_not_iob1(tmp_path: Path) -> None:
    text = "Ada I-PER\nsang O\nin O\nRome B-LOC\n\nBo B-PER\nNg I-PER\n"
    assert tags(read(tmp_path / "a.conll", text))[0] == ("I-PER", "O", "O", "B-LOC")


@pytest.mark.parametrize(
    ("given", "name"), [("B-PER L-PER O U-LOC", "BILOU"), ("B-PER E-PER O S-LOC", ""), ("B-PER E-PER O W-LOC", "BMES")]
)
def test_bioes_and_its_other_names(tmp_path: Path, given: str, name: str) -> None:
    words = ["Ada", "Ng", "in", "Rome"]
    rows = zip(words, given.split(), strict=True)
    corpus = read(tmp_path / "a.conll", "".join(f"{word} {tag}\n" for word, tag in rows))
    assert tags(corpus) == [("B-PER", "E-PER", "O", "S-LOC")]
    assert any(name in note for note in corpus.notes) if name else not corpus.notes
    assert corpus.tagset().scheme == "bioes"


def test_tokens_with_blanks_of_other_kinds(tmp_path: Path) -> None:
    corpus = read(tmp_path / "a.conll", "1\u00a0000 B-NUM\n\u3000 O\n👋🏽 O\nne\u0301e O\n")
    assert corpus[0].tokens == ("1\u00a0000", "\u3000", "👋🏽", "ne\u0301e")


def test_a_quotation_mark_is_a_token_in_a_table_with_tabs(tmp_path: Path) -> None:
    corpus = read(tmp_path / "a.tsv", 'word\tpos\tner\n"\tPUNCT\tO\nAda\tPROPN\tB-PER\n"\tPUNCT\tO\n')
    assert corpus[0].tokens == ('"', "Ada", '"')


def test_columns_without_tags_are_refused_with_what_to_do(tmp_path: Path) -> None:
    text = "1\tAda\tAda\tPROPN\tnsubj\n2\tsang\tsing\tVERB\troot\n"
    with pytest.raises(InputError, match=r"none of 4 columns beside the token reads as tags.*--tag-column 4"):
        read(tmp_path / "a.conllu", text)
    assert tags(read(tmp_path / "a.conllu", text, tag_column="4")) == [("PROPN", "VERB")]


def test_another_number_of_columns_is_told_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a.conll:7: 3 columns where 4 were expected \(as in the first row; tags are"):
        read(tmp_path / "a.conll", CONLL_2003.replace(". . O O", ". . O"))


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    given = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O"), "bob": (None, "O")}, ("B-PER", "O"))])
    quorate.formats.write(given, tmp_path / "a.conll")
    assert quorate.read(tmp_path / "a.conll")[0].annotations == given[0].annotations
