"""What lies on a violating volume, and commands that can be typed as they are."""

import asyncio
import json
import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.control.board import Board
from sidecar.control.volume_contents import ContentsResult, VolumeContents
from sidecar.kafka.largest_topics import LogDirTopics, TopicSize
from sidecar.kafka.log_dir_messages import PartitionSizes
from sidecar.status.inputs import ToolSettings
from sidecar.status.moments import Now
from sidecar.status.relief import SHOWN, OnVolume, commands, on_volumes
from sidecar.status.target import Target
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.growth import Placement
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.throttle.rules import Rules
from sidecar.volumes import Failure, FailureKind, Membership, Observation
from tests.sidecar.throttle.build import FakeClock, reading, whole

FACTORS = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0)
TOOLS = ToolSettings()
ORDERS = TopicSize("orders", 60, (3, 0), 40)
PACKED = b"".join(bytes(4) + size.to_bytes(8, "big") + bytes(10) for size in (40, 20))
LARGEST = ORDERS, TopicSize("__consumer_offsets", 30, (7,), 30)
TOPICS = LogDirTopics(12, 100, LARGEST, 91, {"orders": PartitionSizes(PACKED)})


def at(address: str, tools: ToolSettings | None = None, **cluster: dict[int, str]) -> Target:
    """The target in a cluster with a broker at this address."""
    membership = Membership("A", {1: address}, **cluster)
    return Target.of(Memory(membership), tools or ToolSettings())


AT_B = at("b:9092")


async def shown(
    seen: Observation,
    answer: ContentsResult,
    *,
    before: Observation | None = None,
    requests: int = 2,
    replicas: tuple[int, int] | None = None,
) -> tuple[list[OnVolume], list[int]]:
    """What the page shows in the end, and which brokers were asked for it."""
    board = Board(FACTORS, FakeClock())
    for each in (seen,) if before is None else (before, seen):
        board.observe(each)
    asked: list[int] = []

    async def ask(broker_id: int) -> ContentsResult:
        asked.append(broker_id)
        return answer

    async def place(broker_id: int, topics: Sequence[str]) -> Placement:
        return Placement(replicas={} if replicas is None else dict.fromkeys(topics, replicas))

    contents = VolumeContents(ask, FakeClock(), place)
    task = asyncio.create_task(contents.run())
    found: list[OnVolume] = []
    for _ in range(requests):
        found = on_volumes(board.snapshot, contents, Now(0.0, lambda steady_s: steady_s), TOOLS)
        for _ in range(200):
            await asyncio.sleep(0.001)
            if all(map(contents.known, asked)):
                break
    task.cancel()
    return found, asked


async def test_topics_by_size() -> None:
    """They have their share, and what the others have together."""
    (volume,), _ = await shown(whole(0.0, [reading(2, 0.0, {"/d": 9})]), {"/d": TOPICS})
    topics = [(each.topic, each.size, each.share, each.partitions) for each in volume.topics]
    assert [("orders", "60 B", 60.0, 2), ("__consumer_offsets", "30 B", 30.0, 1)] == topics
    assert "10 other topics have 10 B there." == volume.more


async def test_kafkas_own_topics_get_no_commands() -> None:
    """Deleting offsets is no relief."""
    (volume,), _ = await shown(whole(0.0, [reading(2, 0.0, {"/d": 9})]), {"/d": TOPICS})
    assert [True, False] == [bool(each.commands) for each in volume.topics]


async def test_before_the_broker_answers() -> None:
    """Nothing is known and nothing is wrong."""
    (volume,), _ = await shown(whole(0.0, [reading(2, 0.0, {"/d": 9})]), {}, requests=1)
    assert (None, "", ()) == (volume.answered_at, volume.why_not, volume.topics)


