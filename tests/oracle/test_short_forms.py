"""Short forms of spans: definitions by loops over letters, what follows from long forms by loops over candidates."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import quorate
from problems import certain
from quorate.corpus.discontinuous import CONTINUED
from quorate.corpus.profiles import Believed
from quorate.corpus.records import Corpus, Document, Tag
from quorate.corpus.tags import find_spans
from quorate.crowd.encode import encode
from quorate.crowd.short_forms import short_forms
from quorate.estimators.bsc import BSC
from quorate.model import loop
from quorate.model.build import model_of
from quorate.model.candidates import Candidates
from quorate.model.engines.threads import ThreadsEngine
from quorate.model.settings import Settings
from quorate.model.short_forms import followed_forms, share_that_follow
from quorate.model.spans import Heard, SpanEvidence, likely_spans, span_evidence
from quorate.report.influence import influences
from quorate.result.consensus import Consensus


def spells(short: str, long: str) -> bool:
    """Whether the letters are found in their order, the first where the long form begins: by trying all places."""
    wanted = [letter for letter in short.lower() if letter.isalnum()]

    @cache
    def rest(letter: int, place: int) -> bool:
        return letter == len(wanted) or any(
            long[here].lower() == wanted[letter] and rest(letter + 1, here + 1) for here in range(place, len(long))
        )

    return bool(wanted) and long[0].lower() == wanted[0] and rest(1, 1)


def by_loops(tokens: tuple[str, ...]) -> set[tuple[int, int, int, int]]:
    """(start, end, first token of the shortest long form, where that ends), for a short form of a single token.

    The long form is that of the definition before, or of the first one.
    """
    defined: dict[str, list[tuple[int, int]]] = {}
    for place in range(1, len(tokens) - 2):
        short = tokens[place + 1]
        if tokens[place] != "(" or tokens[place + 2] != ")" or not 2 <= len(short) <= 10:
            continue
        most = min(len(short) + 5, 2 * len(short))
        for first in range(place - 1, max(place - most, 0) - 1, -1):
            long = tokens[first:place]
            parts = [
                i for i, letter in enumerate(long[0]) if letter.isalnum() and (i == 0 or not long[0][i - 1].isalnum())
            ]
            if any(spells(short, " ".join(long)[i:]) for i in parts):
                if len(" ".join(long)) > len(short) and short.lower() not in [word.lower() for word in long]:
                    defined.setdefault(short, []).append((first, place))
                break
    return {
        (at, at + 1, *([one for one in defined[word] if one[1] < at] or defined[word][:1])[-1])
        for at, word in enumerate(tokens)
        if word in defined
    }


@pytest.mark.parametrize("seed", range(20))
def test_definitions_by_loops(seed: int) -> None:
    """Of texts in which brackets stand after words that begin with few letters."""
    rng = np.random.default_rng(seed)
    words = ["ab", "ba", "abba", "b-a", "c", "cab", "AB", "AC", "CBA", "BA"]
    documents = []
    for number in range(40):
        tokens: list[str] = []
        for _ in range(4):
            tokens += [str(rng.choice(words)) for _ in range(rng.integers(1, 6))]
            tokens += ["(", str(rng.choice(words[-4:])), ")"] if rng.random() < 0.7 else ["("]
        documents.append(Document(str(number), tuple(tokens), {"ann": ("B-X", *["O"] * (len(tokens) - 1))}))
    corpus = Corpus(documents)
    encoded = encode(corpus, corpus.tagset())
    forms = short_forms(encoded, np.arange(1, encoded.n_tokens + 1))
    found = set(zip(*(column.tolist() for column in forms[:4]), strict=True))
    expected = {
        tuple(int(encoded.doc_start[d]) + place for place in row)
        for d, one in enumerate(documents)
        for row in by_loops(one.tokens)
    }
    assert found == expected
    assert len(expected) > 20
    assert len(short_forms(encoded, np.arange(1, 0)).start) == 0


def test_tokens_may_have_spaces_in_them() -> None:
    tokens = ("the", "new york city", "police", "dept", "(", "NYCPD", ")")
    corpus = Corpus([Document("1", tokens, {"ann": ("O", "B-X", "I-X", "I-X", "O", "O", "O")})])
    forms = short_forms(encode(corpus, corpus.tagset()), np.array([4]))
    assert (forms.start.tolist(), forms.long_start.tolist(), forms.long_end.tolist()) == ([5], [1], [4])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("beta blockers ( BB ) and BB", [(3, 0), (6, 0)]),
        ("beta blockers [ BB ]", [(3, 0)]),
        ("interleukin 2 ( IL - 2 ) or IL - 2", [(3, 0), (8, 0)]),  # a tokenizer took it apart
        ("beta blockers ( BB", []),  # never closed
        ("blockers ( BB )", []),  # its letters are not there
        ("a BB beta blockers ( BB )", [(1, 2), (5, 2)]),  # before its definition too
        ("beta BB ( BB )", []),  # says itself again
        ("ab ( abc )", []),  # longer than what it stands for
        ("one year ( 12 )", []),  # no letters
        ("beta blockers ( b )", []),  # too short
    ],
)
def test_what_is_a_definition(text: str, found: list[tuple[int, int]]) -> None:
    tokens = tuple(text.split())
    corpus = Corpus([Document("1", tokens, {"ann": ("B-X", *["O"] * (len(tokens) - 1))})])
    forms = short_forms(encode(corpus, corpus.tagset()), np.arange(1, len(tokens)))
    assert list(zip(forms.start.tolist(), forms.long_start.tolist(), strict=True)) == found


def test_words_that_a_model_never_met_define_nothing() -> None:
    tokens = ("atrial", "fibrillation", "(", "AF", ")")
    corpus = Corpus([Document("1", tokens, {"ann": ("B-X", "I-X", "O", "O", "O")})])
    known = encode(corpus, corpus.tagset(), words=["(", ")", "AF", "fibrillation"])
    assert len(short_forms(known, np.array([2])).start) == 0
    known = encode(corpus, corpus.tagset(), words=["(", ")", "atrial", "fibrillation"])
    assert len(short_forms(known, np.array([2])).start) == 0


class Abstract(NamedTuple):
    """Where long and short forms are in a text, by first token and number of tokens."""

    tokens: tuple[str, ...]
    long: int
    short: tuple[int, ...]


def abstract(rng: np.random.Generator) -> Abstract:
    """A name of three words, its short form in brackets, and that form again, among common words."""
    name = [f"{rng.choice(list('abcdefghijklmnop'))}{rng.integers(10**6)}" for _ in range(3)]
    short = "".join(word[0] for word in name).upper()
    before, between = ([f"w{w}" for w in rng.integers(0, 60, rng.integers(3, 8))] for _ in range(2))
    tokens = (*before, *name, "(", short, ")", *between, short, "w1")
    long = len(before)
    return Abstract(tokens, long, (long + 4, len(tokens) - 2))


def tags_of(one: Abstract, *, long: bool, short: bool) -> tuple[Tag, ...]:
    tags: list[Tag] = ["O"] * len(one.tokens)
    if long:
        tags[one.long : one.long + 3] = ["B-DIS", "I-DIS", "I-DIS"]
    for place in one.short if short else ():
        tags[place] = "B-DIS"
    return tuple(tags)


def crowd(marks_short: float, annotators: int = 3, documents: int = 150) -> Corpus:
    """Everybody marks nearly all long forms, and the short ones in such a share of the documents."""
    rng = np.random.default_rng(0)
    made = []
    for number in range(documents):
        one = abstract(rng)
        marks = rng.random((annotators, 2)) < (0.9, marks_short)
        said = {f"a{k}": tags_of(one, long=bool(long), short=bool(short)) for k, (long, short) in enumerate(marks)}
        made.append(Document(str(number), one.tokens, said, gold=tags_of(one, long=True, short=True)))
    return Corpus(made)


def recall_of_short(corpus: Corpus, result: quorate.Result) -> float:
    """Of short forms that nobody marked, the share that the consensus marks."""
    given = there = 0
    for document, consensus in zip(corpus, result, strict=True):
        marked = {span.start for tags in document.annotations.values() for span in find_spans(certain(tags))}
        asked = {span.start for span in find_spans(document.gold or ()) if span.end - span.start == 1} - marked
        given += len(asked & {span.start for span in find_spans(consensus.tags)})
        there += len(asked)
    return given / max(there, 1)


def test_short_forms_that_were_overlooked_follow_their_long_forms_where_others_do() -> None:
    """Where they are marked as a rule, an unmarked one was overlooked."""
    often = crowd(0.5)
    assert recall_of_short(often, quorate.aggregate(often, tagger=None)) > 0.9
    assert recall_of_short(often, quorate.aggregate(often, tagger=None, text=False)) == 0.0
    assert recall_of_short(often, quorate.aggregate(often, tagger=None, evidence="tokens")) < 0.2


@pytest.mark.parametrize("documents", [30, 150])
@pytest.mark.parametrize("annotators", [1, 2, 3])
def test_where_people_leave_all_short_forms_out_nobody_wants_them(annotators: int, documents: int) -> None:
    never = crowd(0.0, annotators, documents)
    assert recall_of_short(never, quorate.aggregate(never, tagger=None)) == 0.0
    assert recall_of_short(never, quorate.aggregate(never, "bsc-span", annotator="cm", tagger=None)) == 0.0


@pytest.mark.parametrize("settings", [{}, {"annotator": "cm", "epsilon0": 10.0, "temper": 0.6, "max_iter": 8}])
def test_what_rules_leave_out_says_nothing(settings: dict[str, Any]) -> None:
    """Of eight rules three know each long form, and of one document in ten its short form."""
    rng, documents = np.random.default_rng(2), []
    for one in crowd(0.0, documents=200):
        long, short = rng.choice(8, 3, replace=False), rng.choice(8, 3, replace=False) if rng.random() < 0.1 else ()
        said = {f"rule{k}": tags_of(_where(one), long=k in long, short=k in short) for k in range(8)}
        documents.append(replace(one, annotations=said))
    rules = Corpus(documents)
    model = BSC(evidence="spans", tagger=None, **settings).fit(rules)
    assert recall_of_short(rules, model.result_) > 0.9


def _where(one: Document) -> Abstract:
    """Where its forms are, by its known labels."""
    spans = find_spans(one.gold or ())
    return Abstract(one.tokens, spans[0].start, tuple(span.start for span in spans[1:]))


@pytest.mark.parametrize("marks_short", [0.0, 0.5])
def test_documents_in_lots_have_the_probabilities_that_they_have_all_at_once(
    marks_short: float, tmp_path: Path
) -> None:
    """How often short forms are what their long forms are is learned once, in the fit, and kept."""
    model = BSC(tagger=None).fit(crowd(marks_short, documents=60))
    later = Corpus(replace(one, id=f"later {one.id}") for one in crowd(0.9, documents=20))
    model.save(tmp_path / "model.quorate")
    loaded = quorate.load(tmp_path / "model.quorate")
    assert isinstance(loaded, BSC)
    whole = stated(model, later)
    assert stated(loaded, later) == pytest.approx(whole, rel=1e-6)
    lots = [stated(model, Corpus(later.documents[first : first + 4])) for first in range(0, len(later), 4)]
    assert [p for lot in lots for p in lot] == pytest.approx(whole, rel=1e-6)


def stated(model: BSC, corpus: Corpus) -> list[float]:
    """The probability of all that may be true."""
    found = model.span_probabilities(corpus)
    assert found is not None
    return [float(p) for p in found.probability]


def test_later_documents_have_short_forms_too() -> None:
    corpus = crowd(0.5)
    model = BSC(tagger=None).fit(corpus)
    later = Corpus(replace(one, id=f"later {one.id}") for one in corpus)
    again = model.combine(later)
    assert recall_of_short(later, again) > 0.9
    found = model.span_probabilities(later)
    assert found is not None
    candidates, probability = found.candidates, found.probability
    starts = np.cumsum([0, *(len(one.tokens) for one in later)])
    given = {(int(starts[d]) + span.start, span.confidence) for d, one in enumerate(again) for span in one.spans}
    stated = dict(zip(candidates.start.tolist(), probability.tolist(), strict=True))
    assert sum(candidates.touched == 0) > 10
    assert all(stated[start] == pytest.approx(confidence, abs=1e-6) for start, confidence in given)


def followed_in(corpus: Corpus, known: NDArray[np.int32] | None = None) -> NDArray[np.int64]:
    """The first tokens of what follows where all candidates are true."""
    evidence = evidence_of(corpus, known)
    forms = short_forms(evidence.encoded, evidence.candidates.end)
    return followed_forms(evidence, np.ones(len(evidence.candidates.start)), forms, 0.8).start


def test_influence_on_what_follows_is_that_of_who_marked_the_long_form() -> None:
    """Without one who marked a long form, its short form is as likely as in a consensus without them."""
    corpus = crowd(0.5)
    model = BSC(tagger=None).fit(corpus)
    document, spans = next((one.document, one.spans) for one in model.result_ if followed_alone(one))
    [found] = influences(model, [document], [[span.bare for span in spans]])
    fell = 0
    for who, told in zip(found.annotators, found.without, strict=True):
        rest = {name: tags for name, tags in document.annotations.items() if name != who}
        [again] = model.combine(Corpus([replace(document, annotations=rest)]))
        given = {span.bare: span.sure for span in again.spans}
        for span, before, after in zip(spans, found.with_all, told, strict=True):
            assert after == pytest.approx(given.get(span.bare, after), rel=1e-6)
            fell += bool(after < before)
    assert fell > 0


def followed_alone(one: Consensus) -> bool:
    """Whether there are spans, and nobody marked the short form."""
    marked = [span for tags in one.document.annotations.values() for span in find_spans(certain(tags))]
    return bool(marked) and all(span.end - span.start > 1 for span in marked)


def test_documents_of_which_labels_are_known_have_none() -> None:
    corpus = crowd(0.5)
    encoded = encode(corpus, corpus.tagset())
    assert encoded.tagset.outside is not None
    before = followed_in(corpus)
    d = int(np.searchsorted(encoded.doc_start, before[0], side="right")) - 1
    here = slice(encoded.doc_start[d], encoded.doc_start[d + 1])
    known = np.full(encoded.n_tokens, -1, np.int32)
    known[here] = encoded.tagset.outside
    after = followed_in(corpus, known)
    assert not ((after >= here.start) & (after < here.stop)).any()
    assert len(after) > 10


def test_what_stands_for_a_later_piece_is_no_piece() -> None:
    corpus = crowd(0.5)
    pieces = Corpus(
        replace(one, annotations={
            who: tuple(tag and tag.replace("DIS", f"DIS{CONTINUED}") for tag in certain(tags))
            for who, tags in one.annotations.items()
        })
        for one in corpus
    )  # fmt: skip
    assert len(followed_in(corpus)) > 10
    assert len(followed_in(pieces)) == 0


@pytest.mark.parametrize("seed", range(10))
def test_what_follows_by_loops(seed: int) -> None:
    """Where anything is marked, long forms in several places; some tokens nobody was shown, some labels are known."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(30):
        one = abstract(rng)
        tags = list(tags_of(one, long=False, short=False))
        longs = [(one.long, 3), (one.long + 1, 2), (max(one.long - 1, 0), 4)]
        for start, size in (*longs, *((at, 1) for at in one.short)):
            if rng.random() < 0.4:
                tags[start : start + size] = [f"B-{rng.choice(['A', 'B'])}", *["O"] * (size - 1)]
        shown = len(tags) if rng.random() < 0.7 else one.short[-1]
        unseen = [None] * (len(tags) - shown)
        told = [tuple(tags) if rng.random() < 0.5 else tags_of(one, long=True, short=False) for _ in range(2)]
        said = {f"a{k}": (*each[:shown], *unseen) for k, each in enumerate(told)}
        gold = tags_of(one, long=True, short=bool(rng.random() < 0.5)) if number % 6 == 0 else None
        made.append(Document(str(number), one.tokens, said, gold=gold))
    corpus = Corpus(made)
    encoded = encode(corpus, corpus.tagset())
    known = np.full(encoded.n_tokens, -1, np.int32)
    for number, document in enumerate(corpus):
        if document.gold is not None:
            here = slice(encoded.doc_start[number], encoded.doc_start[number + 1])
            known[here] = [encoded.tagset.labels.index(str(tag)) for tag in document.gold]
            known[here.start : here.start + 4] = -1
            known[here.stop - 2] = -1 if number % 12 else known[here.stop - 2]  # the last short form
    evidence = evidence_of(corpus, known)
    candidates = evidence.candidates
    true = rng.random(len(candidates.start))
    forms = short_forms(encoded, candidates.end)
    found = followed_forms(evidence, true, forms, 0.7)
    seen = {n for n in range(encoded.n_tokens) if encoded.event_start[n + 1] > encoded.event_start[n]}
    certain_at = set(np.flatnonzero(known >= 0).tolist())
    left_alone = {n for d in range(0, 30, 6) for n in range(encoded.doc_start[d], encoded.doc_start[d + 1])}
    rows_of_forms = [tuple(row) for row in np.stack(forms).T.tolist()]
    expected, by_rules, by_people = followed_by_loops(candidates, true, rows_of_forms, seen, certain_at, left_alone)
    assert share_that_follow(evidence, true, forms, known, left_out=False) == pytest.approx(by_rules, rel=1e-9)
    assert share_that_follow(evidence, true, forms, known, left_out=True) == pytest.approx(by_people, rel=1e-9)
    assert len({by_rules, by_people, 0.8}) == 3
    rows = zip(*(column.tolist() for column in found), strict=True)
    assert {(start, end, kind): p for start, end, kind, p in rows} == pytest.approx(
        {key: 0.7 * p for key, p in expected.items()}, rel=1e-9
    )
    assert len(expected) > 3


