"""What is read of declared topics and groups, and what is deleted, by a fake broker's answers.

"logs" has a partition led by broker 1 with a replica on broker 0, "orders" is not declared. The
group etl has committed 700.
"""

import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from sidecar.kafka.cluster_messages import DESCRIBE_LOG_DIRS_KEY
from sidecar.kafka.config_messages import DESCRIBE_CONFIGS_KEY
from sidecar.kafka.expendable import Examined, ExpendableTopics, Look, Seen
from sidecar.kafka.group_commits import COORDINATED_S
from sidecar.kafka.relief_messages import (
    DELETE_RECORDS_KEY,
    DESCRIBE_SHARE_GROUP_OFFSETS_KEY,
    LIST_GROUPS_KEY,
    LIST_OFFSETS_KEY,
    OFFSET_FETCH_KEY,
)
from sidecar.throttle.growth import Partition
from sidecar.throttle.partition_track import Sight
from sidecar.throttle.relief import BEYOND, NOTHING, ReliefClass
from sidecar.volumes import Failure
from tests.sidecar.kafka.kio_codec import kio_answer
from tests.sidecar.kafka.servers import PATIENCE_S, Clock, admin, bootstrap
from tests.support.fake_broker import FakeBroker, FakeCluster, FakeRequest
from tests.support.fake_topics import OK, TOPIC_ID, FakeDir, FakePartition, FakeTopics
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]

LOGS: Partition = ("logs", 0)
OFFSETS = "__consumer_offsets"
CLASSES = (ReliefClass(("l*",), keep_s=1.0),)


@dataclass
class Kafka(FakeTopics):
    """What the brokers answer.

    Attributes:
        configs: the configuration of "logs".
        groups: broker id -> the groups that it coordinates: name, protocol type, state, type.
        commits: group -> topic -> index -> offset.
        errors: api key -> the error in its answers.
        coordinator: the leader of __consumer_offsets 0; None: the topic does not exist.
        of_coordinator: what it answers for the partition.
        more: other topics -> the number of their partitions, without a leader.
        rights: the user's operations on each topic, as bits.
        topic_id: the id of each topic.
        first: the first offset.
        newest: the highest timestamp in its files; -1: none has one.
        epoch: the leader epoch.
        moving: the broker on which the partition moves to another log dir; None: nowhere.
        deleted: what was deleted: broker id and offset.
    """

    configs: dict[str, str] = field(
        default_factory=lambda: {"cleanup.policy": "delete", "segment.bytes": "1000"}
    )
    groups: dict[int, list[tuple[str, str, str, str]]] = field(
        default_factory=lambda: {1: [("etl", "consumer", "Stable", "Classic")]}
    )
    commits: dict[str, dict[str, dict[int, int]]] = field(
        default_factory=lambda: {"etl": {"logs": {0: 700}}}
    )
    errors: dict[int, ErrorCode] = field(default_factory=dict)
    coordinator: int | None = 0
    of_coordinator: ErrorCode = OK
    more: dict[str, int] = field(default_factory=dict)
    rights: int = 1 << 8
    topic_id: uuid.UUID = TOPIC_ID
    first: int = 100
    newest: int = 8000
    epoch: int = 4
    moving: int | None = None
    deleted: list[tuple[int, int]] = field(default_factory=list)

    def of(self, cluster: FakeCluster) -> FakeCluster:
        super().of(cluster).answer(DESCRIBE_LOG_DIRS_KEY, 4, self.sizes)
        return cluster.answer(DESCRIBE_SHARE_GROUP_OFFSETS_KEY, 0, self._share)

    def _error(self, key: int) -> ErrorCode:
        return self.errors.get(key, OK)

    def topics(self, broker: FakeBroker) -> Mapping[str, Sequence[FakePartition]]:
        of = {"logs": [FakePartition(1, self.epoch, (1, 0))]}
        of["orders"] = [FakePartition(1, 4, (1, 0))]
        of |= {name: [FakePartition(-1, 4, ())] * count for name, count in self.more.items()}
        offsets = () if self.coordinator is None else [FakePartition(self.coordinator, 4, (1, 0))]
        return {**of, OFFSETS: offsets} if offsets else of

    def offset(
        self, broker: FakeBroker, key: Partition, epoch: int, timestamp: int
    ) -> tuple[ErrorCode, int]:
        if key == (OFFSETS, 0):
            assert (self.coordinator, 4, -1) == (broker.broker_id, epoch, timestamp)
            return self.of_coordinator, 12
        assert (1, LOGS) == (broker.broker_id, key)
        # Without an epoch after a deletion, whose leader has just answered.
        assert epoch == (-1 if self.deleted else 4)
        offsets = {-1: 900, -2: self.first, -3: self.newest, 5000: 650, 9000: -1}
        return self._error(LIST_OFFSETS_KEY), offsets[timestamp]

    def log_dirs(
        self, broker: FakeBroker, asked: Sequence[tuple[str, Sequence[int]]] | None
    ) -> Iterable[FakeDir]:
        assert [("logs", (0,))] == asked
        copies = [(LOGS, 55, True)] if broker.broker_id == self.moving else []
        yield FakeDir(0, "/d", 1, 1, [(LOGS, 2000 + broker.broker_id, False), *copies])

    def config(self, topic: str) -> tuple[ErrorCode, Mapping[str, str]]:
        assert "logs" == topic
        return self._error(DESCRIBE_CONFIGS_KEY), self.configs

    def groups_of(
        self, broker: FakeBroker
    ) -> tuple[ErrorCode, Iterable[tuple[str, str, str, str]]]:
        return self._error(LIST_GROUPS_KEY), self.groups.get(broker.broker_id, [])

    def commits_of(
        self, broker: FakeBroker, group: str
    ) -> tuple[ErrorCode, Mapping[str, Mapping[int, int]]]:
        return self._error(OFFSET_FETCH_KEY), self.commits.get(group, {})

    def _share(self, _: FakeBroker, request: FakeRequest) -> bytes:
        partition = {
            "partition_index": 0,
            "start_offset": 850,
            "leader_epoch": 0,
            "error_code": OK,
            "error_message": None,
        }
        topic = {"topic_name": "logs", "topic_id": TOPIC_ID, "partitions": [partition]}
        (name,) = [each.group_id for each in request.decoded.groups]
        group = {"group_id": name, "topics": [topic], "error_code": OK, "error_message": None}
        return kio_answer(DESCRIBE_SHARE_GROUP_OFFSETS_KEY, 0, groups=[group])

    def delete(
        self, broker: FakeBroker, offsets: Mapping[Partition, int]
    ) -> Mapping[Partition, tuple[ErrorCode, int]]:
        ((key, offset),) = offsets.items()
        self.deleted.append((broker.broker_id, offset))
        return {key: (self._error(DELETE_RECORDS_KEY), offset)}


