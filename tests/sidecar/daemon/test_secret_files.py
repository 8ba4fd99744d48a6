"""Files with secrets are used when they change, as a whole or not at all."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from pydantic import SecretStr

from sidecar.control.capability import Capability
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.tokens import Tokens
from sidecar.daemon import secret_files as module
from sidecar.daemon.reload import Credentials, Reload
from sidecar.daemon.secret_files import SecretFiles, stamps_of
from sidecar.kafka import KafkaVolumeSource
from sidecar.settings import KafkaAdmin, Settings, load, secret_files
from tests.support.mounted import MountedSecret
from tests.support.virtual_time import VIRTUAL_TIME

ADMIN = "SIDECAR_KAFKA_ADMIN_"


class Part(Capability):
    """Records the passwords that it gets, behind a gate; fails if asked to make new connections."""

    name = "part"

    def __init__(self) -> None:
        self.passwords: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def reload(self, settings: Settings, *, redial: bool = True) -> Callable[[], None]:
        assert not redial
        self.gate.wait(10)
        admin = settings.kafka_admin
        assert admin is not None
        assert admin.sasl_password is not None
        password = admin.sasl_password.get_secret_value()
        return lambda: self.passwords.append(password)


class Scene:
    """A daemon's files: password, token, CA, certificate and key, in one mounted Secret."""

    def __init__(self, folder: Path) -> None:
        self.volume = MountedSecret(folder / "secret")
        self.authority = trustme.CA()
        self.files: dict[str, bytes] = {"password": b"old", "token": b"old-token"}
        self.files["ca"] = self.authority.cert_pem.bytes()
        self.certify()
        self.volume.holds(**self.files)
        at = {name: str(self.volume.folder / name) for name in self.files}
        environ = {
            f"{ADMIN}BOOTSTRAP_SERVERS": "kafka-1:9092",
            f"{ADMIN}SECURITY_PROTOCOL": "SASL_SSL",
            f"{ADMIN}SASL_MECHANISM": "PLAIN",
            f"{ADMIN}SASL_USERNAME": "ann",
            f"{ADMIN}SASL_PASSWORD_FILE": at["password"],
            f"{ADMIN}SSL_TRUSTSTORE_LOCATION": at["ca"],
            f"{ADMIN}SSL_KEYSTORE_LOCATION": at["cert"],
            f"{ADMIN}SSL_KEYSTORE_KEY_LOCATION": at["key"],
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "1",
            "SIDECAR_TOKEN_FILE": at["token"],
        }
        settings = load(environ=environ).settings
        assert settings.kafka_admin is not None
        self.part = Part()
        self.credentials = Credentials(Tokens("old-token", lambda: 0.0), settings.kafka_admin)
        self.reload = Reload(
            lambda: load(environ=environ).settings,
            self.credentials,
            KafkaVolumeSource(settings.kafka_admin, clock=lambda: 0.0),
            [self.part],
            CapabilityFailures(["part"]),
            settings,
        )
        self.watch = SecretFiles(self.reload, stamps_of(secret_files(settings)))

    def certify(self, until: datetime | None = None) -> None:
        """A new certificate with its key."""
        issued = self.authority.issue_cert("ann@example.org", not_after=until)
        self.files["cert"] = issued.cert_chain_pems[0].bytes()
        self.files["key"] = issued.private_key_pem.bytes()

    def changes(self, **files: bytes) -> None:
        """These files are others from now on."""
        self.files |= files
        self.volume.holds(**self.files)

    async def looks(self, times: int = 2) -> None:
        """So many looks pass."""
        for _ in range(times):
            await self.watch.look(settled=True)

    @property
    def password(self) -> SecretStr | None:
        assert isinstance(self.credentials.kafka_admin, KafkaAdmin)
        return self.credentials.kafka_admin.sasl_password