async def test_why_it_is_not_known() -> None:
    """The broker failed, did not describe that log dir, or is not there."""
    full = reading(2, 0.0, {"/d": 9})
    (refused,), _ = await shown(whole(0.0, [full]), Failure(FailureKind.TIMEOUT, "no answer"))
    (other,), _ = await shown(whole(0.0, [full]), {"/e": TOPICS})
    assert ["no answer", "The broker did not report it."] == [refused.why_not, other.why_not]
    failed = whole(1.0, [reading(2, 1.0, {"/e": 90}, offline=["/d"])])
    (offline,), _ = await shown(failed, {"/e": TOPICS}, before=whole(0.0, [full]))
    assert "The broker can't read it." == offline.why_not
    board = Board(FACTORS, FakeClock())
    for seen in (whole(0.0, [full]), whole(1.0, [reading(1, 1.0, {"/d": 90})], fenced=[2])):
        board.observe(seen)

    async def ask(broker_id: int) -> ContentsResult:
        raise AssertionError(f"broker {broker_id} is not there to be asked")

    contents = VolumeContents(ask, FakeClock())
    (gone,) = on_volumes(board.snapshot, contents, Now(1.0, lambda steady_s: steady_s), TOOLS)
    assert "The broker is not in the cluster now." == gone.why_not


def test_a_volume_can_grow_while_its_broker_is_down() -> None:
    """A full disk may be why it is down; the claim is known by the address of before."""
    address = "prod-hot-2.prod-kafka-brokers.kafka.svc:9093"
    log_dir = "/var/lib/kafka/data-0/kafka-log2"
    board = Board(FACTORS, FakeClock())
    full, other = reading(2, 0.0, {log_dir: 9}), reading(1, 1.0, {"/d": 90})
    board.observe(whole(0.0, [full]))
    membership = Membership("A", {1: "host1:9092"}, {2: address})
    board.observe(Observation(1.0, "poll", membership, {1: other}))

    async def ask(broker_id: int) -> ContentsResult:
        raise AssertionError(f"broker {broker_id} is not there to be asked")

    contents = VolumeContents(ask, FakeClock())
    (down,) = on_volumes(board.snapshot, contents, Now(1.0, lambda steady_s: steady_s), TOOLS)
    assert "The broker is not in the cluster now." == down.why_not
    assert down.growth is not None
    assert "get pvc -n kafka data-0-prod-hot-2 " in down.growth.lines[0]
    (assumed,) = down.about
    assert assumed.startswith("These commands are for Strimzi, since the cluster has the")


async def test_only_the_worst_are_read() -> None:
    """A cluster that is full everywhere is not asked everywhere."""
    seen = whole(0.0, [reading(b, 0.0, {"/d": b}) for b in range(1, 9)])
    found, asked = await shown(seen, {"/d": TOPICS})
    assert [1, 2, 3] == [each.broker_id for each in found] == asked
    assert SHOWN == len(found)


async def test_no_violation() -> None:
    """Nobody is asked."""
    assert ([], []) == await shown(whole(0.0, [reading(2, 0.0, {"/d": 11})]), {"/d": TOPICS})


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        # Of 4 replicas each gets one, at worst the largest: 40 B above the limit of 10 B.
        ((4, 1), "1,4,5,7"),
        # Of 6 each gets two, 80 B, which three of these have; of 7 each gets three.
        ((6, 1), "1,5,7"),
        ((3, 2), "1,5,7"),
        ((7, 1), ""),
        # Five replicas of a partition need five brokers, and broker 6 has no room.
        ((2, 5), ""),
        (None, None),
    ],
)
async def test_whose_brokers_have_room(
    replicas: tuple[int, int] | None, expected: str | None
) -> None:
    """All replicas of the topic move, so they have room for a share of them on each volume."""
    answers = [
        reading(1, 0.0, {"/d": 91, "/e": 95}),
        reading(2, 0.0, {"/d": 9}),
        reading(4, 0.0, {"/d": 61, "/e": 90}),
        reading(5, 0.0, {"/d": 95}),
        reading(6, 0.0, {"/d": 90, "/e": 10}),
        reading(7, 0.0, {"/d": 95}),
    ]
    seen = whole(0.0, answers, silent=[0])
    found, _ = await shown(seen, {"/d": TOPICS}, replicas=replicas)
    moving = found[0].topics[0].commands[2]
    if expected:
        assert f"--broker-list {expected} " in moving.lines[1]
        assert "--bootstrap-server host1:9092" in moving.lines[1]
    else:
        begins = "Too few other brokers" if expected == "" else "Whether other brokers have room"
        assert ((), True) == (moving.lines, moving.note.startswith(begins))


