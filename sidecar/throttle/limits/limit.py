"""The interface of a limit, which judges the sizes of a volume and describes itself.

A limit judges one volume at a time, by its sizes alone. Everything else follows from the verdict:
the factor, the time until the limit, the next poll. So no other module knows the types. A limit
never judges by how fast a volume fills: the throttle itself changes that rate, so such a limit
would throttle and release in turns.

Example: under a limit of 100 bytes, a volume with 300 bytes available is within the limit, which
lies at 100 available bytes.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Context
from typing import ClassVar, Self

from sidecar.throttle.sizes import size
from sidecar.volumes import Volume


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of comparing a volume with a limit.

    Attributes:
        violates: whether the volume violates the limit.
        threshold_bytes: the available bytes at which this volume begins to violate it.
    """

    violates: bool
    threshold_bytes: float


@dataclass(frozen=True, slots=True)
class Limit(ABC):
    """A limit for every volume of the cluster.

    Attributes:
        name: the type's name, in the API and at the end of its settings' names.
        value: the value of the setting, in the type's unit.
        release_margin: how much more than the limit a violating volume needs until it no longer
            violates, in the type's unit, >= 0.
    """

    name: ClassVar[str]

    value: float
    release_margin: float = 0.0

    @abstractmethod
    def judge(self, volume: Volume, *, did_violate: bool = False) -> Verdict:
        """Compares a volume with this limit.

        Args:
            volume: its sizes.
            did_violate: whether it violated this limit before; then it needs the margin too.
        """

    def scaled(self, share: float) -> Self | None:
        """A limit of this type at a share of this one's bytes, to two digits, rounded down.

        Args:
            share: > 0.0 and < 1.0.

        Returns:
            The limit; None when it would be too small for this type.
        """
        return type(self)(two_digits(share * self.value))

    def bound(self, *, did_violate: bool) -> float:
        """The most that a violating volume can have available, in the type's unit."""
        # Whole bytes stay whole: a float would round bytes above 2^53.
        return self.value + self.release_margin if did_violate else self.value

    @property
    def released(self) -> Self:
        """The limit that a violating volume has to leave, the release margin above this one."""
        return replace(self, value=self.bound(did_violate=True), release_margin=0.0)

    @abstractmethod
    def describe(self) -> str:
        """The limit in two or three words, which follow "the limit is": 40.0 MB."""

    def within(self) -> str:
        """The state of a volume within the limit, which follows "every volume has"."""
        return f"more than {self.describe()} available"

    @abstractmethod
    def describe_margin(self) -> str:
        """The margin in two or three words: 1.0 MB."""

    def sentence(self, volume: Volume, name: str = "limit") -> str:
        """Why a volume violates the limit of this name, which follows its broker and log dir."""
        where = (
            f"at or below the {name} of {self.describe()}"
            if self.judge(volume).violates
            else f"not yet {self.describe_margin()} above the {name} of {self.describe()}"
        )
        return (
            f"has {size(volume.available_bytes)} of {size(volume.total_bytes)} available "
            f"({volume.available_ratio:.1%}), {where}"
        )

    def left(self, volume: Volume) -> str:
        """The room on a volume in the limit's unit, which precedes "left"."""
        return size(volume.available_bytes)

    def caveat(self, volume: Volume) -> str:
        """Why even an empty volume of this size violates the limit, to end a sentence; or ""."""
        empty = volume.emptied
        verdict = self.judge(empty)
        if verdict.violates:
            is_all = verdict.threshold_bytes == volume.total_bytes
            compared = "all that" if is_all else "more than"
            return f"; the limit is {compared} the volume has, so it is always violated"
        if self.judge(empty, did_violate=True).violates:
            return "; the volume is too small for the release margin, so it is never released"
        return ""


def two_digits(value: float) -> float:
    """A positive number to two digits, rounded down: 0.0567 is 0.056."""
    return float(Context(prec=2, rounding=ROUND_DOWN).create_decimal(repr(value)))
