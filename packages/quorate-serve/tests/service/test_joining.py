"""Many people who come in together, from one address, by the address of the machine."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from quorate_serve import reach, sessions
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings
from serving import PASSWORD, Team, free_port

TOGETHER = 50


@pytest.fixture(params=["sqlite", "postgresql"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    """A service that listens on every address of the machine."""
    url = request.getfixturevalue("new_postgres") if request.param == "postgresql" else None
    made = Team(ServiceSettings(tmp_path, database_url=url, host="0.0.0.0", port=free_port()))
    yield made
    made.close()


def test_a_class_behind_one_address_joins_within_a_minute(team: Team) -> None:
    secret, names = team.settings.secret(), [f"Person {number}" for number in range(TOGETHER)]
    links = team.database.change(lambda connection: sessions.invite_by_name(connection, secret, names, Role.ANNOTATOR))
    statuses: Counter[int] = Counter()

    def come(name: str, token: str) -> None:
        with httpx.Client(base_url=address, headers={"Origin": address}, timeout=60) as browser:
            statuses[browser.get(f"/invite/{token}").status_code] += 1
            statuses[browser.post(f"/invite/{token}", data={"name": name, "password": PASSWORD}).status_code] += 1
            statuses[browser.get("/annotate").status_code] += 1

    with team.serving():
        address = f"http://127.0.0.1:{team.settings.port}"
        threads = [threading.Thread(target=come, args=item) for item in links.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == {200: 2 * TOGETHER, 303: TOGETHER}
        # and all of them once more, the next morning
        again: Counter[int] = Counter()
        with httpx.Client(base_url=address, headers={"Origin": address}, timeout=60) as browser:
            for name in links:
                browser.cookies.clear()
                again[browser.post("/login", data={"name": name, "password": PASSWORD}).status_code] += 1
    assert again == {303: TOGETHER}


def test_who_guesses_links_is_slowed_down(team: Team) -> None:
    browser = team.client()
    statuses = [browser.post("/invite/guessed", data={"password": PASSWORD}).status_code for _ in range(70)]
    assert statuses[0] == 404
    assert statuses[-1] == 429


def test_any_address_of_the_machine_shows_a_page_and_a_strange_name_says_what_to_do(team: Team) -> None:
    browser = team.client()
    page = {"Accept": "text/html,*/*"}
    names = [*reach.names_of_this_machine(), "192.168.178.20", "[fd00::5]", "localhost"]
    for host in names:
        answer = browser.get("/", headers={**page, "Host": f"{host}:{team.settings.port}"})
        assert answer.status_code == 200, host
        assert "Log in" in answer.text
    strange = {"Host": "rebound.example"}
    refused = browser.get("/", headers={**page, **strange})
    assert refused.status_code == 400
    assert refused.headers["content-type"].startswith("text/html")
    assert "--origin" in refused.text
    assert "Content-Security-Policy" in refused.headers
    assert browser.get("/api/v1/health", headers=strange).json()["error"]["code"] == "unknown-host"


def test_a_service_for_this_machine_alone_has_no_other_address(tmp_path: Path) -> None:
    alone = Team(ServiceSettings(tmp_path))
    assert alone.client().get("/login", headers={"Host": "192.168.178.20:8787"}).status_code == 400
    alone.close()
