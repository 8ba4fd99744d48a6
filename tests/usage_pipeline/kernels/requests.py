"""Rows of silver_request as workers read them, for tests of what is charged."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from usage_pipeline.ingest.records import ROWS

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def requests(*rows: dict[str, Any]) -> pa.RecordBatch:
    """Returns PRODUCEs of alice's with 100 bytes and no time that counts, unless set otherwise."""
    usual = {
        "broker": 7,
        "quota_ts": TEN,
        "user": "alice",
        "client_id": "etl",
        "api": "PRODUCE",
        "is_follower": False,
        "exempt": True,
        "bytes_known": True,
        "quota_bytes": 100,
        "local_ms": 0.258,
        "throttle_ms": 0,
        "src_file": "a.log",
        "src_offset": 500,
    }
    return pa.RecordBatch.from_pylist([{**usual, **each} for each in rows], ROWS)
