"""The search in breadth: every sequence of events up to a depth, equal states once."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.sidecar.throttle.small_scope.claims import check_edge, check_override, check_state
from tests.sidecar.throttle.small_scope.key import key
from tests.sidecar.throttle.small_scope.scopes import Scope
from tests.sidecar.throttle.small_scope.state import State, events, first, step


@dataclass
class Visited:
    """What a search visited.

    Attributes:
        depth: the number of events of the longest sequences.
        states: the states, equal ones counted once.
        edges: the events that were tried.
        seconds: the time on one core.
    """

    depth: int = 0
    states: int = 1
    edges: int = 0
    seconds: float = 0.0


def search(scope: Scope, merged: Callable[[State, State], None] | None = None) -> Visited:
    """Visits all states within the scope's depth, and checks the claims at each edge.

    Args:
        scope: what is searched.
        merged: gets each two states that count as one.

    Raises:
        AssertionError: a claim does not hold; the message has a shortest sequence of events.
    """
    factors = scope.factors()
    beginning = first(factors)
    frontier = [beginning]
    name, beginning.twins = key(beginning.memory, beginning.ghost, beginning.now, scope)
    known = {name: beginning}
    visited = Visited()
    begin = time.process_time()
    while frontier and visited.depth < scope.depth:
        following = []
        for state in frontier:
            for event in dict.fromkeys(events(state, scope)):
                after = step(state, event, factors, scope)
                visited.edges += 1
                try:
                    check_edge(state, after, factors, scope)
                    name, twins = key(after.memory, after.ghost, after.now, scope)
                    after.twins = twins
                    if name in known:
                        if merged is not None:
                            merged(known[name], after)
                    else:
                        known[name] = after
                        following.append(after)
                        check_state(after, factors)
                        if not scope.soft_limit:
                            check_override(state, after, name, factors, scope)
                except AssertionError as error:
                    raise AssertionError(f"{error}, but:\n{after.story()}") from error
        frontier = following
        visited.depth += 1
    visited.states = len(known)
    visited.seconds = time.process_time() - begin
    return visited
