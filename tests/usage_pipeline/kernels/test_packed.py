"""Entries packed into few rows, by who shares it."""

from datetime import UTC, datetime
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from usage_pipeline.kernels.packed import EVER_S, Usage, packed, unpacked

Entries = list[tuple[str, int, int, int, int]]
"""Of each: the client-id, broker, second, amount and events."""


def batches(usage: Entries, *, size: int = 2, coded: bool = False) -> list[pa.RecordBatch]:
    rows = [
        {
            "quota_type": "produce",
            "user": "alice",
            "client_id": client,
            "broker": broker,
            "window_start": datetime.fromtimestamp(second, UTC),
            "amount": float(amount),
            "events": events,
            "throttled": events - 1,
        }
        for client, broker, second, amount, events in usage
    ]
    found: list[pa.RecordBatch] = []
    for at in range(0, len(rows), size):
        batch = pa.RecordBatch.from_pylist(rows[at : at + size])
        if coded:
            for place, name in enumerate(("quota_type", "user", "client_id")):
                batch = batch.set_column(place, name, batch[name].dictionary_encode())
        found.append(batch)
    return found


def by_user(quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
    del quota_type, client_id
    return [(-EVER_S, f"user={user}")]


def by_client(quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
    del quota_type, user
    return [(-EVER_S, f"client-id={client_id}")]


def by_both_later(quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
    """Etl is by user from the second 12 on, and web from the beginning."""
    del quota_type
    later = [(12, f"user={user}")]
    return (
        [(-EVER_S, f"client-id={client_id}"), *later]
        if client_id == "etl"
        else by_user("", user, "")
    )


def values(used: Usage) -> tuple[str, str, int, list[int], list[float], list[int]]:
    arrays = (used.second.tolist(), used.amount.tolist(), used.events.tolist())
    return (used.quota_type, used.name, used.broker, *arrays)


@pytest.mark.parametrize("coded", [False, True])
def test_a_row_has_all_seconds_of_a_name_on_a_broker(*, coded: bool) -> None:
    """Batches may come in any cut, with names or with their numbers."""
    usage = [("web", 1, 12, 5, 1), ("etl", 1, 9, 1, 1), ("web", 1, 10, 7, 2), ("web", 3, 10, 4, 1)]
    [rows] = packed(batches(usage, coded=coded), by_client)
    found = {(row["name"], row["broker"]): row for row in rows.to_pylist()}
    assert {("client-id=web", 1), ("client-id=etl", 1), ("client-id=web", 3)} == found.keys()
    row = found["client-id=web", 1]
    assert [10, 12] == np.frombuffer(row["second"], np.int64).tolist()
    assert [7.0, 5.0] == np.frombuffer(row["amount"], np.float64).tolist()
    assert [2, 1] == np.frombuffer(row["events"], np.int64).tolist()
    assert [1, 0] == np.frombuffer(row["throttled"], np.int64).tolist()
    assert [] == list(packed([], by_client))


def test_clients_of_one_user_are_as_few_seconds_as_they_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are stored one after the other, with more rows than a worker has at once."""
    monkeypatch.setattr("usage_pipeline.kernels.packed._CHUNK_ROWS", 8)
    monkeypatch.setattr("usage_pipeline.kernels.packed._MOST_SUMS", 4)
    usage = [(f"c{client}", 1, second, 1, 1) for client in range(50) for second in range(3)]
    [row] = packed(batches(usage), by_user)
    assert ([0, 1, 2], [50.0] * 3, [50] * 3) == values(*unpacked(pa.Table.from_batches([row])))[3:]
    many = [row for batch in packed(batches(usage), by_client) for row in batch.to_pylist()]
    assert 50 == len({row["name"] for row in many})
    assert 150 == sum(len(row["second"]) // 8 for row in many)


def test_a_client_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes in many chunks, and to look it up takes longer than to read its rows."""
    monkeypatch.setattr("usage_pipeline.kernels.packed._CHUNK_ROWS", 4)
    lookups: list[str] = []

    def noted(quota_type: str, user: str, client_id: str) -> list[tuple[int, str]]:
        lookups.append(client_id)
        return by_client(quota_type, user, client_id)

    usage = [(client, 1, second, 1, 1) for second in range(10) for client in ("web", "etl")]
    assert {"client-id=web", "client-id=etl"} == {
        row["name"] for batch in packed(batches(usage), noted) for row in batch.to_pylist()
    }
    assert ["etl", "web"] == sorted(lookups)


def test_those_who_share_are_added_up_while_they_do() -> None:
    """A client that comes under another's quota counts there from then on."""
    usage = [
        ("web", 1, 12, 1, 1),
        ("etl", 1, 12, 20, 2),
        ("etl", 1, 13, 300, 3),
        ("etl", 1, 9, 4, 4),
    ]
    rows = pa.Table.from_batches(packed(batches(usage), by_both_later))
    assert [
        ("produce", "client-id=etl", 1, [9], [4.0], [4]),
        ("produce", "user=alice", 1, [12, 13], [21.0, 300.0], [3, 3]),
    ] == [values(each) for each in unpacked(rows)]


def test_steps_begin_where_those_of_the_clock_do() -> None:
    """Request time is added up in whole nanoseconds: 673,495 and 104,858 and 194,937 here."""
    amounts = [0.0673495, 0.0104858, 0.0194937, 0.4]
    used = Usage(
        *("request", "user=a", 1, np.array([10, 11, 19, 20], np.int64)),
        *(np.array(amounts, np.float64), np.ones(4, np.int64), np.zeros(4, np.int64)),
    )
    step, amount = used.steps(10)
    assert ([10, 20], [0.097329, 0.4]) == (step.tolist(), amount.tolist())


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), *(st.integers(0, most) for most in (2, 30, 9, 3))),
        min_size=1,
    ),
    st.randoms(use_true_random=False),
)
def test_nothing_is_lost_or_doubled(usage: Entries, random: Random) -> None:
    """However the rows are cut and mixed, sums are those of a loop over them."""
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for _, broker, second, amount, events in usage:
        before = expected.get((broker, second), (0, 0))
        expected[broker, second] = (before[0] + amount, before[1] + events)
    half = len(usage) // 2
    rows = [
        *packed(batches(usage[:half]), by_user),
        *packed(batches(usage[half:], coded=True), by_user),
    ]
    random.shuffle(rows)
    assert expected == {
        (used.broker, second): (amount, events)
        for used in unpacked(pa.Table.from_batches(rows))
        for second, amount, events in zip(
            used.second.tolist(), used.amount.tolist(), used.events.tolist(), strict=True
        )
    }
