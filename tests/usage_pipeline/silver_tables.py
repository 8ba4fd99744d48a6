"""Rows of SILVER_REQUEST for tests, set column by column or made from parsed lines."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sidecar.requestlog.line import Line
from tests.usage_pipeline.build import frame_of
from usage_pipeline.ingest import rows
from usage_pipeline.ingest.records import ROWS
from usage_pipeline.tables.schemas import SILVER_REQUEST


def row(**fields: Any) -> dict[str, Any]:
    """Returns a request of alice's client-id etl that counts for nothing, unless set otherwise."""
    logged = fields.get("log_ts", datetime(2026, 11, 20, 10, tzinfo=UTC))
    charged = fields.get("quota_ts", logged)
    return {
        "dt": logged.date(),
        "broker": 1,
        "log_ts": logged,
        "quota_ts": charged,
        "user": "alice",
        "client_id": "etl",
        "listener": "PLAINTEXT",
        "api": "METADATA",
        "api_version": 12,
        "is_forwarded": False,
        "is_follower": False,
        "exempt": True,
        "bytes_known": False,
        "local_ms": 1.0,
        "remote_ms": 0.0,
        "throttle_ms": 0,
        "src_file": "kafka-1/kafka-request.log",
        "src_offset": 0,
        **fields,
    }


def batch_of(lines: Iterable[Line]) -> pa.RecordBatch:
    """Returns the rows of lines, each a byte after the one before; times are taken as UTC."""
    place = {"broker": 1, "src_file": "kafka-1/kafka-request.log"}
    made = []
    for offset, line in enumerate(lines):
        of_line = rows.row(line, UTC)
        assert isinstance(of_line, rows.Row), of_line
        made.append({**of_line._asdict(), **place, "src_offset": offset})
    return pa.RecordBatch.from_pylist(made, ROWS)


def frame(spark: SparkSession, made: Iterable[dict[str, Any]]) -> DataFrame:
    """Returns rows as a table of SILVER_REQUEST."""
    return frame_of(spark, SILVER_REQUEST, *made)
