"""A capability that fails anywhere costs the throttle, the API and the page nothing."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from sidecar.control.capability import Block, Build, Capability, Services, Task
from sidecar.control.capability_failures import CapabilityFailures, Failing
from sidecar.control.persistence import Persistence
from sidecar.daemon.capabilities import CAPABILITIES, build_all, prepare_all, register_metrics
from sidecar.daemon.daemon import leave
from sidecar.errors import SettingsError
from sidecar.requestlog.line import Line
from sidecar.settings import Settings, load
from sidecar.volumes import Observation
from tests.sidecar.api.build import FakeSidecar, Routed, until
from tests.sidecar.daemon.composed import composed
from tests.sidecar.requestlog.lines import line
from tests.support.background import bootstrap
from tests.support.fake_broker import FakeCluster, FakeLogDir

METRIC = "kafka_throttle_capability_failures_total"


class Bad(Capability):
    """Raises from whatever it is asked, and remembers what that was."""

    name = "bad"
    leave_s = 0.1

    def __init__(self) -> None:
        self.asked: list[str] = []

    def _fail(self, what: str) -> None:
        self.asked.append(what)
        raise RecursionError(what)

    def tasks(self) -> Mapping[str, Task]:
        return {"task": self._task}

    async def _task(self) -> None:
        self._fail("task")

    def add_routes(self, app: FastAPI) -> None:
        @app.get("/bad")
        async def bad() -> None:
            self._fail("request")

        self._fail("routes")

    def metrics(self) -> Iterable[Metric]:
        self._fail("scrape")
        return ()

    def block(self) -> Block | None:
        self._fail("block")
        return None

    def observed(self, observation: Observation) -> None:
        self._fail("observation")

    def reload(self, settings: Settings, *, redial: bool = True) -> Callable[[], None]:
        self._fail("reload")
        return super().reload(settings, redial=redial)

    async def leave(self, timeout_s: float) -> None:
        self._fail("leave")


class Hears(Capability):
    """Hears what the one before it failed to hear."""

    name = "hears"

    def __init__(self) -> None:
        self.heard: list[Observation] = []

    def observed(self, observation: Observation) -> None:
        self.heard.append(observation)


class Subscribes(Capability):
    """Reads the lines of the request log, and fails at each where it should."""

    def __init__(self, name: str, *, fails: bool) -> None:
        self.name = name
        self.lines: list[Line] = []
        self._fails = fails

    def prepare(self, _settings: Settings) -> Build:
        def build(services: Services) -> Capability:
            assert services.subscribe(self.name, self._on_line, lambda: False)
            return self

        return build

    def _on_line(self, line: Line) -> None:
        if self._fails:
            raise RecursionError
        self.lines.append(line)


@contextlib.asynccontextmanager
async def running(
    monkeypatch: pytest.MonkeyPatch, *capabilities: Capability, **more: str
) -> AsyncIterator[httpx.AsyncClient]:
    """A daemon with these besides its own, over a broker with one healthy volume."""

    def prepare(capability: Capability) -> Callable[[Settings], Build]:
        return lambda _settings: lambda _services: capability

    for each in capabilities:
        monkeypatch.setitem(CAPABILITIES, each.name, prepare(each))
    cluster = FakeCluster().add(1)
    for broker in cluster.brokers.values():
        broker.log_dirs = (FakeLogDir("/d", 100, 50),)
    async with cluster:
        servers = {"SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap(cluster)}
        async with composed(servers | more) as (_, client):
            yield client


async def test_a_daemon_with_a_capability_that_always_fails_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It polls, decides, answers, is scraped and shown; the failures are counted and shown too."""
    bad, hears = Bad(), Hears()
    async with running(monkeypatch, bad, hears) as client:
        await until(lambda: len(hears.heard) >= 2)
        factor = (await client.get("/v1/throttle-factor")).json()
        assert (1.0, "observation") == (factor["factor"], factor["source"])
        assert 500 == (await client.get("/bad")).status_code
        page = await client.get("/")
        assert 200 == page.status_code
        assert "bad: task" in page.text
        metrics = (await client.get("/metrics")).text
    assert f'{METRIC}{{capability="hears"}} 0.0' in metrics
    assert f'{METRIC}{{capability="history"}} 0.0' in metrics
    assert 'kafka_throttle_source{source="observation"} 1.0' in metrics
    asked = {"task", "routes", "request", "block", "observation", "scrape", "leave"}
    assert asked == set(bad.asked)


async def test_the_request_log_is_read_whichever_capability_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One can't be built, and one raises at each line: the next gets it."""
    log = tmp_path / "requests.log"
    log.touch()
    bad, good = Subscribes("bad", fails=True), Subscribes("good", fails=False)

    def unbuilt(_services: Services) -> Capability:
        raise RecursionError

    monkeypatch.setitem(CAPABILITIES, "request_time", lambda _settings: unbuilt)
    for each in (bad, good):
        monkeypatch.setitem(CAPABILITIES, each.name, each.prepare)

    def is_heard() -> bool:
        # Repeatedly: what is there before the first poll is not read.
        with log.open("ab") as file:
            file.write(line(3) + b"\n")
        return bool(good.lines)

    async with running(monkeypatch, SIDECAR_REQUEST_LOG_FILE=str(log)) as client:
        await until(is_heard)
        metrics = (await client.get("/metrics")).text
    assert 3 == good.lines[0].api_key
    failed = re.findall(METRIC + r'{capability="(\w+)"} [1-9]', metrics)
    assert ["request_time", "bad"] == failed


