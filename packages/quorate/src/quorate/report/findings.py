"""What the numbers say, in plain sentences, and what to do next. Pure functions on the report itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from quorate.estimators.comparison import TOO_LITTLE_OVERLAP
from quorate.formats.notes import some
from quorate.report.content import AnnotatorRow, Annotators, Audit, Finding, Gold, LabelRow, Report
from quorate.report.people import (
    APART,
    HABITS,
    LEAST_SHARE,
    MARKS_LITTLE,
    MOSTLY_RIGHT,
    NOT_JUDGED,
    OFTEN_WRONG,
    RIGHT_WHERE_MARKED,
    wilson,
)
from quorate.wording import counted, person

__all__ = ["DOUBTFUL", "find", "next_steps"]

_SENTENCES = {
    "late_start": "{start} spans late in {share} of cases",
    "early_start": "{start} spans early in {share} of cases",
    "late_finish": "{end} spans late in {share} of cases",
    "early_finish": "{end} spans early in {share} of cases",
    "split": "{split} {share} of the spans they find",
    "wrong_type": "{give} {share} of the spans they find another type",
    "missed": "{miss} {share} of the spans",
    "false_positive": "{mark} what nobody else sees in {share} of their spans",
}
_VERBS = {"start": "starts", "end": "ends", "split": "splits", "give": "gives", "miss": "misses", "mark": "marks"}
_BY_PRECISION = (RIGHT_WHERE_MARKED, MARKS_LITTLE, MOSTLY_RIGHT, OFTEN_WRONG)  # kinds that go by precision
_LEAST_SPANS = 10
_LEAST_MIXED = 0.03
# F1 (or accuracy) against gold: below the first look at the errors, below the second do not use.
_GOOD = 0.9
_POOR = 0.5
_MUCH_BETTER = 0.02
_MISLEADING = 0.02  # by how much confidence is less far off once an audit corrects it
_POOR_ALPHA = 0.4
_HABITS_SHOWN = 5
_AT_ONCE = 20  # documents to check before a new fit, where most are doubtful
_HABIT_WEIGHT = 1.5  # a habit in spans that were found says more about someone than yet another miss
DOUBTFUL = 0.5
"""A document is doubtful if its whole sequence is less probable than this."""


def percent(share: float) -> str:
    """A share in per cent: whole, but never 0 or 100 unless it is.

    >>> percent(0.314), percent(0.002), percent(0.9999), percent(1.0)
    ('31%', 'under 1%', 'over 99%', '100%')
    """
    if 0 < share < 0.01:
        return "under 1%"
    if 0.99 < share < 1:
        return "over 99%"
    return f"{100 * share:.0f}%"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Names as a sentence has them.

    >>> listed(["ann", "bob"]), listed(["ann", "bob", "cat", "dan"])
    ('ann and bob', 'ann, bob, cat and 1 more')
    """
    if 1 < len(names) <= most:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return some(names, most)


def _people(names: Sequence[str], most: int = 3) -> str:
    """Annotators as a sentence has them."""
    return listed([person(name) for name in names], most)


def _begun(sentence: str) -> str:
    """A sentence that may begin with an annotator whose name is a number: *Annotator “3” …*."""
    return f"A{sentence[1:]}" if sentence.startswith("annotator “") else sentence


def find(report: Report) -> list[Finding]:
    """Everything worth a sentence, what matters most first."""
    found = [
        *_consensus(report),
        *_what_people_do(report.annotators),
        *_correlated(report.annotators),
        *_differences(report.annotators),
        *_labels(report),
        *_agreement(report),
    ]
    return [replace(finding, text=_begun(finding.text)) for finding in found]


