"""The few clients, files and principals that many requests are of."""

from typing import Any
from unittest.mock import Mock

import pyarrow as pa
from pyspark.sql import DataFrame

from sidecar.pipeline.known import Known, counted
from sidecar.pipeline.records import ROWS


def requests(*charged: tuple[str, bool | None, str]) -> pa.RecordBatch:
    usual = {"client_id": "", "src_file": "a.log"}
    rows: list[dict[str, Any]] = [
        {**usual, "user": user, "is_follower": is_follower, "api": api}
        for user, is_follower, api in charged
    ]
    return pa.RecordBatch.from_pylist(rows, ROWS)


def test_brokers_are_known_by_what_they_ask() -> None:
    """Followers' fetches and heartbeats are theirs; a tenant's are not."""
    batch = requests(
        ("alice", False, "PRODUCE"),
        ("kafka", True, "FETCH"),
        ("alice", False, "FETCH"),
        ("kafka", True, "FETCH"),
        ("kafka", False, "PRODUCE"),
        ("controller", None, "BROKER_HEARTBEAT"),
    )
    (found,) = counted(iter([batch]))
    assert {"alice": (2, 0), "kafka": (3, 2), "controller": (1, 1)} == {
        row["user"]: (row["rows"], row["brokers"]) for row in found.to_pylist()
    }


def test_what_is_known_of_all() -> None:
    """Clients and files are in the order of their names; brokers' principals are apart."""
    rows = [
        {"user": "kafka", "client_id": "", "src_file": "b.log", "rows": 5, "brokers": 1},
        {"user": "alice", "client_id": "etl", "src_file": "a.log", "rows": 2, "brokers": 0},
        {"user": "alice", "client_id": "etl", "src_file": "b.log", "rows": 3, "brokers": 0},
    ]
    known = Known.of(Mock(spec=DataFrame, collect=lambda: rows))
    assert [("alice", "etl"), ("kafka", "")] == known.clients
    assert ["a.log", "b.log"] == known.files
    assert (10, frozenset({"kafka"})) == (known.rows, known.cluster_users)
