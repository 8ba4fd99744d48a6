"""Rows of SILVER_REQUEST for tests, made from parsed lines by the daemon's own functions.

The pipeline's reader is compared with these elsewhere; here they say what the later stages are fed.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sidecar.pipeline.tables.schemas import SILVER_REQUEST
from sidecar.quotas.entities import Default, Name
from sidecar.requestlog.allocated_ids import producer_id
from sidecar.requestlog.charges import charged_ms
from sidecar.requestlog.exempt import is_exempt
from sidecar.requestlog.line import Line
from sidecar.requestlog.produce_size import produce_bytes
from sidecar.requestlog.request_detail import QuotaChanges, TopicChanges, detail
from sidecar.requestlog.wire import Produce
from tests.pipeline.build import frame_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def of_line(line: Line, offset: int, **fields: Any) -> dict[str, Any]:
    """Returns the row of a line; times are taken as UTC."""
    said = detail(line)
    made = producer_id(line)
    size = (
        produce_bytes(said, line.api_version, line.client_id) if isinstance(said, Produce) else None
    )
    found: dict[str, Any] = {
        "log_ts": line.time.replace(tzinfo=UTC),
        "quota_ts": _EPOCH + timedelta(milliseconds=charged_ms(line)),
        "user": line.user,
        "client_id": line.client_id,
        "api": line.api,
        "api_version": line.api_version,
        "is_forwarded": line.is_forwarded,
        "exempt": is_exempt(line),
        "quota_bytes": size,
        "bytes_known": size is not None,
        "local_ms": line.local_ms,
        "remote_ms": line.body.remote_time_ms,
        "throttle_ms": line.throttle_ms,
        "producer_id": made and made.producer_id,
        "src_offset": offset,
    }
    if isinstance(said, TopicChanges):
        found["validate_only"] = said.validate_only
        found["topic_changes"] = [
            (each.topic, each.topic_id, each.partitions, each.error) for each in said.changes
        ]
    if isinstance(said, QuotaChanges):
        found["validate_only"] = said.validate_only
        found["quota_changes"] = [
            (
                _name(each.entity.user),
                _name(each.entity.client_id),
                _name(each.entity.ip),
                each.key,
                each.value,
                each.error,
            )
            for each in said.changes
        ]
    return row(**{**found, **fields})


def frame(spark: SparkSession, rows: Iterable[dict[str, Any]]) -> DataFrame:
    """Returns rows as a table of SILVER_REQUEST."""
    return frame_of(spark, SILVER_REQUEST, *rows)


def _name(name: Name) -> str | None:
    return name.value if isinstance(name, Default) else name
