"""The report in a real browser: Chromium, driven by Playwright. Skipped where either is missing, but not in CI."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import quorate
from by_name import bsc
from quorate import BSC, Corpus, Document
from quorate.audit.sentences import Outcome, headline, notes
from quorate.formats import read_known
from quorate.formats.known_layers import read_settled_layers
from quorate.report import write_layered_report, write_report
from simulated_crowds import every_kind

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_ATTACK = "<script>window.attacked = true</script><img src=x onerror='window.attacked = true'>"


Open = Callable[..., "Page"]


def outside(url: str) -> list[str]:
    """The address, if it is not of this machine's own files."""
    return [] if url.startswith(("file:", "data:", "blob:")) else [url]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open a file; whatever goes to the console as an error, or to the network, fails the test."""
    contexts, complaints = [], []

    def go(path: Path, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:", "blob:")) else complaints.append(request.url)
            ),
        )
        page.goto(path.as_uri())
        page.wait_for_selector("#fit h2")
        return page

    yield go
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture(scope="module")
def model(sample: Corpus) -> BSC:
    return bsc("bsc-seq", max_iter=8).fit(sample)


@pytest.fixture(scope="module")
def report(model: BSC, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(model, path, title="The sample", documents=60)
    return path


def column(page: Page, number: int) -> list[str]:
    cells = page.locator(f"#annotators table.people tbody > tr:not(.detail) > *:nth-child({number})")
    return [text.strip() for text in cells.all_inner_texts()]


def test_every_section_is_there(open_page: Open, report: Path) -> None:
    page = open_page(report)
    assert page.title() == "The sample"
    titles = page.locator("main > section > h2").all_inner_texts()
    expected = [
        "Summary",
        "Annotators",
        "Documents",
        "Labels",
        "Agreement",
        "Against the vote",
        "Against gold",
        "The fit",
    ]
    assert titles == expected
    assert page.locator("#sections a").all_inner_texts() == expected
    summary = page.locator("#summary").inner_text()
    assert "The labels of fay and gil carry almost no information" in summary
    assert "hal and ida start spans late in" in summary


def test_tables_sort_by_click_and_by_key(open_page: Open, report: Path) -> None:
    page = open_page(report)
    labels = page.locator("#annotators th", has_text="Labels")
    labels.locator("button").click()
    given = [int(text.replace(",", "")) for text in column(page, 3)]
    assert given == sorted(given, reverse=True)
    assert len(set(given)) > 1
    assert labels.get_attribute("aria-sort") == "descending"
    labels.locator("button").focus()
    page.keyboard.press("Enter")
    assert [int(text.replace(",", "")) for text in column(page, 3)] == sorted(given)
    assert labels.get_attribute("aria-sort") == "ascending"
    page.locator("#annotators th", has_text="Annotator").locator("button").click()
    assert column(page, 1) == sorted(column(page, 1))


def test_an_annotator_opens_with_matrices_and_bars(open_page: Open, report: Path, model: BSC) -> None:
    page = open_page(report)
    button = page.locator("#annotators button.who", has_text="hal")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    panel = page.locator("#annotators tr.detail")
    assert panel.locator("svg[role=img]").count() == len(model.tagset_.labels)
    first = panel.locator("svg").first
    matrix = model.annotators_["hal"].matrix[0]
    shown = [int(text) for text in first.locator("g text").all_text_contents()]
    assert shown == pytest.approx([100 * v for v in matrix.ravel() if round(float(v), 3) >= 0.005], abs=0.56)
    assert f"truth O: says O {round(100 * matrix[0, 0])}%" in (first.get_attribute("aria-label") or "")
    panel.get_by_role("button", name="3D bars").click()
    assert panel.locator("svg polygon").count() > 100
    button.press("Enter")
    assert page.locator("#annotators tr.detail").count() == 0


def test_annotators_are_found_by_name_and_kind(open_page: Open, report: Path) -> None:
    page = open_page(report)
    page.fill("#people-search", "splits")
    assert column(page, 1) == ["jun"]


def test_people_models_and_rules_have_tables_of_their_own(open_page: Open, tmp_path: Path) -> None:
    write_report(BSC().fit(every_kind(200)), tmp_path / "r.html", documents=3)
    page = open_page(tmp_path / "r.html")
    section = page.locator("#annotators")
    headings = section.locator("h3").all_inner_texts()
    assert headings[:4] == ["People", "Models", "Rules", "People next to models"]
    heads = [table.locator("thead th").all_inner_texts() for table in section.locator("table.people").all()]
    assert [any("Confirmed" in name for name in names) for names in heads] == [False, False, True]
    assert [any("Same mistakes as" in name for name in names) for names in heads] == [False, True, False]
    assert "llm-c · 3 as 1." in section.locator("tr", has_text="llm-1").first.inner_text()
    page.fill("#people-search", "regex")
    assert column(page, 1) == ["regex"]
    section.locator("button.who", has_text="regex").click()
    assert "Type by type" in section.locator("tr.detail").inner_text()
    page.fill("#people-search", "")
    page.locator("#summary a", has_text="Open").first.click()
    assert section.locator("tr.detail").count() == 2


def test_groups_are_drawn_a_column_each(open_page: Open, report: Path) -> None:
    page = open_page(report)
    grid = page.locator("#annotators .group-grid")
    groups = grid.locator(".head").count()
    assert groups >= 2
    assert grid.locator("svg").count() == 3 * groups
    page.get_by_role("button", name="Show all 9 previous labels").click()
    assert grid.locator("svg").count() == 9 * groups


def test_the_least_certain_document_comes_first_and_opens(open_page: Open, report: Path, model: BSC) -> None:
    page = open_page(report)
    result = model.result_
    least = min(result, key=lambda one: one.confidence)
    card = page.locator("#doc-list .doc").first
    assert card.get_attribute("data-id") == least.document.id
    assert f"{100 * least.confidence:.0f}%" in card.locator(".sure").inner_text()
    assert card.locator(".text mark").count() == len(least.spans)
    card.locator("button.who").focus()
    page.keyboard.press("Enter")
    names = [text.split()[0] for text in card.locator(".versions tbody th").all_inner_texts()]
    assert names == ["Consensus", *sorted(least.document.annotations), "Majority", "Gold"]
    assert card.locator(".why article").count() >= len(least.spans)
    assert card.locator(".why .pull .name").count() % len(least.document.annotations) == 0


def test_why_says_what_the_probability_would_be_without_someone(open_page: Open, report: Path, model: BSC) -> None:
    one = next(one for one in sorted(model.result_, key=lambda one: one.confidence) if one.spans)
    name = sorted(one.document.annotations)[0]
    rest = {who: tags for who, tags in one.document.annotations.items() if who != name}
    again = model.combine(Corpus([replace(one.document, annotations=rest)]))[0]
    page = open_page(report)
    page.fill("#doc-search", one.document.id)
    card = page.locator("#doc-list .doc").first
    card.locator("button.who").click()
    text = card.locator(".panel").inner_text()
    now, then = ({span.bare for span in each.spans} for each in (one, again))
    assert (f"Without {name}:" in text) == (now != then)


def test_filters_filter(open_page: Open, report: Path) -> None:
    page = open_page(report)

    def shown() -> int:
        return int(page.locator("#doc-count").inner_text().split(" ")[0])

    data = json.loads(page.locator("#data").text_content() or "")
    documents = data["documents"]["list"]
    assert shown() == len(documents) == 60
    word = documents[0]["tokens"][0]
    page.fill("#doc-search", word.upper())
    wanted = [doc for doc in documents if word.lower() in (doc["id"] + " " + " ".join(doc["tokens"])).lower()]
    assert shown() == len(wanted) < 60
    page.fill("#doc-search", "no such words anywhere")
    assert shown() == 0
    page.fill("#doc-search", "")

    page.select_option("#doc-label", "WORK")
    codes = {data["tags"].index("B-WORK"), data["tags"].index("I-WORK")}
    versions = [[doc["tags"], *(tags for _, tags in doc["labels"])] for doc in documents]
    with_work = [one for one in versions if any(codes & set(tags) for tags in one)]
    assert shown() == len(with_work) < 60
    page.select_option("#doc-label", "")

    page.locator("#doc-sure").fill("70")
    assert shown() == sum(doc["confidence"] <= 0.7 for doc in documents) < 60
    page.locator("#doc-sure").fill("100")

    page.select_option("#doc-who", label="ana")
    number = [row["name"] for row in data["annotators"]["rows"]].index("ana")
    by_ana = [(doc, tags) for doc in documents for who, tags in doc["labels"] if who == number]
    assert shown() == len(by_ana) < 60
    page.check("#doc-against")
    assert shown() == sum(tags != doc["tags"] for doc, tags in by_ana)
    page.uncheck("#doc-against")
    page.select_option("#doc-who", "")

    page.check("#doc-vote")
    assert shown() == sum(doc["vote"] != doc["tags"] for doc in documents)
    page.check("#doc-gold")
    assert shown() == sum(doc["vote"] != doc["tags"] != doc["gold"] for doc in documents)


def test_a_review_is_kept_exported_and_read_back(open_page: Open, report: Path, sample: Corpus, tmp_path: Path) -> None:
    page = open_page(report)
    cards = page.locator("#doc-list .doc")
    ids = [cards.nth(n).get_attribute("data-id") for n in range(3)]
    accepted, corrected, taken = (sample[str(one)] for one in ids)

    cards.nth(0).locator("button.who").click()
    cards.nth(0).get_by_role("button", name="Accept the consensus").click()

    cards.nth(1).locator("button.who").click()
    folded = cards.nth(1).locator("button.skipped")
    if folded.count():
        folded.first.click()
    cards.nth(1).locator('button.token[data-at="0"]').click()
    page.keyboard.press("Shift+ArrowRight")
    assert cards.nth(1).locator('button.token[aria-pressed="true"]').count() == 2
    page.keyboard.press("4")  # the fourth label

    cards.nth(2).locator("button.who").click()
    name = sorted(taken.annotations)[0]
    cards.nth(2).get_by_role("button", name=f"use the version of {name}").click()

    assert "3 documents checked" in page.locator("#review-bar").inner_text()
    page.reload()
    page.locator("#review-bar", has_text="3 documents checked").wait_for()
    with page.expect_download() as download:
        page.click("#export")
    path = tmp_path / "review.jsonl"
    download.value.save_as(path)

    known = read_known(path, sample)
    assert set(known) == set(ids)
    assert known[corrected.id][:2] == ("B-WORK", "I-WORK")
    assert known[taken.id] == taken.annotations[name]
    again = quorate.aggregate(sample, known=known, max_iter=5)
    for document in (accepted, corrected, taken):
        assert tuple(again[document.id].tags) == known[document.id]
        assert again[document.id].confidence == pytest.approx(1.0)


def exported(page: Page, path: Path) -> list[dict[str, Any]]:
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(path)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_review_says_who_when_why_and_of_which_version(
    open_page: Open, model: BSC, sample: Corpus, tmp_path: Path
) -> None:
    write_report(model, tmp_path / "report.html", documents=5, version=12)
    page = open_page(tmp_path / "report.html")
    cards = page.locator("#doc-list .doc")
    for n in range(2):
        cards.nth(n).locator("button.who").click()
        cards.nth(n).get_by_role("button", name="Accept the consensus").click()
    plain = exported(page, tmp_path / "nameless.jsonl")  # a name is never required
    assert [set(line) for line in plain] == [{"id", "tokens", "tags", "time", "version"}] * 2
    cards.nth(1).get_by_label("Note").fill("Zoë: “a ship” <b>👋</b>")
    page.get_by_label("Your name").fill("Zoë 👋")
    page.reload()
    page.locator("#review-bar", has_text="2 documents checked").wait_for()
    assert page.get_by_label("Your name").input_value() == "Zoë 👋"
    first, second = exported(page, tmp_path / "review.jsonl")
    assert (first["reviewer"], first["version"], "note" in first) == ("Zoë 👋", 12, False)
    assert second["note"] == "Zoë: “a ship” <b>👋</b>"
    assert [first["time"], second["time"]] == [line["time"] for line in plain]
    found = quorate.reviews.read(tmp_path / "review.jsonl", sample)
    (reviewer,) = found.reviewers
    assert (reviewer.name, reviewer.documents) == ("Zoë 👋", 2)
    assert reviewer.last is not None
    assert reviewer.last >= (reviewer.first or reviewer.last)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget all").click()
    page.reload()
    page.wait_for_selector("#fit h2")
    cards.nth(1).locator("button.who").click()
    assert cards.nth(1).get_by_label("Note").input_value() == ""


def test_a_page_without_storage_reviews_too(open_page: Open, report: Path, tmp_path: Path) -> None:
    page = open_page(report)
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('none'); } })")
    page.reload()
    page.wait_for_selector("#fit h2")
    card = page.locator("#doc-list .doc").nth(0)
    card.locator("button.who").click()
    card.get_by_label("Note").fill("why")
    card.get_by_role("button", name="Accept the consensus").click()
    page.get_by_label("Your name").fill("ann")
    (line,) = exported(page, tmp_path / "review.jsonl")
    assert (line["reviewer"], line["note"], "version" in line) == ("ann", "why", False)


def test_what_was_kept_without_a_time_is_still_a_review(open_page: Open, report: Path, tmp_path: Path) -> None:
    page = open_page(report)
    data = json.loads(page.locator("#data").text_content() or "")
    first = data["documents"]["list"][0]
    kept = json.dumps([[first["id"], [data["tags"][code] for code in first["tags"]]]])
    page.evaluate("([name, kept]) => localStorage.setItem(name, kept)", ["quorate-review-" + data["digest"], kept])
    page.reload()
    page.locator("#review-bar", has_text="1 document checked").wait_for()
    (line,) = exported(page, tmp_path / "review.jsonl")
    assert set(line) == {"id", "tokens", "tags"}


@pytest.fixture(scope="module")
def drawn(model: BSC) -> quorate.audit.Plan:
    return quorate.audit.plan(model.result_, 12, seed=3)  # nothing at the beginning of the second document


@pytest.fixture(scope="module")
def to_check(model: BSC, drawn: quorate.audit.Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "report.html"
    write_report(model, path, documents=5, audit=drawn)
    return path


def test_a_plan_says_on_the_page_what_it_promises(
    open_page: Open, model: BSC, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a sequential plan too, and no number where the interval is so wide that it says next to nothing."""
    drawn = quorate.audit.plan(model.result_, 30, sequential=True)
    write_report(model, tmp_path / "enough.html", documents=1, audit=drawn)
    text = open_page(tmp_path / "enough.html").locator(".to-check").inner_text()
    assert f"F1 to about ± {100 * drawn.expected_half_width:.0f} points, if confidence is right" in text
    monkeypatch.setattr("quorate.report.audits.TELLS_LITTLE", 0.0)
    write_report(model, tmp_path / "few.html", documents=1, audit=drawn)
    text = open_page(tmp_path / "few.html").locator(".to-check").inner_text()
    assert "but so few documents say almost nothing about F1 (draw more: quorate audit plan -n)." in text
    assert "±" not in text


