"""When certificates expire: compared with what another library reads."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from sidecar.kafka.client.certificates import expiries_of, not_after
from sidecar.settings import KafkaAdmin

LOCATION = "kafka.admin.ssl.keystore.location"
TRUSTED = "kafka.admin.ssl.truststore.location"


def certificate(until: datetime, organisation: str = "x") -> x509.Certificate:
    """Signed by itself; a long name makes lengths of several bytes."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, organisation)] * 5
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name(names))
        .issuer_name(x509.Name(names))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(1951, 2, 3, tzinfo=UTC))
        .not_valid_after(until)
        .sign(key, hashes.SHA256())
    )


@pytest.mark.parametrize(
    "until",
    [
        datetime(1961, 1, 1, 0, 0, 1, tzinfo=UTC),
        datetime(2027, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2049, 12, 31, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_the_date_is_that_of_the_certificate(until: datetime) -> None:
    """Years have two digits until 2049 and four from 2050 on; names may be long."""
    for organisation in ("x", 60 * "x"):
        der = certificate(until, organisation).public_bytes(Encoding.DER)
        assert until.timestamp() == not_after(der)


def test_a_certificate_of_a_ca_in_use(tmp_path: Path) -> None:
    """Its own fields are in the way that such programs write them."""
    issued = trustme.CA().issue_cert("127.0.0.1").cert_chain_pems[0].bytes()
    file = tmp_path / "client.pem"
    file.write_bytes(b"comment\n" + issued.replace(b"\n", b"\r\n"))
    expected = x509.load_pem_x509_certificate(issued).not_valid_after_utc.timestamp()
    admin = KafkaAdmin(security_protocol="SSL", ssl_keystore_location=file)
    assert {LOCATION: expected} == expiries_of(admin)


def test_a_chain_expires_with_its_first_and_a_trust_store_with_its_last(tmp_path: Path) -> None:
    """Text in the settings counts as a file does."""
    now = datetime(2026, 11, 27, tzinfo=UTC)
    dates = [now + timedelta(days=days) for days in (20, -10, 30)]
    pem = b"".join(certificate(date).public_bytes(Encoding.PEM) for date in dates)
    file = tmp_path / "all.pem"
    file.write_bytes(pem)
    admin = KafkaAdmin(
        security_protocol="SASL_SSL", ssl_keystore_location=file, ssl_truststore_location=file
    )
    first, last = dates[1].timestamp(), dates[2].timestamp()
    assert {LOCATION: first, TRUSTED: last} == expiries_of(admin)
    text = KafkaAdmin(security_protocol="SSL", ssl_truststore_certificates=pem.decode())
    assert {"kafka.admin.ssl.truststore.certificates": last} == expiries_of(text)


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"no certificate"])
def test_what_can_not_be_read_has_no_date(tmp_path: Path, content: bytes | None) -> None:
    """So have certificates that the protocol does not use."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    assert {} == expiries_of(KafkaAdmin(security_protocol="SSL", ssl_truststore_location=file))
    file.write_bytes(certificate(datetime(2030, 1, 1, tzinfo=UTC)).public_bytes(Encoding.PEM))
    assert {} == expiries_of(KafkaAdmin(ssl_truststore_location=file))
    assert {} == expiries_of(None)
