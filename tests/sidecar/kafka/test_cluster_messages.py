"""The answers against kio's, an independent codec made from Kafka's own definitions."""

import struct
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from aiokafka.protocol.api import Response
from aiokafka.protocol.struct import Struct
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader
from kio.static.constants import EntityType

from sidecar.kafka.client.messages import ERROR, THROTTLE_TIME, array, message
from sidecar.kafka.cluster_messages import (
    CORDONED,
    DESCRIBE_LOG_DIRS_KEY,
    LOG_DIRS_TOPICS,
    PARTITION,
    DescribeCluster,
    DescribeClusterResponseV0,
    DescribeClusterResponseV1,
    DescribeClusterResponseV2,
    DescribeLogDirs,
    DescribeLogDirsResponseV4,
    DescribeLogDirsResponseV5,
    log_dir_fields,
    log_dir_topics,
)
from sidecar.kafka.config_messages import (
    DescribeConfigsResponseV4,
    IncrementalAlterConfigsResponseV1,
)
from sidecar.kafka.quota_messages import (
    AlterClientQuotasResponseV1,
    DescribeClientQuotasResponseV1,
)
from sidecar.kafka.topic_messages import (
    CREATE_TOPICS_KEY,
    CreatePartitionsResponseV3,
    CreateTopicsResponseV7,
    DeleteTopicsResponseV6,
)
from sidecar.kafka.user_messages import (
    DescribeAclsResponseV2,
    DescribeAclsResponseV3,
    DescribeUserScramCredentialsResponseV0,
)
from tests.sidecar.kafka.kio_codec import kio_values
from tests.support.examples import DEAR, mostly_slow
from tests.support.fake_broker import encode, kio_type

_TOPICS = log_dir_topics(array("partitions", *PARTITION)[1])
ALL_OF_LOG_DIRS = [
    message(
        "DescribeLogDirs",
        DESCRIBE_LOG_DIRS_KEY,
        version,
        request=LOG_DIRS_TOPICS,
        response=(THROTTLE_TIME, ERROR[0], array("results", *log_dir_fields(_TOPICS), *added)),
    )[1]
    for version, added in ((4, ()), (5, (CORDONED,)))
]
"""The answers with the topics, which the daemon skips."""

RESPONSES = [
    DescribeClusterResponseV0,
    DescribeClusterResponseV1,
    DescribeClusterResponseV2,
    *ALL_OF_LOG_DIRS,
    AlterClientQuotasResponseV1,
    DescribeClientQuotasResponseV1,
    DescribeUserScramCredentialsResponseV0,
    DescribeAclsResponseV2,
    DescribeAclsResponseV3,
    DescribeConfigsResponseV4,
    IncrementalAlterConfigsResponseV1,
    CreatePartitionsResponseV3,
    DeleteTopicsResponseV6,
]


def our_values(value: Any) -> Any:
    """The fields of a decoded message of ours, in order, without the tags."""
    if isinstance(value, Struct):
        value = [getattr(value, name) for name in value.SCHEMA.names]
    if isinstance(value, list | tuple):
        return [our_values(each) for each in value if not isinstance(each, dict)]
    return None if value == bytes(16) else value  # a UUID that is none


@pytest.mark.parametrize("response", mostly_slow(RESPONSES, 4))
@DEAR
@given(data=st.data())
def test_every_response_is_kafkas_bytes(response: type[Response], data: Any) -> None:
    """Whatever a broker may answer has the same values here, and is the same bytes again."""
    of_kio = kio_type(response.API_KEY, response.API_VERSION, EntityType.response)
    entity = data.draw(st.from_type(of_kio))
    written = encode(entity)
    decoded = response.decode(written)
    assert kio_values(entity) == our_values(decoded)
    assert written == decoded.encode()
    assert (entity, len(written)) == entity_reader(of_kio)(decoded.encode(), 0)


def read(response: type[Response], written: bytes) -> object:
    """The log dirs without their topics; or the error."""
    try:
        log_dirs = our_values(response.decode(written).results)
    except (ValueError, struct.error) as error:
        return type(error), str(error)
    return log_dirs and [each and [*each[:2], *each[3:]] for each in log_dirs]


TOPICS: list[tuple[str | None, list[object] | None, dict[int, bytes]]] = [
    *((length * "a", [], {}) for length in (1, 126, 127, 128, 249, 300, 17_000)),
    ("", [], {}),
    (None, [], {}),
    ("ä", [], {}),
    ("a", None, {}),
    ("a", [(1, 2, 3, True, {}), (4, 5, 6, False, {9: b"x"})], {}),
    ("a", [], {9: b"x"}),
]


