"""Sizes rebuilt from lines, against kio, an independent codec made from Kafka's definitions."""

import io
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_payload_module
from kio.serial import entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32

from sidecar.requestlog.exempt import PRODUCE
from sidecar.requestlog.produce_size import NEWEST_PRODUCE, Produce, produce_bytes
from tests.sidecar.requestlog.lines import BY_HAND, LENGTHS, NAMES, parsed_line, read
from usage_pipeline.kernels.line_detail import detail

Topics = Sequence[tuple[str, Sequence[int]]]
"""Names, and for each partition the bytes of its batches; -1: none at all."""

TOPICS = st.lists(
    st.tuples(NAMES, st.lists(LENGTHS | st.just(-1), max_size=140)), max_size=3
) | st.lists(st.tuples(NAMES, st.just([5])), min_size=127, max_size=129)


@pytest.mark.slow
@given(
    version=st.integers(3, NEWEST_PRODUCE),
    client_id=NAMES | st.none(),
    transactional_id=NAMES | st.none(),
    topics=TOPICS,
)
def test_every_version_has_the_size_that_it_has_on_the_wire(
    version: int, client_id: str | None, transactional_id: str | None, topics: Topics
) -> None:
    """The sizes of header and body agree for any names, numbers and sizes."""
    line = parsed_line(
        PRODUCE,
        version=version,
        client_id=client_id,
        request={
            "transactionalId": transactional_id,
            "acks": -1,
            "timeoutMs": 30_000,
            "topicData": [logged_topic(version, *topic) for topic in topics],
        },
    )
    produce = detail(line)
    assert isinstance(produce, Produce)
    expected = len(encoded(version, client_id, transactional_id, topics))
    assert expected == produce_bytes(produce, version, line.client_id)


def test_the_modules_example() -> None:
    """10,000 bytes of batches for one partition of t1 are charged as 10,035 bytes."""
    topic = logged_topic(0, "t1", [10_000])
    produce = detail(parsed_line(PRODUCE, request={"acks": 1, "topicData": [topic]}))
    assert isinstance(produce, Produce)
    expected = len(encoded(11, "etl", None, [("t1", [10_000])]))
    assert 10_035 == expected == produce_bytes(produce, 11, "etl")


def test_the_line_by_hand() -> None:
    """25,532 bytes in two partitions of orders, from orders-writer-3 by version 11, are 59 more."""
    produce = detail(read(BY_HAND[0]))
    assert isinstance(produce, Produce)
    assert 25_532 == produce.records_bytes
    assert 16_412 + 9_120 + 59 == produce_bytes(produce, 11, "orders-writer-3")


def test_what_is_newer_has_the_size_of_the_newest() -> None:
    """Its records are as large. There is no version below 0."""
    produce = detail(read(BY_HAND[0]))
    assert isinstance(produce, Produce)
    newest, newer, none = (
        produce_bytes(produce, version, "etl")
        for version in (NEWEST_PRODUCE, NEWEST_PRODUCE + 9, -1)
    )
    assert newest == newer
    assert none is None


def logged_topic(version: int, name: str, partitions: Sequence[int]) -> dict[str, Any]:
    """A topic as brokers log it: versions that have ids have no name."""
    reported = {"topicId": "R0Qw3nShT-eMCtK--X86sw"} if version >= 13 else {"name": name}
    return {
        **reported,
        "partitionData": [
            {"index": index} if size < 0 else {"index": index, "recordsSizeInBytes": size}
            for index, size in enumerate(partitions)
        ],
    }


def encoded(
    version: int, client_id: str | None, transactional_id: str | None, topics: Topics
) -> bytes:
    """A request as kio writes it, after the frame's length."""
    module = load_payload_module(PRODUCE, version, EntityType.request)
    body = module.ProduceRequest(
        transactional_id=transactional_id,
        acks=i16(-1),
        timeout=timedelta(seconds=30),
        topic_data=tuple(
            module.TopicProduceData(
                **({"topic_id": uuid.UUID(int=7)} if version >= 13 else {"name": name}),
                partition_data=tuple(
                    module.PartitionProduceData(
                        index=i32(index), records=None if size < 0 else b"x" * size
                    )
                    for index, size in enumerate(partitions)
                ),
            )
            for name, partitions in topics
        ),
    )
    header = module.ProduceRequest.__header_schema__(
        request_api_key=i16(PRODUCE),
        request_api_version=i16(version),
        correlation_id=i32(1),
        client_id=client_id,
    )
    buffer = io.BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(type(body))(buffer, body)
    return buffer.getvalue()
