"""How connections are made that stay open: with the same credentials until they are read again.

Example: ``dialler(admin, clock)(HostPort("b1", 9092))`` is a connection that may be called.
"""

from collections.abc import Callable

from sidecar.kafka.client.connection import Dialler
from sidecar.kafka.client.security import load_security
from sidecar.settings import KafkaAdmin


def dialler(admin: KafkaAdmin, clock: Callable[[], float]) -> Dialler:
    """Makes connections to any address of a cluster.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    return Dialler(load_security(admin, clock), admin.client_id, clock)


def principal_of(admin: KafkaAdmin) -> str:
    """Who we are to the brokers, as an ACL names it; "<name>" where only the broker knows."""
    return admin.sasl_username or admin.oauth_client_id or "<name>"
