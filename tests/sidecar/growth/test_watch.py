"""Which brokers are read, and what is then told over HTTP and as metrics."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from sidecar.control.metric_source import MetricSource
from sidecar.growth.capability import GrowthCapability
from sidecar.growth.metrics import growth_metrics
from sidecar.throttle.growth import Kind, Part
from sidecar.throttle.memory import VolumeState
from sidecar.throttle.readers import Report, Reserve
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.growth.build import MB, Scene
from tests.sidecar.requestlog.lines import parsed_line
from tests.sidecar.throttle.build import reading, whole

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


class Many:
    """Receiving brokers with these ids, of which a sidecar without an id reads five in a minute."""

    def __init__(self, *receiving: int) -> None:
        self.scene = Scene(None)
        self.scene.watch._receiving = frozenset(receiving)

    def read(self, at: float, left: Mapping[int, int]) -> list[int]:
        """The brokers that are requested when these megabytes are left of 100 on their volumes."""
        self.scene.clock.now = at
        volumes = [reading(each, at, {"/d": mb * MB}, total=100 * MB) for each, mb in left.items()]
        self.scene.board.observe(whole(at, volumes))
        self.scene.watch.look()
        due = [*self.scene.contents._due]
        self.scene.contents._due.clear()
        return due


def test_many_brokers_are_read_in_turn() -> None:
    """The fullest ones in each minute, and others meanwhile."""
    many = Many(*range(1, 13))
    left = {each: 50 - each for each in range(1, 13)}
    read = [many.read(60.0 * minute, left) for minute in range(4)]
    assert [[12, 11]] * 4 == [each[:2] for each in read]
    assert [*range(1, 11), 1, 2] == [broker_id for each in read for broker_id in each[2:]]


def test_lasting_brokers_leave_a_place_to_others() -> None:
    """Those that a plan overfills, or near their limits, are read in each minute."""
    many = Many(*range(1, 13))
    many.scene.watch._named = {(12, "/d"), (13, "/offline")}
    left = dict.fromkeys(range(1, 14), 50)
    assert [[12, 1, 2, 3, 4], [12, 1, 2, 5, 6]] == [many.read(at, left) for at in (0.0, 60.0)]
    left |= {6: 5, 7: 4}
    assert [[7, 6, 12, 1, 8], [7, 6, 12, 1, 9]] == [many.read(at, left) for at in (120.0, 180.0)]
    left |= {5: 3, 4: 2, 3: 1}
    assert [[3, 4, 5, 7, 10], [3, 4, 5, 7, 11], [3, 4, 5, 7, 12], [3, 4, 5, 7, 1]] == [
        many.read(60.0 * minute, left) for minute in (4, 5, 6, 7)
    ]


def test_five_in_a_minute_whatever_changes() -> None:
    """Brokers that are no candidates for a moment are not replaced."""
    many = Many(*range(1, 13))
    read = []
    for at in range(0, 60, 5):
        many.scene.watch._receiving = frozenset(range(1, 13)) - {1 + at // 5}
        read += many.read(float(at), {each: 50 - each + at for each in range(1, 13)})
    assert {12, 11, 2, 3, 4} == {*read}


async def test_once_a_minute_whoever_asks() -> None:
    """The watch looks more often, and a page asks too."""
    scene = Scene()
    await scene.read((95 * MB, {}))
    for scene.clock.now in (10.0, 30.0, 59.0):
        scene.watch.look()
        scene.contents.request(1)
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


@pytest.mark.parametrize(
    ("broker_id", "brokers", "named"),
    [
        (1, (1, 2), True),
        (None, (1,), True),
        # The log may be of either broker, or is of the other one.
        (None, (1, 2), False),
        (2, (1, 2), False),
    ],
)
async def test_writers_are_of_the_broker_whose_log_it_is(
    broker_id: int | None, brokers: tuple[int, ...], named: bool
) -> None:
    """Another broker's volume has no writers, since its log may have others."""
    scene = Scene(broker_id, brokers=brokers)
    await scene.read(GROWS[0])
    count_alice(scene)
    scene.contents.request(1)
    await scene.read(GROWS[1])
    (volume, *_) = [each for each in scene.watch.growing() if each.state.volume.broker_id == 1]
    assert ({"orders"} if named else set()) == volume.writers.keys()


def count_alice(scene: Scene) -> None:
    """Counts a line of the broker's request log, with what topic orders grows by."""
    scene.watch.writers.is_wanted = True
    topics = [{"topicId": "ID", "partitionData": [{"index": 0, "recordsSizeInBytes": 480_000}]}]
    line = parsed_line(0, request={"acks": -1, "topicData": topics})
    scene.watch.writers.count(line, 61.0)


async def test_the_route() -> None:
    """It has the parts with their writers, which add up to the volume's used bytes."""
    scene = Scene()
    count_alice(scene)
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
    assert [0, 0, 0, 0] == [len(metric.samples) for metric in growth_metrics(None)]


async def test_the_metrics() -> None:
    """Each part has its size and its growth; there are none once the volume has room."""
    scene = Scene()
    registry = CollectorRegistry()
    registry.register(MetricSource(partial(growth_metrics, scene.watch)))
    await scene.read(*GROWS)
    labels = {"broker": "1", "log_dir": "/d", "part": "leader", "topic": "orders"}

    def found(name: str) -> float | None:
        return registry.get_sample_value(f"kafka_throttle_volume_part_{name}", labels)

    assert (60_480_000, 8000) == (found("bytes"), found("growth_bytes_per_second"))
    # The topic's segments are deleted, and their files are still there.
    await scene.read((GROWS[1][0], {"orders": 0}))
    labels = {**labels, "part": "no_partition", "topic": ""}
    assert 0 == found("growth_bytes_per_second")
    await scene.read((50 * MB, {}), left=50 * MB)
    assert (None, None) == (found("bytes"), found("growth_bytes_per_second"))


