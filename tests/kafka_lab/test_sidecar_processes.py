"""The demo's sidecars: how they are started, and how they are asked."""

import signal
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafka_lab.ports import Ports
from kafka_lab.sidecar_processes import Sidecar, start_sidecars, stop_sidecars, write_token
from sidecar.api.bearer_token import read_token
from sidecar.errors import ClusterError
from tests.kafka_lab.clusters import FakeCluster
from tests.support.background import Canned, serving

LISTENS = "throttle-sidecar 0.1.0 listens on http://127.0.0.1:{}\n"


class Started:
    """Processes that report at once where they listen."""

    def __init__(self) -> None:
        self.argv: dict[str, list[str]] = {}

    def __call__(self, name: str, argv: Sequence[str], log: Path) -> None:
        self.argv[name] = list(argv)
        log.write_text("INFO " + LISTENS.format(7000 + len(self.argv)))


async def test_one_daemon_starts_beside_each_broker(tmp_path: Path) -> None:
    """It gets the cluster's addresses, its broker's port, a state file and the other settings."""
    run = Started()
    cluster = FakeCluster(tmp_path, run=run)
    sidecars = await start_sidecars(cluster, {"SIDECAR_LOG_LEVEL": "debug"})
    assert [0, 1, 2] == [each.broker_id for each in sidecars]
    assert ["sidecar 0", "sidecar 1", "sidecar 2"] == sorted(run.argv)
    assert {7001, 7002, 7003} == {each.port for each in sidecars}
    assert "http://127.0.0.1:7001" == sidecars[0].url
    argv = run.argv["sidecar 1"]
    assert ["env", "-i"] == argv[:2], "no SIDECAR_* of the caller's shell reaches it"
    assert [sys.executable, "-m", "sidecar", "run"] == argv[-4:]
    assert {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094",
        "SIDECAR_HTTP_LISTEN=127.0.0.1:7001",
        f"SIDECAR_STATE_FILE={tmp_path}/sidecar-1/state.json",
        "SIDECAR_LOG_LEVEL=debug",
    } == set(argv[2:-4])


async def test_an_earlier_start_s_log_is_not_taken_for_news(tmp_path: Path) -> None:
    """The port is that of the process that runs now; the earlier log stays beside the new one."""
    ports = iter((7001, 7002))

    def append(name: str, argv: Sequence[str], log: Path) -> None:
        with log.open("a") as file:
            file.write(LISTENS.format(next(ports)))

    for port in (7001, 7002):
        (sidecar,) = await start_sidecars(FakeCluster(tmp_path, brokers=1, run=append), {})
        assert port == sidecar.port
    folder = tmp_path / "sidecar-0"
    assert LISTENS.format(7001) == (folder / "sidecar.1.log").read_text()
    assert LISTENS.format(7002) == (folder / "sidecar.log").read_text()


async def test_a_daemon_that_ends_at_its_start_says_why(tmp_path: Path) -> None:
    """The error comes at once, with the end of its log."""

    def fail(name: str, argv: Sequence[str], log: Path) -> None:
        log.write_text("SIDECAR_LOG_LEVEL: not a level\n")
        cluster.ends[name] = 2

    cluster = FakeCluster(tmp_path, run=fail)
    with pytest.raises(ClusterError, match=r"(?s)sidecar \d did not start.*not a level"):
        await start_sidecars(cluster, {"SIDECAR_LOG_LEVEL": "loud"})


@pytest.mark.slow
@pytest.mark.looptime
async def test_a_daemon_that_never_listens_is_not_waited_for_longer_than_30_s(
    tmp_path: Path,
) -> None:
    """The error has the end of its output."""

    def hang(name: str, argv: Sequence[str], log: Path) -> None:
        log.write_text("still thinking\n")

    with pytest.raises(ClusterError, match=r"(?s)sidecar 0 did not start.*still thinking"):
        await start_sidecars(FakeCluster(tmp_path, brokers=1, run=hang), {})


@pytest.mark.looptime
async def test_the_daemons_are_ended_and_waited_for(tmp_path: Path) -> None:
    """They get a SIGTERM each; one that does not end is an error, 15 s later."""
    cluster = FakeCluster(tmp_path)
    await stop_sidecars(cluster)
    assert [(f"sidecar {number}", signal.SIGTERM) for number in range(3)] == cluster.signals
    cluster.ends = {"sidecar 0": 0, "sidecar 2": 0}
    cluster.obeys = False
    with pytest.raises(ClusterError, match="the sidecars did not end within 15 s"):
        await stop_sidecars(cluster)


async def test_a_cluster_that_is_not_up_has_neither_sidecars_nor_a_token() -> None:
    """There is no folder for them."""
    with pytest.raises(ClusterError, match="not up"):
        await start_sidecars(FakeCluster(None), {})
    with pytest.raises(ClusterError, match="not up"):
        write_token(FakeCluster(None))


def test_a_token_is_random_and_for_its_owner_alone(tmp_path: Path) -> None:
    """It is in the cluster's folder, so that it is removed with it; the sidecars read it."""
    tokens = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        file = write_token(FakeCluster(tmp_path / name))
        assert tmp_path / name == file.parent
        assert 0o600 == stat.S_IMODE(file.stat().st_mode)
        tokens.add(read_token(file))
    assert 2 == len(tokens)
    assert min(map(len, tokens)) >= 32


async def test_an_answer_has_status_etag_and_body() -> None:
    """The request has its path and headers."""
    said = (200, {"ETag": '"a-1"'}, b'{"factor":\n1.0}\n')
    with serving(Canned({"GET /v1/throttle-factor": said})) as canned:
        port = int(canned.address.rpartition(":")[2])
        sidecar = Sidecar(0, "127.0.0.1", port, Path("log"))
        answer = await sidecar.get("/v1/throttle-factor", {"Prefer": "wait=1"}, 1.0)
        assert 404 == (await sidecar.get("/elsewhere")).status
    assert (200, '"a-1"') == (answer.status, answer.etag)
    assert {"factor": 1.0} == answer.document()
    assert ['{"factor":', "1.0}"] == answer.lines()
    assert "wait=1" == canned.asked[0].headers["Prefer"]


async def test_a_sidecar_that_is_gone_is_an_error_with_its_address() -> None:
    """There is no traceback for a person who runs the demo."""
    with Ports() as ports:
        port = ports.reserve()
        sidecar = Sidecar(0, "127.0.0.1", port, Path("log"))
        with pytest.raises(ClusterError, match=f"127.0.0.1:{port} did not answer: .*refused"):
            await sidecar.get("/healthz")
