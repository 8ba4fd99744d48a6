"""The limit by available bytes (proposal 047, section "Limit types").

A volume violates it when its available bytes are less than or equal to the value, whatever its
size.

Example: under ``MinAvailableBytes(100)`` a volume with 100 bytes available violates the limit. A
volume with 101 bytes available does not.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from sidecar.throttle.limits.limit import Limit, Verdict, two_digits
from sidecar.throttle.sizes import size
from sidecar.volumes import Volume


@dataclass(frozen=True, slots=True)
class MinAvailableBytes(Limit):
    """Throttle when a volume has at most ``value`` bytes available; ``value`` is > 0."""

    name: ClassVar[str] = "min_available_bytes"

    def judge(self, volume: Volume, *, did_violate: bool = False) -> Verdict:
        """Compares the available bytes."""
        return Verdict(volume.available_bytes <= self.bound(did_violate=did_violate), self.value)

    def scaled(self, share: float) -> Self | None:
        """In whole bytes; None below one byte."""
        value = int(two_digits(share * self.value))
        return type(self)(value) if value else None

    def describe(self) -> str:
        """For example 40.0 MB."""
        return size(self.value)

    def describe_margin(self) -> str:
        """For example 1.0 MB."""
        return size(self.release_margin)
