"""A report about a consensus in layers: one file with a whole report for each layer, and tabs to go between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.errors import InputError, knows_its_options
from quorate.formats.registry import check_report_name
from quorate.report.data import collect
from quorate.report.page import DOCUMENTS, check_documents, render, render_layers
from quorate.storage.files.atomic import written_whole

if TYPE_CHECKING:
    from quorate.estimators.layered import LayeredModel
    from quorate.result.layers import LayeredResult


@knows_its_options
def write_layered_report(
    model: LayeredModel,
    path: str | Path,
    *,
    result: LayeredResult | None = None,
    title: str = "Who said what, and what is true",
    documents: int | None = DOCUMENTS,
    groups: int | None = None,
    known: Mapping[str, Collection[str]] | None = None,
    split: str | None = None,
    version: int | str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> None:
    """Write a report about a fitted model in layers as one HTML file; options are those of :func:`write_report`.

    ``known`` are by layer the ids of documents whose labels were given as certain. A layer that only known labels have
    is left out.

    >>> import tempfile
    >>> from quorate import BSC, Corpus, Document, LayeredModel
    >>> inner = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-LOC", "O")})])
    >>> outer = Corpus([Document("1", ("Bath", "Spa"), {"ann": ("B-ORG", "I-ORG")})])
    >>> model = LayeredModel(BSC("cm", max_iter=5)).fit({"LOC": inner, "ORG": outer})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_layered_report(model, f"{folder}/report.html", title="Nested")
    ...     Path(folder, "report.html").read_text().count("<title>Nested</title>")
    1
    """
    check_documents(documents)
    check_report_name(str(path))
    shown = model.result_ if result is None else result
    marked = {name: one for name, one in shown.layers.items() if not one.corpus.used_tags() <= {None, "O"}}
    if not marked:
        raise InputError("no annotator marks anything, so that there is nothing to report")
    pages = {}
    for number, (name, one) in enumerate(marked.items()):
        if progress is not None:
            progress(number, len(marked), f"layer {name}")
        report = collect(
            model.models_[name],
            one,
            title=f"{title}: {name}",
            documents=documents,
            groups=groups,
            known=(known or {}).get(name, ()),
            split=split,
            version=version,
            layer=name,
        )
        pages[name] = render(report)
    with written_whole(path) as stream:
        stream.write(render_layers(title, pages).encode())
