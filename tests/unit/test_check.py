"""What is found in a corpus before any fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from quorate import Corpus, Document
from quorate.corpus.profiles import gold_like
from quorate.corpus.simulate import KINDS, crowd
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
    assert "1 documents have no annotator: none" in text
    assert "2 documents have only one annotator: one, two" in text
    assert "1 annotators gave no label: idle" in text
    assert "1 annotators gave fewer than 20 labels, too few to know them by: ann" in text


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
    joined = warnings(tagged("1", {"a": FULL, "b": FULL}), tagged("2", {"b": FULL, "x": FULL}))
    assert "groups" not in joined


def test_copies_are_found_and_chance_is_not(sample: Corpus) -> None:
    people = dict.fromkeys(("ann", "bob"), KINDS["careful"])
    seen = crowd(sample, people)
    copied = Corpus(replace(d, annotations={**d.annotations, "copy": d.annotations["ann"]}) for d in seen)
    found = [sentence for sentence in check(copied).warnings if "copy of the other" in sentence]
    assert len(found) == 1
    assert found[0].startswith("ann and copy said the same on all")


def test_near_duplicates_are_found(sample: Corpus) -> None:
    long = next(d for d in sample if len(d.tokens) > 20)
    twin = replace(long, id="twin", tokens=(*long.tokens[:-1], "!"))
    found = [s for s in check(Corpus([*sample, twin])).warnings if "all but the same" in s]
    assert len(found) == 1
    assert f"{long.id} and twin" in found[0]
    assert not [s for s in check(sample).warnings if "all but the same" in s]


def test_random_documents_are_not_alike() -> None:
    rng = np.random.default_rng(0)
    documents = [
        Document(str(n), tuple(f"w{w}" for w in rng.integers(50, size=20)), {"a": ("B-X",) + ("O",) * 19})
        for n in range(300)
    ]
    assert "all but the same" not in warnings(*documents)


def test_repairs_are_announced() -> None:
    counts = check(Corpus([tagged("1", {"a": ("O", "I-X", "O"), "b": FULL})])).counts
    assert "1 tags that cannot follow the one before will be repaired" in counts
