"""How results show themselves in a notebook: a little HTML, escaped, that needs no script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from quorate.corpus.discontinuous import in_pieces

if TYPE_CHECKING:
    from quorate.result.consensus import Consensus
    from quorate.result.result import Result

_LEAST_CERTAIN = 5
_MOST_ANNOTATORS = 10
_MARK = (
    "background:rgba(29,91,130,{shade:.2f});border-bottom:2px {line} #1d5b82;border-radius:2px 2px 0 0;padding:0 .2em"
)


def _cells(kind: str, values: list[str]) -> str:
    aligned = "".join(
        f'<{kind} style="text-align:{"left" if n == 0 else "right"}">{value}</{kind}>' for n, value in enumerate(values)
    )
    return f"<tr>{aligned}</tr>"


def _percent(share: float) -> str:
    return "–" if share != share else f"{100 * share:.1f}%"


def consensus_html(consensus: Consensus) -> str:
    """One document with its spans marked: the more certain, the darker; dashed below 90%, dotted below 60%.

    >>> import quorate
    >>> "<mark" in consensus_html(quorate.aggregate(quorate.sample(), "mv")["s001"])
    True
    """
    document = consensus.document
    pieces: list[str] = []
    cursor = 0

    def between(first: int, last: int) -> str:
        if document.text is None or document.offsets is None:
            return "".join(f"{token} " for token in document.tokens[first:last])
        begin = document.offsets[first - 1][1] if first else 0
        end = document.offsets[last][0] if last < len(document.tokens) else len(document.text)
        return document.text[begin:end]

    for span in in_pieces(consensus.spans):
        pieces.append(escape(between(cursor, span.start)))
        line = "solid" if span.sure >= 0.9 else "dashed" if span.sure >= 0.6 else "dotted"
        style = _MARK.format(shade=0.06 + 0.22 * min(span.sure, 1.0), line=line)
        words, label = escape(consensus.text(span)), escape(span.label)
        pieces.append(
            f'<mark style="{style};color:inherit">{words} <small><b>{label}</b> {span.sure:.2f}</small></mark>'
        )
        pieces.append(" " if document.text is None else "")
        cursor = span.end
    pieces.append(escape(between(cursor, len(document.tokens))))
    head = f"<small>{escape(document.id)} · all tags right: {consensus.confidence:.2f}</small>"
    return f'<div style="line-height:2;margin:.4em 0">{head}<br>{"".join(pieces)}</div>'


def result_html(result: Result) -> str:
    """What was combined, whom to trust, and the least certain documents.

    >>> import quorate
    >>> result_html(quorate.aggregate(quorate.sample(), "mv")).count("<table")
    1
    """
    corpus = result.corpus
    head = (
        f"<p><b>{escape(str(result.settings_.get('method')))}</b>: {len(result):,} documents, "
        f"{corpus.n_tokens:,} tokens, "
        f"{len(result.annotators):,} annotators, mean confidence {_percent(float(result.confidence.mean()))}</p>"
    )
    people = sorted(result.annotators, key=lambda row: -row.informativeness)
    rows = [
        _cells("td", [escape(row.name), f"{row.n_labels:,.0f}", _percent(row.accuracy), f"{row.informativeness:.2f}"])
        for row in people[:_MOST_ANNOTATORS]
    ]
    more = (
        f"<p><small>and {len(people) - _MOST_ANNOTATORS:,} more</small></p>" if len(people) > _MOST_ANNOTATORS else ""
    )
    table = f"<table>{_cells('th', ['annotator', 'labels', 'accuracy', 'bits/token'])}{''.join(rows)}</table>{more}"
    least = result.confidence.argsort(kind="stable")[:_LEAST_CERTAIN]
    documents = "".join(consensus_html(result[int(position)]) for position in least)
    return f"<div>{head}{table}<p><b>The least certain documents</b></p>{documents}</div>"
