"""How ``make docs`` builds the site: Sphinx with the theme furo, from the same markdown that the repository shows.

Nothing is loaded from elsewhere at view time: the theme, its scripts and the index of the search are files of the site.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
PACKAGES = HERE.parent / "packages"
sys.path[:0] = [str(PACKAGES / "quorate" / "src"), str(PACKAGES / "quorate-serve" / "src"), str(HERE / "_site")]

import quorate  # noqa: E402  (the checkout, not what may be installed)

project = "quorate"
author = "the quorate authors"
copyright = "the quorate authors"
version = release = quorate.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "command_line"]
exclude_patterns = ["_site"]
templates_path: list[str] = []

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # links to headings are those that repositories make

autodoc_typehints = "none"  # the signatures have them
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False

html_theme = "furo"
html_title = f"quorate {version}"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_site/static"]
html_css_files = ["wide-tables.css"]
html_theme_options: dict[str, list[str]] = {"footer_icons": [], "top_of_page_buttons": []}

_BESIDE = re.compile(r"\]\((?:\.\./)*(CONTRIBUTING|RELEASING|SECURITY|CHANGELOG)\.md")


def links_beside(app: Sphinx, page: str, source: list[str]) -> None:
    """Files beside ``docs/`` are pages of the site too: a link to one of them leads to its page."""
    up = "../" * page.count("/")
    source[0] = _BESIDE.sub(lambda found: f"]({up}{found[1].lower()}.md", source[0])


def links_of_files_beside(app: Sphinx, path: Path, page: str, source: list[str]) -> None:
    """The same for links from one of these files to another."""
    links_beside(app, page, source)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", links_beside)
    app.connect("include-read", links_of_files_beside)
