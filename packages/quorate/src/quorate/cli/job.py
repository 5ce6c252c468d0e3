"""The whole job of 'aggregate' as one value: made from options, or from a project's file, checked, fitted, written."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import quorate
from quorate.cli.common import (
    Inputs,
    LayeredReading,
    bar,
    check_json,
    check_outputs,
    fit_progress,
    reads,
    with_options,
    write_json,
)
from quorate.cli.known import KnownLabels, KnownOption
from quorate.cli.options import Chosen, Keeping, Machine, Method, Telling, Writing, takes_groups
from quorate.cli.settings import Given, takes_settings
from quorate.cli.summaries import Summary, fit_summary, layers_summary
from quorate.errors import SettingsError
from quorate.model.settings import READ as _DATA

if TYPE_CHECKING:
    from quorate.audit.acceptance import Guaranteed, GuaranteedSpans
    from quorate.estimators.bsc import BSC
    from quorate.estimators.crf_ma import CRFMA
    from quorate.estimators.layered import KnownInLayers, LayeredModel
    from quorate.estimators.voting import MajorityVote
    from quorate.evaluate.describe import KnownF1
    from quorate.formats.layers import Layers
    from quorate.model.prepared import Known
    from quorate.result.layers import LayeredResult
    from quorate.result.result import Accepted, Result


@dataclass(frozen=True)
class Job:
    """What is read, how it is combined, and what is written and kept."""

    inputs: list[str]
    how: Method
    known: KnownLabels
    history: str | None
    writing: Writing
    keeping: Keeping
    machine: Machine
    telling: Telling
    given: Given
    reading: LayeredReading
    reports: bool = False  # a report is made of it, which goes by the probabilities of all labels

    @property
    def layers(self) -> str:
        """What --layers says."""
        return "auto" if self.reading.in_layers else "none"

    @property
    def quiet(self) -> bool:
        """Whether progress is not shown."""
        return self.telling.quiet

    @property
    def guaranteed_precision(self) -> float | None:
        """The precision that the spans written are to have by an audit: then it is no setting of the fit."""
        return self.given.get("precision") if self.keeping.checked and self.keeping.accept is None else None

    @property
    def chosen(self) -> Chosen:
        """The method and its settings."""
        given = {**self.given, **self.machine.given()}
        if self.guaranteed_precision is not None:
            del given["precision"]
        return self.how.chosen(given)

    def estimator(self) -> BSC | CRFMA | MajorityVote:
        """A new estimator, which keeps the probabilities that are asked for."""
        model = self.chosen.estimator()
        params = model.get_params()
        if "probabilities" in params:
            soft = self.writing.soft() or self.writing.soft(self.keeping.review)
            asked = soft or self.reports or self.guaranteed_precision is not None or self.keeping.report is not None
            # Expected scores need them, and they take a lot of memory in a large corpus.
            expected = params["precision"] is not None or params["recall"] is not None
            model.set_params(probabilities=asked or (self.telling.tells and expected))
        return model

    @property
    def writes_all_as_jsonl(self) -> bool:
        """Whether the output is the whole consensus as JSONL, and nothing beside."""
        from quorate.formats import output_format

        writing = self.writing
        plain = not (writing.probabilities or writing.shares or writing.output.endswith(".gz"))
        whole = self.keeping.accept is None and self.guaranteed_precision is None
        return plain and whole and (writing.to or output_format(writing.output)) == "jsonl"

    @property
    def outputs(self) -> dict[str, str | None]:
        """What is written, by option: the consensus first."""
        kept = {f"--{name}": getattr(self.keeping, name) for name in ("review", "save", "meta", "report")}
        return {"-o": self.writing.output, **kept}

    def check(self) -> None:
        """One clear error, before any work, if something cannot be."""
        from quorate.estimators.capabilities import FitsInPasses

        writing, keeping = self.writing, self.keeping
        writing.check(keeping.review)
        check_json(self.telling.as_json, writing.output)
        model = self.estimator()
        if isinstance(model, FitsInPasses):
            model.checked_settings()
            model.engines()
        keeping.check(self.chosen.method, model)
        if keeping.checked:
            self._check_audit(keeping.checked)
        inputs = [*self.inputs, *self.known.files, *(keeping.checked or ())]
        check_outputs(inputs, list(self.outputs.values()), writing.to)

    def _check_audit(self, checked: list[str]) -> None:
        """One clear error if an audit cannot guarantee anything here, before the fit."""
        from quorate.audit.checked import refuse_without_guarantee
        from quorate.result.acceptance import check_precision

        if self.guaranteed_precision is not None:
            check_precision(self.guaranteed_precision, "precision")
        if self.known.files:
            raise SettingsError(
                "--checked is for a consensus without --known: known labels would be audited by themselves (leave it "
                "out; --known none leaves out a project's reviews, and its plan is to be of a version without them)"
            )
        if self.keeping.accept is None and self.guaranteed_precision is None:
            raise SettingsError(
                "--checked goes with --accept or --precision (quorate audit result gives the scores of a consensus)"
            )
        if "-" not in checked:  # which can be read only once
            refuse_without_guarantee(checked, max_size=self.reading.options["max_size"])

    def read(self) -> tuple[Layers, KnownInLayers]:
        """The annotations by layer, and what is known of them."""
        return self.known.of_layers(self.reading.layers(self.inputs), quiet=self.quiet)

    def fit(self, read: tuple[Layers, KnownInLayers] | None = None) -> Done:
        """Combine what was ``read``, or read it."""
        from quorate.estimators.layered import LayeredModel, known_in

        past = None if self.history is None else _history(self.history, self.estimator(), self.chosen.method)
        layers, known = self.read() if read is None else read
        with fit_progress(self.quiet) as after_pass:
            if layers.named or past is not None:
                model = LayeredModel(self.estimator())
                fitted = model.fit(layers, known=known, progress=after_pass, history=past)
            else:
                alone = self.estimator().fit(layers.corpus, known=known_in(known, ""), progress=after_pass)
                fitted = LayeredModel.of(alone)
        for each in fitted.models_.values():
            each.meta_["inputs"] |= self.known.digests
        return Done(fitted, known)

    def decided(self, name: Callable[[str], str] = str) -> dict[str, Any]:
        """Everything beside the inputs and what is known that decides the outcome, as plain values.

        ``name`` says what a file is called. Where names are to be hidden, maps and profiles are there by digest.
        """
        from quorate.corpus.profiles import profile_fields, read_map
        from quorate.formats import digest_of

        reading = {key: value for key, value in self.reading.options.items() if value not in (None, False)}
        for key in ("map_labels", "map_annotators"):
            if key in reading:
                reading[key] = read_map(reading[key])
        if "annotators" in reading:
            reading["annotators"] = profile_fields(reading["annotators"])  # the rest is as the input has it
        if "pseudonymise" in reading:
            reading["pseudonymise"] = name(reading["pseudonymise"])
            for key in {"map_annotators", "annotators"} & reading.keys():
                reading[key] = _digest(reading[key])
        chosen, keeping, writing = self.how.chosen(self.given), self.keeping, self.writing
        found: dict[str, Any] = {"method": chosen.method, "settings": chosen.settings, "layers": self.layers}
        found |= {"reading": reading, "accept": keeping.accept, "inline": self.known.inline}
        found |= {"to": writing.to, "probabilities": writing.probabilities, "shares": writing.shares}
        found["without_documents"] = keeping.without_documents
        if self.history is not None:
            found["history"] = digest_of(self.history)
        if keeping.checked:
            found["checked"] = {name(path): digest_of(path) for path in keeping.checked}
        return found

    def write(self, done: Done, *, version: int | None = None) -> None:
        """The model, the consensus and what is told of the fit; a report says which ``version`` it is of."""
        from quorate.estimators.capabilities import Saves

        writing, keeping = self.writing, self.keeping
        done.accepted, done.audited = self._accepted(done.result)  # first, as it may say that there is nothing to write
        if keeping.save is not None and isinstance(done.model, Saves):
            done.model.save(keeping.save, documents=not keeping.without_documents)
        if keeping.review is not None:
            done.not_written += writing.write(done.left_for_review, keeping.review, quiet=self.quiet)
        self.write_consensus(done, writing.output)
        if keeping.meta is not None:
            write_json(done.meta | {"decided": self.decided()}, keeping.meta)
        if keeping.report is not None:
            options: dict[str, Any] = {"known": done.known, "version": version, "quiet": self.quiet}
            make_report(done.fitted, None, keeping.report, inputs=self.inputs, **options)

    def write_consensus(self, done: Done, path: str) -> None:
        """The consensus on all documents or, where a precision was asked for, on what meets it."""
        done.not_written += self.writing.write(done.given_out, path, quiet=self.quiet)

    def _accepted(
        self, result: Result | LayeredResult
    ) -> tuple[Accepted | Guaranteed | GuaranteedSpans | None, KnownF1 | None]:
        """What meets a precision that was asked for, and F1: by an audit if there is one."""
        precision, checked = self.keeping.accept, self.keeping.checked
        if not checked:
            return None if precision is None else result.accept(precision), None
        from quorate import audit
        from quorate.evaluate.describe import KnownF1

        found = audit.result(result, checked, max_size=self.reading.options["max_size"])
        f1 = KnownF1.of_audit(found.f1, found.confidence, found.n)
        if precision is not None:
            documents = found.accept(precision)
            if not documents.documents:
                raise SettingsError(_not_shown("documents", "--accept", documents))
            return documents, f1
        assert self.guaranteed_precision is not None
        spans = found.accept_spans(self.guaranteed_precision)
        if not spans.kept and spans.given:
            raise SettingsError(_not_shown("spans", "--precision", spans))
        return spans, f1


@dataclass
class Done:
    """What came of a job: a model for each layer, known labels, and which documents or spans were accepted, if asked.

    Without layers there is one, and ``model``, ``result`` and ``meta`` are its own. ``audited`` is the F1 of all of it,
    if an audit was given; ``not_written`` are notes of what the formats of the outputs cannot hold.
    """

    fitted: LayeredModel
    known: KnownInLayers
    accepted: Accepted | Guaranteed | GuaranteedSpans | None = None
    audited: KnownF1 | None = None
    not_written: list[str] = field(default_factory=list)

    @property
    def models(self) -> dict[str, BSC | CRFMA | MajorityVote]:
        """The model of each layer; without layers, of the only one, which has no name."""
        return self.fitted.models_

    @property
    def model(self) -> BSC | CRFMA | MajorityVote | LayeredModel:
        """What combined the annotations."""
        return self.fitted.single or self.fitted

    @property
    def result(self) -> Result | LayeredResult:
        """The consensus."""
        return self.model.result_

    @property
    def given_out(self) -> Result | LayeredResult:
        """What is written of the consensus."""
        if self.accepted is None:
            return self.result
        from quorate.audit.acceptance import GuaranteedSpans

        if isinstance(self.accepted, GuaranteedSpans):
            return self.result.surest(self.accepted.least)
        return self.result.only(self.accepted.documents)

    @property
    def left_for_review(self) -> Result | LayeredResult:
        """The documents that were not accepted, where documents were asked for."""
        from quorate.audit.acceptance import GuaranteedSpans

        if self.accepted is None or isinstance(self.accepted, GuaranteedSpans):
            return self.result.only([])
        return self.result.only(self.accepted.review)

    @property
    def meta(self) -> dict[str, Any]:
        """What made it."""
        return self.model.meta_

    def summary(self, job: Job) -> Summary:
        """What the user is told."""
        keeping, method, shares = job.keeping, job.chosen.method, job.writing.shares
        written = {"consensus": job.writing.output, "review": keeping.review, "model": keeping.save}
        written |= {"settings": keeping.meta, "report": keeping.report}
        if self.fitted.single is None:
            found = layers_summary(self.fitted, method, written, self.accepted, audited=self.audited, shares=shares)
        else:
            found = fit_summary(self.fitted.single, method, written, self.accepted, audited=self.audited, shares=shares)
        return found._replace(notes=[*found.notes, *self.not_written])


def _not_shown(what: str, option: str, asked: Guaranteed | GuaranteedSpans) -> str:
    """What an audit shows, where it does not show what was asked for."""
    from quorate.audit.acceptance import least_documents

    shown, least = math.floor(100 * asked.bound), least_documents(asked.precision, asked.confidence)
    less = f"ask for {option} {shown / 100:g} or less, or " if shown else ""
    return (
        f"nothing is written: with {100 * asked.confidence:g} % confidence, the audit shows the surest half of the "
        f"{what} to be {shown} % right; {100 * asked.precision:g} % takes {least:,} or more checked {what}, hardly one "
        f"of them wrong ({less}check more documents)"
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _history(path: str, model: Any, method: str) -> LayeredModel:
    """An earlier project's model, if a fit can begin with what it learned."""
    from quorate.estimators.capabilities import Updates
    from quorate.estimators.layered import LayeredModel

    past = quorate.load(path)
    if not isinstance(model, Updates) or not isinstance(past, Updates):
        whose = f"method {method!r}" if not isinstance(model, Updates) else f"the model in {path}"
        raise SettingsError(
            f"{whose} learns nothing about annotators, so it cannot use a history (leave out --history)"
        )
    return LayeredModel.of(past)


