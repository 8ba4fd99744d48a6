"""How near predicted throttle times are to those that a real broker and a controller give.

One figure for each kind of quota: the share of throttled requests whose predicted wait is off by
more than 5 % and by more than 50 ms, and by how much all waits together are off.
"""

import asyncio
import os
from typing import Final

from benchmarks.rows import Row
from kafka_lab.cluster import Cluster
from sidecar.requestlog.mutation_counts import ABOUT_TOPICS
from tests.support.throttle_times import (
    MUTATORS,
    Judged,
    mutate,
    send_bytes,
    send_compressed,
    throttled,
)

_NEAR: Final = 0.05
_CLOCK_MS: Final = 50
_FAR_PERCENT: Final = 10.0


def run() -> list[Row]:
    """Starts a cluster and sends what is throttled."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    async with Cluster(environ=os.environ, brokers=1, volumes=1) as cluster:
        sent = (await send_bytes(cluster)).node
        compressed = await send_compressed(cluster)
        mutated = await mutate(cluster)
    return [
        *_rows("bytes", sent.of("shared", "own")),
        *_rows("request time", compressed.of("heavy")),
        *_rows("mutations", mutated.of(*MUTATORS, api_keys=ABOUT_TOPICS)),
    ]


def _rows(what: str, judged: list[Judged]) -> list[Row]:
    found = throttled(judged)
    far = [each for each in found if not each.is_near(_NEAR, _CLOCK_MS)]
    throttle_ms = sum(each.throttle_ms for each in found)
    predicted_ms = sum(each.predicted_ms for each in found)
    off = 100 * abs(predicted_ms - throttle_ms) / throttle_ms
    return [
        Row(f"waits for {what} predicted wrongly", 100 * len(far) / len(found), "%", _FAR_PERCENT),
        Row(f"all waits for {what}, off by", off, "%", 100 * _NEAR),
    ]
