"""Going on from a fitted model: new labels, new documents, new annotators, new words, without a fit from scratch.

A model's posteriors are its priors and expected counts, and those are sums over documents. So a document that changes
takes its old counts out and puts its new ones in, after a few passes over it alone; the rest is not touched. What a
document's old counts were is found by repeating, for it alone, the pass from which they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.corpus.records import Corpus, Document, Tag
from quorate.crowd.algebra import sums_between
from quorate.crowd.crowd import Cells, Crowd
from quorate.crowd.encode import encode_known
from quorate.errors import InputError, SettingsError
from quorate.model import loop
from quorate.model.engines.factory import Engines
from quorate.model.engines.protocol import Counts, Engine, Tables
from quorate.model.fit import Fitted
from quorate.model.prepared import check_corpus
from quorate.model.settings import check_number
from quorate.wording import counted

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_LOCAL_PASSES = 3
_FEW_TOKENS = 5_000  # that are not worth a second thread
_NONE = np.zeros(0, np.int32)
_NOWHERE = np.zeros(1, np.int64)  # where the documents of no corpus begin
_MOST_SOURCES = 16  # models that are kept for what they put into documents


def changed_by(
    model: loop.Model, source: loop.Model, cells: Cells, counts: Counts, words: Integers, sign: float
) -> loop.Model:
    """The model with the counts of some documents under ``source`` added, or taken out; ``words`` are theirs."""
    return replace(
        model,
        truth=model.truth.changed(counts.labels, sign),
        annotators=model.annotators.changed(cells, counts.cells, sign, source.annotators),
        text=None if model.text is None else model.text.mixed(words, counts.words, 1.0, sign),
    )


@dataclass
class FitState:
    """What a fit was made of, so that it can go on.

    ``fitted_to`` is the corpus of the fit, where its documents begin, and its known labels: they are looked at when an
    update needs them, and not before, as a corpus may lie on disk.

    ``source`` says from which model's pass the counts of a document came that changed since the last pass over
    everything, and ``before`` that of all others. Where that is ``None``, it is not known: then one more pass over
    everything is needed before an old document can be taken out. ``whole`` is false if only the model is left of the
    fit, and not its documents; then ``earlier`` is what was known of each annotator, and ``decided`` are the documents
    whose every label was.
    """

    fitted_to: tuple[Corpus, Integers, NDArray[np.int32] | None] | None = None
    documents: dict[str, Document] = field(default_factory=dict)
    known: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    whole: bool = True
    earlier: Floats | None = None
    decided: frozenset[str] = frozenset()
    before: loop.Model | None = None
    source: dict[str, loop.Model] = field(default_factory=dict)

    def opened(self) -> FitState:
        """The same, to be changed; what was only referred to until now is looked up."""
        fit_state = replace(
            self, documents=dict(self.documents), known=dict(self.known), source=dict(self.source), fitted_to=None
        )
        if self.fitted_to is not None:
            corpus, starts, codes = self.fitted_to
            fit_state.documents = {document.id: document for document in corpus}
            if codes is not None:
                fit_state.known = {one.id: codes[starts[d] : starts[d + 1]] for d, one in enumerate(corpus)}
        return fit_state

    def decided_documents(self) -> set[str]:
        """The ids of documents whose every label is known."""
        found = {name for name, codes in self.known.items() if len(codes) and (codes >= 0).all()}
        corpus, starts, clamped = self.fitted_to or (Corpus([]), _NOWHERE, None)
        if clamped is not None:
            whole = sums_between(clamped >= 0, starts) == np.diff(starts)
            found |= {corpus[int(d)].id for d in np.flatnonzero(whole & (np.diff(starts) > 0))}
        return found | self.decided

    def compared(self) -> set[str]:
        """Annotators who share a document with another or with known labels, as far as documents are left."""
        corpus, starts, clamped = self.fitted_to or (Corpus(self.documents.values()), _NOWHERE, None)
        known = [name for name, codes in self.known.items() if (codes >= 0).any()]
        if clamped is not None:
            some_known = sums_between(clamped >= 0, starts) > 0
            known += [corpus[int(d)].id for d in np.flatnonzero(some_known)]
        return corpus.compared() | {name for one in known for name in corpus[one].annotations}

    def labelled(self, documents: Corpus) -> Corpus:
        """Those to which somebody gave a label, or of which one is known: the others teach nothing."""
        return documents.select(
            lambda one: (
                any(tag is not None for tags in one.annotations.values() for tag in tags)
                or bool((self.known.get(one.id, _NONE) >= 0).any())
            )
        )

    def forget_sources(self) -> None:
        """So many models are kept no longer; one more pass will do in their place."""
        if self.whole and len({id(model) for model in self.source.values()}) > _MOST_SOURCES:
            self.before, self.source = None, {}

    def merged(self, document: Document) -> Document:
        """A document of an update, with all that was said of it before."""
        before = self.documents.get(document.id)
        if before is None:
            return document
        if before.tokens != document.tokens:
            raise InputError(
                "other tokens than when this document was fitted (give it another id)", where=document.where()
            )
        return replace(
            document,
            annotations={**before.annotations, **document.annotations},
            gold=document.gold if document.gold is not None else before.gold,
        )

    def changed_by(self, document: Document, known: NDArray[np.int32] | None) -> bool:
        """Whether anything is new in a document that was merged, or in what is known of it."""
        before = self.documents.get(document.id)
        if before is None or before.annotations.keys() != document.annotations.keys():
            return True
        if any(tuple(tags) != tuple(before.annotations[name]) for name, tags in document.annotations.items()):
            return True
        clamped = self.known.get(document.id)
        if known is None or (clamped is None and (known < 0).all()):
            return False
        return clamped is None or not np.array_equal(known, clamped)

    def known_codes(self, corpus: Corpus) -> NDArray[np.int32] | None:
        """The known labels of these documents, end to end; ``None``: there are none."""
        if not any(document.id in self.known for document in corpus):
            return None
        return np.concatenate(
            [self.known.get(one.id, np.full(len(one.tokens), -1, np.int32)) for one in corpus]
        ).astype(np.int32)


def passes_over(fitted: Fitted, engines: Engines, fit_state: FitState, documents: Corpus) -> Passes:
    """For passes over documents with labels, laid out with the numbers that names have and with their own words."""
    documents = fit_state.labelled(documents)
    words = sorted({token for one in documents for token in one.tokens})
    number = {word: place for place, word in enumerate(fitted.words)}
    crowd = replace(fitted, words=tuple(words)).crowd(documents)
    crowd = replace(crowd, known=fit_state.known_codes(documents))
    own = replace(engines, threads=1) if crowd.n_tokens < _FEW_TOKENS else engines
    engine = own.over(crowd, text=fitted.settings.text, corpus=documents)
    return Passes(engine, crowd, np.array([number[word] for word in words], np.int64))


def passes_over_all(fitted: Fitted, engines: Engines, fit_state: FitState) -> tuple[Engine, Crowd]:
    """For passes over all documents with labels, with the numbers that names and words have."""
    documents = fit_state.labelled(Corpus(fit_state.documents.values()))
    crowd = replace(fitted.crowd(documents), known=fit_state.known_codes(documents))
    return engines.over(crowd, text=fitted.settings.text, corpus=documents), crowd


class Passes(NamedTuple):
    """Passes over some documents. ``words`` are the model's numbers of the words that occur in them.

    Only those words' rows are looked at: a vocabulary is long, and an update should not take time with it.
    """

    engine: Engine
    crowd: Crowd
    words: Integers

    def counts(self, model: loop.Model) -> Counts:
        """The documents' counts under a model."""
        text, cells = model.text, self.crowd.cells
        rows = np.zeros((0, cells.n_labels))
        if text is not None:
            rows = text.log_lik_of(self.words)
        return self.engine.run(Tables(model.annotators.log_lik(cells), rows, model.temper), model.truth.chain())

    def changed(self, model: loop.Model, source: loop.Model, sign: float) -> loop.Model:
        """The model with the counts of the documents under ``source`` added, or taken out."""
        return changed_by(model, source, self.crowd.cells, self.counts(source), self.words, sign)

    def close(self) -> None:
        """Let go of the engine."""
        self.engine.close()


