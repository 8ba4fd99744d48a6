"""Ids count when they are seen to write; what can't be read is reported and counts for nobody."""

import asyncio
import logging

import pytest

from sidecar.producer_ids import active_watch
from sidecar.producer_ids.active_watch import LONGEST_PAUSE_S
from sidecar.quotas.producer_ids.active_ids import FRESH_MS, WAIT_MS
from tests.sidecar.producer_ids.build import CLICKS, ORDERS, REFUSED, SILENT, WatchScene, packed


async def test_an_id_counts_when_it_writes() -> None:
    """It does not when it is allocated; other sidecars get one report, with its owner."""
    scene = WatchScene()
    await scene.see()
    scene.watch.allocated("bob", 7)
    assert [] == scene.counted
    await scene.see((7, 0))
    await scene.see((7, 1))
    assert [("bob", 7)] == scene.counted == scene.reported
    assert 1 == scene.watch.active
    await scene.see((7, 1))
    assert 0 == scene.watch.active


async def test_a_topic_that_can_be_read_only_now_counts_for_nobody() -> None:
    """READ was granted: its producers are those of a day. An id of the last minute counts."""
    scene = WatchScene()
    for producer_id in range(1000):
        scene.watch.allocated("bob", producer_id)
    await scene.see()
    scene.later(FRESH_MS / 1000 + 0.1)
    scene.watch.allocated("bob", 1000)
    await scene.see(*((each, 0) for each in range(1001)), at=CLICKS)
    assert [("bob", 1000)] == scene.counted == scene.reported


@pytest.mark.parametrize(
    ("later_s", "expected"), [(WAIT_MS / 1000, [("bob", 7)]), (WAIT_MS / 1000 + 0.1, [])]
)
async def test_an_owner_who_is_reported_just_after_a_first_scan_is_charged_then(
    later_s: float, expected: list[tuple[str, int]]
) -> None:
    """A producer wrote to a new topic and ended, and the request log was read after the scan."""
    scene = WatchScene()
    await scene.see((7, 0), (8, 0))
    scene.later(later_s)
    for _ in range(2):
        scene.watch.allocated("bob", 7)
    assert expected == scene.counted == scene.reported
    await scene.see((7, 1), (8, 0))
    assert [("bob", 7)] == scene.counted == scene.reported


async def test_what_a_first_scan_saw_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ids stay until they are too old. They are never ids of unknown owner."""
    monkeypatch.setattr(active_watch, "_MOST_SEEN_FIRST", 2)
    scene = WatchScene()
    await scene.see((1, 0), (2, 0), (3, 0))
    await scene.see((4, 0), at=CLICKS)
    for producer_id in (1, 2, 3, 4):
        scene.watch.allocated("bob", producer_id)
    assert [("bob", 1), ("bob", 2)] == scene.counted
    scene.later(WAIT_MS / 1000 + 0.1)
    await scene.see((5, 0), at=("new", 0))
    scene.watch.allocated("bob", 5)
    assert ("bob", 5) == scene.counted[-1]
    assert 0 == scene.watch.ids.unowned


async def test_a_topic_that_could_not_be_read_for_a_day_counts_for_nobody() -> None:
    """It has been scanned before, but the ids that it has since then are older than a window."""
    scene = WatchScene()
    await scene.see()
    scene.watch.allocated("bob", 7)
    scene.source.written, scene.source.failures = {}, {ORDERS: REFUSED}
    scene.later(86_400.0)
    await scene.watch.scan()
    await scene.see((7, 0))
    assert [] == scene.counted
    await scene.see((7, 1))
    assert [("bob", 7)] == scene.counted


async def test_an_owner_who_is_reported_late_is_charged_then() -> None:
    """It is reported to the others at once that the id wrote, since they may know its owner."""
    scene = WatchScene()
    await scene.see()
    await scene.see((7, 0))
    assert ([], [(None, 7)]) == (scene.counted, scene.reported)
    scene.watch.allocated("bob", 7)
    assert ([("bob", 7)], [(None, 7)]) == (scene.counted, scene.reported)


async def test_an_id_that_another_sidecar_saw_counts_here_too() -> None:
    """It counts for its owner if that is known here, and is not reported again."""
    scene = WatchScene()
    scene.watch.allocated("bob", 7)
    scene.watch.wrote(7)
    scene.watch.wrote(8)
    assert ([("bob", 7)], []) == (scene.counted, scene.reported)
    scene.watch.allocated("eve", 8)
    assert ("eve", 8) == scene.counted[-1]


async def test_an_id_that_writes_to_two_partitions_is_one() -> None:
    """It counts once and is one active id."""
    scene = WatchScene()
    scene.watch.allocated("bob", 7)
    await scene.see()
    await scene.see(at=CLICKS)
    scene.source.written = {ORDERS: packed((7, 0)), CLICKS: packed((7, 4))}
    await scene.watch.scan()
    assert ([("bob", 7)], 1) == (scene.counted, scene.watch.active)


async def test_a_partition_that_left_is_scanned_for_the_first_time_when_it_is_back() -> None:
    """What its producers wrote meanwhile was reported by another sidecar."""
    scene = WatchScene()
    scene.watch.allocated("bob", 7)
    scene.later(FRESH_MS / 1000 + 0.1)
    await scene.see((7, 0))
    scene.source.partitions = {0: [CLICKS]}
    scene.source.written = {}
    await scene.watch.scan()
    scene.source.partitions = {0: [ORDERS, CLICKS]}
    await scene.see((7, 9))
    assert [] == scene.counted


async def test_what_cannot_be_read_is_reported_once_by_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its end is reported once, too; the other partitions count."""
    caplog.set_level(logging.INFO)
    scene = WatchScene()
    scene.source.failures = {CLICKS: REFUSED}
    scene.watch.allocated("bob", 7)
    await scene.see()
    await scene.see((7, 0))
    assert [("bob", 7)] == scene.counted
    scene.source.failures = {CLICKS: REFUSED, ("clicks", 1): SILENT}
    await scene.watch.scan()
    scene.source.failures = {CLICKS: SILENT}
    await scene.watch.scan()
    scene.source.failures = {}
    await scene.watch.scan()
    await scene.watch.scan()
    assert [logging.WARNING, logging.WARNING, logging.INFO] == [
        record.levelno for record in caplog.records
    ]
    assert "READ on the topics" in caplog.records[0].getMessage()
    assert "throttle no user" in caplog.records[0].getMessage()
    assert "no answer" in caplog.records[1].getMessage()