@pytest.fixture
def scene(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Scene:
    """One whose log is caught, and where callers wait for looks on a busy machine."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(module, "HURRY_S", 30.0)
    return Scene(tmp_path)


def test_a_changed_file_in_a_folder_changes_its_stamp(tmp_path: Path) -> None:
    """A CA certificate is replaced, or another one appears. Other files do not count."""
    (tmp_path / "ca.crt").write_bytes(b"a")
    stamps = [stamps_of([tmp_path])]
    (tmp_path / "ca.crt").write_bytes(b"other")
    stamps.append(stamps_of([tmp_path]))
    (tmp_path / "ca-2.crt").write_bytes(b"b")
    stamps.append(stamps_of([tmp_path]))
    assert stamps[0] != stamps[1] != stamps[2]
    (tmp_path / "ca.p12").write_bytes(b"c")
    assert stamps[2] == stamps_of([tmp_path])


async def test_files_that_do_not_change_are_not_read(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing happens, and nothing is logged."""
    await scene.looks(3)
    assert [] == scene.part.passwords
    assert [] == caplog.messages


async def test_a_swapped_volume_is_used_again_and_again(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """Password, token and certificate of each generation; the log names the files, no secret."""
    for number in range(3):
        scene.certify()
        password, token = f"password-{number}", f"token-{number}"
        scene.changes(password=password.encode(), token=token.encode())
        await scene.looks()
        assert SecretStr(password) == scene.password
        assert token == scene.credentials.tokens.current
    assert ["password-0", "password-1", "password-2"] == scene.part.passwords
    assert 3 == len(caplog.messages)
    assert str(scene.volume.folder / "key") in caplog.text
    assert "password-0" not in caplog.text
    assert "token-0" not in caplog.text


async def test_the_dates_are_those_of_the_certificates_in_use(scene: Scene) -> None:
    """A renewed certificate has another date; one that can't be used changes none."""
    scene.certify(datetime(2031, 1, 1, tzinfo=UTC))
    scene.changes()
    await scene.looks()
    date = datetime(2031, 1, 1, tzinfo=UTC).timestamp()
    assert date == scene.credentials.expiries["kafka.admin.ssl.keystore.location"]
    scene.changes(cert=b"")
    await scene.looks()
    assert date == scene.credentials.expiries["kafka.admin.ssl.keystore.location"]


async def test_a_password_in_the_settings_file_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Other settings there, and mistakes, change nothing."""
    caplog.set_level(logging.INFO)
    config = tmp_path / "sidecar.toml"

    def write(password: str, more: str = "") -> None:
        login = "security_protocol='SASL_PLAINTEXT'\nsasl_mechanism='PLAIN'\nsasl_username='ann'"
        config.write_text(
            f"{more}\nstorage_per_volume_limit.min_available_bytes=1\n[kafka_admin]\n{login}\n"
            f"bootstrap_servers='kafka-1:9092'\nsasl_password='{password}'\n"
        )

    def loaded() -> Settings:
        return load(environ={}, config=config).settings

    write("old")
    settings, part = loaded(), Part()
    credentials = Credentials(Tokens(None, lambda: 0.0), settings.kafka_admin)
    failures = CapabilityFailures(["part"])
    reload = Reload(loaded, credentials, None, [part], failures, settings)
    watch = SecretFiles(reload, stamps_of(secret_files(settings)))
    for password, more in (("new", "mode='observe'"), ("wrong", "mistake=1"), ("newer", "")):
        write(password, more)
        await watch.look(settled=True)
        await watch.look(settled=True)
    assert ["new", "newer"] == part.passwords
    assert "enforce" == reload.settings.mode
    first, second, third = caplog.messages
    assert f"read again, for new connections: the secrets in {config}" == first == third
    assert "mistake" in second


async def test_a_change_waits_until_two_looks_see_the_same(scene: Scene) -> None:
    """A file that is being written is not read; a refused login does not wait."""
    scene.changes(password=b"ne")
    await scene.looks(1)
    scene.changes(password=b"new")
    await scene.looks(1)
    assert [] == scene.part.passwords
    await scene.looks(1)
    assert ["new"] == scene.part.passwords
    scene.changes(password=b"newer")
    await scene.watch.look()
    assert ["new", "newer"] == scene.part.passwords


@pytest.mark.parametrize("name", ["password", "token", "ca", "cert", "key"])
async def test_a_file_that_can_not_be_used_changes_nothing(
    scene: Scene, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """One line names the file and what to do; with the right file all of them are used."""
    good = scene.files[name]
    scene.changes(**{"token": b"new-token", "password": b"new", name: b""})
    await scene.looks(4)
    assert [] == scene.part.passwords
    assert "old-token" == scene.credentials.tokens.current
    (message,) = caplog.messages
    assert str(scene.volume.folder / name) in message
    assert "correct the files" in message
    scene.changes(**{name: good})
    await scene.looks(4)
    assert 1 == len(scene.part.passwords)
    assert 2 == len(caplog.messages)


async def test_a_key_of_another_certificate_changes_nothing(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """The certificate came first; when its key comes too, both are used."""
    before = scene.files["key"]
    scene.certify()
    after = scene.files["key"]
    scene.changes(key=before)
    await scene.looks(3)
    (message,) = caplog.messages
    assert "the key does not belong to the certificate" in message
    scene.changes(key=after)
    await scene.looks()
    assert 1 == len(scene.part.passwords)


async def test_a_key_that_comes_after_its_certificate(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """A refused login between the two files uses neither, and nothing is logged."""
    before = scene.files["key"]
    scene.certify()
    after = scene.files["key"]
    scene.changes(key=before)
    await scene.watch.look()
    assert [] == scene.part.passwords
    assert [] == caplog.messages
    scene.changes(key=after)
    await scene.watch.look()
    assert 1 == len(scene.part.passwords)


async def test_a_file_that_is_written_during_a_hurried_look(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a token is not used, although nobody waits for the second look."""

    def goes_on_writing(_s: float) -> None:
        scene.changes(token=b"new-token")

    scene.changes(token=b"new-")
    monkeypatch.setattr(time, "sleep", goes_on_writing)
    await scene.watch.look()
    assert "old-token" == scene.credentials.tokens.current
    monkeypatch.undo()
    monkeypatch.setattr(module, "HURRY_S", 30.0)
    await scene.watch.look()
    assert "new-token" == scene.credentials.tokens.current
    assert await scene.credentials.tokens.accept(b"old-token")
    assert not await scene.credentials.tokens.accept(b"new-")


async def test_a_missing_file_changes_nothing(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """It may come back as it was, and is used then."""
    file = scene.volume.folder / "password"
    file.unlink()
    await scene.looks(3)
    (message,) = caplog.messages
    assert "No such file" in message
    file.symlink_to("..data/password")
    await scene.looks()
    assert SecretStr("old") == scene.password
    assert 2 == len(caplog.messages)


async def test_a_disk_that_hangs_holds_up_nothing(
    scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look ends at its deadline, one line is logged, and no second thread waits.

    Opening a named pipe hangs as a dead network file system does.
    """
    monkeypatch.setattr(module, "DEADLINE_S", 0.05)
    scene.changes(password=b"new")
    pipe = scene.volume.folder / "..data" / "password"
    pipe.unlink()
    os.mkfifo(pipe)
    threads = threading.active_count()
    await scene.looks(3)
    assert threads + 1 == threading.active_count()
    (message,) = caplog.messages
    assert "were not read within 0.05 s" in message
    monkeypatch.undo()
    pipe.write_bytes(b"new")
    await scene.watch.look(settled=True)
    scene.changes()
    await scene.looks()
    assert ["new"] == scene.part.passwords


@pytest.mark.slow
@VIRTUAL_TIME
async def test_polls_and_requests_hardly_wait_for_a_disk_that_hangs(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ones wait for a moment, and later ones do not; what is read at last is used."""
    monkeypatch.setattr(module, "HURRY_S", 0.5)
    scene.part.gate.clear()
    scene.changes(password=b"new")
    now = asyncio.get_running_loop().time
    began_at = now()
    await asyncio.gather(scene.watch.look(), scene.watch.look())
    assert module.HURRY_S == pytest.approx(now() - began_at)
    began_at = now()
    for _ in range(20):
        await scene.watch.look()
    assert began_at == now()
    scene.part.gate.set()
    while not scene.part.passwords:
        await scene.watch.look(settled=True)
    assert ["new"] == scene.part.passwords


async def test_those_who_look_at_the_same_time_share_one_look(scene: Scene) -> None:
    """All brokers may refuse the login at once."""
    scene.changes(password=b"new")
    await asyncio.gather(*(scene.watch.look() for _ in range(20)))
    assert ["new"] == scene.part.passwords


async def test_files_are_read_while_names_hang(scene: Scene) -> None:
    """Look-ups of names fill the loop's pool, and the files are in none of its threads."""
    gate = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    hanging = loop.run_in_executor(None, gate.wait)
    scene.changes(password=b"new")
    await scene.looks()
    found = list(scene.part.passwords)
    gate.set()
    await hanging
    assert ["new"] == found


async def test_a_hurried_look_does_not_rely_on_one_that_waits(scene: Scene) -> None:
    """The look under way only sees that the files have changed; the caller needs them now."""
    scene.changes(password=b"new")
    await asyncio.gather(scene.watch.look(settled=True), scene.watch.look())
    assert ["new"] == scene.part.passwords


@VIRTUAL_TIME
async def test_the_end_of_a_former_token_is_logged(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """Within a look after SIGHUP has ended it."""
    tokens = scene.credentials.tokens
    tokens.replace("new-token", ends_former=False)
    assert await tokens.accept(b"old-token")
    following = asyncio.create_task(scene.watch.run())
    tokens.replace("new-token", ends_former=True)
    await asyncio.sleep(2 * module.LOOK_S)
    following.cancel()
    assert "the former token, which a client used, is no longer accepted" in caplog.text


async def test_sighup_during_a_look_wins(scene: Scene) -> None:
    """What it read is newer."""
    scene.part.gate.clear()
    scene.changes(password=b"new")
    look = asyncio.create_task(scene.watch.look())
    await asyncio.sleep(0.05)
    newer = scene.reload.settings.model_copy()
    scene.reload.settings = newer
    scene.part.gate.set()
    await look
    assert [] == scene.part.passwords
    assert newer is scene.reload.settings
