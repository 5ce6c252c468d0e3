"""A small provider of OpenID Connect on loopback: strict with its clients, and as dishonest as a test wants it."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

from loopback import Received, Reply, http_server

CLIENT, SECRET, REDIRECT = "quorate", "s3cret", "https://quorate.test/login/return"


@cache
def rsa_key(kid: str = "one") -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


class OidcProvider:
    """What it says can be changed: ``metadata`` it publishes, ``claims`` in tokens, ``user_info``, how it ``sign``s."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0
        self.redirect = REDIRECT
        self.issuer = ""
        self.keys: list[Any] = [rsa_key()]
        self.odd_keys: Any = None
        self.claims: dict[str, Any] = {"email": "ada@example.com", "email_verified": True, "name": "Ada Łovelace"}
        self.metadata: dict[str, Any] = {}
        self.user_info: dict[str, Any] = {}
        self.requests: list[Received] = []
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self._codes: dict[str, dict[str, str]] = {}

    def signed(self, claims: dict[str, Any], key: RSAKey | None = None, alg: str = "RS256") -> str:
        key = key or self.keys[0]
        return jwt.encode({"alg": alg, "kid": key.kid}, claims, key, algorithms=[alg])

    def log_in(self, url: str) -> dict[str, str]:
        """What a browser is sent back with after somebody has logged in at the address that it was sent to."""
        asked = dict(parse_qsl(urlsplit(url).query, strict_parsing=True))
        assert url.startswith(f"{self.issuer}/authorize?")
        assert (asked["response_type"], asked["client_id"], asked["redirect_uri"]) == ("code", CLIENT, self.redirect)
        assert "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def reply(self, request: Received) -> Reply:
        self.requests.append(request)
        pages: dict[str, Callable[[Received], tuple[int, Any]]] = {
            "/.well-known/openid-configuration": lambda _: (200, self._published()),
            "/keys": lambda _: (200, {"keys": self.odd_keys or [key.as_dict(private=False) for key in self.keys]}),
            "/token": self._token,
            "/userinfo": lambda got: (
                200 if got.headers["authorization"] == "Bearer an-access" else 401,
                self.user_info,
            ),
        }
        status, content = pages[request.path](request)
        return Reply(status, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _published(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            **self.metadata,
        }

    def _token(self, request: Received) -> tuple[int, Any]:
        form = {name: values[0] for name, values in parse_qs(request.body.decode(), strict_parsing=True).items()}
        asked = self._codes.pop(form["code"], None)  # a code is good once
        if not self._knows_client(request, form):
            return 401, {"error": "invalid_client"}
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if (
            asked is None
            or form["grant_type"] != "authorization_code"
            or form["redirect_uri"] != asked["redirect_uri"]
            or base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]
        ):
            return 400, {"error": "invalid_grant"}
        claims = {"iss": self.issuer, "sub": "ada-17", "aud": CLIENT, "nonce": asked["nonce"]}
        times = {"iat": int(self.now), "exp": int(self.now) + 300}
        said = {name: value for name, value in {**claims, **times, **self.claims}.items() if value is not None}
        return 200, {"access_token": "an-access", "token_type": "Bearer", "id_token": self.sign(said)}

    def _knows_client(self, request: Received, form: dict[str, str]) -> bool:
        if "client_secret_post" in self.metadata.get("token_endpoint_auth_methods_supported", []):
            return (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        return request.headers.get("authorization") == f"Basic {basic}"


@contextmanager
def oidc_provider() -> Iterator[OidcProvider]:
    """One that runs."""
    provider = OidcProvider()
    with http_server(provider.reply) as server:
        provider.issuer = f"http://127.0.0.1:{server.port}"
        yield provider
