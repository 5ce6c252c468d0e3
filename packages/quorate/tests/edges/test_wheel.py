"""The wheel that people install: all that the code needs is in it, and it works without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from needs import missing

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "quorate"
LEFT_OUT = (
    ".so",
    ".pyd",
    ".dylib",
    ".o",
    ".c",
    ".h",
    ".pyc",
    ".dll",
)  # of a build

# What a service does when it starts, with nothing but what was unpacked.
START = """
import sys
from pathlib import Path
import quorate
from quorate.service.app import create_app
from quorate.service.database.engine import Database
from quorate.service.settings import ServiceSettings
from fastapi.testclient import TestClient

unpacked, folder = map(Path, sys.argv[1:])
assert Path(quorate.__file__).is_relative_to(unpacked), quorate.__file__
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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built as an installation from the checkout builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    built = list(folder.glob("quorate-*.whl"))
    if not built:
        if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
            missing("there is no package index to get the build tools from")
        pytest.fail(done.stderr[-2_000:])
    return zipfile.ZipFile(built[0])


def test_everything_beside_the_code_is_in_it(wheel: zipfile.ZipFile) -> None:
    there = set(wheel.namelist())
    wanted = {
        f"quorate/{path.relative_to(SOURCES).as_posix()}"
        for path in SOURCES.rglob("*")
        if path.is_file() and path.suffix not in LEFT_OUT and "__pycache__" not in path.parts
    }
    for kind in ("service/templates/", "service/static/", "service/database/migrations/versions/", "report/assets/"):
        assert any(kind in name for name in wanted), kind  # or nothing would be looked for
    assert wanted - there == set()
    assert any("quorate/model/kernels/kernels-base" in name for name in there)


def test_nothing_else_is(wheel: zipfile.ZipFile) -> None:
    parts = {name.split("/")[0] for name in wheel.namelist()}
    assert all(part == "quorate" or part.startswith("quorate-") for part in parts), parts
    assert not [name for name in wheel.namelist() if "__pycache__" in name or "/tests/" in name]


def test_a_service_starts_from_it(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    unpacked = tmp_path / "installed"
    wheel.extractall(unpacked)
    command = [sys.executable, "-c", START, str(unpacked), str(tmp_path / "project")]
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"quorate-{done.stdout.strip()}.dist-info/METADATA" in wheel.namelist()
