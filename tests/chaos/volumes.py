"""The scenario with two volumes: faults come sooner, and space is freed 12 s after each crossing.

Three brokers have two volumes of 256 MB each. A topic of three partitions has a replica of each on
every broker, so that one volume of a broker gets two of them, and which two differs from broker to
broker. Three librdkafka producers send 3 MB/s each to all partitions, with acks=1. Sidecars poll
every 2 s, near the limit every 0.2 s; their readings are valid for a minute, and the fallback is
0.0. All else is as in ``faults``.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Final

from kafka_lab.traffic import Traffic
from tests.chaos.bound import Clients
from tests.chaos.claims import Claim, judge, longest_wait
from tests.chaos.course import Course
from tests.chaos.faults import (
    BOUND,
    BROKERS,
    LIMIT_BYTES,
    PARTITIONS,
    QUEUE_BYTES,
    FaultsScene,
)
from tests.chaos.scene import Running
from tests.chaos.schedule import Spans, plan

_TOPIC: Final = "orders"
_BYTES_PER_S: Final = 3e6
"""Of each producer."""
_BATCH_BYTES: Final = 1_000_000
_SPANS: Final = Spans(fault=(2.0, 12.0), gap=(4.0, 14.0), cleaning=(12.0, 12.0))
_BOUND: Final = replace(
    BOUND,
    rules=replace(BOUND.rules, interval_s=2.0),
    clients=(Clients(BROKERS * BROKERS, _BATCH_BYTES, int(BROKERS * _BYTES_PER_S)),),
    apart_bytes=BOUND.apart_bytes // 2,
)


def course(seed: int, duration_s: float, *, refuses: bool) -> Course:
    """A run to be played."""
    return Course(
        seed=seed,
        duration_s=duration_s,
        limit_bytes=LIMIT_BYTES,
        refuses=refuses,
        plan=plan(seed, duration_s, BROKERS, _SPANS),
        bound=_BOUND,
        scenario="volumes",
    )


def judge_volumes(course: Course) -> list[Claim]:
    """The claims of ``faults``, and that nobody waits for long, emergency or not."""
    return [*judge(course), longest_wait(course)]


class VolumesScene(FaultsScene):
    """See the module."""

    topics: ClassVar = {_TOPIC: PARTITIONS}
    volumes = 2
    settings = MappingProxyType(
        {
            "SIDECAR_STORAGE_CHECK_INTERVAL": "PT2S",
            "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": "PT0.2S",
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(LIMIT_BYTES),
            "SIDECAR_THROTTLE_FACTOR_VALIDITY_DURATION": "PT1M",
            "SIDECAR_THROTTLE_FACTOR_FALLBACK": "0.0",
        }
    )

    @asynccontextmanager
    async def producing(self) -> AsyncIterator[list[Running]]:
        """The producers."""
        running: list[Running] = []
        async with AsyncExitStack() as stack:
            for number in range(BROKERS):
                traffic = Traffic(
                    self.cluster.bootstrap,
                    _TOPIC,
                    bytes_per_s=_BYTES_PER_S,
                    partitions=range(BROKERS),
                    config={"acks": "1", "queue.buffering.max.kbytes": QUEUE_BYTES >> 10},
                )
                await stack.enter_async_context(traffic)
                running.append((f"librdkafka {number}", _BYTES_PER_S, traffic))
            yield running
