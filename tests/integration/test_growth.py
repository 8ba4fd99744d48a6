"""Six causes fill the volumes of a real broker at once, and each byte is told by its cause.

A topic is written to, a compacted topic is too, a reassignment and a log-dir move bring replicas, a
foreign file lies there, and a deleted file is held open. The files of the broker say what is true.
A plan that overfills a volume is named, until the page's commands have cancelled it.
"""

import asyncio
import os
import re
import signal
from collections import Counter
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.protocol.api import Response
from aiokafka.protocol.types import CompactArray, Int16, Int32

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from sidecar.control.volume_contents import EVERY_S, VolumeContents
from sidecar.kafka.client.each_broker import Query, query_each
from sidecar.kafka.client.messages import (
    ERROR,
    STRING,
    THROTTLE_TIME,
    AdminRequest,
    array,
    message,
)
from sidecar.kafka.largest_topics import largest_topics
from sidecar.kafka.placements import placement
from sidecar.throttle.growth import Kind
from tests.support.client_quotas import admin_of
from tests.support.daemon import FULL_BYTES, Start, settings
from tests.support.documents import Document
from tests.support.kafka_tools import tools_path, type_in
from tests.support.waiting import SEEN_S, seen

MB = 1 << 20
SLOW = str(300_000)
"""Bytes a second of copies, so that both are still under way when the volumes are read."""

THROTTLES = (
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)

_INDEXES = CompactArray(Int32)
_Move, _ = message(
    "AlterReplicaLogDirs",
    34,
    2,
    request=(
        array("dirs", ("path", STRING), array("topics", ("name", STRING), ("indexes", _INDEXES))),
    ),
    response=(
        THROTTLE_TIME,
        array(
            "results",
            ("name", STRING),
            array("partitions", ("index", Int32), ("error_code", Int16)),
        ),
    ),
)
_Reassign, _ = message(
    "AlterPartitionReassignments",
    45,
    0,
    request=(
        ("timeout_ms", Int32),
        array(
            "topics",
            ("name", STRING),
            array("partitions", ("index", Int32), ("replicas", _INDEXES)),
        ),
    ),
    response=(
        THROTTLE_TIME,
        *ERROR,
        array("results", ("name", STRING), array("partitions", ("index", Int32), *ERROR)),
    ),
)


class Move(AdminRequest, versions=(_Move,)):
    """Copies partition 0 of a topic to another log dir of its broker."""

    NEEDED = "v2 (Kafka 2.7)"

    def __init__(self, topic: str, log_dir: str) -> None:
        self.values = ([(log_dir, [(topic, [0], {})], {})],)


class Reassign(AdminRequest, versions=(_Reassign,)):
    """Moves partition 0 of a topic to other brokers."""

    NEEDED = "v0 (Kafka 2.4)"

    def __init__(self, topic: str, brokers: Sequence[int]) -> None:
        self.values = (10_000, [(topic, [(0, list(brokers), {})], {})])


async def ask(kafka: Cluster, request: AdminRequest) -> None:
    """Sends a request to broker 0, which accepts it for its partition."""
    query = Query(request, "Alter")

    def error(_query: Query, response: Response, _broker_id: int) -> int:
        ((_topic, ((_index, code, *_more),), _tags),) = response.results
        return int(code)

    assert {0: 0} == await query_each(admin_of(kafka), [0], lambda _: query, error, 20.0)


