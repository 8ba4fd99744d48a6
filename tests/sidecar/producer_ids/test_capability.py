"""What the capability asks, of brokers and other sidecars."""

import asyncio
from pathlib import Path

import pytest

from sidecar.control.board import Board, PersistedState
from sidecar.kafka.active_producers import ActiveProducers
from sidecar.kafka.quota_messages import Alteration
from sidecar.peers.exchange import Peer, Peers
from sidecar.producer_ids.capability import ProducerIdCapability, _quota_calls
from sidecar.producer_ids.retained import NAME
from sidecar.quotas.entities import DEFAULT, Default
from sidecar.quotas.producer_ids.id_quotas import ProducerIdQuota
from sidecar.requestlog.reader import LogReader
from sidecar.settings import HostPort, load
from sidecar.throttle.decision import Source
from sidecar.throttle.memory import Memory
from sidecar.throttle.readers import Report
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.api.build import FACTORS
from tests.sidecar.control.services import services
from tests.sidecar.kafka.servers import admin, bootstrap, failed
from tests.sidecar.throttle.build import whole
from tests.support.fake_broker import FakeCluster
from tests.support.fake_quotas import FakeQuotas
from tests.support.virtual_time import VIRTUAL_TIME


@VIRTUAL_TIME
async def test_only_the_known_cluster_has_its_quotas_read_and_set() -> None:
    """A throttled user of one cluster is somebody else in another one."""
    kafka = FakeQuotas()
    board = Board(FACTORS, asyncio.get_running_loop().time)
    bob: list[Alteration] = [({"user": "bob"}, {"request_percentage": 1.0})]
    async with kafka.of(FakeCluster().add(1)) as cluster:
        describe, alter = _quota_calls(admin(bootstrap(cluster)), board)
        board.observe(whole(0.0, cluster_id="other-cluster"))
        for answer in (await describe(), await alter(bob)):
            failed(answer, FailureKind.OTHER_CLUSTER)
        assert {} == kafka.quotas
        board.observe(whole(1.0, cluster_id="fake-cluster"))
        assert [None] == await alter(bob)
        assert kafka.quotas == await describe()


async def test_certificates_that_can_not_be_read_are_a_failure(tmp_path: Path) -> None:
    """The next comparison may find them."""
    tls = {"security_protocol": "SSL", "ssl_truststore_location": tmp_path / "none.pem"}
    reach = admin(HostPort("127.0.0.1", 1)).model_copy(update=tls)
    describe, alter = _quota_calls(reach, Board(FACTORS, lambda: 0.0))
    for answer in (await describe(), await alter([])):
        assert "none.pem" in failed(answer, FailureKind.AUTHENTICATION)


ENVIRON = {
    "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "127.0.0.1:1",
    "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "1",
}


def capability_of(
    board: Board, environ: dict[str, str], request_log: LogReader | None = None
) -> ProducerIdCapability:
    """Without a file of quotas."""
    parts = services(board, "producer_ids", request_log)
    return ProducerIdCapability(load(environ=environ).settings, parts, None, None)


