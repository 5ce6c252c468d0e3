"""What a command says when it is done: how a fit or a prediction went, and what the user should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.audit.acceptance import Guaranteed
    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.voting import MajorityVote
    from quorate.result.ambiguity import Ambiguity
    from quorate.result.certificate import Certificate
    from quorate.result.layers import LayeredResult
    from quorate.result.result import Accepted, Result

__all__ = ["acceptance", "ambiguity_summary", "fit_summary", "layers_summary", "predict_summary", "tagger_summary"]

_NEARLY = 0.005  # a recall that is reached, but for rounding


def _counts(result: Result, what: str) -> str:
    corpus = result.corpus
    return f"{len(result):,} documents, {corpus.n_tokens:,} tokens, {len(corpus.annotators):,} annotators, {what}"


def fit_summary(result: Result, method: str, n_known: int) -> list[str]:
    """What was combined, how it went, and what the user should know."""
    from quorate.formats.notes import some

    tagset, trace, corpus = result.tagset, result.trace, result.corpus
    lines = [_counts(result, method), f"scheme {tagset.scheme.value}: {some(list(tagset.types), 10)}"]
    if trace is not None:
        lines.append(f"{trace.passes} passes in {trace.seconds:.2f} s, bound {trace.bound:,.1f} ({trace.reason.value})")
    if result.choice is not None:
        lines += result.choice.reasons
    if tagset.outside is not None and result.choice is not None:
        lines += _estimate(result.certificate)
    lines += _dial(result)
    if n_known:
        lines.append(f"{n_known:,} tokens have known labels")
        voted = corpus.tagset(tagset.scheme).labels
        only_known = [label for label in tagset.labels if label not in voted]
        if only_known:
            lines.append(f"note: no annotator used {some(only_known)}, only the known labels do")
    if result.repaired:
        lines.append(_repairs(result))
    lines += [f"note: {note}" for note in corpus.notes]
    idle = [row.name for row in result.annotators if not row.n_labels > 0]
    if idle:
        lines.append(f"warning: no label by {some(idle)}")
    lines += _bare_documents(result)
    if not n_known and corpus.has_gold:
        lines.append("note: the gold in the input was not used (--known inline uses it)")
    return lines


def tagger_summary(model: BSC | CRFMA | MajorityVote) -> list[str]:
    """How the tagger's rounds went, and how far it is trusted."""
    from quorate.taggers.loop import TAGGER

    finished, note = getattr(model, "tagger_rounds_", ()), getattr(model, "tagger_note_", "")
    noted = [f"note: {note}"] if note else []
    if not finished:
        return noted
    tagger = model.result_.annotators[TAGGER]
    changes = ", ".join(f"{100 * one_round.changed:.2f}" for one_round in finished)
    seconds = sum(one_round.seconds for one_round in finished)
    return [
        *noted,
        f"{TAGGER}, a model: expected accuracy {tagger.accuracy:.3f}, informativeness {tagger.informativeness:.3f}",
        f"{len(finished)} rounds in {seconds:.1f} s; % of the consensus that each changed: {changes}",
    ]


def _estimate(certificate: Certificate) -> list[str]:
    """The estimate from agreement, what it cannot see, and how much of the disagreement is explained."""
    if certificate.f1 is None or certificate.low is None or certificate.high is None:
        return [
            f"certificate: none ({certificate.reason})",
            "agreement cannot tell how right this is; quorate audit can",
        ]
    low, high = 100 * certificate.low, 100 * certificate.high
    lines = [f"estimate from agreement: F1 {100 * certificate.f1:.1f} (90 % interval {low:.1f} to {high:.1f})"]
    if certificate.explained is not None:
        lines.append(
            f"of the disagreement that votes leave open, the model explains {100 * certificate.explained:.0f} %"
        )
    return [*lines, "agreement cannot show mistakes that everybody shares; quorate audit can"]


def layers_summary(result: LayeredResult) -> list[str]:
    """What can be said of all layers together, where agreement tells it."""
    spans = sum(map(len, result.spans))
    lines = [f"{len(result.layers)} layers: {spans:,} span{'s' if spans != 1 else ''} in all"]
    return lines + [f"all layers: {line}" for line in _estimate(result.certificate)[:1] if result.certificate.given]


