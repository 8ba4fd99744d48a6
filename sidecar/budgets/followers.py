"""Takes the throttles of owners from an observer, on a sidecar that asks no brokers itself.

So a broker is read by the observers alone, however many sidecars there are. The answer is the
document that brokers' quota callbacks get.

Example: of 30 sidecars with three observers, 27 ask one of the three once a second, and each broker
is read three times a minute.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

import msgspec

from sidecar.peers.addresses import Address
from sidecar.peers.trust import ASK_ERRORS, Trust
from sidecar.throttle.memory import BudgetThrottle

_PATH: Final = "/v1/quota-factors"
_DEADLINE_S: Final = 2.0
_LONGEST_ANSWER: Final = 4 << 20

Follow = Callable[[float], Awaitable[Mapping[str, BudgetThrottle] | None]]
"""Steady seconds -> the throttles by owner; None if no observer answers."""


class _Budget(msgspec.Struct, frozen=True):
    owner: str
    factor: float
    topics: tuple[str, ...]


class Factors(msgspec.Struct, frozen=True):
    """The part of the document that a follower takes; other members are ignored."""

    budgets: list[_Budget]

    def throttles(self, at: float) -> dict[str, BudgetThrottle]:
        """The throttles by owner, as of a moment, steady seconds."""
        return {each.owner: BudgetThrottle(each.factor, each.topics, at) for each in self.budgets}


def follow_by_http(trust: Trust, followed: Callable[[], Iterable[Address]]) -> Follow:
    """Return a function that asks the observers in turn, until one answers."""

    async def follow(now: float) -> Mapping[str, BudgetThrottle] | None:
        for address in followed():
            try:
                answer = await trust.get(
                    address,
                    _PATH,
                    Factors,
                    deadline_s=_DEADLINE_S,
                    wait_s=0,
                    longest_answer=_LONGEST_ANSWER,
                )
            except ASK_ERRORS:
                # It may be starting, or of another version; the next one knows the same.
                continue
            return answer.throttles(now)
        return None

    return follow
