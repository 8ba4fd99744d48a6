"""What lies in a broker's log dirs: all topics are asked for, the largest come first."""

from collections.abc import Callable
from io import BytesIO

import pytest
from aiokafka.protocol.types import Int32, UnsignedVarInt32
from kio.schema.errors import ErrorCode

from sidecar.kafka.cluster_messages import DESCRIBE_LOG_DIRS_KEY
from sidecar.kafka.largest_topics import LARGEST, LogDirTopics, TopicSize, largest_topics
from sidecar.kafka.log_dir_messages import PartitionSizes
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.kafka.kio_codec import kio_answer
from tests.sidecar.kafka.servers import PATIENCE_S, admin, bootstrap, succeeded
from tests.support.fake_broker import FakeBroker, FakeCluster, FakeRequest
from tests.support.virtual_time import VIRTUAL_TIME

Sizes = dict[str, dict[int, int]]
"""Topic -> partition -> bytes."""

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]


def _log_dir(path: str, sizes: Sizes, error_code: ErrorCode) -> dict[str, object]:
    topics = [
        {
            "name": topic,
            "partitions": [
                {
                    "partition_index": index,
                    "partition_size": size,
                    "offset_lag": 0,
                    "is_future_key": index == 9,
                }
                for index, size in partitions.items()
            ],
        }
        for topic, partitions in sizes.items()
    ]
    sized = {"topics": topics, "total_bytes": 100, "usable_bytes": 9}
    return {"error_code": error_code, "log_dir": path, **sized}


def lying(
    *log_dirs: tuple[str, Sizes, ErrorCode], error: ErrorCode = ErrorCode.none
) -> tuple[FakeCluster, list[tuple[int, bytes]]]:
    """Three brokers that report what lies in their log dirs; who was asked, with which body."""
    asked: list[tuple[int, bytes]] = []

    def answer(broker: FakeBroker, request: FakeRequest) -> bytes:
        asked.append((broker.broker_id, request.body))
        fields = {"error_code": error, "results": [_log_dir(*each) for each in log_dirs]}
        return kio_answer(DESCRIBE_LOG_DIRS_KEY, request.api_version, **fields)

    cluster = FakeCluster().add(3)
    cluster.answerers[DESCRIBE_LOG_DIRS_KEY] = answer
    return cluster, asked


OK = ErrorCode.none
DATA: Sizes = {"orders": {0: 30, 3: 50}, "clicks": {1: 100}, "empty": {}, "moved": {9: 7}}


@pytest.mark.parametrize("version", [4, 5])
async def test_the_largest_come_first(version: int) -> None:
    """They do for each log dir, in both versions; a partition that is being moved there counts."""
    cluster, asked = lying(("/a", DATA, OK), ("/b", {"orders": {1: 5}}, OK))
    cluster.versions[DESCRIBE_LOG_DIRS_KEY] = (1, version)
    async with cluster:
        found = await largest_topics(admin(bootstrap(cluster)), 2, PATIENCE_S)
    assert {
        "/a": LogDirTopics(
            4,
            187,
            (
                TopicSize("clicks", 100, (1,), 100),
                TopicSize("orders", 80, (3, 0), 50),
                TopicSize("moved", 7, (9,), 7),
                TopicSize("empty", 0, (), 0),
            ),
        ),
        "/b": LogDirTopics(1, 5, (TopicSize("orders", 5, (1,), 5),)),
    } == found
    assert [2] == [broker_id for broker_id, _ in asked]


async def test_all_topics_are_asked_for() -> None:
    """Null asks for them, which is 00, without tags; an empty list would get none."""
    cluster, asked = lying(("/a", {}, OK))
    async with cluster:
        await largest_topics(admin(bootstrap(cluster)), 1, PATIENCE_S)
    assert [(1, b"\x00\x00")] == asked


async def test_of_many_topics_the_largest_are_returned() -> None:
    """What they take together counts all of them."""
    cluster, _ = lying(("/a", {f"t{number}": {0: number} for number in range(1, 101)}, OK))
    async with cluster:
        found = succeeded(await largest_topics(admin(bootstrap(cluster)), 0, PATIENCE_S))
    assert (100, 5050) == (found["/a"].topics, found["/a"].size_bytes)
    assert [f"t{number}" for number in range(100, 100 - LARGEST, -1)] == [
        each.topic for each in found["/a"].largest
    ]


async def test_an_offline_log_dir_is_left_out() -> None:
    """Its topics are not known."""
    cluster, _ = lying(("/a", {}, ErrorCode.kafka_storage_error), ("/b", DATA, OK))
    async with cluster:
        found = await largest_topics(admin(bootstrap(cluster)), 0, PATIENCE_S)
    assert ["/b"] == list(succeeded(found))


def cut(answer: bytes) -> bytes:
    return answer[:-6]


def endless(answer: bytes) -> bytes:
    # Throttle time, error code, and then more log dirs than bytes.
    count: bytes = UnsignedVarInt32.encode(1 << 30)
    return answer[:6] + count


@pytest.mark.parametrize("spoil", [cut, endless])
async def test_an_answer_that_makes_no_sense(spoil: Callable[[bytes], bytes]) -> None:
    """It is a failure, wherever it ends."""
    cluster, _ = lying(("/a", DATA, OK))
    answer = cluster.answerers[DESCRIBE_LOG_DIRS_KEY]
    cluster.answerers[DESCRIBE_LOG_DIRS_KEY] = lambda *asked: spoil(answer(*asked))
    async with cluster:
        found = await largest_topics(admin(bootstrap(cluster)), 0, PATIENCE_S)
    text = "broker 0: DescribeLogDirs sent an answer that can't be decoded"
    assert Failure(FailureKind.PROTOCOL, text) == found


def test_tags_of_partitions_are_left_out() -> None:
    """No version has any, but a broker may send some: sizes are read past them."""
    plain = Int32.encode(4) + (7).to_bytes(8, "big") + bytes(8) + b"\x00"
    tagged = plain + b"\x01\x00\x02ab"
    packed = UnsignedVarInt32.encode(3) + tagged + plain + b"\x00"
    assert [(4, 7, False)] * 2 == list(PartitionSizes.decode(BytesIO(packed)))
