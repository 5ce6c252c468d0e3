"""Encoded corpora on disk: written document by document, mapped into memory when used.

A file holds the documents as they were given, and, for one tag set and one rule for invalid tags, the events and the
slices that an engine works on: a fit then reads what it needs when it needs it, and its memory grows with the model,
not with the corpus. ``docs/formats.md`` describes the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import formats
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.tags import MISSING, Invalid, Scheme, TagSet
from quorate.crowd.crowd import Cells, Crowd, Shard
from quorate.crowd.encode import encode, keys_of_codes, n_previous
from quorate.errors import InputError, SettingsError, knows_its_options
from quorate.formats import AnnotatorFrom, Given, Names, Profiles, SamplesName, UnitName
from quorate.formats.notes import Notes
from quorate.model.engines.threads import slice_bounds
from quorate.storage.arrays import Arrays, MappedArrays, Workspace, damaged, is_container, mapped, write
from quorate.storage.corpora_checks import LAYOUT_KINDS, check_slice, checked_text, rules
from quorate.storage.documents import SOFT, ArrayCorpus, DocumentArrays, document_of, starts_of
from quorate.storage.joined import JoinedCorpus
from quorate.storage.slices import shard_of_slices

VERSION = 2
_KIND = "quorate corpus"
_AT_ONCE = 1 << 20
_LAYOUT = tuple(LAYOUT_KINDS)
_CHECKED_AT_ONCE = 256 << 20  # bytes; of larger corpora each array is checked when it is first used


class StoredSlices:
    """The slices of a corpus on disk: see :class:`quorate.model.kernels.layout.Slice`."""

    def __init__(self, arrays: MappedArrays, n_words: int, tagset: TagSet, invalid: Invalid) -> None:
        self._arrays, self._tagset, self._invalid = arrays, tagset, invalid
        self.bounds: list[int] = arrays["slice_docs"].tolist()
        self.files, self.digest = [0, len(self.bounds) - 1], arrays.digest
        self._starts = arrays["slice_starts"]
        self._n_words, self._n_cells = n_words, len(arrays["cell_label"])
        self._checked: set[int] = set()

    def fits(self, encoded: Crowd) -> bool:
        """Whether this is a layout of these very arrays."""
        own = self._arrays
        weight = own["event_weight"] if len(own["event_weight"]) else None
        same = encoded.event_cell is own["event_cell"] and encoded.word is own["word"]
        return same and (encoded.event_weight is weight or encoded.event_weight is own["event_weight"])

    def __getitem__(self, s: int) -> tuple[NDArray[Any], ...]:
        first, last = self._starts[s], self._starts[s + 1]
        laid_out = tuple(self._arrays[name][first[n] : last[n]] for n, name in enumerate(_LAYOUT))
        if s not in self._checked:  # once: every pass comes by here
            tokens = np.diff(self._arrays["doc_start"][self.bounds[s : s + 2]])[0]
            check_slice(self._arrays.path, laid_out, tokens, self._n_words, self._n_cells)
            self._checked.add(s)
        return laid_out

    def part(self, first: int, last: int) -> StoredPart:
        """Slices ``first`` to ``last``, for another process to open."""
        tokens = np.diff(self._arrays["doc_start"][[self.bounds[first], self.bounds[last]]])[0]
        place = str(Path(self._arrays.path).resolve())
        return StoredPart(place, self.digest, self._tagset, self._invalid, first, last, int(tokens))

    def numbers_here(
        self, first: int, cells: NDArray[np.int64], words: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The corpus is one file: its numbers are those of the file."""
        return cells, words


@dataclass(frozen=True)
class StoredPart:
    """Slices ``first`` to ``last`` of a file, which are ``n_tokens``: see :meth:`opened`."""

    path: str
    digest: str
    tagset: TagSet
    invalid: Invalid
    first: int
    last: int
    n_tokens: int

    def opened(self) -> Shard | None:
        """Its documents, with the file's own numbers of cells and words; ``None`` if that very file is not there."""
        try:
            whole = _opened(self.path, self.digest).encoded_as(self.tagset, self.invalid)
        except InputError:
            return None
        return None if whole is None else shard_of_slices(whole, self.first, self.last)


