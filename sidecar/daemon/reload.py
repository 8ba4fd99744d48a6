"""Reads TLS material, credentials and the token again; all of them change, or none.

All of them are read and checked first, in a thread, because a disk may hang. If all are valid, they
are applied, which can't fail. SIGHUP also loads the settings again, makes new connections, and ends
former tokens. If only the files have changed (``sidecar.daemon.secret_files``), connections that
work stay.

Example: the certificate is new and the token file is empty: the log says "nothing was changed", and
brokers are still polled with the old certificate.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidecar.control.capability import Capability
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.tokens import Tokens
from sidecar.daemon.api_tls import FIELDS, ApiTls
from sidecar.daemon.start_files import token_of
from sidecar.errors import SidecarError
from sidecar.kafka import KafkaVolumeSource
from sidecar.kafka.client.certificates import expiries_of
from sidecar.settings import KafkaAdmin, Settings, need_restart, read_again, with_former
from sidecar.threads import OwnThreads
from sidecar.tls import TlsFiles

_log = logging.getLogger(__name__)

DEADLINE_S: Final = 10.0
"""How long the files may take. After that the disk hangs."""


@dataclass(slots=True)
class Credentials:
    """The credentials that a reload changes.

    Attributes:
        tokens: the tokens for changes over HTTP.
        kafka_admin: how to reach the brokers; None when disabled.
        expiries: setting -> when its certificates expire, epoch seconds.
        tls: the TLS material of the API.
    """

    tokens: Tokens
    kafka_admin: KafkaAdmin | None
    expiries: Mapping[str, float] = field(default_factory=dict)
    tls: ApiTls = field(default_factory=lambda: ApiTls(TlsFiles()))


@dataclass(slots=True)
class Reload:
    """Handles SIGHUP, and changes of the files.

    Attributes:
        load: loads the settings; raises SidecarError.
        credentials: the credentials to change.
        source: gets the new credentials; None when disabled.
        capabilities: get the new settings.
        failures: gets each failure that is a bug.
        started: the settings that the daemon started with.
        settings: the settings with the credentials that apply now.
    """

    load: Callable[[], Settings]
    credentials: Credentials
    source: KafkaVolumeSource | None
    capabilities: Sequence[Capability]
    failures: CapabilityFailures
    started: Settings
    settings: Settings = field(init=False)
    _asked: bool = field(default=False, init=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Begin with the settings of the start."""
        self.settings = self.started

    def __call__(self) -> None:
        """Handle SIGHUP, in a task; a signal during another's read is handled after it."""
        self._asked = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._read_if_asked(), name="SIGHUP")

    async def _read_if_asked(self) -> None:
        while self._asked:
            self._asked = False
            await self.read()

    async def read(self) -> None:
        """Read and check everything, then apply it, or log why nothing changed."""
        before = self.settings
        call = OwnThreads("SIGHUP").call(self._load_and_prepare)
        reading = asyncio.create_task(call, name="SIGHUP: files")
        await asyncio.wait({reading}, timeout=DEADLINE_S)
        if not reading.done():
            _log.error(
                "SIGHUP: the files were not read within %g s; nothing has changed, and they are "
                "used once they are read",
                DEADLINE_S,
            )
        try:
            settings, apply = await reading
        except SidecarError as error:
            _log.error("SIGHUP: nothing was changed: %s", "; ".join(str(error).splitlines()))
            return
        if self.settings is not before:
            # The files have changed meanwhile, and were read by themselves.
            self._asked = True
            return
        apply()
        _log.info("SIGHUP: read TLS material, credentials and the token again")
        if names := need_restart(self.started, settings):
            _log.warning(
                "SIGHUP: these changed settings apply only after a restart: %s", ", ".join(names)
            )

    def _load_and_prepare(self) -> tuple[Settings, Callable[[], None]]:
        settings = self.load()
        return settings, self.prepare(read_again(settings), redial=True)

    def prepare(self, settings: Settings, *, redial: bool) -> Callable[[], None]:
        """Read and check everything; it may be called in a thread.

        Args:
            settings: the settings with the new credentials.
            redial: whether to make new connections at once, and end former tokens; otherwise
                connections that work stay, and so do former tokens for a while.

        Returns:
            A function that applies everything.

        Raises:
            SidecarError: something can't be used; nothing has changed.
        """
        # Other paths need a restart.
        same = {name: getattr(self.started, name) for name in FIELDS}
        settings = settings.model_copy(update=same)
        token = token_of(settings)
        use_tls = self.credentials.tls.read()
        admin, before = settings.kafka_admin, self.settings.kafka_admin
        if admin is not None and before is not None:
            is_refused = self.source is not None and self.source.is_refused
            admin = with_former(admin, before, is_refused=is_refused)
            settings = settings.model_copy(update={"kafka_admin": admin})
        expiries = expiries_of(admin)
        change_source = None
        if self.source is not None and admin is not None:
            change_source = self.source.reload(admin, redial=redial)
        changes = [
            (each.name, change)
            for each in self.capabilities
            if (change := self._check(each, settings, redial=redial)) is not None
        ]

        def apply() -> None:
            if change_source is not None:
                change_source()
            self.credentials.tokens.replace(token, ends_former=redial)
            self.credentials.kafka_admin = admin
            self.credentials.expiries = expiries
            use_tls()
            for name, change in changes:
                self.failures.call(name, "reload", change, None)
            self.settings = settings

        return apply

    def _check(
        self, capability: Capability, settings: Settings, *, redial: bool
    ) -> Callable[[], None] | None:
        try:
            return capability.reload(settings, redial=redial)
        except SidecarError:
            raise
        except Exception as error:  # noqa: BLE001 - no optional part prevents the others
            self.failures.failed(capability.name, "reload", error)
            return None
