"""Every tool's format: a hand-made example is read as it is meant, and what is written is read back the same."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from by_name import bsc, loaded
from quorate import Corpus, Document, InputError, OutputError, SettingsError, formats
from quorate.corpus.profiles import Profile
from quorate.formats import FORMATS, write
from quorate.storage.corpora import store

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TEXT, RAIN = "👋 Ada Ng sang in Rome.", "It rains."
TOKENS = ("👋", "Ada", "Ng", "sang", "in", "Rome", ".")
FULL = ("O", "B-PER", "I-PER", "O", "O", "B-LOC", "O")
SHORT = ("O", "B-PER", "O", "O", "O", "O", "O")
NOTHING = ("O", "O", "O")


def example(name: str, tmp_path: Path) -> Any:
    """The example of a format: hand-made, or for binary formats made by their own library from the same content."""
    files = {
        "jsonl": "crowd.jsonl",
        "label-studio": "label-studio.json",
        "prodigy": "prodigy.jsonl",
        "argilla": "argilla.json",
        "llm": "llm.jsonl",
        "brat": "brat",
        "conll": "columns.conll",
        "mace": "mace.csv",
        "table": "table.csv",
        "sheet": "sheet.csv",
        "sagemaker": "sagemaker.manifest",
    }
    return EXAMPLES / files[name] if name in files else MADE[name](tmp_path)


def doccano_zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "doccano.zip", "w") as archive:
        for name in ("ann.jsonl", "bob.jsonl"):
            archive.write(EXAMPLES / "doccano" / name, name)
    return folder / "doccano.zip"


def inception_export(folder: Path) -> Path:
    cas = EXAMPLES / "cas"
    with zipfile.ZipFile(folder / "inner.zip", "w") as inner:
        inner.write(cas / "letter.xmi", "letter.xmi")
        inner.write(cas / "TypeSystem.xml", "TypeSystem.xml")
    with zipfile.ZipFile(folder / "project.zip", "w") as archive:
        archive.writestr("exportedproject.json", "{}")
        archive.write(folder / "inner.zip", "annotation/1/ann.zip")
        archive.write(cas / "letter.json", "annotation/1/bob.json")
        archive.write(cas / "letter.json", "annotation/1/INITIAL_CAS.json")
        archive.write(cas / "letter.json", "curation/1/CURATION_USER.json")
        archive.write(cas / "TypeSystem.xml", "annotation/2/TypeSystem.xml")
        archive.write(cas / "rain.xmi", "annotation/2/ann.xmi")
    return folder / "project.zip"


def docbin(folder: Path) -> Path:
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    from spacy.tokens import Doc, DocBin

    vocab = spacy.blank("xx").vocab
    one: Any = Doc(vocab, list(TOKENS), [True] * 5 + [False] * 2)
    one.spans["ann"] = [one.char_span(2, 8, "PER"), one.char_span(17, 21, "LOC")]
    one.spans["bob"] = [one.char_span(2, 5, "PER")]
    two = Doc(vocab, ["It", "rains", "."], [True, False, False])
    two.spans["ann"] = []
    DocBin(docs=[one, two]).to_disk(folder / "crowd.spacy")
    return folder / "crowd.spacy"


def hf_dataset(tags: Any) -> Any:
    datasets = pytest.importorskip("datasets", reason="the library datasets is not installed")
    names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "tokens": datasets.Sequence(datasets.Value("string")),
            "ner_tags": datasets.Sequence(datasets.ClassLabel(names=names)),
        }
    )
    rows = {
        "id": ["1", "2"],
        "tokens": [list(TOKENS), ["It", "rains", "."]],
        "ner_tags": [[names.index(tag) for tag in each] for each in tags],
    }
    return datasets.Dataset.from_dict(rows, features=features)


def saved_dataset(folder: Path) -> Path:
    hf_dataset([FULL, NOTHING]).save_to_disk(str(folder / "ann"))
    return folder / "ann"


def hf_parquet(folder: Path) -> Path:
    hf_dataset([FULL, NOTHING]).to_parquet(str(folder / "ann.parquet"))
    return folder / "ann.parquet"


MADE: dict[str, Callable[[Path], Path]] = {
    "doccano": doccano_zip,
    "cas": inception_export,
    "spacy": docbin,
    "huggingface": saved_dataset,
    "parquet": hf_parquet,
}

WHO = {
    "label-studio": ("ann@example.com", "2"),
    "prodigy": ("news-ann", "news-bob"),
    "argilla": ("98d55e98-3057-42fe-8504-e932020385ee", "0c5fb2a5-6a27-4a55-97e3-3a3d4f5c1f60"),
    "sagemaker": ("w.ann", "w.bob"),
    "mace": ("A1", "A2"),
    "llm": ("llm-a", "llm-b"),
}
ONE_ANNOTATOR = ("huggingface", "parquet")
READ = [name for name, format in FORMATS.items() if format.reads]


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("said", [False, True], ids=["by content", "by name"])
def test_examples_are_read_as_they_are_meant(name: str, said: bool, tmp_path: Path) -> None:
    corpus = quorate.read(example(name, tmp_path), format=name if said else None)
    first, second = corpus
    ann, bob = WHO.get(name, ("ann", "bob"))
    if name != "mace":
        assert first.tokens == TOKENS
        assert second.tokens == ("It", "rains", ".")
    if name in ONE_ANNOTATOR:
        assert first.annotations == {ann: FULL}
    else:
        assert first.annotations == {ann: FULL, bob: SHORT}
    assert second.annotations == {ann: NOTHING}  # bob has not seen it


def test_gold_of_label_studio_and_of_a_curator(tmp_path: Path) -> None:
    assert quorate.read(EXAMPLES / "label-studio.json")["11"].gold == FULL
    assert quorate.read(inception_export(tmp_path))["1"].gold == SHORT


def test_what_was_passed_over_is_counted() -> None:
    assert quorate.read(EXAMPLES / "label-studio.json").notes == (
        "1 region that is no labelled span of text was left out",
        "1 annotation was skipped or cancelled in Label Studio, and left out",
        "1 document counts offsets in UTF-16 units, and is answered in them",
    )
    assert quorate.read(EXAMPLES / "prodigy.jsonl").notes == (
        "1 answer 'ignore' was skipped",
        "1 answer 'reject' was skipped: it says that something is wrong, not what is right",
    )
    assert "1 line about something other than spans was skipped" in quorate.read(EXAMPLES / "brat").notes
    assert "1 response that was not submitted was skipped" in quorate.read(EXAMPLES / "argilla.json").notes


@pytest.mark.parametrize(("name", "key"), [("label-studio.json", "11"), ("argilla.json", "a1")])
def test_predictions_are_annotators_who_are_not_sure(name: str, key: str) -> None:
    corpus = quorate.read(EXAMPLES / name, predictions=True)
    said = corpus[key].annotations["tagger-1"]
    assert said[5] == {"B-LOC": 0.75, "O": 0.25}
    assert said[:5] == ("O",) * 5
    assert corpus.profiles["tagger-1"].kind.value == "model"
    assert not any(name.startswith("quorate") for name in corpus.annotators)


def test_files_of_one_annotator_each(tmp_path: Path) -> None:
    by_itself = quorate.read(EXAMPLES / "doccano" / "ann.jsonl", EXAMPLES / "doccano" / "bob.jsonl")
    assert by_itself["1"].annotations == {"ann": FULL, "bob": SHORT}
    assert quorate.read(EXAMPLES / "doccano")["1"].annotations == {"ann": FULL, "bob": SHORT}
    for name, tags in (("ann", FULL), ("bob", SHORT)):
        lines = [f"{token} {tag}" for token, tag in zip(TOKENS, tags, strict=True)]
        (tmp_path / f"{name}.conll").write_text("\n".join(lines))
    corpus = quorate.read(tmp_path / "ann.conll", tmp_path / "bob.conll", annotator_from="filename")
    assert corpus["1"].annotations == {"ann": FULL, "bob": SHORT}
    for name in ("ann", "bob"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.xmi").write_bytes((EXAMPLES / "cas" / "letter.xmi").read_bytes())
        (tmp_path / name / "TypeSystem.xml").write_bytes((EXAMPLES / "cas" / "TypeSystem.xml").read_bytes())
    corpus = quorate.read(tmp_path / "ann", tmp_path / "bob", annotator_from="folder")
    assert corpus["1"].annotations == {"ann": FULL, "bob": FULL}
    with pytest.raises(InputError, match=r"crowd\.jsonl:1: document '1': 2 annotators in a document"):
        quorate.read(EXAMPLES / "crowd.jsonl", annotator_from="filename")
    with pytest.raises(SettingsError, match="annotator-from 'file' is not known"):
        quorate.read(EXAMPLES / "crowd.jsonl", annotator_from="file")  # type: ignore[arg-type]


def test_documents_without_ids_are_the_same_at_the_same_place(tmp_path: Path) -> None:
    for name, label in (("ann", [[0, 3, "PER"]]), ("bob", [])):
        lines = [{"text": "Ada", "label": label}, {"text": "Eve sang", "label": []}]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    corpus = quorate.read(tmp_path / "ann.jsonl", tmp_path / "bob.jsonl")
    assert [document.id for document in corpus] == ["1", "2"]
    assert corpus["1"].annotations == {"ann": ("B-PER",), "bob": ("O",)}


def test_two_parts_of_a_docbin_are_numbered_on(tmp_path: Path) -> None:
    one, other = docbin(tmp_path), tmp_path / "more.spacy"
    other.write_bytes(one.read_bytes())
    assert [document.id for document in quorate.read(one, other)] == ["1", "2", "3", "4"]


def test_a_consensus_with_text_and_probabilities_is_known_again(tmp_path: Path) -> None:
    corpus = quorate.read(EXAMPLES / "label-studio.json")
    result = quorate.aggregate(corpus, known="inline")
    result.write(tmp_path / "c.jsonl", probabilities=True)
    assert formats.read_known(tmp_path / "c.jsonl", corpus)["11"] == FULL


def test_same_document_with_another_text(tmp_path: Path) -> None:
    for name, text in (("ann", "Ada"), ("bob", "Eve")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": 1, "text": text, "label": []}))
    with pytest.raises(InputError, match=r"bob\.jsonl:1: document '1': another text than .* ann\.jsonl:1|another text"):
        quorate.read(tmp_path)


def test_dataset_from_memory() -> None:
    corpus = quorate.read(hf_dataset([FULL, NOTHING]))
    assert corpus["1"].annotations == {"Dataset": FULL}


# Out and back -------------------------------------------------------------------------------------------------------

MULTI = {"label-studio": "json", "doccano": "zip", "prodigy": "p", "brat": "b", "spacy": "spacy", "parquet": "parquet"}
MULTI |= {"conll": "conll", "table": "t", "sheet": "s", "jsonl": "jsonl"}


def without_places(corpus: Corpus) -> dict[str, Any]:
    return {document.id: (document.tokens, dict(document.annotations)) for document in corpus}


@pytest.mark.parametrize("name", MULTI)
def test_a_corpus_goes_out_and_comes_back(name: str, tmp_path: Path) -> None:
    corpus = quorate.read(EXAMPLES / "crowd.jsonl")
    path = tmp_path / f"out.{MULTI[name]}"
    formats.write(corpus, path, name)
    assert without_places(quorate.read(path)) == without_places(corpus)
    if name not in ("conll", "table", "sheet", "parquet"):  # which hold tokens alone
        assert [document.text for document in quorate.read(path)] == [TEXT, RAIN]


@pytest.mark.parametrize("name", [name for name in READ if name not in MULTI])
def test_what_is_only_read_goes_through_jsonl(name: str, tmp_path: Path) -> None:
    corpus = quorate.read(example(name, tmp_path))
    formats.write(corpus, tmp_path / "out.jsonl")
    back = quorate.read(tmp_path / "out.jsonl")
    assert without_places(back) == without_places(corpus)
    assert [document.unit for document in back] == [document.unit for document in corpus]


@pytest.mark.parametrize("name", [name for name, format in FORMATS.items() if format.writes])
def test_the_consensus_holds_the_spans_of_the_result(name: str, tmp_path: Path) -> None:
    result = quorate.aggregate(quorate.read(EXAMPLES / "label-studio.json"), known="inline")
    path = tmp_path / ("out.jsonl" if name == "doccano" else f"out.{name}")
    result.write(path, name)
    expected = [[(*span[:3], pytest.approx(span.confidence, abs=1e-4)) for span in one.spans] for one in result]
    assert expected[0][0][:3] == (1, 3, "PER")
    assert CONSENSUS[name](path, result) == expected


def token_spans(document: Document) -> list[tuple[int, int, str]]:
    tags = next(iter(document.annotations.values()))
    return [span[:3] for span in quorate.corpus.tags.find_spans(tags)]  # type: ignore[arg-type]


def from_corpus(path: Path, result: quorate.Result) -> Any:
    """Readers give spans without confidence: what the result says of them is taken on trust."""
    return [
        [(*span, own.confidence) for span, own in zip(token_spans(document), one.spans, strict=True)]
        for document, one in zip(quorate.read(path), result, strict=True)
    ]


def from_label_studio(path: Path, result: quorate.Result) -> Any:
    found = []
    for task, one in zip(json.loads(path.read_text()), result, strict=True):
        prediction = task["predictions"][0]
        assert prediction["model_version"] == "quorate auto"
        assert prediction["score"] == pytest.approx(one.confidence, abs=1e-6)
        rows = []
        for region in prediction["result"]:
            value = region["value"]
            assert (region["from_name"], region["type"]) == ("ner", "labels")
            units = task["data"]["text"].encode("utf-16-le")
            assert units[2 * value["start"] : 2 * value["end"]].decode("utf-16-le") == value["text"]
            rows.append((value["text"], value["labels"][0], region["score"]))
        found.append([(*span[:2], label, score) for span, (_, label, score) in zip(one.spans, rows, strict=True)])
        assert [one.text(span) for span in one.spans] == [text for text, _, _ in rows]
    return found


def from_csv(path: Path, result: quorate.Result) -> Any:
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    texts = {(row["id"], row["text"]): (row["label"], float(row["confidence"])) for row in rows}
    return [[(*span[:2], *texts[one.document.id, one.text(span)]) for span in one.spans] for one in result]


def from_prodigy(path: Path, result: quorate.Result) -> Any:
    answers = [json.loads(line) for line in path.read_text().splitlines()]
    for answer in answers:
        for span in answer["spans"]:
            first, last = answer["tokens"][span["token_start"]], answer["tokens"][span["token_end"]]
            assert (first["start"], last["end"]) == (span["start"], span["end"])
    return [
        [(s["token_start"], s["token_end"] + 1, s["label"], s["score"]) for s in answer["spans"]] for answer in answers
    ]


def from_jsonl(path: Path, result: quorate.Result) -> Any:
    return [[span[:4] for span in record.token_spans()] for record in formats.read_consensus(path)]


def from_brat(path: Path, result: quorate.Result) -> Any:
    notes = [line for line in (path / "11.ann").read_text().splitlines() if line.startswith("#")]
    assert notes[0].split("\t")[1:] == ["AnnotatorNotes T1", f"confidence {result['11'].spans[0].confidence:.4f}"]
    return from_corpus(path, result)


def from_cas(path: Path, result: quorate.Result) -> Any:
    """Offsets by an encoder: those of a CAS are UTF-16."""
    found = []
    for one in result:
        content = json.loads((path / f"{one.document.id}.json").read_text())["%FEATURE_STRUCTURES"]
        (text,) = (each["sofaString"] for each in content if "sofaString" in each)
        rows = [each for each in content if each["%TYPE"].endswith("NamedEntity")]
        units = text.encode("utf-16-le")
        words = [units[2 * row["begin"] : 2 * row["end"]].decode("utf-16-le") for row in rows]
        assert words == [one.text(span) for span in one.spans]
        found.append([(*span[:2], row["value"], span.sure) for span, row in zip(one.spans, rows, strict=True)])
    return found


def from_spacy(path: Path, result: quorate.Result) -> Any:
    import spacy
    from spacy.tokens import DocBin

    docs = list(DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab))
    assert [doc.text for doc in docs] == [TEXT, RAIN]
    assert all(doc.has_annotation("ENT_IOB") for doc in docs)
    scores = [doc.spans["quorate"].attrs.get("scores", []) for doc in docs]
    return [
        [(ent.start, ent.end, ent.label_, score) for ent, score in zip(doc.ents, own, strict=True)]
        for doc, own in zip(docs, scores, strict=True)
    ]


def from_parquet(path: Path, result: quorate.Result) -> Any:
    datasets = pytest.importorskip("datasets")
    loaded = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(path.parent / "cache"))
    names = loaded.features["ner_tags"].feature.names
    assert names == list(result.labels)
    for row, one in zip(loaded, result, strict=True):
        assert [names[tag] for tag in row["ner_tags"]] == one.tags
        np.testing.assert_allclose(row["soft_labels"], one.probabilities)
    soft = quorate.read(path)[0].annotations["out"]
    assert isinstance(soft[1], Mapping)
    assert soft[1]["B-PER"] == pytest.approx(result[0].probabilities[1][result.labels.index("B-PER")])
    return [[span[:4] for span in one.spans] for one in result]


CONSENSUS: dict[str, Callable[[Path, quorate.Result], Any]] = {
    "jsonl": from_jsonl,
    "label-studio": from_label_studio,
    "doccano": from_corpus,
    "prodigy": from_prodigy,
    "brat": from_brat,
    "cas": from_cas,
    "spacy": from_spacy,
    "parquet": from_parquet,
    "conll": from_corpus,
    "table": from_corpus,
    "sheet": from_corpus,
    "csv": from_csv,
}


def test_consensus_jsonl_is_in_the_offsets_of_the_input(tmp_path: Path) -> None:
    result = quorate.aggregate(quorate.read(EXAMPLES / "label-studio.json"), known="inline")
    result.write(tmp_path / "c.jsonl")
    line = json.loads((tmp_path / "c.jsonl").read_text().splitlines()[0])
    assert line["offset_unit"] == "utf-16"
    assert [(span["start"], span["end"], span["text"]) for span in line["spans"]] == [
        (3, 9, "Ada Ng"),
        (18, 22, "Rome"),
    ]


def test_a_docbin_trains(tmp_path: Path) -> None:
    """What is written is what ``spacy train`` takes."""
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    from spacy.training import Corpus as SpacyCorpus

    quorate.aggregate(quorate.sample(), "mv").write(tmp_path / "train.spacy")
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    examples = list(SpacyCorpus(tmp_path / "train.spacy")(nlp))
    assert len(examples) == 320
    nlp.initialize(lambda: examples[:50])
    losses = nlp.update(examples[:50], sgd=nlp.create_optimizer())
    assert losses["ner"] > 0


def test_blanks_and_line_ends_survive_a_docbin(tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    text = "  Ada \r\n\r\n sang  "
    line = {"id": "1", "text": text, "annotations": {"ann": [{"start": 2, "end": 5, "label": "PER"}]}}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    formats.write(quorate.read(tmp_path / "a.jsonl"), tmp_path / "a.spacy")
    back = quorate.read(tmp_path / "a.spacy")[0]
    assert (back.text, back.tokens, back.annotations) == (text, ("Ada", "sang"), {"ann": ("B-PER", "O")})


def test_a_table_of_spans_counts_tokens_where_there_is_no_text(tmp_path: Path) -> None:
    """As JSONL does: characters would be of a text that nobody has."""
    marks = [{"start": 5, "end": 11, "label": "PER"}]
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"id": "text", "text": "Then Ada Ng sang", "annotations": {"ann": marks}})
    )
    tags = {"ann": ("O", "B-PER", "I-PER", "O")}
    tokens = Document("tokens", ("Then", "Ada", "Ng", "sang"), tags)
    no_words = Document("no words", ("item",) * 4, tags)
    formats.write(Corpus([*quorate.read(tmp_path / "a.jsonl"), tokens, no_words]), tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    columns = ("id", "start", "end", "token_start", "token_end", "text")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("text", "5", "11", "1", "3", "Ada Ng"),
        ("tokens", "1", "3", "1", "3", "Ada Ng"),
        ("no words", "1", "3", "1", "3", ""),
    ]


def test_what_a_format_cannot_hold_is_said(tmp_path: Path) -> None:
    plain = Corpus([Document("1", ("a",), {"ann": ("cat",), "bob": ("dog",)})])
    for name in ("brat", "spacy", "csv", "prodigy", "doccano"):
        with pytest.raises(OutputError, match="plain labels mark no spans"):
            formats.write(plain, tmp_path / "out", name)
    soft = Corpus([Document("1", ("a",), {"m": ({"B-X": 0.5, "O": 0.5},)})])
    for name in ("conll", "table", "sheet", "parquet"):
        with pytest.raises(quorate.QuorateError, match="no probabilities"):
            formats.write(soft, tmp_path / "out", name)
    with pytest.raises(InputError, match="2 annotators, where one file holds one"):
        formats.write(quorate.read(EXAMPLES / "crowd.jsonl"), tmp_path / "out.jsonl", "doccano")
    with pytest.raises(SettingsError, match="a format that is not written: 'argilla'"):
        formats.write(soft, tmp_path / "out", "argilla")
    with pytest.raises(SettingsError, match="unknown format 'xml'"):
        quorate.read(EXAMPLES / "crowd.jsonl", format="xml")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(OutputError, match="there already, and not an empty folder"):
        formats.write(quorate.read(EXAMPLES / "crowd.jsonl"), tmp_path / "full", "brat")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]  # nothing half written


# Damaged ------------------------------------------------------------------------------------------------------------

TASK = {"id": 1, "data": {"text": "Ada"}, "annotations": []}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("label-studio", json.dumps([TASK, {"id": 2, "annotations": []}]), r"in, task 2: not a .*'data' is missing"),
        ("label-studio", json.dumps([TASK, TASK])[:-5], r"in, task 2: the file ends in the middle"),
        ("label-studio", json.dumps([{**TASK, "data": {}}]), r"in, task 1: no telling which field of 'data'"),
        ("doccano", '{"id": 1, "text": "Ada"}', r"in:1: neither 'label' nor 'entities'"),
        ("doccano", '{"id": 1, "text": "Ada", "label": [[0, 9, "PER"]]}', r"in:1: document '1': span 0–9 'PER' ends"),
        ("prodigy", '{"text": "Ada", "answer": "maybe"}', r"in:1: answer 'maybe' is not known"),
        ("prodigy", '{"text": "Ada"}\n{"spans": []}', r"in:2: not an answer of Prodigy: 'text' is missing"),
        ("argilla", '[{"id": "1", "fields": {"a": "x", "b": "y"}}]', r"in, record 1: no telling which field is"),
        ("sagemaker", '{"source": "Ada"}', r"in:1: no 'annotationsFromAllWorkers' in this line"),
        ("sagemaker", '{"source-ref": "s3://x"}', r"in:1: no text in 'source'"),
        ("cas", "<xmi", r"in: not a CAS: .*TypeSystem\.xml"),
        ("cas", '{"%TYPES": {}}', r"in: not a CAS: "),
        ("spacy", "x\x9c damaged", r"in: not a DocBin: "),
        ("parquet", "PAR1 damaged", r"in: not a Parquet or Arrow file: "),
        ("huggingface", "damaged", r"in: not a Parquet or Arrow file: "),
        ("conll", "Ada B-PER O\nsang O", r"in:2: 2 columns where 3 were expected"),
        ("mace", "O,O\nO", r"in:2: 1 cells where 2 were expected"),
        ("table", "doc,token,worker,label\nd,one,ann,O", r"in:2: token 'one' is not a number"),
        ("sheet", "doc,token,ann\nd,Ada,B-PER\nd,sang", r"in:3: 2 cells where 3 were expected"),
        ("jsonl", '{"id": "1"}', r"in:1: neither 'tokens' nor 'text'"),
    ],
)  # fmt: skip
def test_damaged_files_say_where_and_what(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(content.encode("latin-1" if name == "spacy" else "utf-8"))
    with pytest.raises(InputError, match=message) as caught:
        quorate.read(tmp_path / "in", format=name)
    assert "\n" not in str(caught.value)


def test_damaged_brat(tmp_path: Path) -> None:
    (tmp_path / "1.ann").write_text("T1\tPER 0 3\tAda\nT2 PER 0 3 Ada\n")
    with pytest.raises(InputError, match=r"1\.ann: no 1\.txt beside it"):
        quorate.read(tmp_path)
    (tmp_path / "1.txt").write_text("Ada")
    with pytest.raises(InputError, match=r"1\.ann:2: not a span"):
        quorate.read(tmp_path)


def test_discontinuous_spans_of_brat(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("Ada and Bob Ng")
    (tmp_path / "1.ann").write_text("T1\tPER 0 3;12 14\tAda Ng\n")
    corpus = quorate.read(tmp_path)
    assert corpus[0].annotations == {tmp_path.name: ("B-PER", "O", "O", "B-PER…")}
    assert corpus.notes == ()


def test_damaged_zips(tmp_path: Path) -> None:
    whole = doccano_zip(tmp_path).read_bytes()
    (tmp_path / "a.zip").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"a\.zip: damaged zip file"):
        quorate.read(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(InputError, match=r"b\.zip: a zip file of none of the formats .*\(unpack it"):
        quorate.read(tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "c.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
    with pytest.raises(InputError, match=r"c\.xlsx: a document of an office program \(save a table as CSV\)"):
        quorate.read(tmp_path / "c.xlsx")


# Names --------------------------------------------------------------------------------------------------------------


def test_labels_are_renamed_merged_and_dropped(tmp_path: Path) -> None:
    corpus = quorate.read(EXAMPLES / "crowd.jsonl", map_labels="PER=NAME,LOC=NAME")
    assert corpus["1"].annotations["ann"] == ("O", "B-NAME", "I-NAME", "O", "O", "B-NAME", "O")
    dropped = quorate.read(EXAMPLES / "columns.conll", map_labels={"LOC": None})
    assert dropped["1"].annotations["ann"] == ("O", "B-PER", "I-PER", "O", "O", "O", "O")
    assert dropped.notes == ("1 label was dropped by --map-labels",)
    (tmp_path / "map.json").write_text('{"PER": "PER", "*": null}')
    only = quorate.read(EXAMPLES / "label-studio.json", map_labels=tmp_path / "map.json")
    assert only["11"].annotations["ann@example.com"] == ("O", "B-PER", "I-PER", "O", "O", "O", "O")
    with pytest.raises(SettingsError, match="'PER' is not of the form OLD=NEW"):
        quorate.read(EXAMPLES / "crowd.jsonl", map_labels="LOC=X,PER")
    for given in ("no-such-file.json", "PER"):
        with pytest.raises(InputError, match=f"^{given}: no such file, and not of the form OLD=NEW"):
            quorate.read(EXAMPLES / "crowd.jsonl", map_labels=given)


@pytest.mark.parametrize("read", [quorate.read, quorate.formats.read_layers])
def test_names_in_a_map_that_nothing_has_are_noted(tmp_path: Path, read: Any) -> None:
    def notes(**changes: Any) -> set[str]:
        found = read(EXAMPLES / "crowd.jsonl", **changes)
        corpora = [found] if isinstance(found, quorate.Corpus) else found.values()
        return {note for corpus in corpora for note in corpus.notes if note.startswith("--map")}

    assert notes(map_labels={"LCO": "PLACE"}) == {"--map-labels: no label is called LCO (did you mean LOC?)"}
    assert notes(map_labels="PERSN=PER,LOC=PLACE") == {"--map-labels: no label is called PERSN"}
    assert notes(map_labels={"MISC": "MISC", "*": None, "O": "O"}) == set()
    assert notes(map_annotators="9=anna,bobb=bob2") == {
        "--map-annotators: no annotator is called 9, bobb (did you mean bob?)"
    }
    assert notes(map_annotators="bobb=bob2", pseudonymise=tmp_path / "who.json") == {
        "--map-annotators: 1 name is nobody's"
    }
    assert notes(map_annotators="bob=ann", map_labels="PER=") == set()


def test_soft_labels_are_merged(tmp_path: Path) -> None:
    line = {"id": "1", "tokens": ["Ada"], "annotations": {"m": [{"B-PER": 0.5, "B-LOC": 0.25, "O": 0.25}]}}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    corpus = quorate.read(tmp_path / "a.jsonl", map_labels="LOC=PER")
    assert corpus[0].annotations["m"] == ({"B-PER": 0.75, "O": 0.25},)


def test_two_accounts_of_one_person() -> None:
    corpus = quorate.read(EXAMPLES / "crowd.jsonl", map_annotators="bob=ann")
    assert corpus["1"].annotations == {"ann": SHORT}
    assert corpus.notes == (
        "1 annotation was replaced by a later one of the same document by the same annotator",
        "1 document holds emoji or Windows line ends before a span, and nothing tells what offsets count: code points "
        "were assumed (commands that read annotations take --offsets to say it)",
    )
    assert quorate.read(EXAMPLES / "crowd.jsonl", map_annotators={"bob": None})["1"].annotations == {"ann": FULL}


def test_annotations_that_were_replaced_are_counted_and_not_their_documents(tmp_path: Path) -> None:
    line = {"id": "1", "tokens": ["Ada"], "annotations": {name: ["O"] for name in ("ann", "bob", "cat", "dan")}}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    corpus = quorate.read(tmp_path / "a.jsonl", map_annotators="bob=ann,dan=cat")
    assert corpus.notes == ("2 annotations were replaced by a later one of the same document by the same annotator",)


def test_pseudonyms_stay_the_same_and_leak_nothing(tmp_path: Path) -> None:
    table = tmp_path / "who.json"
    first = quorate.read(EXAMPLES / "doccano", pseudonymise=table)
    second = quorate.read(EXAMPLES / "brat", pseudonymise=table)
    names = json.loads(table.read_text())
    assert set(names) == {"ann", "bob"}
    assert first.annotators == second.annotators == tuple(sorted(names.values()))
    assert first["1"].annotations[names["ann"]] == FULL
    model = bsc("bsc-seq", max_iter=2).fit(first)
    model.save(tmp_path / "m.quorate")
    formats.write(first, tmp_path / "out.jsonl")
    model.result_.write(tmp_path / "c.json")
    written = b"".join((tmp_path / name).read_bytes() for name in ("out.jsonl", "c.json")) + repr(model.meta_).encode()
    assert b"ann.jsonl" not in written
    assert b'"ann"' not in written
    table.write_text('{"ann": "x", "bob": "x"}')
    with pytest.raises(InputError, match="two names have the same pseudonym"):
        quorate.read(EXAMPLES / "doccano", pseudonymise=table)


# Who they are -------------------------------------------------------------------------------------------------------


def test_profiles_tell_what_is_known_and_change_no_label(tmp_path: Path) -> None:
    (tmp_path / "who.json").write_text('{"bob": {"kind": "rule"}, "ann": {"kind": "expert", "trust": 5}}')
    corpus = quorate.read(EXAMPLES / "crowd.jsonl", annotators=tmp_path / "who.json")
    assert corpus["1"].annotations == {"ann": FULL, "bob": SHORT}
    assert corpus.profiles["ann"].trust == 5
    assert corpus.profiles["bob"].abstains
    talks = quorate.read(EXAMPLES / "crowd.jsonl", annotators={"bob": {"kind": "rule", "abstains": False}})
    assert not talks.profiles["bob"].abstains


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"kind": "robot"}, "annotator 'bob': kind 'robot' is not known"),
        ({"trust": -1}, "annotator 'bob': trust must be from 0 to 1000, not -1"),
        ({"trust": "high"}, "annotator 'bob': trust must be a number"),
        ({"abstains": "yes"}, "annotator 'bob': abstains must be true or false"),
        ({"group": ""}, "annotator 'bob': group must be a name, not ''"),
        ({"group": 3}, "annotator 'bob': group must be a name, not 3"),
        ({"belief": 1}, "annotator 'bob': a profile has no field 'belief' \\(one of: kind, trust, abstains, group\\)"),
        ({"kin": "rule"}, "annotator 'bob': a profile has no field 'kin' \\(did you mean 'kind'"),
        (5, "annotator 'bob': not a profile"),
    ],
)
def test_bad_profiles(profile: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        quorate.read(EXAMPLES / "crowd.jsonl", annotators={"bob": profile})


def test_a_profile_adds_to_what_the_file_says(tmp_path: Path) -> None:
    """Another kind brings its own trust and silence; a whole profile is taken as it is."""
    given = {"id": "1", "tokens": ["Ada"], "annotations": {"llm": ["B-PER"], "ann": ["O"]}}
    own = {"llm": {"kind": "model", "group": "llm-c", "trust": 2}}
    (tmp_path / "crowd.jsonl").write_text(json.dumps(given | {"profiles": own}))

    def of_llm(**fields: Any) -> Profile:
        return quorate.read(tmp_path / "crowd.jsonl", annotators={"llm": fields}).profiles["llm"]

    assert quorate.read(tmp_path / "crowd.jsonl").profiles == {"llm": Profile.of("model", 2, group="llm-c")}
    assert of_llm(group="solo") == Profile.of("model", 2, group="solo")
    assert of_llm(kind="rule") == Profile.of("rule", group="llm-c")
    assert of_llm(trust=5, group=None) == Profile.of("model", 5)
    whole = quorate.read(tmp_path / "crowd.jsonl", annotators={"llm": Profile.of("expert")})
    assert whole.profiles == {"llm": Profile.of("expert")}
    pseudonymous = quorate.read(tmp_path / "crowd.jsonl", pseudonymise=tmp_path / "names.json")
    assert [profile.kind for profile in pseudonymous.profiles.values()] == ["model"]


def test_profiles_of_several_lines_files_and_names(tmp_path: Path) -> None:
    """Lines add to each other; who has no name has the file's; one's own comes before that of who became one."""

    def written(name: str, *lines: dict[str, Any]) -> Path:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"tokens": ["Ada"]} | line) + "\n" for line in lines))
        return path

    told: dict[str, Any] = {"annotations": {"llm": ["O"]}, "profiles": {"llm": {"kind": "model"}}}
    more = {"annotations": {"llm": ["O"]}, "profiles": {"llm": {"group": "g"}}}
    assert quorate.read(written("llm", told, more)).profiles == {"llm": Profile.of("model", group="g")}
    same = {"annotations": {"llm": ["O"]}, "profiles": {"llm": {"kind": "model", "trust": 20}}}
    again = quorate.read(written("same", same), annotators={"llm": {"kind": "model", "group": "g"}})
    assert again.profiles == {"llm": Profile.of("model", 20, group="g")}
    nameless = written("ann", {"annotations": {"": ["O"]}, "profiles": {"": {"kind": "rule"}}})
    assert quorate.read(nameless).profiles == {"ann": Profile.of("rule")}
    both = {"alice": {"kind": "expert"}, "bob": {"kind": "model"}}
    merged = written("two", {"annotations": {"bob": ["O"]}, "profiles": both}, {"annotations": {"alice": ["O"]}})
    renamed = quorate.read(merged, map_annotators={"bob": "alice"})
    assert renamed.profiles == {"alice": Profile.of("expert")}
    profiles: dict[str, Profile] = {}
    gone = written("gone", {"annotations": {"bob": ["O"]}, "profiles": both})
    assert len(list(formats.documents(gone, notes=formats.Notes(), digests={}, profiles=profiles))) == 1
    assert profiles == quorate.read(gone).profiles == {"bob": Profile.of("model")}


@pytest.mark.parametrize("hidden", [False, True])
def test_a_profile_of_nobody_says_who_may_be_meant_unless_names_are_hidden(hidden: bool, tmp_path: Path) -> None:
    names = tmp_path / "names.json" if hidden else None
    corpus = quorate.read(EXAMPLES / "crowd.jsonl", annotators={"ANN": {"kind": "expert"}}, pseudonymise=names)
    assert "no document is annotated by ANN" + ("" if hidden else " (did you mean ann?)") in corpus.notes


def test_a_file_that_says_who_has_a_name_of_gold_is_not_warned_of(tmp_path: Path) -> None:
    line: dict[str, Any] = {"tokens": ["Ada"], "annotations": {"gold": ["O"]}}
    (tmp_path / "crowd.jsonl").write_text(json.dumps(line))
    assert any("name of gold" in note for note in quorate.read(tmp_path / "crowd.jsonl").notes)
    (tmp_path / "crowd.jsonl").write_text(json.dumps(line | {"profiles": {"gold": {"kind": "expert"}}}))
    assert not quorate.read(tmp_path / "crowd.jsonl", annotators={"gold": {"group": "g"}}).notes


def test_profiles_are_in_jsonl_and_a_note_says_where_they_are_not(tmp_path: Path) -> None:
    """Each is told once, with the first document that the annotator saw."""
    both = {"ann": FULL, "llm": FULL}
    documents = [Document("1", TOKENS, {"ann": FULL}), Document("2", TOKENS, both), Document("3", TOKENS, both)]
    profiles = {"llm": Profile.of("model", group="llm-c"), "ann": Profile.of("expert")}
    corpus = Corpus(documents, profiles=profiles)
    assert write(corpus, tmp_path / "crowd.jsonl") == []
    lines = [json.loads(line) for line in (tmp_path / "crowd.jsonl").read_text().splitlines()]
    assert [sorted(line.get("profiles", {})) for line in lines] == [["ann"], ["llm"], []]
    assert quorate.read(tmp_path / "crowd.jsonl").profiles == profiles
    layers = quorate.read_layers(tmp_path / "crowd.jsonl")
    assert all(each.profiles == profiles for each in layers.values())
    assert write(layers, tmp_path / "layers.jsonl") == []
    assert quorate.read(tmp_path / "layers.jsonl").profiles == profiles
    [note] = write(corpus, tmp_path / "crowd.conll")
    assert note.startswith("what is known beforehand of 2 annotators (kind, group) is not in it")
    for wrong in ("5", '{"ann": 5}', '{"ann": {"kin": 1}}'):
        (tmp_path / "wrong.jsonl").write_text(f'{{"id": "1", "tokens": ["Ada"], "profiles": {wrong}}}')
        with pytest.raises(InputError, match=r"wrong.jsonl:1: .*profile"):
            quorate.read(tmp_path / "wrong.jsonl")


def test_a_group_is_read_and_kept_wherever_profiles_are(tmp_path: Path) -> None:
    (tmp_path / "who.json").write_text('{"ann": {"kind": "model", "group": "llm-c"}, "bob": {"group": null}}')
    corpus = quorate.read(EXAMPLES / "crowd.jsonl", annotators=tmp_path / "who.json")
    assert {name: profile.group for name, profile in corpus.profiles.items()} == {"ann": "llm-c", "bob": None}
    store(corpus, tmp_path / "c.corpus")
    assert quorate.read(tmp_path / "c.corpus").profiles == corpus.profiles
    bsc("bsc-cm", max_iter=3).fit(corpus).save(tmp_path / "m.quorate")
    assert loaded(tmp_path / "m.quorate").profiles_ == corpus.profiles
    hidden = quorate.read(
        EXAMPLES / "crowd.jsonl", annotators=tmp_path / "who.json", pseudonymise=tmp_path / "names.json"
    )
    assert "llm-c" not in repr(hidden.profiles)
    assert sum(profile.group is not None for profile in hidden.profiles.values()) == 1


def test_a_profile_of_nobody_is_noted() -> None:
    corpus = quorate.read(EXAMPLES / "crowd.jsonl", annotators={"eve": {"kind": "expert"}})
    assert "no document is annotated by eve" in corpus.notes


def test_tags_of_a_span_format_keep_their_place_after_replace() -> None:
    document = quorate.read(EXAMPLES / "label-studio.json")["11"]
    assert replace(document, split="dev").origin is document.origin