def evidence_of(corpus: Corpus, known: NDArray[np.int32] | None = None) -> SpanEvidence:
    encoded = encode(corpus, corpus.tagset())
    with closing(ThreadsEngine(encoded, known=known)) as engine:
        blank = model_of(Settings(), encoded.tagset, encoded, Believed())
        model = loop.more_passes(engine, loop.initial_model(engine, blank, encoded.cells), encoded.cells, 2)
        return span_evidence(model, said := Heard(encoded, encoded, known), likely_spans(engine, model, said))


def followed_by_loops(
    candidates: Candidates,
    true: NDArray[np.float64],
    forms: list[tuple[int, ...]],
    seen: set[int],
    known: set[int],
    left_alone: set[int],
) -> tuple[dict[tuple[int, int, int], float], float, float]:
    """The probability of the long form of each short one that no candidate overlaps, by place and type; and r, where
    what was left out says nothing, and where it counts.

    Tokens are ``seen`` by somebody, or of ``known`` labels; documents that have such are ``left_alone``.
    """
    spans = list(zip(candidates.start.tolist(), candidates.end.tolist(), candidates.kind.tolist(), strict=True))
    alone: dict[tuple[int, int], tuple[float, int]] = {}
    by_rules, by_people = [(8.0, 10.0)], [(8.0, 10.0)]
    for start, end, long_start, long_end, earliest in forms:
        by_type = dict.fromkeys(range(int(candidates.kind.max()) + 1), 0.0)
        for (a, b, kind), p in zip(spans, true.tolist(), strict=True):
            if b == long_end and earliest <= a <= long_start:
                by_type[kind] += p
        by_type = {kind: min(p, 1.0) for kind, p in by_type.items()}
        kind = max(by_type, key=lambda each: by_type[each])
        there = by_type[kind]
        follows = there * sum(p for span, p in zip(spans, true.tolist(), strict=True) if span == (start, end, kind))
        overlaps = any(a < end and start < b for a, b, _ in spans)
        is_known, is_seen = start in known, all(n in seen for n in range(start, end))
        if is_known or (is_seen and overlaps):
            by_rules.append((follows, there))
        if is_known or is_seen:
            by_people.append((follows, there))
        if not overlaps and start not in left_alone and there > alone.get((start, end), (0.0, 0))[0]:
            alone[start, end] = (there, kind)
    found = {(start, end, kind): p for (start, end), (p, kind) in alone.items()}
    of_rules, of_people = np.sum(by_rules, axis=0), np.sum(by_people, axis=0)
    return found, float(of_rules[0] / of_rules[1]), float(of_people[0] / of_people[1])
