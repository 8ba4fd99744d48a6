"""Reads the key stores of the Java client, JKS and PKCS12, as the PEM that Python's ssl needs.

The content decides which of them a file is, whatever its name and type are: since Java 9, a store
of type JKS may be PKCS12. JKS needs no package. PKCS12 needs cryptography, which is imported only
for such a store. Nothing is written to a disk.

Example: ``ssl.truststore.location=/etc/kafka/trust.p12`` with its password trusts all certificates
in it.
"""

import base64
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from sidecar.errors import SettingsError
from sidecar.kafka.client.extras import needed
from sidecar.settings import KafkaAdmin, PemFiles

_JKS: Final = b"\xfe\xed\xfe\xed"
_JCEKS: Final = b"\xce\xce\xce\xce"
_DER: Final = b"\x30"


def with_pem(admin: KafkaAdmin) -> KafkaAdmin:
    """Return the settings with the contents of Java's stores as PEM; unchanged without any.

    Raises:
        SettingsError: a store can't be read, its password is wrong, or a package is missing.
    """
    files = admin.files or PemFiles(None, None, None)
    trusted = _read(admin.ssl_truststore_location, files.truststore, admin.ssl_truststore_password)
    own = _read(
        admin.ssl_keystore_location,
        files.keystore,
        admin.ssl_keystore_password,
        admin.ssl_key_password or admin.ssl_keystore_password,
    )
    if trusted is not None:
        files = replace(files, truststore=trusted.chain + trusted.others)
    if own is not None:
        if not own.key:
            raise SettingsError((f"the key store {admin.ssl_keystore_location} has no key in it",))
        files = replace(files, keystore=own.key + own.chain)
    if trusted is None and own is None:
        return admin
    return admin.model_copy(update={"files": files})


@dataclass(frozen=True, slots=True)
class _Store:
    """The content of a store, as PEM.

    Attributes:
        key: the first key; empty without any, or without its password.
        chain: the certificates of that key.
        others: the other certificates.
    """

    key: bytes = field(repr=False)
    chain: bytes
    others: bytes


def _read(
    file: Path | None,
    content: bytes | None,
    password: SecretStr | None,
    key_password: SecretStr | None = None,
) -> _Store | None:
    """Read a store of Java's; None for PEM, without a file, or if it can't be read."""
    if file is None:
        return None
    try:
        content = file.read_bytes() if content is None else content
    except OSError:
        # Whoever loads the certificates says why.
        return None
    words, key_words = (
        None if each is None else each.get_secret_value() for each in (password, key_password)
    )
    try:
        if content.startswith(_JKS):
            return _jks(content, words, key_words)
        if content.startswith(_DER):
            return _pkcs12(file, content, words)
    except ValueError as error:
        raise SettingsError((f"the key store {file} can't be used: {error}",)) from None
    if content.startswith(_JCEKS):
        remedy = "it is JCEKS; keytool -importkeystore makes a PKCS12 store of it"
        raise SettingsError((f"the key store {file} can't be used: {remedy}",))
    return None


def _jks(content: bytes, password: str | None, key_password: str | None) -> _Store:
    # Imported here, since few runs have such a store.
    from sidecar.formats.java_key_store import decrypted_key, read_jks  # noqa: PLC0415

    store = read_jks(content, password)
    protected, chain = store.keys[0] if store.keys else (b"", ())
    key = b""
    if protected and key_password is not None:
        key = decrypted_key(protected, key_password)
    others = [*store.trusted, *(each for _, chain in store.keys[1:] for each in chain)]
    return _Store(
        key=_pem("PRIVATE KEY", key) if key else b"",
        chain=b"".join(_pem("CERTIFICATE", each) for each in chain),
        others=b"".join(_pem("CERTIFICATE", each) for each in others),
    )


def _pkcs12(file: Path, content: bytes, password: str | None) -> _Store:
    serialization = needed("cryptography.hazmat.primitives.serialization", "java-stores", str(file))
    pkcs12 = needed("cryptography.hazmat.primitives.serialization.pkcs12", "java-stores", str(file))
    try:
        store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError:
        # Its text may quote the file.
        raise ValueError("the password is wrong or missing, or the file is not PKCS12") from None
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    found = ([store.cert] if store.cert else []) + store.additional_certs
    key = store.key
    return _Store(
        key=key.private_bytes(pem, form, serialization.NoEncryption()) if key else b"",
        chain=b"".join(each.certificate.public_bytes(pem) for each in found),
        others=b"",
    )


def _pem(label: str, der: bytes) -> bytes:
    name = label.encode()
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (name, base64.encodebytes(der), name)
