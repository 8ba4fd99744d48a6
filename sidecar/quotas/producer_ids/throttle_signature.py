"""Marks the request_percentage that a sidecar sets while a user is throttled.

The last digits are the mark: no operator types them, and Kafka keeps them. Commands that plan or
compare quotas ignore a marked quota, because it ends with the throttle.

Example: a sidecar sets 0.01 as 0.010000936. The quotas 0.01 and 200 are those of an operator.

Source: KIP-936 throttles by the produce quota alone; see ``sidecar.producer_ids.request_quotas``
for why two parts.
"""

from typing import Final

from sidecar.quotas.entities import ClientQuotas, QuotaKey
from sidecar.quotas.producer_ids.id_quotas import LARGEST_PERCENTAGE, SMALLEST_PERCENTAGE

SIGNATURE: Final = 9.36e-7
"""Added to the quota's percentage."""

_DECIMALS: Final = 5
"""The decimals of a percentage before the signature."""


def signed(percentage: float) -> float:
    """Return the percentage to set, with the signature."""
    return round(percentage, _DECIMALS) + SIGNATURE


def is_signed(value: float | None) -> bool:
    """Whether a sidecar set this percentage: its last digits are the signature."""
    if value is None or not SMALLEST_PERCENTAGE <= value <= signed(LARGEST_PERCENTAGE):
        return False
    return abs(value - SIGNATURE - round(value - SIGNATURE, _DECIMALS)) < 1e-9


def without_signed(quotas: ClientQuotas) -> ClientQuotas:
    """Return the quotas that operators set."""
    return {
        entity: kept
        for entity, values in quotas.items()
        if (
            kept := {
                key: value
                for key, value in values.items()
                if key != QuotaKey.REQUEST or not is_signed(value)
            }
        )
    }