@asynccontextmanager
async def topics(kafka: Kafka, clock: Clock) -> AsyncIterator[ExpendableTopics]:
    """Reads the cluster, whose coordinators have been the same for long enough."""
    async with kafka.of(FakeCluster().add(2, volumes=1)) as cluster:
        found = ExpendableTopics(admin(bootstrap(cluster)), clock)
        try:
            await found.look(CLASSES, PATIENCE_S)
            clock.now += COORDINATED_S
            yield found
        finally:
            await found.close()


SEEN = Seen(
    Sight(0.0, (TOPIC_ID.bytes, 1, 4), 100, 900, 2001), 1, frozenset({(0, "/d"), (1, "/d")})
)


async def examined(kafka: Kafka, clock: Clock, now_ms: int = 6000) -> Examined:
    """What limits deletions."""
    async with topics(kafka, clock) as found:
        result = await found.examine({LOGS: SEEN}, CLASSES, now_ms, PATIENCE_S)
    assert isinstance(result, Examined)
    return result


async def test_partitions_have_offsets_size_and_volumes(clock: Clock) -> None:
    """Offsets and size are the leader's; the copy of a log-dir move does not count.

    Kafka removes no segments of a replica while it moves, so its volume is left out.
    """
    kafka = Kafka()
    async with topics(kafka, clock) as found:
        kafka.moving = 0
        moving = await found.look(CLASSES, PATIENCE_S)
        kafka.moving = None
        look = await found.look(CLASSES, PATIENCE_S)
        assert Look({}) == await found.look((ReliefClass(("x",), keep_s=1.0),), PATIENCE_S)
    assert not isinstance(look, Failure)
    sight = Sight(clock.now, (TOPIC_ID.bytes, 1, 4), 100, 900, 2001)
    seen = {LOGS: Seen(sight, 1, SEEN.homes)}
    assert Look(seen, {}, {"logs": 1000}) == look
    elsewhere = Seen(sight, 1, frozenset(each for each in SEEN.homes if each[0] != 0))
    assert Look({LOGS: elsewhere}, {}, {"logs": 1000}) == moving


async def test_what_limits_deletions(clock: Clock) -> None:
    """The first young record, or the end if none is young, and all committed offsets."""
    kafka = Kafka(groups={0: [("other", "", "Empty", "Classic")]} | Kafka().groups)
    found = await examined(kafka, clock)
    expected = Examined({LOGS: 650}, {LOGS: {"etl": 700}}, "")
    assert expected == found
    assert {LOGS: 900} == (await examined(kafka, clock, 10_000)).young_from
    kafka.commits["etl"] = {"logs": {1: 5}}
    assert {LOGS: {"etl": NOTHING}} == (await examined(kafka, clock)).commits


