"""All short lives of two brokers with two volumes each: the claims hold on every one."""

import pytest

from tests.sidecar.throttle.small_scope import SCOPES, search

FEWEST_STATES = 500
"""Fewer mean that the search has become too small to show anything."""


@pytest.mark.parametrize("name", SCOPES)
def test_claims_hold_on_every_short_life(name: str) -> None:
    """Every sequence of events within the scope keeps the claims of docs/reliability.md."""
    visited = search(SCOPES[name])
    assert SCOPES[name].depth == visited.depth
    assert visited.states > FEWEST_STATES
