"""Groups of charges found in a table, and compared with quotas."""

import math
from datetime import date

import numpy as np

from sidecar.pipeline.kernels.charge import CHARGE, Records
from sidecar.pipeline.kernels.places import BROKER_BITS
from sidecar.pipeline.replay.columns import Slots
from sidecar.pipeline.replay.group import Windows
from sidecar.pipeline.replay.scenarios import IN_FORCE, Scenario
from sidecar.pipeline.replay.shard import Comparison, Sweep

SLOTS = Slots(
    names=["user=alice"],
    kind=np.array([0]),
    shared=np.array([0]),
    whose=np.array([0]),
    limit=np.array([100.0]),
    counts=np.array([True]),
    to_ms=np.array([1 << 62]),
    first=np.zeros((5, 1), np.int64),
)
"""Alice's produce quota of 100 bytes a second."""


def charges(*rows: tuple[int, int, float]) -> Records:
    """Returns charges of a broker, at a time, of so many bytes, on the second day of 1970."""
    records = np.zeros(len(rows), CHARGE)
    records["place"] = [(1 << BROKER_BITS) | broker for broker, _, _ in rows]
    records["line"] = range(len(rows))
    records["at_ms"] = [at_ms for _, at_ms, _ in rows]
    records["amount"] = [amount for _, _, amount in rows]
    return records


def test_brokers_are_groups_and_scenarios_are_rows() -> None:
    """Each broker's 1,500 bytes wait 5 s for themselves, and nothing at twice the quota."""
    sweep = Sweep(Windows(), SLOTS, (IN_FORCE, Scenario("x2", factor=2.0)))
    rows = sweep.rows(charges((7, 0, 1500.0), (8, 0, 1500.0), (8, 1, math.nan))).to_pylist()
    assert [
        (date(1970, 1, 2), 7, "in force", 1, 5000, 0),
        (date(1970, 1, 2), 7, "x2", 1, 0, 0),
        (date(1970, 1, 2), 8, "in force", 1, 5000, 1),
        (date(1970, 1, 2), 8, "x2", 1, 0, 1),
    ] == [
        (r["dt"], r["broker"], r["scenario"], r["events"], r["throttle_ms_max"], r["unknown"])
        for r in rows
    ]


def test_an_unknown_amount_is_not_compared() -> None:
    """There is no row even when no amount is known."""
    comparison = Comparison(Windows(), SLOTS, ["a.log"])
    rows = comparison.rows(charges((7, 0, math.nan), (7, 5, 1500.0))).to_pylist()
    assert [(7, "user=alice", "a.log", 1, 5000)] == [
        (r["broker"], r["shared_by"], r["src_file"], r["src_offset"], r["throttle_ms"])
        for r in rows
    ]
    assert [] == comparison.rows(charges((7, 0, math.nan))).to_pylist()
    assert [] == comparison.rows(charges()).to_pylist()
