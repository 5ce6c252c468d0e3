"""Everything that a report shows, collected from a result into one :class:`quorate.report.content.Report`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import quorate
from quorate.audit import Audit, Plan
from quorate.corpus.discontinuous import is_continued
from quorate.corpus.tags import Scheme
from quorate.errors import InputError
from quorate.estimators.bsc import BSC
from quorate.estimators.capabilities import Explains
from quorate.estimators.crf_ma import CRFMA
from quorate.estimators.voting import MajorityVote
from quorate.evaluate.describe import ESTIMATE, KnownF1, audit_command, f1_by_gold, how_good, score_of
from quorate.evaluate.metrics import measure_agreement
from quorate.formats.notes import people as named
from quorate.model.calibration import AS_STATED, Calibration
from quorate.model.correction import Correction
from quorate.model.settings import Settings
from quorate.report.against import against_gold, against_vote, majority_of
from quorate.report.audits import audited, check_drawn_from, to_check
from quorate.report.content import (
    Agreement,
    AnnotatorRow,
    Annotators,
    DocumentRow,
    Documents,
    Fit,
    Gold,
    Group,
    LabelRow,
    Labels,
    Matrices,
    Report,
    SettingRow,
    Summary,
    ToCheck,
    Together,
    TypeRow,
)
from quorate.report.differences import people_and_models
from quorate.report.documents import Codes, chosen_documents, document_rows, positions_beyond
from quorate.report.findings import DOUBTFUL, find, next_steps
from quorate.report.people import HABITS, NOT_JUDGED, Person, blind_types, people, wilson
from quorate.result.annotators import AnnotatorSummary
from quorate.result.checked import checked_in_words
from quorate.result.clusters import Groups, group_annotators
from quorate.result.habits import BOUNDS, KINDS, SpanHabits
from quorate.result.result import Result
from quorate.result.sources import SourceKind
from quorate.wording import counted as in_words
from quorate.wording import repaired

__all__ = ["collect"]

Floats = NDArray[np.float64]
Progress = Callable[[int, int, str], None]

_MOST_MATRIX = 10_000  # cells of one annotator: beyond, the matrices are averaged over the previous label
_MOST_CELLS = 400_000  # cells of all annotators whose matrices are in the page
_MOST_GROUPED = 30_000_000  # numbers in matrices that are looked at together
_MOST_PAIRS = 200
_BINS = 20
_AMBIGUOUS_NAMED = 3  # documents that are named as the most ambiguous
_SHARES = ("missed", "false_positive", *HABITS)


def collect(
    model: BSC | CRFMA | MajorityVote | None,
    result: Result,
    *,
    title: str,
    documents: int | None,
    groups: int | None = None,
    known: Collection[str] = (),
    split: str | None = None,
    audit: Audit | Plan | None = None,
    version: int | str | None = None,
    layer: str = "",
    progress: Progress | None = None,
) -> Report:
    """The content of a report about a result.

    ``model`` is what made it, for the explanations; ``documents`` how many to show (``None``: all), the least certain
    first; ``groups`` how many groups of annotators (``None``: chosen); ``known`` are ids of documents whose labels were
    given as certain; ``split`` limits the comparison with gold; ``audit`` is one of this result, checked or planned;
    ``version`` is that of the consensus, which goes into what is exported, and ``layer`` the layer that the result is
    of, if it is one of several.

    >>> import quorate
    >>> model = quorate.BSC().fit(quorate.sample())
    >>> report = collect(model, model.result_, title="A sample", documents=10)
    >>> report.documents.total, len(report.documents.list)
    (320, 10)
    """
    tell = progress or (lambda done, total, note: None)
    steps = 6
    if audit is not None:
        check_drawn_from(result, audit)
    unchecked = None if audit is None else to_check(audit)
    tell(0, steps, "the majority vote")
    votes = None if result.settings_.get("method") == "mv" else majority_of(result)
    codes = Codes(result.labels)
    tell(1, steps, "annotators")
    crowd = people(result, known)
    grouped = _grouped(result, groups)
    tell(2, steps, "agreement")
    agreement = _agreement(result)
    tell(3, steps, "gold")
    gold = against_gold(result, votes, codes, known=known, split=split)
    tell(4, steps, "documents")
    explain = model if isinstance(model, Explains) else None
    chosen = chosen_documents(result, documents, known)
    beyond = [] if unchecked is None else positions_beyond(result, unchecked.ids, chosen)
    rows = document_rows(
        result,
        [*chosen, *beyond],
        [person.name for person in crowd],
        codes,
        model=explain,
        votes=votes,
        known=known,
        progress=lambda done, total: tell(4, steps, f"document {done:,} of {total:,}"),
    )
    annotators, counted = (
        _annotators(result, crowd, grouped),
        _documents(result, crowd, known, rows[: len(chosen)], rows[len(chosen) :], explained=explain is not None),
    )
    report = Report(
        title=title,
        version=quorate.__version__,
        method=str(result.settings_.get("method", "")),
        scheme=result.tagset.scheme.value,
        labels_of_model=result.labels,
        types=result.tagset.types,
        inputs=[str(name) for name in result.corpus.digests],
        digest=("".join(result.corpus.digests.values())[:16] or title) + (f"-{layer}" if layer else ""),
        layer=layer,
        how_good=_how_good(
            result,
            agreement,
            known=known,
            split=split,
            audit=audit,
            unchecked=unchecked,
            correction=_correction(explain),
        ),
        estimate=ESTIMATE,
        notes=_notes(result),
        annotators=annotators,
        matrices=_matrices(result, crowd, grouped),
        documents=counted,
        labels=_labels(result, crowd, gold, agreement),
        agreement=agreement,
        fit=None if result.trace is None else Fit(result.trace.bounds, result.trace.reason.value, result.trace.starts),
        settings=_settings(result),
        changes=_changes(model, result),
        audit=audited(audit) if isinstance(audit, Audit) else None,
        to_check=unchecked,
        gold=gold,
        vote=None if votes is None else against_vote(result, votes),
        tags=codes.tags,
        summary=_summary(result, annotators, counted),
        of_version=version,
    )
    report = replace(report, findings=find(report), next=next_steps(report))
    tell(steps, steps, "")
    return report


def _matched(calibration: Calibration) -> str:
    """How often held-out annotators gave what the others' consensus has."""
    if calibration.matched is None:
        return ""
    return f" Held-out annotators marked {100 * calibration.matched:.0f} % of the others' consensus spans just so."


