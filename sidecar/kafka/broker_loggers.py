"""Reads and sets the levels of brokers' loggers while the brokers run (KIP-412).

A logger is a configuration of the resource BROKER_LOGGER, whose name is the broker's id. Only that
broker answers for it. Since Kafka 3.7 a controller answers for its own loggers, on its own
listener. Levels are not stored: after a restart the broker has the levels of its log4j
configuration. Reading needs DESCRIBE_CONFIGS on the cluster. Setting needs ALTER_CONFIGS on a
broker, and CLUSTER_ACTION on a controller.

Example: ``await set_levels(admin, {0: "DEBUG", 1: "DEBUG"}, REQUEST_LOGGER)`` turns on the request
log of brokers 0 and 1, and returns ``{0: "DEBUG", 1: "DEBUG"}``.
"""

from collections.abc import Collection, Mapping

from aiokafka.protocol.api import Response

from sidecar.kafka.broker_configs import describing, read_configs
from sidecar.kafka.client.each_broker import Nodes, Query, query_each
from sidecar.kafka.config_messages import BROKER_LOGGER, SetConfigs
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind

REQUEST_LOGGER = "kafka.request.logger"
"""At DEBUG it writes one line for each request that a broker has answered."""

TIMEOUT_S = 10.0

Levels = dict[int, str | Failure]
"""Broker id, in ascending order -> the level, such as "WARN", or why it is not known."""


async def read_levels(
    admin: KafkaAdmin,
    broker_ids: Collection[int] | None,
    logger: str,
    *,
    nodes: Nodes = "brokers",
) -> Levels | Failure:
    """Reads the level of a logger on some brokers; without its own level it has its parent's.

    The time for all requests is 10 s. Arguments, results and errors are those of
    ``describe_broker_configs``.
    """

    def query_of(broker_id: int) -> Query:
        return describing(BROKER_LOGGER, broker_id, [logger])

    def read(query: Query, response: Response, broker_id: int) -> str | Failure:
        configs = read_configs(query, response, broker_id)
        if isinstance(configs, Failure):
            return configs
        if (level := configs.get(logger)) is None:
            # Brokers that use another library than log4j list no loggers at all.
            text = f"broker {broker_id}: it has no logger {logger} that can be set"
            return Failure(FailureKind.UNSUPPORTED, text)
        return level

    return await query_each(admin, broker_ids, query_of, read, TIMEOUT_S, nodes=nodes)


async def set_levels(
    admin: KafkaAdmin,
    levels: Mapping[int, str],
    logger: str,
    *,
    nodes: Nodes = "brokers",
) -> Levels | Failure:
    """Sets the level of a logger on each broker, in 10 s for all requests.

    ``levels`` maps broker ids to OFF, FATAL, ERROR, WARN, INFO, DEBUG or TRACE. The other
    arguments, the results and the errors are those of ``describe_broker_configs``.
    """

    def query_of(broker_id: int) -> Query:
        request = SetConfigs(BROKER_LOGGER, str(broker_id), {logger: levels[broker_id]})
        needs = "AlterConfigs" if nodes == "brokers" else "ClusterAction"
        return Query(request, needs)

    def read(query: Query, response: Response, broker_id: int) -> str | Failure:
        if len(response.responses or ()) != 1:
            text = f"broker {broker_id}: {query.request.NAME} answered for another resource"
            return Failure(FailureKind.PROTOCOL, text)
        error_code, error_message, *_ = response.responses[0]
        if error_code:
            return query.refused(broker_id, error_code, error_message)
        return levels[broker_id]

    return await query_each(admin, levels, query_of, read, TIMEOUT_S, nodes=nodes)