def ambiguity_summary(ambiguity: Ambiguity) -> list[str]:
    """How much of the text allows two readings, in a line."""
    types = ", ".join(f"{name} {100 * share:.1f} %" for name, share in ambiguity.by_type.items())
    return [f"ambiguous: {100 * ambiguity.share:.1f} % of tokens (of those marked as {types})"]


def acceptance(accepted: Accepted | Guaranteed, review: str, certificate: Certificate) -> list[str]:
    """How many documents meet the precision that was asked for."""
    from quorate.audit.acceptance import Guaranteed

    if isinstance(accepted, Guaranteed):
        return _guarantee(accepted, review)
    if not accepted.documents:
        return [f"no document meets that precision; all {len(accepted.review):,} are in {review}"]
    kept, all_of_them = len(accepted.documents), len(accepted.documents) + len(accepted.review)
    by = "by an estimate from agreement"
    if not certificate.given:
        by = f"as the model states it, which agreement cannot check ({certificate.reason})"
    return [
        f"{kept:,} of {all_of_them:,} documents accepted, {len(accepted.review):,} to look at in {review}",
        f"of the accepted spans {100 * accepted.precision:.1f} % are right, {by}",
    ]


def _guarantee(accepted: Guaranteed, review: str) -> list[str]:
    from quorate.audit.acceptance import least_documents

    kept, all_of_them = len(accepted.documents), len(accepted.documents) + len(accepted.review)
    sure = f"{100 * accepted.confidence:g} % confidence"
    if not kept:
        least = least_documents(accepted.precision, accepted.confidence)
        return [
            f"the audit shows no set of documents to be {100 * accepted.precision:g} % right with {sure}; all "
            f"{all_of_them:,} are in {review}",
            f"it takes {least:,} or more checked documents in a set, hardly one with a mistake (check more)",
        ]
    return [
        f"{kept:,} of {all_of_them:,} documents accepted: guaranteed, with {sure}, that {100 * accepted.precision:g} % "
        f"of their spans are right; {len(accepted.review):,} to look at in {review}"
    ]


def predict_summary(result: Result, model: str) -> list[str]:
    """What was combined, and whom the model had not met."""
    from quorate.formats.notes import some

    lines = [_counts(result, f"model {model}"), *_dial(result)]
    strangers = [name for name in result.corpus.annotators if name not in result.annotators.names]
    if strangers:
        lines.append(f"note: the model has not met {some(strangers)}, and takes them for average")
    if result.repaired:
        lines.append(_repairs(result))
    lines += _bare_documents(result)
    return lines + [f"note: {note}" for note in result.corpus.notes]


def _dial(result: Result) -> list[str]:
    """What came of a precision or a recall that was asked for."""
    precision, recall = result.settings_.get("precision"), result.settings_.get("recall")
    if precision is None and recall is None:
        return []
    spans, expected = sum(map(len, result.spans)), result.expected
    found = f"{spans:,} span{'s' if spans != 1 else ''}"
    what = f"{found}, expected precision {round(expected.precision, 3):g}, recall {round(expected.recall, 3):g}"
    if precision is not None:
        if not spans:
            return [f"no span is sure enough for an expected precision of {precision:g}: none is given (ask for less)"]
        return [f"as many spans as keep an expected precision of {precision:g}: {what}"]
    if recall is not None and expected.recall < recall - _NEARLY:
        return [f"an expected recall of {recall:g} cannot be reached, as some spans nobody marked; the most is {what}"]
    return [f"as few spans as keep an expected recall of {recall:g}: {what}"]


def _repairs(result: Result) -> str:
    return f"{result.repaired:,} tags that could not follow the one before were repaired"


def _bare_documents(result: Result) -> list[str]:
    from quorate.formats.notes import some

    bare = [document.id for document in result.corpus if not document.annotations]
    return [f"warning: no annotator for {some(bare)}: tagged from the words and the chain alone"] if bare else []