def _correction(model: Explains | None) -> Correction | None:
    return model.fitted_.calibration.correction if model is not None else None


def _how_good(
    result: Result,
    agreement: Agreement | None,
    *,
    known: Collection[str],
    split: str | None,
    audit: Audit | Plan | None,
    unchecked: ToCheck | None,
    correction: Correction | None,
) -> str:
    """What is known of the consensus: by the audit, by gold that was not given as known, or by what was."""
    found = KnownF1.of_audit(audit.f1, audit.confidence, audit.n) if isinstance(audit, Audit) else None
    scored = [
        position
        for position, document in enumerate(result.corpus)
        if document.id not in known and (split is None or document.split == split)
    ]
    to_know = audit_command("consensus.jsonl", len(result))
    if unchecked is not None:
        to_know = f"check the {in_words(len(unchecked.ids), 'document')} of the audit, under Documents"
    alpha = None if agreement is None else agreement.alpha
    known_f1 = found or f1_by_gold(result, scored) or KnownF1.of_check(correction)
    return how_good(alpha, known_f1, to_know, of=score_of(result))


def _notes(result: Result) -> list[str]:
    notes = list(result.corpus.notes)
    if result.repaired:
        notes.append(repaired(result.repaired))
    return notes


def _annotators(result: Result, crowd: Sequence[Person], grouped: Groups | None) -> Annotators:
    of_group = {} if grouped is None else dict(enumerate(grouped.member.tolist()))
    sources = result.sources
    together = {name: n for n, one in enumerate(sources.together) for name in one.names}
    rows = [
        AnnotatorRow(
            name=person.name,
            source=person.source.value,
            documents=person.documents,
            labels=person.labels,
            accuracy=person.accuracy,
            low=person.low,
            high=person.high,
            informativeness=person.informativeness,
            precision=person.precision,
            coverage=person.coverage,
            kind=person.kind,
            group=of_group.get(k),
            consensus_spans=person.shares.consensus,
            own_spans=person.shares.own,
            shares={kind: person.shares.share(kind) for kind in _SHARES},
            of={kind: person.shares.of(kind) for kind in _SHARES},
            blind=blind_types(person.by_type),
            habits={name: _with_interval(person.habits, name) for name in _known(person.habits)},
            types=[
                TypeRow(kind, habits.marks, _with_interval(habits, "precision"), _with_interval(habits, "coverage"))
                for kind, habits in person.habits_by_type.items()
            ],
            team=sources.profiles[person.name].group if person.name in sources.profiles else None,
            together=together.get(person.name),
        )
        for k, person in enumerate(crowd)
    ]
    others = [person for person in crowd if person.source is not SourceKind.RULES] or crowd
    pooled: dict[str, float | None] = {}
    for kind in _SHARES:
        whole = sum(person.shares.of(kind) for person in others)
        pooled[kind] = sum(person.shares.counts.get(kind, 0) for person in others) / whole if whole else None
    everybody = SpanHabits(*(sum(column) for column in zip(*(person.habits for person in others), strict=True)))
    return Annotators(
        rows,
        [Together(*one) for one in sources.together],
        people_and_models(result),
        pooled,
        {name: everybody.share(name) for name in _known(everybody)},
    )