@pytest.mark.parametrize("newest", [9000, -1])
async def test_kafka_may_miss_young_records(clock: Clock, newest: int) -> None:
    """It searches one segment, whose young records may be deleted, and not those after it.

    Nor does it find records without a timestamp. So without an older one as the newest, the age of
    the records is not known.
    """
    assert {} == (await examined(Kafka(newest=newest), clock, 10_000)).young_from


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"groups": {0: [("new", "consumer", "Stable", "")]}},
            "group new has members, but shows no committed offset: it has none yet, or DESCRIBE",
        ),
        (
            {"groups": {each: [("etl", "consumer", "Stable", "")] for each in (0, 1)}},
            "two brokers report group etl",
        ),
        ({"errors": {LIST_GROUPS_KEY: ErrorCode.coordinator_load_in_progress}}, "broker 0: ListG"),
        ({"errors": {OFFSET_FETCH_KEY: ErrorCode.group_authorization_failed}}, "it needs DESCRIBE"),
        ({"coordinator": 9}, "partition 0 of __consumer_offsets has no leader"),
        (
            {"of_coordinator": ErrorCode.not_leader_or_follower},
            "broker 0 may not know yet which groups it coordinates: ListOffsets",
        ),
    ],
)
async def test_groups_are_not_known_while_one_may_be_missing(
    clock: Clock, changes: dict[str, Any], why: str
) -> None:
    """The reason is told; so it is while coordinators have just changed."""
    assert why in (await examined(Kafka(**changes), clock)).groups_unknown
    kafka = Kafka()
    async with topics(kafka, clock) as found:
        kafka.coordinator = 1
        await found.look(CLASSES, PATIENCE_S)
        result = await found.examine({LOGS: SEEN}, CLASSES, 6000, PATIENCE_S)
    assert isinstance(result, Examined)
    assert result.groups_unknown.endswith("coordinators of groups have just changed")


async def test_a_coordinator_that_has_moved_needs_no_right(clock: Clock) -> None:
    """Only an error about rights names the right."""
    kafka = Kafka(errors={OFFSET_FETCH_KEY: ErrorCode.not_coordinator})
    unknown = (await examined(kafka, clock)).groups_unknown
    assert "the groups are not known: group etl: error 16 (NOT_COORDINATOR)" == unknown


async def test_a_coordinator_that_has_just_learned_of_it_may_not_have_loaded_its_groups(
    clock: Clock,
) -> None:
    """It lists none until then. Metadata of other brokers has named it for long."""
    kafka = Kafka(of_coordinator=ErrorCode.unknown_leader_epoch)
    async with topics(kafka, clock) as found:
        kafka.of_coordinator = OK
        await found.look(CLASSES, PATIENCE_S)
        result = await found.examine({LOGS: SEEN}, CLASSES, 6000, PATIENCE_S)
        assert isinstance(result, Examined)
        assert result.groups_unknown.endswith("coordinators of groups have just changed")
        clock.now += COORDINATED_S
        result = await found.examine({LOGS: SEEN}, CLASSES, 6000, PATIENCE_S)
        assert isinstance(result, Examined)
        assert "" == result.groups_unknown


async def test_a_commit_beyond_the_end_is_of_an_earlier_topic(clock: Clock) -> None:
    """So its group has read nothing of this one. One that has read on since the look is not."""
    kafka = Kafka()
    before = replace(SEEN, sight=replace(SEEN.sight, end=600))
    for offset, expected in ((900, 900), (901, NOTHING)):
        kafka.commits["etl"] = {"logs": {0: offset}}
        async with topics(kafka, clock) as found:
            result = await found.examine({LOGS: before}, CLASSES, 6000, PATIENCE_S)
        assert isinstance(result, Examined)
        assert {LOGS: {"etl": expected}} == result.commits


async def test_a_share_group_holds_its_topics(clock: Clock) -> None:
    """It has no offset below which all is read."""
    kafka = Kafka(groups={1: [("s", "share", "Stable", "Share")]})
    assert {LOGS: {"s": NOTHING}} == (await examined(kafka, clock)).commits


