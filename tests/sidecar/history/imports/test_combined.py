"""Points that become observations."""

import re

import pytest

from sidecar.history.imports.combined import Combined, combine
from sidecar.history.imports.points import DataError, Point, Series
from sidecar.history.imports.volume_names import VolumeNames
from sidecar.volumes import Reading, Volume
from tests.support.examples import mostly_slow

NAMES = VolumeNames((("host", re.compile(r"(?P<broker>\d+)")),), "{dir}")


def point(name: str, host: str, at: float, size: int, dir_: str = "/d") -> Point:
    labels = (("dir", dir_), ("host", host))
    return Point(Series(name, labels), at, size, f"{name} of {host} at {at:g}")


def combined(*points: Point) -> Combined:
    return combine(points, NAMES, "o")


def test_total_and_available_bytes_of_a_time_are_a_reading() -> None:
    """In the order of times, with all volumes of a broker together."""
    found = combined(
        point("avail", "2", 60.0, 20),
        point("size", "2", 60.0, 100),
        *(
            point(name, "1", 60.0, size, dir_)
            for dir_ in ("/d1", "/d2")
            for name, size in (("size", 50), ("avail", 5))
        ),
        point("size", "1", 0.0, 50),
        point("avail", "1", 0.0, 4),
    )
    assert [0.0, 60.0] == [each.observed_at for each in found.observations]
    _, second = found.observations
    expected = {
        1: Reading(1, 60.0, (Volume(1, "/d1", 50, 5), Volume(1, "/d2", 50, 5))),
        2: Reading(2, 60.0, (Volume(2, "/d", 100, 20),)),
    }
    assert expected == second.answers
    assert ({}, {}) == (found.unmapped, found.unpaired)


def read(dir_: str, *times: float) -> list[Point]:
    """Sizes of broker 1's log dir."""
    return [point(name, "1", at, 9, dir_) for at in times for name in ("size", "avail")]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 60, 120), (0, 60, 120), {0: "12", 60: "12", 120: "12"}),
        (
            (0, 60, 120),
            (20, 80, 140),
            {0: "1", 20: "12", 60: "12", 80: "12", 120: "12", 140: "12"},
        ),
        ((0, 60, 120, 180), (0, 60), {0: "12", 60: "12", 120: "1", 180: "1"}),
        (
            (0, 60, 120, 180),
            (20, 80),
            {0: "1", 20: "12", 60: "12", 80: "12", 120: "12", 180: "1"},
        ),
        ((0, 60, 120, 180), (0, 60, 180), {0: "12", 60: "12", 120: "1", 180: "12"}),
        ((0, 60, 120, 180), (0, 120), {0: "12", 60: "12", 120: "12", 180: "12"}),
        (
            (0, 60, 130),
            (0, 60, 141, 201),
            {0: "12", 60: "12", 130: "12", 141: "12", 201: "2"},
        ),
        ((0, 90), (11,), {0: "1", 11: "12", 90: "1"}),
        ((0, 60, 120), (10, 70, 130), {10: "12", 70: "12", 130: "12"}),
        ((2, 62, 122), (0, 60, 132), {2: "12", 62: "12", 132: "12"}),
        ((0, 5, 10), (2, 7, 12), {2: "12", 7: "12", 12: "12"}),
    ],
    ids=(
        "same times",
        "later",
        "stops",
        "later and stops",
        "pauses",
        "longer steps",
        "late step",
        "once",
        "within 10 s",
        "the other first",
        "steps below 10 s",
    ),
)
def test_log_dirs_read_at_different_times_are_still_one_broker_s(
    first: tuple[int, ...], second: tuple[int, ...], expected: dict[int, str]
) -> None:
    """A log dir keeps its sizes until the next ones; if they are missing, for one usual step."""
    found = combined(*read("1", *first), *read("2", *second))
    dirs = {
        each.observed_at: "".join(sorted(volume.log_dir for volume in answer.volumes))
        for each in found.observations
        for answer in each.answers.values()
        if isinstance(answer, Reading)
    }
    assert expected == dirs
    assert {(1, "1"): len(first), (1, "2"): len(second)} == found.readings


@pytest.mark.parametrize(
    ("first_step", "second_step", "expected_s"),
    mostly_slow([(1200, 86_400, 1800), (60, 300, 300), (60, 86_400, 600), (86_400, 60, 600)]),
)
def test_sizes_of_long_steps_apply_for_a_bounded_time(
    first_step: int, second_step: int, expected_s: int
) -> None:
    """For 10 minutes or 1.5 steps of the log dir that is read most."""
    first, second = (
        read(name, *range(0, 3 * 86_400, step))
        for name, step in (("1", first_step), ("2", second_step))
    )
    rare, rare_s = ("1", first_step) if first_step > second_step else ("2", second_step)
    for each in combined(*first, *second).observations:
        reading = each.answers[1]
        assert isinstance(reading, Reading)
        applies = any(volume.log_dir == rare for volume in reading.volumes)
        assert (each.observed_at % rare_s < expected_s) == applies, each.observed_at


def test_a_broker_without_a_row_is_not_completed() -> None:
    """Its last sizes are not an answer at the time of another broker's."""
    found = combined(*read("1", 0, 60), point("size", "2", 30, 9), point("avail", "2", 30, 9))
    assert [[1], [2], [1]] == [list(each.answers) for each in found.observations]


def test_what_is_left_out_is_counted() -> None:
    """Series of no volume or kind, and sizes without the other one."""
    web, used = point("size", "web", 0.0, 1), point("used", "1", 0.0, 1)
    found = combined(web, web, used, point("size", "1", 0.0, 2), point("avail", "1", 60.0, 1))
    assert {web.series: 2, used.series: 1} == found.unmapped
    assert {(1, "/d"): 2} == found.unpaired
    assert [] == found.observations


def test_two_series_of_a_volume_have_to_agree() -> None:
    """As they do where one is scraped twice; otherwise a rule is too wide."""
    size = point("size", "1", 0.0, 2)
    found = combined(size, size, point("avail", "1", 0.0, 1))
    assert 1 == len(found.observations)
    other = point("node_size", "1", 0.0, 3)
    expected = (
        "node_size of 1 at 0: 3 total bytes of broker 1 /d, but 2 at the same time in size of 1"
        " at 0. size{"
    )
    with pytest.raises(DataError, match=re.escape(expected)) as raised:
        combined(size, other)
    assert "let --match or --log-dir distinguish them" in str(raised.value)
    # Without __name__, the smallest of total and available bytes would be one nameless series.
    assert "min by (__name__, " in str(raised.value)
    with pytest.raises(DataError, match="Remove one of the two"):
        combined(size, point("size", "1", 0.0, 3))


def test_more_available_than_total_bytes_are_refused() -> None:
    """With the places of both."""
    expected = "avail of 1 at 0: 3 available bytes are more than the 2 total bytes (size of 1 at 0)"
    with pytest.raises(DataError, match=re.escape(expected)):
        combined(point("size", "1", 0.0, 2), point("avail", "1", 0.0, 3))
