"""What a type of limit is: it judges volumes, and it describes itself.

A limit judges one volume at a time, from its sizes, its fill and the verdict before. Whoever needs
to know whether a volume violates, how long it has left or where its limit lies takes that from the
verdict, so nothing else knows the types.

Example: under a limit of 100 bytes a volume with 300 available that fills by 10 bytes/s is within
the limit, which is 20 s away and lies at 100 available bytes.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from enum import StrEnum
from typing import ClassVar, Self

from sidecar.throttle.fill import Fill, seconds_to
from sidecar.throttle.sizes import size
from sidecar.volumes import Volume


class Level(StrEnum):
    """How a volume stands against the limit."""

    WITHIN = "within"
    VIOLATED = "violated"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a limit says of a volume.

    Attributes:
        level: how the volume stands against the limit.
        factor: the throttle factor by this volume alone, 0.0 to 1.0.
        threshold_bytes: the available bytes at which the volume begins to violate, at the rate at
            which it now fills.
        seconds_left: how long the volume takes to violate at the published rate, from its reading
            on; 0.0 while it violates, None when it does not fill or no rate is known.
        soonest_s: likewise at the fastest rate just seen; the schedule uses it.
    """

    level: Level
    factor: float
    threshold_bytes: float
    seconds_left: float | None
    soonest_s: float | None

    @property
    def violates(self) -> bool:
        """Whether the volume violates the limit."""
        return self.level is Level.VIOLATED


@dataclass(frozen=True, slots=True)
class Limit(ABC):
    """A limit for every volume of the cluster.

    Attributes:
        name: the type's name in the API. The setting's field is
            ``storage_per_volume_limit_`` and this name.
        value: what the setting says, in the type's unit.
        release_margin: by how much more a volume that violates has to have until it no longer
            does, in the type's unit, >= 0.
    """

    name: ClassVar[str]

    value: float
    release_margin: float = 0.0

    @abstractmethod
    def judge(self, volume: Volume, fill: Fill, before: Verdict | None) -> Verdict:
        """Judges a volume that was just read.

        Args:
            volume: its sizes.
            fill: how it fills, this reading included.
            before: the verdict on its reading before; None when there was none under this limit.
        """

    def scaled(self, share: float) -> Self | None:
        """A limit of this type at a share of this one's bytes, to two digits, rounded down.

        Args:
            share: > 0.0 and < 1.0.

        Returns:
            The limit; None where the type has none that is so small.
        """
        return type(self)(two_digits(share * self.value))

    def violated(self, measured: float, before: Verdict | None) -> bool:
        """Whether so much, in the type's unit, violates: by the margin too, once it did."""
        did = before is not None and before.violates
        # Whole bytes stay whole: a float would round what is above 2^53.
        return measured <= (self.value + self.release_margin if did else self.value)

    @abstractmethod
    def describe(self) -> str:
        """The limit in two or three words, as they follow "the limit is": 40.0 MB."""

    def within(self) -> str:
        """What a volume within the limit has, as it follows "every volume has"."""
        return f"more than {self.describe()} available"

    @abstractmethod
    def describe_margin(self) -> str:
        """The margin in two or three words: 1.0 MB."""

    def sentence(self, volume: Volume, fill: Fill) -> str:
        """Why a volume violates, as it follows its broker and log dir."""
        where = (
            f"at or below the limit of {self.describe()}"
            if self.judge(volume, fill, None).violates
            else f"not yet {self.describe_margin()} above the limit of {self.describe()}"
        )
        return (
            f"has {size(volume.available_bytes)} of {size(volume.total_bytes)} available "
            f"({volume.available_ratio:.1%}), {where}"
        )

    def left(self, volume: Volume, fill: Fill) -> str:  # noqa: ARG002 - for limits that use it
        """What a volume has left, as it precedes "left", in the limit's unit."""
        return size(volume.available_bytes)

    def caveat(self, volume: Volume) -> str:  # noqa: ARG002 - for those who have one
        """What else is to be said of this limit on this volume, as it ends a sentence; or ""."""
        return ""


def two_digits(value: float) -> float:
    """A positive number to two digits, rounded down: 0.0567 is 0.056."""
    return float(Context(prec=2, rounding=ROUND_DOWN).create_decimal(repr(value)))


def verdict_at(threshold_bytes: float, volume: Volume, fill: Fill, *, violates: bool) -> Verdict:
    """The verdict of a limit that lies at some available bytes and stops all producers.

    Where the threshold moves with the rate, ``soonest_s`` is to be replaced: at the fastest rate
    such a limit lies elsewhere.

    Args:
        threshold_bytes: the available bytes at which the volume begins to violate.
        volume: its sizes.
        fill: how it fills.
        violates: whether it violates now.
    """
    headroom = 0.0 if violates else volume.available_bytes - threshold_bytes
    return Verdict(
        level=Level.VIOLATED if violates else Level.WITHIN,
        factor=0.0 if violates else 1.0,
        threshold_bytes=threshold_bytes,
        seconds_left=seconds_to(headroom, fill.bytes_per_second),
        soonest_s=seconds_to(headroom, fill.fastest_bytes_per_second),
    )
