"""The real daemon as a process: its start, its signals, its restart, and its secrets."""

import asyncio
import contextlib
import io
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from kio.schema.errors import ErrorCode

from sidecar.cli import group
from sidecar.quotas.entities import Entity
from tests.sidecar.requestlog.lines import BY_HAND
from tests.support.background import bootstrap
from tests.support.daemon import Daemon, started
from tests.support.examples import mostly_rare
from tests.support.fake_broker import FakeCluster, FakeLogDir
from tests.support.fake_producers import FakeProducers
from tests.support.fake_quotas import FakeQuotas
from tests.support.waiting import seen

MB = 1_000_000
HEALTHY = FakeLogDir("/var/lib/kafka/data-0", 64 * MB, 50 * MB)
FULL = FakeLogDir("/var/lib/kafka/data-0", 64 * MB, 40 * MB)

DECIDED = r"throttle factor \S+ \(observation\)"

TOKEN = "s3cr3t-t0k3n"
PASSWORD = "p4ssw0rd-0f-4lice"

PATIENCE_S = 30.0

LATE = "did not stop in time"
"""The daemon logs it 1.8 s after a signal, and ends without what still runs."""


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    """Three brokers with a healthy volume each."""
    cluster = FakeCluster().add(3)
    for broker in cluster.brokers.values():
        broker.log_dirs = (HEALTHY,)
    async with cluster:
        yield cluster


@pytest.fixture
def settings(cluster: FakeCluster) -> dict[str, str]:
    """The settings that a daemon needs to watch the cluster."""
    return {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap(cluster),
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(40 * MB),
        "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": "PT0.1S",
        "SIDECAR_STORAGE_CHECK_INTERVAL": "PT0.2S",
    }


@pytest.fixture
def token_file(tmp_path: Path, settings: dict[str, str]) -> Path:
    """A token, and the setting that names it."""
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    settings["SIDECAR_TOKEN_FILE"] = str(path)
    return path


@pytest.fixture
def state_file(tmp_path: Path, settings: dict[str, str]) -> Path:
    """A state file that is not there yet, and the setting that names it."""
    path = tmp_path / "state.json"
    settings["SIDECAR_STATE_FILE"] = str(path)
    return path


def is_free(port: int) -> bool:
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            free.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def place(path: Path, text: str) -> None:
    """Writes a file while a daemon runs."""
    path.write_text(text)


def saved(state_file: Path) -> dict[str, Any]:
    """The content of a state file."""
    document: dict[str, Any] = json.loads(state_file.read_bytes())["state"]
    return document


def read(path: Path) -> str:
    """The content of a file."""
    return path.read_text()


def turn_into(path: Path, make: Callable[[Path], None]) -> None:
    """Puts something else in a file's place."""
    path.unlink()
    make(path)


def unfinished(state_file: Path) -> list[Path]:
    """What an unfinished write of the state file leaves."""
    return list(state_file.parent.glob(".state*"))


async def ends_well(daemon: Daemon, number: signal.Signals = signal.SIGTERM) -> None:
    """It ends in time, with exit code 0 and no traceback."""
    assert 0 == await daemon.end(number)
    assert LATE not in daemon.output
    assert "Traceback" not in daemon.output


