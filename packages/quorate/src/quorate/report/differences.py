"""People next to models: where the two differ, and whose version the consensus took."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from quorate.corpus.records import Tag, hard_tags
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet
from quorate.report.content import DifferenceRow
from quorate.result.result import Result
from quorate.result.sources import SourceKind


def people_and_models(result: Result) -> list[DifferenceRow] | None:
    """By type, the spans that most people who saw them marked and models did not, and the other way round.

    ``None`` where there are not both, or no spans. If only their bounds differ, that is two spans: one of each side.
    """
    found = result.sources.by_kind(result.corpus.annotators)
    merged = {name for _, *others in result.sources.duplicates for name in others}  # the first stands for all
    people, models = (
        [name for name in found.get(kind, []) if name not in merged] for kind in (SourceKind.PEOPLE, SourceKind.MODELS)
    )
    if not people or not models or result.tagset.scheme is Scheme.PLAIN:
        return None
    counts = {kind: [0, 0, 0, 0] for kind in result.tagset.types}
    for document, consensus in zip(result.corpus, result.spans, strict=True):
        given = {name: hard_tags(tags) for name, tags in document.annotations.items()}
        taken = {span.bare for span in consensus}
        for span, of_people in differences(given, people, models, result.tagset):
            row, first = counts[span.label], 0 if of_people else 2
            row[first] += 1
            row[first + 1] += span in taken
    return [DifferenceRow(kind, *row) for kind, row in counts.items()]


def differences(
    given: Mapping[str, Sequence[Tag]], people: Collection[str], models: Collection[str], tagset: TagSet
) -> list[tuple[Span, bool]]:
    """The spans of a document that only one side has, and whether it is people.

    A side has a span if more than half of those of it who gave all its tokens a label marked exactly it; spans that
    nobody of one side saw are left out.

    >>> tagset = TagSet.infer(["B-PER", "I-PER", "O"])
    >>> given = {"ann": ["B-PER", "O"], "bob": ["B-PER", "O"], "llm": ["B-PER", "I-PER"]}
    >>> [(span.start, span.end, of_people) for span, of_people in differences(given, ["ann", "bob"], ["llm"], tagset)]
    [(0, 1, True), (0, 2, False)]
    """
    marks = {name: set(tagset.spans(given[name])) for name in (*people, *models) if name in given}

    def has(side: Collection[str], span: Span) -> bool | None:
        saw = [name for name in side if name in marks and None not in given[name][span.start : span.end]]
        return 2 * sum(span in marks[name] for name in saw) > len(saw) if saw else None

    found = []
    for span in sorted(set().union(*marks.values()), key=lambda one: (one.start, one.end, one.label)):
        of_people, of_models = has(people, span), has(models, span)
        if of_people is not None and of_models is not None and of_people is not of_models:
            found.append((span, of_people))
    return found
