"""The capability: what runs, what the page and metrics show, and that it is off by default."""

from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from sidecar.client_quotas.capability import ClientQuotaCapability, prepare
from sidecar.client_quotas.log_watch import PATH
from sidecar.client_quotas.retained import read_kept
from sidecar.control.board import Board
from sidecar.control.metric_source import MetricSource
from sidecar.quotas.entities import Entity
from sidecar.quotas.kept_originals import Kept
from sidecar.requestlog.reader import LogReader
from sidecar.requestlog.tail_read import TailRead
from sidecar.settings import load
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Contents
from sidecar.throttle.peak import Peak
from sidecar.throttle.rules import Rules
from tests.sidecar.control.services import services
from tests.sidecar.requestlog.lines import line
from tests.sidecar.throttle.build import FakeClock, reading, whole

KEPT = {"entity": {"user": "alice"}, "original": 1e7, "base": 1e7}
UNKNOWN = {"entity": {"tenant": "alice"}, "original": None, "base": 1.0}


def capability(board: Board, log: LogReader | None = None, **more: str) -> ClientQuotaCapability:
    environ = {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "a:9092",
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "10",
        **more,
    }
    built = prepare(load(environ=environ).settings)(services(board, "client_quotas", log))
    assert isinstance(built, ClientQuotaCapability)
    return built


def board(*kept: object) -> Board:
    made = Board(VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0), FakeClock())
    if kept:
        made.retain("client_quotas", {"kept": list(kept)})
    return made


def sample(made: ClientQuotaCapability, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(MetricSource(made.metrics))
    return registry.get_sample_value(f"kafka_throttle_{name}", labels)


def test_it_is_off_by_default() -> None:
    """No block; its task only restores what is lowered, and the metrics exist all the same."""
    made = capability(board())
    assert ["client quotas"] == list(made.tasks())
    assert made._throttle is not None
    assert not made._throttle.lowers
    assert made.block() is None
    assert 1.0 == sample(made, "enforcement", enforcement="callback")
    assert 0.0 == sample(made, "client_quotas_lowered")
    assert 0.0 == sample(made, "broker_metrics_failing")


def test_it_runs_where_it_is_set() -> None:
    """The page says what it can't do."""
    on = board()
    made = capability(on, SIDECAR_ENFORCEMENT="client-quotas", SIDECAR_CLIENT_QUOTA_FLOOR="1Mi")
    assert ["client quotas"] == list(made.tasks())
    assert "client-quotas" == on.readers.counts(0.0).enforcement
    block = made.block()
    assert block is not None
    assert "No produce quota is lowered now." == block.sentences[0]
    assert "to 1Mi a second" in block.sentences[-1]
    assert 1.0 == sample(made, "enforcement", enforcement="client-quotas")


def test_what_clients_write_is_known_from_the_request_log() -> None:
    """It is once the log has been read for a minute, and no longer when a line was torn."""
    clock, log = FakeClock(), LogReader(Path("none"))
    on = Board(VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0), clock)
    made = capability(on, log, SIDECAR_ENFORCEMENT="client-quotas")
    said = []
    for _ in range(2):
        for _ in range(7):
            log._take(TailRead((line(35),)))
            clock.now += 10.0
        for torn in ((), (line(0)[:-40],)):
            log._take(TailRead(torn))
            block = made.block()
            assert block is not None
            said.append("from the request log" in block.sentences[1])
    assert [True, False] * 2 == said


def test_the_page_says_whom_a_throttle_is_for() -> None:
    """Only a sidecar that acts asks who writes."""
    on = Board(
        VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0, is_of_volumes=True), FakeClock()
    )
    more = {"SIDECAR_ENFORCEMENT": "client-quotas", "SIDECAR_THROTTLE_SCOPE": "volume"}
    more["SIDECAR_REQUEST_LOG_FILE"] = "requests.log"
    made = capability(on, LogReader(Path("none")), **more)
    on.observe(whole(0.0, [reading(1, 0.0, {"/d": 5})]))
    contents = {(1, "/d"): Contents(frozenset({"full"}), 0.0)}
    on.update(lambda memory: replace(memory, contents=contents))
    said = []
    failure = "The sidecar http://s2 does not tell who writes: the answer is too long."
    assert made._throttle is not None
    assert made._throttle.logs is not None
    made._throttle.logs.failure = failure
    for acts in (False, True):
        made._throttle._acts = acts
        block = made.block()
        assert block is not None
        said.append([text for text in block.sentences if text.startswith("The ")])
    expected = "The throttle is for all clients, since no sidecar tells who writes to broker 1."
    assert [[], [expected, failure]] == said


