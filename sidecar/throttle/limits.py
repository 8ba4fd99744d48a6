"""The limit that every volume is held against (proposal 047, section "Limit types").

There is one limit for the whole cluster, of one of two types. A volume violates it when its value
is less than or equal to it.

Example: under ``MinAvailableBytes(100)`` a volume with 100 bytes available violates, one with 101
does not. Under ``MinAvailableRatio(0.1)`` a volume of 1,000 bytes with 100 available violates.
"""

from dataclasses import dataclass

from sidecar.volumes import Volume


@dataclass(frozen=True, slots=True)
class MinAvailableBytes:
    """Throttle when a volume has at most so many bytes available.

    Attributes:
        available_bytes: the threshold, > 0.
    """

    available_bytes: int

    def violated_by(self, volume: Volume) -> bool:
        """Whether the volume is at or below the limit."""
        return volume.available_bytes <= self.available_bytes

    def threshold_bytes(self, total_bytes: int) -> float:  # noqa: ARG002 - the same for every size
        """The available bytes at which a volume of this size starts to violate."""
        return self.available_bytes


@dataclass(frozen=True, slots=True)
class MinAvailableRatio:
    """Throttle when a volume has at most this share of its bytes available.

    Attributes:
        available_ratio: the threshold, > 0.0 and < 1.0.
    """

    available_ratio: float

    def violated_by(self, volume: Volume) -> bool:
        """Whether the volume is at or below the limit."""
        return volume.available_ratio <= self.available_ratio

    def threshold_bytes(self, total_bytes: int) -> float:
        """The available bytes at which a volume of this size starts to violate."""
        return self.available_ratio * total_bytes


Limit = MinAvailableBytes | MinAvailableRatio
