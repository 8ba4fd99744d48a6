"""Which producer id quota is in force, and where it was set."""

import math

import pytest

from sidecar.quotas.entities import DEFAULT
from sidecar.quotas.producer_ids.id_quotas import (
    LARGEST_RATE,
    InForce,
    Origin,
    ProducerIdQuota,
    in_force,
    quota_of,
)

NONE = ProducerIdQuota(None)
FEW, MORE, MANY = ProducerIdQuota(50), ProducerIdQuota(80), ProducerIdQuota(200)


def test_what_is_put_wins_over_the_file_and_the_file_over_the_setting() -> None:
    """The module's own example, and the default of each."""
    quotas = in_force(NONE, {"alice": FEW, DEFAULT: MANY}, {"alice": MORE})
    assert InForce(MORE, Origin.API) == quota_of(quotas, "alice")
    assert InForce(MANY, Origin.FILE) == quota_of(quotas, "bob")
    quotas = in_force(MANY, {"alice": FEW}, {DEFAULT: MORE})
    assert InForce(FEW, Origin.FILE) == quota_of(quotas, "alice")
    assert InForce(MORE, Origin.API) == quota_of(quotas, "bob")
    assert InForce(MANY, Origin.SETTING) == quota_of(in_force(MANY, {}, {}), "bob")


def test_origins_have_the_names_that_the_api_shows() -> None:
    """Readers of the API compare them."""
    assert ["setting", "file", "api"] == list(Origin)


def test_a_user_may_be_without_limit_where_others_have_one() -> None:
    """The user's own setting counts, and not the default."""
    quotas = in_force(FEW, {"alice": NONE}, {})
    assert InForce(NONE, Origin.FILE) == quota_of(quotas, "alice")


def test_the_bounds_themselves_can_be_counted_by() -> None:
    """Both numbers are valid at their bounds."""
    assert 1e-6 == ProducerIdQuota(1e-6, 1e-5).producer_ids_rate
    assert 1e5 == ProducerIdQuota(LARGEST_RATE, 1e5).throttled_request_percentage


@pytest.mark.parametrize("wrong", [0.0, -1.0, 1e-300, 1e300, math.inf, math.nan])
def test_a_limit_is_one_that_can_be_counted_by(wrong: float) -> None:
    """The request percentage of a throttled user is validated alike."""
    with pytest.raises(ValueError, match="are not 1e-06 to 1e"):
        ProducerIdQuota(wrong)
    with pytest.raises(ValueError, match="% is not 1e-05 to 100000"):
        ProducerIdQuota(1.0, wrong)
