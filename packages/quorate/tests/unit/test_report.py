"""The report's content, its page, the figures and the notebook views."""

from __future__ import annotations

import json
import re
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quorate
from by_name import bsc, from_file
from quorate import BSC, Corpus, Document, InputError, MethodSettings, SettingsError
from quorate.active.suggest import next_labels
from quorate.corpus.tags import TagSet, find_spans
from quorate.errors import ModelFileError
from quorate.report import content as say
from quorate.report import write_report
from quorate.report.content import Report, plain
from quorate.report.data import collect
from quorate.report.documents import chosen_documents
from quorate.report.findings import find, next_steps, percent
from quorate.report.page import embedded_json, render
from quorate.report.people import _kind, wilson
from quorate.result.annotators import AnnotatorSummaries, summarise
from quorate.result.figures import annotators_figure, save
from quorate.result.habits import SpanHabits
from quorate.storage import model_files
from simulated_crowds import copies, every_kind, rules


@pytest.fixture(scope="module")
def model(sample: Corpus) -> BSC:
    return bsc("bsc-seq", max_iter=8).fit(sample)


@pytest.fixture(scope="module")
def report(model: BSC) -> Report:
    return collect(model, model.result_, title="The sample", documents=40)


@pytest.fixture(scope="module")
def data(report: Report) -> dict[str, Any]:
    """What the page reads."""
    found: dict[str, Any] = plain(report)
    return found