def test_an_audit_is_checked_exported_and_read_back(
    open_page: Open, to_check: Path, model: BSC, drawn: quorate.audit.Plan, tmp_path: Path
) -> None:
    """By the keyboard alone: left as it is, corrected, marked; kept over a reload; a result of what is exported."""
    page = open_page(to_check)
    cards = page.locator("#doc-list .doc")
    assert cards.count() == 5
    low, high = (f"{100 * end:.1f}" for end in drawn.f1_without_mistakes[1:])
    assert f"if they find no mistake, from {low} to {high}." in page.locator(".to-check").inner_text()
    page.get_by_role("button", name="Check the audit's documents (12)").press("Enter")
    assert [card.get_attribute("data-id") for card in cards.all()] == drawn.ids
    assert not page.locator("#documents .toolbar").is_visible()
    assert page.locator("#doc-count").inner_text() == "0 of 12 checked"
    assert page.locator("#export").is_disabled()

    cards.nth(0).locator("button.mark-checked").press("Enter")
    assert cards.nth(0).locator(".flag.done").inner_text() == "✓ checked, right"
    is_next = "document.activeElement.closest('.doc').dataset.id"
    assert page.evaluate(is_next) == drawn.ids[1]

    cards.nth(1).locator("button.who").press("Enter")
    if (folded := cards.nth(1).locator("button.skipped")).count():
        folded.first.press("Enter")
    cards.nth(1).locator('button.token[data-at="0"]').press("Enter")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("4")
    bar = page.locator("#review-bar")
    assert "1 of 12 checked, 0 corrected; 1 corrected but not marked." in bar.inner_text()
    cards.nth(1).get_by_role("button", name="right as corrected").first.press("Enter")
    assert "2 of 12 checked, 1 corrected." in bar.inner_text()
    cards.nth(0).get_by_role("button", name="not checked after all").press("Enter")
    assert page.locator("#doc-count").inner_text() == "1 of 12 checked"
    assert page.evaluate(is_next) == drawn.ids[0]

    page.reload()
    page.get_by_role("button", name="Check the audit's documents (12)").click()
    assert page.locator("#doc-count").inner_text() == "1 of 12 checked"
    for _ in range(11):  # focus goes on by itself
        page.locator("button.mark-checked").first.focus()
        page.keyboard.press("Enter")
    assert page.locator("#doc-count").inner_text() == "12 of 12 checked"
    assert page.evaluate("document.activeElement.id") == "export"
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "corrections.jsonl"
    download.value.save_as(tmp_path / "corrections.jsonl")
    assert all("time" in json.loads(line) for line in (tmp_path / "corrections.jsonl").read_text().splitlines())
    page.get_by_role("button", name="Check the audit's documents (12)").click()
    assert cards.count() == 5
    assert page.locator("#documents .toolbar").is_visible()

    drawn.write(tmp_path / "audit.jsonl")
    model.result_.write(tmp_path / "consensus.jsonl")
    found = quorate.audit.result(
        tmp_path / "consensus.jsonl", tmp_path / "corrections.jsonl", plan=tmp_path / "audit.jsonl"
    )
    assert found.n == 12
    assert [name for name in drawn.ids if found.truth[name] != tuple(model.result_[name].tags)] == [drawn.ids[1]]
    assert found.truth[drawn.ids[1]][:2] == ("B-WORK", "I-WORK")


