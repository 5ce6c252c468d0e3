"""Login by OpenID Connect, and all the ways in which somebody might log in as somebody else."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from oidc_provider import CLIENT, REDIRECT, SECRET, OidcProvider, oidc_provider, rsa_key
from quorate.errors import SettingsError
from quorate_serve.guard import local_path
from quorate_serve.oidc import SECONDS_TO_LOG_IN, Identity, LoginError, OidcSettings, Provider
from quorate_serve.outgoing import Outgoing, Rules

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def server() -> Iterator[OidcProvider]:
    with oidc_provider() as running:
        yield running


@pytest.fixture
def theirs(server: OidcProvider) -> OidcProvider:
    """The provider, honest again after each test."""
    issuer = server.issuer
    OidcProvider.__init__(server)
    server.issuer = issuer
    return server


@pytest.fixture
def ours(theirs: OidcProvider) -> Provider:
    return client(theirs)


def client(theirs: OidcProvider, key: bytes = KEY, **changed: Any) -> Provider:
    settings = replace(OidcSettings(theirs.issuer, CLIENT, SECRET), **changed)
    outgoing = Outgoing(Rules(plain_http=True), seconds=5)
    return Provider(settings, REDIRECT, key, outgoing, clock=lambda: theirs.now)


def logged_in(ours: Provider, theirs: OidcProvider) -> Identity:
    begun = ours.begin()
    return ours.finish(theirs.log_in(begun.url), begun.cookie)[0]


def test_a_login_from_the_first_click_to_the_page_that_was_wanted(ours: Provider, theirs: OidcProvider) -> None:
    begun = ours.begin("/review?document=3")
    identity, then = ours.finish(theirs.log_in(begun.url), begun.cookie)
    assert identity == Identity(theirs.issuer, "ada-17", "ada@example.com", "Ada Łovelace", frozenset())
    assert then == "/review?document=3"


def test_every_login_has_a_state_a_nonce_and_a_challenge_of_its_own(ours: Provider) -> None:
    asked = [parse_qs(urlsplit(ours.begin().url).query) for _ in range(3)]
    for name in ("state", "nonce", "code_challenge"):
        values = [one[name][0] for one in asked]
        assert len(set(values)) == 3
        assert min(map(len, values)) >= 43


def test_what_the_provider_publishes_is_fetched_once_an_hour(ours: Provider, theirs: OidcProvider) -> None:
    for _ in range(3):
        logged_in(ours, theirs)
    assert [request.path for request in theirs.requests].count("/.well-known/openid-configuration") == 1
    assert [request.path for request in theirs.requests].count("/keys") == 1
    theirs.now += 3700
    logged_in(ours, theirs)
    assert [request.path for request in theirs.requests].count("/keys") == 2


def test_a_client_says_who_it_is_as_the_provider_wants_it(theirs: OidcProvider) -> None:
    theirs.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    assert logged_in(client(theirs), theirs).subject == "ada-17"
    with pytest.raises(LoginError, match="answered 401"):
        logged_in(client(theirs, client_secret="wrong"), theirs)


# --- who comes back, and with what -----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["", "guessed", "ünïcode", "\udc80"])
def test_another_state_is_not_this_browsers_login(ours: Provider, theirs: OidcProvider, state: str) -> None:
    begun = ours.begin()
    with pytest.raises(LoginError, match="not begun in this browser"):
        ours.finish({**theirs.log_in(begun.url), "state": state}, begun.cookie)
    assert not [request for request in theirs.requests if request.path == "/token"]


def test_the_login_of_an_attacker_cannot_be_finished_in_somebody_elses_browser(
    ours: Provider, theirs: OidcProvider
) -> None:
    mallory, ada = ours.begin(), ours.begin()
    with pytest.raises(LoginError, match="not begun in this browser"):
        ours.finish(theirs.log_in(mallory.url), ada.cookie)


def test_a_code_of_another_login_fails_for_want_of_its_verifier(ours: Provider, theirs: OidcProvider) -> None:
    ada, mallory = ours.begin(), ours.begin()
    stolen, own = theirs.log_in(ada.url), theirs.log_in(mallory.url)
    with pytest.raises(LoginError, match="answered 400"):
        ours.finish({**own, "code": stolen["code"]}, mallory.cookie)


def test_a_replayed_code_is_refused(ours: Provider, theirs: OidcProvider) -> None:
    begun = ours.begin()
    query = theirs.log_in(begun.url)
    ours.finish(query, begun.cookie)
    with pytest.raises(LoginError, match="answered 400"):
        ours.finish(query, begun.cookie)


def test_a_login_that_takes_too_long_is_refused(ours: Provider, theirs: OidcProvider) -> None:
    begun = ours.begin()
    query = theirs.log_in(begun.url)
    theirs.now += SECONDS_TO_LOG_IN
    with pytest.raises(LoginError, match="took too long"):
        ours.finish(query, begun.cookie)


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims)]
    return ".".join([*parts, ""])


def test_a_cookie_that_somebody_else_made_is_refused(ours: Provider, theirs: OidcProvider) -> None:
    begun = ours.begin()
    query = theirs.log_in(begun.url)
    content = {"state": query["state"], "nonce": "n", "verifier": "v" * 43, "then": "/", "exp": int(theirs.now) + 99}
    forged = [
        "",
        "x",
        "a.b.c",
        "ü",
        "\udc80",
        begun.cookie[:-4] + "AAAA",
        unsigned({"alg": "none"}, content),
        unsigned({"alg": "HS256"}, content),
        jwt.encode({"alg": "HS256"}, content, OctKey.import_key(KEY)),  # the key as it signs other things
        client(theirs, key=bytes(32)).begin().cookie,
    ]
    for cookie in forged:
        with pytest.raises(LoginError, match="took too long, or began in another browser"):
            ours.finish(query, cookie)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"error": "access_denied"}, "the provider refused: access_denied"),
        ({"error": "<script>alert(1)</script>"}, "the provider refused: no reason given"),
        ({}, "the provider refused: no reason given"),
        ({"code": ""}, "the provider refused: no reason given"),
        ({"code": "x", "iss": "https://other.example"}, "another provider sent this login"),
    ],
)
def test_without_a_code_of_this_provider_nobody_is_logged_in(
    ours: Provider, theirs: OidcProvider, query: dict[str, str], said: str
) -> None:
    begun = ours.begin()
    state = theirs.log_in(begun.url)["state"]
    with pytest.raises(LoginError, match=said):
        ours.finish({**query, "state": state}, begun.cookie)


def test_a_provider_that_says_who_it_is_must_do_so(ours: Provider, theirs: OidcProvider) -> None:
    theirs.metadata["authorization_response_iss_parameter_supported"] = True
    begun = ours.begin()
    query = theirs.log_in(begun.url)
    with pytest.raises(LoginError, match="another provider"):
        ours.finish(query, begun.cookie)
    assert ours.finish({**query, "iss": theirs.issuer}, begun.cookie)[0].subject == "ada-17"


# --- the id token ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"nonce": ""},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"iss": ["https://evil.example"]},
        {"aud": "another-client"},
        {"aud": None},
        {"aud": []},
        {"aud": ["another-client"]},
        {"aud": [CLIENT, "another-client"]},  # and nobody says for whom it was made
        {"aud": [CLIENT, "another-client"], "azp": "another-client"},
        {"aud": {"quorate": 1}},
        {"aud": "another-client", "azp": CLIENT},
        {"exp": 1_790_000_000 - 61},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"iat": 1_790_000_000 + 3600},
        {"iat": None},
        {"nbf": 1_790_000_000 + 3600},
        {"sub": None},
        {"sub": ""},
        {"sub": 17},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
        {"at_hash": ["a"]},
    ],
)
def test_an_id_token_with_a_wrong_claim_is_not_valid(
    ours: Provider, theirs: OidcProvider, wrong: dict[str, Any]
) -> None:
    theirs.claims |= wrong
    with pytest.raises(LoginError, match="the id token is not valid"):
        logged_in(ours, theirs)


def test_an_id_token_for_several_is_valid_if_it_was_made_for_us(ours: Provider, theirs: OidcProvider) -> None:
    theirs.claims |= {"aud": [CLIENT, "another-client"], "azp": CLIENT}
    assert logged_in(ours, theirs).subject == "ada-17"


def by_another_key(theirs: OidcProvider, claims: dict[str, Any]) -> str:
    return jwt.encode({"alg": "RS256", "kid": theirs.keys[0].kid}, claims, rsa_key("mallory"))


def by_an_unknown_key(theirs: OidcProvider, claims: dict[str, Any]) -> str:
    return theirs.signed(claims, rsa_key("mallory"))


def with_alg_none(theirs: OidcProvider, claims: dict[str, Any]) -> str:
    return unsigned({"alg": "none", "kid": theirs.keys[0].kid}, claims)


def with_the_public_key_as_a_secret(theirs: OidcProvider, claims: dict[str, Any]) -> str:
    secret = OctKey.import_key(base64.b64encode(theirs.keys[0].as_pem(private=False)))
    return jwt.encode({"alg": "HS256", "kid": theirs.keys[0].kid}, claims, secret)


def with_the_clients_secret(theirs: OidcProvider, claims: dict[str, Any]) -> str:
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET.ljust(32, "0")))


def with_its_own_key_along(theirs: OidcProvider, claims: dict[str, Any]) -> str:
    key = rsa_key("mallory")
    header = {"alg": "RS256", "kid": theirs.keys[0].kid, "jwk": key.as_dict(private=False)}
    return jwt.encode(header, claims, key)


def with_an_algorithm_that_is_not_listed(theirs: OidcProvider, claims: dict[str, Any]) -> str:
    return theirs.signed(claims, alg="RS512")


def with_other_content(theirs: OidcProvider, claims: dict[str, Any]) -> str:
    header, _, signature = theirs.signed(claims).split(".")
    content = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "root"}).encode()).rstrip(b"=").decode()
    return f"{header}.{content}.{signature}"


def that_is_nothing(theirs: OidcProvider, claims: dict[str, Any]) -> str:
    return "nothing"


def that_is_a_list(theirs: OidcProvider, claims: dict[str, Any]) -> str:
    return unsigned({"alg": "RS256"}, claims).replace(".", ".W10.", 1)


@pytest.mark.parametrize(
    "forged",
    [
        by_another_key,
        by_an_unknown_key,
        with_alg_none,
        with_the_public_key_as_a_secret,
        with_the_clients_secret,
        with_its_own_key_along,
        with_an_algorithm_that_is_not_listed,
        with_other_content,
        that_is_nothing,
        that_is_a_list,
    ],
)
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_a_forged_id_token_is_not_valid(
    ours: Provider, theirs: OidcProvider, forged: Callable[[OidcProvider, dict[str, Any]], str]
) -> None:
    theirs.sign = lambda claims: forged(theirs, claims)
    with pytest.raises(LoginError, match="the id token is not valid"):
        logged_in(ours, theirs)


def test_without_an_id_token_nobody_is_logged_in(ours: Provider, theirs: OidcProvider) -> None:
    theirs.sign = lambda claims: None  # type: ignore[assignment,return-value]
    with pytest.raises(LoginError, match="gave no id token"):
        logged_in(ours, theirs)


def test_symmetric_keys_of_a_provider_and_those_for_encryption_verify_nothing(
    ours: Provider, theirs: OidcProvider
) -> None:
    secret = OctKey.generate_key(256, {"kid": "one"})
    theirs.odd_keys = [secret.as_dict(private=True)]
    theirs.sign = lambda claims: jwt.encode({"alg": "HS256", "kid": "one"}, claims, secret)
    with pytest.raises(LoginError, match="the id token is not valid"):
        logged_in(ours, theirs)
    theirs.odd_keys = [{**rsa_key().as_dict(private=False), "use": "enc"}]
    theirs.sign = theirs.signed
    with pytest.raises(LoginError, match="the id token is not valid"):
        logged_in(client(theirs), theirs)


@pytest.mark.parametrize(
    "keys",
    [
        "x",
        {"a": 1},
        ["x"],
        [None],
        [3],
        [[]],
        [{}],
        [{"kty": "RSA"}],
        [{"kty": ["RSA"]}],
        [{"kty": "RSA", "n": "!", "e": "!", "kid": "one"}],
        [{"kty": "RSA", "n": 3, "e": None, "kid": "one"}],
        [{"kty": "EC", "crv": "P-0", "x": "AA", "y": "AA", "kid": "one"}],
        [{"kty": "oct", "k": "", "kid": "one"}],
    ],
)
def test_keys_that_are_none_verify_nothing(ours: Provider, theirs: OidcProvider, keys: Any) -> None:
    theirs.odd_keys = keys
    with pytest.raises(LoginError, match="the id token is not valid"):
        logged_in(ours, theirs)


def test_a_key_of_a_kind_that_is_not_known_is_passed_over(ours: Provider, theirs: OidcProvider) -> None:
    unknown = [{"kty": "EC", "crv": "P-0", "x": "AA", "y": "AA"}, {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"}]
    theirs.odd_keys = [*unknown, rsa_key().as_dict(private=False)]
    assert logged_in(ours, theirs).subject == "ada-17"


def test_new_keys_of_the_provider_are_fetched_but_not_for_every_forged_token(
    ours: Provider, theirs: OidcProvider
) -> None:
    logged_in(ours, theirs)
    theirs.keys = [rsa_key("two")]
    theirs.now += 61
    assert logged_in(ours, theirs).subject == "ada-17"
    theirs.sign = lambda claims: by_an_unknown_key(theirs, claims)
    for _ in range(5):
        theirs.now += 10
        with pytest.raises(LoginError):
            logged_in(ours, theirs)
    assert [request.path for request in theirs.requests].count("/keys") == 2


# --- what a provider's word is worth ---------------------------------------------------------------------------------


@pytest.mark.parametrize("verified", [False, None, "true", "false", 1, "yes"])
def test_an_email_that_is_not_verified_is_not_taken(ours: Provider, theirs: OidcProvider, verified: Any) -> None:
    theirs.claims["email_verified"] = verified
    assert logged_in(ours, theirs).email == ""


def test_an_email_is_asked_for_where_the_id_token_has_none(ours: Provider, theirs: OidcProvider) -> None:
    theirs.claims |= {"email": None, "email_verified": None, "name": None}
    theirs.user_info = {"sub": "ada-17", "email": "ada@example.org", "email_verified": True, "name": "Ada"}
    identity = logged_in(ours, theirs)
    assert (identity.email, identity.name) == ("ada@example.org", "Ada")


def test_an_email_and_the_word_that_it_is_verified_come_from_one_place(ours: Provider, theirs: OidcProvider) -> None:
    theirs.claims |= {"email": None}
    theirs.user_info = {"sub": "ada-17", "email": "root@example.com", "email_verified": False}
    assert logged_in(ours, theirs).email == ""


def test_what_is_said_of_somebody_else_is_not_taken(ours: Provider, theirs: OidcProvider) -> None:
    theirs.claims |= {"email": None}
    theirs.user_info = {"sub": "root", "email": "root@example.com", "email_verified": True}
    with pytest.raises(LoginError, match="somebody else"):
        logged_in(ours, theirs)


@pytest.mark.parametrize(
    ("claim", "said", "roles"),
    [
        ("groups", {"groups": ["staff", "board", "tennis"]}, {"reviewer", "manager"}),
        ("groups", {"groups": "staff"}, {"reviewer"}),
        ("groups", {"groups": ["admin"]}, set()),  # a name of ours is nothing unless the settings say so
        ("groups", {"groups": [{"staff": 1}, 3, None]}, set()),
        ("groups", {}, set()),
        ("", {"groups": ["staff"]}, set()),
        ("realm_access.roles", {"realm_access": {"roles": ["board"]}}, {"manager"}),
        ("realm_access.roles", {"realm_access": "board"}, set()),
        ("https://example.com/roles", {"https://example.com/roles": ["staff"]}, {"reviewer"}),
    ],
)
def test_roles_are_what_the_settings_make_of_a_claim(
    theirs: OidcProvider, claim: str, said: dict[str, Any], roles: set[str]
) -> None:
    ours = client(theirs, role_claim=claim, roles={"staff": "reviewer", "board": "manager"})
    theirs.claims |= said
    assert logged_in(ours, theirs).roles == roles


@pytest.mark.parametrize(
    ("email", "joins"),
    [
        ("ada@example.com", True),
        ("ada@EXAMPLE.com", True),
        ("ada@evil.example", False),
        ("ada@sub.example.com", False),
        ("ada@notexample.com", False),
        ("ada@example.com@evil.example", False),
        ("example.com", False),
        ("@example.com", False),
        ("", False),
    ],
)
def test_an_account_is_made_for_verified_emails_of_listed_domains_alone(email: str, joins: bool) -> None:
    identity = Identity("https://id.example.com", "17", email, "Ada", frozenset({"admin"}))
    listed = OidcSettings("https://id.example.com", CLIENT, domains=frozenset({"Example.com"}))
    assert listed.may_join(identity) == joins
    assert not OidcSettings("https://id.example.com", CLIENT).may_join(identity)


# --- the provider itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"issuer": "https://evil.example"}, "another name for itself"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint is missing or not https"),
        ({"authorization_endpoint": None}, "authorization_endpoint is missing or not https"),
    ],
)
def test_a_provider_that_publishes_something_odd_is_not_gone_to(
    ours: Provider, theirs: OidcProvider, metadata: dict[str, Any], said: str
) -> None:
    theirs.metadata |= metadata
    with pytest.raises(LoginError, match=said):
        ours.begin()


@pytest.mark.parametrize("url", ["http://169.254.169.254/token", "http://127.0.0.1:9/token", "file:///etc/passwd", 3])
def test_a_provider_cannot_send_the_server_into_its_own_network(ours: Provider, theirs: OidcProvider, url: Any) -> None:
    theirs.metadata["token_endpoint"] = url
    with pytest.raises(LoginError, match=r"cannot be asked|missing or not https"):
        logged_in(ours, theirs)


def test_a_provider_by_plain_http_is_for_the_servers_rules_to_allow(theirs: OidcProvider) -> None:
    ours = Provider(OidcSettings(theirs.issuer, CLIENT, SECRET), REDIRECT, KEY, Outgoing())
    with pytest.raises(LoginError, match="must begin with https"):
        ours.begin()


def test_settings_are_checked_and_show_no_secret(theirs: OidcProvider) -> None:
    for algorithms in (("none",), ("HS256", "RS256"), ()):
        with pytest.raises(SettingsError, match="algorithms"):
            OidcSettings("https://id.example.com", CLIENT, algorithms=algorithms)
    with pytest.raises(SettingsError, match="32 bytes"):
        client(theirs, key=b"short")
    assert SECRET not in repr(OidcSettings("https://id.example.com", CLIENT, SECRET))


@pytest.mark.parametrize(
    "then",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "evil.example",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/a\r\nSet-Cookie: x=1",
        "/ü",
        "",
        "/" + "a" * 2000,
    ],
)
def test_after_a_login_nobody_is_sent_elsewhere(ours: Provider, theirs: OidcProvider, then: str) -> None:
    begun = ours.begin(then)
    assert ours.finish(theirs.log_in(begun.url), begun.cookie)[1] == local_path(then) == "/"
