"""The sidecar deletes the oldest records of a topic on a real broker, before a throttle."""

import asyncio
import itertools
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.traffic import Traffic
from sidecar.kafka.expendable import ExpendableTopics
from sidecar.settings import load
from sidecar.throttle.relief import ReliefClass
from sidecar.volumes import Failure
from tests.support.daemon import Daemon, Start, settings
from tests.support.secured import SecureKafka, scram
from tests.support.waiting import seen

MB = 1 << 20
VOLUME_BYTES = 512 * MB
FOREIGN_BYTES = 250 * MB
KEPT_BYTES = 40 * MB
RATE = 3e6
BEHIND = 500
"""How many records the group is behind, 5 MB."""


@pytest.fixture
async def small() -> AsyncIterator[Cluster]:
    """One broker with one volume; it removes deleted segments within two seconds."""
    async with Cluster(
        environ=os.environ, brokers=1, volumes=1, volume_bytes=VOLUME_BYTES
    ) as kafka:
        yield kafka


class Group:
    """A group that is always a little behind the end of "logs"."""

    def __init__(self, bootstrap: str) -> None:
        quiet = {"log_level": 0, "error_cb": lambda _: None}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "etl", **quiet})
        self.committed = 0

    def watermarks(self, topic: str) -> tuple[int, int]:
        """The first offset and the end."""
        where = TopicPartition(topic, 0)
        found: tuple[int, int]
        try:
            found = self._consumer.get_watermark_offsets(where, 10.0)
        except KafkaException:
            # librdkafka drops its connection when the list of brokers changes.
            found = self._consumer.get_watermark_offsets(where, 10.0)
        return found

    def commit(self) -> None:
        """Commit what it has read by now."""
        self.commit_at(max(self.committed, self.watermarks("logs")[1] - BEHIND))

    def commit_at(self, offset: int) -> bool:
        """Commit an offset; return whether that worked."""
        # While its coordinator loads, the group has read no further.
        with suppress(KafkaException):
            self._consumer.commit(offsets=[TopicPartition("logs", 0, offset)], asynchronous=False)
            self.committed = offset
        return self.committed == offset


def journal(folder: Path) -> list[dict[str, object]]:
    """The lines of the journal."""
    files = sorted((folder / "relief").glob("relief-*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


async def steps(daemon: Daemon) -> list[dict[str, object]]:
    """The steps in its journal that have ended."""
    document = await daemon.get("/v1/relief")
    return [entry for entry in document["journal"] if entry["kind"] == "end"]


@pytest.mark.slow
async def test_a_volume_never_reaches_its_limit(
    small: Cluster, start: Start, tmp_path: Path
) -> None:
    """More than its room is written; only what may go is deleted, also after a kill -9."""
    async with Admin(small.bootstrap) as admin:
        await admin.create_topic("logs")
        await admin.create_topic("orders")
    classes = tmp_path / "relief.toml"
    classes.write_text(f'[[class]]\ntopics = ["logs"]\nkeep_bytes = "{KEPT_BYTES}"\n')
    own = {
        "RELIEF_FILE": str(classes),
        "RELIEF_MODE": "delete",
        "RELIEF_STEP": "40MB",
        "STATE_FILE": str(tmp_path / "state.json"),
    }
    daemon = await start(small, settings(small.bootstrap, **own))
    await daemon.decides(1.0)
    await small.occupy(0, 0, FOREIGN_BYTES)
    group = Group(small.bootstrap)
    is_killed = False
    async with (
        Traffic(small.bootstrap, "logs", bytes_per_s=RATE) as logs,
        Traffic(small.bootstrap, "orders", bytes_per_s=RATE / 20) as orders,
    ):
        while logs.acknowledged_bytes < 1.2 * (VOLUME_BYTES - FOREIGN_BYTES):
            await asyncio.to_thread(group.commit)
            first, end = group.watermarks("logs")
            assert first <= group.committed
            if first:
                # A record has 10 kB and a little more.
                assert (end - first) * 10_000 >= KEPT_BYTES - MB
            if first and not is_killed:
                await daemon.end(signal.SIGKILL)
                await daemon.start()
                is_killed = True
            assert 1.0 == (await daemon.factor())["factor"]
            await asyncio.sleep(0.5)
    assert is_killed
    assert 0 == logs.failed_records + orders.failed_records
    assert 0 == group.watermarks("orders")[0]
    await seen("every step's end", lambda: _open(tmp_path), lambda found: not found)
    begun = [entry for entry in journal(tmp_path) if entry["kind"] == "begin"]
    assert len(begun) > 1
    assert len(begun) == len(await steps(daemon))


def _open(folder: Path) -> set[object]:
    entries = journal(folder)
    ended = {entry["step"] for entry in entries if entry["kind"] == "end"}
    return {entry["step"] for entry in entries if entry["kind"] == "begin"} - ended


@pytest.mark.slow
async def test_young_records_that_kafka_does_not_find_are_kept() -> None:
    """It searches only the first segment with a young timestamp, also if those were deleted."""
    never = {"log.retention.check.interval.ms": "3600000"}
    async with Cluster(
        environ=os.environ, brokers=1, volumes=1, volume_bytes=128 * MB, properties=never
    ) as kafka:
        async with Admin(kafka.bootstrap) as admin:
            await admin.create_topic(
                "logs", config={"segment.bytes": str(MB), "retention.ms": "-1"}
            )
        now_ms, old_ms = int(1000 * time.time()), 3_600_000
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0, "log_level": 0})
        # About ten records are a segment; those of the first are young, and some of a later one.
        for count, age_ms in ((9, 0), (17, old_ms), (5, 0), (3, old_ms)):
            for _ in range(count):
                producer.produce("logs", bytes(100_000), partition=0, timestamp=now_ms - age_ms)
                assert 0 == await asyncio.to_thread(producer.flush, 20)
        reach = load(environ=settings(kafka.bootstrap)).settings.kafka_admin
        assert reach is not None
        topics = ExpendableTopics(reach, itertools.count(0.0, 10.0).__next__)
        classes = (ReliefClass(("logs",), keep_s=old_ms / 2000),)

        async def young_from() -> Mapping[tuple[str, int], int]:
            look = await topics.look(classes, 20.0)
            assert not isinstance(look, Failure)
            found = await topics.examine(look.partitions, classes, now_ms, 20.0)
            assert not isinstance(found, Failure)
            return found.young_from

        assert {("logs", 0): 0} == await young_from()
        assert {("logs", 0): 9} == await topics.delete({("logs", 0): 9}, {("logs", 0): 0})
        # Kafka says that there is none; the record at 26 is young.
        assert {} == await young_from()
        await topics.close()


