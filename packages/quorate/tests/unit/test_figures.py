"""Figures that can be read: words do not overlap, characters have a font or a warning, many annotators have room."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import quorate
from quorate import Corpus, Document, Result
from quorate.result import glyphs

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

WORDS = [
    "iiii",
    "WWWWWWWWWW",
    ",",
    "Extraordinarily-Long-Hyphenated-Name",
    "ffi",
    "met",
    ".",
    "MMMM",
    "Ltd",
] * 6


def drawn(words: list[str], name: str = "ann") -> Result:
    tags = ("B-ORGANISATION", *("O",) * (len(words) - 1))
    return quorate.aggregate(Corpus([Document("1", tuple(words), {name: tags, "bob": tags})]), "mv")


def test_words_and_labels_do_not_overlap_and_lines_break() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = drawn(WORDS).plot_document(0)
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    assert [(a, b) for n, a in enumerate(boxes) for b in boxes[:n] if a.shrunk(0.98, 0.9).overlaps(b)] == []
    width, height = figure.get_size_inches() * figure.dpi
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)
    tops = {round(box.y0) for text, box in zip(figure.axes[0].texts, boxes, strict=True) if text.get_text() == "met"}
    assert len(tops) > 2


def test_a_word_or_name_that_is_too_long_is_cut() -> None:
    figure = drawn(["W" * 400, "end"], "n" * 300).plot_document(0)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert sum(text.endswith("…") for text in texts) == 2
    assert figure.get_size_inches()[0] == 11


def test_characters_that_no_font_has_are_boxes_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(glyphs, "_others", list)
    with pytest.warns(UserWarning, match=r"no installed font has 芳, 👋: drawn as □ \(install one") as caught:
        figure = drawn(["芳", "👋\u200d👋", "Köln"]).plot_document(0)
    assert len(caught) == 1
    assert {"□", "□\u200d□", "Köln"} <= {text.get_text() for text in figure.axes[0].texts}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from quorate.result.figures import save

        save(figure, tmp_path / "d.png")


def test_a_font_is_taken_that_has_the_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "DejaVu Sans": "Ada",
        "Noto Sans CJK JP": "王芳",
        "Emoji": "👋王",
        "Last Resort High-Efficiency": "王芳👋☃",
    }
    monkeypatch.setattr(glyphs, "_files", lambda: dict.fromkeys(known, ""))
    monkeypatch.setattr(glyphs, "_characters", lambda name: {ord(one) for one in known[name]})
    glyphs._others.cache_clear()
    try:
        assert glyphs.fonts_for("Ada") == (["DejaVu Sans"], set())
        assert glyphs.fonts_for("A王") == (["DejaVu Sans", "Noto Sans CJK JP"], set())
        assert glyphs.fonts_for("王👋☃") == (["DejaVu Sans", "Noto Sans CJK JP", "Emoji"], {"☃"})
    finally:
        glyphs._others.cache_clear()


def test_fifty_annotators_are_groups_with_names_and_have_room(sample: Corpus) -> None:
    kinds = list(quorate.simulate.KINDS.values())
    people = {f"annotator-{n:02d}": kinds[n % len(kinds)] for n in range(50)}
    few = Corpus(sample.documents[:60])
    result = quorate.aggregate(quorate.simulate.crowd(few, people, per_document=20, seed=1), "bsc-cm", max_iter=2)
    figure = result.plot_annotators(groups=10)
    assert len(figure.axes) == 10
    width, height = figure.get_size_inches()
    side = 0.26 * len(result.labels) + 0.5
    assert width <= 6 * side + 1
    assert height >= 2 * side
    titles = [axes.get_title() for axes in figure.axes]
    assert sum(int(title.split("(")[1].split(")")[0]) for title in titles) == 50
    assert all("annotator-" in title for title in titles)
    assert result.plot_document(0).get_size_inches()[1] > 20 * 0.25
