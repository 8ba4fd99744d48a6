"""The file with producer id quotas."""

import logging
from pathlib import Path

import pytest

from sidecar.errors import SettingsError
from sidecar.id_quota_file import IdQuotaFile
from sidecar.quotas.entities import DEFAULT
from sidecar.quotas.id_quotas import ProducerIdQuota

EXAMPLE = """
[default]
producer_ids_rate = 200

[users.alice]
producer_ids_rate = 50
held_request_percentage = 0.01

[users."CN=migration,O=x"]
producer_ids_rate = "unlimited"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ids.toml"


def test_it_says_who_may_have_how_many(path: Path) -> None:
    """The default, a user, and one without limit whose name needs quotes."""
    path.write_text(EXAMPLE)
    expected = {
        "alice": ProducerIdQuota(50, 0.01),
        "CN=migration,O=x": ProducerIdQuota(None),
        DEFAULT: ProducerIdQuota(200),
    }
    assert expected == IdQuotaFile(path).load()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[users.alice]\nproducer_ids_rat = 5", "users.alice.producer_ids_rat: is not a key here"),
        (
            "[users.alice]\nproducer_ids_rate = 0",
            "users.alice.producer_ids_rate: must be a number above 0, or",
        ),
        (
            "[users.alice]\nproducer_ids_rate = '5'",
            "users.alice.producer_ids_rate: must be a number above 0, or",
        ),
        (
            "[users.alice]\nproducer_ids_rate = nan",
            "users.alice.producer_ids_rate: must be a number above 0, or",
        ),
        (
            "[users.alice]\nheld_request_percentage = 1",
            "users.alice.producer_ids_rate: Field required",
        ),
        ("[usres.alice]\nproducer_ids_rate = 5", "usres: is not a key here"),
        ("[users.alice", "is not TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(path: Path, text: str, told: str) -> None:
    """By the names that the file has."""
    path.write_text(text)
    with pytest.raises(SettingsError) as raised:
        IdQuotaFile(path).load()
    assert f"{path}: {told}" in str(raised.value) or f"{path} {told}" in str(raised.value)


def test_a_file_that_is_not_there_stops_the_start(path: Path) -> None:
    """It was asked for."""
    with pytest.raises(SettingsError, match="can't be read: No such file"):
        IdQuotaFile(path).load()


def test_a_change_is_told_and_a_wrong_one_changes_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning once, not at each look; a file that is gone is such a change too."""
    caplog.set_level(logging.INFO)
    path.write_text(EXAMPLE)
    file = IdQuotaFile(path)
    file.load()
    assert file.look() is None
    path.write_text("[default]\nproducer_ids_rate = 7")
    assert {DEFAULT: ProducerIdQuota(7)} == file.look()
    path.write_text("[default")
    assert [None, None] == [file.look(), file.look()]
    path.unlink()
    assert [None, None] == [file.look(), file.look()]
    assert 2 == sum("stay as they were" in line for line in caplog.messages)
    beside = path.with_name("new")
    beside.write_text("[default]\nproducer_ids_rate = 8")
    beside.replace(path)
    assert {DEFAULT: ProducerIdQuota(8)} == file.look()
