"""The figures of a run made by hand, its page, and what request logs and brokers say of users."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.producer_ids import __main__ as program
from benchmarks.producer_ids import scene
from benchmarks.producer_ids.__main__ import BENCHMARK, figures
from benchmarks.producer_ids.logged import RequestLogs, logged_user
from benchmarks.producer_ids.scene import ARMS, PERCENTAGE, RATE, Arm, Run, excluded, quota_file
from kafka_lab.cluster import Cluster
from kafka_lab.series import Series
from sidecar.errors import ClusterError
from sidecar.producer_ids.quota_file import IdQuotaFile
from sidecar.quotas.producer_ids.id_quotas import ProducerIdQuota
from tests.benchmarks.pages import page, row, run, texts

pytestmark = pytest.mark.slow

BEGAN, SETTLED, ENDED = 100.0, 110.0, 128.0


def made(arm: str = "both", a_second: float = 0.5) -> Run:
    """Returns 30 ids a second for 3 s; then some a second, of which nine tenths are used."""
    slow = a_second * (ENDED + 1.0 - BEGAN - 3.0)
    allocated = [(BEGAN, 0.0), *((round(BEGAN + 0.1 * n, 1), 3.0 * n) for n in range(1, 31))]
    after = 590.0 + 0.9 * slow
    counted = [(BEGAN - 1.0, 500.0), (BEGAN, 500.0), (BEGAN + 3.0, 590.0), (ENDED + 1.0, after)]
    return Run(
        arm,
        BEGAN,
        SETTLED,
        ENDED,
        throttled_at=None if arm == "none" else BEGAN + 2.5,
        allocated=Series([*allocated, (ENDED + 1.0, 90.0 + slow)]),
        counted=Series(counted),
        # 5 MB/s, but 2 in one second.
        neighbour=Series([(99.0, 0.0), (120.0, 105e6), (121.0, 107e6), (ENDED + 1.0, 147e6)]),
        throttle_ms={"INIT_PRODUCER_ID": 1000, "PRODUCE": 4100, "METADATA": 9000},
        neighbour_throttled_ms=7,
    )


def test_every_figure_of_a_run() -> None:
    """The 61st id of 60 that may come at once was allocated at 2.1 s and known 0.4 s later."""
    found = [value.value for value in figures(made()).values()]
    neighbour = [(5 * 17 + 2) / 18, 2.0, 7]
    assert pytest.approx([0.4, 0.5, 0.45, 0.45 * 86_400, 1000, 4100, *neighbour]) == found


def test_a_user_that_was_not_throttled_has_no_time_of_it() -> None:
    """A user without a throttled answer has no throttle time either."""
    free = made("none")
    free.throttle_ms = {}
    first, *_ = found = list(figures(free).values())
    assert (None, 0, 0) == (first.value, found[4].value, found[5].value)


def test_a_user_throttle_that_is_seen_before_its_log_line_is_at_once() -> None:
    """A log line's time is when the answer was sent; no time is negative."""
    early = made()
    early.throttled_at = BEGAN + 2.0
    assert 0.0 == next(iter(figures(early).values())).value


