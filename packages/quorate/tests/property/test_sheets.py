"""Whatever can be written as a sheet comes back from it the same."""

from __future__ import annotations

import tempfile

from hypothesis import given
from hypothesis import strategies as st

import quorate
from quorate import Corpus, Document, formats

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5) | st.sampled_from(
    ["=", "'-", "0", "1"]
)
TAGS = st.sampled_from(["O", "O", "B-PER", "I-PER", "S-A", None])


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    made = []
    for number in range(draw(st.integers(1, 4))):
        words = tuple(draw(st.lists(WORDS, min_size=1, max_size=5)))
        tags = st.tuples(*[TAGS] * len(words))
        said = draw(st.dictionaries(st.sampled_from(["ann", "Ann", "-ben", "c, d;e"]), tags))
        gold = draw(st.none() | tags)
        made.append(
            Document(
                f"d{number}",
                words,
                {name: each for name, each in said.items() if any(each)},
                gold if gold and any(gold) else None,
            )
        )
    return made


@given(documents(), st.sampled_from(["out.csv", "out.tsv"]))
def test_a_sheet_comes_back_as_it_was(made: list[Document], name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        formats.write(Corpus(made), f"{folder}/{name}", "sheet")
        back = quorate.read(f"{folder}/{name}", format="sheet")
    assert [(one.id, one.tokens, one.annotations, one.gold) for one in back] == [
        (one.id, one.tokens, one.annotations, one.gold) for one in made
    ]
