"""Every format by name: what it is, whether it is read or written, how its files end, how its content gives it away."""

from __future__ import annotations

import io
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from quorate.corpus.tags import OUTSIDE, marks_span
from quorate.errors import InputError, SettingsError
from quorate.formats import sheet, table
from quorate.formats.json_records import first_keys
from quorate.formats.notes import some
from quorate.formats.zipped import member_names

_WINDOW = 1 << 16  # of a file, by which its format is told
_ROWS = 100  # of these
_LIBRARIES = {"cas": "cassis", "spacy": "spacy", "table": "pyarrow"}  # what the extras bring


class Format(NamedTuple):
    """A format: its module has ``read(given, notes)`` and ``write(export, path)``, as far as it reads and writes.

    ``merges``: records with the same id are one document, of several annotators. ``endings`` are those of files that
    are written in this format unless another is named. ``soft``: the probabilities of all labels are always written.
    ``folder``: what is written is a folder.
    """

    title: str
    module: str
    reads: bool = True
    writes: bool = True
    merges: bool = False
    endings: tuple[str, ...] = ()
    extra: str = ""
    soft: bool = False
    folder: bool = False

    @property
    def is_installed(self) -> bool:
        """Whether the library is there that it needs, if it needs one.

        >>> FORMATS["jsonl"].is_installed
        True
        """
        return not self.extra or find_spec(_LIBRARIES[self.extra]) is not None

    def check_installed(self) -> None:
        """:class:`SettingsError` if its library is not there.

        >>> FORMATS["jsonl"].check_installed()
        """
        if not self.is_installed:
            raise SettingsError(
                f"{self.title.partition(':')[0]} needs {_LIBRARIES[self.extra]} (pip install 'quorate[{self.extra}]')"
            )

    def load(self) -> ModuleType:
        """The module, loaded on first use."""
        return import_module(f"quorate.formats.{self.module}")


FORMATS: dict[str, Format] = {
    "jsonl": Format("quorate's own: a document a line", "jsonl", endings=(".jsonl", ".ndjson")),
    "label-studio": Format("Label Studio: JSON export, and predictions", "label_studio", endings=(".json",)),
    "doccano": Format("doccano: zip or JSONL of each user", "doccano", merges=True, endings=(".zip",)),
    "prodigy": Format("Prodigy: JSONL of answers", "prodigy", merges=True),
    "argilla": Format("Argilla 2: JSON records", "argilla", writes=False),
    "llm": Format("language models: JSONL of answers", "language_models", writes=False, merges=True),
    "brat": Format("brat: folders of .txt and .ann", "brat", merges=True, folder=True),
    "cas": Format(
        "INCEpTION, UIMA: XMI, CAS JSON, project export",
        "cas",
        merges=True,
        extra="cas",
        folder=True,
    ),
    "spacy": Format("spaCy: DocBin", "spacy_docs", endings=(".spacy",), extra="spacy"),
    "huggingface": Format("Hugging Face: saved dataset, Arrow", "huggingface", writes=False, extra="table"),
    "parquet": Format(
        "Hugging Face or long table: Parquet", "huggingface", endings=(".parquet",), extra="table", soft=True
    ),
    "conll": Format("CoNLL columns: a token a line", "conll", endings=(".conll", ".bio", ".iob", ".txt", ".tsv")),
    "mace": Format("MACE: CSV, a column an annotator", "mace", writes=False),
    "table": Format("crowd-kit: long table, a row a label (CSV, TSV)", "table"),
    "sheet": Format("spreadsheet, a row a token, a column an annotator (CSV, TSV)", "sheet"),
    "sagemaker": Format("SageMaker Ground Truth: manifest", "sagemaker", writes=False),
    "csv": Format("CSV of spans, a row a span", "spans_csv", reads=False, endings=(".csv",)),
}
"""The formats by name, as the command line has them."""


