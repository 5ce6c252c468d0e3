"""The wheel of the service: all that it needs is in it, and it starts from it without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from wheels import PACKAGES, beside_the_code, built

SOURCES = PACKAGES / "quorate-serve" / "src" / "quorate_serve"

# What a service does when it starts, with nothing but what was unpacked.
START = """
import sys
from pathlib import Path
import quorate
import quorate_serve
from quorate_serve.app import create_app
from quorate_serve.database.engine import Database
from quorate_serve.settings import ServiceSettings
from fastapi.testclient import TestClient

unpacked, folder = map(Path, sys.argv[1:])
for package in (quorate, quorate_serve):
    assert Path(package.__file__).is_relative_to(unpacked), package.__file__
settings = ServiceSettings(folder)
settings.make_folder()
database = Database.open(settings.database)
with TestClient(create_app(settings, database), base_url=settings.address) as browser:
    page = browser.get("/login")
    assert page.status_code == 200 and "<h1>Log in</h1>" in page.text
    for name in ("base.css", "spans.js", "outbox.js", "pages/annotate.js"):
        assert browser.get(f"/static/{name}").status_code == 200, name
    assert browser.get("/api/v1/openapi.json").json()["info"]["version"] == quorate.__version__
database.close()
print(quorate.__version__)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[zipfile.ZipFile, zipfile.ZipFile]:
    """That of the library, and that of the service."""
    folder = tmp_path_factory.mktemp("wheels")
    return built("quorate", folder), built("quorate-serve", folder)


def test_everything_beside_the_code_is_in_it(wheels: tuple[zipfile.ZipFile, zipfile.ZipFile]) -> None:
    there, wanted = set(wheels[1].namelist()), beside_the_code(SOURCES)
    for kind in ("/templates/", "/static/", "/database/migrations/versions/"):
        assert any(kind in name for name in wanted), kind  # or nothing would be looked for
    assert wanted - there == set()


def test_nothing_else_is(wheels: tuple[zipfile.ZipFile, zipfile.ZipFile]) -> None:
    parts = {name.split("/")[0] for name in wheels[1].namelist()}
    assert all(part == "quorate_serve" or part.startswith("quorate_serve-") for part in parts), parts
    assert not [name for name in wheels[1].namelist() if "__pycache__" in name or "/tests/" in name]


def test_a_service_starts_from_it(wheels: tuple[zipfile.ZipFile, zipfile.ZipFile], tmp_path: Path) -> None:
    unpacked = tmp_path / "installed"
    for wheel in wheels:
        wheel.extractall(unpacked)
    command = [sys.executable, "-c", START, str(unpacked), str(tmp_path / "project")]
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    version = done.stdout.strip()
    assert f"quorate_serve-{version}.dist-info/METADATA" in wheels[1].namelist()
    metadata = wheels[1].read(f"quorate_serve-{version}.dist-info/METADATA").decode()
    assert f"Requires-Dist: quorate=={version}\n" in metadata
