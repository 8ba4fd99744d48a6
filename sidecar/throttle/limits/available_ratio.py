"""The limit by the share of a volume that is available (proposal 047, section "Limit types").

A volume violates it when its available ratio is less than or equal to the value; a volume of 0
bytes has a ratio of 0.

Example: under ``MinAvailableRatio(0.1)`` a volume of 1,000 bytes with 100 available violates.
"""

from dataclasses import dataclass
from typing import ClassVar

from sidecar.throttle.limits.limit import Limit, Verdict
from sidecar.throttle.sizes import size
from sidecar.volumes import Volume


@dataclass(frozen=True, slots=True)
class MinAvailableRatio(Limit):
    """Throttle when a volume has at most this share available; ``value`` is > 0.0 and < 1.0."""

    name: ClassVar[str] = "min_available_ratio"

    def judge(self, volume: Volume, *, did_violate: bool = False) -> Verdict:
        """Compares the available ratio."""
        # Ratios are compared, because a product in bytes rounds: 29 of 100 bytes are a ratio of
        # 0.29, but 0.29 x 100 is 28.999999999999996, and 29 bytes are more than that.
        violates = volume.available_ratio <= self.bound(did_violate=did_violate)
        return Verdict(violates, self.value * volume.total_bytes)

    def describe(self) -> str:
        """For example 10.0%."""
        return f"{self.value:.1%}"

    def describe_margin(self) -> str:
        """For example 1.0% of its size."""
        return f"{self.release_margin:.1%} of its size"

    def left(self, volume: Volume) -> str:
        """For example 12.3% (38.2 MB)."""
        return f"{volume.available_ratio:.1%} ({size(volume.available_bytes)})"
