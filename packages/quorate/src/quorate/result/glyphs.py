"""Text in figures: fonts that have its characters, and how wide it is."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from quorate.formats.notes import some

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_USUAL = "DejaVu Sans"  # comes with matplotlib
_BOX = "□"
_OF_BOXES = "Last Resort"  # which has a picture of the kind of every character, and the character of none
_LIKED = ("Noto Sans", "Noto", "Source Han", "WenQuanYi", "Symbola", "Arial Unicode", "Droid", "Unifont")


def fonts_for(characters: Iterable[str]) -> tuple[list[str], set[str]]:
    """Names of installed fonts that together have these characters, the usual one first; and those that none has.

    >>> fonts_for("Ada")
    (['DejaVu Sans'], set())
    """
    names, missing = [_USUAL], {one for one in characters if not _has(_USUAL, one)}
    for name in _others() if missing else ():
        found = {one for one in missing if _has(name, one)}
        if found:
            names.append(name)
            missing -= found
    return names, missing


@cache
def _files() -> dict[str, str]:
    """A file of every installed font, by the font's name."""
    from matplotlib.font_manager import fontManager

    return {font.name: font.fname for font in sorted(fontManager.ttflist, key=lambda one: one.fname, reverse=True)}


@cache
def _others() -> list[str]:
    """The other fonts, those first that have many characters."""
    names = [name for name in _files() if name != _USUAL and not name.startswith(_OF_BOXES)]
    liked = {name: next((n for n, head in enumerate(_LIKED) if name.startswith(head)), len(_LIKED)) for name in names}
    return sorted(names, key=lambda name: (liked[name], name))


@cache
def _characters(name: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(_files()[name]).get_charmap())
    except (RuntimeError, ValueError, OSError):  # a font of pictures alone, say, which cannot be drawn
        return frozenset()


def _has(name: str, character: str) -> bool:
    return ord(character) in _characters(name)


class Lettering:
    """What is written in a figure: every character in a font that has it, or, with a warning, as a box."""

    def __init__(self, figure: Figure, texts: Iterable[str]) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        used = {one for text in texts for one in text if not one.isspace()}
        self.family, lacking = fonts_for(used)
        unseen = {one for one in lacking if unicodedata.category(one) in ("Mn", "Cf")}  # joiners and the like
        self._instead = str.maketrans({one: "" if one in unseen else _BOX for one in lacking})
        boxes = sorted(lacking - unseen)
        if boxes:
            warnings.warn(
                f"no installed font has {some(boxes, 8)}: drawn as {_BOX} (install one that does, as Noto Sans CJK for "
                "Chinese, Japanese and Korean, or Noto Emoji)",
                stacklevel=4,
            )
        self._figure, self._renderer = figure, FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
        self._widths: dict[tuple[str, float], float] = {}

    def drawn(self, text: str) -> str:
        """The text as it is written."""
        return text.translate(self._instead)

    def width(self, text: str, size: float) -> float:
        """How wide it is, in inches."""
        key = (text, size)
        if key not in self._widths:
            from matplotlib.text import Text

            written = Text(0, 0, self.drawn(text), fontsize=size, fontfamily=self.family, parse_math=False)
            written.set_figure(self._figure)
            self._widths[key] = written.get_window_extent(self._renderer).width / self._figure.dpi
        return self._widths[key]

    def cut(self, text: str, size: float, most: float) -> str:
        """The text, or as much of its beginning as is no wider than ``most`` inches."""
        if self.width(text, size) <= most:
            return text
        n = len(text)
        while n > 1 and self.width(f"{text[:n]}…", size) > most:
            n -= max(1, n // 10)
        return f"{text[:n]}…"
