"""Reads from certificates when they expire; Python's ssl module tells this of CA certificates only.

A certificate is DER: values with a tag and a length, which contain others (RFC 5280, section 4.1).
The validity is the fourth value of the first one, not counting the version. OpenSSL checks the rest
when the certificates are loaded.

Example: a chain of two certificates, until 2027-01-01 and 2030-01-01, expires on 2027-01-01. Of two
trusted CA certificates with these dates, one is trusted until 2030-01-01.
"""

import base64
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sidecar.errors import SettingsError
from sidecar.kafka.client.java_stores import with_pem
from sidecar.settings import KafkaAdmin, PemFiles

_BLOCK: Final = re.compile(
    r"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----\s(.*?)-----END ", re.DOTALL
)
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17


def expiries_of(admin: KafkaAdmin | None) -> Mapping[str, float]:
    """Return setting -> when its certificates expire, epoch seconds; only of certificates in use.

    A chain expires with its first certificate. Trusted certificates expire with the last one: an
    expired one beside its successor does no harm. What can't be read is left out.

    Args:
        admin: the settings, which are checked already; None when disabled.
    """
    if admin is None or not admin.security_protocol.endswith("SSL"):
        return {}
    with suppress(SettingsError):
        # Whoever loads the certificates says why they can't be used.
        admin = with_pem(admin)
    read = admin.files or PemFiles(None, None, None)
    places = (
        ("truststore.location", read.truststore or admin.ssl_truststore_location, max),
        ("truststore.certificates", admin.ssl_truststore_certificates, max),
        ("keystore.location", read.keystore or admin.ssl_keystore_location, min),
        ("keystore.certificate.chain", admin.ssl_keystore_certificate_chain, min),
    )
    return {
        f"kafka.admin.ssl.{name}": choose(dates)
        for name, place, choose in places
        if place is not None and (dates := dates_of(place))
    }


def dates_of(place: Path | str | bytes) -> list[float]:
    """Return when each certificate expires, epoch seconds; none if they can't be read.

    Args:
        place: a PEM file, or its content.
    """
    try:
        if isinstance(place, Path):
            place = place.read_bytes()
        text = place if isinstance(place, str) else place.decode()
        return [not_after(base64.b64decode(block[1])) for block in _BLOCK.finditer(text)]
    except (OSError, ValueError, IndexError):
        return []


def not_after(certificate: bytes) -> float:
    """Return when a certificate expires, epoch seconds.

    Args:
        certificate: DER.

    Raises:
        ValueError, IndexError: it is not a certificate.
    """
    _, at, _ = _value(certificate, 0)
    _, at, _ = _value(certificate, at)
    tag, _, end = _value(certificate, at)
    if tag == _VERSION:
        at = end
    for _ in ("serial number", "signature algorithm", "issuer"):
        _, _, at = _value(certificate, at)
    _, at, _ = _value(certificate, at)
    _, _, at = _value(certificate, at)
    tag, start, end = _value(certificate, at)
    text = certificate[start:end].decode("ascii")
    if tag == _UTC_TIME:
        # Two digits of the year, from 1950 to 2049.
        text = f"{'19' if text >= '5' else '20'}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _value(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of the value at a place, where its content starts, and where it ends."""
    tag, length, start = data[at], data[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[start : start + count])
        start += count
    return tag, start, start + length