@pytest.mark.slow
@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: str(topic)[:20])
def test_skipped_topics_change_neither_the_other_fields_nor_an_error(
    topic: object, version: int
) -> None:
    """Neither in a whole answer nor in one that ends early or has another byte anywhere."""
    decoding = ALL_OF_LOG_DIRS[version - 4]
    skipping = (DescribeLogDirsResponseV4, DescribeLogDirsResponseV5)[version - 4]
    added = (True,) * (version - 4)
    plain: object = ("b", [], {})
    log_dirs: list[object] = [
        (0, "/d", topics, 9, 8, *added, {}) for topics in ([plain, topic, plain], [plain])
    ]
    written: bytes = decoding(0, 0, log_dirs, {}).encode()
    assert read(decoding, written) == read(skipping, written)
    # Long names are damaged at their ends only.
    for place in [*range(len(written))[:60], *range(len(written))[-60:]]:
        early = written[:place]
        assert read(decoding, early) == read(skipping, early)
        for byte in (0, 1, 2, 127, 128, 255):
            damaged = early + bytes([byte]) + written[place + 1 :]
            assert read(decoding, damaged) == read(skipping, damaged)


def test_tags_that_a_newer_broker_adds_are_skipped() -> None:
    """An unknown tagged field, in a log dir and at the end, changes nothing that is read."""
    plain = DescribeLogDirsResponseV4(0, 0, [(0, "/data", [], 100, 25, {})], {}).encode()
    # Each list of tags is one byte, 00, here the last two: one tag, number 9, of two bytes.
    tagged = plain[:-2] + b"\x01\x09\x02ab" + b"\x01\x09\x02cd"
    decoded = DescribeLogDirsResponseV4.decode(tagged)
    expected: list[object] = [(0, "/data", [], 100, 25, {9: b"ab"})]
    assert expected == decoded.results


@pytest.mark.parametrize(
    ("request_", "known", "expected"),
    [
        (DescribeCluster(), (0, 0), 0),
        (DescribeCluster(), (0, 1), 1),
        (DescribeCluster(), (0, 2), 2),
        (DescribeCluster(), (0, 9), 2),
        (DescribeLogDirs(), (1, 4), 4),
        (DescribeLogDirs(), (1, 5), 5),
        (DescribeLogDirs(), (1, 9), 5),
    ],
)
def test_the_newest_version_that_both_know_is_used(
    request_: DescribeCluster | DescribeLogDirs, known: tuple[int, int], expected: int
) -> None:
    """Brokers were measured: 3.3.2 has v4 and v0, 3.9.1 v4 and v1, 4.3.1 v5 and v2."""
    assert expected == request_.prepare({request_.API_KEY: known}).API_VERSION


def test_a_broker_without_sizes_is_refused() -> None:
    """Before v4 DescribeLogDirs has no sizes, and no such version is ever sent."""
    with pytest.raises(NotImplementedError):
        DescribeLogDirs().prepare({DESCRIBE_LOG_DIRS_KEY: (1, 3)})


def test_created_topics_are_read_as_kafka_writes_them() -> None:
    """Each field is read, nulls too; the tag, number 0, says why there is no configuration: 29."""
    kio = load_payload_module(CREATE_TOPICS_KEY, 7, EntityType.response)
    config = kio.CreatableTopicConfigs(
        name="retention.ms", value=None, read_only=True, config_source=5, is_sensitive=False
    )
    done = kio.CreatableTopicResult(
        name="a",
        topic_id=UUID(int=7),
        error_code=ErrorCode.none,
        error_message=None,
        topic_config_error_code=ErrorCode.none,
        num_partitions=4,
        replication_factor=3,
        configs=(config,),
    )
    refused = kio.CreatableTopicResult(
        name="b",
        topic_id=None,
        error_code=ErrorCode.throttling_quota_exceeded,
        error_message="slowly",
        topic_config_error_code=ErrorCode.topic_authorization_failed,
        num_partitions=-1,
        replication_factor=-1,
        configs=None,
    )
    answer = kio.CreateTopicsResponse(throttle_time=timedelta(seconds=3), topics=(done, refused))
    decoded = CreateTopicsResponseV7.decode(encode(answer))
    configs: list[object] = [("retention.ms", None, True, 5, False, {})]
    expected: list[object] = [
        ("a", UUID(int=7).bytes, 0, None, 4, 3, configs, {}),
        ("b", bytes(16), 89, "slowly", -1, -1, None, {0: b"\x00\x1d"}),
    ]
    assert expected == getattr(decoded, CreateTopicsResponseV7.SCHEMA.names[1])
    assert 3000 == decoded.throttle_time_ms