def named(name: str, *, to_write: bool = False) -> Format:
    """The format of that name, if it can be read (or written).

    >>> named("prodigy").title
    'Prodigy: JSONL of answers'
    """
    able = [each for each, format in FORMATS.items() if (format.writes if to_write else format.reads)]
    if name not in able:
        what = "unknown format" if name not in FORMATS else f"a format that is not {'written' if to_write else 'read'}:"
        raise SettingsError(f"{what} {name!r} (one of: {', '.join(able)})")
    return FORMATS[name]


# What endings of the package's own files stand for, and what writes such a file.
_NO_FORMAT = {
    ".quorate": "a model (--save)",
    ".qr": "an encoded corpus (quorate encode)",
    ".html": "a report (--report)",
    ".xlsx": "a spreadsheet (which can open .csv)",
    ".xls": "a spreadsheet (which can open .csv)",
    ".pdf": "a PDF",
    ".docx": "a text document",
}


def output_format(path: str) -> str:
    """The format that the ending of a path stands for; JSONL if it stands for none.

    :class:`SettingsError` if it stands for a file of another kind, which would be lost.

    >>> output_format("out/gold.spacy"), output_format("-"), output_format("consensus.jsonl.gz")
    ('spacy', 'jsonl', 'jsonl')
    """
    bare = path.removesuffix(".gz")
    other = next((what for ending, what in _NO_FORMAT.items() if bare.endswith(ending)), None)
    if other is not None:
        raise SettingsError(f"{path}: by its name this is {other}, not a file of annotations (give another, or --to)")
    return next(
        (name for name, format in FORMATS.items() if format.writes and bare.endswith(format.endings or "\0")), "jsonl"
    )


def check_report_name(path: str) -> None:
    """:class:`SettingsError` if the name of a report, which is HTML, stands for a file of another kind.

    >>> check_report_name("r.pdf")
    Traceback (most recent call last):
    quorate.errors.SettingsError: r.pdf: by its name this is a PDF, and a report is HTML (write r.html, and print that)
    """
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    annotations = {ending for format in FORMATS.values() for ending in format.endings}
    what = "a file of annotations" if ending in annotations else _NO_FORMAT.get(ending)
    if what is not None and ending != ".html":
        printed = ", and print that" if ending == ".pdf" else ""
        better = Path(path.removesuffix(".gz")).with_suffix(".html")
        raise SettingsError(f"{path}: by its name this is {what}, and a report is HTML (write {better}{printed})")


def folder_format(path: Path) -> str | None:
    """The format of a folder that is one whole; ``None`` if it holds files to read one by one."""
    if (path / "state.json").is_file() or (path / "dataset_dict.json").is_file():
        return "huggingface"
    return "brat" if next(path.rglob("*.ann"), None) is not None else None


_ANSWERS = ("answer", "answers", "output", "response", "completion")
_WHO_ANSWERED = ("annotator", "model", "prompt", "sample")

# Keys that give a JSON record away, the surest first.
_BY_KEYS: tuple[tuple[str, set[str]], ...] = (
    ("cas", {"%FEATURE_STRUCTURES"}),
    ("cas", {"%TYPES"}),
    ("argilla", {"fields", "responses"}),
    ("argilla", {"fields", "suggestions"}),
    ("label-studio", {"data", "annotations"}),
    ("label-studio", {"data", "predictions"}),
    ("sagemaker", {"source", "annotationsFromAllWorkers"}),
    ("sagemaker", {"dataObject", "annotations"}),
    ("prodigy", {"text", "_input_hash"}),
    ("prodigy", {"text", "spans", "tokens", "_annotator_id"}),
    ("jsonl", {"annotations"}),
    *(("llm", {who, answer}) for who in _WHO_ANSWERED for answer in _ANSWERS),
    ("prodigy", {"text", "answer"}),
    ("jsonl", {"tokens", "tags"}),
    ("jsonl", {"gold"}),
    ("doccano", {"text", "label"}),
    ("doccano", {"text", "labels"}),
    ("doccano", {"text", "entities"}),
    *(("llm", {given, answer}) for given in ("text", "tokens") for answer in _ANSWERS),
    ("sagemaker", {"source"}),
)