@pytest.mark.parametrize("scheme", ["bioes", "io", "plain"])
def test_documents_left_as_they_are_come_back_as_they_are(open_page: Open, tmp_path: Path, scheme: str) -> None:
    tags = {"bioes": ("B-X", "E-X", "S-Y", "O"), "io": ("I-X", "I-X", "O", "I-Y"), "plain": ("N", "V", "N", "N")}[
        scheme
    ]
    documents = [Document(f"d <{n}>", tuple("abcd"), {"ann": tags, "bob": tags}) for n in range(3)]
    model = bsc("bsc-cm", max_iter=3, scheme=scheme).fit(Corpus([*documents, Document("empty", (), {"ann": ()})]))
    drawn = quorate.audit.plan(model.result_, 4)
    write_report(model, tmp_path / "r.html", documents=1, audit=drawn)
    page = open_page(tmp_path / "r.html")
    page.click("#check-audit")
    for _ in range(4):
        page.locator("button.mark-checked").first.click()
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(tmp_path / "corrections.jsonl")
    drawn.write(tmp_path / "audit.jsonl")
    found = quorate.audit.result(model.result_, tmp_path / "corrections.jsonl", plan=tmp_path / "audit.jsonl")
    assert found.f1.value == 1
    assert {name: tuple(model.result_[name].tags) for name in drawn.ids} == found.truth


