"""What lies on a volume that violates the limit, and the commands that make it smaller.

Names are quoted for a POSIX shell and in JSON. Kafka's own topics get no commands: they shrink by
their settings.

Example: "orders" has 40 GB in 4 partitions there: retention to half of its largest partition, the
deletion of what is older than 6 hours, or its move to brokers with room.
"""

import json
import shlex
from dataclasses import dataclass
from typing import Final

from sidecar.control.board import Snapshot
from sidecar.kafka.largest_topics import LogDirTopics, TopicSize
from sidecar.status.contents import VolumeContents
from sidecar.status.moments import Moment, Now
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.throttle.sizes import size
from sidecar.volumes import Failure

SHOWN: Final = 3
"""So many violating volumes are read, so that a full cluster is not read everywhere."""

_INTERNAL: Final = "__"
_LISTED: Final = 100
"""So many brokers, or partitions, are named in a command."""

# Each line of get-offsets is topic:partition:offset; a partition without such a record has none.
_TO_JSON: Final = (
    """awk -F: 'BEGIN{printf "{\\"version\\":1,\\"partitions\\":["} $3~/^[0-9]+$/"""
    """{printf "%s{\\"topic\\":\\"%s\\",\\"partition\\":%s,\\"offset\\":%s}",s,$1,$2,$3;s=","}"""
    """ END{print "]}"}'"""
)


