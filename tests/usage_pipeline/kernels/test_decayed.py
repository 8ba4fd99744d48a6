"""Decayed percentiles of rates."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from usage_pipeline.kernels.decayed import Decayed, percentile
from usage_pipeline.kernels.values import Doubles, Longs


def doubles(*values: float) -> Doubles:
    return np.array(values, np.float64)


def longs(*values: int) -> Longs:
    return np.array(values, np.int64)


def test_a_weight_is_how_often_a_value_counts() -> None:
    """The worked number of the module is met; one value alone is every percentile."""
    assert 20.0 == percentile(doubles(20, 10), longs(3, 1), 0.5)
    assert pytest.approx(13.0) == percentile(doubles(20, 10), longs(3, 1), 0.1)
    assert 5.0 == percentile(doubles(5), longs(1_000_000), 0.99)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 6)), min_size=1),
    st.floats(0, 1),
)
def test_it_is_that_of_the_repeated_values(ranked: list[tuple[int, int]], share: float) -> None:
    """It equals numpy's, of each value as often as its weight says."""
    values, weights = (longs(*each) for each in zip(*ranked, strict=True))
    expected = np.percentile(np.repeat(values, weights), share * 100)
    found = percentile(values.astype(np.float64), weights, share)
    assert pytest.approx(float(expected), abs=1e-9) == found


def packed(amounts: dict[int, float], broker: int, quota_type: str = "produce") -> pa.Table:
    seconds = sorted(amounts)
    row = {
        "quota_type": quota_type,
        "name": "user=a",
        "broker": broker,
        "from_s": 0,
        "to_s": 1 << 40,
        "end": 86_400,
        "second": np.array(seconds, np.int64).tobytes(),
        "amount": np.array([amounts[each] for each in seconds], np.float64).tobytes(),
        "events": np.ones(len(seconds), np.int64).tobytes(),
        "throttled": np.full(len(seconds), broker, np.int64).tobytes(),
    }
    return pa.Table.from_pylist([row])


def test_each_broker_has_rates_of_its_own() -> None:
    """Hours are there once; ids are per hour, and no delay of theirs counts."""
    decayed = Decayed(share=1.0, half_life_s=86_400.0, delays_s=(0.0, 4.0))
    charged = pa.concat_tables(
        [
            packed({0: 30.0, 5: 30.0, 3600: 50.0}, 1),
            packed({1: 40.0, 7205: 1.0}, 2),
            packed({0: 2.0, 35_999: 3.0, 36_000: 4.0}, 1, "producer_ids"),
        ]
    )
    assert [
        ("produce", "user=a", 1, 6.0, 6.0, [50.0, 10.0], 3, 3, [0, 1], 3600),
        ("produce", "user=a", 2, 4.0, 4.0, [40.0, 8.0], 2, 4, [0, 2], 7205),
        ("producer_ids", "user=a", 1, 0.5, 0.5, None, 3, 3, [0, 9, 10], 36_000),
    ] == [tuple(row.values()) for row in decayed.rows(charged).to_pylist()]


def test_an_old_rate_counts_less() -> None:
    """A rate a day old, with a half-life of half a day, weighs a quarter."""
    rates = packed({0: 100.0, 86_400: 10.0}, 1)
    half_day, long = (
        Decayed(0.5, days * 86_400, ()).rows(rates).to_pylist()[0]["percentile_rate"]
        for days in (0.5, 1e9)
    )
    assert 1.0 == half_day
    assert pytest.approx(5.5) == long
