"""The quota callback in a cluster's brokers: the properties that load it.

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
"""What every broker with the callback has."""


def asks_its_sidecar(broker: Broker) -> dict[str, str]:
    """The property by which a broker finds the sidecar beside it."""
    return {"client.quota.callback.sidecar.url": broker.sidecar_url}


REFUSING_PROPERTIES: Final = {
    "authorizer.class.name": "throttlesidecar.SidecarAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""What a broker has too that refuses before the append what pauses can't stop."""
