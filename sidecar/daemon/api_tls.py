"""The TLS material of the API: for the sidecar's own server, and for its requests to peers.

New connections use new files as soon as these were read and checked (``sidecar.daemon.reload``).
Connections that are open continue.
"""

import ssl
from collections.abc import Callable, Mapping
from functools import partial

from sidecar.api.server import Tls
from sidecar.kafka.client.certificates import dates_of
from sidecar.peers.trust import Trust
from sidecar.settings import Settings
from sidecar.tls import TlsFiles, client_context, server_context

FIELDS = (
    "http_ssl_ca_file",
    "http_ssl_certificate_file",
    "http_ssl_key_file",
    "http_ssl_client_ca_file",
)
"""The settings, in the order of ``TlsFiles``. Another path needs a restart."""


class ApiTls:
    """The contexts in use.

    Attributes:
        files: the files.
        server: the context for clients that connect; None serves plain HTTP.
        trust: sends the requests to peers.
        expiries: setting -> when its certificates expire, epoch seconds.
    """

    def __init__(self, files: TlsFiles) -> None:
        """Read the files.

        Raises:
            SettingsError: a file can't be used.
        """
        self.files = files
        self.server: ssl.SSLContext | None = None
        self.trust = Trust(partial(client_context, self.files))
        self.expiries: Mapping[str, float] = {}
        self.read()()

    @classmethod
    def of(cls, settings: Settings) -> "ApiTls":
        """Read the files of the settings; raises SettingsError as the constructor."""
        return cls(TlsFiles(*(getattr(settings, name) for name in FIELDS)))

    @property
    def context(self) -> Tls | None:
        """Returns the server's context as it is then; None serves plain HTTP."""
        first = self.server
        return None if first is None else lambda: self.server or first

    def read(self) -> Callable[[], None]:
        """Read the files again; it may be called in a thread.

        Returns:
            A function that uses what was read.

        Raises:
            SettingsError: a file can't be used; nothing has changed.
        """
        files = self.files
        if not files.all:
            return lambda: None
        server = None if files.certificate is None else server_context(files)
        client = client_context(files)
        places = (
            ("ca.file", files.ca, max),
            ("certificate.file", files.certificate, min),
            ("client.ca.file", files.client_ca, max),
        )
        expiries = {
            f"http.ssl.{name}": choose(dates)
            for name, file, choose in places
            if file is not None and (dates := dates_of(file))
        }

        def use() -> None:
            self.server = server
            self.trust.use(client)
            self.expiries = expiries

        return use
