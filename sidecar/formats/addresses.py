"""Addresses: host and port, and http or https URLs.

Example: ``[::1]:9092`` is ``HostPort("::1", 9092)``, and is written so again.
"""

import ipaddress
import re
from typing import NamedTuple

_HOST_PORT = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<name>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})")


class HostPort(NamedTuple):
    """An address to connect to or to listen on.

    Attributes:
        host: a name or an IP address; an IPv6 address without its brackets.
        port: 1 to 65535, or 0 if the system chooses a port.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, lowest_port: int) -> HostPort:
    """Read an address.

    Args:
        text: host:port, with an IPv6 address in brackets.
        lowest_port: 0 for an address to listen on, else 1.

    Raises:
        ValueError: with a sentence that quotes the text.
    """
    quoted = repr(text) if len(repr(text)) <= 80 else f"{repr(text)[:77]}..."
    match = _HOST_PORT.fullmatch(text)
    if not match:
        if re.fullmatch(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*", text):
            raise ValueError(f"{quoted}: an IPv6 address needs brackets, as in [::1]:9092")
        if text.startswith(":"):
            every = "; for every address, write 0.0.0.0" if lowest_port == 0 else ""
            raise ValueError(f"{quoted} names no host{every}")
        raise ValueError(f"{quoted} is not host:port, such as 127.0.0.1:9092")
    host, port = match["v6"] or match["name"], int(match["port"])
    try:
        if match["v6"]:
            ipaddress.IPv6Address(host)
        elif re.fullmatch(r"[0-9.]+", host):
            ipaddress.IPv4Address(host)
    except ValueError:
        raise ValueError(f"{quoted}: {host} is not an IP address") from None
    if match["name"] and not all(0 < len(part) < 64 for part in host.removesuffix(".").split(".")):
        raise ValueError(
            f"{quoted}: {host} is not a host name: each part between its dots has 1 to 63 "
            "characters"
        )
    if not lowest_port <= port <= 65_535:
        raise ValueError(f"{quoted}: the port must be {lowest_port} to 65535")
    return HostPort(host, port)


def check_url(text: str) -> str:
    """Check an http or https URL, which must not contain a user, because all URLs are shown.

    Raises:
        ValueError: with a sentence that quotes nothing, because the text may be a secret in the
        wrong place.
    """
    if not re.fullmatch(r"https?://[^\s/?#]+(?:[/?#]\S*)?", text):
        raise ValueError("is not an address that starts with http:// or https://")
    if not text.isascii():
        raise ValueError("has a character beyond ASCII, which is written like %C3%BC for ü")
    host = re.split(r"[/?#]", text.partition("://")[2])[0]
    has_port = re.search(r":[^\]]*$", host)
    # A password with one of these three looks like a port and a path. A path alone may have an @.
    if "@" in (text if has_port else host):
        raise ValueError(
            "must not contain a user or password, which have their own settings; after a port, an @"
            " is written %40"
        )
    try:
        parse_address(host if has_port else f"{host}:80", lowest_port=1)
    except ValueError:
        raise ValueError("has a host or port that is not valid") from None
    return text
