"""What can throttle a user who opens producer ids in a loop, side by side on one cluster.

Each has a user of its own with the same quota, so that none begins with what another has counted.
For the request_percentage to act alone its user is excluded from the quota callback.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

RATE: Final = 30
"""producer_ids_rate, ids in a window."""
WINDOW_S: Final = 60
WINDOWS: Final = 2
PERCENTAGE: Final = 0.01
"""throttled_request_percentage."""
IP_RATE: Final = 2.0
"""connection_creation_rate of the address that the clients come from, for each broker."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One throttle.

    Attributes:
        key: short, for names of files; also the user's name.
        name: for a reader, short enough for a legend.
        has_factor: the user's produce factor becomes 0.0.
        has_percentage: and they get a request_percentage.
        has_ip_rate: and their address may open few connections.
    """

    key: str
    name: str
    has_factor: bool = False
    has_percentage: bool = False
    has_ip_rate: bool = False

    @property
    def is_throttled(self) -> bool:
        """Whether there is a quota at all."""
        return self.has_factor or self.has_percentage


VARIANTS: Final = (
    Variant("none", "free"),
    Variant("factor", "factor", has_factor=True),
    Variant("percentage", "percentage", has_percentage=True),
    Variant("both", "both", has_factor=True, has_percentage=True),
    # The last one: its limit on connections stays.
    Variant("ip", "both + IP rate", has_factor=True, has_percentage=True, has_ip_rate=True),
)


def quota_file(variants: Sequence[Variant]) -> str:
    """The sidecars' TOML file with a quota for each user that is to be throttled."""
    parts = []
    for each in variants:
        if each.is_throttled:
            parts.append(f"[users.{each.key}]\nproducer_ids_rate = {RATE}\n")
            if each.has_percentage:
                parts.append(f"throttled_request_percentage = {PERCENTAGE}\n")
    return "".join(parts)


def excluded(variants: Sequence[Variant]) -> str:
    """The callback's excluded.principals."""
    return ";".join(f"User:{each.key}" for each in variants if not each.has_factor)