def _with_interval(habits: SpanHabits, name: str) -> tuple[float, float, float]:
    return habits.share(name), *habits.interval(name)


def _known(habits: SpanHabits) -> list[str]:
    """The habits of which something is known."""
    names = ("found", *KINDS, *BOUNDS, "invented", "precision", "coverage")
    return [name for name in names if habits.of(name) > 0]


def _grouped(result: Result, n: int | None) -> Groups | None:
    annotators = result.annotators
    if not len(annotators) or set(annotators.names) != set(result.corpus.annotators):
        return None
    if len(annotators) * math.prod(annotators.matrix_shape) > _MOST_GROUPED:
        return None
    return group_annotators(annotators, n)


def _matrices(result: Result, crowd: Sequence[Person], grouped: Groups | None) -> Matrices:
    """Posterior mean matrices in thousandths: of the groups, and of the annotators who gave most labels."""
    J = len(result.labels)
    P = result.annotators.matrix_shape[0]
    whole = P * J * J <= _MOST_MATRIX
    cells = (P if whole else 1) * J * J
    met = [k for k, person in enumerate(crowd) if person.informativeness is not None]
    most = sorted(met, key=lambda k: -crowd[k].labels)[: _MOST_CELLS // cells]
    previous: list[str] = []
    if whole and P > 1:
        previous = [*result.labels, *(["start"] if P > J else [])]
    of = {str(k): _thousandths(_matrix(result.annotators[crowd[k].name]), whole) for k in sorted(most)}
    if grouped is None:
        return Matrices(previous, not whole, of)
    members = [np.flatnonzero(grouped.member == group).tolist() for group in range(len(grouped.matrices))]
    groups = [
        Group(
            who,
            _thousandths(matrix, whole),
            _mean([crowd[k].accuracy for k in who]),
            _mean([crowd[k].informativeness for k in who]),
            Counter(crowd[k].kind for k in who).most_common(3),
        )
        for who, matrix in zip(members, grouped.matrices, strict=True)
    ]
    return Matrices(previous, not whole, of, groups, sorted(grouped.silhouettes.items()))


def _matrix(one: AnnotatorSummary) -> Floats:
    return one.matrix if math.prod(one.matrix_shape) <= _MOST_GROUPED else one.collapsed_matrix


def _thousandths(matrix: Floats, whole: bool) -> list[int]:
    shown = matrix if whole else matrix.mean(axis=0, keepdims=True)
    return [int(value) for value in np.rint(1000 * shown).ravel()]


def _mean(values: Sequence[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return sum(given) / len(given) if given else None


def _documents(
    result: Result,
    crowd: Sequence[Person],
    known: Collection[str],
    shown: Sequence[DocumentRow],
    of_audit: Sequence[DocumentRow],
    *,
    explained: bool,
) -> Documents:
    confidence = np.minimum(result.confidence, 1.0)
    open_documents = np.array([document.id not in known for document in result.corpus], np.bool_)
    seen_by = np.array([len(document.annotations) for document in result.corpus])
    alone = {person.name for person in crowd if person.kind == NOT_JUDGED}
    not_judged = [bool(document.annotations) and alone.issuperset(document.annotations) for document in result.corpus]
    ambiguous = result.ambiguity.documents
    open_ended = [int(d) for d in np.argsort(-ambiguous, kind="stable") if ambiguous[d] >= 1 and seen_by[d] > 1]
    return Documents(
        total=len(result),
        doubtful=int((confidence[open_documents] < DOUBTFUL).sum()),
        unsure=int((confidence[open_documents] < 0.9).sum()),
        known=int((~open_documents).sum()),
        once=int((seen_by[open_documents] < 2).sum()),
        not_judged=sum(not_judged),
        histogram=np.histogram(confidence, _BINS, (0.0, 1.0))[0].tolist(),
        expected_right=float(confidence.sum()),
        ambiguous=len(open_ended),
        most_ambiguous=[result.corpus[d].id for d in open_ended[:_AMBIGUOUS_NAMED]],
        explained=explained,
        list=shown,
        of_audit=of_audit,
    )


def _labels(result: Result, crowd: Sequence[Person], gold: Gold | None, agreement: Agreement | None) -> Labels:
    """Each type (in the plain scheme each label), with its score and the agreement on it where there are any."""
    is_plain = result.tagset.scheme is Scheme.PLAIN
    rows = _plain_labels(result, crowd) if is_plain else _span_labels(result, crowd)
    scored = {} if gold is None else {label: scores[2] for label, scores in gold.by_type.items()}
    alphas = {} if agreement is None else agreement.by_type
    rows = [replace(row, f1=scored.get(row.label), alpha=alphas.get(row.label)) for row in rows]
    return Labels(rows, "token" if is_plain else "span")


def _span_labels(result: Result, crowd: Sequence[Person]) -> list[LabelRow]:
    sure: dict[str, list[float]] = {kind: [] for kind in result.tagset.types if not is_continued(kind)}
    length: Counter[str] = Counter()
    for spans in result.spans:
        for span in spans:
            sure[span.label].append(span.sure)
            length[span.label] += len(span.tokens)
    rows = []
    for kind, confidences in sure.items():
        seen = marked = 0
        others: Counter[str] = Counter()
        for person in crowd:
            n, own, as_other = person.by_type.get(kind, (0, 0, {}))
            seen, marked = seen + n, marked + own
            others.update(as_other)
        noticed = marked + others.total()
        other, times = others.most_common(1)[0] if others else (None, 0)
        rows.append(
            LabelRow(
                label=kind,
                spans=len(confidences),
                confidence=float(np.mean(confidences)) if confidences else None,
                low=sum(value < 0.9 for value in confidences),
                length=length[kind] / len(confidences) if confidences else None,
                marked=marked / seen if seen else None,
                mixed_with=other,
                mixed_share=times / noticed if noticed else 0.0,
                mixed_low=wilson(times, noticed)[0],
                histogram=np.histogram(confidences, 10, (0.0, 1.0))[0].tolist(),
            )
        )
    return rows


def _plain_labels(result: Result, crowd: Sequence[Person]) -> list[LabelRow]:
    J = len(result.labels)
    confusion = np.zeros((J, J))
    for person in crowd:
        confusion[:, person.given] += person.truths.T
    tags = np.array([result.tagset.index[tag] for tags in result.tags for tag in tags], np.int64)
    sure = np.concatenate([one.token_confidence for one in result]) if len(tags) else np.zeros(0)
    rows = []
    for j, label in enumerate(result.labels):
        mine = np.minimum(sure[tags == j], 1.0)
        total, wrong = confusion[j].sum(), confusion[j].copy()
        wrong[j] = 0.0
        other = int(wrong.argmax())
        rows.append(
            LabelRow(
                label=label,
                spans=len(mine),
                confidence=float(mine.mean()) if len(mine) else None,
                low=int((mine < 0.9).sum()),
                length=None,
                marked=float(confusion[j, j] / total) if total else None,
                mixed_with=result.labels[other] if wrong[other] > 0 else None,
                mixed_share=float(wrong[other] / total) if total else 0.0,
                mixed_low=wilson(float(wrong[other]), float(total))[0],
                histogram=np.histogram(mine, 10, (0.0, 1.0))[0].tolist(),
            )
        )
    return rows


def _agreement(result: Result) -> Agreement | None:
    try:
        found = measure_agreement(result.corpus)
    except InputError:  # nobody shares a document with anybody
        return None
    pairs = sorted(found.pairs, key=lambda pair: (-pair.tokens, pair.first, pair.second))
    return Agreement(
        documents=found.documents,
        tokens=found.tokens,
        observed=found.observed,
        alpha=found.alpha,
        unitizing_alpha=found.unitizing_alpha,
        fleiss_kappa=found.fleiss_kappa,
        mean_kappa=found.mean_kappa,
        spans_matched=found.spans_matched,
        by_type=found.unitizing_by_type,
        n_pairs=len(pairs),
        pairs=pairs[:_MOST_PAIRS],
    )


def _settings(result: Result) -> list[SettingRow]:
    """Every setting, its value, and whether somebody gave it."""
    defaults = Settings().plain()
    return [
        SettingRow(
            name,
            "–" if value is None else str(value),
            "default" if name in defaults and defaults[name] == value else "given",
        )
        for name, value in result.settings_.items()
        if name != "method"
    ]


def _changes(model: BSC | CRFMA | MajorityVote | None, result: Result) -> list[str]:
    """What was done to the crowd before the fit, and to the confidence after it."""
    sources = result.sources
    sentences = [f"{one}." for one in sources.together]
    if sources.abstaining:
        verb = "abstains" if len(sources.abstaining) == 1 else "abstain"
        sentences.append(
            f"{named(sources.abstaining, 5)} {verb} from most of what others mark: of their labels, O counts little."
        )
    if isinstance(model, Explains) and model.fitted_.calibration != AS_STATED:
        tokens, spans = model.fitted_.calibration[:2]
        correction = _correction(model)
        spanwise = model.fitted_.spans is not None and correction is None
        of_spans = f", and of sets of spans to {spans:.2f}" if spanwise else ""
        sentences.append(
            "Confidence is calibrated on held-out annotators: probabilities of labels are raised to the power of "
            f"{tokens:.2f}{of_spans} (below 1 means less sure).{_matched(model.fitted_.calibration)}"
        )
        if correction is not None:
            sentences.append(f"{checked_in_words(correction)}.")
    return sentences


def _summary(result: Result, annotators: Annotators, documents: Documents) -> Summary:
    found = Summary(
        documents=documents.total,
        tokens=result.corpus.n_tokens,
        annotators=len(annotators.rows),
        labels=sum(row.labels for row in annotators.rows),
        confidence=float(np.minimum(result.confidence, 1.0).mean()),
        review=min(documents.doubtful or min(documents.unsure, 20), len(documents.list)),
    )
    if result.tagset.scheme is Scheme.PLAIN:
        return found
    confidences = [span.sure for spans in result.spans for span in spans]
    return replace(
        found,
        spans=len(confidences),
        sure_spans=sum(value >= 0.9 for value in confidences),
        span_histogram=np.histogram(np.minimum(confidences, 1.0), _BINS, (0.0, 1.0))[0].tolist(),
    )
