"""Reading and writing files."""

from __future__ import annotations

import gc
import gzip
import io
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

import quorate
from by_name import bsc
from quorate import Corpus, Document, InputError, formats
from quorate.formats import jsonl
from quorate.formats.assemble import Assembly, Options


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


TAGGED = {
    "id": "1",
    "tokens": ["Ada", "sang"],
    "annotations": {"ann": ["B-PER", "O"], "bob": [None, "O"]},
    "gold": ["B-PER", "O"],
    "split": "dev",
}


def with_span(**span: object) -> dict[str, object]:
    return {"id": "1", "text": "Ada", "annotations": {"a": [span]}}


def test_tags(tmp_path: Path) -> None:
    document = quorate.read(write(tmp_path / "a.jsonl", TAGGED))[0]
    assert document.tokens == ("Ada", "sang")
    assert document.annotations == {"ann": ("B-PER", "O"), "bob": (None, "O")}
    assert (document.gold, document.split) == (("B-PER", "O"), "dev")


def test_spans_of_characters(tmp_path: Path) -> None:
    line = {
        "id": 7,
        "text": "Ada Ng sang.",
        "annotations": {"ann": [{"start": 0, "end": 6, "label": "PER"}], "bob": []},
        "gold": [{"start": 0, "end": 3, "label": "PER"}],
    }
    document = quorate.read(write(tmp_path / "a.jsonl", line))["7"]
    assert document.tokens == ("Ada", "Ng", "sang", ".")
    assert document.annotations == {"ann": ("B-PER", "I-PER", "O", "O"), "bob": ("O", "O", "O", "O")}
    assert document.gold == ("B-PER", "O", "O", "O")


def test_nobody_marked_anything_in_given_tokens(tmp_path: Path) -> None:
    line = {"id": "1", "tokens": ["It", "rains"], "text": "It rains", "annotations": {"a": [], "b": []}}
    assert quorate.read(write(tmp_path / "a.jsonl", line))[0].annotations == {"a": ("O", "O"), "b": ("O", "O")}


def test_spans_with_given_tokens(tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 7, "label": "P"}]
    line = {"id": "1", "tokens": ["Ada", "Ng"], "text": "Ada  Ng", "annotations": {"ann": spans}}
    document = quorate.read(write(tmp_path / "a.jsonl", line))[0]
    assert document.offsets == ((0, 3), (5, 7))
    assert document.annotations["ann"] == ("B-P", "I-P")


def test_widened_and_overlapping_spans_are_counted(tmp_path: Path) -> None:
    spans = [{"start": 1, "end": 6, "label": "P"}, {"start": 4, "end": 6, "label": "Q"}]
    corpus = quorate.read(write(tmp_path / "a.jsonl", {"id": "1", "text": "Ada Ng", "annotations": {"ann": spans}}))
    assert corpus.notes == (
        "1 span was widened to whole tokens",
        "1 span overlapped a longer one of the same annotator and was left out (aggregate --layers auto keeps them)",
    )


def test_soft_tags(tmp_path: Path) -> None:
    line = {"id": "1", "tokens": ["Ada"], "annotations": {"model": [{"B-PER": 0.9, "O": 0.1, "I-PER": 0}]}}
    assert quorate.read(write(tmp_path / "a.jsonl", line))[0].annotations["model"] == ({"B-PER": 0.9, "O": 0.1},)