def _consensus(report: Report) -> Iterator[Finding]:
    documents, gold = report.documents, report.gold
    yield from _audit(report.audit)
    if gold is not None and gold.method.strict:
        f1 = 100 * gold.method.strict[2]
        rest = ""
        if gold.vote is not None and gold.vote.strict:
            gain = f1 - 100 * gold.vote.strict[2]
            rest = f", {abs(gain):.1f} points {'more' if gain >= 0 else 'less'} than a majority vote"
        yield Finding(
            "calibration",
            f"Against gold, the consensus has a strict F1 of {f1:.1f}{rest} ({gold.documents:,} documents).",
        )
    elif gold is not None:
        yield Finding("calibration", f"Against gold, {percent(gold.method.accuracy)} of the tags are right.")
    doubtful = documents.doubtful
    if _is_unchecked(report):
        yield Finding(
            "documents",
            f"{counted(documents.not_judged, 'document was', 'documents were')} labelled only by annotators who share "
            "no document with anybody: nothing shows how good these labels are, and confidence is a guess.",
        )
    elif _most_are_doubtful(report):
        yield Finding(
            "documents",
            f"{doubtful:,} of {counted(documents.total, 'document')} are more likely to contain a mistake than not. "
            "One wrong start or end of a span is enough. That is common where documents have many spans, or long ones: "
            "look at the confidence of single spans.",
        )
    elif doubtful:
        share = percent(doubtful / max(documents.total, 1))
        verb = "is" if doubtful == 1 else "are"
        yield Finding(
            "documents",
            f"{counted(doubtful, 'document')} ({share}) {verb} more likely to contain a mistake than not: "
            f"look at {'it' if doubtful == 1 else 'those'} first.",
        )
    else:
        yield Finding("documents", "No document is more likely to contain a mistake than not.")
    if documents.ambiguous:
        share = percent(documents.ambiguous / max(documents.total, 1))
        named = ", ".join(documents.most_ambiguous)
        yield Finding(
            "documents",
            f"In {counted(documents.ambiguous, 'document')} ({share}) annotators differ because the text allows two "
            f"readings, most in {named}: more labels will not settle that.",
        )
    spans = report.summary.spans
    if spans and not _is_unchecked(report):
        sure = percent((report.summary.sure_spans or 0) / spans)
        yield Finding("documents", f"Of {counted(spans, 'span')} in the consensus, {sure} are at least 90% certain.")
    vote = report.vote
    if vote is not None:
        share = percent(vote.documents / max(documents.total, 1))
        text = f"It differs from a majority vote in {counted(vote.documents, 'document')} ({share})"
        if vote.spans is not None:
            numbers = ((getattr(vote.spans, what), name) for what, name in _CHANGES)
            changes = [f"{number:,} {name}" for number, name in numbers if number]
            text += f": {', '.join(changes)}" if changes else ""
        yield Finding("vote", text + ".")
    yield from _overconfidence(gold)


def _most_are_doubtful(report: Report) -> bool:
    """Whether a document is doubtful as a rule."""
    return report.documents.total > 1 and 2 * report.documents.doubtful > report.documents.total


def _is_unchecked(report: Report) -> bool:
    """Whether most documents have labels of annotators alone who cannot be judged, and nothing else is known."""
    documents = report.documents
    return 2 * documents.not_judged > documents.total and report.audit is None and report.gold is None


def _audit(audit: Audit | None) -> Iterator[Finding]:
    """What follows from the documents checked for all of them."""
    score = None if audit is None or not audit.scores else audit.scores[0].f1
    if audit is None or score is None:
        return
    yield Finding("audit", f"{audit.headline} ({counted(audit.checked, 'document')} checked).")


_CHANGES = (
    ("added", "spans added"),
    ("dropped", "dropped"),
    ("moved", "given other bounds"),
    ("retyped", "given another type"),
)


def _overconfidence(gold: Gold | None) -> Iterator[Finding]:
    if gold is None or gold.calibration.spans is None:
        return
    spans = gold.calibration.spans
    claimed = sum(row[2] * row[3] for row in spans.bins) / spans.count
    right = sum(row[2] * row[4] for row in spans.bins) / spans.count
    if claimed - right >= 0.03:
        yield Finding(
            "calibration",
            f"Its confidence is too high: spans are given {percent(claimed)} on average where {percent(right)} are "
            "right. Use it to rank documents, not as the share that is right.",
        )


