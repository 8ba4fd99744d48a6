"""The rates under which queued usage waits for no longer than some times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from usage_pipeline.kernels.delay import delays_until, rates_within
from usage_pipeline.kernels.values import Doubles, Longs

MB = 1_000_000


def every_second(*phases: tuple[int, float]) -> tuple[Longs, Doubles]:
    """Usage of phases, each with its seconds and its rate."""
    amount = np.concatenate([np.full(seconds, rate) for seconds, rate in phases])
    return np.arange(len(amount)), amount


def longest_delay(second: Longs, amount: Doubles, rate: float) -> float:
    """The queue, a second at a time."""
    waiting, longest, before = 0.0, 0.0, int(second[0]) - 1
    for at, each in zip(second.tolist(), amount.tolist(), strict=True):
        waiting = max(0.0, waiting - rate * (at - before - 1))
        waiting = max(0.0, waiting + each - rate)
        longest, before = max(longest, waiting / rate), at
    return longest


def test_a_time_that_lasts_needs_nearly_its_rate() -> None:
    """The worked numbers of the module, and a minute wherever it begins."""
    (rate,) = rates_within(*every_second((86_400, MB), (7_200, 4 * MB), (86_400, MB)), [30.0])
    assert pytest.approx(4 * MB * 7200 / 7230) == rate
    assert pytest.approx(30.0) == longest_delay(*every_second((7_200, 4 * MB)), rate)
    assert [10 * MB] == rates_within(np.array([5]), np.array([310.0 * MB]), [30.0])
    straddling, aligned = (
        rates_within(*every_second((before, MB), (60, 9 * MB), (900, MB)), [30.0])
        for before in (90, 120)
    )
    assert straddling == pytest.approx(aligned)


def test_no_delay_needs_the_highest_second() -> None:
    """Without any amount, no rate is needed."""
    second, amount = every_second((5, 1.0), (1, 7.0), (5, 0.0), (9, 6.0))
    assert 7.0 == rates_within(second, amount, [0.0, 1.0])[0]
    assert [0.0, 0.0] == rates_within(second, amount * 0, [0.0, 1.0])


def test_the_longest_wait_is_the_last_delay() -> None:
    """It may be shorter than the steps, or nothing."""
    assert (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0) == delays_until(30.0)
    assert (0.0, 1.0, 1.5) == delays_until(1.5)
    assert (0.0,) == delays_until(0.0)


@given(
    st.dictionaries(st.integers(0, 90), st.integers(0, 1000), min_size=1).filter(
        lambda used: any(used.values())
    ),
    st.floats(0, 100),
)
def test_the_rate_is_the_lowest(used: dict[int, int], longest_s: float) -> None:
    """Under it, the queue waits for each delay at most; under a lower rate, for longer."""
    second = np.array(sorted(used))
    amount = np.array([float(used[at]) for at in sorted(used)])
    delays = delays_until(longest_s)
    for delay, rate in zip(delays, rates_within(second, amount, delays), strict=True):
        assert longest_delay(second, amount, rate * (1 + 1e-6)) <= delay
        assert longest_delay(second, amount, rate * (1 - 1e-6)) >= delay * (1 - 1e-5)
