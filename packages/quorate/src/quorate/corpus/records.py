"""Frozen records of strings: what the annotators said, and nothing computed from it.

Three states are kept apart everywhere: a token *tagged as part of a span*, a token *seen and left as* ``O``, and a
token *not seen* (``None``, or the annotator is absent from the document).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from quorate.corpus.offsets import Unit
from quorate.corpus.profiles import Profile
from quorate.corpus.tags import Invalid, Scheme, TagSet, UnknownTagError
from quorate.errors import InputError
from quorate.wording import corpus_size, counted

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from quorate.formats.frames import CorpusTable

Tag = str | None
"""A tag, or ``None``: not seen."""

SoftTag = Mapping[str, float]
"""An annotator's probabilities for a token, by tag, in place of one tag."""


_WORDS_SHOWN = 8  # of a document that shows itself


def hard_tags(tags: Sequence[Tag | SoftTag]) -> tuple[Tag, ...]:
    """The tags alone: of probabilities the most probable tag, the first by name where several are.

    >>> hard_tags(("O", None, {"O": 0.2, "B-X": 0.8}))
    ('O', None, 'B-X')
    """
    return tuple([tag if tag is None or isinstance(tag, str) else _most_probable(tag) for tag in tags])


def changed_tag(tag: Tag | SoftTag, change: Callable[[Tag], Tag]) -> Tag | SoftTag:
    """A tag changed; of probabilities every tag, and those that become the same are added.

    >>> changed_tag({"B-X": 0.5, "I-X": 0.25, "O": 0.25}, lambda tag: "O" if tag == "I-X" else tag)
    {'B-X': 0.5, 'O': 0.5}
    """
    if tag is None or isinstance(tag, str):
        return change(tag)
    soft: dict[str, float] = {}
    for name, probability in tag.items():
        new = str(change(name))
        soft[new] = soft.get(new, 0.0) + probability
    return soft


def _most_probable(tag: SoftTag) -> str:
    return min(tag, key=lambda name: (-tag[name], name))


class Source(NamedTuple):
    """Where a document was read from: the line of its first token, and whether every token has a line.

    In files that do not go by lines, ``record`` says what ``line`` counts.

    >>> Source("crowd.conll", 12, line_per_token=True).at(3), Source("tasks.json", 7, record="task").at()
    ('crowd.conll:15', 'tasks.json, task 7')
    """

    path: str
    line: int
    line_per_token: bool = False
    record: str = ""

    def at(self, token: int | None = None) -> str:
        """``file:line`` of a token (counted from 0), or of the document."""
        if self.record:
            return f"{self.path}, {self.record} {self.line}"
        return f"{self.path}:{self.line + token if token is not None and self.line_per_token else self.line}"


@dataclass(frozen=True, slots=True, repr=False)
class Document:
    """Tokens, and what each annotator said about each of them.

    ``annotations`` maps an annotator to one tag per token; ``offsets`` are the tokens' places in ``text``, in
    characters, end excluded. ``unit`` is what the file's own offsets counted, for the way back; ``origin`` what else
    its tool needs to know its document again.

    >>> Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O"), "bob": ("O", None)}).annotations["bob"]
    ('O', None)
    >>> Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})
    <Document '1': 'Ada sang', 2 tokens, 1 annotator>
    """

    id: str
    tokens: tuple[str, ...]
    annotations: Mapping[str, tuple[Tag | SoftTag, ...]] = field(default_factory=dict)
    gold: tuple[Tag, ...] | None = None
    split: str | None = None
    text: str | None = None
    offsets: Sequence[tuple[int, int]] | None = None
    source: Source | None = None
    unit: Unit = Unit.CODE_POINTS
    origin: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        head, cut = " ".join(self.tokens[:_WORDS_SHOWN]), "…" if len(self.tokens) > _WORDS_SHOWN else ""
        gold = ", gold" if self.gold is not None else ""
        counts = f"{counted(len(self.tokens), 'token')}, {counted(len(self.annotations), 'annotator')}{gold}"
        return f"<Document {self.id!r}: {head + cut!r}, {counts}>"

    def where(self, token: int | None = None) -> str:
        """Where this document, or one of its tokens, stands: for messages.

        >>> Document("7", ("Ada",), {}).where(0)
        "document '7', token 1"
        """
        place = f"document {self.id!r}" + ("" if token is None else f", token {token + 1}")
        return place if self.source is None else f"{self.source.at(token)}: {place}"

    def check(self) -> None:
        """Raise :class:`InputError` unless every sequence has one entry a token."""
        if not isinstance(self.id, str) or isinstance(self.tokens, str):
            raise InputError("a document needs a string as id and a sequence of tokens", where=self.where())
        length = len(self.tokens)
        sequences = [(f"annotator {name!r}", tags) for name, tags in self.annotations.items()]
        if self.gold is not None:
            sequences.append(("gold", self.gold))
        for owner, tags in sequences:
            if len(tags) != length:
                raise InputError(
                    f"{counted(len(tags), 'tag')} by {owner} for {counted(length, 'token')} "
                    "(give one tag a token, null where not seen)",
                    where=self.where(),
                )
        if self.offsets is not None and len(self.offsets) != length:
            raise InputError(
                f"{counted(len(self.offsets), 'offset')} for {counted(length, 'token')} "
                "(give one [start, end] a token)",
                where=self.where(),
            )


