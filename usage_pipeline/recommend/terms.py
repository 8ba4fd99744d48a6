"""On what terms quotas are recommended, and the recommended ones as ``quotas apply`` takes them.

Needs no Spark: the commands and the report read it too.

Example: the recommendation of 2,500,000 bytes a second for ``user=alice`` is
``{"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 2500000.0}}``, which
``throttle-sidecar quotas diff --plan FILE`` compares with what is set.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sidecar.errors import SidecarError
from usage_pipeline.usage.quota_types import KEYS

FLOORS: Final[Mapping[str, float]] = {
    "produce": 100_000.0,
    "fetch": 100_000.0,
    "request": 1.0,
    "controller_mutation": 1.0,
    "producer_ids": 10.0,
}
"""The smallest that is recommended, in the quota's unit: below, one request of a usual size would
have to wait, whatever else the tenant does. Bytes per second, percent of a thread, partitions
per second, ids per hour."""

_CLIENT_MARK: Final = ",client-id="
_DEFAULT: Final = "<default>"


class TermsError(SidecarError):
    """Quotas can't be recommended on such terms."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms.

    Attributes:
        target: the share of charges that may have to wait, 0 to 1.
        percentile: of a tenant's rates that the quota is to let through, 0 to 1.
        half_life_days: after so long a rate counts half: what was once is not what will be.
        margin: on top of the percentile, a share.
        floors: the smallest quota of each type.
        least_coverage: under it none is recommended: what the logs don't cover is not known.
        cluster_users: brokers' own principals, which must not be throttled.

    Raises:
        TermsError: a number out of its range.
    """

    target: float = 0.01
    percentile: float = 0.99
    half_life_days: float = 7.0
    margin: float = 0.15
    floors: Mapping[str, float] = field(default_factory=lambda: dict(FLOORS))
    least_coverage: float = 0.5
    cluster_users: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("target", "percentile", "least_coverage"):
            if not 0 <= getattr(self, name) <= 1:
                raise TermsError(f"{name} is a share, from 0 to 1, not {getattr(self, name)}")
        if self.half_life_days <= 0 or self.margin < 0:
            raise TermsError("a half-life is above 0 days, a margin is not below 0")
        if unknown := set(self.floors) - set(KEYS):
            raise TermsError(f"no such quota type: {', '.join(sorted(unknown))}")
        if not all(0 <= least < math.inf for least in self.floors.values()):
            raise TermsError("a floor is 0 or above")


def floor(text: str) -> tuple[str, float]:
    """A floor as a person writes it: "produce=100000" is ``("produce", 100000.0)``.

    Raises:
        TermsError: it can't be understood.
    """
    quota_type, _, number = text.partition("=")
    try:
        least = float(number)
    except ValueError:
        least = math.nan
    if quota_type not in KEYS or not 0 <= least < math.inf:
        raise TermsError(
            f'{text} is not like "produce=100000": one of {", ".join(KEYS)}, and a number from 0'
        )
    return quota_type, least


def capacity_of(
    document: Mapping[str, object] | None,
    network_bytes_per_s: float | None = None,
    disk_bytes_per_s: float | None = None,
) -> dict[str, float]:
    """What the smallest broker has to give, for each quota type where that is known.

    Args:
        document: as ``quotas capacity --json`` prints it; None: not known.
        network_bytes_per_s: of a broker, each way; None: not known.
        disk_bytes_per_s: that its disks can write; None: not known.

    Raises:
        TermsError: it is not such a document.
    """
    found: dict[str, float] = {}
    if document is not None:
        percent = document.get("smallest_capacity_percent")
        if not isinstance(percent, int | float) or percent <= 0:
            raise TermsError('capacity is not what "quotas capacity --json" prints')
        found["request"] = float(percent)
    written = [rate for rate in (network_bytes_per_s, disk_bytes_per_s) if rate is not None]
    if written:
        found["produce"] = min(written)
    if network_bytes_per_s is not None:
        found["fetch"] = network_bytes_per_s
    return found


def recommended_quotas(
    rows: Iterable[Mapping[str, object]],
) -> dict[str, list[dict[str, object]]]:
    """The document that ``quotas diff --plan`` and ``quotas apply --plan`` take.

    Args:
        rows: of GOLD_RECOMMENDATION. Refused ones are left out, so what is set today stays; so are
            producer ids, which Kafka has no quota for, and names that can't be distinguished.
    """
    found: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
    for row in rows:
        quota = row["quota"]
        if not isinstance(quota, int | float) or row["quota_type"] == "producer_ids":
            continue
        parts = entity_parts(str(row["entity"]))
        if parts is not None:
            found.setdefault(tuple(parts.items()), {})[str(row["key"])] = float(quota)
    return {
        "quotas": [
            {"entity": dict(parts), "quotas": dict(sorted(quotas.items()))}
            for parts, quotas in sorted(found.items(), key=lambda each: str(each[0]))
        ]
    }


def entity_parts(entity: str) -> dict[str, str | None] | None:
    """Kafka's parts of an entity of the tables; None when its names hide where one ends.

    Example: "user=alice,client-id=<default>" is ``{"user": "alice", "client-id": None}``.
    """
    if entity.startswith("client-id="):
        return {"client-id": _name(entity.removeprefix("client-id="))}
    if not entity.startswith("user=") or entity.count(_CLIENT_MARK) > 1:
        return None
    user, mark, client_id = entity.removeprefix("user=").partition(_CLIENT_MARK)
    parts = {"user": _name(user)}
    return {**parts, "client-id": _name(client_id)} if mark else parts


def _name(text: str) -> str | None:
    return None if text == _DEFAULT else text