async def write(kafka: Cluster, topic: str, nbytes: int) -> None:
    """Writes records that do not compress."""
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
        for key in range(nbytes // 500_000):
            await producer.send_and_wait(topic, os.urandom(500_000), str(key).encode(), 0)


def on_disk(kafka: Cluster, log_dir: str) -> Counter[tuple[Kind, str]]:
    """The bytes in a log dir of broker 0 by the names of its folders."""
    found: Counter[tuple[Kind, str]] = Counter()
    for file in Path(f"/proc/{kafka.brokers[0].pid}/root{log_dir}").rglob("*.log"):
        topic, _, rest = file.parent.name.rpartition("-0")
        kind = Kind.REASSIGNMENT if topic == "moved" else Kind.LEADER
        found[Kind.MOVE if rest.endswith("-future") else kind, topic] += file.stat().st_size
    return found


def true_bytes(kafka: Cluster) -> Counter[tuple[Kind, str]]:
    """The same for all log dirs of broker 0."""
    found: Counter[tuple[Kind, str]] = Counter()
    for volume in kafka.brokers[0].volumes:
        found += on_disk(kafka, volume.path)
    return found


async def test_each_byte_is_told_by_its_cause(kafka: Cluster) -> None:
    """The right cause is named for at least 95 % of the bytes of each, and the parts add up."""
    volumes = [volume.path for volume in kafka.brokers[0].volumes]
    async with Admin(kafka.bootstrap) as admin:
        for name, broker in (("orders", 0), ("state", 0), ("copied", 0), ("moved", 1)):
            throttled = "follower.replication.throttled.replicas"
            config = {throttled: "*"} if name == "moved" else {}
            if name == "state":
                # Nothing is compacted before a day has passed.
                config = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}
            await admin.create_topic(name, assignment=[[broker]], config=config)
        await admin.set_broker_config(0, dict.fromkeys(THROTTLES, SLOW))
    await asyncio.gather(write(kafka, "copied", 12 * MB), write(kafka, "moved", 12 * MB))
    reach = admin_of(kafka)
    contents = VolumeContents(
        lambda broker_id: largest_topics(reach, broker_id, 20.0),
        asyncio.get_running_loop().time,
        lambda broker_id, topics: placement(reach, broker_id, 20.0, topics),
        every_s=0.0,
    )
    reading = asyncio.create_task(contents.run())
    try:
        contents.request(0)
        first = await seen("a reading", lambda: (known := contents.known(0)) and known.splits)
        # Of the six causes.
        await asyncio.gather(write(kafka, "orders", 8 * MB), write(kafka, "state", 6 * MB))
        await kafka.occupy(0, 0, 10 * MB)
        held = f"exec 9>{volumes[1]}/held; head -c {7 * MB} /dev/zero >&9; rm {volumes[1]}/held"
        await kafka.run_beside("held", ["sh", "-c", f"{held}; exec sleep 60"], Path(os.devnull))
        here = next(path for path in volumes if on_disk(kafka, path)[Kind.LEADER, "copied"])
        await ask(kafka, Move("copied", next(path for path in volumes if path != here)))
        await ask(kafka, Reassign("moved", [0]))
        await seen("copies that began", lambda: _have_begun(true_bytes(kafka)))

        at_least = true_bytes(kafka)
        contents.request(0)
        await seen("parts", lambda: (known := contents.known(0)) and known.before is first)
        at_most = true_bytes(kafka)
    finally:
        reading.cancel()
        # Otherwise it would hold the volume's space, and the copies would stay slow.
        await kafka.signal_beside("held", signal.SIGKILL)
        async with Admin(kafka.bootstrap) as admin:
            await admin.set_broker_config(0, dict.fromkeys(THROTTLES, str(1 << 40)))
    known = contents.known(0)
    assert known is not None
    told: Counter[tuple[Kind, str]] = Counter()
    foreign = 0
    for split in known.splits.values():
        assert split.used_bytes == sum(part.size_bytes for part in split.parts)
        for part in split.parts:
            told[part.kind, part.topic] += part.size_bytes
        foreign += split.parts[-1].growth_bytes or 0
    assert {Kind.LEADER, Kind.MOVE, Kind.REASSIGNMENT} == {kind for kind, _ in at_least}
    for key, nbytes in at_least.items():
        # The copies go on meanwhile.
        assert 0.95 * nbytes <= told[key] <= at_most[key] / 0.95, (key, told, at_most)
    # The foreign file and the deleted one, which Kafka can't tell apart.
    assert 0.95 * 17 * MB <= foreign <= 17 * MB / 0.95


def _have_begun(sizes: Counter[tuple[Kind, str]]) -> bool:
    return min(sizes[Kind.MOVE, "copied"], sizes[Kind.REASSIGNMENT, "moved"]) >= MB