RIGHTS = (
    ("DESCRIBE_CONFIGS", "TOPIC", "logs"),
    ("DELETE", "TOPIC", "logs"),
    ("DESCRIBE", "GROUP", "*"),
    ("DESCRIBE", "TOPIC", "__consumer_offsets"),
)
"""Those of docs/security.md; DELETE implies DESCRIBE."""
SIGHT = ("DESCRIBE", "TOPIC", "logs")


async def holds(topics: ExpendableTopics) -> str:
    """Why nothing of "logs" can be deleted; "" if it can."""
    classes = (ReliefClass(("logs",), keep_s=1.0),)
    look = await topics.look(classes, 20.0)
    assert not isinstance(look, Failure)
    if not look.partitions:
        return "; ".join(look.left_out.values()) or "no topic"
    found = await topics.examine(look.partitions, classes, 0, 20.0)
    assert not isinstance(found, Failure)
    if why := look.unsuitable.get("logs") or found.groups_unknown:
        return why
    assert {"etl": 3} == found.commits["logs", 0]
    (outcome,) = (await topics.delete({("logs", 0): 2}, {("logs", 0): 0})).values()
    return outcome.message if isinstance(outcome, Failure) else ""


async def test_each_right_is_needed(secure_kafka: SecureKafka) -> None:
    """With all of them, records are read and deleted; without one, a reason is told."""
    kafka = secure_kafka.cluster
    reach = load(environ=scram(secure_kafka)).settings.kafka_admin
    assert reach is not None
    # Each reading is 10 s later: coordinators do not count as new.
    topics = ExpendableTopics(reach, itertools.count(0.0, 10.0).__next__)
    group = Group(kafka.bootstrap)
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topic("logs")
        for right in RIGHTS:
            await admin.allow("alice", *right)
        try:
            async with Traffic(kafka.bootstrap, "logs", bytes_per_s=1e6) as logs:
                await seen("records", lambda: logs.acknowledged_bytes > 10 * 10_000)
            await seen("a commit", lambda: group.commit_at(3))
            await seen("all rights", lambda: holds(topics), lambda why: not why)
            for right in RIGHTS:
                await admin.delete_acls("alice", *right)
                await seen(f"a reason without {right}", lambda: holds(topics))
                await admin.allow("alice", *right)
                await seen(f"none with {right}", lambda: holds(topics), lambda why: not why)
            assert frozenset() == await topics.undeletable(["logs"], 20.0)
            await admin.allow("alice", *SIGHT)
            await admin.delete_acls("alice", *RIGHTS[1])
            await seen("no right to delete", lambda: topics.undeletable(["logs"], 20.0))
        finally:
            for right in (*RIGHTS, SIGHT):
                await admin.delete_acls("alice", *right)
            await topics.close()