def _what_people_do(annotators: Annotators) -> Iterator[Finding]:
    if apart := _apart(annotators):
        mark = "marks" if len(apart) == 1 else "mark"
        yield Finding(
            "annotators",
            f"{_people(apart, 4)} {mark} next to nothing that others mark: {TOO_LITTLE_OVERLAP}.",
            _only(apart),
        )
    alone = _not_judged(annotators)
    if alone:
        share = "shares" if len(alone) == 1 else "share"
        yield Finding(
            "annotators", f"{_people(alone, 4)} {share} no document with anybody, and cannot be judged.", _only(alone)
        )
    known = [row for row in annotators.rows if row.labels and row.informativeness is not None]
    if not known:
        return
    typical = sorted(map(_bits, known))[len(known) // 2]
    noise = [row for row in known if row.kind == "noise"]
    if noise:
        names = _people([row.name for row in noise], 4)
        yield Finding(
            "annotators",
            f"The labels of {names} carry almost no information: {max(map(_bits, noise)):.2f} bits each at most, where "
            f"half of the annotators have {typical:.2f} or more.",
            noise[0].name if len(noise) == 1 else None,
        )
    judged = [
        row for row in known if row.kind in _BY_PRECISION and (row.own_spans >= _LEAST_SPANS or not row.own_spans)
    ]
    for row in sorted(judged, key=lambda row: -row.own_spans)[:_HABITS_SHOWN]:
        yield Finding(
            "annotators",
            f"{person(row.name)} marks {percent(row.coverage or 0.0)} of the consensus's spans, and "
            f"{percent(row.precision or 0.0)} of its own marks are in the consensus.",
            row.name,
        )
    others = [row for row in known if row.kind != "noise" and row.kind not in _BY_PRECISION and row.source != "rules"]
    yield from _habits(annotators, others)
    best = [row for row in sorted(known, key=lambda row: -_bits(row)) if row.kind == "careful"][:3]
    if best and len(known) > 3:
        yield Finding("annotators", f"The labels of {_people([row.name for row in best], 3)} tell most.")


def _not_judged(annotators: Annotators) -> list[str]:
    return [row.name for row in annotators.rows if row.kind == NOT_JUDGED]


def _apart(annotators: Annotators) -> list[str]:
    return [row.name for row in annotators.rows if row.kind == APART]


def _only(names: Sequence[str]) -> str | None:
    return names[0] if len(names) == 1 else None


def _correlated(annotators: Annotators) -> Iterator[Finding]:
    """Duplicates, and annotators whose errors are correlated."""
    for group in annotators.together[:_HABITS_SHOWN]:
        if group.merged:
            text = "are duplicates: they were merged, and count as one annotator."
        else:
            text = f"make the same mistakes: their {len(group.names)} votes count as {group.votes:.1f}."
        yield Finding("annotators", f"{_people(group.names, 4)} {text}")


def _differences(annotators: Annotators) -> Iterator[Finding]:
    """Whom the consensus follows where people and models differ."""
    rows = annotators.differences or ()
    people = sum(row.people_only_taken + row.models_only - row.models_only_taken for row in rows)
    total = sum(row.people_only + row.models_only for row in rows)
    if total >= _LEAST_SPANS:
        yield Finding(
            "annotators",
            f"Of {counted(total, 'span')} that only people or only models mark, the consensus sides with people in "
            f"{percent(people / total)}.",
        )


def _bits(row: AnnotatorRow) -> float:
    return row.informativeness or 0.0


def _habits(annotators: Annotators, rows: Sequence[AnnotatorRow]) -> Iterator[Finding]:
    """What stands out in annotators, the strongest first; those with the same habit share a sentence."""
    strongest = [max(found) for row in rows if (found := list(_stands_out(row, annotators)))]
    together: dict[tuple[str, str], list[_Habit]] = {}
    for habit in sorted(strongest, reverse=True):
        together.setdefault((habit.kind, habit.blind_to), []).append(habit)
    for (kind, blind_to), habits in list(together.items())[:_HABITS_SHOWN]:
        names = [habit.name for habit in habits]
        alone = names[0] if len(names) == 1 else None
        if blind_to:
            yield Finding(
                "annotators", f"{_people(names)} hardly ever {'marks' if alone else 'mark'} {blind_to}.", alone
            )
            continue
        shares = [percent(share) for share in sorted({habit.share for habit in habits})]
        verbs = {verb: verb_alone if alone else verb for verb, verb_alone in _VERBS.items()}
        sentence = _SENTENCES[kind].format(share=" to ".join(dict.fromkeys([shares[0], shares[-1]])), **verbs)
        usual = percent(annotators.crowd[kind] or 0.0)
        yield Finding("annotators", f"{_people(names)} {sentence} (all annotators: {usual}).", alone)


class _Habit(NamedTuple):
    """A share of someone's spans that is well above the crowd's, by how much it matters."""

    weight: float
    name: str
    kind: str
    blind_to: str
    share: float


def _stands_out(row: AnnotatorRow, annotators: Annotators) -> Iterator[_Habit]:
    if row.blind:
        missed, n = row.shares["missed"] or 0.0, row.of["missed"]
        yield _Habit(_HABIT_WEIGHT * missed * n**0.5, row.name, "missed", listed(row.blind), missed)
    for kind in _SENTENCES:
        share, n, usual = row.shares.get(kind), row.of.get(kind, 0), annotators.crowd.get(kind)
        if share is None or usual is None or n < _LEAST_SPANS or share < LEAST_SHARE:
            continue
        low, _ = wilson(share * n, n)
        if low > 1.25 * usual:
            weight = _HABIT_WEIGHT if kind in HABITS else 1.0
            yield _Habit(weight * (low - usual) * n**0.5, row.name, kind, "", share)


def _labels(report: Report) -> Iterator[Finding]:
    rows = [row for row in report.labels.rows if row.spans >= _LEAST_SPANS]
    if len(rows) > 1 and not _is_unchecked(report):
        hardest, easiest = min(rows, key=_confidence), max(rows, key=_confidence)
        (_, at_most), (at_least, _) = (wilson(_confidence(row) * row.spans, row.spans) for row in (hardest, easiest))
        if at_most < at_least:
            yield Finding(
                "labels",
                f"{hardest.label} is the least certain label, with {percent(_confidence(hardest))} on average; "
                f"{easiest.label} has {percent(_confidence(easiest))}.",
            )
    mixed = _mixed_up(report)
    if mixed:
        yield Finding(
            "labels",
            f"{mixed.label} is most often mistaken: {percent(mixed.mixed_share)} of all labels on it say "
            f"{mixed.mixed_with}.",
        )


def _mixed_up(report: Report) -> LabelRow | None:
    """The label that is most often taken for another, if it is surely so often enough to matter."""
    rows = [row for row in report.labels.rows if row.spans >= _LEAST_SPANS and row.mixed_with]
    worst = max(rows, key=lambda row: row.mixed_low, default=None)
    return worst if worst and worst.mixed_low >= _LEAST_MIXED else None


def _confidence(row: LabelRow) -> float:
    return row.confidence or 0.0


def _agreement(report: Report) -> Iterator[Finding]:
    alpha = None if report.agreement is None else report.agreement.alpha
    if alpha is None:
        return
    word = next(
        word
        for least, word in ((0.8, "good"), (0.667, "tolerable"), (_POOR_ALPHA, "low"), (-2, "poor"))
        if alpha >= least
    )
    yield Finding("agreement", f"The agreement of annotators is {word} (Krippendorff's alpha {alpha:.2f}).")


def next_steps(report: Report) -> list[str]:
    """What to do now, the most useful first.

    >>> next_steps(Report())
    ["Check a sample of documents to know how good the consensus is ('quorate audit'). Nothing else stands out."]
    """
    steps = [
        *_steps_of_the_alone(report),
        *_steps_of_audit(report),
        *_steps_of_gold(report),
        *_steps_of_documents(report),
        *_steps_of_people(report.annotators.rows),
        *_steps_of_labels(report),
    ]
    if report.audit is None and report.gold is None:
        return steps or [
            "Check a sample of documents to know how good the consensus is ('quorate audit'). Nothing else stands out."
        ]
    return steps or ["Nothing needs to be done: use the consensus as it is."]


def _steps_of_the_alone(report: Report) -> Iterator[str]:
    alone = _not_judged(report.annotators)
    if alone and report.audit is None and report.gold is None:
        yield (
            f"Have a second annotator label some documents of {_people(alone, 4)}, or check some yourself ('quorate "
            "audit'): until then nothing shows how good their labels are."
        )
    apart = _apart(report.annotators)
    if apart and report.audit is None and report.gold is None:
        yield f"Have a person label some documents in which {_people(apart, 4)} marked something, or do an audit."


def _steps_of_audit(report: Report) -> Iterator[str]:
    audit, left = report.audit, report.to_check
    if left is not None:
        yield (
            f"Check the {counted(len(left.ids), 'document')} of the audit under Documents, and export the corrections. "
            "'quorate audit result' takes them with --checked, and the plan with --plan: it says how good the whole "
            "consensus is."
        )
    if audit is None:
        return
    score = audit.scores[0].f1 if audit.scores else None
    if score is not None and score[0] < _POOR:
        yield f"Do not use the consensus as it is: by the audit its F1 is {100 * score[0]:.1f}."
    if any(one.name == "Spans" and one.before.error - one.after.error >= _MISLEADING for one in audit.reliability):
        yield (
            "Have confidence corrected ('quorate audit result' with --recalibrated): the audit shows that it is "
            "wrong as given."
        )


def _steps_of_gold(report: Report) -> Iterator[str]:
    gold = report.gold
    if gold is None:
        return
    good, what = gold.method.accuracy, "token accuracy"
    if gold.method.strict:
        good, what = gold.method.strict[2], "strict F1"
    if good < _POOR:
        yield (
            f"Do not use the consensus as it is: against gold its {what} is {100 * good:.1f}. See whether gold and "
            "annotators have the same labels and follow the same guidelines (Against gold shows examples)."
        )
    elif good < _GOOD:
        yield f"Look at the errors under Against gold before you use the consensus: its {what} is {100 * good:.1f}."
    if gold.vote is not None:
        voted = gold.vote.strict[2] if gold.vote.strict else gold.vote.accuracy
        if voted - good >= _MUCH_BETTER:
            yield f"A majority vote does better against gold ({100 * voted:.1f}): see 'quorate compare'."
    if list(_overconfidence(gold)):
        yield "Do not read confidence as the share that is right: against gold it is too high."


def _steps_of_documents(report: Report) -> Iterator[str]:
    review, doubtful = report.summary.review, report.documents.doubtful
    if review > _AT_ONCE and _most_are_doubtful(report) and not _is_unchecked(report):
        yield (
            f"Check the {_AT_ONCE} least certain documents under Documents, correct what is wrong, export the review, "
            "and fit again with --known. Corrections also teach the model about its annotators: after that, fewer "
            f"than {doubtful:,} documents may be doubtful."
        )
    elif review and not _is_unchecked(report):
        those = "least certain document" if review == 1 else f"{review:,} least certain documents"
        yield (
            f"Check the {those} under Documents, correct what is wrong, export the review, and fit again with --known: "
            "every checked document also teaches the model about its annotators."
        )
    once = report.documents.once - report.documents.not_judged
    if once > 0:
        yield (
            f"Have {counted(once, 'document')} annotated by more people: {'it has' if once == 1 else 'they have'} one "
            "annotator or none."
        )
    rows, alpha = report.annotators.rows, None if report.agreement is None else report.agreement.alpha
    if rows and all(row.source == "rules" for row in rows):
        return  # who follow no guidelines
    if doubtful > 0.2 * report.documents.total > 0:
        share = percent(doubtful / report.documents.total)
        yield f"See whether the guidelines can be read in two ways: {share} of documents are doubtful."
    elif alpha is not None and alpha < _POOR_ALPHA:
        yield "See whether the guidelines can be read in two ways: annotators hardly agree."


def _steps_of_people(rows: Sequence[AnnotatorRow]) -> Iterator[str]:
    noise = [row.name for row in rows if row.kind in ("noise", "marks nothing") and row.source != "rules"]
    if noise:
        names = _people(noise, 4)
        yield f"Ask {names} how they worked before you give them more documents: their labels tell almost nothing."
    wrong = [row.name for row in rows if row.kind == OFTEN_WRONG]
    if wrong:
        them, their = ("it", "its") if len(wrong) == 1 else ("them", "their")
        yield f"Repair {_people(wrong, 4)}, or leave {them} out: most of {their} marks are not in the consensus."
    for kind, habit in HABITS.items():
        who = [row.name for row in rows if row.kind == habit]
        if who:
            yield f"Show {_people(who, 4)} an example: {_LESSONS[kind]}"
    for kind, lesson in (("misses many", "miss many spans"), ("marks too much", "mark much that nobody else sees")):
        who = [row.name for row in rows if row.kind == kind and not row.blind]  # a type may be called "many"
        if who:
            yield f"Go through the guidelines with {_people(who, 4)}, who {lesson if len(who) > 1 else _alone(lesson)}."
    blind = [row for row in rows if row.kind.startswith("misses ") and row.blind]
    for row in blind[:_HABITS_SHOWN]:
        yield f"Ask {person(row.name)} about {listed(row.blind)}, which they hardly ever mark."


def _alone(what: str) -> str:
    """What several do, as one does it."""
    verb, rest = what.split(" ", 1)
    return f"{verb}{'es' if verb.endswith('s') else 's'} {rest}"


def _steps_of_labels(report: Report) -> Iterator[str]:
    mixed = _mixed_up(report)
    if mixed:
        share = percent(mixed.mixed_share)
        yield (
            f"Say in the guidelines how to tell {mixed.label} from {mixed.mixed_with}: {share} of all labels on "
            f"{mixed.label} say {mixed.mixed_with}."
        )


_LESSONS = {
    "late_start": "they leave out the first words of a span.",
    "early_start": "they take words into a span that stand before it.",
    "late_finish": "they take words into a span that stand after it.",
    "early_finish": "they leave out the last words of a span.",
    "split": "they mark as two spans what the others mark as one.",
    "wrong_type": "they find the spans but give them another type.",
}