def test_what_was_marked_and_unmarked_is_not_known(
    open_page: Open, to_check: Path, drawn: quorate.audit.Plan, tmp_path: Path
) -> None:
    """A mark that is taken back leaves nothing for ``--known``; a correction stays, also over a reload."""
    page = open_page(to_check)
    page.click("#check-audit")
    cards = page.locator("#doc-list .doc")
    cards.nth(1).locator("button.who").click()
    if (folded := cards.nth(1).locator("button.skipped")).count():
        folded.first.click()
    cards.nth(1).locator('button.token[data-at="0"]').click()
    page.keyboard.press("4")
    for n in (0, 1, 2):
        cards.nth(n).locator("button.mark-checked").first.click()
    for n in (0, 1):
        cards.nth(n).get_by_role("button", name="not checked after all").click()
    for again in (False, True):
        if again:
            page.reload()
        else:
            page.click("#check-audit")
        page.locator("#review-bar").filter(has_text="2 documents checked, 1 corrected.").wait_for()
        with page.expect_download() as download:
            page.click("#export")
        download.value.save_as(tmp_path / "review.jsonl")
        lines = (tmp_path / "review.jsonl").read_text().splitlines()
        assert {json.loads(line)["id"] for line in lines} == set(drawn.ids[1:3])


def test_looks_are_promised_for_each_interval(open_page: Open, model: BSC, sample: Corpus, tmp_path: Path) -> None:
    drawn = quorate.audit.plan(model.result_, 40, sequential=True)
    audit = quorate.audit.result(model.result_, {name: sample[name].gold or () for name in drawn.ids}, plan=drawn)
    write_report(model, tmp_path / "r.html", audit=audit, documents=3)
    text = open_page(tmp_path / "r.html").locator("#audit").inner_text()
    assert "Guaranteed however often you look: each interval holds, with 90 % confidence." in text


