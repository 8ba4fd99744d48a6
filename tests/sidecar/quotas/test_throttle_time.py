"""How long a client must wait."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.quotas.throttle_time import bounded_ms, rounded_ms, unbounded_ms


def test_docstring_examples() -> None:
    """15 MB/s at 10 MB/s over 11 s wait 5.5 s; 10 % at 1 % over 10 s wait 90 s, bounded to 1 s."""
    assert 5500 == unbounded_ms(15e6, 10e6, 11_000)
    assert 90_000 == unbounded_ms(10.0, 1.0, 10_000)
    assert 1000 == bounded_ms(10.0, 1.0, 10_000, 1000)


@pytest.mark.parametrize("rate", [0.0, 9.99, 10.0, -5.0])
def test_no_wait_up_to_the_limit(rate: float) -> None:
    """The limit itself is within the quota."""
    assert (0, 0) == (unbounded_ms(rate, 10.0, 10_000), bounded_ms(rate, 10.0, 10_000, 1000))


def test_a_short_wait_is_not_made_longer_by_its_bound() -> None:
    """Only what is above the bound is cut."""
    assert 100 == bounded_ms(10.1, 10.0, 10_000, 1000)


@given(st.floats(1.0, 1e6), st.floats(1.0, 1e6), st.integers(1, 100_000))
def test_after_the_wait_the_rate_is_the_limit(rate: float, limit: float, window_ms: int) -> None:
    """O x W / (W + X) is T to within the millisecond's rounding, or the rate was below it."""
    wait_ms = unbounded_ms(rate, limit, window_ms)
    if rate <= limit:
        assert 0 == wait_ms
    else:
        amount = rate * window_ms
        assert amount / (window_ms + wait_ms + 0.5) <= limit * (1 + 1e-9)
        assert amount / (window_ms + wait_ms - 0.5) >= limit * (1 - 1e-9)


@pytest.mark.parametrize(
    ("wait_ms", "expected"),
    [
        (0.5, 1),
        (1.5, 2),
        (2.5, 3),
        (-2.5, -2),
        (0.49999999999999994, 0),
        (2.4999, 2),
        (4503599627370497.0, 4503599627370497),
        (1e300, 2**63 - 1),
        (math.inf, 2**63 - 1),
    ],
)
def test_rounding_is_java_s(wait_ms: float, expected: int) -> None:
    """A half goes up, no sum rounds first, and a Java long is the most."""
    assert expected == rounded_ms(wait_ms)
