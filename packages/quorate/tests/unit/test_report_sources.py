"""What the report says of people, models and rules: each judged by what makes sense for them."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import quorate
from quorate import BSC, Corpus, Document
from quorate.corpus.profiles import Profile
from quorate.corpus.records import hard_tags
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.tags import TagSet
from quorate.report import content as say
from quorate.report.content import Report, plain
from quorate.report.data import collect
from quorate.report.differences import differences, people_and_models
from quorate.report.findings import find, next_steps
from quorate.report.people import people
from simulated_crowds import copies, every_kind, rules, sentences


@pytest.fixture(scope="module")
def model() -> BSC:
    return BSC().fit(every_kind())


@pytest.fixture(scope="module")
def report(model: BSC) -> Report:
    return collect(model, model.result_, title="", documents=5)


def test_every_annotator_is_of_their_kind(report: Report) -> None:
    kinds = {row.name: row.source for row in report.annotators.rows}
    assert kinds == {
        **dict.fromkeys(("ann", "bob", "cem", "dee"), "people"),
        **dict.fromkeys(("llm-0", "llm-1", "llm-2", "parser"), "models"),
        **dict.fromkeys(("gazetteer", "regex", "titles"), "rules"),
    }
    assert {row.name: row.team for row in report.annotators.rows if row.team} == dict.fromkeys(
        ("llm-0", "llm-1", "llm-2"), "llm-c"
    )


def test_rules_are_judged_by_their_precision_and_told_by_it(report: Report, model: BSC) -> None:
    rows = {row.name: row for row in report.annotators.rows}
    assert [rows[name].kind for name in ("gazetteer", "regex", "titles")] == [
        "right where they mark",
        "right where they mark",
        "often wrong",
    ]
    told = model.annotators_["regex"]
    assert (rows["regex"].precision, rows["regex"].coverage) == pytest.approx((told.precision, told.coverage))
    (of_org,) = [row for row in rows["regex"].types if row.type == "ORG"]
    assert of_org.precision == pytest.approx(
        (told.by_type["ORG"].share("precision"), *told.by_type["ORG"].interval("precision"))
    )
    text = " ".join(finding.text for finding in report.findings)
    assert re.search(
        r"regex marks \d\d% of the consensus's spans, and (8|9)\d% of its own marks are in the consensus\.", text
    )
    assert not re.search(r"(regex|gazetteer|titles)[a-z, ]* (hardly ever|miss)", text)
    steps = " ".join(report.next)
    assert "Repair titles, or leave it out: most of its marks are not in the consensus." in steps
    assert not re.search("(Ask|Show|Go through)[^.]*(regex|gazetteer|titles)", steps)


def test_what_votes_are_worth_is_found(report: Report, model: BSC) -> None:
    (together,) = model.sources_.together
    text = [finding.text for finding in report.findings]
    assert f"llm-0, llm-1 and llm-2 make the same mistakes: their 3 votes count as {together.votes:.1f}." in text
    assert 1 <= together.votes < 2
    assert [row.together for row in report.annotators.rows if row.source == "models"] == [0, 0, 0, None]


def test_merged_duplicates_are_found() -> None:
    rows = [say.AnnotatorRow(name) for name in "abc"]
    merged = say.Annotators(rows, [say.Together(("a", "b"), 1.0, merged=True)])
    text = [finding.text for finding in find(Report(annotators=merged))]
    assert "a and b are duplicates: they were merged, and count as one annotator." in text
    assert not any("same mistakes" in one for one in text)


def test_of_merged_duplicates_one_counts_among_models() -> None:
    """Five samples that are one annotator have no majority against another model."""
    samples = tuple(f"model{n}" for n in range(5))
    documents = [
        replace(one, annotations={**one.annotations, "other": one.annotations["bob" if n % 3 else "ann"]})
        for n, one in enumerate(copies(100))
    ]
    profiles = {name: Profile.of(kind="model") for name in (*samples, "other")}
    result = BSC("cm", calibrate=False).fit(Corpus(documents, profiles=profiles)).result_
    assert result.sources.duplicates == (samples,)

    def number(*models: str) -> dict[str, int]:
        wanted = dict.fromkeys(result.tagset.types, 0)
        for one in documents:
            given = {name: hard_tags(tags) for name, tags in one.annotations.items()}
            for span, _ in differences(given, ["ann", "bob", "cem"], models, result.tagset):
                wanted[span.label] += 1
        return wanted

    found = {row.type: row.people_only + row.models_only for row in people_and_models(result) or ()}
    assert found == number("model0", "other") != number(*samples, "other")


@pytest.mark.parametrize(("how_many", "apart"), [(150, 0.1), (600, 0.2)])
def test_rules_that_are_right_are_never_noise(how_many: int, apart: float) -> None:
    found = people(quorate.aggregate(rules(how_many)))
    kinds = {person.name: person.kind for person in found}
    assert set(kinds.values()) <= {"right where they mark", "mostly right", "mixed", "often wrong"}
    assert all(kinds[f"rule{n}"] in ("right where they mark", "mostly right") for n in range(3))
    precise, rough = found[:3], found[3:]  # the first three hardly ever invent
    assert min(one.precision or 0 for one in precise) > max(one.precision or 0 for one in rough) + apart


def test_rules_that_nobody_declared_nor_found_out_are_no_noise_beside_people() -> None:
    """Of those who mark little, only whoever marks at random is noise."""
    texts = sentences(400, seed=3)
    kinds = {f"p{n}": Behaviour(miss=0.1, confuse=0.05, invent=0.005) for n in range(4)}
    kinds |= {"precise": Behaviour(miss=0.96), "rough": Behaviour(miss=0.95, invent=0.002), "spam": Behaviour(spam=1.0)}
    result = quorate.aggregate(crowd(texts, kinds, seed=3), "bsc-cm")
    told = {person.name: person.kind for person in people(result)}
    assert told["precise"] == "right where they mark"
    assert told["rough"] in ("right where they mark", "marks little")
    assert told["spam"] == "noise"


def random_crowd(seed: int) -> Corpus:
    rng = np.random.default_rng(seed)
    tags = ["O", "B-X", "I-X", "B-Y"]
    names = ["p0", "p1", "p2", "m0", "m1", "rule"]
    documents = []
    for n in range(40):
        length = int(rng.integers(1, 6))
        truth = rng.choice(tags, length)
        said = {
            name: tuple(
                None if rng.random() < 0.05 else str(tag if rng.random() < 0.7 else rng.choice(tags)) for tag in truth
            )
            for name in names
            if rng.random() < 0.8
        }
        documents.append(Document(str(n), tuple("abcdef"[:length]), said))
    profiles = {"m0": Profile.of(kind="model"), "m1": Profile.of(kind="model"), "rule": Profile.of(kind="rule")}
    return Corpus(documents, profiles=profiles)


@pytest.mark.parametrize("seed", range(5))
def test_differences_of_people_and_models_are_those_of_brute_force(seed: int) -> None:
    """Every possible span of every document, asked of everybody."""
    result = quorate.aggregate(random_crowd(seed), "bsc-cm", scheme="bio")
    wanted = {kind: [0, 0, 0, 0] for kind in ("X", "Y")}
    for one in result:
        length = len(one.document.tokens)
        for start, end, kind in itertools.product(range(length), range(1, length + 1), "XY"):
            if start >= end:
                continue
            votes: dict[str, list[bool]] = {"p": [], "m": []}
            for name, tags in one.document.annotations.items():
                if name != "rule" and None not in tags[start:end]:
                    own = [(span.start, span.end, span.label) for span in result.tagset.spans(hard_tags(tags))]
                    votes[name[0]].append((start, end, kind) in own)
            if not votes["p"] or not votes["m"]:
                continue
            p, m = (sum(some) > len(some) / 2 for some in (votes["p"], votes["m"]))
            taken = any((span.start, span.end, span.label) == (start, end, kind) for span in one.spans)
            if p and not m:
                wanted[kind][0] += 1
                wanted[kind][1] += taken
            if m and not p:
                wanted[kind][2] += 1
                wanted[kind][3] += taken
    found = people_and_models(result)
    assert found is not None
    told = {row.type: [row.people_only, row.people_only_taken, row.models_only, row.models_only_taken] for row in found}
    assert told == wanted
    assert sum(map(sum, wanted.values())) > 20


def test_there_are_no_differences_without_both_or_without_spans(sample: Corpus) -> None:
    assert people_and_models(quorate.aggregate(sample, "mv")) is None
    only_models = replace_profiles(sample, {name: Profile.of(kind="model") for name in sample.annotators})
    assert people_and_models(quorate.aggregate(only_models, "mv")) is None
    documents = [Document(str(n), ("a", "b"), {"p": ("N", "V"), "m": ("N", "N")}) for n in range(3)]
    plain_tags = Corpus(documents, profiles={"m": Profile.of(kind="model")})
    assert people_and_models(quorate.aggregate(plain_tags, "bsc-cm", scheme="plain")) is None


def replace_profiles(corpus: Corpus, profiles: dict[str, Profile]) -> Corpus:
    return Corpus([replace(document) for document in corpus], profiles=profiles)


def test_a_tie_is_no_majority_and_who_did_not_look_does_not_count() -> None:
    tagset = TagSet.infer(["O", "B-X"])
    given: dict[str, Any] = {"a": ["B-X"], "b": ["O"], "m": ["B-X"]}
    assert [of_people for _, of_people in differences(given, ["a", "b"], ["m"], tagset)] == [False]
    assert differences({**given, "b": [None]}, ["a", "b"], ["m"], tagset) == []
    assert differences({**given, "m": [None]}, ["a", "b"], ["m"], tagset) == []


def test_whom_the_consensus_follows_is_found() -> None:
    rows = [say.DifferenceRow("X", 10, 8, 20, 5), say.DifferenceRow("Y", 0, 0, 10, 10)]
    text = [finding.text for finding in find(Report(annotators=say.Annotators(differences=rows)))]
    assert "Of 40 spans that only people or only models mark, the consensus sides with people in 57%." in text


def test_rules_that_mark_nothing_are_not_asked_how_they_worked() -> None:
    rows = [say.AnnotatorRow("r", source="rules", kind="marks nothing"), say.AnnotatorRow("p", kind="marks nothing")]
    (step,) = next_steps(Report(documents=say.Documents(total=100), annotators=say.Annotators(rows)))
    assert step.startswith("Ask p how they worked")


def test_everything_of_it_is_in_the_page(report: Report) -> None:
    found = plain(report)["annotators"]
    assert [sorted(one) for one in found["together"]] == [["merged", "names", "votes"]]
    assert [row["type"] for row in found["differences"]] == ["LOC", "ORG", "PER"]
