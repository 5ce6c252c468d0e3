"""Under which addresses and names others reach this machine."""

from __future__ import annotations

import socket
from functools import cache
from ipaddress import ip_address

_EVERYWHERE = ("0.0.0.0", "::")
_ELSEWHERE = {"0.0.0.0": "192.0.2.1", "::": "2001:db8::1"}  # addresses kept for examples: nobody is there
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def is_everywhere(host: str) -> bool:
    """Whether a service that listens there listens on every address of the machine.

    >>> is_everywhere("0.0.0.0"), is_everywhere("127.0.0.1")
    (True, False)
    """
    return host in _EVERYWHERE


@cache
def address_of_this_machine(host: str) -> str:
    """The address by which others on the network find a service that listens everywhere; its own without a network.

    Nothing is sent: the system only says from which of its addresses it would send.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((_ELSEWHERE[host], 9))
            return str(probe.getsockname()[0])
    except OSError:
        return _LOOPBACK[host]


@cache
def names_of_this_machine() -> frozenset[str]:
    """What the machine is called on its network."""
    name = socket.gethostname().lower()
    bare = name.removesuffix(".local")
    return frozenset({name, f"{bare}.local", socket.getfqdn().lower()} - {"", ".local"})


def is_address(host: str) -> bool:
    """Whether a host is an address, and no name, which somebody else could have lead here.

    >>> is_address("192.168.1.5"), is_address("fe80::1"), is_address("labels.example.org")
    (True, True, False)
    """
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
