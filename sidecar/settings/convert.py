"""From what was written to a value: one function for each form a setting may have.

Each takes what the environment or a properties file (always text) or TOML (text, numbers, lists)
has, and raises ``ValueError`` with a sentence that quotes it. The forms of secrets quote nothing.

Example: ``addresses("a:9092,[::1]:9093")`` is two addresses, the second one's host ``::1``.
"""

import ipaddress
import math
import re
from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from sidecar.quotas.producer_ids.id_quotas import LARGEST_RATE, SMALLEST_RATE
from sidecar.settings.durations import parse_duration
from sidecar.settings.values import HostPort

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<name>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})")
_LARGEST = 2**63 - 1
"""Java's largest long, which is what a broker reports of an endless file system, in bytes."""


def shown(raw: object) -> str:
    """A value that isn't secret, quoted for a message: on one line and not endless."""
    text = repr(raw)
    return text if len(text) <= 80 else f"{text[:77]}..."


def text(raw: object) -> str:
    """Any text but an empty one."""
    if not isinstance(raw, str):
        raise ValueError(f"{shown(raw)} must be text in quotes")  # noqa: TRY004 - pydantic collects ValueError alone
    if not raw:
        raise ValueError("is empty: set a value, or leave it out for the default")
    return raw


def text_or_empty(raw: object) -> str:
    """Any text, and the empty one besides, where that has a meaning."""
    return "" if raw == "" else text(raw)


def secret(raw: object) -> SecretStr:
    """Text that is never shown."""
    if not isinstance(raw, str):
        raise ValueError("must be text in quotes")  # noqa: TRY004 - pydantic collects ValueError alone
    return SecretStr(text(raw))


def path(raw: object) -> Path:
    """A path; whether anything is there is checked when it is used."""
    name = text(raw)
    if "\0" in name:
        raise ValueError(f"{shown(raw)} can't be a path: it has a NUL in it")
    return Path(name)


def duration(raw: object) -> float:
    """An ISO 8601 duration, in seconds, >= 0.0."""
    if not isinstance(raw, str):
        raise ValueError(f"{shown(raw)} must be an ISO 8601 duration in quotes, such as 'PT1M'")  # noqa: TRY004 - pydantic collects ValueError alone
    return parse_duration(text(raw))


def positive_duration(raw: object) -> float:
    """An ISO 8601 duration, in seconds, > 0.0."""
    seconds = duration(raw)
    if seconds == 0.0:
        raise ValueError(f"{shown(raw)} must be longer than nothing")
    return seconds


def positive_bytes(raw: object) -> int:
    """A whole number of bytes, 1 to Java's largest long."""
    if isinstance(raw, str) and _INTEGER.fullmatch(text(raw)):
        number = int(raw)
    elif isinstance(raw, int) and not isinstance(raw, bool):
        number = raw
    else:
        raise ValueError(
            f"{shown(raw)} is not a whole number of bytes such as 10000000000, for 10 GB"
        )
    if not 0 < number <= _LARGEST:
        raise ValueError(f"{shown(raw)} must be > 0 and at most {_LARGEST} bytes")
    return number


def positive_whole(raw: object) -> int:
    """A whole number, 1 to 2^31 - 1, as Kafka's ints are."""
    return _whole(raw, 1, "> 0")


def broker_id(raw: object) -> int:
    """A broker's id, 0 to 2^31 - 1."""
    return _whole(raw, 0, ">= 0")


def _whole(raw: object, lowest: int, limits: str) -> int:
    number = int(raw) if isinstance(raw, str) and _INTEGER.fullmatch(text(raw)) else raw
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"{shown(raw)} is not a whole number")  # noqa: TRY004 - see duration
    if not lowest <= number < 2**31:
        raise ValueError(f"{shown(raw)} must be {limits} and at most {2**31 - 1}")
    return number


def ids_rate(raw: object) -> float:
    """A number of producer ids in a window."""
    if isinstance(raw, str) and _DECIMAL.fullmatch(text(raw)):
        number: object = float(raw)
    else:
        number = raw
    if not isinstance(number, int | float) or isinstance(number, bool):
        raise ValueError(f"{shown(raw)} is not a number such as 50")  # noqa: TRY004 - see duration
    if not SMALLEST_RATE <= number <= LARGEST_RATE:
        raise ValueError(f"{shown(raw)} must be {SMALLEST_RATE:g} to {LARGEST_RATE:g}")
    return float(number)


