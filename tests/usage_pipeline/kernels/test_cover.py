"""In which ten minutes anything was charged."""

from datetime import UTC, datetime

import pyarrow as pa

from usage_pipeline.kernels.cover import covered


def test_a_slot_of_a_broker_has_its_last_second() -> None:
    """Rows come in any order; a batch may have none."""
    charged = [(2, 700), (1, 599), (1, 600), (1, 5), (2, 650)]
    rows = [
        {"broker": broker, "window_start": datetime.fromtimestamp(second, UTC)}
        for broker, second in charged
    ]
    schema = pa.schema([("broker", pa.int32()), ("window_start", pa.timestamp("us", "UTC"))])
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    [found] = covered([batch.slice(0, 0), batch])
    assert [(1, 0, 599), (1, 1, 600), (2, 1, 700)] == sorted(
        tuple(row.values()) for row in found.to_pylist()
    )
