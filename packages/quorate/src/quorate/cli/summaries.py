"""What a command says when it is done: the answer first, then what to know or do, and how it was done if asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from quorate.cli.layers import by_layer
from quorate.wording import corpus_size, counted, in_number, repaired

if TYPE_CHECKING:
    from quorate.audit.acceptance import Guaranteed, GuaranteedSpans
    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.layered import LayeredModel
    from quorate.estimators.voting import MajorityVote
    from quorate.evaluate.describe import KnownF1
    from quorate.model.calibration import Calibration
    from quorate.result.ambiguity import Ambiguity
    from quorate.result.layers import LayeredResult
    from quorate.result.result import Accepted, Result
    from quorate.result.sources import Sources

_Consensus = TypeVar("_Consensus", "Result", "LayeredResult")
_NEARLY = 0.005  # a recall that is reached, but for rounding
_NOTE, _WARNING = "note: ", "warning: "
_UNWRITTEN = "quorate audit plan draws documents to check from a consensus in JSONL (-o consensus.jsonl)"
_FEW = 2  # groups of duplicates that are named


class Summary(NamedTuple):
    """The answer, what to know (``note:`` or ``warning:``), how it was done; and all of it as ``record``, for JSON.

    ``known`` is the line of the answer that says how good the consensus is, as far as that is known.

    >>> Summary(["2 documents combined"], ["note: few"], ["3 passes"], {"documents": 2}).lines(verbose=False)
    ['2 documents combined', 'note: few']
    """

    answer: list[str]
    notes: list[str]
    details: list[str]
    record: dict[str, Any]
    known: str = ""

    def lines(self, *, verbose: bool) -> list[str]:
        """In the order in which they are read."""
        return [*self.answer, *self.notes, *(self.details if verbose else ())]

    def as_json(self) -> dict[str, Any]:
        """The record, with warnings and notes.

        >>> Summary([], ["note: few"], [], {"documents": 2}).as_json()
        {'documents': 2, 'warnings': [], 'notes': ['few']}
        """
        warnings, notes = (
            [line.removeprefix(mark) for line in self.notes if line.startswith(mark)] for mark in (_WARNING, _NOTE)
        )
        return {**self.record, "warnings": warnings, "notes": notes}


def fit_summary(
    model: BSC | CRFMA | MajorityVote,
    method: str,
    written: Mapping[str, str | None],
    accepted: Accepted | Guaranteed | GuaranteedSpans | None = None,
    *,
    audited: KnownF1 | None = None,
    shares: bool = False,
) -> Summary:
    """What was combined, how good it is as far as that is known, where it is, and what the user should know.

    ``written`` are the files by what is in them: ``consensus`` first, which may be ``-``, then others. F1 is known by
    gold, or by an audit: ``audited``.
    """
    from quorate.evaluate.describe import agreement_of, how_good, known_f1, score_of

    result, n_known = _written_of(model.result_, accepted), int(model.meta_["known"])
    places, agreement, calibration = _places(written), agreement_of(result), getattr(model, "calibration_", None)
    f1 = known_f1(result, audited, correction=calibration and calibration.correction)
    answer = [*_acceptance(accepted, places.get("review", "")), _headline(result, method)]
    to_know = _to_know(result, places, accepted) if written else ""
    known = how_good(agreement, f1, to_know, of=score_of(result))
    if audited is not None and accepted is not None:
        known += f" (of all {len(model.result_):,}, before any were left out)"
    answer += [known, *_written(places), *_dial(result)]
    if shares:
        answer += ambiguity_summary(result.ambiguity)
    notes = [
        *_known(result, n_known, calibration),
        *_read(result),
        *_alone(model),
        *_changed(result.sources),
        *_uncalibrated(model),
    ]
    record: dict[str, Any] = {"method": method} | _counts(result)
    record |= {"agreement": agreement, "f1": None if f1 is None else f1._asdict()}
    record |= {"expected": _expected(result), "accepted": accepted_record(accepted)}
    record |= {"ambiguous": result.ambiguity.share if shares else None}
    record |= {"known_tokens": n_known, "repaired_tags": result.repaired, "written": places}
    record |= {"settings": dict(result.settings_)} | _how(model)
    trace = result.trace
    record |= dict.fromkeys(("passes", "seconds", "bound", "stopped"))
    if trace is not None:
        record |= {"passes": trace.passes, "seconds": trace.seconds, "bound": trace.bound}
        record["stopped"] = trace.reason.value
    return Summary(answer, notes, _details(model, method), record, known)


def layers_summary(
    fitted: LayeredModel,
    method: str,
    written: Mapping[str, str | None],
    accepted: Accepted | Guaranteed | GuaranteedSpans | None = None,
    *,
    audited: KnownF1 | None = None,
    shares: bool = False,
) -> Summary:
    """The same of all layers together, and of each."""
    from quorate.evaluate.describe import agreement_of, how_good, known_f1

    result, places = _written_of(fitted.result_, accepted), _places(written)
    agreement, f1 = agreement_of(result), known_f1(result, audited)
    answer = _acceptance(accepted, places.get("review", ""))
    answer += [_headline(result, method, f" in {counted(len(result.layers), 'layer')}")]
    known = how_good(agreement, f1, _to_know(result, places, accepted))
    answer += [known, *_written(places)]
    record: dict[str, Any] = {"method": method, "documents": len(result), "spans": sum(map(len, result.spans))}
    record |= {"agreement": agreement, "f1": None if f1 is None else f1._asdict()}
    record |= {"accepted": accepted_record(accepted), "written": places}
    parts = {name: fit_summary(model, method, {}, shares=shares) for name, model in fitted.models_.items()}
    return _with_layers(answer, record, parts)._replace(known=known)


def predict_summary(
    result: LayeredResult, fitted: LayeredModel, model: str, written: Mapping[str, str | None]
) -> Summary:
    """What was combined by a ``fitted`` model from the file ``model``, and whom it had not met."""
    from quorate.estimators.capabilities import Advises
    from quorate.evaluate.describe import agreement_of, how_good, known_f1

    fits = [one for one in fitted.models_.values() if isinstance(one, Advises)]
    known = set[str]().union(*(one.decided_documents() for one in fits))
    if result.single is not None:
        return _predicted(result.single, known, model, written)
    places = _places(written)
    combined = f"{counted(len(result), 'document')} combined in {counted(len(result.layers), 'layer')}"
    agreement, f1 = agreement_of(result), known_f1(result, known=known)
    answer = [combined, how_good(agreement, f1, _to_know(result, places)), *_written(places)]
    record: dict[str, Any] = {"model": model, "documents": len(result), "spans": sum(map(len, result.spans))}
    record |= {"agreement": agreement, "f1": None if f1 is None else f1._asdict()}
    parts = {name: _predicted(one, known, model, {}) for name, one in result.layers.items()}
    return _with_layers(answer, record | {"written": places}, parts)


def _predicted(result: Result, known: set[str], model: str, written: Mapping[str, str | None]) -> Summary:
    from quorate.evaluate.describe import agreement_of, how_good, known_f1, score_of
    from quorate.formats.notes import people

    places, agreement, f1 = _places(written), agreement_of(result), known_f1(result, known=known)
    answer = [f"{counted(len(result), 'document')} combined"]
    answer += [how_good(agreement, f1, _to_know(result, places) if written else "", of=score_of(result))]
    answer += [*_written(places), *_dial(result)]
    strangers = [name for name in result.corpus.annotators if name not in result.annotators.names]
    notes = []
    if strangers:
        notes.append(f"note: the model does not know {people(strangers)}, and treats them as average")
    notes += _read(result)
    record: dict[str, Any] = {"model": model} | _counts(result) | {"strangers": strangers}
    record |= {"agreement": agreement, "f1": None if f1 is None else f1._asdict()}
    record |= {"expected": _expected(result)}
    record |= {"repaired_tags": result.repaired, "written": places}
    return Summary(answer, notes, [f"{_size(result)}, model {model}"], record)


def _with_layers(answer: list[str], record: dict[str, Any], parts: Mapping[str, Summary]) -> Summary:
    """What is said of all layers, then of each; what is noted of every one is said once."""
    everywhere = [
        note for note in next(iter(parts.values())).notes if all(note in part.notes for part in parts.values())
    ]
    notes = [
        f"{mark}layer {name}: {note.removeprefix(mark)}"
        for name, part in parts.items()
        for note in part.notes
        for mark in [_WARNING if note.startswith(_WARNING) else _NOTE]
        if note not in everywhere
    ]
    own = by_layer({name: part.answer for name, part in parts.items()})
    details = by_layer({name: part.details for name, part in parts.items()})
    layers = {name: part.record for name, part in parts.items()}
    return Summary([*answer, *own], [*everywhere, *notes], details, record | {"layers": layers})


def acceptance(accepted: Accepted | Guaranteed | GuaranteedSpans, review: str) -> list[str]:
    """How many documents or spans were accepted: by an audit with a guarantee, else by a ranking."""
    from quorate.audit.acceptance import Guaranteed, GuaranteedSpans

    if isinstance(accepted, GuaranteedSpans):
        return _guarantee_of_spans(accepted)
    if isinstance(accepted, Guaranteed):
        return _guarantee(accepted, review)
    kept, left = len(accepted.documents), len(accepted.review)
    if not kept:
        return [f"no document accepted, all {left:,} are in {review} (ask for less, or keep single spans: --precision)"]
    if not left:
        enough = f"their spans are expected to be {100 * accepted.precision:.1f} % right, by confidence"
        return [f"all {counted(kept, 'document')} accepted, {review} is empty: {enough} (to review some, ask for more)"]
    return [
        f"{kept:,} of {kept + left:,} documents accepted, {left:,} to review in {review}",
        f"the cut is at a mean confidence of {accepted.cut:.3f} in a document's spans: a ranking, not checked",
    ]


def ambiguity_summary(ambiguity: Ambiguity) -> list[str]:
    """How much of the text allows two readings, in a line."""
    types = ", ".join(f"{name} {100 * share:.1f} %" for name, share in ambiguity.by_type.items())
    return [f"ambiguous: {100 * ambiguity.share:.1f} % of tokens (of those marked as {types})"]


def _written_of(result: _Consensus, accepted: Accepted | Guaranteed | GuaranteedSpans | None) -> _Consensus:
    """The consensus with the spans that are written; documents that are not accepted count, they are written too."""
    if accepted is None:
        return result
    from quorate.audit.acceptance import GuaranteedSpans

    if isinstance(accepted, GuaranteedSpans) and accepted.kept < accepted.given:
        return result.surest(accepted.least)
    return result


def _places(written: Mapping[str, str | None]) -> dict[str, str]:
    return {what: path for what, path in written.items() if path is not None and path != "-"}


def _written(places: Mapping[str, str]) -> list[str]:
    """Where things are, in a line."""
    others = [f"{what}: {path}" for what, path in places.items() if what != "consensus"]
    if "consensus" not in places:
        return [", ".join(others)] if others else []
    beside = f" ({', '.join(others)})" if others else ""
    return [f"written to {places['consensus']}{beside}"]


def _size(result: Result) -> str:
    corpus = result.corpus
    return corpus_size(len(result), corpus.n_tokens, len(corpus.annotators))


def _counts(result: Result) -> dict[str, Any]:
    corpus, tagset = result.corpus, result.tagset
    counts: dict[str, Any] = {"documents": len(result), "tokens": corpus.n_tokens}
    counts |= {"annotators": len(corpus.annotators), "spans": result.n_spans}
    return counts | {"scheme": tagset.scheme.value, "types": list(tagset.types)}


def _headline(result: Result | LayeredResult, method: str, how: str = "") -> str:
    """The answer: how many documents."""
    from quorate.estimators.methods import DEFAULT_METHOD

    return f"{counted(len(result), 'document')} combined{'' if method == DEFAULT_METHOD else f' by {method}'}{how}"


def _to_know(result: Result | LayeredResult, places: Mapping[str, str], accepted: Any = None) -> str:
    """What measures F1: an audit of a file of JSONL, of all documents or, if some were accepted, of those."""
    from quorate.evaluate.describe import audit_command

    path, documents = places.get("consensus", ""), len(getattr(accepted, "documents", result))
    if not documents:
        path, documents = places.get("review", ""), len(result)
    return audit_command(path, documents) if path.endswith(".jsonl") else _UNWRITTEN


def _known(result: Result, n_known: int, calibration: Calibration | None) -> list[str]:
    """What came of known labels, or of gold that was not used."""
    from quorate.formats.notes import some
    from quorate.result.checked import checked_in_words

    if not n_known:
        unused = "note: the gold in the input was not used (--known inline uses it)"
        return [unused] if result.corpus.has_gold else []
    notes = [f"note: {counted(n_known, 'token has a known label', 'tokens have known labels')}"]
    if calibration is not None and calibration.correction is not None:
        notes.append(f"{_NOTE}{checked_in_words(calibration.correction)}")
    voted = result.corpus.tagset(result.tagset.scheme).labels
    only_known = [label for label in result.tagset.labels if label not in voted]
    if only_known:
        notes.append(f"note: no annotator used {some(only_known)}, only the known labels do{_meant(only_known, voted)}")
    return notes


def _meant(labels: Iterable[str], used: Iterable[str]) -> str:
    """Which labels that annotators used may be meant by others, in brackets.

    >>> _meant(["B-OGR", "I-OGR"], ["O", "B-ORG", "I-ORG"]), _meant(["B-NEW"], ["O", "B-ORG"])
    (' (did you mean ORG?)', '')
    """
    from quorate.corpus.tags import OUTSIDE, split_tag
    from quorate.errors import nearest
    from quorate.formats.notes import some

    theirs = {split_tag(label)[1] for label in used} - {OUTSIDE}
    own = sorted({split_tag(label)[1] for label in labels} - theirs)
    meant = {label: like for label in own if (like := nearest(label, sorted(theirs)))}
    told = [*meant.values()] if len(own) == 1 else [f"{like} for {label}" for label, like in meant.items()]
    return f" (did you mean {some(told)}?)" if told else ""


def _read(result: Result) -> list[str]:
    """What was odd in what was read."""
    from quorate.evaluate.describe import mostly_null
    from quorate.formats.notes import people, some

    notes = []
    idle = [row.name for row in result.annotators if not row.n_labels > 0]
    if idle and result.trace is not None:
        notes.append(f"warning: no label by {people(idle)}")
    bare = [name for name in result.corpus.unannotated() if result.corpus[name].tokens]
    if bare:
        notes.append(f"warning: no annotator for {some(bare)}: tagged from the text alone")
    if null := mostly_null(result.corpus):
        notes.append(f"note: {null}")
    if result.repaired:
        notes.append(f"note: {repaired(result.repaired)}")
    return notes + [f"note: {note}" for note in result.corpus.notes]


def _alone(model: BSC | CRFMA | MajorityVote) -> list[str]:
    """Whom nobody can judge."""
    from quorate.estimators.comparison import compared_with_nobody, hardly_overlap, not_judged, too_little_overlap

    alone, apart = compared_with_nobody(model), too_little_overlap(model)
    if not alone:
        return [f"{_NOTE}{hardly_overlap(apart)}"] if apart else []
    changed = [
        one
        for one in model.result_
        if set(one.document.annotations) <= set(alone) and tuple(one.tags) not in one.document.annotations.values()
    ]
    notes = [f"{_NOTE}{not_judged(alone)}"]
    if changed:
        differ = in_number("{} {document differs from what its|documents differ from what their}", len(changed))
        notes.append(f"{_NOTE}{differ} only annotator marked (--method mv keeps that)")
    return notes


def _changed(sources: Sources) -> list[str]:
    """What was changed in the crowd before the fit."""
    from quorate.formats.notes import people, some

    duplicates = some([f"({people(group)})" for group in sources.duplicates], _FEW)
    correlated = [name for group in sources.together if not group.merged for name in group.names]
    found = {
        "duplicates, each group merged into one annotator": duplicates,
        "sources that abstain, whose O is weak evidence": people(sources.abstaining),
        "sources with correlated errors, whose labels count less": people(correlated),
    }
    return [f"{_NOTE}{what}: {who}" for what, who in found.items() if who]


def _uncalibrated(model: BSC | CRFMA | MajorityVote) -> list[str]:
    """Where confidence should have been calibrated, and could not."""
    from quorate.model.calibration import AS_STATED

    calibration = getattr(model, "calibration_", AS_STATED)
    if not model.result_.settings_.get("calibrate") or calibration._replace(correction=None) != AS_STATED:
        return []
    return [f"{_NOTE}confidence is not calibrated: no annotator could be held out (too few documents have several)"]


def _how(model: BSC | CRFMA | MajorityVote) -> dict[str, Any]:
    """Calibration, changes of the crowd and rounds of a tagger, for JSON."""
    sources, calibration = model.result_.sources, getattr(model, "calibration_", None)
    groups = {"duplicates": [list(group) for group in sources.duplicates], "abstaining": list(sources.abstaining)}
    groups["correlated"] = [list(group.names) for group in sources.together if not group.merged]
    rounds = [one._asdict() for one in getattr(model, "tagger_rounds_", ())]
    return {"calibration": None if calibration is None else calibration.plain(), **groups, "tagger_rounds": rounds}


def _details(model: BSC | CRFMA | MajorityVote, method: str) -> list[str]:
    """How it was done, for those who want to know."""
    from quorate.formats.notes import some

    result = model.result_
    lines = [f"{_size(result)}, {method}"]
    lines.append(f"scheme {result.tagset.scheme.value}: {some(list(result.tagset.types), 10)}")
    if (trace := result.trace) is not None:
        lines.append(
            f"{counted(trace.passes, 'pass', 'passes')} in {trace.seconds:.2f} s (stopped: {trace.reason.value})"
        )
    if (calibration := getattr(model, "calibration_", None)) is not None:
        tokens, spans = (f"{exponent:.2f}" for exponent in calibration[:2])
        of_spans = f"spans {spans}"
        if calibration.correction is not None:
            of_spans = f"spans corrected by {counted(calibration.correction.documents, 'checked document')}"
        calibrated = f"calibrated on held-out annotators (exponents: tokens {tokens}, {of_spans})"
        lines.append(f"confidence {calibrated if result.settings_['calibrate'] else 'as the model states it'}")
        if calibration.matched is not None:
            lines.append(
                f"held-out annotators marked {100 * calibration.matched:.0f} % of the consensus's spans just so"
            )
    return [*lines, *_tagger_rounds(model)]


def _tagger_rounds(model: BSC | CRFMA | MajorityVote) -> list[str]:
    """How the tagger's rounds went, and how far it is trusted."""
    from quorate.taggers.loop import TAGGER

    finished = getattr(model, "tagger_rounds_", ())
    if not finished:
        return []
    tagger = model.result_.annotators[TAGGER]
    changes = ", ".join(f"{100 * one_round.changed:.2f}" for one_round in finished)
    seconds = sum(one_round.seconds for one_round in finished)
    return [
        f"{TAGGER}, a model: expected accuracy {tagger.accuracy:.3f}, informativeness {tagger.informativeness:.3f}",
        f"{counted(len(finished), 'round')} of it in {seconds:.1f} s; % of the consensus that each changed: {changes}",
    ]