@dataclass(frozen=True, slots=True)
class Command:
    """What to type.

    Attributes:
        what: what it does, in a few words.
        lines: the commands, one a line.
        note: what to know before; "" for nothing.
    """

    what: str
    lines: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic on the volume.

    Attributes:
        topic: its name.
        size: what it has there.
        share: of what all topics have there, 0 to 100.
        partitions: how many of its partitions are there.
        commands: empty for Kafka's own topics.
    """

    topic: str
    size: str
    share: float
    partitions: int
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class OnVolume:
    """What lies on a volume.

    Attributes:
        broker_id: the broker's node id.
        log_dir: the log dir's path.
        answered_at: when the broker reported it; None before it did.
        why_not: why it is not known, "" when it is or is being read.
        topics: the largest, first.
        more: how many others there are, in words; "" for none.
    """

    broker_id: int
    log_dir: str
    answered_at: Moment | None
    why_not: str
    topics: tuple[TopicRow, ...]
    more: str


def on_volumes(snapshot: Snapshot, contents: VolumeContents | None, now: Now) -> list[OnVolume]:
    """What lies on the worst volumes that violate the limit; their brokers are read if due."""
    if contents is None:
        return []
    worst = sorted(snapshot.decision.violations, key=lambda each: each.volume.available_ratio)
    memory = snapshot.memory
    return [_on_volume(known, memory, contents, now) for known in worst[:SHOWN]]


def _on_volume(known: VolumeState, memory: Memory, contents: VolumeContents, now: Now) -> OnVolume:
    broker_id, log_dir = known.volume.broker_id, known.volume.log_dir
    if broker_id not in memory.active:
        return OnVolume(broker_id, log_dir, None, "The broker is not in the cluster now.", (), "")
    found = contents.of(broker_id)
    if found is None:
        return OnVolume(broker_id, log_dir, None, "", (), "")
    answered_at = now.moment(found.answered_at)
    if isinstance(found.result, Failure):
        return OnVolume(broker_id, log_dir, answered_at, found.result.message, (), "")
    topics = found.result.get(log_dir)
    if topics is None:
        return OnVolume(broker_id, log_dir, answered_at, "The broker did not report it.", (), "")
    return OnVolume(
        broker_id,
        log_dir,
        answered_at,
        "",
        _topics(topics, broker_id, memory),
        _more(topics),
    )


def _more(topics: LogDirTopics) -> str:
    others = topics.topics - len(topics.largest)
    if others <= 0:
        return ""
    left = topics.size_bytes - sum(each.size_bytes for each in topics.largest)
    they_have = "other topic has" if others == 1 else "other topics have"
    return f"{others:,} {they_have} {size(left)} there."


def _topics(topics: LogDirTopics, broker_id: int, memory: Memory) -> tuple[TopicRow, ...]:
    whole = topics.size_bytes or 1
    return tuple(
        TopicRow(
            topic=each.topic,
            size=size(each.size_bytes),
            share=round(100 * each.size_bytes / whole, 1),
            partitions=len(each.partitions),
            commands=()
            if each.topic.startswith(_INTERNAL)
            else commands(each, _address(memory), _with_room(memory, broker_id, each.size_bytes)),
        )
        for each in topics.largest
        if each.size_bytes
    )


def commands(topic: TopicSize, address: str, targets: list[int]) -> tuple[Command, ...]:
    """What makes a topic smaller on one volume.

    Args:
        topic: what it has there.
        address: "host:port" of a broker that answers.
        targets: brokers with room for it.
    """
    at = f"--bootstrap-server {shlex.quote(address)}"
    return _retention(topic, at), _deletion(topic, at), _move(topic, at, targets)


def _retention(topic: TopicSize, at: str) -> Command:
    name = shlex.quote(topic.topic)
    half = max(1, topic.largest_bytes // 2)
    of_topic = f"kafka-configs.sh {at} --entity-type topics --entity-name {name}"
    return Command(
        f"Retain at most {size(half)} of each partition",
        (
            f"{of_topic} --describe",
            f"{of_topic} --alter --add-config retention.bytes={half}",
        ),
        "Half of its largest partition here. Note what the first line prints, to restore it. Whole "
        "segments are deleted, up to 5 minutes later; the one that is written to stays.",
    )


def _deletion(topic: TopicSize, at: str) -> Command:
    named = ",".join(f"{topic.topic}:{index}" for index in sorted(topic.partitions[:_LISTED]))
    return Command(
        "Delete what is older than 6 hours",
        (
            f"kafka-get-offsets.sh {at} --topic-partitions {shlex.quote(named)} "
            f'--time "$(date -d "6 hours ago" +%s000)" | {_TO_JSON} > delete.json',
            f"kafka-delete-records.sh {at} --offset-json-file delete.json",
        ),
        "For good, at once, on every replica of these partitions. Look into delete.json first. A "
        "partition without a newer record is left alone.",
    )


def _move(topic: TopicSize, at: str, targets: list[int]) -> Command:
    what = "Move it to brokers with room"
    if not targets:
        return Command(what, (), "No other broker has room for it above the limit on each volume.")
    listed = ",".join(map(str, targets[:_LISTED]))
    topics = shlex.quote(json.dumps({"version": 1, "topics": [{"topic": topic.topic}]}))
    run = f"kafka-reassign-partitions.sh {at}"
    return Command(
        what,
        (
            f"echo {topics} > topics.json",
            f"{run} --generate --topics-to-move-json-file topics.json --broker-list {listed} "
            "| sed '1,/^Proposed/d' > plan.json",
            f"{run} --execute --reassignment-json-file plan.json --throttle 50000000",
            f"{run} --verify --reassignment-json-file plan.json",
        ),
        "All its partitions, by 50 MB/s for each broker. The throttle factor does not slow these "
        "copies, and space is free here only when they are done. Verify until it reports so: that "
        "also takes the 50 MB/s away.",
    )


def _address(memory: Memory) -> str:
    active = memory.active
    answering = [
        address
        for broker_id, address in active.items()
        if (broker := memory.brokers.get(broker_id)) is not None and broker.failure is None
    ]
    return next(iter(answering or active.values()), "BROKER:9092")


def _with_room(memory: Memory, broker_id: int, size_bytes: int) -> list[int]:
    """The other brokers that have so much above the limit on each volume: Kafka chooses which."""
    return [
        each
        for each in sorted(memory.active)
        if each != broker_id
        and (broker := memory.brokers.get(each)) is not None
        and broker.failure is None
        and broker.volumes
        and min(known.headroom_bytes for known in broker.volumes) > size_bytes
    ]