def test_a_checked_audit_has_a_section(open_page: Open, sample: Corpus, tmp_path: Path) -> None:
    model = BSC().fit(sample)
    drawn = quorate.audit.plan(model.result_, 40)
    audit = quorate.audit.result(model.result_, {name: sample[name].gold or () for name in drawn.ids}, plan=drawn)
    write_report(model, tmp_path / "r.html", audit=audit, documents=3)
    page = open_page(tmp_path / "r.html", viewport={"width": 390, "height": 844}, is_mobile=True)
    section = page.locator("#audit")
    text = section.inner_text()
    assert "A person checked 40 of 320 documents" in text
    assert f"About {audit.more_to_halve} more documents would make the intervals half as wide." in text
    value, low, high = (f"{100 * number:.1f}" for number in audit.f1)
    assert f"{value} ({low}–{high})" in section.locator("tbody tr").first.inner_text()
    assert section.locator("figure").count() == 3
    assert page.locator("#check-audit").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert f"{low} to {high}, guaranteed" in page.locator("#summary .figures").inner_text()
    assert f"{headline(Outcome.of(audit))}." in text
    assert all(line in text for line in notes(Outcome.of(audit)))


def test_marking_cuts_what_it_overlaps(open_page: Open, tmp_path: Path) -> None:
    said = {"ann": ("B-X", "I-X", "I-X", "I-X", "O"), "bob": ("B-X", "I-X", "I-X", "I-X", "O"), "cat": ("O",) * 5}
    documents = [Document(f"d{n}", ("a", "b", "c", "d", "e"), said) for n in range(4)]
    path = tmp_path / "report.html"
    corpus = Corpus(documents)
    write_report(bsc("bsc-cm", max_iter=3).fit(corpus), path)
    page = open_page(path)
    card = page.locator("#doc-list .doc").first
    card.locator("button.who").click()
    card.locator('button.token[data-at="1"]').click()
    card.get_by_role("button", name="No span").click()
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(tmp_path / "review.jsonl")
    [tags] = read_known(tmp_path / "review.jsonl", corpus).values()
    assert tags == ("B-X", "O", "B-X", "I-X", "O")


