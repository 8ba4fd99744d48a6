"""Logs of df."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from sidecar.history.imports.df_log import df_points
from sidecar.history.imports.points import DataError

HEADER = "Filesystem     1K-blocks     Used Available Use% Mounted on\n"
DATA = "/dev/sdb1            100       75        25  75% /var/lib/kafka data\n"


def points(text: str) -> list[tuple[str, dict[str, str], float, int, str]]:
    return [
        (each.series.name, dict(each.series.labels), each.at, each.size_bytes, each.place)
        for each in df_points("3.df", text, None)
    ]


def test_each_time_has_a_table() -> None:
    """A file system without sizes has no reading, and a path may have a space."""
    text = f"60\n{HEADER}{DATA}\ntmpfs - - - - /run\n120\n{HEADER}{DATA}"
    labels = {"file": "3.df", "filesystem": "/dev/sdb1", "mountpoint": "/var/lib/kafka data"}
    expected = [
        ("size", labels, 60.0, 102_400, "3.df, line 3, field 1K-blocks"),
        ("avail", labels, 60.0, 25_600, "3.df, line 3, field Available"),
        ("size", labels, 120.0, 102_400, "3.df, line 8, field 1K-blocks"),
        ("avail", labels, 120.0, 25_600, "3.df, line 8, field Available"),
    ]
    assert expected == points(text)


def test_an_hour_that_is_there_twice_is_told_by_the_times_of_the_log() -> None:
    """And is refused, if they leave it open."""
    times = [f"2025-10-26 {hour}:00" for hour in ("01:30", "02:30", "02:30", "03:30")]
    text, once = (
        "".join(f"{time}\n{HEADER}{DATA}" for time in part) for part in (times, times[:2])
    )
    zone = ZoneInfo("Europe/Berlin")
    expected = [1_761_435_000.0 + 3600 * hour for hour in range(4)]
    assert expected == [each.at for each in df_points("3.df", text, zone)][::2]
    with pytest.raises(DataError, match=r"3.df, line 4: the zone Europe/Berlin has '.*' twice"):
        list(df_points("3.df", once, zone))


@pytest.mark.parametrize("step", [5, 60])
def test_a_time_before_each_mount_may_be_there_again(step: int) -> None:
    """Both mounts of a second have the same time, in both hours that the zone has twice."""
    zone = ZoneInfo("Europe/Berlin")
    expected = [1_761_435_000.0 + 60 * at for at in range(0, 240, step) for _ in range(2)]
    times = (datetime.fromtimestamp(at, zone) for at in expected[::2])
    text = "".join(
        f"{time:%Y-%m-%d %H:%M:%S}\n{HEADER}/dev/sdb1 9 5 4 60% {mount}\n"
        for time in times
        for mount in ("/d1", "/d2")
    )
    assert expected == sorted(each.at for each in df_points("3.df", text, zone))[::2]


@pytest.mark.parametrize(
    ("table", "total", "available"),
    [
        ("Filesystem 1024-blocks Used Available Capacity Mounted on\n/x 9 5 4 60% /d", 9216, 4096),
        ("Filesystem 1B-blocks Used Avail Mounted on\n/x 9 5 4 /d", 9, 4),
        ("Mounted on 1M-blocks Avail\n/d 9M 4M", 9 * 1024**2, 4 * 1024**2),
        ("Mounted on 1MB-blocks Avail\n/d 9MB 4MB", 9_000_000, 4_000_000),
        ("Filesystem 1K-blocks Avail Mounted on\n/dev/mapper/vg-lv\n      9 4 /d", 9216, 4096),
    ],
)
def test_the_unit_is_in_the_header(table: str, total: int, available: int) -> None:
    """Of df -P, df -B1 --output, df -BM, and BusyBox, which wraps after a long name."""
    assert [("size", total), ("avail", available)] == [
        (name, size) for name, _, _, size, _ in points(f"60\n{table}\n")
    ]


def test_a_message_of_df_is_no_row() -> None:
    """A log of cron has standard error too."""
    expected = ["3.df, line 4, field 1K-blocks", "3.df, line 4, field Available"]
    message = "df: /run/user/1000/doc: Operation not permitted\n"
    assert expected == [place for *_, place in points(f"60\n{message}{HEADER}{DATA}{message}")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HEADER}{DATA}", "3.df, line 2: .* has no time before it, as date -Is prints it$"),
        (f"60\n{DATA}", "3.df, line 2: .* has no header of df before it; run df with LC_ALL=C"),
        (f"60\n{HEADER}{DATA}120\n{DATA}", "3.df, line 5: .* has no header of df before it"),
        (
            f"60\n{HEADER}/dev/mapper/vg-a-long-name\n",
            "3.df, line 3: it has 1 fields, and df's header 6; df -P writes a line for each",
        ),
        ("60\nFilesystem Size Used Avail Use% Mounted on\n", "3.df, line 2: no exact size; use df"),
        ("60\nMounted on 1B-blocks\n", "3.df, line 2: no field with the available bytes"),
        (
            f"60\n{HEADER}{DATA.replace('25 ', 'x5 ')}",
            "line 3, field Available: 'x5' is not a number of bytes$",
        ),
        ("2026-01-05 08:00:00\n", "3.df, line 1: .* has no offset from UTC"),
    ],
)
def test_what_is_wrong_names_file_and_line(text: str, expected: str) -> None:
    """With the field, if it is one, and what to do."""
    with pytest.raises(DataError, match=expected):
        points(text)
