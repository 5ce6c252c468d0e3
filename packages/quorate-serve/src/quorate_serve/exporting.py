"""What is in the service as a file, in any format that is written: everybody's annotations, or the consensus."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection

from quorate.corpus.records import Corpus
from quorate.formats import write
from quorate.formats.exports import Export
from quorate.formats.layers import Layers
from quorate.formats.registry import named
from quorate.storage.files.unfinished import beside
from quorate_serve.documents import GivenDocument, corpus_of, have_overlap, layers_of, marked_documents
from quorate_serve.people import people_of


def annotations_of(connection: Connection, *, names: bool) -> Corpus | Layers:
    """Everybody's annotations as they stand; in layers if somebody's spans overlap.

    With ``names`` annotators go by what they are called, otherwise by ids that say nothing.
    """
    given = list(marked_documents(connection))
    if names:
        called = {person.id: person.name for person in people_of(connection)}
        given = [_called(one, called) for one in given]
    return layers_of(given) if any(map(have_overlap, given)) else corpus_of(given)


def _called(given: GivenDocument, names: Mapping[str, str]) -> GivenDocument:
    marks = {names[person]: spans for person, spans in given.marked.annotations.items()}
    tags = {names[person]: tags for person, tags in given.tags.items()}
    return GivenDocument(replace(given.marked, annotations=marks), tags)


@contextmanager
def written(content: Export | Corpus | Layers, format: str, place: Path) -> Iterator[Path]:
    """A file with it in a folder, for as long as it is being sent; formats that are folders come as a zip file."""
    kind = named(format, to_write=True)
    with beside(place / "export", folder=True) as folder:
        ending = next(iter(kind.endings), "" if kind.folder else f".{format}")
        path = folder / f"export{ending}"
        write(content, path, format)
        yield Path(shutil.make_archive(str(folder / "export"), "zip", path)) if kind.folder else path