@lru_cache(maxsize=64)
def _opened(path: str, digest: str) -> StoredCorpus:
    """The file, mapped once for all of its parts; :class:`InputError` if it is another one."""
    corpus = StoredCorpus(path)
    if corpus.digest != digest:
        raise InputError("another file than the one that was asked for", where=path)
    return corpus


class StoredCorpus(ArrayCorpus):
    """A corpus in a file that :func:`store` wrote. Documents are made when they are looked at.

    >>> import quorate, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store(quorate.sample(), f"{folder}/sample.qr")
    ...     StoredCorpus(f"{folder}/sample.qr")["s001"] == quorate.sample()["s001"]
    True
    """

    def __init__(self, path: str | Path) -> None:
        arrays, given = mapped(path)
        version = given.get("version") if isinstance(given, dict) and given.get("kind") == _KIND else None
        if version != VERSION:
            raise InputError(
                f"an encoded corpus of version {version}, where {VERSION} is read (encode it again)", where=str(path)
            )
        text = checked_text(given, str(path))
        self._path = str(Path(path).resolve())
        arrays.check = rules(arrays, text)
        if arrays.nbytes <= _CHECKED_AT_ONCE:
            arrays.check_all()
        super().__init__(arrays, text["words"], text["annotators"], text)
        self._mapped, self.digest = arrays, arrays.digest
        self.notes, self.digests = tuple(text["notes"]), dict(text["digests"])
        try:
            self.profiles = {name: Profile.of(**fields) for name, fields in text["profiles"].items()}
        except (TypeError, SettingsError) as error:
            raise damaged(str(path), str(error)) from None

    def __reduce__(self) -> tuple[type[StoredCorpus], tuple[str]]:
        """Another process opens the file itself."""
        return StoredCorpus, (self._path,)

    def used_tags(self) -> set[Tag]:
        """Every tag that an annotator gave."""
        return set(self._text["used"])

    def tagset(self, scheme: Scheme | None = None, *, known: Iterable[Tag] = ()) -> TagSet:
        """The tags that annotators use, and the known ones, with their scheme (inferred unless given)."""
        return TagSet.infer([*self._text["used"], *(tag for tag in known if tag is not None)], scheme)

    def encoded_as(self, tagset: TagSet, invalid: Invalid) -> Crowd | None:
        """The arrays in the file, if they are of this scheme and rule, and of these labels or of some of them."""
        own, text = self._mapped, self._text
        place = [tagset.index.get(label, -1) for label in text["labels"]]
        if (tagset.scheme, invalid) != (text["scheme"], text["invalid"]) or min(place) < 0 or place != sorted(place):
            return None
        J, P = len(tagset.labels), n_previous(tagset)
        number = np.array([*place, J])  # the last one is what begins a plain sequence
        previous, label = number[own["cell_previous"]], number[own["cell_label"]]
        weight = own["event_weight"] if len(own["event_weight"]) else None
        return Crowd(
            tagset,
            self._names,
            self._words,
            self._doc_start,
            own["word"],
            own["event_start"],
            own["event_cell"],
            weight,
            Cells(own["cell_annotator"], previous, label, len(self._names), J, P),
            text["repaired"],
            StoredSlices(own, len(self._words), tagset, invalid),
            soft=weight is not None,
        )