async def test_other_sidecars_are_told_who_writes_and_how_much() -> None:
    """The broker is the only one, or the one of the settings. Who writes needs the scope."""
    clock, log = FakeClock(), LogReader(Path("none"))
    more = {"SIDECAR_ENFORCEMENT": "client-quotas", "SIDECAR_REQUEST_LOG_FILE": "requests.log"}
    scope = {**more, "SIDECAR_THROTTLE_SCOPE": "volume"}
    data = [{"name": "orders", "partitionData": [{"index": 0, "recordsSizeInBytes": 100}]}]
    told = []
    for number, own in enumerate((more, scope, {**scope, "SIDECAR_BROKER_ID": "7"}, scope)):
        on = Board(VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0), clock)
        count = 2 if number == 3 else 1
        seen = [reading(each, clock.now, {"/d": 50}) for each in range(1, count + 1)]
        on.observe(whole(clock.now, seen))
        made = capability(on, log, **own)
        log._take(TailRead((line(0, request={"acks": -1, "topicData": data}, version=9),)))
        app = FastAPI()
        made.add_routes(app)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://s") as client:
            for _ in range(7):
                log._take(TailRead((line(35),)))
                clock.now += 10.0
            told.append((await client.get(PATH)).json())
    writers = [["alice", "orders", ""]]
    rates = [13.8, 13.8, 13.8]
    whole_log = {"is_whole": True, "writers": writers, "rates": rates}
    assert [
        {"broker_id": 1, "cluster_id": "A", "is_whole": False, "writers": [], "rates": rates},
        {"broker_id": 1, "cluster_id": "A", **whole_log},
        {"broker_id": 7, "cluster_id": "A", **whole_log},
        {"broker_id": None, "cluster_id": "A", **whole_log},
    ] == told


async def test_the_page_says_what_tells_how_much_clients_write_and_how_coarse_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Metrics tell once samples are whole; one broker can't be read, another shows no client."""
    clock = FakeClock()
    on = Board(VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0), clock)
    urls = "1=http://b-1/metrics,2=http://b-2/metrics,3=http://b-3/metrics"
    made = capability(on, SIDECAR_ENFORCEMENT="client-quotas", SIDECAR_BROKER_METRICS_URLS=urls)
    throttle = made._throttle
    assert throttle is not None
    assert throttle.metrics is not None
    throttle._early.fills._peaks |= {each: Peak() for each in range(5)}
    answers = {"http://b-1/metrics": (0.0, 3e6, 0.0), "http://b-3/metrics": (0.0,) * 3}

    async def read(url: str, _: object) -> object:
        return answers.get(url, "it answers 404")

    monkeypatch.setattr("sidecar.client_quotas.broker_metrics.read", read)
    for _ in range(2):
        await throttle.metrics.refresh()
        clock.now += 30.0
    block = made.block()
    assert block is not None
    assert (
        "What clients write is known from the metrics of broker 1, averages of 11 s; the fill "
        "rates of brokers 0, 2, 3, 4, with N equal clients N times too high.",
        "The metrics of broker 2 can't be read: it answers 404.",
        "The metrics of broker 3 show no client. Kafka measures clients once there is a produce "
        "quota, and the exporter may need a rule for that.",
    ) == block.sentences[1:4]
    assert 1.0 == sample(made, "broker_metrics_failing")


def test_an_earlier_run_is_cleaned_up_with_any_enforcement() -> None:
    """The state file has originals; an entity that no Kafka has is left out."""
    left = board(KEPT, UNKNOWN)
    assert {Entity("alice"): Kept(1e7, 1e7)} == read_kept(left)
    assert ["client quotas"] == list(capability(left).tasks())
