"""SIGHUP changes all or nothing."""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.control.capability import Capability
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.tokens import Tokens
from sidecar.daemon import reload as module
from sidecar.daemon.reload import Credentials, Reload
from sidecar.errors import SettingsError
from sidecar.kafka import KafkaVolumeSource
from sidecar.settings import KafkaAdmin, PemFiles, Settings, load
from tests.support.waiting import seen

SERVERS = "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS"


class Source(KafkaVolumeSource):
    """Records what it is changed to; asks nobody."""

    is_refused = False

    def __init__(self, changed: list[str]) -> None:
        self._changed = changed

    def reload(self, admin: KafkaAdmin, *, redial: bool = True) -> Callable[[], None]:
        return lambda: self._changed.append(f"source {admin.bootstrap_servers[0]}")


class Part(Capability):
    """Accepts what it gets, refuses it, or fails."""

    def __init__(self, name: str, changed: list[str], error: Exception | None = None) -> None:
        self.name = name
        self._changed = changed
        self._error = error

    def reload(self, settings: Settings, *, redial: bool = True) -> Callable[[], None]:
        if self._error is not None:
            raise self._error
        return lambda: self._changed.append(self.name)


class Scene:
    """A daemon's reload, of which the token file and one capability may be wrong."""

    def __init__(self, path: Path, error: Exception | None = None) -> None:
        self.changed: list[str] = []
        self.token_file = path / "token"
        self.token_file.write_text("new")
        self.environ = {
            SERVERS: "kafka-1:9092",
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "1",
            "SIDECAR_TOKEN_FILE": str(self.token_file),
        }
        self.credentials = Credentials(Tokens("old", lambda: 0.0), None)
        self.failures = CapabilityFailures(["a", "b"])
        self.reload = Reload(
            self._load,
            self.credentials,
            Source(self.changed),
            [Part("a", self.changed), Part("b", self.changed, error)],
            self.failures,
            self._load(),
        )

    def _load(self) -> Settings:
        return load(environ=self.environ).settings


async def test_all_take_over_what_is_new(tmp_path: Path) -> None:
    """The source, the token and the capabilities are new."""
    scene = Scene(tmp_path)
    await scene.reload.read()
    assert ["source kafka-1:9092", "a", "b"] == scene.changed
    assert "new" == scene.credentials.tokens.current


@pytest.mark.parametrize("refused_by", ["token", "capability"])
async def test_nothing_changes_when_one_refuses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, refused_by: str
) -> None:
    """The parts before it are not changed either; one line says so."""
    error = SettingsError(("a bad certificate",)) if refused_by == "capability" else None
    scene = Scene(tmp_path, error)
    if refused_by == "token":
        scene.token_file.write_text("")
    with caplog.at_level(logging.INFO):
        await scene.reload.read()
    assert [] == scene.changed
    assert "old" == scene.credentials.tokens.current
    (message,) = caplog.messages
    assert message.startswith("SIGHUP: nothing was changed: ")


async def test_a_capability_that_fails_keeps_the_others_from_nothing(tmp_path: Path) -> None:
    """It is counted, and goes on with its old credentials."""
    scene = Scene(tmp_path, RecursionError())
    await scene.reload.read()
    assert ["source kafka-1:9092", "a"] == scene.changed
    assert "new" == scene.credentials.tokens.current
    assert 1 == scene.failures.count("b")


async def test_changed_settings_that_need_a_restart_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The limit and the mode do; addresses and the token's file do not."""
    scene = Scene(tmp_path)
    other = tmp_path / "other"
    other.write_text("newer")
    scene.environ |= {
        SERVERS: "kafka-2:9092",
        "SIDECAR_MODE": "observe",
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "2",
        "SIDECAR_TOKEN_FILE": str(other),
    }
    with caplog.at_level(logging.INFO):
        await scene.reload.read()
    assert "newer" == scene.credentials.tokens.current
    assert caplog.messages[1:] == [
        "SIGHUP: these changed settings apply only after a restart: SIDECAR_MODE,"
        " SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES"
    ]


async def test_files_are_read_once_for_all_connections(tmp_path: Path) -> None:
    """The credentials that connections use have the contents."""
    scene = Scene(tmp_path)
    file = tmp_path / "ca.pem"
    file.write_bytes(b"trusted")
    scene.environ |= {
        "SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL": "SSL",
        "SIDECAR_KAFKA_ADMIN_SSL_TRUSTSTORE_LOCATION": str(file),
    }
    await scene.reload.read()
    assert scene.credentials.kafka_admin is not None
    assert PemFiles(b"trusted", None, None) == scene.credentials.kafka_admin.files


async def test_former_tokens_end(tmp_path: Path) -> None:
    """Also one of a change of the file before the signal."""
    scene = Scene(tmp_path)
    scene.credentials.tokens.replace("newer", ends_former=False)
    await scene.reload.read()
    for former in (b"old", b"newer"):
        assert not await scene.credentials.tokens.accept(former)
    assert await scene.credentials.tokens.accept(b"new")


class Pipe:
    """A token file that hangs when it is opened, as on a dead network file system."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = -1
        file.unlink()
        os.mkfifo(file)

    async def hangs(self) -> None:
        """Return when somebody reads it."""
        self._descriptor = await asyncio.to_thread(os.open, self._file, os.O_WRONLY)

    def answer(self, token: str, later: str) -> None:
        """The read that hangs gets a token, and later ones get another."""
        descriptor = self._descriptor
        self._file.unlink()
        self._file.write_text(later)
        os.write(descriptor, token.encode())
        os.close(descriptor)


async def test_a_disk_that_hangs_holds_up_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop goes on, one line is logged, and a second signal is handled after the first."""
    monkeypatch.setattr(module, "DEADLINE_S", 0.05)
    caplog.set_level(logging.INFO)
    scene = Scene(tmp_path)
    pipe = Pipe(scene.token_file)
    scene.reload()
    await pipe.hangs()
    await seen("a line", lambda: "were not read within 0.05 s" in caplog.text)
    scene.reload()
    assert "old" == scene.credentials.tokens.current
    pipe.answer("first", "second")
    await seen("the token", lambda: scene.credentials.tokens.current == "second")
    assert 2 == caplog.text.count("SIGHUP: read TLS material")


async def test_files_that_changed_during_the_read_are_read_again(tmp_path: Path) -> None:
    """They were read by themselves meanwhile, and the signal's read is older."""
    scene = Scene(tmp_path)
    pipe = Pipe(scene.token_file)
    scene.reload()
    await pipe.hangs()
    scene.reload.settings = scene.reload.settings.model_copy()
    pipe.answer("older", "newest")
    await seen("the token", lambda: scene.credentials.tokens.current != "old")
    assert "newest" == scene.credentials.tokens.current
