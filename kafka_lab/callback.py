"""The properties that load the quota callback in a cluster's brokers.

Example: ``Cluster(..., broker_jars=[callback_jar()], properties=CALLBACK_PROPERTIES,
properties_of=asks_its_sidecar)``.
"""

from typing import Final

from kafka_lab.nodes import Broker

CALLBACK_PROPERTIES: Final = {
    "client.quota.callback.class": "throttlesidecar.SidecarQuotaCallback",
    "metric.reporters": (
        "org.apache.kafka.common.metrics.JmxReporter,throttlesidecar.SidecarMetricsReporter"
    ),
}
"""The properties of every broker with the callback."""


def asks_its_sidecar(broker: Broker) -> dict[str, str]:
    """Return the property with the address of the sidecar beside a broker."""
    return {"client.quota.callback.sidecar.url": broker.sidecar_url}


REFUSING_PROPERTIES: Final = {
    "authorizer.class.name": "throttlesidecar.SidecarAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""More properties of a broker that also refuses before the append, where pauses are not enough."""
