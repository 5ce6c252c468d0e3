"""Annotations in layers: a corpus for each, all of the same documents, and what each layer takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from quorate.corpus.records import Corpus
from quorate.corpus.tags import OUTSIDE, marks_span, split_tag
from quorate.errors import InputError, SettingsError
from quorate.formats.layering import Layer


class Layers(dict[str, Corpus]):
    """A corpus for each layer, by its name; ``held`` says which labels each layer takes, and how deep.

    Those that are ``rare`` are kept, and not combined: their spans overlap others as hardly any do.

    New documents are dealt into the same layers with ``quorate.read_layers(path, layers=layers.held)``.

    >>> from quorate import Document
    >>> inner = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-LOC", "O")})])
    >>> outer = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-ORG", "I-ORG")})])
    >>> layers = Layers({"town": inner, "club": outer})
    >>> {name: layer.name for name, layer in layers.held.items()}
    {'town': 'LOC', 'club': 'ORG'}
    """

    def __init__(
        self, corpora: Mapping[str, Corpus], held: Mapping[str, Layer] | None = None, rare: Collection[str] = ()
    ) -> None:
        super().__init__(corpora)
        if not self:
            raise SettingsError("no layer was given (quorate.read_layers gives them)")
        ids = [[document.id for document in corpus] for corpus in self.values() if len(self) > 1]
        if any(other != ids[0] for other in ids):
            raise InputError("the layers are not of the same documents in the same order")
        self.held = _held_by(corpora) if held is None else {name: held[name] for name in self}
        self.rare = frozenset(rare)

    @classmethod
    def of(cls, corpora: Mapping[str, Corpus]) -> Layers:
        """The layers, whether they were read or made by hand."""
        return corpora if isinstance(corpora, Layers) else cls(corpora)

    @classmethod
    def alone(cls, corpus: Corpus) -> Layers:
        """A corpus without layers, as the only one of them, which has no name."""
        return cls({"": corpus}, {"": Layer(frozenset(), 0)})

    @property
    def corpus(self) -> Corpus:
        """The first layer's: the documents, and what reading them found, are the same in all."""
        return next(iter(self.values()))

    @property
    def single(self) -> Corpus | None:
        """The corpus, where one layer takes everything; ``None`` where there are several."""
        return self.corpus if len(self) == 1 else None

    @property
    def named(self) -> bool:
        """Whether layers were asked for, be there only one."""
        return "" not in self

    @property
    def marked(self) -> Layers:
        """The layers to combine: an annotator marks something in them, and they are not rare."""
        if len(self) == 1:
            return self
        found = {
            name: corpus
            for name, corpus in self.items()
            if name not in self.rare and not corpus.used_tags() <= {None, OUTSIDE}
        }
        return Layers(found, self.held) if found else self


def _held_by(corpora: Mapping[str, Corpus]) -> dict[str, Layer]:
    """What layers take that nobody dealt out: the labels in use; where two have the same, the later lies deeper."""
    found: dict[str, Layer] = {}
    for name, corpus in corpora.items():
        gold = {tag for document in corpus for tag in document.gold or ()}
        used = {str(tag) for tag in corpus.used_tags() | gold if tag is not None and marks_span(str(tag))}
        labels = frozenset(("", split_tag(tag)[1]) for tag in used)
        above = [layer.depth for layer in found.values() if layer.labels & labels]
        found[name] = Layer(labels, 1 + max(above) if above else 0)
    return found