@pytest.mark.parametrize(
    ("configs", "errors", "why"),
    [
        ({"cleanup.policy": "compact,delete"}, {}, "its cleanup.policy is compact,delete"),
        ({"cleanup.policy": None}, {}, "its cleanup.policy is not set: only delete"),
        ({"remote.storage.enable": "true"}, {}, "its records are in tiered storage"),
        ({"confluent.tier.enable": "true"}, {}, "its records are in tiered storage"),
        ({}, {DESCRIBE_CONFIGS_KEY: ErrorCode.topic_authorization_failed}, "needs DescribeConf"),
        ({"segment.bytes": None}, {}, "the broker does not report its segment.bytes"),
    ],
)
async def test_topics_that_are_left_out(
    clock: Clock, configs: dict[str, str | None], errors: dict[int, ErrorCode], why: str
) -> None:
    """Compaction hides how much is kept, tiered storage is not on the volume, unknown is no."""
    merged = {**Kafka().configs, **configs}
    kafka = Kafka(configs={key: value for key, value in merged.items() if value}, errors=errors)
    async with topics(kafka, clock) as found:
        look = await found.look(CLASSES, PATIENCE_S)
    assert isinstance(look, Look)
    # Its partitions are read all the same: a step that a kill interrupted needs its outcome.
    assert ([LOGS], {}, {}) == (list(look.partitions), look.left_out, look.segment_bytes)
    assert why in look.unsuitable["logs"]


@pytest.mark.slow
async def test_the_first_topics_up_to_2500_partitions_are_read(clock: Clock) -> None:
    """Those of the first class come first, then by name; a topic is read whole or not at all.

    They are not "left out by a failure": a step that a kill interrupted does not wait for them.
    """
    kafka = Kafka(more={"a": 1000, "b": 1499, "c": 1})
    classes = (*CLASSES, ReliefClass(("*",), keep_s=1.0))
    async with topics(kafka, clock) as found:
        look = await found.look(classes, PATIENCE_S)
    assert isinstance(look, Look)
    assert [LOGS] == list(look.partitions)
    assert {"a", "b"} == look.left_out.keys()
    assert dict.fromkeys(["c", "orders"], BEYOND) == look.unsuitable


async def test_topics_that_may_not_be_deleted_from(clock: Clock) -> None:
    """Brokers report it for a request that deletes nothing; one that can't tell lists no topic."""
    for rights, expected in ((1 << 8, ["logs"]), (1 << 6 | 1 << 8, []), (-(2**31), [])):
        async with topics(Kafka(rights=rights), clock) as found:
            assert frozenset(expected) == await found.undeletable(["logs"], PATIENCE_S)


async def test_the_leader_deletes(clock: Clock) -> None:
    """The result is the first offset, or why that is not known."""
    kafka = Kafka()
    async with topics(kafka, clock) as found:
        assert {LOGS: 300} == dict(await found.delete({LOGS: 300}, {LOGS: 1}))
        kafka.errors[DELETE_RECORDS_KEY] = ErrorCode.policy_violation
        failure = (await found.delete({LOGS: 300}, {LOGS: 1}))[LOGS]
    assert isinstance(failure, Failure)
    assert "DeleteRecords returned error 44" in failure.message
    assert [(1, 300), (1, 300)] == kafka.deleted


@pytest.mark.parametrize("changes", [{"topic_id": uuid.UUID(int=8)}, {"epoch": 5}])
async def test_a_topic_that_has_just_changed_is_not_deleted_from(
    clock: Clock, changes: dict[str, Any]
) -> None:
    """One with the same name, or a leader that lost records, has others at these offsets."""
    kafka = Kafka()
    async with topics(kafka, clock) as found:
        assert {} == await found.changed([LOGS])
        vars(kafka).update(changes)
        failure = (await found.changed([LOGS]))[LOGS]
        assert "the topic was made again, or its leader has changed" == failure.message
        assert {("gone", 0)} == (await found.changed([("gone", 0)])).keys()


async def test_a_deletion_that_a_replica_does_not_confirm_is_one(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The leader has deleted if its first offset has moved; a replica may be offline."""
    kafka = Kafka(errors={DELETE_RECORDS_KEY: ErrorCode.request_timed_out})
    async with topics(kafka, clock) as found:
        failure = (await found.delete({LOGS: 300}, {LOGS: 1}))[LOGS]
        kafka.first = 300
        assert {LOGS: 300} == dict(await found.delete({LOGS: 300}, {LOGS: 1}))
    assert isinstance(failure, Failure)
    assert "the replicas did not confirm it within 10 s" == failure.message
    (logged,) = caplog.messages
    expected = "logs-0 was deleted from, but the replicas did not confirm it within 10 s"
    assert expected == logged


async def test_the_offsets_of_the_others_are_known_beside_a_silent_group(clock: Clock) -> None:
    """Nothing may be deleted then, but ``unread`` reports what the others have read."""
    silent = ("mute", "consumer", "Stable", "Classic")
    kafka = Kafka(groups={1: [("etl", "consumer", "Stable", "Classic"), silent]})
    found = await examined(kafka, clock)
    assert {LOGS: {"etl": 700}} == found.commits
    (why,) = found.silent
    assert why.startswith("group mute has members, but shows no committed offset")
    assert found.groups_unknown.endswith(why)