def test_text_stays_text(open_page: Open, tmp_path: Path) -> None:
    hostile = [_ATTACK, "</script>", "<b>", "&amp;", "\u2028", "'\"", "{{data}}", "O'Neil"]
    names = {"<i>eve</i>": ("B-<u>", *["O"] * 7), "__proto__": ("O", "B-<u>", *["O"] * 6), "bob": ("B-<u>", *["O"] * 7)}
    documents = [Document(f"{_ATTACK}{n}", tuple(hostile), names, tuple(["O"] * 8)) for n in range(3)]
    path = tmp_path / "report.html"
    write_report(bsc("bsc-cm", max_iter=3).fit(Corpus(documents)), path, title=_ATTACK)
    page = open_page(path)
    page.locator("#doc-list button.who").first.click()
    page.locator("#annotators button.who").first.click()
    assert page.evaluate("window.attacked") is None
    assert page.title() == _ATTACK
    assert _ATTACK in page.locator("#doc-list .text").first.inner_text()
    assert page.locator("main b", has_text="eve").count() == 0
    assert "<i>eve</i>" in page.locator("#annotators").inner_text()
    assert page.locator("main img, main script, main i:has-text('eve')").count() == 0


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_colours_follow_the_system_and_the_button(open_page: Open, report: Path, scheme: Any) -> None:
    page = open_page(report, color_scheme=scheme)

    def is_dark() -> bool:
        rgb = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in rgb.removeprefix("rgb(").removesuffix(")").split(",")) < 300

    assert is_dark() == (scheme == "dark")
    page.click("#theme")
    assert not is_dark()
    page.click("#theme")
    assert is_dark()


