"""Where documents go in formats that keep each in a file of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from quorate.errors import InputError
from quorate.formats.exports import Export, ExportAnnotation, ExportDocument

_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


def targets(export: Export, folder: Path, ending: str) -> Iterator[tuple[Path, ExportDocument, ExportAnnotation]]:
    """A file for every document of the consensus; of annotators, for each of theirs, in a folder of their own."""
    names: set[Path] = set()
    for exported in export.annotated():
        for annotation in exported.annotations():
            place = folder if exported.consensus is not None else folder / _file_name(annotation.name)
            place.mkdir(exist_ok=True)
            target = place / f"{_file_name(exported.document.id)}{ending}"
            if target in names:
                raise InputError(
                    f"two documents would become {target.name} (rename one)", where=exported.document.where()
                )
            names.add(target)
            yield target, exported, annotation


def _file_name(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name).lstrip(".") or "_"
