"""One document is, two documents are: no sentence for people has the plural of one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import quorate
from quorate import Corpus, Document
from quorate.evaluate.check import check
from quorate.wording import counted, in_number

SOURCE = Path(quorate.__file__).parent
SERVICE = Path(__file__).resolve().parents[3] / "quorate-serve" / "src" / "quorate_serve"
NOUNS = "documents|spans|tokens|annotators|labels|layers|pairs|trials|versions|passes|tags|changes|rounds|answers"
PLURAL_OF_ONE = re.compile(rf"\b1 (\w+ )?({NOUNS})\b(?! more)")


def test_a_sentence_has_the_words_of_its_number() -> None:
    sentence = "{} {tag|tags} of {} {was|were} {{odd}}"
    assert in_number(sentence, 1, "ann") == "1 tag of ann was {odd}"
    assert in_number(sentence, 0, "ann") == "0 tags of ann were {odd}"
    assert in_number(sentence, 1000, "{a|b}") == "1,000 tags of {a|b} were {odd}"
    assert [counted(n, "pass", "passes") for n in (0, 1, 2)] == ["0 passes", "1 pass", "2 passes"]


@pytest.fixture
def alone() -> Corpus:
    """One document with one token, one annotator and one label of everything."""
    return Corpus([Document("only", ("Ada",), {"ann": ("B-PER",)}, gold=("B-PER",))])


def test_of_one_document_nothing_is_said_in_the_plural(alone: Corpus) -> None:
    found = check(alone)
    said = [*found.counts, *found.warnings, repr(alone), repr(alone[0])]
    said += [repr(quorate.aggregate_layers({"A": alone}, "mv"))]
    assert "1 document, 1 token, 1 annotator, 1 label given" in said
    assert not [sentence for sentence in said if PLURAL_OF_ONE.search(sentence)]


@pytest.mark.parametrize(
    "path", [*SOURCE.glob("cli/*.py"), SERVICE / "cli.py", *SOURCE.glob("formats/*.py"), SOURCE / "evaluate/check.py"]
)
def test_counts_are_told_with_the_noun_of_their_number(path: Path) -> None:
    """A number that may be one stands in ``counted`` or ``in_number``, not before a plural."""
    counts = rf"\{{(len\([\w.]+\)|[\w.]+):,\}} (\w+ )?({NOUNS})\b"
    of_many = re.compile(r"(of|of the|all) \{[^}]*:,\} \w+")  # 3 of 1,234 documents: there are always more
    lines = path.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if re.search(counts, of_many.sub("", line))]
    assert not [line for line in lines if re.search(rf'"\{{\}} ({NOUNS})\b', line)]
