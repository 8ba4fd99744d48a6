"""The broker that a file of a request log belongs to, and its time zone."""

import pytest

from usage_pipeline.ingest.paths import (
    RequestLogsError,
    Zones,
    broker_and_place,
    named_by,
    patterns_of,
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/logs/broker-3.log", 3),
        ("/logs/broker-3.log.2026-11-20-10.gz", 3),
        ("/logs/my-cluster-kafka-12/kafka-request.log", 12),
        ("/var/log/3/kafka-request.log", 3),
        ("s3://logs/broker-1/2026/11/kafka_2/request.log", 2),
        ("/opt/kafka_2.13-4.3.1/logs/broker-5/kafka-request.log", 5),
        ("/opt/kafka-3.9.1/7/kafka-request.log", 7),
        ("broker-3.2026-11-20", 3),
        ("/node31.2026/x", 31),
        ("s3://logs/dt=2026-11-20/broker=3/request.log", 3),
        ("/logs/broker_id=4/hour=10/request.log", 4),
        ("/3/kafka-request.log", 3),
        ("1001/kafka-request.log", 1001),
        ("/var/log/containers/my-cluster-broker-3_kafka_kafka-9f8e7d6c5b4a.log", 3),
        ("/logs/broker-3/2026/03/04/05/kafka-request.log", 3),
        ("/logs/broker-3/kafka-2026-11-20.log", 3),
        ("/logs/broker-3/kafka-20261120.log", 3),
        ("/logs/broker-3/kafka_2026_11_20_10.log.gz", 3),
        ("/logs/3/kafka-2026-11-20.log", 3),
        ("/logs/broker-3/kafka-202611201059.log", 3),
        ("/logs/kafka-2026/x.log", 2026),
        ("/logs/broker-3-20261120/kafka-request.log", 3),
        ("/logs/broker-3-2026-11-20/kafka-request.log", 3),
        ("/logs/kafka-0-kxp2q/kafka-request.log", 0),
        ("/logs/broker-192168010/kafka-request.log", 192168010),
        ("/logs/kafka-1921681010/kafka-request.log", 1921681010),
        ("/logs/node-200010101/kafka-request.log", 200010101),
    ],
)
def test_whose_a_file_is(path: str, expected: int) -> None:
    """It is the last broker, kafka or node with a number, no version; else a folder of digits."""
    assert expected == broker_and_place(path, patterns_of(None))[0]


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("/logs/my-cluster-kafka-3/kafka-request.log.1", None, "the folder my-cluster-kafka-3"),
        ("/kafka-1/broker-3.log.2026-11-20-10.gz", None, "broker-3 in the file name"),
        ("/var/log/3/kafka-request.log", None, "the folder 3"),
        ("s3://logs/broker=3/hour=10/x.log", None, "the folder broker=3"),
        ("/logs/n3-a/x.log", r"/n(?P<broker>\d+)-", "--broker-pattern (/n3-)"),
    ],
)
def test_what_names_a_broker(path: str, pattern: str | None, expected: str) -> None:
    """It is the part of the path that the broker's id is taken from."""
    assert expected == named_by(path, patterns_of(pattern))


@pytest.mark.parametrize(
    "path",
    [
        "/logs/kafka-request.log",
        "/opt/kafka_2.13-4.3.1/x",
        "/logs/broker-9999999999.log",
        "s3://logs/2026/03/04/05/kafka-request.log",
        "/logs/2026/kafka-request.log",
        "/logs/20260304/kafka-request.log",
        "/var/log/containers/kafka-9f8e7d6c5b4a.log",
        "/logs/kafka-2026-11-20.log",
        "/logs/my-cluster-kafka-1-7/kafka-request.log",
        "/var/log/pods/kafka_my-cluster-kafka1-7_2f6b8d9e/kafka/0.log",
        "/logs/kafka-10-0-1-7/kafka-request.log",
    ],
)
def test_a_path_without_a_broker_is_refused(path: str) -> None:
    """The message asks for a pattern."""
    with pytest.raises(RequestLogsError, match=r"give a pattern .*\(\?P<broker>"):
        broker_and_place(path, patterns_of(None))


@pytest.mark.parametrize("pattern", [r"/(?P<broker>[\w-]+)/x", r"/logs/(?:n(?P<broker>\d+))?"])
def test_a_pattern_whose_group_is_no_number_is_refused(pattern: str) -> None:
    """The group matches text, or nothing."""
    with pytest.raises(RequestLogsError, match="does not name the broker"):
        broker_and_place("/logs/broker-3/x", patterns_of(pattern))


def test_zones() -> None:
    """A default and exceptions are read in any order."""
    zones = Zones.parse(["3=UTC", "Europe/Berlin", "4=Asia/Kolkata"])
    assert ["Europe/Berlin", "UTC", "Asia/Kolkata"] == [zones.name_of(id_) for id_ in (1, 3, 4)]
    assert "UTC" == Zones.parse([]).name_of(3)


@pytest.mark.parametrize(
    ("zone", "message"),
    [
        ("Europe/Bonn", "not a time zone"),
        ("3=", "not a time zone"),
        ("x=UTC", "written as 3=Europe/Berlin"),
    ],
)
def test_zones_that_are_none(zone: str, message: str) -> None:
    """The message says what is allowed."""
    with pytest.raises(RequestLogsError, match=message):
        Zones.parse([zone])
