"""Cleanings are a value of the seed; each comes some time after the line was reached."""

import asyncio

import pytest

from tests.chaos.cleaner import Cleaner, Cleaning
from tests.chaos.stop_line import cleanings

MB = 1_000_000
LIMIT, LINE, TOTAL = 150 * MB, 120 * MB, 500 * MB


def test_the_same_seed_has_the_same_cleanings() -> None:
    """Enough for the duration, after 10 to 40 s; another seed has others."""
    plan = cleanings(1, 600.0, LIMIT, LINE, TOTAL)
    assert plan == cleanings(1, 600.0, LIMIT, LINE, TOTAL)
    assert plan != cleanings(2, 600.0, LIMIT, LINE, TOTAL)
    assert sum(each.after_s for each in plan) >= 600.0
    assert all(10.0 <= each.after_s <= 40.0 for each in plan)


def test_a_cleaning_ends_the_stop_or_the_throttle_too() -> None:
    """A tenth above the line and below the limit, or above both; both come."""
    little, much = sorted({each.available for each in cleanings(1, 600.0, LIMIT, LINE, TOTAL)})
    assert LINE * 1.1 < little < LIMIT < much
    kept = {(TOTAL - each) * 0.95 for each in (little, much)}
    assert kept == {each.retained for each in cleanings(1, 600.0, LIMIT, LINE, TOTAL)}


class Volume:
    """512 MB of which a topic retains what it is told to."""

    def __init__(self, frees: int) -> None:
        self.available = 200 * MB
        self.frees = frees
        self.said: list[str] = []

    async def retain(self, keep: int) -> None:
        self.say(f"retains {keep / MB:g}" if keep >= 0 else "retains all")
        if keep >= 0:
            self.available += self.frees

    def say(self, words: str) -> None:
        self.said.append(f"{asyncio.get_running_loop().time():.0f} {words}")

    async def cleaned(self, *plan: Cleaning) -> None:
        cleaner = Cleaner(
            plan,
            is_full=lambda: self.available <= LINE,
            is_free=lambda cleaning: self.available >= cleaning.available,
            retain=self.retain,
            note=self.say,
            where="stop line",
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(cleaner.run())
            await asyncio.sleep(5.0)
            self.available = LINE


@pytest.mark.looptime
async def test_space_is_freed_some_time_after_the_line_was_reached() -> None:
    """Until so much is available; then the topic retains all again."""
    volume = Volume(frees=20 * MB)
    await volume.cleaned(Cleaning(10.0, 342 * MB, 140 * MB))
    assert [
        "5 a volume is at its stop line",
        "15 space is freed, 10.0 s after the crossing, until 140 MB are available",
        "15 retains 342",
        "15 no volume is at its stop line any more",
        "15 retains all",
    ] == volume.said


@pytest.mark.slow
@pytest.mark.looptime
async def test_a_volume_that_frees_nothing_is_left_to_the_next_cleaning() -> None:
    """After half a minute."""
    volume = Volume(frees=19 * MB)
    await volume.cleaned(Cleaning(10.0, 342 * MB, 140 * MB))
    assert ["45 space was not free within 30 s", "45 retains all"] == volume.said[-2:]
