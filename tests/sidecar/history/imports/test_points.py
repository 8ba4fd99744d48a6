"""How sizes, times and kinds are read from text."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from sidecar.history.imports.points import DataError, Kind, Series, parse_bytes, parse_time

AT_S = 1_767_600_000.0
"""2026-01-05, 08:00 UTC."""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kubelet_volume_stats_capacity_bytes", Kind.TOTAL),
        ("kubelet_volume_stats_available_bytes", Kind.AVAILABLE),
        ("node_filesystem_size_bytes", Kind.TOTAL),
        ("node_filesystem_avail_bytes", Kind.AVAILABLE),
        ("Total", Kind.TOTAL),
        ("total available", Kind.AVAILABLE),
        ("node_filesystem_free_bytes", None),
        ("kubelet_volume_stats_inodes", None),
        ("", None),
        ("total_gb", None),
        ("total_tebibytes", None),
        ("totalgb", None),
        ("size_kbytes", None),
        ("avail_gigabyte", None),
        ("availGiB", None),
        ("Available (MB)", None),
        ("avail_pct", None),
        ("node_filesystem_avail_ratio", None),
        ("size_kilobytes", None),
        ("size %", None),
        ("kafka-gb-1 avail", Kind.AVAILABLE),
        ("total_b", Kind.TOTAL),
        ("availability_zone", None),
    ],
)
def test_the_name_tells_what_a_size_is_of(name: str, expected: Kind | None) -> None:
    """Free bytes are not it: a broker may not write to those that are reserved.

    Nor are values in another unit than bytes.
    """
    assert expected == Series(name, ()).kind


def test_a_series_is_written_as_prometheus_does() -> None:
    """So that a person finds it there."""
    assert 'm{a="1", b="2"}' == str(Series("m", (("a", "1"), ("b", "2"))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100", 100),
        ("9007199254740993", 2**53 + 1),
        ("9.663676416e+10", 96_636_764_160),
        ("1.5", 1),
        ("0", 0),
    ],
)
def test_bytes(text: str, expected: int) -> None:
    """Whole ones are exact; an average is cut."""
    assert expected == parse_bytes(text, "x")


@pytest.mark.parametrize("text", ["93.1 GiB", "NaN", "+Inf", "-1", "null", ""])
def test_what_is_no_size_is_refused(text: str) -> None:
    """With its place."""
    with pytest.raises(DataError, match=r"a.csv, line 2: .* is not a number of bytes$"):
        parse_bytes(text, "a.csv, line 2")


@pytest.mark.parametrize(
    "text",
    [
        "1767600000",
        "1767600000.0",
        "1767600000000",
        "1767600000000000",
        "1767600000000000000",
        "2026-01-05T08:00:00Z",
        "2026-01-05 09:00:00+01:00",
        "Mon Jan  5 08:00:00 UTC 2026",
        "Mon Jan  5 08:00:00 AM GMT 2026",
        "Mon  5 Jan 08:00:00 GMT 2026",
        "Mon 05 Jan 2026 08:00:00 AM UTC",
        "Mon Jan  5 05:00:00 -03 2026",
        "Mon, 05 Jan 2026 09:00:00 +0100",
        "2026-01-05T08:00:00UTC",
        "2026-01-05 08:00:00.000 UTC",
    ],
)
def test_times(text: str) -> None:
    """Epoch seconds to nanoseconds, ISO 8601, and what ``date`` prints: GNU's and BusyBox's."""
    assert AT_S == parse_time(text, None)


@pytest.mark.parametrize("text", ["2026-01-05 09:00:00", "Mon Jan  5 09:00:00 CET 2026"])
def test_a_time_without_an_offset_needs_a_zone(text: str) -> None:
    """A short name such as CET is none, since others have it too."""
    time = parse_time(text, ZoneInfo("Europe/Berlin"))
    assert AT_S == (time.timestamp() if isinstance(time, datetime) else time)
    with pytest.raises(ValueError, match="no offset from UTC: give its zone"):
        parse_time(text, None)


def test_an_hour_of_autumn_is_there_twice() -> None:
    """With the names that ``date`` prints, they are two hours."""
    summer, winter = (
        parse_time(f"Sun Oct 25 02:30:00 {name} 2026", ZoneInfo("Europe/Berlin"))
        for name in ("CEST", "CET")
    )
    assert (1_792_888_200.0, 1_792_891_800.0) == (summer, winter)


def test_a_name_of_another_zone_is_refused() -> None:
    """08:00 in Los Angeles is not 08:00 UTC."""
    with pytest.raises(ValueError, match="PST 2026' is not a time of the zone UTC: --zone has to"):
        parse_time("Mon Jan  5 08:00:00 PST 2026", ZoneInfo("UTC"))


@pytest.mark.parametrize("text", ["", "yesterday", "/dev/sdb1 100 75 25 75% /data", "Mon 2026"])
def test_other_texts_are_no_time(text: str) -> None:
    """Whatever they are."""
    assert parse_time(text, UTC) is None
