"""Which request_percentage is a sidecar's, set while a user is held, and not an operator's.

The last digits tell: no operator types them, and Kafka keeps them. Who plans or compares quotas
passes over such a one: it is gone when the hold is.

Example: 0.01 is set as 0.010000936, which is ours; 0.01 and 200 are somebody's.

Source: KIP-936 holds by the produce quota alone; see ``sidecar.producer_ids.request_quotas`` for
why two parts.
"""

from typing import Final

from sidecar.quotas.entities import ClientQuotas, QuotaKey
from sidecar.quotas.producer_ids.id_quotas import LARGEST_PERCENTAGE, SMALLEST_PERCENTAGE

SIGNATURE: Final = 9.36e-7
"""Added to the percentage that is asked for."""

_DECIMALS: Final = 5
"""Of a percentage, before the signature."""


def signed(percentage: float) -> float:
    """What is set for a percentage that a quota asks for."""
    return round(percentage, _DECIMALS) + SIGNATURE


def is_signed(value: float | None) -> bool:
    """Whether the last digits are the signature, in what a quota may ask for."""
    if value is None or not SMALLEST_PERCENTAGE <= value <= LARGEST_PERCENTAGE + 1:
        return False
    return abs(value - SIGNATURE - round(value - SIGNATURE, _DECIMALS)) < 1e-9


def without_signed(quotas: ClientQuotas) -> ClientQuotas:
    """The quotas that somebody gave."""
    return {
        entity: {
            key: value
            for key, value in values.items()
            if key != QuotaKey.REQUEST or not is_signed(value)
        }
        for entity, values in quotas.items()
    }
