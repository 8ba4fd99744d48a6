"""The figures of a rogue's course that is made by hand, and what request logs say of it."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.producer_ids.course import Course
from benchmarks.producer_ids.figures import figures
from benchmarks.producer_ids.logged import RequestLogs, logged_user
from benchmarks.producer_ids.variants import (
    PERCENTAGE,
    RATE,
    VARIANTS,
    Variant,
    excluded,
    quota_file,
)
from sidecar.producer_ids.quota_file import IdQuotaFile
from sidecar.quotas.producer_ids.id_quotas import ProducerIdQuota
from tests.benchmarks.producer_ids_course import BEGAN, course


def test_every_figure_of_a_course() -> None:
    """The 61st id of 60 that may come at once was allocated at 2.1 s and known 0.4 s later."""
    found = figures(course())
    assert pytest.approx(0.4) == found.stopped_s
    assert pytest.approx(0.5) == found.allocated
    assert pytest.approx(0.45) == found.produced
    assert pytest.approx(0.45 * 86_400) == found.a_day
    assert (1000, 4100, 7) == (found.init_ms, found.produce_ms, found.neighbour_ms)
    assert pytest.approx((5e6 * 17 + 2e6) / 18) == found.neighbour
    assert pytest.approx(2e6) == found.neighbour_least


def test_who_was_not_throttled_has_no_time_of_it() -> None:
    """A user whom no answer throttled has no throttle time either."""
    free = course("none")
    free.throttled_at = None
    free.throttle_ms = {}
    found = figures(free)
    assert (None, 0, 0) == (found.stopped_s, found.init_ms, found.produce_ms)


def test_a_user_throttle_that_is_seen_before_its_log_line_is_at_once() -> None:
    """A log line's time is when the answer was sent; no time is negative."""
    early = course()
    early.throttled_at = BEGAN + 2.0
    assert 0.0 == figures(early).stopped_s


def test_a_course_is_the_same_from_its_file(tmp_path: Path) -> None:
    """All of it is."""
    file = tmp_path / "course.json"
    course().save(file)
    found, expected = Course.load(file), course()
    for name in ("allocated", "counted", "neighbour"):
        assert list(getattr(expected, name)) == list(getattr(found, name))
        setattr(found, name, getattr(expected, name))
    assert expected == found


def line(second: int, user: str, api: tuple[int, str], throttle_ms: int, response: object) -> bytes:
    """Returns a broker's line of 2026-11-20 23:05."""
    body = {
        "requestHeader": {
            "requestApiKey": api[0],
            "requestApiVersion": 4,
            "clientId": "c",
            "requestApiKeyName": api[1],
        },
        "request": {},
        "response": response,
        "principal": f"User:{user}",
        "localTimeMs": 0.2,
        "throttleTimeMs": throttle_ms,
    }
    start = f"[2026-11-20 23:05:{second:02},500] DEBUG Completed request:"
    return f"{start}{json.dumps(body)} (kafka.request.logger)\n".encode()


def init(second: int, user: str, number: int, throttle_ms: int = 0, error: int = 0) -> bytes:
    """Returns the line of an id that was allocated, or refused."""
    response = {"errorCode": error, "producerId": number, "producerEpoch": 0}
    return line(second, user, (22, "INIT_PRODUCER_ID"), throttle_ms, response)


def test_request_logs_say_which_ids_and_throttle_times_a_user_got(tmp_path: Path) -> None:
    """Times are of all brokers; earlier, others' and refused requests don't count."""
    files = [tmp_path / "0", tmp_path / "1", tmp_path / "never written"]
    files[0].write_bytes(init(1, "etl", 7))
    logs = RequestLogs(files)
    with files[0].open("ab") as opened:
        opened.write(init(10, "etl", 8) + init(14, "etl", 9, throttle_ms=1000))
        opened.write(b"not a line\n" + init(15, "etl", -1, error=7))
        opened.write(line(16, "etl", (0, "PRODUCE"), 4000, {}))
    files[1].write_bytes(init(12, "etl", 1000) + init(13, "ops", 1001, throttle_ms=5))

    epoch = datetime(2026, 11, 20, 23, 5).timestamp()  # noqa: DTZ001 - a broker's local time
    found = logged_user(logs.lines(), "etl", begin=105.0, clock_ahead_s=100.0 - epoch)

    assert [(105.0, 0), (110.5, 1), (112.5, 2), (114.5, 3)] == [
        (round(at, 3), count) for at, count in found.allocated
    ]
    assert {"INIT_PRODUCER_ID": 1000, "PRODUCE": 4000} == found.throttle_ms


def test_the_quota_file_is_one_that_the_sidecar_reads(tmp_path: Path) -> None:
    """Each user to be throttled has the same quota, and a percentage where that is measured."""
    file = tmp_path / "ids.toml"
    file.write_text(quota_file(VARIANTS))
    expected = {
        "factor": ProducerIdQuota(RATE),
        "percentage": ProducerIdQuota(RATE, PERCENTAGE),
        "both": ProducerIdQuota(RATE, PERCENTAGE),
        "ip": ProducerIdQuota(RATE, PERCENTAGE),
    }
    assert expected == dict(IdQuotaFile(file).load())


def test_only_who_is_throttled_by_the_factor_is_left_to_the_callback() -> None:
    """The list has the form of the callback's excluded.principals."""
    assert "User:none;User:percentage" == excluded(VARIANTS)
    assert "" == excluded([Variant("both", "both", has_factor=True)])


def test_a_limit_on_connections_is_the_last() -> None:
    """It can't be removed while it limits whoever would remove it."""
    assert [False] * (len(VARIANTS) - 1) + [True] == [each.has_ip_rate for each in VARIANTS]