async def test_the_request_log_is_read_by_its_layout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A setting has the pattern of a layout that is not found by itself."""
    log = tmp_path / "requests.log"
    log.touch()
    good = Subscribes("good", fails=False)
    monkeypatch.setitem(CAPABILITIES, good.name, good.prepare)

    def is_heard() -> bool:
        with log.open("ab") as file:
            file.write(b"1795165200000 " + line(3).partition(b"] ")[2] + b"\n")
        return bool(good.lines)

    settings = {
        "SIDECAR_REQUEST_LOG_FILE": str(log),
        "SIDECAR_REQUEST_LOG_LAYOUT": "%d{UNIX_MILLIS} %p %m (%c)%n",
    }
    async with running(monkeypatch, **settings):
        await until(is_heard)
    assert datetime(2026, 11, 20, 9, tzinfo=UTC) == good.lines[0].time


async def test_what_fails_is_on_the_page_and_no_block_takes_it_away() -> None:
    """One block fails, and one is drawn, with its text escaped."""

    class Good(Capability):
        name = "good"

        def block(self) -> Block:
            return Block("Title <b>", ("A sentence.",), "/v1/good")

    sidecar = FakeSidecar(more=[Bad(), Good()])
    page = (await sidecar.get("/")).text
    assert "Title &lt;b&gt;" in page
    assert '<a href="/v1/good">' in page
    assert "bad: block of the status page" in page
    assert "RecursionError" in page


async def test_a_request_that_fails_is_counted_and_listed_until_one_works() -> None:
    """Its route's path counts one failure for a 500; a refused request is none, and ends it."""

    def add(app: FastAPI) -> None:
        @app.get("/flaky/{value}")
        async def flaky(value: str) -> None:
            if value == "refused":
                raise HTTPException(409, "Not now.")
            raise RecursionError(value)

    sidecar = FakeSidecar(more=[Routed("flaky", add)])
    failing = (Failing("flaky", "route /flaky/{value}", "RecursionError"),)
    assert 500 == (await sidecar.get("/flaky/x")).status_code
    assert (1, failing) == (sidecar.failures.count("flaky"), sidecar.failures.failing)
    assert "flaky: route /flaky/{value}" in (await sidecar.get("/")).text
    assert 409 == (await sidecar.get("/flaky/refused")).status_code
    assert (1, ()) == (sidecar.failures.count("flaky"), sidecar.failures.failing)


async def test_leaving_is_bounded_and_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    """One that raises is counted; one that hangs is left behind after what it may take."""

    class Hangs(Capability):
        name = "hangs"
        leave_s = 0.01

        async def leave(self, timeout_s: float) -> None:
            await asyncio.sleep(1000)

    failures = CapabilityFailures(["bad", "hangs"])
    for each in (Bad(), Hangs()):
        await leave(each, failures)
    assert 1 == failures.count("bad")
    assert "the capability hangs did not end within 0.01 s" in caplog.messages


def test_one_that_can_not_be_built_is_replaced_by_one_that_does_nothing() -> None:
    """One that says why the daemon can't start is not replaced."""
    sidecar = FakeSidecar()
    failures = CapabilityFailures(["bad"])
    services = Services(sidecar.board, sidecar.wall, sidecar.tokens, _persist, None, failures)
    assert not services.subscribe("bad", lambda _line: None, lambda: True)

    def fails(_services: Services) -> Capability:
        raise RecursionError

    def refuses(_services: Services) -> Capability:
        raise SettingsError(("no certificate",))

    (idle,) = build_all({"bad": fails}, services)
    assert ("bad", {}, None) == (idle.name, idle.tasks(), idle.block())
    assert 1 == failures.count("bad")
    with pytest.raises(SettingsError):
        build_all({"bad": refuses}, services)


def test_a_capability_has_one_name() -> None:
    """The list, its own words and its package have it: failures are counted by it from zero."""
    sidecar = FakeSidecar()
    settings = load(environ={"SIDECAR_STORAGE_CHECK_INTERVAL": "PT0S"}).settings
    services = Services(
        sidecar.board,
        sidecar.wall,
        sidecar.tokens,
        _persist,
        None,
        CapabilityFailures(CAPABILITIES),
    )
    built = build_all(prepare_all(settings), services)
    assert [*CAPABILITIES] == [each.name for each in built]
    assert [*CAPABILITIES] == [type(each).__module__.split(".")[1] for each in built]


async def _persist() -> Persistence:
    return Persistence.NONE


class Breaks(Capability):
    """Fails when its first metric is passed already."""

    name = "history"

    def metrics(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("broken", "never scraped", 1.0)
        raise RuntimeError("broken")


class Works(Capability):
    name = "mutations"

    def metrics(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("sound", "scraped", 1.0)


def test_metrics_that_fail_cost_a_scrape_no_others() -> None:
    """The counter exists at zero from the start, and counts each scrape that failed."""
    failures = CapabilityFailures(["history", "mutations"])
    registry = CollectorRegistry()
    register_metrics(registry, [Breaks(), Works()], failures)
    assert 0.0 == registry.get_sample_value(METRIC, {"capability": "history"})
    before = failures.count("history")
    assert {"kafka_throttle_capability_failures", "sound"} == {
        metric.name for metric in registry.collect()
    }
    assert before + 1 == failures.count("history")
    assert 0 == failures.count("mutations")