@pytest.mark.slow
async def test_the_daemon_tells_who_fills_a_full_volume(kafka: Cluster, start: Start) -> None:
    """Its API has the parts of the full volume soon, which add up to its used bytes."""
    daemon = await start(kafka, settings(kafka.bootstrap, BROKER_ID="0"))
    await daemon.decides(1.0)
    assert [] == (await daemon.get("/v1/growth"))["volumes"]
    await kafka.occupy(0, 0, FULL_BYTES)
    await daemon.decides(0.0)
    found = await seen(
        "the parts", lambda: daemon.get("/v1/growth"), lambda found: found["volumes"]
    )
    (volume,) = found["volumes"]
    assert (0, kafka.brokers[0].volumes[0].path) == (volume["broker_id"], volume["log_dir"])
    assert volume["used_bytes"] == sum(part["size_bytes"] for part in volume["parts"])
    assert ["no_partition"] == [each["kind"] for each in volume["parts"] if each["size_bytes"]]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_plan_that_overfills_a_volume_is_named_until_it_is_cancelled(
    kafka: Cluster, start: Start, tmp_path: Path
) -> None:
    """A reassignment and a log-dir move are, with what they lack; each printed command works."""
    path = await tools_path(kafka, tmp_path)
    async with Admin(kafka.bootstrap) as admin:
        for name, broker in (("copied", 0), ("moved", 1)):
            config = {"follower.replication.throttled.replicas": "*"}
            await admin.create_topic(name, assignment=[[broker]], config=config)
        await asyncio.gather(write(kafka, "copied", 12 * MB), write(kafka, "moved", 12 * MB))
        await admin.set_broker_config(0, dict.fromkeys(THROTTLES, "2000"))
        paths = [volume.path for volume in kafka.brokers[0].volumes]
        at = next(each for each in paths if not on_disk(kafka, each)[Kind.LEADER, "copied"])
        await kafka.occupy(0, paths.index(at), 20 * MB)
        daemon = await start(kafka, settings(kafka.bootstrap, BROKER_ID="0"))
        await daemon.decides(1.0)
        # The log dir with the fewest partitions gets it.
        await ask(kafka, Reassign("moved", [0]))
        await ask(kafka, Move("copied", at))

        async def overfilled() -> list[Document]:
            found = (await daemon.get("/v1/growth"))["volumes"]
            return [each for each in found if each["overfilled"]]

        (volume,) = await seen(
            "what both bring",
            overfilled,
            # A reading may come between the two.
            lambda found: "Reassignments and log-dir moves" in str(found),
            timeout_s=EVERY_S + SEEN_S,
        )
        kinds = {Kind.REASSIGNMENT, Kind.MOVE}
        came = sum(each["size_bytes"] for each in volume["parts"] if each["kind"] in kinds)
        assert (0, at, 0) == (volume["broker_id"], volume["log_dir"], volume["arriving_unknown"])
        # The plan brings two replicas of 12 MB to a volume with room for 4 MB.
        assert 0.95 * 24 * MB <= came + volume["arriving_bytes"] <= 24 * MB / 0.95
        metrics = await daemon.metrics()
        left = metrics.value("volume_headroom_after_arrivals_bytes", broker=0, log_dir=at)
        assert (left or 0) < 0
        await daemon.logs("still bring")
        page = (await daemon.ask("/")).text
        assert volume["overfilled"] in unescape(page).replace("\u00a0", " ")
        # Each is slowed, then cancelled.
        for line in re.findall(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL):
            # So that nothing arrives meanwhile, however slow the machine is.
            await type_in(unescape(line).replace("1000000", "2000"), path, tmp_path)
        await seen("its end", lambda: "fits now" in daemon.output, timeout_s=EVERY_S + SEEN_S)
        assert [] == await overfilled()
        assert 1 == daemon.output.count("still bring")
        await seen("nothing there", lambda: on_disk(kafka, at), lambda left: not left.total())
        await admin.set_broker_config(0, dict.fromkeys(THROTTLES, str(1 << 40)))