async def test_nobody_can_be_asked(caplog: pytest.LogCaptureFixture) -> None:
    """Then nothing was read, and nobody is charged."""
    scene = WatchScene()
    scene.watch.allocated("bob", 7)
    await scene.see()
    scene.source.failure = SILENT
    await scene.see((7, 0))
    assert (None, SILENT, []) == (scene.watch.last_scan, scene.watch.failure, scene.counted)
    assert ["WARNING"] == [record.levelname for record in caplog.records]
    scene.source.failure = None
    await scene.see((7, 0))
    assert (None, [("bob", 7)]) == (scene.watch.failure, scene.counted)


async def test_partitions_that_are_too_many_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The message names the setting that helps."""
    scene = WatchScene()
    scene.source.skipped = 5
    await scene.watch.scan()
    await scene.watch.scan()
    assert ["5 partitions"] == [record.getMessage()[:12] for record in caplog.records]
    assert "SIDECAR_BROKER_ID" in caplog.text


async def scan_times(scene: WatchScene, until_s: float) -> list[float]:
    """When it scans, from the first time on."""
    scene.clock = asyncio.get_running_loop().time
    task = asyncio.create_task(scene.watch.run())
    await asyncio.sleep(until_s)
    task.cancel()
    return [each - scene.source.scanned_at[0] for each in scene.source.scanned_at]


@pytest.mark.looptime
async def test_a_scan_that_takes_long_is_followed_by_a_long_pause() -> None:
    """Scans take a tenth of the time at most, unless one takes minutes."""
    quick, slow, endless = WatchScene(), WatchScene(), WatchScene()
    slow.source.took_s = 1.0
    endless.source.took_s = 100.0
    assert [0.0, 2.0, 4.0] == pytest.approx(await scan_times(quick, 5.0))
    assert [0.0, 10.0, 20.0] == pytest.approx(await scan_times(slow, 25.0))
    assert [0.0, 100.0 + LONGEST_PAUSE_S] == pytest.approx(await scan_times(endless, 150.0))


@pytest.mark.looptime
async def test_who_is_not_to_scan_asks_nobody_and_begins_anew() -> None:
    """What wrote meanwhile was reported by observers, also on partitions that were new by then."""
    scene = WatchScene()
    scene.later(-1000.0 - 2 * FRESH_MS / 1000)
    scene.watch.allocated("bob", 7)
    scene.source.written = {ORDERS: packed((7, 0))}
    assert 2 == len(await scan_times(scene, 3.0))
    scene.is_wanted = False
    assert 2 == len(await scan_times(scene, 60.0))
    assert (False, None, 0) == (scene.watch.is_scanning, scene.watch.last_scan, scene.watch.active)
    scene.is_wanted = True
    scene.source.failure = SILENT
    await scan_times(scene, 1.0)
    scene.source.failure = None
    scene.source.written = {ORDERS: packed((7, 5)), CLICKS: packed((7, 5))}
    await scan_times(scene, 1.0)
    assert (True, []) == (scene.watch.is_scanning, scene.counted)
    scene.source.written = {ORDERS: packed((7, 6)), CLICKS: packed((7, 5))}
    await scan_times(scene, 3.0)
    assert [("bob", 7)] == scene.counted


@pytest.mark.looptime
async def test_time_passes_for_ids_without_an_owner() -> None:
    """Ten seconds after an id wrote it is of unknown owner."""
    scene = WatchScene()
    scene.source.written = {ORDERS: packed()}
    await scene.watch.scan()
    scene.source.written = {ORDERS: packed((7, 0))}
    await scan_times(scene, WAIT_MS / 1000 - 1)
    assert 0 == scene.watch.ids.unknown
    await scan_times(scene, WAIT_MS / 1000 + 1)
    assert 1 == scene.watch.ids.unknown
