"""The highest rate in a window of those who share a quota."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from usage_pipeline.kernels.packed import Usage
from usage_pipeline.kernels.peak import peak


def used(amounts: dict[int, float], quota_type: str = "produce") -> Usage:
    seconds = sorted(amounts)
    return Usage(
        *(quota_type, "user=a", 1, np.array(seconds, np.int64)),
        np.array([amounts[each] for each in seconds], np.float64),
        np.ones(len(seconds), np.int64),
        np.zeros(len(seconds), np.int64),
    )


def test_the_window_ends_with_a_second_and_has_ten_before_it() -> None:
    """What is eleven seconds old has left it."""
    assert 600.0 == peak(used({0: 3000.0, 10: 3000.0, 21: 5000.0}))


def test_ids_count_over_ten_hours() -> None:
    """Their quota is per hour."""
    assert 0.7 == peak(used({0: 4.0, 36_000: 3.0, 72_001: 5.0}, "producer_ids"))


@given(st.dictionaries(st.integers(0, 60), st.integers(0, 1000), min_size=1))
def test_it_is_the_greatest_of_all_windows(amounts: dict[int, int]) -> None:
    """It equals that of a loop over them."""
    windows = (
        sum(amount for at, amount in amounts.items() if second - 10 <= at <= second)
        for second in amounts
    )
    assert pytest.approx(max(windows) / 10) == peak(used({k: float(v) for k, v in amounts.items()}))