class TestStart:
    @pytest.mark.slow
    async def test_it_logs_its_address_decides_and_follows_the_cluster(
        self, tmp_path: Path, settings: dict[str, str], cluster: FakeCluster
    ) -> None:
        """The cluster is healthy, full, freed again: HTTP and a line in the log say so."""
        async with started(tmp_path, settings) as daemon:
            await daemon.logs(DECIDED)
            await daemon.decides(1.0)
            assert 200 == (await daemon.ask("/readyz")).status_code
            assert 403 == (await daemon.override(TOKEN)).status_code
            cluster.brokers[1].has(FULL)
            await daemon.logs(r"throttle factor 0\.0 \(observation\): broker 1 ")
            assert 0.0 == (await daemon.factor())["factor"]
            cluster.brokers[1].has(HEALTHY)
            await daemon.logs(r"throttle factor 1\.0 \(observation\)", 2)
            # Some 10 polls later nothing more was logged above DEBUG.
            assert 3 == len(re.findall(DECIDED, daemon.output))
            assert "SIDECAR_STATE_FILE is not set: a restart forgets" in daemon.output

    @pytest.mark.slow
    async def test_what_is_seen_goes_into_the_history(
        self, tmp_path: Path, settings: dict[str, str]
    ) -> None:
        """Each poll adds a line, the last one whole after a stop; the metrics count them."""
        folder = tmp_path / "history"
        folder.mkdir()
        async with started(tmp_path, settings | {"SIDECAR_HISTORY_DIR": str(folder)}) as daemon:
            await daemon.logs(DECIDED)
            await seen(
                "two lines",
                daemon.metrics,
                lambda metrics: (metrics.value("history_observations_total") or 0) >= 2,
            )
            assert 0 == await daemon.end()
        files = sorted(folder.glob("*.jsonl"))
        lines = [json.loads(line) for each in files for line in each.read_bytes().splitlines()]
        assert 2 <= len(lines)
        # Port 0 is the same for all: then the process id makes the difference.
        origin = f"{socket.gethostname()}-{daemon.pid}"
        assert {origin} == {line["origin"] for line in lines}
        assert {0, 1, 2} == {volume["broker_id"] for volume in lines[0]["volumes"]}

    @pytest.mark.slow
    async def test_a_port_in_use_is_exit_code_2_and_one_line(
        self, tmp_path: Path, settings: dict[str, str]
    ) -> None:
        """It is printed before anything else is started."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            async with started(tmp_path, settings | {"SIDECAR_HTTP_LISTEN": address}) as daemon:
                assert 2 == await daemon.exit_code()
        reported = [line for line in daemon.output.splitlines() if "SIDECAR_STATE_FILE" not in line]
        assert 1 == len(reported)
        assert address in reported[0]
        assert "in use" in reported[0]


class TestStop:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    @pytest.mark.slow
    async def test_a_signal_ends_it_within_2_s_although_50_readers_wait(
        self, tmp_path: Path, settings: dict[str, str], cluster: FakeCluster, number: signal.Signals
    ) -> None:
        """The exit code is 0, every reader is answered, its port free and no broker connected."""
        async with started(tmp_path, settings) as daemon, AsyncExitStack() as stack:
            await daemon.logs(DECIDED)
            port = port_of(daemon.url)
            etag = (await daemon.ask("/v1/throttle-factor")).headers["ETag"]
            readers = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port), 5))
                for _ in range(50)
            ]
            for reader in readers:
                reader.sendall(
                    b"GET /v1/throttle-factor HTTP/1.1\r\nHost: x\r\nPrefer: wait=60\r\n"
                    b"If-None-Match: " + etag.encode() + b"\r\n\r\n"
                )
            # An answer after theirs means that theirs are being waited for.
            await daemon.ask("/healthz")
            await ends_well(daemon, number)
            answers = [reader.recv(4096) for reader in readers]
            assert {b"HTTP/1.1 304"} == {answer[:12] for answer in answers}
            assert is_free(port)
        assert f"stopping on {number.name}" in daemon.output
        assert daemon.output.endswith(" INFO    stopped\n")
        await seen(
            "no connection",
            lambda: not any(broker.connections for broker in cluster.brokers.values()),
        )

    @pytest.mark.slow
    async def test_a_poll_that_hangs_does_not_delay_it(
        self, tmp_path: Path, settings: dict[str, str], cluster: FakeCluster
    ) -> None:
        """A broker takes the request and says nothing."""
        cluster.brokers[1].twist = lambda *_: None
        async with started(tmp_path, settings) as daemon:
            await seen("a request", lambda: cluster.brokers[1].requests)
            await ends_well(daemon)

    @pytest.mark.slow
    async def test_a_second_signal_ends_it_at_once(
        self, tmp_path: Path, settings: dict[str, str]
    ) -> None:
        """Both arrive while it stands still, so that the first can't be done before the second."""
        async with started(tmp_path, settings) as daemon:
            await daemon.logs(DECIDED)
            daemon.send(signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT)
            code = await daemon.exit_code()
        assert code in {128 + signal.SIGTERM, 128 + signal.SIGINT}

    @pytest.mark.slow
    def test_a_log_that_nobody_reads_delays_neither_readers_nor_the_end(
        self, settings: dict[str, str]
    ) -> None:
        """Standard error is a pipe that is full."""
        read_end, write_end = os.pipe()
        environ = {"SIDECAR_HTTP_LISTEN": "127.0.0.1:0", **settings}
        with (
            os.fdopen(read_end) as log,
            os.fdopen(write_end, "wb", buffering=0) as pipe,
            subprocess.Popen(
                [sys.executable, "-m", "sidecar", "run"], env=environ, stderr=pipe
            ) as process,
        ):
            try:
                while "listens on " not in (line := log.readline()):
                    assert line
                health = f"{line.split()[-1]}/healthz"
                fill(pipe)
                process.send_signal(signal.SIGHUP)
                for _ in range(10):
                    assert 200 == httpx.get(health, timeout=PATIENCE_S).status_code
                process.send_signal(signal.SIGTERM)
                assert 0 == process.wait(PATIENCE_S)
            finally:
                process.kill()

    @pytest.mark.slow
    def test_a_disk_that_hangs_at_the_start_does_not_delay_it(
        self, tmp_path: Path, settings: dict[str, str]
    ) -> None:
        """The token file is a pipe into which nobody writes."""
        file = tmp_path / "token"
        os.mkfifo(file)
        environ = {"SIDECAR_TOKEN_FILE": str(file), **settings}
        argv = [sys.executable, "-m", "sidecar", "run"]
        with subprocess.Popen(argv, env=environ, stderr=subprocess.DEVNULL) as process:
            try:
                with opened_by_reader(file):
                    process.send_signal(signal.SIGTERM)
                    assert 0 == process.wait(PATIENCE_S)
            finally:
                process.kill()


