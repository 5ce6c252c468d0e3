"""Webhooks on their page: added, tried, switched off, given a new secret, removed."""

from __future__ import annotations

import re

import pytest

from quorate_serve import delivering
from quorate_serve.outgoing import Outgoing
from quorate_serve.people import Role
from serving import Team

URL = "https://hooks.example.com/quorate"
BOTH = ["document.completed", "consensus.changed"]


@pytest.fixture
def webhook(team: Team) -> str:
    secret = team.settings.secret()
    return team.database.change(lambda connection: delivering.add_webhook(connection, secret, URL, [])[0])


def test_one_is_added_and_its_secret_shown_once(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outgoing, "check", lambda self, url: None)  # there is no such host
    manager = team.client(Role.MANAGER)
    assert "Nobody is told yet" in manager.get("/webhooks").text
    page = manager.post("/webhooks", data={"url": URL, "types": BOTH})
    assert page.status_code == 200
    assert re.search(r"whsec_[A-Za-z0-9+/=]+", page.text)
    (one,) = manager.get("/api/v1/webhooks").json()
    assert (one["url"], one["types"], one["active"]) == (URL, BOTH, True)
    assert "whsec_" not in manager.get("/webhooks").text


@pytest.mark.parametrize(
    "url", ["http://example.com/", "https://127.0.0.1/", "https://localhost:8787/", "file:///etc/passwd"]
)
def test_an_address_that_is_not_allowed_is_told_and_not_kept(team: Team, url: str) -> None:
    manager = team.client(Role.MANAGER)
    refused = manager.post("/webhooks", data={"url": url, "types": BOTH})
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert manager.get("/api/v1/webhooks").json() == []


def test_it_is_switched_off_and_on_tried_and_removed(team: Team, webhook: str) -> None:
    manager = team.client(Role.MANAGER, follow_redirects=False)
    for active in ("false", "true"):
        assert manager.post(f"/webhooks/{webhook}/switch", data={"active": active}).status_code == 303
        assert manager.get("/api/v1/webhooks").json()[0]["active"] is (active == "true")
        assert ("Switch on" in manager.get("/webhooks").text) is (active == "false")
    assert manager.post(f"/webhooks/{webhook}/try").status_code == 303
    page = manager.get("/webhooks").text
    assert "waiting" in page
    before = manager.post(f"/webhooks/{webhook}/secret").text
    after = manager.post(f"/webhooks/{webhook}/secret").text
    assert re.findall(r"whsec_[A-Za-z0-9+/=]+", before) != re.findall(r"whsec_[A-Za-z0-9+/=]+", after)
    assert manager.post(f"/webhooks/{webhook}/remove").status_code == 303
    assert manager.get("/api/v1/webhooks").json() == []
    assert manager.post(f"/webhooks/{webhook}/remove").status_code == 404


def test_settings_lead_to_it(team: Team) -> None:
    assert 'href="/webhooks"' in team.client(Role.MANAGER).get("/settings").text
