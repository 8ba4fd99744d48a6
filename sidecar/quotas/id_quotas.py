"""How many new producer ids each user may have, and where that was said (KIP-936).

A user is under a quota of their own, else under the default. For each of these the operator's word
over HTTP wins over the file, and the file's default over the setting's.

Example: the file says 50 for alice and 200 by default, and 80 for alice was put over HTTP: alice
may have 80 ids a window, bob 200.

Source: KIP-936, section "New Quota Types".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sidecar.quotas.entities import DEFAULT, Default


@dataclass(frozen=True, slots=True)
class ProducerIdQuota:
    """What a user is allowed, and how they are held.

    Attributes:
        producer_ids_rate: new ids in a window, > 0; None: any number.
        held_request_percentage: the request_percentage that a user has while they are held, > 0;
            None: they are held by the factor alone.

    Raises:
        ValueError: a number that is not finite and above 0.
    """

    producer_ids_rate: float | None
    held_request_percentage: float | None = None

    def __post_init__(self) -> None:
        for number in (self.producer_ids_rate, self.held_request_percentage):
            if number is not None and not (number > 0 and math.isfinite(number)):
                raise ValueError(f"{number} is not above 0 and finite")


ProducerIdQuotas = Mapping[str | Default, ProducerIdQuota]
"""User, or DEFAULT for all others -> quota."""


class Origin(StrEnum):
    """Where a quota was said."""

    SETTING = "setting"
    FILE = "file"
    API = "api"


@dataclass(frozen=True, slots=True)
class InForce:
    """A quota and where it was said."""

    quota: ProducerIdQuota
    origin: Origin


UNLIMITED = InForce(ProducerIdQuota(None), Origin.SETTING)
"""Nobody said anything."""


def in_force(
    setting: ProducerIdQuota, file: ProducerIdQuotas, api: ProducerIdQuotas
) -> dict[str | Default, InForce]:
    """The quota of each user who has one of their own, and of DEFAULT."""
    found: dict[str | Default, InForce] = {DEFAULT: InForce(setting, Origin.SETTING)}
    found.update((name, InForce(quota, Origin.FILE)) for name, quota in file.items())
    found.update((name, InForce(quota, Origin.API)) for name, quota in api.items())
    return found


def quota_of(quotas: Mapping[str | Default, InForce], user: str) -> InForce:
    """The quota that a user is under."""
    return quotas.get(user) or quotas.get(DEFAULT, UNLIMITED)