class TestPage:
    @pytest.fixture(autouse=True)
    def runs(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Run | Exception]:
        """What each arm comes to on each cluster; arms are measured until one fails."""
        runs: dict[str, Run | Exception] = {
            "none": made("none", a_second=30.0),
            "both": made(),
        }

        async def happen(_: int, arms: Sequence[Arm], __: float) -> AsyncIterator[Run]:
            for arm in arms:
                found = runs.get(arm.key)
                if isinstance(found, Exception):
                    raise found
                if found is not None:
                    yield found

        monkeypatch.setattr(program, "happen", happen)
        return runs

    def test_a_cluster_has_a_table_a_promise_and_a_picture(self, tmp_path: Path) -> None:
        """Figures have units; what isn't there is left empty."""
        assert 0 == run(BENCHMARK, tmp_path, "3")
        text = page(tmp_path)
        assert "## 3 brokers" in text
        assert ["free", "both"] == row(text, "figure")
        assert ["", "0.40 s"] == row(text, "throttled by every")
        assert ["30.0", "0.50"] == row(text, "ids that brokers allocated")
        assert ["27.0", "0.45"] == row(text, "ids that were used")
        assert ["1,000 ms", "1,000 ms"] == row(text, "longest throttle time with an id")
        assert ["2,332,800", "38,880"] == row(text, "retained after a day")
        assert ["4.83 MB/s", "4.83 MB/s"] == row(text, "the neighbour ")
        assert ["2.00 MB/s", "2.00 MB/s"] == row(text, "the neighbour's slowest")
        promise = "both: 0.45 ids a second, 27.0 without a throttle; of each client one in 35.6 s"
        assert f"- {promise}\n" in text
        assert "![3 brokers](page-3.svg)" in text
        said = texts(tmp_path / "page-3.svg")
        assert 3 == said.count("free") == said.count("both"), "a line in each of three panels"

    def test_nothing_is_promised_beside_nothing(
        self, runs: dict[str, Run | Exception], tmp_path: Path
    ) -> None:
        """There is no run that is free, or none that is throttled."""
        both = runs.pop("both")
        assert 0 == run(BENCHMARK, tmp_path, "1")
        assert "without a throttle" not in page(tmp_path)
        del runs["none"]
        runs["both"] = both
        assert 0 == run(BENCHMARK, tmp_path, "1")
        assert "without a throttle" not in page(tmp_path)

    def test_clients_without_ids_are_reported(
        self, runs: dict[str, Run | Exception], tmp_path: Path
    ) -> None:
        """Nothing is divided by it."""
        runs["ip"] = made("ip", a_second=0.0)
        assert 0 == run(BENCHMARK, tmp_path, "1")
        expected = "both + IP rate: 0.00 ids a second, 27.0 without a throttle; of each client none"
        assert f"- {expected}\n" in page(tmp_path)

    def test_what_was_measured_before_a_failure_stays(
        self, runs: dict[str, Run | Exception], tmp_path: Path
    ) -> None:
        """The arms of a cluster come one after the other."""
        runs["both"] = ClusterError("no jar")
        assert 1 == run(BENCHMARK, tmp_path, "1")
        assert ["free"] == row(page(tmp_path), "figure")


class Beans:
    """In place of the JVM that reads the brokers."""

    last: Mapping[int, float] = {}

    def __init__(self, *_: object) -> None: ...

    async def __aenter__(self) -> "Beans":
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def follow(self, *_: object) -> None: ...

    def figures(self, broker_id: int) -> Mapping[str, Any] | None:
        return {"Value": self.last[broker_id]} if broker_id in self.last else None


@pytest.mark.looptime
async def test_counts_that_are_not_read_any_more_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are those of all brokers; a run would miss its end."""
    monkeypatch.setattr(scene, "BeanWatch", Beans)
    monkeypatch.setattr(Beans, "last", {0: 5.0, 1: 7.0})
    brokers = {key: SimpleNamespace(id=key, pid=key) for key in (0, 1)}
    cluster = cast("Cluster", SimpleNamespace(brokers=brokers))

    async def count() -> None:
        async with scene.id_counts(cluster) as counts:
            await asyncio.sleep(0.1)
            assert [12.0] == [count for _, count in counts]
            monkeypatch.setattr(Beans, "last", {0: 5.0})
            await asyncio.sleep(3600.0)

    with pytest.raises(ExceptionGroup) as raised:
        await count()
    assert raised.group_contains(ClusterError, match="any more")


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
    file.write_text(quota_file(ARMS))
    expected = {
        "factor": ProducerIdQuota(RATE),
        "percentage": ProducerIdQuota(RATE, PERCENTAGE),
        "both": ProducerIdQuota(RATE, PERCENTAGE),
        "ip": ProducerIdQuota(RATE, PERCENTAGE),
    }
    assert expected == dict(IdQuotaFile(file).load())


def test_only_users_throttled_by_the_factor_are_left_to_the_callback() -> None:
    """The list has the form of the callback's excluded.principals."""
    assert "User:none;User:percentage" == excluded(ARMS)
    assert "" == excluded([Arm("both", "both", has_factor=True)])


def test_a_limit_on_connections_is_the_last() -> None:
    """It can't be removed while it limits whoever would remove it."""
    assert [False] * (len(ARMS) - 1) + [True] == [each.has_ip_rate for each in ARMS]