PLAN: dict[str, Any] = {"arriving": {("orders", 0): (1, 3)}, "sizes": {("orders", 0): 60 * MB}}
"""Broker 1 gets a replica of 60 MB; its volume of 100 MB has a limit of 10 MB."""


@pytest.mark.parametrize("broker_id", [1, None])
async def test_a_plan_that_overfills_a_volume(
    broker_id: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named although the volume is far from its limit, and logged once, until it has ended.

    5 MB have arrived, and 40 MB are left above the limit, so 15 MB are too much.
    """
    caplog.set_level(logging.INFO, "sidecar.growth.watch")
    scene = Scene(broker_id, **PLAN)
    registry = CollectorRegistry()
    registry.register(MetricSource(partial(growth_metrics, scene.watch)))
    sidecar = FakeSidecar(growth=GrowthCapability(scene.watch, lambda steady_s: steady_s))
    text = "Reassignments still bring 55.0 MB to /d of broker 1, which has 40.0 MB left"
    text += " above its limit"
    for _ in range(2):
        await scene.read((50 * MB, {"orders": 5 * MB}), left=50 * MB)
        (volume,) = (await sidecar.get("/v1/growth")).json()["volumes"]
        assert (text, 55 * MB, 0, -15 * MB, 0.0) == (
            volume["overfilled"],
            volume["arriving_bytes"],
            volume["arriving_unknown"],
            volume["headroom_after_arrivals_bytes"],
            volume["seconds_to_limit"],
        )
        name = "kafka_throttle_volume_headroom_after_arrivals_bytes"
        assert -15 * MB == registry.get_sample_value(name, {"broker": "1", "log_dir": "/d"})
    assert [f"{text}. The status page has the commands that slow or cancel it"] == caplog.messages
    scene.arriving = {}
    await scene.read((50 * MB, {}), left=50 * MB)
    assert [] == list(scene.watch.growing())
    assert "what arrives at /d of broker 1 fits now" == caplog.messages[1]
    assert [1, 1, 1] == scene.asked == scene.moves


@pytest.mark.parametrize("lost", ["answer", "sizes", "arriving"])
async def test_a_plan_is_still_named_while_something_can_not_be_read(
    lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What was known of it counts for 3 minutes, also where one leader's size is missing."""
    scene = Scene(**PLAN)
    reads = (50 * MB, {"orders": 5 * MB})
    await scene.read(reads, left=50 * MB)
    (known,) = scene.watch.growing()
    scene.lost = lost
    for _ in range(2):
        await scene.read(reads, left=50 * MB)
        (told,) = scene.watch.growing()
        assert known.overfilled == told.overfilled != ""
    for _ in range(2):
        await scene.read(reads, left=50 * MB)
    assert [] == [each for each in scene.watch.growing() if each.overfilled]
    assert 1 == len(caplog.messages)


async def test_a_plan_that_fits_is_demand_in_the_forecast() -> None:
    """Nothing is named. The room that it leaves lasts at the growth of everything else."""
    scene = Scene(**PLAN)
    # In a minute 1 MB arrived, and 600 kB more are of no partition; 25 MB are left above the limit.
    for used, orders in ((63_400_000, 49 * MB), (65 * MB, 50 * MB)):
        await scene.read((used, {"orders": orders}))
    (found,) = scene.watch.growing()
    assert ("", 15 * MB, 1500.0) == (found.overfilled, found.left_bytes, found.seconds_left)


@pytest.mark.parametrize(("other", "is_said"), [(5 * MB, False), (6 * MB, True)])
async def test_producers_fill_another_log_dir(other: int, is_said: bool) -> None:
    """If it has the same sizes it is on the same file system, and a throttle stops the growth."""
    scene = Scene(other=other)
    for minute in range(3):
        used = 95 * MB + minute * MB
        await scene.read((used, {"orders": 10 * MB, "clicks": 20 * MB + minute * MB}))
    told = {each.state.volume.log_dir: each.unthrottled for each in scene.watch.growing()}
    assert {"/d": is_said, "/e": False} == {log_dir: bool(why) for log_dir, why in told.items()}


async def test_states_are_not_compared_with_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of volumes that takes seconds, in which no callback gets an answer."""
    scene = Scene(brokers=(1, 2, 3))
    await scene.read(*GROWS)
    scene.watch._receiving = frozenset({1, 2, 3})
    compared: list[object] = []

    def compare(_: VolumeState, other: object) -> bool:
        compared.append(other)
        return False

    monkeypatch.setattr(VolumeState, "__eq__", compare)
    scene.watch.look()
    assert 1 == len(list(scene.watch.growing()))
    assert [] == compared


@pytest.mark.parametrize(("more", "due"), [({}, []), ({"/e": 50 * MB}, [1])])
async def test_log_dir_moves_are_looked_for_a_day_ahead(
    more: dict[str, int], due: list[int]
) -> None:
    """Only a broker with several volumes has such moves; /d reaches its limit in 7 hours."""
    scene = Scene()
    for at, left in ((0.0, 50 * MB), (60.0, 50 * MB - 100_000)):
        scene.board.observe(whole(at, [reading(1, at, {"/d": left, **more}, total=100 * MB)]))
    scene.watch.look()
    assert due == list(scene.contents._due)


async def test_nothing_is_said_of_what_is_not_known() -> None:
    """A leader that can't be read: its partition is only counted."""
    scene = Scene(arriving=PLAN["arriving"])
    await scene.read((95 * MB, {"orders": 5 * MB}))
    (found,) = scene.watch.growing()
    assert ("", 0, 1) == (found.overfilled, found.arriving.total_bytes, found.arriving.unknown)
