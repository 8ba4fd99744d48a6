"""When a line's request was charged, and which mutations the controller refuses.

A broker writes the line after it has sent the answer. It charged the quotas just before it queued
the answer, that is at the line's time minus ``sendTimeMs`` and ``responseQueueTimeMs``. Mutations
are charged earlier: when the controller begins with them, ``remoteTimeMs`` before they are
committed.

How much is charged is in ``charging``.

Example: a PRODUCE is logged at 10:00:00.123, with 0.063 ms in the response queue and 0.144 ms of
sending. The broker charged it at 10:00:00.122.

Source: KafkaApis, RequestHandlerHelper, ControllerApis (strict from CREATE_TOPICS 6,
CREATE_PARTITIONS 3 and DELETE_TOPICS 5 on) and RequestChannel.updateRequestMetrics.
"""

import math
from datetime import UTC, datetime, timedelta
from typing import Final

from sidecar.requestlog.line import Line
from sidecar.requestlog.request_detail import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS

_STRICT_SINCE: Final = {CREATE_TOPICS: 6, CREATE_PARTITIONS: 3, DELETE_TOPICS: 5}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


def charged_at_ms(line: Line) -> int:
    """When the broker charged bytes and request time, ms since 1970 in its local time.

    In UTC, if the line's time has an offset.

    Raises:
        ValueError: the line has no time.
    """
    if line.time is None:
        raise ValueError("the line has no time")
    logged = line.time.replace(tzinfo=UTC) if line.time.tzinfo is None else line.time
    logged_ms = (logged - _EPOCH) / _MS
    return math.floor(logged_ms - line.body.send_time_ms - line.body.response_queue_time_ms)


def is_strict(api_key: int, api_version: int) -> bool:
    """Whether the controller refuses a request about topics while the quota is used up.

    Older versions are only delayed.

    Args:
        api_key: one of ``ABOUT_TOPICS``.
        api_version: the version of the client's request.
    """
    return api_version >= _STRICT_SINCE[api_key]
