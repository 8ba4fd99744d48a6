"""The configurations of brokers, as each reports its own; it needs DESCRIBE_CONFIGS on the cluster.

A broker reports what is in force: a dynamic value if there is one, else its properties file's,
else Kafka's default (KIP-226).

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
"""Name -> value as text; None for one that is not set, or that is secret."""


async def describe_broker_configs(
    admin: KafkaAdmin,
    broker_ids: Collection[int] | None,
    names: Sequence[str],
    timeout_s: float = 10.0,
    *,
    nodes: Nodes = "brokers",
) -> dict[int, Configs | Failure] | Failure:
    """Some configurations of some brokers.

    Args:
        admin: how to reach the brokers.
        broker_ids: whom to ask; None asks every active broker.
        names: those to read; one that a broker does not know is not in its answer.
        timeout_s: for all of it, seconds.
        nodes: "controllers" asks these; the admin's addresses are then theirs.

    Returns:
        By broker id, in ascending order; a failure when the brokers can't be listed.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """

    def query_of(broker_id: int) -> Query:
        return describing(BROKER, broker_id, names)

    return await query_each(admin, broker_ids, query_of, read_configs, timeout_s, nodes=nodes)


def describing(resource_type: int, broker_id: int, names: Sequence[str]) -> Query:
    """The query for configurations of a broker, or for levels of its loggers."""
    request = DescribeConfigs(resource_type, str(broker_id), names)
    return Query(request, "DescribeConfigs", "DescribeConfigs")


def read_configs(query: Query, response: Response, broker_id: int) -> Configs | Failure:
    """The configurations in an answer about one resource."""
    if len(response.results or ()) != 1:
        text = f"broker {broker_id}: DescribeConfigs answered for another resource"
        return Failure(FailureKind.PROTOCOL, text)
    error_code, error_message, _type, _name, configs, *_ = response.results[0]
    if error_code:
        return query.refused(broker_id, error_code, error_message)
    return {name: value for name, value, *_ in configs or ()}
