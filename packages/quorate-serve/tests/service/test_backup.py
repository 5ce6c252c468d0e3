"""A backup holds everything, and goes from one kind of database to the other."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select, text

import quorate
from quorate.errors import InputError
from quorate_serve import backup
from quorate_serve.backup import read_backup, write_backup
from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.database.migrating import newest
from quorate_serve.database.tables import metadata
from quorate_serve.events import Kind, append, last_event
from quorate_serve.importing import import_corpus
from quorate_serve.people import Role, find_person, write_personal
from quorate_serve.settings import ServiceSettings
from serving import Team

FORMATS = Path(__file__).parents[1] / "assets" / "formats"
VERSIONS = sorted(path.name for path in FORMATS.iterdir() if path.is_dir())


def rows_of(database: Database) -> dict[str, list[tuple[object, ...]]]:
    with database.read() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
            for table in metadata.sorted_tables
            if table.name != "sessions"
        }


def test_a_backup_of_either_database_restores_into_sqlite(any_team: Team, tmp_path: Path) -> None:
    corpus = quorate.Corpus(quorate.sample().documents[:30])
    import_corpus(any_team.database, any_team.settings.secret(), corpus)
    ann = any_team.ids[Role.ANNOTATOR]

    def note(connection: object) -> None:
        personal = write_personal(connection, ann, "a word")  # type: ignore[arg-type]
        append(connection, Kind.EXPORTED, person=ann, personal=personal)  # type: ignore[arg-type]

    any_team.database.change(note)
    told = write_backup(any_team.settings, tmp_path / "all.zip")
    assert "30 documents" in told
    assert (tmp_path / "all.zip").stat().st_mode & 0o077 == 0
    other = ServiceSettings(tmp_path / "other")
    read_backup(other, tmp_path / "all.zip")
    database = Database.open(other.database)
    assert rows_of(database) == rows_of(any_team.database)
    with database.read() as connection:
        assert find_person(connection, ann).name == "annotator"
    assert other.secret() == any_team.settings.secret()
    first = database.change(lambda connection: append(connection, Kind.EXPORTED, person=None)).seq
    with any_team.database.read() as connection:
        assert first > last_event(connection)
    database.close()


def test_from_sqlite_to_postgresql(team: Team, tmp_path: Path, empty_postgres: str) -> None:
    import_corpus(team.database, team.settings.secret(), quorate.Corpus(quorate.sample().documents[:30]))
    write_backup(team.settings, tmp_path / "all.zip")
    other = ServiceSettings(tmp_path / "other", database_url=empty_postgres)
    read_backup(other, tmp_path / "all.zip")
    database = Database.open(other.database)
    assert rows_of(database) == rows_of(team.database)
    database.change(lambda connection: append(connection, Kind.EXPORTED, person=None))  # numbers go on after the last
    database.close()


def test_what_is_no_backup_or_not_for_here_is_refused(team: Team, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"no")
    with pytest.raises(InputError, match="not a backup"):
        read_backup(ServiceSettings(tmp_path / "a"), tmp_path / "x.zip")
    with pytest.raises(InputError, match="cannot be read"):
        read_backup(ServiceSettings(tmp_path / "a"), tmp_path / "none.zip")
    write_backup(team.settings, tmp_path / "all.zip")
    with pytest.raises(InputError, match="not empty"):
        read_backup(team.settings, tmp_path / "all.zip")
    with team.database.read() as connection:
        assert connection.execute(select(tables.people)).first() is not None


def test_where_no_service_has_run_nothing_is_backed_up(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no service has run here"):
        write_backup(ServiceSettings(tmp_path), tmp_path / "all.zip")
    assert not list(tmp_path.iterdir())


def damaged(whole: bytes) -> dict[str, bytes]:
    """What becomes of a backup on a bad disk, or by a transfer that breaks off."""
    chance = random.Random(11)
    cut = {f"cut at {at}": whole[:at] for at in (0, 1, 100, len(whole) // 2, len(whole) - 30, len(whole) - 1)}
    flips = {}
    for at in sorted(chance.sample(range(len(whole)), 40)):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << chance.randrange(8)
        flips[f"bit at {at}"] = bytes(flipped)
    return cut | flips


def changed(whole: bytes, name: str, content: bytes | None) -> bytes:
    """The backup with another member in the place of one, or without it."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as other:
        for info in archive.infolist():
            told = content if info.filename == name else archive.read(info)
            if told is not None:
                other.writestr(info.filename, told)
    return made.getvalue()


def test_of_a_damaged_backup_one_line_is_told_and_nothing_is_restored(team: Team, tmp_path: Path) -> None:
    import_corpus(team.database, team.settings.secret(), quorate.Corpus(quorate.sample().documents[:30]))
    write_backup(team.settings, tmp_path / "all.zip")
    whole = (tmp_path / "all.zip").read_bytes()
    files = damaged(whole) | {
        f"{name}: {content!r}": changed(whole, name, content)
        for name in ("about.json", "events.jsonl", "people.jsonl", "secret")
        for content in (None, b"[]", b"{}", b"\xff", b"{", b'{"id": {"base64": 1}}\n', b"[" * 10_000)
        if name != "secret" or content is None
    }
    files["contents before the beginning"] = whole[:-4] + bytes([whole[-4] ^ 128]) + whole[-3:]
    settings = ServiceSettings(tmp_path / "other")
    told, database = set(), Database.open(settings.database)
    for name, content in files.items():
        (tmp_path / "damaged.zip").write_bytes(content)
        try:
            read_backup(settings, tmp_path / "damaged.zip")
        except InputError as error:
            told.add(str(error))
            assert not any(rows_of(database).values()), name
        else:  # it was a bit that nothing depends on, as of a date
            assert rows_of(database) == rows_of(team.database), name
            database.close()
            settings = ServiceSettings(tmp_path / name)
            database = Database.open(settings.database)
    database.close()
    place = tmp_path / "damaged.zip"
    assert told == {f"{place}: not a backup of a service, or damaged (write it again)"}


def test_a_backup_that_was_broken_off_leaves_nothing(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    monkeypatch.setattr(backup, "_write_table", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_backup(team.settings, tmp_path / "more.zip")
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_backup_of_0_11_is_restored_and_its_tables_are_brought_up_to_date(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("empty_postgres") if kind == "postgresql" else None
    settings = ServiceSettings(tmp_path, database_url=url)
    assert "12 documents" in read_backup(settings, FORMATS / "0.11" / "backup.zip")
    database = Database.open(settings.database)
    with database.read() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == newest()
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.change(lambda connection: append(connection, Kind.EXPORTED, person=None))
    database.close()


def test_a_backup_of_a_newer_version_is_refused(team: Team, tmp_path: Path) -> None:
    write_backup(team.settings, tmp_path / "all.zip")
    whole = (tmp_path / "all.zip").read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        about = json.loads(archive.read("about.json"))
    for newer in ({"format": 99}, {"revision": "9999"}):
        (tmp_path / "new.zip").write_bytes(changed(whole, "about.json", json.dumps({**about, **newer}).encode()))
        with pytest.raises(InputError, match=r"of a newer version \(upgrade quorate\)"):
            read_backup(ServiceSettings(tmp_path / "new"), tmp_path / "new.zip")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backup_of_an_earlier_version_is_restored(version: str, tmp_path: Path) -> None:
    told = read_backup(ServiceSettings(tmp_path), FORMATS / version / "backup.zip")
    assert "12 documents" in told


def test_this_version_has_written_its_backup() -> None:
    assert ".".join(quorate.__version__.split(".")[:2]) in VERSIONS  # packages/quorate/tests/assets/formats/write.py
