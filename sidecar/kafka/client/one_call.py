"""Sends one request to any broker of a cluster, over a new connection.

The configured addresses are tried in turn until one returns a usable answer. So a command works
while a broker is down.

Example: the first of three addresses hangs. The second is tried a quarter of a second later.
"""

import asyncio
import shlex
from collections.abc import Callable
from typing import TypeVar

from aiokafka.protocol.api import Response

from sidecar.formats.iam_actions import iam_action
from sidecar.kafka.client.failures import error_name, one_line
from sidecar.kafka.client.messages import AdminRequest
from sidecar.kafka.client.pool import UNKNOWN_USER, Pool
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
    """Returns the first usable answer of a broker.

    Args:
        admin: how to reach the brokers.
        request: a request that may be repeated.
        read: turns an answer and its address into a result. If it returns a failure, the next
            address is tried.
        timeout_s: the time for all attempts, seconds.
        subject: what the request reads, for the message "no broker reported ...".

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    deadline = asyncio.get_running_loop().time() + timeout_s
    pool = await Pool.opened(admin, timeout_s)
    if isinstance(pool, Failure):
        return pool
    try:
        return await pool.call_any(request, deadline, read, subject)
    finally:
        await pool.close()


def how_to_grant(operation: str, on: str, principal: str) -> str:
    """How to grant an operation on ``on``, such as "--cluster", to the sidecar's user."""
    action = iam_action(operation, on)
    by_iam = f"; with AWS IAM, allow {action} in its policy instead"
    return (
        "kafka-acls.sh --bootstrap-server <host:port> --add --allow-principal "
        f"{shlex.quote(f'User:{principal}')} --operation {operation} {on}"
        # Users with names do not log in by IAM.
        f"{by_iam if action and principal == UNKNOWN_USER else ''}"
    )


def refused(
    endpoint: HostPort | str,
    name: str,
    code: int,
    message: str | None,
    needs: str,
    *,
    principal: str = UNKNOWN_USER,
) -> Failure:
    """Turns a broker's error into a failure.

    Args:
        endpoint: the address that answered, or the broker's name.
        name: Kafka's name of the request.
        code: the error code, not 0.
        message: the broker's own message, if any.
        needs: the operation on the cluster that the request needs, such as "DescribeConfigs".
        principal: the user to grant it to, where that is known.
    """
    if code == CLUSTER_AUTHORIZATION_FAILED:
        text = (
            f"{name} returned {error_name(code)}: it needs {needs} on the Kafka cluster resource: "
            f"{how_to_grant(needs, '--cluster', principal)}"
        )
        return Failure(FailureKind.AUTHORIZATION, one_line(f"{endpoint}: {text}"))
    more = f": {message}" if message else ""
    text = one_line(f"{endpoint}: {name} returned {error_name(code)}{more}")
    return Failure(FailureKind.BROKER, text)
