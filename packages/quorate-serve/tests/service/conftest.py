"""A team at work, in a database of each kind; and pages in a real browser, with the service's own headers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import create_engine, text

from quorate_serve.database.engine import Database
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings
from save_server import SaveServer
from service_pages import Open, page_of
from serving import Team, postgres

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

AXE = Path(__file__).resolve().parents[1] / "assets" / "axe-core" / "axe.min.js"
FAILED_REQUEST = "Failed to load resource"  # what browsers write when a test has the service fail


@pytest.fixture
def server() -> Iterator[SaveServer]:
    server = SaveServer()
    server.pages["/"] = page_of()
    yield server
    server.stop()


@pytest.fixture
def new_context(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """A browser of somebody's own: what it keeps, no other sees."""
    contexts = []

    def make(**options: Any) -> BrowserContext:
        context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}, **options})
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def open_page(new_context: Callable[..., BrowserContext], server: SaveServer) -> Iterator[Open]:
    """Open a page; whatever goes to the console as an error fails the test, but for requests that the test has fail."""
    complaints: list[str] = []

    def go(path: str = "/", *, context: BrowserContext | None = None, script: str = "", **options: Any) -> Page:
        page = (context or new_context(**options)).new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if script:
            page.add_init_script(script)
        page.goto(server.url(path))
        page.wait_for_selector("quorate-outbox[state]", state="attached")
        return page

    yield go
    assert not [text for text in complaints if not text.startswith(FAILED_REQUEST)]


@pytest.fixture
def visit(new_context: Callable[..., BrowserContext]) -> Iterator[Open]:
    """Open a page of a team's service as somebody; whatever goes to the console as an error fails the test."""
    complaints: list[str] = []

    def go(team: Team, who: Role | str, path: str, *, ready: str = "body", **options: Any) -> Page:
        context = new_context(**options)
        context.add_cookies([team.cookie(who)])
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(team.settings.address + path)
        page.wait_for_selector(ready)
        return page

    yield go
    assert not [text for text in complaints if not text.startswith(FAILED_REQUEST)]


@pytest.fixture(scope="session")
def axe() -> Callable[[Page], list[str]]:
    """What axe-core finds wrong with a page, one line each."""
    source = AXE.read_text(encoding="utf-8")
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}

    def check(page: Page) -> list[str]:
        page.evaluate(source)
        found = page.evaluate(f"async () => (await axe.run(document, {json.dumps(rules)})).violations")
        return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"]]

    return check


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """A team on SQLite."""
    made = Team(ServiceSettings(tmp_path, labels=("PER", "LOC", "ORG")))
    yield made
    made.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """One PostgreSQL server for all tests of a process."""
    with postgres() as address:
        yield address


@pytest.fixture
def empty_postgres(postgres_server: str) -> str:
    """The address of a PostgreSQL database with nothing in it."""
    engine = create_engine(postgres_server.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return postgres_server


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: str) -> str:
    """The name of a database with all tables and nothing in them, to be copied."""
    address = f"{postgres_server.rpartition('/')[0]}/migrated"
    on_server(postgres_server, "CREATE DATABASE migrated")
    Database.open(ServiceSettings(Path(), address).database).close()
    return "migrated"


@pytest.fixture
def new_postgres(postgres_server: str, migrated_postgres: str) -> str:
    """The address of a PostgreSQL database with all tables and nothing in them."""
    on_server(
        postgres_server, "DROP DATABASE IF EXISTS new WITH (FORCE)", f"CREATE DATABASE new TEMPLATE {migrated_postgres}"
    )
    return f"{postgres_server.rpartition('/')[0]}/new"


def on_server(address: str, *commands: str) -> None:
    """Run commands that no transaction may hold."""
    with psycopg.connect(address, autocommit=True) as connection:
        for command in commands:
            connection.execute(command.encode())


@pytest.fixture(params=["sqlite", "postgresql"])
def any_team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    """A team on SQLite, and one on PostgreSQL."""
    url = request.getfixturevalue("new_postgres") if request.param == "postgresql" else None
    made = Team(ServiceSettings(tmp_path, database_url=url, labels=("PER", "LOC", "ORG")))
    yield made
    made.close()
