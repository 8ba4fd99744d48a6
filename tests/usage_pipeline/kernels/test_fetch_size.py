"""What a FETCH was charged with, against kio, an independent codec."""

import io
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_payload_module
from kio.serial import entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i32, i64

from sidecar.requestlog.exempt import FETCH
from tests.sidecar.requestlog.lines import BY_HAND, LENGTHS, NAMES, line, parsed_line, read
from usage_pipeline.kernels.fetch_size import (
    NEWEST_FETCH,
    Fetched,
    FetchedPartition,
    FetchedTopic,
    fetch_answer,
    fetch_bytes,
)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of an answer."""

    records: int | None
    aborted: int | None
    diverging_epoch: bool
    current_leader: bool
    snapshot_id: bool


PARTITIONS = st.builds(
    Partition,
    records=LENGTHS | st.none(),
    aborted=st.none() | st.sampled_from([0, 1, 126, 127, 128]),
    diverging_epoch=st.booleans(),
    current_leader=st.booleans(),
    snapshot_id=st.booleans(),
)
PLAIN = Partition(5, None, diverging_epoch=False, current_leader=False, snapshot_id=False)
EDGES = st.integers(126, 128)
"""So many topics or partitions take a byte of length, or two."""
TOPICS = (
    st.lists(st.tuples(NAMES, st.lists(PARTITIONS, max_size=4)), max_size=3)
    | EDGES.map(lambda count: [("t", [PLAIN])] * count)
    | EDGES.map(lambda count: [("t", [PLAIN] * count)])
)


def test_an_answer_that_is_not_utf_8_is_as_good_as_missing() -> None:
    """Such as that of a damaged line."""
    whole = line(FETCH, response={"responses": [{"topic": "!"}]})
    assert fetch_answer(read(whole.replace(b"!", b"\xff"))) is None


@given(version=st.integers(4, NEWEST_FETCH), topics=TOPICS)
@pytest.mark.slow
def test_every_version_has_the_size_that_it_has_on_the_wire(
    version: int, topics: Sequence[tuple[str, Sequence[Partition]]]
) -> None:
    """It has for any names, numbers and sizes, with what some versions lack; 4 bytes more."""
    line = parsed_line(
        FETCH, version=version, response=logged(version, topics, nodeEndpoints=[{"host": "h"}])
    )
    answer = fetch_answer(line)
    assert answer is not None
    assert 4 + len(encoded(version, topics)) == fetch_bytes(answer, version)
    assert answer.records_bytes == sum(
        partition.records or 0 for _, partitions in topics for partition in partitions
    )


def test_the_modules_example() -> None:
    """The line by hand is charged with 59,955 bytes for 59,882 in one partition."""
    answer = fetch_answer(read(BY_HAND[2]))
    assert answer is not None
    assert (59_882, 59_955) == (answer.records_bytes, fetch_bytes(answer, 17))


@pytest.mark.parametrize(
    ("version", "expected"),
    [(0, 4 + 4 + 3 + 4 + 14 + 4 + 5), (1, 4 + 4 + 4 + 3 + 4 + 14 + 4 + 5)],
)
def test_versions_before_4(version: int, expected: int) -> None:
    """For these there is no kio: index, error and high watermark; the throttle time from 1 on."""
    topics = (FetchedTopic("t", (FetchedPartition(5),)),)
    assert expected == fetch_bytes(Fetched(topics), version)


@pytest.mark.parametrize(
    ("throttle_ms", "response"),
    [
        (198, {"throttleTimeMs": 198, "responses": []}),
        (0, {"throttleTimeMs": 198, "responses": []}),
        (198, {}),
        (0, ""),
        (0, None),
        (0, {"responses": [{"partitions": 7}]}),
    ],
)
def test_what_a_throttled_consumer_would_have_got_is_not_known(
    throttle_ms: int, response: object
) -> None:
    """An answer that is empty because of throttling has no size, nor has a missing one."""
    assert fetch_answer(parsed_line(FETCH, throttleTimeMs=throttle_ms, response=response)) is None


def test_an_empty_answer_is_known() -> None:
    """A consumer that waited for nothing was charged with the empty answer."""
    answer = fetch_answer(parsed_line(FETCH, version=17, response={"responses": []}))
    assert Fetched() == answer
    assert 16 == fetch_bytes(Fetched(), 17)


@pytest.mark.parametrize("version", [-1, NEWEST_FETCH + 1])
def test_what_is_newer_is_not_known(version: int) -> None:
    """A version whose encoding isn't known has no size."""
    assert fetch_bytes(Fetched(), version) is None


