"""A run of a project: what has changed, the fit, the version that is kept of it, and its outputs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import typer

import quorate
from quorate.cli.common import app, option_errors_at
from quorate.cli.job import Done, Job, job_of
from quorate.cli.project_audits import audits_left_behind
from quorate.cli.project_options import arguments_of, check_tables, outputs_of, places_of_a_run
from quorate.cli.summaries import acceptance, accepted_record
from quorate.errors import InputError, SettingsError
from quorate.project.changes import outputs_changed, what_changed
from quorate.project.settings_file import NAME, SettingsFile, find
from quorate.project.store import Store, Version, digest_of_path

_EDITED = ".edited"
NO_MODEL = "no model (give one that 'aggregate --save' wrote, or a project: quorate init)"
_NO_CONSENSUS = "no consensus (give a file that 'quorate aggregate' wrote as JSONL, or a project: quorate init)"


class CurrentState(NamedTuple):
    """The digests of everything that decides the outcome, as it is now."""

    inputs: dict[str, str]
    known: dict[str, str]
    decided: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """One digest of all of it."""
        in_order = [list(files.items()) for files in (self.inputs, self.known)]  # where two contradict, the last counts
        everything = json.dumps([in_order, self.decided, quorate.__version__], sort_keys=True)
        return hashlib.sha256(everything.encode()).hexdigest()

    def changes(self, latest: Version | None, outputs: Collection[str]) -> list[str]:
        """What is other than in the last version, in words: all that decides the outcome, and the ``outputs``."""
        if latest is None:
            return ["first run"]
        found = [*what_changed(latest, self.inputs, self.known, self.decided), *outputs_changed(latest, outputs)]
        if latest.quorate != quorate.__version__:
            found.append(f"quorate: {latest.quorate} → {quorate.__version__}")
        return found


class Outcome(NamedTuple):
    """The version that is there now, whether it is new, which files were written, and what the user should know."""

    version: Version
    is_new: bool
    written: list[str]
    notes: list[str]


class Project(NamedTuple):
    """The project that a command stands in."""

    file: SettingsFile
    store: Store

    @classmethod
    def here(cls) -> Project:
        """The project of this folder, or of one above; :class:`SettingsError` if there is none."""
        path = find(Path.cwd())
        if path is None:
            raise SettingsError(f"no {NAME} here or in a folder above (quorate init writes one)")
        return cls(SettingsFile.read(path), Store(path.parent))

    @classmethod
    def around(cls, context: typer.Context) -> Project | None:
        """The project that a command stands in; ``None`` without one, and where it is to be ignored."""
        wanted = context.find_root().params.get("in_project", True)
        return cls.here() if wanted and find(Path.cwd()) is not None else None

    @contextmanager
    def last_consensus(self) -> Iterator[str]:
        """The whole consensus of the last version, in a file for as long as it is needed."""
        with self._kept(self._last().consensus, "consensus.jsonl") as path:
            yield path

    @contextmanager
    def last_model(self) -> Iterator[str]:
        """The model of the last version, likewise."""
        latest = self._last()
        if latest.model is None:
            raise SettingsError(f"version {latest.number} has no model, as its method learns nothing about annotators")
        with self._kept(latest.model, "model.quorate") as path:
            yield path

    def new_inputs(self, among: Collection[str] | None = None) -> list[str]:
        """The inputs that the last version did not have, ``among`` these files or, if not given, all inputs.

        A version's model keeps no documents, and would count labels that it has met before again:
        :class:`SettingsError` if one of its inputs has changed or, where all are meant, is gone, or none is new.
        """
        from quorate.formats.notes import some

        latest, now = self._last(), self.job().inputs
        if among is not None:
            wanted = set(map(os.path.realpath, among))
            now = [path for path in now if os.path.realpath(path) in wanted]
        names = {self.name(path): path for path in now}
        other = [
            f"{path} has changed"
            for name, path in names.items()
            if name in latest.inputs and latest.inputs[name] != digest_of_path(Path(path))
        ]
        if among is None:
            other += [f"{name} is gone" for name in latest.inputs if name not in names]
        if other:
            raise SettingsError(
                f"{some(other)} since version {latest.number}, whose model has the labels of before (quorate run fits "
                "everything again; or give a file with the new labels alone)"
            )
        found = [path for name, path in names.items() if name not in latest.inputs]
        if not found and among is None:
            raise SettingsError(
                f"no input is new since version {latest.number} (give a file with new labels; quorate run does all "
                "that has changed)"
            )
        return found

    def _last(self) -> Version:
        latest = self.store.latest
        if latest is None:
            raise InputError("no version yet (quorate run makes the first)")
        return latest

    @contextmanager
    def _kept(self, digest: str, name: str) -> Iterator[str]:
        content = self.store.content(digest)
        with TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(content)
            yield str(path)

    def job(self) -> Job:
        """What 'aggregate' would do with the settings of the file; its outputs are named as in the project."""
        group: Any = typer.main.get_command(app)
        check_tables(self.file, group)
        arguments = arguments_of(self.file, group.commands["aggregate"])
        with option_errors_at(lambda option: self.file.at("aggregate", option)):
            job = job_of(arguments)
        return replace(job, writing=replace(job.writing, output=str(self.store.root / outputs_of(self.file)[0])))

    def outputs(self, job: Job) -> dict[str, str]:
        """The places of all outputs, by their names in the project."""
        keeping = job.keeping
        consensus = [job.writing.output, *self._other_outputs()]
        places = [*consensus, keeping.review, keeping.save, keeping.meta, keeping.report]
        return {self.name(place): place for place in places if place is not None}

    def _other_outputs(self) -> list[str]:
        """Where the consensus is written besides, in other formats say."""
        return [str(self.store.root / name) for name in outputs_of(self.file)[1:]]

    def name(self, path: str) -> str:
        """A path as it is called in the project: from its folder on, if it is in there."""
        inside = os.path.relpath(path, self.store.root)
        return path if inside.startswith("..") else Path(inside).as_posix()

    def overlooked(self) -> list[str]:
        """Files with annotations where inputs are looked for that no pattern matches, as they are called here."""
        from quorate.formats import is_annotated
        from quorate.project.draft import is_named_like_an_input
        from quorate.storage.arrays import is_container

        written = set(map(os.path.realpath, places_of_a_run(self.file)))
        others = [path for path in self.file.unmatched_files() if os.path.realpath(path) not in written]
        names = {self.name(str(path)): path for path in others}
        return [
            name
            for name, path in names.items()
            if is_named_like_an_input(Path(name)) and (is_container(path) or is_annotated(path))
        ]

    @staticmethod
    def overlooked_note(names: Sequence[str]) -> list[str]:
        """What to do about such files, in a line."""
        from quorate.formats.notes import some
        from quorate.project.draft import patterns_of

        if not names:
            return []
        wanted = ", ".join(json.dumps(name, ensure_ascii=False) for name in patterns_of(names))
        return [f"note: {some(names)}: not among the inputs (add {wanted} to inputs in {NAME})"]

    def current_state(self, job: Job) -> CurrentState:
        """The digests of everything that decides the outcome."""
        inputs, known = (
            {self.name(path): digest_of_path(Path(path)) for path in paths} for paths in (job.inputs, job.known.files)
        )
        return CurrentState(inputs, known, json.loads(json.dumps(job.decided(self.name), default=str)))

    def is_of_last_version(self) -> bool:
        """Whether a run would find nothing new, so that a fit to the inputs as they are is the last version again."""
        latest = self.store.latest
        return latest is not None and latest.fingerprint == self.current_state(self.job()).fingerprint

    def pull(self) -> None:
        """Fetch the exports of servers, each whole or not at all."""
        servers = self.file.servers()
        if not servers:
            return
        from quorate.cli.label_studio import client_of
        from quorate.label_studio.sync import pull
        from quorate.storage.files.atomic import written_whole

        for server in servers:
            self.store.pulled.mkdir(parents=True, exist_ok=True)
            with written_whole(self.store.pulled / server.file_name, pack=False) as stream:
                pull(client_of(server.url), server.number, stream)

    def run(self, *, message: str = "", fresh: bool = False, quiet: bool = False) -> Outcome:
        """Fit if anything has changed, and see to it that the outputs are in their places. Takes a lock to be held."""
        shutil.rmtree(self.store.work, ignore_errors=True)  # what a run that was killed left behind
        job, latest = self.job(), self.store.latest
        job = replace(job, telling=replace(job.telling, quiet=quiet))
        current = self.current_state(job)
        unchanged = latest is not None and latest.fingerprint == current.fingerprint
        if latest is not None and unchanged and not fresh and set(latest.outputs) == set(self.outputs(job)):
            written, notes = self._put_in_place(latest)
            return Outcome(latest, False, written, [*notes, *self.overlooked_note(self.overlooked())])
        for name, place in self.outputs(job).items():
            for path in (*job.inputs, *job.known.files, str(self.file.path)):
                if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(place)):
                    raise SettingsError(f"{name}: an input is there, which would be lost (give another name)")
        return self._make_version(job, current, message)

    def restore(self, number: int, message: str) -> Outcome:
        """Bring an earlier version back, as a version of its own. Takes a lock to be held."""
        old, latest = self.store.version(number), self.store.latest
        assert latest is not None
        for digest in old.outputs.values():
            self.store.content(digest)  # says so now if it is damaged
        version = _changed(
            old,
            number=latest.number + 1,
            time=_time(),
            message=message,
            changes=[f"version {number} restored"],
            restored=number,
        )
        self.store.add(version)
        return Outcome(version, True, *self._put_in_place(version))

    def _make_version(self, job: Job, current: CurrentState, message: str) -> Outcome:
        """Fit, keep everything, then put the outputs in their places."""
        from quorate.evaluate.describe import agreement_of

        store, latest = self.store, self.store.latest
        store.work.mkdir(parents=True)
        staging = _Staging(store.work)
        staging.redirected(job).check()
        for path in self._other_outputs():
            replace(job.writing, to=None).check(path)
        places = {name: staging.place(path) for name, path in self.outputs(job).items()}
        number = 1 if latest is None else latest.number + 1
        done = job.fit()
        staging.redirected(job).write(done, version=number)
        for path in self._other_outputs():
            replace(job, writing=replace(job.writing, to=None)).write_consensus(done, str(staging.place(path)))
        for name, place in places.items():
            done.not_written = [note.replace(str(place), name) for note in done.not_written]
        outputs = {name: store.put_path(path) for name, path in places.items()}
        consensus = outputs[self.name(job.writing.output)]
        if not job.writes_all_as_jsonl:
            done.result.write(store.work / "consensus.jsonl", "jsonl")
            consensus = store.put_path(store.work / "consensus.jsonl")
        version = Version(
            number=number,
            time=_time(),
            quorate=quorate.__version__,
            message=message,
            changes=current.changes(latest, places) or ["fitted again"],
            fingerprint=current.fingerprint,
            decided=current.decided,
            inputs=current.inputs,
            known=current.known,
            outputs=outputs,
            consensus=consensus,
            model=_kept_model(store, done),
            annotators=store.put(json.dumps(_annotators(done)).encode()),
            agreement=agreement_of(done.result),
            accepted=_plain(accepted_record(done.accepted)),
            counts=_counts(done),
        )
        store.add(version)
        written, notes = self._put_in_place(version, places)
        shutil.rmtree(store.work, ignore_errors=True)
        if done.accepted is not None:
            notes = [*acceptance(done.accepted, self.name(str(job.keeping.review))), *notes]
        summary = done.summary(_as_named_here(job))
        notes = [summary.known, *summary.notes, *notes, *self.overlooked_note(self.overlooked())]
        if latest is not None:
            notes += audits_left_behind(store, latest, version)
        return Outcome(version, True, written, notes)

    def _put_in_place(self, version: Version, staged: Mapping[str, Path] | None = None) -> tuple[list[str], list[str]]:
        """Write the outputs where they belong, and keep beside them what no version wrote: what was done, and told."""
        written, notes = [], []
        versions = self.store.versions()
        for name, digest in version.outputs.items():
            target = self.store.root / name
            if target.exists() and digest_of_path(target) not in {one.outputs.get(name) for one in versions}:
                kept = _free_name(f"{target}{_EDITED}")
                os.replace(target, kept)
                notes.append(
                    f"note: {name} was changed after a run wrote it: the changed file is kept as {self.name(kept)}"
                )
            if self.store.put_in_place(name, digest, (staged or {}).get(name)):
                written.append(name)
        return written, notes


def model_meant(context: typer.Context, given: str | None) -> AbstractContextManager[str]:
    """The file of a model that a command was given; without one, that of the last version of the project."""
    return _meant(context, given, Project.last_model, NO_MODEL)


def consensus_meant(context: typer.Context, given: str | None) -> AbstractContextManager[str]:
    """The same of a consensus."""
    return _meant(context, given, Project.last_consensus, _NO_CONSENSUS)


@contextmanager
def _meant(
    context: typer.Context,
    given: str | None,
    last: Callable[[Project], AbstractContextManager[str]],
    without: str,
) -> Iterator[str]:
    project = None if given is not None else Project.around(context)
    if project is not None:
        with last(project) as path:
            yield path
    elif given is not None:
        yield given
    else:
        raise SettingsError(without)


def refuse_outputs_of_a_run(context: typer.Context, outputs: Mapping[str, str | None]) -> None:
    """:class:`SettingsError` if a command would write over what 'quorate run' writes here; outputs are by option."""
    written = {option: path for option, path in outputs.items() if path is not None and path != "-"}
    project = Project.around(context) if written else None
    if project is None:
        return
    places = set(map(os.path.realpath, places_of_a_run(project.file)))
    for option, path in written.items():
        if os.path.realpath(path) in places:
            raise SettingsError(f"{path}: 'quorate run' writes this file (give another name with {option})")


class _Staging(NamedTuple):
    """Where the outputs of a job are written before they are put in their places."""

    folder: Path

    def place(self, path: str) -> Path:
        """Where an output is written until then: under a folder of its own, as names may be alike."""
        place = self.folder / hashlib.sha256(path.encode()).hexdigest()[:16] / Path(path).name
        place.parent.mkdir(exist_ok=True)
        return place

    def redirected(self, job: Job) -> Job:
        """The same job, whose outputs are written there."""
        keeping = job.keeping
        kept: dict[str, Any] = {
            name: None if getattr(keeping, name) is None else str(self.place(getattr(keeping, name)))
            for name in ("review", "save", "meta", "report")
        }
        writing = replace(job.writing, output=str(self.place(job.writing.output)))
        return replace(job, writing=writing, keeping=replace(keeping, **kept))


def _free_name(path: str) -> str:
    """The path, or the first of it with a number that is not taken."""
    number, name = 1, path
    while os.path.lexists(name):
        number += 1
        name = f"{path}-{number}"
    return name


def _time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _changed(version: Version, **changes: Any) -> Version:
    import msgspec

    return msgspec.structs.replace(version, **changes)


def _kept_model(store: Store, done: Done) -> str | None:
    from quorate.estimators.capabilities import Saves

    if not all(isinstance(model, Saves) for model in done.models.values()) or not isinstance(done.model, Saves):
        return None
    done.model.save(store.work / "model.quorate", documents=False)  # a run reads them all anyway
    return store.put_path(store.work / "model.quorate")


def _as_named_here(job: Job) -> Job:
    """The job with the path of its output as a command would be given it in this folder."""
    return replace(job, writing=replace(job.writing, output=os.path.relpath(job.writing.output)))


def _annotators(done: Done) -> list[dict[str, Any]]:
    """What is thought of everybody: as much as a comparison of versions tells."""
    return [
        {"name": row.name, "labels": row.n_labels, "informativeness": row.informativeness, "layer": layer}
        for layer, model in done.models.items()
        for row in model.result_.annotators
    ]


def _plain(record: Any) -> Any:
    """The same with Python's own numbers, to be kept."""
    return json.loads(json.dumps(record, default=float))


def _counts(done: Done) -> dict[str, int]:
    result = done.result
    return {
        "documents": len(result),
        "spans": sum(model.result_.n_spans for model in done.models.values()),
        "annotators": len(result.corpus.annotators),
        "labels": result.corpus.n_labels,
        "known": max(model.meta_["known"] for model in done.models.values()),  # a token has a label in each layer
    }
