"""Crowds of shapes that real projects have, with known truth: what automatic settings must cope with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from problems import certain
from quorate.corpus.profiles import Profile
from quorate.corpus.records import Corpus, Document
from quorate.corpus.simulate import Behaviour, crowd
from quorate.corpus.spans import Span
from quorate.corpus.tags import Scheme, TagSet

TYPES = ("LOC", "ORG", "PER")


def sentences(how_many: int, *, seed: int = 0) -> Corpus:
    """Short documents with names of three types among common words."""
    rng = np.random.default_rng(seed)
    common = 1 / np.arange(1, 1501) ** 1.05
    documents = []
    for number in range(how_many):
        tokens: list[str] = []
        tags: list[str] = []
        while len(tokens) < rng.integers(8, 20):
            if rng.random() < 0.15:
                kind, length = str(rng.choice(TYPES)), int(rng.integers(1, 4))
                tokens += [f"{kind}{int(300 * rng.random() ** 3)}" for _ in range(length)]
                tags += [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]
            else:
                tokens.append(f"w{rng.choice(1500, p=common / common.sum())}")
                tags.append("O")
        documents.append(Document(str(number), tuple(tokens), gold=tuple(tags)))
    return Corpus(documents)


def paragraphs(how_many: int, *, seed: int = 0) -> Corpus:
    """Long spans, and words that tell the topic of a paragraph better than the type of a span."""
    rng = np.random.default_rng(seed)
    common = 1 / np.arange(1, 4001) ** 1.05
    topics = [rng.permutation(4000)[:300] for _ in range(15)]
    documents = []
    for number in range(how_many):
        topic = topics[rng.integers(len(topics))]
        tokens: list[str] = []
        tags: list[str] = []
        for _ in range(rng.integers(4, 8)):
            kind = rng.choice(["", "Claim", "Premise"], p=[0.3, 0.35, 0.35])
            length, lead = int(rng.integers(8, 28)), int(rng.integers(4))
            for place in range(length):
                from_topic = rng.random() < 0.3
                word = rng.choice(topic) if from_topic else rng.choice(4000, p=common / common.sum())
                inside = kind and lead <= place < length - 1
                tokens.append(f"{kind}{rng.integers(60)}" if kind and rng.random() < 0.05 else f"w{word}")
                tags.append(f"{'B' if place == lead else 'I'}-{kind}" if inside else "O")
        documents.append(Document(str(number), tuple(tokens), gold=tuple(tags)))
    return Corpus(documents)


def careful_three(how_many: int = 200) -> Corpus:
    """Three careful annotators, long spans: sequence models fail here."""
    people = {
        "ann": Behaviour(miss=0.08, confuse=0.12, start_late=0.1, start_early=0.1, end_early=0.05, invent=0.0003),
        "bob": Behaviour(miss=0.15, confuse=0.08, start_late=0.05, start_early=0.15, end_late=0.1, invent=0.0003),
        "cem": Behaviour(miss=0.1, confuse=0.15, start_late=0.15, end_early=0.1, invent=0.0003),
    }
    return crowd(paragraphs(how_many), people, seed=1)


def sparse(how_many: int = 900, annotators: int = 900) -> Corpus:
    """Five labels a document from a crowd in which everyone sees a handful."""
    rng = np.random.default_rng(2)
    people = {}
    for number in range(annotators):
        weakness = rng.beta(2, 2.2)
        people[f"a{number:04}"] = Behaviour(
            miss=0.6 * weakness,
            confuse=0.3 * weakness * rng.random(),
            start_late=0.5 * weakness * rng.random(),
            invent=0.02 * weakness * rng.random(),
            spam=float(rng.random() < 0.08),
        )
    return crowd(sentences(how_many), people, per_document=5, seed=2)


def rules(how_many: int = 600) -> Corpus:
    """Nine rules that are silent about most: each knows one type, some are precise, some not."""
    people = {}
    for number, kind in enumerate(TYPES * 3):
        others = frozenset(TYPES) - {kind}
        precise = number < 3
        people[f"rule{number}"] = Behaviour(
            miss=0.6 if precise else 0.4, end_early=0.05 if precise else 0.25, invent=0.002 if precise else 0.02,
            blind_to=others,
        )  # fmt: skip
    return crowd(sentences(how_many, seed=3), people, seed=3)


def every_kind(how_many: int = 400) -> Corpus:
    """Four people, three a document; three samples of one model, and another model; three rules."""
    texts = sentences(how_many, seed=4)
    usual = Behaviour(confuse=0.08, start_late=0.05, invent=0.006)
    misses = {"ann": 0.1, "bob": 0.15, "cem": 0.25, "dee": 0.2}
    people = crowd(texts, {name: replace(usual, miss=miss) for name, miss in misses.items()}, per_document=3, seed=4)
    weak = Behaviour(miss=0.25, confuse=0.2, end_early=0.1, invent=0.02)
    belief = crowd(texts, {"llm": weak}, per_document=1, seed=5)
    asked = Corpus([replace(one, gold=certain(one.annotations["llm"]), annotations={}) for one in belief])
    says = crowd(asked, {f"llm-{n}": Behaviour(miss=0.03, confuse=0.03) for n in range(3)}, seed=6)
    other = crowd(texts, {"parser": Behaviour(miss=0.2, confuse=0.1, start_early=0.1, invent=0.01)}, seed=7)
    rules = {
        "gazetteer": Behaviour(miss=0.7, blind_to=frozenset({"ORG"})),
        "regex": Behaviour(miss=0.6, invent=0.002, blind_to=frozenset({"LOC", "PER"})),
        "titles": Behaviour(miss=0.5, end_early=0.3, invent=0.02, blind_to=frozenset({"LOC", "ORG"})),
    }
    documents = []
    for one, *others in zip(people, says, other, crowd(texts, rules, seed=8), strict=True):
        added = {name: tags for each in others for name, tags in each.annotations.items()}
        documents.append(replace(one, annotations={**one.annotations, **added}))
    profiles = {f"llm-{n}": Profile.of(kind="model", group="llm-c") for n in range(3)}
    profiles |= {"parser": Profile.of(kind="model"), "dee": Profile.of(kind="expert")}
    return Corpus(documents, profiles=profiles | {name: Profile.of(kind="rule") for name in rules})


def copies(how_many: int = 400, times: int = 5) -> Corpus:
    """Three good people, and one weak model whose output was handed in five times."""
    good = Behaviour(miss=0.1, confuse=0.06, start_late=0.05, invent=0.004)
    weak = Behaviour(miss=0.35, confuse=0.25, start_late=0.2, end_early=0.2, invent=0.03)
    made = crowd(sentences(how_many, seed=4), {"ann": good, "bob": good, "cem": good, "model": weak}, seed=4)
    documents = []
    for document in made:
        people = dict(document.annotations)
        output = people.pop("model")
        documents.append(replace(document, annotations={**people, **{f"model{n}": output for n in range(times)}}))
    return Corpus(documents)


def spammer_majority(how_many: int = 500) -> Corpus:
    """Seven who mark at random, three who read."""
    reads = Behaviour(miss=0.1, confuse=0.06, start_late=0.05, invent=0.004)
    people = {f"spam{n}": Behaviour(spam=1.0) for n in range(7)} | {f"good{n}": reads for n in range(3)}
    return crowd(sentences(how_many, seed=5), people, per_document=6, seed=5)


def one_expert(how_many: int = 500) -> Corpus:
    """One who is nearly always right among six who often are not."""
    people = {f"a{n}": Behaviour(miss=0.45, confuse=0.2, start_late=0.2, invent=0.02) for n in range(6)}
    return crowd(sentences(how_many, seed=6), {**people, "expert": Behaviour(miss=0.02, confuse=0.01)}, seed=6)


def colluders(how_many: int = 500) -> Corpus:
    """Two who work alone, three who agree beforehand never to mark an ORG."""
    alone = Behaviour(miss=0.12, confuse=0.05, start_late=0.05, invent=0.004)
    together = replace(alone, blind_to=frozenset({"ORG"}))
    people = {"ann": alone, "bob": alone, **{f"ring{n}": together for n in range(3)}}
    return crowd(sentences(how_many, seed=7), people, seed=7)


def disjoint_batches(how_many: int = 500) -> Corpus:
    """Two teams of three that share no document."""
    weak = Behaviour(miss=0.35, confuse=0.15, start_late=0.15, invent=0.01)
    good = Behaviour(miss=0.08, confuse=0.04, invent=0.002)
    gold = sentences(how_many, seed=8).documents
    half = len(gold) // 2
    first = crowd(Corpus(gold[:half]), {"a0": good, "a1": weak, "a2": weak}, seed=8)
    second = crowd(Corpus(gold[half:]), {"b0": good, "b1": good, "b2": weak}, seed=9)
    return Corpus([*first, *second])


def vague_boundaries(how_many: int = 500, annotators: int = 70) -> Corpus:
    """Long spans of which nobody knows quite where they begin and end: five of seventy workers a document."""
    rng = np.random.default_rng(11)
    people = {
        f"w{number:02}": Behaviour(
            miss=rng.beta(2, 4), confuse=0.2 * rng.random(), vague=rng.beta(3, 3), reach=1 / rng.uniform(0.3, 0.7),
            invent=0.01 * rng.random(),
        )
        for number in range(annotators)
    }  # fmt: skip
    return crowd(paragraphs(how_many, seed=11), people, per_document=5, seed=11)


def long_spans(how_many: int = 200) -> Corpus:
    """Three careful people, and long spans whose boundaries they put a few tokens apart."""
    people = {
        "ann": Behaviour(miss=0.08, vague=0.15, reach=2.5, invent=0.0005),
        "bob": Behaviour(miss=0.15, vague=0.2, reach=2.5, invent=0.001),
        "cem": Behaviour(miss=0.1, vague=0.25, reach=2.5, invent=0.001),
    }
    return crowd(paragraphs(how_many, seed=12), people, seed=12)


def splitters_and_joiners(how_many: int = 400) -> Corpus:
    """Of thirty workers a third cut long spans in two, and a third make one of two that follow each other."""
    usual = Behaviour(miss=0.15, confuse=0.05, vague=0.2, reach=1 / 0.6, invent=0.002)
    kinds = (replace(usual, split=0.6), replace(usual, join=0.6), usual)
    people = {f"w{number:02}": kinds[number % 3] for number in range(30)}
    return crowd(paragraphs(how_many, seed=13), people, per_document=6, seed=13)


def vague_names(how_many: int = 900, annotators: int = 40) -> Corpus:
    """Short spans with vague boundaries: five of forty workers a document."""
    rng = np.random.default_rng(14)
    people = {
        f"w{number:02}": Behaviour(
            miss=rng.beta(2, 4), confuse=0.2 * rng.random(), vague=rng.beta(2, 4), reach=1 / 0.7,
            invent=0.02 * rng.random(),
        )
        for number in range(annotators)
    }  # fmt: skip
    return crowd(sentences(how_many, seed=14), people, per_document=5, seed=14)


def experts_among_vague(how_many: int = 300, *, reach: float = 1.0, seed: int = 0) -> Corpus:
    """Three who are nearly always right, and six who know where a name is, but not where it ends."""
    experts = {f"expert{number}": Behaviour(miss=0.05, confuse=0.02) for number in range(3)}
    vague = {f"vague{number}": Behaviour(miss=0.3, vague=0.8, reach=reach) for number in range(6)}
    return crowd(sentences(how_many, seed=seed), {**experts, **vague}, seed=seed)


def vague_and_sparse(how_many: int = 1500, annotators: int = 1500) -> Corpus:
    """Four labels a document from a crowd in which everyone sees a handful, and few know where a name ends."""
    rng = np.random.default_rng(15)
    people = {
        f"w{number:04}": Behaviour(
            miss=rng.beta(2, 3), confuse=0.3 * rng.random(), vague=rng.beta(2, 3), reach=1 / rng.uniform(0.3, 0.8),
            invent=0.03 * rng.random(),
        )
        for number in range(annotators)
    }  # fmt: skip
    return crowd(sentences(how_many, seed=15), people, per_document=4, seed=15)


def jury(how_many: int = 60, models: int = 8, types: int = 12) -> Corpus:
    """Language models on long documents: they miss most, have bounds anywhere near, and dispute types."""
    rng = np.random.default_rng(16)
    names, often = [f"T{number:02}" for number in range(types)], 1 / np.arange(1, types + 1)
    documents = []
    for number in range(how_many):
        tokens: list[str] = []
        tags: list[str] = []
        while len(tokens) < rng.integers(150, 400):
            between, length = int(rng.geometric(1 / 40)), int(rng.geometric(1 / 9))
            kind = rng.choice(names, p=often / often.sum())
            tokens += [f"w{rng.integers(2000)}" for _ in range(between)]
            tokens += [f"{kind if rng.random() < 0.08 else 'w'}{rng.integers(80)}" for _ in range(length + 1)]
            tags += ["O"] * between + [f"B-{kind}", *[f"I-{kind}"] * length]
        documents.append(Document(str(number), tuple(tokens), gold=tuple(tags)))
    people = {
        f"model{number}": Behaviour(
            miss=rng.uniform(0.45, 0.85), confuse=rng.uniform(0.3, 0.7), vague=rng.uniform(0.5, 0.9),
            reach=rng.uniform(2, 8), invent=0.01 * rng.random(),
        )
        for number in range(models)
    }  # fmt: skip
    return crowd(Corpus(documents), people, seed=16)


def passages(seed: int = 0, how_many: int = 80, models: int = 8, types: int = 12, *, confuse: float = 0.4) -> Corpus:
    """Language models that mark the same passages, whether they are true or not, and often the whole sentence.

    Shares of models that agree, of whole sentences and of types that differ are about those of ``propaganda-llm``.
    """
    rng = np.random.default_rng(seed)
    often = 1 / np.arange(1, types + 1)
    eager = rng.normal(0, 0.8, models)
    whole = np.clip(rng.normal(0.3, 0.2, models), 0, 0.9)
    exact = np.clip(rng.normal(0.35, 0.15, models), 0.05, 0.9) * (1 - whole)
    confused = np.clip(rng.normal(confuse, 0.15, models), 0.05, 0.9)
    documents = []
    for number in range(how_many):
        ends = np.cumsum(rng.integers(8, 35, rng.integers(12, 35)))
        tokens = [f"w{int(2000 * rng.random() ** 2)}" for _ in range(ends[-1])]
        gold: list[Span] = []
        marked: list[list[Span]] = [[] for _ in range(models)]
        for begin, end in zip([0, *ends.tolist()], ends.tolist(), strict=False):
            for is_true, salience, rate in ((True, -0.3, 0.35), (False, -1.6, 0.6)):
                for _ in range(rng.poisson(rate)):
                    length = min(int(rng.choice([1, 2, 3, 6, 12, 40], p=[0.15, 0.2, 0.15, 0.2, 0.2, 0.1])), end - begin)
                    start = int(rng.integers(begin, end - length + 1))
                    kind, other = (f"T{k:02}" for k in rng.choice(types, 2, p=often / often.sum()))
                    for place in np.flatnonzero(rng.random(length) < 0.06) + start:
                        tokens[place] = f"{kind}{rng.integers(80)}"
                    if is_true:
                        gold.append(Span(start, start + length, kind))
                    seen = rng.random(models) < 1 / (1 + np.exp(-(rng.normal(salience, 1.2) + eager)))
                    for model in np.flatnonzero(seen):
                        low, high = max(begin, start - rng.integers(4)), min(end, start + length + rng.integers(5))
                        bounds = [(begin, end), (start, start + length), (int(low), int(high))]
                        shares = [whole[model], exact[model], 1 - whole[model] - exact[model]]
                        told = bounds[rng.choice(3, p=shares)]
                        marked[model].append(Span(*told, other if rng.random() < confused[model] else kind))
        tagset = TagSet.of_types(Scheme.BIO, [f"T{k:02}" for k in range(types)])
        by = {f"model{m}": tuple(tagset.tags(_apart(spans), len(tokens))) for m, spans in enumerate(marked)}
        of_gold = tuple(tagset.tags(_apart(gold), len(tokens)))
        documents.append(Document(str(number), tuple(tokens), by, gold=of_gold))
    return Corpus(documents)


def _apart(spans: list[Span]) -> list[Span]:
    """Of spans that overlap, the one that begins first."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda one: (one.start, one.end, one.label)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept
