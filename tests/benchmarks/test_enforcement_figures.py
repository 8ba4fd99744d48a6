"""The figures of a course that is made by hand, with each one's value known beforehand."""

from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.enforcement.course import Course, Leak
from benchmarks.enforcement.figures import back_at, figures, throttled_at
from kafka_lab.series import Series

MB = 1_000_000
CROSSED, FREED = 20.0, 40.0


def _counted(*rates: tuple[float, float]) -> Series:
    """Returns bytes so far at rates that last until a time, sampled fifty times a second."""
    samples, total, at = [], 0.0, 0.0
    for until, rate in rates:
        while at < until - 1e-9:
            samples.append((at, total))
            at, total = at + 0.02, total + rate * 0.02
    samples.append((at, total))
    return Series(samples)


def _course(flood: float = 18.0 * MB) -> Course:
    """Returns 18 MB/s, 0.18 while throttled; then a flood of 2 s and 18 again until 70."""
    throttled, back = 20.4, 46.0
    return Course(
        "a",
        "ours",
        connections=3,
        limit_bytes=100 * MB,
        acknowledged=_counted(
            (throttled, 18.0 * MB),
            (back, 0.18 * MB),
            (back + 2.0, flood),
            (70.0, 18.0 * MB),
        ),
        stored=_counted((throttled, 36.0 * MB), (FREED, 0.36 * MB)),
        available=Series(
            [
                (0.0, 340.0 * MB),
                (CROSSED, 100.0 * MB),
                (throttled, (100.0 - 12.0 * (throttled - CROSSED)) * MB),
                (FREED, 90.0 * MB),
                (FREED + 0.02, 400.0 * MB),
            ]
        ),
        crossed_at=CROSSED,
        freed_at=FREED,
        longest_throttle_s=4.25,
        failed_records=7,
        leaks=[Leak(10.0, 0.6 * MB, 4.0), Leak(10.0, 0.6 * MB, 40.0), Leak(10.0, 0.6 * MB, 60.0)],
    )


def test_every_figure_of_a_course() -> None:
    """They stop 0.04 s early, since a fifth of the rate fits in 0.2 s; they are back likewise."""
    found = figures(_course())
    assert pytest.approx(18.0 * MB, rel=1e-6) == found.before
    # 36 MB/s for 0.038 s and 0.36 for the rest of 0.2 s are a fifth of 36.
    assert pytest.approx(0.4 - 0.038, abs=0.03) == found.stopped_s
    assert found.stopped_s is not None
    assert pytest.approx(12.0 * MB * found.stopped_s, rel=1e-3) == found.past_at_throttled
    assert pytest.approx(10.0 * MB) == found.past_at_freed
    assert pytest.approx(20.0) == found.throttled_s
    assert (4.25, 7) == (found.longest_throttle_s, found.failed_records)
    # Two seconds of which 1.8 have the full rate.
    assert pytest.approx(6.0 - 0.2, abs=0.04) == found.back_s
    assert pytest.approx(30.0) == found.watched_s
    assert pytest.approx(1.0, abs=0.01) == found.flood
    assert pytest.approx(0.18 * MB) == found.let_through


def test_the_promise_is_of_each_broker_by_itself() -> None:
    """Its budget is 60 kB/s, or three connections' requests each 4 s if those are more.

    A request of each in the 10 s that were counted comes on top.
    """
    # 150 kB a request: 112.5 kB/s, and 45 at the ends; 15 kB: 11 and 4.5; 10 kB: 7.5 and 3.
    promise = (112_500 + 45_000) + (60_000 + 4_500) + (60_000 + 3_000)
    assert pytest.approx(promise) == figures(_course()).promise


def test_a_flood_is_the_most_in_one_second() -> None:
    """It is counted after traffic is back, within 10 s of that."""
    course = _course(flood=72.0 * MB)
    assert pytest.approx(4.0, abs=0.02) == figures(course).flood
    course.acknowledged = _counted(
        (20.4, 18.0 * MB), (46.0, 0.0), (57.0, 18.0 * MB), (60.0, 72.0 * MB)
    )
    assert pytest.approx(1.0, abs=0.02) == figures(course).flood


def test_producers_who_are_not_back_have_been_watched() -> None:
    """The course has no flood of who never came, but how long that was watched."""
    course = _course()
    course.acknowledged = _counted((20.4, 18.0 * MB), (69.0, 0.18 * MB))
    found = figures(course)
    assert (None, None) == (found.back_s, found.flood)
    assert pytest.approx(29.0) == found.watched_s


def test_producers_who_write_on_are_not_throttled() -> None:
    """Stored bytes count, whatever acknowledgements say."""
    course = _course()
    course.stored = _counted((FREED, 36.0 * MB))
    assert throttled_at(course) is None
    found = figures(course)
    assert (None, None) == (found.stopped_s, found.past_at_throttled)


def test_a_window_that_is_not_over_says_nothing() -> None:
    """A course is read while it happens: the last half second is no second of silence."""
    course = _course()
    course.stored = _counted((20.4, 36.0 * MB), (20.9, 0.0))
    assert throttled_at(course) is None
    course.acknowledged = _counted((20.4, 18.0 * MB), (46.0, 0.0), (47.0, 18.0 * MB))
    assert back_at(course) is None


def test_a_course_without_a_crossing_has_no_figures() -> None:
    """It is refused: no producer was throttled in it."""
    course = _course()
    course.crossed_at = None
    assert (None, None) == (throttled_at(course), back_at(course))
    with pytest.raises(ValueError, match="never crossed"):
        figures(course)


def test_without_meters_nothing_is_said_of_the_leak() -> None:
    """The same is true when producers were never throttled."""
    course = _course()
    course.leaks = []
    assert (None, None) == (figures(course).let_through, figures(course).promise)


def test_a_course_comes_back_from_its_file(tmp_path: Path) -> None:
    """All figures are as they were, to the millisecond."""
    course = _course()
    course.notes.append("broker 1 ended itself")
    course.save(tmp_path / "a.json")
    loaded = Course.load(tmp_path / "a.json")
    assert pytest.approx(asdict(figures(course)), rel=1e-3) == asdict(figures(loaded))
    assert (course.scenario, course.contender, course.notes) == (
        loaded.scenario,
        loaded.contender,
        loaded.notes,
    )
    assert list(course.available) == list(loaded.available)
