"""Login by OpenID Connect: the authorization code flow with PKCE, state and nonce.

Two steps, each for a route to call: :meth:`Provider.begin` says where to send the browser, and :meth:`Provider.finish`
who came back. Between them, what belongs together is kept in a signed cookie of ten minutes, which a route sets with
``HttpOnly``, ``SameSite=Lax`` (the way back begins at another site) and, by https, ``Secure``, and deletes at the end.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from authlib.oauth2 import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import JWKRegistry, KeySet, OctKey
from joserfc.jws import JWSRegistry

from quorate.errors import InputError, QuorateError, SettingsError
from quorate_serve.guard import local_path
from quorate_serve.outgoing import Outgoing, Rules
from quorate_serve.people import Role
from quorate_serve.settings import ServiceSettings

SECONDS_TO_LOG_IN = 600
_LEEWAY = 60  # seconds by which clocks may differ
_DISCOVERED_FOR = 3600.0
_KEYS_AT_MOST_EVERY = 60.0
_ASYMMETRIC = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519"})


class LoginError(InputError):
    """A login that is not accepted.

    >>> raise LoginError("the login took too long, or began in another browser (log in again)")
    Traceback (most recent call last):
    quorate_serve.oidc.LoginError: the login took too long, or began in another browser (log in again)
    """


class Identity(NamedTuple):
    """Who logged in, as the provider vouches for it. ``issuer`` and ``subject`` together never change.

    ``email`` is empty unless the provider says that it is verified; ``roles`` are those that the settings give.
    """

    issuer: str
    subject: str
    email: str
    name: str
    roles: frozenset[str]


@dataclass(frozen=True)
class OidcSettings:
    """Which provider, and what its word is worth here.

    ``roles`` maps values of the claim ``role_claim`` (``groups``, or ``realm_access.roles`` for one inside another) to
    roles of this service. Nobody gets an account by logging in, unless their verified e-mail is in ``domains``.

    >>> settings = OidcSettings("https://id.example.com", "quorate", "secret", domains=frozenset({"example.com"}))
    >>> settings.may_join(Identity(settings.issuer, "17", "ada@example.com", "Ada", frozenset()))
    True
    """

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    scope: str = "openid email profile"
    role_claim: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    domains: frozenset[str] = frozenset()
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256")

    def __post_init__(self) -> None:
        wrong = sorted(set(self.algorithms) - _ASYMMETRIC)
        if wrong or not self.algorithms:
            raise SettingsError(f"algorithms: {wrong} (some of {', '.join(sorted(_ASYMMETRIC))})")

    def may_join(self, identity: Identity) -> bool:
        """Whether an account is made for somebody who has none."""
        name, _, domain = identity.email.rpartition("@")
        return bool(name) and domain.lower() in {one.lower() for one in self.domains}

    def roles_of(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """The roles that a person's claims stand for.

        >>> settings = OidcSettings("https://id", "quorate", role_claim="team.groups", roles={"staff": "reviewer"})
        >>> sorted(settings.roles_of({"team": {"groups": ["staff", "tennis"]}}))
        ['reviewer']
        """
        found: Any = claims.get(self.role_claim)
        if found is None:
            found = claims
            for part in self.role_claim.split("."):
                found = found.get(part) if isinstance(found, Mapping) else None
        values = found if isinstance(found, list) else [found]
        return frozenset(self.roles[value] for value in values if isinstance(value, str) and value in self.roles)


class Begun(NamedTuple):
    """Where to send the browser, and the cookie to send with it."""

    url: str
    cookie: str


class Provider:
    """One provider of identities. What it publishes is fetched when it is first needed, and again once an hour.

    The issuer is a setting of the server, so that it may stand in the own network. ``key`` signs cookies: 32 random
    bytes that every process of the server has.
    """

    def __init__(
        self,
        settings: OidcSettings,
        redirect_uri: str,
        key: bytes,
        outgoing: Outgoing,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if len(key) < 32:
            raise SettingsError("the key that signs cookies must have 32 bytes or more")
        self.settings = settings
        self._redirect_uri, self._clock = redirect_uri, clock
        self._outgoing = outgoing.allowing(settings.issuer)
        # A key of its own, so that nothing else that is signed here passes for this cookie.
        self._key = OctKey.import_key(hmac.digest(key, b"quorate: login by OpenID Connect", "sha256"))
        # No lock: two that fetch these at once store the same, and nobody waits for another's slow answer.
        self._metadata: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    def begin(self, then: str = "/") -> Begun:
        """Start a login, after which the browser goes on to the page ``then`` of this service."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        url = prepare_grant_uri(
            self._endpoint("authorization_endpoint"),
            client_id=self.settings.client_id,
            response_type="code",
            redirect_uri=self._redirect_uri,
            scope=self.settings.scope,
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        ends = int(self._clock()) + SECONDS_TO_LOG_IN
        content = {"state": state, "nonce": nonce, "verifier": verifier, "then": local_path(then), "exp": ends}
        return Begun(url, jwt.encode({"alg": "HS256"}, content, self._key, algorithms=["HS256"]))

    def finish(self, query: Mapping[str, str], cookie: str) -> tuple[Identity, str]:
        """Who logged in, and where to go on, by what the browser came back with, or :class:`LoginError`."""
        begun = self._opened(cookie)
        if not hmac.compare_digest(query.get("state", "").encode("utf-8", "replace"), begun["state"].encode()):
            raise LoginError("this login was not begun in this browser (log in again)")
        self._check_sender(query)
        token = self._token(query["code"], begun["verifier"])
        claims = self._verified(token, begun["nonce"])
        return self._identity(claims, self._user_info(token, claims)), begun["then"]

    def _opened(self, cookie: str) -> dict[str, Any]:
        """What :meth:`begin` has put into the cookie."""
        try:
            content = jwt.decode(cookie, self._key, algorithms=["HS256"]).claims
            jwt.JWTClaimsRegistry(now=int(self._clock()), exp={"essential": True}).validate(content)
        except (JoseError, ValueError):
            raise LoginError("the login took too long, or began in another browser (log in again)") from None
        return content

    def _check_sender(self, query: Mapping[str, str]) -> None:
        """That it is this provider that sent the browser back (RFC 9207), and with a code."""
        promised = self._discovered().get("authorization_response_iss_parameter_supported") is True
        if query.get("iss", "" if promised else self.settings.issuer) != self.settings.issuer:
            raise LoginError("another provider sent this login (log in again)")
        if not query.get("code"):
            why = query.get("error", "")
            raise LoginError(f"the provider refused: {why if re.fullmatch('[a-z_]{1,50}', why) else 'no reason given'}")

    def _token(self, code: str, verifier: str) -> dict[str, Any]:
        """What the provider gives for a code, once."""
        supported = self._discovered().get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        method = "client_secret_basic" if "client_secret_basic" in supported else "client_secret_post"
        auth = ClientAuth(
            self.settings.client_id, self.settings.client_secret, method if self.settings.client_secret else "none"
        )
        body = prepare_token_request(
            "authorization_code", code=code, redirect_uri=self._redirect_uri, code_verifier=verifier
        )
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        url, headers, body = auth.prepare("POST", self._endpoint("token_endpoint"), headers, body)
        return self._fetched("POST", url, headers, body.encode())

    def _verified(self, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """The claims of an id token that this provider signed, for us, now, in answer to this login."""
        registry = JWSRegistry(algorithms=self.settings.algorithms, strict_check_header=False)
        text, access = token.get("id_token"), token.get("access_token")
        if not isinstance(text, str):
            raise LoginError("the provider gave no id token (is 'openid' in the scope?)")
        try:
            try:
                decoded = jwt.decode(text, self._key_set(), registry=registry)
            except InvalidKeyIdError:  # the provider may have changed its keys
                decoded = jwt.decode(text, self._key_set(again=True), registry=registry)
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                {
                    "iss": {"essential": True, "value": self.settings.issuer},
                    "aud": {"essential": True, "value": self.settings.client_id},
                    "sub": {"essential": True},
                },
                {"nonce": nonce, "client_id": self.settings.client_id, "access_token": access},
            )
            claims.validate(now=int(self._clock()), leeway=_LEEWAY)
        except (JoseError, ValueError, TypeError) as error:  # a token may hold anything
            why = error.description if isinstance(error, JoseError) else "malformed"
            raise LoginError(f"the id token is not valid: {why} (tell the administrator)") from None
        return dict(claims)

    def _user_info(self, token: Mapping[str, Any], claims: Mapping[str, Any]) -> dict[str, Any]:
        """What the provider keeps out of id tokens, if the e-mail is not in it; of the same person alone."""
        url, access = self._discovered().get("userinfo_endpoint"), token.get("access_token")
        if "email" in claims or not isinstance(url, str) or not isinstance(access, str):
            return {}
        found = self._fetched("GET", url, {"Accept": "application/json", "Authorization": f"Bearer {access}"})
        if found.get("sub") != claims["sub"]:
            raise LoginError("the provider speaks of somebody else (log in again)")
        return found

    def _identity(self, claims: Mapping[str, Any], more: Mapping[str, Any]) -> Identity:
        of_email = claims if "email" in claims else more  # an e-mail, and the word that it is verified, from one place
        email, name = of_email.get("email"), claims.get("name", more.get("name"))
        return Identity(
            issuer=self.settings.issuer,
            subject=claims["sub"],
            email=email if isinstance(email, str) and of_email.get("email_verified") is True else "",
            name=name if isinstance(name, str) else "",
            roles=self.settings.roles_of({**more, **claims}),
        )

    def _endpoint(self, name: str) -> str:
        """An address out of the discovery document."""
        url = self._discovered().get(name)
        secure = ("https://", "http://") if self._outgoing.rules.plain_http else ("https://",)
        if not isinstance(url, str) or not url.startswith(secure):
            raise LoginError(f"the provider's {name} is missing or not https (tell the administrator)")
        return url

    def _discovered(self) -> dict[str, Any]:
        """The discovery document of this issuer and no other."""
        now, known = self._clock(), self._metadata
        if known is None or now - known[0] > _DISCOVERED_FOR:
            found = self._fetched("GET", f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration")
            if found.get("issuer") != self.settings.issuer:
                raise LoginError("the provider has another name for itself than the setting 'issuer' (make them equal)")
            self._metadata = known = now, found
        return known[1]

    def _key_set(self, again: bool = False) -> KeySet:
        """The keys that the provider signs with; fetched ``again`` for a new one, though not for every forged one."""
        now, known = self._clock(), self._keys
        if known is None or now - known[0] > (_KEYS_AT_MOST_EVERY if again else _DISCOVERED_FOR):
            self._keys = known = now, _keys_of(self._fetched("GET", self._endpoint("jwks_uri")))
        return known[1]

    def _fetched(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> dict[str, Any]:
        """The JSON object that the provider answers with."""
        try:
            answer = self._outgoing.request(method, url, headers, body)
            content = answer.json() if answer.status == 200 else None
        except QuorateError as error:
            raise LoginError(f"the provider cannot be asked: {error}") from None
        if not isinstance(content, dict):
            raise LoginError(f"the provider answered {answer.status} (log in again, or tell the administrator)")
        return content


def _keys_of(document: Mapping[str, Any]) -> KeySet:
    """The keys that a provider publishes, without those of kinds that are not known here."""
    listed, found = document.get("keys"), []
    for key in listed if isinstance(listed, list) else []:
        with suppress(JoseError, ValueError, TypeError, KeyError):
            found.append(JWKRegistry.import_key(key))
    return KeySet(found)


def provider_of(settings: ServiceSettings) -> Provider | None:
    """The provider of logins that the settings name, if they do; its secret is ``QUORATE_OIDC_SECRET``."""
    given = settings.oidc
    if not given:
        return None
    if not given.get("client"):
        raise SettingsError("oidc-issuer needs oidc-client, this service's id there (give both)")
    pairs = [pair.partition("=") for pair in _listed(given.get("roles", ""))]
    wrong = sorted({role for _, _, role in pairs} - set(Role))
    if wrong:
        raise SettingsError(f"oidc-role: {wrong[0]!r} is not a role (VALUE=ROLE; one of {', '.join(Role)})")
    chosen = OidcSettings(
        given["issuer"],
        given["client"],
        os.environ.get("QUORATE_OIDC_SECRET", ""),
        role_claim=given.get("role-claim") or "groups",
        roles={value: role for value, _, role in pairs},
        domains=frozenset(_listed(given.get("domains", ""))),
    )
    is_here = urlsplit(chosen.issuer).hostname in ("localhost", "127.0.0.1", "::1")
    key = settings.secret()
    return Provider(chosen, f"{settings.address}/login/oidc/back", key, Outgoing(Rules(plain_http=is_here)))


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
