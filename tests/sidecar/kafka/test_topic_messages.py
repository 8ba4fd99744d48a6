"""Topics' messages against kio's, an independent codec made from Kafka's own definitions.

The other answers are compared in test_cluster_messages.py.
"""

from datetime import timedelta
from uuid import UUID

from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType

from sidecar.kafka.topic_messages import (
    CREATE_PARTITIONS_KEY,
    CREATE_TOPICS_KEY,
    DELETE_TOPICS_KEY,
    CreatePartitions,
    CreateTopics,
    CreateTopicsResponseV7,
    DeleteTopics,
    Growth,
    NewTopic,
)
from tests.sidecar.kafka.kio_codec import kio_request, our_request
from tests.support.fake_broker import encode

TEN_SECONDS = timedelta(seconds=10)


def test_create_topics_requests_are_kafkas_bytes() -> None:
    """Topics have a number of partitions or not, and a configuration; all is only validated."""
    kio = load_payload_module(CREATE_TOPICS_KEY, 7, EntityType.request)
    config = kio.CreatableTopicConfig(name="retention.ms", value="1000")
    made = (
        kio.CreatableTopic(
            name="a", num_partitions=4, replication_factor=3, assignments=(), configs=(config,)
        ),
        kio.CreatableTopic(
            name="b", num_partitions=-1, replication_factor=-1, assignments=(), configs=()
        ),
    )
    expected = kio_request(
        CREATE_TOPICS_KEY, 7, topics=made, timeout=TEN_SECONDS, validate_only=True
    )
    topics = [NewTopic("a", 4, 3, {"retention.ms": "1000"}), NewTopic("b")]
    assert expected == our_request(CreateTopics(topics, 10_000, validate_only=True), 7)


def test_create_partitions_requests_are_kafkas_bytes() -> None:
    """No assignments is a null array: the brokers choose."""
    kio = load_payload_module(CREATE_PARTITIONS_KEY, 3, EntityType.request)
    grown = (kio.CreatePartitionsTopic(name="a", count=8, assignments=None),)
    expected = kio_request(
        CREATE_PARTITIONS_KEY, 3, topics=grown, timeout=TEN_SECONDS, validate_only=False
    )
    assert expected == our_request(CreatePartitions([Growth("a", 8)], 10_000), 3)


def test_delete_topics_requests_are_kafkas_bytes() -> None:
    """Topics are named, so they have no id."""
    kio = load_payload_module(DELETE_TOPICS_KEY, 6, EntityType.request)
    named = tuple(kio.DeleteTopicState(name=name, topic_id=None) for name in "ab")
    expected = kio_request(DELETE_TOPICS_KEY, 6, topics=named, timeout=TEN_SECONDS)
    assert expected == our_request(DeleteTopics(["a", "b"], 10_000), 6)


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
