"""A fit to a stream of documents that is larger than memory: stochastic variational Bayes.

Documents come in batches, and each is gone through, counted and forgotten. After t batches the model's counts are those
of all documents seen, of which the mean per document is estimated: mean ← (1 − ρ)·mean + ρ·(this batch's), with the
step ρ = (t + delay)^−forgetting. A forgetting of 1 (and a delay of 0) weighs all batches alike; below 1, what the first
batches said, when little was known, fades. The bound is not followed: with other data each time it may fall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Unpack

from quorate.corpus.records import Corpus, Document
from quorate.errors import InputError, SettingsError
from quorate.estimators.bsc import BSC
from quorate.estimators.capabilities import Updates
from quorate.estimators.methods import estimator
from quorate.estimators.options import MethodName, MethodSettings, names_settings
from quorate.estimators.updating import FitState, passes_over
from quorate.model.engines.threads import cell_counts_of
from quorate.model.fit import Fitted
from quorate.model.settings import check_number
from quorate.result.annotators import summarise

_LOCAL_PASSES = 2


def batches(documents: Iterable[Document], size: int) -> Iterator[Corpus]:
    """Documents in corpora of ``size``, as they come.

    >>> [len(corpus) for corpus in batches([Document(str(n), ("a",)) for n in range(5)], 2)]
    [2, 2, 1]
    """
    check_number("the size of a batch", size, whole=True)
    if size < 1:
        raise SettingsError(f"the size of a batch must be 1 or more, not {size}")
    stream = iter(documents)
    while part := list(islice(stream, size)):
        yield Corpus(part)


@names_settings
def fit_stream(
    stream: Iterable[Corpus],
    method: MethodName | str = "bsc-seq",
    *,
    forgetting: float = 0.8,
    delay: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
    **settings: Unpack[MethodSettings],
) -> BSC:
    """A model fitted to a stream of corpora, of which none is kept: use ``combine`` or ``predict`` for a consensus.

    The first batch is fitted as usual, settings that are left open are chosen by it, and it must have every label. New
    annotators and words may come at any time. ``progress`` is told the batches and the documents so far.

    >>> import quorate
    >>> model = fit_stream(batches(quorate.sample(), 80), "bsc-cm")
    >>> len(model.predict(quorate.sample()))
    320
    """
    check_number("forgetting", forgetting)
    check_number("delay", delay)
    if not 0.5 < forgetting <= 1:
        raise SettingsError(f"forgetting must be above 0.5 and at most 1, not {forgetting}")
    if delay < 0:
        raise SettingsError(f"delay must be 0 or more, not {delay}")
    model = estimator(method, **settings)
    if not isinstance(model, Updates):
        raise SettingsError(f"method {method!r} cannot be fitted to a stream (use one of those called bsc)")
    going: _Going | None = None
    seen = tokens = 0
    for number, corpus in enumerate(stream, 1):
        if going is None:
            going = _Going.begun(model.fit(corpus))
        elif len(corpus):
            going.step(corpus, (number + delay) ** -forgetting, seen)
        seen += len(corpus)
        tokens += corpus.n_tokens
        if progress is not None:
            progress(number, seen)
    if going is None:
        raise InputError("the stream has no document")
    going.end({"documents": seen, "tokens": tokens, "batches": number})
    return model


@dataclass
class _Going:
    """A model whose fit goes on with a stream."""

    model: BSC
    fitted: Fitted
    weights: FitState

    @classmethod
    def begun(cls, model: BSC) -> _Going:
        """After its first batch."""
        return cls(model, model.fitted_, FitState(whole=False, earlier=model.annotators_.table))

    def step(self, corpus: Corpus, step: float, seen: int) -> None:
        """One batch further: its counts, as if all documents so far were like it, take their share of the model's."""
        corpus = self.weights.labelled(corpus)
        if not len(corpus):
            return
        fitted = self.fitted.with_names_of(corpus)
        now = seen + len(corpus)
        old, new = (1 - step) * now / seen, step * now / len(corpus)
        model, text = fitted.model, fitted.model.text
        with closing(passes_over(fitted, self.model.engines(), self.weights, corpus)) as passes:
            for _ in range(_LOCAL_PASSES):
                counts = passes.counts(model)
                batch = model.annotators.updated(passes.crowd.cells, counts.cells)  # of the batch alone
                model = replace(
                    model,
                    truth=fitted.model.truth.mixed(counts.labels, old, new),
                    annotators=fitted.model.annotators.mixed(batch, old, new),
                    text=None if text is None else text.mixed(passes.words, counts.words, old, new),
                )
        learned = replace(fitted, model=model)
        given, labels, annotators = passes.crowd, counts.cells / model.temper, model.annotators
        if given.original is not None:  # a summary is of all labels, merged or not, and however far they count
            crowd = learned.crowd(corpus)
            posterior = learned.decode(crowd, engines=self.model.engines()).posterior
            given, labels = crowd.as_given, cell_counts_of(crowd.as_given, posterior)
            annotators = learned.annotators_of(crowd, labels)
        summaries = summarise(given, labels, annotators)
        if self.weights.earlier is not None:
            shown = summaries.without(fitted.helpers)
            self.weights.earlier = shown.with_earlier(self.weights.earlier).table
        self.fitted = learned

    def end(self, counted: dict[str, int]) -> None:
        """The model takes over what was learned."""
        counted["annotators"] = len(self.fitted.names)
        self.model.go_on_from(self.fitted, self.weights, {**self.model.meta_, **counted})