class Updated(NamedTuple):
    """How many of an update's documents the model had not met, had met otherwise, and had met just so.

    >>> Updated(2, 1, 317).sentence()
    '2 new documents, 1 changed, 317 unchanged'
    """

    new: int
    changed: int
    unchanged: int

    def sentence(self) -> str:
        """In words."""
        return f"{counted(self.new, 'new document')}, {self.changed:,} changed, {self.unchanged:,} unchanged"


def check_update(fit_state: FitState, meta: Mapping[str, Any], corpus: Corpus, passes: int) -> None:
    """One clear error if a fit of which ``meta`` is told cannot go on with this corpus."""
    check_corpus(corpus)
    check_number("passes", passes, whole=True)
    if passes < 0:
        raise SettingsError(f"passes must be 0 or more, not {passes}")
    if passes and not fit_state.whole:
        raise SettingsError("this model was saved without its documents, and has none to pass over (fit again instead)")
    if not fit_state.whole:
        _refuse_what_was_fitted(meta, corpus)
    if len(corpus) and meta.get("tagger") is not None:
        raise SettingsError("a fit with a tagger cannot go on from where it is (fit again instead)")


def _refuse_what_was_fitted(meta: Mapping[str, Any], corpus: Corpus) -> None:
    """A model from a file cannot tell which documents are new to it, but it knows a whole file again."""
    fitted = set(meta["inputs"].values())
    for name, digest in corpus.digests.items():
        if digest in fitted:
            raise InputError(
                "these very labels are in the model already, and would count twice (give it what is new alone, or "
                "fit again)",
                where=name,
            )