def opened_by_reader(pipe: Path) -> io.RawIOBase:
    """Opens a pipe to write into it, when somebody has opened it to read."""
    while True:
        # Without a reader, this fails.
        with contextlib.suppress(OSError):
            return os.fdopen(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "wb", buffering=0)
        time.sleep(0.02)


def fill(pipe: io.RawIOBase) -> None:
    """Writes until nothing fits any more."""
    os.set_blocking(pipe.fileno(), False)
    for block in (b"x" * 4096, b"x"):
        while pipe.write(block):
            pass
    os.set_blocking(pipe.fileno(), True)


@pytest.mark.slow
class TestReload:
    async def test_sighup_reads_the_token_again(
        self, tmp_path: Path, settings: dict[str, str], token_file: Path
    ) -> None:
        """The old one is refused from then on; a malformed one leaves it in force."""
        async with started(tmp_path, settings) as daemon:
            await daemon.logs(DECIDED)
            assert 200 == (await daemon.override(TOKEN)).status_code
            place(token_file, "")
            daemon.send(signal.SIGHUP)
            await daemon.logs(rf" ERROR .*SIGHUP: .*{token_file}")
            place(token_file, "another-token")
            assert 200 == (await daemon.override(TOKEN)).status_code
            daemon.send(signal.SIGHUP)
            await daemon.logs("SIGHUP: read ")
            assert 401 == (await daemon.override(TOKEN)).status_code
            assert 200 == (await daemon.override("another-token")).status_code

    async def test_sighup_reads_credentials_again_and_keeps_the_old_when_they_are_broken(
        self, tmp_path: Path, settings: dict[str, str], cluster: FakeCluster
    ) -> None:
        """The password changes at the brokers and in the file, and no poll is lost for good."""
        properties = tmp_path / "sidecar.properties"

        def write(password: str, end: str = ";") -> None:
            properties.write_text(
                "client.quota.callback.static.kafka.admin.security.protocol=SASL_PLAINTEXT\n"
                "client.quota.callback.static.kafka.admin.sasl.mechanism=PLAIN\n"
                "client.quota.callback.static.kafka.admin.sasl.jaas.config="
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'username="alice" password="{password}"{end}\n'
            )

        cluster.users = {"alice": PASSWORD}
        write(PASSWORD)
        async with started(tmp_path, settings, "--properties", str(properties)) as daemon:
            await daemon.logs(DECIDED)
            write("new-" + PASSWORD, end="")
            daemon.send(signal.SIGHUP)
            await daemon.logs(" ERROR .*SIGHUP: ")
            write("new-" + PASSWORD)
            cluster.users = {"alice": "new-" + PASSWORD}
            before = [broker.connected for broker in cluster.brokers.values()]
            daemon.send(signal.SIGHUP)
            await daemon.logs("SIGHUP: read ")
            cluster.brokers[1].has(FULL)
            await daemon.logs(r"throttle factor 0\.0 \(observation\)")
            after = [broker.connected for broker in cluster.brokers.values()]
            assert sum(after) > sum(before)
            assert PASSWORD not in daemon.output