async def test_nothing_is_moved_to_cordoned_log_dirs() -> None:
    """Kafka puts no new partition there, so neither is their room counted, nor what they lack."""
    answers = [
        reading(1, 0.0, {"/d": 91}),
        reading(2, 0.0, {"/d": 9}),
        replace(reading(3, 0.0, {"/d": 99}), cordoned=("/d",)),
        replace(reading(4, 0.0, {"/d": 91, "/e": 11}), cordoned=("/e",)),
    ]
    found, _ = await shown(whole(0.0, answers), {"/d": TOPICS}, replicas=(2, 1))
    assert "--broker-list 1,4 " in found[0].topics[0].commands[2].lines[1]


def test_nowhere_to_move_to() -> None:
    """There is no command that could not work."""
    assert () == commands(ORDERS, AT_B, [])[2].lines


def test_retention() -> None:
    """It is half of its largest partition; a command shows what was set before."""
    assert (
        "kafka-configs.sh --bootstrap-server b:9092 --entity-type topics --entity-name orders "
        "--describe",
        "kafka-configs.sh --bootstrap-server b:9092 --entity-type topics --entity-name orders "
        "--alter --add-config retention.bytes=20",
    ) == commands(ORDERS, AT_B, [1])[0].lines


def test_notes_name_the_topics_that_a_command_is_not_for() -> None:
    """Retention in bytes counts the remote records of tiered topics, and compaction ignores it."""
    retention, deletion, _ = commands(ORDERS, AT_B, [1])
    assert "Not for a topic with remote.storage.enable=true: set local.retention" in retention.note
    assert "and in remote storage." in deletion.note
    for each in (retention, deletion):
        assert "none with cleanup.policy=compact." in each.note


def test_names_are_quoted() -> None:
    """Whatever a broker calls a topic or an address stays one word of the shell."""
    evil = TopicSize("a'; rm -rf /;\"$(b)", 5, (0,), 5)
    for command in commands(evil, at("h;x:9092"), [1])[:1]:
        for line in command.lines:
            words = shlex.split(line)
            assert [evil.topic] == [words[words.index("--entity-name") + 1]]
            assert ["h;x:9092"] == [words[words.index("--bootstrap-server") + 1]]
    echo = commands(evil, AT_B, [1])[2].lines[0]
    assert evil.topic == json.loads(shlex.split(echo)[1])["topics"][0]["topic"]


def run(folder: Path, lines: tuple[str, ...], **scripts: str) -> None:
    """Runs lines in a shell whose Kafka commands are these scripts."""
    for name, script in scripts.items():
        path = folder / f"{name.replace('_', '-')}.sh"
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
    found = f"{folder}{os.pathsep}{os.environ['PATH']}"
    for line in lines:
        subprocess.run(
            ["/bin/sh", "-ec", line], cwd=folder, env={"PATH": found}, check=True, timeout=30
        )


def test_deletion_writes_what_kafka_reads(tmp_path: Path) -> None:
    """Offsets become JSON; a partition without an offset is left alone, not emptied."""
    offsets = "printf 'orders:0:41\\norders:3:\\norders:5:-1\\norders:7:9\\n'; echo \"$@\" > asked"
    lines = commands(ORDERS, AT_B, [1])[1].lines
    run(tmp_path, lines, kafka_get_offsets=offsets, kafka_delete_records='cp "$4" deleted')
    assert {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 0, "offset": 41},
            {"topic": "orders", "partition": 7, "offset": 9},
        ],
    } == json.loads((tmp_path / "deleted").read_text(encoding="utf-8"))
    asked = (tmp_path / "asked").read_text(encoding="utf-8").split()
    assert ["--bootstrap-server", "b:9092", "--topic-partitions", "orders:0,orders:3"] == asked[:4]
    assert ("--time", 13) == (asked[4], len(asked[5]))


def test_a_move_takes_the_proposed_plan(tmp_path: Path) -> None:
    """It is the part after the second heading of what --generate prints."""
    prints = (
        'case $3 in --generate) printf \'Current partition replica assignment\\n{"old":1}\\n\\n'
        'Proposed partition reassignment configuration\\n{"new":1}\\n\';; '
        '*) cp "$5" executed;; esac'
    )
    lines = commands(ORDERS, AT_B, [1, 3])[2].lines
    run(tmp_path, lines, kafka_reassign_partitions=prints)
    assert {"new": 1} == json.loads((tmp_path / "executed").read_text(encoding="utf-8"))
    assert {"version": 1, "topics": [{"topic": "orders"}]} == json.loads(
        (tmp_path / "topics.json").read_text(encoding="utf-8")
    )
