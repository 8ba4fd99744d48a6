"""What no group has read, what a shorter retention frees, and which topics nobody reads."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sidecar.throttle.relief import NOTHING
from sidecar.throttle.unread import OwnerUse, Reading, Stored, TopicUse, owner_uses, topic_uses

HALF = Stored("t", 100, 1100, 2000, {"etl": 600}, recent_from=500, kept_from=300)


def use(*partitions: Stored) -> TopicUse:
    """The only topic of partitions."""
    (found,) = topic_uses(partitions, lambda _: "web")
    return found


def test_bytes_are_the_share_of_offsets() -> None:
    """500 of 1,000 records are unread, and 200 are older than the retention."""
    assert TopicUse("t", "web", Reading.RECENT, ("etl",), 2000, 1000.0, 400.0) == use(HALF)


@pytest.mark.parametrize(
    ("commits", "unread"),
    [
        ({}, 2000.0),
        ({"etl": 300, "audit": 600}, 1000.0),
        ({"etl": NOTHING, "audit": 600}, 1000.0),
        ({"etl": NOTHING}, 0.0),
        ({"etl": 50}, 2000.0),
        ({"etl": 2000}, 0.0),
    ],
    ids=["none", "the furthest", "one is not known", "not known", "deleted since", "made again"],
)
def test_the_furthest_group_counts(commits: Mapping[str, int], unread: float) -> None:
    """Of a place that Kafka does not show, nothing is said."""
    assert unread == use(replace(HALF, commits=commits)).unread_bytes


@pytest.mark.parametrize(
    ("partitions", "reading"),
    [
        ([HALF], Reading.RECENT),
        ([replace(HALF, commits={"etl": 500})], Reading.NOT_RECENT),
        ([replace(HALF, commits={"etl": 100}), HALF], Reading.RECENT),
        ([replace(HALF, commits={})], Reading.NO_GROUP),
        ([replace(HALF, commits={}), replace(HALF, commits={"etl": 400})], Reading.NOT_RECENT),
        ([replace(HALF, recent_from=1100)], Reading.NOTHING_NEW),
        ([replace(HALF, recent_from=None)], Reading.UNKNOWN),
        ([replace(HALF, commits={"etl": NOTHING})], Reading.UNKNOWN),
        ([replace(HALF, start=0, end=0, nbytes=0, recent_from=0)], Reading.NOTHING_NEW),
    ],
)
def test_whether_a_topic_is_read(partitions: list[Stored], reading: Reading) -> None:
    """One partition of which a new record was read is enough; what is not known is told."""
    assert reading == use(*partitions).reading


def test_an_empty_partition_has_no_unread_bytes() -> None:
    """A segment of deleted records may still have a size."""
    found = use(Stored("t", 7, 7, 10, {}, recent_from=7, kept_from=7))
    assert (10, 0.0, 0.0) == (found.nbytes, found.unread_bytes, found.freed_bytes)


def test_owners_and_topics_are_in_order() -> None:
    """The largest topic is first, and the owner with the most unread bytes."""
    partitions = [
        replace(HALF, topic="a.1", nbytes=10),
        replace(HALF, topic="a.2", nbytes=30, commits={}),
        replace(HALF, topic="b.1", nbytes=40),
        replace(HALF, topic="b.1", nbytes=20),
    ]
    topics = list(topic_uses(partitions, lambda topic: topic[0]))
    assert ["b.1", "a.2", "a.1"] == [each.topic for each in topics]
    assert [
        OwnerUse("a", 2, 40, 35.0, 30, 8.0),
        OwnerUse("b", 1, 60, 30.0, 0, 12.0),
    ] == owner_uses(topics)
