"""PEM text squeezed into a setting."""

import ssl

import pytest
import trustme

from sidecar.formats import pem


def test_a_block_on_one_line_is_written_anew() -> None:
    """Blanks for line ends, as a properties file has them, become lines of 64 characters."""
    text = f"-----BEGIN CERTIFICATE----- {'A' * 60} {'B' * 8} -----END CERTIFICATE-----"
    expected = f"-----BEGIN CERTIFICATE-----\n{'A' * 60}BBBB\nBBBB\n-----END CERTIFICATE-----\n"
    assert expected == pem.certificates(text)


def test_openssl_reads_what_was_one_line() -> None:
    """A real chain whose line ends became blanks is read by Python's ssl."""
    authority = trustme.CA()
    squeezed = authority.cert_pem.bytes().decode().replace("\n", " ")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem.certificates(squeezed * 2))
    assert 1 == context.cert_store_stats()["x509_ca"]


def test_every_kind_of_key_is_a_key() -> None:
    """PKCS 8, encrypted, RSA and EC keys all end in PRIVATE KEY."""
    for kind in ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"):
        text = f"-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n"
        assert text == pem.private_key(text)


def test_headers_keep_their_lines() -> None:
    """The headers of an old encrypted key end with their lines."""
    text = (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0\n\nAAAA\n"
        "-----END RSA PRIVATE KEY-----\n"
    )
    assert text == pem.private_key(text)


@pytest.mark.parametrize("text", ["/etc/kafka/tls.key", "hunter2", "-----BEGIN CERTIFICATE-----"])
def test_other_text_is_refused_without_quoting(text: str) -> None:
    """A path in the place of text is the common mistake, but it might be a secret as well."""
    with pytest.raises(ValueError, match="must be PEM text that begins with") as refusal:
        pem.private_key(text)
    assert text not in str(refusal.value)


def test_a_key_is_no_certificate() -> None:
    """The two are not taken for each other."""
    text = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    with pytest.raises(ValueError, match="BEGIN CERTIFICATE"):
        pem.certificates(text)
