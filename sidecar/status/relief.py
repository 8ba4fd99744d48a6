"""The largest topics on a volume that violates the limit, and the commands that shrink them.

Names are quoted for a POSIX shell and in JSON. Kafka's own topics get no commands, because their
settings limit their size.

Example: "orders" has 40 GB in 4 partitions there. Its commands set retention to half of its largest
partition, delete records that are older than 6 hours, or move the topic to brokers with room. On
Strimzi, the volume can grow first, and retention is a patch of the KafkaTopic.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from sidecar.control.board import Snapshot
from sidecar.control.volume_contents import VolumeContents
from sidecar.kafka.largest_topics import LogDirTopics, TopicSize
from sidecar.status import strimzi
from sidecar.status.command import Command
from sidecar.status.inputs import ToolSettings
from sidecar.status.moments import Moment, Now
from sidecar.status.target import Target
from sidecar.throttle.growth import Split
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.throttle.sizes import size
from sidecar.volumes import Failure

SHOWN: Final = 3
"""The most violating volumes that are read, so that not every broker of a full cluster is."""

_FREES: Final = (
    "Frees closed segments within 6 minutes, by Kafka's defaults; none with cleanup.policy=compact."
)
_TIERED: Final = (
    "Not for a topic with remote.storage.enable=true: set local.retention.bytes there instead, "
    "since Kafka would delete its remote records, too."
)
_TOPIC_OPERATOR: Final = " The Topic Operator may do so earlier for a topic with a KafkaTopic."
_INTERNAL: Final = "__"
_LISTED: Final = 100
"""The most brokers, or partitions, that a command names."""

_Rooms = Sequence[tuple[float, int]]
"""Bytes and broker id, the most bytes first."""

# Each line of get-offsets is topic:partition:offset; a partition without such a record has none.
_TO_JSON: Final = (
    """awk -F: 'BEGIN{printf "{\\"version\\":1,\\"partitions\\":["} $3~/^[0-9]+$/"""
    """{printf "%s{\\"topic\\":\\"%s\\",\\"partition\\":%s,\\"offset\\":%s}",s,$1,$2,$3;s=","}"""
    """ END{print "]}"}'"""
)


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic on the volume.

    Attributes:
        topic: the topic's name.
        size: its size on the volume.
        share: its share of all topics on the volume, 0 to 100.
        partitions: the number of its partitions on the volume.
        commands: the commands that shrink it; empty for Kafka's own topics.
    """

    topic: str
    size: str
    share: float
    partitions: int
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class OnVolume:
    """The contents of a volume.

    Attributes:
        broker_id: the broker's node id.
        log_dir: the log dir's path.
        answered_at: when the broker reported the contents; None before that.
        why_not: why the contents are not known; "" when they are known or being read.
        topics: the largest topics, the largest first.
        more: the number of other topics, in words; "" for none.
        growth: the commands that grow the volume; None where no command of ours can.
        about: what all these commands assume and need.
    """

    broker_id: int
    log_dir: str
    answered_at: Moment | None
    why_not: str
    topics: tuple[TopicRow, ...]
    more: str
    growth: Command | None = None
    about: tuple[str, ...] = ()


def on_volumes(
    snapshot: Snapshot,
    contents: VolumeContents | None,
    now: Now,
    tools: ToolSettings,
) -> list[OnVolume]:
    """Return the contents of the worst violating volumes, and read their brokers if due."""
    if contents is None:
        return []
    worst = sorted(snapshot.decision.violations, key=lambda each: each.volume.available_ratio)
    memory = snapshot.memory
    target = Target.of(memory, tools)
    return [_on_volume(state, memory, contents, now, target) for state in worst[:SHOWN]]


def _on_volume(
    state: VolumeState, memory: Memory, contents: VolumeContents, now: Now, target: Target
) -> OnVolume:
    broker_id, log_dir = state.volume.place
    # A volume can grow even if its broker is down, perhaps because it is full.
    growth = target.growth(state, memory)
    assumed = (target.assumed,) if growth and target.assumed else ()
    shown = OnVolume(broker_id, log_dir, None, "", (), "", growth, assumed)
    if broker_id not in memory.active:
        return replace(shown, why_not="The broker is not in the cluster now.")
    found = contents.request(broker_id)
    if found is None:
        return shown
    shown = replace(shown, answered_at=now.moment(found.answered_at))
    if isinstance(found.result, Failure):
        return replace(shown, why_not=found.result.message)
    topics = found.result.get(log_dir)
    if topics is None:
        unreported = "The broker did not report it."
        return replace(shown, why_not=unreported if state.online else "The broker can't read it.")
    return replace(
        shown,
        topics=_topics(topics, found.splits.get(log_dir), _rooms(memory, broker_id), target),
        more=_more(topics),
        about=target.about if topics.topics else assumed,
    )


def _more(topics: LogDirTopics) -> str:
    others = topics.topics - len(topics.largest)
    if others <= 0:
        return ""
    left = topics.size_bytes - sum(each.size_bytes for each in topics.largest)
    they_have = "other topic has" if others == 1 else "other topics have"
    return f"{others:,} {they_have} {size(left)} there."


def _topics(
    topics: LogDirTopics, split: Split | None, rooms: _Rooms, target: Target
) -> tuple[TopicRow, ...]:
    whole = topics.size_bytes or 1
    replicas = {} if split is None else split.placement.replicas
    return tuple(
        TopicRow(
            topic=each.topic,
            size=size(each.size_bytes),
            share=round(100 * each.size_bytes / whole, 1),
            partitions=len(each.partitions),
            commands=()
            if each.topic.startswith(_INTERNAL)
            else commands(each, target, _with_room(rooms, each, topics, replicas.get(each.topic))),
        )
        for each in topics.largest
        if each.size_bytes
    )


def commands(topic: TopicSize, target: Target, targets: list[int] | None) -> tuple[Command, ...]:
    """Return the commands that shrink a topic on one volume.

    Args:
        topic: the topic.
        target: the cluster.
        targets: the brokers with room for all its replicas; None if that is not known.
    """
    return (
        *_retention(topic, target),
        _deletion(topic, target.at),
        _move(topic, target, targets),
    )


def _retention(topic: TopicSize, target: Target) -> Iterator[Command]:
    half = max(1, topic.largest_bytes // 2)
    what = f"Retain at most {size(half)} of each partition"
    note = f"Half of its largest partition here. {_TIERED} {{}} {_FREES}"
    of_topic = f"kafka-configs.sh {target.at} --entity-type topics --entity-name "
    of_topic += shlex.quote(topic.topic)
    alone = Command(
        what,
        (f"{of_topic} --describe", f"{of_topic} --alter --add-config retention.bytes={half}"),
        note.format("Note what the first line prints, to restore it."),
    )
    if target.namespace is None:
        yield alone
        return
    restore = "Note what the second line prints, to restore it."
    yield strimzi.retention(topic.topic, half, what, note.format(restore), target.namespace)
    yield replace(alone, what="The same, if the topic has no KafkaTopic")


def _deletion(topic: TopicSize, at: str) -> Command:
    named = ",".join(f"{topic.topic}:{index}" for index in sorted(topic.partitions[:_LISTED]))
    return Command(
        "Delete what is older than 6 hours",
        (
            f"kafka-get-offsets.sh {at} --topic-partitions {shlex.quote(named)} "
            f'--time "$(date -d "6 hours ago" +%s000)" | {_TO_JSON} > delete.json',
            f"kafka-delete-records.sh {at} --offset-json-file delete.json",
        ),
        "For good, on every replica of these partitions and in remote storage. Look into "
        f"delete.json first. A partition without a newer record is left alone. {_FREES}",
    )


def _move(topic: TopicSize, target: Target, targets: list[int] | None) -> Command:
    what = "Move it to brokers with room"
    if targets is None:
        text = "Whether other brokers have room is not known: its replicas could not be read."
        return Command(what, (), text)
    if not targets:
        text = "Too few other brokers have room for all of it above the limit on each volume."
        return Command(what, (), text)
    listed = ",".join(map(str, targets))
    topics = shlex.quote(json.dumps({"version": 1, "topics": [{"topic": topic.topic}]}))
    run = f"kafka-reassign-partitions.sh {target.at}"
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
        "copies. Space is free here when they are done, and a minute later by default "
        "(file.delete.delay.ms). Verify until it reports so: that also takes the 50 MB/s away."
        + ("" if target.namespace is None else _TOPIC_OPERATOR),
    )


def _rooms(memory: Memory, broker_id: int) -> _Rooms:
    """List other brokers with their room above the limit on each volume, most first.

    A cordoned log dir gets no new partition, and a broker with no other is about to be removed.
    """
    rooms = [
        (min(rooms_there), each)
        for each in memory.active
        if each != broker_id
        and (broker := memory.brokers.get(each)) is not None
        and broker.failure is None
        and (
            rooms_there := [
                state.headroom_bytes
                for state in broker.volumes
                if state.volume.log_dir not in broker.cordoned
            ]
        )
    ]
    return sorted(rooms, key=lambda room: (-room[0], room[1]))[:_LISTED]


def _with_room(
    rooms: _Rooms, topic: TopicSize, topics: LogDirTopics, replicas: tuple[int, int] | None
) -> list[int] | None:
    """List the most brokers that have room for all replicas of a topic; None if that is not known.

    Kafka spreads replicas evenly. A broker may get the largest ones, all in one log dir, and those
    that are there already count too. A partition without a replica here counts as the largest one.

    Example: 4 partitions of 10 GB with 2 replicas on 3 brokers are 3 replicas, 30 GB, for each.

    Args:
        rooms: the brokers.
        topic: the topic.
        topics: the topics in the log dir.
        replicas: the number of its partitions, and of the replicas of each.
    """
    if replicas is None:
        return None
    partitions, copies = replicas
    sizes = sorted((size for _, size, _ in topics.packed.get(topic.topic, ())), reverse=True)
    sizes = [topic.largest_bytes] * (partitions - len(sizes)) + sizes
    needed = [*accumulate(sizes, initial=0)]
    for count in range(len(rooms), max(copies, 1) - 1, -1):
        if rooms[count - 1][0] > needed[-(-partitions * copies // count)]:
            return sorted(broker_id for _, broker_id in rooms[:count])
    return []
