"""Reads and sets client quotas (KIP-546), as kafka-configs.sh does.

Reading needs DESCRIBE_CONFIGS on the cluster, and setting ALTER_CONFIGS.

Example: ``await alter_client_quotas(admin, [({"client-id": "etl"}, {"producer_byte_rate": 1e6})])``
limits every client with that client-id to 1 MB/s on each broker. ``describe_client_quotas`` then
returns ``Entity(client_id="etl"): {"producer_byte_rate": 1e6}``.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from aiokafka.protocol.api import Response

from sidecar.kafka.client.connection import GuardedConnection
from sidecar.kafka.client.dialler import Dialler
from sidecar.kafka.client.failures import EXPECTED_ERRORS, one_line, other_cluster, to_failure
from sidecar.kafka.client.one_call import query_any, refused
from sidecar.kafka.cluster_answers import read_cluster_id
from sidecar.kafka.cluster_messages import DescribeClusterId
from sidecar.kafka.quota_messages import Alteration, AlterClientQuotas, DescribeClientQuotas
from sidecar.quotas.entities import ClientQuotas, Entity, describe_parts
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind

MOST_AT_ONCE: Final = 996
"""Kafka refuses a request whose changes need more than 10,000 records (POLICY_VIOLATION). A
multiple of 2 and 3, so that changes which belong together stay together: a quota and its original
(``sidecar.client_quotas.platform``)."""

_UNLIMITED: Final = 2.0**63
_DESCRIBE_CLIENT_QUOTAS = DescribeClientQuotas()


async def describe_client_quotas(
    admin: KafkaAdmin, timeout_s: float = 10.0
) -> ClientQuotas | Failure:
    """Reads all quotas of the cluster, in the broker's order; errors as in ``query_any``.

    Entities of kinds that ``Entity`` lacks, from a future Kafka, are left out. The clients that
    the sidecar knows are not such entities.
    """
    return await query_any(
        admin, _DESCRIBE_CLIENT_QUOTAS, read_client_quotas, timeout_s, "the client quotas"
    )


def read_client_quotas(response: Response, endpoint: HostPort) -> ClientQuotas | Failure:
    """The quotas in a DescribeClientQuotas v1 answer from an address.

    Kafka also takes Infinity and NaN as a percentage, and then limits nobody. A very large number
    has the same effect, and can be printed, compared and written as JSON.
    """
    if response.error_code:
        return refused(
            endpoint,
            "DescribeClientQuotas",
            response.error_code,
            response.error_message,
            "DescribeConfigs",
        )
    quotas: dict[Entity, dict[str, float]] = {}
    for parts, values, *_ in response.entries or ():
        try:
            entity = Entity.of({kind: name for kind, name, *_ in parts})
        except ValueError:
            continue
        quotas[entity] = {
            key: value if math.isfinite(value) else _UNLIMITED for key, value, *_ in values
        }
    return quotas


async def alter_client_quotas(
    admin: KafkaAdmin,
    alterations: Sequence[Alteration],
    timeout_s: float = 10.0,
    *,
    validate_only: bool = False,
) -> Failure | None:
    """Sets and removes quotas.

    Args:
        admin: how to reach the brokers. If an address can't be reached or leads to another cluster,
            the next one is tried.
        alterations: each is applied completely or not at all.
        timeout_s: the time for all requests, seconds.
        validate_only: whether the broker only validates.

    Returns:
        The first failure; None if all alterations were applied.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    outcomes = await alter_each(admin, alterations, timeout_s, validate_only=validate_only)
    if isinstance(outcomes, Failure):
        return outcomes
    return next((failure for failure in outcomes if failure is not None), None)


