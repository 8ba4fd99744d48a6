"""The arrays that kernels read and fill: charges against a shared quota, in the order of time.

Example: two fetches at 0 and 5 ms are ``Charges`` with two elements in each array.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Span(NamedTuple):
    """The same as ``quotas.rate.QuotaWindow``: the number of samples, and the window of each."""

    samples: int
    window_ms: int


class Charges(NamedTuple):
    """Charges.

    Attributes:
        at_ms: the time of each charge.
        amount: the amount of each charge.
        strict: for mutations, whether the charge is rejected while the quota is used up.
        counts: whether any quota of this kind exists, so that the charge is recorded.
    """

    at_ms: Longs
    amount: Doubles
    strict: Flags
    counts: Flags

    @classmethod
    def none(cls, size: int) -> "Charges":
        """Return empty arrays to fill."""
        return cls(
            np.zeros(size, np.int64),
            np.zeros(size),
            np.zeros(size, np.bool_),
            np.ones(size, np.bool_),
        )


class Rates(NamedTuple):
    """The rate per second after each charge, and the milliseconds over which it is taken."""

    rate: Doubles
    over_ms: Longs

    @classmethod
    def none(cls, size: int) -> "Rates":
        """Return arrays to fill."""
        return cls(np.zeros(size), np.zeros(size, np.int64))


class ChargeResults(NamedTuple):
    """What becomes of each charge.

    Attributes:
        wait_ms: how long its client has to wait, milliseconds.
        refused: whether it was, and so is not counted.
        compared: what is compared with the limit, in its unit; NaN without a limit.
        rate: as Kafka takes it, in the limit's unit.
    """

    wait_ms: Longs
    refused: Flags
    compared: Doubles
    rate: Doubles

    @classmethod
    def none(cls, size: int) -> "ChargeResults":
        """Return arrays to fill."""
        return cls(
            np.zeros(size, np.int64), np.zeros(size, np.bool_), np.zeros(size), np.zeros(size)
        )
