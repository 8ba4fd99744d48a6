"""The scopes of the search: which sizes, lists and limits it combines.

A scope has one question, so that its states stay few. Together, the scopes have every event of the
small cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.throttle.slope import SlopeRules

VALIDITY_S: Final = 100.0
FALLBACK: Final = 0.5
LOG_DIRS: Final = ("/d0", "/d1")
LIMIT, MARGIN, STOP_LINE, SOFT_LIMIT = 300, 100, 100, 600
SIZES: Final[Mapping[str, int]] = {
    "roomy": 800,
    "soft": 450,
    "near": 350,
    "full": 250,
    "low": 110,
    "stopped": 100,
}
"""Available bytes: near is within the release margin, low within the stop line's margin."""
OFFLINE, UNREADABLE = "offline", "unreadable"


@dataclass(frozen=True)
class Scope:
    """What is searched.

    Attributes:
        sizes: what a log dir may show.
        lists_fenced: whether a list of brokers has the fenced ones: always, never, or either.
        margin: the release margin in bytes.
        stop_line: whether a stop line is set.
        soft_limit: whether a soft limit is set.
        depth: the number of events of the longest sequences.
    """

    sizes: tuple[str, ...]
    lists_fenced: tuple[bool, ...] = (True,)
    margin: int = 0
    stop_line: bool = False
    soft_limit: bool = False
    depth: int = 8

    def factors(self) -> VolumeLimit:
        """The factor source with these rules."""
        rules = Rules(
            MinAvailableBytes(LIMIT, self.margin),
            VALIDITY_S,
            MinAvailableBytes(STOP_LINE) if self.stop_line else None,
            SlopeRules(MinAvailableBytes(SOFT_LIMIT)) if self.soft_limit else None,
        )
        return VolumeLimit(rules, FALLBACK)


SCOPES: Final[Mapping[str, Scope]] = {
    "limit": Scope(("roomy", "full")),
    "before Kafka 4.0": Scope(("roomy", "full"), (False,)),
    "during an upgrade": Scope(("roomy", "full"), (True, False)),
    "release margin": Scope(("roomy", "near", "full"), margin=MARGIN),
    "stop line": Scope(("roomy", "low", "stopped"), stop_line=True),
    "unreadable": Scope(("roomy", "full", UNREADABLE)),
    "offline": Scope(("roomy", "full", OFFLINE)),
    # An eighth event takes four times as long; a test marked rare has it.
    "soft limit": Scope(("roomy", "soft"), soft_limit=True, depth=7),
}
