"""Files and brokers change one after the other, in either order, and polls go on."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.tokens import Tokens
from sidecar.daemon import secret_files as secret_files_module
from sidecar.daemon.reload import Credentials, Reload
from sidecar.daemon.secret_files import SecretFiles, stamps_of
from sidecar.kafka import KafkaVolumeSource
from sidecar.kafka.client.link import RENEW_S
from sidecar.kafka.client.one_call import query_any
from sidecar.kafka.cluster_answers import read_cluster
from sidecar.kafka.cluster_messages import DescribeCluster
from sidecar.settings import Settings, load, read_again, secret_files
from sidecar.volumes import Failure, FailureKind, Observation
from tests.sidecar.kafka.servers import Clock, bootstrap
from tests.support.fake_broker import FakeCluster
from tests.support.mounted import MountedSecret

ADMIN = "SIDECAR_KAFKA_ADMIN_"


class Scene:
    """A daemon's connections and the file with its password, and brokers with theirs."""

    def __init__(self, folder: Path, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.clock = Clock()
        self.secret = MountedSecret(folder / "secret")
        self.secret.holds(password=b"first")
        environ = {
            f"{ADMIN}BOOTSTRAP_SERVERS": str(bootstrap(cluster)),
            f"{ADMIN}SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            f"{ADMIN}SASL_MECHANISM": "PLAIN",
            f"{ADMIN}SASL_USERNAME": "ann",
            f"{ADMIN}SASL_PASSWORD_FILE": str(self.secret.folder / "password"),
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "1",
        }

        def loaded() -> Settings:
            return read_again(load(environ=environ).settings)

        settings = loaded()
        assert settings.kafka_admin is not None
        self.source = KafkaVolumeSource(
            settings.kafka_admin, clock=self.clock, refused=self._refused
        )
        self.credentials = Credentials(Tokens(None, self.clock), settings.kafka_admin)
        failures = CapabilityFailures([])
        reload = Reload(loaded, self.credentials, self.source, [], failures, settings)
        self.watch = SecretFiles(reload, stamps_of(secret_files(settings)))

    async def _refused(self) -> None:
        await self.watch.look()

    def file(self, password: str) -> None:
        """The file has another password."""
        self.secret.holds(password=password.encode())

    def brokers(self, password: str) -> None:
        """Brokers accept another password only, and each connection has to log in again."""
        self.cluster.users = {"ann": password}
        self.log_in_again()

    def log_in_again(self) -> None:
        for broker in self.cluster.brokers.values():
            broker.drop()

    async def looks(self) -> None:
        """Two looks pass, so that a changed file is used."""
        await self.watch.look(settled=True)
        await self.watch.look(settled=True)

    async def poll(self) -> FailureKind | None:
        """A poll a second later: None if it sees all brokers."""
        await asyncio.sleep(0.02)
        self.clock.now += 1.0
        answer = await self.source.observe(None, 60.0)
        if isinstance(answer, Failure):
            return answer.kind
        assert isinstance(answer, Observation)
        failures = [each.kind for each in answer.answers.values() if isinstance(each, Failure)]
        return failures[0] if failures else None


@pytest.fixture
async def scene(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    """One whose log is caught, after its first poll; on a busy machine polls take longer."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(secret_files_module, "HURRY_S", 30.0)
    async with FakeCluster(users={"ann": "first"}).add(2) as cluster:
        made = Scene(tmp_path, cluster)
        async with made.source:
            assert await made.poll() is None
            yield made


async def test_brokers_that_follow_a_file_much_later(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """The former password is used as long as only that works, and no poll fails."""
    scene.file("second")
    await scene.looks()
    for _ in range(3):
        scene.log_in_again()
        assert await scene.poll() is None
    said = [message for message in caplog.messages if "former" in message]
    assert 1 == len(said), caplog.messages
    scene.brokers("second")
    assert await scene.poll() is None
    assert 1 == caplog.text.count("accepts the new password, certificate and key")
    assert "first" not in caplog.text


class Follows(dict[str, str]):
    """What a broker accepts: the first password once more, and then the second one."""

    asked = 0

    def get(self, *_: object) -> str:
        self.asked += 1
        return "first" if self.asked == 1 else "second"


async def test_a_broker_that_follows_between_two_logins(scene: Scene) -> None:
    """It refuses the new password and then the former one, and the new one is tried again."""
    scene.file("second")
    await scene.looks()
    scene.cluster.users = users = Follows(ann="")
    scene.log_in_again()
    assert await scene.poll() is None
    assert users.asked > 2


async def test_files_that_follow_before_the_first_login(scene: Scene) -> None:
    """A login that is refused reads the files at once, so that not even one poll fails."""
    scene.brokers("second")
    scene.file("second")
    assert await scene.poll() is None


@pytest.mark.slow
async def test_a_file_that_follows_brokers_much_later(scene: Scene) -> None:
    """The first poll after the file has changed succeeds, however long polls have failed."""
    scene.brokers("second")
    for _ in range(12):
        assert FailureKind.AUTHENTICATION is await scene.poll()
    scene.file("second")
    assert await scene.poll() is None


@pytest.mark.slow
async def test_brokers_that_change_once_neither_password_works(scene: Scene) -> None:
    """After a change of the file, no poll waits for the end of a pause."""
    scene.file("third")
    scene.brokers("second")
    for _ in range(12):
        assert FailureKind.AUTHENTICATION is await scene.poll()
    scene.brokers("third")
    assert await scene.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize(("after_s", "waits"), [(0.0, False), (601.0, True)])
async def test_pauses_grow_again_ten_minutes_after_a_change(
    scene: Scene, after_s: float, waits: bool
) -> None:
    """A password that is wrong for long is not tried at each poll."""
    scene.file("third")
    await scene.looks()
    scene.brokers("second")
    scene.clock.now += after_s
    broker = scene.cluster.brokers[0]
    logins = set()
    for _ in range(8):
        before = broker.connected
        assert FailureKind.AUTHENTICATION is await scene.poll()
        logins.add(broker.connected - before)
    assert waits is (0 in logins)


async def test_brokers_that_follow_one_after_the_other(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says once that a broker needs the former password, and once that none does."""
    scene.file("second")
    await scene.looks()
    scene.log_in_again()
    assert await scene.poll() is None
    assert "the login was refused" in scene.source.refusal
    scene.brokers("second")
    scene.cluster.brokers[1].users = {"ann": "first"}
    assert await scene.poll() is None
    assert scene.source.refusal
    assert "accepts the new password" not in caplog.text
    scene.cluster.brokers[1].users = None
    scene.log_in_again()
    assert await scene.poll() is None
    assert not scene.source.refusal
    assert 1 == caplog.text.count("former password, certificate and key, and the sidecar uses")
    assert 1 == caplog.text.count("accepts the new password, certificate and key")


async def test_connections_that_stay_do_not_hide_that_brokers_did_not_follow(scene: Scene) -> None:
    """The new password is tried within five minutes, and again until brokers accept it."""
    scene.file("second")
    await scene.looks()
    assert await scene.poll() is None
    assert scene.source.refusal == ""
    scene.clock.now += RENEW_S
    assert await scene.poll() is None
    assert "the login was refused" in scene.source.refusal
    scene.cluster.users = {"ann": "second"}
    scene.clock.now += RENEW_S
    assert await scene.poll() is None
    assert not scene.source.refusal


async def test_a_request_to_one_broker_logs_nothing_of_it(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """A throttle sends such requests often, each over a connection of its own."""
    scene.file("second")
    await scene.looks()
    for _ in range(2):
        admin = scene.credentials.kafka_admin
        assert admin is not None
        answer = await query_any(admin, DescribeCluster(), read_cluster, 60.0, "the brokers")
        assert not isinstance(answer, Failure)
    assert "former" not in caplog.text


async def test_a_password_that_never_worked_is_not_the_former_one(scene: Scene) -> None:
    """A file is corrected before brokers follow: the password that works is still used."""
    for password in ("mistyped", "second"):
        scene.file(password)
        await scene.looks()
        scene.log_in_again()
        assert await scene.poll() is None
    scene.brokers("second")
    assert await scene.poll() is None