@knows_its_options
def read(
    *paths: Given,
    format: str | None = None,
    annotator_from: AnnotatorFrom | None = None,
    map_labels: Names | None = None,
    map_annotators: Names | None = None,
    annotators: Profiles | None = None,
    pseudonymise: str | Path | None = None,
    predictions: bool = False,
    samples: SamplesName | None = None,
    offsets: UnitName | None = None,
    max_size: int | str | None = None,
) -> Corpus:
    """Read annotations from files into one :class:`Corpus`: see :func:`quorate.formats.read`.

    Files that ``quorate encode`` wrote, one or several, or a folder of them, are not read but mapped into memory.

    >>> import quorate, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store(quorate.sample(), f"{folder}/sample.qr")
    ...     read(f"{folder}/sample.qr")
    <Corpus: 320 documents, 5,227 tokens, 12 annotators>
    """
    given = [path for each in paths for path in (each if isinstance(each, list | tuple) else [each])]
    given = [file for path in given for file in (_encoded_files_in(path) or [path])]
    encoded = [path for path in given if isinstance(path, str | Path) and is_container(path)]
    changes: dict[str, Any] = {
        "format": format,
        "annotator_from": annotator_from,
        "map_labels": map_labels,
        "map_annotators": map_annotators,
        "annotators": annotators,
        "pseudonymise": pseudonymise,
        "predictions": predictions,
        "samples": samples,
        "offsets": offsets,
    }
    if not encoded:
        return formats.read(*paths, max_size=max_size, **changes)
    if any(changes.values()):
        raise SettingsError(f"{encoded[0]}: an encoded corpus is used as it is (change names as files are encoded)")
    if len(given) > len(encoded):
        other = next(path for path in given if not any(path is one for one in encoded))
        called = other if isinstance(other, str | Path) else f"a {type(other).__name__}"
        raise SettingsError(f"{encoded[0]}: encoded, and {called} is not (encode all files, or none)")
    if len(encoded) > 1:
        return JoinedCorpus(map(StoredCorpus, encoded))
    return StoredCorpus(encoded[0])


def _encoded_files_in(path: Any) -> list[Any]:
    """What a folder with encoded corpora holds; nothing if it has none. Hidden files are nobody's corpus."""
    if not isinstance(path, str | Path) or not Path(path).is_dir():
        return []
    files = sorted(file for file in Path(path).iterdir() if file.is_file() and not file.name.startswith("."))
    return files if any(file.suffix == ".qr" and is_container(file) for file in files) else []


