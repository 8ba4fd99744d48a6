"""Splits a path into its store, the path in it, and options.

``s3://bucket/logs?region=eu-west-1`` is ``/logs`` in the store ``s3://bucket``. A ``?`` begins
options, as in pyarrow.fs. Names are not decoded: a file ``a b%20.log`` is written like this.
``s3a://``, Hadoop's name, means the same as ``s3://``, Arrow's name. Credentials are refused,
because paths appear in tables, logs and messages.

Example: ``s3://key:secret@logs`` is refused with a message that names only ``s3://logs``.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from sidecar.errors import SidecarError

_REMOTE: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?]*)")
_SECRET: Final = re.compile(
    r"[?&][^=&]*(?:secret|password|token|access_?key|account_?key|sig)[^=&]*=", re.IGNORECASE
)
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}


class SecretInPathError(SidecarError):
    """A path contains credentials."""


class NotAnOptionError(SidecarError):
    """A path has an option that only some of the libraries know."""


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of a path.

    Attributes:
        store: "s3://bucket"; empty for this machine.
        path: the path in the store, not encoded.
        options: "?region=eu-west-1"; empty without options.
    """

    store: str
    path: str
    options: str = ""

    def __str__(self) -> str:
        """Return the path without options, for messages."""
        return self.store + self.path

    @property
    def uri(self) -> str:
        """Return the address in a store as a URI for pyarrow.fs."""
        return self.store + quote(self.path) + self.options


def address_of(text: str) -> Address:
    """Split a path.

    Raises:
        SecretInPathError: the path contains credentials; the message does not repeat them.
        NotAnOptionError: an option is known to Arrow alone.
    """
    remote = _REMOTE.match(text)
    if remote is None:
        return Address("", text)
    user, at, host = remote["authority"].rpartition("@")
    path, mark, options = text[remote.end() :].partition("?")
    scheme = _SCHEMES.get(remote["scheme"], remote["scheme"])
    if ":" in user or _SECRET.search(mark + options):
        raise SecretInPathError(
            f"{scheme}://{host}{path}: a path must not contain credentials, because it appears in"
            " tables and logs: set them in the environment (AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY), or give the machine a role"
        )
    if "tls_ca_file_path=" in options:
        raise NotAnOptionError(
            f"{scheme}://{host}{path}: the library that commits tables does not support"
            " tls_ca_file_path: set the variable SSL_CERT_FILE to the authority's file instead"
        )
    return Address(f"{scheme}://{user}{at}{host}", path, mark + options)
