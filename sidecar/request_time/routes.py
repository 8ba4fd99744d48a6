"""The route about each client's usage of the broker beside this sidecar, from its request log.

Example: alice's client etl sent 1,000 requests, for which request handlers took 258 ms, so
``request_time_ms`` is 258.0. It was throttled 3 times for 100 ms, so ``throttle_time_ms`` is 300.
"""

from collections.abc import Iterator
from typing import Annotated

from fastapi import FastAPI
from pydantic import Field
from starlette.responses import Response

from sidecar.api.answers import answer_listing
from sidecar.api.documents import described
from sidecar.requestlog.client_usage import ClientUsage, Usage
from sidecar.requestlog.reader import LogReader
from sidecar.requestlog.rejected import RejectedKind

Count = Annotated[int, Field(ge=0)]
Milliseconds = Annotated[float, Field(ge=0)]


@described
class ClientUsageDocument:
    """The usage of a client since the sidecar started."""

    user: str
    """The principal's name without "User:"."""
    client_id: str
    """The client-id; "" when the client has none."""
    requests: Count
    """Requests that the broker answered."""
    request_time_ms: Milliseconds
    """The request handlers' time that counts against a request quota. The network threads' time
    also counts (KIP-124), but is not in the log."""
    exempt_time_ms: Milliseconds
    """The request handlers' time of requests that count against no quota."""
    throttled: Count
    """Requests whose answer had a throttle time."""
    throttle_time_ms: Count
    """The sum of the throttle times."""
    longest_throttle_time_ms: Count
    """The longest."""
    mutations: Count
    """Partitions created and deleted, as charged, on a node that is a controller (KIP-599)."""
    mutations_refused: Count
    """Partitions that the quota rejected."""
    mutations_unknown: Count
    """Topics whose number of partitions is not in the log; they are in neither sum."""


@described
class UsageDocument:
    """The usage of all clients."""

    request_log: str | None
    """The request log; null if none is read."""
    evicted: ClientUsageDocument
    """The sums of all clients that are no longer listed one by one."""
    unread: Count
    """Requests that could not be read, and requests about topics that could not be parsed."""
    clients: list[ClientUsageDocument]
    """The clients, sorted by descending request time."""


def add_usage(app: FastAPI, log: LogReader | None) -> None:
    """Add the route."""

    @app.get(
        "/v1/request-usage",
        summary="Each client's use of this broker's request handlers, and its throttle time",
        responses={200: {"model": UsageDocument}},
    )
    async def request_usage() -> Response:
        """Return the usage by user and client-id; it is empty while the request log is off."""
        evicted = ClientUsage() if log is None else log.usage.evicted
        before: dict[str, object] = {
            "request_log": None if log is None else str(log.path),
            "evicted": _document("", "", evicted),
            "unread": 0 if log is None else _unread(log.usage),
        }
        return answer_listing(before, "clients", _clients(log))


def _unread(usage: Usage) -> int:
    # OTHER has the lines of other loggers and the pieces of long lines.
    return usage.unread + sum(usage.rejected.values()) - usage.rejected[RejectedKind.OTHER]


def _clients(log: LogReader | None) -> Iterator[ClientUsageDocument]:
    if log is None:
        return
    by_request_time = sorted(log.usage.clients().items(), key=lambda each: -each[1].request_ms)
    for (user, client_id), usage in by_request_time:
        yield _document(user, client_id, usage)


def _document(user: str, client_id: str, usage: ClientUsage) -> ClientUsageDocument:
    return ClientUsageDocument(
        user=user,
        client_id=client_id,
        requests=usage.requests,
        request_time_ms=round(usage.request_ms, 3),
        exempt_time_ms=round(usage.exempt_ms, 3),
        throttled=usage.throttled,
        throttle_time_ms=usage.throttle_ms,
        longest_throttle_time_ms=usage.longest_throttle_ms,
        mutations=usage.mutations,
        mutations_refused=usage.mutations_refused,
        mutations_unknown=usage.mutations_unknown,
    )
