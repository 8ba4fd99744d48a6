"""The limit by available bytes (proposal 047, section "Limit types").

A volume violates it when its available bytes are less than or equal to the value, whatever its
size.

Example: under ``MinAvailableBytes(100)`` a volume with 100 bytes available violates, one with 101
does not.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from sidecar.throttle.fill import Fill
from sidecar.throttle.limits.limit import Limit, Verdict, two_digits, verdict_at
from sidecar.throttle.sizes import size
from sidecar.volumes import Volume


@dataclass(frozen=True, slots=True)
class MinAvailableBytes(Limit):
    """Throttle when a volume has at most so many bytes available; the value is > 0."""

    name: ClassVar[str] = "min_available_bytes"

    def judge(self, volume: Volume, fill: Fill, before: Verdict | None) -> Verdict:
        """Judges a volume by its available bytes."""
        violates = self.violated(volume.available_bytes, before)
        return verdict_at(self.value, volume, fill, violates=violates)

    def scaled(self, share: float) -> Self | None:
        """Whole bytes; None below one."""
        value = int(two_digits(share * self.value))
        return type(self)(value) if value else None

    def describe(self) -> str:
        """40.0 MB."""
        return size(self.value)

    def describe_margin(self) -> str:
        """1.0 MB."""
        return size(self.release_margin)

    def caveat(self, volume: Volume) -> str:
        """That no room on this volume would ever be enough."""
        if self.value < volume.total_bytes:
            return ""
        much = "all that" if self.value == volume.total_bytes else "more than"
        return f"; the limit is {much} the volume has, so it is always violated"
