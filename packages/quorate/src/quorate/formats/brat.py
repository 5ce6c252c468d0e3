"""brat's standoff folders: ``NAME.txt`` with the text, ``NAME.ann`` with ``T1⇥PER 0 5⇥Alice``, a folder an annotator.

Offsets are code points. A discontinuous span is ``0 5;10 12``, its text that of its pieces with blanks between; so brat
itself writes a span that crosses the end of a line. Relations, events and notes are passed over. A text without
``.ann`` was not seen, one with an empty ``.ann`` was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from quorate.corpus.offsets import Unit
from quorate.corpus.records import Source
from quorate.corpus.spans import CharSpan
from quorate.errors import InputError
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument, outward_spans
from quorate.formats.folders import targets
from quorate.formats.marked import Marked
from quorate.formats.notes import Notes
from quorate.formats.opened import Input
from quorate.storage.files.atomic import folder_written_whole

_OTHER_LINES = "{} {line|lines} about something other than spans {was|were} skipped"
_PIECE = re.compile(r"(\d+) (\d+)")
_NOT_IN_LABELS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")  # blanks part fields, and line ends would begin a line


def read(given: Input, notes: Notes) -> Iterator[Marked]:
    """The documents under a folder, a record for each annotator and document."""
    root = Path(given.name)
    files = [root] if root.is_file() else sorted(root.rglob("*.ann"))
    for path in files:
        folder = path.parent.relative_to(root) if root.is_dir() else Path()
        annotator = "" if folder == Path() else folder.as_posix()
        text = _content(_text_of(path, root))
        marks = list(_marks(path, notes))
        yield Marked(path.stem, text, {annotator: marks}, Source(str(path), 1), unit=Unit.CODE_POINTS)


def _text_of(path: Path, root: Path) -> Path:
    """The text of an ``.ann`` file: beside it, or in a folder above that the annotators share."""
    for folder in path.parents:
        text = folder / f"{path.stem}.txt"
        if text.is_file():
            return text
        if folder == root:
            break
    raise InputError(f"no {path.stem}.txt beside it (brat keeps the text there)", where=str(path))


def _content(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")  # bytes, so that line ends stay as they are
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text (save the file as UTF-8)", where=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None


def _marks(path: Path, notes: Notes) -> Iterator[CharSpan]:
    for number, line in enumerate(_content(path).removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        if not line.startswith("T"):
            notes.count(_OTHER_LINES, 1)
            continue
        _, _, rest = line.rstrip("\r").partition("\t")
        place, _, words = rest.partition("\t")
        label, _, offsets = place.partition(" ")
        found = [_PIECE.fullmatch(piece) for piece in offsets.split(";")]
        pieces = tuple((int(piece[1]), int(piece[2])) for piece in found if piece is not None)
        if not label or len(pieces) < len(found):
            raise InputError(
                "not a span (T1⇥LABEL START END⇥TEXT, separated by tabs; pieces START END;START END)",
                where=f"{path}:{number}",
            )
        start, end = min(start for start, _ in pieces), max(end for _, end in pieces)
        yield CharSpan(start, end, label, words or None, pieces=pieces if len(pieces) > 1 else ())


def write(export: Export, path: str) -> None:
    """A folder of ``.txt`` and ``.ann`` files; one folder in it for each annotator, unless it is the consensus."""
    export.check_spans("brat's standoff")
    with folder_written_whole(path) as folder:
        for target, exported, annotation in targets(export, folder, ".txt"):
            target.write_bytes(exported.text().encode())
            target.with_suffix(".ann").write_bytes("".join(_lines(exported, annotation)).encode())


def _lines(exported: ExportDocument, annotation: ExportAnnotation) -> Iterator[str]:
    for number, span in enumerate(outward_spans(exported, annotation, Unit.CODE_POINTS), 1):
        words = " ".join((span.text or "").splitlines()).replace("\t", " ")
        places = ";".join(f"{start} {end}" for start, end in span.parts)
        yield f"T{number}\t{_NOT_IN_LABELS.sub('_', span.label)} {places}\t{words}\n"
        if span.confidence is not None:
            yield f"#{number}\tAnnotatorNotes T{number}\tconfidence {span.confidence:.4f}\n"
