"""Converts a written setting to a value: one function for each form that a setting can have.

Each function takes text (from the environment or a properties file) or a value of TOML (text, a
number, a list). It raises ``ValueError`` with a sentence that quotes the input, unless it is
secret.

Example: ``addresses("a:9092,[::1]:9093")`` is two addresses, the second one's host ``::1``.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit

from pydantic import SecretStr

from sidecar.formats import pem
from sidecar.formats.addresses import HostPort, check_url, parse_address
from sidecar.formats.log4j_pattern import parse_pattern
from sidecar.formats.quantities import LARGEST_SIZE, parse_duration, parse_size
from sidecar.quotas.producer_ids.id_quotas import LARGEST_RATE, SMALLEST_RATE
from sidecar.throttle.quota_steps import SMALLEST_FLOOR

# ruff: noqa: TRY004 - pydantic collects ValueError alone

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_POD = re.compile(r"[a-z0-9-]+/[a-z0-9.-]+/[A-Za-z0-9-]+")
_END = 10.0**300
"""The largest whole number here; TOML has larger ones, which overflow a float."""

_LONGEST_ID = 2**15 - 1

_N = TypeVar("_N", int, float)
_T = TypeVar("_T")


def shown(raw: object) -> str:
    """Quote a value that isn't secret for a message, on one line and shortened."""
    text = repr(raw)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _given(raw: object) -> str:
    if not isinstance(raw, str):
        raise ValueError(f"{shown(raw)} must be text in quotes")
    if not raw:
        raise ValueError("is empty: set a value, or leave it out for the default")
    return raw


def text(raw: object) -> str:
    """Read a text that is not empty, and that can be sent."""
    given = _given(raw)
    try:
        given.encode()
    except UnicodeEncodeError:
        # Bytes of a variable that are not UTF-8 are surrogates in Python.
        raise ValueError("is not UTF-8: write it in UTF-8, not in Latin-1, for example") from None
    return given


def client_id(raw: object) -> str:
    """Read a client-id, whose length Kafka's protocol limits."""
    name = text(raw)
    if len(name.encode()) > _LONGEST_ID:
        raise ValueError(f"is longer than {_LONGEST_ID} bytes, which Kafka's protocol has room for")
    return name


def https_or_empty(raw: object) -> str:
    """Read ``https``, or an empty text, which turns the check off."""
    if raw != "" and text(raw).lower() != "https":
        raise ValueError(f"{shown(raw)} is neither https nor empty")
    return str(raw).lower()


def secret(raw: object) -> SecretStr:
    """Read a text that no message shows."""
    if not isinstance(raw, str):
        raise ValueError("must be text in quotes")
    return SecretStr(text(raw))


def path(raw: object) -> Path:
    """Read a path. Whether the file exists is checked when it is used."""
    name = _given(raw)
    if "\0" in name:
        raise ValueError(f"{shown(raw)} can't be a path: it has a NUL in it")
    return Path(name)


def function(raw: object) -> str:
    """Read the name of a Python function, ``module:attribute``; it is imported at the start."""
    name = text(raw)
    if not _FUNCTION.fullmatch(name):
        raise ValueError(f"{shown(raw)} is not module:attribute, such as my_factor:factor")
    return name


def log4j_pattern(raw: object) -> str:
    """Read a pattern of log4j's PatternLayout."""
    pattern = text(raw)
    parse_pattern(pattern)
    return pattern


def certificates(raw: object) -> str:
    """Read PEM text with a certificate."""
    return pem.certificates(text(raw))


def private_key(raw: object) -> SecretStr:
    """Read PEM text with a private key."""
    return SecretStr(pem.private_key(secret(raw).get_secret_value()))


def duration(raw: object) -> float:
    """Read a duration, in seconds, >= 0.0."""
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        raise ValueError(f"{shown(raw)} has no unit: write a duration in quotes, such as '60s'")
    return parse_duration(text(raw))


def _size(raw: object) -> int:
    number = parse_size(text(raw)) if isinstance(raw, str) else raw
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"{shown(raw)} is not a whole number of bytes, or a size such as '10Gi'")
    return number


def _whole(raw: object) -> int:
    number = int(raw) if isinstance(raw, str) and _INTEGER.fullmatch(text(raw)) else raw
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"{shown(raw)} is not a whole number")
    return number


def _decimal(raw: object) -> float:
    number = float(raw) if isinstance(raw, str) and _DECIMAL.fullmatch(text(raw)) else raw
    if not isinstance(number, int | float) or isinstance(number, bool) or not abs(number) < _END:
        raise ValueError(f"{shown(raw)} is not a number such as 0.05")
    return float(number) or 0.0  # -0.0 is 0.0