def test_gzip_folder_stdin_and_byte_order_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps(TAGGED).encode()
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(line))
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + line.replace(b'"1"', b'"2"') + b"\r\n\r\n")
    (tmp_path / "readme.md").write_text("not data")
    assert [d.id for d in quorate.read(tmp_path)] == ["2", "1"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
    assert len(quorate.read("-")) == 1


def test_digest_is_of_the_file(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "b.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(TAGGED).encode()))
    assert quorate.read(path).digests == {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}


def test_conll(tmp_path: Path) -> None:
    first = ["# token ann bob gold", "-DOCSTART- O O O", "", "Ada B-PER ? B-PER", "sang O ? O"]
    path = write(tmp_path / "a.conll", *first, "", "", "Bob B-PER O ?")
    corpus = quorate.read(path)
    assert [d.tokens for d in corpus] == [("Ada", "sang"), ("Bob",)]
    assert corpus[0].annotations == {"ann": ("B-PER", "O")}
    assert corpus[0].gold == ("B-PER", "O")
    assert corpus[1].gold is None
    assert corpus[0].where(1).startswith(f"{path}:5")


@pytest.mark.parametrize(
    "header",
    ["# token\tann\tgold", "#\ttoken\tann\tgold", "#token\tann\tgold", "# token ann\tgold", "# Token\tann\tGold"],
)
@pytest.mark.parametrize("blank", ["\t", " "])
def test_a_conll_header_is_seen_however_it_is_parted(tmp_path: Path, header: str, blank: str) -> None:
    rows = [blank.join(row) for row in (("Ada", "B-PER", "O"), ("sang", "O", "O"))]
    corpus = quorate.read(write(tmp_path / "a.conll", header, *rows))
    assert corpus.annotators == ("ann",)
    assert corpus[0].gold == ("O", "O")
    assert corpus.notes == ()


@pytest.mark.parametrize("row", ["#token\tB-X", "#token\tB-X\tO", "#token O", "#tokens\tB-X", "#\tO", "#token\t?"])
def test_a_first_row_of_tags_is_no_conll_header(tmp_path: Path, row: str) -> None:
    fields = row.split("\t") if "\t" in row else row.split()
    corpus = quorate.read(write(tmp_path / "a.conll", row, "\t".join(["Ada", *["B-X"] * (len(fields) - 1)])))
    assert corpus[0].tokens == (fields[0], "Ada")
    assert corpus[0].annotations["A1"] == (None if fields[1] == "?" else fields[1], "B-X")


@pytest.mark.parametrize(
    "comment", ["# Token counts of the pilot", "# token\tper\tline\tas\tin\tbefore", "#token a a a a"]
)
@pytest.mark.parametrize("comes_first", [True, False])
def test_a_comment_that_begins_like_a_conll_header_hides_no_header(
    tmp_path: Path, comment: str, comes_first: bool
) -> None:
    header = "# token\tann\tgold"
    lines = [comment, header] if comes_first else [header, comment]
    corpus = quorate.read(write(tmp_path / "a.conll", *lines, "# id = 7", "Ada\tB-PER\tO"))
    assert corpus.annotators == ("ann",)
    assert (corpus["7"].tokens, corpus["7"].gold) == (("Ada",), ("O",))


@pytest.mark.parametrize("header", ["# token\tS-1\tO", "#\ttoken\tS-1\tO", "# token S-1 O"])
def test_annotators_in_a_conll_header_may_be_called_like_tags(tmp_path: Path, header: str) -> None:
    corpus = quorate.read(write(tmp_path / "a.conll", header, "Ada\tB-PER\tO"))
    assert (corpus.annotators, corpus[0].tokens) == (("O", "S-1"), ("Ada",))


def test_of_two_conll_headers_that_fit_the_later_counts(tmp_path: Path) -> None:
    lines = ["# Token counts follow", "# token ann gold", "# O O", "Ada B-PER O"]
    corpus = quorate.read(write(tmp_path / "a.conll", *lines))
    assert (corpus.annotators, corpus[0].tokens) == (("ann",), ("#", "Ada"))


def test_a_conll_header_that_fits_no_row_is_refused(tmp_path: Path) -> None:
    """Taken for a comment, it would make an annotator of the gold."""
    with pytest.raises(InputError, match=r"a.conll:2: 2 columns where 3 were expected .* ann, gold;"):
        quorate.read(write(tmp_path / "a.conll", "# token ann gold", "Ada B-PER"))
    with pytest.raises(InputError, match=r"a.conll:1: two columns have the same name"):
        quorate.read(write(tmp_path / "a.conll", "# token ann ann", "Ada B-PER O"))


def test_names_in_a_conll_header_may_hold_blanks_between_tabs(tmp_path: Path) -> None:
    corpus = quorate.read(write(tmp_path / "a.conll", "# token\tAnn Lee\tgold", "Ada\tB-PER\tO"))
    assert corpus.annotators == ("Ann Lee",)


@pytest.mark.parametrize("name", ["gold", "Label", "ground_truth", "reference", "NER tags"])
def test_an_annotator_with_a_name_of_gold_is_warned_of(tmp_path: Path, name: str) -> None:
    """However it came to be one: a table has no such column, a folder was named so, a JSONL file says it."""
    line = {"id": "1", "tokens": ["Ada"], "annotations": {name: ["B-PER"], "ann": ["O"]}}
    corpus = quorate.read(write(tmp_path / "a.jsonl", line))
    (note,) = corpus.notes
    assert note.startswith(f"annotator {name!r} counts as one of the crowd, but has a name of gold")
    assert quorate.read(tmp_path / "a.jsonl", annotators={name: {"kind": "expert"}}).notes == ()
    assert quorate.read(tmp_path / "a.jsonl", map_annotators={name: None}).notes == ()
    write(tmp_path / f"{name}.jsonl", {"text": "Ada", "label": [[0, 3, "PER"]]})
    assert quorate.read(tmp_path / f"{name}.jsonl", format="doccano").notes == (note,)


def test_conll_comments(tmp_path: Path) -> None:
    lines = ["# sent_id = 4", "# text = Ada sang", "Ada B-PER", "sang O", "", "# a b", "# O"]
    assert [d.tokens for d in quorate.read(write(tmp_path / "a.conll", *lines))] == [("Ada", "sang"), ("#",)]


def test_conll_without_header_and_with_tabs(tmp_path: Path) -> None:
    corpus = quorate.read(write(tmp_path / "a.txt", "New York\tB-LOC\tO", "#\tO\tO"))
    assert corpus[0].tokens == ("New York", "#")
    assert corpus.annotators == ("A1", "A2")


def test_corpus_goes_out_and_comes_back(tmp_path: Path, sample: Corpus) -> None:
    extra = Document("x", ("Ada",), {"m": ({"B-PER": 0.5, "O": 0.5},)}, text="Ada", offsets=((0, 3),))
    corpus = Corpus([*sample, extra])
    jsonl.save_corpus(corpus, tmp_path / "a.jsonl")
    for before, after in zip(corpus, quorate.read(tmp_path / "a.jsonl"), strict=True):
        assert (before.tokens, before.annotations, before.gold) == (after.tokens, after.annotations, after.gold)


def test_consensus_record(tmp_path: Path) -> None:
    lines = [
        {
            "id": "1",
            "text": "Ada Ng sang.",
            "annotations": {a: [{"start": 0, "end": 6, "label": "PER"}] for a in "xyz"},
        },
        {"id": "2", "tokens": ["Ada", "Ng"], "annotations": {a: ["B-PER", "I-PER"] for a in "xyz"}},
    ]
    result = quorate.aggregate(quorate.read(write(tmp_path / "a.jsonl", *lines)))
    result.write(tmp_path / "out.jsonl", probabilities=True)
    with_text, with_tokens = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert with_text["tags"] == ["B-PER", "I-PER", "O", "O"]
    span = with_text["spans"][0]
    assert (span["start"], span["end"], span["token_start"], span["token_end"], span["text"]) == (0, 6, 0, 2, "Ada Ng")
    assert with_tokens["spans"][0]["end"] == 2
    assert "token_end" not in with_tokens["spans"][0]
    assert with_text["labels"] == ["O", "B-PER", "I-PER"]
    assert with_text["probabilities"][0][1] == pytest.approx(with_text["token_confidence"][0], abs=1e-6)
    assert sum(with_text["probabilities"][0]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"id": "1", "tokens": ["a"]', '{"id"'], r":1: not JSON: "),
        (['{"id": "1",', '"tokens": ["a"]}'], r":1: not JSON: it ends in the middle \(a line must be one whole JSON"),
        (
            [{"id": "1", "tokens": ["a", 5]}],
            r":1: not a document: entry 2 of tokens must be a text in quotes, not a num",
        ),
        ([TAGGED | {"annotations": []}], r":1: not a document: annotations must be an object \{…\}, not a list \[…\] "),
        ([TAGGED | {"gold": ["O"]}], r":1: document '1': 1 tag by gold for 2 tokens"),
        ([TAGGED | {"annotations": {"ann": ["O"]}}], r":1: document '1': 1 tag by annotator 'ann' for 2 tokens"),
        ([TAGGED, TAGGED], r":2: document '1': this id was given to an earlier document too, .*:1"),
        ([TAGGED | {"annotations": {"ann": [5, "O"]}}], r":1: 5 is not a tag"),
        ([TAGGED | {"annotations": {"ann": ["", "O"]}}], r":1: '' is not a tag"),
        ([{"id": "1"}], r":1: neither 'tokens' nor 'text'"),
        ([with_span(start=2, end=1, label="P")], r":1: document '1': span 2–1 'P' is not a span"),
        ([with_span(start=7, end=9, label="P")], r":1: document '1': span 7–9 'P' ends after the text"),
        ([with_span(start=0, label="P")], r":1: not spans of annotator 'a': 'end' is missing in entry 1 \(a span is"),
        (
            [with_span(begin=0, end=1, label="P")],
            r":1: not spans of annotator 'a': 'start' is missing in entry 1 \(a",
        ),
        ([with_span(start="0", end=1, label="P")], r"start of entry 1 must be a whole number, not a text in quotes"),
        (
            [{"id": "1", "text": "Ada", "gold": [{"start": 0, "end": 1}]}],
            r":1: not spans of 'gold': 'label' is missing",
        ),
        (
            [{"id": "1", "text": "Ada", "spans": [{"start": 0, "end": 3, "label": "PER"}]}],
            r":1: 'spans' that are nobody's, as in a consensus .*go into 'annotations'",
        ),
        (
            ['[{"id": "1", "words": ["Ada"]}]'],
            r"none of the formats known by their content: its first entry has id, wor",
        ),
        (['[{"id": 1, "text": "Ada", "label": [], "annotation_id": 3, "lead_time": 2}]'], r"JSON-MIN export, which is"),
        (
            ["text,id,label,annotator,annotation_id,lead_time", "Ada,1,x,1,3,2"],
            r"Label Studio's CSV export, which is no",
        ),
        (
            ["sentence,word,tag", "1,Ada,B-PER"],
            r":1: its first line names columns, as in no file of MACE \(a table has",
        ),
        (
            ["doc_id,size", "1,3", "2,wide open"],
            r":1: its first line names columns, as in no file of MACE \(a table has",
        ),
        (
            ["task,ann,ben", "1,cat,dog", "2,owl,cow"],
            r":1: its first line names columns, .*; --from sheet reads it as one",
        ),
        (["id,ann,ben", "1,cat,cat", "id,ann,ben", "2,cat,cat"], r":1: its first line names columns, as in no file of"),
        ([{"id": "1", "tokens": ["Ada"], "annotations": {"m": [{"O": -1}]}}], r":1: -1 is not a probability"),
        ([{"id": "1", "text": "Ada", "annotations": {"a": [[0, 3, "PER"]]}}], r":1: \[0, 3, 'PER'\] is not a tag"),
        (
            [{"id": "1", "text": "Ada", "tokens": ["Ada"], "offsets": [[2, 1]]}],
            r":1: document '1': offsets 2–1 of token 1 are not a",
        ),
        (
            [{"id": "1", "text": "Ada", "tokens": ["Ada"], "offsets": [[0, 9]]}],
            r":1: document '1': offsets 0–9 of token 1 are not a",
        ),
        ([TAGGED | {"gold": [["O"], "O"]}], r":1: \['O'\] is not a tag"),
        (["# token a a", "Ada O O"], r":1: two columns have the same name"),
        ([""], r"the file is empty"),
        (["[1]"], r"a JSON array of none of the formats"),
        (["Ada B-PER O", "sang O"], r":2: 2 columns where 3 were expected"),
    ],
)
def test_bad_input_says_where_and_what(tmp_path: Path, lines: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        quorate.read(write(tmp_path / "crowd.jsonl", *lines))


def test_documents_may_be_the_items_of_an_array(tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text("\n".join(json.dumps(TAGGED | {"id": name}) for name in "ab"))
    (tmp_path / "array.json").write_text(json.dumps([TAGGED | {"id": name} for name in "ab"], indent=1))
    lines, array = (quorate.read(tmp_path / name) for name in ("lines.jsonl", "array.json"))
    assert [(one.id, one.tokens, one.annotations) for one in array] == [
        (one.id, one.tokens, one.annotations) for one in lines
    ]
    (tmp_path / "array.json").write_text(json.dumps([TAGGED, TAGGED | {"tokens": 5}], indent=1))
    with pytest.raises(InputError, match=r"array\.json, document 2: not a document: tokens must be a list"):
        quorate.read(tmp_path / "array.json")


def test_missing_damaged_and_empty(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        quorate.read(tmp_path / "nothing.jsonl")
    with pytest.raises(InputError, match="no file to read in this folder"):
        quorate.read(tmp_path)
    damaged = tmp_path / "a.jsonl.gz"
    damaged.write_bytes(gzip.compress(json.dumps(TAGGED).encode() * 50)[:60])
    with pytest.raises(InputError, match="damaged gzip file"):
        quorate.read(damaged)
    (tmp_path / "bytes.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(InputError, match=r"bytes\.jsonl:1: "):
        quorate.read(tmp_path / "bytes.jsonl")


def test_long_table_of_tasks(tmp_path: Path) -> None:
    lines = ["task,worker,label,gold", "t1,ann,cat,cat", 't1,bob,"dog, big",', "t2,ann,cat,"]
    corpus = quorate.read(write(tmp_path / "a.csv", *lines))
    assert [d.id for d in corpus] == ["t1", "t2"]
    assert corpus["t1"].annotations == {"ann": ("cat",), "bob": ("dog, big",)}
    assert corpus["t1"].gold == ("cat",)
    assert bsc("bsc-cm").fit_predict(corpus) == [["cat"], ["cat"]]
    assert quorate.MajorityVote().fit_predict_proba(corpus)[0].tolist() == [[0.5, 0.5]]


def test_long_table_of_tokens_as_csv_parquet_and_frame(tmp_path: Path) -> None:
    import pandas as pd

    rows = [("d", 0, "ann", "B-P", "Ada"), ("d", 1, "ann", "O", "sang"), ("d", 1, "bob", "O", "sang")]
    frame = pd.DataFrame(rows, columns=["doc", "token", "worker", "label", "word"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (tmp_path / "a.csv", tmp_path / "a.tsv", tmp_path / "a.parquet", frame):
        document = quorate.read(source)["d"]
        assert document.tokens == ("Ada", "sang")
        assert document.annotations == {"ann": ("B-P", "O"), "bob": (None, "O")}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["task,worker,label", "t1,,cat"], r":2: no worker in this row"),
        (["task,worker,label", ",ann,cat"], r":2: no task or doc in this row"),
        (["task,worker,label", "t1,ann,cat", "t1,ann,dog"], r":3: worker 'ann' has labelled this already"),
        (["", "task,worker,label", "t1,,cat"], r":3: no worker in this row"),
        (["task,worker,label", "", '"t\n1",ann,cat', "t2,,cat"], r":5: no worker in this row"),
        (["doc,token,worker,label", "d,one,ann,O"], r":2: token 'one' is not a number"),
        (
            ["doc,token,worker,label", *(f"{d},{t},ann,O" for d in range(5) for t in (1, 2))],
            r"token 1 is the first one of every document \(count tokens from 0\)",
        ),
    ],
)
def test_bad_tables(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        quorate.read(write(tmp_path / "a.csv", *lines))


def test_a_document_that_is_taken_by_itself_leaves_nothing_behind() -> None:
    """A stream may hold more documents than memory holds ids."""
    assembly = Assembly(Options())
    for number in range(3):
        assembly.alone(Document(f"id {number}", ("Ada",), {"ann": ("B-PER",)}), "crowd.jsonl", number)
    kept = repr(vars(assembly)) + "".join(map(repr, vars(assembly).values()))
    assert "id 0" not in kept
    assert len(assembly) == 0


def test_the_same_document_in_two_files_is_one_and_in_one_file_a_mistake(tmp_path: Path) -> None:
    line = {"id": "1", "tokens": ["Ada"], "annotations": {"ann": ["B-PER"]}}
    later = line | {"annotations": {"ann": ["O"], "bob": ["B-PER"]}}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    (tmp_path / "b.jsonl").write_text(json.dumps(later))
    corpus = quorate.read(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert corpus[0].annotations == {"ann": ("O",), "bob": ("B-PER",)}
    (tmp_path / "b.jsonl").write_text(json.dumps(later | {"tokens": ["Eve"]}))
    with pytest.raises(InputError, match="another text than that of the same document elsewhere"):
        quorate.read(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    (tmp_path / "b.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(later))
    for files in (["b.jsonl"], ["a.jsonl", "b.jsonl"]):
        with pytest.raises(InputError, match="ids must be unique"):
            quorate.read(*(tmp_path / name for name in files))


@pytest.mark.parametrize("head", ["doc,token,annotator,label", "Document,token,worker,label"])
def test_columns_of_a_table_have_other_names_too(tmp_path: Path, head: str) -> None:
    document = quorate.read(write(tmp_path / "a.csv", head, "d,0,ann,B-P", "d,1,ann,O"))["d"]
    assert document.annotations == {"ann": ("B-P", "O")}


def test_a_table_of_spans_is_not_taken_for_a_column_an_annotator(tmp_path: Path) -> None:
    table = tmp_path / "crowd.csv"
    formats.write(Corpus(quorate.sample().documents[:5]), table)
    with pytest.raises(InputError, match=r"crowd\.csv:1: a table of spans"):
        quorate.read(table)


def test_only_readers_that_make_no_cycles_let_the_collector_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of XML leaves cycles behind, document by document."""
    rested, examples = [], Path(__file__).parents[1] / "examples"

    def rest() -> nullcontext[None]:
        rested.append(True)
        return nullcontext()

    monkeypatch.setattr(quorate.formats, "_collector_at_rest", rest)
    quorate.read(examples / "cas")
    assert not rested
    quorate.read(examples / "crowd.jsonl")
    assert rested
    monkeypatch.undo()
    quorate.read(examples / "crowd.jsonl")
    assert gc.isenabled()


SANG = ["The", "choir", "of", "Bath", "sang", "all", "night"]


def column(*tokens: str) -> str:
    return "".join(f"{token} {'B-LOC' if token == 'Bath' else 'O'}\n" for token in tokens) + "\n"


@pytest.mark.parametrize("read", [quorate.read, lambda *files: formats.read_layers(*files)["LOC"]])
def test_files_of_one_annotator_each_that_name_nobody_are_noted(tmp_path: Path, read: Callable[..., Corpus]) -> None:
    files = [tmp_path / f"{name}.conll" for name in ("ann", "bob")]
    for file in files:
        file.write_text(column("Bath", "sang") + column("Ada", "slept") + column(*SANG))
    (told,) = read(*files).notes
    assert told == (
        "2 files have the same texts, each as a document of its own: if every file is one annotator's, say "
        "--annotator-from filename"
    )
    corpus = quorate.read(*files, annotator_from="filename")
    assert (len(corpus), corpus.annotators, corpus.notes) == (3, ("ann", "bob"), ())


def test_files_of_one_annotator_each_that_are_not_in_step_need_ids(tmp_path: Path) -> None:
    texts = [column(*SANG, str(number)) for number in range(9)]
    for name, its in (("ann", texts), ("bob", texts[1:])):
        (tmp_path / f"{name}.conll").write_text("".join(its))
    (told,) = quorate.read(tmp_path).notes
    assert "give each document an id, the same in all files (in CoNLL: # id = NAME), and say --annotator-from" in told


def test_files_of_several_annotators_or_other_texts_are_not_noted(tmp_path: Path) -> None:
    for name, more in (("a", "O"), ("b", "B-LOC")):
        (tmp_path / f"{name}.conll").write_text(f"Bath B-LOC {more}\nsang O O\n")
    assert quorate.read(tmp_path).notes == ()
    for number in range(2):
        (tmp_path / f"week-{number}.conll").write_text(column("Bath", "sang") + column(*SANG, str(number)))
    assert quorate.read(tmp_path / "week-0.conll", tmp_path / "week-1.conll").notes == ()


def test_texts_under_several_ids_are_counted(tmp_path: Path) -> None:
    def lines(name: str) -> list[dict[str, object]]:
        said = {"ann": ["O"] * 8}
        return [{"id": f"{name}{n}", "tokens": [*SANG, str(n)], "annotations": said} for n in range(3)]

    files = [write(tmp_path / f"{name}.jsonl", *lines(name)) for name in ("a", "b")]
    assert quorate.read(files[0]).notes == ()
    assert quorate.read(*files).notes == (
        "3 documents have the same text as another under another id, such as a0 and b0 (if they are one, give them one "
        "id)",
    )


def test_files_of_a_folder_come_week_by_week(tmp_path: Path) -> None:
    for week, tag in ((9, "O"), (10, "B-PER")):
        line = {"id": "1", "tokens": ["Ada"], "annotations": {"ann": [tag]}}
        (tmp_path / f"week-{week}.jsonl").write_text(json.dumps(line))
    assert quorate.read(tmp_path)[0].annotations["ann"] == ("B-PER",)
