"""One request to a cluster, from a command that ends after it.

The configured addresses are tried in turn until one answers usably; so a broker that is
down does not stop a command that any broker can answer.

Example: of three addresses the first hangs: the second is tried a quarter of a second later.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from aiokafka.protocol.api import Response

from sidecar.kafka.client.failures import error_name, one_line
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.client.pool import Pool
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind

T = TypeVar("T")

CLUSTER_AUTHORIZATION_FAILED = 31


async def query_any(
    admin: KafkaAdmin,
    request: AdminRequest,
    read: Callable[[Response, HostPort], T | Failure],
    timeout_s: float,
    subject: str,
) -> T | Failure:
    """The first usable answer of a broker.

    Args:
        admin: how to reach the brokers.
        request: one that may be repeated.
        read: makes the result of an answer and the address it came from, or a failure, after
            which the next address is tried.
        timeout_s: for all of it, seconds.
        subject: what the request reads, for a failure's message: "no broker reported ...".

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    pool = Pool.of(admin, asyncio.get_running_loop().time)
    deadline = asyncio.get_running_loop().time() + timeout_s
    try:
        return await pool.call_any(request, deadline, read, subject)
    finally:
        await pool.close()


def refused(
    endpoint: HostPort | str,
    name: str,
    code: int,
    message: str | None,
    needs: str,
    *,
    principal: str = "<name>",
) -> Failure:
    """A broker's error as a failure.

    Args:
        endpoint: who answered, an address or a broker's name.
        name: of the request.
        code: not 0.
        message: what the broker adds.
        needs: the operation on the cluster that the request needs, such as "DescribeConfigs".
        principal: the user to grant it to, where that is known.
    """
    if code == CLUSTER_AUTHORIZATION_FAILED:
        text = (
            f"{name} returned {error_name(code)}: it needs {needs} on the Kafka cluster resource: "
            "kafka-acls.sh --bootstrap-server <host:port> --add "
            f"--allow-principal User:{principal} --operation {needs} --cluster"
        )
        return Failure(FailureKind.AUTHORIZATION, one_line(f"{endpoint}: {text}"))
    more = f": {message}" if message else ""
    text = one_line(f"{endpoint}: {name} returned {error_name(code)}{more}")
    return Failure(FailureKind.BROKER, text)