def updated_meta(meta: Mapping[str, Any], before: FitState, corpus: Corpus, n_annotators: int) -> dict[str, Any]:
    """What is told of a fit after an update with this corpus; ``before`` is what it was made of until then."""
    met = before.opened().documents
    fresh = [document for document in corpus if document.id not in met]
    return {
        **meta,
        "inputs": {**meta["inputs"], **corpus.digests},
        "documents": meta["documents"] + len(fresh),
        "tokens": meta["tokens"] + sum(len(document.tokens) for document in fresh),
        "annotators": n_annotators,
        "updates": meta.get("updates", 0) + 1,
    }


def update(
    fitted: Fitted,
    engines: Engines,
    before: FitState,
    corpus: Corpus,
    known: Mapping[str, Sequence[Tag]],
    passes: int,
) -> tuple[Fitted, FitState, Updated]:
    """Take in new labels: the changed documents alone, then ``passes`` over everything.

    What is given stays as it was, so that an error leaves the fit as it is.

    A document of which everything is known already is passed over: to take it out and put it in again would be one
    more step of the fit for it, with nothing to learn from.
    """
    fit_state = before.opened()
    given = Corpus([fit_state.merged(document) for document in corpus])
    codes = _known_codes(given, fitted, known)
    documents = Corpus([one for one in given if fit_state.changed_by(one, codes.get(one.id))])
    fresh = fitted.with_names_of(documents)
    old = [fit_state.documents[one.id] for one in documents if one.id in fit_state.documents]
    if old:
        fresh = _without(fresh, engines, fit_state, old)
    fit_state.known |= codes
    if len(documents):
        fresh, source = _with(fresh, engines, fit_state, documents)
        fit_state.source |= dict.fromkeys((one.id for one in documents), source)
    fit_state.documents |= {one.id: one for one in given}
    fit_state.forget_sources()
    if passes:
        engine, crowd = passes_over_all(fresh, engines, fit_state)
        with closing(engine):
            fresh = replace(fresh, model=loop.more_passes(engine, fresh.model, crowd.cells, passes))
        fit_state.before, fit_state.source = None, {}
    return fresh, fit_state, Updated(len(documents) - len(old), len(old), len(given) - len(documents))


def _known_codes(documents: Corpus, fitted: Fitted, known: Mapping[str, Sequence[Tag]]) -> dict[str, NDArray[np.int32]]:
    """The known labels of an update's documents, by id."""
    if not known:
        return {}
    codes = encode_known(documents, fitted.tagset, known, fitted.settings.invalid)
    starts = np.cumsum([0, *(len(one.tokens) for one in documents)])
    return {one.id: codes[starts[d] : starts[d + 1]] for d, one in enumerate(documents) if one.id in known}


def _without(fitted: Fitted, engines: Engines, fit_state: FitState, old: Sequence[Document]) -> Fitted:
    """The model without what some of its documents put into it."""
    if fit_state.before is None and any(one.id not in fit_state.source for one in old):
        engine, crowd = passes_over_all(fitted, engines, fit_state)
        with closing(engine):
            counts = engine.run(fitted.model.tables(crowd.cells), fitted.model.truth.chain())
        fit_state.before, fit_state.source = fitted.model, {}
        fitted = replace(fitted, model=fitted.model.updated(crowd.cells, counts))
    groups: dict[int, list[Document]] = {}
    models: dict[int, loop.Model] = {}
    for one in old:
        source = fit_state.source.get(one.id, fit_state.before)
        if source is not None:
            groups.setdefault(id(source), []).append(one)
            models[id(source)] = source
    model = fitted.model
    for number, documents in groups.items():
        source = fitted.with_model(models[number]).model
        with closing(passes_over(fitted, engines, fit_state, Corpus(documents))) as passes:
            model = passes.changed(model, source, -1.0)
    return replace(fitted, model=model)


def _with(fitted: Fitted, engines: Engines, fit_state: FitState, documents: Corpus) -> tuple[Fitted, loop.Model]:
    """The model with documents added, after a few passes over them alone, and that of their last pass."""
    model = source = fitted.model
    with closing(passes_over(fitted, engines, fit_state, documents)) as passes:
        for _ in range(_LOCAL_PASSES):
            source = model
            model = passes.changed(fitted.model, source, 1.0)
    return replace(fitted, model=model), source