def make_report(
    fitted: LayeredModel,
    result: LayeredResult | None,
    path: str,
    *,
    inputs: list[str],
    known: KnownInLayers = None,
    audit: list[str] | None = None,
    max_size: str | None = None,
    quiet: bool = False,
    **options: Any,
) -> None:
    """Write a report about a result, the model's own unless given; documents with known labels are told apart."""
    from quorate.estimators.layered import known_in
    from quorate.formats.notes import some
    from quorate.report import write_layered_report, write_report
    from quorate.report.audits import read_audit

    shown = fitted.result_ if result is None else result
    title = options.pop("title", None) or some([Path(name).name for name in inputs])
    given = {name: _known_ids(one, known_in(known, name)) for name, one in shown.layers.items()}
    with bar("reporting", quiet) as progress:
        if fitted.single is None:
            write_layered_report(fitted, path, result=shown, title=title, known=given, progress=progress, **options)
            return
        ((name, one),) = shown.layers.items()
        options["audit"] = None if not audit else read_audit(one, audit, max_size=max_size)
        write_report(fitted.single, path, result=one, title=title, known=given[name], progress=progress, **options)


def _known_ids(result: Result, known: Known) -> set[str]:
    """The documents of which some labels are known."""
    from quorate.model.prepared import known_tags

    labels = known_tags(result.corpus, known)
    return {name for name, tags in labels.items() if any(tag is not None for tag in tags)}


