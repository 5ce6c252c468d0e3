"""Nobody reaches through the service what they cannot reach themselves."""

from __future__ import annotations

import datetime
import socket
import ssl
import time
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from loopback import Received, Reply, Server, http_server, raw_server
from quorate.errors import ServerError
from quorate_serve.outgoing import Outgoing, RefusedUrlError, Rules, is_public

NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",  # IPv4-compatible, long gone
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",  # Teredo
    "2001:db8::1",
    "2002:7f00:1::",  # 6to4 of 127.0.0.1
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "1.1.1.1",
    "9.255.255.255",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80b::200e",
]


def resolver(*addresses: str | tuple[str, int]) -> Any:
    """A resolver that knows one answer, and counts how often it was asked."""

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        resolve.asked += 1  # type: ignore[attr-defined]
        pairs = [(one, port) if isinstance(one, str) else one for one in addresses]
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, number))
            for address, number in pairs
        ]

    resolve.asked = 0  # type: ignore[attr-defined]
    return resolve


def to_loopback(port: int, **options: Any) -> Outgoing:
    """Requests that may go to one server on loopback."""
    return Outgoing(Rules(plain_http=True, own_hosts=frozenset({f"127.0.0.1:{port}"})), **options)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_in_somebodys_own_network_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(RefusedUrlError):
        Outgoing(resolve=resolver(address)).check("https://example.com/")


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_on_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))
    Outgoing(resolve=resolver(address)).check("https://example.com/")


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost.",
        "LOCALHOST",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "0",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[::ffff:127.0.0.1]",
        "2852039166",  # 169.254.169.254
        "0xA9FEA9FE",
    ],
)
def test_every_spelling_of_an_address_is_what_the_resolver_makes_of_it(host: str) -> None:
    with pytest.raises(RefusedUrlError, match="not a host on the internet"):
        Outgoing().check(f"https://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "javascript:alert(1)",
        "https://",
        "https:///path",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:https/",
        "https://example.com\\@127.0.0.1/",
        "https://example.com/a\\b",
        "https://exa mple.com/",
        " https://example.com/",
        "https://example.com/\r\nX-Injected: 1",
        "https://exam\tple.com/",
        "https://example.com/\0",
        "https://exämple.com/",
        "https://①②⑦.⓪.⓪.①/",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://example.com%00.evil.example/",
        "https://.example.com/",
        "https://" + "a" * 300 + "/",
        "https://example.com/" + "a" * 2000,
    ],
)
def test_an_odd_url_is_refused_before_anybody_is_asked(url: str) -> None:
    resolve = resolver("93.184.216.34")
    with pytest.raises(RefusedUrlError) as caught:
        Outgoing(Rules(plain_http=True), resolve=resolve).check(url)
    assert resolve.asked == 0
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://user@example.com/", "https://:pass@example.com/", "https://a:b@example.com/"])
def test_a_password_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(RefusedUrlError, match="no name or password") as caught:
        Outgoing(resolve=resolver("93.184.216.34")).check(url)
    assert "pass" not in str(caught.value).removeprefix("the URL must hold no name or password")


def test_plain_http_and_other_ports_are_for_the_server_to_allow() -> None:
    resolve = resolver("93.184.216.34")
    for url in ("http://example.com/", "https://example.com:22/", "https://example.com:6379/"):
        with pytest.raises(RefusedUrlError):
            Outgoing(resolve=resolve).check(url)
    Outgoing(Rules(plain_http=True), resolve=resolve).check("http://example.com/")
    Outgoing(Rules(ports=frozenset({443, 8443})), resolve=resolve).check("https://example.com:8443/")
    assert Outgoing(resolve=resolve).check("HTTPS://Example.COM:443").host_header == "example.com"


def test_a_host_of_the_own_network_is_allowed_at_its_port_alone() -> None:
    rules = Rules(own_hosts=frozenset({"Hooks.internal:8443", "plain.internal", "[fd00::1]:8443"}))
    inside = Outgoing(rules, resolve=resolver("10.0.0.7"))
    inside.check("https://hooks.internal:8443/")
    inside.check("https://hooks.internal.:8443/")
    inside.check("https://plain.internal/")
    inside.check("https://[fd00::1]:8443/")
    for url in (
        "https://hooks.internal/",
        "https://hooks.internal:9000/",
        "https://plain.internal:8443/",
        "https://other.internal/",
        "https://hooks.internal.evil.example/",
        "http://plain.internal/",
    ):
        with pytest.raises(RefusedUrlError):
            inside.check(url)


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(RefusedUrlError):
        Outgoing(resolve=resolver("93.184.216.34", "10.0.0.1")).check("https://example.com/")


