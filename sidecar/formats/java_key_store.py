r"""Reads Java's key stores of type JKS: certificates, and private keys with their chains.

All numbers are big-endian, and all texts have their length before them:

- the magic number, the version (1 or 2), and the number of entries;
- for each entry its kind (1: a key, 2: a trusted certificate), alias and date. A key follows as the
  DER of PKCS #8's EncryptedPrivateKeyInfo, with the number of its certificates. Each certificate is
  its type (not in version 1) and DER;
- SHA-1 of the password, of the words "Mighty Aphrodite" and of all bytes before, as a check.

A key is encrypted with a stream of SHA-1 sums, of the password and the sum before, which begins
with a salt; SHA-1 of password and key follows it. Source: OpenJDK's JavaKeyStore and KeyProtector.
The Java client reads a PKCS12 store of this type as well, and so does whoever calls this.

Example: ``read_jks(content, "changeit")`` of a trust store with two CAs has two certificates.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Final

_MAGIC_BYTES: Final = 4
_SALT: Final = 20
_KEY_ENTRY: Final = 1
_PROTECTED: Final = bytes.fromhex("06 0a 2b 06 01 04 01 2a 02 11 01 01")
"""The object id of the encryption, which no other provider of Java's writes."""


@dataclass(frozen=True, slots=True)
class KeyStore:
    """The content of a store, as DER.

    Attributes:
        trusted: the trusted certificates.
        keys: the private keys, encrypted (``decrypted_key``), each with its chain.
    """

    trusted: tuple[bytes, ...]
    keys: tuple[tuple[bytes, tuple[bytes, ...]], ...] = field(repr=False)


def read_jks(content: bytes, password: str | None) -> KeyStore:
    """Return the certificates and keys.

    Args:
        content: the file, which begins with the bytes fe ed fe ed.
        password: the store's; without it, the check is left out, as in Java.

    Raises:
        ValueError: with a sentence that quotes nothing of the file.
    """
    body, check = content[: -hashlib.sha1(usedforsecurity=False).digest_size], content[-20:]
    if password is not None and _sum(_encoded(password), b"Mighty Aphrodite", body) != check:
        raise ValueError("the password is wrong, or the file is damaged")
    try:
        return _entries(_Bytes(body, _MAGIC_BYTES))
    except IndexError:
        raise ValueError("the file is damaged: it ends too early") from None


class _Bytes:
    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self._at = at

    def take(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._content):
            raise IndexError
        return self._content[self._at - count : self._at]

    def number(self, count: int = 4) -> int:
        return int.from_bytes(self.take(count), "big")

    def text(self) -> bytes:
        return self.take(self.number(2))


def _entries(stream: _Bytes) -> KeyStore:
    version = stream.number()
    trusted, keys = [], []
    for _ in range(stream.number()):
        is_key = stream.number() == _KEY_ENTRY
        stream.text()
        stream.take(8)
        key = stream.take(stream.number()) if is_key else b""
        certificates = []
        for _ in range(stream.number() if is_key else 1):
            if version > 1:
                stream.text()
            certificates.append(stream.take(stream.number()))
        if is_key:
            keys.append((key, tuple(certificates)))
        else:
            trusted += certificates
    return KeyStore(tuple(trusted), tuple(keys))


def decrypted_key(protected: bytes, password: str) -> bytes:
    """Return the DER of a private key (PKCS #8).

    Args:
        protected: the key in the store.
        password: the key's password, which is usually the store's.

    Raises:
        ValueError: with a sentence that quotes nothing of the key.
    """
    # EncryptedPrivateKeyInfo: the algorithm, then an OCTET STRING to the end.
    at = protected.find(_PROTECTED)
    after = protected.find(b"\x04", at + len(_PROTECTED))
    if at < 0 or after < 0:
        raise ValueError("its key has an unknown encryption")
    more = protected[after + 1]
    data = protected[after + 2 + (more & 0x7F if more & 0x80 else 0) :]
    salt, encrypted, check = data[:_SALT], data[_SALT:-_SALT], data[-_SALT:]
    stream, last = b"", salt
    while len(stream) < len(encrypted):
        last = _sum(_encoded(password), last)
        stream += last
    key = bytes(a ^ b for a, b in zip(encrypted, stream, strict=False))
    if _sum(_encoded(password), key) != check:
        raise ValueError("the key's password is wrong, or the file is damaged")
    return key


def _encoded(password: str) -> bytes:
    return password.encode("utf-16-be")


def _sum(*parts: bytes) -> bytes:
    return hashlib.sha1(b"".join(parts), usedforsecurity=False).digest()
