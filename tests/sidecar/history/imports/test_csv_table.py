"""CSV files: tables of readings, and Grafana's."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from sidecar.history.imports.csv_table import csv_points
from sidecar.history.imports.points import DataError


def points(text: str, *wanted: str) -> list[tuple[str, dict[str, str], float, int]]:
    return [
        (each.series.name, dict(each.series.labels), each.at, each.size_bytes)
        for each in csv_points("a.csv", text, UTC, wanted)
    ]


@pytest.mark.parametrize("comma", [",", ", ", ";", "\t"])
def test_a_table_with_columns(comma: str) -> None:
    """The columns of the rules are labels; others, such as used bytes, are not."""
    text = "time,host,used,size,avail\n60,kafka-3,75,100,25\n120,kafka-3,,100,\n"
    text = text.replace(",", comma)
    labels = {"file": "a.csv", "host": "kafka-3"}
    expected = [
        ("size", {**labels, "series": "size"}, 60.0, 100),
        ("avail", {**labels, "series": "avail"}, 60.0, 25),
        ("size", {**labels, "series": "size"}, 120.0, 100),
    ]
    assert expected == points(text, "host")


def test_a_column_of_a_rule_is_no_size() -> None:
    """Whatever its name tells of; an availability zone is none in any case."""
    text = "time,size_class,availability_zone,avail\n60,large,eu-west-1a,25\n"
    labels = {"file": "a.csv", "series": "avail", "size_class": "large"}
    assert [("avail", labels, 60.0, 25)] == points(text, "size_class")


@pytest.mark.parametrize("start", ["", "\ufeff", "sep=,\r\n"])
def test_grafana_s_columns_are_series(start: str) -> None:
    """With labels in either form, or a legend, and as it is made for Excel."""
    text = (
        f'{start}"Time","m_capacity_bytes{{pvc=""data-3""}}",'
        '"{__name__=""m_available_bytes"", pvc=""data-3""}","data-3 available"\r\n'
        '"2026-01-05 08:00:00",100,25,24\r\n'
    )
    at = 1_767_600_000.0
    expected = [
        ("m_capacity_bytes", {"file": "a.csv", "pvc": "data-3"}, at, 100),
        ("m_available_bytes", {"file": "a.csv", "pvc": "data-3"}, at, 25),
        ("data-3 available", {"file": "a.csv", "series": "data-3 available"}, at, 24),
    ]
    assert expected == points(text, "pvc")


def test_grafana_s_table_view_has_the_metric_in_a_column() -> None:
    """And the size in another."""
    text = (
        "Time,__name__,pvc,Value\n60,m_capacity_bytes,data-3,100\n60,m_available_bytes,data-3,25\n"
    )
    labels = {"file": "a.csv", "pvc": "data-3"}
    expected = [("m_capacity_bytes", labels, 60.0, 100), ("m_available_bytes", labels, 60.0, 25)]
    assert expected == points(text, "pvc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a.csv, line 1: none of the columns .* is the time"),
        ("when,size\n", "a.csv, line 1: none of the columns when, size is the time; name one time"),
        ("time,used\n", "a.csv, line 1: none of the columns time, used is a size: a name with"),
        ("time,total_gb,avail_gb\n60,1\n", "total_gb, avail_gb is a size: .* in another unit"),
        ("time,size\n60,1\nx,1\n", "a.csv, line 3, field time: 'x' is not a time"),
        (
            "sep=;\ntime;size\n60;1 GiB\n",
            "a.csv, line 3, field size: '1 GiB' is .*; in Grafana, turn off",
        ),
        ("time,size\n60\n", "a.csv, line 2: it has 1 fields, and the header 2"),
        ('time,size\n60,"1"x\n', "a.csv, line 2: "),
    ],
)
def test_what_is_wrong_names_file_line_and_field(text: str, expected: str) -> None:
    """The line is that of the file, also behind Excel's."""
    with pytest.raises(DataError, match=expected):
        points(text)


def test_a_time_without_a_zone_is_refused() -> None:
    """Grafana writes times in the zone of the dashboard."""
    with pytest.raises(DataError, match=r"a.csv, line 2, field time: .* has no offset from UTC"):
        list(csv_points("a.csv", "time,size\n2026-01-05 08:00:00,1\n", None, ()))


AUTUMN = [
    f"2025-10-26 {hour}:00" for hour in ("01:30", "02:00", "02:30", "02:00", "02:30", "03:00")
]


@pytest.mark.parametrize("is_mixed", [True, False], ids=["time by time", "host by host"])
def test_an_hour_that_is_there_twice_is_told_by_the_rows_with_the_same_labels(
    *, is_mixed: bool
) -> None:
    """Whether hosts alternate, or one comes after the other."""
    rows = [(time, host) for host in ("1", "2") for time in AUTUMN]
    if is_mixed:
        rows = [(time, host) for time in AUTUMN for host in ("1", "2")]
    text = "time,host,size\n" + "".join(f"{time},{host},9\n" for time, host in rows)
    found = list(csv_points("a.csv", text, ZoneInfo("Europe/Berlin"), ("host",)))
    expected = [1_761_435_000.0 + 1800 * step for step in range(6)]
    for host in ("1", "2"):
        assert expected == [each.at for each in found if ("host", host) in each.series.labels]


def test_an_hour_that_the_last_rows_leave_open_is_refused() -> None:
    """It may be either of the two."""
    text = "time,size\n" + "".join(f"{time},9\n" for time in AUTUMN[:3])
    with pytest.raises(DataError, match=r"a.csv, line 3, field time: the zone Europe/Berlin has '"):
        list(csv_points("a.csv", text, ZoneInfo("Europe/Berlin"), ()))
