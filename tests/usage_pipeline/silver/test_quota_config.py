"""Quotas over time, from a snapshot and the log."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from sidecar.quotas.entities import DEFAULT, Entity
from tests.usage_pipeline.silver_tables import frame, row
from usage_pipeline.silver.quota_config import SnapshotRow, silver_quota_config, snapshot_rows

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RATE = "producer_byte_rate"


def at(hour: int) -> datetime:
    return TEN + timedelta(hours=hour - 10)


def altered(hour: int, *changes: tuple[Any, ...], **fields: Any) -> dict[str, Any]:
    """Returns a controller's line; changes are user, client_id, ip, key, value and error."""
    return row(
        **{
            "api": "ALTER_CLIENT_QUOTAS",
            "is_forwarded": True,
            "validate_only": False,
            "log_ts": at(hour),
            "quota_changes": list(changes),
            **fields,
        }
    )


@pytest.mark.spark
def test_changes_and_snapshot_are_one_history(spark: SparkSession) -> None:
    """Quotas are set, changed, removed, refused, known before the log and removed unseen."""
    alice = ("alice", None, None, RATE)
    rows = [
        altered(9, (*alice, 1.0, 0), ("gone", None, None, RATE, 9.0, None)),
        altered(11, (*alice, 3.0, 0), (*alice, 4.0, 0), src_offset=900),
        altered(11, (*alice, 2.0, 0), src_offset=500),
        altered(
            12, (*alice, 7.0, 42), (None, None, "10.0.0.1", "connection_creation_rate", 1.0, 0)
        ),
        altered(12, (*alice, 8.0, 0), validate_only=True),
        altered(12, (*alice, 8.0, 0), is_forwarded=False),
        altered(13, (*alice, None, 0)),
        altered(14, ("<default>", "etl", None, RATE, 5.0, 0)),
    ]
    snapshot = [SnapshotRow("alice", None, RATE, 1.0), SnapshotRow("old", None, RATE, 6.0)]
    found = silver_quota_config(frame(spark, rows), snapshot, at(10)).collect()
    expected = {
        ("user=alice", 1.0, at(9), at(11), "log"),
        ("user=alice", 2.0, at(11), at(11), "log"),
        ("user=alice", 3.0, at(11), at(11), "log"),
        ("user=alice", 4.0, at(11), at(13), "log"),
        ("user=alice", None, at(13), None, "log"),
        ("user=gone", 9.0, at(9), at(10), "log"),
        ("user=gone", None, at(10), None, "snapshot"),
        ("user=old", 6.0, EPOCH, None, "snapshot"),
        ("user=<default>,client-id=etl", 5.0, at(14), None, "log"),
    }
    assert expected == {
        (r.entity, r.value, aware(r.valid_from), aware(r.valid_to), r.source) for r in found
    }


def aware(time: datetime | None) -> datetime | None:
    """Converts a time of Spark, which is local and has no zone."""
    return None if time is None else time.astimezone(UTC)


def test_a_snapshot_has_a_time() -> None:
    """The time needs a zone, so that it can be compared."""
    rows = [SnapshotRow("alice", None, RATE, 1.0)]
    not_read = cast("DataFrame", None)
    for as_of in (None, datetime(2026, 11, 20)):  # noqa: DTZ001  what is refused
        with pytest.raises(ValueError, match="name the time"):
            silver_quota_config(not_read, rows, as_of)


def test_snapshots_are_of_clients() -> None:
    """Addresses have quotas of their own kind."""
    quotas = {Entity(user=DEFAULT, client_id="etl"): {RATE: 5.0}, Entity(ip="10.0.0.1"): {"c": 1.0}}
    assert [("<default>", "etl", RATE, 5.0)] == snapshot_rows(quotas)
