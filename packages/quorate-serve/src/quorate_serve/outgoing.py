"""HTTP out of the service to addresses that people typed in, who must not reach through it what they cannot reach.

A host is resolved once, every address that it has is checked, and the connection is made to one of those: what the name
resolves to a moment later (DNS rebinding) is never asked for. Redirects are not followed, and proxies not used.
"""

from __future__ import annotations

import http.client
import io
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from quorate.errors import InputError, ServerError

_LONGEST_URL = 2000
_MOST_READ = 256 << 10
_SECONDS_TO_CONNECT = 5.0
_PORT_OF = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?\.?|[0-9a-f:.]*:[0-9a-f:.]*")

# IANA's registries of special purpose addresses, and what a cloud answers its own machines at.
_NOT_PUBLIC_4 = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by the customers of a carrier; Alibaba's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host, seen from its machines
        "169.254.0.0/16",  # link-local; the metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
_PUBLIC_6 = IPv6Network("2000::/3")  # all else is local, multicast, or unspecified
_NOT_PUBLIC_6 = [
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocols of their own, Teredo's tunnels among them
        "2001:db8::/32",
        "2002::/16",  # 6to4's tunnels, given up (RFC 7526)
        "3fff::/20",
    )
]
_NAT64 = IPv6Network("64:ff9b::/96")  # how hosts with an IPv4 address alone look in a network that has only IPv6


class RefusedUrlError(InputError):
    """An address that this service does not send to.

    >>> Outgoing().check("http://localhost/")
    Traceback (most recent call last):
    quorate_serve.outgoing.RefusedUrlError: http://localhost/: must begin with https://
    """


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether anybody may send to it, as it is on the internet and not in somebody's own network.

    >>> [is_public(ip_address(one)) for one in ("93.184.216.34", "169.254.169.254", "::ffff:10.0.0.1")]
    [True, False, False]
    """
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped
        if inner is None and address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is None:
            return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)
        address = inner
    return not any(address in network for network in _NOT_PUBLIC_4)


@dataclass(frozen=True)
class Rules:
    """What may be sent to beyond https on the public internet: for those who run the server to say, never its users.

    ``own_hosts`` are names or addresses in one's own network, each with its port unless that is among ``ports``.

    >>> Rules(own_hosts=frozenset({"hooks.internal:8443"})).is_own(Target("https", "hooks.internal", 8443, "/"))
    True
    """

    plain_http: bool = False
    ports: frozenset[int] = frozenset(_PORT_OF.values())
    own_hosts: frozenset[str] = frozenset()

    def is_own(self, target: Target) -> bool:
        """Whether a target is listed as one in the own network."""
        own = {host.lower() for host in self.own_hosts}
        return target.place in own or (target.port in self.ports and target.name in own)


class Target(NamedTuple):
    """Where a request goes: the parts of a URL that has been looked at."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> Target:
        """Taken apart, or refused if its form is odd: what is odd is read otherwise by somebody else.

        >>> Target.of("https://example.com:8443/hook?a=1#top")
        Target(scheme='https', host='example.com', port=8443, path='/hook?a=1')
        """
        shown = repr(url[:100])
        if len(url) > _LONGEST_URL or not re.fullmatch(r"[!-\[\]-~]+", url):  # no backslash, which browsers take for /
            raise RefusedUrlError(f"{shown}: not a URL (at most {_LONGEST_URL:,} ASCII characters, no spaces)")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise RefusedUrlError(f"{shown}: not a URL (https://host/path)") from None
        if "@" in parts.netloc:
            raise RefusedUrlError("the URL must hold no name or password (what is signed needs none)")
        if parts.scheme not in _PORT_OF or not _HOST.fullmatch(host) or port == 0:
            raise RefusedUrlError(f"{shown}: not a URL (https://host/path)")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(parts.scheme, host, port or _PORT_OF[parts.scheme], path)

    @property
    def name(self) -> str:
        """The host without the dot that may end it."""
        return self.host.removesuffix(".")

    @property
    def place(self) -> str:
        """Host and port."""
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"

    @property
    def host_header(self) -> str:
        """What the server is told it was called."""
        return self.place.removesuffix(f":{_PORT_OF[self.scheme]}")