@pytest.mark.slow
async def test_idle_connections_blind_it_neither_to_brokers_nor_to_readers(
    tmp_path: Path, settings: dict[str, str], cluster: FakeCluster
) -> None:
    """200 idle connections want its 128 files: brokers are redialled, readers answered."""
    async with started(tmp_path, settings, files=128) as daemon, AsyncExitStack() as stack:
        await daemon.logs(DECIDED)
        address = ("127.0.0.1", port_of(daemon.url))
        idle = [stack.enter_context(socket.create_connection(address, 5)) for _ in range(200)]
        await daemon.logs(" WARNING .* 64 ")
        for broker in cluster.brokers.values():
            broker.drop()
        cluster.brokers[1].has(FULL)
        await daemon.logs(r"throttle factor 0\.0 \(observation\): broker 1 ")
        await daemon.decides(0.0)
        assert 200 == (await daemon.ask("/metrics")).status_code
        for each in idle:
            each.close()
        assert 0 == await daemon.end()
    assert 1 == len(re.findall(" WARNING .* 64 ", daemon.output))
    assert "Traceback" not in daemon.output


@pytest.mark.slow
class TestRestart:
    async def test_killed_it_comes_back_with_decision_and_override(
        self,
        tmp_path: Path,
        settings: dict[str, str],
        cluster: FakeCluster,
        token_file: Path,
        state_file: Path,
    ) -> None:
        """After kill -9 the cluster can't be seen any more: all that is known is on disk."""
        cluster.brokers[1].has(FULL)
        async with started(tmp_path, settings) as daemon:
            await daemon.logs(r"throttle factor 0\.0 \(observation\)")
            answer = await daemon.override(TOKEN, 0.25)
            assert answer.json()["persisted"] is True
            before = await daemon.factor()
            etag = (await daemon.ask("/v1/throttle-factor")).headers["ETag"]
            await daemon.end(signal.SIGKILL)
        blind = settings | {"SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
        async with started(tmp_path, blind) as daemon:
            after = await daemon.factor()
            assert (0.25, "override") == (after["factor"], after["source"])
            assert before["since"] == after["since"]
            assert [1] == [volume["broker_id"] for volume in after["violations"]]
            assert etag != (await daemon.ask("/v1/throttle-factor")).headers["ETag"]
            shown = (await daemon.get("/v1/override"))["override"]
            assert answer.json()["override"] == shown
            headers = ["--sidecars", daemon.address, "--token-file", str(token_file)]
            assert 0 == CliRunner().invoke(group, ["override", "clear", *headers]).exit_code
            after = await daemon.factor()
            assert (0.0, "observation") == (after["factor"], after["source"])

    async def test_killed_while_nothing_is_admitted_it_comes_back_so(
        self, tmp_path: Path, settings: dict[str, str], cluster: FakeCluster, state_file: Path
    ) -> None:
        """A volume is at the stop line that is set: API, page and log say so, and the disk."""
        settings |= {"SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES": str(20 * MB)}
        cluster.brokers[1].has(replace(HEALTHY, available_bytes=20 * MB))
        async with started(tmp_path, settings) as daemon:
            await daemon.logs(
                "stop line reached by broker 1 /var/lib/kafka/data-0: producers would be refused"
            )
            factor, quota_factors = await daemon.factor(), await daemon.get("/v1/quota-factors")
            newest = (await daemon.get("/v1/decisions"))["decisions"][0]
            page = (await daemon.ask("/")).text
            stops = r'"is_at_stop_line": true'
            await seen("it on disk", state_file.exists)
            await seen("it on disk", lambda: re.search(stops, read(state_file)))
            await daemon.end(signal.SIGKILL)
        assert [True, True] == [each["stop_line_reached"] for each in (factor, newest)]
        assert True is quota_factors["stop"]
        line = {"type": "min_available_bytes", "value": 20 * MB}
        for each in (factor, newest):
            assert [(1, line)] == [
                (one["broker_id"], one["limit"]) for one in each["stop_line_violations"]
            ]
        assert "At the stop line, 20.0\u00a0MB, brokers refuse producers" in page
        blind = settings | {"SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
        async with started(tmp_path, blind) as daemon:
            after = await daemon.factor()
        assert True is after["stop_line_reached"]
        assert factor["stop_line_violations"] == after["stop_line_violations"]

    async def test_what_was_seen_just_before_a_stop_is_on_disk(
        self, tmp_path: Path, settings: dict[str, str], cluster: FakeCluster, state_file: Path
    ) -> None:
        """Sizes that change no decision are written seconds later, or by the stop at the latest."""
        async with started(tmp_path, settings) as daemon:
            await daemon.logs(DECIDED)
            cluster.brokers[1].has(replace(HEALTHY, available_bytes=45 * MB))
            await seen(
                "45 MB",
                daemon.volumes,
                lambda now: 45 * MB in {each["available_bytes"] for each in now.values()},
            )
            assert 0 == await daemon.end()
        brokers = saved(state_file)["brokers"]
        available = [broker["volumes"][0]["available_bytes"] for broker in brokers]
        assert [50 * MB, 45 * MB, 50 * MB] == available
        assert [] == unfinished(state_file)

    async def test_a_damaged_state_file_is_set_aside_and_the_start_goes_on(
        self, tmp_path: Path, settings: dict[str, str], state_file: Path
    ) -> None:
        """An ERROR says so, once."""
        place(state_file, '{"version": 1, "sha256": "')
        async with started(tmp_path, settings) as daemon:
            await daemon.logs(DECIDED)
            await seen("a new state file", state_file.exists)
        reported = [line for line in daemon.output.splitlines() if " ERROR " in line]
        assert 1 == len(reported)
        assert "set aside" in reported[0]
        aside = state_file.with_name("state.json.damaged")
        assert b'{"version": 1, "sha256": "' == aside.read_bytes()


@pytest.mark.slow
async def test_override_show_clear_and_forget_on_two_real_sidecars(
    tmp_path: Path, settings: dict[str, str], cluster: FakeCluster, token_file: Path
) -> None:
    """One command asks two sidecars, and shows each one's answer."""
    cluster.brokers[2].has(FULL)
    async with started(tmp_path, settings) as one, started(tmp_path, settings) as other:
        for daemon in (one, other):
            await daemon.logs(r"throttle factor 0\.0 \(observation\): broker 2 ")
        cluster.brokers[2].fenced = True
        cluster.forget_answers()
        for daemon in (one, other):
            await daemon.shows_state(2, "fenced")
        sidecars = f"{one.address},{other.address}"

        def run(*args: str) -> tuple[int, str]:
            done = CliRunner().invoke(
                group,
                [*args, "--sidecars", sidecars],
                env={"SIDECAR_TOKEN_FILE": str(token_file), "COLUMNS": "200"},
            )
            assert TOKEN not in done.output
            return done.exit_code, done.output

        code, output = run("override", "set", "1.0", "--reason", "why", "--for", "PT5M")
        assert (0, 1) == (code, output.count(f"broker 2 {FULL.log_dir} "))
        assert 0 == run("override", "clear")[0]
        code, output = run("forget", "2")
        assert (0, 2) == (code, output.count("forgot 1 volume; the factor is 1.0"))
        code, output = run("override", "set", "0.5", "--reason", "why", "--for", "PT5M")
        assert (0, 2) == (code, output.count("factor 0.5 until "))
        code, _ = run("forget", "2")
        assert 1 == code
        await one.override(TOKEN, 0.75)
        code, output = run("override", "show")
        assert (0, True) == (code, "The sidecars disagree" in output)
        code, output = run("override", "clear")
        assert (0, 2) == (code, output.count("cleared; the factor is 1.0"))


@pytest.mark.slow
class TestSecrets:
    """No log, error or response has one: at debug, when all is well and when nothing is."""

    @pytest.mark.parametrize(
        ("form", "password_at_the_brokers"),
        mostly_rare([("text", PASSWORD), ("text", "another"), ("json", PASSWORD)], 2),
    )
    @pytest.mark.usefixtures("token_file")
    async def test_neither_password_nor_token_is_reported(
        self,
        *,
        tmp_path: Path,
        settings: dict[str, str],
        cluster: FakeCluster,
        state_file: Path,
        form: str,
        password_at_the_brokers: str,
    ) -> None:
        """Output, state file and all answers, with a refused login and wrong requests."""
        cluster.users = {"alice": password_at_the_brokers}
        secret = {
            "SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "SIDECAR_KAFKA_ADMIN_SASL_MECHANISM": "PLAIN",
            "SIDECAR_KAFKA_ADMIN_SASL_JAAS_CONFIG": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'username="alice" password="{PASSWORD}";'
            ),
            "SIDECAR_LOG_LEVEL": "debug",
            "SIDECAR_LOG_FORMAT": form,
        }
        async with started(tmp_path, settings | secret) as daemon:
            works = password_at_the_brokers == PASSWORD
            await daemon.logs(DECIDED if works else "authentication")
            known = (await daemon.get("/openapi.json"))["paths"]
            paths = [path for path, methods in known.items() if "get" in methods]
            assert 10 < len(paths)
            paths += ["/docs", "/openapi.json", "/nothing"]
            answers = [await daemon.ask(path) for path in paths]
            answers += [await daemon.override(TOKEN), await daemon.override(f"x{TOKEN}"[:-1])]
            answers += [await daemon.ask(f"/v1/brokers/{TOKEN}", token=TOKEN)]
            daemon.send(signal.SIGHUP)
            await daemon.logs("SIGHUP: read ")
            assert 0 == await daemon.end()
            if form == "json":
                records = [json.loads(line) for line in daemon.output.splitlines()]
                assert {"debug", "info"} <= {record["level"] for record in records}
        written = [daemon.output, read(state_file)]
        assert [True, True] == ["a migration" in each for each in written]
        answered = [f"{answer.headers}{answer.text}" for answer in answers]
        reported = "".join([*written, *answered])
        assert "alice" not in daemon.output or not works
        for each in (PASSWORD, TOKEN):
            assert each not in reported


def allocate_id(user: str, producer_id: int) -> bytes:
    """A broker's line: an id was allocated to a producer."""
    line = next(line for line in BY_HAND if b'"producerId":1000001' in line)
    line = line.replace(b'"producerId":1000001', b'"producerId":%d' % producer_id)
    return line.replace(b"User:alice", b"User:" + user.encode()) + b"\n"


@pytest.mark.slow
class TestProducerIds:
    """All of it is on: request log, peers, quota file, request_percentage of throttled users."""

    BOB = Entity(user="bob")
    WRITTEN = ("written", 0)

    @pytest.fixture
    def quotas(self, cluster: FakeCluster) -> FakeQuotas:
        """An operator's quota for alice, as brokers have it."""
        quotas = FakeQuotas({Entity(user="alice"): {"request_percentage": 200.0}})
        quotas.of(cluster)
        return quotas

    @pytest.fixture
    def log(self, tmp_path: Path, settings: dict[str, str], cluster: FakeCluster) -> Path:
        """The request log's file, with a quota of 5 ids that may all be allocated at once."""
        self.producers = FakeProducers({self.WRITTEN: next(iter(cluster.brokers))})
        self.producers.of(cluster)
        settings["SIDECAR_PRODUCER_ID_QUOTA_ACTIVE_INTERVAL"] = "PT0.1S"
        path = tmp_path / "requests.log"
        path.touch()
        file = tmp_path / "ids.toml"
        file.write_text("[default]\nproducer_ids_rate = 5\nthrottled_request_percentage = 0.01\n")
        settings["SIDECAR_REQUEST_LOG_FILE"] = str(path)
        settings["SIDECAR_PRODUCER_ID_QUOTA_FILE"] = str(file)
        settings["SIDECAR_PRODUCER_ID_QUOTA_WINDOW_NUM"] = "1"
        return path

    def opens(self, log: Path, user: str, *ids: int) -> None:
        with log.open("ab") as file:
            file.writelines(allocate_id(user, each) for each in ids)
        # Each producer writes with its id at once.
        written = self.producers.producers.setdefault(self.WRITTEN, [])
        written += [(each, 0, 0) for each in ids]

    def percentage(self, quotas: FakeQuotas) -> float | None:
        return quotas.quotas.get(self.BOB, {}).get("request_percentage")

    async def throttled(self, daemon: Daemon) -> set[str]:
        return set((await daemon.get("/v1/quota-factors"))["users"])

    async def is_followed(self, daemon: Daemon) -> None:
        """Waits until it is read from its end on: what is written before is not read."""
        await seen(
            "the request log is followed",
            lambda: daemon.get("/v1/producer-ids"),
            lambda reported: reported["request_log"]["exists"],
        )

    async def test_a_stop_leaves_nothing_in_kafka_and_a_restart_throttles_on(
        self, tmp_path: Path, settings: dict[str, str], quotas: FakeQuotas, log: Path
    ) -> None:
        """It exits with 0 in 2 s; the throttle is on disk, so the percentage is set again."""
        ids = itertools.count()
        async with started(tmp_path, settings) as other:
            await self.is_followed(other)
            # Its broker's log says nothing: it knows all from the other sidecar.
            own = settings | {"SIDECAR_REQUEST_LOG_FILE": str(tmp_path / "none.log")}
            own |= {"SIDECAR_STATE_FILE": str(tmp_path / "own.json"), "SIDECAR_PEERS": other.url}
            async with started(tmp_path, own) as daemon:
                await daemon.logs(DECIDED)

                async def both_throttle() -> bool:
                    self.opens(log, "bob", next(ids))
                    self.opens(log, "alice", next(ids))
                    throttled = await self.throttled(daemon)
                    return {"alice", "bob"} == throttled == await self.throttled(other)

                await seen("both throttle", both_throttle)
                await seen("a percentage", lambda: self.percentage(quotas) is not None)
                assert 0 == await other.end()
                # The one that still throttles sets it again.
                await seen("a percentage", lambda: self.percentage(quotas) is not None)
                await ends_well(daemon)
                assert self.percentage(quotas) is None
                assert "Traceback" not in other.output
                assert "is left in Kafka" not in daemon.output
            async with started(tmp_path, own) as daemon:
                assert {"alice", "bob"} == await self.throttled(daemon)
                await seen("a percentage", lambda: self.percentage(quotas) is not None)
        assert {"request_percentage": 200.0} == quotas.quotas[Entity(user="alice")]

    async def test_a_broker_that_does_not_answer_delays_no_stop(
        self,
        *,
        state_file: Path,
        tmp_path: Path,
        settings: dict[str, str],
        cluster: FakeCluster,
        quotas: FakeQuotas,
        log: Path,
    ) -> None:
        """What was set is on disk, and the next start takes it back or goes on."""
        async with started(tmp_path, settings) as daemon:
            await daemon.logs(DECIDED)
            await self.is_followed(daemon)
            self.opens(log, "bob", *range(6))
            await seen("a percentage", lambda: self.percentage(quotas) is not None)
            for broker in cluster.brokers.values():
                broker.twist = lambda *_: None
            await ends_well(daemon)
            assert re.search(" WARNING .*: bob$", daemon.output, re.MULTILINE)
        state = saved(state_file)
        assert {"bob"} == set(state["retained"]["producer_ids"]["enforced_request_percentages"])
        assert {"bob"} == {each["user"] for each in state["user_throttles"]}

    @pytest.mark.rare
    async def test_whatever_it_reads_from_misbehaves_it_runs_and_stops(
        self, tmp_path: Path, settings: dict[str, str], quotas: FakeQuotas, log: Path
    ) -> None:
        """The log is a pipe, the quota file becomes a folder, a peer hangs, brokers refuse."""
        turn_into(log, os.mkfifo)
        quotas.describe_error = ErrorCode.cluster_authorization_failed
        with socket.create_server(("127.0.0.1", 0)) as silent:
            peers = f"http://127.0.0.1:{silent.getsockname()[1]},http://127.0.0.1:1"
            async with started(tmp_path, settings | {"SIDECAR_PEERS": peers}) as daemon:
                await daemon.logs(DECIDED)
                file = Path(settings["SIDECAR_PRODUCER_ID_QUOTA_FILE"])
                turn_into(file, Path.mkdir)
                for source in (file, log, "http://127.0.0.1:1"):
                    await daemon.logs(rf" WARNING .*{source}\b")
                assert 200 == (await daemon.ask("/readyz")).status_code
                for path in ("/metrics", "/v1/producer-ids", "/v1/request-usage"):
                    assert 200 == (await daemon.ask(path)).status_code
                await ends_well(daemon)

    @pytest.mark.rare
    async def test_a_disabled_sidecar_reads_and_asks_nothing(
        self,
        *,
        tmp_path: Path,
        settings: dict[str, str],
        cluster: FakeCluster,
        quotas: FakeQuotas,
        log: Path,
    ) -> None:
        """PT0S, with brokers and a limit all the same: it is ready, and nobody is throttled."""
        disabled = settings | {"SIDECAR_STORAGE_CHECK_INTERVAL": "PT0S"}
        del disabled["SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM"]
        async with started(tmp_path, disabled) as daemon:
            factor = await daemon.factor()
            assert (1.0, "disabled") == (factor["factor"], factor["source"])
            assert 200 == (await daemon.ask("/readyz")).status_code
            self.opens(log, "bob", *range(6))
            await asyncio.sleep(1.0)  # nothing is to happen
            assert set() == await self.throttled(daemon)
            assert 0 == (await daemon.get("/v1/producer-ids"))["request_log"]["lines"]
            assert [0, 0, 0] == [broker.connected for broker in cluster.brokers.values()]
            assert 0 == await daemon.end()
        assert [] == quotas.requests
