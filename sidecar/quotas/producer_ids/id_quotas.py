"""The quota of each user on new producer ids, and its origin (KIP-936).

A user's own quota applies, or else the default. A quota set over HTTP overrides the file, and a
default in the file overrides the default of the settings.

Example: the file has 50 for alice and a default of 200, and somebody set 80 for alice over HTTP.
Alice may use 80 new ids per window, and bob 200.

Source: KIP-936, section "New Quota Types".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.quotas.entities import DEFAULT, Default

SMALLEST_RATE: Final = 1e-6
LARGEST_RATE: Final = 1e12
"""The range of producer_ids_rate; outside of it, a rate per second would be 0 or infinite."""

SMALLEST_PERCENTAGE: Final = 1e-5
LARGEST_PERCENTAGE: Final = 1e5
"""The range of throttled_request_percentage: from a second in 4 months to 1,000 threads."""


@dataclass(frozen=True, slots=True)
class ProducerIdQuota:
    """A user's quota, and how the user is throttled.

    Attributes:
        producer_ids_rate: new ids per window; None means any number.
        throttled_request_percentage: the request_percentage of a throttled user; None means that
            only the factor throttles the user.

    Raises:
        ValueError: a number is too small or too large.
    """

    producer_ids_rate: float | None
    throttled_request_percentage: float | None = None

    def __post_init__(self) -> None:
        rate, percentage = self.producer_ids_rate, self.throttled_request_percentage
        if rate is not None and not SMALLEST_RATE <= rate <= LARGEST_RATE:
            raise ValueError(f"{rate} ids are not {SMALLEST_RATE:g} to {LARGEST_RATE:g}")
        if percentage is not None and not SMALLEST_PERCENTAGE <= percentage <= LARGEST_PERCENTAGE:
            raise ValueError(
                f"{percentage} % is not {SMALLEST_PERCENTAGE:g} to {LARGEST_PERCENTAGE:g}"
            )


ProducerIdQuotas = Mapping[str | Default, ProducerIdQuota]
"""User, or DEFAULT for all others -> quota."""


class Origin(StrEnum):
    """Where a quota was set."""

    SETTING = "setting"
    FILE = "file"
    API = "api"


@dataclass(frozen=True, slots=True)
class InForce:
    """A quota and its origin."""

    quota: ProducerIdQuota
    origin: Origin


def in_force(
    setting: ProducerIdQuota, file: ProducerIdQuotas, api: ProducerIdQuotas
) -> dict[str | Default, InForce]:
    """Return the quota of DEFAULT and of each user with a quota of their own."""
    quotas: dict[str | Default, InForce] = {DEFAULT: InForce(setting, Origin.SETTING)}
    quotas.update((name, InForce(quota, Origin.FILE)) for name, quota in file.items())
    quotas.update((name, InForce(quota, Origin.API)) for name, quota in api.items())
    return quotas


def quota_of(quotas: Mapping[str | Default, InForce], user: str) -> InForce:
    """Return the quota of a user from the result of ``in_force``."""
    return quotas.get(user) or quotas[DEFAULT]
