"""Which request_percentage is a sidecar's, set while a user is throttled, and not an operator's.

The last digits show it: no operator types them, and Kafka retains them. Planning and comparing
quotas ignores such a one: it ends with the throttle.

Example: 0.01 is set as 0.010000936, which is ours; 0.01 and 200 are somebody's.

Source: KIP-936 throttles by the produce quota alone; see ``sidecar.producer_ids.request_quotas``
for why two parts.
"""

from typing import Final

from sidecar.quotas.entities import ClientQuotas, QuotaKey
from sidecar.quotas.producer_ids.id_quotas import LARGEST_PERCENTAGE, SMALLEST_PERCENTAGE

SIGNATURE: Final = 9.36e-7
"""Added to the quota's percentage."""

_DECIMALS: Final = 5
"""Of a percentage, before the signature."""


def signed(percentage: float) -> float:
    """What is set for a quota's percentage."""
    return round(percentage, _DECIMALS) + SIGNATURE


def is_signed(value: float | None) -> bool:
    """Whether the last digits are the signature, of a percentage that a quota may have."""
    if value is None or not SMALLEST_PERCENTAGE <= value <= LARGEST_PERCENTAGE + 1:
        return False
    return abs(value - SIGNATURE - round(value - SIGNATURE, _DECIMALS)) < 1e-9


def without_signed(quotas: ClientQuotas) -> ClientQuotas:
    """The quotas that somebody else set."""
    return {
        entity: {
            key: value
            for key, value in values.items()
            if key != QuotaKey.REQUEST or not is_signed(value)
        }
        for entity, values in quotas.items()
    }
