"""Quotas as JSON: what is printed can be read, and nothing else can."""

import json
from pathlib import Path

import pytest

from sidecar.errors import SettingsError
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.quotas.quota_file import PlanFile, quota_documents, read_plan_file, read_quota_file

QUOTAS = {
    Entity(DEFAULT): {"request_percentage": 9.2},
    Entity("ann", "etl"): {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6},
}


def file_of(folder: Path, text: str) -> Path:
    path = folder / "plan.json"
    path.write_text(text)
    return path


def test_printed_quotas_can_be_read(tmp_path: Path) -> None:
    """The form is the one of the module's example."""
    documents = quota_documents(QUOTAS)
    assert {"entity": {"user": None}, "quotas": {"request_percentage": 9.2}} == documents[0]
    assert QUOTAS == read_quota_file(file_of(tmp_path, json.dumps({"quotas": documents})))


@pytest.mark.parametrize(
    ("records", "tenants", "capacity_percent"),
    [
        ({}, 0, None),
        ({"tenants": 3, "capacity_percent": 5}, 0, 5.0),
        ({"tenants": 3, "default_percent": 2}, 0, None),
        ({"tenants": 3, "default_percent": None}, 3, None),
        ({"default_percent": None}, 0, None),
        ({"capacity_percent": 5, "capacity": {}}, 0, None),
    ],
)
def test_records_about_the_plan(
    tmp_path: Path, records: dict[str, object], tenants: int, capacity_percent: float | None
) -> None:
    """Tenants share a default that was not given; a capacity that brokers reported is left out.

    A file without a number of tenants has none.
    """
    path = file_of(tmp_path, json.dumps({"quotas": [], **records}))
    assert PlanFile({}, tenants, capacity_percent) == read_plan_file(path)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"quotas": {}, "x": 1}x',
        '{"quotas": [], "tenants": -1}',
        '{"quotas": [], "capacity_percent": 0}',
        '{"quotas": [{"entity": {"tenant": "a"}, "quotas": {}}]}',
        '{"quotas": [{"entity": {"user": "a"}, "quotas": {"x": null}}]}',
        '{"quotas": [{"entity": {"user": "a"}, "quotas": {"x": NaN}}]}',
        '{"quotas": [{"entity": {"user": 5}, "quotas": {"x": 1}}]}',
        '{"quotas": [{"entity": {"user": "a"}, "quotas": {"x": 1}},'
        ' {"entity": {"user": "a"}, "quotas": {"y": 1}}]}',
    ],
)
def test_files_that_are_no_quotas(tmp_path: Path, text: str) -> None:
    """The message names the file and the command that prints such files, and says what is wrong."""
    path = file_of(tmp_path, text)
    with pytest.raises(SettingsError) as raised:
        read_plan_file(path)
    (message,) = raised.value.problems
    assert message.startswith(f'{path} is not what "quotas plan --json" or ')
    assert not message.endswith(": None")


def test_an_entity_that_is_in_it_twice(tmp_path: Path) -> None:
    """The message says so: which of its quotas apply is not known."""
    path = file_of(tmp_path, json.dumps({"quotas": 2 * quota_documents(QUOTAS)[:1]}))
    with pytest.raises(SettingsError, match=r"prints: an entity is in it twice$"):
        read_quota_file(path)


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    """The message says why."""
    with pytest.raises(SettingsError, match="nowhere can't be read: No such file or directory"):
        read_quota_file(tmp_path / "nowhere")
