"""What a broker answers to DescribeLogDirs as partitions are added: our form against the usual one.

We name no topic (an empty array), which asks for volumes only; what most clients send names none
either, but as a null array, which asks for every partition. One real broker, 4,000 partitions in
the end. The bytes are those of the whole frame; the times are from sending to having read it.
"""

import asyncio
import io
import os
import struct
import time
from typing import Any, Final

from benchmarks.rows import Row, median_row
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from sidecar.kafka.cluster_messages import (
    DESCRIBE_LOG_DIRS_KEY,
    DescribeLogDirs,
    DescribeLogDirsRequestV4,
)
from sidecar.kafka.log_dir_messages import DescribeTopicsOfLogDirs, log_dirs_in
from sidecar.settings import HostPort

_PARTITIONS: Final = (100, 1000, 4000)
_TOPIC_PARTITIONS: Final = 100
_WARM_UP: Final = 10
_CALLS: Final = 30
_TOPICS: Final = 2000
_LOG_DIRS: Final = 12
_VOLUME_BYTES: Final = 256 << 20
_HEAP_MB: Final = 768
_SETTLE_TIMEOUT_S: Final = 60.0
_PROPERTIES: Final = {
    # Two indexes of this size for each partition, as files and as maps.
    "log.index.size.max.bytes": "4096",
}


def run() -> list[Row]:
    """Starts a broker and measures it."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    rows: list[Row] = []
    sizes: list[int] = []
    cluster = Cluster(
        environ=os.environ,
        brokers=1,
        volumes=2,
        volume_bytes=_VOLUME_BYTES,
        properties=_PROPERTIES,
        heap_mb=_HEAP_MB,
    )
    async with cluster, Admin(cluster.bootstrap, timeout_s=60.0) as admin:
        host, _, port = cluster.bootstrap.rpartition(":")
        async with _Broker(HostPort(host, int(port))) as broker:
            there = 0
            for partitions in _PARTITIONS:
                for first in range(there, partitions, _TOPIC_PARTITIONS):
                    await admin.create_topic(f"topic-{first}", partitions=_TOPIC_PARTITIONS)
                there = partitions
                await broker.wait_partitions(partitions)
                for form, request in _FORMS.items():
                    size, times = await broker.ask_often(request)
                    what = f"DescribeLogDirs at {partitions:,} partitions, {form}"
                    rows += [Row(f"{what}: answer", size, "bytes")]
                    rows += [median_row(f"{what}: time", times, "ms")]
                    sizes += [size] if form == _OURS else []
    grown = f"our answer's growth from {_PARTITIONS[0]} to {_PARTITIONS[-1]:,} partitions"
    return [*rows, Row(grown, sizes[-1] - sizes[0], "bytes", 0), _decoding()]


_OURS: Final = "no topics"
_ALL: Any = DescribeTopicsOfLogDirs().prepare({DESCRIBE_LOG_DIRS_KEY: (4, 4)})
_FORMS: Final[dict[str, Any]] = {
    # What is sent by the sidecar itself, in the version that every supported broker knows.
    _OURS: DescribeLogDirs().build(DescribeLogDirsRequestV4),
    "null topics": DescribeLogDirsRequestV4(None, {}),
}


class _Broker:
    """A connection that tells sizes and times."""

    def __init__(self, address: HostPort) -> None:
        self._address = address

    async def __aenter__(self) -> "_Broker":
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def ask(self, request: Any) -> bytes:  # noqa: ANN401 - aiokafka ships no types
        """The answer's whole frame, without its length."""
        header = request.build_request_header(correlation_id=1, client_id="bench").encode()
        frame = header + request.encode()
        self._writer.write(struct.pack(">i", len(frame)) + frame)
        (length,) = struct.unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(length)

    async def ask_often(self, request: Any) -> tuple[int, list[float]]:  # noqa: ANN401 - as above
        """The answer's size in bytes, its length included, and how long each call took, ms."""
        sizes, times = set(), []
        for count in range(_WARM_UP + _CALLS):
            began = time.perf_counter()
            answer = await self.ask(request)
            if count >= _WARM_UP:
                times.append(1000 * (time.perf_counter() - began))
                sizes.add(4 + len(answer))
        (size,) = sizes
        return size, times

    async def wait_partitions(self, expected: int) -> None:
        """Until the broker has logs for so many partitions."""
        request = _FORMS["null topics"]
        async with asyncio.timeout(_SETTLE_TIMEOUT_S):
            while self._partitions(await self.ask(request)) < expected:  # noqa: ASYNC110 - asked over the network
                await asyncio.sleep(0.2)

    @staticmethod
    def _partitions(frame: bytes) -> int:
        buffer = io.BytesIO(frame)
        # The response's header: correlation id and no tags.
        buffer.read(5)
        answer = _ALL.RESPONSE_TYPE.decode(buffer)
        return sum(
            len(partitions)
            for _, _, topics, *_ in log_dirs_in(answer)
            for _, partitions, *_ in topics
        )


def _decoding() -> Row:
    """The time in which the answer of an old broker blocks the daemon's loop."""
    topics: list[object] = [(f"some-topic-{number:05}", [], {}) for number in range(_TOPICS)]
    log_dirs: list[object] = [
        (0, f"/data/d{number}", topics, 1, 1, {}) for number in range(_LOG_DIRS)
    ]
    answer = DescribeLogDirsRequestV4.RESPONSE_TYPE(0, 0, log_dirs, {}).encode()
    times = []
    for _ in range(_CALLS):
        began = time.perf_counter()
        DescribeLogDirsRequestV4.RESPONSE_TYPE.decode(answer)
        times.append(1000 * (time.perf_counter() - began))
    what = f"{_TOPICS:,} topics without partitions in each of {_LOG_DIRS} log dirs (Kafka 3.3)"
    return median_row(f"DescribeLogDirs with {what}: decoding", times, "ms")
