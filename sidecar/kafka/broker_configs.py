"""Reads the configurations of brokers; each broker reports its own.

A broker reports the value that applies: the dynamic value, or the value in its properties file, or
Kafka's default (KIP-226). Reading needs DESCRIBE_CONFIGS on the cluster.

Example: ``await describe_broker_configs(admin, None, ["num.io.threads"])`` is
``{0: {"num.io.threads": "8"}, 1: {"num.io.threads": "16"}}``.
"""

from collections.abc import Collection, Mapping, Sequence

from aiokafka.protocol.api import Response

from sidecar.kafka.client.each_broker import Nodes, Query, query_each
from sidecar.kafka.config_messages import BROKER, DescribeConfigs
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind

Configs = Mapping[str, str | None]
"""Name -> value as text; None if the value is not set or is secret."""


async def describe_broker_configs(
    admin: KafkaAdmin,
    broker_ids: Collection[int] | None,
    names: Sequence[str],
    timeout_s: float = 10.0,
    *,
    nodes: Nodes = "brokers",
) -> dict[int, Configs | Failure] | Failure:
    """Reads some configurations of some brokers.

    Args:
        admin: how to reach the brokers.
        broker_ids: the brokers to ask; None asks every active broker.
        names: the configurations to read. A broker omits those that it does not know.
        timeout_s: the time for all requests, seconds.
        nodes: "controllers" asks the controllers; the addresses in ``admin`` are then theirs.

    Returns:
        Broker id -> result, in ascending order; a failure if the brokers can't be listed.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """

    def query_of(broker_id: int) -> Query:
        return describing(BROKER, broker_id, names)

    return await query_each(admin, broker_ids, query_of, read_configs, timeout_s, nodes=nodes)


def describing(resource_type: int, broker_id: int, names: Sequence[str]) -> Query:
    """The query for configurations of a broker, or for the levels of its loggers."""
    request = DescribeConfigs(resource_type, [str(broker_id)], names)
    return Query(request, "DescribeConfigs")


def read_configs(query: Query, response: Response, broker_id: int) -> Configs | Failure:
    """The configurations in an answer about one resource."""
    if len(response.results or ()) != 1:
        text = f"broker {broker_id}: DescribeConfigs answered for another resource"
        return Failure(FailureKind.PROTOCOL, text)
    error_code, error_message, _type, _name, configs, *_ = response.results[0]
    if error_code:
        return query.refused(broker_id, error_code, error_message)
    return {name: value for name, value, *_ in configs or ()}
