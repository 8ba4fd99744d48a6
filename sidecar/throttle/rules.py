"""The rules by which volumes are judged: one value, which the board publishes with each snapshot.

Example: ``Rules(MinAvailableBytes(10 * GB), 300.0)`` throttles at 10 GB available, and a factor
computed from a reading applies for 5 minutes.
"""

from dataclasses import dataclass
from typing import Final

from sidecar.throttle.limits import Limit
from sidecar.throttle.slope import SlopeRules


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which every volume of the cluster is judged.

    Attributes:
        limit: the limit at which producers are throttled, with its release margin; None while the
            sidecar is disabled, and where a factor source takes the place of a limit.
        validity_s: how long a reading, and a factor computed from it, applies while newer polls
            fail, seconds, > 0.
        stop_line: the line at which brokers refuse producers (``sidecar.throttle.stop_line``); None
            if none is set.
        slope: how the factor falls between the soft limit and the limit
            (``sidecar.throttle.slope``); None if the factor stays 1.0 until the limit.
    """

    limit: Limit | None
    validity_s: float
    stop_line: Limit | None = None
    slope: SlopeRules | None = None

    @property
    def required_limit(self) -> Limit:
        """The limit.

        Raises:
            ValueError: no limit is set, so no volume can be judged.
        """
        if self.limit is None:
            raise ValueError("volumes can't be judged without a limit")
        return self.limit

    @property
    def soft_limit(self) -> Limit | None:
        """The limit at which the factor begins to fall; None without a slope."""
        return None if self.slope is None else self.slope.soft_limit


NO_RULES: Final = Rules(None, 300.0)
"""The rules of a disabled sidecar without settings of its own."""
