"""What a poll costs on the wire does not grow with partitions."""

import asyncio
import operator
from functools import partial

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from sidecar.kafka.cluster_messages import DescribeLogDirs, DescribeLogDirsRequestV5
from tests.support.waiting import seen

# Key 35, v5, correlation id 7, no client id, no tags (KIP-482).
_HEADER = bytes.fromhex("0023 0005 00000007 ffff 00")
VOLUMES_ONLY = _HEADER + DescribeLogDirs().build(DescribeLogDirsRequestV5).encode()
"""What the sidecar asks."""
ALL_PARTITIONS = _HEADER + bytes.fromhex("00 00")
"""A null array of topics, no tags."""

BYTES_OF_A_PARTITION = 22
"""Index, size, lag, whether it is a future one, tags."""


async def answer_bytes(address: str, request: bytes) -> int:
    """How long a broker's answer is."""
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(len(request).to_bytes(4, "big") + request)
            length = int.from_bytes(await reader.readexactly(4), "big")
            answer = await reader.readexactly(length)
        finally:
            writer.close()
            await writer.wait_closed()
    assert bytes.fromhex("00000007") == answer[:4]
    return length


async def test_the_answer_to_a_poll_is_as_long_with_100_partitions_as_with_10(
    node: Cluster,
) -> None:
    """It is, if no topic is asked for; with all of them it grows."""
    address = node.brokers[0].address
    volumes_only = await answer_bytes(address, VOLUMES_ONLY)
    async with Admin(node.bootstrap) as admin:
        for partitions in (10, 100):
            await admin.create_topic(f"with-{partitions}", assignment=[[0]] * partitions)
            least = volumes_only + partitions * BYTES_OF_A_PARTITION
            await seen(
                f"{partitions} partitions on the broker",
                lambda: answer_bytes(address, ALL_PARTITIONS),
                partial(operator.lt, least),
            )
            assert volumes_only == await answer_bytes(address, VOLUMES_ONLY)