async def alter_each(
    admin: KafkaAdmin,
    alterations: Sequence[Alteration],
    timeout_s: float = 10.0,
    *,
    validate_only: bool = False,
    unanswered: Counter[HostPort] | None = None,
) -> list[Failure | None] | Failure:
    """Sets and removes quotas like ``alter_client_quotas``, with a result for each alteration.

    Each request has at most ``MOST_AT_ONCE`` of them. Connecting to one of five addresses may take
    a fifth of the time. A broker that can't reach the controllers answers nothing for a minute, so
    the first request of an address may take half of the time that is left, and that of the last
    address all of it. The next address is then asked for the same values.

    Args:
        admin: as above.
        alterations: as above.
        timeout_s: as above.
        validate_only: as above.
        unanswered: address -> how many calls in a row it has not answered. It is updated, and
            addresses with more of them are asked later.

    Returns:
        For each alteration None, or why it was not applied. A single failure means that there was
        no answer. If a broker could be reached, the alterations without a result may have been
        applied.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    dialler = await Dialler.read(admin, timeout_s)
    if isinstance(dialler, Failure):
        return dialler
    unanswered = Counter() if unanswered is None else unanswered
    endpoints = sorted(admin.bootstrap_servers, key=unanswered.__getitem__)
    outcomes: list[Failure | None] = []
    failures: list[Failure] = []
    for endpoint in endpoints:
        doing = "connecting"
        connecting_until = min(deadline, loop.time() + timeout_s / len(endpoints))
        try:
            async with asyncio.timeout_at(connecting_until) as limit:
                connection = await dialler.either(endpoint)
                doing = "setting quotas"
                try:
                    halfway = (loop.time() + deadline) / 2
                    limit.reschedule(deadline if endpoint == endpoints[-1] else halfway)
                    foreign = await _foreign(connection, endpoint, admin.cluster_id)
                    if foreign is not None:
                        failures.append(foreign)
                        continue
                    for first in range(0, len(alterations), MOST_AT_ONCE):
                        batch = alterations[first : first + MOST_AT_ONCE]
                        request = AlterClientQuotas(batch, validate_only=validate_only)
                        found = _outcomes(await connection.call(request), batch, endpoint)
                        if isinstance(found, Failure):
                            return _with_rest(outcomes, found, len(alterations))
                        outcomes += found
                        # It reaches a controller, so it has all the time that is left.
                        limit.reschedule(deadline)
                finally:
                    await connection.close()
        except EXPECTED_ERRORS as error:
            unanswered[endpoint] += 1
            failures.append(to_failure(error, str(endpoint), doing, dialler.security.names))
            if outcomes:
                return _with_rest(outcomes, failures[-1], len(alterations))
        else:
            unanswered.pop(endpoint, None)
            return outcomes
    return _summary(failures)


def _summary(failures: Sequence[Failure]) -> Failure:
    if not failures:
        return Failure(FailureKind.CONNECT, "no broker's address is configured")
    return Failure(failures[-1].kind, one_line("; ".join(each.message for each in failures)))


def _with_rest(
    outcomes: list[Failure | None], failure: Failure, count: int
) -> list[Failure | None] | Failure:
    """The results so far, and the failure for all other alterations; only that if none has one."""
    return [*outcomes, *[failure] * (count - len(outcomes))] if outcomes else failure


async def _foreign(
    connection: GuardedConnection, endpoint: HostPort, cluster_id: str | None
) -> Failure | None:
    """Why the broker of a connection is none of a cluster; None if it is one."""
    if cluster_id is None:
        return None
    found = read_cluster_id(await connection.call(DescribeClusterId()), endpoint)
    return found if isinstance(found, Failure) else other_cluster(str(endpoint), found, cluster_id)


def _outcomes(
    answer: Response, alterations: Sequence[Alteration], endpoint: HostPort
) -> list[Failure | None] | Failure:
    """The result of each alteration; brokers answer in another order."""
    reported: dict[frozenset[tuple[str, str | None]], Failure | None] = {}
    for error_code, error_message, parts, *_ in answer.entries or ():
        entity = {kind: name for kind, name, *_ in parts}
        failure = None
        if error_code:
            name = f"AlterClientQuotas of {describe_parts(entity)}"
            failure = refused(endpoint, name, error_code, error_message, "AlterConfigs")
        reported[frozenset(entity.items())] = failure
    outcomes: list[Failure | None] = []
    for altered, _ in alterations:
        key = frozenset(altered.items())
        if key not in reported:
            text = f"{endpoint}: AlterClientQuotas did not answer for {describe_parts(altered)}"
            return Failure(FailureKind.PROTOCOL, text)
        outcomes.append(reported[key])
    return outcomes
