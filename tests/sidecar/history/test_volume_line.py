"""A line of the volume history: what it says of an observation."""

import json
from time import tzset

import pytest

from sidecar.history.volume_line import LineError, VolumeLine, merged, read_line, to_line
from sidecar.volumes import (
    Failure,
    FailureKind,
    Membership,
    Observation,
    OfflineLogDir,
    Reading,
    Volume,
)

AT_S = 1_767_600_000.5
BROKER_1 = Reading(1, 0.0, (Volume(1, "/d1", 100, 25),), (OfflineLogDir("/d2", "offline"),))


def test_a_line_is_the_documented_one() -> None:
    """It is the module's example, byte for byte."""
    expected = (
        b'{"time":"1970-01-01T00:00:00.500Z","origin":"kafka-0-7070","brokers":[1],'
        b'"volumes":[{"broker_id":1,"log_dir":"/d1","total_bytes":100,"available_bytes":25}],'
        b'"offline":[{"broker_id":1,"log_dir":"/d2"}],"cluster_id":"MkU3OEVBNTcwNTJENDM2Qg"}\n'
    )
    seen = Observation(0.0, "poll", None, {1: BROKER_1})
    assert expected == to_line(seen, "kafka-0-7070", 0.5, "MkU3OEVBNTcwNTJENDM2Qg")
    assert b"cluster_id" not in to_line(seen, "kafka-0-7070", 0.5)


def test_brokers_are_in_order_and_those_without_an_answer_are_not_there() -> None:
    """A history has readings: why a broker said nothing is in the log."""
    seen = Observation(
        7.0,
        "poll",
        Membership("c", {1: "a:1", 2: "b:1", 3: "c:1"}),
        {
            3: Reading(3, 7.0, (Volume(3, "/d1", 9, 9),)),
            2: Failure(FailureKind.TIMEOUT, "late"),
            1: BROKER_1,
        },
    )
    line = json.loads(to_line(seen, "o", AT_S))
    assert "2026-01-05T08:00:00.500Z" == line["time"]
    assert [1, 3] == line["brokers"]
    assert [1, 3] == [volume["broker_id"] for volume in line["volumes"]]


def test_a_log_dir_may_have_any_name() -> None:
    """Quotes, newlines and other alphabets stay in one line of JSON."""
    name = '/d"1\n\\ñ\u2028'
    line = to_line(
        Observation(0.0, "poll", None, {1: Reading(1, 0.0, (Volume(1, name, 1, 1),))}), "o", 0.0
    )
    assert 1 == line.count(b"\n")
    assert name == json.loads(line)["volumes"][0]["log_dir"]


def line_of(**changes: object) -> bytes:
    """A line of one volume with 25 of 100 bytes available; None removes a field."""
    sizes = {"broker_id": 1, "log_dir": "/d1", "total_bytes": 100, "available_bytes": 25}
    fields = {
        "time": "2026-01-05T08:00:00.500Z",
        "origin": "o",
        "brokers": [1],
        "volumes": [sizes | {key: changes.pop(key) for key in sizes if key in changes}],
        "offline": [],
    }
    kept = {key: value for key, value in (fields | changes).items() if value is not None}
    return json.dumps(kept).encode()


@pytest.mark.parametrize("time", ["2026-01-05T08:00:00.500", "2026-01-05T09:00:00.500+01:00"])
def test_a_time_has_any_offset_and_is_in_utc_without_one(
    time: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the pipeline reads it, whatever the zone of the machine is."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "EST5")
        tzset()
        assert AT_S == read_line(line_of(time=time))[0]
    tzset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            line_of(time=1767600000),
            "field time: Expected `str`, got `int`; the time is text in ISO",
        ),
        (line_of(time="5.1.2026"), "field time: '5.1.2026'; the time is text in ISO 8601"),
        (line_of(origin=None), "field origin: it is missing; the origin is the name of the writer"),
        (
            line_of(total_bytes=100.5),
            "field volumes[0].total_bytes: Expected `int`, got `float`; a size is a whole number",
        ),
        (
            line_of(available_bytes=101),
            "field volumes[0].available_bytes: 101 is not between 0 and the total_bytes, 100",
        ),
        (
            line_of(volumes=[{"broker_id": 1}]),
            "field volumes[0].log_dir: it is missing",
        ),
        (b"[]", "Expected `object`, got `array`"),
        (line_of()[:-9], "it is not a whole line of JSON"),
    ],
)
def test_a_line_that_is_wrong_names_its_field(text: bytes, expected: str) -> None:
    """With what the field has to contain."""
    with pytest.raises(LineError) as raised:
        read_line(text)
    assert str(raised.value).startswith(expected)


def test_lines_of_a_volume_each_are_merged() -> None:
    """The sizes of a log dir count more than that another line has none, and later ones more."""
    texts = [
        line_of(broker_id=2, brokers=[2]),
        line_of(brokers=[1], offline=[{"broker_id": 2, "log_dir": "/d1"}]),
        line_of(log_dir="/d2", offline=[{"broker_id": 1, "log_dir": "/d3"}]),
        line_of(log_dir="/d2", available_bytes=5),
    ]
    line = merged([read_line(text)[1] for text in texts])
    assert isinstance(line, VolumeLine)
    assert [1, 2] == line.brokers
    assert [(2, "/d1", 25), (1, "/d1", 25), (1, "/d2", 5)] == [
        (each.broker_id, each.log_dir, each.available_bytes) for each in line.volumes
    ]
    assert ["/d3"] == [each.log_dir for each in line.offline]


@pytest.mark.parametrize("text", [b"", b"{", b'{"time":"\xff"}', b'{"x":' + b"[" * 100_000])
def test_what_is_no_json_is_no_line(text: bytes) -> None:
    """Such as a line that was damaged on the disk."""
    with pytest.raises(LineError, match="it is not a whole line of JSON"):
        read_line(text)