def _acceptance(accepted: Accepted | Guaranteed | GuaranteedSpans | None, review: str) -> list[str]:
    return [] if accepted is None else acceptance(accepted, review)


def accepted_record(accepted: Accepted | Guaranteed | GuaranteedSpans | None) -> dict[str, Any] | None:
    """How many documents or spans were accepted, out of how many, and the precision guaranteed or the cut, for JSON."""
    if accepted is None:
        return None
    from quorate.audit.acceptance import GuaranteedSpans
    from quorate.result.acceptance import Accepted

    if isinstance(accepted, GuaranteedSpans):
        told: dict[str, Any] = {"spans": accepted.kept, "of": accepted.given, "precision": accepted.precision}
        least = accepted.least if accepted.kept else None
        return told | {"least_confidence": least, "guaranteed_with": accepted.confidence}
    record: dict[str, Any] = {"documents": len(accepted.documents), "review": len(accepted.review)}
    if isinstance(accepted, Accepted):
        return record | {"cut": accepted.cut if accepted.documents else None}
    return record | {"precision": accepted.precision, "guaranteed_with": accepted.confidence}


def _how_many(accepted: Guaranteed, review: str) -> str:
    kept, left = len(accepted.documents), len(accepted.review)
    if not left:
        return f"all {counted(kept, 'document')} accepted, {review} is empty"
    return f"{kept:,} of {kept + left:,} documents accepted, {left:,} to review in {review}"


