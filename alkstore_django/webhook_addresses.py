"""Where a webhook leads: its URL, and the addresses of its host, private ones refused."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from .exceptions import WebhookRefused

PORTS = {"http": 80, "https": 443}

NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: an address of IPv4 in its last 32 bits."""

UNICAST, DOCUMENTATION = IPv6Network("2000::/3"), IPv6Network("3fff::/20")
"""What IANA gives out of IPv6, and a part of it that is for examples (RFC 9637)."""


class Target(NamedTuple):
    """A URL in parts; ``path`` begins with a slash, and includes the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """Whom it reaches (RFC 6454)."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """What the header ``Host`` says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def at(self, address: str) -> str:
        """The URL with an address in place of the name."""
        host = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def target(url: object) -> Target:
    """The parts of a URL. Raises ``TypeError`` and ``ValueError``, naming what is wrong with it."""
    if not isinstance(url, str):
        raise TypeError(f"The URL of a webhook must be a string, not {type(url).__name__}.")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"The URL {url!r} has characters that a URL cannot have: quote them.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"The URL {url!r} is broken: {error}.") from error
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(f"The URL {url!r} must begin with https:// or http:// and a host.")
    if parts.username is not None or parts.password is not None:
        raise ValueError("A URL with a user or a password ends up in logs: put them into headers=.")
    try:
        parts.hostname.encode("idna")
    except UnicodeError as error:
        raise ValueError(f"The URL {url!r} has a host that no name server can know: {error}.") from error
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, parts.hostname, PORTS[parts.scheme] if port is None else port, path)


def addresses(found: Target, *, allow_private: bool) -> list[str]:
    """The addresses of a host, in the order of the resolver. Raises ``WebhookRefused`` if one of them is not
    public, and ``OSError`` if there is none.

    Connect to one of these, not to the name: asked a second time, it may have another answer.
    """
    answers = socket.getaddrinfo(found.host, found.port, type=socket.SOCK_STREAM)
    known = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
    if not allow_private:
        for address in known:
            if not is_public(address):
                raise WebhookRefused(
                    f"{found.host} is at {address}, which is no public address: set allow_private=True if it "
                    "is a receiver of yours."
                )
    return known


def is_public(address: str) -> bool:
    """Whether an address is one of the internet at large, by the registries of IANA; those of IPv4 that one
    of IPv6 carries decide for it."""
    found = ip_address(address.partition("%")[0])
    is_six = isinstance(found, IPv6Address) and not (found.ipv4_mapped or found in NAT64)
    if is_six and (found not in UNICAST or found in DOCUMENTATION):
        return False
    return all(each.is_global and not each.is_multicast for each in (found, *_carried(found)))


def _carried(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    if isinstance(address, IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in NAT64:
        found.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in found if each is not None]
