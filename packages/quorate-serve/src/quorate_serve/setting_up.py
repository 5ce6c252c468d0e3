"""A campaign begins: texts, types, rules and people become a project in the folder, all of it or nothing."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from sqlalchemy import Connection, select

from quorate import formats
from quorate.errors import InputError, SettingsError
from quorate.formats.layers import Layers
from quorate.project.draft import settings_text
from quorate.project.settings_file import NAME
from quorate.project.texts import Plain, Text, as_jsonl, plain_texts
from quorate.storage.files.atomic import written_whole
from quorate_serve.answers import Imported
from quorate_serve.campaign import Campaign, SpanType, campaign_of, change_campaign
from quorate_serve.campaign_files import serve_values
from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.importing import import_at_once
from quorate_serve.people import Role
from quorate_serve.problems import ConflictError, InvalidError
from quorate_serve.sessions import invite_by_name
from quorate_serve.settings import ServiceSettings

_DATA = "data"  # the folder for what was uploaded
_TEXTS = "texts.jsonl"
_PASTED = "text.txt"
_SET_UP = f"the campaign is set up already (change it on the page Settings, or in {NAME})"


class Upload(NamedTuple):
    """A file as it came."""

    name: str
    content: bytes


class Plans(NamedTuple):
    """What somebody wants a campaign to be. ``how`` is a kind of plain text or a format; if empty, it is found out."""

    uploads: Sequence[Upload]
    pasted: str
    how: str
    campaign: Campaign
    people: Mapping[Role, Sequence[str]]


class Begun(NamedTuple):
    """What has begun: what came in, the campaign, and what opens the links of those invited, by role and name."""

    imported: Imported
    campaign: Campaign
    invited: dict[Role, dict[str, str]]
    notes: tuple[str, ...]


class _Files(NamedTuple):
    """What is to be kept, by its path in the project, and what it holds."""

    content: dict[str, bytes]
    layers: Layers
    format: str | None


def is_to_be_set_up(connection: Connection, settings: ServiceSettings) -> bool:
    """Whether there is nothing yet: no project in the folder, and no document."""
    return not (settings.root / NAME).exists() and connection.execute(select(tables.documents.c.number)).first() is None


def begin_campaign(database: Database, settings: ServiceSettings, plans: Plans, *, by: str | None) -> Begun:
    """Make the project and take everything in; whatever goes wrong, nothing of it stays."""
    files = _read(settings, plans)
    campaign = _with_types(plans.campaign, _types_of(files.layers))
    content = _project(settings, files, campaign)
    written: list[Path] = []

    def work(connection: Connection) -> tuple[Imported, dict[Role, dict[str, str]]]:
        if not is_to_be_set_up(connection, settings):
            raise ConflictError(_SET_UP)
        secret, rule = settings.secret(), settings.overlaps._replace(allowed=campaign.overlaps)
        source = ", ".join(name for name in content if name.startswith(_DATA))
        imported = import_at_once(connection, secret, files.layers, by=by, source=source, rule=rule)
        change_campaign(connection, campaign_of(settings), campaign, by=by)
        invited = {
            role: invite_by_name(connection, secret, names, role, by=by)
            for role, names in plans.people.items()
            if names
        }
        _write(settings.root, content, written)
        return imported, invited

    try:
        imported, invited = database.change(work)
    except BaseException:
        _take_back(settings.root, written)
        raise
    return Begun(imported, campaign, invited, (*files.layers.corpus.notes, *imported.notes))


def _read(settings: ServiceSettings, plans: Plans) -> _Files:
    """What was uploaded and pasted, read; :class:`InvalidError` says why it cannot be."""
    given = [one for one in plans.uploads if one.name or one.content]
    if plans.pasted.strip():
        given.append(Upload(_PASTED, plans.pasted.encode()))
    if not given:
        raise InvalidError("there are no texts yet (choose a file, or paste some)")
    how = Plain(plans.how) if plans.how in tuple(Plain) else None
    plain: list[Text] = []
    kept: dict[str, bytes] = {}
    try:
        for one in given:
            name = _safe(one.name)
            if not one.content.strip():
                raise InputError("the file is empty", where=name)
            texts = None if plans.how and how is None else plain_texts(one.content, name, how)
            if texts is not None:
                plain += texts
            elif kept.setdefault(f"{_DATA}/{name}", one.content) != one.content:
                raise InputError("two files have this name (rename one)", where=name)
    except InputError as error:
        raise InvalidError(str(error)) from None
    if plain:
        _check_ids(plain)
        own = f"{_DATA}/{_TEXTS}"
        kept[f"{_DATA}/plain-{_TEXTS}" if own in kept else own] = as_jsonl(plain)
    format = plans.how if plans.how and how is None else None
    with tempfile.TemporaryDirectory(prefix="quorate-set-up-") as folder:
        for name, content in kept.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        try:
            paths = [str(Path(folder, name)) for name in kept]
            layers = formats.read_layers(*paths, format=format, max_size=settings.upload_limit)
        except (InputError, SettingsError) as error:  # which name the files as they lay there
            raise InvalidError(str(error).replace(f"{folder}/{_DATA}/", "")) from None
    if not any(document.text or document.tokens for document in layers.corpus):
        raise InvalidError("there is no text in what you gave (choose another file)")
    return _Files(kept, layers, format)


def _safe(name: str) -> str:
    """The name of an upload as a file may have it: it may name the annotator."""
    own = PurePosixPath(name.replace("\\", "/")).name
    return re.sub(r"[^\w. -]", "_", own)[-100:].lstrip(". ") or "upload"


def _check_ids(texts: Sequence[Text]) -> None:
    seen: set[str] = set()
    for one in texts:
        if one.id in seen:
            raise InvalidError(f"two documents have the id {one.id!r} (give each one of its own)")
        seen.add(one.id)


def _types_of(layers: Layers) -> list[str]:
    return sorted({kind for each in layers.values() if each.annotators for kind in each.tagset().types if kind})


def _with_types(campaign: Campaign, found: Sequence[str]) -> Campaign:
    """The campaign with the types of those annotations that came along too."""
    named = {one.name for one in campaign.types}
    types = (*campaign.types, *(SpanType(name) for name in found if name not in named))
    if not types:
        raise InvalidError("there is no type of span yet (name at least one, as PER)")
    whole = campaign._replace(types=types)
    try:
        whole.check()
    except SettingsError as error:
        raise InvalidError(str(error)) from None
    return whole


def _project(settings: ServiceSettings, files: _Files, campaign: Campaign) -> dict[str, bytes]:
    """All files of the project, the one last that makes it one."""
    content = dict(files.content)
    if campaign.guidelines:
        content[settings.guidelines_file] = campaign.guidelines.encode()
    text = settings_text(
        list(files.content),
        layers=len(files.layers) > 1,
        format=files.format,
        serve=serve_values(campaign, settings.guidelines_file),
    )
    return {**content, NAME: text.encode()}


def _take_back(root: Path, written: Sequence[Path]) -> None:
    for path in reversed(written):
        path.unlink(missing_ok=True)
        if path.parent != root:
            with suppress(OSError):  # somebody's own files are in it
                path.parent.rmdir()


def _write(root: Path, content: Mapping[str, bytes], written: list[Path]) -> None:
    for name, each in content.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        if path.exists():
            if path.read_bytes() == each:
                continue
            raise ConflictError(f"{name} is in the folder already, with something else in it (move it away)")
        written.append(path)
        with written_whole(path, pack=False) as stream:
            stream.write(each)