@pytest.mark.parametrize("which", ["report", "to_check"])
def test_a_phone_scrolls_one_way_only(open_page: Open, which: str, request: pytest.FixtureRequest) -> None:
    page = open_page(request.getfixturevalue(which), viewport={"width": 390, "height": 844}, is_mobile=True)
    if which == "to_check":
        page.click("#check-audit")
    page.locator("#doc-list button.who").first.click()
    page.locator("#annotators button.who").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_it_prints_dark_on_light(open_page: Open, report: Path) -> None:
    page = open_page(report, color_scheme="dark")
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.sections')).display") == "none"


_CONTRAST = """(names) => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (name) => {
    canvas.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (colour) => colour.map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const paper = light(rgb("--paper"));
  const ratio = (ink) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  return names.map((name) => ratio(light(rgb(name))));
}"""


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_text_can_be_told_from_its_ground(open_page: Open, report: Path, scheme: Any) -> None:
    names = ["--ink", "--soft", "--accent", "--good", "--bad"]
    ratios = open_page(report, color_scheme=scheme).evaluate(_CONTRAST, names)
    assert min(ratios) >= 4.5, dict(zip(names, ratios, strict=True))


@pytest.mark.parametrize("method", ["mv", "bsc-cm"])
def test_plain_labels_without_gold(open_page: Open, tmp_path: Path, method: str) -> None:
    said = {"ann": ("NOUN", "VERB"), "bob": ("NOUN", "NOUN"), "cat": ("VERB", "VERB")}
    corpus = Corpus([Document(str(n), (f"w{n}", "x"), said) for n in range(6)])
    path = tmp_path / "report.html"
    write_report(quorate.api.estimator(method).fit(corpus), path)
    page = open_page(path)
    assert page.locator("#calibration").count() == 0
    assert page.locator("#vote").count() == (method != "mv")
    card = page.locator("#doc-list .doc").first
    card.locator("button.who").click()
    card.locator('button.token[data-at="1"]').click()
    page.keyboard.press("1")
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(tmp_path / "review.jsonl")
    [tags] = read_known(tmp_path / "review.jsonl", corpus).values()
    assert tags == ("NOUN", "NOUN")


def test_character_text_keeps_its_blanks(open_page: Open, tmp_path: Path) -> None:
    line = {
        "id": "1",
        "text": "  Ada\n  Ng (who?)  sang. ",
        "annotations": {"a": [{"start": 2, "end": 10, "label": "PER"}]},
    }
    line["annotations"]["b"] = line["annotations"]["a"]  # type: ignore[index]
    (tmp_path / "crowd.jsonl").write_text(json.dumps(line) + "\n")
    path = tmp_path / "report.html"
    write_report(bsc("bsc-cm", max_iter=2).fit(quorate.read(tmp_path / "crowd.jsonl")), path)
    shown = open_page(path).locator("#doc-list .text").text_content() or ""
    assert shown.replace("PER", "").split("%")[0].startswith("  Ada\n  Ng")
    assert shown.endswith(" (who?)  sang. ")


def test_without_gold_the_summary_has_agreement_and_how_to_know_f1(open_page: Open, tmp_path: Path) -> None:
    bare = Corpus([replace(one, gold=None) for one in quorate.sample().documents[:40]])
    write_report(bsc("bsc-cm", max_iter=3).fit(bare), tmp_path / "report.html")
    summary = open_page(tmp_path / "report.html").locator("#summary")
    agreement = f"Agreement {quorate.score.token_alpha(bare):.2f} (Krippendorff's alpha)"
    command = "quorate audit plan consensus.jsonl -n 30 -o audit.jsonl"
    assert summary.locator(".how-good").inner_text() == f"{agreement}; F1 unknown: {command}"
    assert "Confidence is an estimate of the model: too high where annotators share mistakes." in summary.inner_text()