def content(page: str) -> Any:
    """The data inside a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found.group(1))


def test_findings_say_what_the_sample_was_made_with(data: dict[str, Any]) -> None:
    text = " ".join(finding["text"] for finding in data["findings"])
    assert "The labels of fay and gil carry almost no information" in text
    assert re.search(r"hal and ida start spans late in \d+%( to \d+%)? of cases", text)
    assert re.search(r"jun splits \d+% of the spans they find", text)
    assert re.search("(kit and lou|lou and kit) hardly ever mark ORG.", text)
    assert re.search(r"strict F1 of \d\d\.\d, \d+\.\d points more than a majority vote \(320 documents\)", text)
    assert any("fay and gil" in step for step in data["next"])


@pytest.fixture(scope="module")
def with_rules(sample: Corpus) -> BSC:
    """The sample with two rules: one marks every eighth true span and says ``O`` of the rest, one only says persons."""
    tagset, documents = TagSet.infer(["O", "B-PER"]), []
    for number, one in enumerate(sample):
        spans, length = find_spans(one.gold or ()), len(one.tokens)
        few = tagset.tags([span for n, span in enumerate(spans) if (n + number) % 8 == 0], length)
        persons = tagset.tags([span for span in spans if span.label == "PER"], length)
        rules = {"regex": tuple(few), "list": tuple(None if tag == "O" else tag for tag in persons)}
        documents.append(replace(one, annotations={**one.annotations, **rules}))
    return bsc("bsc-seq", max_iter=8).fit(Corpus(documents))


def test_rules_that_are_right_where_they_mark_are_no_noise(with_rules: BSC) -> None:
    found = plain(collect(with_rules, with_rules.result_, title="", documents=1))
    kinds = {row["name"]: row["kind"] for row in found["annotators"]["rows"]}
    assert (kinds["regex"], kinds["list"]) == ("right where they mark", "right where they mark")
    assert (kinds["fay"], kinds["gil"]) == ("noise", "noise")
    text = " ".join(finding["text"] for finding in found["findings"])
    for name in ("regex", "list"):
        assert re.search(
            rf"{name} marks \d\d% of the consensus's spans, and (9\d|over 99|100)% of its own marks are in",
            text,
        )
    advice = " ".join(found["next"])
    assert "Ask fay and gil how they worked" in advice
    assert "regex" not in advice
    assert "list" not in advice


def test_a_rule_on_plain_labels_is_no_noise_and_a_constant_is() -> None:
    rng = np.random.default_rng(0)
    documents = []
    for n in range(40):
        truth = rng.choice(["A", "B", "C"], 10, p=[0.8, 0.1, 0.1])
        said = {f"p{k}": tuple(np.where(rng.random(10) < 0.1, "C", truth).tolist()) for k in range(4)}
        said |= {"constant": ("A",) * 10, "rule": tuple("B" if tag == "B" else None for tag in truth)}
        documents.append(Document(str(n), tuple("abcdefghij"), said))
    model = bsc("bsc-cm", truth="independent", text=False).fit(Corpus(documents))
    kinds = {row.name: row.kind for row in collect(model, model.result_, title="", documents=1).annotators.rows}
    assert (kinds["rule"], kinds["constant"]) == ("right where they mark", "noise")


def test_nobody_tells_less_than_nothing(with_rules: BSC, tmp_path: Path) -> None:
    """No minus zero bits: in the table, in JSON, in a loaded model, after a vote, in what to ask for."""
    with_rules.save(tmp_path / "m")
    for told in (
        with_rules.annotators_,
        from_file(tmp_path / "m").annotators_,
        quorate.aggregate(with_rules.result_.corpus, "mv").annotators,
    ):
        assert not any("-" in f"{row.informativeness:.3f}" for row in told)
        assert not np.signbit(told.informativeness).any()
    rounded = np.array([[9.0, 9.0], [0.5, 0.5], [-1e-17, -0.0]])
    told = AnnotatorSummaries(["a", "b"], rounded, with_rules.fitted_.model.annotators)
    assert [f"{row.informativeness:.3f}" for row in told] == ["0.000", "0.000"]
    advice = quorate.next_labels(with_rules.result_.corpus, with_rules, n=50, annotators=["list", "regex"])
    assert not any("-" in f"{one.gain:.2f}" for one in advice.suggestions)


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_summary_that_cannot_be_is_refused(with_rules: BSC, row: int, value: float, tmp_path: Path) -> None:
    """In a model file only the accuracy may be no number: that of someone who gave no label."""
    with_rules.save(tmp_path / "m")
    stored = model_files.load(tmp_path / "m")
    stored.arrays["summary"][row, 1] = value
    model_files.save(stored, tmp_path / "m")
    if row == 1 and np.isnan(value):
        assert np.isnan(from_file(tmp_path / "m").annotators_.accuracy[1])
        return
    with pytest.raises(ModelFileError, match="a damaged model file: array 'summary' holds what is no number"):
        quorate.load(tmp_path / "m")


def test_what_is_no_number_is_not_taken_for_nothing(with_rules: BSC) -> None:
    table = np.array([[9.0, 9.0], [0.5, 0.5], [np.nan, -0.0]])
    told = AnnotatorSummaries(["a", "b"], table, with_rules.fitted_.model.annotators).informativeness
    assert np.isnan(told[0])
    assert not np.signbit(told[1])


def test_labels_that_weigh_nothing_tell_nothing(with_rules: BSC) -> None:
    crowd = with_rules.fitted_.crowd(with_rules.result_.corpus)
    counts = np.zeros((len(crowd.cells.label), len(with_rules.tagset_.labels)))
    assert (summarise(crowd, counts, with_rules.fitted_.model.annotators).informativeness == 0).all()


def test_everything_in_a_report_is_json(data: dict[str, Any]) -> None:
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_the_least_certain_documents_come_first(model: BSC, data: dict[str, Any]) -> None:
    shown = [document["confidence"] for document in data["documents"]["list"]]
    assert shown == sorted(shown)
    assert shown == pytest.approx(sorted(model.result_.confidence)[:40], abs=1e-4)


def test_known_documents_come_last_and_are_not_scored(model: BSC) -> None:
    known = {document.id for document in model.result_.corpus.documents[:100]}
    order = chosen_documents(model.result_, None, known)
    assert {model.result_.corpus[d].id for d in order[-100:]} == known
    found = plain(collect(model, model.result_, title="", documents=None, known=known))
    assert found["gold"]["documents"] == found["documents"]["total"] - 100
    assert all("why" not in doc for doc in found["documents"]["list"][-100:])
    assert found["documents"]["list"][-1]["known"]


def test_a_report_has_the_version_of_its_consensus_if_there_is_one(model: BSC) -> None:
    for version in (None, 12, "Monday", 0):
        assert plain(collect(model, model.result_, title="", documents=2, version=version))["of_version"] == version


def test_all_gold_known_leaves_nothing_to_score(model: BSC) -> None:
    known = {document.id for document in model.result_.corpus}
    assert plain(collect(model, model.result_, title="", documents=2, known=known))["gold"] is None


def test_why_starts_from_the_probabilities_given_out(data: dict[str, Any]) -> None:
    explained = [document for document in data["documents"]["list"] if document["spans"]]
    assert explained
    for document in explained:
        given = {tuple(span[:3]): span[3] for span in document["spans"]}
        explained_from = {tuple(span[:3]): span[3] for span in document["why"]["spans"]}
        assert given.items() <= explained_from.items()
        assert document["why"]["who"] == [who for who, _ in document["labels"]]


def test_vote_counts_add_up(data: dict[str, Any]) -> None:
    spans = data["vote"]["spans"]
    assert spans["kept"] + spans["moved"] + spans["retyped"] + spans["dropped"] == spans["vote"]
    differing = sum(doc["vote"] != doc["tags"] for doc in data["documents"]["list"])
    assert 0 < differing <= data["vote"]["documents"]


def test_examples_of_errors_show_their_error(data: dict[str, Any]) -> None:
    from quorate.evaluate.metrics import error_kinds

    tags = data["tags"]
    for error in data["gold"]["errors"]:
        assert 1 <= len(error["examples"]) <= 3
        for example in error["examples"]:
            mine, gold = ([tags[code] for code in example[side]] for side in ("tags", "gold"))
            assert getattr(error_kinds([mine], [gold]), error["kind"]) >= 1


def test_groups_can_be_given(model: BSC) -> None:
    found = plain(collect(model, model.result_, title="", documents=0, groups=5))
    assert len(found["matrices"]["groups"]) == 5
    assert sorted(k for group in found["matrices"]["groups"] for k in group["members"]) == list(range(12))


@pytest.mark.parametrize("method", ["mv", "ds", "mace", "hmm-crowd", "bsc-acc", "bsc-cv", "bsc-seq-notrans"])
def test_every_kind_of_method_can_be_reported(sample: Corpus, method: str, tmp_path: Path) -> None:
    small = Corpus(sample.documents[:40])
    settings: MethodSettings = {} if method == "mv" else {"max_iter": 3}
    fitted = quorate.api.estimator(method, **settings).fit(small)
    write_report(fitted, tmp_path / "r.html", documents=5)
    found = content((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert found["documents"]["explained"] == (method != "mv")
    assert all(("why" in document) == (method != "mv") for document in found["documents"]["list"])


@pytest.mark.parametrize("scheme", ["bioes", "io"])
def test_other_schemes(scheme: str, sample: Corpus) -> None:
    tagset = quorate.TagSet.of_types(quorate.Scheme(scheme), ["LOC", "ORG", "PER", "WORK"])

    def again(tags: Any) -> tuple[str, ...]:
        return tuple(tagset.tags(sample.tagset().spans(tags), len(tags)))

    corpus = Corpus(
        replace(
            document,
            annotations={name: again(tags) for name, tags in document.annotations.items()},
            gold=again(document.gold),
        )
        for document in sample.documents[:60]
    )
    model = bsc("bsc-seq", max_iter=3).fit(corpus)
    assert model.tagset_.scheme.value == scheme
    found = plain(collect(model, model.result_, title="", documents=10))
    assert all("why" in document for document in found["documents"]["list"])


def test_odd_corpora() -> None:
    documents = [
        Document("empty", (), {"a": ()}),
        Document("bare", ("x", "y")),
        Document("soft", ("x", "y"), {"a": ({"B-X": 0.6, "O": 0.4}, "O"), "b": ("B-X", None)}, ("B-X", None)),
        Document("gold only", ("z",), {"a": ("O",)}, ("B-NEW",)),
    ]
    model = bsc("bsc-seq", max_iter=3).fit(Corpus(documents))
    report = collect(model, model.result_, title="", documents=None)
    found = plain(report)
    assert {document["id"] for document in found["documents"]["list"]} == {one.id for one in documents}
    assert "B-NEW" in found["tags"]
    assert render(report)


def test_nobody_shares_a_document() -> None:
    documents = [Document(str(n), ("x", "y"), {f"a{n}": ("B-X", "O")}) for n in range(3)]
    model = bsc("bsc-seq", max_iter=2).fit(Corpus(documents))
    found = plain(collect(model, model.result_, title="", documents=None))
    assert found["agreement"] is None
    assert {row["kind"] for row in found["annotators"]["rows"]} == {"cannot be judged"}
    assert all(row["accuracy"] is row["informativeness"] is None for row in found["annotators"]["rows"])
    text = " ".join(finding["text"] for finding in found["findings"])
    assert "a0, a1 and a2 share no document with anybody, and cannot be judged." in text
    assert "3 documents were labelled only by annotators who share no document with anybody: nothing shows" in text
    assert "certain" not in text
    assert found["next"][0].startswith("Have a second annotator label some documents of a0, a1 and a2, or check some")
    assert not any("annotated by more people" in step for step in found["next"])
    assert len(render(replace(collect(model, model.result_, title="", documents=None)))) > 0


def test_one_who_shares_no_document_is_not_judged_and_others_are(sample: Corpus) -> None:
    alone = [
        Document(one.id, one.tokens, {"zoe": next(iter(one.annotations.values()))}) for one in sample.documents[:100]
    ]
    model = bsc("bsc-cm", max_iter=4).fit(Corpus([*alone, *sample.documents[100:]]))
    found = collect(model, model.result_, title="", documents=10)
    kinds = {row.name: row.kind for row in found.annotators.rows}
    assert [name for name, kind in kinds.items() if kind == "cannot be judged"] == ["zoe"]
    assert kinds["ana"] == "careful"
    assert found.documents.not_judged == 100
    assert any("at least 90% certain" in finding.text for finding in found.findings)


def test_a_result_on_new_documents(model: BSC, sample: Corpus) -> None:
    few = Corpus(sample.documents[:5])
    found = plain(collect(model, model.combine(few), title="", documents=None))
    assert found["documents"]["total"] == 5
    assert all("why" in document for document in found["documents"]["list"])


def test_a_stranger_in_new_documents(model: BSC) -> None:
    new = Corpus([Document("n", ("Ada", "Ng", "sang"), {"zoe": ("B-PER", "I-PER", "O"), "ana": ("O", "O", "O")})])
    found = plain(collect(model, model.combine(new), title="", documents=None))
    kinds = {row["name"]: row["kind"] for row in found["annotators"]["rows"]}
    assert kinds == {"ana": "too few labels", "zoe": "new"}
    assert found["matrices"]["of"].keys() == {"0"}


def test_without_probabilities_there_is_no_report_and_no_advice(sample: Corpus, tmp_path: Path) -> None:
    """Fixed settings keep none if so asked; both say what to do, and so does what is expected."""
    model = bsc("bsc-seq", max_iter=2, probabilities=False).fit(sample)
    asked = (
        lambda: model.result_.expected,
        lambda: write_report(model, tmp_path / "r.html", documents=2),
        lambda: next_labels(sample, model, n=2),
    )
    for ask in asked:
        with pytest.raises(SettingsError, match="fit with probabilities=True"):
            ask()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("corpus", "sentence"),
    [
        (copies(100), r"model0, model1, model2 and 2 more are duplicates, and count as one annotator\."),
        (rules(150), r"rule0, rule1, rule2, rule3, rule4 and 4 more abstain from most of what others mark: .*"),
        (every_kind(150), r"llm-0, llm-1, llm-2 make the same mistakes: their 3 votes count as 1\.\d\."),
    ],
    ids=["duplicates", "abstaining", "correlated"],
)
def test_changes_of_the_crowd_are_listed(corpus: Corpus, sentence: str) -> None:
    model = BSC(calibrate=False).fit(corpus)
    found = collect(model, model.result_, title="", documents=0)
    assert sum(re.fullmatch(sentence, one) is not None for one in found.changes) == 1
    assert not any("calibrated" in one for one in found.changes)
    as_given = BSC(calibrate=False, adapt=False).fit(corpus)
    assert collect(as_given, as_given.result_, title="", documents=0).changes == []


def test_calibration_is_listed_with_its_exponents(sample: Corpus, tmp_path: Path) -> None:
    model = BSC().fit(sample)
    model.save(tmp_path / "m")
    for made in (model, from_file(tmp_path / "m")):
        (sentence,) = collect(made, made.combine(sample), title="", documents=0).changes
        assert sentence.startswith("Confidence is calibrated on held-out annotators")
        assert f"the power of {model.calibration_.tokens:.2f}" in sentence
        assert f"to {model.calibration_.spans:.2f} " in sentence


def test_settings_are_given_or_default(sample: Corpus) -> None:
    model = bsc("bsc-cm", epsilon0=7.0, max_iter=2).fit(sample)
    rows = {row.name: row.why for row in collect(model, model.result_, title="", documents=0).settings}
    assert (rows["epsilon0"], rows["max_iter"], rows["alpha0"]) == ("given", "given", "default")
    assert "method" not in rows


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.none(), st.lists, max_leaves=8))
def test_json_in_a_page_says_the_same_and_cannot_end_its_element(value: Any) -> None:
    text = embedded_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")
    text.encode()


def test_a_report_is_a_value_of_which_the_page_is_made(report: Report, data: dict[str, Any]) -> None:
    """Names of fields are keys; what is not there is left out where the page asks whether it is."""
    assert content(render(report)) == data
    assert list(data) == [field.name for field in fields(Report)]
    assert report.gold is not None
    assert data["gold"]["documents"] == report.gold.documents == report.documents.total
    first = report.documents.list[0]
    assert (first.known, "known" in data["documents"]["list"][0]) == (None, False)
    with pytest.raises(FrozenInstanceError):
        report.title = "another"  # type: ignore[misc]


def test_the_page_needs_nothing_else(report: Report) -> None:
    page = render(report)
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert "@import" not in page
    assert "url(" not in page
    assert "innerHTML" not in page
    assert "{{" not in page.replace("${{", "")
    assert content(page)["title"] == "The sample"


def test_a_report_is_written_whole_or_not_at_all(model: BSC, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(SettingsError, match="not -1"):
        write_report(model, path, documents=-1)
    with pytest.raises(SettingsError, match="cannot be put into 99 groups"):
        write_report(model, path, groups=99)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_split_without_gold_is_refused(model: BSC, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no document is of split 'dev'"):
        write_report(model, tmp_path / "r.html", split="dev")


def test_progress_is_told(model: BSC, tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    write_report(model, tmp_path / "r.html", documents=3, progress=lambda *step: told.append(step))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == told[-1][1]


@given(st.floats(0, 1))
def test_percentages_never_claim_too_much(share: float) -> None:
    text = percent(share)
    assert (text == "100%") == (share == 1.0)
    assert (text == "0%") == (share == 0.0)


def test_nothing_found_in_nothing() -> None:
    nothing = Report(documents=say.Documents(total=1))
    assert [finding.about for finding in find(nothing)] == ["documents"]
    assert next_steps(nothing) == [NOTHING]
    assert next_steps(replace(nothing, gold=gold(0.95))) == [USE_IT]


USE_IT = "Nothing needs to be done: use the consensus as it is."
NOTHING = "Check a sample of documents to know how good the consensus is ('quorate audit'). Nothing else stands out."


def test_a_consensus_that_gold_contradicts_is_not_to_be_used_as_it_is() -> None:
    """Everybody agrees and is sure, and nothing is right: gold has other names for the labels."""
    said = ("B-PER", "I-PER", "O", "O")
    documents = [
        Document(str(n), ("Ada", "Ng", "sang", "again"), {f"a{k}": said for k in range(5)}, ("B-P", "I-P", "O", "O"))
        for n in range(40)
    ]
    model = bsc("bsc-cm", max_iter=5).fit(Corpus(documents))
    found = plain(collect(model, model.result_, title="", documents=5))
    assert "Against gold, the consensus has a strict F1 of 0.0" in found["findings"][0]["text"]
    assert found["next"][0].startswith("Do not use the consensus as it is: against gold its strict F1 is 0.0.")
    assert USE_IT not in found["next"]
    right = Corpus([replace(document, gold=said) for document in documents])
    model = bsc("bsc-cm", max_iter=5).fit(right)
    assert plain(collect(model, model.result_, title="", documents=5))["next"] == [USE_IT]


def gold(f1: float | None, accuracy: float = 0.9, **others: Any) -> say.Gold:
    return say.Gold(method=say.Scores(None if f1 is None else (f1, f1, f1), accuracy=accuracy), **others)


def annotator(name: str, kind: str, *blind: str) -> say.Annotators:
    return say.Annotators([say.AnnotatorRow(name, kind=kind, blind=blind)])


def mixed_up(times: int, n: int) -> say.Labels:
    """A label that was taken for another so many times out of n."""
    low = wilson(times, n)[0]
    return say.Labels([say.LabelRow("A", n, confidence=0.9, mixed_with="B", mixed_share=times / n, mixed_low=low)])


@pytest.mark.parametrize(
    ("found", "step"),
    [
        ({"gold": gold(0.8)}, "Look at the errors"),
        ({"gold": gold(None, 0.4)}, "Do not use the consensus as it is"),
        (
            {"gold": gold(0.92, vote=say.Scores((0.95, 0.95, 0.95), accuracy=0.9))},
            "A majority vote does better against gold (95.0)",
        ),
        (
            {"gold": gold(0.95, calibration=say.Calibration(spans=say.Bins(0.19, 10, [[0.9, 1.0, 10, 0.99, 0.8]])))},
            "Do not read confidence as the share that is right",
        ),
        ({"agreement": say.Agreement(alpha=0.1)}, "annotators hardly agree"),
        (
            {"labels": mixed_up(10, 50)},
            "Say in the guidelines how to tell A from B: 20% of all labels on A say B.",
        ),
        ({"annotators": annotator("ann", "misses many")}, "ann, who misses many spans"),
        ({"annotators": annotator("ann", "misses A", "A")}, "Ask ann about A"),
        ({"annotators": annotator("ann", "misses many", "many")}, "Ask ann about many"),
    ],
)
def test_advice_reads_every_finding(found: dict[str, Any], step: str) -> None:
    steps = next_steps(Report(documents=say.Documents(total=100), **found))
    assert len(steps) == 1
    assert step in steps[0]


def test_where_most_documents_are_doubtful_not_all_are_to_be_checked() -> None:
    """Of documents with several long spans, hardly one is likely to be right from end to end."""
    most = Report(documents=say.Documents(total=60, doubtful=56), summary=say.Summary(documents=60, review=56))
    (finding,) = find(most)
    assert finding.text.startswith("56 of 60 documents are more likely to contain a mistake than not. One wrong start")
    assert next_steps(most)[0].startswith("Check the 20 least certain documents under Documents, correct")
    assert next_steps(most)[1].endswith(": 93% of documents are doubtful.")
    few = Report(documents=say.Documents(total=60, doubtful=9), summary=say.Summary(documents=60, review=9))
    assert "look at those first" in find(few)[0].text
    assert next_steps(few)[0].startswith("Check the 9 least certain documents")


def test_few_marks_are_no_reason_for_advice(data: dict[str, Any]) -> None:
    """Two of 58 were chance, and so are most differences between labels of a few spans."""
    report = Report(documents=say.Documents(total=100), labels=mixed_up(2, 58))
    assert next_steps(report) == [NOTHING]
    assert not any("mistaken" in finding.text for finding in find(report))
    for row in data["labels"]["rows"]:
        assert 0 < row["mixed_low"] < row["mixed_share"]

    def hardest(spans: int) -> bool:
        rows = [say.LabelRow("A", spans=spans, confidence=0.8), say.LabelRow("B", spans=spans, confidence=0.95)]
        return any("A is the least certain label" in one.text for one in find(Report(labels=say.Labels(rows))))

    assert not hardest(20)
    assert hardest(200)


@pytest.mark.parametrize(
    ("habits", "few", "many"),
    [
        (SpanHabits(exact=4, shifted=1, late_start=1, marks=5), "mixed", "starts late"),
        (SpanHabits(exact=3, missed=2, marks=3), "mixed", "misses many"),
        (SpanHabits(exact=5, marks=8, invented=3), "mixed", "marks too much"),
    ],
)
def test_a_habit_takes_more_than_a_few_spans(habits: SpanHabits, few: str, many: str) -> None:
    def kind(times: int) -> str:
        own = SpanHabits(*(times * number for number in habits))
        return _kind(200.0, 1.0, 1.0, own, own, {}, 0.5, 0.5, marks_spans=True)

    assert (kind(1), kind(20)) == (few, many)


def test_nobody_is_called_noise_for_a_few_marks() -> None:
    crowd = SpanHabits(exact=800, marks=1000)

    def kind(own: SpanHabits) -> str:
        return _kind(200.0, 0.01, 1.0, own, crowd, {}, own.share("precision"), 0.5, marks_spans=True)

    assert kind(SpanHabits(exact=1, missed=9, marks=4, invented=3)) == "too few labels"
    assert kind(SpanHabits(exact=2, missed=98, marks=80, invented=78)) == "noise"


def test_a_result_shows_itself_in_a_notebook(model: BSC) -> None:
    shown = model.result_._repr_html_()
    assert "ana" in shown
    assert shown.count("<mark") >= 3
    assert "<script" not in shown
    hostile = Corpus([Document("<b>", ("<i>", "x"), {"<u>": ("B-<s>", "O"), "b": ("B-<s>", "O")})])
    result = bsc("bsc-cm", max_iter=2).fit(hostile).result_
    for text in (result._repr_html_(), result[0]._repr_html_()):
        assert not re.findall(r"<[ius]>|<b>(?!The|bsc|&lt;)", text)


def test_notebook_view_keeps_the_text(tmp_path: Path) -> None:
    spans = [{"start": 2, "end": 8, "label": "PER"}]
    line = {"id": "1", "text": "  Ada Ng (who?) sang", "annotations": {"a": spans, "b": spans}}
    (tmp_path / "c.jsonl").write_text(json.dumps(line))
    shown = bsc("bsc-cm", max_iter=2).fit(quorate.read(tmp_path / "c.jsonl")).result_[0]._repr_html_()
    plain = re.sub(r"<[^>]*>", "", shown.split("<br>")[1])
    assert re.sub(r" PER \d\.\d\d", "", plain) == "  Ada Ng (who?) sang"


def test_figures_of_annotators(model: BSC) -> None:
    result = model.result_
    figure = result.plot_annotators(groups=3)
    assert len(figure.axes) == 3 * 9
    image = np.asarray(figure.axes[0].get_images()[0].get_array())
    assert image.sum(axis=1) == pytest.approx(np.ones(9))
    assert len(result.plot_annotators(name="ana").axes) == 9
    assert len(annotators_figure(result.annotators, result.tagset, groups=2, previous=["O"], bars=True).axes) == 2
    with pytest.raises(SettingsError, match="no annotator is called 'zoe'"):
        result.plot_annotators(name="zoe")
    with pytest.raises(SettingsError, match="no previous label is called 'B-X'"):
        annotators_figure(result.annotators, result.tagset, previous=["B-X"])


def test_figures_of_a_document_and_of_the_fit(model: BSC, sample: Corpus) -> None:
    figure = model.result_.plot_document("s003")
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert {*sample["s003"].tokens, *sample["s003"].annotations, "consensus", "gold"} <= texts
    trace = model.result_.plot_trace()
    assert trace.axes[0].lines[0].get_ydata() == pytest.approx(model.trace_.bounds)
    with pytest.raises(SettingsError, match="no trace"):
        quorate.aggregate(sample, "mv").plot_trace()


@pytest.mark.parametrize("kind", ["pdf", "png", "svg"])
def test_figures_are_saved_alike_every_time(model: BSC, tmp_path: Path, kind: str) -> None:
    for name in ("one", "two"):
        save(model.result_.plot_annotators(groups=2), tmp_path / f"{name}.{kind}")
    assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()
    with pytest.raises(SettingsError, match="not a figure's name"):
        save(model.result_.plot_trace(), tmp_path / "figure.gif")


def test_dollar_signs_are_no_formulas(tmp_path: Path) -> None:
    documents = [Document("$a$", ("$x^", "$$", "_"), {"$k$": ("B-$y$", "O", "O"), "b": ("B-$y$", "O", "O")})]
    result = bsc("bsc-cm", max_iter=2).fit(Corpus(documents)).result_
    save(result.plot_document(0), tmp_path / "d.png")
    save(result.plot_annotators(name="$k$"), tmp_path / "a.png")
