"""How connections are made that are kept: with the same credentials until they are read again.

Example: ``dialler(admin, clock)(HostPort("b1", 9092))`` is a connection that may be called.
"""

from collections.abc import Callable

from sidecar.kafka.connection import GuardedConnection, dial
from sidecar.kafka.link import Dial
from sidecar.kafka.security import load_security
from sidecar.settings import HostPort, KafkaAdmin


def dialler(admin: KafkaAdmin, clock: Callable[[], float]) -> Dial:
    """Makes connections to any address of a cluster.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    security = load_security(admin, clock)

    async def dial_one(endpoint: HostPort) -> GuardedConnection:
        return await dial(endpoint, security, admin.client_id, clock)

    return dial_one


def principal_of(admin: KafkaAdmin) -> str:
    """Who we are to the brokers, as an ACL names it; "<name>" where only the broker knows."""
    return admin.sasl_username or admin.oauth_client_id or "<name>"
