"""Ids count when they are seen to write, and what can't be seen is said and counts for nobody."""

import asyncio
import logging

import pytest

from sidecar.producer_ids.active_watch import LONGEST_PAUSE_S
from sidecar.quotas.producer_ids.active_ids import WAIT_MS
from tests.producer_ids.build import CLICKS, ORDERS, REFUSED, SILENT, Looking, packed


async def test_an_id_counts_when_it_writes() -> None:
    """Not when it is given; the other sidecars are told once of it, with its owner."""
    looking = Looking()
    await looking.see()
    looking.watch.allocated("bob", 7)
    assert [] == looking.counted
    await looking.see((7, 0))
    await looking.see((7, 1))
    assert [("bob", 7)] == looking.counted == looking.told
    assert 1 == looking.watch.active
    await looking.see((7, 1))
    assert 0 == looking.watch.active


async def test_what_is_active_when_the_sidecar_starts_counts_for_nobody() -> None:
    """Though owners be known; a partition that is new itself has no past."""
    looking = Looking()
    looking.watch.allocated("bob", 7)
    looking.watch.allocated("bob", 8)
    await looking.see((7, 0))
    assert [] == looking.counted == looking.told
    looking.source.new = {CLICKS}
    await looking.see((8, 0), at=CLICKS)
    assert [("bob", 8)] == looking.counted


async def test_an_owner_who_is_reported_late_is_charged_then() -> None:
    """The others are told at once that it wrote, since they may know whose it is."""
    looking = Looking()
    await looking.see()
    await looking.see((7, 0))
    assert ([], [(None, 7)]) == (looking.counted, looking.told)
    looking.watch.allocated("bob", 7)
    assert ([("bob", 7)], [(None, 7)]) == (looking.counted, looking.told)


async def test_an_id_that_another_sidecar_saw_counts_here_too() -> None:
    """For its owner if that is known here; it is not told again."""
    looking = Looking()
    looking.watch.allocated("bob", 7)
    looking.watch.wrote(7)
    looking.watch.wrote(8)
    assert ([("bob", 7)], []) == (looking.counted, looking.told)
    looking.watch.allocated("eve", 8)
    assert ("eve", 8) == looking.counted[-1]


async def test_an_id_that_writes_to_two_partitions_is_one() -> None:
    """It counts once and is one that is active."""
    looking = Looking()
    looking.watch.allocated("bob", 7)
    await looking.see()
    await looking.see(at=CLICKS)
    looking.source.written = {ORDERS: packed((7, 0)), CLICKS: packed((7, 4))}
    await looking.watch.scan()
    assert ([("bob", 7)], 1) == (looking.counted, looking.watch.active)


async def test_a_partition_that_left_is_looked_at_for_the_first_time_when_it_is_back() -> None:
    """What its producers wrote meanwhile, another sidecar has told."""
    looking = Looking()
    looking.watch.allocated("bob", 7)
    await looking.see((7, 0))
    looking.source.partitions = {0: [CLICKS]}
    looking.source.written = {}
    await looking.watch.scan()
    looking.source.partitions = {0: [ORDERS, CLICKS]}
    await looking.see((7, 9))
    assert [] == looking.counted


async def test_what_cannot_be_seen_is_reported_once_by_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And once when it is over; the other partitions count."""
    caplog.set_level(logging.INFO)
    looking = Looking()
    looking.source.failures = {CLICKS: REFUSED}
    looking.watch.allocated("bob", 7)
    await looking.see()
    await looking.see((7, 0))
    assert [("bob", 7)] == looking.counted
    looking.source.failures = {CLICKS: REFUSED, ("clicks", 1): SILENT}
    await looking.watch.scan()
    looking.source.failures = {CLICKS: SILENT}
    await looking.watch.scan()
    looking.source.failures = {}
    await looking.watch.scan()
    await looking.watch.scan()
    assert [logging.WARNING, logging.WARNING, logging.INFO] == [
        record.levelno for record in caplog.records
    ]
    assert "READ on the topics" in caplog.records[0].getMessage()
    assert "counts for nobody" in caplog.records[0].getMessage()
    assert "no answer" in caplog.records[1].getMessage()


async def test_nobody_can_be_asked(caplog: pytest.LogCaptureFixture) -> None:
    """Then nothing was seen, and nobody is charged."""
    looking = Looking()
    looking.watch.allocated("bob", 7)
    await looking.see()
    looking.source.failure = SILENT
    await looking.see((7, 0))
    assert (None, SILENT, []) == (looking.watch.last_scan, looking.watch.failure, looking.counted)
    assert ["WARNING"] == [record.levelname for record in caplog.records]
    looking.source.failure = None
    await looking.see((7, 0))
    assert (None, [("bob", 7)]) == (looking.watch.failure, looking.counted)


async def test_partitions_that_are_too_many_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With the setting that helps."""
    looking = Looking()
    looking.source.skipped = 5
    await looking.watch.scan()
    await looking.watch.scan()
    assert ["5 partitions"] == [record.getMessage()[:12] for record in caplog.records]
    assert "SIDECAR_BROKER_ID" in caplog.text


async def look_times(looking: Looking, until_s: float) -> list[float]:
    """When it looks, from the first time on."""
    looking.clock = asyncio.get_running_loop().time
    task = asyncio.create_task(looking.watch.run())
    await asyncio.sleep(until_s)
    task.cancel()
    return [each - looking.source.looks[0] for each in looking.source.looks]


@pytest.mark.looptime
async def test_a_scan_that_takes_long_is_followed_by_a_long_pause() -> None:
    """A tenth of the time at most is spent in looks, unless one takes minutes."""
    quick, slow, endless = Looking(), Looking(), Looking()
    slow.source.took_s = 1.0
    endless.source.took_s = 100.0
    assert [0.0, 2.0, 4.0] == pytest.approx(await look_times(quick, 5.0))
    assert [0.0, 10.0, 20.0] == pytest.approx(await look_times(slow, 25.0))
    assert [0.0, 100.0 + LONGEST_PAUSE_S] == pytest.approx(await look_times(endless, 150.0))


@pytest.mark.looptime
async def test_time_passes_for_ids_without_an_owner() -> None:
    """Ten seconds after one wrote it is of unknown owner."""
    looking = Looking()
    looking.source.new = {ORDERS}
    looking.source.written = {ORDERS: packed((7, 0))}
    await look_times(looking, WAIT_MS / 1000 - 1)
    assert 0 == looking.watch.ids.unknown
    await look_times(looking, WAIT_MS / 1000 + 1)
    assert 1 == looking.watch.ids.unknown
