"""Java's key stores of type JKS."""

from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import load_der_x509_certificate

from sidecar.formats.java_key_store import decrypted_key, read_jks

OWN: Final = (Path(__file__).parent / "key_stores" / "own.jks").read_bytes()
"""Made by Java 17's keytool -storetype JKS: the key "own", of password "keypass", and a trusted
certificate "ca"."""


def test_key_chain_and_trusted_certificates_are_read() -> None:
    """The key has a password of its own, and belongs to its certificate."""
    store = read_jks(OWN, "changeit")
    (trusted,) = store.trusted
    ((protected, (certificate,)),) = store.keys
    assert "CN=ca" == load_der_x509_certificate(trusted).subject.rfc4514_string()
    key = load_der_private_key(decrypted_key(protected, "keypass"), None)
    assert load_der_x509_certificate(certificate).public_key() == key.public_key()


def test_a_file_is_checked_if_its_password_is_known() -> None:
    """Without it there is no check, as in Java."""
    assert read_jks(OWN, "changeit") == read_jks(OWN, None)
    for content, password in ((OWN, "hunter2"), (OWN[:-1] + b"!", "changeit")):
        with pytest.raises(ValueError, match="the password is wrong, or the file is damaged"):
            read_jks(content, password)
    with pytest.raises(ValueError, match="it ends too early"):
        read_jks(OWN[:400], None)


def test_a_key_that_can_not_be_decrypted_is_explained() -> None:
    """Its password is wrong, or the encryption is none of Java's own."""
    ((protected, _),) = read_jks(OWN, "changeit").keys
    with pytest.raises(ValueError, match="the key's password is wrong, or the file is damaged"):
        decrypted_key(protected, "changeit")
    other = protected.replace(b"\x2a\x02\x11\x01\x01", b"\x2a\x02\x11\x01\x02")
    with pytest.raises(ValueError, match="its key has an unknown encryption"):
        decrypted_key(other, "keypass")
