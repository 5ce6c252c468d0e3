"""A draft of a project's ``quorate.toml``, from a look at the files that are there."""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from quorate.corpus.records import Corpus
from quorate.errors import InputError, QuorateError
from quorate.formats import read
from quorate.formats.notes import some
from quorate.formats.repeated import file_per_annotator, texts_by_file
from quorate.project.tables import with_values
from quorate.project.texts import Text, as_jsonl, plain_texts
from quorate.wording import counted

_ENDINGS = (".jsonl", ".json", ".conll", ".csv", ".tsv", ".zip", ".parquet", ".spacy", ".manifest", ".gz", ".qr")
_NOT_INPUTS = ("consensus", "gold", "review", "known", "checked", "audit", "correct", "adjudicate", "meta")
_OVERLAP = "overlap"  # in a note of the reader: spans were left out for want of layers
_NOT_ANNOTATED = "nobody's annotations are in it (to have it annotated: --labels PER,LOC)"
_HEAD = """\
# What a quorate project reads, how it is combined, and what is written; all paths are relative to this folder.
# 'quorate run' does the job, 'quorate status' says what is new. Options are those of the commands, without the dashes:
# 'quorate aggregate --help' lists them.

"""


class Draft(NamedTuple):
    """The text of the file, and what was seen, in sentences; ``texts`` are files to write for plain texts, by name."""

    text: str
    seen: list[str]
    texts: Mapping[str, bytes] = MappingProxyType({})


def draft_settings_file(folder: Path, given: Sequence[str], serve: Mapping[str, Any] | None = None) -> Draft:
    """The file for a new project in a folder: with the inputs that were given, or those that are found there.

    With ``serve``, what the service is told, inputs may be texts that nobody has annotated; plain texts are to be
    written once more, as JSONL.

    >>> import tempfile
    >>> from quorate.corpus.sample import sample
    >>> from quorate.formats import write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write(sample(), f"{folder}/crowd.jsonl")
    ...     draft_settings_file(Path(folder), []).seen
    ['crowd.jsonl: 320 documents, 12 annotators, labels LOC, ORG, PER, WORK']
    """
    paths = [Path(name) for name in given] or _candidates(folder)
    if not paths:
        raise InputError("no file with annotations in this folder (name them: quorate init exports/*.json)")
    seen, names, notes, numbered = [], [], list[str](), dict[str, list[int]]()
    written: dict[str, bytes] = {}
    for path in paths:
        texts = _plain_texts(path) if given else None
        if texts is not None and serve is None and _is_prose(texts):  # which a reader would take for columns of tags
            raise InputError(_NOT_ANNOTATED, where=str(path))
        if texts is not None and serve is not None:
            name = _name(path.with_suffix(".jsonl"), folder)
            if name in written or (folder / name).exists():
                raise InputError(f"{name} is here already (name that, or move it away)", where=str(path))
            names.append(name)
            written[name] = as_jsonl(texts)
            seen.append(f"{_name(path, folder)}: {counted(len(texts), 'text')}, written to {name}")
            continue
        corpus = _corpus(path, required=bool(given), annotated=serve is None)
        if corpus is not None:
            name = _name(path, folder)
            names.append(name)
            notes += corpus.notes
            seen.append(f"{name}: {_in_words(corpus)}")
            if corpus.numbered:
                numbered |= texts_by_file((document, len(document.annotations)) for document in corpus)
    if not names:
        raise InputError("no file in this folder has annotations (name them: quorate init exports/*.json)")
    layers = any(_OVERLAP in note for note in notes)
    alike = file_per_annotator(numbered)
    each_of_one = len(alike.files) == len(names)
    if each_of_one:
        seen.append(f"all {len(names):,} have the same texts: each is taken for one annotator's, named by the file")
    elif alike.note:
        seen.append(alike.note)
    text = settings_text(patterns_of(names), layers=layers, each_of_one=each_of_one, serve=serve)
    return Draft(text, seen, written)


def settings_text(
    inputs: Sequence[str],
    *,
    layers: bool = False,
    each_of_one: bool = False,
    format: str | None = None,
    serve: Mapping[str, Any] | None = None,
) -> str:
    """The text of the file for these inputs; with ``serve``, what the service is told."""
    text = _HEAD + _body(inputs, layers, each_of_one)
    if format is not None:
        text = with_values(text, "aggregate", {"from": format})
    return text if serve is None else with_values(text, "serve", serve)


