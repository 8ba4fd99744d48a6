"""How the times of rows without an offset from UTC are read."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from sidecar.history.imports.local_times import LocalTimes
from sidecar.history.imports.points import DataError

BERLIN = ZoneInfo("Europe/Berlin")
BEGIN = datetime(2025, 10, 25, 21, 30, tzinfo=UTC)


def read(texts: list[str]) -> list[float | None]:
    times = LocalTimes(BERLIN)
    found = [times.read(text, f"row {number}") for number, text in enumerate(texts)]
    times.end()
    return found


@pytest.mark.parametrize("step", [1, 61, 300, 1800, 3600])
@pytest.mark.parametrize("order", [1, -1], ids=["oldest first", "newest first"])
def test_the_row_that_runs_against_the_order_begins_the_other_hour(step: int, order: int) -> None:
    """Every step of at most the hour keeps the rows in the order of time."""
    rows = [BEGIN + timedelta(seconds=at) for at in range(0, 6 * 3600, step)][::order]
    texts = [f"{row.astimezone(BERLIN):%Y-%m-%d %H:%M:%S}" for row in rows]
    assert [row.timestamp() for row in rows] == read(texts)


@pytest.mark.parametrize(
    ("hours", "row"),
    [
        (["01:30", "02:00", "02:30", "03:00"], 1),
        (["03:00", "02:30", "02:00", "01:30"], 1),
        (["01:30", "02:00", "02:30"], 1),
        (["02:00", "02:30", "02:00", "02:30", "03:00"], 0),
        (["01:30", "02:00", "02:30", "02:10", "02:40", "02:20", "03:00"], 5),
        (["00:30", "02:30", "04:30"], 1),
    ],
    ids=["once", "newest first", "at the end", "at the begin", "no order", "long steps"],
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
