"""What is found in a corpus before any fit."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import simulated_crowds as crowds
from problems import certain
from quorate import Corpus, Document
from quorate.corpus.profiles import Profile, gold_like
from quorate.corpus.simulate import KINDS, Behaviour, crowd
from quorate.evaluate.check import check


def warnings(*documents: Document) -> str:
    return "\n".join(check(Corpus(documents)).warnings)


def tagged(name: str, annotations: dict[str, tuple[str | None, ...]], words: str = "a b c") -> Document:
    return Document(name, tuple(words.split()), annotations)


FULL = ("B-X", "I-X", "O")


def test_thin_documents_and_annotators() -> None:
    text = warnings(
        tagged("none", {}), tagged("one", {"ann": FULL}), tagged("two", {"ann": FULL, "idle": (None, None, None)})
    )
    assert "1 document has no annotator: none" in text
    assert "2 documents have only one annotator: one, two" in text
    assert "1 annotator gave no label: idle" in text
    assert "1 annotator gave fewer than 20 labels, too few to know them by: ann" in text


def test_an_annotator_with_a_name_of_gold_is_warned_of_once() -> None:
    document = tagged("1", {"ann": FULL, "truth": FULL})
    for corpus in (Corpus([document]), Corpus([document], notes=gold_like(["truth"], {}))):
        assert sum("annotator 'truth' counts as one of the crowd" in line for line in check(corpus).warnings) == 1


def test_groups_that_share_no_document() -> None:
    text = warnings(
        tagged("1", {"a": FULL, "b": FULL}), tagged("2", {"b": FULL, "c": FULL}), tagged("3", {"x": FULL, "y": FULL})
    )
    assert "2 groups that share no document" in text
    assert "the smallest is x, y" in text
    alone = warnings(tagged("1", {"a": FULL, "b": FULL}), tagged("2", {"x": FULL}))
    assert "x shares no document with anybody and cannot be judged (have somebody else" in alone
    assert "groups" not in alone
    joined = warnings(tagged("1", {"a": FULL, "b": FULL}), tagged("2", {"b": FULL, "x": FULL}))
    assert "cannot be judged" not in joined
    assert "groups" not in joined


def test_labels_that_may_be_misspelt_are_named(sample: Corpus) -> None:
    renamed: dict[Any, Any] = {"B-PER": "B-PERS", "I-PER": "I-PERS"}
    documents = [
        replace(
            one, annotations={**one.annotations, "ana": tuple(renamed.get(tag, tag) for tag in one.annotations["ana"])}
        )
        if "ana" in one.annotations
        else one
        for one in sample
    ]
    first = documents[0]
    ida = ("B-LOCC", *first.annotations["ida"][1:])
    documents[0] = replace(first, annotations={**first.annotations, "ida": ida})
    once, of_one = (line for line in check(Corpus(documents)).warnings if "misspelt" in line)
    assert once == "1 label was used only once: LOCC by ida in s001 (if misspelt: --map-labels LOCC=LOC)"
    assert re.fullmatch(
        r"1 label was used by one annotator alone, though others saw the same documents: PERS by ana, \d+ times "
        r"\(if misspelt: --map-labels PERS=PER\)",
        of_one,
    )
    rule = Corpus(documents, profiles={"ana": Profile.of(kind="rule"), "ida": Profile.of(kind="rule")})
    assert not any("misspelt" in line for line in check(rule).warnings)


def test_labels_of_rules_that_have_their_own_are_not_misspelt(sample: Corpus) -> None:
    """Where nobody shares a label, and of a rule that marks little else beside people."""
    apart = [
        replace(one, annotations={
            f"rule for {kind}": tuple(tag if str(tag).endswith(kind) else "O" for tag in certain(one.gold or ()))
            for kind in ("PER", "LOC", "ORG")
        })
        for one in sample
    ]  # fmt: skip
    assert not any("misspelt" in line for line in check(Corpus(apart)).warnings)

    def suspected(which: str, miss: float) -> list[str]:
        """One of whom has a label of their own for what stands alone in a sentence, beside two others."""
        who = {"ann": Behaviour(miss=0.1), "bob": Behaviour(miss=0.1), which: Behaviour(miss=miss)}
        marked = crowd(crowds.sentences(300, seed=1), who, seed=1)
        own = [
            replace(one, annotations={**one.annotations, which: ("B-TITLE", *certain(one.annotations[which])[1:])})
            for one in marked
        ]
        return [line for line in check(Corpus(own)).warnings if "misspelt" in line]

    assert suspected("rule", miss=0.9) == []
    (found,) = suspected("eva", miss=0.1)
    assert "TITLE by eva" in found


def test_a_label_that_may_be_misspelt_is_not_what_another_should_be(sample: Corpus) -> None:
    documents = list(sample)
    for place, tag in enumerate(("B-PERSON", "B-per", "B-PERSO", "B-XYZQ")):
        name, tags = next(iter(documents[place].annotations.items()))
        said = {**documents[place].annotations, name: (tag, "O", *tags[2:])}
        documents[place] = replace(documents[place], annotations=said)
    (told,) = (line for line in check(Corpus(documents)).warnings if "misspelt" in line)
    assert told.startswith("4 labels were used only once: ")
    advised = told.partition("--map-labels ")[2].rstrip(")").split(",")
    assert sorted(advised) == ["PERSO=PER", "PERSON=PER", "per=PER"]


def test_labels_of_a_small_corpus_are_not_suspected() -> None:
    assert "misspelt" not in warnings(tagged("1", {"ann": FULL, "bob": ("O", "B-Y", "O")}))


def test_labels_of_one_who_is_alone_are_not_suspected() -> None:
    documents = [tagged(str(n), {"ann": FULL}, f"a{n} b{n} c{n}") for n in range(40)]
    assert not any("misspelt" in line for line in check(Corpus(documents)).warnings)


def sentences_with(corpus: Corpus, what: str) -> list[str]:
    return [sentence for sentence in check(corpus).warnings if what in sentence]


def test_duplicates_are_found_and_those_who_agree_by_chance_are_not(sample: Corpus) -> None:
    seen = crowd(sample, dict.fromkeys(("ann", "bob"), KINDS["careful"]))
    assert not sentences_with(seen, "marked the same spans")
    twice = Corpus(replace(d, annotations={**d.annotations, "again": d.annotations["ann"]}) for d in seen)
    assert sentences_with(twice, "marked the same spans") == [
        "ann, again marked the same spans wherever two of them looked: they count as one annotator"
    ] or sentences_with(twice, "marked the same spans") == [
        "again, ann marked the same spans wherever two of them looked: they count as one annotator"
    ]


def test_duplicates_of_one_share_a_sentence() -> None:
    assert sentences_with(crowds.copies(), "marked the same spans") == [
        "model0, model1, model2, model3, model4 marked the same spans wherever two of them looked: they count as one "
        "annotator"
    ]
    assert not sentences_with(crowds.copies(), "make the same mistakes")


@pytest.fixture(scope="module")
def alike() -> Corpus:
    """Nine rules, and two more that mostly repeat one of these."""
    rng = np.random.default_rng(0)
    documents = []
    for document in crowds.rules(600):
        given = dict(document.annotations)
        for name in ("alike-0", "alike-1"):
            given[name] = given["rule4"] if rng.random() < 0.9 else given["rule7"]
        documents.append(replace(document, annotations=given))
    return Corpus(documents)


def test_rules_with_correlated_errors_are_named_with_what_they_are_worth(alike: Corpus) -> None:
    (found,) = sentences_with(alike, "make the same mistakes")
    assert re.match(
        r"alike-0, alike-1, rule4 make the same mistakes: their 3 votes count as 1\.\d \(if they come from one source",
        found,
    )
    assert not sentences_with(crowds.rules(600), "make the same mistakes")


def test_a_group_that_was_declared_is_not_suspected(alike: Corpus) -> None:
    same = Profile.of(kind="rule", group="list")
    declared = Corpus(alike, profiles=dict.fromkeys(("alike-0", "alike-1", "rule4"), same))
    assert not sentences_with(declared, "make the same mistakes")
    one_left = Corpus(alike, profiles=dict.fromkeys(("alike-0", "alike-1"), same))
    assert len(sentences_with(one_left, "make the same mistakes")) == 1


def test_sources_that_mark_little_are_named_unless_their_profiles_say_so() -> None:
    corpus = crowds.rules(200)
    (found,) = sentences_with(corpus, "mark little")
    assert found.startswith("rule0, rule1, rule2, rule3, rule4 and 4 more mark little of what others mark")
    declared = Corpus(corpus, profiles={f"rule{n}": Profile.of(kind="rule") for n in range(9)})
    assert not sentences_with(declared, "mark little")


@pytest.mark.parametrize("miss", [0.5, 0.6])
def test_people_with_a_weak_recall_are_not_taken_for_rules(miss: float) -> None:
    people = {f"p{n}": Behaviour(miss=0.1, invent=0.01) for n in range(4)} | {"weak": Behaviour(miss=miss)}
    assert not sentences_with(crowd(crowds.sentences(300), people, seed=1), "mark")
    everybody = {f"p{n}": Behaviour(miss=miss) for n in range(5)}
    assert not sentences_with(crowd(crowds.sentences(300), everybody, seed=1), "mark")


def test_near_duplicates_are_found(sample: Corpus) -> None:
    long = next(d for d in sample if len(d.tokens) > 20)
    twin = replace(long, id="twin", tokens=(*long.tokens[:-1], "!"))
    found = [s for s in check(Corpus([*sample, twin])).warnings if "nearly the same" in s]
    assert len(found) == 1
    assert f"{long.id} and twin" in found[0]
    assert not [s for s in check(sample).warnings if "nearly the same" in s]


def test_documents_without_words_are_no_duplicates() -> None:
    tags = ("O", "B-X", "O", "O", "O", "B-X", "O", "O")
    documents = [Document(str(n), ("item",) * 8, {"ann": tags, "bob": tags}) for n in range(3)]
    assert not [s for s in check(Corpus(documents)).warnings if "nearly the same" in s]


def test_random_documents_are_not_alike() -> None:
    rng = np.random.default_rng(0)
    documents = [
        Document(str(n), tuple(f"w{w}" for w in rng.integers(50, size=20)), {"a": ("B-X",) + ("O",) * 19})
        for n in range(300)
    ]
    assert "nearly the same" not in warnings(*documents)


def test_repairs_are_announced() -> None:
    counts = check(Corpus([tagged("1", {"a": ("O", "I-X", "O"), "b": FULL})])).counts
    assert "1 tag that cannot follow the one before will be repaired" in counts


def test_texts_that_the_reader_told_of_are_not_told_again(sample: Corpus) -> None:
    documents = [*sample, *(replace(document, id=f"again-{document.id}") for document in sample)]
    told = "320 documents have the same text as another under another id"
    assert any("nearly the same" in line for line in check(Corpus(documents)).warnings)
    assert not any("nearly the same" in line for line in check(Corpus(documents, notes=[told])).warnings)
