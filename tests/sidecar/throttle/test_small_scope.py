"""All short lives of two brokers with two volumes each: the claims hold on every one."""

from dataclasses import replace
from itertools import count

import pytest

from tests.sidecar.throttle.small_scope import SCOPES, search
from tests.sidecar.throttle.small_scope.key import Keys
from tests.sidecar.throttle.small_scope.state import State, events, step

FEWEST_STATES = 500
"""Fewer mean that the search has become too small to show anything."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "depth"),
    [
        *((name, scope.depth) for name, scope in SCOPES.items()),
        pytest.param("soft limit", 8, marks=pytest.mark.rare),
    ],
)
def test_claims_hold_on_every_short_life(name: str, depth: int) -> None:
    """Every sequence of events within the scope keeps the claims of docs/reliability.md."""
    visited = search(replace(SCOPES[name], depth=depth))
    assert depth == visited.depth
    assert visited.states > FEWEST_STATES


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in SCOPES if not SCOPES[each].soft_limit])
def test_states_that_count_as_one_have_the_same_next_states(name: str) -> None:
    """Of every 20 such pairs, one is compared."""
    scope, numbers = replace(SCOPES[name], depth=4), count()
    factors, keys = scope.factors(), Keys(scope)

    def next_states(state: State) -> set[object]:
        keys.clear()
        following = (step(state, event, factors, scope) for event in events(state, scope))
        return {
            (
                keys.key(each.memory, each.ghost, each.now)[0],
                each.decision.factor,
                each.decision.source,
                len(each.decision.violations),
            )
            for each in following
        }

    def compare(known: State, other: State) -> None:
        if next(numbers) % 20 == 0:
            assert next_states(known) == next_states(other), f"{known.story}\n\n{other.story}"

    search(scope, compare)
