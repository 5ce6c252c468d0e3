"""Writes a file of every stored format, as the version of quorate that runs it does: python write.py 0.9

Run it in an environment with that version, before it is released; `tests/edges/test_files_of_before.py` opens them all.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OF_SERVICE = HERE.parents[3] / "quorate-serve" / "tests" / "assets" / "formats"


def quorate(folder: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "quorate", *arguments], cwd=folder, check=True)


def write(into: Path) -> None:
    """Model, encoded corpus, a project with a version of its consensus, and a service's backup."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "project")
        folder.mkdir()
        shutil.copy(HERE / "crowd.jsonl", folder)
        given = ["aggregate", "crowd.jsonl", "--method", "bsc-seq", "--quiet"]
        quorate(folder, *given, "-o", "../consensus.jsonl", "--save", str(into / "model.quorate"))
        quorate(folder, "encode", "crowd.jsonl", "-o", str(into / "corpus.qr"), "--quiet")
        shutil.copy(Path(name, "consensus.jsonl"), into)
        if has("quorate.project"):
            settings = 'inputs = ["crowd.jsonl"]\n[aggregate]\nmethod = "bsc-seq"\noutput = "consensus.jsonl"\n'
            (folder / "quorate.toml").write_text(settings, encoding="utf-8")
            quorate(folder, "run", "--quiet")
            with tarfile.open(into / "project.tar.gz", "w:gz") as packed:
                packed.add(folder, ".")
        if has("quorate_serve"):
            beside = OF_SERVICE / into.name
            beside.mkdir(exist_ok=True)
            back_up(Path(name, "service"), beside / "backup.zip")
            keep_service(Path(name, "kept"), beside / "service.tar.gz")


def has(module: str) -> bool:
    """Versions of long ago lack some of the formats."""
    return importlib.util.find_spec(module) is not None


def back_up(folder: Path, into: Path) -> None:
    """A service with the crowd's labels and one person."""
    from quorate import read
    from quorate_serve.backup import write_backup
    from quorate_serve.database.engine import Database
    from quorate_serve.importing import import_corpus
    from quorate_serve.people import Role, add_person
    from quorate_serve.settings import ServiceSettings

    folder.mkdir()
    settings = ServiceSettings(folder)
    settings.make_folder()
    database = Database.open(settings.database)
    import_corpus(database, settings.secret(), read(HERE / "crowd.jsonl"))
    database.change(lambda connection: add_person(connection, settings.secret(), "Ann", role=Role.ADMIN))
    database.close()
    write_backup(settings, into)


def keep_service(folder: Path, into: Path) -> None:
    """The folder of a service with people, tokens and open invitations: its database and its secret."""
    from sqlalchemy import insert

    from quorate_serve import passwords, people
    from quorate_serve.database import tables
    from quorate_serve.database.engine import Database
    from quorate_serve.settings import ServiceSettings

    folder.mkdir()
    settings = ServiceSettings(folder)
    settings.make_folder()
    database = Database.open(settings.database)
    names = {"Ann": people.Role.ADMIN, "adm": people.Role.MANAGER, "adm\u200b": people.Role.ANNOTATOR}
    names |= {"Zo\u200dë": people.Role.ANNOTATOR}
    ends = {"no end": None, "ten years": 1.8e9 + 3_650 * 86_400, "past": 1e9}
    far = 9e9

    def fill(connection: Any) -> None:
        kept = passwords.hashed("correct horse battery")
        for name, role in names.items():
            person = people.add_person(connection, settings.secret(), name, role=role, password_hash=kept)
            for told, until in ends.items():
                row = {"id": f"{person[2:8]}{told[:4]}", "digest": f"{person} {told}", "person": person, "name": told}
                connection.execute(insert(tables.tokens).values(**row, created=1.79e9, until=until))
            link = insert(tables.invitations).values(digest=f"{person} invites", role=role.value)
            connection.execute(link.values(created=1.79e9, until=far))

    database.change(fill)
    database.close()
    with tarfile.open(into, "w:gz") as packed:
        packed.add(folder, ".")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    place = HERE / sys.argv[1]
    place.mkdir(exist_ok=True)
    write(place)
