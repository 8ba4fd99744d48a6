"""In which ten minutes anything was charged."""

from datetime import UTC, datetime

import pyarrow as pa

from usage_pipeline.kernels.cover import covered


def test_a_slot_of_a_broker_has_its_last_second() -> None:
    """Rows come in any order; a batch may have none."""
    charged = [
        *((2, 700, "request"), (1, 599, "request"), (1, 600, "fetch"), (1, 5, "produce")),
        (2, 650, "controller_mutation"),
    ]
    rows = [
        {
            "quota_type": quota_type,
            "broker": broker,
            "window_start": datetime.fromtimestamp(second, UTC),
        }
        for broker, second, quota_type in charged
    ]
    names = ("quota_type", pa.dictionary(pa.int32(), pa.string()))
    schema = pa.schema([names, ("broker", pa.int32()), ("window_start", pa.timestamp("us", "UTC"))])
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    [found] = covered([batch.slice(0, 0), batch])
    assert [(1, 0, 599, True), (1, 1, 600, True), (2, 1, 700, False)] == sorted(
        tuple(row.values()) for row in found.to_pylist()
    )
