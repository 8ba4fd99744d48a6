"""When a line's request was charged, and which mutations are refused.

A line is written at completion; the quotas were charged just before the answer was queued, so at
the line's time less ``sendTimeMs`` and ``responseQueueTimeMs``. Mutations are charged before that:
when the controller begins with them, ``remoteTimeMs`` before they are committed.

What is charged is ``pipeline.kernels.charging``'s.

Example: a PRODUCE that is logged at 10:00:00.123 with 0.063 ms in the response queue and 0.144 ms
of sending was charged at 10:00:00.122.

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


def charged_ms(line: Line) -> int:
    """When bytes and request time were charged, ms since 1970 by the broker's local time."""
    logged_ms = (line.time.replace(tzinfo=UTC) - _EPOCH) / _MS
    return math.floor(logged_ms - line.body.send_time_ms - line.body.response_queue_time_ms)


def is_strict(api_key: int, api_version: int) -> bool:
    """Whether a request about topics is refused while its quota is used up, and not just delayed.

    Args:
        api_key: of ``ABOUT_TOPICS``.
        api_version: that the client speaks.
    """
    return api_version >= _STRICT_SINCE[api_key]
