"""SIGHUP: reads TLS material, credentials and the token again; all of them change, or none.

All of them are read and checked first. If all are valid, they are applied, which can't fail.

Example: the certificate is new and the token file is empty: the log says "nothing was changed", and
brokers are still polled with the old certificate.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sidecar.control.capability import Capability
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.daemon.start_files import token_of
from sidecar.errors import SidecarError
from sidecar.kafka import KafkaVolumeSource
from sidecar.settings import KafkaAdmin, Settings

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Credentials:
    """The credentials that SIGHUP changes.

    Attributes:
        token: the token for changes over HTTP; None refuses them.
        kafka_admin: how to reach the brokers; None when disabled.
    """

    token: str | None
    kafka_admin: KafkaAdmin | None


@dataclass(frozen=True, slots=True)
class Reload:
    """Handles SIGHUP.

    Attributes:
        load: loads the settings; raises SidecarError.
        credentials: the credentials to change.
        source: gets the new credentials; None when disabled.
        capabilities: get the new settings.
        failures: gets each failure that is a bug.
    """

    load: Callable[[], Settings]
    credentials: Credentials
    source: KafkaVolumeSource | None
    capabilities: Sequence[Capability]
    failures: CapabilityFailures

    def __call__(self) -> None:
        """Read and check everything, then apply everything, or log why nothing was changed."""
        try:
            settings = self.load()
            token = token_of(settings)
            redial = None
            if self.source is not None and settings.kafka_admin is not None:
                redial = self.source.reload(settings.kafka_admin)
            changes = [
                (each.name, change)
                for each in self.capabilities
                if (change := self._check(each, settings)) is not None
            ]
        except SidecarError as error:
            _log.error("SIGHUP: nothing was changed: %s", "; ".join(str(error).splitlines()))
            return
        if redial is not None:
            redial()
        self.credentials.token = token
        self.credentials.kafka_admin = settings.kafka_admin
        for name, change in changes:
            self.failures.call(name, "reload", change, None)
        _log.info("SIGHUP: read TLS material, credentials and the token again")

    def _check(self, capability: Capability, settings: Settings) -> Callable[[], None] | None:
        try:
            return capability.reload(settings)
        except SidecarError:
            raise
        except Exception as error:  # noqa: BLE001 - no optional part prevents the others
            self.failures.failed(capability.name, "reload", error)
            return None
