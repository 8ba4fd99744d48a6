"""The answers to Metadata and DescribeProducers against kio's, from Kafka's own definitions."""

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_payload_module
from kio.static.constants import EntityType
from kio.static.primitive import i32, i64

from sidecar.kafka.producer_messages import (
    DESCRIBE_PRODUCERS_KEY,
    METADATA_KEY,
    DescribeProducersResponseV0,
    MetadataResponseV12,
    ProducerStates,
)
from tests.support.examples import DEAR
from tests.support.fake_broker import encode

METADATA: Any = load_payload_module(METADATA_KEY, 12, EntityType.response)
PRODUCERS: Any = load_payload_module(DESCRIBE_PRODUCERS_KEY, 0, EntityType.response)


@pytest.mark.slow
@DEAR
@given(entity=st.from_type(METADATA.MetadataResponse))
def test_leaders_are_read_of_whatever_a_broker_may_say(entity: Any) -> None:
    """Internal topics, index and leader of each partition are read, with anything else beside."""
    decoded = MetadataResponseV12.decode(encode(entity))
    for topic, ours in zip(entity.topics, decoded.topics, strict=True):
        assert (topic.name, topic.is_internal) == (ours[1], ours[3])
        leaders = [(part.partition_index, part.leader_id) for part in topic.partitions]
        assert [number for each in leaders for number in each] == list(ours[4])
    assert [(each.node_id, each.host, each.port) for each in entity.brokers] == [
        broker[:3] for broker in decoded.brokers
    ]


@pytest.mark.slow
@DEAR
@given(entity=st.from_type(PRODUCERS.DescribeProducersResponse))
def test_producers_are_read_of_whatever_a_broker_may_say(entity: Any) -> None:
    """Id, epoch and last sequence of each are read, more than once."""
    decoded = DescribeProducersResponseV0.decode(encode(entity))
    for topic, ours in zip(entity.topics, decoded.topics, strict=True):
        for part, (index, error_code, message, states, _) in zip(
            topic.partitions, ours[1], strict=True
        ):
            assert (part.partition_index, part.error_code.value, part.error_message) == (
                index,
                error_code,
                message,
            )
            expected = [
                (each.producer_id, each.producer_epoch, each.last_sequence)
                for each in part.active_producers
            ]
            assert (len(expected), expected, expected) == (len(states), list(states), list(states))


def test_tags_of_a_broker_to_come_are_left_out() -> None:
    """The entries then are no longer of one length, and are read one by one."""
    state = PRODUCERS.ProducerState(
        producer_id=i64(7),
        producer_epoch=i32(1),
        last_sequence=i32(5),
        last_timestamp=i64(0),
        coordinator_epoch=i32(-1),
        current_txn_start_offset=i64(-1),
    )
    partition = PRODUCERS.PartitionResponse(
        partition_index=i32(0),
        error_code=PRODUCERS.ErrorCode.none,
        active_producers=(state, dataclasses.replace(state, producer_id=i64(8))),
    )
    topic = PRODUCERS.TopicResponse(name="t", partitions=(partition,))
    plain = encode(PRODUCERS.DescribeProducersResponse(throttle_time=timedelta(0), topics=(topic,)))
    entry = encode(state)
    assert ProducerStates.ENTRY.size == len(entry)
    # Its list of tags is its last byte: one, number 9, of two bytes.
    tagged = plain.replace(entry, entry[:-1] + b"\x01\x09\x02ab")
    assert plain != tagged
    states = DescribeProducersResponseV0.decode(tagged).topics[0][1][0][3]
    assert [(7, 1, 5), (8, 1, 5)] == list(states)
