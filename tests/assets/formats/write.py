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

HERE = Path(__file__).resolve().parent


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
        if has("quorate.service"):
            back_up(Path(name, "service"), into / "backup.zip")


def has(module: str) -> bool:
    """Versions of long ago lack some of the formats."""
    return importlib.util.find_spec(module) is not None


def back_up(folder: Path, into: Path) -> None:
    """A service with the crowd's labels and one person."""
    from quorate import read
    from quorate.service.backup import write_backup
    from quorate.service.database.engine import Database
    from quorate.service.importing import import_corpus
    from quorate.service.people import Role, add_person
    from quorate.service.settings import ServiceSettings

    folder.mkdir()
    settings = ServiceSettings(folder)
    settings.make_folder()
    database = Database.open(settings.database)
    import_corpus(database, settings.secret(), read(HERE / "crowd.jsonl"))
    database.change(lambda connection: add_person(connection, settings.secret(), "Ann", role=Role.ADMIN))
    database.close()
    write_backup(settings, into)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    place = HERE / sys.argv[1]
    place.mkdir(exist_ok=True)
    write(place)
