"""Spreadsheets with a column an annotator: what is read, what is told, and what is refused."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

import quorate
from quorate import Corpus, Document, InputError, OutputError, formats
from quorate.formats import format_of
from quorate.formats.sheet import NOBODYS

ASKED = """doc,token,ann,ben,cy
d1,Peter,B-PER,B-PER,O
d1,Smith,I-PER,O,O
"""
SAID = {"ann": ("B-PER", "I-PER"), "ben": ("B-PER", "O"), "cy": ("O", "O")}


def sheet(folder: Path, content: str | bytes, name: str = "crowd.csv", format: str | None = None) -> Corpus:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return quorate.read(path, format=format)


@pytest.mark.parametrize(
    "content",
    [
        ASKED,
        ASKED.replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + ASKED.encode(),
        ASKED.replace(",", ";"),
        ASKED.replace(",", "\t"),
        ASKED.replace(",", ", "),
        "\n" + ASKED,
        ASKED.replace("doc,", "Document,").replace("token", '"Word"'),
        ASKED.replace("B-PER", " B-PER "),
        ASKED.replace("\n", ",,\n"),  # empty columns at the right
        "".join(f"{number or ''},{line}\n" for number, line in enumerate(ASKED.splitlines())),
    ],
    ids=[
        "as it is", "windows", "byte order mark", "semicolons", "tabs", "blanks", "an empty line first", "other names",
        "blanks around tags", "empty columns", "numbered rows",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["crowd.csv", "crowd.tsv"])
def test_a_sheet_is_known_by_its_content(tmp_path: Path, content: str | bytes, name: str) -> None:
    (document,) = sheet(tmp_path, content, name)
    assert (document.id, document.tokens, document.annotations) == ("d1", ("Peter", "Smith"), SAID)
    assert document.where(1).startswith(f"{tmp_path / name}:{4 if content == chr(10) + ASKED else 3}: ")


@pytest.mark.parametrize("empty", ["", ",,,", " , , , "])
def test_without_a_column_for_it_an_empty_row_ends_a_document(tmp_path: Path, empty: str) -> None:
    content = f"token,ann,ben,gold\nAda,B-PER,O,B-PER\nsang,O,O,\n{empty}\n{empty}\nRome,,B-LOC,\n"
    first, second = sheet(tmp_path, content)
    assert (first.id, first.annotations) == ("1", {"ann": ("B-PER", "O"), "ben": ("O", "O")})
    assert first.gold == ("B-PER", None)
    assert (second.id, second.annotations, second.gold) == ("2", {"ben": ("B-LOC",)}, None)  # ann has not seen it
    assert second.where(0).startswith(f"{tmp_path / 'crowd.csv'}:6: ")


def test_files_without_a_column_for_documents_are_numbered_on(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(f"token,ann,ben\n{name},B-PER,O\n")
    assert [(one.id, one.tokens[0]) for one in quorate.read(tmp_path)] == [("1", "a.csv"), ("2", "b.csv")]


@pytest.mark.parametrize("name", ["Sentence #", "sent_id", "doc_id", "id", "task"])
def test_the_name_of_a_document_may_stand_in_its_first_row_alone(tmp_path: Path, name: str) -> None:
    content = (
        f"{name},Word,POS,ann,ben,split\ns1,Ada,NNP,B-PER,O,dev\n,sang,VB,O,O,\ns2,Hush,UH,O,O,test\ns1,.,.,O,O,\n"
    )
    corpus = sheet(tmp_path, content)
    assert [(one.id, one.tokens, one.split) for one in corpus] == [
        ("s1", ("Ada", "sang", "."), "dev"),
        ("s2", ("Hush",), "test"),
    ]
    assert corpus.annotators == ("ann", "ben")
    assert corpus.notes == ("columns with no tags are left out: POS",)


def test_no_note_names_a_column_that_may_be_called_like_somebody(tmp_path: Path) -> None:
    path = tmp_path / "crowd.csv"
    path.write_text("doc,token,ann,Ben Miller,No\nd,Ada,B-PER,yes,B-PER\nd,sang,O,no,O\n")
    corpus = quorate.read(path, pseudonymise=tmp_path / "names.json")
    assert "Miller" not in " ".join(corpus.notes)
    assert corpus.notes == (
        "columns that hold tags are not read, because of their names: no (rename one that is an annotator's)",
        "columns with no tags are left out: 1",
    )


def test_ids_that_every_row_has_another_of_are_not_those_of_documents(tmp_path: Path) -> None:
    corpus = sheet(tmp_path, "id,token,ann,ben\n1,Ada,B-PER,O\n2,sang,O,O\n,,,\n1,Hush,O,O\n")
    assert [one.tokens for one in corpus] == [("Ada", "sang"), ("Hush",)]


def test_the_id_of_one_row_alone_is_that_of_its_document(tmp_path: Path) -> None:
    (document,) = sheet(tmp_path, "id,token,ann\nd7,Ada,B-PER\n")
    assert (document.id, document.tokens) == ("d7", ("Ada",))


@pytest.mark.parametrize("first", [0, 1])
def test_tokens_that_are_counted_have_no_words(tmp_path: Path, first: int) -> None:
    content = f"doc,token,ann,ben\na,{first},B-PER,O\na,{first + 1},O,O\nb,{first},O,O\n"
    assert [set(one.tokens) for one in sheet(tmp_path, content)] == [{"item"}, {"item"}]
    assert sheet(tmp_path, content.replace(f"b,{first}", "b,9"))[1].tokens == ("9",)


def test_plain_labels_and_classes(tmp_path: Path) -> None:
    (document,) = sheet(tmp_path, "doc,token,ann,ben\nd,Dogs,NOUN,NOUN\nd,bark,VERB,NOUN\n")
    assert document.annotations == {"ann": ("NOUN", "VERB"), "ben": ("NOUN", "NOUN")}
    classes = sheet(tmp_path, "task,text,ann,ben,comment\nt1,A dog?,cat,dog,odd\nt2,Two dogs.,dog,,\n")
    assert [(one.id, one.annotations) for one in classes] == [
        ("t1", {"ann": ("cat",), "ben": ("dog",)}),
        ("t2", {"ann": ("dog",)}),
    ]


@pytest.mark.parametrize("name", ["task", "doc", "document", "doc_id", "sentence_id", "Sentence #", "sentence", "id"])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_any_name_of_documents_begins_a_sheet_of_classes(tmp_path: Path, name: str, ending: str) -> None:
    content = f"{name},text,ann,ben\n1,A dog?,cat,dog\n2,Two dogs.,dog,\n"
    corpus = sheet(tmp_path, content.replace(",", "\t") if ending == "tsv" else content, f"crowd.{ending}")
    assert [(one.id, one.annotations) for one in corpus] == [
        ("1", {"ann": ("cat",), "ben": ("dog",)}),
        ("2", {"ann": ("dog",)}),
    ]


@pytest.mark.parametrize("name", ["task", "doc_id"])
def test_one_annotator_alone_has_a_sheet(tmp_path: Path, name: str) -> None:
    corpus = sheet(tmp_path, f"{name},ann\n1,cat\n2,dog\n")
    assert [(one.id, one.annotations) for one in corpus] == [("1", {"ann": ("cat",)}), ("2", {"ann": ("dog",)})]
    (document,) = sheet(tmp_path, "doc,token,ann\nd,Dogs,NOUN\nd,bark,VERB\n")
    assert document.annotations == {"ann": ("NOUN", "VERB")}


def test_a_cell_that_says_what_its_column_is_for_is_nothing_odd(tmp_path: Path) -> None:
    (document,) = sheet(tmp_path, "doc,token,ann,comment\nd,Ada,B-PER,comment\nd,sang,O,\n")
    assert document.annotations == {"ann": ("B-PER", "O")}


def test_what_was_measured_of_plain_labels_is_no_annotator(tmp_path: Path) -> None:
    head, *rows = "task,ann,ben", "t1,cat,dog", "t2,dog,dog"
    extra = ["Confidence", "time", "duration", "date", "timestamp"]
    content = "\n".join([",".join([head, *extra]), *(f"{row},3,1,2,4,5" for row in rows)])
    corpus = sheet(tmp_path, content)
    assert corpus.annotators == ("ann", "ben")
    assert corpus.notes == ()


@pytest.mark.parametrize(
    "content",
    [
        "doc,token,ann,No,note\nd,Ada,B-PER,B-PER,a name\nd,sang,O,O,\n",
        "doc,token,ann,ben,No\nd,Ada,NOUN,NOUN,NOUN\nd,sang,VERB,VERB,NOUN\n",
        "task,ann,ben,No,time\nt1,cat,dog,cat,3\nt2,dog,dog,,4\n",
    ],
)
def test_a_column_that_holds_tags_under_a_reserved_name_is_told(tmp_path: Path, content: str) -> None:
    corpus = sheet(tmp_path, content)
    assert "No" not in corpus.annotators
    assert corpus.notes == (
        "columns that hold tags are not read, because of their names: no (rename one that is an annotator's)",
    )


def test_numbers_of_rows_beside_labels_that_are_numbers_are_no_tags(tmp_path: Path) -> None:
    assert sheet(tmp_path, "task,no,ann,ben\na,1,1,2\nb,2,2,2\nc,3,3,1\n").notes == ()


def test_the_docs_have_every_name_that_no_annotator_can_have() -> None:
    page = Path(__file__).parents[4] / "docs" / "tools" / "tables.md"
    section = page.read_text(encoding="utf-8").partition("## One column per annotator")[2].partition("\n## ")[0]
    assert NOBODYS - {""} <= set(re.findall("`([^`\\n]+)`", section.lower()))


def test_a_column_whose_labels_nobody_else_uses_is_told(tmp_path: Path) -> None:
    path = tmp_path / "crowd.csv"
    path.write_text("task,ann,ben,cy,mood,gold\nt1,cat,dog,,fine,cat\nt2,dog,dog,owl,,owl\n")
    corpus = quorate.read(path)
    assert corpus.annotators == ("ann", "ben", "cy", "mood")
    note = "columns whose labels nobody else uses, taken for annotators: {} (--map-annotators NAME= leaves one out)"
    assert corpus.notes == (note.format("mood"),)
    without = quorate.read(path, map_annotators={"mood": None})
    assert (without.annotators, without.notes) == (("ann", "ben", "cy"), ())
    hidden = quorate.read(path, pseudonymise=tmp_path / "names.json")
    assert hidden.notes == (note.format("1"),)  # and not the name
    path.write_text("task,ann\nt1,cat\n")
    assert quorate.read(path, format="sheet").notes == ()  # there is nobody else


def test_tags_of_any_scheme(tmp_path: Path) -> None:
    for tags in ("S-PER,B-LOC,E-LOC,O", "I-PER,I-PER,I-LOC,O", "B-PER,B-ADR…,I-ADR…,O"):
        rows = "".join(f"d,w{place},{tag},O\n" for place, tag in enumerate(tags.split(",")))
        assert sheet(tmp_path, "doc,token,ann,ben\n" + rows)[0].annotations["ann"] == tuple(tags.split(","))


def test_cells_that_are_empty_in_part_of_a_document_are_not_annotated_and_told(tmp_path: Path) -> None:
    corpus = sheet(tmp_path, "doc,token,ann,ben\na,Ada,B-PER,\na,sang,O,O\nb,Hush,,O\nc,Ada,?,O\nc,Ng,O,O\n")
    assert [one.annotations for one in corpus] == [
        {"ann": ("B-PER", "O"), "ben": (None, "O")},
        {"ben": ("O",)},
        {"ann": (None, "O"), "ben": ("O", "O")},
    ]
    assert corpus.notes == (
        "1 annotation of a document is empty at some tokens, which count as not annotated (write O where nothing is "
        "marked)",
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ASKED.replace("Smith,I-PER", "Smith,PER"), r":3: 'PER' in column 'ann' is not a tag \(O, or B-x"),
        (ASKED.replace("Smith,I-PER,O,O", "Smith,I-PER,0,O"), r":3: '0' in column 'ben' is not a tag"),
        (ASKED.replace("ben", "ann"), r":1: two columns are called 'ann' \(name each"),
        (ASKED.replace("ben", "gold").replace("cy", "Gold"), r":1: two columns are called 'gold'"),
        (ASKED.replace("Smith,I-PER,O,O", "Smith,I-PER,O"), r":3: 4 cells where 5 were expected \(one for each of doc"),
        (ASKED.replace("Smith,I-PER,O,O", "Smith,I-PER,O,O,O"), r":3: 6 cells where 5 were expected"),
        (ASKED.replace("I-PER", ""), r":3: column 'ann' is empty here though .* never says O \(write O"),
        ("doc,token,ann,ben\nd,Ada,PER,PER\nd,sang,,\nd,Rome,LOC,\n", r":3: column 'ann' is empty here .* \(write O"),
        ("token,ann,ben\nAda,PER,PER\nRome,LOC,\n", r":3: column 'ben' is empty here .*, or take out a column that"),
        (ASKED.replace("Smith", ""), r":3: no token in this row"),
        (ASKED.replace("d1,Peter", ",Peter"), r":2: no doc in this row"),
        ("task,ann,ben\nt1,cat,cat\n,cat,cat\n", r":3: no task in this row"),
        ("Document,token,ann\nd1,Ada,B-PER\n,,\n,Rome,B-LOC\n", r":4: no Document in this row"),
        ("doc,Word,ann\nd1,Ada,B-PER\nd1,,O\n", r":3: no Word in this row"),
        ("\ntask,ann,ben\nt1,cat,cat\nt2,cat,cat\nt1,dog,cat\n", r":5: task 't1' has a row already, .*:3 \(without a"),
        ("document,Document,word,ann\nd,d,Ada,B-PER\n", r":1: two columns are called 'document'"),
        (ASKED.replace("cy", ""), r":1: a column of tags has no name \(give it that of its annotator\)"),
        ("doc,token,word,ann\nd,4,Ada,B-PER\nd,6,sang,O\n", r":3: token '6' where 5 was expected \(beside words"),
        ("doc,token,word,ann\nd,x,Ada,B-PER\n", r":2: token 'x' where 0 was expected \(beside words"),
        (ASKED.encode().replace(b"Smith", b"Sm\xeeth"), r": not UTF-8 text \(save"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_row(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sheet(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("doc,token,worker,label\nd,0,ann,O\n", r":1: a column 'worker', where a sheet has one with the name of each"),
        ("doc,token,Annotator,tag\nd,0,ann,O\n", r":1: a column 'Annotator', where a sheet has one"),
        ("ann,ben\nO,O\n", r":1: no column is called token or word"),
    ],
)
def test_what_is_no_sheet_is_refused_if_it_is_called_one(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sheet(tmp_path, content, format="sheet")


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.csv", "token,O,B-PER\nO,O,O\n", "mace"),
        ("a.csv", "cat,dog,word\ndog,dog,cat\ncat,dog,cat\n", "mace"),
        ("a.tsv", "word\tNOUN\tNOUN\nruns\tVERB\tVERB\ntoken\tNOUN\tNOUN\n", "conll"),
        ("a.tsv", "token\tO\tO\nAda\tB-PER\tO\n", "conll"),
        ("a.tsv", "#\ttoken\tann\tben\nAda\tB-PER\tO\n", "conll"),
        ("a.tsv", "#\tdoc\ttoken\tann\n1\td\tAda\tO\n", "sheet"),
        ("a.conll", "# token\tann\tben\nAda\tB-PER\tO\n", "conll"),
        ("a.csv", "doc,token,worker,label,word\nd,0,ann,O,Ada\n", "table"),
        ("a.csv", "word,count\nAda,3\n", "mace"),
        ("a.tsv", "Sentence\tNOUN\tNOUN\nends\tVERB\tVERB\n", "conll"),
        ("a.tsv", "id\tPRON\tVERB\nest\tVERB\tVERB\n", "conll"),
        ("a.tsv", "id\tPRON\tDET\nest\tDET\tVERB\nhoc\tVERB\tPRON\n", "conll"),
    ],
)
def test_other_files_are_what_they_were(tmp_path: Path, name: str, content: str, format: str) -> None:
    (tmp_path / name).write_text(content)
    assert format_of(str(tmp_path / name)) == format


def test_a_table_in_memory_may_have_a_column_for_each_annotator() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    corpus = quorate.read(pandas.read_csv(io.StringIO(ASKED.replace("ann", "Ann") + "d2,Hush,,O,O\n")))
    assert corpus["d1"].annotations == {"Ann": ("B-PER", "I-PER"), "ben": ("B-PER", "O"), "cy": ("O", "O")}
    assert corpus["d2"].annotations == {"ben": ("O",), "cy": ("O",)}
    with pytest.raises(InputError, match=r"DataFrame:1: 'PER' in column 'ann' is not a tag"):
        quorate.read(pandas.read_csv(io.StringIO(ASKED.replace("I-PER", "PER"))))


def test_columns_of_a_sheet_in_memory_may_be_renamed() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.read_csv(io.StringIO(ASKED)).rename(columns={"doc": "sent", "token": "form", "cy": "time"})
    corpus = Corpus.from_pandas(table, columns={"sent": "document", "form": "word", "time": "cy"})
    assert [(one.id, one.tokens, one.annotations) for one in corpus] == [("d1", ("Peter", "Smith"), SAID)]
    with pytest.raises(InputError, match=r"DataFrame: no column 'sents' \(it has: sent, form"):
        Corpus.from_pandas(table, columns={"sent": "document", "form": "word", "sents": "split"})
    with pytest.raises(InputError, match=r"DataFrame:0: two columns are called 'ann'"):
        Corpus.from_pandas(table, columns={"sent": "document", "form": "word", "ben": "ann"})


def test_a_table_of_documents_in_memory_is_no_sheet() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    documents = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})]).to_pandas("documents")
    for table in (documents, documents[["document", "text", "tokens"]]):
        with pytest.raises(InputError, match="no worker in this row"):
            quorate.read(table)


def test_whole_numbers_are_the_same_labels_beside_a_gap() -> None:
    """Pandas has them as floats there."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    columns = {"task": [7, 8, None], "ann": [1, 2, 1], "ben": [1, None, 2], "gold": [None, 2, 1]}
    with pytest.raises(InputError, match=r"DataFrame:2: no task in this row"):
        quorate.read(pandas.DataFrame(columns))
    corpus = quorate.read(pandas.DataFrame(columns)[:2])
    assert [(one.id, one.annotations, one.gold) for one in corpus] == [
        ("7", {"ann": ("1",), "ben": ("1",)}, None),
        ("8", {"ann": ("2",)}, ("2",)),
    ]
    halves = quorate.read(pandas.DataFrame({"task": [1, 2], "ann": [0.5, 1], "ben": [0.5, 1]}))
    assert [one.annotations["ann"] for one in halves] == [("0.5",), ("1",)]
    small = pandas.DataFrame({"task": ["a"], "ann": [1], "ben": [1.0]}).astype({"ben": "float32"})
    assert quorate.read(small)[0].annotations == {"ann": ("1",), "ben": ("1",)}


