"""The paper's data, from the archives that their makers publish to a :class:`~quorate.corpus.records.Corpus`.

``ner``
    ``crf-ma-NER-task1.zip``: news sentences tagged by a crowd (Rodrigues et al., 2014; this cut: Nguyen et al., 2017).
``pico``
    ``PICO-data.tar.gz``: abstracts of clinical trials with the participants marked (Nguyen et al., 2017).

Both are read straight from the archive; nothing is unpacked to disk. What had to be repaired on the way is counted in
``Corpus.notes``.

The paper's third set, ARG (arguments in web texts), is not published with its expert labels, so there is no archive to
read. Whoever has it writes one JSON object a sentence, ``{"id", "tokens", "annotations": {annotator: [tag | null]},
"gold": [tag], "split": "dev" | "test"}``, and loads that file with :func:`quorate.read`:

>>> import pathlib, tempfile, quorate
>>> folder = tempfile.TemporaryDirectory()
>>> arg = pathlib.Path(folder.name, "arg.jsonl")
>>> _ = arg.write_text('{"id": "7", "tokens": ["We", "agree"], "annotations": {"w1": ["O", "B-ARG"]}}')
>>> quorate.read(arg)
<Corpus: 1 document, 2 tokens, 1 annotator>
>>> folder.cleanup()
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from quorate.corpus.records import Corpus
from quorate.datasets.ner import read_ner
from quorate.datasets.pico import read_pico
from quorate.errors import SettingsError

__all__ = ["DATASETS", "Dataset", "convert", "read_ner", "read_pico"]


class Dataset(NamedTuple):
    """One line about a dataset, the archive it comes in, and what reads that archive.

    >>> DATASETS["pico"].archive
    'PICO-data.tar.gz'
    """

    description: str
    archive: str
    read: Callable[[str | Path], Corpus]


DATASETS: dict[str, Dataset] = {
    "ner": Dataset(
        "news sentences with people, places, organisations and other names marked by 47 workers",
        "crf-ma-NER-task1.zip",
        read_ner,
    ),
    "pico": Dataset(
        "titles and abstracts of clinical trials with the participants marked by 312 workers",
        "PICO-data.tar.gz",
        read_pico,
    ),
}
"""The datasets that can be read, by name."""


def convert(name: str, archive: str | Path) -> Corpus:
    """Read the archive of a dataset; ``quorate.formats.jsonl.save_corpus`` then writes it as JSONL.

    >>> convert("conll", "somewhere.zip")
    Traceback (most recent call last):
    quorate.errors.SettingsError: unknown dataset 'conll' (one of: ner, pico)
    """
    if name not in DATASETS:
        raise SettingsError(f"unknown dataset {name!r} (one of: {', '.join(DATASETS)})")
    return DATASETS[name].read(archive)
