"""Topics' messages against kio's, an independent codec made from Kafka's own definitions."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from aiokafka.protocol.api import Response
from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32

from sidecar.kafka.topic_messages import (
    CREATE_PARTITIONS_KEY,
    CREATE_TOPICS_KEY,
    DELETE_TOPICS_KEY,
    CreatePartitions,
    CreatePartitionsResponseV3,
    CreateTopics,
    CreateTopicsResponseV7,
    DeleteTopics,
    DeleteTopicsResponseV6,
    Growth,
    NewTopic,
)
from tests.kafka.kio_codec import our_request
from tests.support.fake_broker import encode

TEN_SECONDS = timedelta(seconds=10)
ID = UUID(int=7)


def kio_header(key: int, version: int) -> bytes:
    """The header of a request, as kio writes it."""
    header = RequestHeader(
        request_api_key=i16(key),
        request_api_version=i16(version),
        correlation_id=i32(7),
        client_id="throttle-sidecar",
    )
    return encode(header)


def payload(key: int, version: int, kind: Any) -> Any:
    return load_payload_module(key, version, kind)


def test_create_topics_requests_are_kafkas_bytes() -> None:
    """With a number of partitions and without, with a configuration, to be validated only."""
    kio = payload(CREATE_TOPICS_KEY, 7, EntityType.request)
    config = kio.CreatableTopicConfig(name="retention.ms", value="1000")
    expected = kio.CreateTopicsRequest(
        topics=(
            kio.CreatableTopic(
                name="a", num_partitions=4, replication_factor=3, assignments=(), configs=(config,)
            ),
            kio.CreatableTopic(
                name="b", num_partitions=-1, replication_factor=-1, assignments=(), configs=()
            ),
        ),
        timeout=TEN_SECONDS,
        validate_only=True,
    )
    topics = [NewTopic("a", 4, 3, {"retention.ms": "1000"}), NewTopic("b")]
    request = CreateTopics(topics, 10_000, validate_only=True)
    assert kio_header(CREATE_TOPICS_KEY, 7) + encode(expected) == our_request(request, 7)


def test_create_partitions_requests_are_kafkas_bytes() -> None:
    """No assignments is a null array: the brokers choose."""
    kio = payload(CREATE_PARTITIONS_KEY, 3, EntityType.request)
    expected = kio.CreatePartitionsRequest(
        topics=(kio.CreatePartitionsTopic(name="a", count=8, assignments=None),),
        timeout=TEN_SECONDS,
        validate_only=False,
    )
    request = CreatePartitions([Growth("a", 8)], 10_000)
    assert kio_header(CREATE_PARTITIONS_KEY, 3) + encode(expected) == our_request(request, 3)


def test_delete_topics_requests_are_kafkas_bytes() -> None:
    """By name, so without an id."""
    kio = payload(DELETE_TOPICS_KEY, 6, EntityType.request)
    expected = kio.DeleteTopicsRequest(
        topics=(
            kio.DeleteTopicState(name="a", topic_id=None),
            kio.DeleteTopicState(name="b", topic_id=None),
        ),
        timeout=TEN_SECONDS,
    )
    request = DeleteTopics(["a", "b"], 10_000)
    assert kio_header(DELETE_TOPICS_KEY, 6) + encode(expected) == our_request(request, 6)


def _created() -> Any:
    kio = payload(CREATE_TOPICS_KEY, 7, EntityType.response)
    config = kio.CreatableTopicConfigs(
        name="retention.ms", value=None, read_only=True, config_source=5, is_sensitive=False
    )
    done = kio.CreatableTopicResult(
        name="a",
        topic_id=ID,
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
    return kio.CreateTopicsResponse(throttle_time=timedelta(seconds=3), topics=(done, refused))


def _grown() -> Any:
    kio = payload(CREATE_PARTITIONS_KEY, 3, EntityType.response)
    result = kio.CreatePartitionsTopicResult(
        name="a", error_code=ErrorCode.invalid_partitions, error_message="fewer"
    )
    return kio.CreatePartitionsResponse(throttle_time=timedelta(0), results=(result,))


def _deleted() -> Any:
    kio = payload(DELETE_TOPICS_KEY, 6, EntityType.response)
    result = kio.DeletableTopicResult(
        name=None, topic_id=ID, error_code=ErrorCode.unknown_topic_id, error_message=None
    )
    return kio.DeleteTopicsResponse(throttle_time=timedelta(0), responses=(result,))


@pytest.mark.parametrize(
    ("response", "entity", "expected"),
    [
        (
            CreateTopicsResponseV7,
            _created(),
            [
                ("a", ID.bytes, 0, None, 4, 3, [("retention.ms", None, True, 5, False, {})], {}),
                # The tag, number 0, says why there is no configuration: 29.
                ("b", bytes(16), 89, "slowly", -1, -1, None, {0: b"\x00\x1d"}),
            ],
        ),
        (CreatePartitionsResponseV3, _grown(), [("a", 37, "fewer", {})]),
        (DeleteTopicsResponseV6, _deleted(), [(None, ID.bytes, 100, None, {})]),
    ],
)
def test_responses_are_read_as_kafka_writes_them(
    response: type[Response], entity: Any, expected: list[object]
) -> None:
    """Each field, nulls included."""
    decoded = response.decode(encode(entity))
    results = getattr(decoded, response.SCHEMA.names[1])
    assert expected == results
    assert entity.throttle_time == timedelta(milliseconds=decoded.throttle_time_ms)
