"""A report that people want to open: one HTML file about a consensus, its annotators and its doubtful documents.

What it says is collected into one typed value (:mod:`quorate.report.data`), then drawn (:mod:`quorate.report.page`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.errors import knows_its_options
from quorate.formats.registry import check_report_name
from quorate.report.data import collect
from quorate.report.layered import write_layered_report
from quorate.report.page import DOCUMENTS, check_documents, render
from quorate.result.result import Result
from quorate.storage.files.atomic import written_whole

if TYPE_CHECKING:
    from quorate.audit import Audit, Plan
    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.voting import MajorityVote

__all__ = ["DOCUMENTS", "write_layered_report", "write_report"]


@knows_its_options
def write_report(
    model: BSC | CRFMA | MajorityVote,
    path: str | Path,
    *,
    result: Result | None = None,
    title: str = "Who said what, and what is true",
    documents: int | None = DOCUMENTS,
    groups: int | None = None,
    known: Collection[str] = (),
    split: str | None = None,
    audit: Audit | Plan | None = None,
    version: int | str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> None:
    """Write a report about a fitted model as one HTML file that needs nothing else.

    ``result`` is the model's own unless given (one from :meth:`BSC.combine`, say). ``documents`` is how many to show,
    the least certain first, ``None`` for all; ``groups`` into how many groups annotators are put, chosen if not given;
    ``known`` are the ids of documents whose labels were given as certain; ``split`` limits what is compared with gold.
    ``audit`` is one of this very result: of a plan the page offers the documents to check, of an audit it has what was
    found. ``version`` is that of the consensus: corrections that are exported from the page say that they are of it.

    >>> import quorate, tempfile
    >>> model = quorate.BSC().fit(quorate.sample())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, f"{folder}/report.html", title="The sample")
    ...     Path(folder, "report.html").read_text().count("<title>The sample</title>")
    1
    """
    check_documents(documents)
    check_report_name(str(path))
    shown = model.result_ if result is None else result
    report = collect(
        model,
        shown,
        title=title,
        documents=documents,
        groups=groups,
        known=known,
        split=split,
        audit=audit,
        version=version,
        progress=progress,
    )
    with written_whole(path) as stream:
        stream.write(render(report).encode())
