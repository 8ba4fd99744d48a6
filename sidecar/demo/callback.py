"""The quota callback in a cluster's brokers: where its jar is, and the properties that load it.

Example: ``Cluster(..., broker_jars=[callback_jar()], properties=CALLBACK_PROPERTIES,
properties_of=asks_its_sidecar)``.
"""

from pathlib import Path
from typing import Final

from sidecar.demo.nodes import Broker
from sidecar.errors import ClusterError

CALLBACK_PROPERTIES: Final = {
    "client.quota.callback.class": "throttlesidecar.SidecarQuotaCallback",
    "metric.reporters": (
        "org.apache.kafka.common.metrics.JmxReporter,throttlesidecar.SidecarMetricsReporter"
    ),
}
"""What every broker with the callback has."""

_BUILT: Final = (
    Path(__file__).parents[2] / "deploy/quota-callback/target/throttle-sidecar-quota-callback.jar"
)


def callback_jar(given: Path | None = None) -> Path:
    """The jar.

    Args:
        given: where it is; None: where the checkout that this runs from builds it.

    Raises:
        ClusterError: it is not there.
    """
    jar = given or _BUILT
    if not jar.is_file():
        raise ClusterError(f"the quota callback's jar is not there: {jar}; make jar builds it")
    return jar


def asks_its_sidecar(broker: Broker) -> dict[str, str]:
    """The property by which a broker finds the sidecar beside it."""
    return {"client.quota.callback.sidecar.url": broker.sidecar_url}