def encode_files(
    *paths: Any,
    output: str | Path,
    scheme: Scheme | None = None,
    invalid: Invalid = Invalid.REPAIR,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> None:
    """Encode files into one, document by document; ``progress`` is told now and then how many were read.

    ``options`` are those of :func:`quorate.formats.read`.
    """
    streamed = ("format", "max_size")  # what changes names needs all at once
    if any(value for name, value in options.items() if name not in streamed):
        store(formats.read(*paths, **options), output, scheme=scheme, invalid=invalid)
        return
    notes, digests, profiles = Notes(), dict[str, str](), dict[str, Profile]()
    given = {name: options.get(name) for name in streamed}
    documents = formats.documents(*paths, **given, notes=notes, digests=digests, profiles=profiles)
    _store(documents, output, scheme, invalid, notes.sentences, digests, profiles, progress)


def store(
    corpus: Iterable[Document], output: str | Path, *, scheme: Scheme | None = None, invalid: Invalid = Invalid.REPAIR
) -> None:
    """Write documents as an encoded corpus."""
    notes = list(corpus.notes) if isinstance(corpus, Corpus) else []
    digests = corpus.digests if isinstance(corpus, Corpus) else {}
    profiles = corpus.profiles if isinstance(corpus, Corpus) else {}
    _store(corpus, output, scheme, invalid, lambda: notes, digests, profiles, None)


def _store(
    documents: Iterable[Document],
    output: str | Path,
    scheme: Scheme | None,
    invalid: Invalid,
    notes: Callable[[], list[str]],
    digests: Mapping[str, str],
    profiles: Mapping[str, Profile],
    progress: Callable[[int], None] | None,
) -> None:
    with Workspace(output) as space:
        raw = DocumentArrays(space.array_file)
        for number, document in enumerate(documents, 1):
            raw.add(document)
            if progress is not None and number % 1000 == 0:
                progress(number)
        arrays, text = raw.finished()
        text |= {"kind": _KIND, "version": VERSION, "notes": notes(), "digests": dict(digests)}
        text["profiles"] = {name: profile.plain() for name, profile in profiles.items()}
        tagset = TagSet.infer(text["used"], scheme)
        text |= {"scheme": tagset.scheme.value, "labels": tagset.labels, "invalid": invalid.value}
        text["repaired"] = _add_events(arrays, text, tagset, invalid, space)
        _add_layout(arrays, text, space)
        write(output, arrays, text)


def _add_events(arrays: Arrays, text: dict[str, Any], tagset: TagSet, invalid: Invalid, space: Workspace) -> int:
    """Lay out what was said by token; returns how many tags were mended."""
    doc_start, starts = arrays["doc_start"], starts_of(arrays)
    words, names, tag_of = tuple(text["words"]), tuple(text["annotators"]), [*text["tags"], None]
    code_of = np.array([*(tagset.index.get(tag, MISSING) for tag in text["tags"]), MISSING], np.int16)
    weighted = len(arrays["soft_place"]) > 0
    keys, weights = space.array_file("keys", np.int64), space.array_file("event_weight", np.float64)
    counts = space.array_file("counts", np.int64)
    occurring, repaired = np.zeros(0, np.int64), 0
    bounds = slice_bounds(doc_start)

    def document(first: int, d: int) -> Document:
        return document_of(arrays, first + d, words, names, tag_of, text)

    for first, last in pairwise(bounds):
        codes = arrays["codes"][starts.code[first] : starts.code[last]]
        local = doc_start[first : last + 1] - doc_start[first]
        if (codes == SOFT).any():
            piece = Corpus(map(partial(document, first), range(last - first)))
            encoded = encode(piece, tagset, invalid=invalid, annotators=names)
            event_start, key, weight = encoded.event_start, encoded.cells.keys[encoded.event_cell], encoded.event_weight
            changed = encoded.repaired
        else:
            doc = np.repeat(np.arange(last - first), arrays["sequences"][first:last])
            annotator = arrays["annotator"][starts.sequence[first] : starts.sequence[last]]
            named = partial(document, first)
            event_start, key, changed = keys_of_codes(code_of[codes], doc, annotator, local, tagset, invalid, named)
            weight = None
        repaired += changed
        counts.add(np.diff(event_start))
        keys.add(key)
        if weighted:
            weights.add(np.ones(len(key)) if weight is None else weight)
        occurring = np.union1d(occurring, key)
    every, cell = keys.array(), space.array_file("event_cell", np.int32)
    for at in range(0, len(every), _AT_ONCE):
        cell.add(np.searchsorted(occurring, every[at : at + _AT_ONCE]))
    cells = Cells.of_keys(occurring, len(names), len(tagset.labels), n_previous(tagset))
    arrays |= {"cell_annotator": cells.annotator, "cell_previous": cells.previous, "cell_label": cells.label}
    arrays |= {"event_cell": cell.array(), "event_weight": weights.array()}
    arrays["event_start"] = np.concatenate([[0], np.cumsum(counts.array())])
    return repaired


def _add_layout(arrays: Arrays, text: dict[str, Any], space: Workspace) -> None:
    """Lay out slices as an engine would."""
    from quorate.model.kernels.layout import lay_out

    doc_start, event_start, weight = arrays["doc_start"], arrays["event_start"], arrays["event_weight"]
    bounds = slice_bounds(doc_start)
    files = [space.array_file(name, kind) for name, kind in LAYOUT_KINDS.items()]
    starts = [[0] * len(files)]
    for first, last in zip(doc_start[bounds[:-1]].tolist(), doc_start[bounds[1:]].tolist(), strict=True):
        events = slice(int(event_start[first]), int(event_start[last]))
        laid_out = lay_out(
            event_start[first : last + 1] - events.start,
            arrays["event_cell"][events],
            weight[events] if len(weight) else weight,
            arrays["word"][first:last],
            len(arrays["cell_label"]),
            len(text["words"]) + 1,
        )
        for file, values in zip(files, laid_out, strict=True):
            file.add(values)
        starts.append([file.length for file in files])
    for name in [name for name in arrays if name.startswith("_")]:
        del arrays[name]
    arrays |= {name: file.array() for name, file in zip(_LAYOUT, files, strict=True)}
    arrays |= {"slice_docs": np.array(bounds, np.int64), "slice_starts": np.array(starts, np.int64)}