def _body(inputs: Sequence[str], layers: bool, each_of_one: bool) -> str:
    own = 'annotator-from = "filename"' if each_of_one else '# annotator-from = "filename"'
    listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in inputs)
    return f"""\
# Files, folders, or patterns; what is added to them later is found by the next run. A Label Studio project, pulled
# before every run: {{ label-studio = "http://localhost:8080", project = 3 }}
inputs = [{listed}]

# Labels that reviewers have decided: corrections exported from the report, say. They are taken as certain.
known = ["reviews/*.jsonl"]

[aggregate]
output = "consensus.jsonl"         # or several: ["consensus.jsonl", "train.spacy"]
report = "report.html"
{'layers = "auto"' if layers else '# layers = "auto"'}                  # spans that overlap are combined in layers
{own:<35}# each file is one annotator's
# method = "auto"                  # see: quorate methods
# map-labels = {{ PERS = "PER", MISC = "" }}
# map-annotators = {{ "ann@old.example" = "ann" }}
# annotators = "annotators.json"   # who is a rule or a model: docs/tools/models-and-rules.md
# accept = 0.95                    # only documents that are sure enough; the others go to:
# review = "unsure.jsonl"
"""


def _candidates(folder: Path) -> list[Path]:
    """Files that may hold annotations: here, or one folder below."""
    found = [path for pattern in ("*", "*/*") for path in sorted(folder.glob(pattern)) if path.is_file()]
    return [path for path in found if is_named_like_an_input(path.relative_to(folder))]


def is_named_like_an_input(path: Path) -> bool:
    """Whether a file may have annotations, by its path in the project.

    >>> [is_named_like_an_input(Path(name)) for name in ("exports/week-2.json", "consensus.jsonl", "notes.md")]
    [True, False, False]
    """
    return (
        path.name.endswith(_ENDINGS)
        and not any(part.startswith(".") for part in path.parts)
        and not any(word in str(path).lower() for word in _NOT_INPUTS)
    )


def _plain_texts(path: Path) -> list[Text] | None:
    """The texts in a file that has nothing but texts; ``None`` if it is one for the readers of annotations."""
    try:
        return plain_texts(path.read_bytes(), path.name) if path.is_file() else None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None


def _is_prose(texts: Sequence[Text]) -> bool:
    """Whether lines have as many words as they like, and not as many as there are columns."""
    return len({len(line.split()) for one in texts for line in one.text.split("\n")}) > 1


def _corpus(path: Path, *, required: bool, annotated: bool = True) -> Corpus | None:
    """The annotations in a file; ``None`` if it has none, or is no such file and need not be."""
    try:
        corpus = read(str(path))
    except QuorateError:
        if required:
            raise
        return None
    if not corpus.annotators and (annotated or not required):
        if required:
            raise InputError(_NOT_ANNOTATED, where=str(path))
        return None
    return corpus


def _in_words(corpus: Corpus) -> str:
    if not corpus.annotators:
        return counted(len(corpus), "text")
    labels = [kind for kind in corpus.tagset().types if kind]
    who = counted(len(corpus.annotators), "annotator")
    return f"{counted(len(corpus), 'document')}, {who}, labels {some(labels, 6)}"


def _name(path: Path, folder: Path) -> str:
    absolute = path if path.is_absolute() else folder / path
    return absolute.relative_to(folder).as_posix() if absolute.is_relative_to(folder) else str(path)


def patterns_of(names: Sequence[str]) -> list[str]:
    """Files of one folder and one ending as a pattern, so that later ones are found too; others by name.

    >>> patterns_of(["exports/week-1.json", "exports/week-2.json", "crowd.csv"])
    ['exports/*.json', 'crowd.csv']
    """
    found: dict[str, None] = {}
    for name in names:
        folder, ending = Path(name).parent, "".join(Path(name).suffixes[-2 if name.endswith(".gz") else -1 :])
        found[glob.escape(name) if folder == Path() else (folder / f"*{ending}").as_posix()] = None
    return list(found)
