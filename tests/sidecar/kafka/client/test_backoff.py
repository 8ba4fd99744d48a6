"""How long a broker that failed is left alone."""

import pytest

from sidecar.kafka.client.backoff import Backoff
from sidecar.volumes import Failure, FailureKind

REFUSED = Failure(FailureKind.CONNECT, "b1:9092: refused")


def test_a_new_address_may_be_called_at_any_time() -> None:
    """Nothing has failed yet, not even at time zero."""
    assert Backoff().refusal(0.0) is None


@pytest.mark.parametrize(
    ("failures", "pause_s"),
    [(1, 0.1), (2, 0.2), (3, 0.4), (7, 6.4), (8, 10.0), (1000, 10.0)],
)
def test_the_pause_doubles_up_to_ten_seconds(failures: int, pause_s: float) -> None:
    """The failure stands up to and including the end of the pause, and not after it."""
    backoff = Backoff()
    for _ in range(failures):
        backoff.failed(REFUSED, 50.0)
    last_refusal = backoff.refusal(50.0 + pause_s)
    assert REFUSED is last_refusal
    assert backoff.refusal(50.0 + pause_s + 0.001) is None


def test_a_success_ends_the_pause_and_its_growth() -> None:
    """After a success the next failure begins with the shortest pause again."""
    backoff = Backoff()
    for _ in range(5):
        backoff.failed(REFUSED, 0.0)
    backoff.succeeded()
    assert backoff.refusal(0.0) is None
    backoff.failed(REFUSED, 1.0)
    assert backoff.refusal(1.2) is None