class Corpus:
    """Documents in their order, each with an id of its own.

    ``notes`` are sentences about what reading changed or found odd, ``digests`` the SHA-256 of each file read,
    ``profiles`` what is known beforehand of some annotators. ``numbered``: some ids are only numbers that reading gave.

    >>> corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})])
    >>> len(corpus), corpus.annotators, corpus.n_tokens
    (1, ('ann',), 2)
    """

    numbered = False

    def __init__(
        self,
        documents: Iterable[Document],
        *,
        notes: Iterable[str] = (),
        digests: Mapping[str, str] | None = None,
        profiles: Mapping[str, Profile] | None = None,
    ) -> None:
        self.documents: tuple[Document, ...] = tuple(documents)
        self.notes: tuple[str, ...] = tuple(notes)
        self.digests: dict[str, str] = dict(digests or {})
        self.profiles: dict[str, Profile] = dict(profiles or {})
        self._positions: dict[str, int] = {}
        for position, document in enumerate(self.documents):
            document.check()
            first = self._positions.setdefault(document.id, position)
            if first != position:
                raise InputError(
                    f"this id was given to an earlier document too, {self.documents[first].where()} "
                    "(ids must be unique)",
                    where=document.where(),
                )

    def __len__(self) -> int:
        return len(self.documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __getitem__(self, key: int | str) -> Document:
        """A document by its position or its id."""
        return self.documents[self.position(key) if isinstance(key, str) else key]

    def __repr__(self) -> str:
        return f"<Corpus: {corpus_size(len(self), self.n_tokens, len(self.annotators))}>"

    def position(self, document_id: str) -> int:
        """Where the document with this id stands; ``KeyError`` if there is none."""
        return self._positions[document_id]

    @property
    def n_tokens(self) -> int:
        """How many tokens there are in all."""
        return sum(len(document.tokens) for document in self.documents)

    @property
    def n_labels(self) -> int:
        """How many labels annotators gave in all, those of tokens that they did not see included.

        >>> Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O"), "bob": ("O", None)})]).n_labels
        4
        """
        return sum(len(document.tokens) * len(document.annotations) for document in self)

    @property
    def annotators(self) -> tuple[str, ...]:
        """Everyone who appears in a document, sorted."""
        return tuple(sorted({name for document in self.documents for name in document.annotations}))

    @property
    def has_gold(self) -> bool:
        """Whether any document has gold tags."""
        return any(document.gold is not None for document in self.documents)

    def unannotated(self) -> list[str]:
        """The ids of documents that no annotator saw.

        >>> Corpus([Document("1", ("a",), {"ann": ("O",)}), Document("2", ("b",))]).unannotated()
        ['2']
        """
        return [document.id for document in self.documents if not document.annotations]

    def compared(self) -> set[str]:
        """Annotators who share a document with another, so that the two can be compared.

        >>> shared = Document("1", ("a",), {"ann": ("O",), "bob": ("O",)})
        >>> sorted(Corpus([shared, Document("2", ("b",), {"cat": ("O",)})]).compared())
        ['ann', 'bob']
        """
        return {name for document in self if len(document.annotations) > 1 for name in document.annotations}

    def select(self, keep: Callable[[Document], bool]) -> Corpus:
        """The documents for which ``keep`` is true, as a corpus.

        >>> corpus = Corpus([Document("1", ("a",), split="dev"), Document("2", ("b",), split="test")])
        >>> [document.id for document in corpus.select(lambda document: document.split == "test")]
        ['2']
        """
        return Corpus(filter(keep, self.documents), notes=self.notes, digests=self.digests, profiles=self.profiles)

    @classmethod
    def from_pandas(cls, frame: Any, documents: Any = None, *, columns: Mapping[str, str] | None = None) -> Corpus:
        """A corpus from a table of pandas, polars or Arrow, or of whatever else gives its columns as these do.

        Of spans, a row each: ``document, annotator, start, end, label``, offsets in characters, and ``confidence`` if
        stated. The texts are in a column ``text``, or in a table of their own, ``documents``: ``document, text``, and
        if known ``tokens``, ``annotators`` (who saw it), ``gold`` (a tag a token) and ``split``. Who saw a document and
        marked nothing has a row without start, end and label, or is among its ``annotators``. Or of tags, a row each:
        ``document, token, annotator, tag``, and ``word, gold, split`` if known; without ``token``, a class for each
        document. Or with a row a token, ``document, word``, and a column an annotator. ``columns`` renames, before it
        is found out which of these it is: ``{"rater": "annotator"}``, ``{"sent": "document"}``.

        >>> import pandas
        >>> spans = pandas.DataFrame({"document": ["1"], "annotator": ["ann"], "start": [0], "end": [3]})
        >>> Corpus.from_pandas(spans.assign(label="PER", text="Ada sang"))["1"].annotations
        {'ann': ('B-PER', 'O')}
        """
        found: Corpus = _frames().corpus_of(frame, documents, columns)
        return found

    def to_pandas(self, kind: CorpusTable = "spans") -> pandas.DataFrame:
        """What everybody said as a table, a row a span or (``"tokens"``) a tag; or the ``"documents"``.

        Spans count characters of the text (of the tokens with blanks between, where there is none), and tokens.
        :meth:`from_pandas` reads them back: spans together with documents. Spans do not tell tokens that were not seen
        from ``O``, and of probabilities only the most probable tag is told, with its own.

        >>> corpus = Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})])
        >>> corpus.to_pandas()[["annotator", "label", "text"]].values.tolist()
        [['ann', 'PER', 'Ada']]
        """
        frames = _frames()
        return frames.pandas_frame(frames.corpus_columns(self, kind))

    def to_arrow(self, kind: CorpusTable = "spans") -> pyarrow.Table:
        """The same table of Arrow, which polars takes as it is: ``polars.from_arrow(corpus.to_arrow())``.

        >>> Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})]).to_arrow("tokens").num_rows
        2
        """
        frames = _frames()
        return frames.arrow_table(frames.corpus_columns(self, kind))

    def encoded_as(self, tagset: TagSet, invalid: Invalid) -> object | None:
        """The corpus as arrays, if it was laid out before with these labels and this rule; ``None`` if not."""
        return None

    def tagset(self, scheme: Scheme | None = None, *, known: Iterable[Tag] = ()) -> TagSet:
        """The tags that annotators use, and the known ones, with their scheme (inferred unless given).

        Gold does not count: nothing may be learned from it unless it is given as known.

        >>> Corpus([Document("1", ("Ada", "sang"), {"ann": ("B-PER", "O")})]).tagset().labels
        ('O', 'B-PER', 'I-PER')
        """
        used = self.used_tags() | set(known)
        strange = [tag for tag in used if not isinstance(tag, str | None) or tag == ""]
        if strange:
            raise InputError(f"{strange[0]!r} is not a tag (tags are non-empty strings, or None where not seen)")
        try:
            return TagSet.infer((tag for tag in used if tag is not None), scheme)
        except UnknownTagError as error:
            raise UnknownTagError(error.tag, error.scheme, where=self._place_of(error.tag)) from None

    def used_tags(self) -> set[Tag]:
        """Every tag that an annotator gave, and ``None`` if one did not see a token.

        >>> Corpus([Document("1", ("Ada",), {"ann": ("B-PER",)})]).used_tags()
        {'B-PER'}
        """
        used: set[Tag] = set()
        for document in self.documents:
            for tags in document.annotations.values():
                try:
                    used.update(tags)  # type: ignore[arg-type]
                except TypeError:  # a soft tag is not hashable
                    for tag in tags:
                        used.update(tag if isinstance(tag, Mapping) else (tag,))
        return used

    def _place_of(self, tag: str) -> str:
        for document in self.documents:
            for tags in (*document.annotations.values(), document.gold or ()):
                for position, given in enumerate(tags):
                    if given == tag or (isinstance(given, Mapping) and tag in given):
                        return document.where(position)
        return ""


def _frames() -> Any:
    """Tables are made where files are read, in a room below this one: it is loaded when one is asked for."""
    return import_module("quorate.formats.frames")


def known_gold(corpus: Corpus) -> dict[str, tuple[Tag, ...]]:
    """The corpus's own gold, by document id; :class:`InputError` if no token has any.

    >>> known_gold(Corpus([Document("1", ("Ada", "sang"), gold=("B-PER", None)), Document("2", ("a",))]))
    {'1': ('B-PER', None)}
    """
    gold = {document.id: document.gold for document in corpus if document.gold is not None}
    if not any(tag is not None for tags in gold.values() for tag in tags):
        raise InputError(
            "no document has gold, so that 'inline' gives no known labels (leave it out, or give a file with gold)"
        )
    return gold
