"""How the times of rows without an offset from UTC are read."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from sidecar.history.imports.local_times import epoch_seconds, read_time
from sidecar.history.imports.points import DataError
from tests.support.examples import mostly_slow

BERLIN = ZoneInfo("Europe/Berlin")
BEGIN = datetime(2025, 10, 25, 21, 30, tzinfo=UTC)


def read(texts: list[str], zone: ZoneInfo = BERLIN) -> list[float]:
    times = (read_time(text, f"row {number}", zone) for number, text in enumerate(texts))
    return epoch_seconds([time for time in times if time is not None])


def texts_of(times: Iterable[datetime], zone: ZoneInfo = BERLIN) -> list[str]:
    """What a clock of the zone shows."""
    return [f"{time.astimezone(zone):%Y-%m-%d %H:%M:%S}" for time in times]


@pytest.mark.parametrize("step", mostly_slow([61, 300, 1800, 3600, 3601, 1], 5))
@pytest.mark.parametrize("begin_s", [0, 7200, 9000], ids=["before", "02:00", "02:30"])
@pytest.mark.parametrize("order", [1, -1], ids=["oldest first", "newest first"])
def test_the_row_that_runs_against_the_order_begins_the_other_hour(
    step: int, begin_s: int, order: int
) -> None:
    """Steps of about an hour have one row of each hour. The first row may be of these hours."""
    rows = [BEGIN + timedelta(seconds=at) for at in range(begin_s, 7 * 3600, step)][::order]
    assert [row.timestamp() for row in rows] == read(texts_of(rows))


def test_an_equal_time_is_the_same_time() -> None:
    """It begins no other hour, if the rows are less than an hour apart."""
    rows = [BEGIN + timedelta(seconds=at) for at in range(0, 6 * 3600, 300) for _ in range(2)]
    assert [row.timestamp() for row in rows] == read(texts_of(rows))


@pytest.mark.parametrize(
    ("zone", "texts", "expected"),
    [
        ("Europe/Berlin", [f"2025-10-{day} 02:30:00" for day in (25, 26, 27)], "26T00:30"),
        ("Europe/Berlin", [f"2025-10-26 {hour}:00:00" for hour in ("00", "02", "04")], "26T00:00"),
        ("Europe/Berlin", [f"2025-10-26 {hour}:00:00" for hour in ("00", "02", "03")], "26T00:00"),
        ("Europe/Berlin", ["2025-10-20", "2025-10-26 02:30"], "26T00:30"),
        ("Africa/Cairo", [f"2025-10-{day} 23:30" for day in (29, 30, 31)], "30T20:30"),
    ],
    ids=["nightly", "2 hours of the clock", "2 hours", "last", "midnight"],
)
@pytest.mark.parametrize("order", [1, -1], ids=["oldest first", "newest first"])
def test_a_row_more_than_an_hour_from_the_others_is_of_the_first_hour(
    zone: str, texts: list[str], expected: str, order: int
) -> None:
    """It can't be confused with another row."""
    found = read(texts[::order], ZoneInfo(zone))[::order]
    assert datetime.fromisoformat(f"2025-10-{expected}Z").timestamp() == found[1]


@pytest.mark.parametrize(
    ("hours", "row"),
    [
        (["01:30", "02:00", "02:30", "03:00"], 1),
        (["03:00", "02:30", "02:00", "01:30"], 2),
        (["01:30", "02:00", "02:30"], 1),
        (["02:00", "02:30"], 0),
        (["02:00", "02:00"], 0),
        (["01:30", "02:00", "02:30", "02:10", "02:40", "02:20", "03:00"], 5),
        (["01:00", "02:00", "03:00"], 1),
    ],
    ids=["once", "newest first", "at the end", "alone", "equal", "no order", "hour"],
)
def test_an_hour_that_the_rows_do_not_tell_is_refused(hours: list[str], row: int) -> None:
    """With both times, one of which the row can have in the file."""
    texts = [f"2025-10-26 {hour}:00" for hour in hours]
    expected = (
        f"row {row}: the zone Europe/Berlin has '{texts[row]}' twice, and the rows around it do not"
        f" tell which is meant: write {texts[row]}+02:00 or {texts[row]}+01:00, or export in UTC"
    )
    with pytest.raises(DataError, match=re.escape(expected)):
        read(texts)


def test_a_row_with_its_offset_is_not_in_doubt() -> None:
    """As a person writes it after the refusal."""
    hours = ["01:30:00", "02:30:00+02:00", "03:30:00"]
    expected = [1_761_435_000.0, 1_761_438_600.0, 1_761_445_800.0]
    assert expected == read([f"2025-10-26 {hour}" for hour in hours])


def test_a_time_that_the_clock_leaves_out_is_refused() -> None:
    """The zone is hardly the one of the data."""
    expected = "row 1: '2026-03-29 02:30:00' does not exist in the zone Europe/Berlin, because"
    with pytest.raises(DataError, match=expected):
        read(["2026-03-29 01:30:00", "2026-03-29 02:30:00"])


def test_a_midnight_that_the_clock_leaves_out_is_the_begin_of_the_day() -> None:
    """Dates are more than an hour from each other."""
    found = read([f"2025-04-{day}" for day in (24, 25, 26)], ZoneInfo("Africa/Cairo"))
    assert [24 * 3600, 23 * 3600] == [b - a for a, b in pairwise(found)]
