"""How many new producer ids each user may have, and where that was set (KIP-936).

A user is under a quota of their own, else under the default. For each of these what was put over
HTTP wins over the file, and the file's default over the setting's.

Example: the file says 50 for alice and 200 by default, and 80 for alice was put over HTTP: alice
may have 80 ids a window, bob 200.

Source: KIP-936, section "New Quota Types".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.quotas.entities import DEFAULT, Default

SMALLEST_RATE: Final = 1e-6
LARGEST_RATE: Final = 1e12
"""What a producer_ids_rate may be: beyond it numbers per second are 0 or infinite."""

SMALLEST_PERCENTAGE: Final = 1e-5
LARGEST_PERCENTAGE: Final = 1e5
"""What a request_percentage of throttled users may be: 1,000 threads, and a second in 4 months."""


@dataclass(frozen=True, slots=True)
class ProducerIdQuota:
    """What a user is allowed, and how they are throttled.

    Attributes:
        producer_ids_rate: new ids in a window; None: any number.
        throttled_request_percentage: the request_percentage that a user has while they are
            throttled; None: they are throttled by the factor alone.

    Raises:
        ValueError: a number that is too small or too large.
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
    """A quota and where it was set."""

    quota: ProducerIdQuota
    origin: Origin


def in_force(
    setting: ProducerIdQuota, file: ProducerIdQuotas, api: ProducerIdQuotas
) -> dict[str | Default, InForce]:
    """The quota of each user who has one of their own, and of DEFAULT."""
    found: dict[str | Default, InForce] = {DEFAULT: InForce(setting, Origin.SETTING)}
    found.update((name, InForce(quota, Origin.FILE)) for name, quota in file.items())
    found.update((name, InForce(quota, Origin.API)) for name, quota in api.items())
    return found


def quota_of(quotas: Mapping[str | Default, InForce], user: str) -> InForce:
    """The quota that a user is under, of those that ``in_force`` gives."""
    return quotas.get(user) or quotas[DEFAULT]