def sniff(stream: io.BufferedReader, name: str) -> str:
    """The format of a file, from its opening."""
    seen = stream.peek(_WINDOW)[:_WINDOW]
    opening = seen.removeprefix(b"\xef\xbb\xbf")
    head = opening.lstrip()
    if not head:
        raise InputError("the file is empty", where=name)
    if head.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
        return "parquet"
    if head.startswith(b"PK\x03\x04"):
        return _archive(stream, name)
    if head.startswith((b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")):
        return "spacy"
    if head.startswith(b"<"):
        return "cas"
    if head.startswith((b"{", b"[")):
        return _json(head, name)
    first_line = head.split(b"\n", 1)[0].strip()
    _refuse_short_export(set(table.names_in(first_line.decode("utf-8", "replace"))), "CSV", name)
    if table.is_header(first_line):
        return "table"
    if len(seen) == _WINDOW:  # the last line may go on
        opening = opening[: opening.rfind(b"\n") + 1] or opening
    if sheet.begins_sheet(opening):
        return "sheet"
    # In columns a token and its tags are parted by blanks; MACE has commas alone, or tabs in a file named so.
    if b"," in first_line and len(first_line.split()) == 1:
        return "mace"
    return "mace" if table.delimiter_of(name) == "\t" and _has_no_tokens(opening) else "conll"


def _refuse_short_export(keys: set[str], kind: str, name: str) -> None:
    """:class:`InputError` for the exports of Label Studio that leave most of it out."""
    if {"annotation_id", "lead_time"} <= keys:
        raise InputError(f"Label Studio's {kind} export, which is not read (export it as JSON)", where=name)


def _has_no_tokens(opening: bytes) -> bool:
    """Whether the first column has tags or empty cells alone, as MACE's has; or names that only tables of spans have.

    >>> _has_no_tokens(b"O\\tB-PER\\n\\tO\\n"), _has_no_tokens(b"Ada\\tB-PER\\nO\\tO\\n")
    (True, False)
    """
    lines = [line for line in opening.decode("utf-8", "replace").split("\n") if line.strip()][:_ROWS]
    if set(table.names_in(lines[0])) >= table.SPAN_COLUMNS:  # which are refused there
        return True
    rows = (line.split("\t") for line in lines)
    return all(len(row) > 1 and (row[0] in ("", OUTSIDE) or marks_span(row[0])) for row in rows)


def _json(head: bytes, name: str) -> str:
    keys = first_keys(head)
    _refuse_short_export(keys, "JSON-MIN", name)
    found = next((format for format, wanted in _BY_KEYS if wanted <= keys), None)
    if found is not None:
        return found
    if head.startswith(b"["):
        if head[1:].lstrip().startswith(b"]"):
            raise InputError("an empty JSON array: there is nothing in it to read", where=name)
        has = some(sorted(keys)) or "no keys"
        raise InputError(
            f"a JSON array of none of the formats known by their content: its first entry has {has} (say which it is "
            "with --from; see 'quorate formats')",
            where=name,
        )
    return "jsonl"


def _archive(stream: io.BufferedReader, name: str) -> str:
    names = member_names(stream, name)
    stream.seek(0)
    if any(
        member.endswith((".xmi", "TypeSystem.xml")) or member.startswith(("annotation/", "curation/"))
        for member in names
    ):
        return "cas"
    if any(member.endswith((".jsonl", ".json")) for member in names):
        return "doccano"
    if "[Content_Types].xml" in names:
        raise InputError("a document of an office program (save a table as CSV)", where=name)
    raise InputError(
        "a zip file of none of the formats known: doccano and INCEpTION export such (unpack it, give what is in it)",
        where=name,
    )
