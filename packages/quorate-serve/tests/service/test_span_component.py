"""``<quorate-spans>`` in a real browser: what people do with mouse, finger and keys, and what comes out of it."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from service_pages import Open

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = "Angela Merkel met the Bank of England in London.\n\nShe left on Tuesday."
FAMILY, FLAG, ACCENT, HAND = "👩‍👩‍👧", "🇩🇪", "e\u0301", "👋🏽"
LABELS = ["PER", "ORG", "LOC", "DATE"]

SET = "(given) => Object.assign(document.querySelector('quorate-spans'), given)"
SPANS = "() => document.querySelector('quorate-spans').spans"
CHANGES = """() => {
  window.changes = [];
  document.addEventListener("change", ({ detail }) => window.changes.push(detail.spans));
}"""
PLACE = """([start, end]) => {
  const walker = document.createTreeWalker(document.querySelector("quorate-spans .text"), NodeFilter.SHOW_TEXT);
  const boxes = [];
  let seen = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest(".name")) continue;
    for (let at = 0; at < node.length; at++, seen++) {
      if (seen < start || seen >= end) continue;
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      boxes.push(range.getBoundingClientRect());
    }
    const line = node.parentElement.closest(".line");
    if (!walker.nextNode() || walker.currentNode.parentElement.closest(".line") !== line) seen += 1;
    walker.currentNode = node;
  }
  return [boxes[0], boxes.at(-1)].map((box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2]);
}"""
"""Where the first and the last letter of a stretch of the text are in the window; offsets are UTF-16 units."""


def tokens_of(text: str) -> list[list[int]]:
    return [[found.start(), found.end()] for found in re.finditer(r"\w+|[^\w\s]", text)]


def span(words: str, label: str, text: str = TEXT) -> dict[str, Any]:
    """A span of the text, in code points, which are what Python counts."""
    start = text.index(words)
    return {"start": start, "end": start + len(words), "label": label}


def show(page: Page, text: str = TEXT, **more: Any) -> None:
    labels = [{"name": name} for name in LABELS]
    page.evaluate(SET, {"text": text, "tokens": tokens_of(text), "labels": labels, "spans": [], **more})
    page.wait_for_function("() => document.querySelector('quorate-spans .label')")


def spans(page: Page) -> list[dict[str, Any]]:
    return list(page.evaluate(SPANS))


def words(page: Page, text: str = TEXT) -> list[tuple[str, str]]:
    """What is marked: the words, cut out by Python, and the label."""
    return [(text[one["start"] : one["end"]], one["label"]) for one in spans(page)]


def at(page: Page, part: str, text: str = TEXT) -> list[list[float]]:
    start = len(text[: text.index(part)].encode("utf-16-le")) // 2
    found: list[list[float]] = page.evaluate(PLACE, [start, start + len(part.encode("utf-16-le")) // 2])
    return found


def stroke(page: Page, part: str, text: str = TEXT, *, back: bool = False) -> None:
    """Draw the mouse over a part of the text."""
    start, end = at(page, part, text)
    if back:
        start, end = end, start
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + end[0]) / 2, start[1])
    page.mouse.move(*end)
    page.mouse.up()


def click(page: Page, part: str, text: str = TEXT) -> None:
    page.mouse.click(*at(page, part, text)[0])


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def label(page: Page, name: str) -> None:
    page.locator("quorate-spans .label", has_text=name).click()


def heard(page: Page) -> str:
    """What a screen reader was told last."""
    return page.locator("quorate-spans [role=status]").inner_text()


# ---- mouse


@pytest.mark.parametrize("back", [False, True])
def test_words_are_selected_whole_and_marked_with_a_label(open_page: Open, back: bool) -> None:
    page = open_page()
    show(page)
    page.evaluate(CHANGES)
    stroke(page, "gela Mer", back=back)
    assert spans(page) == []
    label(page, "PER")
    assert spans(page) == [{"start": 0, "end": 13, "label": "PER"}]
    assert page.evaluate("() => window.changes") == [spans(page)]
    assert heard(page) == "Marked PER: “Angela Merkel”"
    assert page.locator(".name").get_attribute("aria-label") == "PER: Angela Merkel"


def test_with_a_label_in_hand_one_gesture_marks(open_page: Open) -> None:
    page = open_page()
    show(page)
    label(page, "LOC")
    assert page.locator(".label.brush").inner_text().split() == ["3", "LOC"]
    stroke(page, "England")
    click(page, "London")
    label(page, "PER")
    stroke(page, "Angela Merkel")
    assert words(page) == [("Angela Merkel", "PER"), ("England", "LOC"), ("London", "LOC")]
    label(page, "PER")  # put down
    click(page, "Tuesday")
    assert len(spans(page)) == 3
    assert page.locator(".label.brush").count() == 0


def test_a_span_is_clicked_renamed_reshaped_and_removed(open_page: Open) -> None:
    page = open_page()
    show(page, spans=[span("Bank of England", "LOC")])
    click(page, "of")
    label(page, "ORG")
    assert words(page) == [("Bank of England", "ORG")]
    page.get_by_role("button", name="Begin one earlier").click()
    page.get_by_role("button", name="End one later").click()
    assert words(page) == [("the Bank of England in", "ORG")]
    page.get_by_role("button", name="Begin one later").click()
    page.get_by_role("button", name="End one earlier").click()
    assert words(page) == [("Bank of England", "ORG")]
    page.get_by_role("button", name="Remove the span").click()
    assert spans(page) == []
    page.get_by_role("button", name="Undo").click()
    assert words(page) == [("Bank of England", "ORG")]
    page.get_by_role("button", name="Redo").click()
    assert spans(page) == []


@pytest.mark.parametrize(
    ("edge", "to", "expected"),
    [
        ("end", "London", "Bank of England in London"),
        ("end", "Bank", "Bank"),
        ("end", "Angela", "Bank"),
        ("start", "Merkel", "Merkel met the Bank of England"),
        ("start", "London", "England"),
    ],
)
def test_the_ends_of_a_span_are_dragged(open_page: Open, edge: str, to: str, expected: str) -> None:
    page = open_page()
    show(page, spans=[span("Bank of England", "ORG")])
    page.locator(".name").click()
    box = page.evaluate(
        """(edge) => {
          const grip = document.querySelector(`.grip.${edge}`), box = grip.getBoundingClientRect();
          return [box.left, box.top + parseFloat(getComputedStyle(grip, "::before").height) / 2];
        }""",
        edge,
    )
    page.mouse.move(*box)
    page.mouse.down()
    page.mouse.move(*at(page, to)[0], steps=3)
    page.mouse.up()
    assert words(page) == [(expected, "ORG")]


def test_clicks_go_from_the_inner_span_to_the_outer_and_to_the_word(open_page: Open) -> None:
    page = open_page()
    show(page, spans=[span("Bank of England", "ORG"), span("England", "LOC")])
    seen = []
    for _ in range(4):
        click(page, "England")
        seen.append(page.locator("quorate-spans .what").inner_text())
    assert seen == ["LOC: “England”", "ORG: “Bank of England”", "“England”", "LOC: “England”"]
    page.mouse.click(at(page, "Angela")[0][0], at(page, "Angela")[0][1] + 300)  # outside of the text
    text = page.locator("quorate-spans .text").bounding_box()
    assert text is not None
    page.mouse.click(text["x"] + text["width"] - 4, text["y"] + text["height"] - 4)  # in it, on nothing
    assert page.locator("quorate-spans .what").inner_text() == "Select text, then a label"


def test_the_same_span_is_never_there_twice(open_page: Open) -> None:
    page = open_page()
    show(page, spans=[span("England", "LOC"), span("England", "ORG")])
    stroke(page, "England")
    label(page, "LOC")
    assert len(spans(page)) == 2
    press(page, "2")  # it would become the other
    assert [one["label"] for one in spans(page)] == ["LOC", "ORG"]
    assert heard(page) == "“England” is ORG already"


# ---- keys alone


def test_everything_works_without_a_mouse(open_page: Open) -> None:
    page = open_page()
    show(page)
    page.evaluate("() => document.querySelector('main').focus()")
    press(page, "Tab")
    assert page.evaluate("() => document.activeElement.className") == "text"
    press(page, "ArrowRight", "Shift+ArrowRight", "1")
    assert words(page) == [("Angela Merkel", "PER")]
    press(page, *["ArrowRight"] * 3, "Shift+ArrowRight", "Shift+ArrowRight", "2")  # met, the, Bank …
    assert words(page)[1:] == [("Bank of England", "ORG")]
    press(page, "ArrowRight", "ArrowLeft", "3")  # nested in it
    assert words(page)[1:] == [("Bank of England", "ORG"), ("England", "LOC")]
    assert heard(page) == "Marked LOC: “England”"
    press(page, "[", "]", "{", "}")
    assert words(page)[2] == ("England", "LOC")
    press(page, "Alt+ArrowRight", "Alt+Shift+ArrowLeft")
    assert words(page)[2] == ("of England in", "LOC")
    press(page, "Alt+ArrowLeft", "Alt+Shift+ArrowRight", "Delete")
    assert words(page)[1:] == [("Bank of England", "ORG")]
    press(page, "Control+z")
    assert len(spans(page)) == 3
    press(page, "Control+Shift+Z")
    assert len(spans(page)) == 2
    press(page, "Control+End", "ArrowLeft", "4")
    assert words(page)[2] == ("Tuesday", "DATE")
    press(page, "Home", "3")
    assert words(page)[2] == ("She", "LOC")


def test_tab_walks_through_spans_and_leaves_at_the_end(open_page: Open) -> None:
    page = open_page()
    marked = [span("Angela Merkel", "PER"), span("Bank of England", "ORG"), span("England", "LOC")]
    show(page, spans=marked)
    page.locator("quorate-spans .text").focus()
    seen = []
    for _ in range(3):
        press(page, "Tab")
        seen.append(heard(page))
    assert seen == ["PER: “Angela Merkel”, 1 of 3", "ORG: “Bank of England”, 2 of 3", "LOC: “England”, 3 of 3"]
    press(page, "Shift+Tab")
    assert heard(page).startswith("ORG")
    press(page, "Tab", "Tab")
    assert page.evaluate("() => document.activeElement.className") == "label"
    page.locator("quorate-spans .text").focus()
    press(page, "Escape", "Escape", "Escape", "Tab")  # out of the span, of the selection, of the text
    assert page.evaluate("() => document.activeElement.className") == "label"


def test_enter_goes_outwards_and_escape_leaves_room_for_a_second_label(open_page: Open) -> None:
    page = open_page()
    show(page, spans=[span("Bank of England", "ORG"), span("England", "LOC")])
    page.locator("quorate-spans .text").focus()
    press(page, *["ArrowRight"] * 7, "Enter")
    assert page.locator("quorate-spans .what").inner_text() == "LOC: “England”"
    press(page, "Enter")
    assert page.locator("quorate-spans .what").inner_text() == "ORG: “Bank of England”"
    press(page, "Escape", "1")
    assert ("Bank of England", "PER") in words(page)
    assert len(spans(page)) == 3


def test_up_and_down_go_by_lines(open_page: Open) -> None:
    page = open_page()
    show(page)
    page.locator("quorate-spans .text").focus()
    press(page, "ArrowRight", "ArrowDown", "1")
    assert words(page) == [("She", "PER")]
    press(page, "ArrowUp", "2")
    assert words(page)[0] == ("Angela", "ORG")
    press(page, "ArrowUp", "ArrowUp", "End", "3")
    assert words(page)[1] == (".", "LOC")


def test_the_help_names_every_key_and_gives_the_focus_back(open_page: Open) -> None:
    page = open_page()
    show(page, labels=[{"name": "PER", "key": "x"}, {"name": "ORG"}])
    page.locator("quorate-spans .text").focus()
    press(page, "?")
    text = page.locator("quorate-spans dialog").inner_text()
    for key in (
        "X",
        "1",
        "Shift + arrows",
        "Tab",
        "Enter",
        "Delete",
        "Ctrl + Z",
        "Alt",
        "[ ]",
        "{ }",
        "Esc",
        "Home End",
    ):
        assert key in text
    press(page, "1", "Escape")
    assert spans(page) == []
    page.wait_for_selector("quorate-spans dialog", state="detached")
    assert page.evaluate("() => document.activeElement.className") == "text"
    press(page, "ArrowRight", "x")
    assert words(page) == [("Angela", "PER")]


def test_keys_are_given_in_order_and_no_two_labels_share_one(open_page: Open) -> None:
    page = open_page()
    given = [{"name": f"L{n}"} for n in range(40)]
    given[3]["key"] = "1"
    show(page, labels=given)
    keys = page.evaluate("() => document.querySelector('quorate-spans').labels.map(({ key }) => key)")
    assert keys[:9] == ["2", "3", "4", "1", "5", "6", "7", "8", "9"]
    assert keys[9:35] == list("abcdefghijklmnopqrstuvwxyz")
    assert keys[35:] == [""] * 5


def test_a_keyboard_of_another_script_marks_by_the_place_of_the_key(open_page: Open) -> None:
    page = open_page()
    show(page, labels=[{"name": "PER", "key": "p"}, {"name": "ORG"}])
    page.locator("quorate-spans .text").focus()
    press(page, "ArrowRight")
    page.evaluate(
        """() => { for (const [key, code] of [["з", "KeyP"], ["&", "Digit1"]]) document.activeElement.dispatchEvent(
                     new KeyboardEvent("keydown", { key, code, bubbles: true, cancelable: true })); }"""
    )
    assert words(page) == [("Angela", "ORG")]  # marked by the first, renamed by the second


def test_random_keys_leave_valid_spans_that_can_all_be_undone(open_page: Open) -> None:
    page = open_page()
    text = f"Ada {FAMILY} met Bob\nin (Paris) {ACCENT}te\n\nقالت أنغيلا ميركل"
    begun = [span("Bob", "PER", text)]
    chance = random.Random(5)
    keys = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "Enter", "Tab", "Delete", "Escape"]
    keys += ["Shift+ArrowRight", "Shift+ArrowLeft", "[", "]", "{", "}", "Alt+ArrowLeft", "Alt+Shift+ArrowRight"]
    keys += ["1", "2", "3", "1", "2", "3", "Control+z", "Control+y"]
    for mode in ("words", "characters"):
        show(page, text, spans=begun, mode=mode)
        for _ in range(150):
            page.locator("quorate-spans .text").focus()
            press(page, chance.choice(keys))
        page.evaluate("() => { for (let n = 0; n < 200; n++) document.querySelector('quorate-spans').redo(); }")
        now = spans(page)
        assert all(0 <= one["start"] < one["end"] <= len(text) for one in now)
        assert len({tuple(one.values()) for one in now}) == len(now)
        assert now == sorted(now, key=lambda one: (one["start"], -one["end"], one["label"]))
        page.evaluate("() => { for (let n = 0; n < 200; n++) document.querySelector('quorate-spans').undo(); }")
        assert spans(page) == begun
        page.evaluate("() => { for (let n = 0; n < 200; n++) document.querySelector('quorate-spans').redo(); }")
        assert spans(page) == now


# ---- texts


def test_offsets_are_code_points(open_page: Open) -> None:
    page = open_page()
    text = f"😀 Ada 𝔘nd {FAMILY} Bob\n{FLAG}{FLAG} {ACCENT}t{ACCENT} Zoë 日本語 {HAND}!"
    marked: list[dict[str, Any]] = [
        {"start": start, "end": end, "label": "PER"} for start, end in tokens_of(text) if text[start:end].isalpha()
    ]
    show(page, text, spans=marked)
    assert spans(page) == marked
    shown = [
        name.split(": ")[1] for name in page.locator(".name").evaluate_all("all => all.map((one) => one.ariaLabel)")
    ]
    assert shown == [text[one["start"] : one["end"]] for one in marked]
    show(page, text)
    stroke(page, "Bob", text)
    label(page, "PER")
    assert words(page, text) == [("Bob", "PER")]


@pytest.mark.parametrize("mode", ["words", "characters"])
def test_no_character_is_cut(open_page: Open, mode: str) -> None:
    page = open_page()
    text = f"a{FAMILY}b {FLAG}{FLAG} {ACCENT}t{HAND}"
    tokens = [
        [n, n + 1] for n, letter in enumerate(text) if not letter.isspace()
    ]  # as a tokenizer cuts that knows no emoji
    show(page, text, tokens=tokens, mode=mode)
    page.locator("quorate-spans .text").focus()
    for _ in range(8):
        press(page, "ArrowRight", "1")
    assert [part for part, _ in words(page, text)] == ["a", FAMILY, "b", FLAG, FLAG, ACCENT, "t", HAND]


def test_characters_can_be_marked_within_words(open_page: Open) -> None:
    page = open_page()
    show(page, mode="characters")
    stroke(page, "kel m")
    label(page, "PER")
    assert words(page) == [("kel m", "PER")]
    press(page, "}", "[")
    assert words(page) == [("rkel", "PER")]  # a blank is no end
    press(page, "Control+Home", "Shift+ArrowRight", "2")
    assert words(page)[0] == ("An", "ORG")


def test_without_tokens_the_browser_finds_the_words(open_page: Open) -> None:
    page = open_page()
    show(page, tokens=[])
    click(page, "England")
    label(page, "LOC")
    assert words(page) == [("England", "LOC")]


def test_from_right_to_left(open_page: Open) -> None:
    page = open_page()
    text = "قالت أنغيلا ميركل في برلين\nIn Berlin"
    show(page, text)
    directions = page.locator(".line").evaluate_all("all => all.map((line) => getComputedStyle(line).direction)")
    assert directions == ["rtl", "ltr"]
    page.locator("quorate-spans .text").focus()
    press(page, "ArrowLeft", "ArrowLeft", "Shift+ArrowLeft", "1")  # on is to the left
    assert words(page, text) == [("أنغيلا ميركل", "PER")]
    press(page, "Alt+ArrowLeft", "Alt+Shift+ArrowRight")
    assert words(page, text) == [("قالت أنغيلا ميركل في", "PER")]
    press(page, "Control+z", "Control+z")
    stroke(page, "برلين", text)
    label(page, "LOC")
    assert ("برلين", "LOC") in words(page, text)
    name = page.locator(".name", has_text="LOC").bounding_box()
    assert name is not None
    assert name["x"] + name["width"] <= at(page, "برلين", text)[1][0]  # after the word, which is left of it
    press(page, "Control+End", "3")
    assert ("Berlin", "LOC") in words(page, text)


OFFERED = "quorate-spans .offer:not([hidden])"


def test_a_span_that_must_not_overlap_is_offered_in_place_of_the_other(open_page: Open) -> None:
    page = open_page()
    show(page, overlaps="none", spans=[span("the Bank of England", "ORG")])
    stroke(page, "England")
    press(page, "3")
    assert words(page) == [("the Bank of England", "ORG")]
    assert (
        page.locator(OFFERED)
        .inner_text()
        .startswith("LOC “England” would overlap ORG “the Bank of England”. Spans may not overlap here.")
    )
    page.get_by_role("button", name="Leave it").click()
    assert page.locator(OFFERED).count() == 0
    assert words(page) == [("the Bank of England", "ORG")]
    press(page, "3")
    page.get_by_role("button", name="Replace it").click()
    assert words(page) == [("England", "LOC")]
    press(page, "Control+z")
    assert words(page) == [("the Bank of England", "ORG")]


def test_the_same_key_once_more_replaces_and_escape_leaves_it(open_page: Open) -> None:
    page = open_page()
    show(page, overlaps="none", spans=[span("Angela", "PER"), span("met the", "DATE")])
    stroke(page, "Merkel met the Bank")
    press(page, "2", "Escape")
    assert page.locator(OFFERED).count() == 0
    press(page, "2")
    assert page.locator(OFFERED).count() == 1
    press(page, "2")
    assert words(page) == [("Angela", "PER"), ("Merkel met the Bank", "ORG")]
    press(page, "[")  # begins a word earlier, at Merkel's first name
    assert page.locator(OFFERED).count() == 1
    press(page, "[")
    assert words(page) == [("Angela Merkel met the Bank", "ORG")]


def test_where_spans_may_nest_only_those_that_cross_are_offered(open_page: Open) -> None:
    page = open_page()
    show(page, overlaps="nested", spans=[span("the Bank of England", "ORG")])
    stroke(page, "England")
    press(page, "3")
    assert words(page) == [("the Bank of England", "ORG"), ("England", "LOC")]
    stroke(page, "England in London")
    press(page, "3")
    assert "would cross ORG" in page.locator(OFFERED).inner_text()
    press(page, "3")
    assert words(page) == [("England in London", "LOC"), ("England", "LOC")]


def test_spans_that_overlap_are_drawn_on_levels_of_their_own(open_page: Open) -> None:
    page = open_page()
    overlapping = [
        span("Angela Merkel met the", "PER"),
        span("the Bank of England", "ORG"),
        span("England in", "LOC"),
        span("Bank", "DATE"),
    ]
    show(page, spans=overlapping)
    drawn = page.locator(".piece").evaluate_all(
        "all => all.map((one) => [one.textContent, one.style.backgroundPosition.split(',').slice(0, -1)])"
    )
    assert {part: len(places) for part, places in drawn} == {
        "Angela Merkel met ": 1, "the": 2, " ": 1, "Bank": 2, " of ": 1, "England": 2, " in": 1,
    }  # fmt: skip
    for _, places in drawn:
        assert len(set(places)) == len(places)
    assert page.locator(".name").all_inner_texts() == ["PER", "DATE", "ORG", "LOC"]
    levels = page.evaluate(
        """async () => {
          const { stack } = await import("/static/spans/layout.js");
          const marks = [[0, 20], [0, 10], [0, 5], [4, 12], [30, 31]].map(([start, end]) => ({ start, end }));
          stack(marks);
          return marks.map(({ level }) => level);
        }"""
    )
    assert levels == [3, 2, 0, 1, 0]  # the shorter, the nearer


def test_line_breaks_are_kept_and_spans_go_across_them(open_page: Open) -> None:
    page = open_page()
    show(page)
    assert page.locator(".line").all_inner_texts() == TEXT.split("\n")
    stroke(page, "London.\n\nShe")
    label(page, "LOC")
    assert words(page) == [("London.\n\nShe", "LOC")]
    assert page.locator(".name").count() == 1
    show(page, "a\n", tokens=[[0, 1]], spans=[{"start": 0, "end": 2, "label": "PER"}])
    assert page.locator(".name").count() == 1


@pytest.mark.parametrize("text", ["", "   \n ", "x"])
def test_small_texts(open_page: Open, text: str) -> None:
    page = open_page()
    show(page, text)
    page.locator("quorate-spans .text").focus()
    press(page, "ArrowRight", "Shift+ArrowLeft", "ArrowDown", "Enter", "End", "[", "1", "Delete", "Control+z")
    assert words(page, text) == ([("x", "PER")] if text == "x" else [])


def test_markup_is_only_text(open_page: Open) -> None:
    page = open_page()
    attack = "<img src=x onerror='window.attacked = true'>"
    show(
        page,
        attack,
        labels=[{"name": attack, "colour": "red;}</style>"}],
        spans=[{"start": 0, "end": 4, "label": attack}],
    )
    page.locator(".name").click()
    press(page, "?")
    assert page.locator("quorate-spans img").count() == 0
    assert page.evaluate("() => window.attacked") is None
    assert page.locator(".line").inner_text().startswith("<img")


@pytest.mark.parametrize("per_line", [50, 20_000])
def test_twenty_thousand_words_stay_usable(open_page: Open, per_line: int) -> None:
    page = open_page()
    tokens = [f"word{n}" for n in range(20_000)]
    text = "".join(token + ("\n" if n % per_line == per_line - 1 else " ") for n, token in enumerate(tokens))
    marked = [span(f"word{n} word{n + 1}", "PER", text) for n in range(1, 19_900, 40) if n % per_line < per_line - 1]
    began = time.monotonic()
    show(page, text, spans=marked)
    page.locator("quorate-spans .text").focus()
    assert time.monotonic() - began < 6
    press(page, "Control+End", *["ArrowLeft"] * 3, "2")
    began = time.monotonic()
    press(page, *["ArrowLeft", "Shift+ArrowLeft", "3", "]"] * 5)
    assert time.monotonic() - began < 12
    assert len(spans(page)) == len(marked) + 6
    assert ("word19996", "ORG") in words(page, text)


# ---- what is offered, and what is not


def test_suggestions_are_drawn_only_when_set_and_are_accepted_or_dismissed(open_page: Open) -> None:
    page = open_page()
    show(page, spans=[span("London", "LOC")])
    assert page.locator(".suggested").count() == 0
    offered = [span("Angela Merkel", "PER"), span("England", "LOC"), span("Tuesday", "DATE"), span("London", "LOC")]
    page.evaluate(SET, {"suggestions": offered})
    page.wait_for_selector(".name.suggested")
    assert page.locator(".name.suggested").count() == 3  # what is marked is not suggested
    assert words(page) == [("London", "LOC")]
    page.locator(".name.suggested", has_text="PER").click()
    page.locator("quorate-spans .text").focus()
    press(page, "Tab", "2")
    press(page, "Tab", "Tab", "Delete")
    assert page.locator(".name.suggested").count() == 1  # England as LOC: what was made of it is something else
    assert words(page) == [("Angela Merkel", "PER"), ("England", "ORG"), ("London", "LOC")]


def test_a_text_that_is_read_only_shows_its_spans_and_changes_nothing(open_page: Open) -> None:
    page = open_page()
    show(page, spans=[span("London", "LOC")], suggestions=[span("England", "LOC")], readonly=True)
    assert not page.locator("quorate-spans .bar").is_visible()
    page.locator("quorate-spans .text").focus()
    press(page, "ArrowRight", "1", "Tab", "Enter", "Tab", "2", "]", "Delete", "Control+z")
    page.locator(".name.suggested").click()
    stroke(page, "Merkel")
    assert words(page) == [("London", "LOC")]
    assert page.locator(".grip").count() == 0


def test_what_was_set_before_the_element_was_known_counts(open_page: Open) -> None:
    page = open_page()
    page.evaluate(
        """() => {
          const early = document.createElement("quorate-spans");
          const made = Object.assign(document.createElement("div"), { id: "early" });
          Object.defineProperty(early, "text", { value: "Ada", configurable: true, writable: true, enumerable: true });
          made.append(early);
          document.querySelector("main").append(made);
        }"""
    )
    page.wait_for_selector("#early .line")
    assert page.locator("#early .line").inner_text() == "Ada"


def test_what_is_selected_is_copied(open_page: Open) -> None:
    page = open_page()
    show(page)
    stroke(page, "Bank of")
    copied = page.evaluate(
        """() => {
          const clipboardData = new DataTransfer();
          const event = new ClipboardEvent("copy", { clipboardData, bubbles: true, cancelable: true });
          document.activeElement.dispatchEvent(event);
          return clipboardData.getData("text/plain");
        }"""
    )
    assert copied == "Bank of"


# ---- phones, and people who cannot see


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def test_on_a_phone_fingers_do_it_and_labels_stay_within_reach(open_page: Open) -> None:
    page = open_page(**PHONE)
    text = TEXT + "\n" + "\n".join(f"Line {n} goes on for a while." for n in range(60))
    show(page, text, labels=[{"name": f"{name} of some kind"} for name in LABELS])
    bar = page.locator("quorate-spans .bar").bounding_box()
    assert bar is not None
    assert bar["y"] + bar["height"] <= 844.5
    assert bar["y"] > 600
    page.touchscreen.tap(*at(page, "Merkel")[0])
    page.locator(".label").first.tap()
    assert words(page) == [("Merkel", "PER of some kind")]
    finger = page.context.new_cdp_session(page)
    (x, y), (to, down) = at(page, "England in")
    points = [(x, y), (x + 20, y), ((x + to) / 2, (y + down) / 2), (to, down), (to, down)]
    for kind, (here, there) in zip(["touchStart", *["touchMove"] * 4], points, strict=True):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": here, "y": there}]})
        page.wait_for_timeout(60)  # a finger that flies off throws the page
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.locator(".label").nth(1).tap()
    assert words(page)[1] == ("England in", "ORG of some kind")
    sizes = page.locator("quorate-spans :is(.label, .tool, .name)").evaluate_all(
        "all => all.map((one) => { const box = one.getBoundingClientRect(); return Math.min(box.width, box.height); })"
    )
    assert min(sizes) >= 24
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.mouse.wheel(0, 2000)


Axe = Callable[["Page"], list[str]]


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, PHONE, {**PHONE, "color_scheme": "dark"}])
def test_axe_finds_nothing(open_page: Open, axe: Axe, options: dict[str, Any]) -> None:
    page = open_page(**options)
    nested = [
        span("Angela Merkel", "PER"),
        span("Bank of England", "ORG"),
        span("England", "LOC"),
        span("Tuesday", "DATE"),
    ]
    show(
        page,
        spans=nested,
        labels=[{"name": name} for name in [*LABELS, "A", "B", "C", "D", "E"]],
        suggestions=[span("She", "PER")],
    )
    page.locator(".name", has_text="PER").first.click()
    assert axe(page) == []
    press(page, "ArrowRight", "Shift+ArrowRight")
    assert axe(page) == []
    press(page, "?")
    assert axe(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_and_selected_words_can_be_read_on_every_colour(open_page: Open, scheme: str) -> None:
    """Contrast by the formula of WCAG, over what is painted below the letters: axe leaves gradients out."""
    page = open_page(color_scheme=scheme)
    labels = [{"name": f"L{n}"} for n in range(8)] + [
        {"name": "OWN", "colour": "yellow"},
        {"name": "DARK", "colour": "#000060"},
    ]
    text = " ".join(f"word{n}" for n in range(10))
    show(page, text, labels=labels, spans=[span(f"word{n}", one["name"], text) for n, one in enumerate(labels)])
    colours = page.locator(".name").evaluate_all(
        """all => {
          const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
          const paint = (...layers) => {
            for (const layer of layers) { canvas.fillStyle = layer; canvas.fillRect(0, 0, 1, 1); }
            return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
          };
          const paper = getComputedStyle(document.body).backgroundColor;
          return all.map((name) => {
            const { color, backgroundColor } = getComputedStyle(name);
            const layers = getComputedStyle(name.parentElement).backgroundImage.split(/, (?=linear|repeating)/);
            const below = layers.at(-1).replace("linear-gradient(", "").replace(/, [^,]*\\)$/, "").trim();
            if (!CSS.supports("color", below)) throw new Error(`no colour: ${below}`);
            return [paint(paper, below, backgroundColor, color), paint(paper, below, backgroundColor)];
          });
        }"""
    )

    def light(rgb: list[int]) -> float:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (value / 255 for value in rgb)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert len(colours) == 10
    for ink, ground in colours:
        bright, dim = sorted([light(ink), light(ground)], reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 4.5
