"""Which request_percentage was set by a sidecar."""

import pytest

from sidecar.quotas.entities import ClientQuotas, Entity
from sidecar.quotas.producer_ids.id_quotas import LARGEST_PERCENTAGE
from sidecar.quotas.producer_ids.throttle_signature import is_signed, signed, without_signed


@pytest.mark.parametrize("percentage", [0.001, 0.01, 0.0123456, 1.0, 50.0, LARGEST_PERCENTAGE])
def test_what_is_set_is_known_again(percentage: float) -> None:
    """A sidecar's number is recognized whatever was asked for, to five decimals."""
    assert is_signed(signed(percentage))
    assert pytest.approx(round(percentage, 5), abs=1e-6) == signed(percentage)


@pytest.mark.parametrize(
    "value", [None, 0.01, 0.0100009, 55.7, 200.0, 9.36e-7, signed(LARGEST_PERCENTAGE + 0.01), 1e9]
)
def test_what_operators_set_is_theirs(value: float | None) -> None:
    """A number that is nearly a sidecar's is an operator's, too, and one that none would set."""
    assert not is_signed(value)


def test_a_plan_ignores_only_the_throttles_quotas() -> None:
    """The user's other quotas stay, and other users'; without another quota, the user has none."""
    bob, eve = Entity(user="bob"), Entity(user="eve")
    quotas: ClientQuotas = {
        bob: {"request_percentage": signed(0.01), "producer_byte_rate": 5.0},
        eve: {"request_percentage": 0.01},
        Entity(user="joe"): {"request_percentage": signed(0.01)},
    }
    expected = {bob: {"producer_byte_rate": 5.0}, eve: {"request_percentage": 0.01}}
    assert expected == without_signed(quotas)
