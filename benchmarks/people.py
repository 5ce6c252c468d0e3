"""How many people are needed beside language models: ``python benchmarks/people.py``.

Simulated texts are marked by three prompts of one language model, which share its mistakes, and by none to eight people
a document. Prints a row for each number of people for docs/tools/language-models.md: strict F1 of the people alone, and
of people and models together. All of it is simulation: what it shows is the shape of the curve, not its height.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import options
import quorate
from quorate import Corpus, score
from quorate.corpus.records import hard_tags
from quorate.corpus.simulate import Behaviour, crowd

DOCUMENTS = 400
MOST_PEOPLE = 8
PERSON = Behaviour(miss=0.25, confuse=0.1, start_late=0.08, invent=0.01)
BELIEF = Behaviour(miss=0.2, confuse=0.15, invent=0.02)  # what the model takes to be true
PROMPT = Behaviour(miss=0.08, confuse=0.02, invent=0.005)  # how each prompt departs from that


def main() -> None:
    options.parser_of(__doc__).parse_args()
    texts = sentences()
    gold = [one.gold or () for one in texts]
    models = prompts(texts)
    print("| people a document | people alone | models and people | votes of the models |")
    print("|---|---|---|---|")
    for how_many in range(MOST_PEOPLE + 1):
        people = crowd(texts, {f"p{n}": PERSON for n in range(how_many)}, seed=3) if how_many else texts
        both = Corpus(
            [
                replace(one, annotations={**one.annotations, **other.annotations})
                for one, other in zip(people, models, strict=True)
            ],
            profiles={f"prompt{n}": quorate.Profile.of(kind="model", group="llm") for n in range(3)},
        )
        alone = f"{f1(people, gold):.1f}" if how_many else "–"
        result = quorate.aggregate(both)
        votes = next((one.votes for one in result.sources.together if "prompt0" in one.names), 3.0)
        together = 100 * score.strict(result.tags, gold).f1
        print(f"| {how_many} | {alone} | {together:.1f} | {votes:.1f} |", flush=True)


def sentences() -> Corpus:
    """The short texts of the tests."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    import simulated_crowds as crowds

    made: Corpus = crowds.sentences(DOCUMENTS, seed=1)
    return made


def prompts(texts: Corpus) -> Corpus:
    """Three prompts of one model: each says what it believes, but for slips of its own."""
    belief = crowd(texts, {"llm": BELIEF}, seed=1)
    asked = Corpus([replace(one, gold=hard_tags(one.annotations["llm"]), annotations={}) for one in belief])
    return crowd(asked, {f"prompt{n}": PROMPT for n in range(3)}, seed=2)


def f1(corpus: Corpus, gold: list[tuple[str | None, ...]]) -> float:
    """Strict, in points."""
    return 100 * score.strict(quorate.aggregate(corpus).tags, gold).f1


if __name__ == "__main__":
    main()
