"""The campaign in the project's files: ``quorate.toml`` follows what is changed in the browser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quorate.errors import QuorateError, SettingsError
from quorate.project.settings_file import NAME
from quorate.project.tables import with_values
from quorate.storage.files.atomic import written_whole
from quorate_serve.campaign import Campaign
from quorate_serve.settings import ServiceSettings


def serve_values(campaign: Campaign, guidelines_file: str) -> dict[str, Any]:
    """What the table ``[serve]`` says of a campaign."""
    return {
        "labels": ",".join(one.name for one in campaign.types) or None,
        "keys": {one.name: one.key for one in campaign.types if one.key} or None,
        "colours": {one.name: one.colour for one in campaign.types if one.colour} or None,
        "guidelines": guidelines_file if campaign.guidelines else None,
        "per-document-min": campaign.per_document_min,
        "per-document-max": campaign.per_document_max,
        "overlaps": campaign.overlaps.value,
    }


def write_campaign(settings: ServiceSettings, before: Campaign, now: Campaign) -> None:
    """Have the project's files say what the campaign is now: all of them, or none."""
    path = settings.root / NAME
    values = serve_values(now, settings.guidelines_file)
    was = serve_values(before, settings.guidelines_file)
    guidelines = settings.root / settings.guidelines_file
    try:
        old_text = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
        old_guidelines = guidelines.read_bytes() if guidelines.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"nothing was changed: {NAME} cannot be read: {error}") from None
    text = with_values(old_text, "serve", _changed(was, values))
    try:
        if now.guidelines != before.guidelines and now.guidelines:
            _write(guidelines, now.guidelines.encode())
        _write(path, text.encode())
    except QuorateError as error:
        if now.guidelines != before.guidelines and now.guidelines:
            _put_back(guidelines, old_guidelines)
        raise SettingsError(f"nothing was changed: {error}") from None


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What is other now: what the file says besides stays as somebody wrote it."""
    return {name: value for name, value in now.items() if value != before[name]}


def _write(path: Path, content: bytes) -> None:
    with written_whole(path) as stream:
        stream.write(content)


def _put_back(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
    else:
        _write(path, content)