def _guarantee(accepted: Guaranteed, review: str) -> list[str]:
    sure, precision = f"{100 * accepted.confidence:g} % confidence", f"{100 * accepted.precision:g} %"
    return [
        _how_many(accepted, review),
        f"guaranteed, with {sure}, that {precision} of their spans are right",
    ]


def _guarantee_of_spans(accepted: GuaranteedSpans) -> list[str]:
    sure, precision = f"{100 * accepted.confidence:g} % confidence", f"{100 * accepted.precision:g} %"
    if not accepted.given:
        return ["the consensus has no span to keep"]
    return [
        f"{accepted.kept:,} of {accepted.given:,} spans kept, those of confidence {accepted.least:.2f} or more",
        f"guaranteed, with {sure}, that {precision} of them are right",
    ]


def _is_dialled(result: Result) -> bool:
    return any(result.settings_.get(dial) is not None for dial in ("precision", "recall"))


def _expected(result: Result) -> dict[str, float] | None:
    """What the consensus expects of itself, for those who asked for it by a dial."""
    return {name: getattr(result.expected, name) for name in ("precision", "recall")} if _is_dialled(result) else None


def _dial(result: Result) -> list[str]:
    """What came of a precision or a recall that was asked for."""
    if not _is_dialled(result):
        return []
    precision, recall = result.settings_.get("precision"), result.settings_.get("recall")
    spans, expected = result.n_spans, result.expected
    found = counted(spans, "span")
    shares = f"expected precision {round(expected.precision, 3):g}, expected recall {round(expected.recall, 3):g}"
    what = f"{found}, {shares} (an estimate of the model)"
    if precision is not None:
        if not spans:
            return [f"no span is sure enough for an expected precision of {precision:g}: none is given (ask for less)"]
        return [f"as many spans as keep an expected precision of {precision:g}: {what}"]
    if recall is not None and expected.recall < recall - _NEARLY:
        return [f"an expected recall of {recall:g} cannot be reached, as some spans nobody marked; the most is {what}"]
    return [f"as few spans as keep an expected recall of {recall:g}: {what}"]
