"""What a path says of where it is: on this machine, or in a store, and with which options.

``s3://bucket/logs?region=eu-west-1`` is ``/logs`` in the store ``s3://bucket``; a ``?`` begins
options there, as pyarrow.fs has them. Names are taken as they are: a file ``a b%20.log`` is written
so. ``s3://`` and ``s3a://`` are one, Arrow's name and Hadoop's. Credentials are refused, since
paths appear in tables, logs and messages.

Example: ``s3://key:secret@logs`` is refused by a sentence that names ``s3://logs`` alone.
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
    """A path holds credentials."""


class NotAnOptionError(SidecarError):
    """An option of a path is not known to all that reach the store."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where something is.

    Attributes:
        store: "s3://bucket"; empty on this machine.
        path: in it, as its names are.
        options: "?region=eu-west-1"; empty for none.
    """

    store: str
    path: str
    options: str = ""

    def __str__(self) -> str:
        """As people see it: without options."""
        return self.store + self.path

    @property
    def uri(self) -> str:
        """As pyarrow.fs takes it, of a store."""
        return self.store + quote(self.path) + self.options


def address_of(text: str) -> Address:
    """What a path says.

    Raises:
        SecretInPathError: credentials, which are not repeated.
        NotAnOptionError: one that Arrow alone knows.
    """
    remote = _REMOTE.match(text)
    if remote is None:
        return Address("", text)
    user, at, host = remote["authority"].rpartition("@")
    path, mark, options = text[remote.end() :].partition("?")
    scheme = _SCHEMES.get(remote["scheme"], remote["scheme"])
    if ":" in user or _SECRET.search(mark + options):
        raise SecretInPathError(
            f"{scheme}://{host}{path}: a path must not hold credentials, since it appears in"
            " tables and logs: leave them to the environment (AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY), or to the machine's role"
        )
    if "tls_ca_file_path=" in options:
        raise NotAnOptionError(
            f"{scheme}://{host}{path}: tls_ca_file_path is not known to what commits tables: name"
            " the authority's file in the variable SSL_CERT_FILE instead"
        )
    return Address(f"{scheme}://{user}{at}{host}", path, mark + options)
