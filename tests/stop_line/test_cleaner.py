"""Cleanings are a value of the seed; each comes some time after the line was reached."""

import asyncio

import pytest

from tests.stop_line.cleaner import Cleaner, Cleaning, cleanings

MB = 1_000_000
LIMIT, LINE = 150 * MB, 120 * MB


def test_the_same_seed_has_the_same_cleanings() -> None:
    """Enough for the duration, after 10 to 40 s; another seed has others."""
    plan = cleanings(1, 600.0, LIMIT, LINE)
    assert plan == cleanings(1, 600.0, LIMIT, LINE)
    assert plan != cleanings(2, 600.0, LIMIT, LINE)
    assert sum(each.after_s for each in plan) >= 600.0
    assert all(10.0 <= each.after_s <= 40.0 for each in plan)


def test_a_cleaning_ends_the_stop_or_the_throttle_too() -> None:
    """A tenth above the line and below the limit, or above both; both come."""
    little, much = sorted({each.available_bytes for each in cleanings(1, 600.0, LIMIT, LINE)})
    assert LINE * 1.1 < little < LIMIT < much


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
            500 * MB,
            LINE,
            available=lambda: self.available,
            retain=self.retain,
            note=self.say,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(cleaner.run())
            await asyncio.sleep(5.0)
            self.available = LINE


@pytest.mark.looptime
async def test_space_is_freed_some_time_after_the_line_was_reached() -> None:
    """Until so much is available; then the topic retains all again."""
    volume = Volume(frees=20 * MB)
    await volume.cleaned(Cleaning(10.0, 140 * MB))
    assert [
        "5 the volume is at the stop line",
        "15 space is freed, until 140 MB are available",
        "15 retains 342",
        "15 retains all",
    ] == volume.said


@pytest.mark.looptime
async def test_a_volume_that_frees_nothing_is_left_to_the_next_cleaning() -> None:
    """After half a minute."""
    volume = Volume(frees=19 * MB)
    await volume.cleaned(Cleaning(10.0, 140 * MB))
    assert ["45 space was not free within 30 s", "45 retains all"] == volume.said[-2:]
