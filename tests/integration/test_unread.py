"""``unread`` on a real broker: topics that are read, half read, never read and not written."""

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from tests.support.command import command

pytestmark = pytest.mark.broker

RECORDS = 100
RECORD = b"x" * 10_000
DAY_MS = 86_400_000
OWNERS = '[shop]\ntopics = ["shop.*"]\n'
COMMITS = {"shop.read": RECORDS, "shop.half": RECORDS // 2, "shop.behind": 10, "old": RECORDS}


def write(bootstrap: str) -> None:
    """A hundred records in each topic; those of "old", and the first 50 of "behind", are old."""
    now_ms = time.time_ns() // 1_000_000
    producer = Producer({"bootstrap.servers": bootstrap, "batch.num.messages": 1, "log_level": 0})
    for topic in (*COMMITS, "never"):
        for number in range(RECORDS):
            is_old = topic == "old" or (topic == "shop.behind" and number < RECORDS // 2)
            at_ms = now_ms - (10 * DAY_MS if is_old else 0)
            producer.produce(topic, RECORD, timestamp=at_ms)
        assert 0 == producer.flush(30.0)


def commit(bootstrap: str) -> None:
    """The group etl has read so far."""
    group = Consumer({"bootstrap.servers": bootstrap, "group.id": "etl", "log_level": 0})
    where = [TopicPartition(topic, 0, offset) for topic, offset in COMMITS.items()]
    group.commit(offsets=where, asynchronous=False)
    group.close()


async def test_what_no_group_has_read(kafka: Cluster, tmp_path: Path) -> None:
    """By owner and topic, to within the batches' and segments' own bytes."""
    owners = tmp_path / "owners.toml"
    owners.write_text(OWNERS)
    kept = {"retention.ms": "-1"}
    async with Admin(kafka.bootstrap) as admin:
        for topic in (*COMMITS, "never"):
            await admin.create_topic(topic, config=kept)
    write(kafka.bootstrap)
    commit(kafka.bootstrap)
    words = ("unread", "--owners", str(owners), "--bootstrap-server", kafka.bootstrap)
    only = [word for topic in (*COMMITS, "never") for word in ("--topics", topic)]
    done = await command(*words, *only, "--retention", "3d", "--json", environ={})
    assert 0 == done.code, done.said
    document = json.loads(done.out)
    found = {each["topic"]: each for each in document["topics"]}
    assert {
        "shop.read": "read",
        "shop.half": "read",
        "shop.behind": "not read",
        "old": "nothing new",
        "never": "no group",
    } == {topic: each["reading"] for topic, each in found.items()}
    all_bytes = RECORDS * len(RECORD)
    for topic, each in found.items():
        unread = all_bytes * (1 - COMMITS.get(topic, 0) / RECORDS)
        assert pytest.approx(all_bytes, rel=0.1) == each["nbytes"]
        assert pytest.approx(unread, rel=0.1, abs=1) == each["unread_bytes"]
    freed = {topic: round(each["freed_bytes"] / all_bytes, 1) for topic, each in found.items()}
    assert {"shop.behind": 0.5, "old": 1.0} == {topic: n for topic, n in freed.items() if n}
    by_owner = {each["owner"]: each for each in document["owners"]}
    assert (3, 2) == (by_owner["shop"]["topics"], by_owner["(nobody)"]["topics"])
    assert found["shop.behind"]["nbytes"] == by_owner["shop"]["idle_bytes"]
    table = (await command(*words, *only, environ={"COLUMNS": "120"})).out
    rows = {line.split()[0]: line for line in table.splitlines() if line.strip()}
    assert rows["never"].rstrip().endswith("no group has an offset of it")
    assert "not read for 7 d " in rows["shop.behind"]
    assert "shop.read" not in rows