@reads
@takes_settings
@takes_groups
def _job(
    context: typer.Context,
    inputs: Inputs,
    how: Method,
    known: KnownOption = None,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A saved model of an earlier project: what it learned about annotators is their prior here.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    *,
    writing: Writing,
    keeping: Keeping,
    machine: Machine,
    telling: Telling,
    given: Given,
    reading: LayeredReading,
) -> Job:
    certain = KnownLabels(context, known, inputs, reading.options["max_size"])
    return Job(inputs, how, certain, history, writing, keeping, machine, telling, given, reading)


def takes_a_job(command: Callable[[typer.Context, Job], None]) -> Callable[..., None]:
    """Give a command the options of a job, which it takes as one parameter after the context."""

    def run(**values: Any) -> None:
        command(values["context"], _job(**values))

    return with_options(run, command, inspect.signature(_job).parameters.values())


def job_of(arguments: Sequence[str]) -> Job:
    """The job that 'aggregate' would do with these arguments.

    >>> job_of(["crowd.jsonl", "--method", "mv", "--quiet"]).chosen.method
    'mv'
    """
    parser = typer.Typer(pretty_exceptions_enable=False)
    parser.command("aggregate")(_job)
    job: Job = typer.main.get_command(parser)(list(arguments), prog_name="aggregate", standalone_mode=False)
    return job