class Answer(NamedTuple):
    """What came back, headers by their names in lower case. It is never shown to whoever gave the URL."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"<Answer {self.status}>"

    def json(self) -> Any:
        """The body as JSON; one that was cut off is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise ServerError(f"answered {self.status} with something that is not JSON") from None


@dataclass(frozen=True)
class Outgoing:
    """Requests out of this server, within its rules and within ``seconds`` all in all.

    Only the time that the machine's resolver takes for a name is its own (``/etc/resolv.conf``).
    """

    rules: Rules = field(default_factory=Rules)
    seconds: float = 15.0
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    resolve: Callable[..., list[Any]] = socket.getaddrinfo

    def allowing(self, url: str) -> Outgoing:
        """The same with one more host of the own network, out of a setting of the server."""
        return replace(self, rules=replace(self.rules, own_hosts=self.rules.own_hosts | {Target.of(url).place}))

    def check(self, url: str) -> Target:
        """Refuse a URL when it is typed in; it is checked again whenever something is sent to it."""
        target = self._checked(url)
        self._addresses(target)
        return target

    def request(self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
        """Send, and read the answer up to a limit; :class:`ServerError` if there is none."""
        target = self._checked(url)
        until = time.monotonic() + self.seconds
        sent = {**(headers or {}), "Host": target.host_header, "User-Agent": "quorate", "Connection": "close"}
        try:
            with self._connected(target, until) as connected:
                connection = http.client.HTTPConnection(target.host, target.port)
                connection.auto_open = 0  # it would resolve the name again
                connection.sock = cast(socket.socket, _InTime(connected, until))
                connection.request(method, target.path, body or None, sent)
                with connection.getresponse() as response:
                    named = {name.lower(): value for name, value in response.headers.items()}
                    return Answer(response.status, named, response.read(_MOST_READ))
        except TimeoutError:
            raise ServerError(f"{target.place}: no answer within {self.seconds:g} seconds") from None
        except ssl.SSLError as error:
            raise ServerError(f"{target.place}: no secure connection: {error.reason or 'broken off'}") from None
        except (http.client.HTTPException, OSError) as error:
            raise ServerError(f"{target.place}: no answer: {type(error).__name__}") from None

    def _checked(self, url: str) -> Target:
        target = Target.of(url)
        if target.scheme == "http" and not self.rules.plain_http:
            raise RefusedUrlError(f"{url}: must begin with https://")
        if target.port not in self.rules.ports and not self.rules.is_own(target):
            ports = " or ".join(map(str, sorted(self.rules.ports, reverse=True)))
            raise RefusedUrlError(
                f"{target.place}: the port must be {ports}, unless the server's settings list this host"
            )
        return target

    def _addresses(self, target: Target) -> list[tuple[int, Any]]:
        """Family and address for each that a host has, all of them checked.

        Whether a name exists in the own network is nobody's business: the message is the same.
        """
        try:
            found = self.resolve(target.host, target.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        except (OSError, UnicodeError):
            found = []
        if not found or not (
            self.rules.is_own(target) or all(is_public(ip_address(address[0])) for *_, address in found)
        ):
            raise RefusedUrlError(f"{target.name}: not a host on the internet (check its name)")
        return [(family, address) for family, *_, address in found]

    def _connected(self, target: Target, until: float) -> socket.socket:
        """A socket to the first of the checked addresses that takes one."""
        fault: OSError = TimeoutError()
        for family, address in self._addresses(target):
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.settimeout(min(_SECONDS_TO_CONNECT, _left(until)))
                sock.connect(address)
                if target.scheme == "https":
                    sock.settimeout(_left(until))
                    return self.tls.wrap_socket(sock, server_hostname=target.name)
                return sock
            except OSError as error:
                sock.close()
                fault = error
        raise fault


def _left(until: float) -> float:
    """Seconds that are left; an error if none are."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _InTime(io.RawIOBase):
    """A socket as ``http.client`` uses it, whose time is up at one moment, however slowly something trickles in."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock, self._until = sock, until

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        self._sock.settimeout(_left(self._until))
        self._sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """What comes back."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there."""
        self._sock.settimeout(_left(self._until))
        return self._sock.recv_into(buffer)

    def close(self) -> None:
        """Nothing: the socket is closed by who opened it, when the body has been read."""
