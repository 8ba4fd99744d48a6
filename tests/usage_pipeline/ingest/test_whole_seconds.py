"""Logs whose layout has no fraction of a second."""

from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from tests.sidecar.requestlog.lines import LAYOUTS, line
from usage_pipeline.ingest.records import parse_block
from usage_pipeline.ingest.whole_seconds import spread_us

S = 1_000_000


def charged_ms(block: bytes) -> list[int]:
    """Returns when the requests of a block were charged, ms of the day."""
    rows = parse_block(block, broker=3, zone=ZoneInfo("UTC"), src_file="3", offset=0).rows
    return [ms % 86_400_000 for ms in rows["quota_ts"].cast(pa.int64()).to_numpy() // 1000]


def test_a_second_is_shared_by_its_lines() -> None:
    """In their order, also if a line of another second is between them."""
    logged = np.array([5, 5, 6, 5, 5, 7, 7, 7, 7, 7], np.int64) * S
    assert [125, 375, 500, 625, 875, 100, 300, 500, 700, 900] == [
        us // 1000 for us in spread_us(logged).tolist()
    ]


def test_what_is_not_spread() -> None:
    """A log with milliseconds, also where they are 0."""
    assert [10 * 3600 * 1000 - 1] * 20 == charged_ms(b"\n".join([line(3, sendTimeMs=1.0)] * 20))
    assert [] == spread_us(np.array([], np.int64)).tolist()


@pytest.mark.parametrize("api", [0, 3, 19])
def test_charges_are_within_their_second(api: int) -> None:
    """Also those of lines that are read slowly; each less its time in the queue."""
    texts = [
        line(api, time=f"2026-11-20 10:00:0{number // 10}", sendTimeMs=2.0) for number in range(30)
    ]
    ten = 10 * 3600 * 1000
    assert charged_ms(b"\n".join(texts)) == [ten + 50 + 100 * each - 2 for each in range(30)]


def test_strimzis_layout() -> None:
    """Its three requests are a third of a second apart."""
    first, second, third = charged_ms((LAYOUTS / "strimzi-log4j2-kafka-4.0.log").read_bytes())
    assert [333, 333] == pytest.approx([second - first, third - second], abs=10)
