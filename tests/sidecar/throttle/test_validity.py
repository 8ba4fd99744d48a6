"""The one boundary rule."""

import math

from sidecar.throttle.validity import is_valid


def test_boundary_itself_is_valid() -> None:
    """A value computed at 60 with a validity of 120 is valid at 180, and not at the next float."""
    assert is_valid(60.0, 120.0, 180.0)
    assert not is_valid(60.0, 120.0, math.nextafter(180.0, math.inf))


def test_no_validity_is_valid_at_its_own_moment() -> None:
    """With a validity of 0 the moment itself is valid: so an override ends."""
    assert is_valid(60.0, 0.0, 60.0)
    assert not is_valid(60.0, 0.0, 60.001)
