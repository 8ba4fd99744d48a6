"""Usage packed into few rows, and unpacked by those who share."""

from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sidecar.pipeline.kernels.packed import SECOND_BITS, Used, packed, unpacked

KEYS = np.array([-7, 3, 40], np.int64)
LATE = 1 << 40

Usage = list[tuple[int, int, int, int, int]]
"""Of each: the client's number, broker, second, amount and events."""


def batches(usage: Usage, size: int = 2) -> list[pa.RecordBatch]:
    table = pa.table(
        {
            "key": pa.array([int(KEYS[client]) for client, *_ in usage], pa.int64()),
            "place": pa.array(
                [(broker << SECOND_BITS) + second for _, broker, second, *_ in usage], pa.int64()
            ),
            "amount": pa.array([float(amount) for *_, amount, _ in usage], pa.float64()),
            "events": pa.array([events for *_, events in usage], pa.int64()),
        }
    )
    cut: list[pa.RecordBatch] = table.to_batches(max_chunksize=size)
    return cut


def named(rows: pa.Table, names: dict[int, tuple[str, str, int, int]]) -> pa.Table:
    """As Spark joins them."""
    told = [names[client] for client in rows.column("client").to_pylist()]
    columns = [list(each) for each in zip(*told, strict=True)]
    added = dict(zip(("quota_type", "name", "from_s", "to_s"), columns, strict=True))
    for name, values in added.items():
        rows = rows.append_column(name, pa.array(values))
    return rows.drop_columns(["client"])


def told(used: Used) -> tuple[str, str, int, list[int], list[float], list[int]]:
    arrays = (used.second.tolist(), used.amount.tolist(), used.events.tolist())
    return (used.quota_type, used.name, used.broker, *arrays)


def test_a_row_has_all_seconds_of_a_client_on_a_broker() -> None:
    """Whatever batches they come in."""
    usage = [(2, 1, 12, 5, 1), (0, 1, 9, 1, 1), (2, 1, 10, 7, 2), (2, 3, 10, 4, 1)]
    [rows] = packed(batches(usage), KEYS)
    assert [0, 2, 2] == rows.column("client").to_pylist()
    assert [1, 1, 3] == rows.column("broker").to_pylist()
    assert [10, 12] == np.frombuffer(rows.column("second")[1].as_py(), np.int64).tolist()
    assert [7.0, 5.0] == np.frombuffer(rows.column("amount")[1].as_py(), np.float64).tolist()
    assert [2, 1] == np.frombuffer(rows.column("events")[1].as_py(), np.int64).tolist()
    assert [] == list(packed([], KEYS))


def test_those_who_share_are_added_up_while_they_do() -> None:
    """Seconds before or after their time under the name are not its."""
    usage = [(0, 1, 10, 1, 1), (1, 1, 10, 20, 2), (1, 1, 13, 300, 3), (1, 1, 9, 4000, 4)]
    rows = pa.Table.from_batches(packed(batches(usage), KEYS))
    names = {0: ("produce", "user=a", -LATE, LATE), 1: ("produce", "user=a", 10, 13)}
    assert [("produce", "user=a", 1, [10], [21.0], [3])] == [
        told(each) for each in unpacked(named(rows, names))
    ]


def test_steps_begin_where_those_of_the_clock_do() -> None:
    """Request time is added up in whole nanoseconds: percents as they come are more than 0.6."""
    amounts = [0.3, 0.1, 0.2, 0.4]
    used = Used(
        *("request", "user=a", 1, np.array([10, 11, 19, 20], np.int64)),
        *(np.array(amounts, np.float64), np.ones(4, np.int64)),
    )
    step, amount = used.steps(10)
    assert ([10, 20], [0.6, 0.4]) == (step.tolist(), amount.tolist())
    assert sum(amounts[:3]) != 0.6


@given(
    st.lists(st.tuples(*(st.integers(0, most) for most in (2, 2, 30, 9, 3))), min_size=1),
    st.randoms(use_true_random=False),
)
def test_nothing_is_lost_or_doubled(usage: Usage, random: Random) -> None:
    """However the rows are cut and mixed, sums are those of a loop over them."""
    expected: dict[tuple[str, int, int], tuple[int, int]] = {}
    for client, broker, second, amount, events in usage:
        key = (f"user={client % 2}", broker, second)
        before = expected.get(key, (0, 0))
        expected[key] = (before[0] + amount, before[1] + events)
    half = len(usage) // 2
    rows = [*packed(batches(usage[:half]), KEYS), *packed(batches(usage[half:]), KEYS)]
    random.shuffle(rows)
    names = {client: ("fetch", f"user={client % 2}", -LATE, LATE) for client in range(3)}
    assert expected == {
        (used.name, used.broker, second): (amount, events)
        for used in unpacked(named(pa.Table.from_batches(rows), names))
        for second, amount, events in zip(
            used.second.tolist(), used.amount.tolist(), used.events.tolist(), strict=True
        )
    }
