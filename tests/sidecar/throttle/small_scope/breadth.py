"""The search in breadth: every sequence of events up to a depth, equal states once."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.sidecar.throttle.small_scope.claims import check_edge, check_override, check_state
from tests.sidecar.throttle.small_scope.key import Keys
from tests.sidecar.throttle.small_scope.quiet import quietly
from tests.sidecar.throttle.small_scope.scopes import Scope
from tests.sidecar.throttle.small_scope.state import State, events, first, step


@dataclass
class Visited:
    """What a search visited.

    Attributes:
        depth: the number of events of the longest sequences.
        states: the states after fewer events than that, equal ones counted once.
        edges: the events that were tried.
        seconds: the time on one core.
    """

    depth: int = 0
    states: int = 1
    edges: int = 0
    seconds: float = 0.0


def search(scope: Scope, merged: Callable[[State, State], None] | None = None) -> Visited:
    """Visits all states within the scope's depth, and checks the claims at each edge.

    What follows from a state by time alone, or by an override, is one event more: after the last
    event it is not checked.

    Args:
        scope: what is searched.
        merged: gets each two states that count as one.

    Raises:
        AssertionError: a claim does not hold; the message has a shortest sequence of events.
    """
    factors, keys = scope.factors(), Keys(scope)
    beginning = first(factors)
    frontier = [beginning]
    name, beginning.twins = keys.key(beginning.memory, beginning.ghost, beginning.now)
    # Only who compares states needs them; the others would fill gigabytes.
    known = {name: beginning if merged else None}
    visited = Visited()
    begin = time.process_time()
    while frontier and visited.depth < scope.depth:
        visited.depth += 1
        is_last = visited.depth == scope.depth
        following = []
        with quietly() as folded:
            for state in frontier:
                folded.clear()
                keys.clear()
                for event in events(state, scope):
                    after = step(state, event, factors, scope)
                    visited.edges += 1
                    try:
                        check_edge(state, after, factors, scope)
                        if is_last:
                            continue
                        name, after.twins = keys.key(after.memory, after.ghost, after.now)
                        if name not in known:
                            known[name] = after if merged else None
                            following.append(after)
                            check_state(after, factors)
                            if not scope.soft_limit:
                                check_override(state, after, name, factors, keys)
                        elif merged is not None and (other := known[name]) is not None:
                            merged(other, after)
                    except AssertionError as error:
                        raise AssertionError(f"{error}, but:\n{after.story}") from error
        for state in following:
            assert factors.decide(state.memory, state.now).reason
        frontier = following
    visited.states = len(known)
    visited.seconds = time.process_time() - begin
    return visited