def test_whole_numbers_are_the_same_labels_in_long_tables(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pandas.DataFrame({"task": ["a", "b"], "worker": ["x", "x"], "label": [1, 2], "gold": [1, None]})
    table.to_parquet(tmp_path / "crowd.parquet")
    for given in (table, tmp_path / "crowd.parquet"):
        assert quorate.read(given)["a"].gold == quorate.read(given)["a"].annotations["x"] == ("1",)


def test_what_a_spreadsheet_would_compute_is_written_as_text(tmp_path: Path) -> None:
    tokens = ("=1+1", "'-", "''@x", "'tis", "-", " ", "a\nb", '"')
    corpus = Corpus([Document("-1", tokens, {"=a": ("+",) * 8, "ben, jr": ("-",) * 8})])
    formats.write(corpus, tmp_path / "out.csv", "sheet")
    assert not re.search(r'(^|,)"?[=+@-]', (tmp_path / "out.csv").read_text())
    (back,) = quorate.read(tmp_path / "out.csv", format="sheet")
    assert (back.id, back.tokens, back.annotations) == ("-1", tokens, corpus[0].annotations)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (Document("1", ("Ada",), {"Comment": ("O",)}), "a column 'Comment' would be no annotator's .--map-annotators"),
        (Document("1", ("Ada",), {"ann": ("?",)}), "'\\?' cannot stand in a cell"),
        (Document("1", ("",), {"ann": ("O",)}), "a word of document '1' is empty"),
        (Document("1 ", ("Ada",), {"ann": ("O",)}), "'1 ' cannot stand in a cell"),
        (Document("1", ("Ada",), {"gold": ("O",)}), "'gold' cannot have a column"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path: Path, document: Document, message: str) -> None:
    with pytest.raises((OutputError, InputError), match=message):
        formats.write(Corpus([document]), tmp_path / "out.csv", "sheet")
    assert not (tmp_path / "out.csv").exists()