def test_whether_a_name_exists_in_the_own_network_is_not_told() -> None:
    def unknown(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    said = []
    for resolve in (unknown, resolver("10.0.0.1"), resolver()):
        with pytest.raises(RefusedUrlError) as caught:
            Outgoing(resolve=resolve).check("https://db.internal/")
        said.append(str(caught.value))
    assert len(set(said)) == 1
    assert "10.0.0.1" not in said[0]


def test_a_name_is_resolved_once_and_its_checked_address_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: a second question would be answered with 127.0.0.1."""
    answers = iter([["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"]])
    connected = []

    class Recording(socket.socket):
        def connect(self, address: Any) -> None:
            connected.append(address)
            raise ConnectionRefusedError

    def rebinding(host: str, port: int, **options: Any) -> list[Any]:
        found: list[Any] = resolver(*next(answers))(host, port, **options)
        return found

    monkeypatch.setattr(socket, "socket", Recording)
    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with pytest.raises(ServerError, match=r"^rebind\.example:443: no answer: ConnectionRefusedError$"):
        Outgoing(resolve=rebinding).request("POST", "https://rebind.example/")
    assert connected == [("93.184.216.34", 443)]


def test_a_request_arrives_as_it_was_sent_and_its_answer_is_not_shown() -> None:
    with http_server(lambda _: Reply(202, b"secret of theirs", {"X-Theirs": "1"})) as server:
        url = f"http://127.0.0.1:{server.port}/hook?a=1&b=%20#top"
        answer = to_loopback(server.port).request("POST", url, {"Content-Type": "text/plain"}, "größe".encode())
    [got] = server.received
    assert (got.method, got.path, got.body) == ("POST", "/hook?a=1&b=%20", "größe".encode())
    assert got.headers["host"] == f"127.0.0.1:{server.port}"
    assert got.headers["content-type"] == "text/plain"
    assert answer.status == 202
    assert answer.headers["x-theirs"] == "1"
    assert "secret" not in f"{answer} {answer!r}"


def test_redirects_are_not_followed() -> None:
    with http_server(lambda _: Reply(302, headers={"Location": "/elsewhere"})) as server:
        answer = to_loopback(server.port).request("POST", f"http://127.0.0.1:{server.port}/", body=b"{}")
    assert answer.status == 302
    assert len(server.received) == 1


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with http_server(lambda _: Reply()) as server:
        assert to_loopback(server.port).request("GET", f"http://127.0.0.1:{server.port}/").status == 200


def test_the_next_address_is_tried_where_one_takes_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        free = closed.getsockname()[1]
    with http_server(lambda _: Reply()) as server:
        rules = Rules(plain_http=True, own_hosts=frozenset({"hooks.test"}))
        resolve = resolver(("127.0.0.1", free), ("127.0.0.1", server.port))
        assert Outgoing(rules, resolve=resolve).request("GET", "http://hooks.test/").status == 200
    assert server.received[0].headers["host"] == "hooks.test"


def trickle(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(200):
        connection.sendall(b"a")
        time.sleep(0.02)


def continue_forever(connection: socket.socket) -> None:
    for _ in range(200):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.02)


def say_nothing(connection: socket.socket) -> None:
    connection.recv(1)


@pytest.mark.parametrize("talk", [trickle, continue_forever, say_nothing])
def test_time_is_up_however_slowly_an_answer_trickles_in(talk: Any) -> None:
    began = time.monotonic()
    with raw_server(talk) as port:
        with pytest.raises(ServerError, match=r"no answer within 0\.2 seconds"):
            to_loopback(port, seconds=0.2).request("GET", f"http://127.0.0.1:{port}/")
        assert time.monotonic() - began < 2


def test_an_answer_is_read_up_to_a_limit() -> None:
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"[" * 65536)

    with raw_server(flood) as port:
        answer = to_loopback(port).request("GET", f"http://127.0.0.1:{port}/")
    assert len(answer.body) == 256 << 10
    with pytest.raises(ServerError, match="not JSON"):
        answer.json()


@pytest.mark.parametrize(
    "said", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\n" * 200]
)
def test_what_is_not_http_is_no_answer_and_not_repeated(said: bytes) -> None:
    with raw_server(lambda to: to.sendall(said)) as port, pytest.raises(ServerError, match="no answer") as caught:
        to_loopback(port, seconds=2).request("GET", f"http://127.0.0.1:{port}/")
    assert "SSH" not in str(caught.value)


class Certified:
    """A server by https at hooks.test, and what its clients called it."""

    def __init__(self, folder: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hooks.test")])
        today = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(today - datetime.timedelta(days=1))
            .not_valid_after(today + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("hooks.test")]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.file = folder / "both.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        self.called: list[str | None] = []
        self.server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server_side.load_cert_chain(self.file)
        self.server_side.sni_callback = lambda _, name, __: self.called.append(name)
        self.client_side = ssl.create_default_context(cafile=str(self.file))


@pytest.fixture
def certified(tmp_path: Path) -> Certified:
    return Certified(tmp_path)


@pytest.fixture
def by_https(certified: Certified) -> Iterator[Server]:
    with http_server(lambda _: Reply(), certified.server_side) as server:
        yield server


def sent_by_https(server: Server, tls: ssl.SSLContext, host: str) -> Received:
    rules = Rules(own_hosts=frozenset({f"{host}:{server.port}"}))
    Outgoing(rules, tls=tls, resolve=resolver("127.0.0.1")).request("POST", f"https://{host}:{server.port}/", body=b"1")
    return server.received[-1]


def test_https_goes_to_the_checked_address_under_the_name_of_the_host(certified: Certified, by_https: Server) -> None:
    got = sent_by_https(by_https, certified.client_side, "hooks.test")
    assert got.headers["host"] == f"hooks.test:{by_https.port}"
    assert certified.called == ["hooks.test"]


@pytest.mark.parametrize("host", ["other.test", "127.0.0.1"])
def test_a_certificate_of_another_name_is_no_secure_connection(
    certified: Certified, by_https: Server, host: str
) -> None:
    with pytest.raises(ServerError, match="no secure connection: CERTIFICATE_VERIFY_FAILED"):
        sent_by_https(by_https, certified.client_side, host)
    assert not by_https.received


def test_a_certificate_of_nobody_known_is_no_secure_connection(by_https: Server) -> None:
    with pytest.raises(ServerError, match="no secure connection"):
        sent_by_https(by_https, ssl.create_default_context(), "hooks.test")
    assert not by_https.received