def test_odd_documents(open_page: Open, tmp_path: Path) -> None:
    documents = [
        Document("empty", (), {"a": ()}),
        Document("bare", ("x", "y")),
        Document("soft", ("x", "y"), {"a": ({"B-X": 0.6, "O": 0.4}, "O"), "b": ("B-X", None)}, ("B-X", None)),
        Document("gold only", ("z",), {"a": ("O",)}, ("B-NEW",)),
    ]
    model = bsc("bsc-seq", max_iter=3).fit(Corpus(documents))
    write_report(model, tmp_path / "report.html")
    page = open_page(tmp_path / "report.html")
    cards = page.locator("#doc-list .doc")
    assert cards.count() == 4
    for card in range(4):
        cards.nth(card).locator("button.who").click()
    assert page.locator("#doc-list .panel").count() == 4


def test_an_empty_page_of_documents(open_page: Open, model: BSC, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(model, path, documents=0)
    page = open_page(path)
    assert page.locator("#doc-list .doc").count() == 0


@pytest.mark.realdata
@pytest.mark.no_cover
def test_the_ner_report_opens(open_page: Open, ner: Corpus, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(bsc("bsc-seq", max_iter=5).fit(ner), path)
    ended = "performance.getEntriesByType('navigation')[0].loadEventEnd"
    assert open_page(path).evaluate(ended) > 0


@pytest.fixture(scope="module")
def layered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A report in layers, and the crowd that it is about."""
    folder = tmp_path_factory.mktemp("layered")
    both = [{"start": 0, "end": 8, "label": "ORG"}, {"start": 0, "end": 4, "label": "LOC"}]
    lines = [
        {"id": f"d{n}", "text": f"Bath Spa won {n} times", "annotations": dict.fromkeys(("ann", "bob"), both)}
        for n in range(8)
    ]
    (folder / "crowd.jsonl").write_text("\n".join(map(json.dumps, lines)))
    model = quorate.LayeredModel(bsc("bsc-cm")).fit(quorate.read_layers(folder / "crowd.jsonl"))
    write_layered_report(model, folder / "report.html", title="Nested")
    return folder / "report.html", folder / "crowd.jsonl"


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_layers_are_tabs_that_the_keyboard_reaches(browser: Browser, layered: tuple[Path, Path], colours: Any) -> None:
    context = browser.new_context(color_scheme=colours, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(15_000)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.extend(outside(request.url)))
    page.goto(layered[0].as_uri())
    tabs = page.get_by_role("tab")
    assert tabs.all_inner_texts() == ["LOC", "ORG"]
    first = page.frame_locator("#layer-0")
    first.locator("#fit h2").wait_for()
    assert first.locator("h1").inner_text() == "Nested: LOC"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 27)"
    assert dark is (colours == "dark")
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "ORG"
    assert page.locator("[aria-selected=true]").inner_text() == "ORG"
    second = page.frame_locator("#layer-1")
    second.locator("#fit h2").wait_for()
    assert not page.locator("#layer-0").is_visible()
    second.locator("#sections a", has_text="Documents").click()  # a place in this page, not in the one around it
    assert second.locator("h1").inner_text() == "Nested: ORG"

    second.locator("#documents button.who").first.click()
    second.get_by_role("button", name="Accept the consensus").first.click()
    assert "--layers auto --known" in second.locator("#review-bar").inner_text()
    with page.expect_download() as download:
        second.locator("#export").click()
    review = download.value.path()
    line = json.loads(Path(review).read_text())
    assert line["layer"] == "ORG"
    layers, settled = read_settled_layers(review, quorate.read_layers(layered[1]))
    known = {name: one.tags for name, one in settled.items()}
    assert list(layers) == ["LOC", "ORG"]
    assert known["LOC"] == {}
    assert known["ORG"][line["id"]][:2] == ("B-ORG", "I-ORG")
    context.close()
    assert not complaints
