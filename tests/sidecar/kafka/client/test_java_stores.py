"""Java's key stores as PEM, and packages of extras that are missing."""

import sys
from pathlib import Path
from typing import Final

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from pydantic import SecretStr

from sidecar.errors import SettingsError
from sidecar.kafka.client.aws_tokens import AwsTokens
from sidecar.kafka.client.certificates import expiries_of
from sidecar.kafka.client.java_stores import with_pem
from sidecar.kafka.client.kerberos import Kerberos
from sidecar.settings import KafkaAdmin, PemFiles

JKS: Final = Path(__file__).parents[2] / "formats" / "key_stores" / "own.jks"


def settings(file: Path, password: str | None, key_password: str | None = None) -> KafkaAdmin:
    """Settings with one store for both purposes."""
    secret = None if password is None else SecretStr(password)
    return KafkaAdmin(
        security_protocol="SSL",
        ssl_truststore_location=file,
        ssl_truststore_password=secret,
        ssl_keystore_location=file,
        ssl_keystore_password=secret,
        ssl_key_password=None if key_password is None else SecretStr(key_password),
    )


@pytest.fixture
def p12(tmp_path: Path) -> Path:
    """A PKCS12 store with a key, its certificate and its CA's."""
    ca = trustme.CA()
    own = ca.issue_cert("sidecar.example")
    content = pkcs12.serialize_key_and_certificates(
        b"own",
        load_pem_private_key(own.private_key_pem.bytes(), None),  # type: ignore[arg-type]
        x509.load_pem_x509_certificate(own.cert_chain_pems[0].bytes()),
        [x509.load_pem_x509_certificate(ca.cert_pem.bytes())],
        BestAvailableEncryption(b"changeit"),
    )
    # Java 17 calls it JKS as well.
    (tmp_path / "own.jks").write_bytes(content)
    return tmp_path / "own.jks"


def found(admin: KafkaAdmin) -> PemFiles:
    """The contents as PEM."""
    files = with_pem(admin).files
    assert files is not None
    return files


def test_the_content_decides_what_a_store_is(p12: Path) -> None:
    """Both kinds have key and chain for one purpose, and certificates alone for the other."""
    for file, key_password, trusted in ((JKS, "keypass", 2), (p12, None, 2)):
        files = found(settings(file, "changeit", key_password))
        assert files.truststore is not None
        assert files.keystore is not None
        assert trusted == files.truststore.count(b"BEGIN CERTIFICATE")
        assert b"PRIVATE" not in files.truststore
        key = load_pem_private_key(files.keystore, None)
        certificate = x509.load_pem_x509_certificate(files.keystore)
        assert certificate.public_key() == key.public_key()


def test_what_was_read_already_counts(p12: Path) -> None:
    """A daemon has read the file before, and opens none."""
    content = p12.read_bytes()
    p12.unlink()
    admin = settings(p12, "changeit")
    files = PemFiles(content, content, None)
    assert found(admin.model_copy(update={"files": files})).keystore
    expiries = expiries_of(admin.model_copy(update={"files": files}))
    assert {"kafka.admin.ssl.truststore.location", "kafka.admin.ssl.keystore.location"} == set(
        expiries
    )


def test_pem_stays_as_it_is(tmp_path: Path) -> None:
    """So does a file that can't be read, of which others say why."""
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----")
    for name in ("ca.pem", "gone"):
        admin = settings(tmp_path / name, None)
        assert admin is with_pem(admin)


def test_a_store_that_can_not_be_used_is_explained(p12: Path, tmp_path: Path) -> None:
    """The message names the file, and no password."""
    jceks = tmp_path / "old"
    jceks.write_bytes(b"\xce\xce\xce\xce")
    for file, password, problem in (
        (p12, "hunter2", "the password is wrong or missing, or the file is not PKCS12"),
        (p12, None, "the password is wrong or missing, or the file is not PKCS12"),
        (JKS, "hunter2", "the password is wrong, or the file is damaged"),
        (jceks, "hunter2", "it is JCEKS; keytool -importkeystore makes a PKCS12 store of it"),
    ):
        with pytest.raises(SettingsError) as raised:
            with_pem(settings(file, password))
        assert f"the key store {file} can't be used: {problem}" == str(raised.value)


def test_a_missing_package_is_named_with_its_extra(
    p12: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JKS needs none."""
    for name in ("cryptography.hazmat.primitives.serialization", "gssapi"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", None)
    assert found(settings(JKS, "changeit", "keypass")).keystore
    with pytest.raises(SettingsError, match=r"run: pip install '\.\[java-stores\]'$"):
        with_pem(settings(p12, "changeit"))
    with pytest.raises(SettingsError, match=r"run: pip install '\.\[kerberos\]'$"):
        Kerberos(Path("/keytab"), "ann@EXAMPLE.ORG", "kafka")
    with pytest.raises(SettingsError, match=r"run: pip install '\.\[aws\]'$"):
        AwsTokens("eu-west-1", lambda: 0.0)