def open_ratio(raw: object) -> float:
    """A ratio > 0.0 and < 1.0."""
    number = _decimal(raw)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{shown(raw)} must be > 0.0 and < 1.0")
    return number


def factor(raw: object) -> float:
    """A throttle factor, 0.0 to 1.0."""
    number = _decimal(raw)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{shown(raw)} must be between 0.0 and 1.0")
    return abs(number)  # -0.0 is 0.0


def _decimal(raw: object) -> float:
    if isinstance(raw, str) and _DECIMAL.fullmatch(text(raw)):
        return float(raw)
    if isinstance(raw, float) and math.isfinite(raw):
        return raw
    if isinstance(raw, int) and not isinstance(raw, bool):
        # TOML's whole numbers have no end; beyond any range, they need not become a float.
        return float(max(-2, min(raw, 2)))
    raise ValueError(f"{shown(raw)} is not a number such as 0.05")


def addresses(raw: object) -> tuple[HostPort, ...]:
    """A list of brokers to connect to: text with commas between, or TOML's list of texts."""
    parts = _parts(raw)
    if not parts:
        raise ValueError("needs one host:port at least")
    # The same broker twice would only be dialled twice.
    return tuple(dict.fromkeys(_address(part, lowest_port=1) for part in parts))


def listen_address(raw: object) -> HostPort:
    """An address to listen on; port 0 lets the system choose."""
    return _address(text(raw), lowest_port=0)


def _address(written: str, *, lowest_port: int) -> HostPort:
    match = _ADDRESS.fullmatch(written)
    if not match:
        if re.fullmatch(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*", written):
            raise ValueError(f"{shown(written)}: an IPv6 address needs brackets, as in [::1]:9092")
        if written.startswith(":"):
            every = "; for every address, write 0.0.0.0" if lowest_port == 0 else ""
            raise ValueError(f"{shown(written)} names no host{every}")
        raise ValueError(f"{shown(written)} is not host:port, such as 127.0.0.1:9092")
    host, port = match["v6"] or match["name"], int(match["port"])
    try:
        if match["v6"]:
            ipaddress.IPv6Address(host)
        elif re.fullmatch(r"[0-9.]+", host):
            ipaddress.IPv4Address(host)
    except ValueError:
        raise ValueError(f"{shown(written)}: {host} is not an IP address") from None
    if not lowest_port <= port <= 65_535:
        raise ValueError(f"{shown(written)}: the port must be {lowest_port} to 65535")
    return HostPort(host, port)


def _parts(raw: object) -> list[str]:
    if isinstance(raw, list):
        return [text(part) for part in raw]
    return [part for part in map(str.strip, text(raw).split(",")) if part]


def choice(*options: str) -> Callable[[object], str]:
    """One of a few words, in whatever case it is written."""
    by_fold = {option.casefold(): option for option in options}

    def convert(raw: object) -> str:
        option = by_fold.get(text(raw).casefold())
        if option is None:
            raise ValueError(f"{shown(raw)} is not one of {', '.join(options)}")
        return option

    return convert


def url(raw: object) -> str:
    """An http or https address without a user in it, which would be a secret in plain sight."""
    written = text(raw)
    if not re.fullmatch(r"https?://[^\s/?#]+(?:[/?#]\S*)?", written):
        # Not quoted: what is no address may well be a secret that was put in the wrong place.
        raise ValueError("is not an address that starts with http:// or https://")
    if "@" in re.split(r"[/?#]", written.partition("://")[2])[0]:
        raise ValueError("must not have a user or password in it: these have settings of their own")
    return written


def urls(raw: object) -> tuple[str, ...]:
    """A list of such addresses: text with commas between, or TOML's list of texts."""
    parts = _parts(raw)
    if not parts:
        raise ValueError("needs one address at least")
    return tuple(dict.fromkeys(url(part).rstrip("/") for part in parts))
