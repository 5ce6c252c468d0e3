"""Names of people: one that looks like another is that other, and nothing in one is invisible."""

from __future__ import annotations

import hashlib
import hmac
import json
import tarfile
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

import quorate
from quorate_serve import passwords, people, sessions
from quorate_serve.database import tables
from quorate_serve.database.engine import Database
from quorate_serve.importing import import_corpus
from quorate_serve.people import Role
from quorate_serve.problems import InvalidError
from quorate_serve.settings import ServiceSettings
from quorate_serve.start import begin
from serving import PASSWORD, Team

FORMATS = Path(__file__).parents[1] / "assets" / "formats"
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2066\u2067\u2068\u2069\u206a\u2800\u3164\ufe00\ufe0f\ufeff\uffa0\ufffb\U000e0061\U000e0100"
)


@pytest.fixture(scope="module")
def kept() -> str:
    return passwords.hashed(PASSWORD)


def join(team: Team, name: str) -> Any:
    link = team.database.change(lambda connection: sessions.invite(connection, Role.ANNOTATOR))
    return team.client(follow_redirects=False).post(f"/invite/{link}", data={"name": name, "password": PASSWORD})


def names(team: Team) -> list[str]:
    with team.database.read() as connection:
        return [person.name for person in people.people_of(connection)]


def test_nobody_joins_under_a_name_that_looks_like_another(
    any_team: Team, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    monkeypatch.setattr(passwords, "hashed", lambda _: kept)
    any_team.add("adm in", Role.ADMIN)
    before = names(any_team)
    found = [f"adm{each} in" for each in INVISIBLE] + [f"{each}adm in{each}" for each in INVISIBLE]
    found += ["adm  in", "adm\u00a0in", "\u3000adm\u2003in", "ADM\tin", "\uff41dm in", "adm\u2028in"]
    secret = any_team.settings.secret()
    for number, name in enumerate(found):
        assert people.digest(secret, name) == people.digest(secret, "adm in"), (number, ascii(name))
    for name in (found[0], found[10], found[40], found[-1]):
        assert join(any_team, name).status_code in (409, 422), ascii(name)
    assert names(any_team) == before


@pytest.mark.parametrize("name", [*INVISIBLE, INVISIBLE, "\u200b \u200b", " "])
def test_a_name_of_nothing_is_none(team: Team, name: str) -> None:
    with pytest.raises(InvalidError, match="a name has 1 to 200 characters"):
        team.add(name, Role.ANNOTATOR)


def test_a_name_is_kept_without_what_nobody_sees_and_found_however_it_is_typed(team: Team) -> None:
    for typed, shown in (
        ("\u202eAda\u202c  Love\u200blace", "Ada Lovelace"),
        ("می\u200cخواهم", "میخواهم"),
        ("Zoe\u0308", "Zo\u00eb"),
        ("👩\u200d🚀", "👩🚀"),
        ("李 小龍", "李 小龍"),
    ):
        assert join(team, typed).status_code == 303, shown
        assert names(team)[-1] == shown
        answer = team.client(follow_redirects=False).post("/login", data={"name": typed, "password": PASSWORD})
        assert answer.status_code == 303, ascii(typed)
        secret = team.settings.secret()
        for again in (typed, unicodedata.normalize("NFD", shown), f" {shown}\u200b"):
            assert people.digest(secret, again) == people.digest(secret, shown), ascii(again)


def test_names_of_files_stay_apart(team: Team) -> None:
    """What a file tells apart stays apart, and goes out as it came in."""
    said = {"adm": ("B-PER", "O"), "adm\u200b": ("O", "B-PER"), "ADM": ("O", "O")}
    given = quorate.Corpus([quorate.Document("1", ("Ada", "sang"), said)])
    for _ in range(2):
        import_corpus(team.database, team.settings.secret(), given)
    exported = team.client(Role.MANAGER).get("/api/v1/export", params={"format": "jsonl"}).text
    (record,) = map(json.loads, exported.splitlines())
    assert set(record["annotations"]) == set(said)
    assert join(team, "adm").status_code == 409


@pytest.fixture
def of_0_11(tmp_path: Path) -> ServiceSettings:
    with tarfile.open(FORMATS / "0.11" / "service.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    return ServiceSettings(tmp_path)


def logs_in(settings: ServiceSettings, name: str) -> str | None:
    database, secret = Database.open(settings.database), settings.secret()
    attempt = database.change(lambda connection: passwords.begin_attempt(connection, secret, name))
    database.close()
    return attempt.person if passwords.is_right(attempt, PASSWORD) else None


def test_people_of_0_11_log_in_by_names_with_what_is_left_out_now(of_0_11: ServiceSettings) -> None:
    _, told = begin(of_0_11, None)
    assert logs_in(of_0_11, "Zo\u200dë") == logs_in(of_0_11, "zoë") is not None
    assert logs_in(of_0_11, "Ann") is not None
    database = Database.open(of_0_11.database)
    with database.read() as connection:
        ids = {person.name: person.id for person in people.people_of(connection)}
    database.close()
    assert logs_in(of_0_11, "adm") == logs_in(of_0_11, "adm\u200b") == ids["adm"]
    (line,) = [line for line in told if "looks like" in line]
    assert ids["adm\u200b"] in line
    _, again = begin(of_0_11, None)
    assert line in again  # until somebody has seen to it


def test_a_service_in_which_all_names_are_such_knows_its_secret(tmp_path: Path) -> None:
    team = Team(ServiceSettings(tmp_path))
    try:
        secret = team.settings.secret()

        def as_before(connection: Connection) -> None:
            """As 0.11 kept names: with all that is in them."""
            for person in people.people_of(connection):
                name = f"{person.name}  \u200b x"
                folded = unicodedata.normalize("NFKC", name).casefold().strip()
                login = hmac.new(secret, folded.encode(), hashlib.sha256).hexdigest()
                personal = people.write_personal(connection, person.id, f'{{"name": "{name}", "email": ""}}')
                changed = update(tables.people).where(tables.people.c.id == person.id)
                connection.execute(changed.values(login=login, personal=personal))

        team.database.change(as_before)
        begin(team.settings, None)
        with team.database.read() as connection:
            logins = set(connection.execute(select(tables.people.c.login)).scalars())
        assert people.digest(secret, "annotator x") in logins
    finally:
        team.close()
