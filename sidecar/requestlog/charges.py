"""What a line's request was charged with, and when: what quotas are predicted and replayed from.

A line is written at completion; the quotas were charged just before the answer was queued, so at
the line's time less ``sendTimeMs`` and ``responseQueueTimeMs``. Mutations are charged before that:
when the controller begins with them, ``remoteTimeMs`` before they are committed.

PRODUCE is charged with its size on the wire, every request that is not exempt with its handlers'
time, and a controller's line of a request about topics with partitions. The client waits for the
greatest of the throttle times.

Request time is a lower bound: the network threads' time is charged too and is not in the log. So a
throttle time that is predicted from it is too short by N / T, and at most by the window that bounds
it: N is what the network threads spent on the requests of the last windows, T the quota. Measured
on 4.3.1 without TLS: N is 0.1 to 0.8 times the handlers' time for requests of 100 bytes, and next
to nothing where the handlers compress anew.

The pipeline has the same rules for many lines at once (``pipeline.kernels.charging``, which tests
hold to these), and takes what is strict and what a topic's change counts for from here.

Example: a PRODUCE of 10,035 bytes that took 0.258 ms, logged at 10:00:00.123 with 0.063 ms in the
response queue and 0.144 ms of sending: at 10:00:00.122, 10,035 bytes and 0.0258 % of a second.

Source: KafkaApis, RequestHandlerHelper, ControllerApis (strict from CREATE_TOPICS 6,
CREATE_PARTITIONS 3 and DELETE_TOPICS 5 on) and RequestChannel.updateRequestMetrics.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sidecar.quotas.entities import QuotaKey
from sidecar.quotas.prediction import Charge
from sidecar.quotas.request_time.request_percentage import percent
from sidecar.requestlog.exempt import is_exempt
from sidecar.requestlog.line import Line
from sidecar.requestlog.mutation_counts import ABOUT_TOPICS, TopicSizes
from sidecar.requestlog.produce_size import produce_bytes
from sidecar.requestlog.request_detail import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    PRODUCE,
    detail,
)
from sidecar.requestlog.wire import Produce

_STRICT_SINCE: Final = {CREATE_TOPICS: 6, CREATE_PARTITIONS: 3, DELETE_TOPICS: 5}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Charged:
    """What one request was charged with.

    Attributes:
        charges: to feed to a ``Predictor`` of the node whose line it is.
        unknown: how many more there were, whose amount the line doesn't have.
    """

    charges: tuple[Charge, ...]
    unknown: int = 0


def charged_ms(line: Line) -> int:
    """When bytes and request time were charged, ms since 1970 by the broker's local time."""
    logged_ms = (line.time.replace(tzinfo=UTC) - _EPOCH) / _MS
    return math.floor(logged_ms - line.body.send_time_ms - line.body.response_queue_time_ms)


def charges(line: Line, sizes: TopicSizes) -> Charged:
    """What a line's request was charged with.

    Args:
        line: of a broker or controller.
        sizes: of topics, from the lines before it; this line's are added.
    """
    amounts = list(_amounts(line, sizes))
    known = tuple(
        _mutation(line, amount)
        if key is QuotaKey.CONTROLLER_MUTATION
        else _charge(line, key, amount)
        for key, amount in amounts
        if amount is not None
    )
    return Charged(known, len(amounts) - len(known))


def is_strict(api_key: int, api_version: int) -> bool:
    """Whether a request about topics is refused while its quota is used up, and not just delayed.

    Args:
        api_key: of ``ABOUT_TOPICS``.
        api_version: that the client speaks.
    """
    return api_version >= _STRICT_SINCE[api_key]


def _charge(line: Line, key: QuotaKey, amount: float) -> Charge:
    return Charge(charged_ms(line), key, line.user, line.client_id, amount)


def _mutation(line: Line, partitions: float) -> Charge:
    waited_ms = round(line.body.remote_time_ms)
    return Charge(
        charged_ms(line) - waited_ms,
        QuotaKey.CONTROLLER_MUTATION,
        line.user,
        line.client_id,
        partitions,
        strict=is_strict(line.api_key, line.api_version),
        waited_ms=waited_ms,
    )


def _amounts(line: Line, sizes: TopicSizes) -> Iterator[tuple[QuotaKey, float | None]]:
    if line.api_key == PRODUCE:
        parts = detail(line)
        yield (
            QuotaKey.PRODUCE,
            produce_bytes(parts, line.api_version, line.client_id)
            if isinstance(parts, Produce)
            else None,
        )
    if line.is_forwarded and line.api_key in ABOUT_TOPICS:
        mutations = sizes.mutations(line)
        if mutations is None:
            yield QuotaKey.CONTROLLER_MUTATION, None
        for mutation in mutations or ():
            yield QuotaKey.CONTROLLER_MUTATION, mutation.partitions
    if not is_exempt(line):
        yield QuotaKey.REQUEST, percent(round(line.local_ms * _NS_PER_MS))