@pytest.mark.parametrize(
    ("environ", "has_log", "count"),
    [
        ({"SIDECAR_PRODUCER_IDS_RATE": "5"}, False, 1),
        ({"SIDECAR_PRODUCER_IDS_RATE": "5"}, True, 0),
        ({}, False, 0),
    ],
)
async def test_quotas_for_ids_that_nobody_reads_are_reported(
    *, environ: dict[str, str], has_log: bool, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It is one WARNING; with a log that is read, or without quotas, there is none."""
    log = LogReader(Path("requests.log")) if has_log else None
    capability_of(Board(FACTORS, lambda: 0.0), ENVIRON | environ, log)
    reported = "there are producer id quotas, but no SIDECAR_REQUEST_LOG_FILE"
    warned = [each for each in caplog.records if each.getMessage().startswith(reported)]
    assert ["WARNING"] * count == [each.levelname for each in warned]


@pytest.mark.parametrize(("noted", "tasks"), [({"bob": 0.010000936}, 1), ({}, 0)])
def test_a_quota_of_an_earlier_run_is_removed_without_a_source_of_ids(
    noted: dict[str, float], tasks: int
) -> None:
    """The operator took the request log out while bob was throttled."""
    memory = Memory(retained={NAME: {"quotas": [], "enforced_request_percentages": noted}})
    restored = PersistedState(memory, 1.0, Source.FALLBACK, 0.0)
    capability = capability_of(Board(FACTORS, lambda: 0.0, restored=restored), ENVIRON)
    assert tasks == [*capability.tasks()].count("request quotas")


@pytest.mark.looptime
async def test_peers_alone_ask_nothing_until_the_first_quota(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a quota, brokers are scanned and sidecars are asked; when it goes, neither is."""
    asked = set[str]()

    async def scan(*_: object) -> Failure:
        asked.add("brokers")
        return Failure(FailureKind.TIMEOUT, "broker 1: no answer")

    async def ask(*_: Peer) -> bool:
        asked.add("sidecars")
        return False

    monkeypatch.setattr(ActiveProducers, "scan", scan)
    monkeypatch.setattr(Peers, "ask", ask)
    environ = ENVIRON | {"SIDECAR_PEERS": "http://127.0.0.1:1"}
    capability = capability_of(Board(FACTORS, asyncio.get_running_loop().time), environ)
    tasks = [asyncio.create_task(run()) for run in capability.tasks().values()]
    seen = []
    for rate in (None, 5.0, None):
        quotas: dict[str | Default, ProducerIdQuota] = (
            {} if rate is None else {DEFAULT: ProducerIdQuota(rate)}
        )
        capability._watch.put(quotas)
        await asyncio.sleep(40.0)
        asked.clear()
        await asyncio.sleep(40.0)
        seen.append(set(asked))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await capability.leave(1.0)
    assert [set(), {"brokers", "sidecars"}, set()] == seen


def test_an_interval_of_scans_and_the_window_bound_what_just_now_is() -> None:
    """A topic is new for up to two minutes here, but half a window is shorter."""
    environ = ENVIRON | {
        "SIDECAR_PEERS": "http://127.0.0.1:1",
        "SIDECAR_PRODUCER_ID_QUOTA_ACTIVE_INTERVAL": "PT2M",
    }
    window = {"SIDECAR_PRODUCER_ID_QUOTA_WINDOW_SIZE_SECONDS": "300"}
    found = []
    for more in ({}, window):
        active = capability_of(Board(FACTORS, lambda: 0.0), environ | more)._active
        assert active is not None
        found.append(active.ids.fresh_ms)
    assert [240_000, 150_000] == found


@pytest.mark.parametrize(
    ("readers", "percentages", "absent", "users"),
    [
        (0, {}, set(), "1 user would be"),
        (1, {}, set(), "1 user is"),
        (0, {"bob": 5.0}, set(), "1 user is"),
        (0, {"bob": 5.0}, {"bob"}, "1 user would be"),
        (0, {"ann": 5.0}, set(), "1 user would be"),
    ],
)
def test_the_page_says_whether_users_are_throttled(
    readers: int, percentages: dict[str, float], absent: set[str], users: str
) -> None:
    """They are if a broker reads the factor, or if Kafka has the quota of each of them.

    A quota that Kafka refused is noted, but Kafka does not have it.
    """
    board = Board(FACTORS, lambda: 0.0)
    capability = capability_of(board, ENVIRON | {"SIDECAR_PEERS": "http://127.0.0.1:1"})
    assert capability._enforcer is not None
    capability._enforcer.absent = absent
    assert capability.block() is None
    board.throttle_users("producer_ids", {"bob": (60.0, "too many")})
    capability._retained.set_enforced_request_percentages(percentages)
    for broker_id in range(readers):
        board.readers.record(Report(broker_id, False, 0), None, 0.0)
    block = capability.block()
    assert block is not None
    assert (f"{users} throttled for opening too many producer ids.",) == block.sentences
