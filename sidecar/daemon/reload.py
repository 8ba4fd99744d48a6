"""Reads TLS material, credentials and the token again; all of them change, or none.

All of them are read and checked first. If all are valid, they are applied, which can't fail. SIGHUP
also loads the settings again, and makes new connections. If only the files have changed
(``sidecar.daemon.secret_files``), connections that work stay.

Example: the certificate is new and the token file is empty: the log says "nothing was changed", and
brokers are still polled with the old certificate.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sidecar.control.capability import Capability
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.daemon.start_files import token_of
from sidecar.errors import SidecarError
from sidecar.kafka import KafkaVolumeSource
from sidecar.kafka.client.certificates import expiries_of
from sidecar.settings import KafkaAdmin, Settings, need_restart

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Credentials:
    """The credentials that a reload changes.

    Attributes:
        token: the token for changes over HTTP; None refuses them.
        kafka_admin: how to reach the brokers; None when disabled.
        expiries: setting -> when its certificates expire, epoch seconds.
    """

    token: str | None
    kafka_admin: KafkaAdmin | None
    expiries: Mapping[str, float] = field(default_factory=dict)


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

    def __post_init__(self) -> None:
        """Begin with the settings of the start."""
        self.settings = self.started

    def __call__(self) -> None:
        """Handle SIGHUP: read and check everything, then apply it, or log why nothing changed."""
        try:
            settings = self.load()
            apply = self.prepare(settings, redial=True)
        except SidecarError as error:
            _log.error("SIGHUP: nothing was changed: %s", "; ".join(str(error).splitlines()))
            return
        apply()
        _log.info("SIGHUP: read TLS material, credentials and the token again")
        if names := need_restart(self.started, settings):
            _log.warning(
                "SIGHUP: these changed settings apply only after a restart: %s", ", ".join(names)
            )

    def prepare(self, settings: Settings, *, redial: bool) -> Callable[[], None]:
        """Read and check everything; it may be called in a thread.

        Args:
            settings: the settings with the new credentials.
            redial: whether to make new connections at once; otherwise those that work stay.

        Returns:
            A function that applies everything.

        Raises:
            SidecarError: something can't be used; nothing has changed.
        """
        token = token_of(settings)
        expiries = expiries_of(settings.kafka_admin)
        change_source = None
        if self.source is not None and settings.kafka_admin is not None:
            change_source = self.source.reload(settings.kafka_admin, redial=redial)
        changes = [
            (each.name, change)
            for each in self.capabilities
            if (change := self._check(each, settings, redial=redial)) is not None
        ]

        def apply() -> None:
            if change_source is not None:
                change_source()
            self.credentials.token = token
            self.credentials.kafka_admin = settings.kafka_admin
            self.credentials.expiries = expiries
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
