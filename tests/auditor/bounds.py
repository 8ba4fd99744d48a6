"""The numbers of docs/reliability.md, worked out once more.

Example: with a check interval of 10 s and a callback that asks its own sidecar, a violation of
another broker is known within 10 + 10 + 5 + 4 = 29 s. Where it asks the sidecars of two other
brokers too, within 10 + 10 + 5 + 6 = 31 s.
"""

from typing import Final

from tests.auditor.trace import Setup

OWN_S: Final = 1.0
"""A broker throttles by its own volume within a second, whatever fails."""
CONNECTIONS_S: Final = 15.0
"""A process needs this long for its connections after a fault."""
RECOVERY_S: Final = 60.0
"""After the faults and with free space, the cluster needs a minute and the reaction time."""
SLOPE_S: Final = 60.0
"""With a soft limit, a minute and a check interval more."""
LEAK: Final = 0.01
"""The part of the previous rate that leaks."""
STOP_MARGIN: Final = 1.1
"""A stop ends when each volume has a tenth more than the stop line."""

_SLOW_ANSWERS_S: Final = 2 * 2.5
_LONG_POLL_S: Final = 4.0
_OTHER_S: Final = 3.0


def reaction_s(setup: Setup, brokers: int) -> float:
    """How long a callback that no fault affects needs to throttle by another broker's volume."""
    deadline_s = min(10.0, max(2.0, setup.interval_s))
    asking_s = max(_LONG_POLL_S, _OTHER_S * (brokers - 1)) if setup.asks_all else _LONG_POLL_S
    return setup.interval_s + deadline_s + _SLOW_ANSWERS_S + asking_s


def recovery_s(setup: Setup, brokers: int) -> float:
    """How long the cluster needs to release producers once space is free and no fault is left."""
    slope_s = 0.0 if setup.soft_bytes is None else SLOPE_S + setup.interval_s
    return RECOVERY_S + reaction_s(setup, brokers) + slope_s


def leaked_bytes(setup: Setup, for_s: float) -> float:
    """What lands while all brokers throttle: one request of each connection in each pause, and 1 %.

    One request more of each connection is on its way when the throttle begins, and another one
    lands when leaders move, since a new leader begins a throttle.
    """
    requests = setup.once_bytes * (2.0 + for_s / setup.pause_s)
    return requests + LEAK * setup.most_bytes_per_s * for_s
