"""Which brokers are read, and what is then told over HTTP and as metrics."""

import pytest
from prometheus_client import CollectorRegistry

from sidecar.growth.capability import GrowthCapability
from sidecar.growth.metrics import GrowthCollector
from sidecar.throttle.growth import Kind, Part
from sidecar.throttle.readers import Report, Reserve
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.growth.build import MB, Scene
from tests.sidecar.requestlog.lines import parsed_line

GROWS = ((95 * MB, {"orders": 60 * MB}), (95 * MB + 600_000, {"orders": 60 * MB + 480_000}))
"""In a minute the topic grows by 480 kB, and the rest by 120 kB."""


@pytest.mark.parametrize(
    ("broker_id", "is_observer", "left", "asked"),
    [
        # The broker beside it alone, or all where none is known; followers read none.
        (1, True, 5 * MB, [1]),
        (None, True, 5 * MB, [1, 2]),
        (None, False, 5 * MB, []),
        (3, True, 5 * MB, []),
        # No volume is near its limit.
        (None, True, 50 * MB, []),
    ],
)
async def test_which_brokers_are_read(
    broker_id: int | None, is_observer: bool, left: int, asked: list[int]
) -> None:
    """A broker with a volume near its limit is, by its own sidecar if it has one."""
    scene = Scene(broker_id, is_observer)
    await scene.read((95 * MB, {}), left=left)
    assert asked == scene.asked


async def test_once_a_minute_whoever_asks() -> None:
    """The watch looks more often, and a page asks too."""
    scene = Scene()
    await scene.read((95 * MB, {}))
    for scene.clock.now in (10.0, 30.0, 59.0):
        scene.watch.look()
        scene.contents.of(1)
    await scene.read()
    assert [1] == scene.asked


async def test_no_volume_is_near() -> None:
    """Its parts are no longer told, although they are remembered; nor are those of old readings."""
    scene = Scene()
    await scene.read(*GROWS)
    assert 1 == len(list(scene.watch.growing()))
    scene.clock.now += 200.0
    assert [] == list(scene.watch.growing())
    await scene.read((50 * MB, {}), left=50 * MB)
    assert [] == list(scene.watch.growing())


async def test_the_last_parts_are_told_until_the_next_are_known() -> None:
    """Otherwise the metrics would be gone for a moment in each minute."""
    scene = Scene()
    await scene.read(*GROWS)
    scene.places.clear()
    await scene.read(GROWS[1])
    assert [1] * 3 == scene.asked
    (told,) = scene.watch.growing()
    assert 600_000 == told.split.growth_bytes


async def test_a_reserve_is_a_part_of_its_own() -> None:
    """Of the volume whose broker reports it here; the sums stay."""
    scene = Scene()
    await scene.read(*GROWS)
    (before,) = scene.watch.growing()
    for log_dir, nbytes in (("/other", 8 * MB), (before.state.volume.log_dir, 99 * MB)):
        report = Report(1, False, 0, reserves=(Reserve(log_dir, nbytes),))
        scene.watch.board.readers.record(report, None, 0.0)
        assert [before] == list(scene.watch.growing())
    report = Report(1, False, 0, reserves=(Reserve(before.state.volume.log_dir, 8 * MB),))
    scene.watch.board.readers.record(report, None, 0.0)
    (told,) = scene.watch.growing()
    *others, reserve, rest = told.split.parts
    assert Part(Kind.RESERVE, "", 8 * MB, 0) == reserve
    was = before.split.parts[-1]
    assert Part(Kind.NO_PARTITION, "", was.size_bytes - 8 * MB, was.growth_bytes) == rest
    assert [*before.split.parts[:-1]] == others


async def test_the_route() -> None:
    """It has the parts with their writers, which add up to the volume's used bytes."""
    scene = Scene()
    scene.watch.writers.is_wanted = True
    topics = [{"topicId": "ID", "partitionData": [{"index": 0, "recordsSizeInBytes": 480_000}]}]
    line = parsed_line(0, request={"topicData": topics})
    scene.watch.writers.count(line, 61.0)
    await scene.read(*GROWS)
    sidecar = FakeSidecar(growth=GrowthCapability(scene.watch, lambda steady_s: steady_s))
    (volume,) = (await sidecar.get("/v1/growth")).json()["volumes"]
    topic, rest = volume["parts"]
    assert (1, "/d", 95_600_000, 10_000.0, 60.0) == (
        volume["broker_id"],
        volume["log_dir"],
        volume["used_bytes"],
        volume["growth_bytes_per_second"],
        volume["seconds"],
    )
    assert ("leader", "orders", 60_480_000, 8000.0, 0.8) == (
        topic["kind"],
        topic["topic"],
        topic["size_bytes"],
        topic["growth_bytes_per_second"],
        topic["share_of_growth"],
    )
    assert [("alice", 8136)] == [
        (each["user"], round(each["bytes_per_second"])) for each in topic["writers"]
    ]
    assert ("no_partition", None, 35_120_000, []) == (
        rest["kind"],
        rest["topic"],
        rest["size_bytes"],
        rest["writers"],
    )
    assert "" == volume["unthrottled"]
    text = "topic orders (partitions led here) grows by 8.0 kB/s, 80 % of the growth"
    assert f"{text}; written by alice" == volume["sentence"]


async def test_without_brokers() -> None:
    """The route and the metrics exist."""
    sidecar = FakeSidecar()
    assert [] == (await sidecar.get("/v1/growth")).json()["volumes"]
    assert [0, 0, 0] == [len(metric.samples) for metric in GrowthCollector(None).collect()]


async def test_the_metrics() -> None:
    """Each part has its size and its growth; there are none once the volume has room."""
    scene = Scene()
    registry = CollectorRegistry()
    registry.register(GrowthCollector(scene.watch))
    await scene.read(*GROWS)
    labels = {"broker": "1", "log_dir": "/d", "part": "leader", "topic": "orders"}

    def found(name: str) -> float | None:
        return registry.get_sample_value(f"kafka_throttle_volume_part_{name}", labels)

    assert (60_480_000, 8000) == (found("bytes"), found("growth_bytes_per_second"))
    await scene.read((50 * MB, {}), left=50 * MB)
    assert (None, None) == (found("bytes"), found("growth_bytes_per_second"))
