"""What kernels take and fill: arrays of the charges of those who share a quota, in their order.

Example: two fetches at 0 and 5 ms are ``Charges`` whose arrays have two elements each.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


class Span(NamedTuple):
    """``quotas.rate.QuotaWindow``: so many samples of one window each."""

    samples: int
    window_ms: int


class Charges(NamedTuple):
    """What is charged.

    Attributes:
        at_ms: when.
        amount: how much.
        strict: of mutations: refused while the quota is used up.
        counts: whether anybody has a quota of this kind, so that it is recorded.
    """

    at_ms: Longs
    amount: Doubles
    strict: Flags
    counts: Flags

    @classmethod
    def none(cls, size: int) -> "Charges":
        """Of nothing, to be filled."""
        return cls(
            np.zeros(size, np.int64),
            np.zeros(size),
            np.zeros(size, np.bool_),
            np.ones(size, np.bool_),
        )


class Rates(NamedTuple):
    """A rate per second after each charge, and over how many milliseconds it is taken."""

    rate: Doubles
    over_ms: Longs

    @classmethod
    def none(cls, size: int) -> "Rates":
        """To be filled."""
        return cls(np.zeros(size), np.zeros(size, np.int64))


class ChargeResults(NamedTuple):
    """What becomes of each charge.

    Attributes:
        wait_ms: how long its client has to wait, milliseconds.
        refused: whether it was, and so is not counted.
        used: what is compared with the limit, in its unit; NaN without a limit.
        rate: as Kafka takes it, in the limit's unit.
    """

    wait_ms: Longs
    refused: Flags
    used: Doubles
    rate: Doubles

    @classmethod
    def none(cls, size: int) -> "ChargeResults":
        """To be filled."""
        return cls(
            np.zeros(size, np.int64), np.zeros(size, np.bool_), np.zeros(size), np.zeros(size)
        )
