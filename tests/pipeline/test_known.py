"""What there is little of in many requests."""

from typing import Any

import pyarrow as pa

from sidecar.pipeline.known import counted
from sidecar.pipeline.records import ROWS


def requests(*told: tuple[str, bool | None, str]) -> pa.RecordBatch:
    usual = {"client_id": "", "src_file": "a.log"}
    rows: list[dict[str, Any]] = [
        {**usual, "user": user, "is_follower": is_follower, "api": api}
        for user, is_follower, api in told
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
