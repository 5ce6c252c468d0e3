"""Text in the cells of tables: what a spreadsheet would take for a formula has an apostrophe before it."""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four are wide forms of the first


def as_text(cell: str) -> str:
    """A cell that a spreadsheet shows as it is: before one that would be read as a formula stands an apostrophe.

    >>> as_text("=1+1"), as_text("Ada")
    ("'=1+1", 'Ada')
    """
    return f"'{cell}" if cell.startswith(("\t", "\r", "\n")) or cell.lstrip().startswith(_FORMULA) else cell


def as_cell(text: str) -> str:
    """As :func:`as_text`, where it is to be read back: what has an apostrophe there already gets another one.

    >>> as_cell("=1"), as_cell("'=1"), as_cell("'tis")
    ("'=1", "''=1", "'tis")
    """
    bare = text.lstrip("'")
    return text if as_text(bare) == bare else f"'{text}"


def from_cell(cell: str) -> str:
    """The text of which :func:`as_cell` made a cell.

    >>> from_cell("'=1"), from_cell("'tis")
    ('=1', "'tis")
    """
    return cell[1:] if cell[:1] == "'" and as_cell(cell[1:]) != cell[1:] else cell
