"""What language models return is read as they mean it, whatever they wrap it in."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import quorate
from problems import certain
from quorate import Corpus, InputError, SettingsError, score
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.tags import find_spans
from quorate.corpus.tokens import tokenize
from quorate.formats.language_models import shares
from quorate.storage.corpora import encode_files
from simulated_crowds import sentences

Gold = list[tuple[int, int, str]]
TEXT = "Ada Ng and Bo sang “Roma” in New York; York's mayor, Ada Ng's aunt, did not."


def read(tmp_path: Path, *records: object, **options: Any) -> Corpus:
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return quorate.read(path, format="llm", **options)


def one(tmp_path: Path, answer: object, text: str = TEXT, **fields: object) -> tuple[Gold, tuple[str, ...]]:
    """The spans of one answer in characters, and what was noted."""
    corpus = read(tmp_path, {"id": "1", "text": text, "annotator": "m", "answer": answer, **fields})
    return spans_of(corpus), corpus.notes


def spans_of(corpus: Corpus, name: str = "m") -> Gold:
    document = corpus[0]
    assert document.offsets is not None
    found = find_spans(document.annotations[name])  # type: ignore[arg-type]
    return [(document.offsets[s.start][0], document.offsets[s.end - 1][1], s.label) for s in found]


def places(text: str, *wanted: tuple[str, str]) -> Gold:
    """All places of some words in a text, by hand."""
    found = []
    for words, label in wanted:
        start = text.find(words)
        while start >= 0:
            found.append((start, start + len(words), label))
            start = text.find(words, start + 1)
    return sorted(found)


# Round trips: gold is rendered as each kind of answer, with mess, and comes back ------------------------------------

WORDS = ["Ada", "Ng", "Bo", "“Roma”", "and", "sang", "in", "York", "New", ",", "the", "co-op", "O'Hara", "3.5", "naïve"]


def drawn(rng: random.Random) -> tuple[str, Gold]:
    """A text of words that repeat, and spans of some of them."""
    text = ""
    for _ in range(rng.randrange(3, 25)):
        text += (" " if text else "") + rng.choice(WORDS)
    tokens = list(tokenize(text))
    gold: Gold = []
    cursor = 0
    while cursor < len(tokens):
        length = rng.randrange(1, 4)
        if rng.random() < 0.3 and cursor + length <= len(tokens):
            gold.append((tokens[cursor][0], tokens[cursor + length - 1][1], rng.choice(["PER", "LOC"])))
            cursor += length
        cursor += 1
    return text, gold


def tags_of(text: str, gold: Gold) -> list[str]:
    tags = []
    for start, end in tokenize(text):
        inside = next(((s, label) for s, e, label in gold if s <= start and end <= e), None)
        tags.append("O" if inside is None else f"{'B' if inside[0] == start else 'I'}-{inside[1]}")
    return tags


def with_offsets(text: str, gold: Gold) -> object:
    return [{"entity": text[s:e], "type": label, "start": s, "end": e} for s, e, label in gold]


def with_wrong_offsets(text: str, gold: Gold) -> object:
    """Every one a little too far: nearer to its own place than to any other of the same words, here."""
    return [{"mention": text[s:e], "category": label, "start": s + 1, "end": e + 2} for s, e, label in gold]


def inline(text: str, gold: Gold, before: str = "<{}>", after: str = "</{}>") -> str:
    for start, end, label in reversed(gold):
        text = text[:start] + before.format(label) + text[start:end] + after.format(label) + text[end:]
    return text


def changed(text: str) -> str:
    """Blanks and quotes as a model may write them."""
    return text.replace("“", '"').replace("”", '"').replace("'", "’").replace(" ", "  ").replace(" and ", "\nand ")


def token_lines(text: str, gold: Gold) -> str:
    rows = zip(tokenize(text), tags_of(text, gold), strict=True)
    return "\n".join(f"{text[start:end]}\t{tag}" for (start, end), tag in rows)


def token_pairs(text: str, gold: Gold) -> object:
    rows = zip(tokenize(text), tags_of(text, gold), strict=True)
    return [[text[start:end], tag] for (start, end), tag in rows]


KINDS: dict[str, Callable[[str, Gold], object]] = {
    "offsets": with_offsets,
    "wrong offsets": with_wrong_offsets,
    "bare offsets": lambda text, gold: [{"start": s, "end": e, "label": label} for s, e, label in gold],
    "holder": lambda text, gold: {"reasoning": "…", "entities": with_offsets(text, gold)},
    "inline": inline,
    "inline, changed": lambda text, gold: changed(inline(text, gold)),
    "inline, chat": lambda text, gold: f"Sure! Here it is:\n\n{inline(text, gold)}\n\nAnything else?",
    "inline, attributes": lambda text, gold: inline(text, gold, '<e type="{}">', "</e>"),
    "inline, wrapped": lambda text, gold: f"<output>{inline(text, gold)}</output>",
    "markdown": lambda text, gold: inline(text, gold, "[", "]({})"),
    "tags": tags_of,
    "tags in a fence": lambda text, gold: f"```\n{json.dumps(tags_of(text, gold))}\n```",
    "token lines": token_lines,
    "token lines in a fence": lambda text, gold: f"Tagged:\n```conll\n{token_lines(text, gold)}\n```\n",
    "token pairs": token_pairs,
    "token objects": lambda text, gold: [{"token": w, "tag": t} for w, t in token_pairs(text, gold)],  # type: ignore[attr-defined]
    "tokens and tags": lambda text, gold: {
        "tokens": [text[start:end] for start, end in tokenize(text)],
        "tags": tags_of(text, gold),
    },
}
MESS: dict[str, Callable[[str], str]] = {
    "fence": lambda said: f"```json\n{said}\n```",
    "chat": lambda said: f"I found the following [entities]:\n{said}\nIs there more (or less)?",
    "thoughts": lambda said: f'<think>Is [{{"text": "Ada", "label": "X"}}] right?</think>\n{said}',
}


@pytest.mark.parametrize("kind", KINDS)
def test_gold_as_an_answer_comes_back(kind: str, tmp_path: Path) -> None:
    rng = random.Random(kind)
    for _ in range(60):
        text, gold = drawn(rng)
        answer = KINDS[kind](text, gold)
        if not isinstance(answer, str) and rng.random() < 0.5:
            answer = MESS[rng.choice(list(MESS))](json.dumps(answer))
        spans, notes = one(tmp_path, answer, text)
        assert spans == gold, (text, answer, notes)


@pytest.mark.parametrize("kind", ["list", "pairs", "by label", "lines", "python"])
def test_all_mentions_listed_in_the_order_of_the_text_come_back(kind: str, tmp_path: Path) -> None:
    """Words that are marked wherever they occur, each as often as it does, with one label."""
    rng = random.Random(kind)
    for _ in range(60):
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(3, 25)))
        gold = places(text, *((word, "PER" if word < "B" else "LOC") for word in ("Ada", "York", "“Roma”", "co-op")))
        listed = [(text[start:end], label) for start, end, label in gold]
        by_label: dict[str, list[str]] = {"PER": [], "LOC": []}
        for words, label in listed:
            by_label[label].append(words)
        answer: object = {
            "list": [{"text": words, "label": label} for words, label in listed],
            "pairs": listed,
            "by label": by_label,
            "lines": "\n".join(json.dumps({"span": words, "type": label}) for words, label in listed) or "[]",
            "python": f"Entities: {listed!r}",
        }[kind]
        assert one(tmp_path, answer, text)[0] == gold, (text, answer)


# Mentions ------------------------------------------------------------------------------------------------------------


def test_a_string_listed_once_is_meant_everywhere_and_longer_words_go_first(tmp_path: Path) -> None:
    answer = [["York", "TEAM"], ["New York", "CITY"], ["Ada Ng", "PER"]]
    spans, notes = one(tmp_path, answer)
    assert spans == sorted([*places(TEXT, ("Ada Ng", "PER"), ("New York", "CITY")), (39, 43, "TEAM")])
    assert notes == (
        "1 mention was listed once by a source that lists nothing twice, and is marked wherever it occurs "
        "(such as 'Ada Ng' in document '1'; \"mentions\": \"each\" in its records keeps the first alone)",
    )
    spans, notes = one(tmp_path, answer, mentions="each")
    assert spans == [(0, 6, "PER"), (29, 37, "CITY"), (39, 43, "TEAM")]
    assert notes == ()
    everywhere = [["Ada", "PER"], ["Ada", "PER"], ["Bo", "PER"]]
    assert len(one(tmp_path, everywhere, "Ada, Ada, Ada and Bo")[0]) == 3
    assert len(one(tmp_path, everywhere, "Ada, Ada, Ada and Bo", mentions="all")[0]) == 4


def test_a_source_that_lists_strings_again_means_each_by_itself(tmp_path: Path) -> None:
    """What its other answers do tells how one is meant."""
    twice = {"id": "a", "text": "Ada met Ada", "annotator": "m", "answer": [["Ada", "PER"], ["Ada", "PER"]]}
    again = {**twice, "id": "b"}
    single = {"id": "c", "text": "Ada ate an Ada", "annotator": "m", "answer": [["Ada", "PER"]]}
    corpus = read(tmp_path, single, twice, again)
    assert corpus["c"].annotations["m"] == ("B-PER", "O", "O", "O")
    assert corpus["a"].annotations["m"] == ("B-PER", "O", "B-PER")
    assert read(tmp_path, single)["c"].annotations["m"] == ("B-PER", "O", "O", "B-PER")


def test_the_same_words_with_two_labels_are_two_places(tmp_path: Path) -> None:
    answer = {"PER": ["Paris"], "LOC": ["Paris"]}
    assert one(tmp_path, answer, "Paris loves Paris.")[0] == [(0, 5, "PER"), (12, 17, "LOC")]
    assert one(tmp_path, answer, "Paris loves.")[1] == (
        "1 span overlapped a longer one of the same annotator and was left out (aggregate --layers auto keeps them)",
    )


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        ([["Adda", "PER"], ["Bo", "PER"]], "1 mention was not found in its text, and left out (such as 'Adda' in"),
        (
            [["Bo", "PER"], ["Bo", "PER"]],
            "1 mention was listed more often than it occurs, and left out (such as 'Bo'",
        ),
        ([["Bo", "PER"], {"text": "Ada"}], "1 mention was not found in its text, and left out (such as \"{'text'"),
        ("<PER>Bo</PER> sang, <LOC>Rom", "1 mention was not found in its text, and left out (such as '<LOC>'"),
        ([{"text": "Bo", "label": "PER", "score": 95}], "1 score that is no probability was left out"),
        (
            [{"text": "Bo", "label": "PER", "start": 4, "end": 6}],
            "1 mention was not at the offsets given with it, and was looked for (such as 'Bo' in document '1')",
        ),
    ],
)
def test_what_went_otherwise_than_the_answer_says_is_counted(tmp_path: Path, answer: object, note: str) -> None:
    spans, notes = one(tmp_path, answer, "Bo sang, Roma.")
    assert spans == [(0, 2, "PER")]
    assert len(notes) == 1
    assert notes[0].startswith(note)


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        ("ada ng", "Ada\nNg sang", "Ada\nNg"),
        ("O'Hara", "at O’Hara now", "O’Hara"),
        ("Ada's", "Ada 's aunt", "Ada 's"),
        ("café", "the cafe\u0301 shut", "cafe\u0301"),
        ("STRASSE", "die Straße", "Straße"),
        ('"Rome".', "in Rome, Italy", "Rome"),
        ("東京", "私は東京タワーへ行く", "私は東京タワーへ行く"),  # a run of letters is one token
    ],
)
def test_mentions_are_found_as_models_write_them(tmp_path: Path, words: str, text: str, found: str) -> None:
    spans, _ = one(tmp_path, [[words, "X"]], text)
    assert [text[start:end] for start, end, _ in spans] == [found]


@pytest.mark.parametrize(("words", "text"), [("Ada", "Adams"), ("us", "because"), ("cafe", "cafe\u0301"), ("", "a")])
def test_no_mention_is_found_inside_a_word(tmp_path: Path, words: str, text: str) -> None:
    spans, notes = one(tmp_path, [[words, "X"]], text)
    assert spans == []
    assert "1 mention was not found" in notes[0]


def test_a_changed_word_in_the_text_moves_no_tag(tmp_path: Path) -> None:
    text = "Yesterday Ada Ng sang in New York and Bo did not sing at all there."
    spans, _ = one(
        tmp_path, "Today <PER>Ada Ng</PER> sings in <LOC>New Yorck</LOC> and <PER>Bo</PER> did not sing at all.", text
    )
    assert spans == places(text, ("Ada Ng", "PER"), ("New York", "LOC"), ("Bo", "PER"))


def test_tags_that_the_text_has_itself_are_no_marks(tmp_path: Path) -> None:
    text = "<b>Ada</b> wrote [this](PER) for Bo."
    spans, _ = one(tmp_path, text.replace("Bo", "<PER>Bo</PER>"), text)
    assert spans == [(text.index("Bo"), text.index("Bo") + 2, "PER")]


def test_tagged_words_alone_are_a_list(tmp_path: Path) -> None:
    assert one(tmp_path, "<PER>Ada Ng</PER>\n<LOC>New York</LOC>")[0] == places(
        TEXT, ("Ada Ng", "PER"), ("New York", "LOC")
    )
    pipeline = [{"entity": "B-PER", "word": "Ada"}, {"entity": "I-PER", "word": "Ng"}]
    assert one(tmp_path, pipeline)[0] == places(TEXT, ("Ada Ng", "PER"))


def test_a_prompt_for_one_label(tmp_path: Path) -> None:
    for answer in (["Bo"], "@@Bo## sang in Roma.", [{"text": "Bo"}]):
        assert one(tmp_path, answer, "Bo sang in Roma.", label="PER")[0] == [(0, 2, "PER")]
    base = {"id": "1", "text": "Bo sang in Roma.", "annotator": "m"}
    both = [{**base, "label": "PER", "answer": ["Bo"]}, {**base, "label": "LOC", "answer": ["Roma"]}]
    assert spans_of(read(tmp_path, *both)) == [(0, 2, "PER"), (11, 15, "LOC")]
    corpus = read(tmp_path, both[0], {**both[1], "answer": "?"})
    assert corpus[0].annotations == {}  # what it would say of the other label is not known


# Not understood, and nothing -----------------------------------------------------------------------------------------

UNKNOWN: list[object] = [
    None,
    "",
    "I cannot help with that.",
    "[1, 2]",
    5,
    [5],
    {"PER": 5},
    ["B-PER", "O"],
    ["Bo"],
    '[{"text": "Bo", "label": "PER"}, {"text": "Ro',
    '```json\n{"entities": [{"text": "Bo", "label": "PER"}',
    "<PER>Ada Ng</PER> and Bo sang “Roma” in",
    "[" * 5000,
]


@pytest.mark.parametrize("answer", UNKNOWN, ids=range(len(UNKNOWN)))
def test_an_answer_that_is_not_understood_means_not_seen(tmp_path: Path, answer: object) -> None:
    corpus = read(tmp_path, {"id": "1", "text": TEXT, "annotator": "m", "answer": answer})
    assert corpus[0].annotations == {}
    assert len(corpus.notes) == 1
    assert corpus.notes[0].startswith("1 answer was not understood, or cut off, and counts as not seen (such as ")


NOTHING: list[object] = [
    [], {}, "[]", "```json\n[]\n```", {"entities": []}, {"PER": [], "LOC": None}, "None.", "No entities found.", TEXT,
    f"Here you go: {changed(TEXT)}",
]  # fmt: skip


@pytest.mark.parametrize("answer", NOTHING, ids=range(len(NOTHING)))
def test_nothing_marked_is_seen(tmp_path: Path, answer: object) -> None:
    corpus = read(tmp_path, {"id": "1", "text": TEXT, "annotator": "m", "answer": answer})
    assert set(corpus[0].annotations["m"]) == {"O"}
    assert corpus.notes == ()


@pytest.mark.parametrize(
    "answer", [{"error": "quota exceeded"}, "I think that Rome is a LOC.", "<b>no</b>", {"PER": [["Rome"]]}]
)
def test_talk_about_a_short_text_is_no_answer(tmp_path: Path, answer: object) -> None:
    assert read(tmp_path, {"id": "1", "text": "Rome", "annotator": "m", "answer": answer})[0].annotations == {}


def test_labels_may_be_called_as_holders_and_wrappers_are(tmp_path: Path) -> None:
    text = "We parse texts and get 93 F1 on all of the test sets that we could find."
    expected = places(text, ("parse", "METHOD"), ("93 F1", "RESULT"))
    for answer in (
        {"METHOD": ["parse"], "RESULT": ["93 F1"], "explanation": "two spans"},
        {"RESULT": ["93 F1"], "METHOD": "parse"},
        {"parse": "METHOD", "93 F1": "RESULT"},
        inline(text, expected),
        f"<result>{inline(text, expected)}</result>",
        {"result": {"METHOD": ["parse"], "RESULT": ["93 F1"]}},
        {"name": "extract", "arguments": {"METHOD": ["parse"], "RESULT": ["93 F1"]}},
    ):
        assert one(tmp_path, answer, text) == (expected, ()), answer


def test_labels_without_prefix_are_runs(tmp_path: Path) -> None:
    assert one(tmp_path, ["PER", "PER", "O", "LOC"], "Ada Ng in Rome")[0] == [(0, 6, "PER"), (10, 14, "LOC")]


# Scores --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "probability"),
    [
        ({"score": 0.75}, 0.75),
        ({"confidence": 0.75}, 0.75),
        ({"logprob": math.log(0.75)}, 0.75),
        ({"logprobs": [math.log(0.5), math.log(0.5)]}, 0.25),
    ],
)
def test_scores_and_logarithms_are_probabilities(tmp_path: Path, fields: dict[str, object], probability: float) -> None:
    answer = [{"text": "Bo", "label": "PER", **fields}]
    corpus = read(tmp_path, {"id": "1", "text": "Bo sang", "annotator": "m", "answer": answer})
    (soft, outside) = corpus[0].annotations["m"]
    assert isinstance(soft, Mapping)
    assert soft["B-PER"] == pytest.approx(probability, abs=1e-12)
    assert outside == "O"


def written(pieces: Sequence[tuple[str, float]]) -> dict[str, object]:
    """An answer with the probabilities of its tokens, as services return it."""
    content: list[dict[str, object]] = [
        {"token": token, "logprob": math.log(p), "bytes": None, "top_logprobs": []} for token, p in pieces
    ]
    return {"answer": "".join(token for token, _ in pieces), "logprobs": {"content": content}}


def test_probabilities_of_tokens_are_those_of_the_mentions_they_make_up(tmp_path: Path) -> None:
    pieces = [("Sure", 0.5), (': [{"', 1), ("text", 0.9), ('":"', 1), ("B", 0.8), ("o", 0.5), ('","label', 1)]
    pieces += [('":"P', 0.9), ("ER", 1), ('"},{"text', 0.3), ('":"Ro', 0.7), ('ma","label":"LOC"', 1), ("}]", 0.4)]
    base = {"id": "1", "text": "Bo in Roma", "annotator": "m"}
    corpus = read(tmp_path, {**base, **written(pieces)})
    person, _, place = corpus[0].annotations["m"]
    assert isinstance(person, Mapping)
    assert isinstance(place, Mapping)
    assert person["B-PER"] == pytest.approx(0.8 * 0.5 * 0.9, abs=1e-12)
    assert place["B-LOC"] == pytest.approx(0.7, abs=1e-12)
    by_label = [('{"', 1), ("PER", 0.5), ('": ["', 1), ("Bo", 0.75), ('"]}', 0.5)]
    alone = read(tmp_path, {**base, **written(by_label)})[0].annotations["m"][0]
    assert isinstance(alone, Mapping)
    assert alone["B-PER"] == pytest.approx(0.75, abs=1e-12)


@pytest.mark.parametrize(
    "logprobs", [[], "x", [{"token": "[", "logprob": -1}], [{"token": '[["Bo", "PER"]]', "logprob": 1}]]
)
def test_tokens_that_do_not_make_up_the_answer_are_left_out(tmp_path: Path, logprobs: object) -> None:
    spans, notes = one(tmp_path, '[["Bo", "PER"]]', "Bo sang", logprobs=logprobs)
    assert spans == [(0, 2, "PER")]
    assert notes[0].startswith("1 answer is not made of the tokens in its 'logprobs', which were left out (such as ")


# Samples, groups, names ----------------------------------------------------------------------------------------------

SAMPLES = [[["Ada Ng", "PER"]], [["Ada Ng", "PER"]], [["Ng", "PER"]], "<cut off>", []]


def asked(answers: Sequence[object], **fields: object) -> list[dict[str, object]]:
    base = {"id": "1", "text": "Ada Ng sang", "model": "gpt", **fields}
    return [{**base, "sample": n, "answer": answer} for n, answer in enumerate(answers)]


def test_samples_are_one_source_with_their_shares(tmp_path: Path) -> None:
    expected = ({"B-PER": 0.5, "O": 0.5}, {"I-PER": 0.5, "B-PER": 0.25, "O": 0.25}, "O")
    corpus = read(tmp_path, *asked(SAMPLES))
    assert corpus[0].annotations == {"gpt": expected}
    assert corpus.profiles["gpt"].kind.value == "model"
    assert read(tmp_path, {"id": "1", "text": "Ada Ng sang", "model": "gpt", "answers": SAMPLES})[0].annotations == {
        "gpt": expected
    }
    assert read(tmp_path, *asked(SAMPLES[:1]))[0].annotations == {"gpt": ("B-PER", "I-PER", "O")}


def test_shares_are_marginals_of_tags_that_follow_one_another() -> None:
    """What goes on is never more probable than what it goes on from."""
    rng = random.Random(7)
    for _ in range(200):
        text, samples = " ".join("abcdefgh"), []
        for _ in range(5):
            cuts = sorted(rng.sample(range(9), 4))
            gold = [(2 * a, 2 * b - 1, rng.choice("XY")) for a, b in (cuts[:2], cuts[2:])]
            samples.append(tags_of(text, gold))
        merged = [{tag: 1.0} if isinstance(tag, str | None) else tag for tag in shares(samples)]
        for before, after in pairwise(merged):
            assert sum(after.values()) == pytest.approx(1.0, abs=1e-12)
            for kind in "XY":
                opened = before.get(f"B-{kind}", 0) + before.get(f"I-{kind}", 0)
                assert after.get(f"I-{kind}", 0) <= opened + 1e-12


def test_samples_as_a_group(tmp_path: Path) -> None:
    corpus = read(tmp_path, *asked(SAMPLES), samples="group")
    assert corpus.annotators == ("gpt#0", "gpt#1", "gpt#2", "gpt#4")
    assert corpus[0].annotations["gpt#2"] == ("O", "B-PER", "O")
    assert {profile.group for profile in corpus.profiles.values()} == {"gpt"}
    with pytest.raises(SettingsError, match="samples 'all' is not known"):
        read(tmp_path, *asked(SAMPLES), samples="all")


def test_who_answered(tmp_path: Path) -> None:
    base = {"id": "1", "text": "Ada Ng sang", "answer": []}
    corpus = read(
        tmp_path,
        {**base, "model": "gpt", "prompt": "short"},
        {**base, "model": "gpt", "prompt": 2},
        {**base, "annotator": "ann", "group": "g"},
        {**base, "source": "rules"},
        base,
    )
    groups = {name: profile.group for name, profile in corpus.profiles.items()}
    assert groups == {"gpt/short": "gpt", "gpt/2": "gpt", "ann": "g", "rules": None, "answers": None}
    given = read(tmp_path, {**base, "annotator": "ann"}, annotators={"ann": {"kind": "expert"}})
    assert given.profiles["ann"].kind.value == "expert"
    renamed = read(tmp_path, {**base, "annotator": "ann", "group": "g"}, map_annotators={"ann": "bob"})
    assert renamed.profiles["bob"].group == "g"


def test_an_encoded_file_keeps_who_answered(tmp_path: Path) -> None:
    corpus = read(tmp_path, {"id": "1", "text": "Ada", "model": "gpt", "prompt": "p", "answer": [["Ada", "PER"]]})
    encode_files(tmp_path / "answers.jsonl", output=tmp_path / "c.qr")
    assert quorate.read(tmp_path / "c.qr").profiles == corpus.profiles


def test_people_stand_beside_models(tmp_path: Path) -> None:
    people = tmp_path / "people.jsonl"
    people.write_text(json.dumps({"id": "1", "tokens": ["Ada", "Ng"], "annotations": {"ann": ["B-PER", "I-PER"]}}))
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"id": "1", "text": "Ada Ng", "model": "gpt", "answer": [["Ada", "PER"]]}))
    for order in ((people, answers), (answers, people)):
        corpus = quorate.read(*order)
        assert corpus["1"].annotations == {"ann": ("B-PER", "I-PER"), "gpt": ("B-PER", "O")}
        assert corpus["1"].text == "Ada Ng"
    answers.write_text(json.dumps({"id": "1", "text": "Ada Bo", "model": "gpt", "answer": []}))
    with pytest.raises(InputError, match="another text than that of the same document elsewhere"):
        quorate.read(people, answers)


def test_tokens_without_a_text(tmp_path: Path) -> None:
    tokens = ["Ada", "Ng", "'s", "aunt"]
    answers = ([["Ada Ng's", "PER"]], ["B-PER", "I-PER", "I-PER", "O"], "<PER>Ada Ng's</PER> aunt")
    for answer in answers:
        document = read(tmp_path, {"id": "1", "tokens": tokens, "annotator": "m", "answer": answer})[0]
        assert (document.tokens, document.text) == (tuple(tokens), None)
        assert document.annotations["m"] == ("B-PER", "I-PER", "I-PER", "O")
    corpus = read(tmp_path, *[{"id": "1", "tokens": tokens, "model": "m", "answers": answers}])
    assert corpus[0].annotations["m"] == ("B-PER", "I-PER", "I-PER", "O")


def test_overlapping_mentions_have_layers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    answer = [["Bath Spa", "ORG"], ["Bath", "LOC"]]
    path.write_text(json.dumps({"id": "1", "text": "Bath Spa won", "model": "m", "answer": answer}))
    layers = quorate.read_layers(path)
    assert {name: corpus[0].annotations["m"] for name, corpus in layers.items()} == {
        "ORG": ("B-ORG", "I-ORG", "O"),
        "LOC": ("B-LOC", "O", "O"),
    }


def test_a_record_without_id_is_of_the_document_with_its_text(tmp_path: Path) -> None:
    base = {"text": "Ada sang", "answer": []}
    corpus = read(tmp_path, {**base, "model": "a"}, {**base, "text": "Bo", "model": "a"}, {**base, "model": "b"})
    assert [(document.id, sorted(document.annotations)) for document in corpus] == [("1", ["a", "b"]), ("2", ["a"])]


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"id": "1", "text": "Bo", "model": "m", "answer": "[]"}, "llm"),
        ({"id": "1", "text": "Bo", "response": "[]"}, "llm"),
        ({"id": "1", "tokens": ["Bo"], "annotator": "m", "answers": ["[]"]}, "llm"),
        ({"text": "Bo", "answer": "accept", "spans": []}, "prodigy"),
        ({"id": "1", "tokens": ["Bo"], "model": "m", "answer": 1, "annotations": {"a": ["O"]}}, "jsonl"),
    ],
)
def test_answers_are_told_from_other_records(tmp_path: Path, record: object, name: str) -> None:
    from quorate.formats.opened import opened
    from quorate.formats.registry import sniff

    (tmp_path / "a").write_text(json.dumps(record))
    with opened(str(tmp_path / "a")) as (stream, _):
        assert sniff(stream, "a") == name


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"id": "1", "model": "m"}], r"answers.jsonl:1: neither an answer nor a text \(give 'answer'\)"),
        (
            [{"id": "1", "model": "m", "answer": []}],
            r"answers.jsonl:1: document '1': neither 'text' nor 'tokens' in any",
        ),
        (
            [{"id": "1", "text": "a", "answer": []}, {"id": "1", "text": "b", "answer": []}],
            r"answers.jsonl:2: another text than that of the same document elsewhere, .*answers.jsonl:1: document '1'",
        ),
        ([{"id": "1", "text": "a", "answer": [], "mentions": "some"}], r":1: mentions 'some' is not known \(one of"),
        ([{"id": "1", "text": 5, "answer": []}], r":1: not an answer of a language model: text must be a text in"),
        ([{"id": "1", "text": "a", "tokens": ["b"], "answer": []}], r":1: document '1': token 1, 'b', does not occur"),
        (
            [{"id": i, "text": "a", "annotator": "m", "group": i, "answer": []} for i in "12"],
            r":2: 'm' is of the group '2' here and of '1' elsewhere",
        ),
    ],
)
def test_bad_records_say_where_and_what(tmp_path: Path, records: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, *records)


def test_an_answer_given_again_counts_last(tmp_path: Path) -> None:
    base = {"id": "1", "text": "Bo", "model": "m"}
    corpus = read(tmp_path, {**base, "answer": []}, {**base, "answer": [["Bo", "PER"]]})
    assert corpus[0].annotations == {"m": ("B-PER",)}
    assert corpus.notes == ("1 answer was given again by the same source to the same document, and the last counts",)


# The page ------------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).resolve().parents[4] / "docs" / "tools" / "language-models.md"


def test_the_ten_lines_of_the_page_make_a_consensus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    block = next(
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
        if "ask(prompt + text)" in block
    )
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    sample = list(quorate.sample())[:40]
    texts = {document.id: " ".join(document.tokens) for document in sample}

    def ask(prompt: str) -> str:
        """A model that finds the first span of the gold."""
        number = next(n for n, text in texts.items() if prompt.endswith(text))
        document = next(document for document in sample if document.id == number)
        spans = find_spans(document.gold or ())[:1]
        return json.dumps([[" ".join(document.tokens[span.start : span.end]), span.label] for span in spans])

    prompts = {name: f"{name}: " for name in ("a", "b", "c", "d", "e")}
    exec(compile(block, PAGE.name, "exec"), {"texts": texts, "prompts": prompts, "ask": ask})
    corpus = quorate.read("answers.jsonl")
    assert corpus.annotators == tuple(f"llm-c/{name}" for name in "abcde")
    assert len((tmp_path / "consensus.jsonl").read_text().splitlines()) == 40


def test_records_and_answers_of_the_page_are_read_as_it_says(tmp_path: Path) -> None:
    block = next(block for block in re.findall(r"```json\n(.*?)```\n\n", PAGE.read_text("utf-8"), re.S))
    (tmp_path / "a.jsonl").write_text(block, encoding="utf-8")
    corpus = quorate.read(tmp_path / "a.jsonl")
    assert corpus["7"].annotations == {
        "llm-c/short": ("B-PER", "I-PER", "O", "O", "O", "O"),
        "llm-c/tagged": ("B-PER", "I-PER", "O", "O", "B-LOC", "O"),
    }


def test_five_prompts_gain_where_they_err_apart_and_samples_do_not(tmp_path: Path) -> None:
    texts = sentences(400, seed=1)
    gold = [document.gold for document in texts]

    def scores(crowd_: Corpus) -> list[int]:
        """Of the worst and best prompt, the vote and the consensus."""
        records = [
            {
                "id": each.id,
                "tokens": each.tokens,
                "model": "m",
                "prompt": name,
                "answer": list(zip(each.tokens, tags, strict=True)),
            }
            for each in crowd_
            for name, tags in each.annotations.items()
        ]
        corpus = read(tmp_path, *records)
        alone = [
            score.strict([certain(each.annotations[name]) for each in corpus], gold).f1 for name in corpus.annotators
        ]
        combined = [score.strict(quorate.aggregate(corpus, method).tags, gold).f1 for method in ("mv", "auto")]
        return [round(100 * f1) for f1 in (min(alone), max(alone), *combined)]

    styles = [(0.25, 0.05, 0.01), (0.1, 0.2, 0.02), (0.15, 0.1, 0.06), (0.35, 0.05, 0.0), (0.2, 0.15, 0.02)]
    apart = {f"p{n}": Behaviour(miss=m, confuse=c, invent=i) for n, (m, c, i) in enumerate(styles)}
    belief = crowd(texts, {"m": Behaviour(miss=0.2, confuse=0.12, invent=0.02)}, per_document=1, seed=11)
    asked_of = Corpus([replace(each, gold=certain(each.annotations["m"]), annotations={}) for each in belief])
    alike = {f"p{n}": Behaviour(miss=0.03, confuse=0.02, invent=0.003) for n in range(5)}
    found = [
        scores(crowd(texts, apart, per_document=5, seed=3)),
        scores(crowd(asked_of, alike, per_document=5, seed=3)),
    ]
    (_, best, vote, consensus), (_, best_alike, vote_alike, consensus_alike) = found
    assert consensus > vote
    assert consensus > best  # prompts that err apart make up for each other
    assert abs(consensus_alike - vote_alike) <= 1  # samples that err alike tell no more than one
    assert abs(consensus_alike - best_alike) <= 2
