"""A daemon that starts on a hanging disk serves without its state, and takes it over later."""

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from sidecar.control.board import PersistedState
from sidecar.daemon import remembered
from sidecar.daemon.machine import Machine
from sidecar.errors import SettingsError
from sidecar.settings import load
from sidecar.state import StateFile
from sidecar.state.disk import MachineDisk
from sidecar.throttle.decision import Source
from sidecar.throttle.memory import Memory, Override
from tests.sidecar.daemon.composed import ENVIRON, composed
from tests.support.background import bootstrap
from tests.support.fake_broker import FakeCluster, FakeLogDir


class HangingDisk(MachineDisk):
    """Answers reads when it may."""

    def __init__(self) -> None:
        self.answers = threading.Event()

    def read(self, path: Path) -> bytes:
        self.answers.wait(60.0)
        return super().read(path)


class FailingDisk(MachineDisk):
    """Fails the first reads."""

    def __init__(self, failures: float) -> None:
        self.failures = failures

    def read(self, path: Path) -> bytes:
        self.failures -= 1
        if self.failures >= 0:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return super().read(path)


def overridden(path: Path, now: float) -> bytes:
    """The content of a state file with an override of 0.5, which it writes."""
    override = Override(0.5, "of before", now - 10.0, now + 3600.0)
    state = PersistedState(Memory(override=override), 0.5, Source.OVERRIDE, now)
    rules = load(environ={**ENVIRON, "SIDECAR_STATE_FILE": str(path)}).settings.rules
    StateFile(path, rules).save(state, lambda steady_s: steady_s)
    return path.read_bytes()


async def test_a_read_that_fails_once_loses_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read again, and the daemon starts with it."""
    monkeypatch.setattr(remembered, "DEADLINE_S", 60.0)
    monkeypatch.setattr(remembered, "RETRY_S", 0.01)
    file = StateFile(tmp_path / "state.json", load(environ=ENVIRON).settings.rules, FailingDisk(1))
    override = Override(0.5, "of before", 1000.0, 2000.0)
    state = PersistedState(Memory(override=override), 0.5, Source.OVERRIDE, 1000.0)
    file.save(state, lambda steady_s: steady_s)
    assert (state, None, "") == await remembered.remembered(file, 1000.0)
    assert file.path.exists()


async def test_a_file_that_can_not_be_read_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers get no answer that might release; the file stays as it is until it can be read."""
    monkeypatch.setattr(remembered, "DEADLINE_S", 0.2)
    monkeypatch.setattr(remembered, "RETRY_S", 0.01)
    path, disk = tmp_path / "state.json", FailingDisk(float("inf"))
    environ = {"SIDECAR_STATE_FILE": str(path)}
    machine = Machine(disk=disk)
    written = overridden(path, machine.clock.now())
    async with composed(environ, machine) as (parts, client):
        answer = await client.get("/v1/throttle-factor")
        assert 503 == answer.status_code
        assert "is not read yet: Stale file handle" in answer.json()["detail"]
        assert written == path.read_bytes()
        generation = parts.board.snapshot.generation
        disk.failures = 0
        await parts.board.wait_for_change(generation, 10.0)
        assert 0.5 == (await client.get("/v1/throttle-factor")).json()["factor"]


async def test_a_file_that_can_never_be_read_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then quotas and relief wait for what it may have, so after the validity they go on."""
    monkeypatch.setattr(remembered, "DEADLINE_S", 0.05)
    monkeypatch.setattr(remembered, "RETRY_S", 0.01)
    rules = load(environ={**ENVIRON, "SIDECAR_THROTTLE_FACTOR_VALIDITY_DURATION": "PT0.2S"})
    path = tmp_path / "state.json"
    path.write_bytes(b"content")
    file = StateFile(path, rules.settings.rules, FailingDisk(float("inf")))
    _, late, _ = await remembered.remembered(file, 1000.0)
    assert late is not None
    assert path.exists()
    assert await late() is None
    assert b"content" == path.with_name("state.json.damaged").read_bytes()


async def test_a_daemon_refuses_a_folder_in_place_of_its_state_file(tmp_path: Path) -> None:
    """It may be a log dir of Kafka, and is not renamed."""
    file = StateFile(tmp_path, load(environ=ENVIRON).settings.rules)
    with pytest.raises(SettingsError, match="is a folder or a device: name a file"):
        await remembered.remembered(file, 1000.0)


async def test_a_daemon_starts_without_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It releases nobody unseen, polls, and writes nothing until it has read the file."""
    monkeypatch.setattr(remembered, "DEADLINE_S", 0.2)
    path, disk = tmp_path / "state.json", HangingDisk()
    cluster = FakeCluster().add(1)
    (broker,) = cluster.brokers.values()
    broker.log_dirs = (FakeLogDir("/d", 100, 50),)
    async with cluster:
        environ = {
            "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap(cluster),
            "SIDECAR_STATE_FILE": str(path),
        }
        machine = Machine(disk=disk)
        written = overridden(path, machine.clock.now())
        try:
            async with composed(environ, machine) as (parts, client):
                assert parts.board.withheld
                assert 200 == (await client.get("/healthz")).status_code
                await parts.board.wait_for_change(1, 10.0)
                answer = await client.get("/v1/quota-factors")
                assert (200, 1.0) == (answer.status_code, answer.json()["factor"])
                assert written == path.read_bytes()
                generation = parts.board.snapshot.generation
                disk.answers.set()
                await parts.board.wait_for_change(generation, 10.0)
                assert 0.5 == (await client.get("/v1/throttle-factor")).json()["factor"]
        finally:
            disk.answers.set()
    stored = json.loads(path.read_bytes())["state"]
    assert (0.5, 1) == (stored["override"]["factor"], len(stored["brokers"]))
    (line,) = (each for each in caplog.messages if "is not read yet" in each)
    assert "its disk does not answer; the sidecar starts without it" in line


async def test_readers_get_no_answer_that_might_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No broker answers the daemon, so it does not know whether one is full."""
    monkeypatch.setattr(remembered, "DEADLINE_S", 0.2)
    disk = HangingDisk()
    environ = {"SIDECAR_STATE_FILE": str(tmp_path / "state.json")}
    async with composed(environ, Machine(disk=disk)) as (_, client):
        for path in ("/v1/quota-factors", "/v1/throttle-factor"):
            answer = await client.get(path)
            assert 503 == answer.status_code
            assert "is not read yet" in answer.json()["detail"]
    disk.answers.set()
    assert not (tmp_path / "state.json").exists()
