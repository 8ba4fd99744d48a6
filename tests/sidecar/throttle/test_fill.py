"""How fast a volume fills: the published rate, and the faster one that the schedule uses."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.throttle.fill import (
    LONGEST_S,
    LONGEST_WINDOW_S,
    WINDOW_S,
    Fill,
    first_fill,
    next_fill,
    rate_over,
    seconds_to,
)
from tests.sidecar.throttle.build import LONG_MAX
from tests.support.examples import mostly_slow

LONGEST_TRAIL = 45


def filled(*marks: tuple[float, int]) -> Fill:
    """The fill after readings (seconds, used bytes)."""
    fill = first_fill(*marks[0])
    for mark in marks[1:]:
        fill = next_fill(fill, *mark)
    return fill


def rates(fill: Fill) -> tuple[float | None, float | None]:
    return fill.bytes_per_second, fill.fastest_bytes_per_second


def test_no_rate_after_one_reading() -> None:
    """One reading shows no rate: unknown is not zero."""
    assert (None, None) == rates(first_fill(0.0, 100))


def test_docstring_example() -> None:
    """100 bytes at 0 s and 300 at 10 s: 20 bytes/s, and 200 bytes of headroom last 10 s."""
    fill = filled((0.0, 100), (10.0, 300))
    assert (20.0, 20.0) == rates(fill)
    assert 10.0 == seconds_to(400 - 200, fill.bytes_per_second)


def test_rate_is_over_the_window() -> None:
    """Filling at 10 bytes/s for 20 s, then at 100: after 5 s only the 100 is left."""
    slow = [(float(at), 10 * at) for at in range(21)]
    fast = [(20.0 + at, 200 + 100 * at) for at in range(1, 6)]
    assert (10.0, 10.0) == rates(filled(*slow))
    halfway = filled(*slow, *fast[:2])
    assert ((200 + 200 - 170) / 5, 100.0) == rates(halfway)
    assert (100.0, 100.0) == rates(filled(*slow, *fast))


def test_slow_polls_publish_the_slope_of_the_last_two() -> None:
    """With a minute between readings an earlier minute does not count."""
    assert (5.0, 5.0) == rates(filled((0.0, 0), (60.0, 6000), (120.0, 6300)))


def test_burst_shows_at_once_in_the_faster_rate() -> None:
    """A burst within the window raises the published rate a little, the faster one fully."""
    fill = filled((0.0, 0), (1.0, 0), (2.0, 0), (3.0, 0), (4.0, 0), (4.5, 1000))
    assert (1000 / 4.5, 2000.0) == rates(fill)


def test_lull_does_not_blind() -> None:
    """One quiet interval within the window leaves the published rate as the faster one."""
    fill = filled((0.0, 0), (1.0, 1000), (2.0, 2000), (3.0, 2000))
    assert (2000 / 3, 2000 / 3) == rates(fill)


def test_long_lull_is_still() -> None:
    """A window without news is a rate of 0: known, and not filling."""
    fill = filled((0.0, 0), (1.0, 1000), (6.0, 1000), (11.0, 1000))
    assert (0.0, 0.0) == rates(fill)


def test_emptying_is_negative() -> None:
    """A volume that empties has a negative rate."""
    fill = filled((0.0, 1000), (1.0, 400))
    assert (-600.0, -600.0) == rates(fill)


def test_filling_again_after_emptying_shows_at_once() -> None:
    """The faster rate is that of the last two readings while the window still has the emptying."""
    fill = filled((0.0, 1000), (1.0, 400), (2.0, 500))
    assert (-250.0, 100.0) == rates(fill)


@pytest.mark.parametrize("at", [10.0, 9.0])
def test_reading_that_is_not_later_replaces_nothing(at: float) -> None:
    """Equal times have no slope, and time going backwards has a wrong one."""
    fill = filled((0.0, 0), (10.0, 100))
    assert fill == next_fill(fill, at, 5000)


@pytest.mark.slow
def test_hundred_ms_readings_make_a_short_trail() -> None:
    """Polls every 100 ms for half an hour leave few marks, and those of the longest window."""
    fill = first_fill(0.0, 0)
    for tick in range(1, 18_001):
        fill = next_fill(fill, tick / 10, tick * 100)
        assert len(fill.trail) <= LONGEST_TRAIL
    assert 1800.0 == fill.trail[-1].read_at
    assert LONGEST_WINDOW_S <= 1800.0 - fill.trail[0].read_at <= 1.34 * LONGEST_WINDOW_S
    assert 1000.0 == pytest.approx(fill.bytes_per_second)


def test_marks_are_retained_no_longer_than_needed() -> None:
    """Polls each second leave some seconds of a trail, and the same rate."""
    fill = first_fill(0.0, 0)
    for second in range(1, 1000):
        fill = next_fill(fill, float(second), second * 100, WINDOW_S)
    assert WINDOW_S <= 999.0 - fill.trail[0].read_at <= 1.34 * WINDOW_S
    assert 100.0 == fill.bytes_per_second
    rare = filled((0.0, 0), (20.0, 0), (100.0 + LONGEST_WINDOW_S, 0))
    assert 20.0 == rare.trail[0].read_at


@pytest.mark.parametrize("poll_s", mostly_slow([2.5, 1.0, 0.1], 2))
@pytest.mark.parametrize("window_s", [10, 37, 120, 600])
def test_a_rate_is_over_the_time_that_was_asked_for(window_s: int, poll_s: float) -> None:
    """When filling stops, the rate shows it for a window and at most a third of one more."""
    fill = filled(*((tick * poll_s, tick * 1000) for tick in range(int(1000 / poll_s))))
    stopped_at, used = fill.trail[-1].read_at, fill.trail[-1].used_bytes
    seen_until = stopped_at
    while fill.trail[-1].read_at < stopped_at + 1000:
        fill = next_fill(fill, fill.trail[-1].read_at + poll_s, used)
        if rate_over(fill, window_s):
            seen_until = fill.trail[-1].read_at
    assert window_s - 2 * poll_s <= seen_until - stopped_at <= 1.34 * window_s


def test_one_request_a_minute_is_its_size_over_a_minute() -> None:
    """Over 5 s it is a spike or nothing; over two minutes it is the long-term rate."""
    fill = first_fill(0.0, 0)
    short, long = set(), set()
    for second in range(1, 1200):
        fill = next_fill(fill, float(second), 600_000 * (second // 60))
        if second >= 600:
            short.add(round(rate_over(fill, WINDOW_S) or 0.0, -3))
            long.add(rate_over(fill, 120.0) or 0.0)
    assert (0.0, 120_000.0) == (min(short), max(short))
    assert 7_500 <= min(long) <= max(long) <= 15_000


def test_a_short_trail_is_all_there_is() -> None:
    """After a start the rate is over what was read; one reading shows no rate."""
    assert rate_over(first_fill(0.0, 100), 600.0) is None
    assert 20.0 == rate_over(filled((0.0, 100), (10.0, 300)), 600.0)


steps_s = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 0.625, 1.0, 5.0, 60.0]), st.floats(0.001, 10))


@given(st.lists(st.tuples(steps_s, st.integers(0, 10**12)), min_size=1, max_size=60))
def test_any_trail_is_short_ordered_and_current(steps: list[tuple[float, int]]) -> None:
    """Whatever the readings: few marks in order, the last one the last reading."""
    now = 0.0
    fill = first_fill(now, 0)
    last = (0.0, 0)
    for step, used in steps:
        now += step
        fill = next_fill(fill, now, used)
        last = (now, used) if now > last[0] else last
        times = [mark.read_at for mark in fill.trail]
        assert len(fill.trail) <= LONGEST_TRAIL
        assert sorted(set(times)) == times
        assert last == (fill.trail[-1].read_at, fill.trail[-1].used_bytes)
        if fill.bytes_per_second is not None:
            assert fill.fastest_bytes_per_second is not None
            assert fill.bytes_per_second <= fill.fastest_bytes_per_second
            assert math.isfinite(fill.bytes_per_second)


@given(
    st.integers(1, 10**9),
    st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0, 8.0, 64.0]), min_size=1, max_size=40),
)
def test_even_filling_is_reported_exactly(rate: int, steps: list[float]) -> None:
    """A volume that fills evenly has that rate, however it is read."""
    now = 0.0
    fill = first_fill(now, 0)
    for step in steps:
        now += step
        fill = next_fill(fill, now, int(rate * now * 4))
    assert 4.0 * rate == pytest.approx(fill.bytes_per_second, rel=1e-6, abs=8.0)


@pytest.mark.parametrize(
    ("headroom", "rate", "expected"),
    [
        (200, 20.0, 10.0),
        (0, 20.0, 0.0),
        (-5, None, 0.0),
        (1, None, None),
        (1, 0.0, None),
        (1, -3.0, None),
        (LONG_MAX, 1_000_000.0, None),
        (LONGEST_S, 1.0, LONGEST_S),
    ],
)
def test_seconds_to(headroom: float, rate: float | None, expected: float | None) -> None:
    """If nothing is left it is 0.0 at any rate; what does not fill, or is unknown, has no time.

    The same goes for what fills in 292,000 years: Python has no dates after the year 9999.
    """
    assert expected == seconds_to(headroom, rate)
