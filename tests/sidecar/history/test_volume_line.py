"""A line of the volume history: what it says of an observation."""

import json

from sidecar.history.volume_line import to_line
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
