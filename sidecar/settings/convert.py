"""From what was written to a value: one function for each form a setting may have.

Each takes what the environment or a properties file (always text) or TOML (text, numbers, lists)
has, and raises ``ValueError`` with a sentence that quotes it. The forms of secrets quote nothing.

Example: ``addresses("a:9092,[::1]:9093")`` is two addresses, the second one's host ``::1``.
"""

import ipaddress
import math
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from sidecar.quantities import LARGEST_SIZE, parse_duration, parse_size
from sidecar.quotas.producer_ids.id_quotas import LARGEST_RATE, SMALLEST_RATE
from sidecar.settings.values import HostPort

# ruff: noqa: TRY004 - pydantic collects ValueError alone

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<name>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})")
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s(.*?)\s-----END \1-----", re.DOTALL)


def shown(raw: object) -> str:
    """A value that isn't secret, quoted for a message: on one line and not endless."""
    text = repr(raw)
    return text if len(text) <= 80 else f"{text[:77]}..."


def text(raw: object) -> str:
    """Any text but an empty one."""
    if not isinstance(raw, str):
        raise ValueError(f"{shown(raw)} must be text in quotes")
    if not raw:
        raise ValueError("is empty: set a value, or leave it out for the default")
    return raw


def https_or_empty(raw: object) -> str:
    """``https``, or the empty text, which turns off what it stands for."""
    if raw != "" and text(raw).lower() != "https":
        raise ValueError(f"{shown(raw)} is neither https nor empty")
    return str(raw).lower()


def secret(raw: object) -> SecretStr:
    """Text that is never shown."""
    if not isinstance(raw, str):
        raise ValueError("must be text in quotes")
    return SecretStr(text(raw))


def path(raw: object) -> Path:
    """A path; whether anything is there is checked when it is used."""
    name = text(raw)
    if "\0" in name:
        raise ValueError(f"{shown(raw)} can't be a path: it has a NUL in it")
    return Path(name)


def certificates(raw: object) -> str:
    """PEM text with a certificate, its lines restored; a problem quotes nothing."""
    return _pem(text(raw), "CERTIFICATE", "-----BEGIN CERTIFICATE-----")


def private_key(raw: object) -> SecretStr:
    """PEM text with a private key, its lines restored; a problem quotes nothing."""
    key = secret(raw).get_secret_value()
    return SecretStr(_pem(key, "PRIVATE KEY", "-----BEGIN PRIVATE KEY-----"))


def _pem(written: str, label: str, opening: str) -> str:
    """Every block anew, 64 characters a line.

    The Java client takes lines that are broken anywhere, or only by blanks, since a properties file
    has one line for a value; OpenSSL doesn't. A block with headers (an old encrypted key) stays as
    it is: its line ends matter.
    """
    blocks = [(match[1], match[2]) for match in _PEM_BLOCK.finditer(written)]
    if not any(name.endswith(label) for name, _ in blocks):
        raise ValueError(f"must be PEM text that begins with {opening}, not a path")
    lines = [
        (name, body if ":" in body else "\n".join(textwrap.wrap("".join(body.split()), 64)))
        for name, body in blocks
    ]
    return "".join(
        f"-----BEGIN {name}-----\n{body}\n-----END {name}-----\n" for name, body in lines
    )


def duration(raw: object) -> float:
    """A duration, in seconds, >= 0.0."""
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        raise ValueError(f"{shown(raw)} has no unit: write a duration in quotes, such as '60s'")
    return parse_duration(text(raw))


def positive_duration(raw: object) -> float:
    """A duration, in seconds, > 0.0."""
    seconds = duration(raw)
    if seconds == 0.0:
        raise ValueError(f"{shown(raw)} must be longer than nothing")
    return seconds


def positive_size(raw: object) -> int:
    """A size in bytes, 1 to Java's largest long; a whole number, or text such as 10Gi."""
    number = parse_size(text(raw)) if isinstance(raw, str) else raw
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"{shown(raw)} is not a whole number of bytes, or a size such as '10Gi'")
    if not 0 < number <= LARGEST_SIZE:
        raise ValueError(f"{shown(raw)} must be > 0 and at most {LARGEST_SIZE} bytes")
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
        raise ValueError(f"{shown(raw)} is not a whole number")
    if not lowest <= number < 2**31:
        raise ValueError(f"{shown(raw)} must be {limits} and at most {2**31 - 1}")
    return number


def ids_rate(raw: object) -> float:
    """A number of producer ids in a window."""
    number = _decimal(raw, "50")
    if not SMALLEST_RATE <= number <= LARGEST_RATE:
        raise ValueError(f"{shown(raw)} must be {SMALLEST_RATE:g} to {LARGEST_RATE:g}")
    return float(number)


def open_ratio(raw: object) -> float:
    """A ratio > 0.0 and < 1.0."""
    number = _decimal(raw, "0.05")
    if not 0.0 < number < 1.0:
        raise ValueError(f"{shown(raw)} must be > 0.0 and < 1.0")
    return float(number)


def factor(raw: object) -> float:
    """A throttle factor, 0.0 to 1.0."""
    number = _decimal(raw, "0.05")
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{shown(raw)} must be between 0.0 and 1.0")
    return abs(float(number))  # -0.0 is 0.0


def _decimal(raw: object, example: str) -> float:
    # TOML's whole numbers have no end: they become a float only once they are in range.
    number = float(raw) if isinstance(raw, str) and _DECIMAL.fullmatch(text(raw)) else raw
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if not is_number or (isinstance(number, float) and not math.isfinite(number)):
        raise ValueError(f"{shown(raw)} is not a number such as {example}")
    return number


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
