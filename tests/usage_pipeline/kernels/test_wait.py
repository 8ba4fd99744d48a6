"""The compiled waits equal the daemon's."""

from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.quotas import throttle_time
from usage_pipeline.kernels import wait


@given(st.floats(0, allow_nan=False))
@example(0.49999999999999994)
@example(0.5)
@example(2.0**63)
@example(float("inf"))
def test_waits_are_rounded_as_javas(wait_ms: float) -> None:
    """A half is rounded up, and no wait is above the longest long."""
    assert throttle_time.rounded_ms(wait_ms) == wait.rounded_ms(wait_ms)
