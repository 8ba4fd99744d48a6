"""The file with producer id quotas."""

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.errors import SettingsError
from sidecar.producer_ids.quota_file import IdQuotaFile
from sidecar.quotas.entities import DEFAULT
from sidecar.quotas.producer_ids.id_quotas import ProducerIdQuota, ProducerIdQuotas

EXAMPLE = """
[default]
producer_ids_rate = 200

[users.alice]
producer_ids_rate = 50
throttled_request_percentage = 0.01

[users."CN=migration,O=x"]
producer_ids_rate = "unlimited"
"""

NO_RATE = "producer_ids_rate: must be a number of 1e-06 to 1e+12, or"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ids.toml"


def test_it_says_who_may_have_how_many(path: Path) -> None:
    """It has the default, a user, and one without limit whose name needs quotes."""
    path.write_text(EXAMPLE)
    expected = {
        "alice": ProducerIdQuota(50, 0.01),
        "CN=migration,O=x": ProducerIdQuota(None),
        DEFAULT: ProducerIdQuota(200),
    }
    assert expected == IdQuotaFile(path).load()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[users.alice]\nproducer_ids_rat = 5", "users.alice.producer_ids_rat: is not a key here"),
        *(
            (f"[users.alice]\nproducer_ids_rate = {rate}", f"users.alice.{NO_RATE}")
            for rate in ("0", "'5'", "nan")
        ),
        (
            "[users.alice]\nthrottled_request_percentage = 1",
            "users.alice.producer_ids_rate: Field required",
        ),
        ("[usres.alice]\nproducer_ids_rate = 5", "usres: is not a key here"),
        (
            "[users.'User:alice']\nproducer_ids_rate = 5",
            'users.User:alice: is a user\'s name without "User:"',
        ),
        ("[users]\nalice = 5", "users.alice: must be a table with producer_ids_rate in it"),
        ("default = 5", "default: must be a table with producer_ids_rate in it"),
        ("users = 5", "users: must be a table"),
        ("[users.alice", "is not TOML"),
        ("[default]\nproducer_ids_rate = " + "9" * 400, f"default.{NO_RATE}"),
        ("[default]\nproducer_ids_rate = " + "9" * 5000, "is not TOML"),
        ("a = " + "[" * 100_000, "is not TOML"),
        ("a = '\udcff'", "is not TOML"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(path: Path, text: str, message: str) -> None:
    """The message has the names of the file."""
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(SettingsError) as raised:
        IdQuotaFile(path).load()
    assert f"{path}: {message}" in str(raised.value) or f"{path} {message}" in str(raised.value)


def test_a_file_that_is_not_there_stops_the_start(path: Path) -> None:
    """The setting asked for it."""
    with pytest.raises(SettingsError, match="can't be read: No such file"):
        IdQuotaFile(path).load()


@pytest.fixture
def file(path: Path) -> IdQuotaFile:
    """The example, which was loaded."""
    path.write_text(EXAMPLE)
    file = IdQuotaFile(path)
    file.load()
    return file


def later(file: IdQuotaFile) -> ProducerIdQuotas | None:
    """The change that a file reports when it is read twice."""
    assert file.read_change() is None, "a file that may be being written is not read"
    return file.read_change()


def test_a_change_is_reported_and_a_wrong_one_changes_nothing(
    path: Path, file: IdQuotaFile, caplog: pytest.LogCaptureFixture
) -> None:
    """There is one warning, not one for each read; so it is for a file that is gone."""
    caplog.set_level(logging.INFO)
    assert later(file) is None
    path.write_text("[default]\nproducer_ids_rate = 7")
    assert {DEFAULT: ProducerIdQuota(7)} == later(file)
    path.write_text("[default")
    assert [None, None] == [later(file), later(file)]
    path.unlink()
    assert [None, None] == [later(file), later(file)]
    assert 2 == sum("stay as they were" in line for line in caplog.messages)
    assert file.problem
    beside = path.with_name("new")
    beside.write_text("[default]\nproducer_ids_rate = 8")
    beside.replace(path)
    assert {DEFAULT: ProducerIdQuota(8)} == later(file)
    # A mount that is gone for a while comes back with the same file.
    away = path.parent.with_name("away")
    path.parent.rename(away)
    assert [None, None] == [later(file), later(file)]
    assert (False, True) == (file.is_current(), bool(file.problem))
    away.rename(path.parent)
    assert {DEFAULT: ProducerIdQuota(8)} == later(file)
    assert (True, "") == (file.is_current(), file.problem)


@pytest.mark.parametrize("text", ["", "\n", "# [users.alice]\n"])
def test_a_file_that_was_emptied_removes_nothing(
    path: Path, file: IdQuotaFile, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk may have emptied it; the warning says how to remove all quotas."""
    path.write_text(text)
    assert [None, None] == [later(file), later(file)]
    (message,) = caplog.messages
    assert "has no quotas any more (to remove all, write an empty [users]); the " in message
    path.write_text("[users]\n")
    assert {} == later(file)
    path.write_text(text)
    assert {} == later(file)


def test_a_file_may_be_empty_at_the_start(path: Path) -> None:
    """Quotas are added later."""
    path.write_text("# none yet\n")
    assert {} == IdQuotaFile(path).load()


def test_a_file_that_is_being_written_is_not_read(path: Path) -> None:
    """It is emptied first: without the wait everybody would be without a quota in between."""
    path.write_text(EXAMPLE)
    file = IdQuotaFile(path)
    expected = file.load()
    path.write_text("")
    assert file.read_change() is None
    path.write_text("# half of it\n")
    assert file.read_change() is None
    path.write_text("# all\n" + EXAMPLE)
    assert expected == later(file)


def test_what_can_not_be_read_is_tried_again(
    path: Path, file: IdQuotaFile, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With no descriptor free, say, the change counts one read later, and is reported once."""
    path.write_text("[default]\nproducer_ids_rate = 7")

    def full(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        assert [None, None, None] == [file.read_change() for _ in range(3)]
    assert 1 == len(caplog.messages)
    assert {DEFAULT: ProducerIdQuota(7)} == file.read_change()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_neither_hangs_nor_counts(
    path: Path, file: IdQuotaFile, make: Callable[[Path], None]
) -> None:
    """It is a folder, as a failed mount leaves it, or a named pipe nobody writes to."""
    path.unlink()
    make(path)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    assert [None] * 5 == [file.read_change() for _ in range(5)]
    assert descriptors == len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(SettingsError, match="it is not a regular file"):
        file.load()


def test_a_file_beyond_all_measure_is_refused(path: Path) -> None:
    """Its end is not even read."""
    path.write_bytes(b"#" * (5 << 20))
    with pytest.raises(SettingsError, match="more than 4,194,304 bytes"):
        IdQuotaFile(path).load()


def write(path: Path, text: str) -> None:
    path.write_text(text)


@pytest.mark.looptime
async def test_it_is_followed_until_it_is_cancelled(path: Path, file: IdQuotaFile) -> None:
    """An invalid file ends nothing; a valid one after it is reported."""
    message: list[ProducerIdQuotas] = []
    task = asyncio.create_task(file.run(message.append))
    write(path, "a = " + "[" * 100_000)
    await asyncio.sleep(10)
    assert [] == message
    write(path, "[default]\nproducer_ids_rate = 7")
    await asyncio.sleep(10)
    assert [{DEFAULT: ProducerIdQuota(7)}] == message
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