def logged(
    version: int, topics: Sequence[tuple[str, Sequence[Partition]]], **fields: Any
) -> dict[str, Any]:
    """An answer as brokers log it."""
    return {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "sessionId": 7,
        "responses": [
            {
                **({"topicId": "R0Qw3nShT-eMCtK--X86sw"} if version >= 13 else {"topic": name}),
                "partitions": [_logged(version, partition) for partition in partitions],
            }
            for name, partitions in topics
        ],
        **fields,
    }


def _logged(version: int, partition: Partition) -> dict[str, Any]:
    reported: dict[str, Any] = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 5}
    if partition.aborted is None:
        reported["abortedTransactions"] = None
    else:
        reported["abortedTransactions"] = [{"producerId": 1, "firstOffset": 2}] * partition.aborted
    if version >= 12 and partition.diverging_epoch:
        reported["divergingEpoch"] = {"epoch": 1, "endOffset": 2}
    if version >= 12 and partition.current_leader:
        reported["currentLeader"] = {"leaderId": 1, "leaderEpoch": 2}
    if version >= 12 and partition.snapshot_id:
        reported["snapshotId"] = {"endOffset": 1, "epoch": 2}
    if partition.records is None:
        reported["records"] = None
    else:
        reported["recordsSizeInBytes"] = partition.records
    return reported


def encoded(version: int, topics: Sequence[tuple[str, Sequence[Partition]]]) -> bytes:
    """A body as kio writes it."""
    module = load_payload_module(FETCH, version, EntityType.response)
    session = {"error_code": module.ErrorCode.none, "session_id": i32(7)} if version >= 7 else {}
    body = module.FetchResponse(
        throttle_time=timedelta(0),
        **session,
        responses=tuple(
            module.FetchableTopicResponse(
                **({"topic_id": uuid.UUID(int=7)} if version >= 13 else {"topic": name}),
                partitions=tuple(_encoded(module, version, one) for one in partitions),
            )
            for name, partitions in topics
        ),
    )
    buffer = io.BytesIO()
    entity_writer(type(body))(buffer, body)
    return buffer.getvalue()


def _encoded(module: Any, version: int, partition: Partition) -> Any:
    fields: dict[str, Any] = {}
    if version >= 5:
        fields["log_start_offset"] = i64(0)
    if version >= 11:
        fields["preferred_read_replica"] = i32(-1)
    if version >= 12 and partition.diverging_epoch:
        fields["diverging_epoch"] = module.EpochEndOffset(epoch=i32(1), end_offset=i64(2))
    if version >= 12 and partition.current_leader:
        leader = module.LeaderIdAndEpoch(leader_id=i32(1), leader_epoch=i32(2))
        fields["current_leader"] = leader
    if version >= 12 and partition.snapshot_id:
        fields["snapshot_id"] = module.SnapshotId(end_offset=i64(1), epoch=i32(2))
    aborted = module.AbortedTransaction(producer_id=i64(1), first_offset=i64(2))
    return module.PartitionData(
        partition_index=i32(0),
        error_code=module.ErrorCode.none,
        high_watermark=i64(5),
        last_stable_offset=i64(5),
        aborted_transactions=None if partition.aborted is None else (aborted,) * partition.aborted,
        records=None if partition.records is None else b"x" * partition.records,
        **fields,
    )