def _within(
    read: Callable[[object], _N], holds: Callable[[_N], bool], bounds: str
) -> Callable[[object], _N]:
    """Return a reader for numbers within bounds."""

    def convert(raw: object) -> _N:
        number = read(raw)
        if not holds(number):
            raise ValueError(f"{shown(raw)} must be {bounds}")
        return number

    return convert


_INT = 2**31 - 1
_RATES = f"{SMALLEST_RATE:g} to {LARGEST_RATE:g}"
_SIZES = f"> 0 and at most {LARGEST_SIZE} bytes"

positive_duration = _within(duration, lambda seconds: seconds > 0.0, "longer than 0s")
positive_size = _within(_size, lambda count: 0 < count <= LARGEST_SIZE, _SIZES)
floor = _within(
    _size, lambda count: SMALLEST_FLOOR <= count <= LARGEST_SIZE, f">= {SMALLEST_FLOOR} bytes"
)
positive_whole = _within(_whole, lambda n: 0 < n <= _INT, f"> 0 and at most {_INT}")
broker_id = _within(_whole, lambda n: 0 <= n <= _INT, f">= 0 and at most {_INT}")
ids_rate = _within(_decimal, lambda rate: SMALLEST_RATE <= rate <= LARGEST_RATE, _RATES)
open_ratio = _within(_decimal, lambda ratio: 0.0 < ratio < 1.0, "> 0.0 and < 1.0")
factor = _within(_decimal, lambda factor: 0.0 <= factor <= 1.0, "between 0.0 and 1.0")


def choice(*options: str) -> Callable[[object], str]:
    """Return a reader for one of a few words, in any case."""
    by_fold = {option.casefold(): option for option in options}

    def convert(raw: object) -> str:
        if (option := by_fold.get(text(raw).casefold())) is None:
            raise ValueError(f"{shown(raw)} is not one of {', '.join(options)}")
        return option

    return convert


def secret_url(raw: object) -> SecretStr:
    """Read an http or https URL that no message shows."""
    return SecretStr(check_url(secret(raw).get_secret_value()))


def token_url(raw: object) -> str:
    """Read an http or https URL, or the file URL of an absolute path, as in the Java client."""
    value = text(raw)
    if not value.lower().startswith("file:"):
        return check_url(value)
    if not token_path(value).startswith("/"):
        raise ValueError(f"{shown(raw)} is not file:// and an absolute path")
    return value


def token_path(url: str) -> str:
    """Return the path of a file URL; "" for http and https, and for a file of another host."""
    parts = urlsplit(url)
    is_here = parts.scheme == "file" and parts.netloc in {"", "localhost"}
    return unquote(parts.path) if is_here else ""


def pod(raw: object) -> str:
    """Read the namespace, name and uid of a pod."""
    if not _POD.fullmatch(text(raw)):
        raise ValueError(f"{shown(raw)} is not namespace/name/uid of a pod")
    return str(raw)


def folder_url(raw: object) -> str:
    """Read an http or https URL, and add a slash to its end if it has none.

    Characters beyond ASCII are encoded, as browsers show them decoded.
    """
    encoded = re.sub(r"[^\x00-\x7f]+", lambda found: quote(found[0]), text(raw))
    return check_url(encoded).rstrip("/") + "/"


def urls(raw: object) -> tuple[str, ...]:
    """Read a list of http or https URLs, without duplicates and without a slash at the end."""
    return _list(raw, "address", lambda part: check_url(part).rstrip("/"))


def broker_urls(raw: object) -> tuple[tuple[int, str], ...]:
    """Read a list of a broker's id, =, and an http or https URL; an id has one URL."""

    def read(part: str) -> tuple[int, str]:
        number, equals, url = part.partition("=")
        if not equals or not _INTEGER.fullmatch(number):
            # The part may contain a password, so it is not quoted.
            raise ValueError("needs broker ids, such as 0=http://broker-0:11001/metrics")
        return broker_id(number), check_url(url)

    pairs = _list(raw, "broker id and address", read)
    if len(dict(pairs)) < len(pairs):
        raise ValueError("has two addresses for one broker")
    return pairs


def listen_address(raw: object) -> HostPort:
    """Read an address to listen on; with port 0 the system chooses a port."""
    return parse_address(text(raw), lowest_port=0)


def addresses(raw: object) -> tuple[HostPort, ...]:
    """Read a list of broker addresses, without duplicates."""
    return _list(raw, "host:port", lambda part: parse_address(part, lowest_port=1))


def _list(raw: object, what: str, read: Callable[[str], _T]) -> tuple[_T, ...]:
    """Read a text with commas, or a list of texts in TOML."""
    if not isinstance(raw, list):
        raw = [part for part in map(str.strip, text(raw).split(",")) if part]
    if not raw:
        raise ValueError(f"needs at least one {what}")
    return tuple(dict.fromkeys(read(text(part)) for part in raw))
