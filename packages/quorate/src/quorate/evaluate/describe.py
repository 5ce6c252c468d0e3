"""How good a consensus is, as far as that is known: one sentence for the terminal, the report and the service.

There are three kinds of numbers. Agreement *describes* the annotators. Confidence is an *estimate* of the model. F1 is
known only where somebody *checked*: by gold in the input, or by an audit.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from quorate.corpus.records import Corpus
from quorate.evaluate.metrics.description import token_alpha
from quorate.evaluate.metrics.significance import bootstrap_f1
from quorate.evaluate.metrics.spans import Tallies, strict_tallies
from quorate.formats.notes import people
from quorate.model.correction import LEVEL, Correction
from quorate.result.layers import LayeredResult
from quorate.result.result import Result
from quorate.wording import counted

ESTIMATE = "an estimate of the model: too high where annotators share mistakes"
"""What is said of confidence, wherever it is explained."""

_MOST_DRAWN = 20_000_000  # documents, over all resamples
_RESAMPLES, _LEAST_RESAMPLES = 2000, 100
_CHECKED_FIRST = 30  # documents that an audit begins with


class KnownF1(NamedTuple):
    """The strict F1 of a consensus, with an interval that holds it at this ``level``, ``by`` gold, an audit or a check.

    ``documents`` are those that have gold or were checked.

    >>> str(KnownF1(0.931, 0.91, 0.952, 0.95, 100))
    'F1 93.1 (91.0 to 95.2, with 95 % confidence) by the gold of 100 documents'
    """

    value: float
    low: float
    high: float
    level: float
    documents: int
    by: str = "gold"

    def __str__(self) -> str:
        value, low, high = (f"{100 * each:.1f}" for each in self[:3])
        if self.by == "check":
            documents = counted(self.documents, "checked document")
            return f"F1 of the others {value} ({low} to {high}) by {documents}, if they were drawn at random"
        held = "with" if self.by == "gold" else "guaranteed with"
        interval = "" if low == high else f" ({low} to {high}, {held} {100 * self.level:g} % confidence)"
        return f"F1 {value}{interval} by the {self.by} of {counted(self.documents, 'document')}"

    @classmethod
    def of_check(cls, correction: Correction | None) -> KnownF1 | None:
        """What documents show whose labels are known, predicted without knowing them.

        >>> str(KnownF1.of_check(Correction(30, (0.0,) * 5, 0.1, True, (0.61, 0.54, 0.68))))
        'F1 of the others 61.0 (54.0 to 68.0) by 30 checked documents, if they were drawn at random'
        """
        return correction and cls(*correction.f1, LEVEL, correction.documents, "check")

    @classmethod
    def of_audit(cls, f1: Sequence[float] | None, level: float, documents: int) -> KnownF1 | None:
        """What an audit of so many documents found, as value, low and high; ``None`` if it saw no span.

        >>> KnownF1.of_audit((0.9, 0.8, 0.95), 0.9, 30).by
        'audit'
        """
        if f1 is None or math.isnan(f1[0]):
            return None
        value, low, high = f1
        return cls(value, low, high, level, documents, "audit")


def how_good(agreement: float | None, f1: KnownF1 | None, to_know: str = "", *, of: str = "F1") -> str:
    """How far annotators agree; then F1 (or the score that it is ``of``), or what there is to do ``to_know`` it.

    >>> how_good(0.741, None, audit_command("consensus.jsonl", 320))
    "agreement 0.74 (Krippendorff's alpha); F1 unknown: quorate audit plan consensus.jsonl -n 30 -o audit.jsonl"
    >>> print(how_good(0.74, KnownF1(0.931, 0.91, 0.952, 0.9, 50, "audit")).partition("; ")[2])
    F1 93.1 (91.0 to 95.2, guaranteed with 90 % confidence) by the audit of 50 documents
    """
    known = str(f1) if f1 is not None else f"{of} unknown: {to_know}" if to_know else ""
    return "; ".join(part for part in (agreement_in_words(agreement), known) if part)


def agreement_in_words(agreement: float | None) -> str:
    """Inter-annotator agreement, as everything has it.

    >>> agreement_in_words(0.741), agreement_in_words(None)
    ("agreement 0.74 (Krippendorff's alpha)", 'no agreement to measure')
    """
    return "no agreement to measure" if agreement is None else f"agreement {agreement:.2f} (Krippendorff's alpha)"


def mostly_null(corpus: Corpus) -> str:
    """What to say of annotators who left most tokens of documents in which they labelled some; nothing of nobody.

    >>> from quorate.corpus.records import Document
    >>> rules = {"r1": ("B-X", None, None), "r2": ("B-X", "O", None)}
    >>> mostly_null(Corpus([Document("1", ("a", "b", "c"), rules)])).partition(":")[0]
    'r1 has null on most tokens'
    """
    tokens, null = Counter[str](), Counter[str]()
    for document in corpus:
        for name, tags in document.annotations.items():
            left = tags.count(None)
            if left < len(tags):  # or they did not see the document
                tokens[name] += len(tags)
                null[name] += left
    names = sorted(name for name, left in null.items() if 2 * left > tokens[name])
    if not names:
        return ""
    has = "has" if len(names) == 1 else "have"
    return (
        f"{people(names)} {has} null on most tokens: null means 'did not label' and counts as nothing, O means 'looked "
        "and marked nothing'"
    )


def score_of(result: Result) -> str:
    """What the score of a result is called: in the plain scheme every token counts as a span, and F1 is accuracy.

    >>> import quorate
    >>> score_of(quorate.aggregate(quorate.sample(), "mv"))
    'F1'
    """
    return "accuracy" if result.tagset.outside is None else "F1"


def audit_command(consensus: str, documents: int) -> str:
    """The command that begins an audit of the consensus in a file of JSONL.

    >>> audit_command("my consensus.jsonl", 12)
    "quorate audit plan 'my consensus.jsonl' -n 12 -o audit.jsonl"
    """
    return f"quorate audit plan {shlex.quote(consensus)} -n {min(documents, _CHECKED_FIRST)} -o audit.jsonl"


def agreement_of(result: Result | LayeredResult) -> float | None:
    """Krippendorff's alpha of the annotators of a result, over all its layers; ``None`` if there is no such number.

    >>> import quorate
    >>> round(agreement_of(quorate.aggregate(quorate.sample(), "mv")), 2)
    0.36
    """
    return token_alpha(*(one.corpus for one in _layers(result)))


def known_f1(
    result: Result | LayeredResult,
    audited: KnownF1 | None = None,
    *,
    correction: Correction | None = None,
    known: Collection[str] = (),
    split: str | None = None,
) -> KnownF1 | None:
    """F1 as far as it is known: by an audit; by gold that was not given as known; by what known documents show.

    ``known`` are ids of documents that are known besides those of the result, and ``split`` those whose gold counts.
    What known documents show is of spans that the fit's own output gives, in documents that are not known.
    """
    if audited is not None:
        return audited
    seen = set(known).union(*(layer.known_documents() for layer in _layers(result)))
    corpus = _layers(result)[0].corpus
    others = [n for n, document in enumerate(corpus) if document.id not in seen]
    scored = [n for n in others if split is None or corpus[n].split == split]
    own_output = result.settings_.get("decode") in ("best", "f1") and not _dialled(result)
    return f1_by_gold(result, scored) or (KnownF1.of_check(correction) if others and own_output else None)


def _dialled(result: Result | LayeredResult) -> bool:
    return any(result.settings_.get(name) is not None for name in ("precision", "recall"))


def f1_by_gold(result: Result | LayeredResult, positions: Sequence[int] | None = None) -> KnownF1 | None:
    """F1 on the documents of a result, or on some, that have gold in every layer; ``None`` without any.

    Their gold must not have been given as known.

    >>> import quorate
    >>> f1_by_gold(quorate.aggregate(quorate.sample(), "mv")).documents
    320
    """
    layers = _layers(result)
    scored = set(range(len(result)) if positions is None else positions)
    for layer in layers:
        scored &= {n for n, document in enumerate(layer.corpus) if document.gold is not None}
    if not scored or any(layer.tagset.outside is None for layer in layers):
        return None
    of_layers = []
    for layer in layers:
        tags, gold = zip(*((one.tags, one.document.gold) for n, one in enumerate(layer) if n in scored), strict=True)
        of_layers.append(strict_tallies(tags, gold, scheme=layer.tagset.scheme))
    tallies = Tallies(*(np.sum(column, axis=0) for column in zip(*of_layers, strict=True)))
    resamples = min(max(_MOST_DRAWN // len(scored), _LEAST_RESAMPLES), _RESAMPLES)
    return KnownF1(*bootstrap_f1(tallies, resamples=resamples), len(scored))


def _layers(result: Result | LayeredResult) -> list[Result]:
    return list(result.layers.values()) if isinstance(result, LayeredResult) else [result]
