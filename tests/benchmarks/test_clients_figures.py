"""The figures of courses that are made by hand, with each one's value known beforehand."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.clients.course import Course
from benchmarks.clients.figures import Loss, disordered, figures, most, slot_rates

BEGAN, RELEASED, ENDED = 1020.0, 1051.0, 1060.0


def _course() -> Course:
    """Returns 2 MB/s until a throttle of 31 s, then a record a second, and 2 MB/s 4 s after it."""
    course = Course(
        "a", "callback", "short", 31.0, BEGAN, RELEASED, ENDED, received=0, connections=3
    )
    at, number = 1000.0, 0
    while at < ENDED:
        flows = at < BEGAN or at >= RELEASED + 4.0
        course.sent.append((at, number))
        course.landed.append((round(at, 3), 0, number))
        course.acknowledged.append((at, number))
        number += 1
        at += 0.005 if flows else 1.0
    course.received = 10_000 * number + 700_000
    return course


def test_every_figure_of_a_course() -> None:
    """A record a second is 10 kB/s; 2 s bring 90 % from 0.2 s before the client is back."""
    found = figures(_course())

    assert 2_000_000 == pytest.approx(found.before)
    assert [10_000] * 3 == pytest.approx([found.least, found.most, found.mean])
    assert 3.8 == pytest.approx(found.back_s, abs=0.06)
    assert (700_000, 3) == (found.for_nothing, found.connections)
    assert (None, None, 0, 0, 0) == (
        found.first_error_s,
        found.lost,
        found.failed_but_landed,
        found.twice,
        found.disordered,
    )
    assert (30.0, 10_000, 0, None) == (
        found.counted_s,
        found.request,
        found.dialed,
        found.refused,
    )
    assert None is found.minute, "it lasted for half of one"
    # 200 records a second, 4 s after the release; the one of the throttle's pace is before.
    assert 2_000_000 == pytest.approx(found.peak, rel=0.01)
    assert 4.0 == pytest.approx(found.peak_s, abs=1.1)


def test_what_failed_is_lost_unless_it_landed() -> None:
    """Of two that failed one landed; one was acknowledged and did not; of one nothing is known."""
    course = _course()
    course.failed = [(BEGAN + 9.0, 900_000, "late"), (BEGAN + 5.0, course.landed[-1][2], "early")]
    course.acknowledged.append((BEGAN + 7.0, 900_001))
    course.sent += [(BEGAN, number) for number in (900_000, 900_001, 900_002)]

    found = figures(course)

    assert Loss(2, 1, 7.0) == found.lost
    assert (5.0, "early") == (found.first_error_s, found.first_error)
    assert (1, 1) == (found.failed_but_landed, found.unreported)


def test_copies_land_and_are_for_nothing() -> None:
    """They count as landed, as twice, and among the bytes that were sent for nothing."""
    course = _course()
    before = figures(course)
    course.landed += [(BEGAN + 5.5, 0, 7), (BEGAN + 5.6, 0, 7)]
    course.received += 20_000

    found = figures(course)

    assert (2, 0) == (found.twice, found.disordered)
    assert before.most + 2_000 == pytest.approx(found.most)
    assert before.for_nothing + 20_000 == found.for_nothing


def test_order_is_that_of_each_partition() -> None:
    """The 3 is behind the 4; a copy of a record, or another partition's, is behind nothing."""
    course = replace(_course(), landed=[(0.0, 0, n) for n in (1, 2, 4, 3, 4, 5)] + [(0.0, 1, 0)])
    assert 1 == disordered(course)


def test_who_does_not_come_back_is_not_seen() -> None:
    """The figure is None, with how long was watched."""
    course = _course()
    course.landed = [each for each in course.landed if each[0] < RELEASED]
    found = figures(course)
    assert (None, 9.0) == (found.back_s, found.watched_s)


def test_a_short_throttle_is_one_slot() -> None:
    """Slots are of 10 s; what is left of the time has none of its own."""
    times = [0.5 + second for second in range(25)]
    assert [5_000] == slot_rates([1.0, 3.0], 0.0, 4.0)
    assert [10_000, 10_000] == slot_rates(times, 0.0, 25.0)


def test_a_minute_counts_from_when_a_client_dials_anew() -> None:
    """What it landed while it still waited is no part of it."""
    course = replace(_course(), released_at=BEGAN + 81.0, ended_at=BEGAN + 120.0)
    course.landed = [(BEGAN + 1.5 + second, 0, second) for second in range(80)]
    course.landed += [(BEGAN + 5.0, 0, 800_000 + number) for number in range(100)]
    assert 160 * 10_000 / 60 == pytest.approx(figures(course).minute)

    course.dialed = [(BEGAN + 1.0, 2), (BEGAN + 4.0, 2), (BEGAN + 20.5, 3), (BEGAN + 78.0, 9)]
    found = figures(course)

    assert 7 == found.dialed
    assert 60 * 10_000 / 60 == pytest.approx(found.minute)

    course.dialed = [(BEGAN + 1.0, 2), (BEGAN + 21.5, 3)]
    assert None is figures(course).minute, "59.5 s are no minute"


def test_a_request_is_what_the_broker_stamped_at_once() -> None:
    """Of those in the throttle the largest counts, and none of the time before."""
    course = _course()
    course.landed += [(BEGAN - 1.0, 0, 700_000 + number) for number in range(50)]
    course.landed += [(BEGAN + 7.123, 0, 800_000 + number) for number in range(20)]
    assert 200_000 == figures(course).request


def test_the_most_is_in_a_window_that_begins_with_a_record() -> None:
    """The docstring's example; the window's end is not in it, and nothing is after the time."""
    times = [0.1, 0.9, 1.0, 1.5]
    assert (30_000, 0.1) == most(times, 0.0, 2.0, 1.0)
    assert (20_000, 0.9) == most(times, 0.2, 1.5, 1.0)
    assert (10_000, 0.1) == most([0.1, 1.1], 0.0, 2.0, 1.0)
    assert (0.0, 7.0) == most(times, 7.0, 9.0, 1.0)


def test_what_a_program_reports_goes_to_a_file_and_back(tmp_path: Path) -> None:
    """A line that was cut by the program's end is left out, as are others' lines."""
    course = Course("a", "callback", "short", 31.0, BEGAN, RELEASED, ENDED)
    course.add_reports(
        [
            b'{"at": 1.5, "sent": 7}\n',
            b"a warning\n",
            b'{"at": 1.6, "acknowledged": 7}\n',
            b'{"at": 1.7, "failed": 8, "error": "no"}\n',
            b'{"at": 1.8, "sen',
        ]
    )
    course.dialed = [(1.5, 2)]
    course.save(tmp_path / "a.json")

    assert ([(1.5, 7)], [(1.6, 7)], [(1.7, 8, "no")]) == (
        course.sent,
        course.acknowledged,
        course.failed,
    )
    assert course == Course.load(tmp_path / "a.json")
